//! YAML text to a tree of nodes with places. The only user of the YAML crate's reader.
//!
//! The crate decides early whether a plain scalar is a number or a boolean; we want the text as it
//! was written until a type asks for something else. So every node is read together with its span,
//! and whatever is not text is cut out of the source.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{DefaultMessageFormatter, Error, Location, MessageFormatter, Options, Spanned};

use super::source::{Chunk, Source, number};

/// Deepest nesting of a document. Ours go to about 10.
const MAX_DEPTH: usize = 32;
/// Nodes of one document. A file of the largest size that is read has at most 4 M; 1 M is a world of
/// some 50,000 VMs.
const MAX_NODES: usize = 1_000_000;
/// Nodes that aliases may repeat in one document. An alias in a profile repeats a handful; ten nested
/// levels of ten (the "billion laughs") stop here.
const MAX_REPEATED: usize = 10_000;

/// A piece of a document.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) spot: Spot,
    pub(super) value: Value,
}

/// Where a piece starts (line and column in characters, from 1) and how many characters it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) length: u32,
}

/// What it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// Nothing after the key or the dash.
    Blank,
    /// `~` or `null`.
    Null,
    /// Text as written; `plain` if it has no quotes and is no block.
    Scalar { text: String, plain: bool },
    /// A list.
    List(Vec<Node>),
    /// A mapping, duplicate keys included.
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// A scalar.
    pub(super) key: Node,
    pub(super) value: Node,
}

impl Entry {
    /// The text of the key.
    pub(super) fn name(&self) -> &str {
        match &self.key.value {
            Value::Scalar { text, .. } => text,
            // Keys are read as text only.
            Value::Blank | Value::Null | Value::List(_) | Value::Map(_) => "",
        }
    }
}

/// A syntax error, or a limit that is exceeded.
#[derive(Debug)]
pub(super) struct SyntaxError {
    pub(super) spot: Spot,
    pub(super) message: String,
    pub(super) hint: Option<&'static str>,
}

impl Value {
    /// As [`Value::describe`], without what is written.
    pub(super) fn kind(&self) -> String {
        match self {
            Self::Scalar { .. } => "a text".to_owned(),
            Self::Blank | Self::Null | Self::List(_) | Self::Map(_) => self.describe(),
        }
    }

    /// In words, for "expected …, found …"; of a long text its beginning.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Blank => "nothing".to_owned(),
            Self::Null => "null".to_owned(),
            Self::Scalar { text, plain: true } => format!("`{}`", beginning(text)),
            Self::Scalar { text, plain: false } => format!("the text `{}`", beginning(text)),
            Self::List(_) => "a list".to_owned(),
            Self::Map(_) => "a mapping".to_owned(),
        }
    }
}

/// The beginning of a text that is too long for a message.
pub(super) fn beginning(text: &str) -> String {
    /// Longer names than this are no names.
    const SHOWN: usize = 80;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Reads one document of a file.
pub(super) fn parse(source: &Source, chunk: &Chunk) -> Result<Node, SyntaxError> {
    let text = &source.text()[chunk.bytes.clone()];
    match serde_saphyr::from_str_with_options::<Raw>(text, options()) {
        Ok(raw) => Ok(raw.node(text, chunk.lines_before)),
        Err(error) => {
            let error = syntax_error(error.without_snippet(), chunk.lines_before);
            Err(tab_in_indentation(text, chunk.lines_before, &error).unwrap_or(error))
        }
    }
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_events: 2 * MAX_NODES,
        },
        // Told by the deserializer, with both places.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::Error,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPEATED },
        // Whatever is inferred here is replaced by its text; nothing may fail on the way.
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

fn syntax_error(error: &Error, lines_before: u32) -> SyntaxError {
    let spot = error.location().map_or(Spot { line: lines_before + 1, column: 1, length: 1 }, |location| Spot {
        length: 1,
        ..spot(&location, lines_before)
    });
    let error = match error {
        Error::AliasError { error, .. } => error.without_snippet(),
        other => other,
    };
    let (message, hint) = match error {
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::Budget { breach: BudgetBreach::AliasAnchorRatio { .. } | BudgetBreach::Aliases { .. }, .. } => (
            format!("the aliases of this document repeat more than {MAX_REPEATED} values: refused as an alias bomb"),
            Some("write the values out"),
        ),
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => too_deep(),
        Error::Budget { breach: BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. }, .. } => {
            (format!("the document has more than {MAX_NODES} values"), Some("split it"))
        }
        Error::MergeKeyNotAllowed { .. } => {
            ("merge keys (`<<`) are not read".to_owned(), Some("write the values out: a document says what it means"))
        }
        Error::UnsupportedTag { tag, .. } => {
            (format!("the tag `{tag}` is not read"), Some("remove the tag; quote the value if it must be text"))
        }
        Error::UnknownAnchor { .. } => (
            "an alias without its anchor in the same document".to_owned(),
            Some("a text that starts with `*` needs quotes"),
        ),
        other => match DefaultMessageFormatter.format_message(other) {
            // The scanner's own limit, for brackets that are never closed.
            message if message.contains("recursion limit exceeded") => too_deep(),
            message => (format!("not YAML: {message}"), None),
        },
    };
    SyntaxError { spot, message, hint }
}

/// The parser stumbles over a tab in the indentation at the value before it; the user needs the tab.
fn tab_in_indentation(text: &str, lines_before: u32, error: &SyntaxError) -> Option<SyntaxError> {
    let first = error.spot.line.saturating_sub(lines_before).max(1) as usize;
    // The tab is in the line of the error or in the next one.
    text.lines().enumerate().skip(first - 1).take(2).find_map(|(index, line)| {
        let indentation = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
        let column = number(indentation.find('\t')?).saturating_add(1);
        let line = lines_before.saturating_add(number(index)).saturating_add(1);
        Some(SyntaxError {
            spot: Spot { line, column, length: 1 },
            message: "a tab in the indentation".to_owned(),
            hint: Some("YAML is indented with spaces"),
        })
    })
}

fn too_deep() -> (String, Option<&'static str>) {
    (format!("nested deeper than {MAX_DEPTH} levels"), Some("no document of Poolwright is nested that deep"))
}

fn spot(location: &Location, lines_before: u32) -> Spot {
    Spot {
        line: lines_before.saturating_add(number(usize::try_from(location.line()).unwrap_or(usize::MAX))),
        column: number(usize::try_from(location.column()).unwrap_or(usize::MAX)),
        length: number(usize::try_from(location.span().len()).unwrap_or(usize::MAX)),
    }
}

/// A node as the YAML crate reads it, with its span.
struct Raw(Spanned<RawValue>);

enum RawValue {
    Null,
    /// A number or a boolean to the YAML crate: the source has its text.
    Inferred,
    Text(String),
    List(Vec<Raw>),
    Map(Vec<(Spanned<String>, Raw)>),
}

impl Raw {
    fn node(self, text: &str, lines_before: u32) -> Node {
        let written = slice(&self.0.defined, text);
        let value = match self.0.value {
            RawValue::Null if written.trim().is_empty() => Value::Blank,
            RawValue::Null => Value::Null,
            RawValue::Inferred => Value::Scalar { text: written.trim().to_owned(), plain: true },
            RawValue::Text(value) => {
                let plain = !written.starts_with(['"', '\'', '|', '>']);
                Value::Scalar { text: value, plain }
            }
            RawValue::List(items) => Value::List(items.into_iter().map(|item| item.node(text, lines_before)).collect()),
            RawValue::Map(entries) => Value::Map(
                entries
                    .into_iter()
                    .map(|(key, value)| Entry {
                        key: Node {
                            spot: spot(&key.referenced, lines_before),
                            value: Value::Scalar { text: key.value, plain: true },
                        },
                        value: value.node(text, lines_before),
                    })
                    .collect(),
            ),
        };
        Node { spot: spot(&self.0.referenced, lines_before), value }
    }
}

/// The source of a span.
fn slice<'t>(location: &Location, text: &'t str) -> &'t str {
    let span = location.span();
    let (Some(start), Some(length)) = (span.byte_offset(), span.byte_len()) else { return "" };
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    let end = start.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
    text.get(start..end).unwrap_or("")
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(Raw)
    }
}

impl<'de> Deserialize<'de> for RawValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

macro_rules! inferred {
    ($($method:ident: $type:ty),+) => {
        $(fn $method<E>(self, _: $type) -> Result<RawValue, E> { Ok(RawValue::Inferred) })+
    };
}

impl<'de> Visitor<'de> for RawVisitor {
    type Value = RawValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    inferred!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_i128: i128, visit_u128: u128, visit_f64: f64);

    fn visit_unit<E>(self) -> Result<RawValue, E> {
        Ok(RawValue::Null)
    }

    fn visit_none<E>(self) -> Result<RawValue, E> {
        Ok(RawValue::Null)
    }

    fn visit_str<E>(self, text: &str) -> Result<RawValue, E> {
        Ok(RawValue::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<RawValue, E> {
        Ok(RawValue::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<RawValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(RawValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<RawValue, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(RawValue::Map(map))
    }
}
