//! What tests of several areas share.
#![allow(dead_code, unused_imports)]

pub mod pairwise;
mod peer;
pub mod seen;
mod shared;

pub use peer::peer;
pub use shared::shared;
