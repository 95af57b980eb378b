//! The hand-off: a person types at the shell of a host what no call of vSphere does (DESIGN §6).
//!
//! ```text
//!   HandoffAsked (journal, who watches, vCenter event) ──► wait ─┬─ vgpuMode shows it ─────┐
//!                                                                ├─ the person says so ────┤
//!                                                                └─ not in time: HostLeft  ▼
//!                                                                              HandoffSeen, StepDone
//! ```

use std::time::Duration;

use tokio::sync::watch;

use super::marker::Owner;
use super::run::{Deadline, Run};
use super::step::StepEnd;
use super::visit::view_of;
use super::{Event, FailureClass, How, RunError, StepKind, chain};
use crate::model::{Connection, Fact, HostView, MigKind};
use crate::plan::{Check, HostPlan, Step, Verify};
use crate::shell::{Command, Query};

/// Between two looks at a host that a person works on.
const LOOK: Duration = Duration::from_secs(15);
/// How long vCenter may take to show what a person says is done (vsphere-gpu §3.5: up to minutes).
const SHOWS: Duration = Duration::from_secs(5 * 60);

/// How long a person is waited for, and how they say that it is done.
#[derive(Debug, Clone)]
pub struct Handoff {
    wait: Duration,
    said: watch::Receiver<u32>,
}

/// The end that a person holds.
#[derive(Debug, Clone)]
pub struct Confirm(watch::Sender<u32>);

/// A pair of ends: a person is waited for so long, in this process.
pub fn handoff(wait: Duration) -> (Confirm, Handoff) {
    let (sender, said) = watch::channel(0);
    (Confirm(sender), Handoff { wait, said })
}

impl Confirm {
    /// The person says that the commands are typed. It counts for what is asked for now.
    pub fn confirm(&self) {
        self.0.send_modify(|times| *times += 1);
    }
}

impl Handoff {
    /// Whether a word can still come.
    fn may_come(&self) -> bool {
        self.said.has_changed().is_ok()
    }

    /// Waits for the person's word; forever if none can come any more.
    async fn word(&mut self) {
        if self.said.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Run<'_> {
    /// Asks a person to switch MIG, and waits for it.
    pub(super) async fn hand_off(&mut self, host: &HostPlan, step: &Step) -> Result<StepEnd, RunError> {
        let kind = StepKind::from(step);
        let board = matches!(step, Step::SetMig { kind: MigKind::Board, .. });
        let mut asked: Option<Deadline> = None;
        // What was said before it was asked for means something else.
        self.handoff.said.mark_unchanged();
        loop {
            let record = self.read(host).await;
            let waits_for = match view_of(&record) {
                Err(why) => why,
                Ok(view) => {
                    if let Some(why) = self.not_ours(host, view) {
                        return self.failed(host, kind, FailureClass::Refused, why);
                    }
                    match step.check(host, view, &self.memory_of(host)) {
                        // Others act while a person is waited for, who may reboot the host, too.
                        Check::Refused { .. } if asked.is_some() && is_busy(view) => {}
                        Check::AlreadyDone { evidence } => {
                            return self.handed_back(host, kind, evidence, asked.is_some());
                        }
                        Check::Refused { expected, found } => {
                            let why = format!("expected {expected}, found {found}");
                            return self.failed(host, kind, FailureClass::Refused, why);
                        }
                        Check::Ready | Check::InFlight { .. } => {}
                    }
                    if board && self.is_confirmed(host) {
                        let evidence = vec!["a person says that it is done".to_owned()];
                        return self.handed_back(host, kind, evidence, true);
                    }
                    if asked.is_some() {
                        Box::pin(self.refresh(host, view)).await;
                    }
                    let open = match step.verify(host, view, &self.memory_of(host)) {
                        Verify::Settling { waiting_for } | Verify::NotYet { waiting_for } => waiting_for.join("; "),
                        Verify::Reached { .. } => "the host to be idle".to_owned(),
                    };
                    let who = match (board, self.is_confirmed(host)) {
                        (true, _) => "a person to type the commands, and to say so",
                        (false, false) => "a person to type the commands",
                        (false, true) => "vCenter to show what a person says is typed",
                    };
                    format!("{who}: {open}")
                }
            };
            let deadline = match asked {
                Some(deadline) => deadline,
                None => {
                    self.ask(host, step).await?;
                    // What was confirmed before is only to be seen now.
                    let wait = match (self.is_confirmed(host), board && !self.handoff.may_come()) {
                        (true, _) => self.handoff.wait.max(SHOWS),
                        // Of a board only their word counts, and it cannot come to this process.
                        (false, true) => Duration::ZERO,
                        (false, false) => self.handoff.wait,
                    };
                    *asked.insert(Deadline::of(wait))
                }
            };
            self.note_signal()?;
            if deadline.passed() || self.rec.state.signal.is_some() {
                self.said = Some(format!("waits for {waits_for}"));
                return Ok(StepEnd::Stopped);
            }
            self.tell(host, Some(kind), &[waits_for], deadline, None);
            let signal = self.interrupt.clone();
            tokio::select! {
                biased;
                () = signal.first() => {}
                () = self.handoff.word() => {
                    let event = Event::HandoffConfirmed;
                    self.rec.host(&host.host.name, event)?;
                    asked = Some(Deadline::of(deadline.left().max(SHOWS)));
                }
                () = tokio::time::sleep(LOOK.min(deadline.left())) => {}
            }
        }
    }

    /// Says what is to be typed: in the journal, to who watches, and in vCenter.
    async fn ask(&mut self, host: &HostPlan, step: &Step) -> Result<(), RunError> {
        let Step::SetMig { gpus, on, kind, .. } = step else {
            unreachable!("only a switch of MIG is handed off");
        };
        let switches = gpus.iter().map(|gpu| Command::SetMig { gpu: *gpu, on: *on });
        let commands: Vec<String> = std::iter::once(Command::StopMonitor)
            .chain(switches)
            .chain([Command::StartMonitor, Command::Query(Query::Modes)])
            .map(Command::line)
            .collect();
        let name = &host.host.name;
        let said = format!(
            "Poolwright run {}: {name} is in maintenance mode and waits for a person to type at its shell: {}",
            self.run_id(),
            commands.join("; ")
        );
        self.rec.host(name, Event::HandoffAsked { commands, confirm: *kind == MigKind::Board })?;
        if let Err(error) = Box::pin(self.vcenter().log_user_event(&host.host.moref, &said)).await {
            tracing::warn!(host = %name, "the commands are not in the events of vCenter: {}", chain(&error));
        }
        Ok(())
    }

    fn handed_back(
        &mut self,
        host: &HostPlan,
        kind: StepKind,
        evidence: Vec<String>,
        asked: bool,
    ) -> Result<StepEnd, RunError> {
        if self.state_of(host).handoff.is_some() {
            self.rec.host(&host.host.name, Event::HandoffSeen { evidence: evidence.join("; ") })?;
        }
        self.done(host, kind, if asked { How::Did } else { How::Already }, evidence)
    }

    fn is_confirmed(&self, host: &HostPlan) -> bool {
        self.state_of(host).handoff.as_ref().is_some_and(|asked| asked.confirmed)
    }

    /// Why the host is not ours to go on with, if so: a person may take hours, and others act meanwhile.
    fn not_ours(&self, host: &HostPlan, view: &HostView) -> Option<String> {
        match self.owner(host, view) {
            Owner::Ours(_) => {}
            Owner::Nobody => return Some("somebody removed our marker".to_owned()),
            Owner::Other(held) => return Some(held.to_string()),
        }
        (view.in_maintenance == Fact::Known(false))
            .then(|| "somebody took the host out of maintenance mode while a person was waited for".to_owned())
    }
}

/// Whether the host is down, or a task runs on it: what it shows then may change by itself.
fn is_busy(view: &HostView) -> bool {
    view.connection != Fact::Known(Connection::Connected) || view.tasks.known().is_none_or(|tasks| !tasks.is_empty())
}
