//! One step: announced, checked, sent once, followed, verified.
//!
//! ```text
//!   marker ─► StepStarted (synced) ─► fresh read ─► check ─┬─ already done ──────────────┐
//!                    ▲                                     ├─ in flight: follow the task ─┤
//!                    │ nothing happened, or nobody knows   ├─ ready: send ─► follow ──────┤
//!                    └──────────────── look again ◄────────┴─ refused: StepFailed         ▼
//!                                                              StepDone ◄── verify, from fresh reads
//! ```

use std::time::Duration;

use super::effect::{self, Sent};
use super::mark::NotMarked;
use super::marker::Owner;
use super::run::{Deadline, Run};
use super::visit::view_of;
use super::{Compensation, Event, FailureClass, HostPhase, How, RunError, Stage, StepKind, chain};
use crate::model::{Fact, HostView, MoRef, ShellWay};
use crate::plan::{Check, HostPlan, Memory, OurMaintenance, Step};
use crate::vim25::wire::names::fault;
use crate::vim25::{Cancel, TaskEnd};

/// How often a step is announced: once, and again after an attempt that certainly had no effect, or
/// that was looked at and had none. What fails three times has a cause that time does not cure.
const ATTEMPTS: u32 = 3;
/// Before the next attempt: what refuses a host that just came back needs some seconds (vsphere-gpu
/// F42b).
const PAUSE: Duration = Duration::from_secs(15);
/// How long a cancelled task may take to end.
const CANCEL: Duration = Duration::from_secs(60);
/// A reboot task ends once the reboot is initiated (vsphere-gpu §1.7); after this the host is looked
/// at, whatever its task says.
const INITIATE: Duration = Duration::from_secs(120);

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepEnd {
    /// Verified.
    Done,
    /// Failed; it stands in the journal.
    Failed,
    /// It did not begin; the host is held, or left, and that stands in the journal.
    Held,
    /// A signal stopped it.
    Stopped,
}

/// How an attempt ended.
pub(super) enum Attempt {
    /// It is so already, and needs no other proof.
    Done(How, Vec<String>),
    /// Its goal is to be verified now.
    Sent(How),
    /// Nothing happened; it may be tried again.
    Again(FailureClass, String),
    /// It failed for good.
    Failed(FailureClass, String),
    /// A signal stopped it.
    Stopped,
}

impl Run<'_> {
    /// Does one step.
    pub(super) async fn step(&mut self, host: &HostPlan, step: &Step) -> Result<StepEnd, RunError> {
        self.note_signal()?;
        if self.rec.state.signal.is_some() {
            return Ok(StepEnd::Stopped);
        }
        let name = &host.host.name;
        let kind = StepKind::from(step);
        self.arm(host, step)?;
        self.arm_shell(host, step).await?;
        if matches!(step, Step::Reboot { .. }) {
            self.hang_up(host);
        }
        if let Err(why) = self.mark_step(host, step).await? {
            return self.not_begun(host, why).await;
        }
        let deadline = self.deadline(host, step);
        let mut again = None;
        for attempt in 1..=ATTEMPTS {
            let before = self.memory_of(host);
            let server_time = match self.server_time().await {
                Ok(time) => time,
                // Not announced, so not sent: the step did not begin.
                Err(error) => return self.failed(host, kind, FailureClass::Unknown, chain(&error)),
            };
            self.rec
                .host(name, Event::StepStarted { step: step.clone(), attempt, server_time, again: again.take() })?;
            if matches!(step, Step::SetMig { way: ShellWay::Handoff, .. }) {
                return Box::pin(self.hand_off(host, step)).await;
            }
            self.said = None;
            let (class, why) = match Box::pin(self.attempt(host, step, &before, attempt, deadline)).await? {
                Attempt::Stopped => return Ok(StepEnd::Stopped),
                Attempt::Failed(class, error) => return self.not_done(host, step, class, error),
                Attempt::Again(class, why) => (class, why),
                Attempt::Done(how, evidence) => return self.done(host, kind, how, evidence),
                Attempt::Sent(how) => match Box::pin(self.verify(host, step, deadline)).await? {
                    Ok(evidence) => return self.done(host, kind, how, evidence),
                    // The shell is of no use any more.
                    Err((FailureClass::Refused, why)) => return self.not_done(host, step, FailureClass::Refused, why),
                    // Sent again only if time is left. A reboot and an exit never are: they are waited for
                    // until their deadline has passed.
                    Err(unverified) => unverified,
                },
            };
            if let Step::StopVm { vm, node: Some(node), .. } = step
                && class == FailureClass::NotVerified
            {
                // Its guest does not heed us, and nobody uses it (FORMATS rule 4).
                return match Box::pin(self.power_off_drained(host, step, vm, node)).await? {
                    Ok(evidence) => self.done(host, kind, How::Did, evidence),
                    Err((class, more)) => self.not_done(host, step, class, format!("{why}; {more}")),
                };
            }
            if attempt == ATTEMPTS || deadline.passed() {
                return self.not_done(host, step, class, self.with_words(why));
            }
            again = Some(self.with_words(why));
            tokio::time::sleep(PAUSE).await;
        }
        unreachable!("the last attempt returns")
    }

    /// A step failed. The daemon that does not start again is no reason to keep the host closed: it is
    /// said, and the visit goes on.
    fn not_done(
        &mut self,
        host: &HostPlan,
        step: &Step,
        class: FailureClass,
        error: String,
    ) -> Result<StepEnd, RunError> {
        if !matches!(step, Step::StartMonitor) {
            return self.failed(host, step.into(), class, about(step, error));
        }
        let found = format!("it could not be started again: {error}");
        self.rec.host(&host.host.name, Event::LeftAlone { comp: Compensation::Monitor, found: found.clone() })?;
        self.done(host, step.into(), How::Did, vec![found])
    }

    /// What a proof waits for in vain, with what the shell said to the command.
    fn with_words(&self, why: String) -> String {
        match &self.said {
            Some(said) => format!("{why}; the command said: {said}"),
            None => why,
        }
    }

    /// The marker of a step could not be written, so the step does not begin. A host on which nothing
    /// was begun is given up; any other has failed.
    async fn not_begun(&mut self, host: &HostPlan, why: NotMarked) -> Result<StepEnd, RunError> {
        if self.state_of(host).phase == (HostPhase::Working { stage: Stage::Prechecking }) {
            let record = self.read(host).await;
            self.disarm(host, &record)?;
        }
        self.not_marked(host, why).await?;
        Ok(StepEnd::Held)
    }

    /// The step's deadline. That of a reboot runs from when it was first asked for: somebody who tries
    /// again after it has passed waits no second time for a host that never went down.
    fn deadline(&self, host: &HostPlan, step: &Step) -> Deadline {
        let length = step.deadline(&self.pace);
        let since = self.state_of(host).reboot_asked.filter(|_| matches!(step, Step::Reboot { .. }));
        let passed = since.and_then(|since| Duration::try_from(self.clock.now().duration_since(since)).ok());
        Deadline::of(length.saturating_sub(passed.unwrap_or_default()).max(INITIATE))
    }

    pub(super) fn done(
        &mut self,
        host: &HostPlan,
        step: StepKind,
        how: How,
        evidence: Vec<String>,
    ) -> Result<StepEnd, RunError> {
        if step == StepKind::StartMonitor && self.state_of(host).armed.contains(&Compensation::Monitor) {
            self.rec.host(&host.host.name, Event::Undone { comp: Compensation::Monitor })?;
        }
        self.rec.host(&host.host.name, Event::StepDone { step, how, evidence })?;
        Ok(StepEnd::Done)
    }

    /// Reads, compares, and sends the effect if it is due.
    async fn attempt(
        &mut self,
        host: &HostPlan,
        step: &Step,
        before: &Memory,
        attempt: u32,
        deadline: Deadline,
    ) -> Result<Attempt, RunError> {
        let record = match self.read_for(host, step).await? {
            Ok(record) => record,
            Err(why) => return Ok(Attempt::Failed(FailureClass::Refused, why)),
        };
        let view = match view_of(&record) {
            Ok(view) => view,
            Err(why) => return Ok(Attempt::Again(FailureClass::Unknown, why)),
        };
        // The marker has no compare-and-swap: whoever wrote last has the host.
        match self.owner(host, view) {
            Owner::Ours(_) => {}
            Owner::Nobody => {
                return Ok(Attempt::Failed(FailureClass::Refused, "somebody removed our marker".to_owned()));
            }
            Owner::Other(held) => return Ok(Attempt::Failed(FailureClass::Refused, held.to_string())),
        }
        // Its goal is that the task runs: whose it is decides.
        if matches!(step, Step::StartClosing { .. })
            && let Ok(Some(task)) = effect::entering(&record)
        {
            match Box::pin(self.whose(&task)).await {
                Ok(None) => {}
                Ok(Some(why)) => return Ok(Attempt::Failed(FailureClass::Refused, why)),
                Err(error) => return Ok(Attempt::Again(FailureClass::Unknown, chain(&error))),
            }
        }
        if step.works_on().is_some() {
            return Box::pin(self.at_node(host, step, view, deadline)).await;
        }
        // What the shell does not show now it may show in a moment.
        if let Fact::Unknown { why } = &view.shell
            && step.is_at_shell()
            && !matches!(step, Step::StartShell)
        {
            return Ok(Attempt::Again(FailureClass::Unknown, why.clone()));
        }
        let asked = attempt > 1 || is_asked(before, step);
        let how = if asked { How::Did } else { How::Already };
        let check = step.check(host, view, before);
        if let (Step::StopVm { node: Some(node), .. }, Check::Ready) = (step, &check)
            && let Err(found) = Box::pin(self.still_empty(host, node)).await
        {
            return Ok(Attempt::Failed(found.class, found.why));
        }
        let task = match check {
            Check::AlreadyDone { .. } if matches!(step, Step::ExitMaintenance) => return Ok(Attempt::Sent(how)),
            // The host came back; whether it stays is to be seen.
            Check::AlreadyDone { .. } if before.reboots_by(&view.boot_time) > before.reboots => {
                return Ok(Attempt::Sent(How::Did));
            }
            // It took effect without a reboot: none is to be counted.
            Check::AlreadyDone { evidence } if matches!(step, Step::Reboot { .. }) => {
                return Ok(Attempt::Done(How::Already, evidence));
            }
            Check::AlreadyDone { evidence } => return Ok(Attempt::Done(how, evidence)),
            Check::Refused { expected, found } => {
                let why = format!("expected {expected}, found {found}");
                return Ok(Attempt::Failed(FailureClass::Refused, why));
            }
            Check::InFlight { task: Some(task) } if effect::enters(step) => match Box::pin(self.whose(&task)).await {
                Ok(None) => Some(task),
                Ok(Some(why)) => return Ok(Attempt::Failed(FailureClass::Refused, why)),
                Err(error) => return Ok(Attempt::Again(FailureClass::Unknown, chain(&error))),
            },
            Check::InFlight { task } => task,
            Check::Ready if step.is_at_shell() => {
                return Box::pin(self.at_shell(host, step, view, deadline)).await;
            }
            Check::Ready => match self.ready(host, step, view, asked).await {
                Ok(task) => task,
                Err(ended) => return Ok(ended),
            },
        };
        match task {
            Some(task) => self.await_task(host, step, &task, deadline).await,
            None => Ok(Attempt::Sent(How::Did)),
        }
    }

    /// Sends the effect; the answer is the task to follow, if there is one.
    pub(super) async fn ready(
        &mut self,
        host: &HostPlan,
        step: &Step,
        view: &HostView,
        asked: bool,
    ) -> Result<Option<MoRef>, Attempt> {
        if asked && matches!(step, Step::Reboot { .. }) {
            // Its task may have ended before the host goes down.
            match Box::pin(self.reboot_task(host)).await {
                Ok(Some(task)) => return Ok(Some(task)),
                Ok(None) => {}
                Err(error) => return Err(Attempt::Again(FailureClass::Unknown, chain(&error))),
            }
        }
        match Box::pin(self.send(host, step, view)).await {
            Sent::Task(task) => Ok(Some(task)),
            Sent::Stored => Ok(None),
            // A GPU that is still passed through: whatever became of the write, it is looked at and due
            // again after the reboot.
            Sent::Refused(_) | Sent::Unclear(_) if matches!(step, Step::SetGraphics { early: true, .. }) => Ok(None),
            Sent::Again(why) | Sent::Unclear(why) => Err(Attempt::Again(FailureClass::Unknown, why)),
            // A host that just came back refuses for a while (vsphere-gpu F42, F42b).
            Sent::Refused(why) if matches!(step, Step::ExitMaintenance) => {
                Err(Attempt::Again(FailureClass::Fault, in_words(view, step, &why)))
            }
            // Asked for the first time and refused: what the host is in now is not our doing.
            Sent::Refused(why)
                if !asked && matches!(step, Step::StartClosing { .. } | Step::EnterMaintenance { .. }) =>
            {
                Err(Attempt::Failed(FailureClass::Refused, in_words(view, step, &why)))
            }
            Sent::Refused(why) => Err(Attempt::Failed(FailureClass::Fault, in_words(view, step, &why))),
            Sent::Theirs(why) => Err(Attempt::Failed(FailureClass::Refused, why)),
        }
    }

    /// Follows the task of a step.
    pub(super) async fn await_task(
        &mut self,
        host: &HostPlan,
        step: &Step,
        task: &MoRef,
        deadline: Deadline,
    ) -> Result<Attempt, RunError> {
        self.rec.host(&host.host.name, Event::TaskSeen { step: step.into(), key: task.clone() })?;
        let limit = if matches!(step, Step::Reboot { .. }) { Deadline::of(INITIATE) } else { deadline };
        let untouched = matches!(step, Step::EnterMaintenance { .. })
            && !self.state_of(host).changed
            && self.armed_vms(host).is_empty();
        let signal = self.interrupt.clone();
        let end = tokio::select! {
            biased;
            () = signal.first(), if untouched => None,
            end = Box::pin(self.follow_watching(host, step, task, limit)) => Some(end),
        };
        let Some(end) = end else {
            self.note_signal()?;
            Box::pin(self.cancel(task)).await;
            return Ok(Attempt::Stopped);
        };
        Ok(match (step, end) {
            (_, Ok(TaskEnd::Success(_) | TaskEnd::Gone)) => Attempt::Sent(How::Did),
            // Judged by the boot time, never by the task, unless it certainly did nothing.
            (Step::Reboot { .. }, Ok(TaskEnd::Failed(info))) if effect::did_nothing(&info) => {
                Attempt::Failed(FailureClass::Fault, why(&info))
            }
            (Step::Reboot { .. }, _) => Attempt::Sent(How::Did),
            (Step::EnterMaintenance { .. }, Ok(TaskEnd::Failed(info))) => self.not_entered(host, &info).await,
            (Step::EnterMaintenance { .. }, Ok(TaskEnd::Deadline(_))) => self.too_late(host, task).await,
            (_, Ok(TaskEnd::Failed(info))) => Attempt::Again(FailureClass::Fault, why(&info)),
            (_, Ok(TaskEnd::Deadline(_))) => Attempt::Sent(How::Did),
            (_, Err(error)) => Attempt::Again(FailureClass::Unknown, chain(&error)),
        })
    }

    /// The server's task ended in a fault: the host decides whether it is in maintenance all the same.
    async fn not_entered(&self, host: &HostPlan, info: &crate::vim25::TaskInfo) -> Attempt {
        if self.is_closed(host).await == Some(true) {
            return Attempt::Sent(How::Did);
        }
        let timed_out = info.error.as_ref().is_some_and(|error| error.involves(fault::TIMEDOUT));
        let class = if timed_out { FailureClass::Timeout } else { FailureClass::Fault };
        let left = self.left_on(host).await;
        Attempt::Failed(class, std::iter::once(why(info)).chain(left).collect::<Vec<_>>().join("; "))
    }

    /// Our own deadline passed: that is no failure of the task. It is cancelled, and the host decides.
    async fn too_late(&self, host: &HostPlan, task: &MoRef) -> Attempt {
        let cancelled = Box::pin(self.cancel(task)).await;
        match self.is_closed(host).await {
            Some(true) => Attempt::Sent(How::Did),
            Some(false) => {
                let said =
                    format!("it did not end within our deadline; {cancelled}; the host is not in maintenance mode");
                let left = self.left_on(host).await;
                Attempt::Failed(FailureClass::Timeout, std::iter::once(said).chain(left).collect::<Vec<_>>().join("; "))
            }
            None => Attempt::Failed(
                FailureClass::Timeout,
                format!("it did not end within our deadline; {cancelled}; the host cannot be read"),
            ),
        }
    }

    /// Cancels a task and waits for its end; says in words what became of it.
    pub(super) async fn cancel(&self, task: &MoRef) -> String {
        let vcenter = self.vcenter();
        match vcenter.cancel_task(task).await {
            Ok(Cancel::Asked) => match vcenter.wait_task(task, CANCEL, |_| {}).await {
                Ok(TaskEnd::Success(_)) => format!("{} ended well before it could be cancelled", task.id),
                Ok(TaskEnd::Failed(_) | TaskEnd::Gone) => format!("{} is cancelled", task.id),
                Ok(TaskEnd::Deadline(_)) => format!("{} was cancelled and still runs", task.id),
                Err(error) => format!("{} was cancelled; its end cannot be read: {}", task.id, chain(&error)),
            },
            Ok(Cancel::Ended(_)) => format!("{} had just ended", task.id),
            Ok(Cancel::NotCancelable(_)) => format!("{} cannot be cancelled and goes on", task.id),
            Err(error) => format!("{} could not be cancelled: {}", task.id, chain(&error)),
        }
    }

    async fn is_closed(&self, host: &HostPlan) -> Option<bool> {
        let record = self.read(host).await;
        view_of(&record).ok().and_then(|view| view.in_maintenance.known().copied())
    }
}

/// Whether the step was announced before: what is found now may be our doing.
fn is_asked(before: &Memory, step: &Step) -> bool {
    match step {
        Step::StartClosing { .. } | Step::EnterMaintenance { .. } => before.maintenance == OurMaintenance::Asked,
        Step::ExitMaintenance => before.maintenance == OurMaintenance::Leaving,
        Step::Reboot { .. } => before.last_reboot.as_ref().is_some_and(|asked| !asked.proven),
        Step::StopVm { .. }
        | Step::SetPassthrough { .. }
        | Step::SetGraphics { .. }
        | Step::StartShell
        | Step::StopMonitor
        | Step::SetMig { .. }
        | Step::StartMonitor
        | Step::VerifyHost
        | Step::StartVm { .. }
        | Step::CordonNode { .. }
        | Step::DrainNode { .. }
        | Step::AwaitNode { .. }
        | Step::ValidateNode { .. }
        | Step::UncordonNode { .. } => false,
    }
}

/// What went wrong, with the name of the VM if the step is about one: vCenter's own words have its id.
fn about(step: &Step, why: String) -> String {
    match step {
        Step::StopVm { name, .. } | Step::StartVm { name, .. } if !why.contains(name.as_str()) => {
            format!("{name}: {why}")
        }
        _ => why,
    }
}

/// A refusal as a sentence: how the host stands, what was tried, what the server says.
fn in_words(view: &HostView, step: &Step, why: &str) -> String {
    let connection = view.connection.known().map_or("in an unknown state", crate::model::Connection::as_str);
    let closed = match view.in_maintenance.known() {
        Some(true) => "in maintenance mode",
        Some(false) => "not in maintenance mode",
        None => "perhaps in maintenance mode",
    };
    format!("the host is {connection} and {closed}; tried to {}: {why}", StepKind::from(step))
}

/// Why a task failed, to the deepest cause.
pub(super) fn why(info: &crate::vim25::TaskInfo) -> String {
    match &info.error {
        Some(error) => format!("task {}: {error}", info.task.id),
        None => format!("task {} failed and does not say why", info.task.id),
    }
}
