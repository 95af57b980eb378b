//! What people and machines read: plans, fleets, runs and findings as text and as JSON. Pure.
//!
//! ```text
//!   Plan, Observed, Finding, RunState ──► Paper (lines of Text in tones, tables) ──render──► String
//!                                     └─► JSON of the same values
//! ```
//!
//! Knows no terminal and no clock: whether there is colour, how wide a line is, and what time it is,
//! are arguments.

mod again;
pub mod catalog;
mod event;
mod findings;
mod fleet;
mod handover;
mod live;
mod paper;
mod plan;
mod run;
mod vms;
pub mod words;

pub use again::{Again, quoted};
pub use event::event;
pub use findings::{findings, tone as severity_tone};
pub use fleet::fleet;
pub use handover::{ByHand, Handover, Owner, Way, handovers};
pub use live::{Live, waited_for};
pub use paper::{Paper, Table, Text, Tone};
pub use plan::{plan, summary};
pub use run::{commands, run, run_summary};
