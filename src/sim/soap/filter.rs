//! Filters: what changed since a client last looked.

use std::collections::BTreeMap;

use super::objects::Object;
use super::properties::Source;
use super::select::{Reader, field_of, select};
use super::shape::Version;
use super::value::any;
use crate::sim::fault::VimFault;
use crate::vim25::wire::Node;

/// A `PropertyFilter`.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    /// The `PropertyFilterSpec`.
    pub spec: Node,
    /// The version of the call that made it.
    pub version: Version,
    /// What the client knows: by object its type and the values by path.
    pub known: Known,
    /// What it knew before, for a client that lost an answer and asks again.
    pub before: Known,
}

/// Objects by id.
type Known = BTreeMap<String, (String, BTreeMap<String, Option<Node>>)>;

impl Filter {
    /// A filter of which nobody knows anything yet.
    pub fn new(spec: Node, version: Version) -> Self {
        Self { spec, version, known: Known::new(), before: Known::new() }
    }

    fn current(&self, from: Source<'_>) -> Result<Known, VimFault> {
        // An object that went away while it is watched leaves; it does not fail the wait.
        let mut spec = self.spec.clone();
        spec.children.retain(|child| child.name != "reportMissingObjectsInResults");
        let spec = spec.with(Node::leaf("reportMissingObjectsInResults", "true"));
        let plan = select(from, &spec, self.version)?;
        let mut known = Known::new();
        for item in plan.items {
            let Some(object) = Object::find(from.state, from.session, &item.object) else { continue };
            let kind = object.kind(from.state).to_owned();
            let mut reader = Reader::new(from, object, false);
            let mut values = BTreeMap::new();
            for path in item.paths {
                let field = field_of(&kind, &path, self.version)?;
                let value =
                    field.and_then(|field| reader.read(&path).map(|value| any("val", field, &value, self.version)));
                values.insert(path, value);
            }
            known.insert(item.object.id, (kind, values));
        }
        Ok(known)
    }

    /// The `objectSet` of what changed, at most so many objects, and whether more did; remembers what
    /// it tells.
    pub fn changes(&mut self, from: Source<'_>, most: usize) -> Result<(Vec<Node>, bool), VimFault> {
        let current = self.current(from)?;
        let before = self.known.clone();
        let mut told = Vec::new();
        let mut more = false;
        for (id, (kind, values)) in &current {
            let old = self.known.get(id);
            if old.is_some_and(|(_, old)| old == values) {
                continue;
            }
            if told.len() >= most {
                more = true;
                break;
            }
            told.push(update(
                if old.is_some() { "modify" } else { "enter" },
                id,
                kind,
                values,
                old.map(|(_, old)| old),
            ));
            self.known.insert(id.clone(), (kind.clone(), values.clone()));
        }
        let gone: Vec<(String, String)> = self
            .known
            .iter()
            .filter(|(id, _)| !current.contains_key(*id))
            .map(|(id, (kind, _))| (id.clone(), kind.clone()))
            .collect();
        for (id, kind) in gone {
            told.push(update("leave", &id, &kind, &BTreeMap::new(), None));
            self.known.remove(&id);
        }
        if !told.is_empty() {
            self.before = before;
        }
        Ok((told, more))
    }
}

fn update(
    what: &str,
    id: &str,
    kind: &str,
    values: &BTreeMap<String, Option<Node>>,
    old: Option<&BTreeMap<String, Option<Node>>>,
) -> Node {
    let changed = values.iter().filter(|(path, value)| match old.and_then(|old| old.get(*path)) {
        Some(old) => old != *value,
        // What an object never had is not told of.
        None => value.is_some(),
    });
    let changes = changed.map(|(path, value)| {
        Node::new("changeSet").with(Node::leaf("name", path)).with(Node::leaf("op", "assign")).with_some(value.clone())
    });
    Node::new("objectSet").with(Node::leaf("kind", what)).with(Node::reference("obj", kind, id)).with_all(changes)
}
