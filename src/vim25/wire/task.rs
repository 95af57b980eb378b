//! `TaskInfo`.

use jiff::Timestamp;

use super::decode::{DecodeError, boolean, parsed, reference, required, text, timestamp};
use super::fault::Fault;
use super::tree::Node;
use crate::model::MoRef;

/// State of a task; a state that we do not know is not an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskState {
    /// Waits.
    Queued,
    /// Runs.
    Running,
    /// Ended well.
    Success,
    /// Ended in a fault.
    Error,
    /// Another.
    Other(String),
}

impl From<&str> for TaskState {
    fn from(text: &str) -> Self {
        match text {
            "queued" => Self::Queued,
            "running" => Self::Running,
            "success" => Self::Success,
            "error" => Self::Error,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl TaskState {
    /// Whether it ended.
    pub fn ended(&self) -> bool {
        matches!(self, Self::Success | Self::Error)
    }
}

/// A task as the server describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskInfo {
    /// Its reference: what one attaches to again.
    pub task: MoRef,
    /// `descriptionId`, `HostSystem.enterMaintenanceMode`.
    pub what: String,
    /// What it works on.
    pub entity: Option<MoRef>,
    /// State.
    pub state: TaskState,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// Whether it can be cancelled.
    pub cancelable: bool,
    /// Percent, while it runs.
    pub progress: Option<u32>,
    /// Why it failed.
    pub error: Option<Fault>,
    /// Who started it, if a user did (`TaskReasonUser`).
    pub user: Option<String>,
    /// When it was queued.
    pub queued_at: Option<Timestamp>,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
}

impl TaskInfo {
    /// Decodes a `TaskInfo`. Only what says which task it is and in what state must be readable.
    ///
    /// # Errors
    /// If `task` or `state` is missing.
    pub fn decode(node: &Node) -> Result<Self, DecodeError> {
        let flag = |name| node.get(name).is_some_and(|child| boolean(child).unwrap_or(false));
        let time = |name| node.get(name).and_then(|child| timestamp(child).ok());
        Ok(Self {
            task: reference(required(node, "task")?)?,
            what: node.text_of("descriptionId").unwrap_or_default().to_owned(),
            entity: node.get("entity").and_then(|child| reference(child).ok()),
            state: text(node, "state")?.as_str().into(),
            cancelled: flag("cancelled"),
            cancelable: flag("cancelable"),
            progress: node.get("progress").and_then(|child| parsed(child).ok()),
            error: node.get("error").map(Fault::of_localized),
            user: node
                .get("reason")
                .filter(|reason| reason.type_name() == Some("TaskReasonUser"))
                .and_then(|reason| reason.text_of("userName"))
                .map(str::to_owned),
            queued_at: time("queueTime"),
            completed_at: time("completeTime"),
        })
    }
}
