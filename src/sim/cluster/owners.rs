//! Controllers that keep as many pods as their objects want.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::Cluster;
use super::pods::{active, controller, finished, ready, selects};
use crate::sim::world::guest::{deleting, items, key, number, set, text};

impl Cluster<'_> {
    pub(super) fn keep_pods(&mut self) {
        for (resource, keep) in [
            ("replicasets", Self::keep_replicas as fn(&mut Self, &str, &Value)),
            ("statefulsets", Self::keep_ordinals),
            ("daemonsets", Self::keep_daemons),
        ] {
            let owners: Vec<(String, Value)> =
                self.guest.all(resource).map(|(key, value)| (key.clone(), value.clone())).collect();
            for (key, owner) in owners.iter().filter(|(_, owner)| !deleting(owner)) {
                keep(self, key, owner);
            }
        }
        self.keep_mirrors();
        self.scale_replica_sets();
    }

    /// Keys of the pods that an object controls.
    pub(super) fn pods_of(&self, owner: &Value) -> Vec<String> {
        let uid = text(owner, "/metadata/uid");
        let its = |pod: &Value| controller(pod).is_some_and(|owner| text(owner, "/uid") == uid);
        self.guest.all("pods").filter(|(_, pod)| its(pod)).map(|(key, _)| key.clone()).collect()
    }

    /// A Deployment of one revision hands its number of replicas to its ReplicaSet.
    fn scale_replica_sets(&mut self) {
        let sets: Vec<(String, Value)> =
            self.guest.all("replicasets").map(|(key, value)| (key.clone(), value.clone())).collect();
        for (at, set_object) in sets {
            let Some(owner) = controller(&set_object) else { continue };
            let name = key("deployments", text(&set_object, "/metadata/namespace"), text(owner, "/name"));
            let Some(wanted) = self.guest.get(&name).and_then(|owner| number(owner, "/spec/replicas")) else {
                continue;
            };
            self.guest.edit(&at, self.now, |object| set(object, &["spec", "replicas"], json!(wanted)));
        }
    }

    /// A ReplicaSet does not count pods that are ending: it replaces them at once.
    fn keep_replicas(&mut self, _: &str, owner: &Value) {
        let (namespace, name) = (text(owner, "/metadata/namespace"), text(owner, "/metadata/name"));
        let wanted = usize::try_from(number(owner, "/spec/replicas").unwrap_or(1)).unwrap_or(0);
        let mut pods = self.pods_of(owner);
        pods.retain(|key| self.guest.get(key).is_some_and(active));
        match pods.len().cmp(&wanted) {
            Ordering::Less => {
                for _ in pods.len()..wanted {
                    let pod = format!("{name}-{}", self.guest.suffix());
                    self.create_pod(namespace, &pod, &owner["spec"]["template"], Some(owner));
                }
            }
            Ordering::Greater => {
                // Those without a node first, then those that are not ready.
                pods.sort_by_key(|key| {
                    let pod = self.guest.get(key);
                    pod.map(|pod| (!text(pod, "/spec/nodeName").is_empty(), ready(pod)))
                });
                let surplus: Vec<String> = pods.iter().take(pods.len() - wanted).cloned().collect();
                surplus.iter().for_each(|key| self.begin_deletion(key, None));
            }
            Ordering::Equal => {}
        }
    }

    /// A StatefulSet makes a pod anew only when the one of its name is gone, in order.
    fn keep_ordinals(&mut self, _: &str, owner: &Value) {
        let (namespace, name) = (text(owner, "/metadata/namespace"), text(owner, "/metadata/name"));
        let wanted = number(owner, "/spec/replicas").unwrap_or(1);
        for ordinal in 0..wanted {
            let pod = format!("{name}-{ordinal}");
            let at = key("pods", namespace, &pod);
            match self.guest.get(&at) {
                Some(known) if finished(known) && !deleting(known) => return self.begin_deletion(&at, None),
                Some(_) => {}
                None => {
                    let mut template = owner["spec"]["template"].clone();
                    let mut volumes = items(&template, "/spec/volumes").to_vec();
                    for volume in volumes.iter_mut().filter(|volume| volume.get("persistentVolumeClaim").is_some()) {
                        set(volume, &["persistentVolumeClaim", "claimName"], json!(format!("data-{pod}")));
                    }
                    if !volumes.is_empty() {
                        set(&mut template, &["spec", "volumes"], json!(volumes));
                    }
                    let label = json!(pod);
                    set(&mut template, &["metadata", "labels", "statefulset.kubernetes.io/pod-name"], label);
                    self.create_pod(namespace, &pod, &template, Some(owner));
                }
            }
        }
        for surplus in self.pods_of(owner) {
            let ordinal = surplus.rsplit('-').next().and_then(|text| text.parse::<i64>().ok());
            let stays = self.guest.get(&surplus).is_none_or(deleting);
            if !stays && ordinal.is_some_and(|ordinal| ordinal >= wanted) {
                self.begin_deletion(&surplus, None);
            }
        }
    }

    /// A DaemonSet has a pod on each node, cordoned or not; one that failed is made anew.
    fn keep_daemons(&mut self, _: &str, owner: &Value) {
        let (namespace, name) = (text(owner, "/metadata/namespace"), text(owner, "/metadata/name"));
        let pods = self.pods_of(owner);
        let nodes: Vec<String> =
            self.guest.all("nodes").map(|(_, node)| text(node, "/metadata/name").to_owned()).collect();
        for at in &pods {
            if self.guest.get(at).is_some_and(|pod| finished(pod) && !deleting(pod)) {
                self.begin_deletion(at, None);
            }
        }
        for node in nodes {
            let here = |key: &String| {
                self.guest.get(key).is_some_and(|pod| text(pod, "/spec/nodeName") == node && active(pod))
            };
            if !pods.iter().any(here) {
                let mut template = owner["spec"]["template"].clone();
                set(&mut template, &["spec", "nodeName"], json!(node));
                let pod = format!("{name}-{}", self.guest.suffix());
                self.create_pod(namespace, &pod, &template, Some(owner));
            }
        }
    }

    /// Static pods: the kubelet shows them again when somebody deletes the mirror.
    fn keep_mirrors(&mut self) {
        for work in self.spec.workloads.iter().filter(|work| work.kind == crate::sim::document::WorkloadKind::Mirror) {
            for node in &work.nodes {
                let pod = format!("{}-{node}", work.name);
                let runs = self.guest.machines.get(node).is_some_and(|machine| machine.runs);
                if !runs || self.guest.get(&key("pods", &work.namespace, &pod)).is_some() {
                    continue;
                }
                let mut template = self.template(work);
                set(&mut template, &["spec", "nodeName"], json!(node));
                let mark = json!({"kubernetes.io/config.mirror": work.name, "kubernetes.io/config.source": "file"});
                set(&mut template, &["metadata", "annotations"], mark);
                let owner = self.guest.get(&key("nodes", "", node)).cloned();
                self.create_pod(&work.namespace, &pod, &template, owner.as_ref());
            }
        }
    }

    /// `status` of what owns pods.
    pub(super) fn count_pods(&mut self) {
        for resource in ["replicasets", "statefulsets", "daemonsets", "deployments"] {
            let owners: Vec<(String, Value)> =
                self.guest.all(resource).map(|(key, value)| (key.clone(), value.clone())).collect();
            for (at, owner) in owners {
                let pods = match resource {
                    "deployments" => self.pods_selected(&owner),
                    _ => self.pods_of(&owner),
                };
                let pods: Vec<&Value> =
                    pods.iter().filter_map(|key| self.guest.get(key)).filter(|pod| active(pod)).collect();
                let (count, ready) = (pods.len(), pods.iter().filter(|pod| ready(pod)).count());
                let nodes = self.guest.all("nodes").count();
                let generation = owner["metadata"]["generation"].clone();
                let status = match resource {
                    "daemonsets" => json!({
                        "currentNumberScheduled": count, "numberMisscheduled": 0, "desiredNumberScheduled": nodes,
                        "numberReady": ready, "numberAvailable": ready, "updatedNumberScheduled": count,
                        "observedGeneration": generation,
                    }),
                    _ => json!({
                        "replicas": count, "readyReplicas": ready, "availableReplicas": ready,
                        "updatedReplicas": count, "observedGeneration": generation,
                    }),
                };
                self.guest.edit(&at, self.now, |owner| set(owner, &["status"], status));
            }
        }
    }

    /// Keys of the pods of an object's namespace that its selector takes.
    pub(super) fn pods_selected(&self, object: &Value) -> Vec<String> {
        let namespace = text(object, "/metadata/namespace");
        let Some(selector) = object.pointer("/spec/selector") else { return Vec::new() };
        let takes = |pod: &Value| {
            text(pod, "/metadata/namespace") == namespace && selects(selector, pod.pointer("/metadata/labels"))
        };
        self.guest.all("pods").filter(|(_, pod)| takes(pod)).map(|(key, _)| key.clone()).collect()
    }
}
