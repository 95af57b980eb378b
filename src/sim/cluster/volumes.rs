//! Volumes that one node at a time can use: attached before a pod starts, detached some time after the
//! last pod of the node that uses them is gone (kubernetes §5, 19 to 23).

use std::time::Duration;

use serde_json::{Value, json};

use super::Cluster;
use super::control::GuestDue;
use super::pods::finished;
use crate::sim::world::guest::{deleting, items, key, set, text, time};

const ATTACH: Duration = Duration::from_secs(2);
/// `maxWaitForUnmountDuration`: without a kubelet that says that the volume is not mounted any more, the
/// attach-detach controller waits so long (kubernetes §0, 11).
const UNMOUNT: Duration = Duration::from_secs(360);
/// The CSI driver of vSphere.
const DRIVER: &str = "csi.vsphere.vmware.com";

/// Names of the volumes of a pod's claims.
fn volumes(pod: &Value) -> Vec<String> {
    let claims = items(pod, "/spec/volumes").iter().map(|volume| text(volume, "/persistentVolumeClaim/claimName"));
    let namespace = text(pod, "/metadata/namespace");
    claims.filter(|claim| !claim.is_empty()).map(|claim| format!("pv-{namespace}-{claim}")).collect()
}

impl Cluster<'_> {
    /// Whether the volumes of a pod are attached to its node.
    pub(super) fn volumes_attached(&self, pod: &Value) -> bool {
        let node = text(pod, "/spec/nodeName");
        volumes(pod).iter().all(|volume| {
            self.attachment(volume).and_then(|at| self.guest.get(&at)).is_some_and(|attachment| {
                text(attachment, "/spec/nodeName") == node
                    && !deleting(attachment)
                    && attachment.pointer("/status/attached") == Some(&json!(true))
            })
        })
    }

    /// The attachment of a volume, to whichever node.
    fn attachment(&self, volume: &str) -> Option<String> {
        let of = |attachment: &Value| text(attachment, "/spec/source/persistentVolumeName") == volume;
        self.guest.all("volumeattachments").find(|(_, attachment)| of(attachment)).map(|(key, _)| key.clone())
    }

    /// What of a volume is used: by pods that are bound to this node and have not ended for good.
    fn used(&self, node: &str, volume: &str) -> bool {
        self.guest.all("pods").any(|(_, pod)| {
            text(pod, "/spec/nodeName") == node && !finished(pod) && volumes(pod).iter().any(|one| one == volume)
        })
    }

    pub(super) fn keep_volumes(&mut self) {
        let bound: Vec<(String, String)> = self
            .guest
            .all("pods")
            .filter(|(_, pod)| !finished(pod) && !text(pod, "/spec/nodeName").is_empty())
            .flat_map(|(_, pod)| {
                let node = text(pod, "/spec/nodeName").to_owned();
                volumes(pod).into_iter().map(move |volume| (node.clone(), volume))
            })
            .collect();
        for (node, volume) in bound {
            // While another node has it, the pod waits (Multi-Attach).
            if self.attachment(&volume).is_none() {
                self.attach(&node, &volume);
            }
        }
        let attachments: Vec<(String, Value)> =
            self.guest.all("volumeattachments").map(|(key, value)| (key.clone(), value.clone())).collect();
        for (at, attachment) in attachments.into_iter().filter(|(_, attachment)| !deleting(attachment)) {
            let node = text(&attachment, "/spec/nodeName");
            if self.used(node, text(&attachment, "/spec/source/persistentVolumeName")) {
                continue;
            }
            let when = time(self.now);
            self.guest.edit(&at, self.now, |object| set(object, &["metadata", "deletionTimestamp"], json!(when)));
            let after = self.detach_takes(node);
            self.later(after, GuestDue::Detached { attachment: at });
        }
        self.list_attached();
    }

    fn kubelet_of(&self, node: &str) -> bool {
        self.guest.machines.get(node).is_some_and(|machine| machine.runs)
    }

    fn detach_takes(&self, node: &str) -> Duration {
        if self.kubelet_of(node) { self.spec.detach.0 } else { UNMOUNT }
    }

    fn attach(&mut self, node: &str, volume: &str) {
        let name = format!("csi-{}", crate::sim::world::uuid(&format!("{node} {volume}")).replace('-', ""));
        let at = key("volumeattachments", "", &name);
        let mut attachment = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": self.metadata("", &name),
            "spec": {"attacher": DRIVER, "nodeName": node, "source": {"persistentVolumeName": volume}},
            "status": {"attached": false},
        });
        let finalizer = json!(["external-attacher/csi-vsphere-vmware-com"]);
        set(&mut attachment, &["metadata", "finalizers"], finalizer);
        self.guest.put(&at, attachment, self.now);
        self.later(ATTACH, GuestDue::Attached { attachment: at });
    }

    pub(super) fn attached(&mut self, at: &str) {
        self.guest.edit(at, self.now, |attachment| set(attachment, &["status", "attached"], json!(true)));
    }

    /// A volume is detached; if its node went silent meanwhile, only after the controller gave up on it.
    pub(super) fn detached(&mut self, at: &str) {
        let Some(attachment) = self.guest.get(at).filter(|attachment| deleting(attachment)) else { return };
        let node = text(attachment, "/spec/nodeName").to_owned();
        let waited = self.guest.machines.get(&node).and_then(|machine| machine.silent_since);
        let waits = waited.is_some_and(|since| {
            let until = since.checked_add(jiff::SignedDuration::from_secs(360)).unwrap_or(self.now);
            until > self.now
        });
        if waits {
            return self.later(UNMOUNT, GuestDue::Detached { attachment: at.to_owned() });
        }
        self.guest.edit(at, self.now, |attachment| set(attachment, &["metadata", "finalizers"], json!([])));
    }

    /// `status.volumesAttached` of nodes.
    fn list_attached(&mut self) {
        let nodes: Vec<(String, Value)> =
            self.guest.all("nodes").map(|(key, value)| (key.clone(), value.clone())).collect();
        for (at, node) in nodes {
            let name = text(&node, "/metadata/name");
            let attached: Vec<Value> = self
                .guest
                .all("volumeattachments")
                .filter(|(_, one)| {
                    text(one, "/spec/nodeName") == name && one.pointer("/status/attached") == Some(&json!(true))
                })
                .map(|(_, one)| {
                    let volume = text(one, "/spec/source/persistentVolumeName");
                    json!({"name": format!("kubernetes.io/csi/{DRIVER}^{volume}"), "devicePath": ""})
                })
                .collect();
            if attached != items(&node, "/status/volumesAttached") {
                self.guest.edit(&at, self.now, |node| {
                    if attached.is_empty() {
                        crate::sim::world::guest::unset(node, &["status", "volumesAttached"]);
                    } else {
                        set(node, &["status", "volumesAttached"], json!(attached));
                    }
                });
            }
        }
    }
}
