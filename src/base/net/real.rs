//! The real network: reqwest over rustls, with everything off that acts by itself.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::uri::Authority;
use http::{Request, Response, Uri};
use http_body_util::BodyExt;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::exchange::{Body, Endpoint, Exchange, NetError, Network};
use super::trust::{Untrusted, tls_config};

/// How long connecting may take, TLS included: a server on the other side of the world answers in
/// under a second, a filtered port never.
const CONNECT: Duration = Duration::from_secs(10);

/// The network of this machine. Proxies are taken from the environment, but never for this machine
/// itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealNetwork;

impl Network for RealNetwork {
    fn open(&self, endpoint: &Endpoint) -> Result<Arc<dyn Exchange>, NetError> {
        let authority = &endpoint.authority;
        let setup = |source| NetError::Setup { authority: authority.clone(), source };
        let parsed: Authority = authority.parse().map_err(|error| setup(Box::new(error)))?;
        let config = tls_config(endpoint).map_err(setup)?;
        let mut client = reqwest::Client::builder()
            .tls_backend_preconfigured(config)
            .https_only(true)
            .http1_only()
            // A redirect would take a request, and its credentials, to a server nobody gave trust to.
            .redirect(reqwest::redirect::Policy::none())
            // What may be repeated is the clients' business; nothing is repeated behind their back.
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(CONNECT);
        if is_this_machine(parsed.host()) {
            client = client.no_proxy();
        }
        let mut named = parsed.clone();
        if let Some(name) = &endpoint.server_name {
            // The HTTP client asks for, and checks, the host of the URL. So that is the name, the
            // resolver leads it to the host, and the request says what it would have said. A proxy
            // would look for the name.
            named = renamed(&parsed, name).map_err(|error| setup(Box::new(error)))?;
            client = client.no_proxy().dns_resolver(Arc::new(LeadsTo(parsed.host().to_owned())));
        }
        let client = client.build().map_err(|error| setup(Box::new(error)))?;
        Ok(Arc::new(RealExchange { client, authority: parsed, named }))
    }
}

fn is_this_machine(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn renamed(authority: &Authority, name: &str) -> Result<Authority, http::uri::InvalidUri> {
    match authority.port() {
        Some(port) => format!("{name}:{port}").parse(),
        None => name.parse(),
    }
}

/// Resolves every name to the addresses of one host.
struct LeadsTo(String);

impl Resolve for LeadsTo {
    fn resolve(&self, _: Name) -> Resolving {
        let host = self.0.trim_start_matches('[').trim_end_matches(']').to_owned();
        Box::pin(async move {
            // The HTTP client puts the port of the URL in the place of this one.
            let found: Vec<_> = tokio::net::lookup_host((host, 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

struct RealExchange {
    client: reqwest::Client,
    authority: Authority,
    /// The authority with the name that TLS asks for.
    named: Authority,
}

impl Exchange for RealExchange {
    fn exchange(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, NetError>> {
        let client = self.client.clone();
        let (authority, named) = (self.authority.clone(), self.named.clone());
        Box::pin(async move {
            let name = authority.to_string();
            let request = absolute(request, authority, named).map_err(|source| setup(&name, source))?;
            let answer = client.execute(request).await.map_err(|error| failed(&name, error))?;
            let answer: Response<reqwest::Body> = answer.into();
            Ok(answer.map(|body| body.map_err(move |error| failed(&name, error)).boxed_unsync()))
        })
    }
}

fn absolute(
    request: Request<Bytes>,
    authority: Authority,
    named: Authority,
) -> Result<reqwest::Request, Box<dyn StdError + Send + Sync>> {
    let (mut head, body) = request.into_parts();
    if authority != named {
        head.headers.insert(http::header::HOST, authority.as_str().parse()?);
    }
    let mut uri = head.uri.into_parts();
    uri.scheme = Some(http::uri::Scheme::HTTPS);
    uri.authority = Some(named);
    head.uri = Uri::from_parts(uri)?;
    Ok(Request::from_parts(head, body).try_into()?)
}

fn setup(authority: &str, source: Box<dyn StdError + Send + Sync>) -> NetError {
    NetError::Setup { authority: authority.to_owned(), source }
}

/// What a failure of reqwest means for the request.
fn failed(authority: &str, error: reqwest::Error) -> NetError {
    let authority = authority.to_owned();
    // The URL says nothing that the authority does not say.
    let error = error.without_url();
    if let Some(Untrusted { reason, thumbprint }) = untrusted(&error) {
        return NetError::Untrusted { authority, reason, thumbprint };
    }
    tracing::debug!(?error, "the exchange failed");
    let source = Box::new(deepest(&error));
    if error.is_connect() { NetError::Connect { authority, source } } else { NetError::Broken { authority, source } }
}

/// What lies under the layers of the HTTP client, which say "error sending request", "client error
/// (Connect)" and "tcp connect error" of what [`NetError`] says in one line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Cause(String);

fn deepest(error: &(dyn StdError + 'static)) -> Cause {
    let mut deepest = error;
    while let Some(below) = below(deepest) {
        deepest = below;
    }
    Cause(deepest.to_string())
}

/// The next cause. The source of an io::Error is that of what it holds, which would be skipped.
fn below<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e (dyn StdError + 'static)> {
    match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

/// The refusal of our verifier, wherever the layers between have packed it.
fn untrusted(error: &(dyn StdError + 'static)) -> Option<Untrusted> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(rustls::Error::InvalidCertificate(rustls::CertificateError::Other(other))) = error.downcast_ref() {
            return other.0.downcast_ref::<Untrusted>().cloned();
        }
        next = below(error);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_told_from_others() {
        for host in ["localhost", "127.0.0.1", "127.8.8.8", "[::1]"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["vc.example.net", "10.0.0.1", "[2001:db8::1]", "localhost.example.net"] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
