//! The shell of a host: who may log in, and what runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The ESXi shell of a host over SSH.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Shell {
    /// Users of the host itself. The passwords are no secrets: they open nothing but this world.
    pub users: Vec<ShellUser>,
    /// Lockdown mode: but for `off` nobody logs in by SSH.
    pub lockdown: Lockdown,
    /// The SSH service (`TSM-SSH`).
    pub ssh: SshService,
    /// What its host key is made from; none: its name. Another text is another key, as after a new
    /// installation.
    pub host_key: Option<String>,
    /// NVIDIA's monitoring daemon, on a host that has the driver.
    pub monitor: Monitor,
}

/// A user of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellUser {
    /// Name, `root`.
    pub name: String,
    /// Password.
    pub password: String,
    /// Public keys in OpenSSH's format that open the account, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
}

/// `config.lockdownMode`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Lockdown {
    /// Not locked down.
    #[default]
    Off,
    /// Only through vCenter, and on the console.
    Normal,
    /// Only through vCenter.
    Strict,
}

/// The SSH service of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SshService {
    /// Whether it runs when the world begins.
    pub running: bool,
    /// Whether it starts with the host.
    pub policy: ServicePolicy,
}

/// When a service starts by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ServicePolicy {
    /// With the host.
    On,
    /// With the host, if its ports are open.
    Automatic,
    /// Never: somebody starts it.
    #[default]
    Off,
}

/// NVIDIA's monitoring daemon on a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Monitor {
    /// It runs, and keeps the GPUs in use.
    #[default]
    Running,
    /// It is installed and does not run until the next boot.
    Stopped,
    /// It is not installed.
    Absent,
}
