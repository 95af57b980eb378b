//! What can go wrong with a call, and what that means for its effect.

use super::wire::names::{fault, method};
use super::wire::{DecodeError, Fault};
use crate::base::net::NetError;
use crate::model::MoRef;

/// Why a call did not give a result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No answer.
    #[error("cannot {}", tried(call))]
    Net {
        /// Method.
        call: &'static str,
        /// Why.
        #[source]
        source: NetError,
    },
    /// An answer that is not SOAP: something in between, or a server that starts.
    #[error("cannot {}: {authority} answered with HTTP status {status}{}", tried(call), quoted(says))]
    Http {
        /// Method.
        call: &'static str,
        /// Who.
        authority: String,
        /// HTTP status.
        status: u16,
        /// First words of what it says.
        says: String,
    },
    /// The server sends us elsewhere. That is not followed: trust was given to this server.
    #[error("{authority} redirects to {location}: redirects are not followed, write the right address into the Site")]
    Redirected {
        /// Who.
        authority: String,
        /// Where to.
        location: String,
    },
    /// The server refused, or failed.
    #[error("cannot {} on {object}", tried(call))]
    Fault {
        /// Method.
        call: &'static str,
        /// On what it was called.
        object: MoRef,
        /// What the server says.
        #[source]
        fault: Box<Fault>,
    },
    /// An answer that was not understood.
    #[error("cannot {}: the answer was not understood", tried(call))]
    Decode {
        /// Method.
        call: &'static str,
        /// Why.
        #[source]
        source: DecodeError,
    },
    /// Wrong user or password. Never tried again: three wrong ones lock accounts.
    #[error("{authority} refuses the login of {user}")]
    LoginRefused {
        /// Who.
        authority: String,
        /// For whom.
        user: String,
        /// What the server says.
        #[source]
        fault: Box<Fault>,
    },
    /// The session had ended, so the server refused the call and did nothing. A new one is open: read
    /// again what the call rests on, then make it again.
    #[error("cannot {}: the session on {authority} had ended; logged in again", tried(call))]
    SessionRenewed {
        /// Method.
        call: &'static str,
        /// Who.
        authority: String,
    },
    /// The server refuses the session even just after a new login.
    #[error("cannot {}: log in to {authority}: it refuses the session even just after a new login", tried(call))]
    SessionRefused {
        /// Method.
        call: &'static str,
        /// Who.
        authority: String,
    },
    /// We logged out.
    #[error("cannot {}: the session on {authority} was closed", tried(call))]
    Closed {
        /// Method.
        call: &'static str,
        /// Who.
        authority: String,
    },
    /// Not a vCenter.
    #[error("{authority} is no vCenter but {found}")]
    NotVcenter {
        /// Who.
        authority: String,
        /// What it says that it is.
        found: String,
    },
    /// Another vCenter than the pinned one.
    #[error("{authority} is another vCenter: its instance UUID is {found}, expected is {expected}")]
    OtherVcenter {
        /// Who.
        authority: String,
        /// The pin.
        expected: String,
        /// What it says.
        found: String,
    },
    /// Something that the server's version does not have.
    #[error("{what} needs vim25 {needs}, {authority} speaks {speaks}")]
    TooOld {
        /// Who.
        authority: String,
        /// What.
        what: &'static str,
        /// The version that has it.
        needs: String,
        /// The negotiated version.
        speaks: String,
    },
}

impl Error {
    /// Whether the call may have had an effect all the same. Then read before anything is concluded.
    pub fn may_have_acted(&self) -> bool {
        match self {
            Self::Net { source, .. } => !source.not_sent(),
            // A proxy may answer after the server began to act.
            Self::Http { status, .. } => *status >= 500 || *status == 408,
            Self::Fault { fault, .. } => !REFUSED.contains(&fault.kind.as_str()),
            Self::Decode { .. } => true,
            Self::Redirected { .. }
            | Self::LoginRefused { .. }
            | Self::SessionRenewed { .. }
            | Self::SessionRefused { .. }
            | Self::Closed { .. }
            | Self::NotVcenter { .. }
            | Self::OtherVcenter { .. }
            | Self::TooOld { .. } => false,
        }
    }

    /// Whether the same call may succeed later. For a write this says nothing about repeating it:
    /// see [`Error::may_have_acted`].
    pub fn is_retriable(&self) -> bool {
        match self {
            Self::Net { source, .. } => {
                matches!(source, NetError::Connect { .. } | NetError::Broken { .. } | NetError::Deadline { .. })
            }
            // Request timeout, too many requests, and what gateways say while vpxd restarts.
            Self::Http { status, .. } => matches!(status, 408 | 429 | 502 | 503 | 504),
            Self::SessionRenewed { .. } => true,
            _ => false,
        }
    }

    /// The fault, if it is one.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Fault { fault, .. } | Self::LoginRefused { fault, .. } => Some(fault),
            _ => None,
        }
    }

    /// Whether it is a fault of this type.
    pub fn is_fault(&self, kind: &str) -> bool {
        self.fault().is_some_and(|fault| fault.kind == kind)
    }
}

/// Faults with which a server refuses before it does anything. Any other may come from half way.
const REFUSED: [&str; 12] = [
    fault::NOT_AUTHENTICATED,
    fault::NO_PERMISSION,
    fault::INVALID_STATE,
    fault::INVALID_ARGUMENT,
    fault::INVALID_REQUEST,
    fault::METHOD_NOT_FOUND,
    fault::INVALID_PROPERTY,
    fault::MANAGED_OBJECT_NOT_FOUND,
    fault::TASK_IN_PROGRESS,
    fault::NOT_SUPPORTED,
    fault::DUPLICATE_NAME,
    fault::INVALID_NAME,
];

fn quoted(says: &str) -> String {
    if says.is_empty() { String::new() } else { format!(" and says \"{says}\"") }
}

/// What a call tries to do, in the words of the field.
fn tried(call: &str) -> &str {
    match call {
        method::LOGIN => "log in",
        method::LOGOUT => "log out",
        method::RETRIEVE_SERVICE_CONTENT => "ask what the server is",
        method::CURRENT_TIME => "ask for the time",
        method::ENTER_MAINTENANCE => "enter maintenance mode",
        method::EXIT_MAINTENANCE => "exit maintenance mode",
        method::REBOOT_HOST => "reboot",
        method::UPDATE_GRAPHICS_CONFIG => "change the graphics configuration",
        method::UPDATE_PASSTHRU_CONFIG => "change the passthrough configuration",
        method::REFRESH_GRAPHICS_MANAGER => "refresh the graphics state",
        method::REFRESH => "refresh the passthrough state",
        method::FETCH_SOFTWARE_PACKAGES => "read the installed packages",
        method::CREATE_CONTAINER_VIEW | method::RETRIEVE_PROPERTIES_EX | method::CONTINUE_RETRIEVE_PROPERTIES_EX => {
            "read the inventory"
        }
        method::CREATE_FILTER | method::WAIT_FOR_UPDATES_EX => "wait for changes",
        method::CREATE_COLLECTOR_FOR_TASKS | method::READ_NEXT_TASKS => "read past tasks",
        method::ADD_CUSTOM_FIELD_DEF => "define a custom field",
        method::SET_FIELD => "set a custom field",
        method::CANCEL_TASK => "cancel the task",
        method::LOG_USER_EVENT => "write an event",
        VERSIONS => "ask which versions of vim25 it speaks",
        other => other,
    }
}

/// The name under which the request for the versions appears in errors.
pub(super) const VERSIONS: &str = "vimServiceVersions";
