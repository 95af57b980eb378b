//! What keeps a host from being worked on at all: connection, tasks, VMs that are powered on.

use super::device::Gap;
use super::{Memory, OurMaintenance};
use crate::model::{Connection, Fact, HostView, PowerState, RunningTask, VmView};

/// Why the host cannot be talked to; none if it can.
pub(super) fn not_connected(view: &HostView) -> Option<String> {
    match &view.connection {
        Fact::Known(Connection::Connected) => {}
        Fact::Known(other) => return Some(format!("the host is {other}")),
        Fact::Absent => return Some("vCenter does not say whether the host is connected".to_owned()),
        Fact::Unknown { why } => return Some(format!("whether the host is connected could not be read: {why}")),
    }
    match &view.power {
        Fact::Known(PowerState::On) => None,
        Fact::Known(other) => Some(format!("the power state of the host is {other}")),
        Fact::Absent => Some("vCenter does not say whether the host is powered on".to_owned()),
        Fact::Unknown { why } => Some(format!("the power state of the host could not be read: {why}")),
    }
}

/// What a task of a host is, by its `descriptionId` (vsphere-gpu §1.9): only the part after the type
/// is compared, servers differ in what they put before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskKind {
    /// Entering maintenance.
    Enter,
    /// Leaving it.
    Exit,
    /// Rebooting.
    Reboot,
    /// Any other.
    Other,
}

impl TaskKind {
    /// The kind of a task.
    pub fn of(task: &RunningTask) -> Self {
        match task.what.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().trim_end_matches("_task") {
            "entermaintenancemode" => Self::Enter,
            "exitmaintenancemode" => Self::Exit,
            "reboot" | "reboothost" => Self::Reboot,
            _ => Self::Other,
        }
    }
}

/// The task of this kind that runs on the host.
pub(super) fn running(view: &HostView, kind: TaskKind) -> Option<&RunningTask> {
    view.tasks.known()?.iter().find(|task| TaskKind::of(task) == kind)
}

/// The task that closes, opens or reboots the host just now, in words; whose it is does not matter.
pub(super) fn switching(view: &HostView) -> Result<Option<String>, Gap> {
    let tasks = Gap::optional(&view.tasks, "recentTask")?;
    Ok(tasks.into_iter().flatten().find(|task| TaskKind::of(task) != TaskKind::Other).map(described))
}

/// Who works on the host beside this visit; none if nobody does.
pub(super) fn busy(view: &HostView, memory: &Memory) -> Result<Option<String>, Gap> {
    let tasks = Gap::optional(&view.tasks, "recentTask")?;
    let ours = |task: &RunningTask| match TaskKind::of(task) {
        TaskKind::Enter => memory.maintenance == OurMaintenance::Asked,
        TaskKind::Exit => memory.maintenance == OurMaintenance::Leaving,
        TaskKind::Reboot => memory.last_reboot.as_ref().is_some_and(|asked| !asked.proven),
        TaskKind::Other => false,
    };
    let foreign: Vec<String> = tasks.into_iter().flatten().filter(|task| !ours(task)).map(described).collect();
    Ok((!foreign.is_empty()).then(|| format!("another task works on the host: {}", foreign.join(", "))))
}

/// A task for people: what, who, since when.
fn described(task: &RunningTask) -> String {
    let user = match &task.user {
        Fact::Known(user) => format!(" by {user}"),
        Fact::Absent => " by the system".to_owned(),
        Fact::Unknown { .. } => " by a user that could not be read".to_owned(),
    };
    let since = task.queued_at.known().map(|at| format!(" since {at:.0}")).unwrap_or_default();
    format!("{}{user}{since}", task.what)
}

/// The VMs of a host that count: vCLS agents follow the host by themselves, templates never run.
pub(super) fn own_vms(view: &HostView) -> Result<impl Iterator<Item = &VmView>, Gap> {
    Ok(Gap::need(&view.vms, "vm")?.iter().filter(|vm| !vm.vcls && vm.template != Fact::Known(true)))
}

/// The VMs that are powered on. A power state that could not be read counts as on.
pub(super) fn powered_on_vms(view: &HostView) -> Result<Vec<&VmView>, Gap> {
    Ok(own_vms(view)?.filter(|vm| !matches!(vm.power, Fact::Known(PowerState::Off | PowerState::Suspended))).collect())
}

/// Their names.
pub(super) fn powered_on(view: &HostView) -> Result<Vec<String>, Gap> {
    Ok(powered_on_vms(view)?.into_iter().map(vm_label).collect())
}

/// The name of a VM, or its reference where the name could not be read.
pub(super) fn vm_name(vm: &VmView) -> String {
    vm.name.known().cloned().unwrap_or_else(|| vm.moref.to_string())
}

/// A VM for people: its name, or its reference where the name could not be read; with a word where its
/// power state could not.
pub(super) fn vm_label(vm: &VmView) -> String {
    let name = vm_name(vm);
    match &vm.power {
        Fact::Known(_) => name,
        Fact::Absent | Fact::Unknown { .. } => format!("{name} (its power state could not be read)"),
    }
}
