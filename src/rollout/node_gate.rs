//! The node gate: a node is back on the right boot, offers what it should, and the Jobs of its guest
//! cluster succeed on it.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use super::nodes::{Seen, lost, not_ours};
use super::patience::{Patience, may_pass};
use super::run::{Deadline, Run};
use super::step::Attempt;
use super::{Event, FailureClass, Held, How, RunError, StepKind, chain};
use crate::k8s::{Client, Drain, Error, JobLook, JobRun, Round};
use crate::model::{Fact, GuestRules, NodePhase, NodeRef, NodeView};
use crate::plan::{self, Boot, GateCheck, GateRead, HostPlan, Refusal, Step, Verdict, Visit};

/// Between two looks at a node that boots, or at a Job.
const LOOK: Duration = Duration::from_secs(5);
/// How long a node has to stay good whose VM was asked to shut down and seems not to: the guest may heed us
/// until the deadline of that step, 5 minutes, and a node counts as Ready for 50 s after its kubelet was
/// last heard of (`--node-monitor-grace-period`).
const UNHEEDED: Duration = Duration::from_secs(6 * 60);
/// How long a Job that has passed is tried to be deleted: an API server that is restarted is back in less.
const UNTIDY: Duration = Duration::from_secs(60);
/// How often a node is cordoned again that somebody uncordons before it passed its gate: software that does
/// so does it once for each boot of its driver (kubernetes §6.3); what goes on is a fight.
const RECORDONS: usize = 5;

/// How a gate ended.
pub(super) enum Gate {
    /// Passed, with what was read.
    Passed(Vec<String>),
    /// Not passed.
    Closed(FailureClass, String),
    /// A signal came.
    Stopped,
}

/// How far a node has come through its gate in this process. It holds for one boot: whoever starts its VM
/// anew may start it on other GPUs.
pub(super) struct Proven {
    /// Its boot ID (`status.nodeInfo.bootID`).
    pub(super) boot: String,
    /// Whether its Jobs have succeeded, or none are asked for.
    pub(super) whole: bool,
}

impl Run<'_> {
    /// What a gate means for its step. A node that did not pass says so: it is never validated again by
    /// itself. Of one that could not be asked nothing is known: it stays cordoned, and the host open.
    pub(super) async fn end_of_gate(
        &mut self,
        host: &HostPlan,
        node: &NodeRef,
        gate: Gate,
    ) -> Result<Attempt, RunError> {
        Ok(match gate {
            Gate::Passed(evidence) => Attempt::Done(How::Did, evidence),
            Gate::Stopped => Attempt::Stopped,
            Gate::Closed(class @ (FailureClass::Unknown | FailureClass::Fault), why) => Attempt::Failed(class, why),
            Gate::Closed(class, why) => {
                self.mark_failed(host, &self.current(host, node)).await?;
                Attempt::Failed(class, why)
            }
        })
    }

    /// Has a node's mark say that it did not pass; one that was never cordoned has none.
    pub(super) async fn mark_failed(&mut self, host: &HostPlan, node: &NodeRef) -> Result<(), RunError> {
        if self.node_memory(host, node).is_some()
            && let Err((_, kept)) = self.remark(host, node, NodePhase::Failed).await?
        {
            tracing::warn!(host = %host.host.name, node = %node, "the mark does not say that it failed: {kept}");
        }
        Ok(())
    }

    /// Waits for a node to be as it should be, without a break for `pace.hostStable`.
    pub(super) async fn await_node(
        &mut self,
        host: &HostPlan,
        rules: &GuestRules,
        node: &NodeRef,
        boot: Boot,
        deadline: Deadline,
    ) -> Result<Gate, RunError> {
        let kind = Some(StepKind::AwaitNode);
        let stable_for = Duration::from_secs(self.pace.host_stable_s.into());
        let stable_for = if boot == Boot::Either { stable_for.max(UNHEEDED) } else { stable_for };
        let mut good: Option<Deadline> = None;
        let mut on: Fact<String> = Fact::Absent;
        let mut current = node.clone();
        loop {
            let node = &current;
            self.keep_others_cordoned(host, node).await?;
            let lines = match self.read_node(host, kind, node, deadline).await {
                Ok(Seen::Node(seen)) => {
                    // Started once more meanwhile: that boot has its own time.
                    good = good.filter(|_| on == seen.boot_id);
                    on = seen.boot_id.clone();
                    if let Err((class, why)) = self.keep_cordoned(host, node, &seen).await? {
                        return Ok(Gate::Closed(class, why));
                    }
                    let lines = self.gate_of(host, rules, node, &seen, boot);
                    // No time brings it back: whoever took it off, or wrote over it, sees to the node now.
                    if self.node_memory(host, node).is_some()
                        && let Err(found) = seen.mark_of(self.run_id())
                    {
                        self.write_node_gate(host, &lines)?;
                        return Ok(Gate::Closed(FailureClass::Refused, not_ours(&seen, &found)));
                    }
                    lines
                }
                Ok(Seen::Gone(found)) => match self.renew(host, node).await? {
                    Some(Ok(new)) => {
                        (current, good) = (new, None);
                        continue;
                    }
                    Some(Err(why)) => return Ok(Gate::Closed(FailureClass::NotVerified, why)),
                    // Its kubelet may register yet.
                    None => vec![line(node, "identity", Verdict::Failed, found)],
                },
                Err(why) => vec![line(node, "identity", Verdict::Unverifiable, why)],
            };
            let mut waiting_for = closed(&lines);
            if waiting_for.is_empty() {
                if good.get_or_insert_with(|| Deadline::of(stable_for)).passed() {
                    self.write_node_gate(host, &lines)?;
                    if let Fact::Known(boot) = on {
                        self.proven.insert(node.clone(), Proven { boot, whole: rules.validate.is_empty() });
                    }
                    return Ok(Gate::Passed(lines.into_iter().map(said).collect()));
                }
                waiting_for.push(format!("the node {node} to stay so for {} s", stable_for.as_secs()));
            } else {
                good = None;
                if deadline.passed() {
                    self.write_node_gate(host, &lines)?;
                    let why = format!("waited in vain for {}", waiting_for.join("; "));
                    return Ok(Gate::Closed(FailureClass::NotVerified, why));
                }
            }
            self.tell(host, kind, &waiting_for, deadline, None);
            if self.stopped_in(tokio::time::sleep(LOOK)).await? {
                return Ok(Gate::Stopped);
            }
        }
    }

    /// The lines of the gate. A node that was not cordoned, since its VM moved while it ran, has to be Ready
    /// and to offer what it should.
    fn gate_of(
        &self,
        host: &HostPlan,
        rules: &GuestRules,
        node: &NodeRef,
        seen: &NodeView,
        boot: Boot,
    ) -> Vec<GateRead> {
        match self.node_memory(host, node) {
            Some(known) => plan::node_gate(rules, &known, seen, boot),
            None => plan::moved_gate(self.nodes_before.get(node), seen),
        }
    }

    /// Cordons a node again that somebody uncordoned although our mark is on it: its driver's own manager
    /// does so after each boot, whoever cordoned it (kubernetes §0, 6).
    async fn keep_cordoned(
        &mut self,
        host: &HostPlan,
        node: &NodeRef,
        seen: &NodeView,
    ) -> Result<Result<(), (FailureClass, String)>, RunError> {
        let Some(known) = self.node_memory(host, node).filter(|_| !seen.unschedulable) else { return Ok(Ok(())) };
        if seen.marked() != Fact::Known(known.mark.clone()) {
            return Ok(Ok(()));
        }
        let times = self.recordoned.entry(node.clone()).or_default();
        *times += 1;
        if *times > RECORDONS {
            let why = format!("somebody has uncordoned the node {node} {times} times before it passed its gate");
            return Ok(Err((FailureClass::Refused, why)));
        }
        self.rec.host(&host.host.name, Event::NodeRecordoned { node: node.clone() })?;
        self.remark(host, node, known.mark.phase).await
    }

    /// Looks after the other nodes of the visit while one is waited for: software that uncordons a node does so
    /// at its boot, and not when its turn has come. Pods that slip in are evicted at its turn.
    async fn keep_others_cordoned(&mut self, host: &HostPlan, current: &NodeRef) -> Result<(), RunError> {
        let others = self.memory_of(host).nodes.into_iter().filter(|known| known.node != *current);
        for known in others.collect::<Vec<_>>() {
            // One look: what keeps it from being read, or cordoned, is judged when its turn comes.
            let kept = match self.read_node(host, None, &known.node, Deadline::of(Duration::ZERO)).await {
                Ok(Seen::Node(seen)) => self.keep_cordoned(host, &known.node, &seen).await?.map_err(|(_, why)| why),
                Ok(Seen::Gone(_)) => self.renew(host, &known.node).await?.map_or(Ok(()), |renewed| renewed.map(drop)),
                Err(_) => Ok(()),
            };
            if let Err(why) = kept {
                tracing::warn!(host = %host.host.name, node = %known.node, "{why}");
            }
        }
        Ok(())
    }

    /// Runs the Jobs of the node's cluster on it, one after the other.
    pub(super) async fn validate(
        &mut self,
        host: &HostPlan,
        rules: &GuestRules,
        node: &NodeRef,
        deadline: Deadline,
    ) -> Result<Gate, RunError> {
        let client = match self.guest(node) {
            Ok(client) => client,
            Err(why) => return Ok(Gate::Closed(FailureClass::Unknown, why)),
        };
        if let Some(closed) = self.empty_again(host, &client, node, deadline).await? {
            return Ok(closed);
        }
        let Some(boot) = self.proven.get(node).map(|proven| proven.boot.clone()) else {
            let why = format!("expected the node {node} to have been looked at on this boot, found that it was not");
            return Ok(Gate::Closed(FailureClass::Refused, why));
        };
        // A person has asked for it again: the Job that failed is not believed twice.
        let again = self.again.remove(node);
        let mut evidence = Vec::new();
        for (number, template) in rules.validate.iter().enumerate() {
            let job = match JobRun::new(client.clone(), node.clone(), &boot, self.run_id(), number, &template.job) {
                Ok(job) => job,
                Err(error) => return Ok(Gate::Closed(FailureClass::Refused, chain(&error))),
            };
            if let Some(ended) = self.forget_job(host, &client, &job, again, deadline).await? {
                return Ok(ended);
            }
            let subject = format!("{node}, {}", template.file);
            match self.follow_job(host, node, &job, deadline).await? {
                Gate::Passed(lines) => {
                    let read = line(node, &template.file.value, Verdict::Passed, lines.join("; "));
                    self.write_node_gate(host, std::slice::from_ref(&read))?;
                    evidence.push(format!("{subject}: {}", lines.join("; ")));
                    if self.clear_job(host, node, &template.file.value, &job).await?.is_none() {
                        return Ok(Gate::Stopped);
                    }
                }
                Gate::Closed(class, why) => {
                    let verdict = match class {
                        FailureClass::Unknown => Verdict::Unverifiable,
                        _ => Verdict::Failed,
                    };
                    self.write_node_gate(host, &[line(node, &template.file.value, verdict, why.clone())])?;
                    return Ok(Gate::Closed(class, format!("{subject}: {why}")));
                }
                Gate::Stopped => return Ok(Gate::Stopped),
            }
        }
        self.proven.insert(node.clone(), Proven { boot, whole: true });
        Ok(Gate::Passed(if evidence.is_empty() { vec!["no Job is asked for".to_owned()] } else { evidence }))
    }

    /// Asks the guest clusters of a visit whether they would take its Jobs, before anything is touched: what
    /// keeps a node from being validated is known while it still runs. The inner none: a signal came.
    pub(super) async fn jobs_fit(
        &mut self,
        host: &HostPlan,
        visit: &Visit,
    ) -> Result<Result<(), Option<Held>>, RunError> {
        for step in &visit.steps {
            let Step::ValidateNode { node, .. } = step else { continue };
            let rules = super::nodes::rules_of(host, node).into_iter();
            for (number, template) in rules.flat_map(|rules| &rules.validate).enumerate() {
                let mut answer = None;
                let asking = async { answer = Some(self.would_take(node, number, &template.job).await) };
                let signal = self.interrupt.clone();
                tokio::select! {
                    biased;
                    () = signal.first() => {}
                    () = asking => {}
                }
                match answer {
                    Some(Ok(())) => {}
                    Some(Err(why)) => {
                        let why = format!("{} cannot validate the node {node}: {why}", template.file.value);
                        return Ok(Err(Some(Held::Refused(Refusal::Blocked(why)))));
                    }
                    None => {
                        self.note_signal()?;
                        return Ok(Err(None));
                    }
                }
            }
        }
        Ok(Ok(()))
    }

    async fn would_take(&self, node: &NodeRef, number: usize, template: &Value) -> Result<(), String> {
        let client = self.guest(node)?;
        // The boot that it is going to be on is not known yet.
        let job =
            JobRun::new(client, node.clone(), "", self.run_id(), number, template).map_err(|error| chain(&error))?;
        Box::pin(job.rehearse()).await.map_err(|error| chain(&error))
    }

    /// Evicts the pods that came while somebody had uncordoned the node: they have GPUs that nobody has
    /// proven, and that the Jobs need. None: it is empty.
    async fn empty_again(
        &mut self,
        host: &HostPlan,
        client: &Client,
        node: &NodeRef,
        deadline: Deadline,
    ) -> Result<Option<Gate>, RunError> {
        let Some(known) = self.node_memory(host, node).filter(|_| self.recordoned.contains_key(node)) else {
            return Ok(None);
        };
        let mut drain = Drain::new(client.clone(), node.clone(), known.mark);
        let mut patience = Patience::default();
        loop {
            let round = Box::pin(drain.round(self.clock.now())).await;
            self.ended(host, node, &mut drain)?;
            let waiting_for = match round {
                Ok(Round::Empty { .. }) => return Ok(None),
                Ok(Round::Busy { waiting_for }) => waiting_for,
                // Uncordoned once more, perhaps.
                Ok(Round::Lost { found }) => {
                    if let Ok(Seen::Node(seen)) = self.read_node(host, None, node, deadline).await
                        && let Err((class, why)) = self.keep_cordoned(host, node, &seen).await?
                    {
                        return Ok(Some(Gate::Closed(class, why)));
                    }
                    vec![lost(node, &found)]
                }
                Err(error) if patience.lasts(&error) => vec![chain(&error)],
                Err(error) => return Ok(Some(Gate::Closed(FailureClass::Fault, chain(&error)))),
            };
            if deadline.passed() {
                let why =
                    format!("pods came while somebody had uncordoned the node {node}: {}", waiting_for.join("; "));
                return Ok(Some(Gate::Closed(FailureClass::NotVerified, why)));
            }
            self.tell(host, Some(StepKind::ValidateNode), &waiting_for, deadline, None);
            if self.stopped_in(drain.wait(LOOK)).await? {
                return Ok(Some(Gate::Stopped));
            }
        }
    }

    /// Deletes a Job that is believed no more, and waits until it is gone: one that was made on another boot
    /// of the node, before its host was changed, perhaps, and with `again` any. None: it is gone.
    async fn forget_job(
        &mut self,
        host: &HostPlan,
        client: &Client,
        job: &JobRun,
        again: bool,
        deadline: Deadline,
    ) -> Result<Option<Gate>, RunError> {
        let title = job.title();
        let Some((namespace, name)) = title.split_once('/') else {
            unreachable!("a title is a namespace and a name");
        };
        let mut patience = Patience::default();
        loop {
            let found = async {
                if !again && !job.is_outdated().await? {
                    return Ok(None);
                }
                job.tidy().await?;
                client.job(namespace, name).await
            };
            match Box::pin(found).await {
                Ok(None) => return Ok(None),
                Ok(Some(_)) if deadline.passed() => {
                    let why = format!("the Job {title} of before does not go away");
                    return Ok(Some(Gate::Closed(FailureClass::Unknown, why)));
                }
                Ok(Some(_)) => {}
                Err(error) if !patience.lasts(&error) || deadline.passed() => {
                    return Ok(Some(Gate::Closed(FailureClass::Unknown, chain(&error))));
                }
                Err(error) => tracing::warn!(host = %host.host.name, "{}", chain(&error)),
            }
            let waiting_for = format!("the Job {title} of before to go");
            self.tell(host, Some(StepKind::ValidateNode), &[waiting_for], deadline, None);
            if self.stopped_in(tokio::time::sleep(LOOK)).await? {
                return Ok(Some(Gate::Stopped));
            }
        }
    }

    /// Deletes a Job that has been read. One that stays harms nothing, and is told. None: a signal came.
    async fn clear_job(
        &mut self,
        host: &HostPlan,
        node: &NodeRef,
        file: &str,
        job: &JobRun,
    ) -> Result<Option<()>, RunError> {
        let deadline = Deadline::of(UNTIDY);
        loop {
            let Err(error) = Box::pin(job.tidy()).await else { return Ok(Some(())) };
            if !may_pass(&error) || deadline.passed() {
                let left = format!("the Job {} of {} is left there: {}", job.title(), node.cluster, chain(&error));
                self.write_node_gate(host, &[line(node, &format!("{file}, its Job"), Verdict::Noted, left)])?;
                return Ok(Some(()));
            }
            let waiting_for =
                format!("the API server of {}, to delete the Job {}: {}", node.cluster, job.title(), chain(&error));
            self.tell(host, Some(StepKind::ValidateNode), &[waiting_for], deadline, None);
            if self.stopped_in(tokio::time::sleep(LOOK)).await? {
                return Ok(None);
            }
        }
    }

    async fn follow_job(
        &mut self,
        host: &HostPlan,
        node: &NodeRef,
        job: &JobRun,
        deadline: Deadline,
    ) -> Result<Gate, RunError> {
        let kind = Some(StepKind::ValidateNode);
        let mut started = false;
        let mut waited: Option<String> = None;
        let mut patience = Patience::default();
        loop {
            let look = Box::pin(step_of(job, started)).await;
            if look.is_ok() {
                patience.renew();
            }
            let waiting_for = match look {
                Ok(None) => {
                    started = true;
                    continue;
                }
                Ok(Some(JobLook::Passed { evidence, tries })) => {
                    if !tries.is_empty() {
                        let subject = format!("Job {}, tries that failed", job.title());
                        let read = line(node, &subject, Verdict::Noted, tries.join("; "));
                        self.write_node_gate(host, &[read])?;
                    }
                    return Ok(Gate::Passed(evidence));
                }
                Ok(Some(JobLook::Failed { mut evidence })) => {
                    // Its pod may be gone by now, and with it the reason.
                    evidence.extend(waited.map(|why| format!("before that: {why}")));
                    return Ok(Gate::Closed(FailureClass::NotVerified, evidence.join("; ")));
                }
                Ok(Some(JobLook::Waiting { why })) => {
                    waited = Some(why.clone());
                    why
                }
                Err(error) if patience.lasts(&error) => {
                    format!("the API server of {}: {}", node.cluster, chain(&error))
                }
                Err(error) => return Ok(Gate::Closed(FailureClass::Fault, chain(&error))),
            };
            if deadline.passed() {
                let mut why = format!("the Job did not end in time; it waits for {waiting_for}");
                // It would go on to use GPUs of a node that did not pass, and keep its host from closing.
                if let Err(error) = Box::pin(job.tidy()).await {
                    let _ = write!(why, "; it could not be deleted: {}", chain(&error));
                }
                return Ok(Gate::Closed(FailureClass::NotVerified, why));
            }
            self.keep_others_cordoned(host, node).await?;
            // Pods of others that land now would meet a GPU that nobody has proven.
            match self.read_node(host, kind, node, deadline).await {
                Ok(Seen::Node(seen)) => {
                    if let Err((class, why)) = self.keep_cordoned(host, node, &seen).await? {
                        return Ok(Gate::Closed(class, why));
                    }
                }
                Ok(Seen::Gone(_)) => {
                    if let Some((class, why)) = self.outdated_by_renewal(host, node).await? {
                        return Ok(Gate::Closed(class, why));
                    }
                }
                Err(_) => {}
            }
            self.tell(host, kind, &[waiting_for], deadline, None);
            if self.stopped_in(tokio::time::sleep(LOOK)).await? {
                return Ok(Gate::Stopped);
            }
        }
    }

    fn write_node_gate(&mut self, host: &HostPlan, lines: &[GateRead]) -> Result<(), RunError> {
        for GateRead { check, subject, verdict, evidence } in lines.iter().cloned() {
            self.rec.host(&host.host.name, Event::GateRead { gate: check, subject, result: verdict, evidence })?;
        }
        Ok(())
    }
}

/// Starts the Job (none), or looks at it.
async fn step_of(job: &JobRun, started: bool) -> Result<Option<JobLook>, Error> {
    if started { job.look().await.map(Some) } else { job.start().await.map(|()| None) }
}

fn line(node: &NodeRef, what: &str, verdict: Verdict, evidence: String) -> GateRead {
    GateRead { check: GateCheck::Node, subject: format!("{node} {what}"), verdict, evidence }
}

fn said(line: GateRead) -> String {
    format!("{}: {}", line.subject, line.evidence)
}

/// The lines that do not open the gate.
pub(super) fn closed(lines: &[GateRead]) -> Vec<String> {
    lines.iter().filter(|line| !line.verdict.opens()).cloned().map(said).collect()
}
