//! Faults of vim25 as the simulator answers them.

use crate::vim25::wire::Node;

/// A fault: its type, its own fields, and the sentence of `localizedMessage`.
#[derive(Debug, Clone)]
pub(in crate::sim) struct VimFault {
    /// Wire type, `InvalidState`.
    pub kind: String,
    /// Fields in the order of the wire.
    pub fields: Vec<Node>,
    /// The sentence.
    pub message: String,
}

impl VimFault {
    /// A fault of this type, with the sentence that vCenter has for it.
    pub fn named(kind: &str) -> Self {
        let message = match kind {
            "InvalidState" => "The operation is not allowed in the current state.",
            "InvalidLogin" => "Cannot complete login due to an incorrect user name or password.",
            "NotAuthenticated" => "The session is not authenticated.",
            "NoPermission" => "Permission to perform this operation was denied.",
            "TaskInProgress" => "Another task is already in progress.",
            "Timedout" => "Operation timed out.",
            "RequestCanceled" => "The task was canceled by a user.",
            "HostNotConnected" => "Unable to communicate with the remote host, since it is disconnected.",
            "HostNotReachable" => {
                "Unable to communicate with the remote host, since it is either not responding or not accessible."
            }
            "HostConfigFault" => "The operation failed, the host's configuration was not changed.",
            "NotSupported" => "The operation is not supported on the object.",
            "InsufficientGraphicsResourcesFault" => {
                "The amount of graphics resource available in the parent resource pool is insufficient for the operation."
            }
            "InsufficientMemoryResourcesFault" => {
                "The host does not have sufficient memory resources to satisfy the reservation."
            }
            "InsufficientFailoverResourcesFault" => {
                "Insufficient resources to satisfy configured failover level for vSphere HA."
            }
            "NoCompatibleHost" => "No host is compatible with the virtual machine.",
            "DrsDisabledOnVm" => "DRS is disabled on the virtual machine.",
            "ToolsUnavailable" => {
                "Cannot complete operation because VMware Tools is not running in this virtual machine."
            }
            "InvalidPowerState" => "The attempted operation cannot be performed in the current state.",
            "InvalidCollectorVersion" => "The version that was given is not one of this collector.",
            _ => "A general system error occurred.",
        };
        Self { kind: kind.to_owned(), fields: Vec::new(), message: message.to_owned() }
    }

    /// With another sentence.
    #[must_use]
    pub fn saying(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// With one more field.
    #[must_use]
    pub fn with(mut self, field: Node) -> Self {
        self.fields.push(field);
        self
    }

    /// `InvalidArgument` for this property.
    pub fn argument(property: &str) -> Self {
        Self::named("InvalidArgument")
            .saying("A specified parameter was not correct.")
            .with(Node::leaf("invalidProperty", property))
    }

    /// `InvalidRequest`: the request does not have the shape of its method.
    pub fn request(what: impl Into<String>) -> Self {
        Self::named("InvalidRequest").saying(what)
    }

    /// `InvalidProperty` for this path.
    pub fn property(path: &str) -> Self {
        Self::named("InvalidProperty")
            .saying(format!("The property '{path}' is not known."))
            .with(Node::leaf("name", path))
    }

    /// `ManagedObjectNotFound`.
    pub fn gone(kind: &str, id: &str) -> Self {
        Self::named("ManagedObjectNotFound")
            .saying("The object has already been deleted or has not been completely created.")
            .with(Node::reference("obj", kind, id))
    }

    /// `TaskInProgress` of this task.
    pub fn task_in_progress(task: u64) -> Self {
        Self::named("TaskInProgress").with(Node::reference("task", "Task", &format!("task-{task}")))
    }

    /// `HostConfigFault` as `PlatformConfigFault`, with the platform's own text.
    pub fn platform(text: &str) -> Self {
        Self::named("PlatformConfigFault").saying(text).with(Node::leaf("text", text))
    }
}
