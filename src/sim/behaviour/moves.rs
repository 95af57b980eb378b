//! VMs change hosts: vMotion by DRS and by people, and DRS emptying a host that closes
//! (vsphere-gpu §3.4; DESIGN §3, honesty rules 1 and 2).
//!
//! ```text
//!   a host enters maintenance ──► one VM after the other: moves | is powered off | stays, with a reason
//!         ▲                                  │
//!         └── next pass, a minute later ◄────┘ whoever stays keeps the task open
//! ```

use std::time::Duration;

use super::Moment;
use super::due::Transition;
use super::moment::NewWrite;
use super::tasks::{NewTask, TaskFate};
use crate::sim::document::Power;
use crate::sim::drs::{self, Outlook};
use crate::sim::fault::VimFault;
use crate::sim::faults::Seen;
use crate::sim::world::task::{Failure, Task};
use crate::sim::world::vm::{Bound, Seats};

/// DRS looks at a cluster once a minute (vSphere 7 and later).
const DRS_PASS: Duration = Duration::from_secs(60);

/// How often a compute policy tries to power its VM on again (DESIGN §3, honesty rule 2).
const POLICY_RETRY: Duration = Duration::from_secs(180);

/// A VM that is off changes hosts on paper.
const COLD_MOVE: Duration = Duration::from_secs(5);

/// What the world's log calls a move by which DRS empties a host.
const EVACUATION: &str = "evacuation";

/// Who DRS is in the world's log.
const DRS: &str = "DRS";

impl Moment<'_> {
    /// `RelocateVM_Task` to another host. What keeps it from moving is in its task.
    pub fn relocate(&mut self, number: u32, to: u32, user: &str, fate: TaskFate) -> Result<u64, VimFault> {
        self.vm_idle(number)?;
        let vm = self.vm(number)?.clone();
        let hot = vm.power == Power::On;
        let place = if hot {
            drs::pinned_down(self.state, &vm).map_or_else(|| drs::can_move_to(self.state, &vm, to), Err)
        } else {
            drs::takes_vms(self.state, to).map(|()| Seats::new())
        };
        self.told_by_the_call(&place)?;
        let takes = if hot { vm.move_takes.0 } else { COLD_MOVE };
        Ok(self.start_move(number, place.map(|seats| (to, seats)), Mover { what: Task::RELOCATE, user, takes, fate }))
    }

    fn start_move(&mut self, number: u32, place: Result<(u32, Seats), Failure>, mover: Mover<'_>) -> u64 {
        let Mover { what, user, takes, fate } = mover;
        let host = self.state.vms.get(&number).map(|vm| vm.host).unwrap_or_default();
        let hollow = fate.hollow;
        let fate = TaskFate { doomed: fate.doomed.or(place.as_ref().err().cloned()), ..fate };
        let task = self.start_task(NewTask { what, host, vm: Some(number), user, cancelable: true, takes, fate });
        if let (Ok((to, seats)), false, Some(vm)) = (place, hollow, self.state.vms.get_mut(&number)) {
            vm.bound = Some(Bound { to, seats, task });
        }
        task
    }

    /// A move has run its time: it arrives, if the host that it goes to still takes VMs.
    pub(super) fn arrives(&mut self, task: u64) {
        let Some((number, bound)) = self.take_bound(task) else { return self.finish(task, None) };
        if let Err(failure) = drs::takes_vms(self.state, bound.to) {
            return self.move_failed(task, number, failure);
        }
        let Some(vm) = self.state.vms.get_mut(&number) else { return };
        vm.remember();
        let from = std::mem::replace(&mut vm.host, bound.to);
        if vm.power == Power::On {
            vm.seats = bound.seats;
            vm.counts.moves += 1;
        }
        self.vm_event("VmMigratedEvent", number, "has been migrated");
        self.finish(task, None);
        self.left(from);
    }

    /// A move ends with a fault after its call went well (case B14).
    pub(super) fn move_failed(&mut self, task: u64, number: u32, failure: Failure) {
        if let Some(vm) = self.state.vms.get_mut(&number) {
            vm.failed_moves += 1;
        }
        self.vm_event("VmFailedMigrateEvent", number, "cannot be migrated");
        self.finish(task, Some(failure));
    }

    /// A VM has left a host, or is off: a host that closes goes on.
    pub(super) fn left(&mut self, host: u32) {
        let Some(task) = self.open_task(host, &[Task::ENTER]) else { return };
        self.evacuate(task, host);
        self.may_close(task);
    }

    /// DRS looks at a closing host again and again, until its task is over.
    pub(super) fn drs_passes(&mut self, task: u64) {
        let Some(open) = self.state.tasks.get(&task).filter(|task| task.state.is_open() && !task.hollow) else {
            return;
        };
        let host = open.host;
        self.evacuate(task, host);
        self.may_close(task);
        self.schedule(DRS_PASS, Transition::DrsPasses { task });
    }

    /// Starts on the next VM of a closing host, one at a time.
    fn evacuate(&mut self, task: u64, host: u32) {
        if self.state.tasks.get(&task).is_none_or(|task| task.hollow || task.started_at.is_none()) {
            return;
        }
        let mut leaving: Vec<(u32, u32)> = self
            .state
            .vms
            .iter()
            .filter(|(_, vm)| vm.runs_on(host))
            .map(|(number, vm)| (vm.failed_moves, *number))
            .collect();
        leaving.sort_unstable();
        let ours = [Task::DRS_MOVE, Task::POWER_OFF];
        if self.state.tasks.values().any(|task| task.host == host && task.by_drs(&ours) && task.state.is_open()) {
            return;
        }
        for (_, number) in leaving {
            if self.vm_task(number).is_some() {
                continue;
            }
            match drs::outlook(self.state, number) {
                Outlook::Moves { to, seats } => return self.drs_moves(number, to, seats),
                Outlook::PowersOff => return self.drs_powers_off(number),
                Outlook::Recommends { .. } | Outlook::Stays { .. } => self.no_recommendation(task, number),
                Outlook::Nothing => {}
            }
        }
    }

    fn drs_moves(&mut self, number: u32, to: u32, seats: Seats) {
        let Some(vm) = self.state.vms.get(&number) else { return };
        let (name, takes) = (vm.name.clone(), vm.move_takes.0);
        let objects = [(Some(name.clone()), format!("vm-{number}"))];
        let fate = self.strike(&Seen::evacuation(&objects)).fate;
        let effect = fate.doomed.is_none() && !fate.hollow;
        self.start_move(number, Ok((to, seats)), Mover { what: Task::DRS_MOVE, user: "", takes, fate });
        let to = self.state.hosts.get(&to).map(|host| host.name.clone()).unwrap_or_default();
        self.wrote(NewWrite {
            who: DRS,
            object: &name,
            id: &format!("vm-{number}"),
            call: EVACUATION,
            arguments: format!("host={to}"),
            effect,
        });
    }

    fn drs_powers_off(&mut self, number: u32) {
        let name = self.state.vms.get(&number).map(|vm| vm.name.clone()).unwrap_or_default();
        let effect = self.power_off(number, "", TaskFate::default()).is_ok();
        let id = format!("vm-{number}");
        let arguments = String::new();
        self.wrote(NewWrite { who: DRS, object: &name, id: &id, call: "PowerOffVM_Task", arguments, effect });
        if self.state.vms.get(&number).is_some_and(|vm| vm.power_off_policy) {
            self.schedule(POLICY_RETRY, Transition::PolicyPowersOn { vm: number });
        }
    }

    /// A compute policy powers its VM on again, as often as it takes (honesty rule 2).
    pub(super) fn policy_powers_on(&mut self, number: u32) {
        let Some(vm) = self.state.vms.get(&number) else { return };
        if vm.power == Power::On {
            return;
        }
        let (name, id) = (vm.name.clone(), format!("vm-{number}"));
        let task = self.power_on(number, None, "", TaskFate::default()).ok();
        let doomed = task.and_then(|task| self.state.tasks.get(&task)).is_none_or(|task| task.doomed.is_some());
        let (call, arguments) = ("PowerOnVM_Task", String::new());
        self.wrote(NewWrite { who: DRS, object: &name, id: &id, call, arguments, effect: !doomed });
        self.schedule(POLICY_RETRY, Transition::PolicyPowersOn { vm: number });
    }

    /// §1.7: told once for each VM and task.
    fn no_recommendation(&mut self, task: u64, number: u32) {
        const KIND: &str = "NoMaintenanceModeDrsRecommendationForVM";
        let since = self.state.tasks.get(&task).map(|task| task.queued_at);
        let told = |event: &crate::sim::world::state::Event| {
            event.kind == KIND && event.vm == Some(number) && Some(event.at) >= since
        };
        if !self.state.events.iter().any(told) {
            self.vm_event(KIND, number, "cannot be moved off a host that enters maintenance mode");
        }
    }
}

/// How a VM is moved.
struct Mover<'a> {
    what: &'a str,
    user: &'a str,
    takes: Duration,
    fate: TaskFate,
}
