//! The planner: what was wished, what was seen and the time in; a plan, with its reasons, out. Pure.
//!
//! ```text
//!   Desired + Observed + now ──plan()──► Plan          approved by people: hosts, target modes, bounds
//!   HostPlan + HostRecord + Memory ──visit()──► Visit  one host's steps, from any mid-state
//!   Step + HostView ──check(), verify()──► AlreadyDone | Ready | Refused,  Reached | NotYet
//! ```
//!
//! Knows no clock, no I/O, no environment and no randomness: the same inputs give the same bytes.

mod types;
mod visit;

pub use types::{
    Capacity, GpuTarget, HostPlan, HostTarget, Impact, Input, Limits, Minutes, NotActed, Outline, Plan, PoolCapacity,
    Reason, Reboots, SlowFacts, SlowGpu,
};
pub use visit::{GpuSetting, GraphicsChange, Memory, PassthruChange, Refusal, Step, Visit};
