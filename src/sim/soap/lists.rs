//! Tasks and events that are over: history collectors, `QueryEvents`.

use super::objects::Object;
use super::properties::{Source, task_info};
use super::request::{Call, reference};
use super::session::{History, Session};
use super::shape::Kind;
use super::value::{Data, Value, returned};
use crate::sim::fault::VimFault;
use crate::sim::world::state::{Event, State};
use crate::sim::world::task::Task;
use crate::vim25::wire::Node;
use jiff::Timestamp;

/// The host or VM that a filter's `entity` names; `Err` if the filter names something else.
fn entity_of(filter: &Node, state: &State) -> Result<Option<Object>, VimFault> {
    let Some(entity) = filter.get("entity").and_then(|entity| entity.get("entity")).and_then(reference) else {
        return Ok(None);
    };
    match Object::find(state, None, &entity) {
        Some(object @ (Object::Host(_) | Object::Vm(_))) => Ok(Some(object)),
        Some(_) => Err(VimFault::argument("filter.entity")),
        None => Err(VimFault::gone(&entity.kind, &entity.id)),
    }
}

/// Whether something that happened to a host, or to a VM of it, is about an object itself.
fn is_about(object: &Object, host: Option<u32>, vm: Option<u32>) -> bool {
    match object {
        Object::Vm(wanted) => vm == Some(*wanted),
        Object::Host(wanted) => vm.is_none() && host == Some(*wanted),
        _ => false,
    }
}

fn time_of(filter: &Node, name: &str) -> Option<Timestamp> {
    filter.get("time")?.text_of(name)?.trim().parse().ok()
}

/// `CreateCollectorForTasks`: it keeps what `recentTask` has lost, and starts at the oldest.
pub(super) fn create_collector(state: &State, session: &mut Session, call: &Call) -> Result<Vec<Node>, VimFault> {
    let Some(filter) = call.get("filter") else { return Err(VimFault::argument("filter")) };
    let about = entity_of(filter, state)?;
    let (from, until) = (time_of(filter, "beginTime"), time_of(filter, "endTime"));
    let users: Vec<&str> = filter
        .get("userName")
        .map(|names| names.all("userList").map(|name| name.text.as_str()).collect())
        .unwrap_or_default();
    let states: Vec<&str> = filter.all("state").map(|state| state.text.as_str()).collect();
    let when = |task: &Task| match filter.get("time").and_then(|time| time.text_of("timeType")) {
        Some("startedTime") => task.started_at,
        Some("completedTime") => task.completed_at,
        _ => Some(task.queued_at),
    };
    let matches = |task: &Task| {
        about.as_ref().is_none_or(|about| is_about(about, Some(task.host), task.vm))
            && from.is_none_or(|from| when(task).is_some_and(|at| at >= from))
            && until.is_none_or(|until| when(task).is_some_and(|at| at <= until))
            && (users.is_empty() || users.iter().any(|user| same_user(user, &task.user)))
            && (states.is_empty() || states.contains(&task.state.as_str()))
    };
    let tasks = state.tasks.iter().filter(|(_, task)| matches(task)).map(|(id, _)| *id).collect();
    let id = session.id("taskHistoryCollector");
    session.collectors.insert(id.clone(), History { tasks });
    Ok(vec![Node::reference("returnval", "TaskHistoryCollector", &id)])
}

/// One user under two spellings: `pw@vsphere.local` and `VSPHERE.LOCAL\pw`.
fn same_user(one: &str, other: &str) -> bool {
    canonical(one).eq_ignore_ascii_case(&canonical(other))
}

/// The spelling in which vCenter shows users.
pub(super) fn canonical(name: &str) -> String {
    match name.split_once('@') {
        Some((user, domain)) => format!("{}\\{user}", domain.to_uppercase()),
        None => name.to_owned(),
    }
}

/// `ReadNextTasks`.
pub(super) fn read_next(from: Source<'_>, history: &mut History, call: &Call) -> Vec<Node> {
    let most = call.number("maxCount").and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    let count = most.min(history.tasks.len());
    let page: Vec<u64> = history.tasks.drain(..count).collect();
    let infos = page.into_iter().filter_map(|id| task_info(from.state, id)).collect();
    returned(Kind::Data("TaskInfo"), &Value::List(infos), call.version)
}

/// Wire types of the events that happen here.
const EVENTS: [&str; 12] = [
    "EnteringMaintenanceModeEvent",
    "EnteredMaintenanceModeEvent",
    "ExitMaintenanceModeEvent",
    "HostConnectedEvent",
    "HostConnectionLostEvent",
    "HostDisconnectedEvent",
    "GeneralUserEvent",
    "VmPoweredOnEvent",
    "VmPoweredOffEvent",
    "VmMigratedEvent",
    "VmFailedMigrateEvent",
    "NoMaintenanceModeDrsRecommendationForVM",
];

/// `QueryEvents`.
pub(super) fn query_events(state: &State, call: &Call) -> Result<Vec<Node>, VimFault> {
    let Some(filter) = call.get("filter") else { return Err(VimFault::argument("filter")) };
    let about = entity_of(filter, state)?;
    let (from, until) = (time_of(filter, "beginTime"), time_of(filter, "endTime"));
    let kinds: Vec<&str> = filter.all("eventTypeId").map(|kind| kind.text.trim_start_matches("vim.event.")).collect();
    let matches = |event: &&Event| {
        about.as_ref().is_none_or(|about| is_about(about, event.host, event.vm))
            && from.is_none_or(|from| event.at >= from)
            && until.is_none_or(|until| event.at <= until)
            && (kinds.is_empty() || kinds.contains(&event.kind.as_str()))
    };
    let events = state.events.iter().filter(matches).map(|event| event_value(state, event)).collect();
    Ok(returned(Kind::Data("Event"), &Value::List(events), call.version))
}

fn event_value(state: &State, event: &Event) -> Value {
    let kind = EVENTS.iter().find(|known| **known == event.kind).copied().unwrap_or("GeneralEvent");
    let host = event.host.and_then(|id| Some((id, state.hosts.get(&id)?)));
    let argument = host.map(|(id, host)| {
        Data::of("HostEventArgument")
            .text("name", &host.name)
            .reference("host", "HostSystem", format!("host-{id}"))
            .done()
    });
    let vm = event.vm.and_then(|id| Some((id, state.vms.get(&id)?))).map(|(id, vm)| {
        Data::of("VmEventArgument").text("name", &vm.name).reference("vm", "VirtualMachine", format!("vm-{id}")).done()
    });
    Data::of(kind)
        .text("key", event.key)
        .text("chainId", event.key)
        .text("createdTime", event.at)
        .text("userName", &event.user)
        .some("host", argument)
        .some("vm", vm)
        .text("fullFormattedMessage", &event.message)
        .some("message", (kind.starts_with("General")).then(|| Value::Text(event.message.clone())))
        .done()
}
