//! Requests: read and checked against the type tables before anything happens.
//!
//! A real server refuses elements that it does not know, that come in another order, and parameters
//! that are missing (vsphere-gpu §5.1); so does this one.

use super::shape::{Field, Kind, Version, shape};
use crate::model::MoRef;
use crate::sim::fault::VimFault;
use crate::vim25::wire::{Limits, Namespace, Node};

/// A call as it came in.
#[derive(Debug)]
pub(super) struct Call {
    pub method: String,
    pub this: MoRef,
    /// The method's element: `_this` and the parameters.
    pub body: Node,
    pub version: Version,
}

impl Call {
    /// Reads an envelope.
    pub fn read(bytes: &[u8], version: Version) -> Result<Self, VimFault> {
        let root = Node::parse(bytes, Limits::default()).map_err(|error| VimFault::request(error.to_string()))?;
        let envelope = root.namespace == Namespace::Envelope && root.name == "Envelope";
        let body = root.all("Body").find(|child| child.namespace == Namespace::Envelope).filter(|_| envelope);
        let body =
            body.and_then(|body| body.children.first()).cloned().ok_or_else(|| VimFault::request("no SOAP body"))?;
        if body.namespace != Namespace::Vim25 {
            return Err(VimFault::request(format!("{} is not of urn:vim25", body.name)));
        }
        let this = body.children.first().filter(|child| child.name == "_this").and_then(reference);
        let this = this.ok_or_else(|| VimFault::request("_this must be the first parameter"))?;
        Ok(Self { method: body.name.clone(), this, body, version })
    }

    /// Checks the parameters of a method of this managed type.
    pub fn check(&self, managed: &str) -> Result<(), VimFault> {
        let method = shape()
            .method(managed, &self.method)
            .filter(|method| method.since <= self.version)
            .ok_or_else(|| VimFault::request(format!("{managed} has no method {}", self.method)))?;
        let parameters: Vec<&Field> = method.parameters.iter().collect();
        fields(self.body.children.get(1..).unwrap_or_default(), &parameters, self.version, &self.method)
    }

    /// A parameter.
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.body.get(name)
    }

    /// A parameter as text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.body.text_of(name)
    }

    /// A parameter as a whole number; checked before, so that absent is the only other case.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.text(name)?.trim().parse().ok()
    }

    /// A parameter as a boolean.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.text(name).and_then(boolean)
    }

    /// The parameters on one line, for the world's log. Never called for `Login`.
    pub fn arguments(&self) -> String {
        self.body.children.iter().skip(1).map(line).collect::<Vec<_>>().join(" ")
    }
}

fn line(node: &Node) -> String {
    if node.children.is_empty() {
        return format!("{}={}", node.name, node.text);
    }
    format!("{}{{{}}}", node.name, node.children.iter().map(line).collect::<Vec<_>>().join(" "))
}

/// `true`, `false`, `1`, `0`.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text.trim() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// A reference to a managed object.
pub(super) fn reference(node: &Node) -> Option<MoRef> {
    Some(MoRef::new(node.attribute("type")?, node.text.trim()))
}

fn fields(children: &[Node], known: &[&Field], version: Version, at: &str) -> Result<(), VimFault> {
    let mut last: Option<usize> = None;
    for child in children {
        let found = known.iter().position(|field| field.name == child.name && field.since <= version);
        let Some(index) = found.filter(|_| child.namespace == Namespace::Vim25) else {
            return Err(VimFault::request(format!("{at}: unexpected element {}", child.name)));
        };
        if last.is_some_and(|last| index < last) {
            return Err(VimFault::request(format!("{at}: element {} is out of order", child.name)));
        }
        if last == Some(index) && !known[index].many {
            return Err(VimFault::request(format!("{at}: element {} is there twice", child.name)));
        }
        last = Some(index);
        one(child, known[index].kind, version, &format!("{at}.{}", child.name))?;
    }
    let missing = known.iter().find(|field| {
        !field.optional
            && !field.many
            && field.since <= version
            && !children.iter().any(|child| child.name == field.name)
    });
    match missing {
        Some(field) => Err(VimFault::request(format!("{at}: required element {} is missing", field.name))),
        None => Ok(()),
    }
}

fn one(node: &Node, kind: Kind, version: Version, at: &str) -> Result<(), VimFault> {
    let wrong = |what: &str| VimFault::request(format!("{at}: `{}` is not {what}", node.text));
    match kind {
        Kind::Ref(_) if node.attribute("type").is_none() => {
            Err(VimFault::request(format!("{at}: a reference has no type")))
        }
        Kind::Ref(_) | Kind::Enum(_) => Ok(()),
        Kind::Xsd("anyType") if node.xsi_type.is_none() => Err(VimFault::request(format!("{at}: xsi:type is missing"))),
        Kind::Xsd("boolean") => boolean(&node.text).map(drop).ok_or_else(|| wrong("a boolean")),
        Kind::Xsd("byte" | "short" | "int" | "long") => {
            node.text.trim().parse::<i64>().map(drop).map_err(|_| wrong("a number"))
        }
        Kind::Xsd("dateTime") => node.text.trim().parse::<jiff::Timestamp>().map(drop).map_err(|_| wrong("a time")),
        Kind::Xsd(_) => Ok(()),
        Kind::Data(declared) => {
            let actual = node.type_name().unwrap_or(declared);
            if actual != declared && !shape().is_a(actual, declared) {
                return Err(VimFault::request(format!("{at}: {actual} is not a {declared}")));
            }
            if shape().knows(actual) { fields(&node.children, &shape().fields(actual), version, at) } else { Ok(()) }
        }
    }
}
