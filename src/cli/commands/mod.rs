//! One file a verb: its arguments are in `args`, its work in `run`.

pub mod catalog;
pub mod schema;
pub mod status;
pub mod validate;
