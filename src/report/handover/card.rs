//! The card itself: what is handed over, as data.

use jiff::Timestamp;
use serde::Serialize;

use super::by_hand::{ByHand, by_hand};
use super::order::{Todo, todo, way};
use super::standing::Standing;
use crate::model::{HostName, PlanId, RunId};
use crate::plan::{Plan, Step};
use crate::report::words;
use crate::rollout::{Compensation, HostPhase, HostState, RunState};

/// What a person needs to bring one host to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Handover {
    /// The host.
    pub host: HostName,
    /// How its visit stands.
    pub state: String,
    /// Since when.
    pub since: Option<Timestamp>,
    /// Whether the run has given it up: it does not come back to it.
    pub given_up: bool,
    /// Whose it is.
    pub owner: Owner,
    /// The address of its vCenter, if the plan is there.
    pub vcenter: Option<String>,
    /// Whether it is in maintenance mode; none if nobody has seen it.
    pub maintenance: Option<bool>,
    /// When that was seen, by our clock; none if nobody looked.
    pub seen: Option<Timestamp>,
    /// What is configured and waits for a reboot.
    pub pending: Vec<String>,
    /// What is not put back: maintenance mode, VMs and nodes by name, services.
    pub not_put_back: Vec<String>,
    /// What keeps nodes from being drained.
    pub blocked: Vec<String>,
    /// What else is to be known.
    pub notes: Vec<String>,
    /// Which way it goes.
    pub way: Way,
    /// What is left to be done, in order, to the end.
    pub steps: Vec<ByHand>,
    /// Steps of the plan that are not done, and not needed on this way.
    pub not_needed: Vec<String>,
}

/// Whose a host is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// The run.
    pub run: RunId,
    /// Its plan.
    pub plan: PlanId,
    /// Who was logged in last.
    pub user: String,
    /// When the run began.
    pub since: Timestamp,
    /// Whether the host carries the run's marker, as far as it is known.
    pub marked: bool,
    /// The phase in the marker, as it was written last.
    pub marker: Option<String>,
    /// When it was written, by the server's clock.
    pub written: Option<Timestamp>,
}

/// Which way a host goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Way {
    /// No mode is written: it is given back as it was.
    Back,
    /// Modes may be written: only forward, to the end.
    Forward,
}

/// The cards of all hosts of a run on which a person has something to do; `at_work` is a process that works
/// on the run now: what it may take up is not for two pairs of hands.
pub fn handovers(state: &RunState, plan: Option<&Plan>, at_work: bool) -> Vec<Handover> {
    let due = |host: &HostState| host.is_left() && (!at_work || host.is_failed());
    let hosts = state.in_order().filter(|(_, host)| due(host));
    hosts.filter_map(|(name, host)| Handover::of(state, name, host, plan)).collect()
}

impl Handover {
    /// The card of one host; none if nothing of ours is left on it. The plan gives names, modes and Jobs.
    pub fn of(state: &RunState, name: &HostName, host: &HostState, plan: Option<&Plan>) -> Option<Self> {
        let of_host = plan.and_then(|plan| plan.hosts.iter().find(|of| of.host.name == *name));
        let standing = Standing::of(&state.run, name, host, of_host);
        if !standing.needs_hands() {
            return None;
        }
        let left = todo(&standing);
        let needed = |step: &&Step| !left.contains(&Todo::Step((*step).clone()));
        let marker = host.marker.as_ref().filter(|_| standing.is_marked());
        Some(Self {
            host: name.clone(),
            state: match &host.phase {
                HostPhase::Working { stage } => format!("under way, {stage}; its process is gone"),
                phase => phase.to_string(),
            },
            since: host.since,
            given_up: standing.given_up,
            owner: Owner {
                run: state.run.clone(),
                plan: state.plan.clone(),
                user: state.user.clone(),
                since: state.started,
                marked: standing.is_marked(),
                marker: marker.map(|marker| marker.phase.to_string()),
                written: marker.map(|marker| marker.at),
            },
            vcenter: plan.map(|plan| plan.site.address.clone()),
            maintenance: standing.left_as.and_then(|left| left.maintenance),
            seen: standing.left_as.map(|left| left.at),
            pending: standing.left_as.map(|left| left.pending.clone()).unwrap_or_default(),
            not_put_back: standing.open.iter().map(|comp| open_words(&standing, comp)).collect(),
            blocked: blocked(host),
            notes: standing.left_as.map(|left| left.notes.clone()).unwrap_or_default(),
            way: way(&standing),
            not_needed: standing.to_do().iter().filter(needed).map(Step::to_string).collect(),
            steps: left.iter().map(|todo| by_hand(&standing, todo)).collect(),
        })
    }
}

/// What keeps nodes from being drained: `the node serve-1 of k8s-serve: PDB …, since 20:11:00 UTC`.
pub(in crate::report) fn blocked(host: &HostState) -> Vec<String> {
    let line = |of: &crate::rollout::Blocked| {
        format!("the node {}: {}, since {} UTC", of.node, of.why.join("; "), words::clock(of.since))
    };
    host.blocked.iter().map(line).collect()
}

fn open_words(standing: &Standing<'_>, comp: &Compensation) -> String {
    match comp {
        Compensation::Maintenance => format!("{comp}: the host was not in it"),
        Compensation::Ssh => format!("{comp}: it was stopped"),
        Compensation::Monitor => format!("{comp}: it ran"),
        Compensation::Vm(vm) => {
            let name = standing.vm_name(vm).map(|name| format!(" ({name})")).unwrap_or_default();
            let then = if standing.is_left_off(vm) && way(standing) == Way::Forward {
                "it stays off, as planned"
            } else if standing.may_go_off(vm) {
                "it ran, was asked to shut down, and was not seen to go off"
            } else if standing.host.asked_to_stop.contains(vm) {
                "it ran, and was asked to shut down"
            } else if standing.host.visit.is_some() && !standing.given_up {
                "it ran, and is not asked to shut down"
            } else {
                "it ran"
            };
            format!("{comp}{name}: {then}")
        }
        Compensation::Node(node) if standing.left_as.is_some_and(|left| left.opened.contains(node)) => {
            let phase = standing.mark(node).map(|known| format!("; the mark says {}", known.mark.phase));
            format!("{}{}", words::opened(node), phase.unwrap_or_default())
        }
        Compensation::Node(node) => match standing.mark(node) {
            Some(known) if known.mark.was_unschedulable => {
                format!("{comp}: {}; it was cordoned before, and stays so", known.mark.phase)
            }
            Some(known) => format!("{comp}: {}; it was not cordoned before", known.mark.phase),
            None => format!("{comp}: whether it was cordoned before stands in its mark"),
        },
    }
}
