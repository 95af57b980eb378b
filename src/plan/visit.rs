//! The visit of one host: its steps, made from what is there now and what this visit remembers.

use serde::{Deserialize, Serialize};

use super::blocks::{busy, not_connected, powered_on};
use super::device::{Devices, Gap, addresses};
use super::group::grouped;
use super::need::Need;
use super::slow::changes;
use super::work::Work;
use super::{HostPlan, Impact, Memory, OurMaintenance, Reboots, Step};
use crate::model::{Connection, Fact, HostRecord, HostView, PciAddress, counted};

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
    /// A reboot changed nothing of what was pending; it is never repeated.
    #[error("the reboot had no effect on {}", grouped(pending).join("; "))]
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

/// Plans one host's visit from any mid-state. Empty steps: nothing is left but to release it.
///
/// # Errors
/// [`Refusal`]: nothing more is sent to the host.
pub fn visit(host: &HostPlan, record: &HostRecord, memory: &Memory) -> Result<Visit, Refusal> {
    let view = record.view.as_ref().map_err(|fault| Refusal::Unreadable(fault.message.clone()))?;
    if let Some(step) = reboot_under_way(view, memory) {
        let reboots = Reboots { expected: memory.reboots + 1, most: host.reboots.most, why: Vec::new() };
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
    let work = Work::of(&host.target, view, &devices, memory)?;
    let done = memory.reboots_by(&view.boot_time);
    let (closed, ours) = maintenance(host, view, memory, &work)?;
    if let Some(asked) = memory.last_reboot.as_ref().filter(|_| !memory.written_since_reboot) {
        let pending: Vec<String> = work.stuck.iter().filter(|line| asked.pending.contains(line)).cloned().collect();
        if !pending.is_empty() && (asked.proven || asked.happened(&view.boot_time)) {
            return Err(Refusal::RebootWithoutEffect { pending });
        }
    }
    if done + work.expected > host.reboots.most {
        let (needed, why) = (done + work.expected, grouped(&work.pending).join("; "));
        return Err(Refusal::TooManyReboots { needed, most: host.reboots.most, why });
    }
    if work.impact >= Impact::Maintenance {
        let on = powered_on(view)?;
        if !on.is_empty() {
            return Err(Refusal::Blocked(format!("VMs are powered on: {}", on.join(", "))));
        }
    }
    let reboots = Reboots { expected: done + work.expected, most: host.reboots.most, why: work.pending.clone() };
    let impact = if ours { work.impact.max(Impact::Maintenance) } else { work.impact };
    let steps = match memory.maintenance {
        // It came out of maintenance as we asked: only the gate of the open host is left.
        OurMaintenance::Leaving if !closed => vec![Step::ExitMaintenance],
        _ if work.is_empty() && !ours && !memory.begun => Vec::new(),
        _ => work.steps(view, closed, ours)?,
    };
    Ok(Visit { impact, steps, reboots })
}

/// What is configured on the GPUs of the plan and not active until a reboot, one line each.
///
/// # Errors
/// [`Refusal::Unreadable`]: it cannot be told.
pub fn waits_for_reboot(host: &HostPlan, view: &HostView) -> Result<Vec<String>, Refusal> {
    let devices = Devices::of(view)?;
    let mut waits = Vec::new();
    for gpu in &host.target.gpus {
        waits.extend(Need::of(gpu, view, &devices)?.stuck);
    }
    Ok(waits)
}

/// The reboot that was asked for and is not proven, while the host is down or was seen to have
/// booted: it is waited for, whatever its facts say meanwhile.
fn reboot_under_way(view: &HostView, memory: &Memory) -> Option<Step> {
    let asked = memory.last_reboot.as_ref().filter(|asked| !asked.proven)?;
    let down = view.connection != Fact::Known(Connection::Connected);
    (down || asked.happened(&view.boot_time))
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
