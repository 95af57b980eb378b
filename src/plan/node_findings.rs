//! What is good to know of the nodes of a host that is to be closed.

use super::around::Near;
use super::blocks::vm_name;
use super::device::Gap;
use super::fleet::{nodes_out, offers_less};
use super::sheet::Sheet;
use super::{Fate, HostTarget, VmFate};
use crate::model::{DesiredPool, Fact, Finding, GraphicsType, HostView, Mode, NodeView, Observed, Rule, are, counted};

/// Findings on the nodes that these fates are about.
pub(super) fn judge(sheet: &mut Sheet, view: &HostView, target: Option<&HostTarget>, near: &Near, fates: &[VmFate]) {
    elsewhere(sheet, near, fates);
    let node = |fate: &VmFate| {
        let vm = view.vms.known()?.iter().find(|vm| vm.moref == fate.vm)?;
        vm.node.known().map(|node| node.as_ref().clone())
    };
    let nodes: Vec<(&VmFate, NodeView)> = fates.iter().filter_map(|fate| Some((fate, node(fate)?))).collect();
    let stopped: Vec<&NodeView> =
        nodes.iter().filter(|(fate, _)| fate.fate.is_stopped()).map(|(_, node)| node).collect();
    let names = |of: &[&NodeView]| of.iter().map(|node| node.node.to_string()).collect::<Vec<_>>().join(", ");
    let cordoned: Vec<&NodeView> = stopped.iter().copied().filter(|node| node.unschedulable).collect();
    if !cordoned.is_empty() {
        let message = format!("cordoned before, and left so at the end: {}", names(&cordoned));
        sheet.add(sheet.here(&Rule::NODE_CORDONED, message));
    }
    let left: Vec<&NodeView> = nodes.iter().map(|(_, node)| node).filter(|node| node.left_off).collect();
    if !left.is_empty() {
        let message = format!("an earlier run left the VMs of these nodes off: {}", names(&left));
        sheet.add(sheet.here(&Rule::NODE_LEFT_OFF, message));
    }
    sick(sheet, &stopped);
    let on_gpu: Vec<&(&VmFate, NodeView)> = nodes.iter().filter(|(fate, _)| !fate.gpus.is_empty()).collect();
    if !on_gpu.is_empty() && target.is_some_and(|target| changes_class(target, view)) {
        let message = format!(
            "the GPUs change between passthrough and vGPU, so the guest driver's class changes, too, for {}",
            counted(on_gpu.len(), "node")
        );
        let mut finding = sheet.here(&Rule::NODE_DRIVER, message);
        finding.evidence = on_gpu.iter().map(|(fate, node)| format!("{}: {}", node.node, end(fate))).collect();
        sheet.add(finding);
    }
}

/// What a VM is that is stopped without a drain rests on what nodes say of their machines: where one says what
/// nobody here can compare, people see whom to ask.
fn elsewhere(sheet: &mut Sheet, near: &Near, fates: &[VmFate]) {
    let plain: Vec<&str> = fates
        .iter()
        .filter(|fate| fate.fate.is_stopped() && fate.node.is_none())
        .map(|fate| fate.name.as_str())
        .collect();
    if plain.is_empty() {
        return;
    }
    let mut evidence: Vec<String> = Vec::new();
    for rules in &sheet.pool.guests {
        match near.guests.get(&rules.cluster.value) {
            Some(Fact::Known(view)) if view.elsewhere.is_empty() => {}
            Some(Fact::Known(view)) => {
                let named = view.elsewhere.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
                let more = match view.elsewhere.len().saturating_sub(NAMED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                evidence.push(format!("{}: {named}{more}", rules.cluster));
            }
            Some(Fact::Unknown { why }) => evidence.push(format!("{}: {why}", rules.cluster)),
            Some(Fact::Absent) | None => evidence.push(format!("{}: it was not asked", rules.cluster)),
        }
    }
    if !evidence.is_empty() {
        let vms = format!("{} {}", plain.join(", "), are(plain.len()));
        let message =
            format!("{vms} taken for no node and stopped without a drain, though not every node was found on a VM");
        let mut finding = sheet.here(&Rule::NODE_ELSEWHERE, message);
        finding.evidence = evidence;
        sheet.add(finding);
    }
}

/// How many nodes of a cluster are named: most of a large cluster run elsewhere, and rightly so.
const NAMED: usize = 5;

/// Where it cannot be told which node a VM is, nothing of these can be.
pub(super) fn untold(sheet: &mut Sheet, gap: &Gap) {
    let rules = [
        &Rule::NODE_IDENTITY,
        &Rule::NODE_CORDONED,
        &Rule::NODE_LEFT_OFF,
        &Rule::NODE_SICK,
        &Rule::NODE_DRIVER,
        &Rule::NODE_ELSEWHERE,
    ];
    sheet.unread(&rules, gap);
}

/// How the node of a VM ends.
fn end(fate: &VmFate) -> &'static str {
    match fate.fate {
        Fate::Moves { .. } => "its VM moves to GPUs as they are now",
        Fate::Stops { .. } => "it has to pass its gate before it is uncordoned",
        Fate::LeftOff { .. } => "its VM stays off, and the node cordoned",
    }
}

/// Nodes that offer less than expected before anything was done.
fn sick(sheet: &mut Sheet, stopped: &[&NodeView]) {
    let short = |node: &&NodeView| {
        let rules = sheet.pool.guests.iter().find(|rules| rules.cluster.value == node.node.cluster)?;
        Some(format!("{}: {}", node.node, offers_less(node, rules)?))
    };
    let lines: Vec<String> = stopped.iter().filter_map(short).collect();
    if !lines.is_empty() {
        let message = format!("{} less than the pool expects, before anything is done", offers(lines.len()));
        let mut finding = sheet.here(&Rule::NODE_SICK, message);
        finding.evidence = lines;
        sheet.add(finding);
    }
}

/// Nodes that are out of service on a host that is as wished: nothing else would be said of it.
pub(super) fn out(sheet: &mut Sheet, view: &HostView, near: &Near) {
    if sheet.pool.guests.is_empty() {
        return;
    }
    let gaps = untold_on(sheet, view, near);
    let nodes = nodes_out(view, &sheet.pool.guests, true);
    if !nodes.is_empty() {
        let names: Vec<String> = nodes.iter().map(|out| out.node.to_string()).collect();
        let give = if nodes.len() == 1 { "gives" } else { "give" };
        let message = format!("{} {give} no service, or less than expected", names.join(", "));
        let mut finding = sheet.here(&Rule::NODE_OUT, message);
        finding.evidence = nodes.iter().map(|out| format!("{} (VM {}): {}", out.node, out.vm, out.why)).collect();
        sheet.add(finding);
    }
    for gap in gaps {
        sheet.unread(&[&Rule::NODE_OUT], &gap);
    }
}

/// What keeps it from being told which nodes run on a host.
fn untold_on(sheet: &Sheet, view: &HostView, near: &Near) -> Vec<Gap> {
    let vms = match Gap::need(&view.vms, "vm") {
        Ok(vms) => vms,
        Err(gap) => return vec![gap],
    };
    let mut gaps = Vec::new();
    for vm in vms {
        if let Fact::Unknown { why } = &vm.node {
            gaps.push(Gap { what: format!("which node {} is", vm_name(vm)), why: why.clone() });
        }
    }
    if vms.iter().any(|vm| vm.node == Fact::Absent) {
        for rules in &sheet.pool.guests {
            if let Some(Fact::Unknown { why }) = near.guests.get(&rules.cluster.value) {
                gaps.push(Gap { what: format!("which VMs are nodes of {}", rules.cluster), why: why.clone() });
            }
        }
    }
    gaps
}

fn offers(nodes: usize) -> String {
    if nodes == 1 { "1 node offers".to_owned() } else { format!("{nodes} nodes offer") }
}

/// Whether a GPU changes between passthrough and vGPU: a guest has another driver then (case A27).
fn changes_class(target: &HostTarget, view: &HostView) -> bool {
    let passed = |address| {
        let states = view.passthru.known().into_iter().flatten();
        states.filter(|state| state.address == address).any(|state| state.active || state.enabled)
    };
    let shared = |address| {
        let states = view.graphics_active.known().into_iter().flatten();
        states.filter(|state| state.address == address).any(|state| state.graphics_type == GraphicsType::SharedDirect)
    };
    target.gpus.iter().any(|gpu| match gpu.mode {
        Mode::Passthrough { .. } => shared(gpu.address),
        Mode::Vgpu { .. } | Mode::MigVgpu => passed(gpu.address),
    })
}

/// Guest clusters of the site that no pool lists and that cannot be read: where they have nodes on the hosts,
/// these are taken for any other VM. Nothing is said where all hosts are `converged`.
pub(super) fn of_others(pools: &[DesiredPool], observed: &Observed, converged: bool) -> Vec<Finding> {
    let guests = pools.iter().flat_map(|pool| &pool.guests);
    let listed: Vec<&str> = guests.map(|rules| rules.cluster.value.as_str()).collect();
    let unread = observed.guests.iter().filter(|(name, _)| !converged && !listed.contains(&name.as_str()));
    unread
        .filter_map(|(name, view)| match view {
            Fact::Known(_) | Fact::Absent => None,
            Fact::Unknown { why } => {
                let message = format!("the guest cluster {name}, which no pool lists, cannot be read");
                Some(Finding::new(&Rule::GUEST_OTHER, message).seen(why.clone()))
            }
        })
        .collect()
}
