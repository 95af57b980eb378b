//! The simulator refuses as Kubernetes does: the same requests to both, and the answers side by side.

use http::Method;
use poolwright::sim::{ServedGuest, World, serve_guests};
use serde_json::{Value, json};

use super::api::Api;
use super::lab::Lab;

/// A cluster with the node `likeness-a` and two pods of `web`, both of which its budget wants.
const WORLD: &str = r#"
apiVersion: poolwright/v1
kind: World
metadata: {name: peers}
spec:
  vcenter: {address: vc.lab, users: [{name: pw@vsphere.local, password: lab}]}
  datacenters: []
  guests:
    - name: k8s
      address: https://k8s.lab:6443
      nodes: [{name: likeness-a, gpus: 4}]
      workloads:
        - {name: web, namespace: likeness, replicas: 2, pdb: {minAvailable: 2}}
        - {name: free, namespace: likeness, replicas: 1}
"#;

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON: &str = "application/json";

/// One of the two, and what its names and numbers are.
struct Side {
    api: Api,
    /// A client whose token nobody knows.
    stranger: Api,
    /// By placeholder.
    own: Vec<(&'static str, String)>,
}

impl Side {
    async fn new(api: Api, stranger: Api) -> Self {
        let node = api.get("/api/v1/nodes/likeness-a").await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let mut own = vec![("NODE-UID", text(&node["metadata"]["uid"]))];
        for (app, name, uid) in [("web", "WEB-POD", "WEB-UID"), ("free", "FREE-POD", "FREE-UID")] {
            let pods = api.get(&format!("/api/v1/namespaces/likeness/pods?labelSelector=app%3D{app}")).await;
            let pod = &pods["items"][0];
            own.extend([(name, text(&pod["metadata"]["name"])), (uid, text(&pod["metadata"]["uid"]))]);
        }
        Self { api, stranger, own }
    }

    /// Status, and the body with placeholders.
    async fn answer(&self, case: &Case) -> (u16, Value) {
        let put = |text: &str| self.own.iter().fold(text.to_owned(), |text, (key, value)| text.replace(key, value));
        let api = if case.stranger { &self.stranger } else { &self.api };
        let body: Value = serde_json::from_str(&put(&case.body.to_string())).unwrap();
        let body = (!body.is_null()).then_some(&body);
        let answer = api.ask(case.method.clone(), &put(&case.path), case.media, body).await.unwrap();
        let text = self.own.iter().fold(answer.text, |text, (key, value)| text.replace(value, key));
        let value = serde_json::from_str(&text).unwrap_or_else(|_| json!(text.trim()));
        (answer.status, value)
    }
}

struct Case {
    method: Method,
    path: String,
    media: &'static str,
    body: Value,
    stranger: bool,
}

fn case(method: Method, path: &str, media: &'static str, body: Value) -> Case {
    Case { method, path: path.to_owned(), media, body, stranger: false }
}

fn get(path: &str) -> Case {
    case(Method::GET, path, JSON, Value::Null)
}

fn patch_node(body: Value) -> Case {
    case(Method::PATCH, "/api/v1/nodes/likeness-a", JSON_PATCH, body)
}

fn merge_node(body: Value) -> Case {
    case(Method::PATCH, "/api/v1/nodes/likeness-a", MERGE_PATCH, body)
}

fn create(version: &str, namespace: &str, list: &str, body: Value) -> Case {
    let root = if version == "v1" { "/api" } else { "/apis" };
    case(Method::POST, &format!("{root}/{version}/namespaces/{namespace}/{list}"), JSON, body)
}

fn containers() -> Value {
    json!([{"name": "main", "image": "lab"}])
}

fn job(name: &str, policy: &str) -> Value {
    let spec = json!({"restartPolicy": policy, "containers": containers()});
    json!({"metadata": {"name": name}, "spec": {"template": {"spec": spec}}})
}

/// As [`job`], with this in it.
fn with(more: Value) -> Value {
    let mut job = job("check", "Never");
    json_patch::merge(&mut job, &more);
    job
}

fn try_job(namespace: &str, job: Value) -> Case {
    create("batch/v1", namespace, "jobs?dryRun=All&fieldValidation=Strict", job)
}

fn evict(pod: &str, uid: &str) -> Case {
    let options = json!({"preconditions": {"uid": uid}});
    let body = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "likeness"},
        "deleteOptions": options,
    });
    case(Method::POST, &format!("/api/v1/namespaces/likeness/pods/{pod}/eviction"), JSON, body)
}

fn cases() -> Vec<Case> {
    let test = |path: &str, value: &str| json!({"op": "test", "path": path, "value": value});
    let cordon = json!({"op": "add", "path": "/spec/unschedulable", "value": true});
    let other = "00000000-0000-4000-8000-000000000000";
    vec![
        get("/api/v1/nodes/nobody"),
        get("/api/v1/namespaces/likeness/pods/nobody"),
        get("/apis/policy/v1/namespaces/likeness/poddisruptionbudgets/nobody"),
        get("/apis/batch/v1/namespaces/likeness/jobs/nobody"),
        get("/api/v1/namespaces/likeness/pods/nobody/log"),
        Case { stranger: true, ..get("/api/v1/nodes") },
        // What was read is no longer so.
        patch_node(json!([test("/metadata/resourceVersion", "1"), cordon])),
        patch_node(json!([test("/metadata/uid", other), cordon])),
        // There is no such map.
        patch_node(
            json!([test("/metadata/uid", "NODE-UID"), {"op": "remove", "path": "/metadata/annotations/nobody"}]),
        ),
        case(Method::PATCH, "/api/v1/nodes/nobody", JSON_PATCH, json!([cordon])),
        case(
            Method::PATCH,
            "/api/v1/nodes/likeness-a",
            MERGE_PATCH,
            json!({"metadata": {"resourceVersion": "1"}, "spec": {"unschedulable": true}}),
        ),
        case(Method::PATCH, "/api/v1/nodes/likeness-a", MERGE_PATCH, json!({"metadata": {"uid": other}})),
        patch_node(json!([test("/metadata/nobody/nobody", "x")])),
        patch_node(json!([{"op": "add", "path": "/metadata/nobody/nobody", "value": "x"}])),
        merge_node(json!({"metadata": {"name": "other"}})),
        merge_node(json!({"spec": {"providerID": "vsphere://other"}})),
        case(Method::PATCH, "/api/v1/nodes/likeness-a", "text/plain", json!({})),
        case(Method::PUT, "/api/v1/nodes/likeness-a", JSON, json!({"metadata": {"name": "other"}})),
        // What a list cannot be asked for.
        get("/api/v1/pods?fieldSelector=spec.nobody%3Da"),
        get("/api/v1/pods?fieldSelector=metadata.name"),
        get("/api/v1/nodes?resourceVersion=nobody"),
        get("/api/v1/nodes?limit=nobody"),
        get("/apis/nobody/v1/things"),
        get("/apis/batch/v2/jobs"),
        get("/api/v1/things"),
        // What is no Job, nor a pod.
        create("batch/v1", "likeness", "jobs", job("check", "Always")),
        create("batch/v1", "nobody", "jobs", job("check", "Never")),
        create("v1", "likeness", "pods", json!({"metadata": {"name": "Web"}, "spec": {"containers": containers()}})),
        create("v1", "likeness", "pods", json!({"metadata": {"name": "web"}, "spec": {"containers": []}})),
        create("v1", "likeness", "pods", json!({"spec": {"containers": containers()}})),
        create("v1", "likeness", "pods", json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "web"}})),
        // A dry run, and a strict one, whose unknown fields are told before anything else is looked at.
        try_job("nobody", job("check", "Never")),
        try_job("likeness", job("check", "Always")),
        try_job("likeness", with(json!({"spec": {"nobody": 1}}))),
        try_job("nobody", with(json!({"spec": {"nobody": 1, "other": {"a": 1}}}))),
        try_job(
            "likeness",
            with(json!({"nobody": null, "metadata": {"nobody": {}}, "spec": {"template": {"spec": {"nobody": []}}}})),
        ),
        try_job(
            "likeness",
            with(
                json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "lab", "nobody": 1, "resources": {"limit": {}}}]}}}}),
            ),
        ),
        try_job("likeness", with(json!({"spec": {"parallelism": -1}}))),
        try_job("likeness", with(json!({"spec": {"template": {"spec": {"containers": [{"name": "main"}]}}}}))),
        Case { stranger: true, ..try_job("likeness", with(json!({"spec": {"nobody": 1}}))) },
        create("batch/v1", "likeness", "jobs?dryRun=Some", job("check", "Never")),
        case(Method::PATCH, "/api/v1/nodes/likeness-a?dryRun=Some", MERGE_PATCH, json!({})),
        create("batch/v1", "likeness", "jobs?fieldValidation=Some", job("check", "Never")),
        case(
            Method::POST,
            "/api/v1/namespaces/likeness/pods/WEB-POD/eviction",
            JSON,
            json!({"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "other"}}),
        ),
        evict("nobody", other),
        evict("WEB-POD", other),
        evict("WEB-POD", "WEB-UID"),
        evict("FREE-POD", other),
        evict("FREE-POD", "FREE-UID"),
    ]
}

/// Strategic merge patches of the node, and what to look at then.
fn patches() -> Vec<(Value, &'static str)> {
    let taint = |key: &str| json!({"key": key, "value": "b", "effect": "PreferNoSchedule"});
    vec![
        (json!({"spec": {"taints": [taint("a"), taint("c")]}}), "/spec/taints"),
        (json!({"spec": {"taints": null}}), "/spec/taints"),
        (json!({"metadata": {"finalizers": ["example.com/a", "example.com/b"]}}), "/metadata/finalizers"),
        (json!({"metadata": {"labels": {"$patch": "replace", "a": "b"}}}), "/metadata/labels"),
        (json!({"metadata": {"annotations": {"$patch": "delete"}}}), "/metadata/annotations"),
        (json!({"spec": {"unschedulable": true}}), "/spec/unschedulable"),
    ]
}

#[tokio::test]
async fn the_simulator_refuses_as_kubernetes_does() {
    let Some(lab) = Lab::start("likeness").await else { return };
    lab.node("a").await;
    lab.replicas("deployments", "web", 2).await;
    lab.replicas("deployments", "free", 1).await;
    lab.budget("web", "web", json!({"minAvailable": 2})).await;
    let real = Side::new(lab.api.clone(), lab.server.api_of("marked-k8s-nobody")).await;

    let world = World::parse("peers", WORLD.as_bytes()).unwrap();
    world.set_speed(60);
    let served = serve_guests(&world, [127, 0, 0, 1].into()).await.unwrap();
    let ServedGuest { served, .. } = &served[0];
    let of = |token| Api::new(&served.addr.to_string(), &served.certificate, token);
    let api = of("k8s-token");
    api.until("/apis/apps/v1/namespaces/likeness/deployments", "web", |web| web["status"]["readyReplicas"] == 2).await;
    let simulated = Side::new(api, of("marked-k8s-nobody")).await;

    let mut unlike = Vec::new();
    for case in cases() {
        let (real, simulated) = (real.answer(&case).await, simulated.answer(&case).await);
        if real != simulated {
            let (method, path) = (&case.method, &case.path);
            unlike.push(format!(
                "{method} {path} {}\n  Kubernetes {} {}\n  simulator  {} {}",
                case.body, real.0, real.1, simulated.0, simulated.1
            ));
        }
    }
    for (patch, pointer) in patches() {
        let path = "/api/v1/nodes/likeness-a?dryRun=All";
        let case = case(Method::PATCH, path, "application/strategic-merge-patch+json", patch);
        let (real, simulated) = (real.answer(&case).await, simulated.answer(&case).await);
        let part = |(code, body): &(u16, Value)| (*code, body.pointer(pointer).cloned());
        if part(&real) != part(&simulated) {
            unlike.push(format!("{}\n  Kubernetes {:?}\n  simulator  {:?}", case.body, part(&real), part(&simulated)));
        }
    }
    assert!(unlike.is_empty(), "{} unlike answers:\n{}", unlike.len(), unlike.join("\n"));
}
