//! What is read of each kind of object, and what it means when the server leaves it out
//! (vsphere-gpu §1.1, §1.7, §4z). Which version has which path is `vim25`'s business.

use crate::model::Fact;
use crate::vim25::ObjectContent;
use crate::vim25::wire::names::path;
use crate::vim25::wire::{DecodeError, Node};

/// What an absent property says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// The schema requires it: left out, something is wrong and the value is unknown.
    Wrong,
    /// Optional on the object itself: there is none.
    Out,
    /// Optional within a part of the object (`config`, `hardware`) that may be missing as a whole,
    /// as for a host that was never connected or a VM whose files are unreachable: there is none
    /// only if this required property of the same part is there.
    OutIf(&'static str),
}

/// One property: its path, and what it means when it is left out.
pub(super) type Property = (&'static str, Left);

/// `HostSystem`. `config.product` is required in `config`, `systemInfo.uuid` in `hardware`.
pub(super) const HOST: &[Property] = &[
    (path::HOST_UUID, Left::Wrong),
    (path::PRODUCT, Left::Wrong),
    (path::CONNECTION_STATE, Left::Wrong),
    (path::POWER_STATE, Left::Wrong),
    (path::IN_MAINTENANCE_MODE, Left::Wrong),
    (path::BOOT_TIME, Left::Out),
    (path::DAS_HOST_STATE, Left::Out),
    (path::CRYPTO_STATE, Left::Out),
    (path::REBOOT_REQUIRED, Left::Wrong),
    (path::PCI_DEVICE, Left::OutIf(path::HOST_UUID)),
    (path::NUMA_NODE, Left::OutIf(path::HOST_UUID)),
    (path::MEMORY_SIZE, Left::Wrong),
    (path::LOCKDOWN_MODE, Left::OutIf(path::PRODUCT)),
    (path::PCI_PASSTHRU_INFO, Left::OutIf(path::PRODUCT)),
    (path::GRAPHICS_CONFIG, Left::OutIf(path::PRODUCT)),
    (path::GRAPHICS_INFO, Left::OutIf(path::PRODUCT)),
    (path::SHARED_PASSTHRU_GPU_TYPES, Left::OutIf(path::PRODUCT)),
    (path::PNIC, Left::OutIf(path::PRODUCT)),
    (path::REBIND_WITHOUT_REBOOT, Left::Out),
    (path::ASSIGN_HW_PCI_CONFIG, Left::Out),
    (path::GRAPHICS_MANAGER, Left::Out),
    (path::PCI_PASSTHRU_SYSTEM, Left::Out),
    (path::SERVICE_SYSTEM, Left::Out),
    (path::IMAGE_CONFIG_MANAGER, Left::Out),
    (path::PARENT, Left::Out),
    (path::CUSTOM_VALUE, Left::Out),
    (path::TRIGGERED_ALARM_STATE, Left::Out),
    (path::RECENT_TASK, Left::Out),
    (path::DATASTORE, Left::Out),
    (path::VM, Left::Out),
];

/// `VirtualMachine`. `template`, `uuid` and `hardware` are required in `config`.
pub(super) const VM: &[Property] = &[
    (path::NAME, Left::Wrong),
    (path::POWER_STATE, Left::Wrong),
    (path::VM_HOST, Left::Out),
    (path::VM_TEMPLATE, Left::Wrong),
    (path::VM_MANAGED_BY, Left::OutIf(path::VM_TEMPLATE)),
    (path::VM_DEVICES, Left::OutIf(path::VM_TEMPLATE)),
    (path::VM_MEMORY, Left::Wrong),
    (path::VM_RESERVATION, Left::OutIf(path::VM_TEMPLATE)),
    (path::VM_FIRMWARE, Left::OutIf(path::VM_TEMPLATE)),
    (path::VM_EXTRA, Left::OutIf(path::VM_TEMPLATE)),
    (path::VM_BIOS_UUID, Left::Wrong),
    (path::VM_INSTANCE_UUID, Left::OutIf(path::VM_TEMPLATE)),
    (path::VM_TOOLS, Left::Out),
    (path::PARENT, Left::Out),
    (path::VM_PARENT_VAPP, Left::Out),
];

/// `ClusterComputeResource`.
pub(super) const CLUSTER: &[Property] = &[(path::CONFIGURATION_EX, Left::Wrong), (path::DRS_FAULT, Left::Out)];

/// `HostServiceSystem`.
pub(super) const SERVICES: &[Property] = &[(path::SERVICE_INFO, Left::Wrong)];

/// `Datastore`.
pub(super) const DATASTORE: &[Property] = &[(path::ACCESSIBLE, Left::Wrong)];

/// `Task`.
pub(super) const TASK: &[Property] = &[(path::TASK_INFO, Left::Wrong)];

/// The paths alone.
pub(super) fn names(properties: &[Property]) -> Vec<&'static str> {
    properties.iter().map(|(path, _)| *path).collect()
}

/// An object's properties, each by its meaning.
#[derive(Clone, Copy)]
pub(super) struct Properties<'a> {
    content: &'a ObjectContent,
    schema: &'static [Property],
}

impl<'a> Properties<'a> {
    /// What was read of an object, by this schema.
    pub fn new(content: &'a ObjectContent, schema: &'static [Property]) -> Self {
        Self { content, schema }
    }

    /// A property: known, absent as its meaning says, or unknown with the reason.
    pub fn fact<T>(&self, path: &str, decode: impl FnOnce(&Node) -> Result<T, DecodeError>) -> Fact<T> {
        let fact = self.content.fact(path, decode);
        if !fact.is_absent() {
            return fact;
        }
        match self.schema.iter().find(|(known, _)| *known == path).map(|(_, left)| *left) {
            Some(Left::Out) => Fact::Absent,
            Some(Left::OutIf(anchor)) if self.content.get(anchor).is_some() => Fact::Absent,
            Some(Left::OutIf(anchor)) => Fact::unknown(format!("the server left out {path} together with {anchor}")),
            Some(Left::Wrong) | None => Fact::unknown(format!("the server left out {path}")),
        }
    }

    /// A property that is an array: left out, it is empty.
    pub fn list<T>(&self, path: &str, decode: impl FnOnce(&Node) -> Result<Vec<T>, DecodeError>) -> Fact<Vec<T>> {
        self.fact(path, decode).or_absent(Vec::new())
    }
}
