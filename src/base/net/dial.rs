//! The second seam: one connection that carries bytes both ways, for SSH.

use std::io::ErrorKind;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};

use super::real::RealNetwork;

/// How long finding the name and connecting may take together: a server on the other side of the
/// world answers in under a second, a filtered port never.
const CONNECT: Duration = Duration::from_secs(10);

/// Bytes both ways.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Opens connections.
pub trait Dial: Send + Sync {
    /// Connects to a port of a host. Never repeats anything, and has its own deadline.
    fn dial(&self, host: &str, port: u16) -> BoxFuture<'static, Result<Box<dyn Duplex>, DialError>>;
}

/// Why there is no connection. Nothing was sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// No address belongs to the name.
    #[error("the name {host} is not found")]
    NameNotFound {
        /// The name.
        host: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The host answers, and nothing listens on the port.
    #[error("{host} refuses connections on port {port}")]
    Refused {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// No way leads to the host, or it does not answer on its own network.
    #[error("there is no route to {host}")]
    NoRoute {
        /// The host.
        host: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Nobody answered: the host is down, or a filter drops what we send.
    #[error("{host} did not answer on port {port} within {seconds} s")]
    TimedOut {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// The deadline.
        seconds: u64,
    },
    /// Something else.
    #[error("cannot connect to port {port} of {host}")]
    Other {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl DialError {
    /// What an error of the operating system means.
    pub fn of(host: &str, port: u16, source: std::io::Error) -> Self {
        let host = host.to_owned();
        match source.kind() {
            ErrorKind::ConnectionRefused => Self::Refused { host, port, source },
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Self::NoRoute { host, source },
            ErrorKind::TimedOut => Self::TimedOut { host, port, seconds: CONNECT.as_secs() },
            _ => Self::Other { host, port, source },
        }
    }
}

impl Dial for RealNetwork {
    /// Connects by TCP, without any proxy.
    fn dial(&self, host: &str, port: u16) -> BoxFuture<'static, Result<Box<dyn Duplex>, DialError>> {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Box::pin(async move {
            match tokio::time::timeout(CONNECT, connect(&host, port)).await {
                Ok(result) => result,
                Err(_) => Err(DialError::TimedOut { host, port, seconds: CONNECT.as_secs() }),
            }
        })
    }
}

/// Tries the addresses of a name in the resolver's order, as `ssh` does.
async fn connect(host: &str, port: u16) -> Result<Box<dyn Duplex>, DialError> {
    let unknown = |source| DialError::NameNotFound { host: host.to_owned(), source };
    let mut last = None;
    for address in lookup_host((host, port)).await.map_err(unknown)? {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(Box::new(stream)),
            Err(error) => last = Some(error),
        }
    }
    Err(match last {
        Some(error) => DialError::of(host, port, error),
        None => unknown(std::io::Error::from(ErrorKind::NotFound)),
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn bytes_go_both_ways() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut heard = [0; 4];
            stream.read_exact(&mut heard).await.unwrap();
            stream.write_all(&heard).await.unwrap();
        });
        let mut stream = RealNetwork.dial("127.0.0.1", port).await.unwrap();
        stream.write_all(b"ping").await.unwrap();
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"ping");
        server.await.unwrap();
    }

    #[tokio::test]
    async fn a_port_where_nobody_listens_refuses() {
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let error = RealNetwork.dial("[127.0.0.1]", port).await.err().unwrap();
        assert!(matches!(error, DialError::Refused { .. }), "{error:?}");
    }

    #[test]
    fn errors_of_the_system_have_their_meaning() {
        let of = |kind| DialError::of("esx", 22, std::io::Error::from(kind));
        assert!(matches!(of(ErrorKind::HostUnreachable), DialError::NoRoute { .. }));
        assert!(matches!(of(ErrorKind::NetworkUnreachable), DialError::NoRoute { .. }));
        assert!(matches!(of(ErrorKind::TimedOut), DialError::TimedOut { .. }));
        assert!(matches!(of(ErrorKind::ConnectionReset), DialError::Other { .. }));
    }
}
