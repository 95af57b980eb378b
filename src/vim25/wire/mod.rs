//! vim25 on the wire, pure: no connection, no session, no clock.
//!
//! ```text
//!   calls ──► Call ──encode──► http::Request            names    methods, types, paths, faults
//!   bytes ──► tree ──answer──► result | fault           version  negotiation, what a version knows
//!                └─► property, task, decode, vm, cluster ──► values of model/
//! ```
//!
//! The simulator uses [`Node`], [`names`], [`envelope`] and nothing else of this client: what encodes
//! our requests and decodes answers must never also read the requests and make the answers, or a
//! mistake on one side would cancel out on the other.

pub mod answer;
mod call;
pub mod calls;
pub mod cluster;
pub mod decode;
mod fault;
pub mod names;
mod property;
mod task;
mod tree;
mod version;
pub mod vm;
mod write;

pub use call::{AGENT, Call, Effect, encode, encode_versions};
pub use calls::{ObjectSet, PassthruEntry, PropertySet};
pub use decode::DecodeError;
pub use fault::{Fault, FaultDetail};
pub use property::{Missing, MissingWhy, ObjectContent, ObjectUpdate, Page, Updates};
pub use task::{TaskInfo, TaskState};
pub use tree::{Attribute, Limits, Namespace, Node, TypeName, XmlError};
pub use version::ApiVersion;
pub use write::{document, envelope};
