//! What pods are, as everybody looks at them.

use serde_json::{Value, json};

use super::Cluster;
use crate::sim::world::guest::{deleting, items, number, set, text, time};

/// Whether its containers have ended for good.
pub(super) fn finished(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

/// Whether an owner counts it as one of its pods.
pub(super) fn active(pod: &Value) -> bool {
    !finished(pod) && !deleting(pod)
}

/// Whether its condition `Ready` is true.
pub(super) fn ready(pod: &Value) -> bool {
    condition(pod, "Ready").is_some_and(|condition| text(condition, "/status") == "True")
}

/// A condition of an object.
pub(super) fn condition<'v>(object: &'v Value, kind: &str) -> Option<&'v Value> {
    items(object, "/status/conditions").iter().find(|condition| text(condition, "/type") == kind)
}

/// The owner that controls an object: its UID.
pub(super) fn controller(object: &Value) -> Option<&Value> {
    items(object, "/metadata/ownerReferences").iter().find(|owner| owner.get("controller") == Some(&json!(true)))
}

/// How many of a resource a pod asks for; it may be written as a number or as text.
pub(super) fn asks(pod: &Value, resource: &str) -> u32 {
    let of = |container: &Value| {
        let amount = |of: &str| container.get("resources")?.get(of)?.get(resource).cloned();
        match amount("limits").or_else(|| amount("requests"))? {
            Value::String(text) => text.parse().ok(),
            value => value.as_u64().and_then(|amount| u32::try_from(amount).ok()),
        }
    };
    items(pod, "/spec/containers").iter().filter_map(of).sum()
}

/// Whether a pod tolerates a taint.
pub(super) fn tolerates(pod: &Value, taint: &Value) -> bool {
    items(pod, "/spec/tolerations").iter().any(|toleration| {
        let (key, effect) = (text(toleration, "/key"), text(toleration, "/effect"));
        let exists = text(toleration, "/operator") == "Exists";
        (effect.is_empty() || effect == text(taint, "/effect"))
            && (key.is_empty() && exists || key == text(taint, "/key"))
            && (exists || text(toleration, "/value") == text(taint, "/value"))
    })
}

/// Whether a selector (`matchLabels` and `matchExpressions`) takes these labels.
pub(super) fn selects(selector: &Value, labels: Option<&Value>) -> bool {
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let equal = selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .is_none_or(|wanted| wanted.iter().all(|(key, value)| label(key) == value.as_str()));
    let expressions = items(selector, "/matchExpressions").iter().all(|one| {
        let found = label(text(one, "/key"));
        let among = items(one, "/values").iter().any(|value| value.as_str() == found);
        match text(one, "/operator") {
            "In" => among,
            "NotIn" => !among,
            "Exists" => found.is_some(),
            _ => found.is_none(),
        }
    });
    equal && expressions
}

impl Cluster<'_> {
    /// Sets a condition; its transition is now if its status changes.
    pub(super) fn condition(&self, object: &mut Value, kind: &str, status: &str, reason: &str, message: &str) {
        let known = condition(object, kind);
        let same = known.is_some_and(|known| text(known, "/status") == status);
        let since = known.filter(|_| same).map(|known| text(known, "/lastTransitionTime").to_owned());
        let mut new = json!({"type": kind, "status": status});
        if let Some(known) = known {
            for field in ["lastProbeTime", "lastHeartbeatTime"] {
                if let Some(value) = known.get(field) {
                    set(&mut new, &[field], value.clone());
                }
            }
        }
        set(&mut new, &["lastTransitionTime"], json!(since.unwrap_or_else(|| time(self.now))));
        for (field, value) in [("reason", reason), ("message", message)] {
            if !value.is_empty() {
                set(&mut new, &[field], json!(value));
            }
        }
        let mut all = items(object, "/status/conditions").to_vec();
        match all.iter().position(|condition| text(condition, "/type") == kind) {
            Some(place) => all.splice(place..=place, [new]).for_each(drop),
            None => all.push(new),
        }
        set(object, &["status", "conditions"], json!(all));
    }

    /// GPUs of a node that no pod has: pods have theirs until they are gone or have ended.
    pub(super) fn free_gpus(&self, node: &Value) -> u32 {
        let name = text(node, "/metadata/name");
        let here = |pod: &&Value| text(pod, "/spec/nodeName") == name && !finished(pod);
        let pods = self.guest.all("pods").map(|(_, pod)| pod).filter(here);
        let taken: u32 = pods.map(|pod| asks(pod, &self.spec.resource)).sum();
        self.allocatable(node).saturating_sub(taken)
    }

    /// Allocatable GPUs of a node.
    pub(super) fn allocatable(&self, node: &Value) -> u32 {
        let resources = node.pointer("/status/allocatable");
        let text = resources.and_then(|all| all.get(&self.spec.resource)).and_then(Value::as_str);
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// Keys of the pods that are bound to a node.
    pub(super) fn pods_on(&self, node: &str) -> Vec<String> {
        let pods = self.guest.all("pods").filter(|(_, pod)| text(pod, "/spec/nodeName") == node);
        pods.map(|(key, _)| key.clone()).collect()
    }
}

/// The grace period of a pod, in seconds.
pub(super) fn grace(pod: &Value) -> i64 {
    number(pod, "/spec/terminationGracePeriodSeconds").unwrap_or(30)
}
