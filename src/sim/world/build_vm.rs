//! VMs, from the document.

use jiff::Timestamp;

use super::build::{impossible, uuid};
use super::error::WorldError;
use super::state::State;
use super::vm::{Counts, Seats, Vm};
use crate::model::PciAddress;
use crate::sim::document::{Cluster, Power, Vm as VmSpec, VmDevice};
use crate::sim::seats::{self, Misfit};

/// A VM as the document has it; `datacenter`, `folder` and `host` are numbers.
pub(super) fn make_vm(
    spec: &VmSpec,
    datacenter: u32,
    folder: u32,
    host: u32,
    now: Timestamp,
    at: &str,
) -> Result<Vm, WorldError> {
    for device in &spec.devices {
        if let VmDevice::DirectPath(address) = device {
            address.parse::<PciAddress>().map_err(|error| impossible(at, error.to_string()))?;
        }
    }
    let needs_all = spec.devices.iter().any(|device| !matches!(device, VmDevice::Other(_)));
    Ok(Vm {
        name: spec.name.clone(),
        host,
        datacenter,
        folder,
        uuid: spec.uuid.clone().unwrap_or_else(|| uuid(&format!("vm {} {}", spec.host, spec.name))),
        power: spec.power,
        template: spec.template,
        vcls: spec.vcls,
        devices: spec.devices.clone(),
        slots: (0..).take(spec.devices.len()).collect(),
        configured: now,
        refit: None,
        device_host: host,
        memory_gib: spec.memory_gib,
        reserved_gib: spec.reserved_gib.unwrap_or(if needs_all { spec.memory_gib } else { 0 }),
        migrate: spec.migrate,
        power_off_policy: spec.power_off_policy,
        firmware: spec.firmware,
        extra: spec.extra.clone(),
        managed_by: spec.managed_by.clone(),
        node: spec.node.clone(),
        tools: spec.tools,
        refuses_shutdown: spec.refuses_shutdown,
        shutdown_takes: spec.shutdown_takes,
        power_on_takes: spec.power_on_takes,
        move_takes: spec.move_takes,
        seats: Seats::new(),
        bound: None,
        before: None,
        shutting_down: false,
        failed_moves: 0,
        counts: Counts::default(),
    })
}

/// Gives the VMs that run when the world begins their seats, in the order of the document.
pub(super) fn seat_all(state: &mut State) -> Result<(), WorldError> {
    let running: Vec<u32> =
        state.vms.iter().filter(|(_, vm)| vm.power == Power::On).map(|(number, _)| *number).collect();
    for number in running {
        let Some(vm) = state.vms.get_mut(&number) else { continue };
        // Not to be counted before it sits.
        vm.power = Power::Off;
        let vm = vm.clone();
        let at = format!("the VM `{}`", vm.name);
        let seats = seats::find(state, vm.host, &vm).map_err(|misfit| match misfit {
            Misfit::Graphics => impossible(&at, "runs, and no GPU of its host can take its vGPUs beside the others"),
            Misfit::Device(why) => impossible(&at, format!("runs, and cannot: {why}")),
            Misfit::Memory { .. } => {
                impossible(&at, "runs, and its host has not the memory that it and the others reserve")
            }
        })?;
        if let Some(vm) = state.vms.get_mut(&number) {
            vm.power = Power::On;
            vm.seats = seats;
        }
    }
    Ok(())
}

/// A VM that DRS has a setting for must be there.
pub(super) fn check_overrides(spec: &Cluster, at: &str) -> Result<(), WorldError> {
    let unknown = spec.drs.overrides.iter().find(|one| !spec.vms.iter().any(|vm| vm.name == one.vm));
    unknown.map_or(Ok(()), |one| {
        Err(impossible(&format!("{at}.drs.overrides"), format!("the cluster has no VM `{}`", one.vm)))
    })
}
