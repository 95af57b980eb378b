//! The pods of a node: which are due, which are ending, which stay.

use poolwright::k8s::{Error, Pods, Why};
use serde_json::{Value, json};

use super::script::{Reply, Server, list, pod};

async fn pods_on(found: Vec<Value>) -> Result<Pods, Error> {
    let server = Server::new(move |seen| {
        assert_eq!(seen.what, "GET /api/v1/pods");
        // Linearizable: no version, so that no cache answers.
        assert_eq!(seen.query, "fieldSelector=spec.nodeName%3Dnode-1&limit=500");
        Reply::ok(list(found.clone()))
    });
    server.client().await.pods_on("node-1").await
}

fn names(pods: &[poolwright::k8s::Pod]) -> Vec<&str> {
    pods.iter().map(|pod| pod.pod.name.as_str()).collect()
}

/// A pod with something else in it.
fn with(name: &str, path: &str, value: Value) -> Value {
    let mut pod = pod(name);
    let (parent, key) = path.rsplit_once('/').unwrap();
    pod.pointer_mut(parent).unwrap()[key] = value;
    pod
}

fn owner(kind: &str, api: &str, controller: Value) -> Value {
    json!([{ "apiVersion": api, "kind": kind, "name": "x", "uid": "u", "controller": controller }])
}

#[tokio::test]
async fn each_pod_is_due_or_ending_or_stays() {
    let refs = "/metadata/ownerReferences";
    let ds = |name, api| with(name, refs, owner("DaemonSet", api, json!(true)));
    let mut ending_daemon = ds("daemon-ending", "apps/v1");
    ending_daemon["metadata"]["deletionTimestamp"] = json!("2026-11-30T20:00:30Z");
    let pods = pods_on(vec![
        pod("web"),
        with("static", "/metadata/annotations", json!({ "kubernetes.io/config.mirror": "hash" })),
        ds("daemon", "apps/v1"),
        ds("kruise", "apps.kruise.io/v1alpha1"),
        ending_daemon,
        // Owned by a DaemonSet that does not control it: nothing starts it again here.
        with("owned", refs, owner("DaemonSet", "apps/v1", json!(null))),
        with("done", "/status/phase", json!("Succeeded")),
        with("failed", "/status/phase", json!("Failed")),
        // What is not known to have ended has not.
        with("unknown", "/status/phase", json!("Unknown")),
        with("no-status", "/status", json!({})),
        with("ending", "/metadata/deletionTimestamp", json!("2026-11-30T20:00:30Z")),
    ])
    .await
    .unwrap();
    assert_eq!(names(&pods.due), ["no-status", "owned", "unknown", "web"]);
    assert_eq!(names(&pods.ending), ["ending"]);
    let staying: Vec<_> = pods.staying.iter().map(|(pod, why)| (pod.pod.name.as_str(), *why)).collect();
    assert_eq!(
        staying,
        [
            ("daemon", Why::DaemonSet),
            ("daemon-ending", Why::DaemonSet),
            ("done", Why::Finished),
            ("failed", Why::Finished),
            ("kruise", Why::DaemonSet),
            ("static", Why::Mirror),
        ]
    );
    assert_eq!(pods.version, "900");
}

#[tokio::test]
async fn the_least_important_pod_is_first_and_what_its_eviction_costs_is_known() {
    let mut bare = pod("bare");
    bare["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    bare["spec"]["volumes"] = json!([{ "name": "scratch", "emptyDir": { "medium": "Memory" } }]);
    let pods = pods_on(vec![
        with("dns", "/spec/priority", json!(2_000_000_000)),
        with("batch", "/spec/priority", json!(-10)),
        pod("web"),
        bare,
    ])
    .await
    .unwrap();
    assert_eq!(names(&pods.due), ["batch", "bare", "web", "dns"]);
    let costs: Vec<_> = pods.due.iter().map(|pod| (pod.owner.is_none(), pod.scratch)).collect();
    assert_eq!(costs, [(false, false), (true, true), (false, false), (false, false)]);
}

#[tokio::test]
async fn a_pod_that_cannot_be_read_is_not_a_pod_that_is_gone() {
    for (path, value) in [
        ("/metadata/uid", json!(null)),
        ("/metadata/uid", json!("")),
        ("/metadata/name", json!(null)),
        ("/metadata/name", json!("../../nodes/node-1")),
        ("/metadata/namespace", json!("a/b")),
        ("/metadata/deletionTimestamp", json!("soon")),
        ("/spec", json!(null)),
        // A server that passes over the selector would have us evict other nodes' pods.
        ("/spec/nodeName", json!("node-2")),
        ("/spec/nodeName", json!(null)),
        ("/spec/priority", json!("high")),
    ] {
        let found = pods_on(vec![pod("web"), with("broken", path, value.clone())]).await;
        assert!(matches!(found, Err(Error::Decode { .. })), "{path} {value}: {found:?}");
    }
}
