//! The processes: etcd, API servers, controllers, and the keys that they trust.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use k8s_openapi::ByteString;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::api::Api;
use crate::support::{kubectl, peer};

/// The token of a user who may do anything.
pub const ADMIN: &str = "marked-k8s-admin";

/// The token of a user who has the rights of `docs/guest-rbac.yaml`, and no others.
pub const POOLWRIGHT: &str = "marked-k8s-poolwright";

/// The token of somebody who is known and has no right.
pub const NOBODY: &str = "marked-k8s-without-rights";

/// A name that the server's certificate has beside its address.
pub const SERVER_NAME: &str = "kubernetes.lab";

/// How often a server is asked whether it is ready, and how long it is left alone between: a start takes
/// three seconds, on a busy machine some tens.
const TRIES: u32 = 1200;
const BETWEEN: Duration = Duration::from_millis(100);

/// A process that ends when its input does, so at the latest with the tests.
struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    fn start(program: &Path, log: PathBuf, arguments: &[String]) -> Self {
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Self { child, log }
    }

    /// What it said, if it has ended.
    fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().unwrap()?;
        Some(format!("{status}: {}", fs::read_to_string(&self.log).unwrap()))
    }
}

impl Drop for Process {
    /// As a crash: nothing is told to its clients.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port on which nobody listens.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// etcd with its keys; it holds any number of clusters.
pub struct Store {
    program: PathBuf,
    /// Of all files. etcd's process removes it, since a static is never dropped.
    dir: PathBuf,
    _etcd: Process,
    url: String,
    ca: CertifiedIssuer<'static, KeyPair>,
}

impl Store {
    fn start() -> Option<Self> {
        let program = peer("kubernetes/kubernetes")?;
        let dir = tempfile::Builder::new().prefix("kubernetes-").tempdir().unwrap().keep();
        let url = |port| format!("http://127.0.0.1:{port}");
        let (client, between) = (url(free_port()), url(free_port()));
        let arguments = ["etcd".to_owned(), dir.display().to_string(), client.clone(), between];
        let etcd = Process::start(&program, dir.join("etcd.log"), &arguments);
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "lab");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let store = Self { program, dir, _etcd: etcd, url: client, ca };
        store.write("ca.pem", &store.ca.pem());
        let accounts = KeyPair::generate().unwrap();
        store.write("accounts.pem", &accounts.public_key_pem());
        store.write("accounts.key", &accounts.serialize_pem());
        let mut server = CertificateParams::new(["127.0.0.1".to_owned(), SERVER_NAME.to_owned()]).unwrap();
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let (certificate, key) = store.sign(server);
        store.write("server.pem", &certificate);
        store.write("server.key", &key);
        store.write(
            "tokens.csv",
            &format!("{ADMIN},admin,1,\"system:masters\"\n{POOLWRIGHT},poolwright,2\n{NOBODY},nobody,3\n"),
        );
        Some(store)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.dir.join(name), text).unwrap();
    }

    fn sign(&self, params: CertificateParams) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.ca).unwrap().pem(), key.serialize_pem())
    }

    /// The authority of the server, as PEM.
    fn authority(&self) -> String {
        self.ca.pem()
    }

    /// A certificate and key of an administrator, good until the end of the year.
    pub fn client_certificate(&self, until_year: i32) -> (String, String) {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "admin");
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(until_year, 12, 31);
        self.sign(params)
    }
}

/// An API server of a cluster.
pub struct ApiServer {
    store: &'static Store,
    cluster: String,
    port: u16,
    process: Option<Process>,
}

impl ApiServer {
    /// Starts one, and waits until it is ready. Servers of one cluster's name serve the same cluster.
    pub async fn start(store: &'static Store, cluster: &str) -> Self {
        let mut server = Self { store, cluster: cluster.to_owned(), port: free_port(), process: None };
        server.restart().await;
        server
    }

    /// Starts it again on its port, and waits until it is ready.
    pub async fn restart(&mut self) {
        let file = |name: &str| self.store.dir.join(name).display().to_string();
        let arguments = [
            "apiserver".to_owned(),
            format!("--etcd-servers={}", self.store.url),
            format!("--etcd-prefix=/{}", self.cluster),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", file("accounts.pem")),
            format!("--service-account-signing-key-file={}", file("accounts.key")),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            format!("--token-auth-file={}", file("tokens.csv")),
            format!("--client-ca-file={}", file("ca.pem")),
            format!("--tls-cert-file={}", file("server.pem")),
            format!("--tls-private-key-file={}", file("server.key")),
            "--authorization-mode=RBAC".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.port),
            format!("--cert-dir={}", file("made")),
            // Nobody here makes the accounts that it would want for each pod.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            // On loopback it refuses to start without it.
            "--endpoint-reconciler-type=none".to_owned(),
        ];
        let log = self.store.dir.join(format!("apiserver-{}.log", self.port));
        let mut process = Process::start(&self.store.program, log, &arguments);
        let api = self.api();
        for _ in 0..TRIES {
            if api.is_ready().await {
                self.process = Some(process);
                return;
            }
            if let Some(said) = process.ended() {
                panic!("the API server ended: {said}");
            }
            tokio::time::sleep(BETWEEN).await;
        }
        panic!("the API server does not get ready: {}", fs::read_to_string(&process.log).unwrap());
    }

    /// Kills it, as a crash would.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Host and port.
    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// What holds it.
    pub fn store(&self) -> &'static Store {
        self.store
    }

    /// The administrator's own client.
    pub fn api(&self) -> Api {
        self.api_of(ADMIN)
    }

    /// The client of whoever has this token.
    pub fn api_of(&self, token: &str) -> Api {
        Api::new(&self.address(), &self.store.authority(), token)
    }

    /// A kubeconfig for a bearer token.
    pub fn kubeconfig(&self, token: &str) -> String {
        self.kubeconfig_of(&json!({ "token": token }))
    }

    /// A kubeconfig for a user.
    pub fn kubeconfig_of(&self, user: &Value) -> String {
        let authority = base64(&self.store.authority());
        let server = format!("https://{}", self.address());
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": self.cluster,
            "clusters": [{"name": "lab", "cluster": {"server": server, "certificate-authority-data": authority}}],
            "users": [{"name": "user", "user": user}],
            "contexts": [{"name": self.cluster, "context": {"cluster": "lab", "user": "user"}}],
        })
        .to_string()
    }

    /// What kubectl prints, as the administrator.
    pub async fn kubectl(&self, arguments: &[&str]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let mut command = kubectl(dir.path(), &self.kubeconfig(ADMIN)).unwrap();
        command.args(arguments);
        let output = command.output().await.unwrap();
        assert!(output.status.success(), "kubectl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Base64, as kubeconfigs hold certificates and keys.
pub fn base64(text: &str) -> Value {
    serde_json::to_value(ByteString(text.as_bytes().to_vec())).unwrap()
}

/// The cluster that all tests share.
pub struct Cluster {
    /// Its API server, which is never killed.
    pub server: ApiServer,
    _controllers: Process,
}

/// The cluster that all tests share, started by the first. None where Kubernetes is not built (a line
/// says so).
pub async fn cluster() -> Option<&'static Cluster> {
    static CLUSTER: OnceCell<Option<Cluster>> = OnceCell::const_new();
    static STORE: OnceCell<Option<Store>> = OnceCell::const_new();
    let started = CLUSTER.get_or_init(async || {
        let store = STORE.get_or_init(async || Store::start()).await.as_ref()?;
        let server = ApiServer::start(store, "shared").await;
        let path = store.dir.join("controllers.kubeconfig");
        fs::write(&path, server.kubeconfig(ADMIN)).unwrap();
        let controllers = [
            "disruption-controller",
            "replicaset-controller",
            "deployment-controller",
            "statefulset-controller",
            "daemonset-controller",
            "job-controller",
            "garbage-collector-controller",
            "namespace-controller",
        ];
        let arguments = [
            "controller-manager".to_owned(),
            format!("--kubeconfig={}", path.display()),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            format!("--controllers={}", controllers.join(",")),
        ];
        let controllers = Process::start(&store.program, store.dir.join("controllers.log"), &arguments);
        server.kubectl(&["apply", "-f", "docs/guest-rbac.yaml"]).await;
        Some(Cluster { server, _controllers: controllers })
    });
    started.await.as_ref()
}
