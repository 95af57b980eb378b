//! One file a verb: its arguments are in `args`, its work in `run`.

pub mod abort;
pub mod apply;
pub mod catalog;
pub mod completions;
pub mod demo;
pub mod discover;
pub mod man;
pub mod plan;
pub mod resume;
pub mod schema;
pub mod sim;
pub mod status;
pub mod validate;
