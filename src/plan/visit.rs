//! The visit of one host: its steps, made from what is there now and what this visit remembers.

use serde::{Deserialize, Serialize};

use super::blocks::{TaskKind, busy, not_connected, own_vms, powered_on, running};
use super::device::{Devices, Gap, addresses};
use super::gate::{device_digest, unreadable_parity};
use super::group::grouped;
use super::need::Need;
use super::node_steps::Nodes;
use super::slow::changes;
use super::vms::{Fates, Scene, fates, restarts, suspended};
use super::work::{Vms, Work, start};
use super::{Around, Bounds, Fate, HostPlan, Impact, Memory, OurMaintenance, Reboots, Step, VmFate, node_check};
use crate::model::{Connection, Fact, HostRecord, HostView, MoRef, PciAddress, PowerState, counted};

/// One host's steps, made from what is there now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Visit {
    /// How much it disturbs.
    pub impact: Impact,
    /// The steps that are left, in order. Those after a [`Step::Reboot`] are an outlook: after the
    /// reboot, done or found done, the host is read again and the visit planned anew.
    pub steps: Vec<Step>,
    /// Reboots of the whole visit, done ones included.
    pub reboots: Reboots,
}

/// Why a visit is refused. The host is held; nothing more is sent to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
pub enum Refusal {
    /// The facts that the plan rests on changed.
    #[error("the host changed since the plan: expected {expected}, found {found}")]
    Stale {
        /// What the plan rests on.
        expected: String,
        /// What is there.
        found: String,
    },
    /// Something stands in the way.
    #[error("{0}")]
    Blocked(String),
    /// It would need more reboots than were approved.
    #[error("needs {}, the plan approves {most}: {why}", counted(*needed, "reboot"))]
    TooManyReboots {
        /// Reboots that would be needed, done ones included.
        needed: u32,
        /// The bound.
        most: u32,
        /// Why another one.
        why: String,
    },
    /// More VMs would be stopped or moved than were approved.
    #[error("{} would be {what}, the plan approves {most}: {}", counted(vms.len(), "VM"), vms.join(", "))]
    TooManyVms {
        /// `stopped` or `moved`.
        what: String,
        /// The VMs, in name order.
        vms: Vec<String>,
        /// The bound.
        most: u32,
    },
    /// More nodes of a guest cluster would go down than were approved.
    #[error("{} of {cluster} would go down, the plan approves {most}: {}", counted(nodes.len(), "node"), nodes.join(", "))]
    TooManyNodes {
        /// The guest cluster.
        cluster: String,
        /// The nodes, in name order.
        nodes: Vec<String>,
        /// The bound.
        most: u32,
    },
    /// A reboot changed nothing of what was pending; it is never repeated.
    #[error(
        "the reboot had no effect on {}; once that is set right and the host rebooted by hand, its visit goes on",
        grouped(pending).join("; ")
    )]
    RebootWithoutEffect {
        /// What is still pending.
        pending: Vec<String>,
    },
    /// What decides could not be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
}

impl From<Gap> for Refusal {
    fn from(gap: Gap) -> Self {
        Self::Unreadable(format!("{} ({})", gap.what, gap.why))
    }
}

/// Plans one host's visit from any mid-state, with the fates of its VMs made again from what is around
/// it now. Empty steps: nothing is left but to release it.
///
/// # Errors
/// [`Refusal`]: nothing more is sent to the host.
pub fn visit(host: &HostPlan, record: &HostRecord, memory: &Memory, around: &Around) -> Result<Visit, Refusal> {
    let view = record.view.as_ref().map_err(|fault| Refusal::Unreadable(fault.message.clone()))?;
    if let Some(step) = reboot_under_way(view, memory) {
        let reboots = Reboots { expected: memory.reboots.saturating_add(1), most: host.reboots.most, why: Vec::new() };
        return Ok(Visit { impact: Impact::Reboot, steps: vec![step], reboots });
    }
    if let Some(why) = not_connected(view) {
        return Err(Refusal::Blocked(why));
    }
    let devices = Devices::of(view)?;
    if let Err(Mismatch { expected, found }) = identity(host, view, &devices) {
        return Err(Refusal::Stale { expected, found });
    }
    if !memory.begun
        && let Some((expected, found)) = changes(&host.slow, view, &devices)?
    {
        return Err(Refusal::Stale { expected, found });
    }
    if let Some(why) = busy(view, memory)? {
        return Err(Refusal::Blocked(why));
    }
    let work = Work::of(&host.target, view, &devices, memory, host.shell)?;
    let done = memory.reboots_by(&view.boot_time);
    let (closed, ours) = maintenance(host, view, memory, &work)?;
    if let Some(asked) = memory.last_reboot.as_ref().filter(|_| !memory.written_since_reboot) {
        let pending: Vec<String> = work.unmet.iter().filter(|line| asked.pending.contains(line)).cloned().collect();
        if !pending.is_empty() && (asked.proven || asked.happened(&view.boot_time)) {
            return Err(Refusal::RebootWithoutEffect { pending });
        }
    }
    let needed = done.saturating_add(work.expected);
    if needed > host.reboots.most {
        let why = work.pending().flat_map(|lines| grouped(lines)).collect::<Vec<_>>().join("; ");
        return Err(Refusal::TooManyReboots { needed, most: host.reboots.most, why });
    }
    if closed {
        let on = powered_on(view)?;
        if !on.is_empty() {
            return Err(Refusal::Blocked(format!("VMs are powered on in maintenance mode: {}", on.join(", "))));
        }
    }
    // On a host that was opened again a VM may be off that we stopped.
    let vms = if ours || !(closed || memory.vms.is_empty() && memory.nodes.is_empty()) {
        // Somebody may use the host from the moment that it is open: what runs is not ours to judge then.
        let closes = ours && !closed && memory.maintenance != OurMaintenance::Leaving;
        vms(host, view, memory, around, (closes, closed))?
    } else {
        Vms::default()
    };
    let reboots =
        Reboots { expected: needed, most: host.reboots.most, why: work.pending().flatten().cloned().collect() };
    let impact = if ours { work.impact.max(Impact::Maintenance) } else { work.impact };
    let steps = match memory.maintenance {
        // It came out of maintenance as we asked: only the gate of the open host is left.
        OurMaintenance::Leaving if !closed => work.opened(vms),
        // Nodes that were cordoned for nothing are given back.
        _ if work.is_empty() && !ours && !memory.begun && !memory.monitor_stopped => vms.starts,
        _ => work.steps(view, closed, ours, &vms)?,
    };
    if memory.baseline.is_none() && !steps.is_empty() {
        comparable(host, view)?;
    }
    Ok(Visit { impact, steps, reboots })
}

/// What becomes of VMs now, within the bounds of the plan. `closes`: the host is going to be closed; `closed`: it is.
fn vms(
    host: &HostPlan,
    view: &HostView,
    memory: &Memory,
    around: &Around,
    (closes, closed): (bool, bool),
) -> Result<Vms, Refusal> {
    let scene = Scene {
        rules: &host.vms,
        target: Some(&host.target),
        view,
        near: around.into(),
        stopped: &memory.vms,
        guests: &host.guests,
        ours: &memory.nodes,
        accepted: &host.accepted_nodes,
    };
    let Fates { mut fates, mut starts, against, untold, gaps } =
        if closes { fates(&scene)? } else { restarts(&scene)? };
    // What was approved to stay off stays off, whatever room there is now.
    let stays_off =
        |vm: &MoRef| host.fates.iter().any(|fate| fate.vm == *vm && matches!(fate.fate, Fate::LeftOff { .. }));
    starts.retain(|vm| !stays_off(vm));
    let nodes = Nodes::of(host, memory);
    nodes.remember(&mut fates);
    let mut lost = lost(host, view, memory, around)?;
    if closes {
        let exchanged = node_check::exchanged(&host.guest_uids, &around.guests);
        if !exchanged.is_empty() {
            return Err(Refusal::Blocked(exchanged.join("; ")));
        }
        if let Some(gap) = gaps.into_iter().next() {
            return Err(gap.into());
        }
        let mut why: Vec<String> = untold.iter().map(Gap::to_string).collect();
        why.extend(against.into_iter().map(|one| one.why));
        let suspended = suspended(view)?;
        if !suspended.is_empty() {
            why.push(format!("suspended VMs have a GPU: {}", suspended.join(", ")));
        }
        if !why.is_empty() {
            return Err(Refusal::Blocked(why.join("; ")));
        }
        within(&host.bounds, &fates, lost.len())?;
    }
    let off =
        |vm: &MoRef| view.vms.known().into_iter().flatten().any(|found| found.moref == *vm && is_off(&found.power));
    let mut vms = Vms::of(&fates, &starts, off);
    vms.starts.append(&mut lost);
    if closes {
        nodes.close(&fates, |vm| !off(vm), &mut vms);
    }
    // Whoever died between a move and this look has not seen how its node took it.
    let asked = memory.maintenance == OurMaintenance::Asked;
    if closed && !memory.begun {
        nodes.moved(&host.fates, &mut vms);
    } else if closes && asked {
        let here: Vec<&MoRef> = own_vms(view)?.map(|vm| &vm.moref).collect();
        let gone = host.fates.iter().filter(|fate| !here.contains(&&fate.vm));
        nodes.moved(&gone.cloned().collect::<Vec<_>>(), &mut vms);
    }
    nodes.open(&fates, memory, view, &mut vms);
    Ok(vms)
}

fn is_off(power: &Fact<PowerState>) -> bool {
    *power == Fact::Known(PowerState::Off)
}

/// Whether the fates lie inside the bounds; `lost` VMs were stopped and are not on the host any more.
fn within(bounds: &Bounds, fates: &[VmFate], lost: usize) -> Result<(), Refusal> {
    let (stops, moves) = Bounds::counts(fates);
    let names = |stopped: bool| -> Vec<String> {
        fates.iter().filter(|fate| fate.fate.is_stopped() == stopped).map(|fate| fate.name.clone()).collect()
    };
    let lost = u32::try_from(lost).unwrap_or(u32::MAX);
    if stops.saturating_add(lost) > bounds.stops {
        return Err(Refusal::TooManyVms { what: "stopped".to_owned(), vms: names(true), most: bounds.stops });
    }
    if moves > bounds.moves {
        return Err(Refusal::TooManyVms { what: "moved".to_owned(), vms: names(false), most: bounds.moves });
    }
    for (cluster, number) in Bounds::nodes(fates) {
        let most = bounds.nodes.get(&cluster).copied().unwrap_or(0);
        if number > most {
            let down = fates.iter().filter(|fate| fate.fate.is_stopped()).filter_map(|fate| fate.node.as_ref());
            let mut nodes: Vec<String> =
                down.filter(|node| node.cluster == cluster).map(|node| node.name.clone()).collect();
            nodes.sort();
            return Err(Refusal::TooManyNodes { cluster, nodes, most });
        }
    }
    Ok(())
}

/// VMs that this visit stopped and that are not on the host any more, nor powered on elsewhere: the
/// step that should start them says so, and nothing more is done to them.
fn lost(host: &HostPlan, view: &HostView, memory: &Memory, around: &Around) -> Result<Vec<Step>, Refusal> {
    let here: Vec<&MoRef> = own_vms(view)?.map(|vm| &vm.moref).collect();
    let neighbours = around.neighbours.iter().filter_map(|record| record.view.as_ref().ok());
    let runs: Vec<&MoRef> = neighbours
        .flat_map(|view| view.vms.known().into_iter().flatten())
        .filter(|vm| vm.power == Fact::Known(PowerState::On))
        .map(|vm| &vm.moref)
        .collect();
    let gone = memory.vms.iter().filter(|vm| !here.contains(vm) && !runs.contains(vm));
    Ok(gone
        .filter_map(|vm| match host.fates.iter().find(|fate| fate.vm == *vm) {
            Some(fate) if matches!(fate.fate, Fate::LeftOff { .. }) => None,
            Some(fate) => Some(start(fate)),
            None => Some(Step::StartVm { vm: vm.clone(), name: vm.id.clone(), gpus: Vec::new() }),
        })
        .collect())
}

/// Refused if what the host gate compares cannot be read now: taken into the baseline, it could never
/// pass.
fn comparable(host: &HostPlan, view: &HostView) -> Result<(), Refusal> {
    let accepted = |name: &str| host.not_checked.iter().any(|accepted| accepted == name);
    let mut unread: Vec<String> = unreadable_parity(&view.parity)
        .into_iter()
        .filter(|(name, _)| !accepted(name))
        .map(|(name, why)| format!("{name}: {why}"))
        .collect();
    if let Fact::Unknown { why } = device_digest(host, view) {
        unread.push(format!("PCI devices: {why}"));
    }
    if unread.is_empty() {
        return Ok(());
    }
    Err(Refusal::Unreadable(format!("what the host gate compares before and after, {}", unread.join("; "))))
}

/// What is configured on the GPUs of the plan and not active until a reboot, one line each. Of a switch
/// of MIG only what the visit remembers, or the shell shows.
///
/// # Errors
/// [`Refusal::Unreadable`]: it cannot be told.
pub fn waits_for_reboot(host: &HostPlan, view: &HostView, memory: &Memory) -> Result<Vec<String>, Refusal> {
    let devices = Devices::of(view)?;
    let mut waits = Vec::new();
    for gpu in &host.target.gpus {
        waits.extend(Need::of(gpu, view, &devices, memory)?.stuck);
    }
    Ok(waits)
}

/// Whether the facts that the plan rests on are as they were.
///
/// # Errors
/// [`Refusal::Unreadable`]: it cannot be told.
pub fn is_as_planned(host: &HostPlan, view: &HostView) -> Result<bool, Refusal> {
    let devices = Devices::of(view)?;
    Ok(identity(host, view, &devices).is_ok() && changes(&host.slow, view, &devices)?.is_none())
}

/// The reboot that was asked for and is not proven, while its task runs, the host is down or was seen
/// to have booted: it is waited for, whatever its facts say meanwhile.
fn reboot_under_way(view: &HostView, memory: &Memory) -> Option<Step> {
    let asked = memory.last_reboot.as_ref().filter(|asked| !asked.proven)?;
    let down = view.connection != Fact::Known(Connection::Connected);
    (down || running(view, TaskKind::Reboot).is_some() || asked.happened(&view.boot_time))
        .then(|| Step::Reboot { pending: asked.pending.clone(), boot_before: asked.boot_before })
}

/// Whether the host is in maintenance, and whether leaving it is ours.
fn maintenance(host: &HostPlan, view: &HostView, memory: &Memory, work: &Work) -> Result<(bool, bool), Refusal> {
    let closed = *Gap::need(&view.in_maintenance, "runtime.inMaintenanceMode")?;
    let blocked = |why: &str| Err(Refusal::Blocked(why.to_owned()));
    if host.stays_in_maintenance {
        return if closed { Ok((true, false)) } else { blocked("somebody took the host out of maintenance mode") };
    }
    match (closed, memory.maintenance) {
        (true, OurMaintenance::NotAsked) => blocked("the host is in maintenance mode, and not by this visit"),
        (true, _) => Ok((true, true)),
        (false, OurMaintenance::NotAsked) => Ok((false, work.impact >= Impact::Maintenance)),
        (false, OurMaintenance::Asked) => Ok((false, true)),
        (false, OurMaintenance::Closed) => blocked("somebody took the host out of maintenance mode"),
        (false, OurMaintenance::Leaving) if work.is_empty() => Ok((false, true)),
        (false, OurMaintenance::Leaving) => blocked("the host is out of maintenance mode and not as wished"),
    }
}

/// What does not match.
pub(super) struct Mismatch {
    /// Expected.
    pub expected: String,
    /// Found.
    pub found: String,
}

/// Whether it is the host of the plan, and each GPU of it is where and what it was (vsphere-gpu F9:
/// passthrough is kept by address, and addresses shift with the cards).
pub(super) fn identity(host: &HostPlan, view: &HostView, devices: &Devices) -> Result<(), Mismatch> {
    let uuid = view.uuid.known().map_or("not readable", String::as_str);
    if uuid != host.uuid {
        return Err(Mismatch { expected: format!("the machine {}", host.uuid), found: format!("machine {uuid}") });
    }
    for gpu in &host.slow.gpus {
        let found = devices.at(gpu.address).map(|device| device.id);
        if found != Some(gpu.id) {
            return Err(Mismatch {
                expected: format!("{} at {}", gpu.id, gpu.address),
                found: found.map_or_else(|| "no device".to_owned(), |id| id.to_string()),
            });
        }
    }
    let known: Vec<PciAddress> = host.slow.gpus.iter().map(|gpu| gpu.address).collect();
    let new: Vec<PciAddress> =
        devices.gpus.iter().map(|gpu| gpu.address).filter(|address| !known.contains(address)).collect();
    if new.is_empty() {
        Ok(())
    } else {
        Err(Mismatch { expected: format!("GPUs at {}", addresses(&known)), found: format!("also {}", addresses(&new)) })
    }
}
