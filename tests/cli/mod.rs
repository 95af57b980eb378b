//! The binary as people run it: exit code, stdout and stderr.

mod demo;
mod flow;
mod harness;
mod help;
mod input;
mod ports;
mod readme;
mod secrets;
