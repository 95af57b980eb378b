//! The rollout: an approved plan in, changed hosts and a journal out.
//!
//! ```text
//!   Plan ──► per host, one at a time:
//!              facts ─► budget ─► marker free? ─► visit() ─► VisitPlanned ─► marker
//!                ─► step by step: StepStarted (synced) ─► fresh read, check ─► effect ─► wait ─► verify ─► StepDone
//!                ─► gate ─► leave maintenance ─► marker cleared ─► HostReleased
//!
//!   event ──► journal (file) ──► fold ──► RunState ──► exit code, summary, resume
//!     └─────► phase (per host, total)
//!   markers ──► Memory: resume without a journal
//! ```
//!
//! Knows neither profiles nor the catalogue: it is given a plan and a fleet. It never chooses a mode
//! or an order; it refuses where the planner refuses.

mod abort;
mod around;
mod budget;
mod dir;
mod drain;
mod effect;
mod engine;
mod error;
mod event;
mod exit;
mod free;
mod handoff;
mod interrupt;
pub mod journal;
mod kinds;
mod mark;
mod marker;
mod node_gate;
mod nodes;
mod patience;
mod phase;
mod record;
mod release;
mod renewed;
mod run;
mod shell;
mod state;
mod step;
mod undo;
mod verify;
mod visit;
mod vms;

pub use dir::{Reach, RunDir, Spent, StateDir, StateError};
pub use engine::{Engine, abort, apply, apply_into, confirm, give_up, resume, resume_from_live, retry, status};
pub use error::RunError;
pub use event::{
    Compensation, Entry, Event, FailureClass, Header, How, Outcome, Resumed, RunOutcome, SeenFacts, Signal,
};
pub use exit::Exit;
pub use handoff::{Confirm, Handoff, handoff};
pub use interrupt::{Interrupt, Raise, interrupt};
pub use kinds::{Held, LeftAs, Stage, StepKind};
pub use phase::{HostPhase, IllegalEvent};
pub use record::{Sink, Waiting};
pub use state::{
    Asked, Blocked, ClosedNode, EndedPod, FoldError, HostState, Recordoned, RunState, Running, Stood, WhyClosed, fold,
};

use crate::base::cause::chain;
