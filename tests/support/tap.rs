//! A network that is listened to: what goes over it, beside what it does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use poolwright::base::net::{Body, Dial, DialError, Duplex, Endpoint, Exchange, NetError, Network};

/// Listens on another network.
#[derive(Clone)]
pub struct Tap<N> {
    inner: N,
    heard: Arc<Mutex<Heard>>,
}

/// What was heard.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    /// Calls by the name of the method.
    pub calls: BTreeMap<String, u32>,
    /// Values of cookies that were set: as good as passwords while the session lives.
    pub cookies: Vec<String>,
}

impl<N> Tap<N> {
    pub fn new(inner: N) -> Self {
        Self { inner, heard: Arc::default() }
    }

    pub fn heard(&self) -> Heard {
        self.heard.lock().unwrap().clone()
    }
}

impl<N: Network> Dial for Tap<N> {
    fn dial(&self, host: &str, port: u16) -> BoxFuture<'static, Result<Box<dyn Duplex>, DialError>> {
        self.inner.dial(host, port)
    }
}

impl<N: Network> Network for Tap<N> {
    fn open(&self, endpoint: &Endpoint) -> Result<Arc<dyn Exchange>, NetError> {
        Ok(Arc::new(Wire { inner: self.inner.open(endpoint)?, heard: Arc::clone(&self.heard) }))
    }
}

struct Wire {
    inner: Arc<dyn Exchange>,
    heard: Arc<Mutex<Heard>>,
}

impl Exchange for Wire {
    fn exchange(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, NetError>> {
        let heard = Arc::clone(&self.heard);
        *heard.lock().unwrap().calls.entry(method(request.body())).or_default() += 1;
        let answer = self.inner.exchange(request);
        Box::pin(async move {
            let response = answer.await?;
            let cookies = response.headers().get_all("set-cookie").iter();
            let values = cookies.filter_map(|cookie| cookie.to_str().ok()?.split(['=', ';']).nth(1).map(str::to_owned));
            heard.lock().unwrap().cookies.extend(values);
            Ok(response)
        })
    }
}

/// Name of the element in the body of an envelope; empty for what is no envelope.
fn method(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let inner = text.split_once("<soapenv:Body><").map_or("", |(_, inner)| inner);
    inner.split([' ', '>']).next().unwrap_or_default().to_owned()
}
