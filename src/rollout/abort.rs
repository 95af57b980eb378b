//! Aborting: what is not changed yet is given back as it was; what is changed only goes forward.

use std::time::Duration;

use super::effect::entering;
use super::run::{Deadline, Run};
use super::step::{Attempt, StepEnd};
use super::visit::view_of;
use super::{Event, FailureClass, Held, HostPhase, Outcome, RunError, StepKind, chain};
use crate::model::{Fact, HostRecord, HostView, MigKind, ShellWay};
use crate::plan::{self, GateCheck, HostPlan, Impact, NodeMemory, OurMaintenance, Reboots, Refusal, Step, Visit};

/// Between two looks at what a person may have typed.
const LOOK: Duration = Duration::from_secs(5);

impl Run<'_> {
    /// Aborts the visit of each host that is under way.
    pub(super) async fn abort_all(&mut self) -> Result<(), RunError> {
        let plan = self.plan;
        for host in &plan.hosts {
            self.note_signal()?;
            if self.rec.state.signal.is_some() {
                return Ok(());
            }
            let state = self.state_of(host);
            let under_way = match &state.phase {
                HostPhase::Working { .. } | HostPhase::Left { .. } => true,
                HostPhase::Failed { left_as, .. } => left_as.as_ref().is_none_or(|left| !left.is_clean()),
                HostPhase::Pending | HostPhase::Held { .. } | HostPhase::Refused { .. } => state.marker.is_some(),
                HostPhase::Done { .. } => false,
            };
            if under_way {
                Box::pin(self.abort(host)).await?;
            }
        }
        Ok(())
    }

    /// Gives the host back if nothing was changed on it; says how it is left otherwise.
    async fn abort(&mut self, host: &HostPlan) -> Result<(), RunError> {
        let (record, _) = self.read_all(host).await;
        let mut known = match self.recall(host, &record) {
            Ok(known) => known,
            Err(held) => return self.hold(host, held).await,
        };
        self.recall_nodes(host, &mut known.memory, &record);
        // A changed host only goes forward, and one that failed stays so: it is never verified again by
        // itself (FORMATS "Marker").
        if let Some(marker) = known.marker.clone() {
            self.adopt(host, marker)?;
        }
        if Box::pin(self.only_asked(host, &record)).await {
            let evidence = "nothing was typed: the host is as the plan found it".to_owned();
            self.rec.host(&host.host.name, Event::HandoffWithdrawn { evidence })?;
        }
        if self.state_of(host).changed {
            return self.leave(host).await;
        }
        let view = match view_of(&record) {
            Ok(view) => view,
            Err(why) => return self.hold(host, Held::Refused(Refusal::Unreadable(why))).await,
        };
        let steps = match view.in_maintenance {
            Fact::Known(false) => Vec::new(),
            Fact::Known(true) | Fact::Absent | Fact::Unknown { .. } => vec![Step::ExitMaintenance],
        };
        let reboots = Reboots { expected: 0, most: host.reboots.most, why: Vec::new() };
        let visit = Visit { impact: Impact::Maintenance, steps, reboots };
        self.begin(host, &record, view, visit, known.memory)?;
        // Also where it seems to be closed, or opened: what runs decides.
        if self.state_of(host).memory.maintenance != OurMaintenance::NotAsked
            && let Err(why) = self.stop_entering(host, &record).await
        {
            return self.hold(host, Held::Taken { what: format!("it still enters maintenance mode: {why}") }).await;
        }
        if self.reopen(host).await? != StepEnd::Done {
            return self.leave(host).await;
        }
        let not_started = self.restart(host).await?;
        if !not_started.is_empty() {
            return self.hold(host, Held::Taken { what: not_started.join("; ") }).await;
        }
        let cordoned = Box::pin(self.free_nodes(host)).await?;
        if !cordoned.is_empty() {
            return self.hold(host, Held::Taken { what: cordoned.join("; ") }).await;
        }
        let kept = self.put_back(host).await?;
        if !kept.is_empty() {
            return self.hold(host, Held::Taken { what: kept.join("; ") }).await;
        }
        let record = self.read(host).await;
        self.disarm(host, &record)?;
        self.give_back(host, &record, Outcome::AsItWas).await
    }

    /// Whether all that was done to the modes of a host is that a person was asked, who has not begun: of
    /// MIG that a driver keeps vCenter shows it. Of a board nothing would show it.
    async fn only_asked(&self, host: &HostPlan, record: &HostRecord) -> bool {
        let state = self.state_of(host);
        let writes = [StepKind::SetPassthrough, StepKind::SetGraphics, StepKind::SetMig, StepKind::Reboot];
        let asked = state.running.as_ref().is_some_and(|running| {
            matches!(running.step, Step::SetMig { way: ShellWay::Handoff, kind: MigKind::Driver, .. })
        });
        if !state.is_awaited() || !asked || state.done.iter().any(|step| writes.contains(step)) {
            return false;
        }
        // What was typed may not have come to vCenter yet: it is asked for, and has the time that every
        // value has (vsphere-gpu §2.1: whether the host notices by itself is unverified).
        let deadline = Deadline::of(Duration::from_secs(self.pace.read_back_s.into()));
        let mut seen = view_of(record).cloned();
        loop {
            match &seen {
                Ok(view) if plan::is_as_planned(host, view) == Ok(true) => {
                    if deadline.passed() {
                        return true;
                    }
                    Box::pin(self.refresh(host, view)).await;
                }
                _ => return false,
            }
            tokio::time::sleep(LOOK).await;
            seen = view_of(&self.read(host).await).cloned();
        }
    }

    /// Leaves a host to somebody as it stands: what no visit can go on with, a person does. What was
    /// changed to get to the shell is put back, what else was changed is named, and the marker goes.
    pub(super) async fn give_up(&mut self, host: &HostPlan) -> Result<(), RunError> {
        let (record, _) = self.read_all(host).await;
        let known = match self.recall(host, &record) {
            Ok(known) => known,
            Err(held) => return self.hold(host, held).await,
        };
        if let Some(marker) = known.marker {
            self.adopt(host, marker)?;
        }
        for NodeMemory { node, vm, mark } in self.marked_nodes(&record) {
            self.marked(host, &node, &vm, Some(mark))?;
        }
        match entering(&record) {
            Ok(None) => {}
            Ok(Some(task)) => {
                let what = format!("it enters maintenance mode ({}): abort the run, or wait", task.id);
                return self.hold(host, Held::Taken { what }).await;
            }
            Err(why) => return self.hold(host, Held::Refused(Refusal::Unreadable(why))).await,
        }
        let mut notes = self.put_back(host).await?;
        notes.extend(self.leave_nodes(host).await?);
        let record = self.read(host).await;
        self.disarm_vms(host, &record)?;
        let left_as = self.left_as(host, &record, notes);
        self.rec.host(&host.host.name, Event::HostLeft { left_as })?;
        self.disarm(host, &record)?;
        for comp in self.state_of(host).armed.clone() {
            let found = "given up: somebody sees to it".to_owned();
            self.rec.host(&host.host.name, Event::LeftAlone { comp, found })?;
        }
        match self.unmark(host).await? {
            Ok(()) => self.rec.host(&host.host.name, Event::HostReleased { outcome: Outcome::GivenUp }),
            Err(why) => self.hold(host, Held::MarkerNotWritten { why: why.to_string() }).await,
        }
    }

    /// Cancels the entering that we asked for. A host that goes on entering is not given back: it would
    /// stand closed with nobody's mark on it.
    pub(super) async fn stop_entering(&self, host: &HostPlan, record: &HostRecord) -> Result<(), String> {
        let Some(task) = entering(record)? else { return Ok(()) };
        match Box::pin(self.whose(&task)).await {
            Ok(None) => {}
            // Somebody else's, and theirs to end.
            Ok(Some(_)) => return Ok(()),
            Err(error) => return Err(chain(&error)),
        }
        let said = Box::pin(self.cancel(&task)).await;
        match entering(&self.read(host).await)? {
            Some(running) if running == task => Err(said),
            Some(_) | None => Ok(()),
        }
    }

    /// Leaves the maintenance that we asked for, on a host whose modes were not touched: its parity
    /// must be as before, its modes need not be as wished.
    async fn reopen(&mut self, host: &HostPlan) -> Result<StepEnd, RunError> {
        let step = Step::ExitMaintenance;
        let kind = StepKind::ExitMaintenance;
        let record = self.read(host).await;
        let view = match view_of(&record) {
            Ok(view) => view,
            Err(why) => return self.failed(host, kind, FailureClass::Unknown, why),
        };
        if view.in_maintenance == Fact::Known(false)
            || self.state_of(host).memory.maintenance == OurMaintenance::NotAsked
        {
            return Ok(StepEnd::Done);
        }
        if let Err(why) = self.mark_step(host, &step).await? {
            return self.failed(host, kind, FailureClass::Refused, why.to_string());
        }
        let server_time = match self.server_time().await {
            Ok(time) => time,
            Err(error) => return self.failed(host, kind, FailureClass::Unknown, chain(&error)),
        };
        let name = &host.host.name;
        self.rec.host(name, Event::StepStarted { step: step.clone(), attempt: 1, server_time, again: None })?;
        let worse = self.worse(host, view);
        if !worse.is_empty() {
            return self.failed(host, kind, FailureClass::Refused, worse.join("; "));
        }
        let deadline = Deadline::of(step.deadline(&self.pace));
        let sent = match self.ready(host, &step, view, false).await {
            Ok(Some(task)) => self.await_task(host, &step, &task, deadline).await?,
            Ok(None) => Attempt::Sent(super::How::Did),
            Err(ended) => ended,
        };
        match sent {
            Attempt::Done(how, evidence) => self.done(host, kind, how, evidence),
            Attempt::Stopped => Ok(StepEnd::Stopped),
            Attempt::Again(class, why) | Attempt::Failed(class, why) => self.failed(host, kind, class, why),
            Attempt::Sent(how) => {
                let record = self.read(host).await;
                match view_of(&record) {
                    Ok(view) if view.in_maintenance == Fact::Known(false) => {
                        self.done(host, kind, how, vec!["out of maintenance mode".to_owned()])
                    }
                    Ok(_) => {
                        let why = "the host is still in maintenance mode".to_owned();
                        self.failed(host, kind, FailureClass::NotVerified, why)
                    }
                    Err(why) => self.failed(host, kind, FailureClass::Unknown, why),
                }
            }
        }
    }

    /// What is worse than before the visit.
    fn worse(&self, host: &HostPlan, view: &HostView) -> Vec<String> {
        plan::gate(host, self.state_of(host).memory.baseline.as_ref(), view)
            .into_iter()
            .filter(|line| line.check != GateCheck::Signature && !line.verdict.opens())
            .map(|line| format!("{} {}: {}", line.check, line.subject, line.evidence))
            .collect()
    }
}
