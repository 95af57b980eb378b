//! Templates: YAML with variables, which becomes a value.

use std::collections::BTreeMap;

use serde_json::Value;
use tera::{Context, ErrorKind, ReportError, Tera};

use super::embedded::embedded;
use super::nearest;
use super::problem::Problem;
use super::source::{Source, number};
use super::tree::{self, Node, SyntaxError};

/// A template whose variables are filled in.
#[derive(Debug)]
pub struct Filled {
    /// What it became.
    pub value: Value,
    root: Node,
    /// The text that it became, line by line the template's.
    rendered: Source,
}

/// Variables of a template that nobody gave, or given ones that it does not have.
#[derive(Debug, PartialEq, Eq)]
pub struct Unused(pub Vec<String>);

/// Fills the variables of a template in, and reads the YAML that it becomes: one document.
///
/// # Errors
/// What is wrong with the template, with the place in it: a variable that is not given, what is no
/// template or no YAML, keys that stand twice.
pub fn fill(path: &str, bytes: &[u8], given: &BTreeMap<&str, String>) -> Result<(Filled, Unused), Vec<Problem>> {
    let source = Source::new(path, bytes).map_err(|problem| vec![*problem])?;
    let mut tera = Tera::default();
    // Nothing here is HTML.
    tera.autoescape_on(Vec::<String>::new());
    tera.add_raw_template(path, source.text()).map_err(|error| vec![syntax(&source, &error)])?;
    let mut wanted: Vec<&str> =
        tera.get_template_variables(path).map_err(|error| vec![syntax(&source, &error)])?.into_iter().collect();
    wanted.sort_unstable();
    let missing: Vec<Problem> = wanted
        .iter()
        .filter(|name| !given.contains_key(**name))
        .map(|name| {
            let hint = match nearest(name, given.keys().copied()) {
                Some(near) => format!("did you mean `{near}`? Otherwise give it a value: `set: {{{name}: …}}`"),
                None => format!("give it a value: `set: {{{name}: …}}`"),
            };
            at_word(&source, name, format!("the variable `{name}` has no value"), hint)
        })
        .collect();
    if !missing.is_empty() {
        return Err(missing);
    }
    let unused = given.keys().filter(|name| !wanted.contains(name)).map(|name| (*name).to_owned()).collect();
    let mut context = Context::new();
    for (name, value) in given {
        context.insert((*name).to_owned(), value);
    }
    let text = tera.render(path, &context).map_err(|error| vec![syntax(&source, &error)])?;
    let rendered = Source::new(path, text.as_bytes()).map_err(|problem| vec![*problem])?;
    Ok((read(rendered)?, Unused(unused)))
}

fn read(rendered: Source) -> Result<Filled, Vec<Problem>> {
    let chunks = rendered.chunks();
    let [chunk] = chunks.as_slice() else {
        let message = format!("the template has {} documents, and one is read", chunks.len());
        return Err(vec![whole(&rendered, message, "leave one of them, or give each its own file")]);
    };
    let root = tree::parse(&rendered, chunk).map_err(|SyntaxError { spot, message, hint }| {
        let place = rendered.place(spot.line, spot.column);
        let hint =
            hint.unwrap_or("with its variables filled in this is not YAML: look for a colon, a quote or a bracket");
        vec![Problem { snippet: rendered.snippet(&place, spot.length), place, message, hint: hint.to_owned() }]
    })?;
    let mut twice = Vec::new();
    doubled(&rendered, &root, &mut twice);
    if !twice.is_empty() {
        return Err(twice);
    }
    let value = embedded(&rendered.text()[chunk.bytes.clone()])
        .map_err(|error| vec![whole(&rendered, error.message, "with its variables filled in this is not YAML")])?;
    Ok(Filled { value, root, rendered })
}

impl Filled {
    /// A problem at this path of keys, or at as much of it as there is.
    pub fn problem(&self, path: &[&str], message: impl Into<String>, hint: &str) -> Problem {
        let mut node = &self.root;
        for key in path {
            let next = match &node.value {
                tree::Value::Map(entries) => {
                    entries.iter().find(|entry| entry.name() == *key).map(|entry| &entry.value)
                }
                tree::Value::List(items) => key.parse().ok().and_then(|index: usize| items.get(index)),
                tree::Value::Blank | tree::Value::Null | tree::Value::Scalar { .. } => None,
            };
            let Some(next) = next else { break };
            node = next;
        }
        let place = self.rendered.place(node.spot.line, node.spot.column);
        let snippet = self.rendered.snippet_of_word(&place);
        Problem { place, message: message.into(), snippet, hint: hint.to_owned() }
    }
}

/// Keys that stand twice in one mapping.
fn doubled(source: &Source, node: &Node, found: &mut Vec<Problem>) {
    match &node.value {
        tree::Value::Map(entries) => {
            for (index, entry) in entries.iter().enumerate() {
                if entries[..index].iter().any(|before| before.name() == entry.name()) {
                    let spot = entry.key.spot;
                    let place = source.place(spot.line, spot.column);
                    found.push(Problem {
                        snippet: source.snippet(&place, spot.length),
                        place,
                        message: format!("the key `{}` stands twice", entry.name()),
                        hint: "remove one of them".to_owned(),
                    });
                }
                doubled(source, &entry.value, found);
            }
        }
        tree::Value::List(items) => items.iter().for_each(|item| doubled(source, item, found)),
        tree::Value::Blank | tree::Value::Null | tree::Value::Scalar { .. } => {}
    }
}

/// What the template engine has to say, at its place in the template.
fn syntax(source: &Source, error: &tera::Error) -> Problem {
    let hint = "variables are written `{{ image }}`; what else stands in double braces is left out";
    match error.kind() {
        ErrorKind::SyntaxError(report) | ErrorKind::RenderingError(report) => {
            let place = place(source, report);
            let message = format!("not a template: {}", report.message());
            Problem { snippet: source.snippet(&place, 1), place, message, hint: hint.to_owned() }
        }
        other => reported(source, &other.to_string(), hint),
    }
}

/// What the engine says in a report of its own: its first line, at the place that the second one names.
fn reported(source: &Source, report: &str, hint: &str) -> Problem {
    let mut lines = report.lines();
    let words = lines.next().unwrap_or_default();
    let message = format!("not a template: {}", words.strip_prefix("error: ").unwrap_or(words));
    let mut numbers = lines.next().unwrap_or_default().rsplit(':').map(|number| number.trim().parse::<u32>());
    match (numbers.next(), numbers.next()) {
        (Some(Ok(column)), Some(Ok(line))) => {
            let place = source.place(line, column);
            Problem { snippet: source.snippet_of_word(&place), place, message, hint: hint.to_owned() }
        }
        _ => whole(source, message, hint),
    }
}

fn place(source: &Source, report: &ReportError) -> crate::model::Place {
    let span = report.span();
    source.place(number(span.start_line), number(span.start_col).saturating_add(1))
}

/// At the first place where a variable is used.
fn at_word(source: &Source, name: &str, message: String, hint: String) -> Problem {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.');
    let found = source.text().lines().enumerate().find_map(|(index, line)| {
        let at = line.match_indices(name).map(|(at, _)| at).find(|at| {
            let (before, after) = (&line[..*at], &line[at + name.len()..]);
            let opened = ["{{", "{%"].iter().filter_map(|brace| before.rfind(brace)).max();
            let closed = ["}}", "%}"].iter().filter_map(|brace| before.rfind(brace)).max();
            opened > closed && !is_part(before.chars().next_back()) && !is_part(after.chars().next())
        })?;
        Some(source.place(number(index + 1), number(line[..at].chars().count() + 1)))
    });
    let place = found.unwrap_or_else(|| source.place(0, 0));
    Problem { snippet: source.snippet(&place, number(name.chars().count())), place, message, hint }
}

fn whole(source: &Source, message: String, hint: &str) -> Problem {
    Problem { place: source.place(0, 0), message, snippet: None, hint: hint.to_owned() }
}
