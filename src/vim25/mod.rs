//! The client of vCenter's SOAP interface, vim25.
//!
//! ```text
//!   wire (pure) ──► transport ──► session ──► Client: calls, inventory, tasks
//! ```
//!
//! It knows hosts, tasks and properties as vim25 has them; it does not know profiles, plans, or
//! which host should be what.

pub mod wire;
