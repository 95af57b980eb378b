//! Looks at a world from outside: its own state, its own log, its own tally.

use std::collections::BTreeSet;

use poolwright::plan::{HostPlan, Plan};
use poolwright::sim::Write;
use serde_json::Value;

use super::lab::{Lab, USER};
use super::replay::Replay;

/// A GPU as the world has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    pub address: String,
    pub enabled: bool,
    pub active: bool,
    pub label: String,
    pub graphics: String,
    pub size: String,
    /// All of it, for comparing.
    pub whole: Value,
}

/// A host of a snapshot.
pub fn host<'a>(snapshot: &'a Value, name: &str) -> &'a Value {
    let hosts = snapshot["hosts"].as_object().unwrap();
    hosts.values().find(|host| host["name"] == name).unwrap_or_else(|| panic!("no host {name} in the world"))
}

/// The GPUs of a host, in address order.
pub fn gpus(snapshot: &Value, name: &str) -> Vec<Gpu> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let devices = host(snapshot, name)["devices"].as_array().unwrap();
    devices
        .iter()
        .filter(|device| device["graphics"].is_object())
        .map(|device| Gpu {
            address: text(&device["address"]),
            enabled: device["passthrough"]["enabled"] == true,
            active: device["passthrough"]["active"] == true,
            label: text(&device["passthrough"]["label"]),
            graphics: text(&device["graphics"]["type"]),
            size: text(&device["graphics"]["mode"]),
            whole: device.clone(),
        })
        .collect()
}

/// The hosts of a plan are given back: out of maintenance unless they were found there, no task, no
/// marker.
pub fn assert_released(case: &str, snapshot: &Value, plan: &Plan) {
    for HostPlan { host: at, stays_in_maintenance, .. } in &plan.hosts {
        let name = at.name.as_str();
        let host = host(snapshot, name);
        assert_eq!(host["maintenance"], Value::Bool(*stays_in_maintenance), "{case}: {name} in maintenance");
        assert_eq!(host["openTasks"], serde_json::json!([]), "{case}: {name}");
        let marker = host["fields"]["poolwright.run"].as_str().unwrap_or_default();
        assert_eq!(marker, "", "{case}: {name} keeps a marker");
    }
}

/// The SSH service and the monitoring daemon of every host are as they were, and what MIG will be is what it
/// is.
pub fn assert_shells_as_before(case: &str, lab: &Lab) {
    let after = lab.world.snapshot();
    for (id, before) in lab.before["hosts"].as_object().unwrap() {
        for what in ["ssh", "monitor"] {
            assert_eq!(after["hosts"][id][what], before[what], "{case}: {what} of {}", before["name"]);
        }
        for gpu in gpus(&after, before["name"].as_str().unwrap()) {
            let mig = &gpu.whole["graphics"];
            assert_eq!(mig["mig"], mig["migPending"], "{case}: {} {}", before["name"], gpu.address);
        }
    }
}

/// Nothing was written to hosts outside the plan, and no GPU outside it is another than before.
pub fn assert_only_managed(case: &str, lab: &Lab, plan: &Plan) {
    let managed: BTreeSet<&str> = plan.hosts.iter().map(|host| host.host.name.as_str()).collect();
    for write in lab.world.log() {
        let about_hosts = write.id.starts_with("host-");
        assert!(!about_hosts || managed.contains(write.object.as_str()), "{case}: {write:?} on an unmanaged host");
    }
    let after = lab.world.snapshot();
    for (id, before) in lab.before["hosts"].as_object().unwrap() {
        let name = before["name"].as_str().unwrap();
        let Some(host) = plan.hosts.iter().find(|host| host.host.name.as_str() == name) else {
            assert_eq!(after["hosts"][id], *before, "{case}: {name} is not in the plan");
            continue;
        };
        let others: BTreeSet<String> = host.target.others.iter().map(ToString::to_string).collect();
        for (was, is) in gpus(&lab.before, name).iter().zip(gpus(&after, name)) {
            assert!(!others.contains(&was.address) || *was == is, "{case}: {name} {} is not in the pool", was.address);
        }
    }
}

/// What the world counts lies inside the plan's bounds, as the world's own log and tally tell it.
pub fn assert_within_bounds(case: &str, lab: &Lab, plan: &Plan) {
    let (tally, log) = (lab.world.tally(), lab.world.log());
    let replay = Replay::of(lab);
    for host in &plan.hosts {
        let name = host.host.name.as_str();
        let theirs = |write: &&Write| {
            write.effect && write.call == "RebootHost_Task" && write.object == name && write.who != USER
        };
        let boots = tally.hosts[name].boots - u32::try_from(log.iter().filter(theirs).count()).unwrap();
        assert!(boots <= host.reboots.most, "{case}: {name} booted {boots} times");
        let Some(told) = replay.hosts.get(name) else { continue };
        let (stops, moves) = (told.stops, told.moves);
        assert!(stops <= host.bounds.stops, "{case}: {stops} VMs were stopped on {name}");
        assert!(moves <= host.bounds.moves, "{case}: {moves} VMs were moved off {name}");
        let Some((first, last)) = told.touched else { continue };
        let minutes = last.duration_since(first).as_secs() / 60;
        assert!(minutes <= i64::from(host.minutes.most), "{case}: {name} took {minutes} minutes");
    }
    let mut hours_tenths = 0;
    for capacity in &plan.capacity.pools {
        let pool = plan.desired.pools.iter().find(|pool| pool.name.value == capacity.pool).unwrap();
        let gpus = pool.hosts.iter().map(|pin| (pin.host.name.as_str(), pool.gpu_count.value)).collect();
        let least = capacity.now - replay.most_out(&gpus);
        assert!(least >= capacity.worst, "{case}: {least} GPUs of {} were left", capacity.pool);
        let seconds: i64 = gpus.iter().map(|(host, count)| replay.out_s(host) * i64::from(*count)).sum();
        hours_tenths += u64::try_from(seconds).unwrap() / 360;
    }
    let most = plan.capacity.gpu_hours_most_tenths;
    assert!(hours_tenths <= most, "{case}: {hours_tenths} tenths of GPU hours, {most} at most");
}
