//! The dispatcher: hosts in the order of the plan, one at a time, while the budget allows.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::node_gate::Proven;
use super::record::{Recorder, Waiting};
use super::{Event, Handoff, HostPhase, HostState, Interrupt, RunDir, RunError, RunState, StepKind};
use crate::base::clock::Clock;
use crate::model::{Fact, GuestView, HostName, HostRecord, Marker, MoRef, NodeRef, NodeView, Pace, RunId};
use crate::observe::Fleet;
use crate::plan::{HostPlan, Memory, Plan};
use crate::shell::Shell;
use crate::vim25::{Client, Error};

/// One process's work on a run.
pub(super) struct Run<'a> {
    pub(super) fleet: &'a Fleet,
    pub(super) plan: &'a Plan,
    pub(super) pace: Pace,
    pub(super) clock: Clock,
    pub(super) interrupt: Interrupt,
    pub(super) dir: RunDir,
    pub(super) rec: Recorder<'a>,
    /// Markers that this process wrote or found when it took a host up.
    pub(super) markers: BTreeMap<HostName, Vec<Marker>>,
    /// Key of the custom field, once it was looked up.
    pub(super) field: Option<i32>,
    /// Logins to shells of hosts that are under way.
    pub(super) shells: BTreeMap<HostName, Shell>,
    /// What a command at a shell said last: it proves nothing, and tells why a proof does not come.
    pub(super) said: Option<String>,
    /// How long a person is waited for.
    pub(super) handoff: Handoff,
    /// Nodes that came through their gate in this process, and are not uncordoned yet.
    pub(super) proven: BTreeMap<NodeRef, Proven>,
    /// VMs that this process has powered on again: they are on another boot, whatever is shown still.
    pub(super) restarted: BTreeSet<MoRef>,
    /// The host that a person has asked to be visited again.
    pub(super) retrying: Option<HostName>,
    /// Nodes that are validated once more, since a person has asked for it.
    pub(super) again: BTreeSet<NodeRef>,
    /// Nodes as this process saw them when it took their host up.
    pub(super) nodes_before: BTreeMap<NodeRef, NodeView>,
    /// How often nodes were cordoned again that somebody uncordoned.
    pub(super) recordoned: BTreeMap<NodeRef, usize>,
}

/// A deadline, and since when it runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    since: Instant,
    length: Duration,
}

impl Deadline {
    pub(super) fn of(length: Duration) -> Self {
        Self { since: Instant::now(), length }
    }

    pub(super) fn passed(self) -> bool {
        self.since.elapsed() >= self.length
    }

    /// How long it is, in seconds.
    pub(super) fn seconds(self) -> u64 {
        self.length.as_secs()
    }

    pub(super) fn left(self) -> Duration {
        self.length.saturating_sub(self.since.elapsed())
    }
}

impl Run<'_> {
    /// Visits the hosts that were left, and those that wait.
    pub(super) async fn go(mut self) -> Result<RunState, RunError> {
        let second = self.interrupt.clone();
        // A run may be dropped at any await: that is what the journal is for. So the second signal
        // drops it.
        let ended = tokio::select! {
            biased;
            () = second.second() => Ok(()),
            ended = Box::pin(self.hosts(None)) => ended,
        };
        self.finish(ended)
    }

    /// As [`Run::go`], after one more visit of a host whose visit failed.
    pub(super) async fn go_retrying(mut self, host: &HostName) -> Result<RunState, RunError> {
        let second = self.interrupt.clone();
        let ended = tokio::select! {
            biased;
            () = second.second() => Ok(()),
            ended = Box::pin(self.retry(host)) => ended,
        };
        self.finish(ended)
    }

    /// Gives back what is under way.
    pub(super) async fn go_back(mut self) -> Result<RunState, RunError> {
        let second = self.interrupt.clone();
        let ended = tokio::select! {
            biased;
            () = second.second() => Ok(()),
            ended = Box::pin(self.abort_all()) => ended,
        };
        self.finish(ended)
    }

    /// Leaves a host to somebody.
    pub(super) async fn go_giving_up(mut self, name: &HostName) -> Result<RunState, RunError> {
        let second = self.interrupt.clone();
        let plan = self.plan;
        let ended = match plan.hosts.iter().find(|host| host.host.name == *name) {
            Some(host) => tokio::select! {
                biased;
                () = second.second() => Ok(()),
                ended = Box::pin(self.give_up(host)) => ended,
            },
            None => Ok(()),
        };
        self.finish(ended)
    }

    fn finish(mut self, ended: Result<(), RunError>) -> Result<RunState, RunError> {
        ended?;
        self.note_signal()?;
        let outcome = self.rec.state.outcome();
        self.rec.run(Event::RunFinished { outcome })?;
        Ok(self.rec.state)
    }

    async fn retry(&mut self, name: &HostName) -> Result<(), RunError> {
        let plan = self.plan;
        if let Some(host) = plan.hosts.iter().find(|host| host.host.name == *name) {
            self.retrying = Some(name.clone());
            self.visit(host).await?;
            self.retrying = None;
        }
        self.hosts(Some(name)).await
    }

    /// Visits hosts, but for one that was visited just now.
    async fn hosts(&mut self, visited: Option<&HostName>) -> Result<(), RunError> {
        let plan = self.plan;
        // What a process that died left behind comes before anything new.
        let left_behind = |host: &&HostPlan| self.is_unfinished(host) && visited != Some(&host.host.name);
        for host in plan.hosts.iter().filter(left_behind).collect::<Vec<_>>() {
            // A halt stops new hosts. These are under way.
            self.note_signal()?;
            if self.rec.state.signal.is_some() {
                return Ok(());
            }
            Box::pin(self.take_up(host)).await?;
        }
        for host in &plan.hosts {
            if self.must_stop()? {
                return Ok(());
            }
            let waits = matches!(
                self.state_of(host).phase,
                HostPhase::Pending | HostPhase::Held { .. } | HostPhase::Refused { .. }
            );
            if waits {
                Box::pin(self.visit(host)).await?;
            }
        }
        Ok(())
    }

    fn is_unfinished(&self, host: &HostPlan) -> bool {
        matches!(self.state_of(host).phase, HostPhase::Working { .. } | HostPhase::Left { .. })
            || matches!(self.state_of(host).phase, HostPhase::Failed { left_as: None, .. })
    }

    async fn take_up(&mut self, host: &HostPlan) -> Result<(), RunError> {
        match self.state_of(host).phase {
            // It failed, and the process ended before it could say how the host was left.
            HostPhase::Failed { .. } => self.leave(host).await,
            _ => self.visit(host).await,
        }
    }

    /// Whether no host may be started, or taken up, any more.
    fn must_stop(&mut self) -> Result<bool, RunError> {
        self.note_signal()?;
        if self.rec.state.signal.is_some() {
            return Ok(true);
        }
        let failed: Vec<&str> = self
            .rec
            .state
            .in_order()
            .filter(|(_, host)| matches!(host.phase, HostPhase::Failed { left_as: Some(_), .. }))
            .map(|(name, _)| name.as_str())
            .collect();
        if failed.len() < self.plan.limits.halt_after_failed_hosts as usize || failed.is_empty() {
            return Ok(false);
        }
        if self.rec.state.halted.is_none() {
            let why = format!("no new host is started: {} failed", failed.join(", "));
            self.rec.run(Event::Halted { why })?;
        }
        Ok(true)
    }

    /// Writes down a signal that came.
    pub(super) fn note_signal(&mut self) -> Result<(), RunError> {
        match self.interrupt.raised() {
            Some(signal) if self.rec.state.signal.is_none() => self.rec.run(Event::Signal { signal }),
            Some(_) | None => Ok(()),
        }
    }

    /// Waits; whether a signal came meanwhile, which is written down.
    pub(super) async fn stopped_in(&mut self, pause: impl Future<Output = ()>) -> Result<bool, RunError> {
        let signal = self.interrupt.clone();
        let stopped = tokio::select! {
            biased;
            () = signal.first() => true,
            () = pause => false,
        };
        if stopped {
            self.note_signal()?;
        }
        Ok(stopped)
    }

    pub(super) fn run_id(&self) -> &RunId {
        &self.rec.state.run
    }

    pub(super) fn vcenter(&self) -> &Client {
        self.fleet.vcenter()
    }

    /// What was read of the host just now.
    pub(super) async fn read(&self, host: &HostPlan) -> HostRecord {
        // A read is a tall tower of futures: on the heap it does not weigh on every step.
        Box::pin(self.fleet.host(&host.host)).await
    }

    /// As [`Run::read`], with the nodes that its VMs are, and the guest clusters.
    pub(super) async fn read_all(&self, host: &HostPlan) -> (HostRecord, BTreeMap<String, Fact<GuestView>>) {
        Box::pin(self.fleet.host_and_nodes(&host.host)).await
    }

    /// The server's time.
    pub(super) async fn server_time(&self) -> Result<Timestamp, Error> {
        Box::pin(self.vcenter().current_time()).await
    }

    pub(super) fn state_of(&self, host: &HostPlan) -> &HostState {
        match self.rec.state.hosts.get(&host.host.name) {
            Some(state) => state,
            // RunStarted lists every host of the plan, and the fold keeps them all.
            None => unreachable!("{} is a host of the plan", host.host.name),
        }
    }

    pub(super) fn memory_of(&self, host: &HostPlan) -> Memory {
        self.state_of(host).memory.clone()
    }

    /// Tells who watches what is waited for.
    pub(super) fn tell(
        &mut self,
        host: &HostPlan,
        step: Option<StepKind>,
        what: &[String],
        deadline: Deadline,
        progress: Option<u32>,
    ) {
        let now = self.clock.now();
        // Durations of hours do not leave the range of a timestamp.
        let since = now.checked_sub(deadline.since.elapsed()).unwrap_or(now);
        let until = now.checked_add(deadline.left()).unwrap_or(now);
        self.rec.sink.waiting(&Waiting { host: &host.host.name, step, what, since, until, progress });
    }
}
