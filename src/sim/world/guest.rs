//! What is true of a guest cluster: its objects as its API server keeps them, and its machines.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::sim::document::NodeBoot;

/// A guest cluster.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::sim) struct Guest {
    /// The revision of the last change: what `resourceVersion` counts.
    pub revision: u64,
    /// Changes up to this one are forgotten.
    pub compacted: u64,
    /// Objects by [`key`].
    pub objects: BTreeMap<String, Arc<Value>>,
    /// What changed, oldest first.
    pub changes: VecDeque<Change>,
    /// The machines of its nodes by name of the node.
    pub machines: BTreeMap<String, Machine>,
    /// Budgets that their controller has not seen as they are.
    pub unseen: BTreeSet<String>,
    /// Which of the document's rules the container of a pod follows, by the pod's UID: one for each time that it
    /// was started, the last one now; none: no rule is for it.
    #[serde(default)]
    pub ruled: BTreeMap<String, Vec<Option<usize>>>,
    /// How many pods of a Job have failed, and until when its controller waits with the next one, by the Job's UID.
    #[serde(default)]
    pub retries: BTreeMap<String, (u32, Timestamp)>,
    /// How many names were made up.
    pub names: u64,
    /// Its controllers have something to look at.
    #[serde(skip)]
    pub dirty: bool,
}

/// A change of an object.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sim) struct Change {
    pub revision: u64,
    pub at: Timestamp,
    pub key: String,
    /// None: it was not there.
    pub before: Option<Arc<Value>>,
    /// None: it is gone.
    pub after: Option<Arc<Value>>,
}

/// A machine with a kubelet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sim) struct Machine {
    /// Its VM; none: it is a machine outside of this world.
    pub vm: Option<u32>,
    /// How often it was powered on, from 1.
    pub boots: u32,
    /// Whether it has power: one that boots has it, and no kubelet yet.
    pub on: bool,
    /// Whether its kubelet runs.
    pub runs: bool,
    /// Since when nothing is heard of it.
    pub silent_since: Option<Timestamp>,
    /// GPUs that its device plugin has registered since the boot.
    pub gpus: u32,
    /// GPUs that are in it.
    pub built_in: u32,
    /// What its driver calls them; none: nobody knows.
    #[serde(default)]
    pub product: Option<String>,
    pub boot: NodeBoot,
    /// `spec.providerID`, and the UUID of the SMBIOS.
    pub provider_id: Option<String>,
    pub system_uuid: Option<String>,
    /// Labels and annotations that a node has when it registers.
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

/// The key of an object, in the order in which lists have them.
pub(in crate::sim) fn key(resource: &str, namespace: &str, name: &str) -> String {
    format!("{resource}/{namespace}/{name}")
}

/// The text at a JSON pointer; empty if there is none.
pub(in crate::sim) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The whole number at a JSON pointer.
pub(in crate::sim) fn number(value: &Value, pointer: &str) -> Option<i64> {
    value.pointer(pointer).and_then(Value::as_i64)
}

/// The items at a JSON pointer.
pub(in crate::sim) fn items<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Whether an object is being deleted.
pub(in crate::sim) fn deleting(value: &Value) -> bool {
    value.pointer("/metadata/deletionTimestamp").is_some()
}

/// A time as Kubernetes writes it: whole seconds, as `metav1.Time` does.
pub(in crate::sim) fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl Guest {
    /// The object of this key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.objects.get(key).map(Arc::as_ref)
    }

    /// The objects of a resource, by key.
    pub fn all<'g>(&'g self, resource: &str) -> impl Iterator<Item = (&'g String, &'g Value)> {
        let (from, to) = (format!("{resource}/"), format!("{resource}0"));
        self.objects.range(from..to).map(|(key, value)| (key, value.as_ref()))
    }

    /// Keeps an object: it has a new `resourceVersion`, unless nothing changed. What is being deleted, has no
    /// finalizer left and nobody to wait for goes.
    pub fn put(&mut self, key: &str, mut value: Value, now: Timestamp) {
        let before = self.objects.get(key).cloned();
        let version = before.as_deref().and_then(|value| value.pointer("/metadata/resourceVersion")).cloned();
        set(&mut value, &["metadata", "resourceVersion"], version.unwrap_or_default());
        let waits = number(&value, "/metadata/deletionGracePeriodSeconds").is_some_and(|seconds| seconds > 0);
        if deleting(&value) && items(&value, "/metadata/finalizers").is_empty() && !waits {
            self.objects.insert(key.to_owned(), Arc::new(value));
            return self.remove(key, now);
        }
        if before.as_deref() == Some(&value) {
            return;
        }
        self.revision += 1;
        set(&mut value, &["metadata", "resourceVersion"], json!(self.revision.to_string()));
        let after = Arc::new(value);
        self.objects.insert(key.to_owned(), Arc::clone(&after));
        self.changed(key, before, Some(after), now);
    }

    /// Takes an object away.
    pub fn remove(&mut self, key: &str, now: Timestamp) {
        if let Some(before) = self.objects.remove(key) {
            self.revision += 1;
            self.changed(key, Some(before), None, now);
        }
    }

    /// Changes an object, if it is there.
    pub fn edit(&mut self, key: &str, now: Timestamp, f: impl FnOnce(&mut Value)) {
        if let Some(mut value) = self.objects.get(key).map(|value| value.as_ref().clone()) {
            f(&mut value);
            self.put(key, value, now);
        }
    }

    fn changed(&mut self, key: &str, before: Option<Arc<Value>>, after: Option<Arc<Value>>, at: Timestamp) {
        let revision = self.revision;
        self.changes.push_back(Change { revision, at, key: key.to_owned(), before, after });
        self.dirty = true;
    }

    /// Forgets changes from before a time.
    pub fn compact(&mut self, until: Timestamp) {
        while let Some(oldest) = self.changes.front().filter(|change| change.at < until) {
            self.compacted = oldest.revision;
            self.changes.pop_front();
        }
    }

    /// A number for a name that the cluster makes up.
    pub fn number(&mut self) -> u64 {
        self.names += 1;
        self.names
    }

    /// Five letters as the API server makes them up for `generateName`, the same in each run.
    pub fn suffix(&mut self) -> String {
        // `rand.String` of apimachinery: no vowels, so that no words come out.
        const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut number = self.number();
        let mut letters = [b'b'; 5];
        for letter in letters.iter_mut().rev() {
            let place = usize::try_from(number % LETTERS.len() as u64).unwrap_or_default();
            *letter = LETTERS.get(place).copied().unwrap_or(b'b');
            number /= LETTERS.len() as u64;
        }
        letters.iter().map(|letter| char::from(*letter)).collect()
    }
}

/// Sets a value at a path of names; what is missing on the way is made.
pub(in crate::sim) fn set(value: &mut Value, path: &[&str], to: Value) {
    let Some((last, above)) = path.split_last() else { return };
    let mut at = value;
    for name in above {
        if !at.get(*name).is_some_and(Value::is_object)
            && let Some(map) = at.as_object_mut()
        {
            map.insert((*name).to_owned(), json!({}));
        }
        match at.get_mut(*name) {
            Some(next) => at = next,
            None => return,
        }
    }
    if let Some(map) = at.as_object_mut() {
        map.insert((*last).to_owned(), to);
    }
}

/// Takes away what is at a path of names.
pub(in crate::sim) fn unset(value: &mut Value, path: &[&str]) {
    let Some((last, above)) = path.split_last() else { return };
    let mut at = value;
    for name in above {
        match at.get_mut(*name) {
            Some(next) => at = next,
            None => return,
        }
    }
    if let Some(map) = at.as_object_mut() {
        map.shift_remove(*last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_a_new_version_only_if_it_changed() {
        let now = Timestamp::UNIX_EPOCH;
        let mut guest = Guest::default();
        guest.put("nodes//a", json!({"metadata": {"name": "a"}}), now);
        let version = |guest: &Guest| text(guest.get("nodes//a").unwrap(), "/metadata/resourceVersion").to_owned();
        let first = version(&guest);
        guest.edit("nodes//a", now, |_| {});
        assert_eq!(version(&guest), first);
        guest.edit("nodes//a", now, |node| set(node, &["spec", "unschedulable"], json!(true)));
        assert_ne!(version(&guest), first);
        assert_eq!(guest.changes.len(), 2);
    }

    #[test]
    fn what_has_a_finalizer_stays_until_it_is_taken_off() {
        let now = Timestamp::UNIX_EPOCH;
        let mut guest = Guest::default();
        let held = json!({"metadata": {"name": "p", "finalizers": ["example.com/hold"], "deletionTimestamp": "x"}});
        guest.put("pods/n/p", held, now);
        assert!(guest.get("pods/n/p").is_some());
        guest.edit("pods/n/p", now, |pod| set(pod, &["metadata", "finalizers"], json!([])));
        assert!(guest.get("pods/n/p").is_none());
    }

    #[test]
    fn made_up_names_are_the_same_each_time_and_differ() {
        let (mut one, mut other) = (Guest::default(), Guest::default());
        let first = one.suffix();
        assert_eq!(first, other.suffix());
        assert_ne!(first, one.suffix());
        assert_eq!(first.len(), 5);
    }
}
