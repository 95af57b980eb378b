//! `Task` and `TaskInfo`.

use super::super::objects::{Object, escape};
use super::super::value::{Data, Value, text};
use super::entity::one;
use crate::sim::fault::VimFault;
use crate::sim::world::state::State;
use crate::sim::world::task::Task;
use crate::vim25::wire::Node;

pub(super) fn property(state: &State, id: u64, name: &str) -> Option<Value> {
    (name == "info").then(|| task_info(state, id)).flatten()
}

/// `TaskInfo`; errors of a task are here and never a SOAP fault (vsphere-gpu §5.4).
pub(in super::super) fn task_info(state: &State, id: u64) -> Option<Value> {
    let task = state.tasks.get(&id)?;
    let host = state.hosts.get(&task.host)?;
    let method = match task.what.as_str() {
        Task::ENTER => "EnterMaintenanceMode_Task",
        Task::EXIT => "ExitMaintenanceMode_Task",
        Task::RECONNECT => "ReconnectHost_Task",
        Task::POWER_ON => "PowerOnVM_Task",
        Task::POWER_OFF => "PowerOffVM_Task",
        Task::RECONFIGURE => "ReconfigVM_Task",
        Task::RELOCATE => "RelocateVM_Task",
        Task::DRS_MOVE => "ExecuteVMotionLRO",
        _ => "RebootHost_Task",
    };
    let reason = match task.user.as_str() {
        "" => Data::of("TaskReasonSystem").done(),
        user => Data::of("TaskReasonUser").text("userName", user).done(),
    };
    let (entity, name) = match task.vm.and_then(|vm| Some((Object::Vm(vm), &state.vms.get(&vm)?.name))) {
        Some(found) => found,
        None => (Object::Host(task.host), &host.name),
    };
    Some(
        Data::of("TaskInfo")
            .text("key", format!("task-{id}"))
            .reference("task", "Task", format!("task-{id}"))
            .text("name", method)
            .text("descriptionId", &task.what)
            .set("entity", one(state, &entity))
            .text("entityName", escape(name))
            .text("state", task.state.as_str())
            .text("cancelled", task.cancelled)
            .text("cancelable", task.cancelable && task.state.is_open())
            .some("error", task.fault.as_ref().map(|failure| Value::Raw(localized(&failure.fault()))))
            .some("progress", task.progress.filter(|_| task.state.is_open()).map(text))
            .set("reason", reason)
            .text("queueTime", task.queued_at)
            .some("startTime", task.started_at.map(text))
            .some("completeTime", task.completed_at.map(text))
            .text("eventChainId", id)
            .done(),
    )
}

/// A `LocalizedMethodFault`.
pub(super) fn localized(fault: &VimFault) -> Node {
    let inner = Node::new("fault").typed(&fault.kind).with_all(fault.fields.iter().cloned());
    Node::new("error").with(inner).with(Node::leaf("localizedMessage", &fault.message))
}
