//! Kubernetes itself judges our client of guest clusters: its API server, etcd and controllers on loopback,
//! from the sources of the release, with nothing in between.
//!
//! ```text
//!   a test ──► Client (ours) ──────────► API server ◄── controllers (disruption, jobs, replica sets, …)
//!     │                                   ▲    │
//!     └──► Api (plain HTTP) ──────────────┘    └── logs ──► Kubelet: plays nodes and scheduler
//! ```
//!
//! `tests/run` builds the one binary under `target/peers/kubernetes`. One control plane serves all tests;
//! each has a namespace and nodes of its own. What a test must not do to others (an API server that is
//! killed, a cluster of another identity) it does to a second server over the same etcd.

mod access;
mod api;
mod between;
mod cordon;
mod drain;
mod job;
mod kubelet;
mod lab;
mod likeness;
mod plane;
mod proof;
