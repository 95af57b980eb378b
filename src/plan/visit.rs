//! The visit of one host: its steps, made from what is there now and what this visit remembers.

use serde::{Deserialize, Serialize};

use super::{HostPlan, Impact, Memory, Reboots, Step};
use crate::model::HostRecord;

/// One host's steps, made from what is there now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Visit {
    /// How much it disturbs.
    pub impact: Impact,
    /// The steps that are left, in order. Those after a [`Step::Reboot`] are an outlook: after the
    /// reboot, done or found done, the host is read again and the visit planned anew.
    pub steps: Vec<Step>,
    /// Reboots of the whole visit, done ones included.
    pub reboots: Reboots,
}

/// Why a visit is refused. The host is held; nothing more is sent to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
pub enum Refusal {
    /// The facts that the plan rests on changed.
    #[error("the host changed since the plan: expected {expected}, found {found}")]
    Stale {
        /// What the plan rests on.
        expected: String,
        /// What is there.
        found: String,
    },
    /// Something stands in the way.
    #[error("{0}")]
    Blocked(String),
    /// It would need more reboots than were approved.
    #[error("needs {needed} reboots, approved are {most}: {why}")]
    TooManyReboots {
        /// Reboots that would be needed, done ones included.
        needed: u32,
        /// The bound.
        most: u32,
        /// Why another one.
        why: String,
    },
    /// A reboot changed nothing of what was pending; it is never repeated.
    #[error("the reboot had no effect on: {}", pending.join("; "))]
    RebootWithoutEffect {
        /// What is still pending.
        pending: Vec<String>,
    },
    /// What decides could not be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
}

/// Plans one host's visit from any mid-state. Empty steps: nothing is left but to release it.
///
/// # Errors
/// [`Refusal`]: nothing more is sent to the host.
pub fn visit(host: &HostPlan, record: &HostRecord, memory: &Memory) -> Result<Visit, Refusal> {
    let _ = (host, record, memory);
    Err(Refusal::Blocked("not planned".to_owned()))
}
