//! What a run has come to: the fold of its journal. Summary, exit code and resume read this.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    Compensation, Entry, Event, FailureClass, HostPhase, How, IllegalEvent, LeftAs, Resumed, RunOutcome, Signal, Stage,
    StepKind,
};
use crate::model::{HostName, Marker, MarkerPhase, MoRef, NodeRef, PlanId, RunId};
use crate::plan::{GateRead, Input, Memory, NodeEnd, NodeMemory, OurMaintenance, Step, Visit};

/// A run, folded from its journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunState {
    /// Its id.
    pub run: RunId,
    /// Its plan.
    pub plan: PlanId,
    /// Version of the program that began it.
    pub tool: String,
    /// The documents that the plan was made from.
    pub inputs: Vec<Input>,
    /// `about.instanceUuid` of the vCenter.
    pub site_uuid: String,
    /// Who is logged in there.
    pub user: String,
    /// When it began.
    pub started: Timestamp,
    /// When the last line was written.
    pub last: Timestamp,
    /// Lines of the journal.
    pub lines: u64,
    /// Hosts in the order in which they are visited.
    pub order: Vec<HostName>,
    /// Each host of the plan.
    pub hosts: BTreeMap<HostName, HostState>,
    /// Why no new host is started, if so.
    pub halted: Option<String>,
    /// The signal that stopped the process, if one did.
    pub signal: Option<Signal>,
    /// Whether the process that wrote last is (or was) giving back hosts.
    pub aborting: bool,
    /// How it ended; none while it runs, or if its process died.
    pub finished: Option<RunOutcome>,
}

/// One host of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostState {
    /// Where its visit stands.
    pub phase: HostPhase,
    /// Since when.
    pub since: Option<Timestamp>,
    /// What the visit remembers.
    pub memory: Memory,
    /// The steps as planned last.
    pub visit: Option<Visit>,
    /// The step that was started and is neither done nor failed.
    pub running: Option<Running>,
    /// Steps that are done, in order.
    pub done: Vec<StepKind>,
    /// Steps of the visit that are not done, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to_do: Vec<Step>,
    /// Side settings that are changed and not put back.
    pub armed: Vec<Compensation>,
    /// Side settings that had another value than ours when they were to be put back.
    pub left_alone: Vec<(Compensation, String)>,
    /// The marker as written last.
    pub marker: Option<Marker>,
    /// Whether modes may have been written: from then on there is only forward, or `left_as`.
    pub changed: bool,
    /// The server's time when the last reboot was asked for: a reboot task queued since then is
    /// ours.
    pub reboot_asked: Option<Timestamp>,
    /// VMs whose guests were asked to shut down.
    pub asked_to_stop: Vec<MoRef>,
    /// What a person was asked for, and has not done yet.
    pub handoff: Option<Asked>,
    /// Why the shell of the host is not used any more in this run.
    pub shell_ended: Option<String>,
    /// What keeps nodes from being drained, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<Blocked>,
    /// Nodes that somebody uncordoned too early, and that were cordoned again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recordoned: Vec<Recordoned>,
    /// Pods that this run has evicted, and that nothing starts again.
    pub ended: Vec<EndedPod>,
    /// Nodes that were deleted and made anew while their VMs started, by their new objects: cordoned again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub renewed: Vec<Recordoned>,
    /// Nodes that stay cordoned without our mark on them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<ClosedNode>,
    /// Nodes that carried our mark, as it was written last: it is off.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmarked: Vec<NodeMemory>,
    /// The gate as read last.
    pub gate: Vec<GateRead>,
    /// How it stood when it was left last, for who takes it over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stood: Option<Box<Stood>>,
}

/// A host as it stood when it was left: what a visit that is given up forgets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stood {
    /// How it was left.
    pub left_as: LeftAs,
    /// Whether modes may have been written.
    pub changed: bool,
    /// What the visit remembered.
    pub memory: Memory,
}

/// A pod that was evicted, and that nothing starts again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedPod {
    /// The node that it ran on.
    pub node: NodeRef,
    /// Which, and what is lost.
    pub pod: String,
}

/// A node that was cordoned again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recordoned {
    /// The node.
    pub node: NodeRef,
    /// When it was seen.
    pub at: Timestamp,
}

/// A node that stays cordoned without our mark on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClosedNode {
    /// The node.
    pub node: NodeRef,
    /// Why.
    pub why: WhyClosed,
}

/// Why a node stays cordoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WhyClosed {
    /// It was cordoned before the visit.
    Before,
    /// Its VM stays off, as planned.
    LeftOff,
}

/// What a person was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// The commands, in order.
    pub commands: Vec<String>,
    /// Whether the person has to say that it is done.
    pub confirm: bool,
    /// The person has said so, and the run has not gone on yet.
    pub confirmed: bool,
    /// Since when.
    pub since: Timestamp,
}

/// A node that is not drained yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Blocked {
    /// The node.
    pub node: NodeRef,
    /// What it waits for, one line each.
    pub why: Vec<String>,
    /// Since when something is in the way.
    pub since: Timestamp,
}

/// A step that was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Running {
    /// The step.
    pub step: Step,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The server's time when the first attempt began: tasks queued since then may be ours.
    pub server_time: Timestamp,
    /// The server's task, if we saw it.
    pub task: Option<MoRef>,
}

/// Why a journal does not fold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// No line, or the first is not the start of a run.
    #[error("the journal does not begin with RunStarted")]
    NoStart,
    /// A line that cannot follow the ones before it.
    #[error("line {n} cannot follow the lines before it")]
    Illegal {
        /// Its number.
        n: u64,
        /// Why.
        #[source]
        source: IllegalEvent,
    },
    /// A line about a host that is not in the plan, or about none where it must be about one.
    #[error("line {n} ({event}) is not about a host of the plan")]
    NoSuchHost {
        /// Its number.
        n: u64,
        /// The event.
        event: &'static str,
    },
}

/// Folds a journal.
///
/// # Errors
/// [`FoldError`] names the line that cannot be.
pub fn fold<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Result<RunState, FoldError> {
    let mut entries = entries.into_iter();
    let mut state = entries.next().and_then(RunState::start).ok_or(FoldError::NoStart)?;
    for entry in entries {
        state.take(entry)?;
    }
    Ok(state)
}

impl RunState {
    /// The state after the first line; none if that is not [`Event::RunStarted`].
    pub fn start(entry: &Entry) -> Option<Self> {
        let Event::RunStarted { run, tool, plan, inputs, site_uuid, user, hosts } = &entry.e else { return None };
        Some(Self {
            run: run.clone(),
            plan: plan.clone(),
            tool: tool.clone(),
            inputs: inputs.clone(),
            site_uuid: site_uuid.clone(),
            user: user.clone(),
            started: entry.at,
            last: entry.at,
            lines: entry.n,
            order: hosts.clone(),
            hosts: hosts.iter().map(|host| (host.clone(), HostState::new())).collect(),
            halted: None,
            signal: None,
            aborting: false,
            finished: None,
        })
    }

    /// Takes the next line in.
    ///
    /// # Errors
    /// [`FoldError`] if it cannot follow; the state is then unchanged.
    pub fn take(&mut self, entry: &Entry) -> Result<(), FoldError> {
        match &entry.e {
            Event::RunStarted { .. } => {
                let source = IllegalEvent { phase: "begun".to_owned(), event: entry.e.name() };
                return Err(FoldError::Illegal { n: entry.n, source });
            }
            Event::RunResumed { user, how, .. } => {
                self.user.clone_from(user);
                self.signal = None;
                self.halted = None;
                self.finished = None;
                self.aborting = matches!(how, Resumed::Abort | Resumed::GiveUp { .. });
                // A person looks after it: their word opens the shell for one more login.
                if let Resumed::Retry { host } = how
                    && let Some(host) = self.hosts.get_mut(host)
                {
                    host.shell_ended = None;
                }
            }
            Event::Signal { signal } => self.signal = Some(*signal),
            Event::Halted { why } => self.halted = Some(why.clone()),
            Event::RunFinished { outcome } => self.finished = Some(*outcome),
            about_a_host => {
                let name = entry.host.as_ref();
                let host = name.and_then(|name| self.hosts.get_mut(name));
                let host = host.ok_or(FoldError::NoSuchHost { n: entry.n, event: about_a_host.name() })?;
                host.take(entry.at, about_a_host).map_err(|source| FoldError::Illegal { n: entry.n, source })?;
            }
        }
        self.last = entry.at;
        self.lines = entry.n;
        Ok(())
    }

    /// Hosts in the order of the plan, each with its state.
    pub fn in_order(&self) -> impl Iterator<Item = (&HostName, &HostState)> {
        self.order.iter().filter_map(|name| self.hosts.get_key_value(name))
    }
}

impl HostState {
    /// Whether its visit stopped before its end, with something of ours on the host perhaps.
    pub fn is_on_our_hands(&self) -> bool {
        matches!(self.phase, HostPhase::Left { .. } | HostPhase::Failed { .. })
    }

    /// Whether the visit stopped because a person is to type something.
    pub fn is_awaited(&self) -> bool {
        let waits = matches!(self.phase, HostPhase::Left { at: Stage::AwaitingHandoff, .. });
        waits && self.handoff.is_some()
    }

    fn new() -> Self {
        Self {
            phase: HostPhase::Pending,
            since: None,
            memory: Memory::default(),
            visit: None,
            running: None,
            done: Vec::new(),
            to_do: Vec::new(),
            armed: Vec::new(),
            left_alone: Vec::new(),
            marker: None,
            changed: false,
            reboot_asked: None,
            asked_to_stop: Vec::new(),
            handoff: None,
            shell_ended: None,
            blocked: Vec::new(),
            recordoned: Vec::new(),
            ended: Vec::new(),
            renewed: Vec::new(),
            closed: Vec::new(),
            unmarked: Vec::new(),
            gate: Vec::new(),
            stood: None,
        }
    }

    fn take(&mut self, at: Timestamp, event: &Event) -> Result<(), IllegalEvent> {
        let phase = self.phase.next(event)?;
        if phase != self.phase {
            self.phase = phase;
            self.since = Some(at);
        }
        match event {
            Event::VisitPlanned { visit, memory, .. } => {
                self.visit = Some(visit.clone());
                self.to_do.clone_from(&visit.steps);
                self.memory = memory.as_ref().clone();
                self.running = None;
                self.gate.clear();
            }
            Event::VisitReplanned { visit, .. } => {
                self.visit = Some(visit.clone());
                self.to_do.clone_from(&visit.steps);
            }
            Event::MarkerWritten { marker: Some(marker) } => {
                // A failed visit does not say how far it was; a journal that knows the visit does.
                self.changed |= match marker.phase {
                    MarkerPhase::Failed => self.visit.is_none(),
                    // An abort leaves maintenance, too, of a host on which nothing was changed: a journal that
                    // knows what came before does not learn it from its own marker.
                    MarkerPhase::Exiting => self.marker.is_none(),
                    phase => phase.is_changed(),
                };
                let asked = marker.last.as_ref().and_then(|last| last.asked);
                self.reboot_asked = self.reboot_asked.or(asked);
                self.marker = Some(marker.as_ref().clone());
            }
            // Nothing of ours is left on the host: the visit has nothing to remember.
            Event::MarkerWritten { marker: None } => {
                self.marker = None;
                self.memory = Memory::default();
                self.changed = false;
                self.reboot_asked = None;
                self.handoff = None;
                self.asked_to_stop.clear();
            }
            Event::HandoffAsked { commands, confirm } => {
                // Asked again: what was said before still holds.
                let confirmed = self.handoff.as_ref().is_some_and(|before| before.confirmed);
                self.handoff = Some(Asked { commands: commands.clone(), confirm: *confirm, confirmed, since: at });
            }
            Event::HandoffConfirmed => {
                if let Some(asked) = &mut self.handoff {
                    asked.confirmed = true;
                }
            }
            Event::HandoffSeen { .. } => self.handoff = None,
            Event::HandoffWithdrawn { .. } => {
                self.handoff = None;
                self.running = None;
                self.changed = false;
                self.memory.begun = false;
            }
            Event::ShellLoginFailed { error } => self.shell_ended = Some(error.clone()),
            Event::NodeMarked { node, vm, mark } => {
                self.closed.retain(|closed| closed.node != *node);
                if mark.is_none()
                    && let Some(why) = self.stays_closed(node)
                {
                    self.closed.push(ClosedNode { node: node.clone(), why });
                }
                self.unmarked.retain(|known| known.node != *node);
                if mark.is_none() {
                    self.unmarked.extend(self.memory.nodes.iter().filter(|known| known.node == *node).cloned());
                }
                self.memory.nodes.retain(|known| known.node != *node);
                self.memory.nodes.extend(mark.as_ref().map(|mark| NodeMemory {
                    node: node.clone(),
                    vm: vm.clone(),
                    mark: mark.as_ref().clone(),
                }));
                self.blocked.retain(|blocked| blocked.node != *node);
            }
            Event::NodeBlocked { node, why } => {
                let since =
                    self.blocked.iter().find(|blocked| blocked.node == *node).map_or(at, |blocked| blocked.since);
                self.blocked.retain(|blocked| blocked.node != *node);
                if !why.is_empty() {
                    self.blocked.push(Blocked { node: node.clone(), why: why.clone(), since });
                }
            }
            Event::Armed { comp } => {
                // Of a visit before: it is ours to put back once more.
                self.left_alone.retain(|(left, _)| left != comp);
                if !self.armed.contains(comp) {
                    self.armed.push(comp.clone());
                }
                match comp {
                    Compensation::Vm(vm) if !self.memory.vms.contains(vm) => self.memory.vms.push(vm.clone()),
                    Compensation::Monitor => self.memory.monitor_stopped = true,
                    // Of a visit that is over: the host had left it, and is closed again.
                    Compensation::Maintenance if !matches!(self.phase, HostPhase::Working { .. }) => {
                        self.memory.maintenance = OurMaintenance::Asked;
                    }
                    _ => {}
                }
            }
            Event::Undone { comp } => self.disarm(comp),
            Event::LeftAlone { comp, found } => {
                self.disarm(comp);
                self.left_alone.push((comp.clone(), found.clone()));
            }
            Event::StepStarted { step, attempt, server_time, .. } => self.begin(step, *attempt, *server_time),
            Event::TaskSeen { key, .. } => {
                if let Some(running) = &mut self.running {
                    running.task = Some(key.clone());
                }
            }
            Event::StepDone { step, how, .. } => {
                // The running one, where two of a kind are planned.
                let running = self.running.as_ref().and_then(|of| self.to_do.iter().position(|left| *left == of.step));
                let left = running.or_else(|| self.to_do.iter().position(|left| StepKind::from(left) == *step));
                if let Some(done) = left {
                    self.to_do.remove(done);
                }
                // A reboot that was found done is proven by the boot time whenever that is read.
                if let Some(running) = self.running.take().filter(|_| (*step, *how) != (StepKind::Reboot, How::Already))
                {
                    self.memory.done(&running.step);
                }
                if *step == StepKind::Reboot {
                    self.reboot_asked = None;
                }
                self.done.push(*step);
            }
            Event::StepFailed { step, class, .. } => {
                // Refused before it was sent: whatever is there now is not our doing.
                let closes = matches!(step, StepKind::StartClosing | StepKind::EnterMaintenance);
                if let Some(running) = &self.running
                    && let Step::StopVm { vm, .. } = &running.step
                    && *class == FailureClass::Refused
                    && running.attempt == 1
                {
                    self.asked_to_stop.retain(|asked| asked != vm);
                }
                if closes && *class == FailureClass::Refused {
                    self.memory.maintenance = OurMaintenance::NotAsked;
                }
                self.running = None;
            }
            Event::GateRead { gate, subject, result, evidence } => {
                self.gate.retain(|line| (&line.check, &line.subject) != (gate, subject));
                self.gate.push(GateRead {
                    check: *gate,
                    subject: subject.clone(),
                    verdict: *result,
                    evidence: evidence.clone(),
                });
            }
            Event::PodsEnded { node, pods } => {
                self.ended.extend(pods.iter().map(|pod| EndedPod { node: node.clone(), pod: pod.clone() }));
            }
            Event::NodeRecordoned { node } => {
                self.recordoned.push(Recordoned { node: node.clone(), at });
            }
            Event::NodeRenewed { node, uid } => {
                let new = NodeRef { uid: uid.clone(), ..node.clone() };
                self.armed.retain(|comp| *comp != Compensation::Node(node.clone()));
                if !self.armed.contains(&Compensation::Node(new.clone())) {
                    self.armed.push(Compensation::Node(new.clone()));
                }
                for known in self.memory.nodes.iter_mut().filter(|known| known.node == *node) {
                    known.node = new.clone();
                }
                self.renewed.push(Recordoned { node: new, at });
            }
            Event::HostLeft { left_as } => {
                let (left_as, mut memory) = (left_as.clone(), self.memory.clone());
                // What was given up with the host: their gate compares with what their marks said.
                let given_up = |known: &&NodeMemory| {
                    let comp = Compensation::Node(known.node.clone());
                    self.left_alone.iter().any(|(left, _)| *left == comp)
                };
                memory.nodes.extend(self.unmarked.iter().filter(given_up).cloned());
                self.stood = Some(Box::new(Stood { left_as, changed: self.changed, memory }));
            }
            Event::HostHeld { .. }
            | Event::HostReleased { .. }
            | Event::RunStarted { .. }
            | Event::RunResumed { .. }
            | Event::Signal { .. }
            | Event::Halted { .. }
            | Event::RunFinished { .. } => {}
        }
        Ok(())
    }

    /// Why a node stays cordoned whose mark is taken off, if it does.
    fn stays_closed(&self, node: &NodeRef) -> Option<WhyClosed> {
        let known = self.memory.nodes.iter().find(|known| known.node == *node);
        match self.running.as_ref().map(|running| &running.step) {
            Some(Step::UncordonNode { node: of, leave: NodeEnd::LeftOff }) if of == node => Some(WhyClosed::LeftOff),
            _ if known.is_some_and(|known| known.mark.was_unschedulable) => Some(WhyClosed::Before),
            _ => None,
        }
    }

    fn begin(&mut self, step: &Step, attempt: u32, server_time: Timestamp) {
        self.memory.started(step);
        if let Step::StopVm { vm, .. } = step
            && !self.asked_to_stop.contains(vm)
        {
            self.asked_to_stop.push(vm.clone());
        }
        self.changed |= matches!(
            step,
            Step::SetPassthrough { .. } | Step::SetGraphics { .. } | Step::SetMig { .. } | Step::Reboot { .. }
        );
        if matches!(step, Step::Reboot { .. }) && self.reboot_asked.is_none() {
            self.reboot_asked = Some(server_time);
        }
        let first = match &self.running {
            Some(running) if attempt > 1 && running.step == *step => running.server_time,
            Some(_) | None => server_time,
        };
        let task = self.running.take().and_then(|running| running.task).filter(|_| attempt > 1);
        self.running = Some(Running { step: step.clone(), attempt, server_time: first, task });
    }

    fn disarm(&mut self, comp: &Compensation) {
        self.armed.retain(|armed| armed != comp);
        match comp {
            Compensation::Maintenance => self.memory.maintenance = OurMaintenance::NotAsked,
            Compensation::Vm(vm) => self.memory.vms.retain(|stopped| stopped != vm),
            Compensation::Monitor => self.memory.monitor_stopped = false,
            Compensation::Node(node) => self.memory.nodes.retain(|known| known.node != *node),
            Compensation::Ssh => {}
        }
    }
}
