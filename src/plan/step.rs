//! The steps of a visit. What a step expects to find travels with it.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Moving;
use super::device::addresses;
use super::group::{by_words, grouped};
use super::vms::device_words;
use crate::model::{
    AssignmentPolicy, Fact, GraphicsConfig, GraphicsDeviceConfig, GraphicsType, MigKind, MoRef, NodeRef, PciAddress,
    ShellWay, VgpuMode, VmGpuDevice, counted,
};

/// A value that is changed: what is expected before, and what is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change<T> {
    /// Expected before.
    pub from: T,
    /// Set.
    pub to: T,
}

/// One entry of `UpdatePassthruConfig`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PassthruChange {
    /// Which function.
    pub address: PciAddress,
    /// Whether it should be passed through.
    pub enabled: bool,
    /// Label to set; `Some("")` clears it, `None` leaves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// `passthruEnabled` that is expected before.
    pub from_enabled: bool,
    /// Label that is expected before.
    pub from_label: Fact<String>,
}

/// One entry of `UpdateGraphicsConfig.deviceType`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GraphicsChange {
    /// Which GPU.
    pub address: PciAddress,
    /// Type to set.
    pub graphics_type: GraphicsType,
    /// Size mode to set; `None` leaves it ("if this value is unset, the mode remains unchanged").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vgpu_mode: Option<VgpuMode>,
    /// Configured type that is expected before.
    pub from_type: Fact<GraphicsType>,
    /// Configured size mode that is expected before.
    pub from_mode: Fact<VgpuMode>,
}

/// One step of a visit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Step {
    /// Ask for maintenance mode before VMs are stopped: a host that enters it accepts no power-on and
    /// no vMotion in. Reached when our task runs; it ends in [`Step::EnterMaintenance`].
    StartClosing {
        /// VMs that DRS moves away meanwhile, in name order.
        moves: Vec<Moving>,
        /// VMs that are stopped meanwhile: the server's own limit has to leave time for them.
        stops: u32,
    },
    /// Cordon a node, with our mark on it in the same write. Those of all guest clusters of the host are,
    /// before the first pod is evicted.
    CordonNode {
        /// The node.
        node: NodeRef,
        /// Its VM.
        vm: MoRef,
    },
    /// Evict the pods of a node, until nothing is left on it and its volumes are detached.
    DrainNode {
        /// The node.
        node: NodeRef,
        /// Its VM.
        vm: MoRef,
        /// How long it may take, in seconds.
        timeout_s: u32,
    },
    /// Shut down a guest on the host that is closing.
    StopVm {
        /// The VM.
        vm: MoRef,
        /// Its name.
        name: String,
        /// The node that it is: looked at once more before it is stopped. A node that is drained may be
        /// powered off if its guest does not heed us (FORMATS rule 4).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeRef>,
    },
    /// Enter maintenance mode, or follow the task that runs already. What is powered on is moved away
    /// by DRS.
    EnterMaintenance {
        /// VMs that DRS moves away meanwhile, in name order.
        moves: Vec<Moving>,
    },
    /// `UpdatePassthruConfig` with exactly these entries, `applyNow` unset.
    SetPassthrough {
        /// Entries in address order.
        changes: Vec<PassthruChange>,
    },
    /// `UpdateGraphicsConfig`: the whole configuration as read, with these changes
    /// ([`Step::merged`]).
    SetGraphics {
        /// Host default to set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        default_type: Option<Change<GraphicsType>>,
        /// Assignment policy to set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<Change<AssignmentPolicy>>,
        /// Devices in address order.
        devices: Vec<GraphicsChange>,
        /// The devices are still passed through: the server may store the entries, ignore them or
        /// refuse the call (docs/assumptions.md). None of the three is a failure: the facts are read
        /// again after the reboot, and what is missing is sent again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        early: bool,
    },
    /// Start the SSH service of the host where it is stopped, and log in: before anything of the host
    /// is disturbed, so that a wrong password or host key costs nothing.
    StartShell,
    /// Stop NVIDIA's monitoring daemon, which keeps GPUs in use (vsphere-gpu F28).
    StopMonitor,
    /// Switch MIG of GPUs: `nvidia-smi -mig`, the only way there is (vsphere-gpu §2.1), through the
    /// shell or by a person.
    SetMig {
        /// In address order.
        gpus: Vec<PciAddress>,
        /// On or off.
        on: bool,
        /// Where they keep it: it takes effect at once, or with the next reboot.
        kind: MigKind,
        /// By whom.
        way: ShellWay,
    },
    /// Start the monitoring daemon again, if it ran.
    StartMonitor,
    /// `RebootHost_Task`, in maintenance; proven by the boot time. After it, done or found done,
    /// the visit is planned anew.
    Reboot {
        /// What is configured and not active, one line each.
        pending: Vec<String>,
        /// Boot time before it.
        boot_before: Timestamp,
    },
    /// The host gate: signature on active fields, device set, other GPUs, parity.
    VerifyHost,
    /// Leave maintenance mode, and pass the gate once more: what only an open host shows (the HA
    /// agent) is judged here.
    ExitMaintenance,
    /// Power a VM on again, on this host: proven by its power state, its host and the GPU it has.
    StartVm {
        /// The VM.
        vm: MoRef,
        /// Its name.
        name: String,
        /// Its GPU devices, which must be the same still.
        gpus: Vec<VmGpuDevice>,
    },
    /// The first half of the node gate: the node is back, on a boot that it should be on, Ready, and offers
    /// what it should.
    AwaitNode {
        /// The node.
        node: NodeRef,
        /// Its VM.
        vm: MoRef,
        /// Whether this visit stopped its VM: the boot is another one if and only if it did.
        stopped: bool,
    },
    /// The second half of the node gate: the Jobs of its guest cluster succeed on it.
    ValidateNode {
        /// The node.
        node: NodeRef,
        /// How long all its Jobs may take, in seconds.
        timeout_s: u32,
    },
    /// Take our mark off a node that passed its gate, and leave it as it is to be left.
    UncordonNode {
        /// The node.
        node: NodeRef,
        /// How.
        leave: NodeEnd,
    },
}

/// How a node is left at the end of a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeEnd {
    /// Uncordoned, unless it was cordoned before.
    Open,
    /// Cordoned: its VM stays off as planned.
    LeftOff,
}

impl Step {
    /// The configuration to send: all of `current`, with the changes of this step. The whole list
    /// goes out because it is not documented whether the server merges or replaces it
    /// (vsphere-gpu §1.2). `None` for a step that writes no graphics configuration.
    pub fn merged(&self, current: &GraphicsConfig) -> Option<GraphicsConfig> {
        let Self::SetGraphics { default_type, policy, devices, .. } = self else {
            return None;
        };
        let mut config = current.clone();
        if let Some(change) = default_type {
            config.default_type = change.to.clone();
        }
        if let Some(change) = policy {
            config.policy = change.to.clone();
        }
        for change in devices {
            let mode = change.vgpu_mode.clone().map(Fact::Known);
            match config.devices.iter_mut().find(|entry| entry.address == change.address) {
                Some(entry) => {
                    entry.graphics_type = change.graphics_type.clone();
                    if let Some(mode) = mode {
                        entry.vgpu_mode = mode;
                    }
                }
                None => config.devices.push(GraphicsDeviceConfig {
                    address: change.address,
                    graphics_type: change.graphics_type.clone(),
                    vgpu_mode: mode.unwrap_or(Fact::Absent),
                }),
            }
        }
        Some(config)
    }

    /// Whether the step works through a login to the shell of the host.
    pub fn is_at_shell(&self) -> bool {
        matches!(
            self,
            Self::StartShell | Self::StopMonitor | Self::StartMonitor | Self::SetMig { way: ShellWay::Direct, .. }
        )
    }

    /// The node that the step works on, in its guest cluster.
    pub fn works_on(&self) -> Option<&NodeRef> {
        match self {
            Self::CordonNode { node, .. }
            | Self::DrainNode { node, .. }
            | Self::AwaitNode { node, .. }
            | Self::ValidateNode { node, .. }
            | Self::UncordonNode { node, .. } => Some(node),
            _ => None,
        }
    }

    /// Whether the step disturbs what runs on the host: it is done in maintenance mode only.
    pub fn needs_maintenance(&self) -> bool {
        match self {
            Self::SetPassthrough { changes } => changes.iter().any(|change| change.enabled != change.from_enabled),
            Self::SetGraphics { devices, default_type, .. } => !devices.is_empty() || default_type.is_some(),
            Self::StopMonitor | Self::SetMig { .. } | Self::Reboot { .. } | Self::ExitMaintenance => true,
            Self::StartClosing { .. }
            | Self::StopVm { .. }
            | Self::EnterMaintenance { .. }
            | Self::StartShell
            | Self::StartMonitor
            | Self::VerifyHost
            | Self::StartVm { .. }
            | Self::CordonNode { .. }
            | Self::DrainNode { .. }
            | Self::AwaitNode { .. }
            | Self::ValidateNode { .. }
            | Self::UncordonNode { .. } => false,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StartClosing { stops, .. } => {
                write!(f, "begin to enter maintenance mode, so that {} can be stopped", counted(*stops, "VM"))
            }
            Self::CordonNode { node, .. } => write!(f, "cordon the node {node}"),
            Self::DrainNode { node, .. } => write!(f, "drain the node {node}"),
            Self::StopVm { name, .. } => write!(f, "shut down the guest of {name}"),
            Self::EnterMaintenance { moves } if moves.is_empty() => f.write_str("enter maintenance mode"),
            Self::EnterMaintenance { moves } => {
                let names: Vec<&str> = moves.iter().map(|moving| moving.name.as_str()).collect();
                write!(f, "enter maintenance mode; DRS moves {}", names.join(", "))
            }
            Self::SetPassthrough { changes } => {
                let parts = by_words(changes.iter().map(|change| (change.address, change.words())));
                write!(f, "set {}", parts.join("; "))
            }
            Self::SetGraphics { default_type, policy, devices, early } => {
                let mut parts: Vec<String> = Vec::new();
                parts.extend(default_type.iter().map(|c| format!("host default type {} to {}", c.from, c.to)));
                parts.extend(policy.iter().map(|c| format!("assignment policy {} to {}", c.from, c.to)));
                parts.extend(by_words(devices.iter().map(|change| (change.address, change.words()))));
                write!(f, "set {}", parts.join("; "))?;
                if *early { f.write_str(" (again after the reboot, if the host ignores it now)") } else { Ok(()) }
            }
            Self::StartShell => f.write_str("log in to the shell, the SSH service started if it is stopped"),
            Self::StopMonitor => f.write_str("stop the NVIDIA monitoring daemon, if it runs"),
            Self::SetMig { gpus, on, way, .. } => {
                let by = match way {
                    ShellWay::Direct => "through the shell",
                    ShellWay::Handoff => "by hand, the commands are printed",
                };
                write!(f, "switch MIG {} {by}: {}", if *on { "on" } else { "off" }, addresses(gpus))
            }
            Self::StartMonitor => f.write_str("start the NVIDIA monitoring daemon again, if it ran"),
            Self::Reboot { pending, .. } => {
                write!(f, "reboot, to activate {}", grouped(pending).join("; "))
            }
            Self::VerifyHost => f.write_str("verify the host"),
            Self::ExitMaintenance => f.write_str("leave maintenance mode"),
            Self::StartVm { name, gpus, .. } if gpus.is_empty() => write!(f, "start {name}"),
            Self::StartVm { name, gpus, .. } => {
                let devices: Vec<String> = gpus.iter().map(device_words).collect();
                write!(f, "start {name} ({})", devices.join(", "))
            }
            Self::AwaitNode { node, stopped: true, .. } => write!(f, "wait for the node {node}"),
            Self::AwaitNode { node, stopped: false, .. } => write!(f, "look at the node {node}"),
            Self::ValidateNode { node, .. } => write!(f, "validate the node {node}"),
            Self::UncordonNode { node, leave: NodeEnd::Open } => write!(f, "uncordon the node {node}"),
            Self::UncordonNode { node, leave: NodeEnd::LeftOff } => {
                write!(f, "leave the node {node} cordoned, its VM off")
            }
        }
    }
}

impl PassthruChange {
    /// What is set, without where: `passthrough off, label cleared`.
    fn words(&self) -> String {
        let switched = match self.enabled {
            same if same == self.from_enabled => None,
            true => Some("passthrough on".to_owned()),
            false => Some("passthrough off".to_owned()),
        };
        let label = self.label.as_deref().map(|label| match label {
            "" => "label cleared".to_owned(),
            label => format!("label {label}"),
        });
        switched.into_iter().chain(label).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for PassthruChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.address, self.words())
    }
}

impl GraphicsChange {
    /// What is set, without where: `graphics type sharedDirect, mixedSize`.
    fn words(&self) -> String {
        match &self.vgpu_mode {
            Some(mode) => format!("graphics type {}, {mode}", self.graphics_type),
            None => format!("graphics type {}", self.graphics_type),
        }
    }
}
