//! The simulated fleet: one world, and the faces under which clients see it.
//!
//! ```text
//!   World document ──► World ◄── behaviour (calls, time, actors)
//!   (document)           ▲
//!                        │ soap: vim25 for many clients at once, faults
//!                        │ kube: the API of each guest cluster (cluster: what happens in it)
//!                        │ ssh:  the shell of each host
//!        SimNetwork ─────┤        in process, for any command with `--world` and for tests
//!        serve ──────────┘        real ports with TLS, for other vendors' clients
//! ```
//!
//! What is served on ports keeps them and its certificates beside the document (`doors`).
//!
//! It behaves as the reference says that vCenter and ESXi behave, and never as our own client would
//! like it. It knows the wire trees of `vim25` and nothing else of the client: requests are checked
//! and answers are made from VMware's own type tables (`soap/shape.txt`), so that a mistake of ours
//! does not cancel out. What nobody could verify is a switch ([`document::Readings`]).

mod answer;
mod behaviour;
mod cluster;
pub mod document;
mod doors;
mod drs;
mod fault;
mod faults;
mod gpus;
mod kube;
mod network;
mod seats;
mod server;
mod soap;
mod ssh;
mod world;

pub use kube::{ServedGuest, kubeconfig, serve_guests};
pub use network::SimNetwork;
pub use server::{ServeError, Served, serve};
pub use ssh::{ServedShell, serve_shells};
pub use world::{HostTally, NodeTally, Tally, VmTally, World, WorldError, Write};
