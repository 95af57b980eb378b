//! What speaks against stopping or moving a VM because of the node that it is.

use std::collections::BTreeMap;

use super::blocks::vm_name;
use super::vms::{Against, Scene};
use crate::model::{At, Fact, GuestRules, GuestView, HostView, NodeRef, NodeView, Rule, VmSelector, VmView};

/// A VM that is no node may be one of a cluster that cannot be read, whatever becomes of it: what is against the host
/// being closed, for each such cluster.
pub(super) fn unread(on: Vec<&VmView>, scene: &Scene) -> Vec<Against> {
    let mut names: Vec<String> = on.into_iter().filter(|vm| vm.node == Fact::Absent).map(vm_name).collect();
    names.sort();
    if names.is_empty() {
        return Vec::new();
    }
    let may_be = if names.len() == 1 { "a node" } else { "nodes" };
    let against = |(rules, why): (&GuestRules, &str)| {
        let (names, cluster) = (names.join(", "), &rules.cluster);
        against(&Rule::GUEST_UNREAD, format!("{names} may be {may_be} of {cluster}, which cannot be read: {why}"))
    };
    away(scene).map(against).collect()
}

/// Two names of one cluster, one of them of the pool, where VMs are on: each of its nodes would be two.
pub(super) fn twins(on: &[&VmView], scene: &Scene) -> Vec<Against> {
    let guests = scene.near.guests.iter().filter(|_| !on.is_empty());
    let read: Vec<_> = guests.filter_map(|(name, view)| Some((name, &view.known()?.uid))).collect();
    let listed = |name: &str| scene.guests.iter().any(|rules| rules.cluster.value == name);
    let mut found = Vec::new();
    for (index, (one, uid)) in read.iter().enumerate() {
        for (other, _) in read[index + 1..].iter().filter(|(_, same)| same == uid) {
            if listed(one) || listed(other) {
                let why = format!("{one} and {other} are one cluster: the namespace kube-system of both is {uid}");
                found.push(against(&Rule::GUEST_TWINS, why));
            }
        }
    }
    found
}

/// Which clusters the guest clusters of a pool are: those that can be read.
pub(super) fn uids(guests: &[GuestRules], seen: &BTreeMap<String, Fact<GuestView>>) -> BTreeMap<String, String> {
    let uid = |name: &String| seen.get(name).and_then(Fact::known).map(|view| view.uid.clone());
    guests.iter().filter_map(|rules| Some((rules.cluster.value.clone(), uid(&rules.cluster.value)?))).collect()
}

/// Guest clusters that are others than when the plan was made, in words: which VMs are nodes is not known then.
pub(super) fn exchanged(planned: &BTreeMap<String, String>, seen: &BTreeMap<String, Fact<GuestView>>) -> Vec<String> {
    let other = |(name, uid): (&String, &String)| {
        let now = &seen.get(name)?.known()?.uid;
        (now != uid).then(|| {
            format!(
                "{name} is another cluster than when the plan was made: its namespace kube-system was {uid}, and is \
                 {now}; look at the context and server of its kubeconfig"
            )
        })
    };
    planned.iter().filter_map(other).collect()
}

/// The guest clusters of the pool that cannot be read, and why.
fn away<'a>(scene: &'a Scene) -> impl Iterator<Item = (&'a GuestRules, &'a str)> {
    scene.guests.iter().filter_map(|rules| match scene.near.guests.get(&rules.cluster.value) {
        Some(Fact::Known(_)) => None,
        Some(Fact::Unknown { why }) => Some((rules, why.as_str())),
        Some(Fact::Absent) | None => Some((rules, "it was not asked")),
    })
}

/// Whether the VM may be a node of a cluster that cannot be read.
pub(super) fn is_untold(vm: &VmView, scene: &Scene) -> bool {
    vm.node == Fact::Absent && away(scene).next().is_some()
}

/// What is against this VM being stopped. What somebody accepted when the plan was made is not.
pub(super) fn stopped(vm: &VmView, scene: &Scene) -> Vec<Against> {
    let name = vm_name(vm);
    match &vm.node {
        // Said already.
        Fact::Unknown { .. } => Vec::new(),
        Fact::Absent => unidentified(vm, scene.guests.iter(), scene),
        Fact::Known(node) => of_node(&name, node, scene),
    }
}

/// The rules that somebody may accept, with the nodes of the host that they are about.
pub(super) fn acceptable(view: &HostView) -> BTreeMap<String, Vec<NodeRef>> {
    let nodes = view.vms.known().into_iter().flatten().filter_map(|vm| vm.node.known());
    let mut found: BTreeMap<String, Vec<NodeRef>> = BTreeMap::new();
    for node in nodes {
        for (rule, _) in irregular(node) {
            found.entry(rule.id.to_owned()).or_default().push(node.node.clone());
        }
    }
    found
}

fn against(rule: &'static Rule, why: String) -> Against {
    Against { rule, why, seen: Vec::new() }
}

/// A VM that none of the selectors takes may be a node of a cluster that one of them names.
pub(super) fn unselected(vm: &VmView, selectors: &[At<VmSelector>], scene: &Scene) -> Vec<Against> {
    if vm.node != Fact::Absent {
        return Vec::new();
    }
    let names = |rules: &&GuestRules| {
        selectors.iter().any(|of| matches!(&of.value, VmSelector::Guest(name) if *name == rules.cluster.value))
    };
    let mut found = unidentified(vm, scene.guests.iter().filter(names), scene);
    for against in &mut found {
        against.why.push_str("; as long as that is so, no `guest` selects it");
    }
    found
}

/// A VM that is no node may be one of these clusters whose machine is not known, or one of its name.
fn unidentified<'a>(vm: &VmView, clusters: impl Iterator<Item = &'a GuestRules>, scene: &Scene) -> Vec<Against> {
    let name = vm_name(vm);
    let mut found = Vec::new();
    for rules in clusters {
        let Some(view) = scene.near.guests.get(&rules.cluster.value).and_then(Fact::known) else { continue };
        if !view.unidentified.is_empty() {
            let (nodes, seen): (Vec<&str>, Vec<String>) =
                view.unidentified.iter().map(|(node, why)| (node.as_str(), format!("{node}: {why}"))).unzip();
            let run = if nodes.len() == 1 { "runs" } else { "run" };
            let why =
                format!("{name} may be a node of {}: where {} {run} is not known", rules.cluster, nodes.join(", "));
            found.push(Against { seen, ..against(&Rule::NODE_UNIDENTIFIED, why) });
        }
        if let Some(node) = view.elsewhere.iter().find(|node| is_named(vm, node)) {
            let why = format!(
                "{name} has the name of the node {node} of {}, which names a machine that no VM here is",
                rules.cluster
            );
            found.push(against(&Rule::NODE_IDENTITY, why));
        }
    }
    found
}

/// Whether a VM has the name of a node, with or without the domain.
fn is_named(vm: &VmView, node: &str) -> bool {
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    vm.name.known().is_some_and(|name| short(name) == short(node))
}

/// The mark of another run, of whatever age.
pub(super) fn marked(name: &str, node: &NodeView, scene: &Scene) -> Option<Against> {
    if scene.ours.iter().any(|own| own.node == node.node) {
        return None;
    }
    let why = match node.marked() {
        Fact::Absent => return None,
        Fact::Known(mark) => format!("run {} has marked it: {} since {:.0}", mark.run, mark.phase, mark.since),
        Fact::Unknown { why } => why,
    };
    Some(against(&Rule::NODE_MARKED, format!("{name}, the node {}: {why}", node.node)))
}

fn of_node(name: &str, node: &NodeView, scene: &Scene) -> Vec<Against> {
    let label = format!("{name}, the node {}", node.node);
    let mut found = Vec::new();
    if !scene.guests.iter().any(|rules| rules.cluster.value == node.node.cluster) {
        let why = format!("{label}: the pool does not list this guest cluster, so it would be stopped without a drain");
        found.push(against(&Rule::GUEST_NOT_LISTED, why));
    }
    if node.deleting {
        found.push(against(&Rule::NODE_DELETING, format!("{label}: it is being deleted")));
    }
    match &node.boot_id {
        Fact::Known(_) => {}
        Fact::Absent => found.push(against(&Rule::NODE_IDENTITY, format!("{label}: its kubelet tells no boot id"))),
        Fact::Unknown { why } => found.push(against(&Rule::NODE_IDENTITY, format!("{label}: its boot id: {why}"))),
    }
    let accepted = |rule: &Rule| scene.accepted.get(rule.id).is_some_and(|nodes| nodes.contains(&node.node));
    // A node that carries our mark is not Ready once its VM is off.
    let ours = scene.ours.iter().any(|own| own.node == node.node);
    for (rule, why) in irregular(node).into_iter().filter(|(rule, _)| !ours && !accepted(rule)) {
        found.push(against(rule, format!("{label}: {why}")));
    }
    found
}

/// What somebody may accept of a node whose VM is stopped.
fn irregular(node: &NodeView) -> Vec<(&'static Rule, String)> {
    let mut found = Vec::new();
    match &node.machine {
        Fact::Absent => {}
        Fact::Known(machine) => {
            let why = format!("the Machine {machine} of Cluster API owns it, and would start or replace it");
            found.push((&Rule::NODE_OWNED, why));
        }
        Fact::Unknown { why } => found.push((&Rule::NODE_OWNED, format!("whether a Machine owns it: {why}"))),
    }
    match &node.ready {
        Fact::Known(true) => {}
        Fact::Known(false) => found.push((&Rule::NODE_NOT_READY, "it is not Ready".to_owned())),
        Fact::Absent => found.push((&Rule::NODE_NOT_READY, "its kubelet says nothing of Ready".to_owned())),
        Fact::Unknown { why } => found.push((&Rule::NODE_NOT_READY, format!("whether it is Ready: {why}"))),
    }
    found
}
