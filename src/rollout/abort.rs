//! Aborting: what is not changed yet is given back as it was; what is changed only goes forward.

use std::time::Duration;

use super::run::{Deadline, Run};
use super::visit::view_of;
use super::{Event, Held, HostPhase, Outcome, RunError, StepKind};
use crate::model::{HostRecord, MigKind, ShellWay};
use crate::plan::{self, HostPlan, Impact, NodeMemory, Reboots, Refusal, Step, Visit};

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
        // Nothing is left to be done but what it did, undone.
        let reboots = Reboots { expected: 0, most: host.reboots.most, why: Vec::new() };
        let visit = Visit { impact: Impact::Maintenance, steps: Vec::new(), reboots };
        self.begin(host, &record, view, visit, known.memory)?;
        let mut kept = self.undo(host).await?;
        kept.extend(self.put_back(host).await?);
        if !kept.is_empty() {
            return self.not_undone(host, kept).await;
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
        // What we asked for ends here, or it would go on with nobody's mark on the host.
        if let Err(what) = self.stop_entering(host, &record).await {
            return self.hold(host, Held::Taken { what }).await;
        }
        // The marks of its nodes say so, and go.
        let closing = self.is_closed_again(host);
        let mut notes = self.put_back(host).await?;
        notes.extend(self.leave_nodes(host).await?);
        let record = self.read(host).await;
        self.disarm_vms(host, &record, closing)?;
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
}
