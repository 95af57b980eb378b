//! What was seen of the fleet: partial, dated, with the gaps kept as data.
//!
//! Every property is a [`Fact`]; `Option` does not occur here. A host that could not be read is a
//! [`HostFault`] beside the hosts that could: an observation is never all-or-nothing.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::gpu::wire_enum;
use super::{
    AssignmentPolicy, ClusterView, Fact, GraphicsType, GuestView, HostName, HostRef, MoRef, PciAddress, PciId,
    ShellLogin, ShellView, VgpuMode, VmView,
};

/// The vCenter that answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SiteIdentity {
    /// Name of the Site document.
    pub name: String,
    /// Address as written in the Site document.
    pub address: String,
    /// `about.instanceUuid`.
    pub instance_uuid: String,
    /// `about.version`, `8.0.3`.
    pub version: String,
    /// The vim25 version that was negotiated, `8.0.3.0`.
    pub api_version: String,
}

/// The fleet of one site as read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observed {
    /// Who answered.
    pub site: SiteIdentity,
    /// When the reading began, by the server's clock.
    pub taken_at: Timestamp,
    /// Whether the custom field [`Marker::FIELD`](super::Marker::FIELD) is defined on this vCenter.
    pub marker_field: Fact<bool>,
    /// `vgpu.hotmigrate.enabled` of this vCenter: whether VMs with a vGPU can move while they run.
    /// Absent: never set, which is off (vsphere-gpu §1.16).
    pub hot_migrate: Fact<bool>,
    /// Clusters of the hosts by path ([`HostRef::cluster`]); absent for the compute resource of a
    /// host that stands alone.
    pub clusters: BTreeMap<String, Fact<ClusterView>>,
    /// Guest clusters of the site by name, where nodes were asked for: unknown if one could not be read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub guests: BTreeMap<String, Fact<GuestView>>,
    /// Hosts by name. Two hosts of one name in two clusters are told apart by [`HostRef::path`],
    /// which is the key.
    pub hosts: BTreeMap<String, HostRecord>,
    /// What went wrong beside the hosts, one line each.
    pub notes: Vec<String>,
}

impl Observed {
    /// The record of the host with this name, if exactly one has it.
    pub fn host(&self, name: &HostName) -> Option<&HostRecord> {
        let mut found = self.hosts.values().filter(|record| record.host.name == *name);
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }
}

/// One host: who it is, and its view or the fault that kept us from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostRecord {
    /// Who it is.
    pub host: HostRef,
    /// When it was read, by the server's clock.
    pub read_at: Timestamp,
    /// What was read.
    #[serde(with = "Written")]
    pub view: Result<Box<HostView>, HostFault>,
}

/// How a result is written: `{"ok": …}` or `{"err": …}`, its keys as all others are.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Result", rename_all = "camelCase")]
pub(super) enum Written<T, E> {
    Ok(T),
    Err(E),
}

/// Why nothing could be read of a host, or of a VM by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostFault {
    /// The class.
    pub kind: HostFaultKind,
    /// A sentence for people, with the server's words.
    pub message: String,
}

/// Classes of [`HostFault`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HostFaultKind {
    /// It was deleted while we read.
    Gone,
    /// The user may not read it.
    NoPermission,
    /// Any other fault.
    Fault,
}

wire_enum! {
    /// `runtime.connectionState`.
    Connection {
        /// vCenter talks to it.
        Connected = "connected",
        /// vCenter gets no answer.
        NotResponding = "notResponding",
        /// Disconnected by a user or by vCenter.
        Disconnected = "disconnected",
    }
}

wire_enum! {
    /// `runtime.powerState` of hosts and VMs.
    PowerState {
        /// Powered on.
        On = "poweredOn",
        /// Powered off.
        Off = "poweredOff",
        /// Suspended (VMs).
        Suspended = "suspended",
        /// Standby (hosts).
        StandBy = "standBy",
        /// The server does not know.
        Unknown = "unknown",
    }
}

wire_enum! {
    /// `config.lockdownMode`: who may log in on the host itself.
    Lockdown {
        /// Anyone with an account.
        Disabled = "lockdownDisabled",
        /// Exception users, and those of the console.
        Normal = "lockdownNormal",
        /// Exception users only.
        Strict = "lockdownStrict",
    }
}

/// `HostService`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostService {
    /// Its id, `TSM-SSH`.
    pub key: String,
    /// Whether it runs.
    pub running: bool,
    /// When it is started: `on`, `automatic`, `off`.
    pub policy: String,
}

/// `config.product`: what runs on the host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Product {
    /// `8.0.3`.
    pub version: String,
    /// Build number.
    pub build: String,
}

/// What was read of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostView {
    /// `hardware.systemInfo.uuid`: the identity of the machine, kept when it is added again.
    pub uuid: Fact<String>,
    /// Version and build of ESXi.
    pub product: Fact<Product>,
    /// Whether vCenter talks to it.
    pub connection: Fact<Connection>,
    /// Power of the host.
    pub power: Fact<PowerState>,
    /// `runtime.inMaintenanceMode`; not set while entering.
    pub in_maintenance: Fact<bool>,
    /// `runtime.bootTime`; drifts by fractions of a second between reads.
    pub boot_time: Fact<Timestamp>,
    /// `summary.rebootRequired`; not sufficient by itself (vsphere-gpu §3.1).
    pub reboot_required: Fact<bool>,
    /// `hardware.pciDevice`: all devices, as listed.
    pub pci: Fact<Vec<PciDevice>>,
    /// `config.pciPassthruInfo`.
    pub passthru: Fact<Vec<PassthruState>>,
    /// `hardware.memorySize`, in MiB.
    pub memory_mib: Fact<u64>,
    /// `config.lockdownMode`.
    pub lockdown: Fact<Lockdown>,
    /// `serviceInfo` of the service system.
    pub services: Fact<Vec<HostService>>,
    /// Who would log in to its shell; absent: nobody, by SSH.
    pub shell_login: Fact<ShellLogin>,
    /// What its shell shows; absent: not asked. Only a visit asks, when it needs to know.
    pub shell: Fact<ShellView>,
    /// `config.graphicsConfig`: what is configured. Absent on a host that has none.
    pub graphics_config: Fact<GraphicsConfig>,
    /// `config.graphicsInfo`: what is active. Absent on a host without GPUs.
    pub graphics_active: Fact<Vec<GraphicsState>>,
    /// `config.sharedPassthruGpuTypes`: names of the vGPU types that can be started now.
    pub vgpu_types: Fact<Vec<String>>,
    /// `hardware.numaInfo.numaNode`.
    pub numa: Fact<Vec<NumaNode>>,
    /// The capabilities that decide how changes take effect.
    pub capabilities: Capabilities,
    /// Installed packages that look like a GPU driver (`fetchSoftwarePackages`).
    pub packages: Fact<Vec<Package>>,
    /// VMs registered on the host, templates and vCLS included (marked as such).
    pub vms: Fact<Vec<VmView>>,
    /// Tasks of the host that are queued or running (`recentTask`).
    pub tasks: Fact<Vec<RunningTask>>,
    /// The raw value of the custom field `poolwright.run`; absent if the field is not defined, not
    /// set or empty.
    pub marker: Fact<String>,
    /// What the host gate compares before and after.
    pub parity: Parity,
    /// `configManager.graphicsManager`.
    pub graphics_manager: Fact<MoRef>,
    /// `configManager.pciPassthruSystem`.
    pub passthru_system: Fact<MoRef>,
    /// `configManager.serviceSystem`.
    pub service_system: Fact<MoRef>,
}

/// `HostCapability`, the part that is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// `deviceRebindWithoutRebootSupported`.
    pub rebind_without_reboot: Fact<bool>,
    /// `assignHwPciConfigSupported`: labels of Dynamic DirectPath.
    pub hardware_label: Fact<bool>,
}

/// `HostPciDevice`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PciDevice {
    /// Where it sits.
    pub address: PciAddress,
    /// What it is.
    pub id: PciId,
    /// PCI class, 0x0300 VGA, 0x0302 3D controller, 0x0680 bridge (NVSwitch), 0x0403 audio.
    pub class: u16,
    /// Name of the device.
    pub name: String,
    /// Name of the vendor.
    pub vendor_name: String,
    /// The bridge above it.
    pub parent_bridge: Fact<String>,
}

/// `HostPciPassthruInfo` or `HostSriovInfo`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PassthruState {
    /// Which device.
    pub address: PciAddress,
    /// `passthruEnabled`: configured.
    pub enabled: bool,
    /// `passthruActive`: enabled and in effect.
    pub active: bool,
    /// `passthruCapable`.
    pub capable: bool,
    /// `hardwareLabel`; an empty label is absent.
    pub label: Fact<String>,
    /// `dependentDevice`; may be a bridge, may be empty.
    pub dependent: Fact<String>,
    /// Whether it came as `HostSriovInfo` (an SR-IOV physical function, as A100 and later do).
    pub sriov: bool,
    /// Number of virtual functions that are configured; 0 for a plain device.
    pub virtual_functions: u32,
}

/// `HostGraphicsConfig`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphicsConfig {
    /// `hostDefaultGraphicsType`.
    pub default_type: GraphicsType,
    /// `sharedPassthruAssignmentPolicy`.
    pub policy: AssignmentPolicy,
    /// `deviceType`: overrides by device, in the order received.
    pub devices: Vec<GraphicsDeviceConfig>,
}

/// `HostGraphicsConfigDeviceType`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphicsDeviceConfig {
    /// Which device.
    pub address: PciAddress,
    /// Configured type.
    pub graphics_type: GraphicsType,
    /// Configured size mode; absent below vim25 8.0.3.0 and where never set.
    pub vgpu_mode: Fact<VgpuMode>,
}

/// `HostGraphicsInfo`: the active state of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphicsState {
    /// Which device.
    pub address: PciAddress,
    /// Name as the driver gives it.
    pub name: String,
    /// Active type.
    pub graphics_type: GraphicsType,
    /// Active size mode; the server treats unset as none.
    pub vgpu_mode: Fact<VgpuMode>,
    /// Framebuffer in KiB, 0 if not available.
    pub memory_kib: u64,
    /// VMs that use the device now.
    pub vms: Vec<MoRef>,
}

/// `HostNumaNode`, the part that is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaNode {
    /// Node number.
    pub id: u32,
    /// PCI devices of the node, as listed (`pciId`; the only NUMA place of a GPU).
    pub devices: Vec<PciAddress>,
}

/// `SoftwarePackage`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Package {
    /// Name, `NVD-AIE-800`.
    pub name: String,
    /// Version as the host prints it.
    pub version: String,
    /// Vendor.
    pub vendor: String,
}

/// A task that is queued or running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningTask {
    /// `Task` reference.
    pub moref: MoRef,
    /// `info.descriptionId`, `HostSystem.enterMaintenanceMode`.
    pub what: String,
    /// User that started it (`TaskReasonUser`); absent for the system's own.
    pub user: Fact<String>,
    /// `info.queueTime`.
    pub queued_at: Fact<Timestamp>,
}

/// So many of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Good ones.
    pub good: u32,
    /// All.
    pub all: u32,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.good, self.all)
    }
}

/// What must be no worse after the visit than before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parity {
    /// Datastores that are accessible.
    pub datastores: Fact<Tally>,
    /// Physical NICs with link.
    pub uplinks: Fact<Tally>,
    /// `runtime.dasHostState.state`: the HA agent. Absent where HA is off.
    pub ha: Fact<String>,
    /// `runtime.cryptoState`.
    pub crypto: Fact<String>,
    /// Triggered alarms of status red on the host.
    pub alarms: Fact<u32>,
}
