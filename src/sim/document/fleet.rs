//! The fleet: vCenter, datacenters, clusters, hosts, GPUs, VMs.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Span;
use super::behaviour::{Actor, Boot, FaultRule, Readings};
use super::guest::Guest;
use super::shell::Shell;
use super::vm::{Drs, Vm};

/// `spec` of `kind: World`: a fleet and how it behaves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorldSpec {
    /// The time at which the world begins.
    #[serde(default = "start_of_time")]
    #[schemars(with = "String")]
    pub now: Timestamp,
    /// The vCenter.
    pub vcenter: VcenterSpec,
    /// What nobody could verify.
    #[serde(default)]
    pub readings: Readings,
    /// Datacenters.
    #[serde(default)]
    pub datacenters: Vec<Datacenter>,
    /// Guest clusters.
    #[serde(default)]
    pub guests: Vec<Guest>,
    /// Other people and programs.
    #[serde(default)]
    pub actors: Vec<Actor>,
    /// Faults.
    #[serde(default)]
    pub faults: Vec<FaultRule>,
}

/// The day the reference was written; any fixed time would do, since a world must be the same in
/// each run.
fn start_of_time() -> Timestamp {
    Timestamp::constant(1_796_068_800, 0) // 2026-11-30T20:00:00Z
}

/// The vCenter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VcenterSpec {
    /// Name under which a Site reaches it.
    pub address: String,
    /// Version: `8.0.2`, `8.0.3`, `9.0.0`, `9.1.0`.
    #[serde(default = "version_8_0_3")]
    pub version: String,
    /// `about.instanceUuid`.
    #[serde(default = "default_uuid")]
    pub instance_uuid: String,
    /// Users. The password is no secret: it opens nothing but this world.
    #[serde(default)]
    pub users: Vec<User>,
    /// Advanced settings, by key.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// A session without a call for so long ends.
    #[serde(default = "thirty_minutes")]
    pub session_idle: Span,
    /// A session ends after so long, whatever is done to keep it.
    #[serde(default = "one_day")]
    pub session_lifetime: Span,
    /// A session that ended answers reads with missing properties instead of a fault.
    #[serde(default)]
    pub expired_as_missing: bool,
    /// How long a finished task can be read.
    #[serde(default = "ten_minutes")]
    pub task_retention: Span,
    /// The most objects of one page of properties, whatever the client asks for.
    #[serde(default = "hundred")]
    pub page: u32,
    /// The first, internal version that the version document names; none: it names the public one.
    #[serde(default = "internal_version")]
    pub internal_version: Option<String>,
}

fn version_8_0_3() -> String {
    "8.0.3".to_owned()
}
fn default_uuid() -> String {
    "6f0e1c52-9de0-40cb-9c47-61d494229f4f".to_owned()
}
/// The idle time of vCenter's sessions (vsphere-gpu F48).
fn thirty_minutes() -> Span {
    Span::seconds(30 * 60)
}
/// Cases C01: a session ends after a day, whatever is done.
fn one_day() -> Span {
    Span::seconds(24 * 3600)
}
/// vCenter keeps finished tasks in `recentTask` for about ten minutes.
fn ten_minutes() -> Span {
    Span::seconds(600)
}
fn hundred() -> u32 {
    100
}
/// As recorded from a build of 8.0.3 (vsphere-gpu §5.1).
#[allow(clippy::unnecessary_wraps)]
fn internal_version() -> Option<String> {
    Some("uA046D008".to_owned())
}

/// A user of the vCenter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// Name, `pw@vsphere.local`.
    pub name: String,
    /// Password.
    pub password: String,
}

/// A datacenter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Datacenter {
    /// Path from the root, folders first: `/Prod/EU/DC1`.
    pub path: String,
    /// Its clusters.
    #[serde(default)]
    pub clusters: Vec<Cluster>,
    /// Hosts outside of clusters.
    #[serde(default)]
    pub hosts: Vec<HostGroup>,
}

/// A cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cluster {
    /// Name, or a path below the host folder: `Ost/gpu-a`.
    pub name: String,
    /// vSphere HA.
    #[serde(default)]
    pub ha: Ha,
    /// DRS.
    #[serde(default)]
    pub drs: Drs,
    /// Hosts.
    #[serde(default)]
    pub hosts: Vec<HostGroup>,
    /// VMs.
    #[serde(default)]
    pub vms: Vec<Vm>,
}

/// vSphere HA of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ha {
    /// Whether it is on: then hosts have an HA agent.
    #[serde(default)]
    pub enabled: bool,
    /// Admission control: hosts that must stay beside those that may fail; none: it is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<u32>,
}

/// Hosts that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostGroup {
    /// Their names: `esx-07`, or with one range `esx-gpu-[01-03]`.
    pub names: String,
    /// Version of ESXi; none: that of the vCenter.
    #[serde(default)]
    pub version: Option<String>,
    /// Memory.
    #[serde(default = "memory", rename = "memoryGiB")]
    pub memory_gib: u32,
    /// The NVIDIA host driver; none: not installed.
    #[serde(default)]
    pub driver: Option<Driver>,
    /// GPUs.
    #[serde(default)]
    pub gpus: Vec<GpuGroup>,
    /// Other PCI devices.
    #[serde(default)]
    pub devices: Vec<ExtraDevice>,
    /// Assignment policy.
    #[serde(default = "performance")]
    pub policy: String,
    /// Host default graphics type; none: `sharedDirect` if a GPU is configured for vGPU, else
    /// `shared`.
    #[serde(default)]
    pub default_type: Option<String>,
    /// `capability.deviceRebindWithoutRebootSupported`.
    #[serde(default = "yes")]
    pub rebind_supported: bool,
    /// `capability.assignHwPciConfigSupported`: labels of Dynamic DirectPath.
    #[serde(default = "yes")]
    pub label_supported: bool,
    /// Found in maintenance mode.
    #[serde(default)]
    pub maintenance: bool,
    /// What vCenter says of its connection.
    #[serde(default)]
    pub connection: Connection,
    /// Power.
    #[serde(default)]
    pub power: StartPower,
    /// How long entering maintenance takes when no VM is powered on.
    #[serde(default = "enter_time")]
    pub enter: Span,
    /// How long leaving maintenance takes.
    #[serde(default = "exit_time")]
    pub exit: Span,
    /// How it boots.
    #[serde(default)]
    pub boot: Boot,
    /// Its shell.
    #[serde(default)]
    pub shell: Shell,
    /// Datastores it sees, shared by the hosts of the cluster.
    #[serde(default = "two")]
    pub datastores: u32,
    /// Physical NICs.
    #[serde(default = "two")]
    pub uplinks: u32,
    /// Of these, how many have a link.
    #[serde(default = "two")]
    pub uplinks_up: u32,
    /// `runtime.cryptoState`.
    #[serde(default = "incapable")]
    pub crypto: String,
    /// Alarms that are triggered.
    #[serde(default)]
    pub alarms: Vec<Alarm>,
    /// Custom fields, by name.
    #[serde(default)]
    pub fields: BTreeMap<String, String>,
    /// Properties that the user may not read: they come as missing.
    #[serde(default)]
    pub unreadable: Vec<String>,
    /// Properties that this host does not have.
    #[serde(default)]
    pub absent: Vec<String>,
}

fn memory() -> u32 {
    512
}
fn performance() -> String {
    "performance".to_owned()
}
fn yes() -> bool {
    true
}
fn enter_time() -> Span {
    Span::seconds(20)
}
fn exit_time() -> Span {
    Span::seconds(10)
}
fn two() -> u32 {
    2
}
/// As recorded of a host without a key provider (vsphere-gpu §5.3).
fn incapable() -> String {
    "incapable".to_owned()
}

/// The NVIDIA host driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Driver {
    /// Name of the component, `NVD-AIE-800`.
    pub component: String,
    /// Version.
    pub version: String,
}

/// GPUs that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GpuGroup {
    /// Catalogue id of the model.
    pub model: String,
    /// How many.
    #[serde(default = "one")]
    pub count: u32,
    /// NUMA node of each; none: node 0.
    #[serde(default)]
    pub numa: Vec<u32>,
    /// Address of each; none: made up.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// The mode they are in.
    pub mode: GpuMode,
    /// The mode that is configured and waits for a reboot; none: nothing is pending.
    #[serde(default)]
    pub pending: Option<GpuMode>,
    /// A guest has left MIG on: of a GPU in passthrough whose MIG is a bit of the board.
    #[serde(default)]
    pub mig_left: bool,
    /// Virtual functions of each that are listed as devices.
    #[serde(default)]
    pub virtual_functions: u32,
    /// `passthruCapable`.
    #[serde(default = "yes")]
    pub passthrough_capable: bool,
}

fn one() -> u32 {
    1
}

/// The mode of a GPU in a world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum GpuMode {
    /// DirectPath I/O.
    #[serde(rename_all = "camelCase")]
    Passthrough {
        /// Label of Dynamic DirectPath.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
    /// Time-sliced vGPU.
    #[serde(rename_all = "camelCase")]
    Vgpu {
        /// `same` or `mixed`.
        size: VgpuSize,
    },
    /// MIG-backed vGPU.
    MigVgpu {},
    /// vSGA, what a host is installed with.
    Shared {},
}

/// Sizes of time-sliced vGPUs on one GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum VgpuSize {
    /// One size.
    Same,
    /// Different sizes.
    Mixed,
}

/// A PCI device that is no GPU of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExtraDevice {
    /// Address.
    pub address: String,
    /// Vendor id in hex, `8086`.
    pub vendor: String,
    /// Device id in hex.
    pub device: String,
    /// PCI class in hex, `0680`.
    pub class: String,
    /// Name.
    pub name: String,
    /// Whether passthrough is configured and active.
    #[serde(default)]
    pub passthrough: bool,
}

/// `runtime.connectionState`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Connection {
    /// It answers.
    #[default]
    Connected,
    /// It does not answer.
    NotResponding,
    /// Disconnected by somebody.
    Disconnected,
}

/// Power of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StartPower {
    /// On.
    #[default]
    On,
    /// In standby.
    Standby,
}

/// An alarm that is triggered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Alarm {
    /// Name.
    pub name: String,
    /// `red` or `yellow`.
    pub status: String,
}
