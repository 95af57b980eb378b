//! Values of properties, and how the wire writes them: by the type tables and the version asked for.

use super::shape::{Field, Kind, Version, shape};
use crate::vim25::wire::Node;

/// The value of a property or of a field.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// A text, number, boolean, time or enumeration: the table knows which.
    Text(String),
    /// The same for a field of any type: its type of XML Schema, and the text.
    Any(&'static str, String),
    /// A reference: managed type and id.
    Ref(&'static str, String),
    /// A data object: its type and the fields it has, in any order.
    Data(&'static str, Vec<(&'static str, Value)>),
    /// A list.
    List(Vec<Value>),
    /// Something that no table knows, as it stands.
    Raw(Node),
}

/// A text value of anything that prints.
pub(super) fn text(value: impl ToString) -> Value {
    Value::Text(value.to_string())
}

/// A data object that is put together field by field.
pub(super) struct Data(&'static str, Vec<(&'static str, Value)>);

impl Data {
    /// An empty object of a type.
    pub fn of(kind: &'static str) -> Self {
        Self(kind, Vec::new())
    }

    /// With a text.
    pub fn text(self, name: &'static str, value: impl ToString) -> Self {
        self.set(name, text(value))
    }

    /// With a value.
    pub fn set(mut self, name: &'static str, value: Value) -> Self {
        self.1.push((name, value));
        self
    }

    /// With a value, if there is one.
    pub fn some(mut self, name: &'static str, value: Option<Value>) -> Self {
        self.1.extend(value.map(|value| (name, value)));
        self
    }

    /// With a reference.
    pub fn reference(self, name: &'static str, kind: &'static str, id: impl Into<String>) -> Self {
        self.set(name, Value::Ref(kind, id.into()))
    }

    /// The value.
    pub fn done(self) -> Value {
        Value::Data(self.0, self.1)
    }
}

/// A field with its value, as elements: none, one, or as many as the list has.
pub(super) fn elements(field: &Field, value: &Value, version: Version) -> Vec<Node> {
    match value {
        Value::List(items) => items.iter().flat_map(|item| elements(field, item, version)).collect(),
        other => vec![element(field.name, field.kind, other, version)],
    }
}

/// One value in a typed place: `xsi:type` only where it says more than the table.
fn element(name: &str, kind: Kind, value: &Value, version: Version) -> Node {
    match value {
        Value::Text(text) if kind == Kind::Xsd("anyType") => Node::leaf(name, text).xsd("string"),
        Value::Text(text) => Node::leaf(name, text),
        Value::Any(xsd, text) => Node::leaf(name, text).xsd(*xsd),
        Value::Ref(of, id) => Node::reference(name, of, id),
        Value::Data(of, fields) => {
            let node = data(name, of, fields, version);
            if kind == Kind::Data(of) { node } else { node.typed(*of) }
        }
        Value::List(items) => Node::new(name).with_all(items.iter().map(|item| element("item", kind, item, version))),
        Value::Raw(node) => Node { name: name.to_owned(), ..node.clone() },
    }
}

fn data(name: &str, of: &str, fields: &[(&'static str, Value)], version: Version) -> Node {
    let mut node = Node::new(name);
    for field in shape().fields(of).into_iter().filter(|field| field.since <= version) {
        if let Some((_, value)) = fields.iter().find(|(known, _)| *known == field.name) {
            node.children.extend(elements(field, value, version));
        }
    }
    node
}

/// A result: one `returnval`, or one for each of a list.
pub(super) fn returned(kind: Kind, value: &Value, version: Version) -> Vec<Node> {
    elements(&Field { name: "returnval", optional: true, many: true, kind, since: version }, value, version)
}

/// A value in a place of any type (`val`, and `returnval` of `Fetch`): always with `xsi:type`, lists as
/// `ArrayOf…` (vsphere-gpu §5.1; the recordings).
pub(super) fn any(name: &str, field: &Field, value: &Value, version: Version) -> Node {
    match value {
        Value::List(items) => {
            let (array, item) = match field.kind {
                Kind::Xsd(xsd) => (format!("ArrayOf{}", capital(xsd)), xsd),
                Kind::Ref(_) => ("ArrayOfManagedObjectReference".to_owned(), "ManagedObjectReference"),
                Kind::Enum(of) | Kind::Data(of) => (format!("ArrayOf{of}"), of),
            };
            Node::new(name).typed(array).with_all(items.iter().map(|one| any_one(item, field.kind, one, version)))
        }
        one => any_one(name, field.kind, one, version),
    }
}

fn any_one(name: &str, kind: Kind, value: &Value, version: Version) -> Node {
    let node = element(name, kind, value, version);
    match (value, kind) {
        (Value::Ref(..), _) => node.typed("ManagedObjectReference"),
        (Value::Data(of, _), _) => node.typed(*of),
        (Value::Text(_), Kind::Enum(of)) => node.typed(of),
        (Value::Text(_), Kind::Xsd(xsd)) if xsd != "anyType" => node.xsd(xsd),
        _ => node,
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().collect::<String>() + letters.as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vim25::wire::document;

    fn at(version: &str) -> Version {
        Version::parse(version).unwrap()
    }

    fn graphics() -> Value {
        // Fields in the wrong order: the table puts them right.
        Data::of("HostGraphicsInfo")
            .text("vgpuMode", "mixedSize")
            .text("pciId", "0000:3b:00.0")
            .text("deviceName", "X")
            .done()
    }

    #[test]
    fn a_field_of_a_later_version_is_not_sent_and_the_order_is_the_tables() {
        let field = shape().field("HostConfigInfo", "graphicsInfo").unwrap();
        let list = Value::List(vec![graphics()]);
        let new = document(&any("val", field, &list, at("8.0.3.0")));
        assert!(
            new.contains("ArrayOfHostGraphicsInfo")
                && new.contains("<deviceName>X</deviceName><pciId>0000:3b:00.0</pciId><vgpuMode>"),
            "{new}"
        );
        let old = document(&any("val", field, &list, at("8.0.2.0")));
        assert!(!old.contains("vgpuMode"), "{old}");
    }

    #[test]
    fn values_of_any_type_carry_their_type_as_recorded() {
        let named = |of, field| shape().field(of, field).unwrap();
        let host = named("ManagedEntity", "parent");
        let parent =
            document(&any("returnval", host, &Value::Ref("ClusterComputeResource", "domain-c9".into()), at("8.0.3.0")));
        assert!(parent.contains("xsi:type=\"ManagedObjectReference\" type=\"ClusterComputeResource\""), "{parent}");
        let status =
            document(&any("returnval", named("ManagedEntity", "overallStatus"), &text("green"), at("8.0.3.0")));
        assert!(status.contains("xsi:type=\"ManagedEntityStatus\""), "{status}");
        let none =
            document(&any("returnval", named("ManagedEntity", "recentTask"), &Value::List(vec![]), at("8.0.3.0")));
        assert!(none.contains("ArrayOfManagedObjectReference"), "{none}");
    }
}
