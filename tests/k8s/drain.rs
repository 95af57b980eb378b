//! A drain, round by round, against a cluster that changes between the rounds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use poolwright::k8s::{Drain, Error, Round};
use poolwright::model::{NodeMark, RunId};
use serde_json::{Value, json};

use super::evict::budget;
use super::nodes::{mark, marked, node_ref};
use super::script::{Reply, Server, list, not_found, pod, status};

/// What the cluster has, and what it answers to evictions.
struct Cluster {
    node: Option<Value>,
    pods: Vec<Value>,
    attachments: Vec<Value>,
    /// How the evictions of a pod are answered; accepted, where nothing is given.
    answers: BTreeMap<String, fn() -> Reply>,
    /// `disruptionsAllowed` of ml/web-pdb; none: it cannot be read.
    allowed: Option<i32>,
    /// The pods for whose eviction was asked, in order.
    asked: Vec<String>,
}

struct Lab {
    cluster: Arc<Mutex<Cluster>>,
    server: Server,
    drain: Drain,
    now: Timestamp,
}

impl Lab {
    async fn new(pods: Vec<Value>) -> Self {
        let cluster = Arc::new(Mutex::new(Cluster {
            node: Some(marked()),
            pods,
            attachments: Vec::new(),
            answers: BTreeMap::new(),
            allowed: Some(0),
            asked: Vec::new(),
        }));
        let shared = Arc::clone(&cluster);
        let server = Server::new(move |seen| shared.lock().unwrap().answer(&seen.what, &seen.body));
        let drain = Drain::new(server.client().await, node_ref(), mark());
        Self { cluster, server, drain, now: "2026-11-30T20:00:00Z".parse().unwrap() }
    }

    fn change(&self, change: impl FnOnce(&mut Cluster)) {
        change(&mut self.cluster.lock().unwrap());
    }

    /// A round so many seconds after the last one.
    async fn round(&mut self, after: i64) -> Round {
        self.try_round(after).await.unwrap()
    }

    async fn try_round(&mut self, after: i64) -> Result<Round, Error> {
        self.now += SignedDuration::from_secs(after);
        self.drain.round(self.now).await
    }

    async fn waits(&mut self, after: i64) -> Vec<String> {
        match self.round(after).await {
            Round::Busy { waiting_for } => waiting_for,
            other => panic!("{other:?}"),
        }
    }

    /// For whose eviction was asked since the last look.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.cluster.lock().unwrap().asked)
    }
}

impl Cluster {
    fn answer(&mut self, what: &str, body: &Value) -> Reply {
        if let Some(path) = what.strip_prefix("POST /api/v1/namespaces/ml/pods/") {
            let name = path.strip_suffix("/eviction").unwrap();
            self.asked.push(name.to_owned());
            if let Some(answer) = self.answers.get(name) {
                return answer();
            }
            let Some(pod) = self.pods.iter_mut().find(|pod| pod["metadata"]["name"] == name) else {
                return not_found();
            };
            assert_eq!(body["deleteOptions"]["preconditions"]["uid"], pod["metadata"]["uid"]);
            pod["metadata"]["deletionTimestamp"] = json!("2026-11-30T20:00:30Z");
            return Reply::new(201, json!({ "kind": "Status", "status": "Success" }).to_string());
        }
        match what {
            "GET /api/v1/nodes/node-1" => self.node.clone().map_or_else(not_found, Reply::ok),
            "GET /api/v1/pods" => Reply::ok(list(self.pods.clone())),
            "GET /apis/storage.k8s.io/v1/volumeattachments" => Reply::ok(list(self.attachments.clone())),
            "GET /apis/policy/v1/namespaces/ml/poddisruptionbudgets/web-pdb" => match self.allowed {
                Some(allowed) => Reply::ok(json!({
                    "metadata": { "name": "web-pdb", "generation": 1 },
                    "status": { "disruptionsAllowed": allowed, "observedGeneration": 1, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 2 },
                })),
                None => status(403, "Forbidden", "no", json!({})),
            },
            other => panic!("{other}"),
        }
    }
}

fn priority(name: &str, priority: i64) -> Value {
    let mut pod = pod(name);
    pod["spec"]["priority"] = json!(priority);
    pod
}

fn refused() -> Reply {
    budget("The disruption budget web-pdb needs 2 healthy pods and has 2 currently", None)
}

fn attachment(volume: &str, node: &str, attached: bool) -> Value {
    json!({
        "metadata": { "name": format!("csi-{volume}") },
        "spec": { "attacher": "csi.vsphere.vmware.com", "nodeName": node, "source": { "persistentVolumeName": volume } },
        "status": { "attached": attached },
    })
}

/// Another pod of the owner of [`pod`], made after the last one was evicted.
fn next(name: &str, tolerations: Value) -> Value {
    let mut next = pod(name);
    next["spec"]["tolerations"] = tolerations;
    next
}

#[tokio::test]
async fn a_pod_that_comes_again_on_the_cordoned_node_is_told_once_and_by_its_owner() {
    for (tolerations, why) in [
        (json!([]), "it is pinned there by nodeName"),
        (json!([{ "key": "nvidia.com/gpu", "operator": "Exists" }]), "it is pinned there by nodeName"),
        (json!([{ "operator": "Exists", "effect": "NoExecute" }]), "it is pinned there by nodeName"),
        (json!([{ "operator": "Exists" }]), "it tolerates the cordon"),
        (
            json!([{ "key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule" }]),
            "it tolerates the cordon",
        ),
    ] {
        let mut lab = Lab::new(vec![next("web-1", tolerations.clone()), pod("web-2")]).await;
        // Two of one owner are no return.
        assert_eq!(
            lab.waits(0).await,
            ["pod ml/web-1: its eviction is accepted", "pod ml/web-2: its eviction is accepted"]
        );
        let said = format!(
            "a pod of ReplicaSet ml/web comes again on the cordoned node as often as it is evicted ({why}); whoever \
             looks after ReplicaSet ml/web has to end that"
        );
        // Whether it was just evicted or is ending, the words are the same: they are written down where they change.
        lab.change(|cluster| cluster.pods = vec![next("web-3", tolerations.clone())]);
        assert_eq!(lab.waits(5).await, ["pod ml/web-3: its eviction is accepted"], "it may have been late");
        for name in ["web-4", "web-5", "web-6"] {
            lab.change(|cluster| cluster.pods = vec![next(name, tolerations.clone())]);
            assert_eq!(lab.waits(5).await, [said.as_str()]);
            assert_eq!(lab.waits(5).await, [said.as_str()]);
        }
        // One that does not end in time is another matter.
        assert_eq!(lab.waits(120).await, ["pod ml/web-6 is stuck: it should have ended by 2026-11-30T20:00:30Z"]);
        lab.change(|cluster| cluster.pods.clear());
        let Round::Empty { evidence } = lab.round(5).await else { panic!("it is empty") };
        let evicted: Vec<_> = evidence.iter().filter(|line| line.starts_with("evicted: ")).collect();
        assert_eq!(evicted.len(), 4, "the first three, and all that came again in one: {evidence:?}");
        assert!(evidence.contains(&format!("evicted: {said}")), "{evidence:?}");
    }
}

#[tokio::test]
async fn a_pod_that_was_bound_just_before_the_cordon_comes_for_the_first_time() {
    let mut late = pod("late");
    late["metadata"]["ownerReferences"][0]["name"] = json!("other");
    let mut lab = Lab::new(vec![pod("web")]).await;
    lab.waits(0).await;
    lab.change(|cluster| cluster.pods = vec![late]);
    assert_eq!(lab.waits(5).await, ["pod ml/late: its eviction is accepted"]);
}

#[tokio::test]
async fn pods_are_evicted_end_and_leave_an_empty_node() {
    let mut bare = pod("bare");
    bare["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    let mut daemon = pod("daemon");
    daemon["metadata"]["ownerReferences"][0]["kind"] = json!("DaemonSet");
    let mut lab = Lab::new(vec![pod("web"), bare, daemon.clone()]).await;
    assert_eq!(
        lab.waits(0).await,
        ["pod ml/bare (nothing starts it again): its eviction is accepted", "pod ml/web: its eviction is accepted"]
    );
    let ends = "ends by 2026-11-30T20:00:30Z";
    let expected = [format!("pod ml/bare (nothing starts it again) {ends}"), format!("pod ml/web {ends}")];
    assert_eq!(lab.waits(10).await, expected);
    // Nothing new: nothing is asked, and the same is said.
    assert_eq!(lab.waits(10).await, expected);
    assert_eq!(lab.asked(), ["bare", "web"]);
    lab.change(|cluster| cluster.pods = vec![daemon]);
    let Round::Empty { evidence } = lab.round(10).await else { panic!() };
    assert_eq!(
        evidence,
        [
            "cordoned, with our mark",
            "no pods but 0 static ones, 1 of DaemonSets and 0 finished",
            "no volume is attached",
            "evicted: pod ml/bare (nothing starts it again)",
            "evicted: pod ml/web"
        ]
    );
}

#[tokio::test]
async fn a_pod_that_comes_after_the_first_list_is_seen() {
    let mut lab = Lab::new(vec![]).await;
    assert!(matches!(lab.round(0).await, Round::Empty { .. }));
    // Bound by name, or by a scheduler that had not yet heard of the cordon.
    lab.change(|cluster| cluster.pods.push(pod("late")));
    assert_eq!(lab.waits(10).await, ["pod ml/late: its eviction is accepted"]);
}

#[tokio::test]
async fn a_pod_of_the_same_name_is_another_pod() {
    let mut lab = Lab::new(vec![pod("db-0")]).await;
    lab.change(|cluster| {
        cluster.answers.insert("db-0".into(), || status(422, "Invalid", "no", json!({})));
    });
    assert_eq!(lab.waits(0).await, ["pod ml/db-0 cannot be evicted: no (HTTP 422)"]);
    lab.waits(59).await;
    assert_eq!(lab.asked(), ["db-0"], "asking again soon does not help");
    lab.waits(1).await;
    assert_eq!(lab.asked(), ["db-0"], "a person may have changed that meanwhile");
    lab.change(|cluster| {
        cluster.answers.clear();
        cluster.pods[0]["metadata"]["uid"] = json!("uid-new");
    });
    assert_eq!(lab.waits(1).await, ["pod ml/db-0: its eviction is accepted"]);
}

#[tokio::test]
async fn a_budget_is_asked_once_a_round_and_ever_more_seldom() {
    let mut lab = Lab::new(vec![pod("web-1"), pod("web-2"), pod("web-3"), pod("other")]).await;
    lab.change(|cluster| {
        for name in ["web-1", "web-2", "web-3"] {
            cluster.answers.insert(name.to_owned(), refused);
        }
    });
    let words = "PodDisruptionBudget ml/web-pdb needs 2 healthy pods and has 2, so it lets none go (one more that is healthy \
         elsewhere unblocks it, or whoever looks after ml/web-pdb): pod ml/web-1, pod ml/web-2, pod ml/web-3";
    assert_eq!(lab.waits(0).await, [words, "pod ml/other: its eviction is accepted"]);
    // What a budget says to one pod it says to all that have its labels.
    assert_eq!(lab.asked(), ["other", "web-1"]);
    let mut times = Vec::new();
    for second in 1..=200 {
        lab.waits(1).await;
        let asked = lab.asked();
        assert!(asked.len() <= 1, "one try for all pods of a budget: {asked:?}");
        if !asked.is_empty() {
            times.push(second);
        }
    }
    assert_eq!(times, [5, 15, 35, 75, 135, 195]);
}

#[tokio::test]
async fn pods_that_are_not_alike_find_their_budget_each_for_itself() {
    let labelled = |name: &str| {
        let mut pod = pod(name);
        pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = json!(name);
        pod
    };
    let mut lab = Lab::new(vec![labelled("db-0"), labelled("db-1")]).await;
    lab.change(|cluster| {
        cluster.answers.insert("db-0".into(), refused);
        cluster.answers.insert("db-1".into(), refused);
    });
    lab.waits(0).await;
    assert_eq!(lab.asked(), ["db-0", "db-1"]);
    lab.waits(5).await;
    assert_eq!(lab.asked(), ["db-0"], "from then on one asks for both, after the first wait");
}

#[tokio::test]
async fn a_budget_that_lets_go_is_asked_at_once() {
    let mut lab = Lab::new(vec![pod("web-1"), pod("web-2")]).await;
    lab.change(|cluster| {
        cluster.answers.insert("web-1".into(), refused);
        cluster.answers.insert("web-2".into(), refused);
    });
    for _ in 0..4 {
        lab.waits(60).await;
    }
    lab.asked();
    lab.change(|cluster| {
        cluster.allowed = Some(1);
        cluster.answers.remove("web-1");
    });
    let waits = lab.waits(1).await;
    assert_eq!(lab.asked(), ["web-1", "web-2"], "{waits:?}");
    // Without the right to read budgets, its turn comes with time.
    lab.change(|cluster| cluster.allowed = None);
    lab.waits(1).await;
    assert_eq!(lab.asked(), Vec::<String>::new());
    lab.waits(60).await;
    assert_eq!(lab.asked(), ["web-2"]);
}

#[tokio::test]
async fn one_bad_pod_keeps_no_other() {
    let several = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    assert!(several.contains("more than one"));
    let mut lab = Lab::new(vec![pod("a-hook"), pod("b-busy"), pod("c-web")]).await;
    lab.change(|cluster| {
        cluster.answers.insert("a-hook".into(), || status(403, "Forbidden", "webhook guard denied it", json!({})));
        cluster.answers.insert("b-busy".into(), || status(500, "InternalError", "etcdserver: timeout", json!({})));
    });
    assert_eq!(
        lab.waits(0).await,
        [
            "pod ml/a-hook cannot be evicted: webhook guard denied it (HTTP 403)",
            "pod ml/b-busy: etcdserver: timeout (HTTP 500)",
            "pod ml/c-web: its eviction is accepted"
        ]
    );
    lab.asked();
    lab.waits(1).await;
    assert_eq!(lab.asked(), ["b-busy"], "what may pass is tried again");
    lab.waits(1).await;
    assert_eq!(lab.asked(), Vec::<String>::new(), "and ever more seldom");
}

#[tokio::test]
async fn what_serves_the_cluster_goes_last() {
    let mut lab = Lab::new(vec![priority("dns", 2_000_000_000), priority("batch", -5), pod("web")]).await;
    assert_eq!(lab.waits(0).await.last().unwrap(), "pod ml/dns: it serves the cluster, so it goes last");
    assert_eq!(lab.asked(), ["batch", "web"]);
    lab.waits(10).await;
    assert_eq!(lab.asked(), Vec::<String>::new(), "not while others are ending");
    lab.change(|cluster| cluster.pods.retain(|pod| pod["metadata"]["name"] == "dns"));
    assert_eq!(lab.waits(10).await, ["pod ml/dns: its eviction is accepted"]);
}

#[tokio::test]
async fn a_pod_that_does_not_end_is_told_with_what_holds_it() {
    let mut stuck = pod("web");
    stuck["metadata"]["deletionTimestamp"] = json!("2026-11-30T20:00:00Z");
    stuck["metadata"]["finalizers"] = json!(["example.net/backup"]);
    let mut lab = Lab::new(vec![stuck]).await;
    assert_eq!(lab.waits(20).await, ["pod ml/web ends by 2026-11-30T20:00:00Z, finalizers example.net/backup"]);
    let late = "pod ml/web is stuck: it should have ended by 2026-11-30T20:00:00Z, finalizers example.net/backup";
    assert_eq!(lab.waits(20).await, [late]);
    assert_eq!(lab.waits(3600).await, [late]);
    assert_eq!(lab.asked(), Vec::<String>::new(), "its deletion is under way");
}

#[tokio::test]
async fn a_pod_that_has_ended_and_does_not_go_is_told_and_keeps_nobody() {
    let left = |name: &str, deleted: bool, finalizers: Value| {
        let mut ended = pod(name);
        ended["status"]["phase"] = json!("Succeeded");
        ended["metadata"]["finalizers"] = finalizers;
        if deleted {
            ended["metadata"]["deletionTimestamp"] = json!("2026-11-30T20:00:00Z");
        }
        ended
    };
    let holds = json!(["example.net/backup", "example.net/audit"]);
    let pods = vec![left("held", true, holds.clone()), left("gone-soon", true, json!([])), left("done", false, holds)];
    let mut lab = Lab::new(pods).await;
    let Round::Empty { evidence } = lab.round(20).await else { panic!("nothing runs") };
    let told: Vec<&String> = evidence.iter().filter(|line| line.starts_with("left: ")).collect();
    assert_eq!(
        told,
        ["left: pod ml/held, which has ended, kept by its finalizers example.net/backup, example.net/audit"]
    );
}

#[tokio::test]
async fn a_volume_that_is_attached_keeps_the_node() {
    let mut lab = Lab::new(vec![]).await;
    lab.change(|cluster| {
        cluster.attachments = vec![
            attachment("pvc-1", "node-1", true),
            attachment("pvc-2", "node-1", false),
            attachment("pvc-3", "node-2", true),
        ];
        cluster.attachments[1]["metadata"]["deletionTimestamp"] = json!("2026-11-30T20:00:00Z");
    });
    assert_eq!(lab.waits(0).await, ["volume pvc-1 (attached)", "volume pvc-2 (detaching)"]);
    lab.change(|cluster| {
        cluster.attachments.clear();
        cluster.node.as_mut().unwrap()["status"]["volumesAttached"] =
            json!([{ "name": "csi^pvc-1", "devicePath": "" }]);
    });
    assert_eq!(lab.waits(10).await, ["volume csi^pvc-1 (in status.volumesAttached)"]);
    lab.change(|cluster| cluster.node = Some(marked()));
    assert!(matches!(lab.round(10).await, Round::Empty { .. }));
    // One that does not say whose it is may be ours.
    lab.change(|cluster| cluster.attachments = vec![attachment("pvc-9", "", true)]);
    assert!(matches!(lab.try_round(10).await, Err(Error::Decode { .. })));
}

#[tokio::test]
async fn who_takes_the_node_back_wins() {
    type Change = fn(&mut Cluster);
    fn node(cluster: &mut Cluster) -> &mut Value {
        cluster.node.as_mut().unwrap()
    }
    fn mark_of(change: fn(&mut NodeMark)) -> Value {
        let mut mark = mark();
        change(&mut mark);
        json!(serde_json::to_string(&mark).unwrap())
    }
    let cases: [(&str, Change); 7] = [
        ("the node is gone", |cluster| cluster.node = None),
        ("another node of this name", |cluster| node(cluster)["metadata"]["uid"] = json!("uid-2")),
        ("is being deleted", |cluster| node(cluster)["metadata"]["deletionTimestamp"] = json!("2026-11-30T20:00:00Z")),
        ("the node was uncordoned", |cluster| node(cluster)["spec"] = json!({})),
        ("our mark was taken off", |cluster| node(cluster)["metadata"]["annotations"] = json!({})),
        ("the mark of run 01OTHER", |cluster| {
            node(cluster)["metadata"]["annotations"][NodeMark::ANNOTATION] =
                mark_of(|mark| mark.run = RunId::from("01OTHER"));
        }),
        ("cannot be read", |cluster| node(cluster)["metadata"]["annotations"][NodeMark::ANNOTATION] = json!("mine")),
    ];
    for (expected, change) in cases {
        let mut lab = Lab::new(vec![pod("web")]).await;
        lab.change(change);
        let Round::Lost { found } = lab.round(0).await else { panic!("{expected}") };
        assert!(found.contains(expected), "{found}");
        assert_eq!(lab.asked(), Vec::<String>::new(), "{expected}: nothing is evicted from a node that is not ours");
    }
    // Our own mark, further on.
    let mut lab = Lab::new(vec![]).await;
    lab.change(|cluster| {
        node(cluster)["metadata"]["annotations"][NodeMark::ANNOTATION] =
            mark_of(|mark| mark.phase = poolwright::model::NodePhase::Drained);
    });
    assert!(matches!(lab.round(0).await, Round::Empty { .. }));
}

#[tokio::test]
async fn who_takes_it_back_while_we_look_wins_too() {
    // Uncordoned after the pods were listed.
    let server = Server::new(|seen| match seen.what.as_str() {
        "GET /api/v1/nodes/node-1" if seen.nth == 0 => Reply::ok(marked()),
        "GET /api/v1/nodes/node-1" => Reply::ok(super::script::node("node-1")),
        _ => Reply::ok(list(vec![])),
    });
    let mut drain = Drain::new(server.client().await, node_ref(), mark());
    let round = drain.round("2026-11-30T20:00:00Z".parse().unwrap()).await.unwrap();
    assert!(matches!(round, Round::Lost { .. }), "{round:?}");
}

#[tokio::test]
async fn what_could_not_be_read_is_no_empty_node() {
    for what in ["/api/v1/nodes/node-1", "/api/v1/pods", "/apis/storage.k8s.io/v1/volumeattachments"] {
        for reply in [
            (|| status(403, "Forbidden", "no", json!({}))) as fn() -> Reply,
            || Reply::new(200, "{}"),
            || Reply::new(200, "<html>"),
            || status(401, "Unauthorized", "", json!({})),
        ] {
            let broken = format!("GET {what}");
            let server = Server::new(move |seen| match seen.what.as_str() {
                found if found == broken => reply(),
                "GET /api/v1/nodes/node-1" => Reply::ok(marked()),
                _ => Reply::ok(list(vec![])),
            });
            let mut drain = Drain::new(server.client().await, node_ref(), mark());
            let round = drain.round("2026-11-30T20:00:00Z".parse().unwrap()).await;
            assert!(round.is_err(), "{what}: {round:?}");
        }
    }
}

#[tokio::test]
async fn a_new_drain_of_the_same_node_comes_to_the_same_end() {
    let mut lab = Lab::new(vec![pod("web-1"), pod("web-2")]).await;
    lab.waits(0).await;
    lab.drain = Drain::new(lab.server.client().await, node_ref(), mark());
    assert_eq!(lab.waits(1).await.len(), 2);
    assert_eq!(lab.asked(), ["web-1", "web-2"], "what is ending is not asked again");
    lab.change(|cluster| cluster.pods.clear());
    assert!(matches!(lab.round(1).await, Round::Empty { .. }));
}

#[tokio::test(start_paused = true)]
async fn it_waits_for_what_happens_after_its_last_list() {
    let start = tokio::time::Instant::now();
    let mut lab = Lab::new(vec![pod("web")]).await;
    lab.drain.wait(Duration::from_secs(4)).await;
    assert_eq!(start.elapsed(), Duration::from_secs(4), "nothing was read yet");
    lab.waits(0).await;
    let server = Server::new(|seen| match seen.what.as_str() {
        "GET /api/v1/nodes/node-1" => Reply::ok(marked()),
        "GET /api/v1/pods" if !seen.query.contains("watch") => Reply::ok(list(vec![pod("web")])),
        "GET /api/v1/pods" => {
            assert!(seen.query.contains("resourceVersion=900"), "{}", seen.query);
            let event = json!({ "type": "DELETED", "object": pod("web") });
            Reply::stream(&[(5, event)], super::script::End::Stays)
        }
        "POST /api/v1/namespaces/ml/pods/web/eviction" => Reply::ok(json!({})),
        _ => not_found(),
    });
    let mut drain = Drain::new(server.client().await, node_ref(), mark());
    drain.round(lab.now).await.unwrap();
    let start = tokio::time::Instant::now();
    drain.wait(Duration::from_secs(60)).await;
    assert_eq!(start.elapsed(), Duration::from_secs(5));
}
