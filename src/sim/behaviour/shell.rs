//! The shell of a host: its services, who gets in, the monitoring daemon.

use std::time::Duration;

use super::Moment;
use super::moment::{NewWrite, later};
use crate::sim::document::{Lockdown, Monitor, ServicePolicy};
use crate::sim::fault::VimFault;
use crate::sim::world::shell::{Failures, SSH};

/// Wrong logins that lock an account (DESIGN §3, honesty rule 6), and for how long: the default of
/// `Security.AccountUnlockTime`.
const LOCKS_AFTER: u32 = 3;
const LOCKED_FOR: Duration = Duration::from_secs(15 * 60);

/// By what somebody proves who they are.
#[derive(Debug)]
pub(in crate::sim) enum Proof<'a> {
    Password(&'a str),
    /// A public key in OpenSSH's format, without a comment; that they hold it was checked.
    Key(&'a str),
}

/// What a command printed, and how it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::sim) struct Printed {
    pub stdout: String,
    pub stderr: String,
    pub code: u32,
}

impl Printed {
    /// Something on standard output.
    pub fn out(text: impl Into<String>, code: u32) -> Self {
        Self { stdout: text.into(), code, ..Self::default() }
    }

    /// As ESXi's shell says that there is no such program.
    pub fn not_found(program: &str) -> Self {
        Self { stderr: format!("sh: {program}: not found\n"), code: 127, ..Self::default() }
    }
}

impl Moment<'_> {
    /// The number of the host of this name, which is no matter of case.
    pub fn host_named(&self, name: &str) -> Option<u32> {
        let mut hosts = self.state.hosts.iter();
        hosts.find(|(_, host)| host.name.eq_ignore_ascii_case(name)).map(|(number, _)| *number)
    }

    /// A login by SSH. Wrong ones count, and are in the world's log.
    pub fn ssh_login(&mut self, number: u32, user: &str, proof: &Proof<'_>) -> bool {
        let time = self.state.time;
        let Some(host) = self.state.hosts.get_mut(&number) else { return false };
        let known = match proof {
            Proof::Password(password) => {
                host.shell.users.iter().any(|known| known.name == user && known.password == *password)
            }
            Proof::Key(key) => host.shell.knows_key(user, key),
        };
        let failures = host.shell.failures.entry(user.to_owned()).or_default();
        if failures.locked_until.is_some_and(|until| until <= time) {
            *failures = Failures::default();
        }
        // The right password does not open an account that is locked, nor a host that is locked down.
        let locked = failures.locked_until.is_some();
        if known && !locked && host.shell.lockdown == Lockdown::Off {
            *failures = Failures::default();
            return true;
        }
        // A key that is not known is no try: clients offer what they have. Lockdown refuses before the
        // password is looked at.
        if matches!(proof, Proof::Password(_)) && host.shell.lockdown == Lockdown::Off {
            failures.count += 1;
            if failures.count >= LOCKS_AFTER {
                failures.locked_until = Some(later(time, LOCKED_FOR));
            }
        }
        let (name, id) = (host.name.clone(), format!("host-{number}"));
        let arguments = if known { "locked" } else { "wrong" }.to_owned();
        self.wrote(NewWrite { who: user, object: &name, id: &id, call: "SshLogin", arguments, effect: false });
        false
    }

    /// `StartService` and `StopService` (vsphere-gpu §1.10). Sessions that are open stay open.
    pub fn run_service(&mut self, number: u32, id: &str, run: bool) -> Result<(), VimFault> {
        self.connected(number)?;
        let host = self.host(number)?;
        if id != SSH {
            return Err(VimFault::named("NotFound"));
        }
        if host.shell.ssh_running == run {
            return Err(VimFault::named("InvalidState"));
        }
        host.shell.ssh_running = run;
        self.changed = true;
        Ok(())
    }

    /// `UpdateServicePolicy`.
    pub fn service_policy(&mut self, number: u32, id: &str, policy: &str) -> Result<(), VimFault> {
        self.connected(number)?;
        let host = self.host(number)?;
        if id != SSH {
            return Err(VimFault::named("NotFound"));
        }
        host.shell.ssh_policy = match policy {
            "on" => ServicePolicy::On,
            "automatic" => ServicePolicy::Automatic,
            "off" => ServicePolicy::Off,
            _ => return Err(VimFault::argument("policy")),
        };
        self.changed = true;
        Ok(())
    }

    /// Runs a program at the shell of a host, whichever way somebody came there; `hollow`: it lies about
    /// what it does.
    pub fn at_the_shell(&mut self, number: u32, words: &[&str], who: &str, hollow: bool) -> Printed {
        let Some((program, arguments)) = words.split_first() else { return Printed::default() };
        match (program.rsplit('/').next().unwrap_or(program), arguments) {
            ("nvidia-smi", arguments) => self.nvidia_smi(number, arguments, who, hollow),
            ("nvdGpuMgmtDaemon", [verb]) => self.monitor_daemon(number, verb, who, hollow),
            _ => Printed::not_found(program),
        }
    }

    /// `/etc/init.d/nvdGpuMgmtDaemon VERB` (gpu-catalog HOST-10; what it prints is unverified).
    fn monitor_daemon(&mut self, number: u32, verb: &str, who: &str, hollow: bool) -> Printed {
        let Some(host) = self.state.hosts.get_mut(&number) else { return Printed::default() };
        if host.driver.is_none() || host.shell.monitor == Monitor::Absent {
            return Printed::not_found("/etc/init.d/nvdGpuMgmtDaemon");
        }
        let (to, said) = match verb {
            "start" => (Monitor::Running, "nvdGpuMgmtDaemon started\n"),
            "stop" => (Monitor::Stopped, "nvdGpuMgmtDaemon stopped\n"),
            "status" if host.shell.monitor == Monitor::Running => {
                return Printed::out("nvdGpuMgmtDaemon is running\n", 0);
            }
            "status" => return Printed::out("nvdGpuMgmtDaemon is not running\n", 3),
            _ => return Printed::out("usage: nvdGpuMgmtDaemon {start|stop|restart|status}\n", 1),
        };
        let name = host.name.clone();
        if !hollow {
            host.shell.monitor = to;
        }
        self.did(number, &name, who, "nvdGpuMgmtDaemon", verb.to_owned(), !hollow);
        Printed::out(said, 0)
    }

    /// Lists a command that changes something.
    pub(super) fn did(&mut self, number: u32, host: &str, who: &str, call: &str, arguments: String, effect: bool) {
        let id = format!("host-{number}");
        self.wrote(NewWrite { who, object: host, id: &id, call, arguments, effect });
        if effect {
            self.count_call(call, host);
        }
        self.changed = true;
    }
}
