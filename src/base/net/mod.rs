//! The seams between us and the world: one HTTP exchange, one connection; real or simulated.
//!
//! ```text
//!   client ── Request<Bytes> ──► Exchange ── Response<Body> ──► client     (the body streams)
//!                                 ├── real:  reqwest over rustls
//!                                 └── sim:   a face of the World, in process
//!   client ◄─── bytes both ways ───► Dial    (SSH)
//!                                     ├── real:  TCP
//!                                     └── sim:   a pipe in memory
//!   Network: endpoint ──► Exchange, and Dial
//! ```
//!
//! There are no traits over the clients and no mocks: a test swaps the endpoint (TCP) or the
//! [`Network`] (in process).

mod dial;
mod exchange;
mod real;
mod trust;

pub use dial::{Dial, DialError, Duplex};
pub use exchange::{Body, Endpoint, Exchange, Identity, NetError, Network, Trust, collect};
pub use real::RealNetwork;
pub use trust::{colons, fingerprint};
