//! A node whose object is deleted and made anew while its VM starts: the same machine under another UID, open to
//! pods on GPUs that nobody has proven. Software of a cloud or an autoscaler deletes nodes whose machine is off, and
//! a kubelet registers at each of its starts (kubernetes §3.8).

use std::time::Duration;

use super::patience::Patience;
use super::run::{Deadline, Run};
use super::visit::{node_of, view_of};
use super::{Compensation, Event, FailureClass, RunError, chain};
use crate::k8s::Patched;
use crate::model::NodeRef;
use crate::plan::{HostPlan, NodeMemory};

/// Between two looks at a node that was written to: one that has just registered is written to by many.
const LOOK: Duration = Duration::from_secs(1);

impl Run<'_> {
    /// A node by the object that it is now: the one of the plan, or the one that took its place in this visit.
    pub(super) fn current(&self, host: &HostPlan, node: &NodeRef) -> NodeRef {
        let nodes = &self.state_of(host).memory.nodes;
        let of_name = |known: &&NodeMemory| (&known.node.cluster, &known.node.name) == (&node.cluster, &node.name);
        match nodes.iter().find(of_name) {
            Some(known) if !nodes.iter().any(|known| known.node == *node) => known.node.clone(),
            _ => node.clone(),
        }
    }

    /// Whether the VM of a node of ours, whose object is gone, is another object of its name by now. That one is
    /// cordoned at once with the mark of the one before, and takes its place: its gate compares with what was
    /// before. None: there is none yet. The inner error says why it stands open.
    pub(super) async fn renew(
        &mut self,
        host: &HostPlan,
        node: &NodeRef,
    ) -> Result<Option<Result<NodeRef, String>>, RunError> {
        let Some(known) = self.node_memory(host, node) else { return Ok(None) };
        let client = match self.guest(node) {
            Ok(client) => client,
            Err(why) => return Ok(Some(Err(why))),
        };
        let deadline = Deadline::of(Duration::from_secs(self.pace.read_back_s.into()));
        let open = |new: &NodeRef, why: &str| {
            format!(
                "the node {node} was deleted, and its VM is another object now ({}), which takes pods on GPUs that \
                 nobody has proven, and which could not be cordoned: {why}",
                new.uid
            )
        };
        let mut patience = Patience::default();
        let mut mark = known.mark.clone();
        let (new, record) = loop {
            // The machine decides: the node says that it runs on this VM, and no other says so.
            let (record, _) = self.read_all(host).await;
            let Some(seen) = node_of(&record, &known.vm).cloned() else { return Ok(None) };
            let new = seen.node.clone();
            if new.uid == node.uid || (&new.cluster, &new.name) != (&node.cluster, &node.name) || seen.deleting {
                return Ok(None);
            }
            match seen.mark_of(self.run_id()) {
                Ok(ours) if seen.unschedulable => {
                    mark = ours;
                    break (new, record);
                }
                // A kubelet may register cordoned (`--register-schedulable=false`), and a person be faster.
                Err(_) if seen.mark.is_absent() => mark.was_unschedulable |= seen.unschedulable,
                _ => {}
            }
            let mut why = "it does not read back as written".to_owned();
            if !self.state_of(host).armed.contains(&Compensation::Node(new.clone())) {
                self.rec.host(&host.host.name, Event::Armed { comp: Compensation::Node(new.clone()) })?;
            }
            match Box::pin(client.cordon(&new, &seen.version, &mark)).await {
                Ok(Patched::Done(_)) => continue,
                Ok(Patched::Conflict | Patched::Gone) => {}
                Ok(Patched::NotOurs { found }) => {
                    // Theirs to open, or to keep closed.
                    let comp = Compensation::Node(new.clone());
                    self.rec.host(&host.host.name, Event::Undone { comp })?;
                    return Ok(Some(Err(open(&new, &format!("it carries the mark {found}")))));
                }
                Err(error) if patience.lasts(&error) => why = chain(&error),
                Err(error) => return Ok(Some(Err(open(&new, &chain(&error))))),
            }
            if deadline.passed() {
                return Ok(Some(Err(open(&new, &why))));
            }
            tokio::time::sleep(LOOK).await;
        };
        self.rec.host(&host.host.name, Event::NodeRenewed { node: node.clone(), uid: new.uid.clone() })?;
        self.marked(host, &new, &known.vm, Some(mark))?;
        // Pods may have come meanwhile.
        self.recordoned.entry(new.clone()).or_default();
        self.proven.remove(node);
        // The marker lists the nodes of a visit; its phase stays.
        let phase = self.state_of(host).marker.as_ref().map(|marker| marker.phase);
        if let (Some(phase), Ok(view)) = (phase, view_of(&record))
            && let Err(why) = self.mark(host, view, phase).await?
        {
            tracing::warn!(host = %host.host.name, node = %new, "the marker does not list it: {why}");
        }
        Ok(Some(Ok(new)))
    }

    /// As [`Run::renew`], in mid-gate: what was found of the object before is not true of this one.
    pub(super) async fn outdated_by_renewal(
        &mut self,
        host: &HostPlan,
        node: &NodeRef,
    ) -> Result<Option<(FailureClass, String)>, RunError> {
        Ok(self.renew(host, node).await?.map(|renewed| match renewed {
            Ok(new) => {
                let why =
                    format!("the node {node} was deleted in its gate; its VM is another object now ({})", new.uid);
                (FailureClass::NotVerified, why)
            }
            Err(why) => (FailureClass::NotVerified, why),
        }))
    }
}
