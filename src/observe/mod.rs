//! Observation: what a site's vCenter shows of its hosts, partial, dated, with the gaps kept.
//!
//! ```text
//!   Site + Network ──connect──► Fleet ──roster──► Roster     names and paths (tree)
//!                                 │
//!                                 └──facts, host, vm, cluster──► Observed, HostRecord, VmRecord, ClusterView
//!                                      paths    what is read, and what "left out" means
//!                                      host     HostSystem ──► view, references
//!                                      vm       VirtualMachine ──► view, its folder
//!                                      facts    follows the references: VMs, tasks, datastores, services, packages
//!                                      folders  follows folders of VMs up to the root
//!                                      cluster  ClusterComputeResource ──► view
//!
//!   Site.shell ──► Shells ──► Fleet    who logs in where, by which host keys; a login that fails is the last
//! ```
//!
//! Every field of a view is known, absent or unknown with the reason; a host that can't be read is a
//! fault beside the others. It judges nothing: what a gap means is the planner's business. Knows
//! no profile, and changes nothing.

mod cluster;
mod facts;
mod fleet;
mod folders;
mod guests;
mod host;
mod paths;
mod shells;
mod tree;
mod vm;

#[cfg(test)]
mod tests;

pub use fleet::{ConnectError, Fleet};
pub use guests::{Guests, NoGuest};
pub use shells::{NoShell, Shells, ShellsError};
