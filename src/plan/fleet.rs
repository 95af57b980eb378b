//! Which hosts and nodes are out of service.

use super::blocks::{not_connected, vm_name};
use crate::model::{Fact, GuestRules, HostRecord, HostView, NodePhase, NodeRef, NodeView, PowerState, RunId, VmView};

/// Why a host is out of service, whatever the cause; none if it is in service. What cannot be read
/// counts as out of service. `guests`: the guest clusters of its pool, whose nodes count with it. `ours`: nodes
/// that this run has marked are not counted, since their outage is that of its own visit.
pub fn out_of_service(record: &HostRecord, guests: &[GuestRules], ours: Option<&RunId>) -> Option<String> {
    if let Some(why) = host_down(record) {
        return Some(why);
    }
    let is_ours = |out: &Out| ours.is_some_and(|run| out.run.as_ref() == Some(run));
    let nodes = record.view.as_ref().map(|view| nodes_out(view, guests, false)).unwrap_or_default();
    let down = nodes.iter().filter(|out| !out.meant && !is_ours(out));
    let down: Vec<String> = down.map(|out| format!("{}: {}", out.node, out.why)).collect();
    (!down.is_empty()).then(|| down.join(", "))
}

/// Why the host itself is out of service, whatever its nodes do.
pub(super) fn host_down(record: &HostRecord) -> Option<String> {
    let view = match &record.view {
        Ok(view) => view,
        Err(fault) => return Some(format!("it could not be read: {}", fault.message)),
    };
    if let Some(why) = not_connected(view) {
        return Some(why);
    }
    match &view.in_maintenance {
        Fact::Known(false) => None,
        Fact::Known(true) => Some("it is in maintenance mode".to_owned()),
        Fact::Absent => Some("vCenter does not say whether it is in maintenance mode".to_owned()),
        Fact::Unknown { why } => Some(format!("whether it is in maintenance mode could not be read: {why}")),
    }
}

/// A node that gives no service, or less than it should.
pub(super) struct Out {
    /// Which.
    pub node: NodeRef,
    /// Its VM.
    pub vm: String,
    /// GPU devices of its VM; none if that is not known.
    pub gpus: Option<u32>,
    /// Why, one sentence.
    pub why: String,
    /// Its VM is off: somebody wanted that, be it a plan that left it off.
    meant: bool,
    /// The run whose mark is on it.
    run: Option<RunId>,
}

/// The nodes of these guest clusters on a host that are out of service. `as_wished`: its GPUs are as the pool
/// wishes, so that nodes should offer what it expects; before that they may rightly offer another kind.
pub(super) fn nodes_out(view: &HostView, guests: &[GuestRules], as_wished: bool) -> Vec<Out> {
    let nodes = view.vms.known().into_iter().flatten().filter_map(|vm| Some((vm, vm.node.known()?)));
    let mut found: Vec<Out> = nodes
        .filter_map(|(vm, node)| {
            let rules = guests.iter().find(|rules| rules.cluster.value == node.node.cluster)?;
            let why = causes(vm, node, rules, as_wished);
            let run = node.marked().known().map(|mark| mark.run.clone());
            let gpus = vm.gpus.known().map(|gpus| u32::try_from(gpus.len()).unwrap_or(u32::MAX));
            let (node, vm, meant) = (node.node.clone(), vm_name(vm), node.left_off || stands_still(vm));
            (!why.is_empty()).then(|| Out { node, vm, gpus, why: why.join(", "), meant, run })
        })
        .collect();
    found.sort_by(|a, b| a.node.cmp(&b.node));
    found
}

fn stands_still(vm: &VmView) -> bool {
    matches!(vm.power, Fact::Known(PowerState::Off | PowerState::Suspended))
}

fn causes(vm: &VmView, node: &NodeView, rules: &GuestRules, as_wished: bool) -> Vec<String> {
    let mut why = Vec::new();
    if node.left_off {
        why.push("left off by an earlier run".to_owned());
    }
    match node.marked() {
        Fact::Known(mark) if mark.phase == NodePhase::Failed => {
            why.push(format!("it did not pass its gate in run {}", mark.run));
        }
        Fact::Known(mark) => why.push(format!("{} by run {}", mark.phase, mark.run)),
        Fact::Absent if node.unschedulable => why.push("cordoned".to_owned()),
        Fact::Unknown { why: unread } if node.unschedulable => why.push(format!("cordoned, {unread}")),
        Fact::Absent | Fact::Unknown { .. } => {}
    }
    if stands_still(vm) {
        // Neither Ready nor GPUs: that is said with it.
        why.push("its VM does not run".to_owned());
        return why;
    }
    match &node.ready {
        Fact::Known(true) => {}
        Fact::Known(false) => why.push("not Ready".to_owned()),
        Fact::Absent => why.push("its kubelet says nothing of Ready".to_owned()),
        Fact::Unknown { why: unread } => why.push(format!("not known to be Ready ({unread})")),
    }
    let has_gpus = vm.gpus != Fact::Known(Vec::new());
    why.extend(offers_less(node, rules).filter(|_| has_gpus && (as_wished || offers_nothing(node, rules))));
    why
}

/// What a node offers, if it is less than its pool expects.
pub(super) fn offers_less(node: &NodeView, rules: &GuestRules) -> Option<String> {
    let (resource, expected) = (&rules.expect.resource, u64::from(rules.expect.per_node.value));
    match node.count(resource) {
        Fact::Known(now) if now >= expected => None,
        Fact::Known(now) => Some(format!("allocatable {resource} {now}, expected {expected}")),
        Fact::Absent => Some(format!("it tells no allocatable {resource}")),
        Fact::Unknown { why } => Some(why),
    }
}

/// Whether it offers no resource of the kind that is expected: none that the same device plugins name.
fn offers_nothing(node: &NodeView, rules: &GuestRules) -> bool {
    let domain = |resource: &str| resource.split_once('/').map(|(domain, _)| domain.to_owned());
    let kind = domain(&rules.expect.resource.value);
    let Some(all) = node.allocatable.known() else { return true };
    all.iter().all(|(resource, count)| domain(resource) != kind || count == "0")
}
