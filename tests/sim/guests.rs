//! Guest clusters over their API: nodes, the cordon, evictions and budgets, boots, what a world keeps.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use poolwright::base::net::{Body, Endpoint, Exchange, NetError, Network, Trust, collect};
use poolwright::sim::{SimNetwork, World};
use serde_json::{Value, json};

use super::raw::{Raw, pass, world_of};

/// Two hosts with a node each, and a machine elsewhere; `guest` is added to the cluster, `node` to the
/// first node.
pub fn document(guest: &str, node: &str, rest: &str) -> String {
    format!(
        "apiVersion: poolwright/v1
kind: World
metadata: {{name: lab}}
spec:
  now: 2026-11-30T20:00:00Z
  vcenter: {{address: vc.lab, users: [{{name: pw@vsphere.local, password: lab}}]}}
  datacenters:
    - path: /Prod/EU/DC1
      clusters:
        - name: gpu-a
          hosts:
            - {{names: \"esx-[01-02]\", driver: {{component: NVD-AIE-800, version: 580.95.02}}, gpus: [{{model: h100-nvl-94, count: 2, addresses: [\"0000:17:00.0\", \"0000:65:00.0\"], mode: {{passthrough: {{}}}}}}]}}
          vms:
            - {{name: vm-1, host: esx-01, power: on, devices: [{{directPath: \"0000:17:00.0\"}}, {{directPath: \"0000:65:00.0\"}}], extra: {{pciPassthru.use64bitMMIO: \"TRUE\", pciPassthru.64bitMMIOSizeGB: \"512\"}}, node: {{cluster: k8s, name: serve-1{node}}}}}
            - {{name: vm-2, host: esx-02, power: on, devices: [{{directPath: \"0000:17:00.0\"}}], extra: {{pciPassthru.use64bitMMIO: \"TRUE\", pciPassthru.64bitMMIOSizeGB: \"512\"}}, node: {{cluster: k8s, name: serve-2}}}}
  guests:
    - name: k8s
      address: https://k8s.lab:6443
      nodes: [{{name: other-1, gpus: 2}}]
{guest}
{rest}
"
    )
}

/// Three pods of one GPU, of which two must stay.
pub const WEB: &str = "      workloads: [{name: web, replicas: 3, gpu: 1, pdb: {minAvailable: 2}}]";

pub fn world(guest: &str, node: &str, rest: &str) -> World {
    world_of(&document(guest, node, rest))
}

/// A client that writes paths and JSON.
pub struct Kube {
    exchange: Arc<dyn Exchange>,
    token: Option<String>,
}

/// Status code and body.
pub type Got = (u16, Value);

impl Kube {
    pub fn new(world: &World) -> Self {
        Self::with(&SimNetwork::new(world.clone()), Some("k8s-token"))
    }

    pub fn with(network: &SimNetwork, token: Option<&str>) -> Self {
        let endpoint = Endpoint::new("k8s.lab:6443", Trust::System);
        Self { exchange: network.open(&endpoint).unwrap(), token: token.map(str::to_owned) }
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: &str,
    ) -> Result<http::Response<Body>, NetError> {
        let mut request = Request::builder().method(method).uri(path).header("accept", "application/json");
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if !kind.is_empty() {
            request = request.header("content-type", kind);
        }
        self.exchange.exchange(request.body(Bytes::from(body.to_owned())).unwrap()).await
    }

    pub async fn call(&self, method: &str, path: &str, kind: &str, body: &str) -> Got {
        let response = self.send(method, path, kind, body).await.unwrap();
        let response = collect("k8s.lab", response, 8 << 20).await.unwrap();
        let body =
            serde_json::from_slice(response.body()).unwrap_or_else(|_| json!(String::from_utf8_lossy(response.body())));
        (response.status().as_u16(), body)
    }

    pub async fn get(&self, path: &str) -> Value {
        let (code, body) = self.call("GET", path, "", "").await;
        assert_eq!(code, 200, "{path}: {body}");
        body
    }

    pub async fn node(&self, name: &str) -> Value {
        self.get(&format!("/api/v1/nodes/{name}")).await
    }

    pub async fn json_patch(&self, path: &str, patch: &Value) -> Got {
        self.call("PATCH", path, "application/json-patch+json", &patch.to_string()).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Got {
        self.call("POST", path, "application/json", &body.to_string()).await
    }

    pub async fn cordon(&self, name: &str) -> Got {
        let patch = r#"{"spec":{"unschedulable":true}}"#;
        self.call("PATCH", &format!("/api/v1/nodes/{name}"), "application/merge-patch+json", patch).await
    }

    /// Names of the pods of an app that are bound to a node, and not ending.
    pub async fn pods_on(&self, node: &str, app: &str) -> Vec<String> {
        let path = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}&labelSelector=app%3D{app}");
        let pods = self.get(&path).await;
        let alive =
            pods["items"].as_array().unwrap().iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        alive.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    pub async fn evict(&self, pod: &str, options: Value) -> Got {
        let body = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "default"},
            "deleteOptions": options,
        });
        self.post(&format!("/api/v1/namespaces/default/pods/{pod}/eviction"), &body).await
    }

    pub async fn pdb(&self, name: &str) -> Value {
        self.get(&format!("/apis/policy/v1/namespaces/default/poddisruptionbudgets/{name}")).await
    }
}

pub fn condition<'v>(object: &'v Value, kind: &str) -> &'v Value {
    let all = object["status"]["conditions"].as_array().unwrap();
    all.iter().find(|one| one["type"] == kind).unwrap_or_else(|| panic!("no {kind} in {object}"))
}

#[tokio::test(start_paused = true)]
async fn nodes_are_the_vms_and_machines_elsewhere() {
    let world = world(WEB, ", providerId: swapped, systemUUID: missing", "");
    let raw = Raw::login(&world).await;
    let vm = raw.vm_value("vm-2", "config.uuid").await;
    let kube = Kube::new(&world);
    let nodes = kube.get("/api/v1/nodes").await;
    let names: Vec<&str> =
        nodes["items"].as_array().unwrap().iter().map(|node| node["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["other-1", "serve-1", "serve-2"]);
    assert_eq!(nodes["kind"], "NodeList");
    let second = kube.node("serve-2").await;
    assert_eq!(second["spec"]["providerID"], format!("vsphere://{vm}"));
    assert_eq!(second["status"]["nodeInfo"]["systemUUID"], vm);
    assert_eq!(second["status"]["allocatable"]["nvidia.com/gpu"], "1");
    assert_eq!(condition(&second, "Ready")["status"], "True");
    let first = kube.node("serve-1").await;
    assert_eq!(first["status"]["allocatable"]["nvidia.com/gpu"], "2");
    assert_eq!(first["status"]["nodeInfo"]["systemUUID"], "");
    let own = raw.vm_value("vm-1", "config.uuid").await;
    assert_ne!(first["spec"]["providerID"], format!("vsphere://{own}"));
    assert_eq!(&first["spec"]["providerID"].as_str().unwrap()[28..], &own[18..], "the last two groups stay");
    let system = kube.get("/api/v1/namespaces/kube-system").await;
    assert!(!system["metadata"]["uid"].as_str().unwrap().is_empty());
    assert_eq!(kube.get("/version").await["gitVersion"], "v1.37.2");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_token_is_401_and_nobody_is_403() {
    let network = SimNetwork::new(world(WEB, "", ""));
    let (code, body) = Kube::with(&network, Some("wrong")).call("GET", "/api/v1/nodes", "", "").await;
    assert_eq!((code, &body["reason"]), (401, &json!("Unauthorized")));
    let nobody = Kube::with(&network, None);
    assert_eq!(nobody.call("GET", "/api/v1/nodes", "", "").await.0, 403);
    assert_eq!(nobody.call("GET", "/version", "", "").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_patch_with_tests_is_one_write_or_none() {
    let world = world(WEB, ", annotations: {a: b}", "");
    let kube = Kube::new(&world);
    let node = kube.node("serve-1").await;
    let patch = |uid: &Value, version: &Value| {
        json!([
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "test", "path": "/metadata/resourceVersion", "value": version},
            {"op": "add", "path": "/metadata/annotations/poolwright.io~1maintenance", "value": "mark"},
            {"op": "add", "path": "/spec/unschedulable", "value": true},
        ])
    };
    let (uid, version) = (&node["metadata"]["uid"], &node["metadata"]["resourceVersion"]);
    let path = "/api/v1/nodes/serve-1";
    let (code, body) = kube.json_patch(path, &patch(&json!("another"), version)).await;
    assert_eq!((code, &body["reason"]), (422, &json!("Invalid")), "{body}");
    assert!(kube.node("serve-1").await["spec"]["unschedulable"].is_null());
    let (code, body) = kube.json_patch(path, &patch(uid, version)).await;
    assert_eq!(code, 200, "{body}");
    assert_eq!(body["metadata"]["annotations"]["poolwright.io/maintenance"], "mark");
    // The taint follows the cordon, and so does the version: it is not that of the answer any more.
    let after = kube.node("serve-1").await;
    assert_eq!(after["spec"]["taints"][0]["key"], "node.kubernetes.io/unschedulable");
    assert_ne!(after["metadata"]["resourceVersion"], body["metadata"]["resourceVersion"]);
    assert_eq!(kube.json_patch(path, &patch(uid, version)).await.0, 422);
    // A node without annotations has no place to put one.
    let bare = kube.node("serve-2").await;
    let (uid, version) = (&bare["metadata"]["uid"], &bare["metadata"]["resourceVersion"]);
    assert_eq!(kube.json_patch("/api/v1/nodes/serve-2", &patch(uid, version)).await.0, 422);
    let stale = json!({"metadata": {"resourceVersion": "1"}, "spec": {"unschedulable": false}}).to_string();
    let (code, body) = kube.call("PATCH", path, "application/merge-patch+json", &stale).await;
    assert_eq!((code, &body["reason"]), (409, &json!("Conflict")));
    let (code, body) = kube.call("PATCH", "/api/v1/nodes/none", "application/merge-patch+json", "{}").await;
    assert_eq!((code, body["message"].as_str()), (404, Some("nodes \"none\" not found")));
    let log = world.log();
    let writes: Vec<(&str, &str, &str, bool)> =
        log.iter().map(|one| (one.who.as_str(), one.object.as_str(), one.call.as_str(), one.effect)).collect();
    assert_eq!(
        writes[..2],
        [("kubernetes-admin", "serve-1", "patch nodes", false), ("kubernetes-admin", "serve-1", "patch nodes", true),]
    );
    assert_eq!(log[1].id, "k8s/nodes/serve-1");
}

#[tokio::test(start_paused = true)]
async fn evictions_obey_the_budget_and_go_after_their_grace() {
    let kube = Kube::new(&world(WEB, "", ""));
    kube.cordon("serve-1").await;
    let pods = kube.pods_on("serve-1", "web").await;
    assert_eq!(pods.len(), 1, "one on each node");
    assert_eq!(kube.pdb("web").await["status"]["disruptionsAllowed"], 1);
    // Somebody else's pod is not evicted in its place.
    let (code, body) = kube.evict(&pods[0], json!({"preconditions": {"uid": "other"}})).await;
    assert_eq!((code, &body["reason"]), (409, &json!("Conflict")), "{body}");
    let (code, _) = kube.evict(&pods[0], json!({"dryRun": ["All"]})).await;
    assert_eq!((code, kube.pods_on("serve-1", "web").await.len()), (201, 1));
    let (code, body) = kube.evict(&pods[0], json!({})).await;
    assert_eq!((code, &body["status"]), (201, &json!("Success")), "{body}");
    let path = format!("/api/v1/namespaces/default/pods/{}", pods[0]);
    let ending = kube.get(&path).await;
    assert_eq!(ending["metadata"]["deletionTimestamp"], "2026-11-30T20:00:30Z");
    assert_eq!(condition(&ending, "DisruptionTarget")["reason"], "EvictionByEvictionAPI");
    // Its replacement is made at once, and is not ready at once: the budget is used up.
    let others = kube.pods_on("serve-2", "web").await;
    let (code, body) = kube.evict(&others[0], json!({})).await;
    assert_eq!(code, 429);
    let cause = "The disruption budget web needs 2 healthy pods and has 2 currently";
    assert_eq!(body["details"]["causes"][0], json!({"reason": "DisruptionBudget", "message": cause}));
    assert!(body["details"]["retryAfterSeconds"].is_null());
    pass(31).await;
    assert_eq!(kube.call("GET", &path, "", "").await.0, 404);
    let pod = r#"{"kind":"Pod","apiVersion":"v1"}"#;
    assert_eq!(kube.call("POST", &format!("{path}/eviction"), "application/json", pod).await.0, 400);
    assert_eq!(kube.pdb("web").await["status"]["currentHealthy"], 3);
    assert_eq!(kube.evict(&pods[0], json!({})).await.0, 404);
    assert!(kube.pods_on("serve-1", "web").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn several_budgets_are_500_and_unready_pods_have_their_rule() {
    let guest = "      workloads:
        - {name: web, replicas: 2, pdb: {minAvailable: 1}}
        - {name: sick, replicas: 1, nodes: [serve-1], unreadyOn: [serve-1], pdb: {minAvailable: 1}}
        - {name: free, replicas: 1, nodes: [serve-1], unreadyOn: [serve-1], pdb: {minAvailable: 1, alwaysAllowUnhealthy: true}}
      pdbs: [{name: second, app: web, budget: {maxUnavailable: 1}}]";
    let kube = Kube::new(&world(guest, "", ""));
    let all = kube.get("/api/v1/namespaces/default/pods?labelSelector=app%3Dweb").await;
    let pod = all["items"][0]["metadata"]["name"].as_str().unwrap();
    let (code, body) = kube.evict(pod, json!({})).await;
    assert_eq!(code, 500);
    assert!(body["message"].as_str().unwrap().contains("more than one PodDisruptionBudget"), "{body}");
    assert!(body["reason"].is_null());
    let sick = kube.pods_on("serve-1", "sick").await;
    assert_eq!(kube.evict(&sick[0], json!({})).await.0, 429);
    let free = kube.pods_on("serve-1", "free").await;
    assert_eq!(kube.evict(&free[0], json!({})).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_its_controller_has_not_seen_blocks_for_a_while() {
    let kube = Kube::new(&world("      budgetLag: 8s\n      workloads: [{name: web, replicas: 2}]", "", ""));
    let budget =
        json!({"metadata": {"name": "late"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    assert_eq!(kube.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", &budget).await.0, 201);
    let pods = kube.get("/api/v1/namespaces/default/pods").await;
    let pod = pods["items"][0]["metadata"]["name"].as_str().unwrap();
    let (code, body) = kube.evict(pod, json!({})).await;
    assert_eq!((code, &body["details"]["retryAfterSeconds"]), (429, &json!(10)));
    pass(10).await;
    assert_eq!(kube.evict(pod, json!({})).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_goes_down_is_unknown_after_40_s_and_comes_back_in_stages() {
    let world = world(WEB, ", boot: {ready: 30s, gpus: 10m, loses: 1}", "");
    let raw = Raw::login(&world).await;
    let kube = Kube::new(&world);
    let before = kube.node("serve-1").await;
    let pods = kube.pods_on("serve-1", "web").await;
    raw.vm("PowerOffVM_Task", "vm-1", "").await.ok();
    pass(30).await;
    assert_eq!(condition(&kube.node("serve-1").await, "Ready")["status"], "True", "nobody noticed yet");
    pass(20).await;
    let lost = kube.node("serve-1").await;
    assert_eq!(condition(&lost, "Ready")["status"], "Unknown");
    assert_eq!(lost["status"]["allocatable"]["nvidia.com/gpu"], "2", "what it last said");
    pass(310).await;
    let path = format!("/api/v1/namespaces/default/pods/{}", pods[0]);
    assert!(!kube.get(&path).await["metadata"]["deletionTimestamp"].is_null(), "stays, since no kubelet confirms");
    assert_eq!(raw.vm_task("PowerOnVM_Task", "vm-1", "").await, "success");
    pass(35).await;
    let back = kube.node("serve-1").await;
    assert_eq!(condition(&back, "Ready")["status"], "True");
    assert!(back["spec"]["taints"].is_null());
    assert_ne!(back["status"]["nodeInfo"]["bootID"], before["status"]["nodeInfo"]["bootID"]);
    assert_eq!(back["status"]["allocatable"]["nvidia.com/gpu"], "0", "the plugin is not there yet");
    assert_eq!(kube.call("GET", &path, "", "").await.0, 404);
    pass(600).await;
    assert_eq!(kube.node("serve-1").await["status"]["allocatable"]["nvidia.com/gpu"], "1", "one is lost");
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_gpus_on_a_node_that_boots_fails_admission() {
    let guest = "      workloads: [{name: db, kind: statefulSet, gpu: 2, nodes: [serve-1]}, {name: lone, kind: bare, nodes: [serve-2], gpu: 1}]";
    let world = world(guest, "", "");
    let raw = Raw::login(&world).await;
    let kube = Kube::new(&world);
    for vm in ["vm-1", "vm-2"] {
        raw.vm("PowerOffVM_Task", vm, "").await.ok();
    }
    pass(10).await;
    for vm in ["vm-1", "vm-2"] {
        raw.vm("PowerOnVM_Task", vm, "").await.ok();
    }
    pass(75).await;
    let lone = kube.get("/api/v1/namespaces/default/pods/lone").await;
    assert_eq!(
        (&lone["status"]["phase"], &lone["status"]["reason"]),
        (&json!("Failed"), &json!("UnexpectedAdmissionError"))
    );
    // Its owner makes the other one anew, which waits for the GPUs.
    pass(70).await;
    assert_eq!(kube.get("/api/v1/namespaces/default/pods/db-0").await["status"]["phase"], "Running");
}

#[tokio::test(start_paused = true)]
async fn a_world_is_kept_with_its_guests() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("lab.world.yaml");
    std::fs::write(&file, document(WEB, "", "")).unwrap();
    let world = World::open(&file).unwrap();
    let kube = Kube::new(&world);
    kube.cordon("serve-1").await;
    let pods = kube.pods_on("serve-1", "web").await;
    kube.evict(&pods[0], json!({})).await;
    pass(10).await;
    world.save().unwrap();
    let before = kube.get("/api/v1/pods").await;
    let again = World::open(&file).unwrap();
    let kube = Kube::new(&again);
    assert_eq!(kube.get("/api/v1/pods").await, before);
    assert_eq!(kube.node("serve-1").await["spec"]["unschedulable"], true);
    pass(30).await;
    assert_eq!(kube.call("GET", &format!("/api/v1/namespaces/default/pods/{}", pods[0]), "", "").await.0, 404);
    assert_eq!(again.log().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_is_powered_off_while_its_guest_boots_is_no_ready_node() {
    let world = world(WEB, "", "");
    let (raw, kube) = (Raw::login(&world).await, Kube::new(&world));
    let ready = async || condition(&kube.node("serve-1").await, "Ready")["status"].clone();
    raw.vm_task("PowerOffVM_Task", "vm-1", "").await;
    raw.vm("PowerOnVM_Task", "vm-1", "").await.ok();
    pass(30).await;
    assert_eq!(raw.vm_value("vm-1", "runtime.powerState").await, "poweredOn");
    assert_eq!(ready().await, "Unknown", "it boots");
    raw.vm("PowerOffVM_Task", "vm-1", "").await.ok();
    pass(400).await;
    assert_eq!(ready().await, "Unknown", "nobody is there to report");
    raw.vm_task("PowerOnVM_Task", "vm-1", "").await;
    pass(80).await;
    assert_eq!(ready().await, "True");
}
