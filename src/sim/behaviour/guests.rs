//! Guest clusters and the fleet under them: VMs that are nodes, and whoever acts on nodes.

use serde_json::json;

use super::Moment;
use super::due::Transition;
use super::moment::NewWrite;
use crate::sim::cluster::{Cluster, GuestDue};
use crate::sim::document::{Actor, Deed};
use crate::sim::world::guest::{set, unset};

impl Moment<'_> {
    /// Does something in a guest cluster, and lets its controllers follow. None: there is no such cluster.
    pub fn in_cluster<R>(&mut self, name: &str, f: impl FnOnce(&mut Cluster<'_>) -> R) -> Option<R> {
        let spec = self.spec.guests.iter().find(|guest| guest.name == name)?;
        let guest = self.state.guests.get_mut(name)?;
        let before = guest.revision;
        let mut cluster = Cluster::new(spec, guest, self.state.time);
        let result = f(&mut cluster);
        cluster.settle();
        let (due, programs) = (cluster.due, cluster.programs);
        self.changed |= guest.revision != before;
        for (after, what) in due {
            self.schedule(after, Transition::Guest { cluster: name.to_owned(), what });
        }
        for program in programs {
            self.wrote_in_cluster(name, program.who, &program.object, program.call, program.arguments, true);
        }
        Some(result)
    }

    pub(super) fn guest_due(&mut self, cluster: &str, what: GuestDue) {
        self.in_cluster(cluster, |cluster| cluster.happen(what));
    }

    /// Lists a write in a guest cluster; `key` is `nodes//serve-1` or `pods/default/web-0`.
    pub fn wrote_in_cluster(
        &mut self,
        cluster: &str,
        who: &str,
        key: &str,
        call: &str,
        arguments: String,
        effect: bool,
    ) {
        let (object, id) = named(cluster, key);
        self.wrote(NewWrite { who, object: &object, id: &id, call, arguments, effect });
        if effect {
            self.count_call(call, &id);
        }
    }

    /// An actor does something in a guest cluster.
    pub(super) fn acts_on_guest(&mut self, actor: &Actor, cluster: &str, key: &str) {
        let (call, arguments) = match &actor.does {
            Deed::Cordon { .. } => ("patch nodes".to_owned(), "unschedulable=true".to_owned()),
            Deed::Uncordon { .. } => ("patch nodes".to_owned(), "unschedulable=false".to_owned()),
            Deed::Annotate { key, value: Some(value), .. } => ("patch nodes".to_owned(), format!("{key}={value}")),
            Deed::Annotate { key, .. } => ("patch nodes".to_owned(), format!("{key}-")),
            _ => (format!("delete {}", key.split('/').next().unwrap_or_default()), String::new()),
        };
        let done = self.in_cluster(cluster, |cluster| {
            let there = cluster.guest.get(key).is_some();
            let now = cluster.now;
            match &actor.does {
                Deed::Cordon { .. } => {
                    cluster.guest.edit(key, now, |node| set(node, &["spec", "unschedulable"], json!(true)));
                }
                Deed::Uncordon { .. } => cluster.guest.edit(key, now, |node| unset(node, &["spec", "unschedulable"])),
                Deed::Annotate { key: name, value, .. } => {
                    let path = ["metadata", "annotations", name];
                    cluster.guest.edit(key, now, |node| match value {
                        Some(value) => set(node, &path, json!(value)),
                        None => unset(node, &path),
                    });
                }
                _ => cluster.begin_deletion(key, None),
            }
            there
        });
        let effect = done == Some(true);
        self.wrote_in_cluster(cluster, &actor.who, key, &call, arguments, effect);
    }

    /// A VM was powered on or off: the machine of its node, if it is one, follows.
    pub(super) fn node_power(&mut self, number: u32, on: bool) {
        let Some(vm) = self.state.vms.get(&number) else { return };
        let Some(node) = &vm.node else { return };
        let (cluster, name) = (node.cluster.clone(), node.name.clone().unwrap_or_else(|| vm.name.clone()));
        let (gpus, product) = (vm.gpu_devices(), crate::sim::seats::product(self.state, vm));
        self.in_cluster(&cluster, |cluster| {
            if on {
                cluster.machine_on(&name, gpus, product);
            } else {
                cluster.machine_off(&name);
            }
        });
    }
}

/// Name and id of an object of a cluster, as the world's log and its rules have them: `serve-1` and
/// `k8s-serve/nodes/serve-1`, `default/web-0` and `k8s-serve/pods/default/web-0`.
pub(in crate::sim) fn named(cluster: &str, key: &str) -> (String, String) {
    let (resource, rest) = key.split_once('/').unwrap_or((key, ""));
    let name = rest.trim_start_matches('/').to_owned();
    let id = format!("{cluster}/{resource}/{name}");
    (name, id.trim_end_matches('/').to_owned())
}
