//! The ways out of a visit: released, or left with a word on how.

use std::time::Duration;

use super::effect::entering;
use super::free::ClosedAgain;
use super::marker;
use super::nodes::Seen;
use super::run::{Deadline, Run};
use super::visit::{nodes_of, view_of};
use super::{Compensation, Event, Held, HostPhase, LeftAs, Outcome, RunError, Stage};
use crate::model::{Fact, HostRecord, Marker, MarkerPhase, MoRef, NodeRef, PowerState};
use crate::plan::{self, HostPlan, OurMaintenance};

impl Run<'_> {
    /// The host is as it should be: what is armed is put back, the marker is cleared.
    pub(super) async fn release(&mut self, host: &HostPlan) -> Result<(), RunError> {
        let (record, _) = self.read_all(host).await;
        self.disarm_vms(host, &record, false)?;
        self.disarm_nodes(host, &record)?;
        let open: Vec<String> = self.armed_vms(host).iter().map(|vm| host.vm_name(vm).to_owned()).collect();
        if !open.is_empty() {
            let what = format!("VMs that were stopped are not known to run again: {}", open.join(", "));
            return self.hold(host, Held::Taken { what }).await;
        }
        let cordoned: Vec<String> = self.state_of(host).armed.iter().filter_map(node_in).collect();
        if !cordoned.is_empty() {
            let what = format!("nodes are still cordoned by this run: {}", cordoned.join(", "));
            return self.hold(host, Held::Taken { what }).await;
        }
        self.disarm(host, &record)?;
        let kept = self.put_back_at_the_end(host).await?;
        if !kept.is_empty() {
            return self.hold(host, Held::Taken { what: kept.join("; ") }).await;
        }
        let outcome = if self.state_of(host).done.is_empty() { Outcome::AlreadyConverged } else { Outcome::Converged };
        self.give_back(host, &record, outcome).await
    }

    /// Nodes that are armed and carry no mark of ours: never cordoned, or given back by a process that could
    /// not write it down any more; and those whose object another one has replaced, with all that was on it.
    fn disarm_nodes(&mut self, host: &HostPlan, record: &HostRecord) -> Result<(), RunError> {
        let free: Vec<NodeRef> =
            nodes_of(record).filter(|seen| seen.marked() == Fact::Absent).map(|seen| seen.node.clone()).collect();
        let names = |node: &NodeRef| (node.cluster.clone(), node.name.clone());
        let replaced: Vec<_> = nodes_of(record).map(|seen| (names(&seen.node), seen.node.uid.clone())).collect();
        for comp in self.state_of(host).armed.clone() {
            if let Compensation::Node(node) = &comp
                && (free.contains(node) || replaced.iter().any(|(name, uid)| *name == names(node) && *uid != node.uid))
                && self.node_memory(host, node).is_none()
            {
                self.rec.host(&host.host.name, Event::Undone { comp })?;
            }
        }
        Ok(())
    }

    /// What the shell needed is as it was. A daemon that does not start again is a warning; an SSH
    /// service that stays open is not given up.
    async fn put_back_at_the_end(&mut self, host: &HostPlan) -> Result<Vec<String>, RunError> {
        let mut notes = self.put_back(host).await?;
        if self.state_of(host).armed.contains(&Compensation::Monitor) {
            let found = notes.remove(0);
            self.rec.host(&host.host.name, Event::LeftAlone { comp: Compensation::Monitor, found })?;
        }
        Ok(notes)
    }

    /// Clears the marker and releases the host.
    pub(super) async fn give_back(
        &mut self,
        host: &HostPlan,
        record: &HostRecord,
        outcome: Outcome,
    ) -> Result<(), RunError> {
        let marked = match view_of(record) {
            Ok(view) => self.mark(host, view, MarkerPhase::Released).await?.map_err(|why| why.to_string()),
            Err(why) => Err(why),
        };
        let cleared = match marked {
            Ok(()) => self.unmark(host).await?.map_err(|why| why.to_string()),
            Err(why) => Err(why),
        };
        match cleared {
            Ok(()) => self.rec.host(&host.host.name, Event::HostReleased { outcome }),
            Err(why) => self.hold(host, Held::MarkerNotWritten { why }).await,
        }
    }

    /// Puts back what is armed, where the live value is ours. Maintenance is left by its own step;
    /// here it is only looked at.
    pub(super) fn disarm(&mut self, host: &HostPlan, record: &HostRecord) -> Result<(), RunError> {
        let state = self.state_of(host);
        if !state.armed.contains(&Compensation::Maintenance) {
            return Ok(());
        }
        let comp = Compensation::Maintenance;
        let closed = view_of(record).ok().and_then(|view| view.in_maintenance.known().copied());
        let event = match (closed, state.memory.maintenance) {
            (Some(false), OurMaintenance::Closed) => {
                Event::LeftAlone { comp, found: "out of maintenance mode already".to_owned() }
            }
            // Never entered, or left by us: either way as it was before.
            (Some(false), _) => Event::Undone { comp },
            (Some(true), OurMaintenance::NotAsked) => {
                Event::LeftAlone { comp, found: "in maintenance mode by somebody else".to_owned() }
            }
            (Some(true), _) | (None, _) => return Ok(()),
        };
        self.rec.host(&host.host.name, event)
    }

    /// The visit ends here. What failed before anything was changed gives back all that it did; a host that is
    /// as it was gets its marker off; any other says how it was left.
    pub(super) async fn leave(&mut self, host: &HostPlan) -> Result<(), RunError> {
        let state = self.state_of(host);
        let failed = matches!(state.phase, HostPhase::Failed { .. });
        let changed = state.changed;
        let mut notes = match () {
            () if failed && !changed => Box::pin(self.undo(host)).await?,
            // One VM that does not start keeps no other off.
            () if self.is_opened(host) => self.restart(host).await?,
            () if self.is_uncordoning(host) => self.free_proven(host).await?,
            () if self.only_closes(host).await => self.give_way(host).await?,
            () => Vec::new(),
        };
        match self.finish_closing(host).await? {
            ClosedAgain::Yes => {}
            ClosedAgain::No(why) => notes.push(why),
            // How it is left is not said yet: whoever goes on finishes this.
            ClosedAgain::Stopped => return Ok(()),
        }
        self.stand(host, notes).await
    }

    /// Whether the visit failed once the host was open again.
    fn is_opened(&self, host: &HostPlan) -> bool {
        matches!(self.state_of(host).phase, HostPhase::Failed { at: Stage::StartingVms, .. })
    }

    /// Whether the visit failed as it gave nodes back, and none of them was found wanting.
    fn is_uncordoning(&self, host: &HostPlan) -> bool {
        let at_end = matches!(self.state_of(host).phase, HostPhase::Failed { at: Stage::UncordoningNodes, .. });
        at_end && !self.is_closed_again(host)
    }

    /// Looks at a host whose visit ends, brings its marker up to date, and writes down how it stands.
    pub(super) async fn stand(&mut self, host: &HostPlan, mut notes: Vec<String>) -> Result<(), RunError> {
        let failed = matches!(self.state_of(host).phase, HostPhase::Failed { .. });
        if matches!(self.state_of(host).phase, HostPhase::Working { stage: Stage::AwaitingHandoff }) {
            notes.extend(self.said.take());
        }
        notes.extend(self.put_back(host).await?);
        let record = self.read(host).await;
        // What still enters at our request is not given up yet.
        let enters =
            self.state_of(host).memory.maintenance != OurMaintenance::NotAsked && entering(&record) != Ok(None);
        if (self.is_opened(host) || !self.state_of(host).changed) && !enters {
            self.disarm(host, &record)?;
        }
        let untouched = !self.state_of(host).changed && self.state_of(host).armed.is_empty();
        let said = |marker: &Marker| marker.phase == MarkerPhase::Failed;
        if failed && self.state_of(host).marker.as_ref().is_some_and(|marker| !said(marker)) {
            let wrote = if untouched {
                self.unmark(host).await?
            } else {
                match view_of(&record) {
                    Ok(view) => self.mark(host, view, MarkerPhase::Failed).await?,
                    Err(why) => Err(super::mark::NotMarked::Unwritable(why)),
                }
            };
            if let Err(why) = wrote {
                notes.push(format!("the marker could not be brought up to date: {why}"));
            }
        }
        let opened = Box::pin(self.opened(host, &mut notes)).await;
        let left_as = LeftAs { opened, ..self.left_as(host, &record, notes) };
        self.rec.host(&host.host.name, Event::HostLeft { left_as })
    }

    /// Whether a signal came while the host closes and none of its VMs is off yet: its entering is
    /// cancelled (FORMATS rule 16), or it would wait for them with nobody at work.
    async fn only_closes(&self, host: &HostPlan) -> bool {
        let state = self.state_of(host);
        let armed = self.armed_vms(host);
        let asked = state.memory.maintenance == OurMaintenance::Asked && !state.changed;
        if armed.is_empty() || !asked || !matches!(state.phase, HostPhase::Working { .. }) {
            return false;
        }
        let record = self.read(host).await;
        let Ok(Fact::Known(vms)) = view_of(&record).map(|view| &view.vms) else { return false };
        let on = |vm: &MoRef| vms.iter().any(|found| found.moref == *vm && found.power == Fact::Known(PowerState::On));
        armed.iter().all(on)
    }

    /// Nodes that are armed and not cordoned, as they are seen now; what cannot be seen is noted.
    async fn opened(&mut self, host: &HostPlan, notes: &mut Vec<String>) -> Vec<NodeRef> {
        let mut opened = Vec::new();
        for known in self.memory_of(host).nodes {
            // One look: whatever keeps it from being read was waited for before.
            match self.read_node(host, None, &known.node, Deadline::of(Duration::ZERO)).await {
                Ok(Seen::Node(seen)) if seen.unschedulable => {}
                Ok(Seen::Node(_)) => opened.push(known.node),
                Ok(Seen::Gone(found)) => notes.push(found),
                Err(why) => notes.push(format!("whether the node {} is cordoned was not seen: {why}", known.node)),
            }
        }
        opened
    }

    /// How the host stands.
    pub(super) fn left_as(&self, host: &HostPlan, record: &HostRecord, mut notes: Vec<String>) -> LeftAs {
        let state = self.state_of(host);
        let mut uncompensated = match &state.marker {
            Some(marker) if state.visit.is_none() => marker::armed(marker),
            Some(_) | None => state.armed.clone(),
        };
        // Of a changed host, which stands as it is, what is seen to be as it was before is not told as left: unless
        // it closes again, and its VMs with it.
        let closes = self.is_closed_again(host) && state.memory.maintenance == OurMaintenance::Asked;
        if state.changed && !closes {
            uncompensated.retain(|comp| !is_back(comp, record));
        }
        let names: Vec<&str> = uncompensated
            .iter()
            .filter_map(|comp| match comp {
                Compensation::Vm(vm) => Some(host.vm_name(vm)),
                _ => None,
            })
            .collect();
        if !names.is_empty() {
            notes.push(format!("VMs that this run stopped, or was about to: {}", names.join(", ")));
        }
        let (maintenance, pending) = match view_of(record) {
            Ok(view) => {
                for task in view.tasks.known().into_iter().flatten() {
                    notes.push(format!("task {} ({}) runs", task.moref.id, task.what));
                }
                let pending = plan::waits_for_reboot(host, view, &state.memory).unwrap_or_else(|why| {
                    notes.push(format!("whether changes wait for a reboot is not known: {why}"));
                    Vec::new()
                });
                (view.in_maintenance.known().copied(), pending)
            }
            Err(why) => {
                notes.push(format!("it cannot be read: {why}"));
                (None, Vec::new())
            }
        };
        LeftAs {
            maintenance,
            pending,
            marker: state.marker.is_some(),
            uncompensated,
            opened: Vec::new(),
            notes,
            at: self.clock.now(),
        }
    }

    /// A host that is held before anything was done: a marker that was written for it goes.
    pub(super) async fn unmark_untouched(&mut self, host: &HostPlan) -> Result<(), RunError> {
        // Past its beginning the marker says more than this journal does: the host is not untouched.
        let begun = |marker: &Marker| marker.phase != MarkerPhase::Prechecking;
        if self.state_of(host).marker.as_ref().is_some_and(begun) {
            return Ok(());
        }
        if let Err(why) = self.unmark(host).await? {
            tracing::warn!(host = %host.host.name, "the marker stays on the host: {why}");
        }
        Ok(())
    }
}

/// The node of a compensation, in words.
fn node_in(comp: &Compensation) -> Option<String> {
    match comp {
        Compensation::Node(node) => Some(node.to_string()),
        _ => None,
    }
}

/// Whether the live host shows that this is as it was before the visit.
fn is_back(comp: &Compensation, record: &HostRecord) -> bool {
    let Ok(view) = view_of(record) else { return false };
    match comp {
        Compensation::Maintenance => view.in_maintenance == Fact::Known(false) && matches!(entering(record), Ok(None)),
        Compensation::Vm(vm) => {
            let found = view.vms.known().into_iter().flatten().find(|found| found.moref == *vm);
            found.is_some_and(|found| found.power == Fact::Known(PowerState::On))
        }
        _ => false,
    }
}
