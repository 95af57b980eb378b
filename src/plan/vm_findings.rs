//! Findings on the VMs of a host that is to be closed.

use std::collections::BTreeMap;

use super::after::After;
use super::around::Near;
use super::blocks::{own_vms, powered_on_vms, vm_label};
use super::sheet::Sheet;
use super::vms::{Against, Fates, Scene, fates, has_gpu, suspended};
use super::{Fate, HostTarget, VmFate, drs, node_findings};
use crate::model::{Fact, HostView, MoRef, PowerState, Rule, counted};

/// The rules that need the VMs that are powered on. What cannot be read of one may be each of them.
const ON_RULES: &[&Rule] = &[
    &Rule::VM_DIRECT_PATH,
    &Rule::VM_WOULD_BE_MOVED,
    &Rule::VM_NO_EVACUATION,
    &Rule::VM_WOULD_NOT_START,
    &Rule::VM_OWNED,
    &Rule::VM_NO_TOOLS,
    &Rule::VM_POWERED_OFF,
];

/// The rules that are about nodes.
const NODE_RULES: &[&Rule] = &[
    &Rule::GUEST_UNREAD,
    &Rule::GUEST_NOT_LISTED,
    &Rule::GUEST_TWINS,
    &Rule::NODE_IDENTITY,
    &Rule::NODE_UNIDENTIFIED,
    &Rule::NODE_OWNED,
    &Rule::NODE_NOT_READY,
    &Rule::NODE_DELETING,
    &Rule::NODE_MARKED,
];

/// The rules that need the list of VMs.
const VM_RULES: &[&Rule] = &[&Rule::HOST_UNREADABLE, &Rule::HOST_SUSPENDED_VM, &Rule::HOST_OFF_VM, &Rule::GPU_IN_USE];

/// Findings on VMs, for a change that closes the host, and what becomes of those that are powered on.
/// Without a target every VM with a GPU counts as one that would not start.
pub(super) fn judge(sheet: &mut Sheet, view: &HostView, target: Option<&HostTarget>, near: Near) -> Fates {
    let rules: Vec<&Rule> = VM_RULES.iter().chain(ON_RULES).chain(NODE_RULES).copied().collect();
    unread(sheet, view, &near);
    let accepted = BTreeMap::new();
    let (rules_of, guests) = (&sheet.pool.vms, sheet.pool.guests.as_slice());
    let scene = Scene {
        rules: rules_of,
        target,
        view,
        near: near.clone(),
        stopped: &[],
        guests,
        ours: &[],
        accepted: &accepted,
    };
    let Some(mut made) = sheet.take(&rules, fates(&scene)) else { return Fates::default() };
    for gap in std::mem::take(&mut made.untold) {
        node_findings::untold(sheet, &gap);
    }
    refusals(sheet, std::mem::take(&mut made.against));
    for gap in &made.gaps {
        sheet.unread(ON_RULES, gap);
    }
    left_off(sheet, &made.fates);
    node_findings::judge(sheet, view, target, &near, &made.fates);
    idle(sheet, view, target);
    in_use(sheet, view);
    made
}

/// What DRS and HA heed when VMs move, and no call of vim25 that is used here tells.
fn unread(sheet: &mut Sheet, view: &HostView, near: &Near) {
    if powered_on_vms(view).is_ok_and(|vms| vms.is_empty()) {
        return;
    }
    let message =
        "compute policies and rules of affinity are not read: they may keep a VM from moving, or have it powered off";
    let mut finding = sheet.here(&Rule::VM_UNREAD, message);
    finding.evidence = near.cluster.known().map(|cluster| drs::unread(cluster)).unwrap_or_default();
    sheet.add(finding.hint("where that happens, closing the host is given up at its deadline, with what DRS says"));
}

/// One finding for each rule, with a line for each VM; of clusters that cannot be read one for each of them.
fn refusals(sheet: &mut Sheet, against: Vec<Against>) {
    let (away, against): (Vec<Against>, Vec<Against>) =
        against.into_iter().partition(|one| *one.rule == Rule::GUEST_UNREAD);
    for one in away {
        sheet.add(sheet.here(one.rule, one.why));
    }
    for rule in ON_RULES.iter().chain(NODE_RULES).copied() {
        let of_rule: Vec<&Against> = against.iter().filter(|one| one.rule == rule).collect();
        let Some(first) = of_rule.first() else { continue };
        let message = match of_rule.len() {
            1 => first.why.clone(),
            more => format!("{}, and {} more", first.why, counted(more - 1, "VM")),
        };
        let mut finding = sheet.here(rule, message);
        if of_rule.len() > 1 {
            finding.evidence.extend(of_rule.iter().map(|one| one.why.clone()));
        }
        for line in of_rule.iter().flat_map(|one| &one.seen) {
            if !finding.evidence.contains(line) {
                finding.evidence.push(line.clone());
            }
        }
        sheet.add(match hint(rule) {
            Some(hint) => finding.hint(hint),
            None => finding,
        });
    }
}

/// What to do, nearer than the rule says.
fn hint(rule: &Rule) -> Option<&'static str> {
    Some(match rule.id {
        id if id == Rule::VM_DIRECT_PATH.id => "stop it, or let `vms.mayStop` select it",
        id if id == Rule::VM_WOULD_BE_MOVED.id => "let `vms.mayMove` select it, or move or stop it before",
        id if id == Rule::VM_NO_EVACUATION.id => {
            "make it movable, move it by hand, or let `vms.mayStop` select it; then plan again"
        }
        id if id == Rule::VM_WOULD_NOT_START.id => {
            "give it a GPU device of the new mode while it is off, or leave it off with `vms.onMismatch: leaveOff`"
        }
        id if id == Rule::VM_OWNED.id => "have its owner stop it, then plan again",
        id if id == Rule::VM_NO_TOOLS.id => "start VMware Tools in the guest, or stop it by hand",
        id if id == Rule::VM_POWERED_OFF.id => "let `vms.mayStop` select it, or take the setting off the VM",
        _ => return None,
    })
}

/// VMs that are stopped for good.
fn left_off(sheet: &mut Sheet, fates: &[VmFate]) {
    let left: Vec<String> = fates
        .iter()
        .filter_map(|fate| match &fate.fate {
            Fate::LeftOff { why } => Some(format!("{}: {why}", fate.name)),
            Fate::Moves { .. } | Fate::Stops { .. } => None,
        })
        .collect();
    if !left.is_empty() {
        let message = format!("{} will be stopped and stay off", counted(left.len(), "VM"));
        let mut finding = sheet.here(&Rule::VM_LEFT_OFF, message);
        finding.evidence = left;
        sheet.add(finding.hint("give them a GPU device of the new mode afterwards"));
    }
}

/// VMs that are off or suspended.
fn idle(sheet: &mut Sheet, view: &HostView, target: Option<&HostTarget>) {
    let Some(suspended) = sheet.take(&[&Rule::HOST_SUSPENDED_VM], suspended(view)) else { return };
    if !suspended.is_empty() {
        let message =
            format!("suspended VMs have a GPU, which they hold until they are resumed: {}", suspended.join(", "));
        sheet.add(sheet.here(&Rule::HOST_SUSPENDED_VM, message).hint("resume and stop them, then plan again"));
    }
    let Some(vms) = sheet.take(&[&Rule::HOST_OFF_VM], own_vms(view)) else { return };
    // A power state that could not be read may be off.
    let off = vms
        .filter(|vm| has_gpu(vm))
        .filter(|vm| !matches!(vm.power, Fact::Known(PowerState::On | PowerState::Suspended)));
    let stranded: Vec<String> = off
        .filter_map(|vm| {
            let why = match target {
                Some(target) => After::of(target, view).misfit(vm)?,
                None => "it cannot be told what the GPUs will be".to_owned(),
            };
            Some(format!("{}: {why}", vm_label(vm)))
        })
        .collect();
    if !stranded.is_empty() {
        let message = format!("{} would not start on this host afterwards", counted(stranded.len(), "powered-off VM"));
        let mut finding = sheet.here(&Rule::HOST_OFF_VM, message);
        finding.evidence = stranded;
        sheet.add(finding.hint("give them a GPU device of the new mode, or start them on another host"));
    }
}

/// GPUs that are used by a VM that the host does not show as powered on: nobody knows what becomes of
/// it.
fn in_use(sheet: &mut Sheet, view: &HostView) {
    let on: Vec<&MoRef> = powered_on_vms(view).unwrap_or_default().into_iter().map(|vm| &vm.moref).collect();
    let used: Vec<String> = view
        .graphics_active
        .known()
        .into_iter()
        .flatten()
        .filter_map(|state| {
            let strange: Vec<String> =
                state.vms.iter().filter(|vm| !on.contains(vm)).map(ToString::to_string).collect();
            (!strange.is_empty()).then(|| format!("{}: {}", state.address, strange.join(", ")))
        })
        .collect();
    if !used.is_empty() {
        let message =
            format!("{} in use by a VM that the host does not show as powered on", counted(used.len(), "GPU"));
        let mut finding = sheet.here(&Rule::GPU_IN_USE, message);
        finding.evidence = used;
        sheet.add(finding.hint("see in vCenter what uses it, then plan again"));
    }
}
