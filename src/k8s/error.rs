//! What can go wrong with a call, and what that means for its effect.

use std::fmt;
use std::time::Duration;

use super::credential::CredentialError;
use crate::base::net::NetError;

/// Why a call did not give a result. Each names the cluster: a run has several.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No answer.
    #[error("cannot {call} on guest cluster {cluster}")]
    Net {
        /// The cluster.
        cluster: String,
        /// What was tried, in words.
        call: Box<str>,
        /// Why.
        #[source]
        source: NetError,
    },
    /// There is no token to send: nothing was sent.
    #[error("cannot {call} on guest cluster {cluster}")]
    Credential {
        /// The cluster.
        cluster: String,
        /// What was tried.
        call: Box<str>,
        /// Why.
        #[source]
        source: CredentialError,
    },
    /// The server does not know us: the token or certificate is wrong or has expired.
    #[error(
        "cannot {call}: guest cluster {cluster} does not accept our credential (HTTP 401); it is wrong or has expired"
    )]
    Unauthorized {
        /// The cluster.
        cluster: String,
        /// What was tried.
        call: Box<str>,
    },
    /// The server forbids it, and does not say that it is ready: it may not know yet who may do what.
    #[error("cannot {call}: guest cluster {cluster} is not ready")]
    NotReady {
        /// The cluster.
        cluster: String,
        /// What was tried.
        call: Box<str>,
        /// What it said.
        #[source]
        denied: Box<Error>,
    },
    /// The server refused, or failed.
    #[error("cannot {call} on guest cluster {cluster}")]
    Refused {
        /// The cluster.
        cluster: String,
        /// What was tried.
        call: Box<str>,
        /// What the server says.
        #[source]
        refusal: Box<Refusal>,
    },
    /// The server sends us elsewhere. That is not followed: trust was given to this server.
    #[error(
        "guest cluster {cluster} redirects to {location}: redirects are not followed, write the right address into the kubeconfig"
    )]
    Redirected {
        /// The cluster.
        cluster: String,
        /// Where to.
        location: String,
    },
    /// An answer that was not understood: something in between, or no Kubernetes.
    #[error("cannot {call} on guest cluster {cluster}: the answer was not understood ({what})")]
    Decode {
        /// The cluster.
        cluster: String,
        /// What was tried.
        call: Box<str>,
        /// What is wrong with it.
        what: String,
    },
    /// The server took a write, and what it then shows is not what was written.
    #[error("guest cluster {cluster} answered the request to {call}, but {found}")]
    NotTaken {
        /// The cluster.
        cluster: String,
        /// What was tried.
        call: Box<str>,
        /// What it shows.
        found: String,
    },
    /// A request that cannot be made of what was given: nothing was sent.
    #[error("cannot {call} on guest cluster {cluster}: {problem}")]
    Unsendable {
        /// The cluster.
        cluster: String,
        /// What was tried.
        call: Box<str>,
        /// Why not.
        problem: String,
    },
}

/// A `Status` with which an API server refuses, or what something in between says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status.
    pub code: u16,
    /// The reason, `Forbidden`; empty if it gives none.
    pub reason: String,
    /// What it says to people.
    pub message: String,
    /// When to ask again, if it says so.
    pub after: Option<Duration>,
    /// Its causes: reason and message.
    pub causes: Vec<(String, String)>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message.is_empty() {
            true => write!(f, "it says nothing (HTTP {})", self.code),
            false => write!(f, "{} (HTTP {})", self.message, self.code),
        }
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    /// Whether one of its causes has this reason.
    pub(super) fn cause(&self, reason: &str) -> Option<&str> {
        self.causes.iter().find(|(of, _)| of == reason).map(|(_, message)| message.as_str())
    }
}

impl Error {
    /// Whether the call may have had an effect all the same. Then read before anything is concluded.
    pub fn may_have_acted(&self) -> bool {
        match self {
            Self::Net { source, .. } => !source.not_sent(),
            // Admission may have acted, and so may a server that then ran out of time.
            Self::Refused { refusal, .. } => refusal.code >= 500 || refusal.code == 408,
            Self::Decode { .. } | Self::NotTaken { .. } => true,
            Self::Credential { .. }
            | Self::NotReady { .. }
            | Self::Unauthorized { .. }
            | Self::Redirected { .. }
            | Self::Unsendable { .. } => false,
        }
    }

    /// Whether the same call may succeed later. For a write this says nothing about repeating it: see
    /// [`Error::may_have_acted`].
    pub fn is_retriable(&self) -> bool {
        match self {
            Self::Net { source, .. } => {
                matches!(source, NetError::Connect { .. } | NetError::Broken { .. } | NetError::Deadline { .. })
            }
            // Request timeout, too many requests, and whatever a server says while its etcd elects a
            // leader or while it starts (500 too: "etcdserver: leader changed").
            Self::Refused { refusal, .. } => matches!(refusal.code, 408 | 429 | 500 | 502 | 503 | 504),
            Self::NotReady { .. } => true,
            _ => false,
        }
    }

    /// What the server says, if it refused.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal),
            _ => None,
        }
    }

    pub(super) fn is_code(&self, code: u16) -> bool {
        self.refusal().is_some_and(|refusal| refusal.code == code)
    }
}
