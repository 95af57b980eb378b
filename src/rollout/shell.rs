//! The shell of a host in a visit: one login, kept; read just before a step that needs it; what was
//! changed to get there is put back on every way out.

use std::time::Duration;

use super::run::{Deadline, Run};
use super::step::Attempt;
use super::visit::view_of;
use super::{Compensation, Event, FailureClass, How, RunError, StepKind, chain};
use crate::model::{Fact, HostRecord, HostView, MigKind, PciAddress, ShellView, ShellWay};
use crate::observe::NoShell;
use crate::plan::{Check, HostPlan, SSH_SERVICE, Step};
use crate::shell::{Command, Output, Shell, ShellError, read_gpus};
use crate::vim25::wire::names::fault;

/// Between two tries at a GPU that somebody uses: a `nvidia-smi` of somebody else ends within seconds.
const IN_USE: Duration = Duration::from_secs(30);
/// Between two looks at a service that starts or stops.
const LOOK: Duration = Duration::from_secs(5);
/// A line of `nvidia-smi` that says why a switch waits is shown up to this many letters.
const SHOWN: usize = 200;

impl Run<'_> {
    /// Reads the host as this step needs it: with what its shell shows, if it is asked there. The inner
    /// error is final: time does not cure it.
    pub(super) async fn read_for(
        &mut self,
        host: &HostPlan,
        step: &Step,
    ) -> Result<Result<HostRecord, String>, RunError> {
        // Which VMs may be stopped or moved, the pool may say by their nodes.
        let closes = matches!(step, Step::StartClosing { .. } | Step::EnterMaintenance { .. });
        let mut record = match closes && !host.guests.is_empty() {
            true => self.read_all(host).await.0,
            false => self.read(host).await,
        };
        // Where MIG was switched through the shell, the gate asks it, too.
        let gate =
            matches!(step, Step::VerifyHost) && host.shell == ShellWay::Direct && self.state_of(host).memory.shell;
        if !step.is_at_shell() && !gate {
            return Ok(Ok(record));
        }
        let Ok(view) = &mut record.view else { return Ok(Ok(record)) };
        view.shell = match self.look(host, view).await? {
            Ok(shell) => shell,
            Err(why) if gate => Fact::unknown(why),
            Err(why) => return Ok(Err(why)),
        };
        Ok(Ok(record))
    }

    /// What the shell shows now; the inner error is final.
    async fn look(&mut self, host: &HostPlan, view: &HostView) -> Result<Result<Fact<ShellView>, String>, RunError> {
        if ssh_runs(view) != Some(true) {
            return Ok(Ok(Fact::unknown("the SSH service of the host does not run")));
        }
        // A session that was kept may have ended meanwhile: then a new one is tried, once.
        for _ in 0..2 {
            let kept = self.shells.contains_key(&host.host.name);
            let shell = match self.session(host).await? {
                Ok(shell) => shell,
                Err((true, why)) => return Ok(Err(why)),
                Err((false, why)) => return Ok(Ok(Fact::unknown(why))),
            };
            match Box::pin(read_gpus(shell)).await {
                Ok(seen) => return Ok(Ok(Fact::Known(seen))),
                Err(error) => {
                    self.hang_up(host);
                    if !kept {
                        return Ok(Ok(Fact::unknown(chain(&error))));
                    }
                }
            }
        }
        Ok(Ok(Fact::unknown("the SSH connection breaks again and again")))
    }

    /// The login to this host, kept or new; an error with whether it is final. The fleet tries no second one where
    /// one has failed.
    async fn session(&mut self, host: &HostPlan) -> Result<Result<&Shell, (bool, String)>, RunError> {
        let name = &host.host.name;
        if !self.shells.contains_key(name) {
            match Box::pin(self.fleet.open_shell(name)).await {
                Ok(shell) => {
                    self.shells.insert(name.clone(), shell);
                }
                Err(error) => {
                    let why = chain(&error);
                    let ends = matches!(&error, NoShell::Shell(error) if error.ends_shell_use());
                    if ends {
                        self.rec.host(name, Event::ShellLoginFailed { error: why.clone() })?;
                    }
                    return Ok(Err((ends || is_final(&error), why)));
                }
            }
        }
        match self.shells.get(name) {
            Some(shell) => Ok(Ok(shell)),
            None => unreachable!("a session of {name} was just kept"),
        }
    }

    /// Forgets the session: the host reboots, or it broke.
    pub(super) fn hang_up(&mut self, host: &HostPlan) {
        drop(self.shells.remove(&host.host.name));
    }

    /// Runs one command. What it did is unknown after an error.
    async fn run_command(&mut self, host: &HostPlan, command: Command) -> Result<Result<Output, String>, RunError> {
        let ran = match self.session(host).await? {
            Ok(shell) => Box::pin(shell.run(command)).await,
            Err((_, why)) => return Ok(Err(why)),
        };
        if ran.is_err() {
            self.hang_up(host);
        }
        Ok(ran.map_err(|error: ShellError| chain(&error)))
    }

    /// Arms the SSH service and the daemon, if they are as somebody else wants them.
    pub(super) async fn arm_shell(&mut self, host: &HostPlan, step: &Step) -> Result<(), RunError> {
        match step {
            Step::StartShell => {
                let record = self.read(host).await;
                if view_of(&record).is_ok_and(|view| ssh_runs(view) == Some(false)) {
                    self.arm_one(host, Compensation::Ssh)?;
                }
            }
            Step::StopMonitor => {
                if let Ok(record) = self.read_for(host, step).await?
                    && monitor_runs(&record) == Some(true)
                {
                    self.arm_one(host, Compensation::Monitor)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Does a step at the shell. What it says proves nothing: it is verified afterwards.
    pub(super) async fn at_shell(
        &mut self,
        host: &HostPlan,
        step: &Step,
        view: &HostView,
        deadline: Deadline,
    ) -> Result<Attempt, RunError> {
        match step {
            Step::StartShell => self.start_ssh(host, view).await,
            Step::StopMonitor if !self.is_armed(host, &Compensation::Monitor) => {
                let why = "whether the monitoring daemon ran could not be read before".to_owned();
                Ok(Attempt::Failed(FailureClass::Unknown, why))
            }
            Step::StopMonitor => self.daemon(host, Command::StopMonitor).await,
            Step::StartMonitor => self.daemon(host, Command::StartMonitor).await,
            Step::SetMig { gpus, on, kind, .. } => self.switch(host, step, gpus, *on, *kind, deadline).await,
            other => unreachable!("{other} is not done at the shell"),
        }
    }

    async fn start_ssh(&mut self, host: &HostPlan, view: &HostView) -> Result<Attempt, RunError> {
        if ssh_runs(view) == Some(true) {
            // The login is what is missing.
            return Ok(Attempt::Sent(How::Did));
        }
        let Fact::Known(system) = &view.service_system else {
            return Ok(Attempt::Failed(FailureClass::Refused, "the host shows no service system".to_owned()));
        };
        if !self.is_armed(host, &Compensation::Ssh) {
            let why = "the SSH service was stopped while it was looked at".to_owned();
            return Ok(Attempt::Failed(FailureClass::Unknown, why));
        }
        match Box::pin(self.vcenter().start_service(system, SSH_SERVICE)).await {
            Ok(()) => Ok(Attempt::Sent(How::Did)),
            // It runs already, and not by us.
            Err(error) if error.is_fault(fault::INVALID_STATE) => {
                let found = "somebody else started it".to_owned();
                self.rec.host(&host.host.name, Event::LeftAlone { comp: Compensation::Ssh, found })?;
                Ok(Attempt::Sent(How::Already))
            }
            Err(error) if error.may_have_acted() => Ok(Attempt::Sent(How::Did)),
            Err(error) if error.is_retriable() => Ok(Attempt::Again(FailureClass::Unknown, chain(&error))),
            Err(error) => Ok(Attempt::Failed(FailureClass::Fault, chain(&error))),
        }
    }

    async fn daemon(&mut self, host: &HostPlan, command: Command) -> Result<Attempt, RunError> {
        Ok(match self.run_command(host, command).await? {
            Ok(said) => {
                self.said = Some(shown(&said));
                Attempt::Sent(How::Did)
            }
            Err(why) => Attempt::Again(FailureClass::Unknown, why),
        })
    }

    /// Switches MIG of each GPU. One that somebody uses is tried again while time is left, if it can be
    /// seen that they are gone or cannot be seen who they are.
    async fn switch(
        &mut self,
        host: &HostPlan,
        step: &Step,
        gpus: &[PciAddress],
        on: bool,
        kind: MigKind,
        deadline: Deadline,
    ) -> Result<Attempt, RunError> {
        loop {
            let record = match self.read_for(host, step).await? {
                Ok(record) => record,
                Err(why) => return Ok(Attempt::Failed(FailureClass::Refused, why)),
            };
            let view = match view_of(&record) {
                Ok(view) => view,
                Err(why) => return Ok(Attempt::Again(FailureClass::Unknown, why)),
            };
            let mut used_by = self.users(host, view, gpus).await?;
            if used_by.is_none() {
                let mut said = Vec::new();
                for gpu in gpus {
                    match self.run_command(host, Command::SetMig { gpu: *gpu, on }).await? {
                        Ok(output) => said.push(shown(&output)),
                        // Whether it acted is to be seen.
                        Err(why) => return Ok(Attempt::Again(FailureClass::Unknown, why)),
                    }
                }
                let in_use = said.iter().find(|said| said.to_lowercase().contains("in use")).cloned();
                self.said = Some(said.join("; "));
                Box::pin(self.refresh(host, view)).await;
                match in_use {
                    // It waits for the reboot, whoever uses the GPU.
                    Some(_) if kind == MigKind::Board => return Ok(Attempt::Sent(How::Did)),
                    None => return Ok(Attempt::Sent(How::Did)),
                    Some(said) => {
                        let record = self.read_for(host, step).await?.ok();
                        if let Some(Ok(view)) = record.as_ref().map(view_of)
                            && let Check::AlreadyDone { evidence } = step.check(host, view, &self.memory_of(host))
                        {
                            return Ok(Attempt::Done(How::Did, evidence));
                        }
                        let daemon = record.as_ref().and_then(monitor_runs) == Some(true);
                        let who = if daemon { DAEMON } else { "a program that nvidia-smi does not name" };
                        used_by = Some(format!("{who} ({said})"));
                    }
                }
            }
            let who = used_by.unwrap_or_default();
            let why = format!("GPUs are in use by {who}");
            if deadline.passed() {
                return Ok(Attempt::Failed(FailureClass::Refused, why));
            }
            self.tell(host, Some(StepKind::from(step)), &[format!("{why}, to be gone")], deadline, None);
            tokio::time::sleep(IN_USE).await;
        }
    }

    /// Who uses the GPUs, as far as it can be seen. The daemon that this visit stopped and that runs
    /// again is stopped again.
    async fn users(
        &mut self,
        host: &HostPlan,
        view: &HostView,
        gpus: &[PciAddress],
    ) -> Result<Option<String>, RunError> {
        let active = view.graphics_active.known().into_iter().flatten();
        let vms: Vec<String> = active
            .filter(|state| gpus.contains(&state.address))
            .flat_map(|state| state.vms.iter())
            .map(|vm| vm.id.clone())
            .collect();
        if !vms.is_empty() {
            return Ok(Some(format!("the VMs {}", vms.join(", "))));
        }
        let runs = view.shell.known().and_then(|shell| shell.monitor.known()) == Some(&true);
        if !runs {
            return Ok(None);
        }
        if self.is_armed(host, &Compensation::Monitor) {
            self.run_command(host, Command::StopMonitor).await?.ok();
            let record = self.read_for(host, &Step::StopMonitor).await?.ok();
            if record.as_ref().and_then(monitor_runs) == Some(false) {
                return Ok(None);
            }
        }
        Ok(Some(DAEMON.to_owned()))
    }

    /// The daemon and the SSH service as they were: on every way out, where they still have the value
    /// that we set. What cannot be put back stays armed, and is said.
    pub(super) async fn put_back(&mut self, host: &HostPlan) -> Result<Vec<String>, RunError> {
        let mut notes = Vec::new();
        if self.is_armed(host, &Compensation::Monitor) {
            notes.extend(self.restart_daemon(host).await?);
        }
        if self.is_armed(host, &Compensation::Ssh) {
            notes.extend(self.stop_ssh(host).await?);
        }
        self.hang_up(host);
        Ok(notes)
    }

    async fn restart_daemon(&mut self, host: &HostPlan) -> Result<Option<String>, RunError> {
        let comp = Compensation::Monitor;
        let event = match self.daemon_now(host).await? {
            // By a reboot, or by somebody: as it was before.
            Ok(Some(true)) => Event::Undone { comp },
            Ok(None) => Event::LeftAlone { comp, found: "not installed any more".to_owned() },
            Ok(Some(false)) => {
                let ran = self.run_command(host, Command::StartMonitor).await?;
                match (self.daemon_now(host).await?, ran) {
                    (Ok(Some(true)), _) => Event::Undone { comp },
                    (_, Err(why)) | (Err(why), _) => return Ok(Some(format!("{DAEMON} was not started again: {why}"))),
                    (Ok(_), Ok(said)) => {
                        return Ok(Some(format!("{DAEMON} was not started again: {}", shown(&said))));
                    }
                }
            }
            Err(why) => return Ok(Some(format!("{DAEMON} was not started again: {why}"))),
        };
        self.rec.host(&host.host.name, event)?;
        Ok(None)
    }

    /// Whether the daemon runs; none where it is not installed.
    async fn daemon_now(&mut self, host: &HostPlan) -> Result<Result<Option<bool>, String>, RunError> {
        let record = match self.read_for(host, &Step::StartMonitor).await? {
            Ok(record) => record,
            Err(why) => return Ok(Err(why)),
        };
        let view = match view_of(&record) {
            Ok(view) => view,
            Err(why) => return Ok(Err(why)),
        };
        Ok(match &view.shell {
            Fact::Known(ShellView { monitor: Fact::Known(runs), .. }) => Ok(Some(*runs)),
            Fact::Known(ShellView { monitor: Fact::Absent, .. }) => Ok(None),
            Fact::Known(ShellView { monitor: Fact::Unknown { why }, .. }) | Fact::Unknown { why } => Err(why.clone()),
            Fact::Absent => Err("nobody is logged in".to_owned()),
        })
    }

    async fn stop_ssh(&mut self, host: &HostPlan) -> Result<Option<String>, RunError> {
        let comp = Compensation::Ssh;
        let name = &host.host.name;
        self.hang_up(host);
        let deadline = Deadline::of(Duration::from_secs(self.pace.read_back_s.into()));
        let mut sent = false;
        loop {
            let record = self.read(host).await;
            let seen = view_of(&record).map(|view| (ssh_runs(view), view.service_system.known()));
            let why = match seen {
                // By us, or by a reboot: as it was before.
                Ok((Some(false), _)) => {
                    self.rec.host(name, Event::Undone { comp })?;
                    return Ok(None);
                }
                // Asked again at each look: stopping what is stopped harms nobody.
                Ok((Some(true), Some(system))) => {
                    let stopped = Box::pin(self.vcenter().stop_service(system, SSH_SERVICE)).await;
                    let first = !std::mem::replace(&mut sent, true);
                    match stopped {
                        Ok(()) if first => continue,
                        Ok(()) => format!("the service {SSH_SERVICE} still runs"),
                        Err(error) => chain(&error),
                    }
                }
                Ok((Some(true), None)) => "the host shows no service system".to_owned(),
                Ok((None, _)) => "its services cannot be read".to_owned(),
                Err(unread) => unread,
            };
            if deadline.passed() {
                return Ok(Some(format!("the SSH service was not stopped again: {why}")));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn is_armed(&self, host: &HostPlan, comp: &Compensation) -> bool {
        self.state_of(host).armed.contains(comp)
    }
}

const DAEMON: &str = "the NVIDIA monitoring daemon";

/// Whether another try cannot end otherwise: what is wrong is ours to set right.
fn is_final(error: &NoShell) -> bool {
    match error {
        NoShell::NoUser { .. } | NoShell::Ended { .. } => true,
        NoShell::Shell(error) => {
            matches!(error, ShellError::NoPin { .. } | ShellError::HostKey { .. } | ShellError::UserKey { .. })
        }
        _ => false,
    }
}

/// Whether the SSH service runs; none if that cannot be read.
fn ssh_runs(view: &HostView) -> Option<bool> {
    let services = view.services.known()?;
    services.iter().find(|service| service.key == SSH_SERVICE).map(|service| service.running)
}

fn monitor_runs(record: &HostRecord) -> Option<bool> {
    view_of(record).ok()?.shell.known()?.monitor.known().copied()
}

/// What a command said, on one line.
fn shown(output: &Output) -> String {
    let said = [output.stdout.trim(), output.stderr.trim()].join(" ");
    let clean = |letter: char| if letter.is_control() { ' ' } else { letter };
    let line: String = said.trim().chars().map(clean).take(SHOWN).collect();
    if line.is_empty() { format!("nothing ({:?})", output.end) } else { line }
}
