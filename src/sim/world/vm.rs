//! VMs and what they hold of a host.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::PciAddress;
use crate::sim::document::{Firmware, Owner, Power, Span, Tools, VmDevice, VmNode};

/// A VM.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sim) struct Vm {
    pub name: String,
    pub host: u32,
    pub datacenter: u32,
    pub folder: u32,
    pub uuid: String,
    pub power: Power,
    pub template: bool,
    pub vcls: bool,
    pub devices: Vec<VmDevice>,
    /// The slot of each device, in their order: its key and its unit number come from it.
    pub slots: Vec<u32>,
    /// When its configuration changed last: its `changeVersion`.
    pub configured: Timestamp,
    /// A new configuration that a task is about to give it.
    pub refit: Option<Refit>,
    /// The host whose devices its fixed DirectPath devices name (`systemId`).
    pub device_host: u32,
    pub memory_gib: u32,
    pub reserved_gib: u32,
    pub migrate: bool,
    pub power_off_policy: bool,
    pub firmware: Firmware,
    pub extra: BTreeMap<String, String>,
    pub managed_by: Option<Owner>,
    /// The node of a guest cluster that it is.
    pub node: Option<VmNode>,
    pub tools: Tools,
    pub refuses_shutdown: bool,
    pub shutdown_takes: Span,
    pub power_on_takes: Span,
    pub move_takes: Span,
    /// While powered on: where each device sits.
    pub seats: Seats,
    /// A power-on or a vMotion under way: its seats are taken already.
    pub bound: Option<Bound>,
    /// Its host and power before the last change, for reads that lie.
    pub before: Option<(u32, Power)>,
    /// Its guest was asked to shut down and is about to.
    pub shutting_down: bool,
    /// Moves that failed, so that DRS tries others first.
    pub failed_moves: u32,
    pub counts: Counts,
}

/// What a task is about to make of a VM's configuration.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sim) struct Refit {
    pub task: u64,
    pub devices: Vec<VmDevice>,
    pub slots: Vec<u32>,
    pub extra: BTreeMap<String, String>,
}

impl Vm {
    /// Keys of PCI passthrough devices start here.
    pub const FIRST_KEY: u32 = 13_000;
    /// The first unit of the PCI controller that is free for them (unverified).
    pub const FIRST_UNIT: u32 = 18;
}

/// Where each device of a VM sits, in the order of its devices; none of what needs no seat.
pub(in crate::sim) type Seats = Vec<Option<Seat>>;

/// Where a device of a VM sits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sim) struct Seat {
    pub gpu: PciAddress,
    /// The vGPU type as the catalogue spells it; none: the whole function, passed through.
    pub vgpu: Option<String>,
    /// In mixed-size mode its placement id, in MIG mode the memory slice at which its GPU instance
    /// starts.
    pub start: Option<u32>,
}

/// Where a VM is going to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sim) struct Bound {
    pub to: u32,
    pub seats: Seats,
    pub task: u64,
}

/// What happened to a VM.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sim) struct Counts {
    /// Moves while powered on.
    pub moves: u32,
    /// Times that it went from on to off.
    pub stops: u32,
    /// Times that it was powered on.
    pub starts: u32,
}

impl Vm {
    /// GPUs that its guest sees.
    pub fn gpu_devices(&self) -> u32 {
        let gpus = self.devices.iter().filter(|device| !matches!(device, VmDevice::Other(_)));
        u32::try_from(gpus.count()).unwrap_or(u32::MAX)
    }

    /// Keeps host and power as they are, before they change.
    pub fn remember(&mut self) {
        self.before = Some((self.host, self.power));
    }

    /// Whether it runs on a host as far as people's VMs go: agents of vCenter's and templates do not
    /// count.
    pub fn runs_on(&self, host: u32) -> bool {
        self.host == host && self.power == Power::On && !self.vcls && !self.template
    }

    /// An advanced setting, whatever the case of its value, as vSphere reads it.
    pub fn setting(&self, key: &str) -> Option<String> {
        self.extra.get(key).map(|value| value.trim().to_ascii_lowercase())
    }

    /// Whether an advanced setting is on.
    pub fn is_set(&self, key: &str) -> bool {
        matches!(self.setting(key).as_deref(), Some("true" | "1"))
    }
}
