//! The steps on the nodes of a host, around those on its VMs, from whatever was done already.
//!
//! ```text
//!   CordonNode*  DrainNode*  │ StartClosing StopVm* EnterMaintenance │ AwaitNode(moved)*   … the host …
//!   ExitMaintenance  StartVm(nodes)*  AwaitNode* ValidateNode* UncordonNode*  StartVm(others)*
//! ```

use super::work::Vms;
use super::{Fate, HostPlan, Memory, NodeEnd, NodeMemory, OurMaintenance, Step, VmFate};
use crate::model::{Fact, GuestRules, HostView, MoRef, NodeRef, PowerState};

/// What the steps on nodes are made from.
pub(super) struct Nodes<'a> {
    /// The guest clusters of the pool.
    pub rules: &'a [GuestRules],
    /// Nodes that carry our mark.
    pub ours: &'a [NodeMemory],
}

/// A node at the end of a visit.
struct Returning<'a> {
    node: &'a NodeRef,
    vm: &'a MoRef,
    /// Its VM was stopped, or will be.
    stopped: bool,
    /// Its VM stays off.
    left_off: bool,
}

impl<'a> Nodes<'a> {
    /// Those of a host and a visit of it.
    pub fn of(host: &'a HostPlan, memory: &'a Memory) -> Self {
        Self { rules: &host.guests, ours: &memory.nodes }
    }

    /// Says of each fate which node it is about, where that is known by our mark alone.
    pub fn remember(&self, fates: &mut [VmFate]) {
        for fate in fates.iter_mut().filter(|fate| fate.node.is_none()) {
            fate.node = self.ours.iter().find(|own| own.vm == fate.vm).map(|own| own.node.clone());
        }
    }

    /// Adds the steps on nodes before the host is closed, and after those VMs that move have left. `on`: whether a VM
    /// still runs.
    pub fn close(&self, fates: &[VmFate], on: impl Fn(&MoRef) -> bool, vms: &mut Vms) {
        let stopping = || {
            let stopped = fates.iter().filter(|fate| fate.fate.is_stopped() && on(&fate.vm));
            stopped.filter_map(|fate| Some((fate.node.as_ref()?, &fate.vm)))
        };
        let fresh = |node: &NodeRef| !self.ours.iter().any(|own| own.node == *node);
        let cordons = stopping().filter(|(node, _)| fresh(node));
        vms.drains.extend(cordons.map(|(node, vm)| Step::CordonNode { node: node.clone(), vm: vm.clone() }));
        // Looked at again where it was done: what is to be stopped has to be empty now.
        vms.drains.extend(stopping().map(|(node, vm)| Step::DrainNode {
            node: node.clone(),
            vm: vm.clone(),
            timeout_s: self.rule(node).map_or(0, |rules| rules.drain_timeout_s),
        }));
        self.moved(fates, vms);
    }

    /// Adds the look at each node whose VM moves while it runs. Of a guest cluster that the pool does not list
    /// nothing is expected.
    pub fn moved(&self, fates: &[VmFate], vms: &mut Vms) {
        let moving = fates.iter().filter(|fate| matches!(fate.fate, Fate::Moves { .. }));
        let nodes = moving.filter_map(|fate| Some((fate.node.as_ref()?, &fate.vm)));
        let listed = nodes.filter(|(node, _)| self.rule(node).is_some());
        vms.moved.extend(listed.map(|(node, vm)| Step::AwaitNode {
            node: node.clone(),
            vm: vm.clone(),
            stopped: false,
        }));
    }

    /// Adds the steps on nodes once the host is open again.
    pub fn open(&self, fates: &[VmFate], memory: &Memory, view: &HostView, vms: &mut Vms) {
        let is_node = |vm: &MoRef| {
            let seen = fates.iter().any(|fate| fate.vm == *vm && fate.node.is_some());
            seen || self.ours.iter().any(|own| own.vm == *vm)
        };
        let (first, last): (Vec<Step>, Vec<Step>) =
            vms.starts.drain(..).partition(|step| matches!(step, Step::StartVm { vm, .. } if is_node(vm)));
        vms.starts = first;
        let starts: Vec<&MoRef> = vms.starts.iter().filter_map(|step| started(step)).collect();
        let is_new = |node: &NodeRef| {
            vms.drains.iter().any(|step| matches!(step, Step::CordonNode { node: other, .. } if other == node))
        };
        let cordoned = |node: &NodeRef| is_new(node) || self.ours.iter().any(|own| own.node == *node);
        let returning =
            self.returning(fates.iter().filter(|fate| fate.node.as_ref().is_some_and(cordoned)), &starts, memory, view);
        let mut steps = Vec::new();
        let back = || returning.iter().filter(|one| !one.left_off);
        steps.extend(back().map(|one| Step::AwaitNode {
            node: one.node.clone(),
            vm: one.vm.clone(),
            stopped: one.stopped,
        }));
        let rules = |node: &NodeRef| self.rule(node).filter(|rules| !rules.validate.is_empty());
        let validated = back().filter_map(|one| Some((one.node, rules(one.node)?)));
        steps.extend(
            validated.map(|(node, rules)| Step::ValidateNode { node: node.clone(), timeout_s: rules.validation_s() }),
        );
        steps.extend(returning.iter().map(|one| Step::UncordonNode {
            node: one.node.clone(),
            leave: if one.left_off { NodeEnd::LeftOff } else { NodeEnd::Open },
        }));
        vms.starts.extend(steps.into_iter().chain(last));
    }

    /// Nodes that are cordoned by us then: those of VMs that are stopped, and all that carry our mark. One that
    /// carries it no more was released, or somebody else sees to it.
    fn returning<'b>(
        &'b self,
        cordoned: impl Iterator<Item = &'b VmFate>,
        starts: &[&MoRef],
        memory: &Memory,
        view: &HostView,
    ) -> Vec<Returning<'b>> {
        let mut found: Vec<Returning> = Vec::new();
        for fate in cordoned.filter(|fate| fate.fate.is_stopped()) {
            let Some(node) = &fate.node else { continue };
            // What was approved to stay off is not started, though it would fit now.
            let left_off = !starts.contains(&&fate.vm);
            found.push(Returning { node, vm: &fate.vm, stopped: true, left_off });
        }
        for NodeMemory { node, vm, .. } in self.ours {
            if found.iter().any(|one| one.node == node) {
                continue;
            }
            let here = view.vms.known().into_iter().flatten().find(|found| found.moref == *vm);
            // A VM that is still here after the host was closed was off meanwhile.
            let was_closed = memory.maintenance >= OurMaintenance::Closed;
            let stopped = memory.vms.contains(vm) || (here.is_some() && was_closed);
            let left_off = here.is_some_and(|vm| vm.power == Fact::Known(PowerState::Off));
            found.push(Returning { node, vm, stopped, left_off });
        }
        found.sort_by(|a, b| a.node.cmp(b.node));
        found
    }

    fn rule(&self, node: &NodeRef) -> Option<&GuestRules> {
        self.rules.iter().find(|rules| rules.cluster.value == node.cluster)
    }
}

fn started(step: &Step) -> Option<&MoRef> {
    match step {
        Step::StartVm { vm, .. } => Some(vm),
        _ => None,
    }
}
