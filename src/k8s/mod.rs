//! The API server of a guest cluster: its nodes, and what is done to them.
//!
//! ```text
//!   kubeconfig ──access──► endpoint, credential          a file's every mistake is told here
//!   verbs      ──request─► http::Request (a value)       built by kube-core
//!                          transport                     kube's client over base::net; one deadline a call,
//!                             │                          reads repeated, writes never
//!              ◄─answer──  Body | Refusal                pure; what is missing is unknown or an error
//!
//!   Client   one verb on one cluster
//!     ├── Drain    the evictions of a node, round by round: what it remembers is by UID
//!     └── JobRun   one validation Job on one node
//! ```
//!
//! A write on a node rests on the UID and the version that were read, in the same request (kubernetes
//! §2.14). Eviction is posted by hand, with the UID of the pod, since kube's own drops it (§0.4).
//!
//! Knows no VM, no plan and no journal: each verb is one act on one cluster, and its caller owns
//! deadlines, order and what is written down.

mod access;
mod answer;
mod client;
mod credential;
mod drain;
mod error;
mod events;
mod evict;
mod job_run;
mod jobs;
mod nodes;
mod pods;
mod transport;
mod volumes;
mod watch;

pub use access::{Access, AccessError};
pub use client::Client;
pub use credential::CredentialError;
pub use drain::{Drain, Round};
pub use error::{Error, Refusal};
pub use evict::{Blocked, Evicted};
pub use job_run::{JobLook, JobRun};
pub use jobs::{JobEnd, JobView};
pub use nodes::{Patched, Release};
pub use pods::{Pod, PodRef, Pods, Why};
