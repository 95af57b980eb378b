//! Documents: YAML text in, typed values that know where they were written out. Pure.
//!
//! ```text
//!   path + bytes ──source──► Source      size limit, UTF-8, lines; cut into documents at `---`
//!                ──tree────► Node        the one user of the YAML crate; scalars keep their raw text
//!                ──read────► RawDocument apiVersion, kind and name known; what is unknown is named with the nearest
//!                ──parse───► Document<T> T: any serde type; each `At<..>` in it gets file, line and column
//!        any stage ────────► Problem     place, message, source line with a caret, hint
//!   template + variables ─fill► Filled  a file whose variables are filled in: a value of any YAML
//!   embedded data ────────► T           what is compiled in (the catalogue): no places, no limits
//! ```
//!
//! A type that is read here derives `Deserialize` (with `deny_unknown_fields` and `camelCase`), uses
//! [`crate::model::At`] where a place matters, and externally tagged enums. The deserializer
//! ([`de`](self)) keeps scalars as text until a type asks for a number, so that `1e30` in a text
//! field stays `1e30` and `no` is no boolean; it reports every unknown key of a document, not only
//! the first mistake.
//!
//! Knows no kind's content (only their names), no file system and no colour: a problem prints as
//! plain text.

mod de;
mod embedded;
mod fault;
mod problem;
mod raw;
mod schema;
mod source;
mod span;
mod template;
mod tree;
mod useless;
mod write;

#[cfg(test)]
mod tests;

pub use crate::model::{nearest, nearest_few};
pub use embedded::{EmbeddedError, embedded};
pub use problem::{Problem, Snippet};
pub use raw::{API_VERSION, Document, Kind, RawDocument, read};
pub use schema::envelope;
pub use source::{MAX_BYTES, Source};
pub use span::Span;
pub use template::{Filled, Unused, fill};
pub use write::{WriteError, to_yaml};
