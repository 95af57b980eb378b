//! One moment of a world: its state under the lock, with everything that was due done.

use jiff::{SignedDuration, Timestamp};

use super::due::{Due, Transition};
use crate::sim::document::WorldSpec;
use crate::sim::fault::VimFault;
use crate::sim::world::state::{Event, Host, State, Write};

/// The state and the document, while nobody else looks. Behaviour is methods on this.
pub(in crate::sim) struct Moment<'a> {
    pub state: &'a mut State,
    pub spec: &'a WorldSpec,
    /// Something that a client can see has changed.
    pub changed: bool,
}

/// A duration later.
pub(in crate::sim) fn later(at: Timestamp, by: std::time::Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| at.checked_add(by).ok()).unwrap_or(Timestamp::MAX)
}

impl Moment<'_> {
    /// Lets everything happen that is due until `now`, each thing at its own time.
    pub fn advance(&mut self, now: Timestamp) {
        while let Some((number, at)) = self.next_due().filter(|(_, at)| *at <= now) {
            let Some(due) = self.state.queue.remove(&number) else { return };
            self.state.time = self.state.time.max(at);
            self.changed = true;
            self.happen(due.what);
        }
        self.state.time = self.state.time.max(now);
    }

    /// The number and time of what is due next.
    pub fn next_due(&self) -> Option<(u64, Timestamp)> {
        self.state.queue.iter().map(|(number, due)| (*number, due.at)).min_by_key(|(number, at)| (*at, *number))
    }

    /// Makes something due after a while.
    pub fn schedule(&mut self, after: std::time::Duration, what: Transition) {
        let at = later(self.state.time, after);
        let number = self.state.number();
        self.state.queue.insert(number, Due { at, what });
    }

    fn happen(&mut self, what: Transition) {
        match what {
            Transition::TaskStarts(task) => self.task_starts(task),
            Transition::TaskEnds(task) => self.task_ends(task),
            Transition::TaskExpires(task) => self.task_expires(task),
            Transition::GoesDown { host } => self.goes_down(host),
            Transition::Boots { host } => self.boots(host),
            Transition::Connects { host, connection } => self.connects(host, connection),
            Transition::CatchesUp { host } => self.catches_up(host),
            Transition::StorageBack { host } => self.storage_back(host),
            Transition::AgentBack { host } => self.agent_back(host),
            Transition::ShutsDown { vm, start } => self.shuts_down(vm, start),
            Transition::PolicyPowersOn { vm } => self.policy_powers_on(vm),
            Transition::DrsPasses { task } => self.drs_passes(task),
            Transition::Guest { cluster, what } => self.guest_due(&cluster, what),
            Transition::Acts { actor } => self.acts(actor),
        }
    }

    /// The host of this number.
    pub fn host(&mut self, host: u32) -> Result<&mut Host, VimFault> {
        self.state.hosts.get_mut(&host).ok_or_else(|| VimFault::gone("HostSystem", &format!("host-{host}")))
    }

    /// Lists a write.
    pub fn wrote(&mut self, write: NewWrite<'_>) {
        let n = self.state.log.len() as u64 + 1;
        let NewWrite { who, object, id, call, arguments, effect } = write;
        self.state.log.push(Write {
            n,
            at: self.state.time,
            who: who.to_owned(),
            object: object.to_owned(),
            id: id.to_owned(),
            call: call.to_owned(),
            arguments,
            effect,
        });
    }

    /// Lists an event.
    pub fn event(&mut self, kind: &str, host: Option<u32>, user: &str, message: String) {
        let key = self.state.number();
        self.state.events.push(Event {
            key,
            kind: kind.to_owned(),
            at: self.state.time,
            user: user.to_owned(),
            host,
            vm: None,
            message,
        });
    }

    /// Lists an event of a VM; `what` follows its name.
    pub fn vm_event(&mut self, kind: &str, number: u32, what: &str) {
        let Some(vm) = self.state.vms.get(&number) else { return };
        let (host, message) = (Some(vm.host), format!("{} {what}", vm.name));
        self.event(kind, host, "", message);
        if let Some(event) = self.state.events.last_mut() {
            event.vm = Some(number);
        }
    }
}

/// A write that is about to be listed.
pub(in crate::sim) struct NewWrite<'a> {
    pub who: &'a str,
    pub object: &'a str,
    pub id: &'a str,
    pub call: &'a str,
    pub arguments: String,
    pub effect: bool,
}
