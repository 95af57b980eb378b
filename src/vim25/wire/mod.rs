//! vim25 on the wire, pure: no connection, no session, no clock.
//!
//! ```text
//!   names    methods, types, paths, faults
//!   tree     XML ◄──► Node            (write: Node ──► XML)
//! ```
//!
//! The simulator uses [`Node`], [`names`] and nothing else of this client: what encodes our
//! requests and decodes answers must never also read the requests and make the answers, or a
//! mistake on one side would cancel out on the other.

pub mod names;
mod tree;
mod write;

pub use tree::{Attribute, Limits, Namespace, Node, TypeName, XmlError};
pub use write::{document, envelope};
