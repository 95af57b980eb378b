//! Values that are of the right form and can do nothing.

use super::de::{De, Path};
use super::fault::Fault;
use super::tree::{Node, Value};

impl De<'_> {
    /// Why a value can do nothing, or harms: an empty text, list or mapping, or one that would move the
    /// cursor of whoever reads it.
    pub(super) fn useless(&self, node: &Node, path: &Path<'_>) -> Option<Fault> {
        let fault = |message: &str, hint: &str| {
            let fault = Fault::at(node.spot, format!("`{path}` {message}")).hint(hint);
            Some(Fault { soft: true, ..fault })
        };
        match &node.value {
            _ if !self.context.strict => None,
            Value::Scalar { text, .. } if text.trim().is_empty() => {
                fault("is empty: it would do nothing", "give it a value, or remove it if it may be left out")
            }
            Value::Scalar { text, .. } if text.contains(char::is_control) => {
                fault("holds a line break or a control character", "write it in one line, without such characters")
            }
            Value::List(items) if items.is_empty() => {
                fault("is empty: it would do nothing", "fill it, or remove it if it may be left out")
            }
            Value::Map(entries) if entries.is_empty() => {
                fault("is empty: it would do nothing", "fill it, or remove it if it may be left out")
            }
            _ => None,
        }
    }
}
