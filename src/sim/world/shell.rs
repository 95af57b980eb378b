//! The state of a host's shell.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::sim::document::{Lockdown, Monitor, ServicePolicy, Shell as ShellSpec, ShellUser};

/// The key of the SSH service among a host's services.
pub(in crate::sim) const SSH: &str = "TSM-SSH";

/// The shell of a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sim) struct Shell {
    pub users: Vec<ShellUser>,
    pub lockdown: Lockdown,
    pub ssh_running: bool,
    pub ssh_policy: ServicePolicy,
    pub monitor: Monitor,
    /// What its host key is made from.
    pub key: [u8; 32],
    /// Wrong logins by user.
    pub failures: BTreeMap<String, Failures>,
}

/// Wrong logins of a user since the last right one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::sim) struct Failures {
    pub count: u32,
    pub locked_until: Option<Timestamp>,
}

impl Shell {
    /// The shell of this host as the document has it.
    pub fn of(spec: &ShellSpec, host: &str) -> Self {
        let of = spec.host_key.as_deref().unwrap_or_default();
        Self {
            users: spec.users.clone(),
            lockdown: spec.lockdown,
            ssh_running: spec.ssh.running,
            ssh_policy: spec.ssh.policy,
            monitor: spec.monitor,
            key: Sha256::digest(format!("host key {host} {of}")).into(),
            failures: BTreeMap::new(),
        }
    }

    /// Whether this public key opens the account of a user.
    pub fn knows_key(&self, user: &str, key: &str) -> bool {
        let mut users = self.users.iter().filter(|known| known.name == user);
        users.any(|known| known.keys.iter().any(|known| same_key(known, key)))
    }

    /// The host has booted: services start that start with it.
    pub fn boots(&mut self) {
        self.ssh_running = self.ssh_policy != ServicePolicy::Off;
        if self.monitor == Monitor::Stopped {
            self.monitor = Monitor::Running;
        }
        self.failures.clear();
    }
}

/// Kind and key; comments do not count.
fn same_key(one: &str, other: &str) -> bool {
    one.split_whitespace().take(2).eq(other.split_whitespace().take(2))
}
