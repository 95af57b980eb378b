//! What a plan does to nodes of guest clusters.

use std::collections::BTreeMap;

use crate::model::{JobTemplate, OnValidationFailure, are};
use crate::plan::{Fate, HostPlan, Plan, PoolCapacity, VmFate};
use crate::report::{Paper, Text, Tone, words};

/// How many nodes go down, by guest cluster; nothing where none does.
pub(super) fn in_all(plan: &Plan) -> String {
    let mut down: BTreeMap<&str, usize> = BTreeMap::new();
    for fate in plan.hosts.iter().flat_map(|host| &host.fates).filter(|fate| fate.fate.is_stopped()) {
        if let Some(node) = &fate.node {
            *down.entry(&node.cluster).or_default() += 1;
        }
    }
    let words: Vec<String> =
        down.into_iter().map(|(cluster, number)| format!("{} of {cluster}", words::count(number, "node"))).collect();
    if words.is_empty() { String::new() } else { format!(" Cordoned and drained: {}.", words.join(", ")) }
}

/// How many nodes are out of service before anything is done.
pub(super) fn out_in_all(number: usize) -> String {
    format!("{} {} out of service now.", words::count(number, "node"), are(number))
}

/// What is unavailable where no host is.
pub(super) fn if_none(pool: &PoolCapacity) -> &'static str {
    if pool.nodes.is_empty() { "-" } else { "nodes, below" }
}

/// The nodes that are out of service before anything is done.
pub(super) fn out(paper: &mut Paper, plan: &Plan) {
    for out in plan.capacity.pools.iter().flat_map(|pool| &pool.nodes) {
        let gpus = words::count(out.gpus as usize, "GPU");
        let head = format!("node {} on {} (VM {}, {gpus}): ", out.node, out.host, out.vm);
        paper.item(2, head, Text::toned(Tone::Warn, &out.why));
    }
}

/// The nodes on a host, by guest cluster: what is done with them, and how they come back.
pub(super) fn of_host(paper: &mut Paper, host: &HostPlan) {
    for rules in &host.guests {
        let cluster = rules.cluster.value.as_str();
        let stopped = named(host, cluster, |fate| matches!(fate, Fate::Stops { .. }));
        if !stopped.is_empty() {
            let jobs: Vec<String> = rules.validate.iter().map(job).collect();
            let validated = match jobs.as_slice() {
                [] => "no Job validates them".to_owned(),
                jobs => format!("validated by {}", jobs.join(", ")),
            };
            let text = format!(
                "cordoned, drained in at most {} min{}, stopped; uncordoned once Ready with {} {}, {validated}",
                rules.drain_timeout_s.div_ceil(60),
                if stopped.len() > 1 { " each" } else { "" },
                rules.expect.per_node,
                rules.expect.resource,
            );
            paper.item(
                2,
                format!("nodes of {cluster}: "),
                Text::toned(Tone::Warn, stopped.join(", ")).and(Tone::Plain, format!(": {text}")),
            );
        }
        let left = named(host, cluster, |fate| matches!(fate, Fate::LeftOff { .. }));
        if !left.is_empty() {
            let text = Text::toned(Tone::Bad, left.join(", "))
                .and(Tone::Plain, ": cordoned and drained; cordoned still at the end, the VM off");
            paper.item(2, format!("nodes of {cluster} left off: "), text);
        }
    }
    let moved = host.fates.iter().filter(|fate| matches!(fate.fate, Fate::Moves { .. }));
    let nodes = moved.filter_map(|fate| fate.node.as_ref());
    let (listed, others): (Vec<_>, Vec<_>) =
        nodes.partition(|node| host.guests.iter().any(|rules| rules.cluster.value == node.cluster));
    let after = [(listed, "looked at after the move"), (others, "not looked at, the pool does not list their cluster")];
    for (nodes, then) in after.into_iter().filter(|(nodes, _)| !nodes.is_empty()) {
        let names: Vec<String> = nodes.iter().map(ToString::to_string).collect();
        let text = format!("{}: neither cordoned nor drained; {then}", names.join(", "));
        paper.item(2, "nodes that move as they run: ", text);
    }
    if !host.bounds.nodes.is_empty() {
        let bounds: Vec<String> =
            host.bounds.nodes.iter().map(|(cluster, most)| format!("{most} of {cluster}")).collect();
        let closes = match host.on_validation_failure {
            OnValidationFailure::CloseHost => "closed again",
            OnValidationFailure::KeepOpen => "left open, its nodes cordoned",
        };
        let text = format!("{}; if one does not pass its gate, the host is {closes}", bounds.join(", "));
        paper.item(2, "nodes down at most: ", text);
    }
}

/// A Job that people approve: its template, what it runs and where.
fn job(template: &JobTemplate) -> String {
    let spec = &template.job["spec"]["template"]["spec"];
    let containers = ["initContainers", "containers"].into_iter().filter_map(|kind| spec[kind].as_array()).flatten();
    let images: Vec<&str> = containers.filter_map(|container| container["image"].as_str()).collect();
    let namespace = template.job["metadata"]["namespace"].as_str().unwrap_or("default");
    let word = if images.len() == 1 { "image" } else { "images" };
    format!("{} ({word} {}, namespace {namespace})", template.file, images.join(", "))
}

/// Names of the nodes of a cluster whose VMs have such a fate.
fn named(host: &HostPlan, cluster: &str, is: impl Fn(&Fate) -> bool) -> Vec<String> {
    let of = |fate: &&VmFate| is(&fate.fate) && fate.node.as_ref().is_some_and(|node| node.cluster == cluster);
    host.fates.iter().filter(of).filter_map(|fate| Some(fate.node.as_ref()?.name.clone())).collect()
}
