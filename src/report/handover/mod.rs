//! The hand-over: what a person needs to bring a host that was left to its end without this program.
//!
//! ```text
//!   HostState ─► Standing ─► order: what is left, in order ─► by_hand: clicks, lines to paste, what shows it
//!   HostPlan  ─┘ (names,                                          │
//!                 Jobs, modes)                                     ▼
//!                                                     Handover ─► JSON | text
//! ```
//!
//! A host that is not changed is given back as it was; one that is changed goes forward to the end. Knows
//! neither how a run goes on by itself (`run`) nor what a terminal looks like.

mod by_hand;
mod card;
mod order;
mod paste;
mod standing;
mod text;

pub use by_hand::ByHand;
pub(super) use card::blocked;
pub use card::{Handover, Owner, Way, handovers};
