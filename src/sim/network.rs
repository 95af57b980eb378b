//! The world in process: the same faces, without ports.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt;
use tokio::io::duplex;

use super::World;
use super::answer::{Answers, Dropped};
use super::kube::KubeFace;
use super::soap::Face;
use super::ssh::{Closed, attach, door};
use crate::base::net::{Body, Dial, DialError, Duplex, Endpoint, Exchange, NetError, Network};

/// Room of a pipe in memory: that of a TCP window.
const ROOM: usize = 64 << 10;

/// How long somebody waits for a host that does not answer, as a real network lets them.
const PATIENCE: Duration = Duration::from_secs(10);

/// A network with the world's vCenter, and the SSH servers of its hosts.
#[derive(Clone)]
pub struct SimNetwork {
    address: String,
    world: World,
    face: Arc<Face>,
    /// The API of each guest cluster, by its authority.
    guests: BTreeMap<String, Arc<KubeFace>>,
}

impl SimNetwork {
    /// The network of this world. Clients of one network share a vCenter, with its sessions.
    pub fn new(world: World) -> Self {
        let guests = world.spec().guests.iter().filter_map(|guest| {
            let face = Arc::new(KubeFace::new(world.clone(), guest.name.clone()));
            Some((guest.authority()?.to_owned(), face))
        });
        let guests = guests.collect();
        Self { address: world.address().to_owned(), face: Arc::new(Face::new(world.clone())), guests, world }
    }
}

impl std::fmt::Debug for SimNetwork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimNetwork").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Dial for SimNetwork {
    fn dial(&self, host: &str, port: u16) -> BoxFuture<'static, Result<Box<dyn Duplex>, DialError>> {
        let (world, host) = (self.world.clone(), host.to_owned());
        Box::pin(async move {
            let closed = match door(&world, &host, port) {
                Ok(number) => {
                    let (ours, theirs) = duplex(ROOM);
                    attach(world, number, theirs);
                    return Ok(Box::new(ours) as Box<dyn Duplex>);
                }
                Err(closed) => closed,
            };
            let fails = |kind: ErrorKind| DialError::of(&host, port, kind.into());
            Err(match closed {
                Closed::NoHost => DialError::NameNotFound { host, source: ErrorKind::NotFound.into() },
                Closed::Down => fails(ErrorKind::HostUnreachable),
                Closed::Refused => fails(ErrorKind::ConnectionRefused),
                Closed::Silent => {
                    tokio::time::sleep(PATIENCE).await;
                    DialError::TimedOut { host, port, seconds: PATIENCE.as_secs() }
                }
            })
        })
    }
}

impl Network for SimNetwork {
    fn open(&self, endpoint: &Endpoint) -> Result<Arc<dyn Exchange>, NetError> {
        let authority = endpoint.authority.clone();
        let face: Option<Arc<dyn Answers>> = match self.guests.get(&authority) {
            Some(guest) => Some(Arc::<KubeFace>::clone(guest)),
            None if authority == self.address => Some(Arc::<Face>::clone(&self.face)),
            None => None,
        };
        Ok(Arc::new(InProcess { authority, face }))
    }
}

fn reset(authority: String) -> NetError {
    NetError::Broken { authority, source: "connection reset by peer".into() }
}

struct InProcess {
    authority: String,
    /// None: nobody is at this address.
    face: Option<Arc<dyn Answers>>,
}

impl Exchange for InProcess {
    fn exchange(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, NetError>> {
        let authority = self.authority.clone();
        let Some(face) = self.face.clone() else {
            let source = format!("no host {authority} in this world").into();
            return Box::pin(async move { Err(NetError::Connect { authority, source }) });
        };
        // Spawned, since a client that gives up does not undo what the server does.
        let handler = tokio::spawn(face.answer(request));
        Box::pin(async move {
            match handler.await {
                Ok(Ok(response)) => {
                    Ok(response.map(|body| body.map_err(move |_| reset(authority.clone())).boxed_unsync()))
                }
                Ok(Err(Dropped)) => Err(reset(authority)),
                Err(error) => Err(NetError::Broken { authority, source: Box::new(error) }),
            }
        })
    }
}
