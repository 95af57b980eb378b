//! An API server in a few lines: real requests and bodies, in process; each test scripts what matters.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use poolwright::base::net::{Dial, DialError, Duplex, Endpoint, Exchange, NetError, Network};
use poolwright::k8s::{Access, Client};
use serde_json::{Value, json};

/// Marked, so that it is found wherever it leaks.
pub const TOKEN: &str = "marked-t0ken.of-serve";

pub const AUTHORITY: &str = "k8s-serve.lab:6443";

/// A request as the server sees it.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Method and path, `GET /api/v1/nodes`.
    pub what: String,
    /// The query, decoded no further.
    pub query: String,
    pub headers: HeaderMap,
    /// The body; null if there is none.
    pub body: Value,
    /// How many requests for the same came before.
    pub nth: usize,
}

/// What happens after the last piece of a body.
#[derive(Clone, Copy, PartialEq)]
pub enum End {
    Ends,
    Stays,
    Breaks,
}

/// What the server does.
pub struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    /// Each piece of the body, with the wait before it.
    pieces: Vec<(Duration, String)>,
    end: End,
    /// The connection breaks: no answer, and nobody knows whether the server acted.
    broken: bool,
    /// Not even the head of an answer comes.
    silent: bool,
}

impl Reply {
    pub fn new(status: u16, body: impl Into<String>) -> Self {
        let pieces = vec![(Duration::ZERO, body.into())];
        Self { status, headers: Vec::new(), pieces, end: End::Ends, broken: false, silent: false }
    }

    pub fn ok(body: Value) -> Self {
        Self::new(200, body.to_string())
    }

    pub fn broken() -> Self {
        Self { broken: true, ..Self::new(0, "") }
    }

    /// Nothing, for ever.
    pub fn hangs() -> Self {
        Self { silent: true, ..Self::new(200, "") }
    }

    /// A body that comes in pieces.
    pub fn stream(pieces: &[(u64, Value)], end: End) -> Self {
        let pieces = pieces.iter().map(|(after, piece)| (Duration::from_secs(*after), format!("{piece}\n"))).collect();
        Self { pieces, end, ..Self::new(200, "") }
    }

    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A refusal as an API server writes it.
pub fn status(code: u16, reason: &str, message: &str, details: Value) -> Reply {
    Reply::new(
        code,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "details": details, "code": code
        })
        .to_string(),
    )
}

pub fn not_found() -> Reply {
    status(404, "NotFound", "not found", json!({}))
}

type Script = dyn FnMut(&Seen) -> Reply + Send;

/// The server, and the network that leads to it alone.
#[derive(Clone)]
pub struct Server {
    script: Arc<Mutex<Box<Script>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub fn new(script: impl FnMut(&Seen) -> Reply + Send + 'static) -> Self {
        Self { script: Arc::new(Mutex::new(Box::new(script))), seen: Arc::default() }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// How many requests for this there were.
    pub fn count(&self, what: &str) -> usize {
        self.seen().iter().filter(|seen| seen.what == what).count()
    }

    /// The only request for this.
    pub fn only(&self, what: &str) -> Seen {
        let found: Vec<_> = self.seen().into_iter().filter(|seen| seen.what == what).collect();
        assert_eq!(found.len(), 1, "{what}: {found:?}");
        found[0].clone()
    }

    pub async fn client(&self) -> Client {
        self.client_with(&access()).await
    }

    pub async fn client_with(&self, access: &Access) -> Client {
        Client::connect("serve", access, self).await.unwrap()
    }
}

pub fn kubeconfig(user: Value) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "serve",
        "contexts": [{ "name": "serve", "context": { "cluster": "lab", "user": "us" } }],
        "clusters": [{ "name": "lab", "cluster": { "server": format!("https://{AUTHORITY}") } }],
        "users": [{ "name": "us", "user": user }],
    })
    .to_string()
}

pub fn access() -> Access {
    Access::parse(&kubeconfig(json!({ "token": TOKEN })), None, None).unwrap()
}

impl Dial for Server {
    fn dial(&self, host: &str, _: u16) -> BoxFuture<'static, Result<Box<dyn Duplex>, DialError>> {
        let (host, source) = (host.to_owned(), std::io::ErrorKind::NotFound.into());
        Box::pin(async { Err(DialError::NameNotFound { host, source }) })
    }
}

impl Network for Server {
    fn open(&self, endpoint: &Endpoint) -> Result<Arc<dyn Exchange>, NetError> {
        assert_eq!(endpoint.authority, AUTHORITY);
        Ok(Arc::new(self.clone()))
    }
}

impl Exchange for Server {
    fn exchange(
        &self,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Result<Response<poolwright::base::net::Body>, NetError>> {
        let (head, body) = request.into_parts();
        let what = format!("{} {}", head.method, head.uri.path());
        let seen = Seen {
            nth: self.count(&what),
            what,
            query: head.uri.query().unwrap_or_default().trim_start_matches('&').to_owned(),
            headers: head.headers,
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        };
        self.seen.lock().unwrap().push(seen.clone());
        let reply = self.script.lock().unwrap()(&seen);
        Box::pin(async move {
            if reply.broken {
                return Err(broken());
            }
            if reply.silent {
                std::future::pending::<()>().await;
            }
            let pieces = futures::stream::iter(reply.pieces).then(|(after, piece)| async move {
                tokio::time::sleep(after).await;
                Ok(Frame::data(Bytes::from(piece)))
            });
            let end = reply.end;
            let last = futures::stream::once(async move {
                match end {
                    End::Ends => None,
                    End::Stays => std::future::pending().await,
                    End::Breaks => Some(Err(broken())),
                }
            });
            let body = StreamBody::new(pieces.chain(last.filter_map(|end| async { end })));
            let mut response = Response::builder().status(reply.status);
            for (name, value) in reply.headers {
                response = response.header(name, value);
            }
            Ok(response.body(BodyExt::boxed_unsync(body)).unwrap())
        })
    }
}

fn broken() -> NetError {
    NetError::Broken { authority: AUTHORITY.to_owned(), source: "connection reset by peer".into() }
}

/// A page of a list.
pub fn list(items: Vec<Value>) -> Value {
    json!({ "kind": "List", "apiVersion": "v1", "metadata": { "resourceVersion": "900" }, "items": items })
}

/// A node as an API server shows it.
pub fn node(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name, "uid": format!("uid-{name}"), "resourceVersion": "41",
            "annotations": { "node.alpha.kubernetes.io/ttl": "0" },
        },
        "spec": { "providerID": "vsphere://42389ab1-2c3d-4e5f-8192-a3b4c5d6e7f8" },
        "status": {
            "allocatable": { "cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "8", "hugepages-2Mi": "0" },
            "conditions": [{ "type": "MemoryPressure", "status": "False" }, { "type": "Ready", "status": "True" }],
            "nodeInfo": {
                "bootID": "boot-1", "systemUUID": "b19a3842-3d2c-5f4e-8192-a3b4c5d6e7f8", "machineID": "m",
                "architecture": "amd64", "containerRuntimeVersion": "containerd://2.0", "kernelVersion": "6.8",
                "kubeProxyVersion": "", "kubeletVersion": "v1.37.2", "operatingSystem": "linux", "osImage": "Ubuntu"
            },
        },
    })
}

/// A running pod of a ReplicaSet on `node-1`.
pub fn pod(name: &str) -> Value {
    json!({
        "metadata": {
            "namespace": "ml", "name": name, "uid": format!("uid-{name}"), "resourceVersion": "7",
            "labels": { "app": "web" },
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": true }],
        },
        "spec": { "nodeName": "node-1", "containers": [{ "name": "main", "image": "x" }] },
        "status": { "phase": "Running" },
    })
}
