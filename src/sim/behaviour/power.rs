//! Power of VMs (vsphere-gpu §4z; DESIGN §3, honesty rules 1 and 3).

use std::time::Duration;

use super::Moment;
use super::due::Transition;
use super::tasks::{NewTask, TaskFate};
use crate::sim::document::{Power, Tools, VmFaults};
use crate::sim::drs;
use crate::sim::fault::VimFault;
use crate::sim::world::task::{Failure, Task};
use crate::sim::world::vm::{Bound, Vm};

/// How long a hard power-off takes.
const POWER_OFF: Duration = Duration::from_secs(3);

impl Moment<'_> {
    /// The VM of this number.
    pub fn vm(&mut self, vm: u32) -> Result<&mut Vm, VimFault> {
        self.state.vms.get_mut(&vm).ok_or_else(|| VimFault::gone("VirtualMachine", &format!("vm-{vm}")))
    }

    /// The task of this VM that is not at its end.
    pub(super) fn vm_task(&self, vm: u32) -> Option<u64> {
        let open = |task: &Task| task.vm == Some(vm) && task.state.is_open();
        self.state.tasks.iter().find(|(_, task)| open(task)).map(|(number, _)| *number)
    }

    pub(super) fn vm_idle(&self, vm: u32) -> Result<(), VimFault> {
        self.vm_task(vm).map_or(Ok(()), |task| Err(VimFault::task_in_progress(task)))
    }

    /// `PowerOnVM_Task`. What keeps it from starting is in its task.
    pub fn power_on(&mut self, vm: u32, pinned: Option<u32>, user: &str, fate: TaskFate) -> Result<u64, VimFault> {
        let known = self.vm(vm)?;
        if known.template {
            return Err(VimFault::named("NotSupported"));
        }
        let (on, host, takes) = (known.power == Power::On, known.host, known.power_on_takes.0);
        self.vm_idle(vm)?;
        let cluster = |host: u32| self.state.hosts.get(&host).map(|host| host.cluster);
        if pinned.is_some_and(|pinned| cluster(pinned) != cluster(host)) {
            return Err(VimFault::argument("host"));
        }
        let place = if on { Err(power_state("on")) } else { drs::start_place(self.state, vm, pinned) };
        self.told_by_the_call(&place)?;
        let hollow = fate.hollow;
        let fate = TaskFate { doomed: fate.doomed.or(place.as_ref().err().cloned()), ..fate };
        let what = Task::POWER_ON;
        let doomed = fate.doomed.is_some();
        let task = self.start_task(NewTask { what, host, vm: Some(vm), user, cancelable: true, takes, fate });
        if let (Ok((to, seats)), false, false) = (place, hollow, doomed) {
            self.vm(vm)?.bound = Some(Bound { to, seats, task });
        }
        Ok(task)
    }

    /// `readings.vmFaults`: whether the call itself says what is wrong.
    pub(super) fn told_by_the_call<T>(&self, place: &Result<T, Failure>) -> Result<(), VimFault> {
        match (self.spec.readings.vm_faults, place) {
            (VmFaults::InCall, Err(failure)) => Err(failure.fault()),
            _ => Ok(()),
        }
    }

    /// A power-on has run its time.
    pub(super) fn powered_on(&mut self, task: u64) {
        let Some((number, bound)) = self.take_bound(task) else { return self.finish(task, None) };
        // A power-on under way ends on a host that began to close meanwhile, not on a closed one.
        let up = |state: &crate::sim::world::state::Host| {
            state.connection == crate::sim::document::Connection::Connected && !state.maintenance
        };
        if !self.state.hosts.get(&bound.to).is_some_and(up) {
            return self.finish(task, Some(Failure::of("HostNotConnected")));
        }
        if let Some(vm) = self.state.vms.get_mut(&number) {
            vm.remember();
            vm.host = bound.to;
            vm.seats = bound.seats;
            vm.power = Power::On;
            vm.counts.starts += 1;
        }
        self.vm_event("VmPoweredOnEvent", number, "is powered on");
        self.node_power(number, true);
        self.finish(task, None);
    }

    /// Takes what a task had bound.
    pub(super) fn take_bound(&mut self, task: u64) -> Option<(u32, Bound)> {
        let (number, vm) =
            self.state.vms.iter_mut().find(|(_, vm)| vm.bound.as_ref().is_some_and(|bound| bound.task == task))?;
        Some((*number, vm.bound.take()?))
    }

    /// `PowerOffVM_Task`.
    pub fn power_off(&mut self, vm: u32, user: &str, fate: TaskFate) -> Result<u64, VimFault> {
        let known = self.vm(vm)?;
        let (on, host) = (known.power == Power::On, known.host);
        self.vm_idle(vm)?;
        let fate = TaskFate { doomed: fate.doomed.or((!on).then(|| power_state("off"))), ..fate };
        let (what, takes) = (Task::POWER_OFF, POWER_OFF);
        Ok(self.start_task(NewTask { what, host, vm: Some(vm), user, cancelable: false, takes, fate }))
    }

    /// `ShutdownGuest`: OK means that the guest was asked. It may take its time, or not heed it.
    pub fn shutdown_guest(&mut self, vm: u32) -> Result<(), VimFault> {
        let known = self.vm(vm)?;
        if known.power != Power::On {
            return Err(power_state("off").fault());
        }
        if known.tools != Tools::Running {
            return Err(VimFault::named("ToolsUnavailable"));
        }
        if known.refuses_shutdown || known.shutting_down {
            return Ok(());
        }
        known.shutting_down = true;
        let (takes, start) = (known.shutdown_takes.0, known.counts.starts);
        self.schedule(takes, Transition::ShutsDown { vm, start });
        self.changed = true;
        Ok(())
    }

    /// A guest has shut down, unless its VM was powered off and on meanwhile.
    pub(super) fn shuts_down(&mut self, vm: u32, start: u32) {
        if self.state.vms.get(&vm).is_some_and(|vm| vm.shutting_down && vm.counts.starts == start) {
            self.turn_off(vm);
        }
    }

    /// A VM is off from now on; a host that waits for it goes on closing.
    pub(super) fn turn_off(&mut self, number: u32) {
        let Some(vm) = self.state.vms.get_mut(&number).filter(|vm| vm.power == Power::On) else { return };
        vm.remember();
        vm.power = Power::Off;
        vm.seats.clear();
        vm.shutting_down = false;
        vm.counts.stops += 1;
        let (host, moving) = (vm.host, vm.bound.as_ref().map(|bound| bound.task));
        if let Some(task) = moving {
            self.finish(task, Some(power_state("off")));
        }
        self.vm_event("VmPoweredOffEvent", number, "is powered off");
        self.node_power(number, false);
        self.left(host);
    }
}

fn power_state(is: &str) -> Failure {
    let what = format!("The attempted operation cannot be performed in the current state (Powered {is}).");
    Failure::of("InvalidPowerState").saying(what)
}
