//! The simulator, judged by hand-written envelopes: each honesty rule is asserted on the wire, without
//! any encoder or decoder of our own client.

mod boot;
mod evacuation;
mod faults;
mod graphics;
mod guest_work;
mod guests;
mod maintenance;
mod mig;
pub mod raw;
mod reading;
mod sessions;
mod state;
mod tasks;
mod vms;
mod wire;
