//! Other devices for a VM: `ReconfigVM_Task` (vsphere-gpu §1.6, §4z).
//!
//! A client gives new devices negative keys, each its own within the call; the server gives the keys and
//! the units that they then have. What it answers to two equal keys is not documented: `InvalidDeviceSpec`
//! names the second (unverified).

use std::time::Duration;

use super::Moment;
use super::tasks::{NewTask, TaskFate};
use crate::sim::document::{Power, VmDevice};
use crate::sim::fault::VimFault;
use crate::sim::world::task::{Failure, Task};
use crate::sim::world::vm::{Refit, Vm};

/// How long it takes.
const TAKES: Duration = Duration::from_secs(2);

/// What a client asks for.
#[derive(Debug)]
pub(in crate::sim) struct Wish {
    /// The `changeVersion` that the client has read.
    pub version: Option<String>,
    pub changes: Vec<Change>,
    pub extra: Vec<(String, String)>,
}

/// One change of a device.
#[derive(Debug)]
pub(in crate::sim) enum Change {
    Add { key: i64, unit: Option<u32>, device: VmDevice },
    Remove { key: i64 },
}

impl Moment<'_> {
    /// `ReconfigVM_Task`. What is wrong with it is in its task.
    pub fn reconfigure(&mut self, vm: u32, wish: &Wish, user: &str, fate: TaskFate) -> Result<u64, VimFault> {
        let known = self.vm(vm)?;
        let made = refit(known, wish);
        let host = known.host;
        self.vm_idle(vm)?;
        let hollow = fate.hollow;
        let fate = TaskFate { doomed: fate.doomed.or(made.as_ref().err().cloned()), ..fate };
        let doomed = fate.doomed.is_some();
        let what = Task::RECONFIGURE;
        let task = self.start_task(NewTask { what, host, vm: Some(vm), user, cancelable: false, takes: TAKES, fate });
        if let (Ok(refit), false, false) = (made, hollow, doomed) {
            self.vm(vm)?.refit = Some(Refit { task, ..refit });
        }
        Ok(task)
    }

    /// A reconfiguration has run its time.
    pub(super) fn refitted(&mut self, task: u64) {
        let time = self.state.time;
        let of_task = |vm: &&mut Vm| vm.refit.as_ref().is_some_and(|refit| refit.task == task);
        if let Some(vm) = self.state.vms.values_mut().find(of_task)
            && let Some(Refit { devices, slots, extra, .. }) = vm.refit.take()
        {
            (vm.devices, vm.slots, vm.extra, vm.configured) = (devices, slots, extra, time);
        }
        self.finish(task, None);
    }
}

/// The configuration that the VM will have.
fn refit(vm: &Vm, wish: &Wish) -> Result<Refit, Failure> {
    if wish.version.as_ref().is_some_and(|version| *version != vm.configured.to_string()) {
        return Err(Failure::of("ConcurrentAccess"));
    }
    if vm.power != Power::Off && !wish.changes.is_empty() {
        return Err(Failure::of("InvalidPowerState"));
    }
    let mut fitted: Vec<(u32, VmDevice)> = vm.slots.iter().copied().zip(vm.devices.iter().cloned()).collect();
    let mut keys = Vec::new();
    for (index, change) in wish.changes.iter().enumerate() {
        let wrong = || Failure::of("InvalidDeviceSpec").with("deviceIndex", index);
        let at = |key: i64, slot: u32| i64::from(Vm::FIRST_KEY + slot) == key;
        match change {
            Change::Remove { key } => {
                let place = fitted.iter().position(|(slot, _)| at(*key, *slot)).ok_or_else(wrong)?;
                fitted.remove(place);
            }
            Change::Add { key, unit, device } => {
                let free = |slot: &u32| !fitted.iter().any(|(taken, _)| taken == slot);
                let asked = unit.map(|unit| unit.checked_sub(Vm::FIRST_UNIT));
                let slot = match asked {
                    Some(slot) => slot.filter(free).ok_or_else(wrong)?,
                    None => (0..).find(free).ok_or_else(wrong)?,
                };
                if keys.contains(key) || fitted.iter().any(|(slot, _)| at(*key, *slot)) {
                    return Err(wrong());
                }
                keys.push(*key);
                fitted.push((slot, device.clone()));
            }
        }
    }
    fitted.sort_by_key(|(slot, _)| *slot);
    let mut extra = vm.extra.clone();
    for (key, value) in &wish.extra {
        match value.as_str() {
            // An empty value takes the option away.
            "" => drop(extra.remove(key)),
            value => drop(extra.insert(key.clone(), value.to_owned())),
        }
    }
    let (slots, devices) = fitted.into_iter().unzip();
    Ok(Refit { task: 0, devices, slots, extra })
}
