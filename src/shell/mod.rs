//! The shell of an ESXi host over SSH: for MIG, which vSphere has no call for.
//!
//! ```text
//!   known_hosts ─► pins ─┐
//!   nvidia: Command ─────┤ text without a word of anybody else's
//!                        ▼
//!   Dial ──► Shell: host key = pin │ one login │ command, its deadline, its kill time ──► Output
//!                                                                                            │
//!   nvidia: Output ──► model::ShellView, every value Known | Absent | Unknown ◄──────────────┘
//! ```
//!
//! A host key is pinned or there is no login; it is never taken on trust. A login is tried once:
//! ESXi locks an account after a few wrong ones. The exit code of a command proves nothing
//! (`nvidia-smi` says "All done." of what is pending): it is passed on, and callers read again.
//!
//! Knows no vCenter (that the SSH service runs is somebody else's business), no plan and no GPU but
//! by its address.

mod error;
mod known_hosts;
mod nvidia;
mod session;

pub use error::ShellError;
pub use known_hosts::{KnownHosts, KnownHostsError};
pub use nvidia::{Command, Query, read_gpus, view};
pub use session::{Access, Credential, End, Output, PORT, Shell};
