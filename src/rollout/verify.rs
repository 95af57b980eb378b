//! Proof, from fresh reads of what is active, within a deadline. What the server answered to a write
//! says only that it was stored.

use std::time::Duration;

use super::run::{Deadline, Run};
use super::visit::view_of;
use super::{Event, FailureClass, RunError, StepKind, chain};
use crate::model::{Fact, HostView};
use crate::plan::{self, HostPlan, Step, Verify};

/// Between two looks at a host that does not go down.
const LOOK: Duration = Duration::from_secs(5);
/// Between two looks at a host that boots: it takes minutes, and each look is some ten calls.
const LOOK_AT_BOOT: Duration = Duration::from_secs(15);
/// How long one write of three may take to read back: a third of its deadline.
const WRITE_PARTS: u32 = 3;

/// Evidence, or class and what was waited for in vain.
type Proof = Result<Vec<String>, (FailureClass, String)>;

impl Run<'_> {
    /// Verifies a step, within what is left of its deadline.
    pub(super) async fn verify(&mut self, host: &HostPlan, step: &Step, deadline: Deadline) -> Result<Proof, RunError> {
        let limit = match step {
            Step::Reboot { .. } => return Ok(self.verify_boot(host, step, deadline).await),
            // The task has ended: what is left is the way of the value into vCenter's copy.
            Step::EnterMaintenance { .. } => Deadline::of(Duration::from_secs(self.pace.read_back_s.into())),
            // What was lost on the way is sent again while time is left.
            Step::SetPassthrough { .. }
            | Step::SetGraphics { .. }
            | Step::StartShell
            | Step::StopMonitor
            | Step::SetMig { .. }
            | Step::StartMonitor => Deadline::of(step.deadline(&self.pace) / WRITE_PARTS),
            Step::StartClosing { .. }
            | Step::StopVm { .. }
            | Step::VerifyHost
            | Step::ExitMaintenance
            | Step::StartVm { .. }
            | Step::CordonNode { .. }
            | Step::DrainNode { .. }
            | Step::AwaitNode { .. }
            | Step::ValidateNode { .. }
            | Step::UncordonNode { .. } => deadline,
        };
        let kind = StepKind::from(step);
        loop {
            let record = match self.read_for(host, step).await? {
                Ok(record) => record,
                Err(why) => return Ok(Err((FailureClass::Refused, why))),
            };
            let waiting_for = match view_of(&record) {
                Err(why) => vec![why],
                Ok(view) => {
                    let verdict = step.verify(host, view, &self.memory_of(host));
                    let ends = matches!(verdict, Verify::Reached { .. }) || limit.passed();
                    if ends {
                        self.write_gate(host, kind, view)?;
                    }
                    match verdict {
                        Verify::Reached { evidence } => return Ok(Ok(evidence)),
                        Verify::Settling { waiting_for } | Verify::NotYet { waiting_for } => {
                            Box::pin(self.refresh(host, view)).await;
                            waiting_for
                        }
                    }
                }
            };
            if limit.passed() {
                let why = format!("waited in vain for {}", plan::grouped(&waiting_for).join("; "));
                return Ok(Err((FailureClass::NotVerified, why)));
            }
            self.tell(host, Some(kind), &waiting_for, limit, None);
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits for a host to come back from a reboot: a later boot time, in maintenance, and answering
    /// without a break for `pace.hostStable` (it may flip on its way up); then for its stale facts to
    /// clear, for as long as facts settle.
    async fn verify_boot(&mut self, host: &HostPlan, step: &Step, deadline: Deadline) -> Proof {
        let stable_for = Duration::from_secs(self.pace.host_stable_s.into());
        let mut back: Option<Deadline> = None;
        let mut settling: Option<Deadline> = None;
        loop {
            let record = self.read(host).await;
            let verdict = match view_of(&record) {
                Ok(view) => {
                    let verdict = step.verify(host, view, &self.memory_of(host));
                    if !matches!(verdict, Verify::NotYet { .. }) {
                        Box::pin(self.refresh(host, view)).await;
                    }
                    verdict
                }
                Err(why) => Verify::NotYet { waiting_for: vec![why] },
            };
            let mut proven = None;
            let (waiting_for, settled, given_up) = match verdict {
                Verify::Reached { evidence } => {
                    back.get_or_insert_with(|| Deadline::of(stable_for));
                    proven = Some(evidence);
                    let stable = format!("the host to answer without a break for {} s", stable_for.as_secs());
                    (vec![stable], true, deadline)
                }
                Verify::Settling { waiting_for } => {
                    back.get_or_insert_with(|| Deadline::of(stable_for));
                    let settling = *settling.get_or_insert_with(|| Deadline::of(Step::SETTLE));
                    (waiting_for, settling.passed(), settling)
                }
                Verify::NotYet { waiting_for } => {
                    // It went away once more: what it says begins to settle when it is back.
                    (back, settling) = (None, None);
                    (waiting_for, false, deadline)
                }
            };
            if settled && back.is_some_and(Deadline::passed) {
                return Ok(proven.unwrap_or(waiting_for));
            }
            if deadline.passed() {
                let waited = plan::grouped(&waiting_for).join("; ");
                let why = format!(
                    "it did not come back within our deadline; waited for {waited}. If it never went down, reboot it \
                     by hand: this run takes that boot for its own"
                );
                return Err((FailureClass::Timeout, why));
            }
            self.tell(host, Some(step.into()), &waiting_for, given_up, None);
            tokio::time::sleep(LOOK_AT_BOOT).await;
        }
    }

    /// Has the host tell vCenter its state again (vsphere-gpu §3.5). It changes nothing, and a host
    /// that cannot do it is read as it is.
    pub(super) async fn refresh(&self, host: &HostPlan, view: &HostView) {
        let vcenter = self.vcenter();
        if let Fact::Known(manager) = &view.graphics_manager
            && let Err(error) = vcenter.refresh_graphics(manager).await
        {
            tracing::debug!(host = %host.host.name, "{}", chain(&error));
        }
        if let Fact::Known(system) = &view.passthru_system
            && let Err(error) = vcenter.refresh_passthru(system).await
        {
            tracing::debug!(host = %host.host.name, "{}", chain(&error));
        }
    }

    /// Writes the gate down as it was read last; of a host that has left maintenance only what does
    /// not open it, since it was written down just before.
    fn write_gate(&mut self, host: &HostPlan, kind: StepKind, view: &HostView) -> Result<(), RunError> {
        if !matches!(kind, StepKind::VerifyHost | StepKind::ExitMaintenance) {
            return Ok(());
        }
        let baseline = self.state_of(host).memory.baseline.clone();
        for line in plan::gate(host, baseline.as_ref(), view) {
            if kind == StepKind::VerifyHost || !line.verdict.opens() {
                let plan::GateRead { check, subject, verdict, evidence } = line;
                self.rec.host(&host.host.name, Event::GateRead { gate: check, subject, result: verdict, evidence })?;
            }
        }
        Ok(())
    }
}
