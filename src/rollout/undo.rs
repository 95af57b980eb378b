//! Giving back a host on which no mode was written (DESIGN §6, zones untouched and stopped): by itself
//! where a visit fails, and where a person aborts it.
//!
//! ```text
//!   entering cancelled ─► maintenance left ─► VMs started, where they ran ─► nodes, through their gate
//! ```
//!
//! Each of them is armed before it is begun, so each looks at what is there and does what is left: whoever
//! dies in between begins here again.

use std::time::Duration;

use super::effect::{Sent, entering};
use super::marker::Owner;
use super::run::{Deadline, Run};
use super::step::why;
use super::visit::view_of;
use super::{Compensation, Event, Held, HostPhase, RunError, StepKind, chain};
use crate::model::{Fact, HostRecord, HostView};
use crate::plan::{self, GateCheck, HostPlan, OurMaintenance, Step};
use crate::vim25::TaskEnd;

/// How often a host is asked to leave maintenance mode: what refuses three times has a cause that time does
/// not cure.
const ATTEMPTS: u32 = 3;
/// Before the next attempt: what refuses a host that just came back needs some seconds (vsphere-gpu F42b).
const PAUSE: Duration = Duration::from_secs(15);
/// Between two looks at a host that leaves maintenance mode.
const LOOK: Duration = Duration::from_secs(5);

impl Run<'_> {
    /// Undoes what a visit did that changed no mode. What does not succeed stays armed; the answer says what
    /// and why.
    pub(super) async fn undo(&mut self, host: &HostPlan) -> Result<Vec<String>, RunError> {
        let state = self.state_of(host);
        if state.armed.is_empty() && state.memory.nodes.is_empty() {
            return Ok(Vec::new());
        }
        // Whoever has marked the host since works on it now.
        let record = self.read(host).await;
        if let Ok(view) = view_of(&record)
            && let Owner::Other(held) = self.owner(host, view)
        {
            return Ok(vec![format!("nothing is given back: {held}")]);
        }
        if let Err(why) = self.open_again(host).await? {
            return Ok(vec![why]);
        }
        let mut kept = self.restart(host).await?;
        kept.extend(Box::pin(self.free_nodes(host)).await?);
        Ok(kept)
    }

    /// A signal came while the host closes: it is in service until somebody goes on.
    pub(super) async fn give_way(&mut self, host: &HostPlan) -> Result<Vec<String>, RunError> {
        match self.open_again(host).await? {
            Ok(()) => self.restart(host).await,
            Err(why) => Ok(vec![why]),
        }
    }

    /// Opens a host that closes, or is closed, at our request. On a host that stays closed nothing starts.
    async fn open_again(&mut self, host: &HostPlan) -> Result<Result<(), String>, RunError> {
        if self.state_of(host).memory.maintenance == OurMaintenance::NotAsked {
            return Ok(Ok(()));
        }
        let record = self.read(host).await;
        // Also where it seems to be closed, or opened: what runs decides.
        if let Err(why) = self.stop_entering(host, &record).await {
            return Ok(Err(why));
        }
        let left = Box::pin(self.reopen(host)).await?;
        Ok(left.map_err(|why| format!("it stays in maintenance mode: {why}")))
    }

    /// Giving back did not succeed: the visit has failed, and says what is left.
    pub(super) async fn not_undone(&mut self, host: &HostPlan, kept: Vec<String>) -> Result<(), RunError> {
        self.rec.host(&host.host.name, Event::HostHeld { why: Held::Taken { what: kept.join("; ") } })?;
        match self.state_of(host).phase {
            HostPhase::Failed { .. } => self.stand(host, Vec::new()).await,
            _ if self.state_of(host).marker.is_some() => self.unmark_untouched(host).await,
            _ => Ok(()),
        }
    }

    /// Cancels the entering that we asked for. A host that goes on entering is not given back: it would
    /// stand closed with nobody's mark on it.
    pub(super) async fn stop_entering(&self, host: &HostPlan, record: &HostRecord) -> Result<(), String> {
        let unread = |why: String| format!("whether it enters maintenance mode is not known: {why}");
        let Some(task) = entering(record).map_err(unread)? else { return Ok(()) };
        match Box::pin(self.whose(&task)).await {
            Ok(None) => {}
            // Somebody else's, and theirs to end.
            Ok(Some(_)) => return Ok(()),
            Err(error) => return Err(unread(chain(&error))),
        }
        // One request may be lost on its way.
        let mut said = String::new();
        for _ in 0..ATTEMPTS {
            said = Box::pin(self.cancel(&task)).await;
            match entering(&self.read(host).await).map_err(unread)? {
                Some(running) if running == task => {}
                Some(_) | None => return Ok(()),
            }
        }
        Err(format!("it still enters maintenance mode: {said}"))
    }

    /// Leaves the maintenance that we asked for, on a host whose modes were not touched: its parity must be as
    /// before, its modes need not be as wished.
    async fn reopen(&mut self, host: &HostPlan) -> Result<Result<(), String>, RunError> {
        let deadline = Deadline::of(Step::ExitMaintenance.deadline(&self.pace));
        let mut said = None;
        for attempt in 1..=ATTEMPTS {
            let record = self.read(host).await;
            let view = match view_of(&record) {
                Ok(view) => view,
                Err(why) => return Ok(Err(why)),
            };
            if view.in_maintenance == Fact::Known(false) {
                return Ok(Ok(()));
            }
            match self.owner(host, view) {
                Owner::Ours(_) => {}
                Owner::Nobody => return Ok(Err("somebody removed our marker, and may use the host".to_owned())),
                Owner::Other(held) => return Ok(Err(held.to_string())),
            }
            let worse = self.worse(host, view);
            if !worse.is_empty() {
                return Ok(Err(worse.join("; ")));
            }
            said = self.leave_maintenance(host, view, deadline).await;
            if self.is_open(host).await {
                self.rec.host(&host.host.name, Event::Undone { comp: Compensation::Maintenance })?;
                return Ok(Ok(()));
            }
            if attempt == ATTEMPTS || deadline.passed() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(Err(said.unwrap_or_else(|| "it was asked to leave, and does not".to_owned())))
    }

    /// Asks a host to leave maintenance mode, and waits for the end of that; the answer is why it may not have.
    async fn leave_maintenance(&mut self, host: &HostPlan, view: &HostView, deadline: Deadline) -> Option<String> {
        let step = Step::ExitMaintenance;
        let task = match Box::pin(self.send(host, &step, view)).await {
            Sent::Task(task) => task,
            Sent::Stored => return None,
            Sent::Refused(why) | Sent::Theirs(why) | Sent::Again(why) | Sent::Unclear(why) => return Some(why),
        };
        let what = [format!("the task {} ({})", task.id, StepKind::ExitMaintenance)];
        match Box::pin(self.follow(host, &step, &task, &what, deadline, deadline.left())).await {
            Ok(TaskEnd::Success(_) | TaskEnd::Gone) => None,
            Ok(TaskEnd::Failed(info)) => Some(why(&info)),
            Ok(TaskEnd::Deadline(_)) => Some(format!("task {} did not end within our deadline", task.id)),
            Err(error) => Some(chain(&error)),
        }
    }

    /// Whether a host is seen out of maintenance mode, within the time that every value has.
    async fn is_open(&mut self, host: &HostPlan) -> bool {
        let deadline = Deadline::of(Duration::from_secs(self.pace.read_back_s.into()));
        loop {
            let record = self.read(host).await;
            if view_of(&record).is_ok_and(|view| view.in_maintenance == Fact::Known(false)) {
                return true;
            }
            if deadline.passed() {
                return false;
            }
            let what = ["the host to be out of maintenance mode".to_owned()];
            self.tell(host, Some(StepKind::ExitMaintenance), &what, deadline, None);
            tokio::time::sleep(LOOK).await;
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
