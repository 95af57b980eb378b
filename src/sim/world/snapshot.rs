//! What a world comes to: for comparing final worlds, and what happened on the way.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::device::Function;
use super::guest::{Guest, items, text};
use super::state::{Host, State};
use super::vm::Vm;
use super::{World, Write};
use crate::sim::document::Power;

/// What happened to a world, as the world itself counts it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// By host name.
    pub hosts: BTreeMap<String, HostTally>,
    /// By VM name.
    pub vms: BTreeMap<String, VmTally>,
    /// By cluster and name of the node: `k8s-serve/serve-1`.
    pub nodes: BTreeMap<String, NodeTally>,
}

/// What happened to a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeTally {
    /// Times that its machine was powered on in this world.
    pub boots: u32,
    /// Whether it is cordoned.
    pub unschedulable: bool,
    /// Writes on it that took effect, by call, whoever made them.
    pub writes: BTreeMap<String, u32>,
}

/// What happened to a VM, whoever did it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmTally {
    /// Name of the host that it is on.
    pub host: String,
    /// Whether it is powered on.
    pub on: bool,
    /// Moves while it was powered on.
    pub moves: u32,
    /// Times that it went from on to off.
    pub stops: u32,
    /// Times that it was powered on.
    pub starts: u32,
}

/// What happened to a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostTally {
    /// Boots since the world began.
    pub boots: u32,
    /// Whether it is in maintenance.
    pub in_maintenance: bool,
    /// Writes that took effect, by method.
    pub writes: BTreeMap<String, u32>,
}

impl World {
    /// The whole world as it is, without the past: no times, tasks, events, nor the log. Two runs that
    /// come to the same end have equal snapshots, byte for byte.
    pub fn snapshot(&self) -> Value {
        self.look(|moment| snapshot(moment.state))
    }

    /// What happened so far.
    pub fn tally(&self) -> Tally {
        self.look(|moment| {
            let State { hosts, vms, guests, log, .. } = &*moment.state;
            let of = |host: &Host| HostTally {
                boots: host.boots,
                in_maintenance: host.maintenance,
                writes: writes(log, |write| write.object == host.name),
            };
            let of_vm = |vm: &Vm| VmTally {
                host: hosts.get(&vm.host).map(|host| host.name.clone()).unwrap_or_default(),
                on: vm.power == Power::On,
                moves: vm.counts.moves,
                stops: vm.counts.stops,
                starts: vm.counts.starts,
            };
            Tally {
                hosts: hosts.values().map(|host| (host.name.clone(), of(host))).collect(),
                vms: vms.values().map(|vm| (vm.name.clone(), of_vm(vm))).collect(),
                nodes: guests.iter().flat_map(|(name, guest)| node_tallies(log, name, guest)).collect(),
            }
        })
    }
}

fn node_tallies(log: &[Write], cluster: &str, guest: &Guest) -> Vec<(String, NodeTally)> {
    let of = |(name, machine): (&String, &super::guest::Machine)| {
        let node = guest.get(&super::guest::key("nodes", "", name));
        let tally = NodeTally {
            boots: machine.boots.saturating_sub(1),
            unschedulable: node.is_some_and(|node| node.pointer("/spec/unschedulable") == Some(&json!(true))),
            writes: writes(log, |write| write.id == format!("{cluster}/nodes/{name}")),
        };
        (format!("{cluster}/{name}"), tally)
    };
    guest.machines.iter().map(of).collect()
}

fn writes(log: &[Write], on: impl Fn(&Write) -> bool) -> BTreeMap<String, u32> {
    let mut writes = BTreeMap::new();
    for write in log.iter().filter(|write| write.effect && on(write)) {
        *writes.entry(write.call.clone()).or_default() += 1;
    }
    writes
}

fn snapshot(state: &State) -> Value {
    let hosts: Map<String, Value> = state
        .hosts
        .iter()
        .map(|(number, host)| (format!("host-{number}"), host_snapshot(state, *number, host)))
        .collect();
    let vms: Map<String, Value> = state
        .vms
        .iter()
        .map(|(number, vm)| {
            let value = json!({
                "name": vm.name, "host": format!("host-{}", vm.host), "power": vm.power, "devices": vm.devices,
                "seats": vm.seats, "goesTo": vm.bound.as_ref().map(|bound| format!("host-{}", bound.to)),
            });
            (format!("vm-{number}"), value)
        })
        .collect();
    let fields: Vec<&str> = state.fields.values().map(|field| field.name.as_str()).collect();
    let guests: Map<String, Value> =
        state.guests.iter().map(|(name, guest)| (name.clone(), guest_snapshot(guest))).collect();
    json!({ "hosts": hosts, "vms": vms, "fields": fields, "options": state.options, "guests": guests })
}

/// What people care about of a guest cluster: names that it made up differ with what happened before.
fn guest_snapshot(guest: &Guest) -> Value {
    let nodes: Map<String, Value> = guest
        .all("nodes")
        .map(|(_, node)| {
            let ready = items(node, "/status/conditions").iter().find(|one| text(one, "/type") == "Ready");
            let value = json!({
                "unschedulable": node["spec"]["unschedulable"], "taints": taints(node),
                "annotations": node["metadata"]["annotations"], "labels": node["metadata"]["labels"],
                "ready": ready.map(|one| text(one, "/status")), "allocatable": node["status"]["allocatable"],
            });
            (text(node, "/metadata/name").to_owned(), value)
        })
        .collect();
    let ready = |resource: &str, field: &str| -> Map<String, Value> {
        guest.all(resource).map(|(key, object)| (key.clone(), object["status"][field].clone())).collect()
    };
    let count = |resource: &str| guest.all(resource).count();
    json!({
        "nodes": nodes,
        "ready": [ready("deployments", "readyReplicas"), ready("statefulsets", "readyReplicas"), ready("daemonsets", "numberReady")],
        "jobs": guest.all("jobs").map(|(key, _)| key.as_str()).collect::<Vec<_>>(),
        "attachments": count("volumeattachments"),
    })
}

fn taints(node: &Value) -> Vec<String> {
    let taints = items(node, "/spec/taints").iter();
    taints.map(|taint| format!("{}:{}", text(taint, "/key"), text(taint, "/effect"))).collect()
}

fn host_snapshot(state: &State, number: u32, host: &Host) -> Value {
    let values: BTreeMap<&str, &str> = host
        .values
        .iter()
        .filter_map(|(key, value)| Some((state.fields.get(key)?.name.as_str(), value.value.as_str())))
        .collect();
    let open: Vec<&str> = state
        .tasks
        .values()
        .filter(|task| task.host == number && task.state.is_open())
        .map(|task| task.what.as_str())
        .collect();
    json!({
        "name": host.name,
        "version": host.version,
        "connection": host.connection,
        "maintenance": host.maintenance,
        "openTasks": open,
        "graphics": host.graphics,
        "devices": host.functions.iter().map(device).collect::<Vec<_>>(),
        "ssh": { "running": host.shell.ssh_running, "policy": host.shell.ssh_policy },
        "monitor": host.shell.monitor,
        "ha": host.ha_agent,
        "storage": host.storage,
        "alarms": host.alarms,
        "fields": values,
    })
}

fn device(function: &Function) -> Value {
    json!({
        "address": function.address,
        "name": function.name,
        "passthrough": { "enabled": function.enabled, "active": function.active, "label": function.label },
        "virtualFunctions": function.virtual_functions,
        "graphics": function.gpu.as_ref().map(|gpu| json!({
            "type": gpu.graphics_type, "mode": gpu.vgpu_mode, "mig": gpu.mig, "migPending": gpu.mig_pending,
        })),
    })
}
