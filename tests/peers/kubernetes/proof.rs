//! The control plane, the actor and kubectl are what the other tests take them for.

use serde_json::json;

use super::lab::Lab;
use super::plane::ApiServer;

#[tokio::test]
async fn a_replica_set_a_budget_and_a_job_run_on_nodes_that_are_played() {
    let Some(lab) = Lab::start("proof").await else { return };
    let node = lab.node("a").await;
    lab.replicas("replicasets", "web", 2).await;
    lab.budget("web", "web", json!({"minAvailable": 2})).await;
    assert!(lab.pods().await.iter().all(|pod| pod["spec"]["nodeName"] == node));

    let shown = lab.server.kubectl(&["get", "nodes", &node, "--no-headers"]).await;
    assert!(shown.starts_with(&node) && shown.contains("Ready") && shown.contains("v1.37.2"), "{shown}");

    let container = json!([{"name": "main", "image": "lab"}]);
    let template = json!({
        "metadata": {"annotations": {"lab/exit": "0", "lab/log": "two lines\nof log\n"}},
        "spec": {"restartPolicy": "Never", "nodeName": node, "containers": container},
    });
    lab.api.create(&lab.list("jobs"), &json!({"metadata": {"name": "job"}, "spec": {"template": template}})).await;
    lab.api.until(&lab.list("jobs"), "job", |job| job["status"]["succeeded"] == 1).await;
    let logs = lab.server.kubectl(&["logs", "-n", lab.name, "job/job"]).await;
    assert_eq!(
        logs,
        "two lines
of log
"
    );

    let pod = lab.pod("stays", &node, json!({"metadata": {"annotations": {"lab/lingers": "true"}}})).await;
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    lab.server.kubectl(&["delete", "pod", "-n", lab.name, "stays", "--wait=false"]).await;
    lab.api.until(&lab.list("pods"), "stays", |pod| !pod["metadata"]["deletionTimestamp"].is_null()).await;
    let path = format!("{}/stays", lab.list("pods"));
    lab.api.patch(&path, &json!({"metadata": {"annotations": {"lab/lingers": null}}})).await;
    lab.api.until_gone(&lab.list("pods"), "stays", uid).await;
}

#[tokio::test]
async fn a_server_that_is_killed_comes_back_and_another_cluster_is_another() {
    let Some(lab) = Lab::start("restart").await else { return };
    let identity = async |server: &ApiServer| {
        let space = server.api().get("/api/v1/namespaces/kube-system").await;
        space["metadata"]["uid"].as_str().unwrap().to_owned()
    };
    let mut second = ApiServer::start(lab.server.store(), "shared").await;
    second.kill();
    assert!(!second.api().is_ready().await);
    second.restart().await;
    assert_eq!(identity(&second).await, identity(lab.server).await);
    let other = ApiServer::start(lab.server.store(), "other").await;
    assert_ne!(identity(&other).await, identity(lab.server).await);
}
