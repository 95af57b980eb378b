//! Steps on nodes of guest clusters: cordoned with our mark, drained, uncordoned once they passed their
//! gate.

use std::time::Duration;

use super::patience::Patience;
use super::run::{Deadline, Run};
use super::step::Attempt;
use super::{Compensation, Event, FailureClass, How, RunError, StepKind, chain};
use crate::k8s::{Client, Patched, Release};
use crate::model::{Fact, GuestRules, HostRecord, HostView, MoRef, NodeMark, NodePhase, NodeRef, NodeView, PowerState};
use crate::plan::{self, Boot, Check, HostPlan, NodeEnd, NodeMemory, Step};

/// Between two looks at a node that was written to: an API server shows a write at once.
const LOOK: Duration = Duration::from_secs(1);
/// Between two tries to reach an API server that does not answer.
const UNREACHED: Duration = Duration::from_secs(5);

impl Run<'_> {
    /// Does a step on a node. `view`: the host, read just now.
    pub(super) async fn at_node(
        &mut self,
        host: &HostPlan,
        step: &Step,
        view: &HostView,
        deadline: Deadline,
    ) -> Result<Attempt, RunError> {
        let Some(node) = step.works_on() else {
            unreachable!("called for steps on nodes only");
        };
        let Some(rules) = rules_of(host, node) else {
            let why = format!("the plan has no rules for the nodes of {}", node.cluster);
            return Ok(Attempt::Failed(FailureClass::Refused, why));
        };
        let node = &self.current(host, node);
        match step {
            Step::CordonNode { vm, .. } => self.cordon(host, rules, node, vm, deadline).await,
            Step::DrainNode { .. } => self.drain(host, node).await,
            Step::AwaitNode { vm, stopped, .. } => {
                // Only a person's word takes a node up again that did not pass before.
                let failed = |known: &NodeMemory| known.mark.phase == NodePhase::Failed;
                if self.node_memory(host, node).as_ref().is_some_and(failed) {
                    if self.retrying.as_ref() != Some(&host.host.name) {
                        let why =
                            format!("the node {node} did not pass its gate before, and nobody has asked for it again");
                        return Ok(Attempt::Failed(FailureClass::Refused, why));
                    }
                    if let Err((class, why)) = self.remark(host, node, NodePhase::Drained).await? {
                        return Ok(Attempt::Failed(class, why));
                    }
                    self.again.insert(node.clone());
                }
                if *stopped && let Err(why) = runs_here(host, vm, view) {
                    return Ok(Attempt::Failed(FailureClass::Refused, why));
                }
                let boot = if *stopped { Boot::Another } else { Boot::Same };
                let gate = self.await_node(host, rules, node, boot, deadline).await?;
                self.end_of_gate(host, node, gate).await
            }
            Step::ValidateNode { .. } => {
                let gate = self.validate(host, rules, node, deadline).await?;
                self.end_of_gate(host, node, gate).await
            }
            Step::UncordonNode { leave, .. } => self.uncordon(host, rules, node, *leave, deadline).await,
            _ => unreachable!("called for steps on nodes only"),
        }
    }

    /// The client of a node's cluster.
    pub(super) fn guest(&self, node: &NodeRef) -> Result<Client, String> {
        self.fleet.guest(&node.cluster).cloned().map_err(|error| chain(&error))
    }

    /// Reads a node until it is read, or the time is over. The inner error says why it never was.
    pub(super) async fn read_node(
        &mut self,
        host: &HostPlan,
        kind: Option<StepKind>,
        node: &NodeRef,
        deadline: Deadline,
    ) -> Result<Seen, String> {
        let client = self.guest(node)?;
        let mut patience = Patience::default();
        loop {
            match Box::pin(client.node(&node.name)).await {
                Ok(Some(seen)) if seen.node.uid == node.uid => return Ok(Seen::Node(Box::new(seen))),
                Ok(Some(other)) => {
                    let stands = if other.unschedulable { "is cordoned" } else { "takes pods" };
                    let found = format!(
                        "the node {node} was deleted, and another one has its name ({}), which {stands}",
                        other.node.uid
                    );
                    return Ok(Seen::Gone(found));
                }
                Ok(None) => return Ok(Seen::Gone(format!("the node {node} is not there any more"))),
                Err(error) if deadline.passed() || !(error.is_retriable() || patience.may_be_heard(&error)) => {
                    return Err(chain(&error));
                }
                Err(error) => {
                    let what = format!("the API server of {}: {}", node.cluster, chain(&error));
                    self.tell(host, kind, &[what], deadline, None);
                    tokio::time::sleep(UNREACHED.min(deadline.left())).await;
                }
            }
        }
    }

    async fn cordon(
        &mut self,
        host: &HostPlan,
        rules: &GuestRules,
        node: &NodeRef,
        vm: &MoRef,
        deadline: Deadline,
    ) -> Result<Attempt, RunError> {
        let kind = Some(StepKind::CordonNode);
        let refused = |why: String| Ok(Attempt::Failed(FailureClass::Refused, why));
        let client = match self.guest(node) {
            Ok(client) => client,
            Err(why) => return Ok(Attempt::Failed(FailureClass::Unknown, why)),
        };
        let mut how = How::Already;
        let mut patience = Patience::default();
        loop {
            let seen = match self.read_node(host, kind, node, deadline).await {
                Ok(Seen::Node(seen)) => seen,
                Ok(Seen::Gone(found)) => return refused(found),
                Err(why) => return Ok(Attempt::Failed(FailureClass::Unknown, why)),
            };
            match plan::may_cordon(self.run_id(), &seen) {
                Check::AlreadyDone { evidence } => {
                    if let Fact::Known(mark) = seen.marked() {
                        self.marked(host, node, vm, Some(mark))?;
                    }
                    return Ok(Attempt::Done(how, evidence));
                }
                Check::Refused { expected, found } => return refused(format!("expected {expected}, found {found}")),
                Check::Ready | Check::InFlight { .. } => {}
            }
            if deadline.passed() {
                let why = format!("within {} s the node {node} did not show the cordon", deadline.seconds());
                return Ok(Attempt::Failed(FailureClass::Timeout, why));
            }
            let mark = match self.new_mark(host, rules, vm, &seen) {
                Ok(mark) => mark,
                Err(why) => return refused(why),
            };
            how = How::Did;
            match Box::pin(client.cordon(node, &seen.version, &mark)).await {
                // The next look proves it.
                Ok(Patched::Done(_)) => continue,
                Ok(Patched::Conflict | Patched::Gone | Patched::NotOurs { .. }) => {}
                Err(error) if !patience.lasts(&error) => {
                    return Ok(Attempt::Failed(FailureClass::Fault, chain(&error)));
                }
                Err(error) => tracing::warn!(host = %host.host.name, node = %node, "{}", chain(&error)),
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The mark of a node that is cordoned now: what its gate compares with must be readable before.
    fn new_mark(&self, host: &HostPlan, rules: &GuestRules, vm: &MoRef, seen: &NodeView) -> Result<NodeMark, String> {
        let need = |what: &str, why: &str| format!("{what} of {} cannot be compared later: {why}", seen.node);
        let boot = match &seen.boot_id {
            Fact::Known(boot) => boot.clone(),
            Fact::Absent => return Err(need("the boot", "the node does not show its boot ID")),
            Fact::Unknown { why } => return Err(need("the boot", why)),
        };
        let resource = &rules.expect.resource.value;
        let gpus = match seen.count(resource) {
            Fact::Known(count) => count,
            Fact::Absent => return Err(need(resource, "the node does not show what it offers")),
            Fact::Unknown { why } => return Err(need(resource, &why)),
        };
        let since = self.clock.now();
        let timeout = jiff::SignedDuration::from_secs(rules.drain_timeout_s.into());
        Ok(NodeMark {
            v: NodeMark::VERSION,
            run: self.run_id().clone(),
            plan: self.plan.id.short().to_owned(),
            host: host.uuid.clone(),
            vm: vm.id.clone(),
            phase: NodePhase::Draining,
            was_unschedulable: seen.unschedulable,
            since,
            deadline: since.checked_add(timeout).unwrap_or(since),
            boot,
            gpus,
        })
    }

    /// Writes down what stands on a node, unless it is known.
    pub(super) fn marked(
        &mut self,
        host: &HostPlan,
        node: &NodeRef,
        vm: &MoRef,
        mark: Option<NodeMark>,
    ) -> Result<(), RunError> {
        let known = self.node_memory(host, node).map(|known| known.mark);
        if known == mark {
            return Ok(());
        }
        let (node, vm, mark) = (node.clone(), vm.clone(), mark.map(Box::new));
        self.rec.host(&host.host.name, Event::NodeMarked { node, vm, mark })
    }

    /// What the visit remembers of a node.
    pub(super) fn node_memory(&self, host: &HostPlan, node: &NodeRef) -> Option<NodeMemory> {
        self.state_of(host).memory.nodes.iter().find(|known| known.node == *node).cloned()
    }

    /// Writes another phase into our mark, and cordons again with it.
    pub(super) async fn remark(
        &mut self,
        host: &HostPlan,
        node: &NodeRef,
        phase: NodePhase,
    ) -> Result<Result<(), (FailureClass, String)>, RunError> {
        let Some(known) = self.node_memory(host, node) else {
            return Ok(Err((FailureClass::Refused, format!("expected our mark on the node {node}, found none"))));
        };
        let client = match self.guest(node) {
            Ok(client) => client,
            Err(why) => return Ok(Err((FailureClass::Unknown, why))),
        };
        let deadline = Deadline::of(Duration::from_secs(self.pace.read_back_s.into()));
        let wanted = NodeMark { phase, ..known.mark };
        let mut patience = Patience::default();
        loop {
            let seen = match self.read_node(host, None, node, deadline).await {
                Ok(Seen::Node(seen)) => seen,
                Ok(Seen::Gone(found)) => return Ok(Err((FailureClass::Refused, found))),
                Err(why) => return Ok(Err((FailureClass::Unknown, why))),
            };
            match seen.mark_of(&wanted.run) {
                Ok(mark) if mark == wanted && seen.unschedulable => {
                    self.marked(host, node, &known.vm, Some(mark))?;
                    return Ok(Ok(()));
                }
                Ok(_) => {}
                Err(found) => return Ok(Err((FailureClass::Refused, not_ours(&seen, &found)))),
            }
            if deadline.passed() {
                let why = format!("our mark on the node {node} did not read back as written");
                return Ok(Err((FailureClass::NotVerified, why)));
            }
            match Box::pin(client.remark(node, &seen.version, &wanted)).await {
                Ok(Patched::Done(_)) => continue,
                Ok(Patched::Conflict | Patched::Gone | Patched::NotOurs { .. }) => {}
                Err(error) if !patience.lasts(&error) => {
                    return Ok(Err((FailureClass::Fault, chain(&error))));
                }
                Err(error) => tracing::warn!(host = %host.host.name, node = %node, "{}", chain(&error)),
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn uncordon(
        &mut self,
        host: &HostPlan,
        rules: &GuestRules,
        node: &NodeRef,
        leave: NodeEnd,
        deadline: Deadline,
    ) -> Result<Attempt, RunError> {
        if leave == NodeEnd::Open && self.boot_of_gate(node).is_none() {
            let why = format!("expected the node {node} to have passed its gate, found that it has not");
            return Ok(Attempt::Failed(FailureClass::Refused, why));
        }
        Ok(match self.take_mark_off(host, rules, node, leave, deadline).await? {
            Ok(evidence) => Attempt::Done(How::Did, evidence),
            Err((class, why)) => match self.outdated_by_renewal(host, node).await? {
                Some(outdated) => {
                    self.mark_failed(host, &self.current(host, node)).await?;
                    Attempt::Failed(outdated.0, outdated.1)
                }
                None => Attempt::Failed(class, why),
            },
        })
    }

    /// Takes our mark off a node, and leaves it as it is to be left.
    pub(super) async fn take_mark_off(
        &mut self,
        host: &HostPlan,
        rules: &GuestRules,
        node: &NodeRef,
        leave: NodeEnd,
        deadline: Deadline,
    ) -> Result<Result<Vec<String>, (FailureClass, String)>, RunError> {
        let Some(known) = self.node_memory(host, node) else {
            return Ok(Ok(vec!["our mark is off already".to_owned()]));
        };
        let end = match leave {
            NodeEnd::LeftOff => Release::LeftOff { plan: self.plan.id.short().to_owned() },
            NodeEnd::Open if known.mark.was_unschedulable => Release::KeepCordoned,
            NodeEnd::Open => Release::Uncordon,
        };
        let boot = self.boot_of_gate(node).filter(|_| leave == NodeEnd::Open);
        let gate = boot.as_deref().map(|boot| (rules, boot));
        let comp = Compensation::Node(node.clone());
        let (event, words) = match self.strip(host, node, &known, &end, gate, deadline).await? {
            Err((class, why)) => {
                if class == FailureClass::NotVerified {
                    self.mark_failed(host, node).await?;
                }
                return Ok(Err((class, why)));
            }
            Ok(Stripped::BySomebody(found)) => (Event::LeftAlone { comp, found: found.clone() }, found),
            Ok(Stripped::ByUs) => match end {
                Release::Uncordon => (Event::Undone { comp }, "uncordoned".to_owned()),
                Release::KeepCordoned => (Event::Undone { comp }, "cordoned, as it was before this visit".to_owned()),
                Release::LeftOff { .. } => {
                    let found = "cordoned: its VM is left off, as planned".to_owned();
                    (Event::LeftAlone { comp, found: found.clone() }, found)
                }
            },
        };
        self.rec.host(&host.host.name, event)?;
        self.proven.remove(node);
        Ok(Ok(vec![words]))
    }

    /// The boot on which a node has passed its gate in this process.
    pub(super) fn boot_of_gate(&self, node: &NodeRef) -> Option<String> {
        self.proven.get(node).filter(|proven| proven.whole).map(|proven| proven.boot.clone())
    }

    /// Whether a node is still as it was when it passed its gate on this boot: what was read then may be old.
    async fn still_passes(
        &mut self,
        host: &HostPlan,
        known: &NodeMemory,
        seen: &NodeView,
        (rules, boot): (&GuestRules, &str),
        deadline: Deadline,
    ) -> Result<(), String> {
        let closed = super::node_gate::closed(&plan::node_gate(rules, known, seen, Boot::Either));
        if !closed.is_empty() {
            return Err(closed.join("; "));
        }
        if seen.boot_id.known().map(String::as_str) != Some(boot) {
            return Err(format!("it passed on boot {boot}, and its VM was started anew since"));
        }
        loop {
            let record = self.read(host).await;
            match super::visit::view_of(&record) {
                Ok(view) => return runs_here(host, &known.vm, view),
                // A host that cannot be read for a moment says nothing against its nodes.
                Err(why) if deadline.passed() => return Err(why),
                Err(why) => {
                    self.tell(host, Some(StepKind::UncordonNode), &[why], deadline, None);
                    tokio::time::sleep(UNREACHED.min(deadline.left())).await;
                }
            }
        }
    }

    /// Takes our mark off a node that is left to somebody, cordoned. The answer says how it is.
    pub(super) async fn give_node_up(
        &mut self,
        host: &HostPlan,
        node: &NodeRef,
        deadline: Deadline,
    ) -> Result<Result<String, String>, RunError> {
        let Some(known) = self.node_memory(host, node) else { return Ok(Ok("our mark is off already".to_owned())) };
        // Nothing of ours is left of it.
        if let Ok(Seen::Gone(found)) = self.read_node(host, None, node, deadline).await {
            return Ok(Ok(found));
        }
        Ok(match self.strip(host, node, &known, &Release::KeepCordoned, None, deadline).await? {
            Ok(Stripped::ByUs) => Ok("given up, and cordoned: somebody sees to it".to_owned()),
            Ok(Stripped::BySomebody(found)) => Ok(found),
            Err((_, why)) => Err(why),
        })
    }

    /// Takes our mark off, proven by a fresh look. `gate`: it has to be as it was when it passed its gate.
    async fn strip(
        &mut self,
        host: &HostPlan,
        node: &NodeRef,
        known: &NodeMemory,
        end: &Release,
        gate: Option<(&GuestRules, &str)>,
        deadline: Deadline,
    ) -> Result<Result<Stripped, (FailureClass, String)>, RunError> {
        let client = match self.guest(node) {
            Ok(client) => client,
            Err(why) => return Ok(Err((FailureClass::Unknown, why))),
        };
        let mut sent = false;
        let mut patience = Patience::default();
        loop {
            let seen = match self.read_node(host, Some(StepKind::UncordonNode), node, deadline).await {
                Ok(Seen::Node(seen)) => seen,
                Ok(Seen::Gone(found)) => return Ok(Err((FailureClass::Refused, found))),
                Err(why) => return Ok(Err((FailureClass::Unknown, why))),
            };
            match seen.marked() {
                Fact::Absent => {
                    self.marked(host, node, &known.vm, None)?;
                    // Of a write that may have got through: it did.
                    if sent && seen.unschedulable != matches!(end, Release::Uncordon) {
                        return Ok(Ok(Stripped::ByUs));
                    }
                    // A policy of the cluster may take the mark off and keep the cordon.
                    if sent && seen.unschedulable {
                        let why = format!("the uncordon of {node} was sent, our mark is off, and it is cordoned still");
                        return Ok(Err((FailureClass::Fault, why)));
                    }
                    // What the node is now is not our doing.
                    let cordoned = if seen.unschedulable { "cordoned" } else { "not cordoned" };
                    let found = format!("our mark was taken off by somebody; it is {cordoned}");
                    return Ok(Ok(Stripped::BySomebody(found)));
                }
                _ => {
                    if let Err(found) = seen.mark_of(&known.mark.run) {
                        return Ok(Err((FailureClass::Refused, not_ours(&seen, &found))));
                    }
                }
            }
            if let Some(gate) = gate
                && let Err(why) = self.still_passes(host, known, &seen, gate, deadline).await
            {
                let why = format!("it passed its gate, and does not any more: {why}");
                return Ok(Err((FailureClass::NotVerified, why)));
            }
            if deadline.passed() {
                return Ok(Err((FailureClass::Timeout, format!("our mark does not go off the node {node}"))));
            }
            match Box::pin(client.release(node, &seen.version, &known.mark.run, end.clone())).await {
                Ok(Patched::Done(_)) => {
                    sent = true;
                    continue;
                }
                Ok(Patched::Conflict | Patched::Gone | Patched::NotOurs { .. }) => {}
                Err(error) if !patience.lasts(&error) => return Ok(Err((FailureClass::Fault, chain(&error)))),
                Err(error) => {
                    sent |= error.may_have_acted();
                    tracing::warn!(host = %host.host.name, node = %node, "{}", chain(&error));
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Nodes of the host's VMs that carry a mark of this run, as they show it: they remember what a
    /// journal that is gone, or a process that died between a write and its line, does not.
    pub(super) fn marked_nodes(&self, record: &HostRecord) -> Vec<NodeMemory> {
        let vms = record.view.as_ref().ok().and_then(|view| view.vms.known()).into_iter().flatten();
        let ours = vms.filter_map(|vm| {
            let seen = vm.node.known()?;
            let mark = seen.marked().known().filter(|mark| mark.run == *self.run_id()).cloned()?;
            Some(NodeMemory { node: seen.node.clone(), vm: vm.moref.clone(), mark })
        });
        ours.collect()
    }
}

/// Who took our mark off.
enum Stripped {
    ByUs,
    BySomebody(String),
}

/// What was found of a node.
pub(super) enum Seen {
    /// It.
    Node(Box<NodeView>),
    /// It is gone, or re-created: in words.
    Gone(String),
}

/// The rules of a node's cluster.
pub(super) fn rules_of<'a>(host: &'a HostPlan, node: &NodeRef) -> Option<&'a GuestRules> {
    host.guests.iter().find(|rules| rules.cluster.value == node.cluster)
}

/// That a node does not carry our mark, but what was found.
pub(super) fn not_ours(seen: &NodeView, found: &str) -> String {
    let stands = if seen.unschedulable { "is cordoned" } else { "takes pods" };
    format!("expected our mark on the node {}, found {found}; it {stands}", seen.node)
}

/// What takes a node back, with its name.
pub(super) fn lost(node: &NodeRef, found: &str) -> String {
    format!("{node}: {found}")
}

/// Whether a VM runs on this host.
pub(super) fn runs_here(host: &HostPlan, vm: &MoRef, view: &HostView) -> Result<(), String> {
    let name = host.vm_name(vm);
    let found = view.vms.known().into_iter().flatten().find(|found| found.moref == *vm);
    match found.map(|found| &found.power) {
        Some(Fact::Known(PowerState::On)) => Ok(()),
        Some(_) => Err(format!("expected {name} powered on, on this host; found that it is not known to be")),
        None => Err(format!("expected {name} on this host, found that it is not")),
    }
}
