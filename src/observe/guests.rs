//! The guest clusters of a Site, and which VM is which of their nodes.

use std::collections::{BTreeMap, BTreeSet};

use super::fleet::Fleet;
use crate::base::cause::chain;
use crate::k8s::Client;
use crate::model::{Fact, GuestView, HostRecord, HostRef, NodeView, Observed, PowerState, VmView, machine_key};

/// The guest clusters of a Site: a client for each, or why there is none.
#[derive(Debug, Default)]
pub struct Guests {
    clients: BTreeMap<String, Result<Client, String>>,
}

/// Why a guest cluster is not asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoGuest {
    /// The Site has none of this name.
    #[error("the Site has no guest cluster {0}")]
    NotOfSite(String),
    /// There is no way to it.
    #[error("{0}")]
    NoWay(String),
}

/// The nodes of one cluster.
type Read = Result<(GuestView, Vec<NodeView>), String>;

impl Guests {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// With a cluster of this name: a client, or why there is none, to the deepest cause. Its hosts are then
    /// refused, and others go on (FORMATS rule 14).
    pub fn add(&mut self, name: &str, client: Result<Client, String>) {
        self.clients.insert(name.to_owned(), client);
    }

    /// Whether the Site has none.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    fn client(&self, cluster: &str) -> Result<&Client, NoGuest> {
        match self.clients.get(cluster) {
            Some(Ok(client)) => Ok(client),
            Some(Err(why)) => Err(NoGuest::NoWay(why.clone())),
            None => Err(NoGuest::NotOfSite(cluster.to_owned())),
        }
    }

    /// The nodes of all clusters, read at the same time.
    async fn nodes(&self) -> BTreeMap<String, Read> {
        let all = self.clients.iter().map(|(name, client)| async move {
            let read = match client {
                Ok(client) => read(client).await,
                Err(why) => Err(why.clone()),
            };
            (name.clone(), read)
        });
        futures::future::join_all(all).await.into_iter().collect()
    }
}

async fn read(client: &Client) -> Read {
    let said = |error| chain(&error);
    let view = client.describe().await.map_err(said)?;
    let nodes = client.nodes().await.map_err(said)?;
    Ok((GuestView { nodes: u32::try_from(nodes.len()).unwrap_or(u32::MAX), ..view }, nodes))
}

impl Fleet {
    /// The client of a guest cluster.
    ///
    /// # Errors
    /// [`NoGuest`].
    pub fn guest(&self, cluster: &str) -> Result<&Client, NoGuest> {
        self.guests.client(cluster)
    }

    /// As [`Fleet::facts`], with the nodes that VMs of these hosts are.
    pub async fn facts_and_nodes(&self, hosts: &[HostRef]) -> Observed {
        let (mut observed, mut nodes) = futures::join!(self.facts(hosts), self.guests.nodes());
        join(observed.hosts.values_mut(), &mut nodes);
        observed.guests = views(nodes);
        observed
    }

    /// As [`Fleet::host`], with the nodes that its VMs are, and the guest clusters. Whether a node runs on a VM of
    /// another host is not known then: [`Fleet::facts_and_nodes`] of all of them tells.
    pub async fn host_and_nodes(&self, host: &HostRef) -> (HostRecord, BTreeMap<String, Fact<GuestView>>) {
        let (mut record, mut nodes) = futures::join!(self.host(host), self.guests.nodes());
        join(std::iter::once(&mut record), &mut nodes);
        (record, views(nodes))
    }

    /// What is said of the node that a VM is, where nodes are not asked for.
    pub(super) fn node_unasked(&self) -> Fact<Box<NodeView>> {
        match self.guests.is_empty() {
            true => Fact::Absent,
            false => Fact::unknown("the guest clusters were not asked"),
        }
    }
}

fn views(nodes: BTreeMap<String, Read>) -> BTreeMap<String, Fact<GuestView>> {
    let view = |read: Read| read.map_or_else(Fact::unknown, |(view, _)| Fact::Known(view));
    nodes.into_iter().map(|(name, read)| (name, view(read))).collect()
}

/// Gives each VM the node that it is, and says of each cluster which of its nodes are none of these VMs.
fn join<'a>(records: impl Iterator<Item = &'a mut HostRecord>, nodes: &mut BTreeMap<String, Read>) {
    if nodes.is_empty() {
        return;
    }
    let mut vms: Vec<&mut VmView> = records
        .filter_map(|record| record.view.as_mut().ok())
        .filter_map(|view| match &mut view.vms {
            Fact::Known(vms) => Some(vms),
            Fact::Absent | Fact::Unknown { .. } => None,
        })
        .flatten()
        .collect();
    let mut machines: BTreeMap<Key, Vec<Machine>> = BTreeMap::new();
    for vm in &vms {
        if let Some(key) = key_of(vm) {
            machines.entry(key).or_default().push(Machine::of(vm));
        }
    }
    let mut by_machine: BTreeMap<Key, Vec<&NodeView>> = BTreeMap::new();
    for (view, nodes) in nodes.values_mut().filter_map(|read| read.as_mut().ok()) {
        for node in nodes.iter() {
            let keys = keys(node);
            let named = || keys.iter().filter_map(|key| machines.get(key)).flatten();
            let name = || node.node.name.clone();
            if keys.is_empty() {
                view.unidentified.insert(name(), "it does not say which machine it runs on".to_owned());
            } else if let Some(why) = contradiction(node, named()) {
                view.unidentified.insert(name(), why);
            } else if named().next().is_none() {
                view.elsewhere.push(name());
            }
            keys.into_iter().for_each(|key| by_machine.entry(key).or_default().push(node));
        }
    }
    for vm in &mut vms {
        vm.node = match (&vm.bios_uuid, key_of(vm)) {
            (Fact::Unknown { why }, _) => Fact::unknown(format!("its BIOS UUID could not be read: {why}")),
            (_, None) => Fact::Absent,
            (_, Some(key)) => node_of(by_machine.get(&key).map(Vec::as_slice).unwrap_or_default(), &machines[&key]),
        };
    }
}

/// What a machine is known by, in either byte order.
type Key = [u8; 16];

/// A VM, as far as it decides which node it may be.
struct Machine {
    name: String,
    power: Fact<PowerState>,
}

impl Machine {
    fn of(vm: &VmView) -> Self {
        let name = vm.name.known().cloned().unwrap_or_else(|| vm.moref.to_string());
        Self { name, power: vm.power.clone() }
    }

    /// Whether nothing can run on it now.
    fn stands_still(&self) -> bool {
        matches!(self.power, Fact::Known(PowerState::Off | PowerState::Suspended))
    }
}

fn key_of(vm: &VmView) -> Option<Key> {
    vm.bios_uuid.known().and_then(|uuid| machine_key(uuid))
}

/// The machines that a node names. Of two ids that name one machine, one is enough.
fn keys(node: &NodeView) -> BTreeSet<Key> {
    node.machine_ids().into_iter().filter_map(machine_key).collect()
}

/// Why a node does not run on the machine that it names: its kubelet was heard of within the minute, and of
/// `named`, the VMs of this machine, none runs. With a mark on it a visit stops or has stopped its VM, and
/// Kubernetes has not noticed yet ([`NodeView::ready`]).
fn contradiction<'a>(node: &NodeView, mut named: impl Iterator<Item = &'a Machine> + Clone) -> Option<String> {
    let first = named.clone().next()?;
    let heard_of = node.ready == Fact::Known(true) && node.mark == Fact::Absent;
    (heard_of && named.all(Machine::stands_still))
        .then(|| format!("it is Ready, and the VM that it names, {}, does not run", first.name))
}

/// The node of a VM, of those that name its machine. `vms`: the VMs with this machine's UUID.
fn node_of(nodes: &[&NodeView], vms: &[Machine]) -> Fact<Box<NodeView>> {
    let names = || nodes.iter().map(|node| node.node.to_string()).collect::<Vec<_>>().join(", ");
    match nodes {
        [] => Fact::Absent,
        [_] if vms.len() > 1 => {
            let vms: Vec<&str> = vms.iter().map(|vm| vm.name.as_str()).collect();
            Fact::unknown(format!("{} have the BIOS UUID of the node {}", vms.join(" and "), names()))
        }
        [node] if keys(node).len() > 1 => Fact::unknown(format!(
            "the node {} names two machines: {} (spec.providerID, status.nodeInfo.systemUUID)",
            node.node,
            node.machine_ids().join(" and ")
        )),
        [node] => match contradiction(node, vms.iter()) {
            Some(why) => Fact::unknown(format!("the node {} says that it runs on it, but {why}", node.node)),
            None => Fact::Known(Box::new((*node).clone())),
        },
        _ => Fact::unknown(format!("{} nodes say that they are this VM: {}", nodes.len(), names())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NodeRef;

    const BIOS: &str = "42389ab1-2c3d-4e5f-8192-a3b4c5d6e7f8";
    /// The same machine, as older SMBIOS versions write it.
    const SWAPPED: &str = "b19a3842-3d2c-5f4e-8192-a3b4c5d6e7f8";
    const OTHER: &str = "50011111-2222-3333-4444-555566667777";

    fn node(cluster: &str, name: &str, provider: Option<&str>, system: Option<&str>) -> NodeView {
        let fact = |id: Option<String>| id.map_or(Fact::Absent, Fact::Known);
        NodeView {
            node: NodeRef { cluster: cluster.into(), name: name.into(), uid: format!("uid-{name}") },
            version: "1".into(),
            deleting: false,
            provider_id: fact(provider.map(|id| format!("vsphere://{id}"))),
            system_uuid: fact(system.map(str::to_owned)),
            boot_id: Fact::Known("b1".into()),
            unschedulable: false,
            ready: Fact::Known(true),
            allocatable: Fact::Absent,
            mark: Fact::Absent,
            left_off: false,
            machine: Fact::Absent,
            attached: vec![],
        }
    }

    /// A VM that runs.
    fn machine(name: &str) -> Machine {
        Machine { name: name.to_owned(), power: Fact::Known(PowerState::On) }
    }

    /// What the VM with [`BIOS`] is, among these nodes.
    fn found(nodes: &[NodeView], vms: &[&str]) -> Fact<String> {
        let names: Vec<Machine> = vms.iter().map(|name| machine(name)).collect();
        let mine = nodes.iter().filter(|node| node.machine_ids().iter().any(|id| machine_key(id) == machine_key(BIOS)));
        node_of(&mine.collect::<Vec<_>>(), &names).map(|node| node.node.name)
    }

    #[test]
    fn a_vm_is_the_node_of_its_machine_whatever_its_name() {
        let one =
            |provider, system| found(&[node("a", "n1", provider, system), node("a", "n2", Some(OTHER), None)], &["vm"]);
        for (provider, system) in
            [(Some(BIOS), None), (None, Some(BIOS)), (Some(BIOS), Some(SWAPPED)), (None, Some(SWAPPED))]
        {
            assert_eq!(one(provider, system), Fact::Known("n1".into()), "{provider:?} {system:?}");
        }
        assert_eq!(one(None, None), Fact::Absent);
        assert_eq!(one(Some("vm"), None), Fact::Absent, "a name is no machine");
    }

    #[test]
    fn a_vm_of_which_two_things_are_said_is_unknown() {
        let unknown = |nodes: &[NodeView], vms: &[&str], word: &str| {
            let Fact::Unknown { why } = found(nodes, vms) else { panic!("{word}: it is known") };
            assert!(why.contains(word), "{why}");
        };
        unknown(&[node("a", "n1", Some(BIOS), None), node("b", "n1", None, Some(SWAPPED))], &["vm"], "2 nodes say");
        unknown(&[node("a", "n1", Some(BIOS), Some(OTHER))], &["vm"], "names two machines");
        unknown(&[node("a", "n1", Some(BIOS), None)], &["vm", "copy of vm"], "vm and copy of vm");
    }

    #[test]
    fn a_node_that_is_ready_runs_on_no_vm_that_stands_still() {
        let ready = node("a", "n1", Some(BIOS), None);
        let vm = |power: Fact<PowerState>| Machine { power, ..machine("vm-9") };
        let is = |node: &NodeView, power: Fact<PowerState>| node_of(&[node], &[vm(power)]).map(|node| node.node.name);
        let n1 = Fact::Known("n1".to_owned());
        for power in [PowerState::Off, PowerState::Suspended] {
            let Fact::Unknown { why } = is(&ready, Fact::Known(power)) else { panic!("it is believed") };
            assert!(why.contains("the node n1 of a says") && why.contains("vm-9, does not run"), "{why}");
        }
        assert_eq!(is(&ready, Fact::Known(PowerState::On)), n1);
        assert_eq!(is(&ready, Fact::unknown("no privilege")), n1, "it may run");
        for ready in [Fact::Known(false), Fact::unknown("NodeStatusUnknown"), Fact::Absent] {
            let stopped = NodeView { ready, ..node("a", "n1", Some(BIOS), None) };
            assert_eq!(is(&stopped, Fact::Known(PowerState::Off)), n1, "it went down with its VM");
        }
        let ours = NodeView { mark: Fact::Known("{}".into()), ..ready.clone() };
        assert_eq!(is(&ours, Fact::Known(PowerState::Off)), n1, "its VM was stopped just now");
        let copies = [vm(Fact::Known(PowerState::Off)), machine("copy")];
        assert_eq!(contradiction(&ready, copies.iter()), None, "it may be the copy");
    }
}
