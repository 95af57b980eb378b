//! The binary as people run it: exit code, stdout and stderr.

#[cfg(unix)]
mod again;
mod demo;
mod flow;
pub mod harness;
mod help;
mod input;
mod json;
mod kills;
mod mended;
mod mig;
pub mod ports;
mod readme;
mod secrets;
mod shells;
#[cfg(unix)]
mod signals;
#[cfg(unix)]
mod terminal;
