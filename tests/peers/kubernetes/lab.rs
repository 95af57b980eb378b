//! What one test has of the shared cluster: a namespace, nodes, and what runs on them.

use poolwright::base::net::{Network, RealNetwork};
use poolwright::k8s::{Access, Client};
use poolwright::model::{NodeMark, NodePhase, RunId};
use serde_json::{Value, json};

use super::api::Api;
use super::kubelet::Kubelet;
use super::plane::{ApiServer, POOLWRIGHT, cluster};

/// The run that the marks are of.
pub const RUN: &str = "01KB3T7Z0N3K5V7X9B1C2D4F6H";

/// A namespace with nodes of its own.
pub struct Lab {
    pub server: &'static ApiServer,
    pub api: Api,
    /// The namespace; also what the names of its nodes begin with.
    pub name: &'static str,
    kubelet: Kubelet,
}

impl Lab {
    /// None where Kubernetes is not built (a line says so).
    pub async fn start(name: &'static str) -> Option<Self> {
        let server = &cluster().await?.server;
        let api = server.api();
        api.create("/api/v1/namespaces", &json!({"metadata": {"name": name}})).await;
        let kubelet = Kubelet::start(api.clone(), name).await;
        Some(Self { server, api, name, kubelet })
    }

    /// A node that is ready, with four GPUs. Gives its name.
    pub async fn node(&self, name: &str) -> String {
        let name = format!("{}-{name}", self.name);
        register(&self.api, self.name, &name, self.kubelet.port).await;
        name
    }

    /// Our client.
    pub async fn client(&self) -> Client {
        connect(self.server, POOLWRIGHT).await
    }

    /// The list of a kind in the namespace.
    pub fn list(&self, kind: &str) -> String {
        let group = match kind {
            "pods" => "/api/v1",
            "poddisruptionbudgets" => "/apis/policy/v1",
            "jobs" => "/apis/batch/v1",
            _ => "/apis/apps/v1",
        };
        format!("{group}/namespaces/{}/{kind}", self.name)
    }

    /// A pod on a node that nobody controls. `more` is merged into it.
    pub async fn pod(&self, name: &str, node: &str, more: Value) -> Value {
        let mut pod = json!({
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"nodeName": node, "terminationGracePeriodSeconds": 5, "containers": [{"name": "main", "image": "lab"}]},
        });
        json_patch::merge(&mut pod, &more);
        self.api.create(&self.list("pods"), &pod).await;
        let waits = !more["metadata"]["annotations"]["lab/waits"].is_null();
        self.api.until(&self.list("pods"), name, |pod| waits || pod["status"]["phase"] != "Pending").await
    }

    /// A replica set whose pods the scheduler places; waits until all are ready.
    pub async fn replicas(&self, kind: &str, name: &str, count: u32) {
        let labels = json!({ "app": name });
        let template = json!({
            "metadata": {"labels": labels},
            "spec": {"terminationGracePeriodSeconds": 5, "containers": [{"name": "main", "image": "lab"}]},
        });
        let set = json!({
            "metadata": {"name": name},
            "spec": {"replicas": count, "selector": {"matchLabels": labels}, "template": template},
        });
        self.api.create(&self.list(kind), &set).await;
        self.api.until(&self.list(kind), name, |set| set["status"]["readyReplicas"] == count).await;
    }

    /// A budget over the pods of an app; waits until it is counted.
    pub async fn budget(&self, name: &str, app: &str, rule: Value) {
        let mut spec = json!({"selector": {"matchLabels": {"app": app}}});
        json_patch::merge(&mut spec, &rule);
        let list = self.list("poddisruptionbudgets");
        self.api.create(&list, &json!({"metadata": {"name": name}, "spec": spec})).await;
        self.api.until(&list, name, is_counted).await;
    }

    /// The pods of the namespace.
    pub async fn pods(&self) -> Vec<Value> {
        self.api.get(&self.list("pods")).await["items"].as_array().unwrap().clone()
    }
}

/// The disruption controller has seen the budget as it is now.
pub fn is_counted(budget: &Value) -> bool {
    budget["status"]["observedGeneration"] == budget["metadata"]["generation"]
}

/// Makes a node as a kubelet does that registers itself, and says that it is ready.
pub async fn register(api: &Api, lab: &str, name: &str, port: u16) {
    let uuid = machine(name);
    let node = json!({
        "metadata": {"name": name, "labels": {"lab": lab}},
        "spec": {"providerID": format!("vsphere://{uuid}")},
    });
    api.create("/api/v1/nodes", &node).await;
    let resources = json!({"cpu": "16", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "4"});
    let info = json!({
        "systemUUID": uuid, "bootID": format!("boot-1-of-{name}"), "machineID": "", "kernelVersion": "", "osImage": "",
        "containerRuntimeVersion": "", "kubeletVersion": "v1.37.2", "kubeProxyVersion": "", "operatingSystem": "linux",
        "architecture": "amd64",
    });
    let status = json!({
        "capacity": resources,
        "allocatable": resources,
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "nodeInfo": info,
    });
    api.patch(&format!("/api/v1/nodes/{name}/status"), &json!({ "status": status })).await;
    // What its controllers take off a node that has become ready.
    api.patch(&format!("/api/v1/nodes/{name}"), &json!({"spec": {"taints": null}})).await;
}

/// The UUID of the machine that a node of this name is.
pub fn machine(name: &str) -> String {
    let digits: String =
        name.bytes().rev().chain(std::iter::repeat(0)).take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..])
}

/// Our client, as the user of a token.
pub async fn connect(server: &ApiServer, token: &str) -> Client {
    connect_over(&RealNetwork, server, token).await
}

/// Our client over another network.
pub async fn connect_over(network: &impl Network, server: &ApiServer, token: &str) -> Client {
    let access = Access::parse(&server.kubeconfig(token), None, None).unwrap();
    Client::connect("serve", &access, network).await.unwrap()
}

/// The mark of a run on a node.
pub fn mark(node: &str) -> NodeMark {
    let at = |text: &str| text.parse().unwrap();
    NodeMark {
        v: NodeMark::VERSION,
        run: RunId::from(RUN),
        plan: "0f3c9a71d2b4e856".to_owned(),
        host: "4c4c4544-0000-1111-2222-333344445555".to_owned(),
        vm: "vm-77".to_owned(),
        phase: NodePhase::Draining,
        was_unschedulable: false,
        since: at("2026-11-30T20:00:00Z"),
        deadline: at("2026-11-30T21:00:00Z"),
        boot: format!("boot-1-of-{node}"),
        gpus: 4,
    }
}
