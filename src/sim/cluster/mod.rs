//! A guest cluster at work: its kubelets, its scheduler and its controllers.
//!
//! ```text
//!   VM on, off ──► kubelet    boot, heartbeat, admission, start and end of pods
//!                  lifecycle  a node that is not heard of; the taint of a cordon
//!                  scheduler  pods that wait find a node
//!                  owners     ReplicaSets, StatefulSets, DaemonSets: as many pods as they want
//!                  jobs       Jobs
//!                  volumes    attached before a pod starts, detached some time after it is gone
//!                  budgets    status of PodDisruptionBudgets
//!                  removal    deletion with grace and finalizers, eviction, garbage
//!   begin   from the document          make   objects as they are first written
//! ```
//!
//! Each write is followed by [`Cluster::settle`], which lets all of them work until nothing changes any
//! more: in a real cluster that takes some milliseconds. What takes longer is due later.
//! Knows nothing of vSphere nor of HTTP. Each fact has its section of the reference
//! (`kubernetes §…`), or the part of Kubernetes that says so.

mod begin;
mod budgets;
mod control;
mod jobs;
mod kubelet;
mod lifecycle;
mod make;
mod owners;
mod pods;
mod removal;
mod scheduler;
mod volumes;

pub(in crate::sim) use begin::check;
pub(in crate::sim) use control::{Cluster, GuestDue};
pub(in crate::sim) use removal::{Evicted, Removal};
