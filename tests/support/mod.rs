//! What tests of several areas share.
#![allow(dead_code, unused_imports)]

pub mod lab;
pub mod look;
pub mod nodes;
pub mod pairwise;
mod peer;
pub mod person;
pub mod readings;
pub mod replay;
pub mod seen;
mod shared;
pub mod tap;

pub use peer::{kubectl, peer};
pub use shared::shared;
