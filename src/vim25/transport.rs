//! Sending: one request, one answer, one deadline. No retries, no session.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{LOCATION, SET_COOKIE};
use http::{HeaderMap, Request, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};

use super::error::{Error, VERSIONS};
use super::wire::answer::{self, Answer};
use super::wire::{ApiVersion, Call, DecodeError, Node, encode, encode_versions};
use crate::base::net::{Exchange, NetError, collect};

/// Longest answer that is read, in bytes. The whole configuration of one small host is 1 MB
/// (vsphere-gpu §1.1) and a page holds 100 hosts; we ask for less than that of each.
const LONGEST_ANSWER: usize = 128 << 20;

/// How long a call may take. Calls that change something only start a task or store a configuration;
/// the slowest reads, pages and packages of a busy host, take seconds.
pub(super) const DEADLINE: Duration = Duration::from_secs(120);

/// A way to one server.
pub(super) struct Transport {
    exchange: Arc<dyn Exchange>,
    pub(super) authority: String,
}

impl Transport {
    pub(super) fn new(exchange: Arc<dyn Exchange>, authority: String) -> Self {
        Self { exchange, authority }
    }

    /// The version to speak.
    pub(super) async fn negotiate(&self) -> Result<ApiVersion, Error> {
        let request = encode_versions().map_err(|error| unsendable(VERSIONS, &error))?;
        let answer = self.exchange(VERSIONS, request, DEADLINE).await?;
        if answer.status() != StatusCode::OK {
            return Err(self.not_soap(VERSIONS, answer.status(), answer.headers(), String::new()));
        }
        ApiVersion::negotiate(answer.body()).map_err(|source| Error::Decode { call: VERSIONS, source })
    }

    /// Sends a call once. The body of the answer is dropped as soon as it is decoded, so a
    /// connection never holds more than one page of XML.
    pub(super) async fn send(
        &self,
        call: &Call,
        version: ApiVersion,
        cookie: Option<&SecretString>,
        deadline: Duration,
    ) -> Result<(Node, Vec<String>), Error> {
        let method = call.method;
        let cookie = cookie.map(ExposeSecret::expose_secret);
        let request = encode(call, version, cookie).map_err(|error| unsendable(method, &error))?;
        let answer = self.exchange(method, request, deadline).await?;
        let read = answer::read(answer.status(), answer.body(), method);
        match read.map_err(|source| Error::Decode { call: method, source })? {
            Answer::Result(node) => Ok((node, set_cookies(answer.headers()))),
            Answer::Fault(fault) => {
                Err(Error::Fault { call: method, object: call.this.clone(), fault: Box::new(fault) })
            }
            Answer::NotSoap(says) => Err(self.not_soap(method, answer.status(), answer.headers(), says)),
        }
    }

    async fn exchange(
        &self,
        call: &'static str,
        request: Request<Bytes>,
        deadline: Duration,
    ) -> Result<Response<Bytes>, Error> {
        let running = async {
            let response = self.exchange.exchange(request).await?;
            collect(&self.authority, response, LONGEST_ANSWER).await
        };
        let result = tokio::time::timeout(deadline, running).await.unwrap_or_else(|_| {
            Err(NetError::Deadline { authority: self.authority.clone(), seconds: deadline.as_secs() })
        });
        tracing::debug!(call, status = result.as_ref().ok().map(|r| r.status().as_u16()), "vim25");
        result.map_err(|source| Error::Net { call, source })
    }

    fn not_soap(&self, call: &'static str, status: StatusCode, headers: &HeaderMap, says: String) -> Error {
        let authority = self.authority.clone();
        match headers.get(LOCATION).and_then(|location| location.to_str().ok()) {
            Some(location) if status.is_redirection() => Error::Redirected { authority, location: location.to_owned() },
            _ => Error::Http { call, authority, status: status.as_u16(), says },
        }
    }
}

/// Each cookie that is set, as `name=value`, the value with its quotes.
fn set_cookies(headers: &HeaderMap) -> Vec<String> {
    let texts = headers.get_all(SET_COOKIE).iter().filter_map(|value| value.to_str().ok());
    texts.filter_map(|text| text.split(';').next()).map(|pair| pair.trim().to_owned()).collect()
}

/// A request that cannot be made: a cookie that is no header value, which the server gave us.
fn unsendable(call: &'static str, error: &http::Error) -> Error {
    Error::Decode { call, source: DecodeError { element: "Set-Cookie".to_owned(), what: error.to_string() } }
}
