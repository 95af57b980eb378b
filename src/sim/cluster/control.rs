//! The cluster for one moment, and what is due in it.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::sim::document::{ContainerRule, Guest as Spec, Workload};
use crate::sim::world::guest::{Guest, text};

/// After so many rounds the controllers of a cluster must have come to rest: a round passes a change on
/// to whoever looks at it next, and no chain of owners is that long.
const ROUNDS: usize = 40;

/// Something that is due in a guest cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::sim) enum GuestDue {
    /// The kubelet of a node reports, at this boot.
    NodeUp { node: String, boot: u32 },
    /// The device plugin has registered.
    PluginUp { node: String, boot: u32 },
    /// The init container of the driver pod has run.
    DriverRuns { node: String, boot: u32 },
    /// The kubelet reports its status although nothing changed.
    Heartbeat { node: String, boot: u32 },
    /// A node has not been heard of since then for as long as the controller waits.
    NodeLost { node: String, since: Timestamp },
    /// Its pods have tolerated that for as long as they do.
    NodeGone { node: String, since: Timestamp },
    /// The containers of a pod run.
    PodRuns(Containers),
    /// The image of a pod could not be pulled.
    PullFails(Containers),
    /// A container has run its time.
    PodEnds(Containers),
    /// A container that has failed is started anew.
    PodRestarts(Containers),
    /// The containers of a pod that is deleted have ended.
    PodStops(Containers),
    /// Somebody takes the finalizer off.
    Unheld { pod: String, uid: String },
    /// A volume is attached.
    Attached { attachment: String },
    /// A volume is detached.
    Detached { attachment: String },
    /// The disruption controller sees a budget.
    BudgetSeen { budget: String },
    /// The controller of a Job has waited long enough with another pod.
    JobRetries { job: String, uid: String },
    /// A Job has run as long as it may.
    JobDeadline { job: String, uid: String },
    /// A finished Job is taken away.
    JobExpires { job: String, uid: String },
}

/// The containers of a pod in one boot of its machine: whatever they were about to do ends with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sim) struct Containers {
    pod: String,
    uid: String,
    boot: u32,
}

/// A write of a program that runs in the cluster.
#[derive(Debug)]
pub(in crate::sim) struct Program {
    pub who: &'static str,
    pub object: String,
    pub call: &'static str,
    pub arguments: String,
}

/// A cluster for one moment.
pub(in crate::sim) struct Cluster<'a> {
    pub spec: &'a Spec,
    pub guest: &'a mut Guest,
    pub now: Timestamp,
    /// What becomes due, and after how long.
    pub due: Vec<(Duration, GuestDue)>,
    /// What programs in the cluster wrote.
    pub programs: Vec<Program>,
}

impl<'a> Cluster<'a> {
    pub fn new(spec: &'a Spec, guest: &'a mut Guest, now: Timestamp) -> Self {
        Self { spec, guest, now, due: Vec::new(), programs: Vec::new() }
    }

    /// Lets the controllers work until nothing changes any more.
    pub fn settle(&mut self) {
        for _ in 0..ROUNDS {
            if !std::mem::take(&mut self.guest.dirty) {
                break;
            }
            self.taint_nodes();
            self.collect_garbage();
            self.keep_pods();
            self.keep_jobs();
            self.place_pods();
            self.keep_volumes();
            self.admit_pods();
            self.count_pods();
            self.keep_budgets();
        }
        let kept = jiff::SignedDuration::try_from(self.spec.compact.0).unwrap_or(jiff::SignedDuration::MAX);
        self.guest.compact(self.now.checked_sub(kept).unwrap_or(Timestamp::MIN));
    }

    /// Does what is due.
    pub fn happen(&mut self, what: GuestDue) {
        match what {
            GuestDue::NodeUp { node, boot } => self.node_up(&node, boot),
            GuestDue::PluginUp { node, boot } => self.plugin_up(&node, boot),
            GuestDue::DriverRuns { node, boot } => self.driver_runs(&node, boot),
            GuestDue::Heartbeat { node, boot } => self.heartbeat(&node, boot),
            GuestDue::NodeLost { node, since } => self.node_lost(&node, since),
            GuestDue::NodeGone { node, since } => self.node_gone(&node, since),
            GuestDue::PodRuns(of) => self.on(&of, Self::pod_runs),
            GuestDue::PullFails(of) => self.on(&of, Self::pull_fails),
            GuestDue::PodEnds(of) => self.on(&of, Self::pod_ends),
            GuestDue::PodRestarts(of) => self.on(&of, Self::pod_restarts),
            GuestDue::PodStops(of) => self.on(&of, Self::pod_stops),
            GuestDue::Unheld { pod, uid } => self.of(&pod, &uid, Self::unheld),
            GuestDue::Attached { attachment } => self.attached(&attachment),
            GuestDue::Detached { attachment } => self.detached(&attachment),
            GuestDue::BudgetSeen { budget } => self.budget_seen(&budget),
            GuestDue::JobRetries { job, uid } => self.of(&job, &uid, |cluster, _| cluster.guest.dirty = true),
            GuestDue::JobDeadline { job, uid } => self.of(&job, &uid, Self::job_deadline),
            GuestDue::JobExpires { job, uid } => self.of(&job, &uid, Self::job_expires),
        }
    }

    /// Does something with an object unless it is gone, or another one of its name.
    fn of(&mut self, key: &str, uid: &str, f: impl FnOnce(&mut Self, &str)) {
        if self.guest.get(key).is_some_and(|object| text(object, "/metadata/uid") == uid) {
            f(self, key);
        }
    }

    /// Does something with a pod whose containers are still those of then; after another boot its kubelet has
    /// begun anew with it, and while the machine is off nothing of it goes on.
    fn on(&mut self, then: &Containers, f: impl FnOnce(&mut Self, &str)) {
        let pod = self.guest.get(&then.pod);
        let machine = pod.and_then(|pod| self.guest.machines.get(text(pod, "/spec/nodeName")));
        if machine.is_some_and(|machine| machine.boots == then.boot && machine.runs) {
            self.of(&then.pod, &then.uid, f);
        }
    }

    /// The containers of a pod as they are now.
    pub(super) fn containers(&self, at: &str, pod: &Value) -> Containers {
        let machine = self.guest.machines.get(text(pod, "/spec/nodeName"));
        let boot = machine.map_or(0, |machine| machine.boots);
        Containers { pod: at.to_owned(), uid: text(pod, "/metadata/uid").to_owned(), boot }
    }

    pub(super) fn later(&mut self, after: Duration, what: GuestDue) {
        self.due.push((after, what));
    }

    /// The workload of the document that a pod belongs to: what is not in its object, as how long it takes
    /// to start, is there.
    pub(super) fn workload(&self, pod: &Value) -> Option<&'a Workload> {
        let (namespace, app) = (text(pod, "/metadata/namespace"), text(pod, "/metadata/labels/app"));
        self.spec.workloads.iter().find(|known| known.namespace == namespace && known.name == app)
    }

    /// The rule for the container of a pod.
    pub fn rule(&self, pod: &Value) -> Option<&'a ContainerRule> {
        let decided = self.guest.ruled.get(text(pod, "/metadata/uid")).and_then(|all| all.last().copied());
        self.spec.containers.get(decided.unwrap_or_else(|| self.next_rule(pod))?)
    }

    /// The rule for the container of a pod, from now on: one of its `times` is used up.
    pub(super) fn decide_rule(&mut self, pod: &Value) {
        let rule = self.next_rule(pod);
        self.guest.ruled.entry(text(pod, "/metadata/uid").to_owned()).or_default().push(rule);
    }

    /// Whether it is decided which rule the container of a pod follows.
    pub(super) fn is_ruled(&self, pod: &Value) -> bool {
        self.guest.ruled.contains_key(text(pod, "/metadata/uid"))
    }

    fn next_rule(&self, pod: &Value) -> Option<usize> {
        let (image, node) = (text(pod, "/spec/containers/0/image"), text(pod, "/spec/nodeName"));
        self.spec.containers.iter().enumerate().position(|(index, rule)| {
            let used = || self.guest.ruled.values().flatten().filter(|ruled| **ruled == Some(index)).count();
            rule.node.as_deref().is_none_or(|wanted| wanted == node)
                && is_image(&rule.image, image)
                && rule.times.is_none_or(|times| used() < times as usize)
        })
    }
}

/// Whether a pattern is for an image.
fn is_image(pattern: &str, image: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(_), Some(_)) => image.contains(pattern.trim_matches('*')),
        (Some(end), None) => image.ends_with(end),
        (None, Some(start)) => image.starts_with(start),
        (None, None) => image == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_of_an_image_stands_for_any_text() {
        for (pattern, fits) in [("*", true), ("reg/vec*", true), ("*:v1", true), ("*vector*", true), ("reg/vec", false)]
        {
            assert_eq!(is_image(pattern, "reg/vector-add:v1"), fits, "{pattern}");
        }
    }
}
