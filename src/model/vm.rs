//! A VM as seen: what it is, what it runs on, what it has of a GPU, and whose it is.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::gpu::wire_enum;
use super::{Fact, HostFault, MoRef, NodeView, PowerState};

/// One VM read by itself: its view, or the fault that kept us from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VmRecord {
    /// `VirtualMachine` reference.
    pub moref: MoRef,
    /// When it was read, by the server's clock.
    pub read_at: Timestamp,
    /// What was read.
    #[serde(with = "super::observed::Written")]
    pub view: Result<Box<VmView>, HostFault>,
}

/// What was read of a VM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VmView {
    /// `VirtualMachine` reference.
    pub moref: MoRef,
    /// Name.
    pub name: Fact<String>,
    /// Power.
    pub power: Fact<PowerState>,
    /// `runtime.host`: the host that runs it or that it is registered on. It may have moved since
    /// the host was asked for its VMs.
    pub host: Fact<MoRef>,
    /// A template: never powered on.
    pub template: Fact<bool>,
    /// A vCLS agent (by `config.managedBy` of `com.vmware.vim.eam` type or its name).
    pub vcls: bool,
    /// GPU devices, in device order.
    pub gpus: Fact<Vec<VmGpuDevice>>,
    /// `config.hardware.memoryMB`, in MiB.
    pub memory_mib: Fact<u64>,
    /// `config.memoryAllocation.reservation`: memory that its host must have free, in MiB.
    pub reserved_mib: Fact<u64>,
    /// `config.firmware`.
    pub firmware: Fact<Firmware>,
    /// `config.managedBy`: the extension that owns it. Absent for an ordinary VM.
    pub managed_by: Fact<ManagedBy>,
    /// `config.extraConfig`, the entries that decide something here ([`VmView::is_extra`]).
    pub extra: Fact<BTreeMap<String, String>>,
    /// Path of its folder, names unescaped and each written by [`path_part`](super::path_part), as
    /// paths of hosts are. Absent in a vApp.
    pub folder: Fact<String>,
    /// `config.uuid`: the UUID that the guest sees in its BIOS. A copy may have the same.
    pub bios_uuid: Fact<String>,
    /// `config.instanceUuid`: unique on a vCenter.
    pub instance_uuid: Fact<String>,
    /// `guest.toolsRunningStatus`: whether the guest can be asked to shut down.
    pub tools: Fact<ToolsStatus>,
    /// The node of a guest cluster that it is, matched by the identity of its machine; absent if it is
    /// none of any cluster that could be read. Unknown also where nodes were not asked for.
    pub node: Fact<Box<NodeView>>,
}

impl VmView {
    /// `TRUE`: DRS powers the VM off when its host enters maintenance (vsphere-gpu §1.15).
    pub const EVACUATION_POWEROFF: &'static str = "maintenance.vm.evacuation.poweroff";
    /// `TRUE`: BARs may lie above 4 GB; needed from 16 GB on (vsphere-gpu §1.15).
    pub const MMIO_64BIT: &'static str = "pciPassthru.use64bitMMIO";
    /// Room for BARs in GB (vsphere-gpu §1.15).
    pub const MMIO_64BIT_SIZE_GB: &'static str = "pciPassthru.64bitMMIOSizeGB";

    /// Whether an entry of `config.extraConfig` is kept. All others are dropped while they are read:
    /// among them are user data and passwords of guests.
    pub fn is_extra(key: &str) -> bool {
        [Self::EVACUATION_POWEROFF, Self::MMIO_64BIT, Self::MMIO_64BIT_SIZE_GB].contains(&key)
            || plugin_parameter(key).is_some()
    }

    /// Parameters of the vGPU plugin, `enable_profiling`, with their values, whichever device they
    /// are for (`pciPassthruN.cfg.<parameter>`, vsphere-gpu §1.15).
    pub fn plugin_parameters(&self) -> Fact<Vec<(&str, &str)>> {
        self.extra.as_ref().map(|extra| {
            extra.iter().filter_map(|(key, value)| Some((plugin_parameter(key)?, value.as_str()))).collect()
        })
    }
}

/// The parameter in `pciPassthru0.cfg.enable_uvm`.
fn plugin_parameter(key: &str) -> Option<&str> {
    let (number, parameter) = key.strip_prefix("pciPassthru")?.split_once(".cfg.")?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(parameter)
}

/// A GPU device of a VM, by its backing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum VmGpuDevice {
    /// vGPU.
    Vgpu {
        /// Its type, `nvidia_h100l-47c`.
        name: String,
        /// `migrateSupported`; absent where the server says nothing of it.
        migrate: Fact<bool>,
    },
    /// DirectPath I/O: a fixed device.
    DirectPath {
        /// `id`: its PCI address as the VM has it.
        id: String,
        /// `deviceId`: the PCI device id, on the wire the decimal of the unsigned value.
        device_id: Fact<u16>,
    },
    /// Dynamic DirectPath I/O.
    DynamicDirectPath {
        /// `customLabel`: the label it asks for.
        label: Fact<String>,
        /// `assignedId`: the device it has, while the VM is powered on.
        assigned: Fact<String>,
    },
    /// A backing we do not know, by its wire type.
    Other(String),
}

wire_enum! {
    /// `config.firmware`.
    Firmware {
        /// Legacy BIOS.
        Bios = "bios",
        /// UEFI.
        Efi = "efi",
    }
}

wire_enum! {
    /// `guest.toolsRunningStatus`.
    ToolsStatus {
        /// They run.
        Running = "guestToolsRunning",
        /// They do not run, or are not there.
        NotRunning = "guestToolsNotRunning",
        /// They start.
        ExecutingScripts = "guestToolsExecutingScripts",
    }
}

/// `ManagedByInfo`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ManagedBy {
    /// Key of the extension, `com.vmware.vim.eam`.
    pub extension: String,
    /// What the extension calls this kind of VM.
    pub kind: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_entries_that_decide_something_are_kept() {
        for kept in [
            "maintenance.vm.evacuation.poweroff",
            "pciPassthru.use64bitMMIO",
            "pciPassthru.64bitMMIOSizeGB",
            "pciPassthru0.cfg.enable_uvm",
            "pciPassthru12.cfg.enable_profiling",
        ] {
            assert!(VmView::is_extra(kept), "{kept}");
        }
        for dropped in [
            "guestinfo.userdata",
            "pciPassthru0.present",
            "pciPassthru.cfg.enable_uvm",
            "pciPassthruX.cfg.enable_uvm",
            "sched.mem.min",
        ] {
            assert!(!VmView::is_extra(dropped), "{dropped}");
        }
    }
}
