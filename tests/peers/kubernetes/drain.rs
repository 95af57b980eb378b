//! Drains by the rounds of our own, against budgets, finalizers and people.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use poolwright::k8s::{Client, Drain, Evicted, Patched, PodRef, Round};
use poolwright::model::NodeMark;
use serde_json::{Value, json};

use super::lab::{Lab, connect, is_counted, mark};
use super::plane::{ApiServer, POOLWRIGHT};

/// Longest wait between two rounds: an event ends it earlier.
const WAIT: Duration = Duration::from_secs(2);

/// A cordoned node, and its drain.
struct Draining {
    client: Client,
    drain: Drain,
    /// Our clock. It runs ahead of the server's, so that every wait of the drain is over in the next round.
    now: Timestamp,
}

impl Draining {
    async fn start(client: Client, node: &str) -> Self {
        let view = client.node(node).await.unwrap().unwrap();
        let mark = mark(node);
        let patched = client.cordon(&view.node, &view.version, &mark).await.unwrap();
        assert!(matches!(patched, Patched::Done(_)), "{patched:?}");
        Self { drain: Drain::new(client.clone(), view.node, mark), client, now: Timestamp::now() }
    }

    async fn round(&mut self) -> Round {
        let round = self.drain.round(self.now).await.unwrap();
        self.now = self.now.checked_add(SignedDuration::from_secs(61)).unwrap();
        round
    }

    /// Rounds until one is so.
    async fn until(&mut self, is_so: impl Fn(&Round) -> bool) -> Round {
        let mut last = None;
        for _ in 0..60 {
            let round = self.round().await;
            if is_so(&round) {
                return round;
            }
            last = Some(round);
            self.drain.wait(WAIT).await;
        }
        panic!("no round is as awaited; the last: {last:?}");
    }

    /// Rounds until it is empty; what was read then.
    async fn until_empty(&mut self) -> Vec<String> {
        match self.until(|round| !matches!(round, Round::Busy { .. })).await {
            Round::Empty { evidence } => evidence,
            other => panic!("{other:?}"),
        }
    }

    /// Rounds until one waits for something with these words.
    async fn until_waits_for(&mut self, words: &str) -> Vec<String> {
        let is_so = |round: &Round| matches!(round, Round::Busy { waiting_for } if waiting_for.iter().any(|one| one.contains(words)));
        match self.until(is_so).await {
            Round::Busy { waiting_for } => waiting_for,
            other => panic!("{other:?}"),
        }
    }

    /// The one pod of the node that is to be evicted.
    async fn only_pod(&self, node: &str) -> PodRef {
        let mut due = self.client.pods_on(node).await.unwrap().due;
        assert_eq!(due.len(), 1, "{due:?}");
        due.remove(0).pod
    }
}

fn is_leaving(pod: &Value) -> bool {
    !pod["metadata"]["deletionTimestamp"].is_null()
}

/// On which node each pod is.
async fn places(lab: &Lab) -> Vec<String> {
    lab.pods().await.iter().map(|pod| pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn a_budget_that_forbids_is_named_and_grants_later() {
    let Some(lab) = Lab::start("budget").await else { return };
    let (a, b) = (lab.node("a").await, lab.node("b").await);
    lab.replicas("replicasets", "web", 2).await;
    lab.budget("web", "web", json!({"minAvailable": 2})).await;
    assert_eq!(places(&lab).await, [a.as_str(), a.as_str()]);
    let mut draining = Draining::start(lab.client().await, &a).await;
    let waiting_for = draining.until_waits_for("PodDisruptionBudget budget/web needs 2 healthy pods and has 2").await;
    assert_eq!(waiting_for.len(), 1, "a budget is told of once: {waiting_for:?}");
    assert!(!lab.pods().await.iter().any(is_leaving));
    let due = draining.client.pods_on(&a).await.unwrap().due;
    let Evicted::Blocked(blocked) = draining.client.evict(&due[0].pod).await.unwrap() else { panic!() };
    assert_eq!((blocked.budget.as_deref(), blocked.needs, blocked.has), (Some("budget/web"), Some(2), Some(2)));

    lab.api
        .patch("/apis/policy/v1/namespaces/budget/poddisruptionbudgets/web", &json!({"spec": {"minAvailable": 1}}))
        .await;
    lab.api.until(&lab.list("poddisruptionbudgets"), "web", is_counted).await;
    let evidence = draining.until_empty().await;
    assert_eq!(evidence.iter().filter(|line| line.starts_with("evicted: pod budget/web-")).count(), 2, "{evidence:?}");
    assert_eq!(places(&lab).await, [b.as_str(), b.as_str()]);
    // One went after the other was ready again: the budget held throughout.
    lab.api.until(&lab.list("replicasets"), "web", |set| set["status"]["readyReplicas"] == 2).await;
}

#[tokio::test]
async fn a_pod_that_comes_again_under_its_name_is_another() {
    let Some(lab) = Lab::start("again").await else { return };
    let (a, b) = (lab.node("a").await, lab.node("b").await);
    lab.replicas("statefulsets", "db", 1).await;
    let client = lab.client().await;
    let old = client.pods_on(&a).await.unwrap().due.remove(0).pod;
    lab.api.delete("/api/v1/namespaces/again/pods/db-0", None).await;
    let is_new = |pod: &Value| pod["metadata"]["uid"] != old.uid && pod["status"]["phase"] == "Running";
    let new = lab.api.until(&lab.list("pods"), "db-0", is_new).await;
    assert_eq!(new["spec"]["nodeName"], a);
    assert_eq!(client.evict(&old).await.unwrap(), Evicted::Gone);
    let now = lab.api.get("/api/v1/namespaces/again/pods/db-0").await;
    assert!(now["metadata"]["uid"] == new["metadata"]["uid"] && !is_leaving(&now), "the new pod was evicted");

    // The drain takes the new one for what it is; once that is on another node, it is not touched there.
    let mut draining = Draining::start(client, &a).await;
    let second = draining.only_pod(&a).await;
    draining.until_empty().await;
    let third = lab.api.until(&lab.list("pods"), "db-0", |pod| pod["status"]["phase"] == "Running").await;
    assert_eq!(third["spec"]["nodeName"], b);
    assert_eq!(draining.client.evict(&second).await.unwrap(), Evicted::Gone);
    assert!(matches!(draining.round().await, Round::Empty { .. }));
    let now = lab.api.get("/api/v1/namespaces/again/pods/db-0").await;
    assert!(now["metadata"]["uid"] == third["metadata"]["uid"] && !is_leaving(&now));
}

#[tokio::test]
async fn several_budgets_of_one_pod_are_named_and_one_may_go() {
    let Some(lab) = Lab::start("several").await else { return };
    let a = lab.node("a").await;
    lab.node("b").await;
    lab.replicas("replicasets", "web", 1).await;
    for name in ["one", "two"] {
        lab.budget(name, "web", json!({"maxUnavailable": 1})).await;
    }
    lab.budget("other", "db", json!({"maxUnavailable": 1})).await;
    let mut draining = Draining::start(lab.client().await, &a).await;
    let pod = draining.only_pod(&a).await;
    let Evicted::Never { said } = draining.client.evict(&pod).await.unwrap() else { panic!() };
    assert!(said.contains("one and two") && !said.contains("other"), "{said}");
    let Round::Busy { waiting_for } = draining.round().await else { panic!() };
    assert!(waiting_for[0].contains("one and two"), "{waiting_for:?}");
    assert!(!lab.pods().await.iter().any(is_leaving));
    lab.api.delete("/apis/policy/v1/namespaces/several/poddisruptionbudgets/two", None).await;
    draining.until_empty().await;
}

#[tokio::test]
async fn a_finalizer_that_keeps_a_pod_is_told_of() {
    let Some(lab) = Lab::start("stuck").await else { return };
    let a = lab.node("a").await;
    lab.pod("kept", &a, json!({"metadata": {"finalizers": ["lab.example/backup"]}})).await;
    let mut draining = Draining::start(lab.client().await, &a).await;
    let waiting_for = draining.until_waits_for("is stuck").await;
    let line = &waiting_for[0];
    assert!(line.starts_with("pod stuck/kept") && line.contains("finalizers lab.example/backup"), "{line}");
    lab.api.patch("/api/v1/namespaces/stuck/pods/kept", &json!({"metadata": {"finalizers": null}})).await;
    let evidence = draining.until_empty().await;
    assert!(evidence.iter().any(|line| line.contains("stuck/kept (nothing starts it again)")), "{evidence:?}");
}

#[tokio::test]
async fn static_pods_daemon_sets_and_finished_pods_stay() {
    let Some(lab) = Lab::start("stay").await else { return };
    let a = lab.node("a").await;
    lab.pod("static", &a, json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "1"}}})).await;
    lab.pod("done", &a, json!({"metadata": {"annotations": {"lab/exit": "0"}}})).await;
    lab.pod("broken", &a, json!({"metadata": {"annotations": {"lab/exit": "1"}}})).await;
    let labels = json!({"app": "agent"});
    let template = json!({
        "metadata": {"labels": labels},
        "spec": {"nodeSelector": {"lab": "stay"}, "containers": [{"name": "main", "image": "lab"}]},
    });
    let set =
        json!({"metadata": {"name": "agent"}, "spec": {"selector": {"matchLabels": labels}, "template": template}});
    lab.api.create(&lab.list("daemonsets"), &set).await;
    lab.api.until(&lab.list("daemonsets"), "agent", |set| set["status"]["numberReady"] == 1).await;
    // It does not run, so that no budget keeps it.
    lab.pod("pull", &a, json!({"metadata": {"annotations": {"lab/waits": "ImagePullBackOff"}}})).await;
    lab.budget("pull", "pull", json!({"minAvailable": 1})).await;
    let mut draining = Draining::start(lab.client().await, &a).await;
    let evidence = draining.until_empty().await;
    let pods = &evidence[1];
    assert!(pods.contains("1 static one") && pods.contains("1 of DaemonSets") && pods.contains("2 finished"), "{pods}");
    let mut left = lab.pods().await;
    left.retain(|pod| pod["metadata"]["ownerReferences"].is_null());
    let names: Vec<&str> = left.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["broken", "done", "static"]);
}

#[tokio::test]
async fn pods_that_serve_the_cluster_go_last() {
    let Some(lab) = Lab::start("critical").await else { return };
    let a = lab.node("a").await;
    lab.pod("dns", &a, json!({"spec": {"priorityClassName": "system-cluster-critical"}})).await;
    lab.pod("work", &a, json!({"metadata": {"annotations": {"lab/lingers": "true"}}})).await;
    let mut draining = Draining::start(lab.client().await, &a).await;
    for _ in 0..3 {
        draining.until_waits_for("critical/dns (nothing starts it again): it serves the cluster").await;
    }
    assert!(!is_leaving(&lab.api.get("/api/v1/namespaces/critical/pods/dns").await));
    let end = json!({"metadata": {"annotations": {"lab/lingers": null}}});
    lab.api.patch("/api/v1/namespaces/critical/pods/work", &end).await;
    draining.until_empty().await;
}

#[tokio::test]
async fn volumes_are_waited_for() {
    let Some(lab) = Lab::start("volumes").await else { return };
    let a = lab.node("a").await;
    let list = "/apis/storage.k8s.io/v1/volumeattachments";
    for (name, node) in [("volumes-1", a.as_str()), ("volumes-2", "another")] {
        let source = json!({"persistentVolumeName": format!("pv-{name}")});
        let spec = json!({"attacher": "csi.lab", "nodeName": node, "source": source});
        lab.api.create(list, &json!({"metadata": {"name": name}, "spec": spec})).await;
        lab.api.patch(&format!("{list}/{name}/status"), &json!({"status": {"attached": true}})).await;
    }
    let status = format!("/api/v1/nodes/{a}/status");
    let attached = json!([{"name": "kubernetes.io/csi/csi.lab^1", "devicePath": ""}]);
    lab.api.patch(&status, &json!({"status": {"volumesAttached": attached}})).await;
    let mut draining = Draining::start(lab.client().await, &a).await;
    let waiting_for = draining.until_waits_for("volume pv-volumes-1 (attached)").await;
    assert!(!waiting_for.iter().any(|line| line.contains("pv-volumes-2")), "{waiting_for:?}");
    lab.api.delete(&format!("{list}/volumes-1"), None).await;
    let waiting_for = draining.until_waits_for("in status.volumesAttached").await;
    assert_eq!(waiting_for, ["volume kubernetes.io/csi/csi.lab^1 (in status.volumesAttached)"]);
    lab.api.patch(&status, &json!({"status": {"volumesAttached": null}})).await;
    draining.until_empty().await;
}

/// Whoever takes a node back wins: nothing is evicted any more.
#[tokio::test]
async fn a_node_that_was_taken_back_is_lost() {
    let Some(lab) = Lab::start("lost").await else { return };
    let another = NodeMark { run: "01KB3T7Z0N3K5V7X9B1C2D4F6X".into(), ..mark("x") };
    let another = serde_json::to_string(&another).unwrap();
    let marked = |mark: Value| json!({"metadata": {"annotations": {NodeMark::ANNOTATION: mark}}});
    for (name, change, words) in [
        ("uncordoned", json!({"spec": {"unschedulable": null}}), "the node was uncordoned"),
        ("bare", marked(Value::Null), "our mark was taken off the node"),
        ("another", marked(json!(another)), "the node carries the mark of run 01KB3T7Z0N3K5V7X9B1C2D4F6X"),
        ("garbage", marked(json!("garbage")), ""),
    ] {
        let node = lab.node(name).await;
        let pod = format!("on-{name}");
        lab.pod(&pod, &node, json!({})).await;
        let mut draining = Draining::start(lab.client().await, &node).await;
        lab.api.patch(&format!("/api/v1/nodes/{node}"), &change).await;
        let Round::Lost { found } = draining.round().await else { panic!("{name}") };
        assert!(found.contains(words), "{name}: {found}");
        assert!(!is_leaving(&lab.api.get(&format!("/api/v1/namespaces/lost/pods/{pod}")).await), "{name}");
    }
    let node = lab.node("deleted").await;
    let mut draining = Draining::start(lab.client().await, &node).await;
    lab.api.delete(&format!("/api/v1/nodes/{node}"), None).await;
    assert!(matches!(draining.round().await, Round::Lost { found } if found == "the node is gone"));
    lab.node("deleted").await;
    assert!(matches!(draining.round().await, Round::Lost { found } if found == "there is another node of this name"));
}

/// Its API server is killed while a drain waits at a budget, and is there again later.
#[tokio::test]
async fn a_drain_goes_on_when_its_api_server_was_restarted() {
    let Some(lab) = Lab::start("killed").await else { return };
    let a = lab.node("a").await;
    lab.node("b").await;
    lab.replicas("replicasets", "web", 2).await;
    lab.budget("web", "web", json!({"maxUnavailable": 0})).await;
    let mut server = ApiServer::start(lab.server.store(), "shared").await;
    let mut draining = Draining::start(connect(&server, POOLWRIGHT).await, &a).await;
    draining.until_waits_for("killed/web").await;
    let before = draining.client.pods_on(&a).await.unwrap().version;
    server.kill();
    lab.api.patch(&format!("/api/v1/nodes/{a}"), &json!({"metadata": {"labels": {"meanwhile": "changed"}}})).await;
    // Its watch cannot be opened, and its reads find nobody until the server is back.
    draining.drain.wait(WAIT).await;
    let (round, ()) = tokio::join!(draining.round(), server.restart());
    assert!(matches!(round, Round::Busy { .. }), "{round:?}");
    // What this server has seen begins with its start; a watch from before ends at once.
    let began = tokio::time::Instant::now();
    draining.client.changed(&a, &before, WAIT).await;
    assert!(began.elapsed() >= WAIT);
    lab.api
        .patch("/apis/policy/v1/namespaces/killed/poddisruptionbudgets/web", &json!({"spec": {"maxUnavailable": 1}}))
        .await;
    draining.until_empty().await;
    assert_eq!(lab.pods().await.len(), 2);
}

#[tokio::test]
async fn a_watch_wakes_at_an_event_and_a_dead_one_at_its_time() {
    let Some(lab) = Lab::start("watch").await else { return };
    let a = lab.node("a").await;
    let client = lab.client().await;
    let version = client.pods_on(&a).await.unwrap().version;
    let long = Duration::from_secs(600);
    let woken = async |since: &str| {
        tokio::time::timeout(Duration::from_secs(60), client.changed(&a, since, long)).await.expect("nobody wakes it");
    };
    tokio::join!(woken(&version), lab.pod("new", &a, json!({})));
    // What happened before it is looked at is not missed.
    woken(&version).await;
    let version = client.pods_on(&a).await.unwrap().version;
    tokio::join!(woken(&version), lab.budget("new", "new", json!({"minAvailable": 1})));

    let asleep = async |since: &str| {
        let began = tokio::time::Instant::now();
        client.changed(&a, since, WAIT).await;
        began.elapsed() >= WAIT
    };
    // A version that is none.
    assert!(asleep("none").await);
}
