//! Requests as values, and how they become HTTP.

use std::fmt;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, COOKIE, HeaderValue, USER_AGENT};
use http::{Method, Request};

use super::names;
use super::tree::Node;
use super::version::ApiVersion;
use super::write::envelope;
use crate::model::MoRef;

/// How we name ourselves to servers and in their session lists.
pub const AGENT: &str = concat!("poolwright/", env!("CARGO_PKG_VERSION"));

/// Whether a call changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It only reads, or makes something that lives no longer than the session: may be repeated.
    Read,
    /// It changes something: never repeated before its effect was read.
    Write,
}

/// A call of a method.
#[derive(Clone, PartialEq, Eq)]
pub struct Call {
    /// Its name on the wire.
    pub method: &'static str,
    /// The object it is made on.
    pub this: MoRef,
    /// Arguments in the order of the WSDL.
    pub arguments: Vec<Node>,
    /// Whether it may be repeated.
    pub effect: Effect,
}

impl Call {
    /// A call that only reads.
    pub fn read(method: &'static str, this: &MoRef, arguments: Vec<Node>) -> Self {
        Self { method, this: this.clone(), arguments, effect: Effect::Read }
    }

    /// A call that changes something.
    pub fn write(method: &'static str, this: &MoRef, arguments: Vec<Node>) -> Self {
        Self { method, this: this.clone(), arguments, effect: Effect::Write }
    }

    /// The body of its request.
    pub fn body(&self) -> Node {
        Node::new(self.method)
            .with(Node::reference("_this", &self.this.kind, &self.this.id))
            .with_all(self.arguments.iter().cloned())
    }
}

/// Without the arguments: those of `Login` hold the password.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("method", &self.method).field("this", &self.this).finish_non_exhaustive()
    }
}

/// The request of a call. `cookie` goes as it is, quotes included.
///
/// # Errors
/// If the cookie is no header value.
pub fn encode(call: &Call, version: ApiVersion, cookie: Option<&str>) -> Result<Request<Bytes>, http::Error> {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(names::SDK_PATH)
        .header(CONTENT_TYPE, names::CONTENT_TYPE)
        .header(USER_AGENT, AGENT)
        .header("SOAPAction", version.soap_action());
    if let Some(cookie) = cookie {
        let mut value = HeaderValue::from_str(cookie)?;
        value.set_sensitive(true);
        request = request.header(COOKIE, value);
    }
    request.body(Bytes::from(envelope(&call.body())))
}

/// The request for the list of versions.
///
/// # Errors
/// Never in practice: its parts are constant.
pub fn encode_versions() -> Result<Request<Bytes>, http::Error> {
    Request::builder().method(Method::GET).uri(names::VERSIONS_PATH).header(USER_AGENT, AGENT).body(Bytes::new())
}
