//! What a step finds before its effect, and what proves it afterwards.

use crate::model::{HostView, MoRef};

use super::{HostPlan, Memory, Step};

/// What a step found, just before its effect, from fresh facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// Its goal is reached already; nothing is sent.
    AlreadyDone {
        /// What was read, one line each.
        evidence: Vec<String>,
    },
    /// What it expects is there.
    Ready,
    /// Its effect is under way: wait for it, start nothing.
    InFlight {
        /// The server's task; none if the host is down and no task is left to follow.
        task: Option<MoRef>,
    },
    /// Something else is there. Nothing is sent.
    Refused {
        /// What the step expects.
        expected: String,
        /// What was read.
        found: String,
    },
}

/// Whether a step's goal is reached, from fresh facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verify {
    /// Reached.
    Reached {
        /// What was read, one line each.
        evidence: Vec<String>,
    },
    /// Not yet: read again until the step's deadline, then plan the visit anew.
    NotYet {
        /// What is waited for, one line each.
        waiting_for: Vec<String>,
    },
}

impl Step {
    /// Compares the live host with what the step expects.
    pub fn check(&self, host: &HostPlan, view: &HostView, memory: &Memory) -> Check {
        let _ = (host, view, memory);
        Check::Refused { expected: String::new(), found: String::new() }
    }

    /// Whether the step's goal is reached. `memory` is that of after [`Memory::started`].
    pub fn verify(&self, host: &HostPlan, view: &HostView, memory: &Memory) -> Verify {
        let _ = (host, view, memory);
        Verify::NotYet { waiting_for: Vec::new() }
    }
}
