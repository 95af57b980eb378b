//! What is left to be done on a host, in the order in which it has to be done.

use super::card::Way;
use super::standing::Standing;
use crate::model::{GuestRules, MoRef, NodeRef};
use crate::plan::{Boot, NodeEnd, OurMaintenance, Step};
use crate::rollout::Compensation;

/// One thing that is left to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Todo {
    /// What a visit does, too.
    Step(Step),
    /// End an entering of maintenance mode that may still run.
    CancelEntering,
    /// See to a VM that was asked to shut down and did not, as far as anybody has seen.
    SeeToVm(MoRef),
    /// Leave a node whose VM was left alone as it was.
    ReleaseNode(NodeRef),
    /// Stop the SSH service.
    StopSsh,
    /// Take our marker off the host.
    Unmark,
}

/// Which way the host goes: where modes may be written there is only forward.
pub(super) fn way(standing: &Standing<'_>) -> Way {
    if standing.changed { Way::Forward } else { Way::Back }
}

/// All that is left to be done, to the end.
pub(super) fn todo(standing: &Standing<'_>) -> Vec<Todo> {
    let way = way(standing);
    let mut all: Vec<Todo> = match way {
        Way::Forward => {
            let due = standing.to_do().iter().filter(|step| standing.is_due(step));
            due.cloned().map(Todo::Step).collect()
        }
        Way::Back => Vec::new(),
    };
    if may_enter(standing) {
        all.push(Todo::CancelEntering);
    }
    if is_closed(standing) && !has(&all, |step| matches!(step, Step::ExitMaintenance)) {
        all.push(Todo::Step(Step::ExitMaintenance));
        if way == Way::Forward && !has(&all, |step| matches!(step, Step::VerifyHost)) {
            all.push(Todo::Step(Step::VerifyHost));
        }
    }
    for vm in standing.vms() {
        if way == Way::Back && standing.may_go_off(vm) {
            all.push(Todo::SeeToVm(vm.clone()));
            continue;
        }
        let starts = has(&all, |step| matches!(step, Step::StartVm { vm: of, .. } if of == vm));
        let stays_off = way == Way::Forward && standing.is_left_off(vm);
        if !starts && !stays_off {
            let name = standing.vm_name(vm).unwrap_or(&vm.id).to_owned();
            all.push(Todo::Step(Step::StartVm { vm: vm.clone(), name, gpus: Vec::new() }));
        }
    }
    for node in standing.nodes() {
        nodes(standing, way, node, &mut all);
    }
    if standing.has(&Compensation::Monitor) && !has(&all, |step| matches!(step, Step::StartMonitor)) {
        all.push(Todo::Step(Step::StartMonitor));
    }
    if standing.has(&Compensation::Ssh) {
        all.push(Todo::StopSsh);
    }
    if standing.is_marked() {
        all.push(Todo::Unmark);
    }
    // Stable: what is of one rank stays as it was planned.
    all.sort_by_key(|todo| rank(standing, todo));
    all
}

fn nodes(standing: &Standing<'_>, way: Way, node: &NodeRef, all: &mut Vec<Todo>) {
    let of = |step: &Step| step.works_on() == Some(node);
    if way == Way::Back && standing.boot(node) == Boot::Same {
        all.push(Todo::ReleaseNode(node.clone()));
        return;
    }
    if way == Way::Forward && standing.stays_off(node) {
        if !has(all, |step| of(step) && matches!(step, Step::UncordonNode { .. })) {
            all.push(Todo::Step(Step::UncordonNode { node: node.clone(), leave: NodeEnd::LeftOff }));
        }
        return;
    }
    let vm = standing.vm_of(node).cloned().unwrap_or_else(unknown_vm);
    let seen_to = Todo::SeeToVm(vm.clone());
    if way == Way::Back && standing.may_go_off(&vm) && !all.contains(&seen_to) {
        all.push(seen_to);
    }
    let stopped = standing.boot(node) != Boot::Same;
    for step in [
        Step::AwaitNode { node: node.clone(), vm, stopped },
        Step::ValidateNode { node: node.clone(), timeout_s: standing.rules(node).map_or(0, GuestRules::validation_s) },
        Step::UncordonNode { node: node.clone(), leave: NodeEnd::Open },
    ] {
        let same = |known: &Step| of(known) && std::mem::discriminant(known) == std::mem::discriminant(&step);
        if !has(all, same) {
            all.push(Todo::Step(step));
        }
    }
}

/// In the place of the VM of a node of which only the marker tells.
fn unknown_vm() -> MoRef {
    MoRef::new("VirtualMachine", "?")
}

fn has(all: &[Todo], test: impl Fn(&Step) -> bool) -> bool {
    all.iter().any(|todo| matches!(todo, Todo::Step(step) if test(step)))
}

/// Whether an entering of maintenance mode that is ours may still run: nobody has seen its end.
fn may_enter(standing: &Standing<'_>) -> bool {
    let asked = standing.memory.maintenance == OurMaintenance::Asked;
    let ours = asked || standing.host.visit.is_none() && standing.has(&Compensation::Maintenance);
    ours && !standing.changed && standing.left_as.and_then(|left| left.maintenance) != Some(true)
}

/// Whether the host is to be taken out of maintenance mode, or nobody knows that it is not.
fn is_closed(standing: &Standing<'_>) -> bool {
    let seen = standing.left_as.and_then(|left| left.maintenance);
    let stays = standing.plan.is_some_and(|plan| plan.stays_in_maintenance);
    match seen {
        // An entering that still ran then may have come to its end.
        Some(false) => may_enter(standing),
        Some(true) => standing.has(&Compensation::Maintenance) || standing.changed && !stays,
        None => standing.has(&Compensation::Maintenance),
    }
}

/// The order of a visit (DESIGN §6), and what is put back after it.
fn rank(standing: &Standing<'_>, todo: &Todo) -> u8 {
    match todo {
        Todo::CancelEntering => 0,
        Todo::Step(step) => match step {
            Step::StartShell => 1,
            Step::CordonNode { .. } => 2,
            Step::DrainNode { .. } => 3,
            Step::StartClosing { .. } => 4,
            Step::StopVm { .. } => 5,
            Step::EnterMaintenance { .. } => 6,
            // A node whose VM moved away: looked at before anything is written.
            Step::AwaitNode { node, stopped: false, .. } if !standing.nodes().any(|of| of == node) => 7,
            Step::SetPassthrough { .. }
            | Step::SetGraphics { .. }
            | Step::StopMonitor
            | Step::SetMig { .. }
            | Step::StartMonitor
            | Step::Reboot { .. } => 8,
            Step::VerifyHost => 9,
            Step::ExitMaintenance => 10,
            Step::StartVm { vm, .. } if standing.is_node(vm) => 11,
            Step::AwaitNode { .. } => 12,
            Step::ValidateNode { .. } => 13,
            Step::UncordonNode { .. } => 14,
            Step::StartVm { .. } => 15,
        },
        Todo::SeeToVm(vm) if standing.is_node(vm) => 11,
        Todo::SeeToVm(_) => 15,
        Todo::ReleaseNode(_) => 14,
        Todo::StopSsh => 16,
        Todo::Unmark => 17,
    }
}
