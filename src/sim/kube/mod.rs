//! The Kubernetes API of each guest cluster.
//!
//! ```text
//!   face       who asks, faults, the world's log
//!   route      path and query ──► verb, resource, object
//!   resources  what there is; discovery
//!   read       get, list: selectors, pages      table   as `kubectl get` prints it
//!   watch      changes as a stream
//!   write      create, patch, replace, delete, evict
//!   patch      JSON patch and merge patch       checks  what may not be written
//!   strategic  strategic merge patch            review  what somebody may do
//!   status     errors as the API server words them
//! ```
//!
//! It knows no Kubernetes client: objects are JSON, and what it answers is what
//! reference/kubernetes.md and the sources of the API server say.

mod checks;
mod discovery;
mod face;
mod patch;
mod ports;
mod read;
mod resources;
mod review;
mod route;
mod status;
mod strategic;
mod strict;
mod table;
mod watch;
mod write;

pub(in crate::sim) use face::KubeFace;
pub use ports::{ServedGuest, kubeconfig, serve_guests};
