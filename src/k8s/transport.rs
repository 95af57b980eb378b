//! Sending: one request, one answer, one deadline. Nothing is repeated but what the server did not
//! look at: a request with a token that has expired, or one that was forbidden.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use http::header::{AUTHORIZATION, USER_AGENT};
use http::response::Parts;
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::client::Body as KubeBody;
use kube::core::WatchEvent;
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use tower::BoxError;

use super::access::Access;
use super::answer::{self, Answer, Page};
use super::credential::{Credential, header};
use super::error::{Error, Refusal};
use crate::base::net::{Body, Exchange, NetError};
use crate::base::retry::{Policy, retry};

/// Longest answer that is read, in bytes. A page is 500 objects of at most some 20 KB, and etcd stores
/// none above 1.5 MB.
const LONGEST_ANSWER: usize = 128 << 20;

/// How long a call may take. An API server ends a request by itself after 60 s (its
/// `--request-timeout`), and its answer says more than our silence.
pub(super) const DEADLINE: Duration = Duration::from_secs(65);

/// How long the first contact may take: somebody waits for it, and the question is small.
const CONTACT_DEADLINE: Duration = Duration::from_secs(15);

/// How reads are repeated: as long as a control plane of one machine needs to start again.
const READS: Policy =
    Policy { first: Duration::from_secs(1), longest: Duration::from_secs(15), total: Duration::from_secs(120) };

/// How the first contact is repeated.
const CONTACT: Policy =
    Policy { first: Duration::from_secs(1), longest: Duration::from_secs(4), total: Duration::from_secs(10) };

/// The most pages of a list that are read. Kubernetes is built for 150,000 pods and 5,000 nodes; a
/// server with more than this many pages is one that goes round in a circle.
const MOST_PAGES: usize = 1000;

/// How often a list is begun anew, because the server no longer has the state that it began with.
const MOST_BEGINNINGS: usize = 3;

/// A request, or why it cannot be made.
pub(super) type Made = Result<Request<Vec<u8>>, kube::core::request::Error>;

/// A way to one API server.
pub(super) struct Transport {
    pub(super) cluster: String,
    authority: String,
    credential: Credential,
    client: kube::Client,
}

/// What carries one request: adds our name, and the path of the server.
struct Carrier {
    exchange: Arc<dyn Exchange>,
    prefix: String,
}

impl Transport {
    /// Must be called in a runtime, since the client's queue lives in it.
    pub(super) fn new(cluster: &str, access: &Access, exchange: Arc<dyn Exchange>) -> Self {
        let carrier = Arc::new(Carrier { exchange, prefix: access.prefix.clone() });
        let service = tower::service_fn(move |request: Request<KubeBody>| {
            let carrier = Arc::clone(&carrier);
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                carrier.carry(Request::from_parts(head, body)).await
            }
        });
        // A client over a service of ours has no layer that repeats anything.
        let authority = access.authority().to_owned();
        let (cluster, credential) = (cluster.to_owned(), access.credential.clone());
        Self { cluster, authority, credential, client: kube::Client::new(service, "default") }
    }

    /// Sends a request, and reads the body of a success. Only a server that is ready forbids anything: one
    /// that starts serves before it has read the roles, and forbids everything until then, its readiness
    /// too.
    pub(super) async fn send(&self, call: &str, request: Made, deadline: Duration) -> Result<Bytes, Error> {
        let request = request.map_err(|error| self.unsendable(call, error.to_string()))?;
        match self.send_once(call, request.clone(), deadline).await {
            Err(denied) if denied.refusal().is_some_and(is_by_role) => {
                let ready = Request::get("/readyz").body(Vec::new());
                let ready = ready.map_err(|error| self.unsendable(call, error.to_string()))?;
                match self.send_once(call, ready, CONTACT_DEADLINE).await {
                    Err(error) if error.is_retriable() || error.is_code(403) => {
                        let (cluster, call) = (self.cluster.clone(), call.into());
                        Err(Error::NotReady { cluster, call, denied: Box::new(denied) })
                    }
                    // It may have become ready in between. What was forbidden has done nothing.
                    _ => self.send_once(call, request, deadline).await,
                }
            }
            answer => answer,
        }
    }

    /// Sends a request, and reads the body of a success. What gives the token has a time of its own: it is none of
    /// the server's.
    async fn send_once(&self, call: &str, request: Request<Vec<u8>>, deadline: Duration) -> Result<Bytes, Error> {
        let token = self.token(call, None).await?;
        let (mut head, mut body) = self.exchange(call, bearing(&request, token.as_ref()), deadline).await?;
        // Who is not known has done nothing. A token that has expired is renewed, once.
        if head.status == StatusCode::UNAUTHORIZED
            && let Some(token) = token
            && let Some(fresh) = self.token(call, Some(&token)).await?
        {
            tracing::info!("the token for {} was refused: trying a new one", self.authority);
            (head, body) = self.exchange(call, bearing(&request, Some(&fresh)), deadline).await?;
        }
        let (cluster, call) = (self.cluster.clone(), call.into());
        match answer::read(head.status, &head.headers, &body) {
            Answer::Body => Ok(body),
            Answer::Elsewhere(location) => Err(Error::Redirected { cluster, location }),
            Answer::Unauthorized => Err(Error::Unauthorized { cluster, call }),
            Answer::Refused(refusal) => Err(Error::Refused { cluster, call, refusal: Box::new(refusal) }),
        }
    }

    /// What shows who we are: see [`Credential::token`].
    async fn token(&self, call: &str, refused: Option<&SecretString>) -> Result<Option<SecretString>, Error> {
        let fail = |source| Error::Credential { cluster: self.cluster.clone(), call: call.into(), source };
        self.credential.token(refused).await.map_err(fail)
    }

    /// One request, and its whole answer within the deadline.
    async fn exchange(
        &self,
        call: &str,
        request: Request<Vec<u8>>,
        deadline: Duration,
    ) -> Result<(Parts, Bytes), Error> {
        let running = async {
            let response = self
                .client
                .send(request.map(KubeBody::from))
                .await
                .map_err(|error| self.broken(call, Box::new(error)))?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, LONGEST_ANSWER).collect().await;
            let body = body.map_err(|error| self.broken(call, error))?.to_bytes();
            Ok((head, body))
        };
        let result = tokio::time::timeout(deadline, running).await.unwrap_or_else(|_| {
            let source = NetError::Deadline { authority: self.authority.clone(), seconds: deadline.as_secs() };
            Err(Error::Net { cluster: self.cluster.clone(), call: call.into(), source })
        });
        tracing::debug!(call, status = result.as_ref().ok().map(|(head, _)| head.status.as_u16()), "kubernetes");
        result
    }

    /// Sends a request once, and decodes its answer: all that changes something comes here.
    pub(super) async fn once<T: DeserializeOwned>(&self, call: &str, request: Made) -> Result<T, Error> {
        let body = self.send(call, request, DEADLINE).await?;
        answer::value(&body).map_err(|what| self.decode(call, what))
    }

    /// Sends a request that only reads, again and again while that can help.
    pub(super) async fn read<T: DeserializeOwned>(&self, call: &str, request: impl Fn() -> Made) -> Result<T, Error> {
        let body = retry(READS, Error::is_retriable, || self.send(call, request(), DEADLINE)).await?;
        answer::value(&body).map_err(|what| self.decode(call, what))
    }

    /// As [`Transport::read`], for somebody who waits.
    pub(super) async fn contact<T: DeserializeOwned>(
        &self,
        call: &str,
        request: impl Fn() -> Made,
    ) -> Result<T, Error> {
        let body = retry(CONTACT, Error::is_retriable, || self.send(call, request(), CONTACT_DEADLINE)).await?;
        answer::value(&body).map_err(|what| self.decode(call, what))
    }

    /// Reads a whole list as it was at one moment: its version and its items. Without a version in the
    /// request the server answers from etcd, not from a cache that may lag.
    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        call: &str,
        page: impl Fn(Option<&str>) -> Made,
    ) -> Result<(String, Vec<T>), Error> {
        let mut beginnings = 1;
        'anew: loop {
            let (mut items, mut next) = (Vec::new(), None::<String>);
            for _ in 0..MOST_PAGES {
                let read: Page<T> = match self.read(call, || page(next.as_deref())).await {
                    Ok(read) => read,
                    // Between two pages the server forgot the state that the first was of.
                    Err(error) if error.is_code(410) && next.is_some() && beginnings < MOST_BEGINNINGS => {
                        beginnings += 1;
                        continue 'anew;
                    }
                    Err(error) => return Err(error),
                };
                items.extend(read.items);
                next = read.metadata.continue_.filter(|next| !next.is_empty());
                if next.is_none() {
                    let version = read.metadata.resource_version.filter(|version| !version.is_empty());
                    let version = version.ok_or_else(|| self.decode(call, "the list has no resourceVersion"))?;
                    return Ok((version, items));
                }
            }
            return Err(self.decode(call, format!("a list of more than {MOST_PAGES} pages")));
        }
    }

    /// Opens a watch. The stream has no deadline of its own.
    pub(super) async fn watch<T: DeserializeOwned + Clone>(
        &self,
        request: Made,
    ) -> Result<impl Stream<Item = Result<WatchEvent<T>, kube::Error>>, BoxError> {
        // One that has expired is renewed by the next look.
        let token = self.credential.token(None).await?;
        Ok(self.client.request_events::<T>(bearing(&request?, token.as_ref())).await?)
    }

    pub(super) fn decode(&self, call: &str, what: impl Into<String>) -> Error {
        Error::Decode { cluster: self.cluster.clone(), call: call.into(), what: what.into() }
    }

    pub(super) fn unsendable(&self, call: &str, problem: impl Into<String>) -> Error {
        Error::Unsendable { cluster: self.cluster.clone(), call: call.into(), problem: problem.into() }
    }

    /// What the client says of a request that has no answer.
    fn broken(&self, call: &str, error: BoxError) -> Error {
        let (cluster, call) = (self.cluster.clone(), call.into());
        let authority = self.authority.clone();
        let source = match innermost(error).downcast::<NetError>() {
            Ok(source) => *source,
            Err(error) if error.is::<LengthLimitError>() => NetError::TooLong { authority, limit: LONGEST_ANSWER },
            Err(source) => NetError::Broken { authority, source },
        };
        Error::Net { cluster, call, source }
    }
}

/// Whether roles forbid it, as Kubernetes' authorizers say it (`User "x" cannot list resource "nodes"`),
/// and no webhook, quota or namespace.
fn is_by_role(refusal: &Refusal) -> bool {
    refusal.code == 403 && refusal.causes.is_empty() && refusal.message.contains(" cannot ")
}

/// What the client has packed into its own errors.
fn innermost(mut error: BoxError) -> BoxError {
    loop {
        error = match error.downcast::<kube::Error>() {
            Ok(packed) => match *packed {
                kube::Error::Service(inner) => inner,
                other => return Box::new(other),
            },
            Err(error) => return error,
        };
    }
}

impl Carrier {
    async fn carry(&self, mut request: Request<Bytes>) -> Result<Response<Body>, BoxError> {
        if !self.prefix.is_empty() {
            let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
            *request.uri_mut() = format!("{}{path}", self.prefix).parse::<Uri>()?;
        }
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(AGENT));
        Ok(self.exchange.exchange(request).await?)
    }
}

/// The request with the token.
fn bearing(request: &Request<Vec<u8>>, token: Option<&SecretString>) -> Request<Vec<u8>> {
    let mut request = request.clone();
    request.headers_mut().extend(token.and_then(header).map(|value| (AUTHORIZATION, value)));
    request
}

/// Who we say we are in the audit log of a cluster.
const AGENT: &str = concat!("poolwright/", env!("CARGO_PKG_VERSION"));
