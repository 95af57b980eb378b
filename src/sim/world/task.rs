//! Tasks.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// `TaskInfo.state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::sim) enum TaskState {
    Queued,
    Running,
    Success,
    Error,
}

impl TaskState {
    /// As vim25 writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Success => "success",
            Self::Error => "error",
        }
    }

    /// Whether it will change again.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Running)
    }
}

/// A task on a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sim) struct Task {
    /// `HostSystem.enterMaintenanceMode`.
    pub what: String,
    /// The host's number.
    pub host: u32,
    pub user: String,
    pub state: TaskState,
    pub progress: Option<u32>,
    pub cancelable: bool,
    pub cancelled: bool,
    /// Name of the fault it ended with.
    pub fault: Option<String>,
    /// The fault that it is going to end with instead of success.
    pub doomed: Option<String>,
    /// It never ends by itself.
    pub hangs: bool,
    /// It ends well and changes nothing.
    pub hollow: bool,
    pub queued_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
    /// When it can no longer be read.
    pub forgotten_at: Option<Timestamp>,
}

impl Task {
    pub const ENTER: &str = "HostSystem.enterMaintenanceMode";
    pub const EXIT: &str = "HostSystem.exitMaintenanceMode";
    pub const REBOOT: &str = "HostSystem.reboot";
    pub const RECONNECT: &str = "HostSystem.reconnect";
}
