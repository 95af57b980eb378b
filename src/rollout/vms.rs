//! VMs that a visit stops: remembered before the first of them is stopped, started again where they
//! ran, and watched while the host closes.

use std::time::Duration;

use super::effect::{Sent, entering};
use super::run::{Deadline, Run};
use super::step::why;
use super::visit::view_of;
use super::{Compensation, Event, FailureClass, RunError, chain};
use crate::model::{Fact, HostRecord, MoRef, NodeRef, PowerState};
use crate::plan::{Check, Fate, HostPlan, Step, Verify};
use crate::vim25::{Error, TaskEnd};

/// Between two looks at what is left on a host that closes: a move takes minutes.
const WATCH: Duration = Duration::from_secs(60);
/// A VM that is powered off is off in seconds; a busy vCenter queues the task.
const POWER_OFF: Duration = Duration::from_secs(120);
/// Between two looks at a VM that starts.
const LOOK: Duration = Duration::from_secs(5);
/// How often a start is sent whose answer is lost.
const LOST: u32 = 3;

impl Run<'_> {
    /// Arms what a step changes and what is put back: maintenance, and all VMs that the visit stops
    /// before the first of them is (FORMATS "Marker").
    pub(super) fn arm(&mut self, host: &HostPlan, step: &Step) -> Result<(), RunError> {
        if matches!(step, Step::StartClosing { .. } | Step::EnterMaintenance { .. }) {
            self.arm_one(host, Compensation::Maintenance)?;
        }
        // All nodes stand in the marker before the first is cordoned.
        if matches!(step, Step::CordonNode { .. }) {
            let planned = self.state_of(host).visit.as_ref().map(|visit| visit.steps.as_slice()).unwrap_or_default();
            let cordons: Vec<NodeRef> = planned.iter().chain([step]).filter_map(cordoned_by).collect();
            for node in cordons {
                self.arm_one(host, Compensation::Node(node))?;
            }
        }
        if matches!(step, Step::StartClosing { .. } | Step::StopVm { .. }) {
            let planned = self.state_of(host).visit.as_ref().map(|visit| visit.steps.as_slice()).unwrap_or_default();
            let stops: Vec<MoRef> = planned.iter().chain([step]).filter_map(stopped_by).collect();
            for vm in stops {
                self.arm_one(host, Compensation::Vm(vm))?;
            }
        }
        Ok(())
    }

    /// The VMs that are armed.
    pub(super) fn armed_vms(&self, host: &HostPlan) -> Vec<MoRef> {
        let vm = |comp: &Compensation| match comp {
            Compensation::Vm(vm) => Some(vm.clone()),
            _ => None,
        };
        self.state_of(host).armed.iter().filter_map(vm).collect()
    }

    /// Arms one, unless it is.
    pub(super) fn arm_one(&mut self, host: &HostPlan, comp: Compensation) -> Result<(), RunError> {
        if self.state_of(host).armed.contains(&comp) {
            return Ok(());
        }
        self.rec.host(&host.host.name, Event::Armed { comp })
    }

    /// As [`Run::follow`]; while a host closes, what is left on it is told.
    pub(super) async fn follow_watching(
        &mut self,
        host: &HostPlan,
        step: &Step,
        task: &MoRef,
        deadline: Deadline,
    ) -> Result<TaskEnd, Error> {
        let mut what = vec![format!("the task {} ({})", task.id, super::StepKind::from(step))];
        let watched = matches!(step, Step::EnterMaintenance { .. });
        loop {
            let slice = if watched { deadline.left().min(WATCH) } else { deadline.left() };
            let end = self.follow(host, step, task, &what, deadline, slice).await?;
            if !matches!(end, TaskEnd::Deadline(_)) || deadline.passed() {
                return Ok(end);
            }
            what.truncate(1);
            what.extend(self.left_on(host).await);
        }
    }

    /// The VMs that keep a host from closing, and what DRS says of them.
    pub(super) async fn left_on(&self, host: &HostPlan) -> Option<String> {
        let record = self.read(host).await;
        let vms = view_of(&record).ok()?.vms.known()?;
        let faults = match self.fleet.cluster(&host.host).await {
            Fact::Known(cluster) => cluster.drs_faults,
            Fact::Absent => Fact::Absent,
            Fact::Unknown { why } => Fact::Unknown { why },
        };
        let on = vms.iter().filter(|vm| !vm.vcls && vm.power == Fact::Known(PowerState::On));
        let left: Vec<String> = on
            .map(|vm| {
                let name = vm.name.known().cloned().unwrap_or_else(|| vm.moref.to_string());
                let said = faults.known().into_iter().flatten().filter(|fault| fault.vm.known() == Some(&vm.moref));
                let reasons: Vec<&str> =
                    said.flat_map(|fault| fault.reasons.iter().map(|reason| reason.said.as_str())).collect();
                if reasons.is_empty() { name } else { format!("{name} ({})", reasons.join("; ")) }
            })
            .collect();
        (!left.is_empty()).then(|| format!("still powered on there: {}", left.join(", ")))
    }

    /// Starts the VMs that are armed, on a host that is open; the answer is what did not succeed.
    pub(super) async fn restart(&mut self, host: &HostPlan) -> Result<Vec<String>, RunError> {
        let mut failed = Vec::new();
        let changed = self.state_of(host).changed;
        for vm in self.armed_vms(host) {
            if changed && left_off(host, &vm).is_some() {
                continue;
            }
            let (name, gpus) = match host.fates.iter().find(|fate| fate.vm == vm) {
                Some(fate) => (fate.name.clone(), fate.gpus.clone()),
                None => (vm.id.clone(), Vec::new()),
            };
            let step = Step::StartVm { vm: vm.clone(), name: name.clone(), gpus };
            match self.start_again(host, &step).await {
                // Its guest may heed us later than we waited.
                Ok(Started::Ran) if self.state_of(host).asked_to_stop.contains(&vm) => {
                    let found = format!("{name} runs; it was asked to shut down, and may power off later");
                    self.rec.host(&host.host.name, Event::LeftAlone { comp: Compensation::Vm(vm), found })?;
                }
                Ok(started) => {
                    if matches!(started, Started::Yes) {
                        self.restarted.insert(vm.clone());
                    }
                    self.rec.host(&host.host.name, Event::Undone { comp: Compensation::Vm(vm) })?;
                }
                Err(why) => failed.push(format!("{name} was not started again: {why}")),
            }
        }
        Ok(failed)
    }

    /// Powers a VM on, pinned to this host, and proves it.
    async fn start_again(&mut self, host: &HostPlan, step: &Step) -> Result<Started, String> {
        let deadline = Deadline::of(step.deadline(&self.pace));
        let (mut sent, mut lost) = (false, 0);
        loop {
            let record = self.read(host).await;
            // One whose answer was lost may not have got through: it is sent again once the VM is seen off.
            let due = !sent || (1..LOST).contains(&lost);
            let waiting_for = match self.look_at_start(host, step, &record, due).await? {
                Started::Yes | Started::Ran if sent => return Ok(Started::Yes),
                Started::Yes | Started::Ran => return Ok(Started::Ran),
                Started::Due => {
                    match Box::pin(self.send(host, step, view_of(&record)?)).await {
                        Sent::Task(task) => match self.vcenter().wait_task(&task, deadline.left(), |_| {}).await {
                            Ok(TaskEnd::Failed(info)) => return Err(why(&info)),
                            // What runs decides.
                            Ok(TaskEnd::Success(_) | TaskEnd::Gone | TaskEnd::Deadline(_)) => {}
                            Err(error) => tracing::warn!(host = %host.host.name, "{}", chain(&error)),
                        },
                        Sent::Stored => {}
                        Sent::Unclear(why) => {
                            tracing::warn!(host = %host.host.name, "{why}");
                            lost += 1;
                            sent = true;
                            tokio::time::sleep(LOOK).await;
                            continue;
                        }
                        Sent::Refused(why) | Sent::Again(why) | Sent::Theirs(why) => return Err(why),
                    }
                    (sent, lost) = (true, LOST);
                    continue;
                }
                Started::NotYet(waiting_for) => waiting_for,
            };
            if deadline.passed() {
                return Err(format!("waited in vain for {}", waiting_for.join("; ")));
            }
            self.tell(host, Some(step.into()), &waiting_for, deadline, None);
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn look_at_start(
        &self,
        host: &HostPlan,
        step: &Step,
        record: &HostRecord,
        due: bool,
    ) -> Result<Started, String> {
        if let Some(task) = entering(record)? {
            return Err(format!("the host enters maintenance mode ({})", task.id));
        }
        let (view, memory) = (view_of(record)?, self.memory_of(host));
        match step.check(host, view, &memory) {
            Check::AlreadyDone { .. } => return Ok(Started::Yes),
            Check::Ready if due => return Ok(Started::Due),
            Check::Refused { expected, found } => return Err(format!("expected {expected}, found {found}")),
            Check::Ready | Check::InFlight { .. } => {}
        }
        match step.verify(host, view, &memory) {
            Verify::Reached { .. } => Ok(Started::Yes),
            Verify::Settling { waiting_for } | Verify::NotYet { waiting_for } => Ok(Started::NotYet(waiting_for)),
        }
    }

    /// Powers a VM off whose guest did not end in time: its node is proven once more to be cordoned, empty
    /// and detached.
    pub(super) async fn power_off_drained(
        &mut self,
        host: &HostPlan,
        step: &Step,
        vm: &MoRef,
        node: &NodeRef,
    ) -> Result<Result<Vec<String>, (FailureClass, String)>, RunError> {
        if let Err(found) = self.still_empty(host, node).await {
            return Ok(Err((found.class, found.why)));
        }
        let deadline = Deadline::of(POWER_OFF);
        if let Err(why) = self.power_off(host, vm, deadline).await {
            return Ok(Err((FailureClass::Fault, why)));
        }
        let proof = self.verify(host, step, deadline).await?;
        Ok(proof.map(|mut evidence| {
            evidence.push("powered off hard: its guest did not shut down, its node was drained".to_owned());
            evidence
        }))
    }

    /// Asks for a VM to be powered off, and waits for the end of that: its power decides. The error says that
    /// it certainly is not.
    pub(super) async fn power_off(&self, host: &HostPlan, vm: &MoRef, deadline: Deadline) -> Result<(), String> {
        let ended = match Box::pin(self.vcenter().power_off(vm)).await {
            Ok(task) => self.vcenter().wait_task(&task, deadline.left(), |_| {}).await,
            Err(error) if !error.may_have_acted() => return Err(chain(&error)),
            Err(error) => Err(error),
        };
        match ended {
            Ok(TaskEnd::Failed(info)) => return Err(why(&info)),
            Ok(TaskEnd::Success(_) | TaskEnd::Gone | TaskEnd::Deadline(_)) => {}
            Err(error) => tracing::warn!(host = %host.host.name, "{}", chain(&error)),
        }
        Ok(())
    }

    /// Looks at the VMs that are armed, at the end of a good visit: on where they ran, or left off as
    /// planned. `closing`: their host was to be closed again.
    pub(super) fn disarm_vms(&mut self, host: &HostPlan, record: &HostRecord, closing: bool) -> Result<(), RunError> {
        let Ok(view) = view_of(record) else { return Ok(()) };
        let Fact::Known(vms) = &view.vms else { return Ok(()) };
        let closing = closing && view.in_maintenance == Fact::Known(false);
        for vm in self.armed_vms(host) {
            let comp = Compensation::Vm(vm.clone());
            let power = vms.iter().find(|found| found.moref == vm).map(|found| &found.power);
            let event = match (power, left_off(host, &vm)) {
                // Asked to shut down once more, perhaps, and its guest takes its time.
                (Some(Fact::Known(PowerState::On)), _) if closing => {
                    let found = format!(
                        "{} runs; it may have been asked to shut down while its host closed again, and may power off later",
                        host.vm_name(&vm)
                    );
                    Event::LeftAlone { comp, found }
                }
                (Some(Fact::Known(PowerState::On)), _) => Event::Undone { comp },
                (Some(Fact::Known(PowerState::Off)), Some(name)) => {
                    Event::LeftAlone { comp, found: format!("{name} left off, as planned") }
                }
                (None, _) => Event::LeftAlone { comp, found: "not on this host any more".to_owned() },
                // It should run again, or nobody knows: it stays armed.
                (Some(_), _) => continue,
            };
            self.rec.host(&host.host.name, event)?;
        }
        Ok(())
    }
}

/// How far a VM is that is to be started.
enum Started {
    /// It runs.
    Yes,
    /// It runs, and nobody had to start it.
    Ran,
    Due,
    NotYet(Vec<String>),
}

/// The name of the VM, if the plan leaves it off.
fn left_off<'a>(host: &'a HostPlan, vm: &MoRef) -> Option<&'a str> {
    let left_off = host.fates.iter().find(|fate| fate.vm == *vm && matches!(fate.fate, Fate::LeftOff { .. }));
    left_off.map(|fate| fate.name.as_str())
}

fn cordoned_by(step: &Step) -> Option<NodeRef> {
    match step {
        Step::CordonNode { node, .. } => Some(node.clone()),
        _ => None,
    }
}

fn stopped_by(step: &Step) -> Option<MoRef> {
    match step {
        Step::StopVm { vm, .. } => Some(vm.clone()),
        _ => None,
    }
}
