//! XML as an owned tree, names resolved by namespace.
//!
//! Serde cannot tell `type` from `xsi:type`, nor survive an unknown type or an empty enumeration
//! (crates.md 5.4), so answers are read into this tree and decoded by hand, property by property.

use quick_xml::NsReader;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{NamespaceResolver, Prefix, QName, ResolveResult};

/// The namespaces that vim25 uses, and any other.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Namespace {
    /// No namespace.
    None,
    /// `urn:vim25`.
    Vim25,
    /// The SOAP 1.1 envelope.
    Envelope,
    /// `http://www.w3.org/2001/XMLSchema`.
    Xsd,
    /// `http://www.w3.org/2001/XMLSchema-instance`.
    Xsi,
    /// Any other, by its name; or a prefix that nobody declared.
    Other(String),
}

impl Namespace {
    /// `urn:vim25`.
    pub const VIM25: &'static str = "urn:vim25";
    /// The SOAP 1.1 envelope.
    pub const ENVELOPE: &'static str = "http://schemas.xmlsoap.org/soap/envelope/";
    /// XML Schema.
    pub const XSD: &'static str = "http://www.w3.org/2001/XMLSchema";
    /// XML Schema instance.
    pub const XSI: &'static str = "http://www.w3.org/2001/XMLSchema-instance";

    /// The namespace of this name.
    pub fn of(uri: &str) -> Self {
        match uri {
            "" => Self::None,
            Self::VIM25 => Self::Vim25,
            Self::ENVELOPE => Self::Envelope,
            Self::XSD => Self::Xsd,
            Self::XSI => Self::Xsi,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Its name; empty for none.
    pub fn uri(&self) -> &str {
        match self {
            Self::None => "",
            Self::Vim25 => Self::VIM25,
            Self::Envelope => Self::ENVELOPE,
            Self::Xsd => Self::XSD,
            Self::Xsi => Self::XSI,
            Self::Other(uri) => uri,
        }
    }
}

/// The value of an `xsi:type`, its prefix resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TypeName {
    /// Namespace of the type.
    pub namespace: Namespace,
    /// Its name, `HostSriovInfo`.
    pub name: String,
}

/// An attribute other than `xsi:type` and namespace declarations.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Attribute {
    /// Namespace; an attribute without a prefix has none.
    pub namespace: Namespace,
    /// Local name.
    pub name: String,
    /// Value.
    pub value: String,
}

/// An element.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    /// Namespace.
    pub namespace: Namespace,
    /// Local name.
    pub name: String,
    /// `xsi:type`, found by its namespace whatever the prefix.
    pub xsi_type: Option<TypeName>,
    /// The other attributes, in the order received.
    pub attributes: Vec<Attribute>,
    /// Character data; of an element with children only if it is more than white space.
    pub text: String,
    /// Child elements in order.
    pub children: Vec<Node>,
}

/// How much of a document is read before it is given up.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Elements inside each other. vim25 nests about 20 deep (a fault in a fault in a task).
    pub depth: usize,
    /// Elements and attributes of the whole document. A page of 100 large hosts has some 300,000.
    pub nodes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 96, nodes: 4_000_000 }
    }
}

/// Why a text is no tree.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum XmlError {
    /// Not UTF-8.
    #[error("the answer is not UTF-8")]
    Encoding(#[source] std::str::Utf8Error),
    /// Not well-formed.
    #[error("the answer is not XML, at byte {at}")]
    Syntax {
        /// Byte offset.
        at: u64,
        /// What the parser says.
        #[source]
        source: quick_xml::Error,
    },
    /// Well-formed, and refused.
    #[error("the answer is refused, at byte {at}: {what}")]
    Refused {
        /// Byte offset.
        at: u64,
        /// Why.
        what: &'static str,
    },
}

impl Node {
    /// An empty element of `urn:vim25`.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            namespace: Namespace::Vim25,
            name: name.into(),
            xsi_type: None,
            attributes: Vec::new(),
            text: String::new(),
            children: Vec::new(),
        }
    }

    /// An element of `urn:vim25` with this text.
    pub fn leaf(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::new(name) }
    }

    /// A reference to a managed object: `<name type="HostSystem">host-21</name>`.
    pub fn reference(name: impl Into<String>, kind: &str, id: &str) -> Self {
        Self::leaf(name, id).attr("type", kind)
    }

    /// With another namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: Namespace) -> Self {
        self.namespace = namespace;
        self
    }

    /// With an attribute without a namespace.
    #[must_use]
    pub fn attr(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes.push(Attribute { namespace: Namespace::None, name: name.into(), value: value.into() });
        self
    }

    /// With `xsi:type` of `urn:vim25`: `HostSriovInfo`.
    #[must_use]
    pub fn typed(mut self, name: impl Into<String>) -> Self {
        self.xsi_type = Some(TypeName { namespace: Namespace::Vim25, name: name.into() });
        self
    }

    /// With `xsi:type` of XML Schema: `string` for `xsd:string`.
    #[must_use]
    pub fn xsd(mut self, name: impl Into<String>) -> Self {
        self.xsi_type = Some(TypeName { namespace: Namespace::Xsd, name: name.into() });
        self
    }

    /// With one more child.
    #[must_use]
    pub fn with(mut self, child: Node) -> Self {
        self.children.push(child);
        self
    }

    /// With one more child, if there is one.
    #[must_use]
    pub fn with_some(mut self, child: Option<Node>) -> Self {
        self.children.extend(child);
        self
    }

    /// With more children.
    #[must_use]
    pub fn with_all(mut self, children: impl IntoIterator<Item = Node>) -> Self {
        self.children.extend(children);
        self
    }

    /// The first child of this local name.
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.children.iter().find(|child| child.name == name)
    }

    /// All children of this local name, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Node> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The text of the first child of this local name.
    pub fn text_of(&self, name: &str) -> Option<&str> {
        self.get(name).map(|child| child.text.as_str())
    }

    /// The value of an attribute without a namespace: `type` of a reference, never `xsi:type`.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|attribute| attribute.namespace == Namespace::None && attribute.name == name)
            .map(|attribute| attribute.value.as_str())
    }

    /// Local name of its `xsi:type`.
    pub fn type_name(&self) -> Option<&str> {
        self.xsi_type.as_ref().map(|name| name.name.as_str())
    }

    /// Reads a document.
    ///
    /// # Errors
    /// [`XmlError`]: not UTF-8, not well-formed, past the limits, or with a document type (vim25 has
    /// none, and entities of its own are refused with it).
    pub fn parse(bytes: &[u8], limits: Limits) -> Result<Self, XmlError> {
        parse(std::str::from_utf8(bytes).map_err(XmlError::Encoding)?, limits)
    }
}

fn parse(text: &str, limits: Limits) -> Result<Node, XmlError> {
    let mut reader = NsReader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut open: Vec<Node> = Vec::new();
    let mut nodes = 0_usize;
    let mut root: Option<Node> = None;
    loop {
        let at = reader.buffer_position();
        let refuse = |what| Err(XmlError::Refused { at, what });
        let event = reader.read_event().map_err(|source| XmlError::Syntax { at, source })?;
        match event {
            Event::Start(start) => {
                if root.is_some() {
                    return refuse("a second root element");
                }
                if open.len() >= limits.depth {
                    return refuse("elements are nested too deep");
                }
                let node = element(reader.resolver(), &start).map_err(|source| XmlError::Syntax { at, source })?;
                nodes += 1 + node.attributes.len();
                if nodes > limits.nodes {
                    return refuse("too many elements");
                }
                open.push(node);
            }
            Event::End(_) => {
                let Some(mut node) = open.pop() else { return refuse("an end without a start") };
                if !node.children.is_empty() && node.text.trim().is_empty() {
                    node.text = String::new();
                }
                match open.last_mut() {
                    Some(parent) => parent.children.push(node),
                    None => root = Some(node),
                }
            }
            Event::Text(text) => append(&mut open, &text.xml10_content()),
            Event::CData(text) => append(&mut open, &text.xml10_content()),
            Event::GeneralRef(reference) => {
                let character = reference.resolve_char_ref().map_err(|source| XmlError::Syntax { at, source })?;
                match (character, &*reference.xml10_content()) {
                    (Some(character), _) => append(&mut open, character.encode_utf8(&mut [0; 4])),
                    (None, "lt") => append(&mut open, "<"),
                    (None, "gt") => append(&mut open, ">"),
                    (None, "amp") => append(&mut open, "&"),
                    (None, "quot") => append(&mut open, "\""),
                    (None, "apos") => append(&mut open, "'"),
                    (None, _) => return refuse("an entity that XML does not define"),
                }
            }
            Event::DocType(_) => return refuse("a document type"),
            Event::Empty(_) | Event::Decl(_) | Event::PI(_) | Event::Comment(_) => {}
            Event::Eof if !open.is_empty() => return refuse("it ends inside an element"),
            Event::Eof => break,
        }
    }
    root.ok_or(XmlError::Refused { at: 0, what: "no element" })
}

/// Character data outside the root is white space or rubbish: either way not ours.
fn append(open: &mut [Node], text: &str) {
    if let Some(node) = open.last_mut() {
        node.text.push_str(text);
    }
}

fn element(resolver: &NamespaceResolver, start: &BytesStart<'_>) -> Result<Node, quick_xml::Error> {
    let (namespace, local) = resolver.resolve_element(start.name());
    let mut node = Node::new(local.into_inner()).in_namespace(resolved(namespace));
    for attribute in start.attributes() {
        let attribute = attribute?;
        if attribute.key.as_namespace_binding().is_some() {
            continue;
        }
        let (namespace, local) = resolver.resolve_attribute(attribute.key);
        let value = attribute.normalized_value(XmlVersion::Implicit1_0)?.into_owned();
        // A prefix that nobody declared still tells `x:type` from the `type` of a reference.
        let is_type = local.into_inner() == "type"
            && match &namespace {
                ResolveResult::Bound(bound) => bound.into_inner() == Namespace::XSI,
                ResolveResult::Unknown(_) => true,
                ResolveResult::Unbound => false,
            };
        if is_type && node.xsi_type.is_none() {
            node.xsi_type = Some(type_name(resolver, &value));
        } else {
            node.attributes.push(Attribute {
                namespace: resolved(namespace),
                name: local.into_inner().to_owned(),
                value,
            });
        }
    }
    Ok(node)
}

fn type_name(resolver: &NamespaceResolver, value: &str) -> TypeName {
    let (local, prefix) = QName(value.trim()).decompose();
    let prefix: Option<Prefix<'_>> = prefix;
    TypeName { namespace: resolved(resolver.resolve_prefix(prefix, true)), name: local.into_inner().to_owned() }
}

fn resolved(result: ResolveResult<'_>) -> Namespace {
    match result {
        // The reader keeps the name as it is written; one that cannot be unescaped is none of ours.
        ResolveResult::Bound(namespace) => match quick_xml::escape::unescape(namespace.into_inner()) {
            Ok(uri) => Namespace::of(&uri),
            Err(_) => Namespace::Other(namespace.into_inner().to_owned()),
        },
        ResolveResult::Unbound => Namespace::None,
        ResolveResult::Unknown(prefix) => Namespace::Other(prefix),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Node {
        Node::parse(text.as_bytes(), Limits::default()).unwrap()
    }

    #[test]
    fn d09_two_attributes_of_one_local_name_are_told_apart_by_namespace() {
        let vcenter = r#"<a xmlns="urn:vim25" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
            type="HostSystem" xsi:type="ManagedObjectReference">host-1</a>"#;
        let vcsim = r#"<a xmlns:_XMLSchema-instance="http://www.w3.org/2001/XMLSchema-instance"
            _XMLSchema-instance:type="ManagedObjectReference" type="HostSystem" xmlns="urn:vim25">host-1</a>"#;
        let undeclared = r#"<a xmlns="urn:vim25" x:type="ManagedObjectReference" type="HostSystem">host-1</a>"#;
        for text in [vcenter, vcsim, undeclared] {
            let node = read(text);
            assert_eq!(node.attribute("type"), Some("HostSystem"));
            assert_eq!(node.type_name(), Some("ManagedObjectReference"));
            assert_eq!(node.xsi_type.as_ref().unwrap().namespace, Namespace::Vim25);
            assert_eq!(node.text, "host-1");
        }
    }

    #[test]
    fn a_type_value_is_resolved_by_its_prefix() {
        let node = read(
            r#"<v xmlns="urn:vim25" xmlns:q="http://www.w3.org/2001/XMLSchema"
               xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="q:string">x</v>"#,
        );
        assert_eq!(node.xsi_type, Some(TypeName { namespace: Namespace::Xsd, name: "string".into() }));
    }

    #[test]
    fn text_is_unescaped_once_and_never_trimmed() {
        let node = read("<a xmlns='urn:vim25'><b> &lt;&amp;&#x41; <![CDATA[<&]]></b>\n <c/>\n</a>");
        assert_eq!(node.text_of("b"), Some(" <&A <&"));
        assert_eq!(node.text_of("c"), Some(""));
        assert_eq!(node.text, "");
        assert_eq!(read("<a>&amp;lt;</a>").text, "&lt;");
    }

    #[test]
    fn what_is_no_answer_of_vim25_is_refused() {
        let deep = "<a>".repeat(200) + &"</a>".repeat(200);
        for text in [
            "",
            "plain",
            "<a>",
            "<a></b>",
            "<a/><b/>",
            "<a>&nbsp;</a>",
            "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>",
            "<a x='1' x='2'/>",
            &deep,
        ] {
            assert!(Node::parse(text.as_bytes(), Limits::default()).is_err(), "{text}");
        }
        assert!(Node::parse(&[0xff, 0xfe], Limits::default()).is_err());
        assert!(Node::parse(b"<a><b/><b/></a>", Limits { depth: 9, nodes: 2 }).is_err());
    }
}
