//! Nodes of guest clusters, by what the world's own log and state say of them.

use std::collections::BTreeMap;

use poolwright::model::{NodeMark, NodeRef};
use poolwright::plan::{Fate, Plan};
use poolwright::sim::Write;
use serde_json::Value;

use super::lab::Lab;

/// Who we are to every guest cluster of a world.
const WE: &str = "kubernetes-admin";

/// Our patches of a node that took effect: the number of the write, and whether the node was cordoned then.
fn patches(log: &[Write], node: &NodeRef) -> Vec<(u64, bool)> {
    let id = format!("{}/nodes/{}", node.cluster, node.name);
    let ours =
        log.iter().filter(|write| write.effect && write.who == WE && write.call == "patch nodes" && write.id == id);
    let cordoned = |write: &&Write| !write.arguments.replace(' ', "").contains("/spec/unschedulable\",\"value\":false");
    ours.map(|write| (write.n, cordoned(&write))).collect()
}

/// The writes on a VM by one of these calls.
fn on_vm<'a>(log: &'a [Write], vm: &str, calls: &[&str]) -> Vec<&'a Write> {
    log.iter().filter(|write| write.effect && write.object == vm && calls.contains(&write.call.as_str())).collect()
}

/// Of each node of a plan: no more go down than the plan says; none is stopped before it is cordoned;
/// none that was stopped is uncordoned before it has its GPUs again and its Job was there; those that move are
/// not touched; and at the end all are as before, but for those that were planned to stay off.
pub fn assert_as_planned(case: &str, lab: &Lab, plan: &Plan) {
    let (log, after) = (lab.world.log(), lab.world.snapshot());
    for host in &plan.hosts {
        let mut down: BTreeMap<&str, u32> = BTreeMap::new();
        for fate in &host.fates {
            let Some(node) = &fate.node else { continue };
            let case = format!("{case}: {node}");
            let patched = patches(&log, node);
            let stops = on_vm(&log, &fate.name, &["ShutdownGuest", "PowerOffVM_Task"]);
            let state = &after["guests"][&node.cluster]["nodes"][&node.name];
            let left_off = matches!(fate.fate, Fate::LeftOff { .. });
            assert_eq!(state["unschedulable"] == Value::Bool(true), left_off, "{case}: {state}");
            assert_eq!(state["annotations"][NodeMark::LEFT_OFF].is_string(), left_off, "{case}: {state}");
            assert!(state["annotations"][NodeMark::ANNOTATION].is_null(), "{case}: {state}");
            if !fate.fate.is_stopped() {
                assert!(patched.is_empty() && stops.is_empty(), "{case}: it moves as it runs");
                continue;
            }
            *down.entry(&node.cluster).or_default() += 1;
            let (first, stop) = (patched[0], stops[0]);
            assert!(first.1 && first.0 < stop.n, "{case}: stopped before it was cordoned");
            let opened = patched.iter().find(|(_, cordoned)| !cordoned);
            let starts = on_vm(&log, &fate.name, &["PowerOnVM_Task"]);
            let Some((opened, _)) = opened else {
                assert!(left_off && starts.is_empty(), "{case}: never uncordoned");
                continue;
            };
            let (opened, started) = (log.iter().find(|write| write.n == *opened).unwrap(), starts[0]);
            assert!(opened.at.duration_since(started.at).as_secs() >= 180, "{case}: uncordoned before it had its GPUs");
            let rules = host.guests.iter().find(|rules| rules.cluster.value == node.cluster).unwrap();
            let jobs = log.iter().filter(|write| {
                let here = write.id.starts_with(&format!("{}/jobs/", node.cluster));
                here && write.call == "create jobs" && write.effect && write.arguments.contains(&node.name)
            });
            let validated = jobs.filter(|job| started.n < job.n && job.n < opened.n).count();
            assert_eq!(validated, rules.validate.len(), "{case}: validated before it was uncordoned");
        }
        for (cluster, nodes) in down {
            let most = host.bounds.nodes.get(cluster).copied().unwrap_or_default();
            assert!(nodes <= most, "{case}: {nodes} nodes of {cluster} went down, {most} at most");
        }
    }
    // Nodes of nobody's plan.
    let planned = |cluster: &str, name: &str| {
        let nodes = plan.hosts.iter().flat_map(|host| &host.fates).filter_map(|fate| fate.node.as_ref());
        nodes.into_iter().any(|node| node.cluster == cluster && node.name == name)
    };
    for write in log.iter().filter(|write| write.who == WE && write.call == "patch nodes") {
        let (cluster, name) = write.id.split_once("/nodes/").unwrap();
        assert!(planned(cluster, name), "{case}: {write:?} on an unmanaged node");
    }
}
