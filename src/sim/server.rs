//! The world on a real port: TLS with a certificate of its own, HTTP/1.1, many clients.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use http::{Request, Response};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use super::World;
use super::answer::{Answers, Body, Dropped};
use super::doors::Doors;
use super::soap::Face;

/// Requests are small; the largest sets the graphics of one host.
const REQUEST_LIMIT: usize = 4 << 20;

/// Why a world is not on a port.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The certificate could not be made.
    #[error("cannot make a certificate for {name}")]
    Certificate {
        /// For whom.
        name: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file with the ports and certificates of before cannot be used.
    #[error("cannot keep ports and certificates in {}", file.display())]
    Kept {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The port could not be opened.
    #[error("cannot listen on {addr}")]
    Listen {
        /// Where.
        addr: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// A world that is served; dropping it closes the port.
#[derive(Debug)]
pub struct Served {
    /// Where it listens.
    pub addr: SocketAddr,
    /// SHA-256 of its certificate.
    pub thumbprint: [u8; 32],
    /// Its certificate as PEM, which is also its authority.
    pub certificate: String,
    accept: JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.accept.abort();
    }
}

/// Serves a world on a port until the result is dropped. Port 0 is the port of before, if the world has a file
/// and was served, and a free one else.
///
/// # Errors
/// [`ServeError`].
pub async fn serve(world: World, addr: SocketAddr) -> Result<Served, ServeError> {
    let mut doors = Doors::of(world.document())?;
    let served = listen(&mut doors, "vcenter", world.address(), addr, Arc::new(Face::new(world.clone()))).await?;
    doors.save()?;
    Ok(served)
}

/// Serves a face behind a door; the certificate is for this name.
pub(super) async fn listen(
    doors: &mut Doors,
    door: &str,
    name: &str,
    addr: SocketAddr,
    face: Arc<dyn Answers>,
) -> Result<Served, ServeError> {
    let name = name.to_owned();
    let wrong =
        |source: Box<dyn std::error::Error + Send + Sync>| ServeError::Certificate { name: name.clone(), source };
    let identity = doors.identity(door, &name)?;
    let (der, key) = identity.read()?;
    let thumbprint: [u8; 32] = Sha256::digest(&der).into();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![der], key))
        .map_err(|error| wrong(error.into()))?;
    let (listener, addr) = bind(doors, door, addr).await?;
    let certificate = identity.certificate.clone();
    doors.keep(door, addr.port(), Some(identity));
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let accept = tokio::spawn(accept(listener, acceptor, face));
    Ok(Served { addr, thumbprint, certificate, accept })
}

/// Opens the port of a door: the one that is asked for, or that of before, or a free one.
pub(super) async fn bind(
    doors: &Doors,
    door: &str,
    asked: SocketAddr,
) -> Result<(TcpListener, SocketAddr), ServeError> {
    let port = if asked.port() == 0 { doors.port(door) } else { asked.port() };
    let addr = SocketAddr::new(asked.ip(), port);
    let fail = |source| ServeError::Listen { addr, source };
    let listener = TcpListener::bind(addr).await.map_err(fail)?;
    let addr = listener.local_addr().map_err(fail)?;
    Ok((listener, addr))
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, face: Arc<dyn Answers>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let (acceptor, face) = (acceptor.clone(), Arc::clone(&face));
                    connections.spawn(async move {
                        // A client that breaks off or does not trust us is its own business.
                        if let Ok(stream) = acceptor.accept(stream).await {
                            let service = service_fn(move |request| handle(Arc::clone(&face), request));
                            let mut http = hyper::server::conn::http1::Builder::new();
                            let _ = http.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
                        }
                    });
                }
                Err(error) => tracing::warn!(%error, "a connection was not accepted"),
            },
            // Ended connections are not kept.
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn handle(face: Arc<dyn Answers>, request: Request<Incoming>) -> Result<Response<Body>, Dropped> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, REQUEST_LIMIT).collect().await.map_err(|_| Dropped)?.to_bytes();
    // Spawned, since a client that hangs up does not undo what the server does.
    let handler = tokio::spawn(face.answer(Request::from_parts(head, body)));
    handler.await.unwrap_or(Err(Dropped))
}
