//! The one test binary (one link instead of many). Each module is an area; `tests/run` runs it
//! with the peers.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, missing_docs)]

mod cases;
mod catalog;
mod cli;
mod documents;
mod house;
mod k8s;
mod observe;
mod peers;
mod planner;
mod report;
mod rollout;
mod shell;
mod sim;
mod support;
mod vim25;
