//! Draining a node: round after round until it is empty, and the look just before its VM is stopped.

use std::time::Duration;

use super::nodes::lost;
use super::patience::Patience;
use super::run::{Deadline, Run};
use super::step::Attempt;
use super::{Event, FailureClass, How, RunError, StepKind, chain};
use crate::k8s::{Drain, Round};
use crate::model::{Fact, NodePhase, NodeRef, PowerState};
use crate::plan::{HostPlan, NodeMemory};

/// Between two rounds of a drain, if no pod and no budget changes before. A budget that is in the way is
/// asked again at its own pace.
const ROUND: Duration = Duration::from_secs(10);
/// The shortest pause between two of them, once the time is over.
const LOOK: Duration = Duration::from_secs(1);

impl Run<'_> {
    /// Evicts the pods of a node until it is found empty twice, or its time is over.
    pub(super) async fn drain(&mut self, host: &HostPlan, node: &NodeRef) -> Result<Attempt, RunError> {
        let Some(known) = self.node_memory(host, node) else {
            let why = format!("expected our mark on the node {node}, found none");
            return Ok(Attempt::Failed(FailureClass::Refused, why));
        };
        let client = match self.guest(node) {
            Ok(client) => client,
            Err(why) => return Ok(Attempt::Failed(FailureClass::Unknown, why)),
        };
        let left = Duration::try_from(known.mark.deadline.duration_since(self.clock.now())).unwrap_or_default();
        let deadline = Deadline::of(left);
        let recheck = Duration::from_secs(self.pace.drain_recheck_s.into());
        let mut drain = Drain::new(client.clone(), node.clone(), known.mark.clone());
        let mut empty_since: Option<Deadline> = None;
        let mut patience = Patience::default();
        loop {
            let mut pause = ROUND;
            let round = Box::pin(drain.round(self.clock.now())).await;
            self.ended(host, node, &mut drain)?;
            if round.is_ok() {
                patience.renew();
            }
            let waiting_for = match round {
                Ok(Round::Lost { found }) => return Ok(Attempt::Failed(FailureClass::Refused, lost(node, &found))),
                Ok(Round::Empty { evidence }) => match empty_since {
                    // Two looks, apart: a pod that was bound just before the cordon shows late.
                    Some(first) if first.passed() => {
                        self.blocked(host, node, &[])?;
                        if let Err((class, why)) = self.remark(host, node, NodePhase::Drained).await? {
                            return Ok(Attempt::Failed(class, why));
                        }
                        return Ok(Attempt::Done(How::Did, evidence));
                    }
                    first => {
                        let first = *empty_since.insert(first.unwrap_or_else(|| Deadline::of(recheck)));
                        pause = first.left();
                        vec![format!("nothing to come up on the node {node} for {} s", recheck.as_secs())]
                    }
                },
                Ok(Round::Busy { mut waiting_for }) => {
                    empty_since = None;
                    if drain.is_stuck() {
                        waiting_for.extend(self.is_off(host, &known).await);
                    }
                    self.blocked(host, node, &waiting_for)?;
                    waiting_for
                }
                Err(error) if patience.lasts(&error) => {
                    empty_since = None;
                    vec![format!("the API server of {}: {}", node.cluster, chain(&error))]
                }
                Err(error) => return Ok(Attempt::Failed(FailureClass::Fault, chain(&error))),
            };
            if deadline.passed() && empty_since.is_none() {
                let why = format!(
                    "the node {node} is not drained within {} s: {}",
                    known.mark.deadline.duration_since(known.mark.since).as_secs(),
                    waiting_for.join("; ")
                );
                return Ok(Attempt::Failed(FailureClass::Timeout, why));
            }
            self.tell(host, Some(StepKind::DrainNode), &waiting_for, deadline, None);
            let pause = if empty_since.is_some() { pause } else { pause.min(deadline.left().max(LOOK)) };
            if self.stopped_in(drain.wait(pause)).await? {
                return Ok(Attempt::Stopped);
            }
        }
    }

    /// That the VM of a node is off, if it is: no kubelet is there to end its pods.
    async fn is_off(&self, host: &HostPlan, known: &NodeMemory) -> Option<String> {
        let record = self.read(host).await;
        let vms = record.view.as_ref().ok()?.vms.known()?;
        let found = vms.iter().find(|found| found.moref == known.vm)?;
        (found.power == Fact::Known(PowerState::Off))
            .then(|| format!("its VM {} is powered off: nothing there ends its pods", host.vm_name(&known.vm)))
    }

    /// Writes down what was evicted and does not come again.
    pub(super) fn ended(&mut self, host: &HostPlan, node: &NodeRef, drain: &mut Drain) -> Result<(), RunError> {
        match drain.take_ended() {
            pods if pods.is_empty() => Ok(()),
            pods => self.rec.host(&host.host.name, Event::PodsEnded { node: node.clone(), pods }),
        }
    }

    /// Writes down what keeps a node from being drained, where that has changed.
    fn blocked(&mut self, host: &HostPlan, node: &NodeRef, why: &[String]) -> Result<(), RunError> {
        let known = self.state_of(host).blocked.iter().find(|blocked| blocked.node == *node);
        if known.map(|blocked| blocked.why.as_slice()).unwrap_or_default() == why {
            return Ok(());
        }
        let event = Event::NodeBlocked { node: node.clone(), why: why.to_vec() };
        self.rec.host(&host.host.name, event)
    }

    /// Whether a node is still empty, just before its VM is stopped (kubernetes §6.7).
    pub(super) async fn still_empty(&self, host: &HostPlan, node: &NodeRef) -> Result<(), NotEmpty> {
        let refused = |why| NotEmpty { class: FailureClass::Refused, why, lasts: true };
        let unread = |why| NotEmpty { class: FailureClass::Unknown, why, lasts: false };
        let Some(known) = self.node_memory(host, node) else {
            return Err(refused(format!("expected our mark on the node {node}, found none")));
        };
        let client = self.guest(node).map_err(unread)?;
        let drain = Drain::new(client, node.clone(), known.mark);
        let mut patience = Patience::default();
        let round = loop {
            match Box::pin(drain.look(self.clock.now())).await {
                Err(error) if patience.may_be_heard(&error) => tokio::time::sleep(LOOK).await,
                round => break round,
            }
        };
        match round {
            Ok(Round::Empty { .. }) => Ok(()),
            Ok(Round::Lost { found }) => Err(refused(lost(node, &found))),
            Ok(Round::Busy { waiting_for }) => {
                let why = format!("expected the node {node} to be empty, found {}", waiting_for.join("; "));
                Err(NotEmpty { lasts: false, ..refused(why) })
            }
            Err(error) => Err(unread(chain(&error))),
        }
    }
}

/// Why the VM of a node must not be stopped.
pub(super) struct NotEmpty {
    pub(super) class: FailureClass,
    pub(super) why: String,
    /// Whether no time changes it: somebody uses the node again.
    pub(super) lasts: bool,
}
