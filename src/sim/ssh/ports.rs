//! The shells on real ports, one per host.

use std::net::{IpAddr, SocketAddr};

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{attach, door, key};
use crate::sim::doors::Doors;
use crate::sim::server::bind;
use crate::sim::{ServeError, World};

/// A host's shell on a port; dropping it closes the port.
#[derive(Debug)]
pub struct ServedShell {
    /// Name of the host.
    pub host: String,
    /// Where it listens.
    pub addr: SocketAddr,
    /// The host key as a line of `known_hosts`, for this port.
    pub known_host: String,
    accept: JoinHandle<()>,
}

impl Drop for ServedShell {
    fn drop(&mut self) {
        self.accept.abort();
    }
}

/// Serves the shell of each host that has users, on a port of its own: that of before, or a free one. While no SSH server would
/// listen, a connection is closed at once.
///
/// # Errors
/// [`ServeError::Listen`], [`ServeError::Kept`].
pub async fn serve_shells(world: &World, ip: IpAddr) -> Result<Vec<ServedShell>, ServeError> {
    let hosts: Vec<(String, [u8; 32])> = world.look(|moment| {
        let hosts = moment.state.hosts.values().filter(|host| !host.shell.users.is_empty());
        hosts.map(|host| (host.name.clone(), host.shell.key)).collect()
    });
    let mut doors = Doors::of(world.document())?;
    let mut served = Vec::new();
    for (host, seed) in hosts {
        let behind = format!("shell {host}");
        let (listener, addr) = bind(&doors, &behind, SocketAddr::new(ip, 0)).await?;
        doors.keep(&behind, addr.port(), None);
        let key = key::public(&seed).unwrap_or_default();
        let known_host = format!("[{}]:{} {key}", addr.ip(), addr.port());
        let accept = tokio::spawn(accept(world.clone(), host.clone(), listener));
        served.push(ServedShell { host, addr, known_host, accept });
    }
    doors.save()?;
    Ok(served)
}

async fn accept(world: World, host: String, listener: TcpListener) {
    loop {
        match listener.accept().await {
            // On its own port each host has the port of SSH.
            Ok((stream, _)) => {
                if let Ok(number) = door(&world, &host, 22) {
                    attach(world.clone(), number, stream);
                }
            }
            Err(error) => tracing::warn!(%error, "a connection was not accepted"),
        }
    }
}
