//! What tests of several areas share.
#![allow(dead_code, unused_imports)]

mod peer;
mod shared;

pub use peer::peer;
pub use shared::shared;
