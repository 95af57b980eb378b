//! The scheduler: pods that wait find a node, higher priority first. It does not preempt.

use serde_json::{Value, json};

use super::Cluster;
use super::pods::{active, asks, condition, tolerates};
use crate::sim::world::guest::{deleting, items, number, set, text};

impl Cluster<'_> {
    pub(super) fn place_pods(&mut self) {
        let mut waiting: Vec<(i64, String)> = self
            .guest
            .all("pods")
            .filter(|(_, pod)| text(pod, "/spec/nodeName").is_empty() && active(pod))
            .map(|(key, pod)| (-number(pod, "/spec/priority").unwrap_or(0), key.clone()))
            .collect();
        waiting.sort();
        for (_, key) in waiting {
            let Some(pod) = self.guest.get(&key).cloned() else { continue };
            let mut new = pod.clone();
            match self.place(&pod) {
                Ok(node) => {
                    set(&mut new, &["spec", "nodeName"], json!(node));
                    self.condition(&mut new, "PodScheduled", "True", "", "");
                }
                Err(why) => {
                    let said = condition(&pod, "PodScheduled").is_some_and(|known| text(known, "/message") == why);
                    if !said {
                        self.condition(&mut new, "PodScheduled", "False", "Unschedulable", &why);
                    }
                }
            }
            self.guest.put(&key, new, self.now);
        }
    }

    /// The node for a pod: the one with fewest of its kind, then with most free GPUs, then the first.
    fn place(&self, pod: &Value) -> Result<String, String> {
        let app = text(pod, "/metadata/labels/app");
        let mut best: Option<((usize, u32), String)> = None;
        let (mut count, mut full) = (0, 0);
        for (_, node) in self.guest.all("nodes") {
            count += 1;
            let name = text(node, "/metadata/name");
            if !may_run(pod, node) {
                continue;
            }
            let free = self.free_gpus(node);
            if asks(pod, &self.spec.resource) > free {
                full += 1;
                continue;
            }
            let kin = self.guest.all("pods").filter(|(_, other)| {
                text(other, "/spec/nodeName") == name && text(other, "/metadata/labels/app") == app && active(other)
            });
            let rank = (kin.count(), u32::MAX - free);
            if best.as_ref().is_none_or(|(known, _)| rank < *known) {
                best = Some((rank, name.to_owned()));
            }
        }
        best.map(|(_, name)| name).ok_or_else(|| {
            let resource = &self.spec.resource;
            format!(
                "0/{count} nodes are available: {full} Insufficient {resource}, {} others do not fit.",
                count - full
            )
        })
    }
}

/// Whether a node takes a pod, GPUs aside.
pub(super) fn may_run(pod: &Value, node: &Value) -> bool {
    let labels = node.pointer("/metadata/labels");
    let selected = pod.pointer("/spec/nodeSelector").and_then(Value::as_object).is_none_or(|wanted| {
        wanted.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
    });
    let terms =
        items(pod, "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
    let affine = terms.is_empty() || terms.iter().any(|term| super::pods::selects(term, labels));
    let untolerated = items(node, "/spec/taints")
        .iter()
        .any(|taint| matches!(text(taint, "/effect"), "NoSchedule" | "NoExecute") && !tolerates(pod, taint));
    let cordon = json!({"key": super::lifecycle::UNSCHEDULABLE, "effect": "NoSchedule"});
    let cordoned = node.pointer("/spec/unschedulable") == Some(&json!(true)) && !tolerates(pod, &cordon);
    selected && affine && !untolerated && !cordoned && !deleting(node)
}
