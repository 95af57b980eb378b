//! Which objects and which of their properties a property collector reads.

use std::collections::{BTreeMap, BTreeSet};

use super::objects::Object;
use super::properties::{Source, property};
use super::request::{boolean, reference};
use super::session::View;
use super::shape::{Field, Kind, Version, shape};
use super::value::Value;
use crate::model::MoRef;
use crate::sim::fault::VimFault;
use crate::sim::world::state::State;
use crate::vim25::wire::Node;

/// Objects with the paths to read of each, in the order in which they were found.
#[derive(Debug, Clone, Default)]
pub(super) struct Plan {
    /// Objects of a page; 0 as long as nobody said.
    pub most: usize,
    pub items: Vec<Item>,
}

/// One object.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub object: MoRef,
    pub paths: Vec<String>,
}

/// The field that a path ends in; none if it leads into a type that no table here has.
///
/// # Errors
/// `InvalidProperty` for a path that the version does not have: the whole call fails with it
/// (vsphere-gpu §1.1).
pub(super) fn field_of(kind: &str, path: &str, version: Version) -> Result<Option<&'static Field>, VimFault> {
    let mut kind: String = kind.to_owned();
    let mut found: Option<&'static Field> = None;
    for part in path.split('.') {
        if !shape().knows(&kind) {
            return Ok(None);
        }
        if found.is_some_and(|field| field.many) {
            return Err(VimFault::property(path));
        }
        let field = shape().field(&kind, part).filter(|field| field.since <= version);
        let field = field.ok_or_else(|| VimFault::property(path))?;
        found = Some(field);
        kind = match field.kind {
            Kind::Data(of) => of.to_owned(),
            Kind::Xsd(_) | Kind::Ref(_) | Kind::Enum(_) => "-".to_owned(),
        };
        let last = path.ends_with(part) && path.split('.').next_back() == Some(part);
        if kind == "-" && !last {
            return Err(VimFault::property(path));
        }
    }
    Ok(found)
}

/// Reads paths of one object; a whole property is made once, however many paths lead into it.
pub(super) struct Reader<'a> {
    pub from: Source<'a>,
    pub object: Object,
    pub stale: bool,
    made: BTreeMap<String, Option<Value>>,
}

impl<'a> Reader<'a> {
    pub fn new(from: Source<'a>, object: Object, stale: bool) -> Self {
        Self { from, object, stale, made: BTreeMap::new() }
    }

    /// The value at a path, if the object has one.
    pub fn read(&mut self, path: &str) -> Option<Value> {
        let mut parts = path.split('.');
        let first = parts.next()?;
        let Self { from, object, stale, made } = self;
        let whole = made.entry(first.to_owned()).or_insert_with(|| property(*from, object, first, *stale));
        let mut value = whole.as_ref()?;
        for part in parts {
            let Value::Data(_, fields) = value else { return None };
            value = fields.iter().find(|(name, _)| *name == part).map(|(_, value)| value)?;
        }
        Some(value.clone())
    }
}

/// What is in a container view.
pub(super) fn members(state: &State, view: &View) -> Vec<Object> {
    let mut found = Vec::new();
    if let Some(container) = Object::find(state, None, &view.container) {
        collect(state, &container, view, &mut found);
    }
    found
}

fn collect(state: &State, at: &Object, view: &View, found: &mut Vec<Object>) {
    for child in at.children(state) {
        let kind = child.kind(state);
        if view.kinds.is_empty() || view.kinds.iter().any(|wanted| shape().is_a(kind, wanted)) {
            found.push(child.clone());
        }
        if view.recursive {
            collect(state, &child, view, found);
        }
    }
}

/// What a `PropertyFilterSpec` selects.
pub(super) fn select(from: Source<'_>, spec: &Node, version: Version) -> Result<Plan, VimFault> {
    let wanted: Vec<Wanted> = spec.all("propSet").map(Wanted::read).collect();
    for one in &wanted {
        for path in &one.paths {
            field_of(&one.kind, path, version)?;
        }
    }
    let lenient = spec.text_of("reportMissingObjectsInResults").and_then(boolean).unwrap_or(false);
    let mut walk = Walk { from, seen: BTreeSet::new(), found: Vec::new() };
    for object_spec in spec.all("objectSet") {
        let Some(start) = object_spec.get("obj").and_then(reference) else { continue };
        let Some(object) = Object::find(from.state, from.session, &start) else {
            if lenient {
                continue;
            }
            return Err(VimFault::gone(&start.kind, &start.id));
        };
        let mut named = BTreeMap::new();
        name_all(object_spec, &mut named);
        let skip = object_spec.text_of("skip").and_then(boolean).unwrap_or(false);
        walk.visit(&object, skip, object_spec, &named);
    }
    let mut plan = Plan::default();
    for object in walk.found {
        let kind = object.kind(from.state);
        let matching: Vec<&Wanted> = wanted.iter().filter(|wanted| shape().is_a(kind, &wanted.kind)).collect();
        if matching.is_empty() {
            continue;
        }
        let mut paths: Vec<String> = Vec::new();
        for path in matching.iter().flat_map(|wanted| wanted.paths_of(kind, version)) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        plan.items.push(Item { object: object.reference(from.state), paths });
    }
    Ok(plan)
}

/// A `PropertySpec`.
struct Wanted {
    kind: String,
    all: bool,
    paths: Vec<String>,
}

impl Wanted {
    fn read(node: &Node) -> Self {
        Self {
            kind: node.text_of("type").unwrap_or_default().to_owned(),
            all: node.text_of("all").and_then(boolean).unwrap_or(false),
            paths: node.all("pathSet").map(|path| path.text.clone()).collect(),
        }
    }

    fn paths_of(&self, kind: &str, version: Version) -> Vec<String> {
        if !self.all {
            return self.paths.clone();
        }
        let fields = shape().fields(kind);
        fields.iter().filter(|field| field.since <= version).map(|field| field.name.to_owned()).collect()
    }
}

/// All traversals below a node, by name, since they refer to each other.
fn name_all<'n>(node: &'n Node, named: &mut BTreeMap<&'n str, &'n Node>) {
    for child in node.all("selectSet") {
        if let (Some(name), true) = (child.text_of("name"), child.get("path").is_some()) {
            named.insert(name, child);
        }
        name_all(child, named);
    }
}

struct Walk<'a> {
    from: Source<'a>,
    /// Objects visited, each with the place in the spec from which it was reached.
    seen: BTreeSet<(String, usize)>,
    found: Vec<Object>,
}

impl Walk<'_> {
    fn visit(&mut self, object: &Object, skip: bool, spec: &Node, named: &BTreeMap<&str, &Node>) {
        let id = object.reference(self.from.state).id;
        if !self.seen.insert((id, std::ptr::from_ref(spec).addr())) {
            return;
        }
        if !skip && !self.found.contains(object) {
            self.found.push(object.clone());
        }
        for selection in spec.all("selectSet") {
            let traversal = match selection.get("path") {
                Some(_) => Some(selection),
                None => selection.text_of("name").and_then(|name| named.get(name).copied()),
            };
            if let Some(traversal) = traversal {
                self.traverse(object, traversal, named);
            }
        }
    }

    fn traverse(&mut self, object: &Object, traversal: &Node, named: &BTreeMap<&str, &Node>) {
        let kind = traversal.text_of("type").unwrap_or_default();
        if !shape().is_a(object.kind(self.from.state), kind) {
            return;
        }
        let path = traversal.text_of("path").unwrap_or_default();
        let skip = traversal.text_of("skip").and_then(boolean).unwrap_or(false);
        let value = Reader::new(self.from, object.clone(), false).read(path);
        for target in value.map(references).unwrap_or_default() {
            if let Some(target) = Object::find(self.from.state, self.from.session, &target) {
                self.visit(&target, skip, traversal, named);
            }
        }
    }
}

fn references(value: Value) -> Vec<MoRef> {
    match value {
        Value::Ref(kind, id) => vec![MoRef::new(kind, id)],
        Value::List(items) => items.into_iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}
