//! VMs, and the DRS that places and moves them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Span;
use super::guest::VmNode;

/// A VM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Vm {
    /// Name.
    pub name: String,
    /// Name of its host.
    pub host: String,
    /// Power.
    #[serde(default)]
    pub power: Power,
    /// GPU devices.
    #[serde(default)]
    pub devices: Vec<VmDevice>,
    /// A template.
    #[serde(default)]
    pub template: bool,
    /// A vCLS agent, managed by vCenter itself.
    #[serde(default)]
    pub vcls: bool,
    /// Folder below the datacenter's `vm` folder: `serving/prod`; none: that folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Memory.
    #[serde(default = "memory", rename = "memoryGiB")]
    pub memory_gib: u32,
    /// Reserved memory; none: all of it with a GPU device, which needs that, else nothing.
    #[serde(default, rename = "reservedGiB", skip_serializing_if = "Option::is_none")]
    pub reserved_gib: Option<u32>,
    /// `migrateSupported` of its vGPUs.
    #[serde(default = "yes")]
    pub migrate: bool,
    /// A compute policy, which vim25 does not show: at maintenance DRS powers it off, and from then on
    /// tries every three minutes to power it on where it can.
    #[serde(default)]
    pub power_off_policy: bool,
    /// Firmware.
    #[serde(default)]
    pub firmware: Firmware,
    /// Advanced settings (`extraConfig`), by key.
    #[serde(default)]
    pub extra: BTreeMap<String, String>,
    /// Its BIOS UUID (`config.uuid`); none: made from its name. A cloned template may have that of another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// The node of a guest cluster that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<VmNode>,
    /// The program that owns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<Owner>,
    /// VMware Tools while it is powered on.
    #[serde(default)]
    pub tools: Tools,
    /// Its guest does not heed a request to shut down.
    #[serde(default)]
    pub refuses_shutdown: bool,
    /// How long its guest takes to shut down.
    #[serde(default = "half_a_minute")]
    pub shutdown_takes: Span,
    /// How long powering on takes.
    #[serde(default = "ten_seconds")]
    pub power_on_takes: Span,
    /// How long a vMotion takes.
    #[serde(default = "one_minute")]
    pub move_takes: Span,
}

fn memory() -> u32 {
    64
}
fn yes() -> bool {
    true
}
fn half_a_minute() -> Span {
    Span::seconds(30)
}
fn ten_seconds() -> Span {
    Span::seconds(10)
}
/// vsphere-gpu §3.4: the stun alone is 2 s to 99 s by used framebuffer.
fn one_minute() -> Span {
    Span::seconds(60)
}

/// Power of a VM.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Power {
    /// Powered on.
    On,
    /// Powered off.
    #[default]
    Off,
    /// Suspended.
    Suspended,
}

/// A GPU device of a VM, by its backing (vsphere-gpu §1.6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum VmDevice {
    /// vGPU: the type.
    Vgpu(String),
    /// DirectPath I/O: the address.
    DirectPath(String),
    /// Dynamic DirectPath I/O: the label it asks for.
    DynamicDirectPath(String),
    /// A backing that no client knows: the name of the type.
    Other(String),
}

/// Firmware of a VM.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Firmware {
    /// EFI.
    #[default]
    Efi,
    /// BIOS.
    Bios,
}

/// VMware Tools of a guest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Tools {
    /// They run while the VM is powered on.
    #[default]
    Running,
    /// They are installed and do not run.
    NotRunning,
    /// There are none.
    Missing,
}

/// `ManagedByInfo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// Key of the extension, `com.vmware.vcenter.wcp`.
    pub extension: String,
    /// What the extension calls the VM.
    #[serde(rename = "type")]
    pub kind: String,
}

/// DRS of a cluster (vsphere-gpu §1.8, §1.16).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Drs {
    /// Its level; none: DRS is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<DrsLevel>,
    /// Advanced options, by key: `VgpuMMAutomationTimeoutSecs`.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// What VMs have of their own.
    #[serde(default)]
    pub overrides: Vec<DrsOverride>,
}

/// What DRS does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DrsLevel {
    /// Nothing: it recommends.
    Manual,
    /// It chooses the host of a power-on, and recommends moves.
    PartiallyAutomated,
    /// It moves, too.
    FullyAutomated,
}

/// A VM's own setting of DRS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DrsOverride {
    /// Name of the VM.
    pub vm: String,
    /// Whether DRS may move it at all.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Its level; none: that of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<DrsLevel>,
}
