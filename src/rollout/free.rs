//! Nodes on the ways out: given back where nothing was changed, left to somebody, or taken down again where
//! they did not pass their gate.

use std::time::Duration;

use super::drain::NotEmpty;
use super::effect::entering;
use super::node_gate::Gate;
use super::nodes::{Seen, rules_of, runs_here};
use super::run::{Deadline, Run};
use super::visit::view_of;
use super::{Compensation, Event, FailureClass, HostPhase, RunError, Stage, StepKind, chain};
use crate::model::{Fact, HostRecord, MarkerPhase, MoRef, NodePhase, NodeRef, OnValidationFailure, PowerState};
use crate::plan::{Boot, HostPlan, NodeEnd, NodeMemory, Step};
use crate::vim25::wire::names::managed;

/// How long pods may take to end before a host is closed again: their grace is 30 s unless they ask for more.
const ENDING: Duration = Duration::from_secs(180);
/// Between two looks at a host that closes again.
const LOOK: Duration = Duration::from_secs(5);

impl Run<'_> {
    /// Gives the nodes of a host back that is as it was. One whose VM went on running, on the same boot, is
    /// uncordoned as it is: neither host nor VM changed. Any other has to pass its gate first. The answer is
    /// what stays cordoned.
    pub(super) async fn free_nodes(&mut self, host: &HostPlan) -> Result<Vec<String>, RunError> {
        let mut kept = self.recognise_nodes(host).await?;
        for NodeMemory { node, vm, .. } in self.memory_of(host).nodes {
            if let Err(why) = self.free_node(host, &node, &vm).await? {
                kept.push(format!("the node {node} stays cordoned: {why}"));
            }
        }
        Ok(kept)
    }

    /// Looks at the nodes that are armed and of which no mark is remembered: a cordon may have got through
    /// whose answer did not. One that carries none was never cordoned.
    async fn recognise_nodes(&mut self, host: &HostPlan) -> Result<Vec<String>, RunError> {
        let mut unread = Vec::new();
        for comp in self.state_of(host).armed.clone() {
            let Compensation::Node(node) = &comp else { continue };
            if self.node_memory(host, node).is_some() {
                continue;
            }
            let deadline = Deadline::of(Duration::from_secs(self.pace.read_back_s.into()));
            let seen = match self.read_node(host, Some(StepKind::UncordonNode), node, deadline).await {
                Ok(Seen::Node(seen)) => seen.marked(),
                // Nobody can put anything back on it.
                Ok(Seen::Gone(_)) => Fact::Absent,
                Err(why) => Fact::Unknown { why },
            };
            match seen {
                Fact::Known(mark) if mark.run == *self.run_id() => {
                    let vm = MoRef::new(managed::VIRTUAL_MACHINE, &mark.vm);
                    self.marked(host, node, &vm, Some(mark))?;
                }
                Fact::Known(_) | Fact::Absent => self.rec.host(&host.host.name, Event::Undone { comp })?,
                Fact::Unknown { why } => {
                    unread.push(format!("whether the node {node} is cordoned is not known: {why}"))
                }
            }
        }
        Ok(unread)
    }

    /// Gives back the nodes that passed their gate in this process, whatever keeps another one: a cluster that
    /// refuses ours says nothing of the next. The answer is what stays cordoned.
    pub(super) async fn free_proven(&mut self, host: &HostPlan) -> Result<Vec<String>, RunError> {
        let mut kept = Vec::new();
        for NodeMemory { node, .. } in self.memory_of(host).nodes {
            let Some(rules) = rules_of(host, &node).filter(|_| self.boot_of_gate(&node).is_some()) else { continue };
            let leave = NodeEnd::Open;
            let deadline = Deadline::of(Step::UncordonNode { node: node.clone(), leave }.deadline(&self.pace));
            if let Err((_, why)) = self.take_mark_off(host, rules, &node, leave, deadline).await? {
                kept.push(format!("the node {node} passed its gate, and stays cordoned: {why}"));
            }
        }
        Ok(kept)
    }

    async fn free_node(&mut self, host: &HostPlan, node: &NodeRef, vm: &MoRef) -> Result<Result<(), String>, RunError> {
        let Some(rules) = rules_of(host, node) else {
            return Ok(Err("the plan has no rules for its guest cluster".to_owned()));
        };
        let Some(known) = self.node_memory(host, node) else { return Ok(Ok(())) };
        if known.mark.phase == NodePhase::Failed {
            return Ok(Err("it did not pass its gate".to_owned()));
        }
        let pace = self.pace;
        let limit = |step: Step| Deadline::of(step.deadline(&pace));
        let opening = || limit(Step::UncordonNode { node: node.clone(), leave: NodeEnd::Open });
        let seen = match self.read_node(host, Some(StepKind::UncordonNode), node, opening()).await {
            Ok(Seen::Node(seen)) => seen,
            Ok(Seen::Gone(found)) => {
                // Its cordon went with it, and no mode was changed.
                let comp = Compensation::Node(node.clone());
                self.rec.host(&host.host.name, Event::LeftAlone { comp, found })?;
                return Ok(Ok(()));
            }
            Err(why) => return Ok(Err(why)),
        };
        let record = self.read(host).await;
        if let Err(why) = view_of(&record).and_then(|view| runs_here(host, vm, view)) {
            return Ok(Err(why));
        }
        let same_boot = seen.boot_id == Fact::Known(known.mark.boot.clone());
        let asked_to_stop = self.state_of(host).asked_to_stop.contains(vm);
        if !same_boot || asked_to_stop {
            // A node shows its old boot, Ready, until the kubelet of the new one is heard (kubernetes §5, 15).
            let other = !same_boot || self.restarted.contains(vm);
            // It did not heed us, or somebody has started it: which boot it is on proves nothing.
            let boot = if other { Boot::Another } else { Boot::Either };
            let awaiting = limit(Step::AwaitNode { node: node.clone(), vm: vm.clone(), stopped: true });
            let validating = limit(Step::ValidateNode { node: node.clone(), timeout_s: rules.validation_s() });
            let awaited = self.await_node(host, rules, node, boot, awaiting).await?;
            let node = &self.current(host, node);
            let gate = match awaited {
                Gate::Passed(_) => self.validate(host, rules, node, validating).await?,
                other => other,
            };
            match gate {
                Gate::Passed(_) => {}
                Gate::Stopped => return Ok(Err("a signal came before it passed its gate".to_owned())),
                // It could not be asked: nothing was found of the node, and an abort asks once more.
                Gate::Closed(FailureClass::Unknown | FailureClass::Fault, why) => return Ok(Err(why)),
                Gate::Closed(_, why) => {
                    self.mark_failed(host, node).await?;
                    return Ok(Err(why));
                }
            }
        }
        // Its time begins now: the gate took its own.
        let node = &self.current(host, node);
        let off = self.take_mark_off(host, rules, node, NodeEnd::Open, opening()).await?;
        Ok(off.map(drop).map_err(|(_, why)| why))
    }

    /// Leaves the nodes of a host to somebody: cordoned, without our mark.
    pub(super) async fn leave_nodes(&mut self, host: &HostPlan) -> Result<Vec<String>, RunError> {
        let mut kept = Vec::new();
        for NodeMemory { node, .. } in self.memory_of(host).nodes {
            let deadline = Deadline::of(Duration::from_secs(self.pace.read_back_s.into()));
            match self.give_node_up(host, &node, deadline).await? {
                Ok(found) => {
                    let comp = Compensation::Node(node);
                    self.rec.host(&host.host.name, Event::LeftAlone { comp, found })?;
                }
                Err(why) => kept.push(format!("our mark stays on the node {node}: {why}")),
            }
        }
        Ok(kept)
    }

    /// Whether a host whose nodes did not pass their gate is to be closed again. A server that could not be
    /// asked, or that refuses the uncordon, says nothing against them: they stay cordoned, and run.
    pub(super) fn is_closed_again(&self, host: &HostPlan) -> bool {
        let state = self.state_of(host);
        let at_nodes = match &state.phase {
            HostPhase::Failed { at, .. } => {
                matches!(at, Stage::AwaitingNodes | Stage::ValidatingNodes | Stage::UncordoningNodes)
            }
            // Found by its marker: a visit that failed with nodes cordoned and the host open failed at them.
            HostPhase::Left { .. } => state.marker.as_ref().is_some_and(|marker| marker.phase == MarkerPhase::Failed),
            _ => false,
        };
        let failed = state.memory.nodes.iter().any(|known| known.mark.phase == NodePhase::Failed);
        at_nodes && failed && state.changed && host.on_validation_failure == OnValidationFailure::CloseHost
    }

    /// Closes a host again whose nodes did not pass their gate, if the pool wants that. Its mark says first
    /// that the visit failed: whoever goes on finishes that, and validates nothing.
    pub(super) async fn finish_closing(&mut self, host: &HostPlan) -> Result<ClosedAgain, RunError> {
        if !self.is_closed_again(host) {
            return Ok(ClosedAgain::Yes);
        }
        // The pod of a Job that ran into its deadline is still ending.
        let deadline = Deadline::of(ENDING);
        let mut may = self.may_close_again(host).await;
        while let Err(MayNot::Yet(why)) = &may
            && !deadline.passed()
        {
            self.tell(host, Some(StepKind::EnterMaintenance), std::slice::from_ref(why), deadline, None);
            if self.stopped_in(tokio::time::sleep(LOOK)).await? {
                return Ok(ClosedAgain::Stopped);
            }
            may = self.may_close_again(host).await;
        }
        if let Err(MayNot::Yet(why) | MayNot::Ever(why)) = may {
            let record = self.read(host).await;
            return Ok(ClosedAgain::No(self.stays_open(host, &record, &why).await));
        }
        if self.state_of(host).marker.as_ref().is_some_and(|marker| marker.phase != MarkerPhase::Failed) {
            let record = self.read(host).await;
            let marked = match view_of(&record) {
                Ok(view) => self.mark(host, view, MarkerPhase::Failed).await?.map_err(|why| why.to_string()),
                Err(why) => Err(why),
            };
            if let Err(why) = marked {
                let why = format!("it is not closed again, since its marker could not be written: {why}");
                return Ok(ClosedAgain::No(why));
            }
        }
        Ok(Box::pin(self.close_again(host)).await?.map_or_else(ClosedAgain::No, |()| ClosedAgain::Yes))
    }

    /// Whether every node of the host can be taken down once more: cordoned by us, and empty. One that was
    /// given back serves again, and pods that came while somebody had uncordoned one are not ours to kill.
    async fn may_close_again(&self, host: &HostPlan) -> Result<(), MayNot> {
        let record = self.read(host).await;
        let view = view_of(&record).map_err(MayNot::Yet)?;
        if view.in_maintenance == Fact::Known(true) {
            return Ok(());
        }
        for vm in self.vms_to_stop_again(host).iter().filter(|vm| runs_here(host, vm, view).is_ok()) {
            self.may_stop_again(host, vm).await?;
        }
        Ok(())
    }

    /// Whether the node that a VM is can be taken down once more.
    async fn may_stop_again(&self, host: &HostPlan, vm: &MoRef) -> Result<(), MayNot> {
        let Some(node) = host.fates.iter().find(|fate| fate.vm == *vm).and_then(|fate| fate.node.as_ref()) else {
            return Ok(());
        };
        let node = &self.current(host, node);
        if self.node_memory(host, node).is_none() {
            return Err(MayNot::Ever(format!("the node {node} was given back and serves again")));
        }
        let may_not = |found: NotEmpty| if found.lasts { MayNot::Ever(found.why) } else { MayNot::Yet(found.why) };
        self.still_empty(host, node).await.map_err(may_not)
    }

    /// Takes a host back into maintenance mode, and stops the VMs there that this visit had stopped before:
    /// nobody has proven that its GPUs can be used. Whatever it finds is where it goes on. The error says how
    /// the host stands instead.
    async fn close_again(&mut self, host: &HostPlan) -> Result<Result<(), String>, RunError> {
        let closing = Step::StartClosing { moves: Vec::new(), stops: 0 };
        let vms = self.vms_to_stop_again(host);
        let stops = u32::try_from(vms.len()).unwrap_or(u32::MAX);
        let limit = Step::StartClosing { moves: Vec::new(), stops }.closing_limit(&self.pace);
        let deadline = Deadline::of(limit);
        let mut asked: Vec<MoRef> = Vec::new();
        let mut armed = false;
        loop {
            let record = self.read(host).await;
            let waiting_for = match self.look_at_closing(host, &record, &vms) {
                Ok(Closing::Done) => return Ok(Ok(())),
                Ok(Closing::Enter) => {
                    if !armed {
                        armed = true;
                        let comp = Compensation::Maintenance;
                        self.rec.host(&host.host.name, Event::Armed { comp })?;
                    }
                    match view_of(&record) {
                        Ok(view) => match Box::pin(self.send(host, &closing, view)).await {
                            super::effect::Sent::Refused(why) | super::effect::Sent::Theirs(why) => {
                                return Ok(Err(format!("it cannot be closed again: {why}")));
                            }
                            _ => vec!["the host to enter maintenance mode again".to_owned()],
                        },
                        Err(why) => vec![why],
                    }
                }
                // Entering, and the stops before, took their time: somebody may use the node again.
                Ok(Closing::Stop(vm)) => match self.may_stop_again(host, &vm).await {
                    Err(MayNot::Ever(why)) => return Ok(Err(self.stays_open(host, &record, &why).await)),
                    Err(MayNot::Yet(why)) => vec![why],
                    Ok(()) if asked.contains(&vm) => {
                        let is_node = host.fates.iter().any(|fate| fate.vm == vm && fate.node.is_some());
                        // Its guest does not heed us; its node is cordoned, and nobody uses it.
                        if deadline.left() < limit / 2
                            && is_node
                            && let Err(why) = self.power_off(host, &vm, deadline).await
                        {
                            tracing::warn!(host = %host.host.name, "{why}");
                        }
                        vec![format!("{} to be powered off", host.vm_name(&vm))]
                    }
                    Ok(()) => {
                        // A retry starts it again.
                        let comp = Compensation::Vm(vm.clone());
                        self.rec.host(&host.host.name, Event::Armed { comp })?;
                        if let Err(error) = Box::pin(self.vcenter().shutdown_guest(&vm)).await {
                            tracing::warn!(host = %host.host.name, "{}", chain(&error));
                        }
                        asked.push(vm);
                        continue;
                    }
                },
                Ok(Closing::Wait(what)) => vec![what],
                Err(why) => vec![why],
            };
            if deadline.passed() {
                return Ok(Err(self.stays_open(host, &record, &waiting_for.join("; ")).await));
            }
            self.tell(host, Some(StepKind::EnterMaintenance), &waiting_for, deadline, None);
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The host is not closed again: an entering that we asked for ends, or it would close later, under
    /// whoever uses it then. The answer says how it stands.
    async fn stays_open(&self, host: &HostPlan, record: &HostRecord, why: &str) -> String {
        let kept = self.stop_entering(host, record).await.err().map(|kept| format!("; {kept}")).unwrap_or_default();
        format!("it is not closed again, and is open, unverified: {why}{kept}")
    }

    /// The VMs of this visit's nodes: none but those are stopped a second time.
    fn vms_to_stop_again(&self, host: &HostPlan) -> Vec<MoRef> {
        let state = self.state_of(host);
        let marked = state.marker.as_ref().map(super::marker::armed).unwrap_or_default();
        let mut vms: Vec<MoRef> = self.armed_vms(host);
        vms.extend(marked.into_iter().filter_map(|comp| match comp {
            Compensation::Vm(vm) => Some(vm),
            _ => None,
        }));
        vms.sort();
        vms.dedup();
        vms
    }

    /// What is due on a host that is closed again: first it takes no VM any more, then ours are stopped.
    fn look_at_closing(&self, host: &HostPlan, record: &HostRecord, vms: &[MoRef]) -> Result<Closing, String> {
        let view = view_of(record)?;
        if view.in_maintenance == Fact::Known(true) {
            return Ok(Closing::Done);
        }
        if entering(record)?.is_none() {
            return Ok(Closing::Enter);
        }
        let Fact::Known(found) = &view.vms else {
            return Err(format!("the VMs of {} to be readable", host.host.name));
        };
        let on = found.iter().filter(|vm| vm.power == Fact::Known(PowerState::On) && !vm.vcls);
        let (ours, others): (Vec<_>, Vec<_>) = on.partition(|vm| vms.contains(&vm.moref));
        match (ours.first(), others.first()) {
            (Some(vm), _) => Ok(Closing::Stop(vm.moref.clone())),
            (None, Some(other)) => {
                let name = other.name.known().cloned().unwrap_or_else(|| other.moref.to_string());
                Ok(Closing::Wait(format!("{name} to be moved away; it is not ours to stop")))
            }
            (None, None) => Ok(Closing::Wait("the host to be in maintenance mode".to_owned())),
        }
    }
}

/// Whether a host is closed that was to be closed again.
pub(super) enum ClosedAgain {
    /// It is, or it was not to be.
    Yes,
    /// It is open, and this is why.
    No(String),
    /// A signal came before anything was done to it: whoever goes on closes it.
    Stopped,
}

/// Why a host must not be closed again.
enum MayNot {
    /// It may in a while.
    Yet(String),
    /// Waiting does not help.
    Ever(String),
}

/// What is due on a host that is closed again.
enum Closing {
    Done,
    Enter,
    Stop(MoRef),
    Wait(String),
}
