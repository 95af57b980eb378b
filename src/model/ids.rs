//! Identifiers as newtypes, so that a host is never taken for a run.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    };
}

text_id! {
    /// The name of a host as vCenter shows it (`HostSystem.name`), byte for byte.
    HostName
}

text_id! {
    /// A run of `apply`: 26 characters that sort by time (the layout of a ULID).
    RunId
}

text_id! {
    /// A plan: the SHA-256 of its content, in lower-case hex.
    PlanId
}

impl PlanId {
    /// The first 16 characters, as shown to people and written into markers.
    pub fn short(&self) -> &str {
        self.0.get(..16).unwrap_or(&self.0)
    }
}

/// A reference to a managed object of vim25: its type and its id, `HostSystem` and `host-21`.
///
/// Ids are read from the server, never built (they are opaque; vsphere-gpu §1.1).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MoRef {
    /// The managed type, `HostSystem`.
    pub kind: String,
    /// The id on this server, `host-21`.
    pub id: String,
}

impl MoRef {
    /// A reference of this type and id.
    pub fn new(kind: impl Into<String>, id: impl Into<String>) -> Self {
        Self { kind: kind.into(), id: id.into() }
    }
}

impl fmt::Display for MoRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.id)
    }
}
