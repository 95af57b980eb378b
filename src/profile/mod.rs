//! Profiles: kind `GpuPool`, what the GPUs of some hosts should be. Pure.
//!
//! ```text
//!   files ──load──► Loaded   pools, sites, worlds (frames only), problems of form   ┐ `validate`
//!         ──fill──► Loaded   templates of Jobs, their variables filled in               │
//!         ──check─► findings what is wrong with sense, without any live system      ┘ stops here
//!   pools + site + Roster ──resolve──► Desired (for the planner) + findings
//! ```
//!
//! `validate` is [`load`] and [`check`]: print the problems, then the findings with the source line
//! that [`Loaded::snippet`] gives; exit 3 if there is a problem or a finding of severity error.
//! `plan` and `apply` do the same first, then [`resolve`] each site against its roster.
//!
//! Knows the catalogue, to prove `offers` and name what does not fit; knows no live system but the
//! names in the roster.

mod check;
mod guests;
mod jobs;
mod loaded;
mod pods;
mod pool;
mod resolve;
mod roster;
mod vms;

pub use check::{check, check_pool};
pub use guests::{DrainWish, ExpectWish, GuestWish, TemplateWish, Unvalidated, ValidateWish};
pub use loaded::{Loaded, load};
pub use pool::{
    AcceptRule, Driver, GpuPool, Group, HostSelector, HostWish, ModeWish, Offer, OnMaintenance, Placement, Rollout,
    Select, Size, schema,
};
pub use resolve::{Resolved, resolve};
pub use vms::{Mismatch, Moves, VmWish, Vms};
