//! Reboot: a host comes back in stages, with a tail (vsphere-gpu §3.5; DESIGN §3, honesty rule 4).
//!
//! ```text
//!   call ──shutdown──► notResponding ──down──► connected ──flap──► notResponding ──flap──► connected
//!        task succeeds ┘     boots ┘ (disconnected, near the end)                              │
//!                                                        graphics and PCI as before the reboot │ stale
//!                                                        datastores missing                    │ storage
//!                                                        HA agent not initialised              │ agent
//! ```

use std::time::Duration;

use super::Moment;
use super::due::Transition;
use super::tasks::{NewTask, TaskFate};
use crate::sim::document::{Connection, Power};
use crate::sim::fault::VimFault;
use crate::sim::world::state::Shown;
use crate::sim::world::task::{Failure, Task};

impl Moment<'_> {
    /// `RebootHost_Task`. Its task ends when the reboot begins: it proves nothing (§1.7).
    pub fn reboot(&mut self, host: u32, user: &str, force: bool, fate: TaskFate) -> Result<u64, VimFault> {
        self.connected(host)?;
        if !self.host(host)?.maintenance && !force {
            return Err(VimFault::named("InvalidState"));
        }
        if let Some(task) = self.open_task(host, &[Task::ENTER, Task::EXIT, Task::REBOOT]) {
            return Err(VimFault::task_in_progress(task));
        }
        let takes = self.host(host)?.boot.shutdown.0;
        let reboots = fate.doomed.is_none() && !fate.hollow && !fate.hangs;
        let task =
            self.start_task(NewTask { what: Task::REBOOT, host, vm: None, user, cancelable: false, takes, fate });
        if reboots {
            self.schedule(takes, Transition::GoesDown { host });
        }
        Ok(task)
    }

    pub(super) fn goes_down(&mut self, host: u32) {
        let affected = |vm: &crate::sim::world::vm::Vm| {
            vm.host == host && vm.power == Power::On || vm.bound.as_ref().is_some_and(|bound| bound.to == host)
        };
        let vms: Vec<u32> = self.state.vms.iter().filter(|(_, vm)| affected(vm)).map(|(number, _)| *number).collect();
        for vm in vms {
            if let Some(task) = self.vm_task(vm) {
                self.finish(task, Some(Failure::of("HostNotReachable")));
            }
            if self.state.vms.get(&vm).is_some_and(|vm| vm.host == host) {
                self.turn_off(vm);
            }
        }
        let Some(host_state) = self.state.hosts.get_mut(&host) else { return };
        host_state.connection = Connection::NotResponding;
        host_state.up = false;
        host_state.storage = false;
        if host_state.ha_agent.is_some() {
            host_state.ha_agent = Some("hostDown".to_owned());
        }
        // vCenter keeps showing what it knew.
        let shown = host_state.shown.take().unwrap_or_else(|| Box::new(host_state.as_shown()));
        host_state.shown = Some(shown);
        let boot = host_state.boot.clone();
        if !boot.returns {
            return;
        }
        let down = boot.down.0;
        self.schedule(down / 3, Transition::Boots { host });
        let disconnected = boot.disconnected.0.min(down);
        if !disconnected.is_zero() {
            self.schedule(down - disconnected, Transition::Connects { host, connection: Connection::Disconnected });
        }
        self.schedule(down, Transition::Connects { host, connection: Connection::Connected });
        let mut last = down;
        for _ in 0..boot.flaps {
            last += boot.flap.0;
            self.schedule(last, Transition::Connects { host, connection: Connection::NotResponding });
            last += boot.flap.0;
            self.schedule(last, Transition::Connects { host, connection: Connection::Connected });
        }
        self.schedule(last + boot.stale.0, Transition::CatchesUp { host });
        self.schedule(last + boot.storage.0, Transition::StorageBack { host });
        self.schedule(last + boot.agent.0, Transition::AgentBack { host });
    }

    /// The host's own kernel is up: what is configured takes effect.
    pub(super) fn boots(&mut self, host: u32) {
        let time = self.state.time;
        let spec = self.spec;
        let Some(host) = self.state.hosts.get_mut(&host) else { return };
        host.boots += 1;
        host.boot_time = time;
        host.up = true;
        host.shell.boots();
        let lost = std::mem::take(&mut host.boot.lose_gpus);
        host.functions.retain(|function| !lost.contains(&function.address.to_string()));
        let narrow = std::mem::take(&mut host.boot.narrow_gpus);
        for function in host.functions.iter_mut().filter(|function| narrow.contains(&function.address.to_string())) {
            if let Some(gpu) = &mut function.gpu {
                gpu.lanes = super::FULL_WIDTH / 2;
            }
        }
        super::graphics::take_effect(host, &spec.readings, super::graphics::Occasion::Boot);
    }

    pub(super) fn connects(&mut self, host: u32, connection: Connection) {
        let Some(host_state) = self.state.hosts.get_mut(&host) else { return };
        host_state.connection = connection;
        if connection == Connection::Connected {
            host_state.boot_seen = host_state.boot_time;
        }
        if connection == Connection::Connected && host_state.ha_agent.is_some() {
            host_state.ha_agent = Some("uninitialized".to_owned());
        }
        let (kind, text) = match connection {
            Connection::Connected => ("HostConnectedEvent", "Connected to host"),
            Connection::NotResponding => ("HostConnectionLostEvent", "Host is not responding"),
            Connection::Disconnected => ("HostDisconnectedEvent", "Disconnected from host"),
        };
        self.event(kind, Some(host), "", text.to_owned());
    }

    pub(super) fn catches_up(&mut self, host: u32) {
        if let Some(host) = self.state.hosts.get_mut(&host) {
            host.shown = None;
        }
    }

    pub(super) fn storage_back(&mut self, host: u32) {
        if let Some(host) = self.state.hosts.get_mut(&host) {
            host.storage = true;
        }
    }

    pub(super) fn agent_back(&mut self, host: u32) {
        if let Some(host) = self.state.hosts.get_mut(&host)
            && host.ha_agent.is_some()
        {
            host.ha_agent = Some("connectedToMaster".to_owned());
        }
    }

    /// `ReconnectHost_Task`: helps a host that vCenter disconnected, not one that is down.
    pub fn reconnect(&mut self, host: u32, user: &str, fate: TaskFate) -> Result<u64, VimFault> {
        if self.host(host)?.connection == Connection::Connected {
            return Err(VimFault::named("InvalidState"));
        }
        let takes = Duration::from_secs(5);
        Ok(self.start_task(NewTask { what: Task::RECONNECT, host, vm: None, user, cancelable: false, takes, fate }))
    }

    pub(super) fn reconnected(&mut self, task: u64, host: u32) {
        let up = self.state.hosts.get(&host).is_some_and(|host| host.connection == Connection::Disconnected);
        if up {
            self.connects(host, Connection::Connected);
            self.finish(task, None);
        } else {
            self.finish(task, Some(Failure::of("HostNotReachable")));
        }
    }

    /// Keeps the state before a change, for reads that lie.
    pub(in crate::sim) fn remember(&mut self, host: u32) {
        if let Some(host) = self.state.hosts.get_mut(&host) {
            host.before = Some(Box::new(host.as_shown()));
        }
    }
}

impl crate::sim::world::state::Host {
    /// What reads show of it now, if nothing is late.
    pub(in crate::sim) fn as_shown(&self) -> Shown {
        Shown { maintenance: self.maintenance, graphics: self.graphics.clone(), functions: self.functions.clone() }
    }
}
