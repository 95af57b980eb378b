//! The planner: what was wished, what was seen and the time in; a plan, with its reasons, out. Pure.
//!
//! ```text
//!   Desired + Observed + now ──plan()──► Plan          approved by people: hosts, target modes, bounds
//!   HostPlan + HostRecord + Memory ──visit()──► Visit  one host's steps, from any mid-state
//!   Step + HostView ──check(), verify()──► AlreadyDone | Ready | InFlight | Refused,  Reached | NotYet
//!   HostPlan + Baseline + HostView ──gate()──► a line for each thing that must be so
//!   GuestRules + NodeMemory + NodeView ──node_gate()──► the same of a node, before it is uncordoned
//! ```
//!
//! Knows no clock, no I/O, no environment and no randomness: the same inputs give the same bytes.

mod accept;
mod after;
mod around;
mod bind;
mod blocks;
mod board;
mod capacity;
mod check;
mod device;
mod driver;
mod drs;
mod fate;
mod fleet;
mod forecast;
mod gate;
mod group;
mod host;
mod memory;
mod mig;
mod mig_state;
mod need;
mod node;
mod node_check;
mod node_findings;
mod node_steps;
mod offers;
mod outline;
mod planner;
mod power;
mod room;
mod seal;
mod seen;
mod setting;
mod sheet;
mod shell_findings;
mod slow;
mod stage;
mod step;
mod times;
mod types;
mod visit;
mod vm_findings;
mod vms;
mod work;

pub use around::Around;
pub use check::{Check, Verify};
pub use fate::{Bounds, Fate, Moving, VmFate};
pub use fleet::out_of_service;
pub use gate::{GateCheck, GateRead, Verdict, baseline, device_digest, gate};
pub use group::grouped;
pub use memory::{Memory, NodeMemory, OurMaintenance, RebootAsked};
pub use mig::SSH_SERVICE;
pub use node::{Boot, may_cordon, moved_gate, node_gate};
pub use planner::plan;
pub use seal::PlanFileError;
pub use seen::{SeenGpu, gpus};
pub use setting::GpuSetting;
pub use sheet::UNTOLD;
pub use step::{Change, GraphicsChange, NodeEnd, PassthruChange, Step};
pub use types::{
    Capacity, GpuTarget, HostPlan, HostTarget, Impact, Input, Limits, Minutes, NodeOut, NotActed, Outline, Plan,
    PoolCapacity, Reason, Reboots, SlowFacts, SlowGpu,
};
pub use visit::{Refusal, Visit, is_as_planned, visit, waits_for_reboot};
