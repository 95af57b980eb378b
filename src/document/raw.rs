//! The frame of a document: `apiVersion`, `kind`, `metadata.name`, `spec`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::model::{At, Place};

use super::de::{Context, De, Path};
use super::fault::Fault;
use super::nearest;
use super::problem::Problem;
use super::source::Source;
use super::tree::{self, Node, Spot, SyntaxError, Value};

/// The only version of the documents.
pub const API_VERSION: &str = "poolwright/v1";

/// The kinds of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A pool of GPU hosts: what they should be.
    GpuPool,
    /// A vCenter and how to reach it.
    Site,
    /// A simulated fleet.
    World,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::GpuPool, Self::Site, Self::World];

    /// As it is written in a document.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GpuPool => "GpuPool",
            Self::Site => "Site",
            Self::World => "World",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A document whose frame is read and whose `spec` is not.
#[derive(Debug, Clone)]
pub struct RawDocument {
    /// Its kind.
    pub kind: At<Kind>,
    /// `metadata.name`.
    pub name: At<String>,
    spec: Node,
    spec_key: Spot,
    source: Arc<Source>,
}

/// A document that is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document<T> {
    /// `metadata.name`.
    pub name: At<String>,
    /// `spec`.
    pub spec: T,
    /// The file it stands in, for source lines.
    pub source: Arc<Source>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frame {
    api_version: At<String>,
    kind: At<String>,
    metadata: Metadata,
    #[serde(rename = "spec")]
    _spec: IgnoredAny,
}

#[derive(Deserialize)]
struct Metadata {
    name: At<String>,
}

/// Reads the frames of all documents of a file. A document with a problem does not hide the others;
/// a document that can still be read further is given beside its problems.
pub fn read(path: &str, bytes: &[u8]) -> (Vec<RawDocument>, Vec<Problem>) {
    let source = match Source::new(path, bytes) {
        Ok(source) => Arc::new(source),
        Err(problem) => return (Vec::new(), vec![*problem]),
    };
    let chunks = source.chunks();
    let (mut documents, mut problems) = (Vec::new(), Vec::new());
    if chunks.is_empty() {
        problems.push(Problem {
            place: source.place(0, 0),
            message: "the file holds no document".to_owned(),
            snippet: None,
            hint: format!("a document starts with `apiVersion: {API_VERSION}`"),
        });
    }
    for chunk in &chunks {
        match tree::parse(&source, chunk) {
            Ok(root) => documents.extend(frame(root, &source, &mut problems)),
            Err(SyntaxError { spot, message, hint }) => {
                // Said by the parser, in words about YAML.
                let hint = hint.unwrap_or("this is not YAML: look for a colon, a quote or a bracket at or before it");
                problems.push(problem(&source, spot, message, hint.to_owned()));
            }
        }
    }
    if documents.is_empty() && looks_like_template(&source) {
        problems.truncate(1);
        for problem in &mut problems {
            problem.message = "no document; it looks like the template of a Job".to_owned();
            problem.hint = TEMPLATE.to_owned();
        }
    }
    (documents, problems)
}

/// Where templates belong.
const TEMPLATE: &str = "a file that a pool names as `template: {file: …}` is passed over here, by the same path; keep \
                        other templates out of the folders of documents";

/// Whether the mistakes of a file are those of a template: it has variables, or is a Job.
fn looks_like_template(source: &Source) -> bool {
    let text = source.text();
    !text.contains(API_VERSION) && (text.contains("{{") || text.lines().any(|line| line.trim_end() == "kind: Job"))
}

fn problem(source: &Source, spot: Spot, message: String, hint: String) -> Problem {
    let place = source.place(spot.line, spot.column);
    let snippet = source.snippet(&place, spot.length);
    // A value that is quoted whole may be a file of its own.
    let message = message.split(' ').map(tree::beginning).collect::<Vec<_>>().join(" ");
    Problem { place, message, snippet, hint }
}

/// Wrong values of one document that are looked for: nobody mends more in one go.
const MOST_WRONG: usize = 50;

/// What was read of a node.
struct Read<T> {
    value: Option<T>,
    problems: Vec<Problem>,
    /// Whether nothing is wrong but values that can do nothing.
    usable: bool,
}

/// Reads a node as a type; gives the value, if any, and what was wrong.
///
/// A type stops at its first wrong value. So it is read again without that value, until nothing new
/// is found. `help` is the hint of a mistake that has none of its own;
/// `strict`: whether a value that can do nothing is a mistake.
fn typed<T: DeserializeOwned>(
    source: &Source,
    node: &Node,
    from: Spot,
    root: &str,
    help: &str,
    strict: bool,
) -> Read<T> {
    let path = Path::Root(root);
    let mut wrong = BTreeSet::new();
    let mut problems: Vec<Problem> = Vec::new();
    let mut usable = true;
    let value = loop {
        let context = Context { file: source.file(), faults: RefCell::new(Vec::new()), strict, wrong };
        let result = T::deserialize(De { node, from, path: &path, context: &context });
        let Context { faults, wrong: before, .. } = context;
        wrong = before;
        let (mut faults, mut again) = (faults.into_inner(), None);
        let value = match result {
            Ok(value) => Some(value),
            Err(fault) => {
                again = fault.within;
                if !fault.told {
                    faults.push(fault);
                }
                None
            }
        };
        for Fault { spot, message, hint, soft, .. } in faults {
            let hint = hint.unwrap_or_else(|| help.to_owned());
            let found = problem(source, spot.unwrap_or(from), message, hint);
            usable &= soft;
            // Of one place once: that a value is empty says why it is nothing else.
            if !problems.iter().any(|known| *known == found || (known.place == found.place && !soft)) {
                problems.push(found);
            }
        }
        match again {
            Some(node) if wrong.len() < MOST_WRONG && wrong.insert(node) => {}
            _ => break value.filter(|_| wrong.is_empty()),
        }
    };
    problems.sort_by(|a, b| a.place.cmp(&b.place));
    Read { value, problems, usable }
}

/// What every document has.
const FRAME: &str = "a document has the keys `apiVersion`, `kind`, `metadata: {name: NAME}` and `spec`";

fn frame(root: Node, source: &Arc<Source>, problems: &mut Vec<Problem>) -> Option<RawDocument> {
    let start = Spot { length: 1, ..root.spot };
    let Read { value, problems: found, .. } = typed::<Frame>(source, &root, start, "document", FRAME, false);
    problems.extend(found);
    let Frame { api_version, kind, metadata, .. } = value?;
    let place_problem = |place: &Place, length: usize, message: String, hint: String| {
        let length = super::source::number(length);
        problem(source, Spot { line: place.line, column: place.column, length }, message, hint)
    };
    let mut known = true;
    if api_version.value != API_VERSION {
        let message = format!("there is no apiVersion `{api_version}`");
        let hint = format!("write `apiVersion: {API_VERSION}`");
        problems.push(place_problem(&api_version.place, api_version.chars().count(), message, hint));
        known = false;
    }
    let found = Kind::ALL.into_iter().find(|known| known.as_str() == kind.value);
    if found.is_none() {
        let names = Kind::ALL.map(Kind::as_str);
        let hint = match nearest(&kind, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("kinds are {}", names.join(", ")),
        };
        problems.push(place_problem(&kind.place, kind.chars().count(), format!("there is no kind `{kind}`"), hint));
    }
    let name = metadata.name;
    if !is_name(&name) {
        let message = format!("`{}` is no name of a document", name.escape_debug());
        let hint = "1 to 63 letters, digits, `-`, `_` and `.`, a letter or digit first".to_owned();
        problems.push(place_problem(&name.place, name.chars().count(), message, hint));
    }
    let kind = At::new(found.filter(|_| known)?, kind.place);
    let Value::Map(entries) = root.value else { return None };
    let spec = entries.into_iter().find(|entry| entry.name() == "spec")?;
    Some(RawDocument { kind, name, spec_key: spec.key.spot, spec: spec.value, source: source.clone() })
}

/// Names stand in reports, plans and commands: no spaces, quotes or signs that a shell reads.
fn is_name(name: &str) -> bool {
    let sign = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.len() <= 63 && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(sign)
}

impl RawDocument {
    /// Reads the `spec`. All unknown and duplicate keys and all wrong values are told.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<Document<T>, Vec<Problem>> {
        match self.read() {
            (Some(document), problems) if problems.is_empty() => Ok(document),
            (_, problems) => Err(problems),
        }
    }

    /// Reads the `spec`; gives the document beside its problems where these are but values that can do
    /// nothing, so that what it says otherwise can be checked, too.
    pub fn read<T: DeserializeOwned>(&self) -> (Option<Document<T>>, Vec<Problem>) {
        let help = format!("`poolwright schema {}` shows what stands here", self.kind.value);
        let strict = self.kind.value != Kind::World;
        let Read { value, problems, usable } = typed(&self.source, &self.spec, self.spec_key, "spec", &help, strict);
        let document = |spec| Document { name: self.name.clone(), spec, source: self.source.clone() };
        (value.filter(|_| usable).map(document), problems)
    }

    /// The file it stands in.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }
}
