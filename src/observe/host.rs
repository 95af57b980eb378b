//! One `HostSystem` as read -> a view, and the references that are still to be followed. Pure.

use super::paths::{DATASTORE, HOST, Properties, SERVICES, TASK};
use crate::model::{
    Capabilities, Fact, HostFault, HostFaultKind, HostService, HostView, MoRef, Parity, RunningTask, Tally,
};
use crate::vim25::wire::names::path;
use crate::vim25::wire::{DecodeError, Node, ObjectContent, TaskInfo, decode};

/// A view whose VMs, tasks, datastores and packages are still references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Partial {
    /// Who it is.
    pub host: MoRef,
    /// Everything that stands on the host itself.
    pub view: Box<HostView>,
    /// `vm`.
    pub vms: Fact<Vec<MoRef>>,
    /// `recentTask`.
    pub tasks: Fact<Vec<MoRef>>,
    /// `datastore`.
    pub datastores: Fact<Vec<MoRef>>,
    /// `configManager.imageConfigManager`.
    pub image: Fact<MoRef>,
    /// `parent`: its cluster, or the compute resource of its own.
    pub parent: Fact<MoRef>,
}

/// Reads the properties of a host. `marker_field` is the key of the custom field that holds
/// markers, absent if the vCenter has no such field.
pub(super) fn partial(content: &ObjectContent, marker_field: &Fact<i32>) -> Partial {
    let read = Properties::new(content, HOST);
    let text = |path| read.fact(path, decode::string);
    let flag = |path| read.fact(path, decode::boolean);
    let moref = |path| read.fact(path, decode::reference);
    // Followed later; until then unknown, so that a step left out can never look like "none".
    let pending = || "not read yet".to_owned();
    let view = HostView {
        uuid: text(path::HOST_UUID),
        product: read.fact(path::PRODUCT, decode::product),
        connection: text(path::CONNECTION_STATE).map(|state| state.as_str().into()),
        power: text(path::POWER_STATE).map(|state| state.as_str().into()),
        in_maintenance: flag(path::IN_MAINTENANCE_MODE),
        boot_time: read.fact(path::BOOT_TIME, decode::timestamp),
        reboot_required: flag(path::REBOOT_REQUIRED),
        pci: read.list(path::PCI_DEVICE, decode::pci_devices),
        passthru: read.list(path::PCI_PASSTHRU_INFO, decode::passthru_states),
        memory_mib: read.fact(path::MEMORY_SIZE, decode::mebibytes_of_bytes),
        lockdown: text(path::LOCKDOWN_MODE).map(|mode| mode.as_str().into()),
        services: Fact::unknown(pending()),
        shell_login: Fact::unknown(pending()),
        shell: Fact::Absent,
        graphics_config: read.fact(path::GRAPHICS_CONFIG, decode::graphics_config),
        graphics_active: read.fact(path::GRAPHICS_INFO, decode::graphics_states),
        vgpu_types: read.fact(path::SHARED_PASSTHRU_GPU_TYPES, decode::strings),
        numa: read.fact(path::NUMA_NODE, decode::numa_nodes),
        capabilities: Capabilities {
            rebind_without_reboot: flag(path::REBIND_WITHOUT_REBOOT),
            hardware_label: flag(path::ASSIGN_HW_PCI_CONFIG),
        },
        packages: Fact::unknown(pending()),
        vms: Fact::unknown(pending()),
        tasks: Fact::unknown(pending()),
        marker: marker(&read, marker_field),
        parity: Parity {
            datastores: Fact::unknown(pending()),
            uplinks: read.list(path::PNIC, |node| decode::array(node, has_link)).map(|links| tally(&links)),
            ha: read.fact(path::DAS_HOST_STATE, |node| decode::text(node, "state")),
            crypto: text(path::CRYPTO_STATE),
            alarms: read
                .list(path::TRIGGERED_ALARM_STATE, |node| decode::array(node, alarm))
                .map(|alarms| count(alarms.iter().filter(|alarm| alarm.is_red_of(&content.object)).count())),
        },
        graphics_manager: moref(path::GRAPHICS_MANAGER),
        passthru_system: moref(path::PCI_PASSTHRU_SYSTEM),
        service_system: moref(path::SERVICE_SYSTEM),
    };
    Partial {
        host: content.object.clone(),
        view: Box::new(view),
        vms: read.list(path::VM, decode::references),
        tasks: read.list(path::RECENT_TASK, decode::references),
        datastores: read.list(path::DATASTORE, decode::references),
        image: moref(path::IMAGE_CONFIG_MANAGER),
        parent: moref(path::PARENT),
    }
}

/// The value of the marker field. An empty value is no marker: vim25 has no other way to clear one.
fn marker(read: &Properties<'_>, field: &Fact<i32>) -> Fact<String> {
    let key = match field {
        Fact::Known(key) => *key,
        Fact::Absent => return Fact::Absent,
        Fact::Unknown { why } => return Fact::unknown(why.clone()),
    };
    let value = |node: &Node| Ok((decode::parsed::<i32>(decode::required(node, "key")?)?, decode::text(node, "value")));
    match read.list(path::CUSTOM_VALUE, |node| decode::array(node, value)) {
        Fact::Known(values) => match values.into_iter().find(|(at, _)| *at == key) {
            Some((_, Ok(text))) if !text.is_empty() => Fact::Known(text),
            Some((_, Err(error))) => Fact::unknown(error.to_string()),
            Some(_) | None => Fact::Absent,
        },
        Fact::Absent => Fact::Absent,
        Fact::Unknown { why } => Fact::Unknown { why },
    }
}

/// `PhysicalNic.linkSpeed` is there while the NIC has a link.
fn has_link(nic: &Node) -> Result<bool, DecodeError> {
    decode::required(nic, "device")?;
    Ok(nic.get("linkSpeed").is_some())
}

/// An `AlarmState`: what it is triggered on, and its status.
struct Alarm {
    entity: MoRef,
    status: String,
}

impl Alarm {
    /// The alarms of an entity include those of what is below it, so the entity is compared.
    fn is_red_of(&self, host: &MoRef) -> bool {
        self.entity == *host && self.status == "red"
    }
}

fn alarm(node: &Node) -> Result<Alarm, DecodeError> {
    Ok(Alarm {
        entity: decode::reference(decode::required(node, "entity")?)?,
        status: decode::text(node, "overallStatus")?,
    })
}

/// How many of these are good.
pub(super) fn tally(good: &[bool]) -> Tally {
    Tally { good: count(good.iter().filter(|good| **good).count()), all: count(good.len()) }
}

/// A count for a report; no host has four thousand million of anything.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A task that has not ended; none if it has. A state that we do not know is not an end.
pub(super) fn running_task(content: &ObjectContent) -> Result<Option<RunningTask>, HostFault> {
    let info = known(Properties::new(content, TASK).fact(path::TASK_INFO, TaskInfo::decode))?;
    Ok((!info.state.ended()).then(|| RunningTask {
        moref: info.task,
        what: info.what,
        user: info.user.map_or(Fact::Absent, Fact::Known),
        queued_at: info.queued_at.map_or(Fact::Absent, Fact::Known),
    }))
}

/// Whether a datastore is accessible.
pub(super) fn accessible(content: &ObjectContent) -> Result<bool, HostFault> {
    known(Properties::new(content, DATASTORE).fact(path::ACCESSIBLE, decode::boolean))
}

/// The services of a service system.
pub(super) fn services(content: &ObjectContent) -> Fact<Vec<HostService>> {
    Properties::new(content, SERVICES).fact(path::SERVICE_INFO, decode::host_services)
}

/// A value that must be known, as a fault if it is not.
fn known<T>(fact: Fact<T>) -> Result<T, HostFault> {
    let fault = |message| Err(HostFault { kind: HostFaultKind::Fault, message });
    match fact {
        Fact::Known(value) => Ok(value),
        Fact::Absent => fault("the server left it out".to_owned()),
        Fact::Unknown { why } => fault(why),
    }
}
