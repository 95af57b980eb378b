//! The visit of one host: from whatever state it is in to released, failed or left.

use super::effect::entering;
use super::free::ClosedAgain;
use super::mark::NotMarked;
use super::marker::{self, Owner};
use super::run::Run;
use super::step::StepEnd;
use super::{
    Compensation, Event, FailureClass, Held, HostPhase, Outcome, RunError, SeenFacts, Stage, StepKind, budget,
};
use crate::model::{Fact, HostRecord, HostView, Marker, MarkerPhase, MoRef, NodeView};
use crate::plan::{self, GateCheck, HostPlan, Memory, NodeMemory, OurMaintenance, Refusal, Step, Visit};

/// How often one visit may be planned. Each reboot asks for a new plan, and so may each write that
/// had to be sent again; a plan that never comes to an end is a fault of ours or of the host.
const PLANS: u32 = 8;

impl Run<'_> {
    /// Visits a host: for the first time, or again after a crash, a signal or a failure.
    pub(super) async fn visit(&mut self, host: &HostPlan) -> Result<(), RunError> {
        let (mut record, mut guests) = self.read_all(host).await;
        let mut known = match self.recall(host, &record) {
            Ok(known) => known,
            Err(held) => return self.hold(host, held).await,
        };
        self.recall_nodes(host, &mut known.memory, &record);
        self.nodes_before.extend(nodes_of(&record).map(|seen| (seen.node.clone(), seen.clone())));
        let is_new = self.state_of(host).phase == HostPhase::Pending;
        if let Some(marker) = known.marker.clone().filter(|_| is_new) {
            self.found(host, &record, marker)?;
        }
        // Known by its marker: it failed, and whoever saw that may have died while it closed again.
        let failed = known.marker.as_ref().is_some_and(|marker| marker.phase == MarkerPhase::Failed);
        if failed && matches!(self.state_of(host).phase, HostPhase::Left { .. }) {
            for NodeMemory { node, vm, mark } in self.marked_nodes(&record) {
                self.marked(host, &node, &vm, Some(mark))?;
            }
            if matches!(self.finish_closing(host).await?, ClosedAgain::Stopped) {
                return Ok(());
            }
            if self.retrying.as_ref() != Some(&host.host.name) {
                return self.hold(host, Held::FailedBefore).await;
            }
            (record, guests) = self.read_all(host).await;
            known = match self.recall(host, &record) {
                Ok(known) => known,
                Err(held) => return self.hold(host, held).await,
            };
            self.recall_nodes(host, &mut known.memory, &record);
        }
        if let Some(held) = self.taken(host, &record, &known.memory).await {
            return self.hold(host, held).await;
        }
        let memory = &known.memory;
        let around = self.around(host, &record, memory, guests).await;
        let planned = match plan::visit(host, &record, memory, &around) {
            Ok(visit) => visit,
            // Changed since the plan, into what the plan wants: by us, before the journal was lost, or
            // by somebody else.
            Err(Refusal::Stale { .. }) if known.marker.is_none() && is_as_wished(host, &record) => {
                return self.already(host);
            }
            Err(refusal) => {
                // A journal that began anew learns from the marker that the host is not untouched.
                if let Some(marker) = known.marker {
                    self.adopt(host, marker)?;
                }
                return self.hold(host, Held::Refused(refusal)).await;
            }
        };
        let Ok(view) = &record.view else {
            // A visit is planned from a view; without one the planner refuses.
            return self.hold(host, Held::Refused(Refusal::Unreadable("the host".to_owned()))).await;
        };
        if planned.steps.is_empty() && !memory.begun && known.marker.is_none() {
            return self.already(host);
        }
        // Whatever came before, this is the start of an outage: of a host that was given back when its
        // entering was cancelled, too.
        let closes = |step: &Step| matches!(step, Step::StartClosing { .. } | Step::EnterMaintenance { .. });
        let starts = planned.steps.iter().any(closes) && !matches!(entering(&record), Ok(Some(_)));
        if starts && let Err(held) = self.budget(host).await {
            return self.put_off(host, &record, known.marker, held).await;
        }
        if starts
            && memory.nodes.is_empty()
            && let Err(held) = self.jobs_fit(host, &planned).await?
        {
            return match held {
                Some(held) => self.put_off(host, &record, known.marker, held).await,
                None => Ok(()),
            };
        }
        if known.marker.is_none()
            && !memory.begun
            && let Err(why) = self.marker_fits(host, view, &planned, memory)
        {
            return self.hold(host, Held::MarkerNotWritten { why }).await;
        }
        let from_marker = self.state_of(host).visit.is_none();
        self.begin(host, &record, view, planned.clone(), known.memory)?;
        match known.marker {
            Some(marker) => {
                let phase = marker.phase;
                self.adopt(host, marker)?;
                // Whoever wrote it may still be at work elsewhere: it finds that it is not alone.
                if from_marker && let Err(why) = self.mark(host, view, phase).await? {
                    return self.not_marked(host, why).await;
                }
            }
            None => {
                // It is missing on a host that was begun: somebody removed it. It is written again
                // with the phase that it had.
                let had = self.state_of(host).marker.as_ref().map(|marker| marker.phase);
                if let Err(why) = self.mark(host, view, had.unwrap_or(MarkerPhase::Prechecking)).await? {
                    return self.not_marked(host, why).await;
                }
            }
        }
        // Once more with our mark on it: of two runs that start at one moment at least one sees the
        // other's.
        if starts && let Err(held) = self.budget(host).await {
            return self.put_off(host, &record, None, held).await;
        }
        self.steps(host, planned).await
    }

    /// Does the steps, planning again after each reboot, and releases the host.
    async fn steps(&mut self, host: &HostPlan, mut visit: Visit) -> Result<(), RunError> {
        for _ in 0..PLANS {
            let mut left = visit.steps.into_iter();
            let mut rebooted = false;
            for step in left.by_ref() {
                match Box::pin(self.step(host, &step)).await? {
                    StepEnd::Done => {}
                    StepEnd::Failed | StepEnd::Stopped => return self.leave(host).await,
                    StepEnd::Held => return Ok(()),
                }
                rebooted = matches!(step, Step::Reboot { .. });
                if rebooted {
                    break;
                }
            }
            if !rebooted {
                return self.release(host).await;
            }
            let (record, guests) = self.read_all(host).await;
            let memory = self.memory_of(host);
            let around = self.around(host, &record, &memory, guests).await;
            let next = match plan::visit(host, &record, &memory, &around) {
                Ok(next) => next,
                Err(refusal) => return self.hold(host, Held::Refused(refusal)).await,
            };
            let outlook: Vec<Step> = left.collect();
            if next.steps != outlook {
                let why = format!("read again after the reboot: {}", StepKind::in_words(&next.steps));
                self.rec.host(&host.host.name, Event::VisitReplanned { why, visit: next.clone() })?;
            }
            visit = next;
        }
        let why = format!("it was planned {PLANS} times and still asks for: {}", StepKind::in_words(&visit.steps));
        self.hold(host, Held::Refused(Refusal::Blocked(why))).await
    }

    /// What this run knows of the host: from the journal, else from the marker.
    pub(super) fn recall(&mut self, host: &HostPlan, record: &HostRecord) -> Result<Known, Held> {
        let known = self.known(host, record)?;
        self.markers.entry(host.host.name.clone()).or_default().extend(known.marker.as_deref().cloned());
        Ok(known)
    }

    fn known(&self, host: &HostPlan, record: &HostRecord) -> Result<Known, Held> {
        let state = self.state_of(host);
        let from_journal = |marker| Known { memory: state.memory.clone(), marker };
        let Ok(view) = &record.view else { return Ok(from_journal(None)) };
        match self.owner(host, view) {
            Owner::Other(held) => Err(held),
            Owner::Nobody => Ok(from_journal(None)),
            Owner::Ours(marker) if marker.host != host.uuid => Err(Held::UnreadableMarker {
                why: format!("it is of the machine {}, this one is {}", marker.host, host.uuid),
            }),
            Owner::Ours(marker) if state.visit.is_none() => {
                Ok(Known { memory: marker::memory(&marker), marker: Some(marker) })
            }
            Owner::Ours(marker) => Ok(from_journal(Some(marker))),
        }
    }

    /// What nodes themselves say of this visit comes before what is remembered of them.
    pub(super) fn recall_nodes(&self, host: &HostPlan, memory: &mut Memory, record: &HostRecord) {
        for found in self.marked_nodes(record) {
            // A VM is one node: what was remembered of an object before it is over.
            memory.nodes.retain(|known| known.node != found.node && known.vm != found.vm);
            memory.nodes.push(found);
        }
        // The write that was on its way has got through: its gate was passed before it was sent.
        if let Some(Step::UncordonNode { node, .. }) = self.state_of(host).running.as_ref().map(|running| &running.step)
            && nodes_of(record).any(|seen| seen.node == *node && seen.marked() == Fact::Absent)
        {
            memory.nodes.retain(|known| known.node != *node);
        }
        memory.nodes.sort_by(|one, other| one.node.cmp(&other.node));
    }

    /// Takes the marker that stands on the host into the journal, if that does not know it.
    pub(super) fn adopt(&mut self, host: &HostPlan, marker: Box<Marker>) -> Result<(), RunError> {
        if self.state_of(host).marker.is_some() {
            return Ok(());
        }
        self.rec.host(&host.host.name, Event::MarkerWritten { marker: Some(marker) })
    }

    /// A host with our marker of which the journal knows nothing: a process that is gone left it.
    fn found(&mut self, host: &HostPlan, record: &HostRecord, marker: Box<Marker>) -> Result<(), RunError> {
        self.adopt(host, marker)?;
        let left_as = self.left_as(host, record, vec!["found by its marker; the journal is gone".to_owned()]);
        self.rec.host(&host.host.name, Event::HostLeft { left_as })
    }

    /// Whether somebody else took the host out of the maintenance that we asked for.
    async fn taken(&self, host: &HostPlan, record: &HostRecord, memory: &Memory) -> Option<Held> {
        let Ok(view) = &record.view else { return None };
        if memory.maintenance != OurMaintenance::Closed || view.in_maintenance != Fact::Known(false) {
            return None;
        }
        let who = self.who_left_maintenance(host).await;
        Some(Held::Taken { what: format!("the host is out of the maintenance that this run asked for; {who}") })
    }

    async fn budget(&self, host: &HostPlan) -> Result<(), Held> {
        let Some(pool) = self.plan.desired.pools.iter().find(|pool| pool.name.value == host.pool) else {
            return Err(Held::Refused(Refusal::Blocked(format!("the plan has no pool {}", host.pool))));
        };
        let hosts: Vec<_> = pool.hosts.iter().map(|pin| pin.host.clone()).collect();
        let now = match pool.guests.is_empty() {
            true => Box::pin(self.fleet.facts(&hosts)).await,
            false => Box::pin(self.fleet.facts_and_nodes(&hosts)).await,
        };
        budget::allows(pool, &host.host, self.run_id(), &now)
    }

    /// Journals the visit, with what was read before it, and arms again what is ours.
    pub(super) fn begin(
        &mut self,
        host: &HostPlan,
        record: &HostRecord,
        view: &HostView,
        visit: Visit,
        mut memory: Memory,
    ) -> Result<(), RunError> {
        let name = &host.host.name;
        if memory.baseline.is_none() {
            memory.baseline = Some(plan::baseline(host, view));
            self.dir.keep_before(name, record)?;
        }
        self.rec.host(name, Event::VisitPlanned { visit, facts: SeenFacts::of(record), memory: Box::new(memory) })?;
        self.rearm(host)
    }

    /// Arms again what the memory says is ours and the journal does not know (it began anew).
    fn rearm(&mut self, host: &HostPlan) -> Result<(), RunError> {
        let state = self.state_of(host);
        if state.memory.maintenance != OurMaintenance::NotAsked && !state.armed.contains(&Compensation::Maintenance) {
            self.rec.host(&host.host.name, Event::Armed { comp: Compensation::Maintenance })?;
        }
        let memory = self.memory_of(host);
        for vm in memory.vms {
            self.arm_one(host, Compensation::Vm(vm))?;
        }
        for known in memory.nodes {
            self.arm_one(host, Compensation::Node(known.node))?;
        }
        if memory.monitor_stopped {
            self.arm_one(host, Compensation::Monitor)?;
        }
        let marked = self.state_of(host).marker.as_ref().map(marker::armed).unwrap_or_default();
        for comp in marked.into_iter().filter(|comp| matches!(comp, Compensation::Ssh | Compensation::Node(_))) {
            self.arm_one(host, comp)?;
        }
        Ok(())
    }

    /// The marker could not be written. What may stand there of it goes, unless it is another run's.
    pub(super) async fn not_marked(&mut self, host: &HostPlan, why: NotMarked) -> Result<(), RunError> {
        let why = match why {
            NotMarked::Foreign(held) => return self.hold(host, held).await,
            other => other.to_string(),
        };
        self.hold(host, Held::MarkerNotWritten { why }).await?;
        if matches!(self.state_of(host).phase, HostPhase::Held { .. }) {
            self.unmark_untouched(host).await?;
        }
        Ok(())
    }

    /// No outage may start now, and none of ours is under way: the host is in service, so what is left
    /// of an entering that was cancelled or never came through goes.
    async fn put_off(
        &mut self,
        host: &HostPlan,
        record: &HostRecord,
        marker: Option<Box<Marker>>,
        why: Held,
    ) -> Result<(), RunError> {
        if let Some(marker) = marker {
            self.adopt(host, marker)?;
        }
        let state = self.state_of(host);
        let free = !state.changed && !matches!(state.phase, HostPhase::Failed { .. }) && state.marker.is_some();
        // Cordoned nodes are an outage of their own: it goes on, or is given back by an abort.
        if free && state.memory.nodes.is_empty() {
            self.disarm(host, record)?;
            if let Err(why) = self.unmark(host).await? {
                tracing::warn!(host = %host.host.name, "the marker stays on the host: {why}");
            }
        }
        self.hold(host, why).await
    }

    /// Nothing is left to do on the host, and nothing of ours is on it.
    fn already(&mut self, host: &HostPlan) -> Result<(), RunError> {
        let outcome = if self.state_of(host).done.is_empty() { Outcome::AlreadyConverged } else { Outcome::Converged };
        self.rec.host(&host.host.name, Event::HostReleased { outcome })
    }

    /// Nothing more is done to the host. If nothing was, it is held; else its visit failed.
    pub(super) async fn hold(&mut self, host: &HostPlan, why: Held) -> Result<(), RunError> {
        // A host on which nothing was done is held, and not visited again to be put back.
        if matches!(self.state_of(host).phase, HostPhase::Working { stage: Stage::Prechecking }) {
            for kept in self.put_back(host).await? {
                tracing::warn!(host = %host.host.name, "{kept}");
            }
        }
        self.rec.host(&host.host.name, Event::HostHeld { why })?;
        match self.state_of(host).phase {
            HostPhase::Failed { .. } => self.leave(host).await,
            _ if self.state_of(host).marker.is_some() => self.unmark_untouched(host).await,
            _ => Ok(()),
        }
    }

    /// A step failed.
    pub(super) fn failed(
        &mut self,
        host: &HostPlan,
        step: StepKind,
        class: FailureClass,
        error: String,
    ) -> Result<StepEnd, RunError> {
        self.rec.host(&host.host.name, Event::StepFailed { step, class, error })?;
        Ok(StepEnd::Failed)
    }
}

/// What a run knows of a host before it reads the rest.
pub(super) struct Known {
    pub(super) memory: Memory,
    /// Our marker, as it stands on the host.
    pub(super) marker: Option<Box<Marker>>,
}

/// Whether the host is the one of the plan, in service, and has the modes that the plan wants.
fn is_as_wished(host: &HostPlan, record: &HostRecord) -> bool {
    let Ok(view) = &record.view else { return false };
    let decides = |line: &plan::GateRead| matches!(line.check, GateCheck::Identity | GateCheck::Signature);
    let lines = plan::gate(host, None, view);
    let mut decisive = lines.iter().filter(|line| decides(line)).peekable();
    decisive.peek().is_some()
        && decisive.all(|line| line.verdict.opens())
        && (host.stays_in_maintenance || view.in_maintenance == Fact::Known(false))
}

/// The nodes that VMs of a host are.
pub(super) fn nodes_of(record: &HostRecord) -> impl Iterator<Item = &NodeView> {
    let vms = record.view.as_ref().ok().and_then(|view| view.vms.known()).into_iter().flatten();
    vms.filter_map(|vm| vm.node.known().map(AsRef::as_ref))
}

/// The node that a VM of a host is.
pub(super) fn node_of<'a>(record: &'a HostRecord, vm: &MoRef) -> Option<&'a NodeView> {
    let mut vms = record.view.as_ref().ok().and_then(|view| view.vms.known()).into_iter().flatten();
    vms.find(|found| found.moref == *vm)?.node.known().map(AsRef::as_ref)
}

/// What the view of a record says, if there is one.
pub(super) fn view_of(record: &HostRecord) -> Result<&HostView, String> {
    record.view.as_deref().map_err(|fault| fault.message.clone())
}
