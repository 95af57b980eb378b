//! What tests of several areas share.
#![allow(dead_code, unused_imports)]

mod peer;

pub use peer::peer;
