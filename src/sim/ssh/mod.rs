//! The SSH face: the shells of the hosts, each with its own host key.
//!
//! ```text
//!   SimNetwork::dial ── pipe in memory ─┐
//!   a port of a host ── TCP ────────────┴─► line (breaks when the host goes down) ─► guest (russh)
//!                                                       login ──► behaviour::shell ◄─┤
//!                                    command line ─► command ──► behaviour::nvidia_* ◄┘
//! ```
//!
//! It runs what an ESXi host with the NVIDIA driver runs, and knows no command of a shell beside.

mod command;
mod guest;
mod key;
mod line;
mod ports;

pub(in crate::sim) use line::{Closed, attach, door};
pub use ports::{ServedShell, serve_shells};
