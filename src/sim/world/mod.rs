//! The world itself: its state, made from a document, behind one lock, with a clock.
//!
//! ```text
//!   World document ──build──► State ──┐
//!   FILE.state ──────store──► State ──┴► World (shared): clock, lock, change signal, log, snapshot
//! ```
//!
//! Knows how the state is made, kept and compared; not how it behaves (`behaviour`) nor how anybody
//! talks to it (`soap`).

mod build;
mod build_guest;
mod build_host;
mod build_vm;
pub(in crate::sim) mod device;
mod error;
pub(in crate::sim) mod guest;
mod handle;
pub(in crate::sim) mod shell;
mod snapshot;
pub(in crate::sim) mod state;
mod store;
pub(in crate::sim) mod task;
pub(in crate::sim) mod vm;

pub(in crate::sim) use build::uuid;
pub use error::WorldError;
pub use handle::World;
pub use snapshot::{HostTally, NodeTally, Tally, VmTally};
pub use state::Write;
