//! Tasks.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::sim::fault::VimFault;
use crate::vim25::wire::Node;

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

/// What a task ends with instead of success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sim) struct Failure {
    /// Wire type of the fault.
    pub kind: String,
    /// Its sentence, where it is not the usual one.
    pub message: Option<String>,
    /// Fields that its type requires, as texts.
    pub fields: Vec<(String, String)>,
}

impl Failure {
    /// A fault of this type with its usual sentence.
    pub fn of(kind: &str) -> Self {
        Self { kind: kind.to_owned(), message: None, fields: Vec::new() }
    }

    /// With another sentence.
    #[must_use]
    pub fn saying(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// With a field.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.fields.push((name.to_owned(), value.to_string()));
        self
    }

    /// As the wire has it.
    pub fn fault(&self) -> VimFault {
        let fault = VimFault::named(&self.kind);
        let fault = self.message.iter().fold(fault, |fault, message| fault.saying(message));
        self.fields.iter().fold(fault, |fault, (name, value)| fault.with(Node::leaf(name, value)))
    }
}

/// A task on a host or a VM.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sim) struct Task {
    /// `HostSystem.enterMaintenanceMode`.
    pub what: String,
    /// The host's number; of a VM's task that of its host when the task began.
    pub host: u32,
    /// The VM, if it is a task on one.
    pub vm: Option<u32>,
    /// Who started it; empty: the system.
    pub user: String,
    pub state: TaskState,
    pub progress: Option<u32>,
    pub cancelable: bool,
    pub cancelled: bool,
    /// What it ended with.
    pub fault: Option<Failure>,
    /// What it is going to end with instead of success.
    pub doomed: Option<Failure>,
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
    pub const POWER_ON: &str = "VirtualMachine.powerOn";
    pub const POWER_OFF: &str = "VirtualMachine.powerOff";
    pub const RECONFIGURE: &str = "VirtualMachine.reconfigure";
    pub const RELOCATE: &str = "VirtualMachine.relocate";
    /// A vMotion that DRS decided on.
    pub const DRS_MOVE: &str = "Drm.ExecuteVMotionLRO";

    /// Whether DRS started it, of one of these kinds.
    pub fn by_drs(&self, kinds: &[&str]) -> bool {
        self.user.is_empty() && self.vm.is_some() && kinds.contains(&self.what.as_str())
    }
}
