//! The node controllers: the taint of a cordon, nodes that are not heard of, and what becomes of their
//! pods (DESIGN §3, honesty rule 10).

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Cluster;
use super::control::GuestDue;
use super::pods::{finished, tolerates};
use crate::sim::world::guest::{deleting, items, key, set, text, time};

/// `--node-monitor-grace-period`: a node is unknown so long after its kubelet was last heard of.
pub(super) const GRACE: Duration = Duration::from_secs(40);
/// `tolerationSeconds` that the API server gives pods for `unreachable`.
const TOLERATED: Duration = Duration::from_secs(300);

pub(super) const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
pub(super) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

impl Cluster<'_> {
    /// The taint of a cordon follows it, and so does the node's version.
    pub(super) fn taint_nodes(&mut self) {
        let now = self.now;
        let nodes: Vec<String> = self.guest.all("nodes").map(|(key, _)| key.clone()).collect();
        for at in nodes {
            self.guest.edit(&at, now, |node| {
                if node.pointer("/spec/unschedulable") == Some(&json!(true)) {
                    taint(node, UNSCHEDULABLE, "NoSchedule", now);
                } else {
                    untaint(node, UNSCHEDULABLE);
                }
            });
        }
    }

    /// A kubelet was not heard of for [`GRACE`]: the status of its node is unknown, its pods are not ready.
    pub(super) fn node_lost(&mut self, name: &str, since: Timestamp) {
        if self.guest.machines.get(name).is_none_or(|machine| machine.silent_since != Some(since)) {
            return;
        }
        let now = self.now;
        let at = key("nodes", "", name);
        let Some(mut node) = self.guest.get(&at).cloned() else { return };
        for kind in ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"] {
            self.condition(&mut node, kind, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.");
        }
        taint(&mut node, UNREACHABLE, "NoSchedule", now);
        taint(&mut node, UNREACHABLE, "NoExecute", now);
        self.guest.put(&at, node, now);
        for pod in self.pods_on(name) {
            let Some(mut object) = self.guest.get(&pod).filter(|pod| !finished(pod)).cloned() else { continue };
            self.condition(&mut object, "Ready", "False", "", "");
            self.guest.put(&pod, object, now);
        }
        self.later(TOLERATED, GuestDue::NodeGone { node: name.to_owned(), since });
    }

    /// Pods have tolerated it for as long as they do: they are deleted, without regard to budgets. Without a
    /// kubelet nobody confirms that, so they stay, terminating (kubernetes §5, 17).
    pub(super) fn node_gone(&mut self, name: &str, since: Timestamp) {
        if self.guest.machines.get(name).is_none_or(|machine| machine.silent_since != Some(since)) {
            return;
        }
        let unreachable = json!({"key": UNREACHABLE, "effect": "NoExecute"});
        for at in self.pods_on(name) {
            let Some(pod) = self.guest.get(&at).filter(|pod| !deleting(pod)).cloned() else { continue };
            let for_ever = items(&pod, "/spec/tolerations").iter().filter(|one| one.get("tolerationSeconds").is_none());
            let mut forever_only = pod.clone();
            set(&mut forever_only, &["spec", "tolerations"], json!(for_ever.collect::<Vec<_>>()));
            if tolerates(&forever_only, &unreachable) {
                continue;
            }
            let mut marked = pod;
            let message = "Taint manager: deleting due to NoExecute taint";
            self.condition(&mut marked, "DisruptionTarget", "True", "DeletionByTaintManager", message);
            self.guest.put(&at, marked, self.now);
            self.begin_deletion(&at, None);
        }
    }
}

fn taint(node: &mut Value, wanted: &str, effect: &str, now: Timestamp) {
    let mut all = items(node, "/spec/taints").to_vec();
    if !all.iter().any(|taint| text(taint, "/key") == wanted && text(taint, "/effect") == effect) {
        all.push(json!({"key": wanted, "effect": effect, "timeAdded": time(now)}));
        set(node, &["spec", "taints"], json!(all));
    }
}

/// Takes the taints of this key off.
pub(super) fn untaint(node: &mut Value, gone: &str) {
    let all = items(node, "/spec/taints");
    let left: Vec<Value> = all.iter().filter(|taint| text(taint, "/key") != gone).cloned().collect();
    if left.len() != all.len() {
        if left.is_empty() {
            crate::sim::world::guest::unset(node, &["spec", "taints"]);
        } else {
            set(node, &["spec", "taints"], json!(left));
        }
    }
}
