//! Maintenance mode (vsphere-gpu §1.7, §3.4).

use std::time::Duration;

use super::Moment;
use super::due::Transition;
use super::tasks::{NewTask, TaskFate};
use crate::sim::document::{Connection, HaInMaintenance};
use crate::sim::fault::VimFault;
use crate::sim::world::task::Task;
use crate::sim::world::vm::Vm;

/// Where a task that waits for VMs stands (KB 311316: "sits at 2 %").
const STUCK_PERCENT: u32 = 2;

impl Moment<'_> {
    /// Fails unless vCenter talks to the host.
    pub(super) fn connected(&mut self, host: u32) -> Result<(), VimFault> {
        match self.host(host)?.connection {
            Connection::Connected => Ok(()),
            Connection::NotResponding => Err(VimFault::named("HostNotReachable")),
            Connection::Disconnected => Err(VimFault::named("HostNotConnected")),
        }
    }

    /// `EnterMaintenanceMode_Task`. A timeout of 0 or less is none (§1.7); `inMaintenanceMode` is
    /// not set while entering.
    pub fn enter_maintenance(
        &mut self,
        host: u32,
        user: &str,
        timeout_s: i64,
        fate: TaskFate,
    ) -> Result<u64, VimFault> {
        self.connected(host)?;
        if self.host(host)?.maintenance {
            return Err(VimFault::named("InvalidState")); // F41: not idempotent
        }
        self.nothing_else_runs(host)?;
        let takes = Duration::from_secs(self.host(host)?.enter_s);
        let task = self.start_task(NewTask { what: Task::ENTER, host, vm: None, user, cancelable: true, takes, fate });
        if let Ok(timeout) = u64::try_from(timeout_s)
            && timeout > 0
        {
            self.schedule(Duration::from_secs(timeout), Transition::TaskExpires(task));
        }
        let name = self.host(host)?.name.clone();
        self.event(
            "EnteringMaintenanceModeEvent",
            Some(host),
            user,
            format!("Host {name} is entering maintenance mode"),
        );
        Ok(task)
    }

    /// `ExitMaintenanceMode_Task`.
    pub fn exit_maintenance(&mut self, host: u32, user: &str, timeout_s: i64, fate: TaskFate) -> Result<u64, VimFault> {
        self.connected(host)?;
        if !self.host(host)?.maintenance {
            return Err(VimFault::named("InvalidState"));
        }
        self.nothing_else_runs(host)?;
        let takes = Duration::from_secs(self.host(host)?.exit_s);
        let task = self.start_task(NewTask { what: Task::EXIT, host, vm: None, user, cancelable: false, takes, fate });
        if let Ok(timeout) = u64::try_from(timeout_s)
            && timeout > 0
        {
            self.schedule(Duration::from_secs(timeout), Transition::TaskExpires(task));
        }
        Ok(task)
    }

    fn nothing_else_runs(&mut self, host: u32) -> Result<(), VimFault> {
        match self.open_task(host, &[Task::ENTER, Task::EXIT, Task::REBOOT]) {
            Some(task) => Err(VimFault::task_in_progress(task)),
            None => Ok(()),
        }
    }

    /// Whether VMs keep a host from closing: those that run there, and those that are about to. vCenter
    /// moves its own vCLS agents away.
    fn waits_for_vms(&self, host: u32) -> bool {
        let soon = |vm: &Vm| vm.bound.as_ref().is_some_and(|bound| bound.to == host) && !vm.vcls;
        self.state.vms.values().any(|vm| vm.runs_on(host) || soon(vm))
    }

    /// The host is closed, unless a VM is powered on: then the task goes on without an end and
    /// without an error (§3.4 "How it fails"; DESIGN §3, honesty rule 1).
    pub(super) fn try_close(&mut self, task: u64, host: u32) {
        if self.waits_for_vms(host) {
            if let Some(task) = self.state.tasks.get_mut(&task) {
                task.progress = Some(STUCK_PERCENT);
            }
            return;
        }
        self.remember(host);
        let user = self.state.tasks.get(&task).map(|task| task.user.clone()).unwrap_or_default();
        if let Some(host) = self.state.hosts.get_mut(&host) {
            host.maintenance = true;
        }
        self.event("EnteredMaintenanceModeEvent", Some(host), &user, "Host has entered maintenance mode".to_owned());
        self.finish(task, None);
    }

    pub(super) fn open_host(&mut self, task: u64, host: u32) {
        self.remember(host);
        let user = self.state.tasks.get(&task).map(|task| task.user.clone()).unwrap_or_default();
        let restarts = self.spec.readings.ha_in_maintenance == HaInMaintenance::Unset;
        let mut agent = None;
        if let Some(host) = self.state.hosts.get_mut(&host) {
            host.maintenance = false;
            agent = Some(host.boot.agent.0).filter(|wait| restarts && !wait.is_zero() && host.ha_agent.is_some());
            if agent.is_some() {
                host.ha_agent = Some("uninitialized".to_owned());
            }
        }
        if let Some(wait) = agent {
            self.schedule(wait, Transition::AgentBack { host });
        }
        self.event("ExitMaintenanceModeEvent", Some(host), &user, "Host has exited maintenance mode".to_owned());
        self.finish(task, None);
    }

    /// A task that waits for VMs goes on once the last one is gone.
    pub(super) fn may_close(&mut self, task: u64) {
        if self.state.tasks.get(&task).is_some_and(|task| task.progress == Some(STUCK_PERCENT)) {
            self.schedule(Duration::ZERO, Transition::TaskEnds(task));
        }
    }
}
