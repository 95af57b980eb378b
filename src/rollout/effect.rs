//! Effects: one call each, sent once. What its error says about the host decides what comes next.

use std::num::NonZeroU32;
use std::time::Duration;

use super::chain;
use super::run::{Deadline, Run};
use crate::model::{Fact, HostRecord, HostView, MoRef};
use crate::plan::{HostPlan, Step};
use crate::vim25::wire::names::fault;
use crate::vim25::{Error, PassthruEntry, TaskEnd, TaskInfo};

/// Tasks that hosts run for us, by the last part of their `descriptionId`
/// (`HostSystem.enterMaintenanceMode`): what a server puts before it is not documented.
mod task {
    pub const ENTER: &str = "enterMaintenanceMode";
    pub const EXIT: &str = "exitMaintenanceMode";
    pub const REBOOT: &str = "reboot";
}

/// The kind of the task that this step starts.
fn task_of(step: &Step) -> Option<&'static str> {
    match step {
        Step::StartClosing { .. } | Step::EnterMaintenance { .. } => Some(task::ENTER),
        Step::ExitMaintenance => Some(task::EXIT),
        Step::Reboot { .. } => Some(task::REBOOT),
        Step::StopVm { .. }
        | Step::SetPassthrough { .. }
        | Step::SetGraphics { .. }
        | Step::StartShell
        | Step::StopMonitor
        | Step::SetMig { .. }
        | Step::StartMonitor
        | Step::VerifyHost
        | Step::StartVm { .. }
        | Step::CordonNode { .. }
        | Step::DrainNode { .. }
        | Step::AwaitNode { .. }
        | Step::ValidateNode { .. }
        | Step::UncordonNode { .. } => None,
    }
}

/// Whether it matters who started the task of this step: maintenance is left by who asked for it. A
/// reboot and the way out are the same whoever asks.
pub(super) fn enters(step: &Step) -> bool {
    task_of(step) == Some(task::ENTER)
}

fn is_of(what: &str, kind: &str) -> bool {
    what.rsplit('.').next() == Some(kind)
}

/// Whether two names are one user's. Names have no case; their domain stands before them
/// (`CORP\pw`) or behind (`pw@corp.lan`), in full or by its first part, as the server or the login
/// has it.
fn is_same_user(one: &str, other: &str) -> bool {
    let parts = |text: &str| {
        let text = text.to_lowercase();
        let split = text.split_once('\\').map(|(domain, name)| (name.to_owned(), domain.to_owned()));
        let split = split.or_else(|| text.rsplit_once('@').map(|(name, domain)| (name.to_owned(), domain.to_owned())));
        split.unwrap_or((text, String::new()))
    };
    let ((name, domain), (other_name, other_domain)) = (parts(one), parts(other));
    let first = |domain: &str| domain.split('.').next().unwrap_or_default().to_owned();
    let by_first_part = !(domain.contains('.') && other_domain.contains('.'));
    name == other_name && (domain == other_domain || by_first_part && first(&domain) == first(&other_domain))
}

/// How long somebody else's task on the host is waited for before ours is tried again
/// (vsphere-gpu F55). A reconfiguration takes seconds.
const FOREIGN: Duration = Duration::from_secs(120);

/// What became of a call.
#[derive(Debug)]
pub(super) enum Sent {
    /// The server runs this task for it.
    Task(MoRef),
    /// The server stored it, or took it and says no more.
    Stored,
    /// The server refused it; nothing happened.
    Refused(String),
    /// Nothing happened: somebody else is at the same just now, and what they close they open.
    Theirs(String),
    /// It did not get through, and may now; nothing happened.
    Again(String),
    /// Nobody knows whether it had an effect: look.
    Unclear(String),
}

impl Run<'_> {
    /// Sends the effect of a step, once.
    pub(super) async fn send(&self, host: &HostPlan, step: &Step, view: &HostView) -> Sent {
        let target = &host.host.moref;
        let vcenter = self.vcenter();
        let sent = match step {
            // Its task is followed by the step that ends it.
            Step::StartClosing { .. } => {
                let limit = servers_limit(step.closing_limit(&self.pace));
                vcenter.enter_maintenance(target, limit).await.map(|_| None)
            }
            Step::EnterMaintenance { .. } => {
                vcenter.enter_maintenance(target, servers_limit(step.deadline(&self.pace))).await.map(Some)
            }
            Step::ExitMaintenance => {
                vcenter.exit_maintenance(target, servers_limit(step.deadline(&self.pace))).await.map(Some)
            }
            Step::StopVm { vm, .. } => vcenter.shutdown_guest(vm).await.map(|()| None),
            Step::StartVm { vm, .. } => vcenter.power_on(vm, Some(target)).await.map(Some),
            Step::Reboot { .. } => vcenter.reboot_host(target).await.map(Some),
            Step::SetPassthrough { changes } => {
                let Fact::Known(system) = &view.passthru_system else {
                    return Sent::Refused("the host has no passthrough system".to_owned());
                };
                let entries: Vec<PassthruEntry> = changes
                    .iter()
                    .map(|change| PassthruEntry {
                        address: change.address,
                        enabled: change.enabled,
                        apply_now: None,
                        label: change.label.clone(),
                    })
                    .collect();
                vcenter.update_passthru(system, &entries).await.map(|()| None)
            }
            Step::SetGraphics { .. } => {
                let (Fact::Known(manager), Fact::Known(config)) = (&view.graphics_manager, &view.graphics_config)
                else {
                    return Sent::Refused("the host's graphics configuration cannot be read".to_owned());
                };
                match step.merged(config) {
                    Some(config) => vcenter.update_graphics(manager, &config).await.map(|()| None),
                    None => return Sent::Refused("the step writes no graphics configuration".to_owned()),
                }
            }
            // Done at the shell, or by a person (`shell`, `handoff`).
            Step::StartShell | Step::StopMonitor | Step::SetMig { .. } | Step::StartMonitor => {
                return Sent::Refused("no call of vCenter does it".to_owned());
            }
            // Done in the guest cluster (`nodes`).
            Step::CordonNode { .. }
            | Step::DrainNode { .. }
            | Step::AwaitNode { .. }
            | Step::ValidateNode { .. }
            | Step::UncordonNode { .. } => return Sent::Refused("no call of vCenter does it".to_owned()),
            // Reads only.
            Step::VerifyHost => return Sent::Stored,
        };
        match sent {
            Ok(Some(task)) => Sent::Task(task),
            Ok(None) => Sent::Stored,
            Err(error) => self.judge(host, step, &error).await,
        }
    }

    async fn judge(&self, host: &HostPlan, step: &Step, error: &Error) -> Sent {
        let said = chain(error);
        if let Some(running) = error.fault().filter(|fault| fault.kind == fault::TASK_IN_PROGRESS) {
            return match &running.task {
                Some(task) => self.in_progress(host, step, task, said).await,
                None => Sent::Refused(said),
            };
        }
        match (error.may_have_acted(), error.is_retriable()) {
            (true, _) => Sent::Unclear(said),
            (false, true) => Sent::Again(said),
            (false, false) => Sent::Refused(said),
        }
    }

    /// Another task holds the host: the step's own, then it is attached to; or another one, then its
    /// end is waited for and ours tried again.
    async fn in_progress(&self, host: &HostPlan, step: &Step, task: &MoRef, said: String) -> Sent {
        match self.vcenter().task_info(task).await {
            Ok(info) if task_of(step).is_some_and(|kind| is_of(&info.what, kind)) => {
                match self.theirs(&info).filter(|_| enters(step)) {
                    Some(why) => Sent::Theirs(why),
                    None => Sent::Task(task.clone()),
                }
            }
            Ok(info) => {
                tracing::info!(host = %host.host.name, task = %info.what, "waiting for another task");
                match self.vcenter().wait_task(task, FOREIGN, |_| {}).await {
                    Ok(TaskEnd::Deadline(_)) | Err(_) => Sent::Refused(said),
                    Ok(_) => Sent::Again(said),
                }
            }
            Err(_) => Sent::Refused(said),
        }
    }

    /// Who takes the host into maintenance with this task, if we do not.
    pub(super) async fn whose(&self, task: &MoRef) -> Result<Option<String>, Error> {
        Ok(self.theirs(&self.vcenter().task_info(task).await?))
    }

    fn theirs(&self, info: &TaskInfo) -> Option<String> {
        let us = self.vcenter().session_user();
        let ours = info.user.as_deref().is_some_and(|user| is_same_user(user, &us));
        (!ours).then(|| {
            let who = info.user.as_deref().unwrap_or("the system");
            format!("{who} takes the host into maintenance mode (task {}), and we are {us}", info.task.id)
        })
    }

    /// The reboot task that the server knows since ours was asked for, whoever asked: the host goes down
    /// once. One that failed without losing the host did nothing.
    pub(super) async fn reboot_task(&self, host: &HostPlan) -> Result<Option<MoRef>, Error> {
        let Some(since) = self.state_of(host).reboot_asked else { return Ok(None) };
        let tasks = self.vcenter().tasks_since(&host.host.moref, since, None).await?;
        Ok(tasks
            .into_iter()
            .rev()
            .find(|info| is_of(&info.what, task::REBOOT) && !did_nothing(info))
            .map(|info| info.task))
    }

    /// Who took the host out of maintenance, in words, as far as the server knows.
    pub(super) async fn who_left_maintenance(&self, host: &HostPlan) -> String {
        let Some(since) = self.state_of(host).marker.as_ref().map(|marker| marker.at) else {
            return "who did it cannot be found out".to_owned();
        };
        let found = self.vcenter().tasks_since(&host.host.moref, since, None).await;
        let last = found.ok().and_then(|tasks| tasks.into_iter().rev().find(|info| is_of(&info.what, task::EXIT)));
        match last {
            Some(info) => format!(
                "{} asked for that{}",
                info.user.as_deref().unwrap_or("the system"),
                info.queued_at.map(|at| format!(" at {at}")).unwrap_or_default()
            ),
            None => "who did it cannot be found out".to_owned(),
        }
    }

    /// Follows a task to its end, or for a slice of the time until the deadline, telling who watches.
    pub(super) async fn follow(
        &mut self,
        host: &HostPlan,
        step: &Step,
        task: &MoRef,
        what: &[String],
        deadline: Deadline,
        slice: Duration,
    ) -> Result<TaskEnd, Error> {
        let fleet = self.fleet;
        self.tell(host, Some(step.into()), what, deadline, None);
        fleet
            .vcenter()
            .wait_task(task, slice, |progress| {
                self.tell(host, Some(step.into()), what, deadline, progress.percent);
            })
            .await
    }
}

/// Whether a reboot task certainly left the host alone: it failed, and not by losing contact with a
/// host that goes down (vsphere-gpu §1.7).
pub(super) fn did_nothing(info: &TaskInfo) -> bool {
    info.error.as_ref().is_some_and(|error| !lost_contact(error))
}

/// Whether a fault is one of a host that goes away.
pub(super) fn lost_contact(error: &crate::vim25::Fault) -> bool {
    [fault::HOST_COMMUNICATION, fault::HOST_NOT_CONNECTED, fault::HOST_NOT_REACHABLE]
        .iter()
        .any(|kind| error.involves(kind))
}

/// The task that takes the host into maintenance, if one runs; or why that cannot be told.
pub(super) fn entering(record: &HostRecord) -> Result<Option<MoRef>, String> {
    let view = record.view.as_ref().map_err(|fault| fault.message.clone())?;
    match &view.tasks {
        Fact::Known(tasks) => {
            Ok(tasks.iter().find(|running| is_of(&running.what, task::ENTER)).map(|running| running.moref.clone()))
        }
        Fact::Absent => Ok(None),
        Fact::Unknown { why } => Err(why.clone()),
    }
}

/// The server's own limit in seconds: a minute less than ours, so that it speaks first.
fn servers_limit(ours: Duration) -> NonZeroU32 {
    let length = ours.saturating_sub(Duration::from_secs(60)).as_secs();
    u32::try_from(length).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
mod tests {
    use super::is_same_user;

    #[test]
    fn a_user_is_the_same_in_any_case_and_on_either_side_of_the_domain() {
        for (one, other) in [
            ("pw@vsphere.local", "pw@vsphere.local"),
            ("VSPHERE.LOCAL\\Pw", "pw@vsphere.local"),
            ("CORP\\pw", "PW@corp.example.com"),
            ("root", "ROOT"),
            ("VSPHERE.LOCAL\\vpxd-extension-6f0e", "vsphere.local\\VPXD-extension-6F0E"),
            ("CORP\\first.last@mail", "corp\\First.Last@Mail"),
        ] {
            assert!(is_same_user(one, other) && is_same_user(other, one), "{one} {other}");
        }
        for (one, other) in [
            ("pw@vsphere.local", "pw2@vsphere.local"),
            ("pw@vsphere.local", "pw@vsphere.lan"),
            ("CORP\\pw", "pw@lab.example.com"),
            ("pw", "pw@vsphere.local"),
            ("CORP\\pw", "pw"),
            ("", "pw"),
        ] {
            assert!(!is_same_user(one, other) && !is_same_user(other, one), "{one} {other}");
        }
    }
}
