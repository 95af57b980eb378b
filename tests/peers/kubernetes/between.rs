//! A way to an API server on which something happens to our writes.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use poolwright::base::net::{Body, Dial, DialError, Duplex, Endpoint, Exchange, NetError, Network, RealNetwork};
use serde_json::Value;

use super::api::Api;

/// What happens to each write.
#[derive(Clone)]
pub enum Between {
    /// Somebody changes an object just before it arrives.
    Change { api: Api, path: String, change: Value },
    /// It arrives, and its answer does not.
    LostAnswer,
}

impl Dial for Between {
    fn dial(&self, host: &str, port: u16) -> BoxFuture<'static, Result<Box<dyn Duplex>, DialError>> {
        RealNetwork.dial(host, port)
    }
}

impl Network for Between {
    fn open(&self, endpoint: &Endpoint) -> Result<Arc<dyn Exchange>, NetError> {
        let inner = RealNetwork.open(endpoint)?;
        Ok(Arc::new(Way { inner, authority: endpoint.authority.clone(), between: self.clone() }))
    }
}

struct Way {
    inner: Arc<dyn Exchange>,
    authority: String,
    between: Between,
}

impl Exchange for Way {
    fn exchange(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, NetError>> {
        let (inner, authority, between) = (Arc::clone(&self.inner), self.authority.clone(), self.between.clone());
        Box::pin(async move {
            if request.method() == Method::GET {
                return inner.exchange(request).await;
            }
            match between {
                Between::Change { api, path, change } => {
                    api.patch(&path, &change).await;
                    inner.exchange(request).await
                }
                Between::LostAnswer => {
                    inner.exchange(request).await?;
                    Err(NetError::Broken { authority, source: "the cable was pulled".into() })
                }
            }
        })
    }
}
