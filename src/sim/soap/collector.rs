//! Reading: pages of objects with their properties, `Fetch` of one property.

use super::objects::Object;
use super::properties::Source;
use super::select::{Item, Plan, Reader, field_of};
use super::shape::Version;
use super::value::any;
use crate::model::MoRef;
use crate::sim::fault::VimFault;
use crate::sim::faults::Struck;
use crate::vim25::wire::Node;

/// One object as `ObjectContent`; none if it is gone meanwhile (case D06: the rest is read).
pub(super) fn content(from: Source<'_>, item: &Item, struck: &Struck, version: Version) -> Option<Node> {
    let object = Object::find(from.state, from.session, &item.object)?;
    let (name, id) = (object.name(from.state), item.object.id.as_str());
    if struck.gone.iter().any(|target| target.is(name, id)) {
        return None;
    }
    let stale = struck.stale.iter().any(|target| target.is(name, id));
    let mut node = Node::new("objects").with(Node::reference("obj", object.kind(from.state), id));
    let mut missing = Vec::new();
    let hidden = hidden(from, &object, name, id, struck);
    let mut reader = Reader::new(from, object.clone(), stale);
    for path in &item.paths {
        if covers(&hidden.unreadable, path) {
            missing.push(missing_property(path, &no_permission(&item.object)));
        } else if !covers(&hidden.absent, path)
            && let Ok(Some(field)) = field_of(object.kind(from.state), path, version)
            && let Some(value) = reader.read(path)
        {
            let property = Node::new("propSet").with(Node::leaf("name", path)).with(any("val", field, &value, version));
            node.children.push(property);
        }
    }
    node.children.extend(missing);
    Some(node)
}

struct Hidden {
    unreadable: Vec<String>,
    absent: Vec<String>,
}

fn hidden(from: Source<'_>, object: &Object, name: Option<&str>, id: &str, struck: &Struck) -> Hidden {
    let host = match object {
        Object::Host(host) => from.state.hosts.get(host),
        _ => None,
    };
    let mut unreadable = host.map(|host| host.unreadable.clone()).unwrap_or_default();
    for (_, paths) in struck.missing.iter().filter(|(target, _)| target.is(name, id)) {
        unreadable.extend(paths.iter().cloned());
    }
    Hidden { unreadable, absent: host.map(|host| host.absent.clone()).unwrap_or_default() }
}

/// Whether a path is one of these or lies below one.
fn covers(paths: &[String], path: &str) -> bool {
    paths
        .iter()
        .any(|known| path == known || path.strip_prefix(known.as_str()).is_some_and(|rest| rest.starts_with('.')))
}

fn no_permission(object: &MoRef) -> VimFault {
    VimFault::named("NoPermission")
        .with(Node::reference("object", &object.kind, &object.id))
        .with(Node::leaf("privilegeId", "System.Read"))
}

/// A `MissingProperty`.
pub(super) fn missing_property(path: &str, fault: &VimFault) -> Node {
    Node::new("missingSet").with(Node::leaf("path", path)).with(
        Node::new("fault")
            .with(Node::new("fault").typed(&fault.kind).with_all(fault.fields.iter().cloned()))
            .with(Node::leaf("localizedMessage", &fault.message)),
    )
}

/// The next page of a plan; what is left of it.
pub(super) fn page(from: Source<'_>, plan: Plan, struck: &Struck, version: Version) -> (Vec<Node>, Plan) {
    let most = plan.most;
    let mut items = plan.items.into_iter();
    let objects = items.by_ref().take(most.max(1)).filter_map(|item| content(from, &item, struck, version)).collect();
    (objects, Plan { most, items: items.collect() })
}

/// `Fetch`, by which pyVmomi reads: the value, or none if the object does not have one.
pub(super) fn fetch(
    from: Source<'_>,
    object: &Object,
    name: &str,
    struck: &Struck,
    version: Version,
) -> Result<Option<Node>, VimFault> {
    let kind = object.kind(from.state);
    let Some(field) = field_of(kind, name, version)? else { return Ok(None) };
    let reference = object.reference(from.state);
    let hidden = hidden(from, object, object.name(from.state), &reference.id, struck);
    if covers(&hidden.unreadable, name) {
        return Err(no_permission(&reference));
    }
    let stale = struck.stale.iter().any(|target| target.is(object.name(from.state), &reference.id));
    let value = Reader::new(from, object.clone(), stale).read(name).filter(|_| !covers(&hidden.absent, name));
    Ok(value.map(|value| any("returnval", field, &value, version)))
}
