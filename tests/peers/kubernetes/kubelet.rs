//! Plays the kubelets and the scheduler of a namespace, with plain HTTP.
//!
//! A pod without a node is bound to one that may have it. A pod with a node runs and is ready at once. A
//! pod that is being deleted is gone at once. What differs is said by annotations of the pod:
//!
//! | annotation | what the pod does |
//! |---|---|
//! | `lab/exit: "7"` | ends with this code at once |
//! | `lab/log: text` | what it has written by then |
//! | `lab/waits: ImagePullBackOff` | its container does not start, for this reason |
//! | `lab/lingers: "true"` | does not end when it is told to |

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::api::{Api, Change};

/// How long a server that is not there is left alone.
const BETWEEN: Duration = Duration::from_millis(100);

/// What the pods have written, by `namespace/name`.
type Logs = Arc<Mutex<BTreeMap<String, String>>>;

/// It plays until it is dropped.
pub struct Kubelet {
    /// Where API servers ask for logs.
    pub port: u16,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Kubelet {
    /// Plays for the pods of a namespace, on the nodes that have the label `lab: NAMESPACE`.
    pub async fn start(api: Api, namespace: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let logs = Logs::default();
        let play = Play { api, namespace: namespace.to_owned(), logs: Arc::clone(&logs) };
        Self { port, tasks: [tokio::spawn(serve(listener, logs)), tokio::spawn(play.run())] }
    }
}

struct Play {
    api: Api,
    namespace: String,
    logs: Logs,
}

impl Play {
    async fn run(self) {
        let pods = format!("/api/v1/namespaces/{}/pods", self.namespace);
        loop {
            // It begins with all pods, so that nothing is missed when it ends.
            let mut feed = self.api.follow(&pods, "").await;
            while let Some((change, pod)) = feed.next().await {
                if change == Change::There {
                    self.see(&pods, &pod).await;
                }
            }
            tokio::time::sleep(BETWEEN).await;
        }
    }

    async fn see(&self, pods: &str, pod: &Value) {
        let name = pod["metadata"]["name"].as_str().unwrap();
        let said = |key: &str| pod["metadata"]["annotations"][format!("lab/{key}")].as_str();
        let path = format!("{pods}/{name}");
        if pod["spec"]["nodeName"].is_null() {
            self.bind(&path, name).await;
        } else if !pod["metadata"]["deletionTimestamp"].is_null() {
            if said("lingers").is_none() {
                self.api.delete(&path, pod["metadata"]["uid"].as_str()).await;
            }
        } else if pod["status"]["phase"] == "Pending" && pod["status"]["containerStatuses"].is_null() {
            if let Some(text) = said("log") {
                let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
                logs.insert(format!("{}/{name}", self.namespace), text.to_owned());
            }
            let (phase, ready, state) = match (said("exit"), said("waits")) {
                (Some(code), _) => {
                    let code: i32 = code.parse().unwrap();
                    let (phase, reason) = if code == 0 { ("Succeeded", "Completed") } else { ("Failed", "Error") };
                    (phase, "False", json!({"terminated": {"exitCode": code, "reason": reason}}))
                }
                (None, Some(reason)) => {
                    ("Pending", "False", json!({"waiting": {"reason": reason, "message": "as the test says"}}))
                }
                (None, None) => ("Running", "True", json!({"running": {"startedAt": "2026-11-30T12:00:00Z"}})),
            };
            let container = &pod["spec"]["containers"][0];
            let status = json!({
                "phase": phase,
                "startTime": "2026-11-30T12:00:00Z",
                "conditions": [{"type": "Ready", "status": ready}, {"type": "PodScheduled", "status": "True"}],
                "containerStatuses": [{
                    "name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0,
                    "ready": ready == "True", "state": state,
                }],
            });
            self.api.patch_if_there(&format!("{path}/status"), &json!({ "status": status })).await;
        }
    }

    /// Binds a pod to the first node that is open. Where none is, the pod stays as it is.
    async fn bind(&self, path: &str, name: &str) {
        let nodes = self.api.get(&format!("/api/v1/nodes?labelSelector=lab%3D{}", self.namespace)).await;
        let open = nodes["items"].as_array().unwrap().iter().find(|node| node["spec"]["unschedulable"] != true);
        if let Some(node) = open {
            let target = json!({"apiVersion": "v1", "kind": "Node", "name": node["metadata"]["name"]});
            let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target});
            self.api.create(&format!("{path}/binding"), &binding).await;
        }
    }
}

/// Answers API servers that want logs, at `/containerLogs/NAMESPACE/POD/CONTAINER`.
async fn serve(listener: TcpListener, logs: Logs) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    while let Ok((stream, _)) = listener.accept().await {
        // One after the other; one that hangs up is its own business.
        let _ = answer(&acceptor, stream, &logs).await;
    }
}

async fn answer(acceptor: &TlsAcceptor, stream: TcpStream, logs: &Logs) -> std::io::Result<()> {
    let mut stream = BufReader::new(acceptor.accept(stream).await?);
    let mut request = String::new();
    while !request.ends_with("\r\n\r\n") {
        if stream.read_line(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let mut parts = request.split([' ', '/', '?']).skip_while(|part| *part != "containerLogs").skip(1);
    let pod = format!("{}/{}", parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let text = logs.lock().unwrap_or_else(PoisonError::into_inner).get(&pod).cloned().unwrap_or_default();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", text.len());
    stream.write_all((head + &text).as_bytes()).await?;
    stream.flush().await?;
    stream.shutdown().await
}
