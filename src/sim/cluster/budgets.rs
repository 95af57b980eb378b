//! The disruption controller: the status of budgets (pkg/controller/disruption).

use serde_json::{Value, json};

use super::Cluster;
use super::control::GuestDue;
use super::pods::{active, controller, ready, selects};
use crate::sim::world::guest::{deleting, key, number, set, text};

impl Cluster<'_> {
    /// Keys of the budgets that take a pod.
    pub(super) fn budgets_of(&self, pod: &Value) -> Vec<String> {
        let (namespace, labels) = (text(pod, "/metadata/namespace"), pod.pointer("/metadata/labels"));
        let takes = |pdb: &Value| {
            text(pdb, "/metadata/namespace") == namespace
                && pdb.pointer("/spec/selector").is_some_and(|selector| selects(selector, labels))
        };
        let pdbs = self.guest.all("poddisruptionbudgets").filter(|(_, pdb)| takes(pdb));
        pdbs.map(|(key, _)| key.clone()).collect()
    }

    pub(super) fn keep_budgets(&mut self) {
        let pdbs: Vec<String> = self.guest.all("poddisruptionbudgets").map(|(key, _)| key.clone()).collect();
        for at in pdbs {
            let Some(pdb) = self.guest.get(&at) else { continue };
            let changed = number(pdb, "/status/observedGeneration") != number(pdb, "/metadata/generation");
            if !changed || self.spec.budget_lag.0.is_zero() {
                self.count_budget(&at);
            } else if self.guest.unseen.insert(at.clone()) {
                self.later(self.spec.budget_lag.0, GuestDue::BudgetSeen { budget: at });
            }
        }
    }

    pub(super) fn budget_seen(&mut self, at: &str) {
        self.guest.unseen.remove(at);
        self.count_budget(at);
    }

    fn count_budget(&mut self, at: &str) {
        if let Some(pdb) = self.guest.get(at).cloned() {
            let keys = self.pods_selected(&pdb);
            let pods: Vec<&Value> = keys.iter().filter_map(|key| self.guest.get(key)).collect();
            let count = i64::try_from(pods.iter().filter(|pod| active(pod)).count()).unwrap_or(i64::MAX);
            let healthy = pods.iter().filter(|pod| ready(pod) && !deleting(pod)).count();
            let healthy = i64::try_from(healthy).unwrap_or(i64::MAX);
            let scale = pods.first().map_or(0, |pod| self.scale(pod).unwrap_or(count));
            let (expected, desired) = match (pdb.pointer("/spec/minAvailable"), pdb.pointer("/spec/maxUnavailable")) {
                (Some(least), _) if least.is_string() => (scale, share(least, scale)),
                (Some(least), _) => (count, least.as_i64().unwrap_or(0)),
                (None, Some(most)) => (scale, (scale - share(most, scale)).max(0)),
                (None, None) => (scale, scale),
            };
            let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
            let mut new = pdb.clone();
            let generation = number(&pdb, "/metadata/generation").unwrap_or(1);
            for (field, value) in [
                ("currentHealthy", healthy),
                ("desiredHealthy", desired),
                ("disruptionsAllowed", allowed),
                ("expectedPods", expected),
                ("observedGeneration", generation),
            ] {
                set(&mut new, &["status", field], json!(value));
            }
            // Pods that were evicted and are seen to be ending need no entry any more.
            crate::sim::world::guest::unset(&mut new, &["status", "disruptedPods"]);
            let (status, reason) = if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
            self.condition(&mut new, "DisruptionAllowed", status, reason, "");
            self.guest.put(at, new, self.now);
        }
    }

    /// How many pods the owner of a pod wants.
    fn scale(&self, pod: &Value) -> Option<i64> {
        let owner = controller(pod)?;
        let resource = match text(owner, "/kind") {
            "ReplicaSet" => "replicasets",
            "StatefulSet" => "statefulsets",
            _ => return None,
        };
        let object = self.guest.get(&key(resource, text(pod, "/metadata/namespace"), text(owner, "/name")))?;
        number(object, "/spec/replicas")
    }
}

/// A number, or a share in percent that is rounded up.
fn share(value: &Value, of: i64) -> i64 {
    let percent = value.as_str().and_then(|text| text.strip_suffix('%')).and_then(|text| text.parse::<i64>().ok());
    percent.map_or_else(
        || value.as_i64().unwrap_or(0),
        |percent| (of * percent).div_euclid(100) + i64::from(of * percent % 100 > 0),
    )
}
