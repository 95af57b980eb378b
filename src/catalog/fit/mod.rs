//! The proof that a combination of vGPUs fits one GPU, empty or beside what runs on it already.
//!
//! ```text
//!   {type: count}, mode, beside ──► decide ──► same   one framebuffer size, a maximum
//!                                     │   ├──► mixed  placement ids ──┐
//!                                     │   └──► mig    GPU instances ──┴─► pack: an exact search
//!                                     └──► nearest: what would fit instead
//! ```
//!
//! Three answers: it fits, it does not, or it cannot be told: a number has no source, or where a
//! running vGPU sits decides. What is said to run without its place may sit at any legal one; only
//! what fits beside all of them *fits*.
//!
//! An answer is about geometry. vSphere makes GPU instances when VMs power on and never moves them,
//! so *fits* means that an order of power-ons exists, largest first; what a mode needs of ESXi and of
//! the driver is [`Need`](super::Need).

mod decide;
mod instances;
mod mig;
mod mixed;
mod nearest;
mod pack;
mod query;
mod same;
#[cfg(test)]
mod tests;

pub use query::{Beside, BesideError, Combination, Fit, FitMode, FitModeError};
