//! Guest clusters and the fleet under them: VMs that are nodes, and whoever acts on nodes.

use super::Moment;
use super::due::Transition;
use super::moment::NewWrite;
use crate::sim::cluster::{Cluster, GuestDue};

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

    /// A VM was powered on or off: the machine of its node, if it is one, follows.
    pub(super) fn node_power(&mut self, number: u32, on: bool) {
        let Some(vm) = self.state.vms.get(&number) else { return };
        let Some(node) = &vm.node else { return };
        let (cluster, name) = (node.cluster.clone(), node.name.clone().unwrap_or_else(|| vm.name.clone()));
        let gpus = vm.gpu_devices();
        self.in_cluster(&cluster, |cluster| {
            if on {
                cluster.machine_on(&name, gpus);
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
