//! Trees as XML: elements of `urn:vim25` in the default namespace, `xsi`, `xsd` and `soapenv` by prefix.

use std::borrow::Cow;
use std::fmt::Write;

use super::tree::{Namespace, Node, TypeName};

/// The envelope around a body, as vCenter and its clients write it.
pub fn envelope(body: &Node) -> String {
    let mut out = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<soapenv:Envelope \
         xmlns:soapenc=\"http://schemas.xmlsoap.org/soap/encoding/\" \
         xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\" \
         xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">\n<soapenv:Body>",
    );
    element(&mut out, body, &Namespace::None);
    out.push_str("</soapenv:Body>\n</soapenv:Envelope>");
    out
}

/// One tree as a document of its own, with the declarations it needs.
pub fn document(root: &Node) -> String {
    let mut out = String::new();
    let declarations = [("soapenv", Namespace::ENVELOPE), ("xsd", Namespace::XSD), ("xsi", Namespace::XSI)];
    start(&mut out, root, &Namespace::None, &declarations);
    out
}

fn element(out: &mut String, node: &Node, default: &Namespace) {
    start(out, node, default, &[]);
}

fn start(out: &mut String, node: &Node, default: &Namespace, declarations: &[(&str, &str)]) {
    let prefix = if node.namespace == Namespace::Envelope { "soapenv:" } else { "" };
    let inner = if prefix.is_empty() { &node.namespace } else { default };
    // Writing to a String cannot fail.
    let _ = write!(out, "<{prefix}{}", node.name);
    for (name, uri) in declarations {
        let _ = write!(out, " xmlns:{name}=\"{uri}\"");
    }
    if inner != default {
        let _ = write!(out, " xmlns=\"{}\"", attribute_text(inner.uri()));
    }
    if let Some(TypeName { namespace, name }) = &node.xsi_type {
        match namespace {
            Namespace::Xsd => _ = write!(out, " xsi:type=\"xsd:{}\"", attribute_text(name)),
            other if other == inner => _ = write!(out, " xsi:type=\"{}\"", attribute_text(name)),
            other => {
                let uri = attribute_text(other.uri());
                let _ = write!(out, " xmlns:t=\"{uri}\" xsi:type=\"t:{}\"", attribute_text(name));
            }
        }
    }
    for (index, attribute) in node.attributes.iter().enumerate() {
        let value = attribute_text(&attribute.value);
        match &attribute.namespace {
            Namespace::None => _ = write!(out, " {}=\"{value}\"", attribute.name),
            Namespace::Xsi => _ = write!(out, " xsi:{}=\"{value}\"", attribute.name),
            other => {
                let uri = attribute_text(other.uri());
                let _ = write!(out, " xmlns:a{index}=\"{uri}\" a{index}:{}=\"{value}\"", attribute.name);
            }
        }
    }
    out.push('>');
    out.push_str(&text(&node.text));
    for child in &node.children {
        element(out, child, inner);
    }
    let _ = write!(out, "</{prefix}{}>", node.name);
}

/// Character data. A carriage return would be read as a line feed, so it goes as a reference.
fn text(raw: &str) -> Cow<'_, str> {
    escape(raw, &['<', '>', '&', '\r'])
}

/// An attribute value: white space would be normalised, so it goes as references.
fn attribute_text(raw: &str) -> Cow<'_, str> {
    escape(raw, &['<', '>', '&', '"', '\r', '\n', '\t'])
}

fn escape<'a>(raw: &'a str, special: &[char]) -> Cow<'a, str> {
    if !raw.chars().any(|c| special.contains(&c) || !allowed(c)) {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len() + 16);
    for c in raw.chars() {
        match c {
            '<' if special.contains(&c) => out.push_str("&lt;"),
            '>' if special.contains(&c) => out.push_str("&gt;"),
            '&' if special.contains(&c) => out.push_str("&amp;"),
            '"' if special.contains(&c) => out.push_str("&quot;"),
            c if special.contains(&c) => _ = write!(out, "&#{};", u32::from(c)),
            // XML 1.0 has no way to write these at all; U+FFFD shows that something was here.
            c if !allowed(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// XML 1.0, production `Char`.
fn allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::super::tree::Limits;
    use super::*;

    fn round(node: &Node) -> Node {
        Node::parse(document(node).as_bytes(), Limits::default()).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let node = Node::new("config")
            .with(Node::leaf("name", " <\"&'> \r\n\tü 東京 ]]> "))
            .with(Node::reference("vm", "VirtualMachine", "vm-7"))
            .with(Node::leaf("value", "-1").xsd("string"))
            .with(Node::new("spec").typed("ClusterConfigSpecEx").attr("note", "a\n\"b\"\t<"))
            .with(Node::leaf("x", "").in_namespace(Namespace::Other("urn:vsan".into())).with(Node::new("inner")))
            .with(Node::new("bare").in_namespace(Namespace::None).typed("HostSystem"));
        assert_eq!(round(&node), node);
    }

    #[test]
    fn what_xml_cannot_say_is_marked() {
        assert_eq!(round(&Node::leaf("a", "x\u{1}y")).text, "x\u{fffd}y");
    }

    #[test]
    fn an_envelope_has_its_body() {
        let text = envelope(&Node::new("Logout"));
        let tree = Node::parse(text.as_bytes(), Limits::default()).unwrap();
        assert_eq!(tree.namespace, Namespace::Envelope);
        assert_eq!(tree.get("Body").unwrap().children, [Node::new("Logout")]);
    }
}
