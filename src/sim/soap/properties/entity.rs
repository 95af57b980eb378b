//! What all inventory objects have, and folders, datacenters, clusters, datastores.

use super::super::objects::{Object, escape};
use super::super::value::{Data, Value, text};
use super::Source;
use crate::sim::document::Alarm;
use crate::sim::world::state::{Host, State};
use crate::sim::world::task::Task;

/// References to objects.
pub(super) fn references(state: &State, objects: impl IntoIterator<Item = Object>) -> Value {
    Value::List(objects.into_iter().map(|object| one(state, &object)).collect())
}

/// A reference to an object.
pub(super) fn one(state: &State, object: &Object) -> Value {
    Value::Ref(object.kind(state), object.reference(state).id)
}

/// Properties of `ManagedEntity`.
pub(super) fn common(state: &State, object: &Object, name: &str) -> Option<Value> {
    let host = match object {
        Object::Host(id) => state.hosts.get(id),
        _ => None,
    };
    let entity = object.name(state).filter(|_| {
        !matches!(
            object,
            Object::GraphicsManager(_) | Object::PassthruSystem(_) | Object::ImageManager(_) | Object::ServiceSystem(_)
        )
    })?;
    let empty = Some(Value::List(Vec::new()));
    match name {
        "name" => Some(text(escape(entity))),
        "parent" => object.parent(state).map(|parent| one(state, &parent)),
        "overallStatus" | "configStatus" => Some(text(status(host))),
        "alarmActionsEnabled" => Some(text(true)),
        "triggeredAlarmState" => Some(Value::List(host.map(|host| alarms(state, object, host)).unwrap_or_default())),
        "customValue" | "value" => Some(Value::List(host.map(|host| custom_values(state, host)).unwrap_or_default())),
        "availableField" => Some(Value::List(fields(state, object.kind(state)))),
        "recentTask" => Some(recent_tasks(state, object)),
        "effectiveRole" => Some(Value::List(vec![text(-1)])),
        "configIssue" | "declaredAlarmState" | "permission" | "tag" | "disabledMethod" => empty,
        _ => None,
    }
}

fn status(host: Option<&Host>) -> &str {
    let worst = |status: &str| host.is_some_and(|host| host.alarms.iter().any(|alarm| alarm.status == status));
    if worst("red") {
        "red"
    } else if worst("yellow") {
        "yellow"
    } else {
        "green"
    }
}

fn alarms(state: &State, object: &Object, host: &Host) -> Vec<Value> {
    let entity = object.reference(state).id;
    let alarm = |(index, alarm): (usize, &Alarm)| {
        Data::of("AlarmState")
            .text("key", format!("alarm-{}.{entity}", index + 1))
            .reference("entity", "HostSystem", entity.clone())
            .reference("alarm", "Alarm", format!("alarm-{}", index + 1))
            .text("overallStatus", &alarm.status)
            .text("time", host.boot_seen)
            .text("acknowledged", false)
            .done()
    };
    host.alarms.iter().enumerate().map(alarm).collect()
}

fn custom_values(state: &State, host: &Host) -> Vec<Value> {
    let shown = host.values.iter().filter_map(|(key, value)| Some((key, value.shown(state.time)?)));
    // An empty value is one that was unset: vCenter does not list it.
    shown
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| Data::of("CustomFieldStringValue").text("key", key).text("value", value).done())
        .collect()
}

/// Definitions of custom fields for a managed type; all of them for an empty one.
pub(super) fn fields(state: &State, kind: &str) -> Vec<Value> {
    let wanted = |of: Option<&str>| kind.is_empty() || of.is_none_or(|of| of == kind);
    state
        .fields
        .iter()
        .filter(|(_, field)| wanted(field.kind.as_deref()))
        .map(|(key, field)| {
            Data::of("CustomFieldDef")
                .text("key", key)
                .text("name", &field.name)
                .text("type", "string")
                .some("managedObjectType", field.kind.as_ref().map(text))
                .done()
        })
        .collect()
}

fn recent_tasks(state: &State, object: &Object) -> Value {
    let of = |task: &Task| match object {
        Object::Host(host) => task.vm.is_none() && task.host == *host,
        Object::Vm(vm) => task.vm == Some(*vm),
        _ => false,
    };
    let recent = state
        .tasks
        .iter()
        .filter(|(_, task)| of(task) && task.forgotten_at.is_none_or(|forgotten| state.time < forgotten));
    references(state, recent.map(|(id, _)| Object::Task(*id)))
}

/// Folders, datacenters, clusters, resource pools, datastores.
pub(super) fn inventory(from: Source<'_>, object: &Object, name: &str) -> Option<Value> {
    let state = from.state;
    match (object, name) {
        (Object::Folder(_), "childEntity") => Some(references(state, object.children(state))),
        (Object::Folder(_), "childType") => Some(Value::List(vec![text("ManagedEntity")])),
        (Object::Datacenter(id), _) => datacenter(state, *id, name),
        (Object::Cluster(id), _) => super::cluster::property(state, *id, name),
        (Object::ResourcePool(id), "owner") => Some(one(state, &Object::Cluster(*id))),
        (Object::ResourcePool(_), "resourcePool") => Some(Value::List(Vec::new())),
        (Object::Datastore(id), "summary") => {
            let store = state.datastores.get(id)?;
            // Seen by vCenter as long as one host sees it.
            let accessible = state.hosts.values().any(|host| host.storage && host.datastores.contains(id));
            Some(
                Data::of("DatastoreSummary")
                    .reference("datastore", "Datastore", format!("datastore-{id}"))
                    .text("name", escape(&store.name))
                    .text("url", format!("ds:///vmfs/volumes/{id}/"))
                    .text("capacity", 10_995_116_277_760_u64)
                    .text("freeSpace", 8_796_093_022_208_u64)
                    .text("accessible", accessible)
                    .text("multipleHostAccess", true)
                    .text("type", "VMFS")
                    .text("maintenanceMode", "normal")
                    .done(),
            )
        }
        _ => None,
    }
}

fn datacenter(state: &State, id: u32, name: &str) -> Option<Value> {
    let known = state.datacenters.get(&id)?;
    let folder = |id| Some(one(state, &Object::Folder(id)));
    match name {
        "vmFolder" => folder(known.vm_folder),
        "hostFolder" => folder(known.host_folder),
        "datastoreFolder" => folder(known.datastore_folder),
        "networkFolder" => folder(known.network_folder),
        "datastore" => {
            let stores = state.datastores.iter().filter(|(_, store)| store.datacenter == id);
            Some(references(state, stores.map(|(id, _)| Object::Datastore(*id))))
        }
        "network" => Some(Value::List(Vec::new())),
        "configuration" => Some(Data::of("DatacenterConfigInfo").done()),
        _ => None,
    }
}
