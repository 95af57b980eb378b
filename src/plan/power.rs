//! What the steps that stop and start VMs find before their effect, and what proves them.

use super::blocks::{TaskKind, not_connected, running, vm_label};
use super::check::{Verify, done, refused};
use super::device::Gap;
use super::vms::device_words;
use super::{Check, Memory, OurMaintenance};
use crate::model::{Fact, HostView, MoRef, PowerState, VmGpuDevice, VmView};

/// What is found before a guest is shut down.
pub(super) fn stop(vm: &MoRef, view: &HostView) -> Result<Check, Check> {
    if let Some(why) = not_connected(view) {
        return refused("a host that answers", why);
    }
    let Some(found) = on_host(vm, view)? else { return done("it is not on this host any more") };
    match &found.power {
        Fact::Known(PowerState::Off) => return done("powered off"),
        Fact::Known(PowerState::On) => {}
        other => return refused(&format!("{} powered on or off", vm_label(found)), shown(other)),
    }
    if *Gap::need(&view.in_maintenance, "runtime.inMaintenanceMode")? {
        return refused("no VM powered on in maintenance mode", format!("{} is", vm_label(found)));
    }
    // On a host that does not close, the VM could be started again at once.
    if running(view, TaskKind::Enter).is_none() {
        return refused("a host that enters maintenance mode", "no such task runs");
    }
    Ok(Check::Ready)
}

/// Whether the VM is off, or gone from the host.
pub(super) fn stopped(vm: &MoRef, view: &HostView) -> Verify {
    match on_host(vm, view) {
        Ok(None) => reached("it is not on this host any more"),
        Ok(Some(found)) if found.power == Fact::Known(PowerState::Off) => reached("powered off"),
        Ok(Some(found)) => waits(format!("{} to be powered off", vm_label(found))),
        Err(gap) => waits(gap.to_string()),
    }
}

/// What is found before a VM is powered on.
pub(super) fn start(vm: &MoRef, name: &str, gpus: &[VmGpuDevice], view: &HostView) -> Result<Check, Check> {
    if let Some(why) = not_connected(view) {
        return refused("a host that answers", why);
    }
    if *Gap::need(&view.in_maintenance, "runtime.inMaintenanceMode")? {
        return refused("a host that is not in maintenance mode", "it is");
    }
    let Some(found) = on_host(vm, view)? else {
        return refused(&format!("{name} on this host"), "it is not: somebody moved or deleted it");
    };
    match &found.power {
        Fact::Known(PowerState::Off) => {}
        // Somebody was faster, or our call got through: what is left is the proof.
        Fact::Known(PowerState::On) => {
            return match started(vm, view) {
                Verify::Reached { evidence } => Ok(Check::AlreadyDone { evidence }),
                Verify::Settling { .. } | Verify::NotYet { .. } => Ok(Check::InFlight { task: None }),
            };
        }
        other => return refused(&format!("{name} powered off"), shown(other)),
    }
    let now = Gap::need(&found.gpus, "its devices")?;
    let words = |devices: &[VmGpuDevice]| devices.iter().map(device_words).collect::<Vec<_>>().join(", ");
    if words(now) != words(gpus) {
        return refused(&format!("{name} with {}", words(gpus)), words(now));
    }
    Ok(Check::Ready)
}

/// Whether the VM runs on this host and has what it needs of its GPUs.
pub(super) fn started(vm: &MoRef, view: &HostView) -> Verify {
    let found = match on_host(vm, view) {
        Ok(Some(found)) => found,
        Ok(None) => return waits("the VM to be on this host".to_owned()),
        Err(gap) => return waits(gap.to_string()),
    };
    if found.power != Fact::Known(PowerState::On) {
        return waits(format!("{} to be powered on", vm_label(found)));
    }
    let gpus = match Gap::need(&found.gpus, "its devices") {
        Ok(gpus) => gpus,
        Err(gap) => return waits(gap.to_string()),
    };
    let mut evidence = vec!["powered on, on this host".to_owned()];
    let mut waiting_for = Vec::new();
    if gpus.iter().any(|device| matches!(device, VmGpuDevice::Vgpu { .. })) {
        match users(vm, view) {
            Ok(used) if used.is_empty() => {
                waiting_for.push(format!("a GPU to show that {} uses it", vm_label(found)));
            }
            Ok(used) => evidence.push(format!("uses {}", used.join(", "))),
            Err(gap) => waiting_for.push(gap.to_string()),
        }
    }
    for device in gpus {
        match device {
            VmGpuDevice::DynamicDirectPath { assigned: Fact::Known(assigned), .. } => {
                evidence.push(format!("has {assigned}"));
            }
            VmGpuDevice::DynamicDirectPath { .. } => {
                waiting_for.push(format!("{} to be given a device", vm_label(found)));
            }
            VmGpuDevice::Vgpu { .. } | VmGpuDevice::DirectPath { .. } | VmGpuDevice::Other(_) => {}
        }
    }
    if waiting_for.is_empty() { Verify::Reached { evidence } } else { Verify::NotYet { waiting_for } }
}

/// Whether the task that closes the host runs, or has ended well.
pub(super) fn closing(view: &HostView, memory: &Memory) -> Verify {
    if view.in_maintenance == Fact::Known(true) {
        return reached("in maintenance mode");
    }
    match running(view, TaskKind::Enter).filter(|_| memory.maintenance == OurMaintenance::Asked) {
        Some(task) => reached(format!("{} runs ({})", task.what, task.moref)),
        None => waits("the task that enters maintenance mode to run".to_owned()),
    }
}

/// The VM, if it is registered on the host.
fn on_host<'a>(vm: &MoRef, view: &'a HostView) -> Result<Option<&'a VmView>, Gap> {
    Ok(Gap::need(&view.vms, "vm")?.iter().find(|found| found.moref == *vm))
}

/// Addresses of the GPUs that the VM uses, as the host tells them.
fn users(vm: &MoRef, view: &HostView) -> Result<Vec<String>, Gap> {
    let states = Gap::need(&view.graphics_active, "config.graphicsInfo")?;
    Ok(states.iter().filter(|state| state.vms.contains(vm)).map(|state| state.address.to_string()).collect())
}

fn shown(power: &Fact<PowerState>) -> String {
    match power {
        Fact::Known(power) => power.to_string(),
        Fact::Absent => "no power state".to_owned(),
        Fact::Unknown { why } => why.clone(),
    }
}

fn reached(line: impl Into<String>) -> Verify {
    Verify::Reached { evidence: vec![line.into()] }
}

fn waits(line: String) -> Verify {
    Verify::NotYet { waiting_for: vec![line] }
}
