//! The client of vCenter's SOAP interface, vim25.
//!
//! ```text
//!   Client ── calls, inventory, tasks
//!     │ session   one login, kept alive, renewed once, closed at the end
//!     ▼
//!   transport ── one request, one answer, one deadline ──► base::net
//!     │
//!   wire (pure) ── calls as values, trees, decoders
//! ```
//!
//! It knows hosts, VMs, tasks and properties as vim25 has them; it does not know profiles, plans, or
//! which host should be what. A caller who writes reads first and after: a void answer says stored,
//! a task says started, an [`Error`] says by [`Error::may_have_acted`] whether to look.

mod client;
mod error;
mod hosts;
mod inventory;
mod service;
mod tasks;
mod transport;
mod vms;
pub mod wire;

pub use client::Client;
pub use error::Error;
pub use inventory::{Retrieved, Scope};
pub use service::About;
pub use tasks::{Cancel, TaskEnd, TaskProgress, Waited};
pub use wire::decode::CustomField;
pub use wire::{ApiVersion, Fault, ObjectContent, PassthruEntry, PropertySet, TaskInfo, TaskState};
