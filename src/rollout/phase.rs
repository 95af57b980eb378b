//! The per-host machine: which event leads from which phase to which (DESIGN §6). Total: every
//! pair of phase and event has an answer, a phase or [`IllegalEvent`].

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Event, FailureClass, Held, LeftAs, Outcome, Stage, StepKind};
use crate::plan::Refusal;

/// Where the visit of a host stands.
///
/// ```text
///   Pending ──► Working{prechecking ► closing ► inMaintenance ► changing ◄► awaitingHandoff, rebooting ► verifying ► exiting} ──► Done
///      │            │  └────────────► Failed{at, class, error} ──► + left_as
///      ▼            ▼                 Left{at, left_as}              (a signal)
///    Held, Refused                    └──── VisitPlanned ────► Working again (resume)
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum HostPhase {
    /// Not begun.
    Pending,
    /// Nothing was done to it, and this is why.
    Held {
        /// Why.
        why: Held,
    },
    /// Nothing was done to it: it is not as the plan expects.
    Refused {
        /// What the plan rests on.
        expected: String,
        /// What is there.
        found: String,
    },
    /// Under way.
    Working {
        /// How far.
        stage: Stage,
    },
    /// A signal stopped the visit; it can be resumed.
    Left {
        /// How far it was.
        at: Stage,
        /// How the host stands.
        left_as: LeftAs,
    },
    /// The visit failed.
    Failed {
        /// How far it was.
        at: Stage,
        /// The class.
        class: FailureClass,
        /// What went wrong.
        error: String,
        /// How the host stands; none if the process ended before it could look.
        left_as: Option<LeftAs>,
    },
    /// Given back.
    Done {
        /// As what.
        outcome: Outcome,
    },
}

/// An event that cannot happen in this phase.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{event} cannot follow while the host is {phase}")]
pub struct IllegalEvent {
    /// The phase.
    pub phase: String,
    /// The event.
    pub event: &'static str,
}

impl HostPhase {
    /// The phase after this event.
    ///
    /// # Errors
    /// [`IllegalEvent`] if it cannot happen now; the phase then stays as it is.
    pub fn next(&self, event: &Event) -> Result<HostPhase, IllegalEvent> {
        let illegal = || Err(IllegalEvent { phase: self.to_string(), event: event.name() });
        let working = |stage| Ok(Self::Working { stage });
        match (self, event) {
            (
                _,
                Event::RunStarted { .. }
                | Event::RunResumed { .. }
                | Event::Signal { .. }
                | Event::Halted { .. }
                | Event::RunFinished { .. },
            ) => illegal(),

            // A visit begins, or is taken up again where it was.
            (Self::Pending | Self::Held { .. } | Self::Refused { .. }, Event::VisitPlanned { .. }) => {
                working(Stage::Prechecking)
            }
            (Self::Left { left_as, .. } | Self::Failed { left_as: Some(left_as), .. }, Event::VisitPlanned { .. })
                if left_as.is_clean() =>
            {
                working(Stage::Prechecking)
            }
            (
                Self::Working { stage: at } | Self::Left { at, .. } | Self::Failed { at, .. },
                Event::VisitPlanned { .. },
            ) => working(*at),

            // The budget is asked while the host is in service: it only waits.
            (Self::Working { .. } | Self::Left { .. }, Event::HostHeld { why: why @ Held::Budget { .. } }) => {
                Ok(Self::Held { why: why.clone() })
            }
            // Held before anything was done is Held; later it is a failure of the visit.
            (
                Self::Pending | Self::Held { .. } | Self::Refused { .. } | Self::Working { stage: Stage::Prechecking },
                Event::HostHeld { why },
            ) => Ok(match why {
                Held::Refused(Refusal::Stale { expected, found }) => {
                    Self::Refused { expected: expected.clone(), found: found.clone() }
                }
                other => Self::Held { why: other.clone() },
            }),
            (
                Self::Working { stage: at } | Self::Left { at, .. } | Self::Failed { at, .. },
                Event::HostHeld { why },
            ) => Ok(Self::Failed { at: *at, class: FailureClass::Refused, error: why.to_string(), left_as: None }),

            (Self::Working { stage }, Event::StepStarted { step, .. }) => {
                working(Stage::of(step.into()).unwrap_or(*stage))
            }
            (Self::Working { .. }, Event::HandoffAsked { .. }) => working(Stage::AwaitingHandoff),
            (Self::Working { .. }, Event::HandoffSeen { .. }) => working(Stage::Changing),
            // While it is waited for, or before the run goes on.
            (
                Self::Working { stage: Stage::AwaitingHandoff } | Self::Left { at: Stage::AwaitingHandoff, .. },
                Event::HandoffConfirmed,
            ) => Ok(self.clone()),
            (Self::Working { stage }, Event::StepDone { step, .. }) => {
                working(if *step == StepKind::EnterMaintenance { Stage::InMaintenance } else { *stage })
            }
            (Self::Working { stage }, Event::StepFailed { class, error, .. }) => {
                Ok(Self::Failed { at: *stage, class: *class, error: error.clone(), left_as: None })
            }
            (
                Self::Working { .. },
                Event::VisitReplanned { .. } | Event::TaskSeen { .. } | Event::NodeBlocked { .. },
            ) => Ok(self.clone()),

            // Something is done to it once more: how it was left is to be said anew.
            (Self::Failed { at, class, error, .. }, Event::Armed { .. }) => {
                Ok(Self::Failed { at: *at, class: *class, error: error.clone(), left_as: None })
            }

            // Putting back and clearing goes on after a failure, and in an abort.
            (
                Self::Working { .. } | Self::Left { .. } | Self::Failed { .. },
                Event::MarkerWritten { .. }
                | Event::NodeMarked { .. }
                | Event::NodeRecordoned { .. }
                | Event::PodsEnded { .. }
                | Event::NodeRenewed { .. }
                | Event::Armed { .. }
                | Event::GateRead { .. }
                | Event::Undone { .. }
                | Event::LeftAlone { .. }
                | Event::ShellLoginFailed { .. },
            )
            | (Self::Held { .. } | Self::Refused { .. } | Self::Pending, Event::MarkerWritten { .. }) => {
                Ok(self.clone())
            }

            // Found by its marker alone: a process that is gone left it, nobody knows how far it was.
            (Self::Pending, Event::HostLeft { left_as }) => {
                Ok(Self::Left { at: Stage::Prechecking, left_as: left_as.clone() })
            }
            (Self::Working { stage: at } | Self::Left { at, .. }, Event::HostLeft { left_as }) => {
                Ok(Self::Left { at: *at, left_as: left_as.clone() })
            }
            (Self::Failed { at, class, error, .. }, Event::HostLeft { left_as }) => {
                Ok(Self::Failed { at: *at, class: *class, error: error.clone(), left_as: Some(left_as.clone()) })
            }

            (
                Self::Pending
                | Self::Held { .. }
                | Self::Refused { .. }
                | Self::Working { .. }
                | Self::Left { .. }
                | Self::Failed { .. },
                Event::HostReleased { outcome },
            ) => Ok(Self::Done { outcome: *outcome }),

            (Self::Left { at: Stage::AwaitingHandoff, left_as }, Event::HandoffWithdrawn { .. }) => {
                Ok(Self::Left { at: Stage::InMaintenance, left_as: left_as.clone() })
            }
            // Asked for elsewhere, or not at all.
            (_, Event::HandoffConfirmed | Event::HandoffWithdrawn { .. }) => illegal(),

            (
                Self::Done { .. },
                Event::HostHeld { .. }
                | Event::VisitPlanned { .. }
                | Event::VisitReplanned { .. }
                | Event::MarkerWritten { .. }
                | Event::Armed { .. }
                | Event::Undone { .. }
                | Event::LeftAlone { .. }
                | Event::StepStarted { .. }
                | Event::TaskSeen { .. }
                | Event::StepDone { .. }
                | Event::StepFailed { .. }
                | Event::GateRead { .. }
                | Event::HandoffAsked { .. }
                | Event::HandoffSeen { .. }
                | Event::ShellLoginFailed { .. }
                | Event::NodeMarked { .. }
                | Event::NodeBlocked { .. }
                | Event::NodeRecordoned { .. }
                | Event::PodsEnded { .. }
                | Event::NodeRenewed { .. }
                | Event::HostLeft { .. }
                | Event::HostReleased { .. },
            )
            | (Self::Held { .. } | Self::Refused { .. }, Event::HostLeft { .. })
            | (
                Self::Pending | Self::Held { .. } | Self::Refused { .. },
                Event::VisitReplanned { .. }
                | Event::Armed { .. }
                | Event::Undone { .. }
                | Event::LeftAlone { .. }
                | Event::StepStarted { .. }
                | Event::TaskSeen { .. }
                | Event::StepDone { .. }
                | Event::StepFailed { .. }
                | Event::HandoffAsked { .. }
                | Event::HandoffSeen { .. }
                | Event::ShellLoginFailed { .. }
                | Event::NodeMarked { .. }
                | Event::NodeBlocked { .. }
                | Event::NodeRecordoned { .. }
                | Event::PodsEnded { .. }
                | Event::NodeRenewed { .. }
                | Event::GateRead { .. },
            )
            | (
                Self::Left { .. } | Self::Failed { .. },
                Event::VisitReplanned { .. }
                | Event::StepStarted { .. }
                | Event::TaskSeen { .. }
                | Event::StepDone { .. }
                | Event::StepFailed { .. }
                | Event::HandoffAsked { .. }
                | Event::HandoffSeen { .. }
                | Event::NodeBlocked { .. },
            ) => illegal(),
        }
    }

    /// Whether the host waits for its visit, or for the end of one.
    pub fn is_open(&self) -> bool {
        !matches!(self, Self::Done { .. })
    }
}

impl fmt::Display for HostPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pending => f.write_str("pending"),
            Self::Held { .. } => f.write_str("held"),
            Self::Refused { .. } => f.write_str("refused"),
            Self::Working { stage } => stage.fmt(f),
            Self::Left { at, .. } => write!(f, "left while {at}"),
            Self::Failed { at, class, .. } => write!(f, "{class} while {at}"),
            Self::Done { outcome: Outcome::Converged } => f.write_str("done"),
            Self::Done { outcome: Outcome::AlreadyConverged } => f.write_str("as it should be"),
            Self::Done { outcome: Outcome::AsItWas } => f.write_str("as it was"),
            Self::Done { outcome: Outcome::GivenUp } => f.write_str("given up"),
        }
    }
}

impl Event {
    /// The name of the event, as in the journal.
    pub fn name(&self) -> &'static str {
        match self {
            Self::RunStarted { .. } => "RunStarted",
            Self::RunResumed { .. } => "RunResumed",
            Self::HostHeld { .. } => "HostHeld",
            Self::VisitPlanned { .. } => "VisitPlanned",
            Self::VisitReplanned { .. } => "VisitReplanned",
            Self::MarkerWritten { .. } => "MarkerWritten",
            Self::Armed { .. } => "Armed",
            Self::Undone { .. } => "Undone",
            Self::LeftAlone { .. } => "LeftAlone",
            Self::StepStarted { .. } => "StepStarted",
            Self::TaskSeen { .. } => "TaskSeen",
            Self::StepDone { .. } => "StepDone",
            Self::StepFailed { .. } => "StepFailed",
            Self::HandoffAsked { .. } => "HandoffAsked",
            Self::HandoffConfirmed => "HandoffConfirmed",
            Self::HandoffSeen { .. } => "HandoffSeen",
            Self::HandoffWithdrawn { .. } => "HandoffWithdrawn",
            Self::ShellLoginFailed { .. } => "ShellLoginFailed",
            Self::GateRead { .. } => "GateRead",
            Self::NodeMarked { .. } => "NodeMarked",
            Self::NodeBlocked { .. } => "NodeBlocked",
            Self::NodeRecordoned { .. } => "NodeRecordoned",
            Self::PodsEnded { .. } => "PodsEnded",
            Self::NodeRenewed { .. } => "NodeRenewed",
            Self::Signal { .. } => "Signal",
            Self::HostLeft { .. } => "HostLeft",
            Self::HostReleased { .. } => "HostReleased",
            Self::Halted { .. } => "Halted",
            Self::RunFinished { .. } => "RunFinished",
        }
    }
}
