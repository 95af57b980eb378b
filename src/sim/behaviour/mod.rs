//! How the fleet behaves: what a call does at once, what comes later, who else acts.
//!
//! ```text
//!   call ──► Moment (state + document, under the lock) ──► change now | task | Due in the queue
//!   clock ─► advance: everything that was due, each at its own time
//!
//!   maintenance   enter, exit, VMs that keep a host from closing
//!   power, moves  VMs: on, off, from host to host; DRS empties a host that closes
//!   refit         VMs: other devices
//!   boot          reboot in stages
//!   graphics      UpdateGraphicsConfig; what takes effect when
//!   passthru      UpdatePassthruConfig
//!   shell         services, logins, the monitoring daemon
//!   nvidia_smi    MIG, and nvidia_query: what is printed
//!   fields        custom fields
//!   tasks         queued, running, ended, canceled
//!   guests        VMs that are nodes of guest clusters
//!   actors        other people and programs
//! ```
//!
//! Each fact has its section of the reference beside it; what nobody verified is a switch of
//! [`crate::sim::document::Readings`]. Knows nothing of SOAP.

mod actors;
mod boot;
mod due;
mod fields;
mod graphics;
mod guests;
mod maintenance;
mod moment;
mod moves;
mod nvidia_query;
mod nvidia_smi;
mod passthru;
mod power;
mod refit;
mod shell;
mod tasks;

pub(in crate::sim) use due::{Due, Transition};
pub(in crate::sim) use graphics::{SentDevice, SentGraphics};
pub(in crate::sim) use guests::named;
pub(in crate::sim) use moment::{Moment, NewWrite, later};
pub(in crate::sim) use nvidia_query::FULL_WIDTH;
pub(in crate::sim) use nvidia_smi::SET_MIG;
pub(in crate::sim) use passthru::SentPassthru;
pub(in crate::sim) use refit::{Change, Wish};
pub(in crate::sim) use shell::{Printed, Proof};
pub(in crate::sim) use tasks::TaskFate;
