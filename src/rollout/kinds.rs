//! Words that the journal, the phase and the summary share.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Compensation;
use crate::model::{MarkerPhase, NodeRef, RunId};
use crate::plan::{Refusal, Step};

/// A step without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StepKind {
    /// Ask for maintenance mode.
    StartClosing,
    /// Cordon a node.
    CordonNode,
    /// Drain a node.
    DrainNode,
    /// Shut down a guest.
    StopVm,
    /// Enter maintenance mode.
    EnterMaintenance,
    /// Write passthrough.
    SetPassthrough,
    /// Write the graphics configuration.
    SetGraphics,
    /// Log in to the shell.
    StartShell,
    /// Stop the monitoring daemon.
    StopMonitor,
    /// Switch MIG.
    SetMig,
    /// Start the monitoring daemon.
    StartMonitor,
    /// Reboot.
    Reboot,
    /// The host gate.
    VerifyHost,
    /// Leave maintenance mode.
    ExitMaintenance,
    /// Power a VM on again.
    StartVm,
    /// Wait for a node to be back.
    AwaitNode,
    /// Run the validation on a node.
    ValidateNode,
    /// Uncordon a node.
    UncordonNode,
}

impl From<&Step> for StepKind {
    fn from(step: &Step) -> Self {
        match step {
            Step::StartClosing { .. } => Self::StartClosing,
            Step::StopVm { .. } => Self::StopVm,
            Step::EnterMaintenance { .. } => Self::EnterMaintenance,
            Step::SetPassthrough { .. } => Self::SetPassthrough,
            Step::SetGraphics { .. } => Self::SetGraphics,
            Step::StartShell => Self::StartShell,
            Step::StopMonitor => Self::StopMonitor,
            Step::SetMig { .. } => Self::SetMig,
            Step::StartMonitor => Self::StartMonitor,
            Step::Reboot { .. } => Self::Reboot,
            Step::VerifyHost => Self::VerifyHost,
            Step::ExitMaintenance => Self::ExitMaintenance,
            Step::StartVm { .. } => Self::StartVm,
            Step::CordonNode { .. } => Self::CordonNode,
            Step::DrainNode { .. } => Self::DrainNode,
            Step::AwaitNode { .. } => Self::AwaitNode,
            Step::ValidateNode { .. } => Self::ValidateNode,
            Step::UncordonNode { .. } => Self::UncordonNode,
        }
    }
}

impl fmt::Display for StepKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::StartClosing => "begin to enter maintenance mode",
            Self::StopVm => "stop a VM",
            Self::EnterMaintenance => "enter maintenance mode",
            Self::SetPassthrough => "set passthrough",
            Self::SetGraphics => "set graphics",
            Self::StartShell => "log in to the shell",
            Self::StopMonitor => "stop the monitoring daemon",
            Self::SetMig => "switch MIG",
            Self::StartMonitor => "start the monitoring daemon",
            Self::Reboot => "reboot",
            Self::VerifyHost => "verify the host",
            Self::ExitMaintenance => "leave maintenance mode",
            Self::StartVm => "start a VM",
            Self::CordonNode => "cordon a node",
            Self::DrainNode => "drain a node",
            Self::AwaitNode => "wait for a node",
            Self::ValidateNode => "validate a node",
            Self::UncordonNode => "uncordon a node",
        })
    }
}

impl StepKind {
    /// Steps in a row, those of one kind that follow each other with their number: `cordon 2 nodes, reboot`.
    pub fn in_words(steps: &[Step]) -> String {
        let runs = steps.chunk_by(|one, other| Self::from(one) == Self::from(other));
        let words: Vec<String> = runs.filter_map(|run| Some(Self::from(run.first()?).times(run.len()))).collect();
        if words.is_empty() { "nothing to do".to_owned() } else { words.join(", ") }
    }

    fn times(self, number: usize) -> String {
        let once = self.to_string();
        if number == 1 {
            return once;
        }
        match once.split_once(" a ") {
            Some((does, noun)) => format!("{does} {number} {noun}s"),
            None => format!("{number} x {once}"),
        }
    }
}

/// How far a visit is: the phase of its running step (DESIGN §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    /// Facts are read and the marker is written.
    Prechecking,
    /// Nodes are cordoned.
    CordoningNodes,
    /// Nodes are drained.
    DrainingNodes,
    /// Entering maintenance.
    ClosingHost,
    /// VMs are shut down on the host that closes.
    StoppingVms,
    /// In maintenance; nothing is written yet.
    InMaintenance,
    /// Modes are written.
    Changing,
    /// A person is asked to switch MIG.
    AwaitingHandoff,
    /// Rebooting.
    Rebooting,
    /// At the host gate.
    VerifyingHost,
    /// Leaving maintenance.
    ExitingMaintenance,
    /// The VMs that were stopped are started again.
    StartingVms,
    /// Nodes are waited for.
    AwaitingNodes,
    /// Jobs run on nodes.
    ValidatingNodes,
    /// Nodes are uncordoned.
    UncordoningNodes,
}

impl Stage {
    /// The stage in which this step runs; none for one that leaves the stage as it is.
    pub fn of(step: StepKind) -> Option<Self> {
        Some(match step {
            // Before the host closes, after a reboot, around a switch: they change no mode.
            StepKind::StartShell | StepKind::StopMonitor | StepKind::StartMonitor => return None,
            StepKind::StartClosing | StepKind::EnterMaintenance => Self::ClosingHost,
            StepKind::StopVm => Self::StoppingVms,
            StepKind::SetPassthrough | StepKind::SetGraphics | StepKind::SetMig => Self::Changing,
            StepKind::Reboot => Self::Rebooting,
            StepKind::VerifyHost => Self::VerifyingHost,
            StepKind::ExitMaintenance => Self::ExitingMaintenance,
            StepKind::StartVm => Self::StartingVms,
            StepKind::CordonNode => Self::CordoningNodes,
            StepKind::DrainNode => Self::DrainingNodes,
            StepKind::AwaitNode => Self::AwaitingNodes,
            StepKind::ValidateNode => Self::ValidatingNodes,
            StepKind::UncordonNode => Self::UncordoningNodes,
        })
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Prechecking => "prechecking",
            Self::CordoningNodes => "cordoning nodes",
            Self::DrainingNodes => "draining nodes",
            Self::ClosingHost => "closing",
            Self::StoppingVms => "stopping VMs",
            Self::InMaintenance => "in maintenance",
            Self::Changing => "changing",
            Self::AwaitingHandoff => "waiting for a person",
            Self::Rebooting => "rebooting",
            Self::VerifyingHost => "verifying",
            Self::ExitingMaintenance => "leaving maintenance",
            Self::StartingVms => "starting VMs",
            Self::AwaitingNodes => "waiting for nodes",
            Self::ValidatingNodes => "validating nodes",
            Self::UncordoningNodes => "uncordoning nodes",
        })
    }
}

/// Why a host is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
pub enum Held {
    /// The planner refused the visit; a refusal of class *stale* concerns the plan's own facts.
    #[error("{0}")]
    Refused(Refusal),
    /// Another run has its marker on the host; its age does not matter.
    #[error("another run ({run}) has marked the host")]
    ForeignMarker {
        /// Which.
        run: RunId,
    },
    /// Another process works on the same run: it wrote the marker after us. Nothing more is sent, and
    /// its marker is left alone.
    #[error("another process works on this run: it marked the host {phase} at {at:.0}")]
    OtherProcess {
        /// What it wrote.
        phase: MarkerPhase,
        /// When, by the server's clock.
        at: Timestamp,
    },
    /// The marker on the host could not be understood: it counts as another run's.
    #[error("the host carries a marker that cannot be read: {why}")]
    UnreadableMarker {
        /// Why.
        why: String,
    },
    /// Our marker could not be written, or did not read back as written.
    #[error("the marker could not be written: {why}")]
    MarkerNotWritten {
        /// Why.
        why: String,
    },
    /// Too many hosts of the pool are out of service.
    #[error("{} of pool {pool} out of service ({}), allowed {most}", down.len(), down.join(", "))]
    Budget {
        /// The pool.
        pool: String,
        /// `maxUnavailable`.
        most: u32,
        /// Hosts that are out of service, each with its cause.
        down: Vec<String>,
    },
    /// Somebody else acts on the host: took it into maintenance, out of it, or works on it now.
    #[error("{what}")]
    Taken {
        /// A sentence: what, who and when, as far as it can be known.
        what: String,
    },
    /// The marker says that the visit failed, and the journal that says why is gone. It is never taken
    /// up by itself.
    #[error("its visit failed before; the journal that says why is gone")]
    FailedBefore,
}

/// How a host was left when its visit stopped before the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftAs {
    /// Whether it is in maintenance mode; none if that could not be read.
    pub maintenance: Option<bool>,
    /// What is configured and waits for a reboot, one line each.
    pub pending: Vec<String>,
    /// Whether our marker is still on it.
    pub marker: bool,
    /// Side settings that are not put back.
    pub uncompensated: Vec<Compensation>,
    /// Nodes with our mark on them that are not cordoned: somebody opened them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opened: Vec<NodeRef>,
    /// What else is to be known: what could not be read, what runs on the server.
    pub notes: Vec<String>,
    /// When it was looked at, by our clock.
    pub at: Timestamp,
}

impl LeftAs {
    /// Whether nothing of ours is left on the host.
    pub fn is_clean(&self) -> bool {
        !self.marker && self.uncompensated.is_empty()
    }
}
