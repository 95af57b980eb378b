//! Deletion with grace and finalizers, eviction, and garbage (kubernetes §1.5).

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::Cluster;
use super::control::GuestDue;
use super::pods::{finished, grace, ready};
use crate::sim::world::guest::{deleting, items, key, number, set, text, time, unset};

/// What the caller of a deletion asks for (`DeleteOptions`).
#[derive(Debug, Clone, Default)]
pub(in crate::sim) struct Removal {
    pub grace: Option<i64>,
    /// Dependents keep on without their owner.
    pub orphans: bool,
    pub dry_run: bool,
}

/// What an eviction came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sim) enum Evicted {
    Done,
    /// A budget does not allow it: its name, how many it needs and how many it has.
    Blocked {
        pdb: String,
        needs: i64,
        has: i64,
    },
    /// A budget has not been looked at since it was changed.
    Processed {
        pdb: String,
    },
    /// Several budgets take the pod.
    Several,
    /// It is not the pod that was meant.
    Another,
}

impl Cluster<'_> {
    /// Begins to delete an object; a pod ends within its grace.
    pub fn begin_deletion(&mut self, at: &str, asked: Option<i64>) {
        let Some(object) = self.guest.get(at).cloned() else { return };
        if !at.starts_with("pods/") {
            if items(&object, "/metadata/finalizers").is_empty() {
                self.guest.remove(at, self.now);
            } else if !deleting(&object) {
                let when = time(self.now);
                self.guest.edit(at, self.now, |object| {
                    set(object, &["metadata", "deletionTimestamp"], json!(when));
                    set(object, &["metadata", "deletionGracePeriodSeconds"], json!(0));
                });
            }
            return;
        }
        // A pod that no kubelet has, or that has ended, has nothing to wait for. A mirror pod neither: its
        // containers do not end with it.
        let mirror = object.pointer("/metadata/annotations/kubernetes.io~1config.mirror").is_some();
        let nothing = text(&object, "/spec/nodeName").is_empty() || finished(&object) || mirror;
        let seconds = if nothing { 0 } else { asked.unwrap_or_else(|| grace(&object)).max(0) };
        if let Some(known) = number(&object, "/metadata/deletionGracePeriodSeconds").filter(|_| deleting(&object)) {
            // Asked again: the grace can only get shorter.
            if seconds >= known && seconds > 0 {
                return;
            }
        }
        let by = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(self.now);
        self.guest.edit(at, self.now, |pod| {
            set(pod, &["metadata", "deletionTimestamp"], json!(time(by)));
            set(pod, &["metadata", "deletionGracePeriodSeconds"], json!(seconds));
        });
        if seconds > 0 {
            let most = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
            let takes = self.workload(&object).and_then(|work| work.stop).map_or(most, |stop| stop.0.min(most));
            self.later(takes, GuestDue::PodStops(self.containers(at, &object)));
        }
    }

    /// Deletes an object on behalf of somebody.
    pub fn delete(&mut self, at: &str, removal: &Removal) {
        if removal.dry_run {
            return;
        }
        if removal.orphans {
            let uid = self.guest.get(at).map(|object| text(object, "/metadata/uid").to_owned()).unwrap_or_default();
            for key in self.guest.objects.keys().cloned().collect::<Vec<_>>() {
                self.guest.edit(&key, self.now, |object| {
                    let owners = items(object, "/metadata/ownerReferences");
                    let left: Vec<Value> = owners.iter().filter(|owner| text(owner, "/uid") != uid).cloned().collect();
                    if left.len() == owners.len() {
                        return;
                    }
                    match left.is_empty() {
                        true => unset(object, &["metadata", "ownerReferences"]),
                        false => set(object, &["metadata", "ownerReferences"], json!(left)),
                    }
                });
            }
        }
        self.begin_deletion(at, removal.grace);
    }

    /// Evicts a pod, if budgets allow it (kubernetes §1.5, pkg/registry/core/pod/storage/eviction.go). They are
    /// asked first, and count it as gone; only its deletion sees whether it is the pod that was `meant`.
    pub fn evict(&mut self, at: &str, meant: bool, removal: &Removal) -> Evicted {
        let Some(pod) = self.guest.get(at).cloned() else { return Evicted::Done };
        let passes = finished(&pod) || deleting(&pod) || text(&pod, "/status/phase") == "Pending";
        let budgets = if passes { Vec::new() } else { self.budgets_of(&pod) };
        if budgets.len() > 1 {
            return Evicted::Several;
        }
        if let Some(pdb) = budgets.first() {
            let Some(object) = self.guest.get(pdb).cloned() else { return Evicted::Done };
            let name = text(&object, "/metadata/name").to_owned();
            let count = |field: &str| number(&object, &format!("/status/{field}")).unwrap_or(0);
            let (needs, has) = (count("desiredHealthy"), count("currentHealthy"));
            let always = text(&object, "/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow";
            // A pod that is not ready counts for nobody: by default it may go while enough others are.
            let free = !ready(&pod) && (always || has >= needs && needs > 0);
            if !free {
                if number(&object, "/status/observedGeneration") < number(&object, "/metadata/generation") {
                    return Evicted::Processed { pdb: name };
                }
                if count("disruptionsAllowed") <= 0 {
                    return Evicted::Blocked { pdb: name, needs, has };
                }
                if !removal.dry_run {
                    let (pod_name, now) = (text(&pod, "/metadata/name").to_owned(), self.now);
                    let left = count("disruptionsAllowed") - 1;
                    self.guest.edit(pdb, now, |pdb| {
                        set(pdb, &["status", "disruptionsAllowed"], json!(left));
                        set(pdb, &["status", "disruptedPods", &pod_name], json!(time(now)));
                    });
                }
            }
        }
        if !meant {
            return Evicted::Another;
        }
        if !removal.dry_run {
            if !passes {
                let mut marked = pod;
                let reason = ("EvictionByEvictionAPI", "Eviction API: evicting");
                self.condition(&mut marked, "DisruptionTarget", "True", reason.0, reason.1);
                self.guest.put(at, marked, self.now);
            }
            self.begin_deletion(at, removal.grace);
        }
        Evicted::Done
    }

    /// What nobody owns any more: dependents of objects that are gone, pods of nodes that are gone.
    pub(super) fn collect_garbage(&mut self) {
        let mut alive: Vec<&str> = self.guest.objects.values().map(|object| text(object, "/metadata/uid")).collect();
        alive.sort_unstable();
        let orphaned = |object: &Value| {
            let owners = items(object, "/metadata/ownerReferences");
            !owners.is_empty() && owners.iter().all(|owner| alive.binary_search(&text(owner, "/uid")).is_err())
        };
        let gone: Vec<String> = self
            .guest
            .objects
            .iter()
            .filter(|(_, object)| !deleting(object) && orphaned(object))
            .map(|(key, _)| key.clone())
            .collect();
        gone.iter().for_each(|at| self.begin_deletion(at, None));
        let nodeless: Vec<String> = self
            .guest
            .all("pods")
            .filter(|(_, pod)| {
                let node = text(pod, "/spec/nodeName");
                !node.is_empty() && self.guest.get(&key("nodes", "", node)).is_none()
            })
            .map(|(key, _)| key.clone())
            .collect();
        nodeless.iter().for_each(|at| self.begin_deletion(at, Some(0)));
    }
}
