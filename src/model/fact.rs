//! A value read from a live system, which may be absent or unknown.

use serde::{Deserialize, Serialize};

/// What was read of one property.
///
/// `Option` does not say whether a property is not there or could not be read; the difference
/// decides whether a host may be touched, so every observed value is a `Fact`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fact<T> {
    /// Read, and this is the value.
    Known(T),
    /// Read, and the server says that there is none.
    Absent,
    /// Not read: no privilege, an answer that was not understood, a server that did not answer.
    Unknown {
        /// Why it could not be read.
        why: String,
    },
}

impl<T> Fact<T> {
    /// An unknown value, with the reason.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown { why: why.into() }
    }

    /// The value, if it was read and is there. Use it only where absent and unknown mean the same.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Unknown { .. } => None,
        }
    }

    /// Whether it could not be read.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }

    /// Whether the server said that there is none.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Applies `f` to a known value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Known(value) => Fact::Known(f(value)),
            Self::Absent => Fact::Absent,
            Self::Unknown { why } => Fact::Unknown { why },
        }
    }

    /// Applies `f` to a known value; what it does not know is unknown.
    pub fn and_then<U>(self, f: impl FnOnce(T) -> Fact<U>) -> Fact<U> {
        match self {
            Self::Known(value) => f(value),
            Self::Absent => Fact::Absent,
            Self::Unknown { why } => Fact::Unknown { why },
        }
    }

    /// Borrows the value.
    pub fn as_ref(&self) -> Fact<&T> {
        match self {
            Self::Known(value) => Fact::Known(value),
            Self::Absent => Fact::Absent,
            Self::Unknown { why } => Fact::Unknown { why: why.clone() },
        }
    }

    /// The known value, or `none` where the server says that there is none; unknown stays unknown.
    pub fn or_absent(self, none: T) -> Fact<T> {
        match self {
            Self::Absent => Fact::Known(none),
            other => other,
        }
    }
}
