//! The seam's types.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use secrecy::SecretString;

use super::dial::Dial;

/// The body of an answer: a stream, since watches need one. [`collect`] reads it whole.
pub type Body = UnsyncBoxBody<Bytes, NetError>;

/// One HTTP exchange with one endpoint.
///
/// Implementations neither retry, nor follow redirects, nor keep cookies: that is the clients'
/// business. Dropping the future gives up on the answer; whether the server acted is then unknown.
pub trait Exchange: Send + Sync {
    /// Sends the request (its URI is a path on the endpoint) and answers once the head of the
    /// response is there.
    fn exchange(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, NetError>>;
}

/// Opens exchanges with endpoints, and connections.
pub trait Network: Dial {
    /// An exchange with this endpoint. Does not connect yet, but reads what trust and identity need.
    ///
    /// # Errors
    /// [`NetError::Setup`] if the trust material or the identity cannot be read.
    fn open(&self, endpoint: &Endpoint) -> Result<Arc<dyn Exchange>, NetError>;
}

/// Where to, whom to trust, and who we are.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Host, or host and port: `vc.example.net`, `127.0.0.1:8989`. HTTPS always.
    pub authority: String,
    /// How its certificate is checked.
    pub trust: Trust,
    /// The name that is asked for in the handshake and that the certificate must have; that of the
    /// authority if nothing is given. Such an endpoint is reached without a proxy.
    pub server_name: Option<String>,
    /// The certificate that we show, if the server asks for one.
    pub identity: Option<Identity>,
}

impl Endpoint {
    /// A server that is called by its own name, and to which we show no certificate.
    pub fn new(authority: impl Into<String>, trust: Trust) -> Self {
        Self { authority: authority.into(), trust, server_name: None, identity: None }
    }
}

/// A certificate of ours, with its key.
#[derive(Debug, Clone)]
pub struct Identity {
    /// PEM: the certificate, and those between it and the authority.
    pub certificates: String,
    /// PEM: its private key, not encrypted.
    pub key: SecretString,
}

/// How a server's certificate is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// By the certificate authorities of the operating system.
    System,
    /// By the authorities in this PEM file, and the name.
    CaFile(PathBuf),
    /// By the authorities in this PEM text, and the name.
    CaText(String),
    /// By the SHA-256 of the certificate alone; the name does not matter.
    Thumbprint([u8; 32]),
}

/// Why an exchange failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// No connection: the request was not sent.
    #[error("cannot connect to {authority}")]
    Connect {
        /// To whom.
        authority: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The certificate is not trusted: the request was not sent.
    #[error("the certificate of {authority} is not trusted: {reason} (SHA-256 {thumbprint})")]
    Untrusted {
        /// Whose.
        authority: String,
        /// What the check said.
        reason: String,
        /// SHA-256 of what it showed, as `AB:CD:…`.
        thumbprint: String,
    },
    /// The connection broke after the request may have been sent: whether the server acted is
    /// unknown.
    #[error("the connection to {authority} broke")]
    Broken {
        /// To whom.
        authority: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No answer within the deadline: whether the server acted is unknown.
    #[error("{authority} did not answer within {seconds} s")]
    Deadline {
        /// Who.
        authority: String,
        /// The deadline.
        seconds: u64,
    },
    /// The answer is longer than the client is ready to read.
    #[error("the answer of {authority} is longer than {limit} bytes")]
    TooLong {
        /// Whose.
        authority: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// The trust material or the client could not be set up: nothing was sent.
    #[error("cannot set up TLS for {authority}")]
    Setup {
        /// For whom.
        authority: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl NetError {
    /// Whether the request certainly never reached the server.
    pub fn not_sent(&self) -> bool {
        matches!(self, Self::Connect { .. } | Self::Untrusted { .. } | Self::Setup { .. })
    }
}

/// Reads the whole body, at most `limit` bytes.
///
/// # Errors
/// [`NetError::TooLong`] past the limit, else the body's own error.
pub async fn collect(authority: &str, response: Response<Body>, limit: usize) -> Result<Response<Bytes>, NetError> {
    let (head, body) = response.into_parts();
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(Response::from_parts(head, collected.to_bytes())),
        Err(error) => match error.downcast::<NetError>() {
            Ok(net) => Err(*net),
            Err(error) if error.is::<LengthLimitError>() => {
                Err(NetError::TooLong { authority: authority.to_owned(), limit })
            }
            Err(source) => Err(NetError::Broken { authority: authority.to_owned(), source }),
        },
    }
}
