//! Guest clusters, from the document: which machines they have.

use std::collections::{BTreeMap, BTreeSet};

use super::build::impossible;
use super::error::WorldError;
use super::guest::{Guest, Machine};
use super::state::State;
use super::vm::Vm;
use crate::sim::behaviour::{Due, Transition};
use crate::sim::cluster::{self, Cluster};
use crate::sim::document::{Guest as Spec, MachineId, NodeBoot, Power, VmNode, WorldSpec};

/// Makes the guest clusters; the VMs are there.
pub(super) fn make_guests(state: &mut State, spec: &WorldSpec) -> Result<(), WorldError> {
    for vm in state.vms.values() {
        if let Some(node) = &vm.node
            && !spec.guests.iter().any(|guest| guest.name == node.cluster)
        {
            let at = format!("the VM `{}`", vm.name);
            return Err(impossible(&at, format!("there is no guest cluster `{}`", node.cluster)));
        }
    }
    for (index, guest) in spec.guests.iter().enumerate() {
        let at = format!("guests[{index}]");
        if spec.guests.iter().take(index).any(|known| known.name == guest.name || known.address == guest.address) {
            return Err(impossible(&at, format!("the name or the address of `{}` is there twice", guest.name)));
        }
        let (machines, cordoned) = machines(state, guest, &at)?;
        let nodes: Vec<&str> = machines.keys().map(String::as_str).collect();
        cluster::check(guest, &nodes).map_err(|(below, what)| impossible(&format!("{at}.{below}"), what))?;
        let mut made = Guest { machines, ..Guest::default() };
        let mut begins = Cluster::new(guest, &mut made, state.time);
        begins.begin(&cordoned);
        for (after, what) in begins.due {
            let at = crate::sim::behaviour::later(state.time, after);
            let number = state.number();
            state.queue.insert(number, Due { at, what: Transition::Guest { cluster: guest.name.clone(), what } });
        }
        state.guests.insert(guest.name.clone(), made);
    }
    Ok(())
}

type Machines = (BTreeMap<String, Machine>, BTreeSet<String>);

/// The machines of a cluster by the names of their nodes, and which of the nodes are cordoned.
fn machines(state: &State, guest: &Spec, at: &str) -> Result<Machines, WorldError> {
    let mut machines = BTreeMap::new();
    let mut cordoned = BTreeSet::new();
    for (number, vm) in &state.vms {
        let Some(node) = vm.node.as_ref().filter(|node| node.cluster == guest.name) else { continue };
        let name = node.name.clone().unwrap_or_else(|| vm.name.clone());
        let machine = Machine {
            vm: Some(*number),
            boots: 1,
            // One that is off has registered its node before: see where the cluster begins.
            on: true,
            runs: vm.power == Power::On,
            silent_since: None,
            gpus: 0,
            built_in: vm.gpu_devices(),
            product: crate::sim::seats::product(state, vm),
            boot: node.boot.clone(),
            provider_id: machine_id(state, vm, node, &node.provider_id)?.map(|uuid| format!("vsphere://{uuid}")),
            system_uuid: machine_id(state, vm, node, &node.system_uuid)?,
            labels: node.labels.clone(),
            annotations: node.annotations.clone(),
        };
        if node.unschedulable {
            cordoned.insert(name.clone());
        }
        if machines.insert(name.clone(), machine).is_some() {
            return Err(impossible(at, format!("it has two nodes `{name}`")));
        }
    }
    for node in &guest.nodes {
        let uuid = super::build::uuid(&format!("{} {} elsewhere", guest.name, node.name));
        let machine = Machine {
            vm: None,
            boots: 1,
            on: true,
            runs: true,
            silent_since: None,
            gpus: 0,
            built_in: node.gpus,
            product: None,
            boot: NodeBoot::default(),
            provider_id: Some(format!("vsphere://{uuid}")),
            system_uuid: Some(uuid),
            labels: node.labels.clone(),
            annotations: BTreeMap::new(),
        };
        if node.unschedulable {
            cordoned.insert(node.name.clone());
        }
        if machines.insert(node.name.clone(), machine).is_some() {
            return Err(impossible(at, format!("it has two nodes `{}`", node.name)));
        }
    }
    Ok((machines, cordoned))
}

fn machine_id(state: &State, vm: &Vm, node: &VmNode, id: &MachineId) -> Result<Option<String>, WorldError> {
    Ok(match id {
        MachineId::Missing => None,
        MachineId::Own => Some(vm.uuid.clone()),
        MachineId::Swapped => Some(swapped(&vm.uuid)),
        MachineId::Of(name) => {
            let other = state.vms.values().find(|other| other.name == *name);
            let other = other.ok_or_else(|| {
                impossible(
                    &format!("the VM `{}`", vm.name),
                    format!("its node in `{}` names no VM `{name}`", node.cluster),
                )
            })?;
            Some(other.uuid.clone())
        }
    })
}

/// A UUID with its first three groups in the other byte order, as SMBIOS before 2.6 has it (kubernetes §6.8).
fn swapped(uuid: &str) -> String {
    let groups: Vec<String> = uuid
        .split('-')
        .enumerate()
        .map(|(index, group)| {
            let pairs: Vec<&str> =
                (0..group.len()).step_by(2).filter_map(|start| group.get(start..start + 2)).collect();
            if index < 3 { pairs.into_iter().rev().collect() } else { group.to_owned() }
        })
        .collect();
    groups.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_byte_order_turns_three_groups_over() {
        let uuid = "42389ab1-2c3d-4e5f-8192-a3b4c5d6e7f8";
        assert_eq!(swapped(uuid), "b19a3842-3d2c-5f4e-8192-a3b4c5d6e7f8");
        assert_eq!(swapped(&swapped(uuid)), uuid);
    }
}
