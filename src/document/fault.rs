//! A mistake that a type finds in a node, before it is a problem of a document.

use std::fmt;

use serde::de::{self, Unexpected};

use super::tree::{Node, Spot};

/// A mistake found while a type is read.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) spot: Option<Spot>,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// The key that is missing, for a missing key.
    pub(super) missing: Option<&'static str>,
    /// Whether a noted fault says it already.
    pub(super) told: bool,
    /// Whether the value can be used all the same: it is of the right form, and can do nothing.
    pub(super) soft: bool,
    /// The innermost list item or value of a key in which it is.
    pub(super) within: Option<NodeId>,
}

/// A node of one tree, by its address: it lives as long as the reading.
pub(super) type NodeId = usize;

pub(super) fn id(node: &Node) -> NodeId {
    std::ptr::from_ref(node).addr()
}

impl Fault {
    pub(super) fn at(spot: Spot, message: impl Into<String>) -> Self {
        Self {
            spot: Some(spot),
            message: message.into(),
            hint: None,
            missing: None,
            told: false,
            soft: false,
            within: None,
        }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn or_at(mut self, spot: Spot) -> Self {
        self.spot.get_or_insert(spot);
        self
    }

    pub(super) fn or_within(mut self, node: &Node) -> Self {
        self.within.get_or_insert(id(node));
        self.or_at(node.spot)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            spot: None,
            message: message.to_string(),
            hint: None,
            missing: None,
            told: false,
            soft: false,
            within: None,
        }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::custom(format_args!("expected {expected}, found {found}"))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::custom(format_args!("expected {expected}, found {found}"))
    }

    fn missing_field(field: &'static str) -> Self {
        Self { missing: Some(field), ..Self::custom(format_args!("`{field}` is missing")) }
    }
}
