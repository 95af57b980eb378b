//! Tasks: queued, running, at their end.

use std::time::Duration;

use super::Moment;
use super::due::Transition;
use super::moment::later;
use crate::sim::fault::VimFault;
use crate::sim::world::task::{Failure, Task, TaskState};

/// From the call to the start of a task: short, and not nothing, so that `queued` can be seen.
const IN_QUEUE: Duration = Duration::from_millis(200);

/// What a fault does to the task that a call starts.
#[derive(Debug, Clone, Default)]
pub(in crate::sim) struct TaskFate {
    /// Ends with this fault.
    pub doomed: Option<Failure>,
    /// Never ends.
    pub hangs: bool,
    /// Ends well, without effect.
    pub hollow: bool,
}

/// A task that is about to start.
pub(super) struct NewTask<'a> {
    pub what: &'a str,
    pub host: u32,
    pub vm: Option<u32>,
    pub user: &'a str,
    pub cancelable: bool,
    pub takes: Duration,
    pub fate: TaskFate,
}

impl Moment<'_> {
    /// Starts a task that ends after its time.
    pub(super) fn start_task(&mut self, new: NewTask<'_>) -> u64 {
        let number = self.state.number();
        let NewTask { what, host, vm, user, cancelable, takes, fate } = new;
        let task = Task {
            what: what.to_owned(),
            host,
            vm,
            user: user.to_owned(),
            state: TaskState::Queued,
            progress: None,
            cancelable,
            cancelled: false,
            fault: None,
            doomed: fate.doomed,
            hangs: fate.hangs,
            hollow: fate.hollow,
            queued_at: self.state.time,
            started_at: None,
            completed_at: None,
            forgotten_at: None,
        };
        self.state.tasks.insert(number, task);
        self.schedule(IN_QUEUE, Transition::TaskStarts(number));
        self.schedule(IN_QUEUE + takes, Transition::TaskEnds(number));
        self.changed = true;
        number
    }

    /// The task of this host that is not at its end, of one of these kinds.
    pub fn open_task(&self, host: u32, kinds: &[&str]) -> Option<u64> {
        let open = |task: &Task| task.host == host && task.state.is_open() && kinds.contains(&task.what.as_str());
        self.state.tasks.iter().find(|(_, task)| open(task)).map(|(number, _)| *number)
    }

    pub(super) fn task_starts(&mut self, number: u64) {
        let time = self.state.time;
        if let Some(task) = self.state.tasks.get_mut(&number).filter(|task| task.state == TaskState::Queued) {
            task.state = TaskState::Running;
            task.started_at = Some(time);
            task.progress = Some(0);
            if task.what == Task::ENTER {
                self.drs_passes(number);
            }
        }
    }

    /// A task has run its time: it takes effect, unless it hangs or was stopped.
    pub(super) fn task_ends(&mut self, number: u64) {
        let Some(task) = self.state.tasks.get(&number).filter(|task| task.state.is_open()) else { return };
        if task.hangs {
            return;
        }
        let (what, host, vm, hollow) = (task.what.clone(), task.host, task.vm, task.hollow);
        if let Some(failure) = task.doomed.clone() {
            match (what.as_str(), vm) {
                (Task::DRS_MOVE | Task::RELOCATE, Some(vm)) => self.move_failed(number, vm, failure),
                _ => self.finish(number, Some(failure)),
            }
            return;
        }
        if hollow {
            self.finish(number, None);
            return;
        }
        match what.as_str() {
            Task::ENTER => self.try_close(number, host),
            Task::EXIT => self.open_host(number, host),
            Task::RECONNECT => self.reconnected(number, host),
            Task::POWER_ON => self.powered_on(number),
            Task::RECONFIGURE => self.refitted(number),
            Task::RELOCATE | Task::DRS_MOVE => self.arrives(number),
            Task::POWER_OFF => {
                self.finish(number, None);
                vm.into_iter().for_each(|vm| self.turn_off(vm));
            }
            _ => self.finish(number, None),
        }
    }

    pub(super) fn task_expires(&mut self, number: u64) {
        if self.state.tasks.get(&number).is_some_and(|task| task.state.is_open() && !task.hangs) {
            self.finish(number, Some(Failure::of("Timedout")));
        }
    }

    /// Ends a task; what it had bound is free again.
    pub(super) fn finish(&mut self, number: u64, fault: Option<Failure>) {
        self.take_bound(number);
        let (time, retention) = (self.state.time, self.spec.vcenter.task_retention.0);
        if let Some(task) = self.state.tasks.get_mut(&number) {
            task.state = if fault.is_some() { TaskState::Error } else { TaskState::Success };
            task.progress = fault.is_none().then_some(100).or(task.progress);
            task.fault = fault;
            task.completed_at = Some(time);
            task.forgotten_at = Some(later(time, retention));
            self.changed = true;
        }
    }

    /// `CancelTask`: only of tasks that say that they can be canceled (case B13).
    pub fn cancel_task(&mut self, number: u64) -> Result<(), VimFault> {
        let task =
            self.state.tasks.get_mut(&number).ok_or_else(|| VimFault::gone("Task", &format!("task-{number}")))?;
        if !task.state.is_open() {
            return Err(VimFault::named("InvalidState"));
        }
        if !task.cancelable {
            return Err(VimFault::named("NotSupported"));
        }
        task.cancelled = true;
        self.finish(number, Some(Failure::of("RequestCanceled")));
        Ok(())
    }
}
