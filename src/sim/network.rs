//! The world in process: the same face, without ports.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};

use super::World;
use super::soap::Face;
use crate::base::net::{Body, Endpoint, Exchange, NetError, Network};

/// A network on which the world's vCenter is the only host.
#[derive(Clone)]
pub struct SimNetwork {
    address: String,
    face: Arc<Face>,
}

impl SimNetwork {
    /// The network of this world. Clients of one network share a vCenter, with its sessions.
    pub fn new(world: World) -> Self {
        Self { address: world.address().to_owned(), face: Arc::new(Face::new(world)) }
    }
}

impl std::fmt::Debug for SimNetwork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimNetwork").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Network for SimNetwork {
    fn open(&self, endpoint: &Endpoint) -> Result<Arc<dyn Exchange>, NetError> {
        let known = endpoint.authority == self.address;
        Ok(Arc::new(InProcess { authority: endpoint.authority.clone(), face: known.then(|| Arc::clone(&self.face)) }))
    }
}

struct InProcess {
    authority: String,
    /// None: nobody is at this address.
    face: Option<Arc<Face>>,
}

impl Exchange for InProcess {
    fn exchange(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, NetError>> {
        let authority = self.authority.clone();
        let Some(face) = self.face.clone() else {
            let source = format!("no host {authority} in this world").into();
            return Box::pin(async move { Err(NetError::Connect { authority, source }) });
        };
        // Spawned, since a client that gives up does not undo what the server does.
        let handler = tokio::spawn(async move { face.answer(request).await });
        Box::pin(async move {
            match handler.await {
                Ok(Ok(response)) => {
                    Ok(response.map(|body| Full::new(body).map_err(|never| match never {}).boxed_unsync()))
                }
                Ok(Err(_)) => Err(NetError::Broken { authority, source: "connection reset by peer".into() }),
                Err(error) => Err(NetError::Broken { authority, source: Box::new(error) }),
            }
        })
    }
}
