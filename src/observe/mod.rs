//! Observation: what a site's vCenter shows of its hosts, partial, dated, with the gaps kept.
//!
//! ```text
//!   Site + Network ──connect──► Fleet ──roster──► Roster     names and paths (tree)
//!                                 │
//!                                 └──facts, host──► Observed, HostRecord
//!                                      paths   what is read, and what "left out" means
//!                                      host    HostSystem ──► view, references
//!                                      vm      VirtualMachine ──► view
//!                                      facts   follows the references: VMs, tasks, datastores, packages
//! ```
//!
//! Every field of a view is known, absent or unknown with the reason; a host that can't be read is a
//! fault beside the others. It judges nothing: what a gap means is the planner's business. Knows
//! no profile, and changes nothing.

mod facts;
mod fleet;
mod host;
mod paths;
mod tree;
mod vm;

#[cfg(test)]
mod tests;

pub use fleet::{ConnectError, Fleet};
