//! The command line: arguments in, commands, an exit code out. The only place that prints, and the
//! only one that knows `anyhow`.
//!
//! ```text
//!   args ──run──► commands/<verb> ──► Ok(Exit) | Err(CommandError) ──► process exit code
//!                   │  documents: files ──► pools, sites, findings, inputs
//!                   │  session:   site or world ──► runtime, clock, Fleet; signals; logout always
//!                   └─ ui:        stdout is data, stderr is talk
//! ```
//!
//! Decides nothing about hosts: what a command does is in the floors below.

mod args;
mod commands;
mod documents;
mod error;
mod execute;
mod exit;
mod handoff;
mod planning;
mod run;
mod session;
mod ui;
mod watch;

use error::CommandError;
use exit::Exit;
pub use run::main;
use ui::Ui;
