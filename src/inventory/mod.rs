//! The inventory: kind `Site`, a vCenter and how to reach it. Pure.
//!
//! ```text
//!   Site ─ vcenter ─┬ address       host, or host and port; HTTPS always
//!                   ├ instanceUuid  the pin: another vCenter behind the address is refused
//!                   ├ trust         system | caFile | thumbprint (SHA-256)
//!                   └ credentials   by reference only: env:, file:, exec:
//!          shell ── by SSH (users, host keys) or by a person: for MIG
//!          guests ─ guest clusters whose nodes run on the hosts: a name, a kubeconfig by reference
//!          pace     how long to look before a state counts
//! ```
//!
//! Knows no network, no secret (a reference is resolved by `base::secret` just before the login)
//! and no pool.

#[macro_use]
mod endpoint;
mod guest;
mod shell;
mod site;

#[cfg(test)]
mod tests;

pub use endpoint::{
    Address, AddressError, CredentialRef, CredentialRefError, InstanceUuid, Thumbprint, ThumbprintError,
};
pub use guest::Guest;
pub use shell::{HostKey, HostKeys, Shell, ShellUser};
pub use site::{Credentials, Pace, Site, Trust, Vcenter, Wait, read, schema};
