//! An HTTP answer as what it means: the body of a result, a fault, or no SOAP at all.

use http::StatusCode;

use super::decode::DecodeError;
use super::fault::Fault;
use super::tree::{Limits, Namespace, Node};

/// What an answer is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The element inside the SOAP body: `…Response`.
    Result(Node),
    /// A SOAP fault, with status 500 or any other.
    Fault(Fault),
    /// Not SOAP: a proxy, a gateway, a server that starts. A line of what it says.
    NotSoap(String),
}

/// Reads an answer. Success is 200 and a body for this method; a fault is 500 with a SOAP fault;
/// other codes, and HTML with any code, come from something in between (vsphere-gpu §5.1).
///
/// # Errors
/// If a 200 is no SOAP answer of this method: whatever it is, it proves nothing.
pub fn read(status: StatusCode, bytes: &[u8], method: &str) -> Result<Answer, DecodeError> {
    let fail = |what: String| DecodeError { element: format!("{method}Response"), what };
    let envelope = match Node::parse(bytes, Limits::default()) {
        Ok(tree) if tree.name == "Envelope" && tree.namespace == Namespace::Envelope => tree,
        Ok(tree) if status == StatusCode::OK => return Err(fail(format!("the answer is a `{}` element", tree.name))),
        Err(error) if status == StatusCode::OK => return Err(fail(error.to_string())),
        _ => return Ok(Answer::NotSoap(first_words(bytes))),
    };
    let body = envelope.children.into_iter().find(|child| child.name == "Body");
    match body.and_then(|body| body.children.into_iter().next()) {
        Some(fault) if fault.name == "Fault" => Ok(Answer::Fault(Fault::of_soap(&fault))),
        Some(result) if status == StatusCode::OK && result.name == format!("{method}Response") => {
            Ok(Answer::Result(result))
        }
        Some(other) if status == StatusCode::OK => Err(fail(format!("the answer is a `{}` element", other.name))),
        None if status == StatusCode::OK => Err(fail("the answer has an empty body".to_owned())),
        _ => Ok(Answer::NotSoap(first_words(bytes))),
    }
}

/// The first words of a page for people, tags left out; 120 characters are a line of a message.
fn first_words(bytes: &[u8]) -> String {
    let mut words = String::new();
    let mut inside = false;
    for c in String::from_utf8_lossy(bytes).chars().take(4_000) {
        match c {
            '<' => inside = true,
            '>' => {
                inside = false;
                words.push(' ');
            }
            c if !inside && !c.is_control() => words.push(c),
            _ if !inside => words.push(' '),
            _ => {}
        }
    }
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
