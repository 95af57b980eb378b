//! Nodes: what is read of them, and the one write that cordons, marks or releases.

use poolwright::k8s::{Client, Error, Patched, Release};
use poolwright::model::{Fact, NodeMark, NodePhase, NodeRef, RunId};
use serde_json::{Value, json};

use super::script::{End, Reply, Server, list, node, not_found, status};

const NODE: &str = "/api/v1/nodes/node-1";

pub fn node_ref() -> NodeRef {
    NodeRef { cluster: "serve".into(), name: "node-1".into(), uid: "uid-node-1".into() }
}

pub fn mark() -> NodeMark {
    NodeMark {
        v: NodeMark::VERSION,
        run: RunId::from("01JDZ0000000000000ABCDEFGH"),
        plan: "0123456789abcdef".into(),
        host: "4c4c4544-0000-1000-8000-000000000001".into(),
        vm: "vm-77".into(),
        phase: NodePhase::Draining,
        was_unschedulable: false,
        since: "2026-11-30T20:00:00Z".parse().unwrap(),
        deadline: "2026-11-30T21:00:00Z".parse().unwrap(),
        boot: "boot-1".into(),
        gpus: 8,
    }
}

/// A node with our mark, cordoned.
pub fn marked() -> Value {
    let mut node = node("node-1");
    node["metadata"]["annotations"][NodeMark::ANNOTATION] = json!(serde_json::to_string(&mark()).unwrap());
    node["spec"]["unschedulable"] = json!(true);
    node
}

/// A server with this one node, which applies the patches that it is sent as a real one does.
fn patching(start: Value) -> Server {
    let mut node = start;
    Server::new(move |seen| match seen.what.as_str() {
        "GET /api/v1/nodes/node-1" => Reply::ok(node.clone()),
        "PATCH /api/v1/nodes/node-1" => {
            assert_eq!(seen.headers["content-type"], "application/json-patch+json");
            let patch: json_patch::Patch = serde_json::from_value(seen.body.clone()).unwrap();
            match json_patch::patch(&mut node, &patch) {
                Ok(()) => {
                    node["metadata"]["resourceVersion"] = json!("42");
                    Reply::ok(node.clone())
                }
                Err(_) => invalid(),
            }
        }
        other => panic!("{other}"),
    })
}

/// How an API server answers a patch whose test fails, and one that makes an invalid object.
fn invalid() -> Reply {
    status(422, "Invalid", "the server rejected our request due to an error in our request", json!({}))
}

#[tokio::test]
async fn a_node_is_read() {
    let server = Server::new(|_| {
        let mut node = node("node-1");
        node["metadata"]["annotations"]["cluster.x-k8s.io/machine"] = json!("md-0-abc");
        node["status"]["volumesAttached"] = json!([{ "name": "kubernetes.io/csi/x^pvc-1", "devicePath": "" }]);
        Reply::ok(node)
    });
    let view = server.client().await.node("node-1").await.unwrap().unwrap();
    assert_eq!((view.node.clone(), view.version.as_str()), (node_ref(), "41"));
    assert_eq!(view.provider_id, Fact::Known("vsphere://42389ab1-2c3d-4e5f-8192-a3b4c5d6e7f8".into()));
    assert_eq!(view.machine_ids().len(), 2);
    assert_eq!(view.boot_id, Fact::Known("boot-1".into()));
    assert_eq!((view.ready.clone(), view.unschedulable, view.deleting), (Fact::Known(true), false, false));
    // Extended resources alone, as they are written.
    let Fact::Known(allocatable) = &view.allocatable else { panic!("{view:?}") };
    assert_eq!(allocatable.iter().collect::<Vec<_>>(), [(&"nvidia.com/gpu".to_owned(), &"8".to_owned())]);
    assert_eq!(view.count("nvidia.com/gpu"), Fact::Known(8));
    assert_eq!((view.mark.clone(), view.left_off), (Fact::Absent, false));
    assert_eq!(view.machine, Fact::Known("md-0-abc".into()));
    assert_eq!(view.attached, ["kubernetes.io/csi/x^pvc-1"]);
}

#[tokio::test]
async fn what_a_node_does_not_say_is_absent_or_unknown_and_never_a_success() {
    let read = |change: fn(&mut Value)| async move {
        let mut node = node("node-1");
        change(&mut node);
        let server = Server::new(move |_| Reply::ok(node.clone()));
        server.client().await.node("node-1").await
    };
    let view = read(|node| node["status"] = json!({})).await.unwrap().unwrap();
    assert_eq!((view.ready, view.allocatable, view.boot_id), (Fact::Absent, Fact::Absent, Fact::Absent));
    assert_eq!(view.system_uuid, Fact::Absent);
    let view = read(|node| node["status"]["allocatable"] = json!({})).await.unwrap().unwrap();
    assert_eq!(view.allocatable, Fact::Absent, "the kubelet has not reported yet");
    for conditions in [
        json!([{ "type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status." }]),
        json!([{ "type": "Ready" }]),
        json!([{ "type": "Ready", "status": "True" }, { "type": "Ready", "status": "False" }]),
    ] {
        let node = json!(conditions);
        let server = Server::new(move |_| {
            let mut whole = super::script::node("node-1");
            whole["status"]["conditions"] = node.clone();
            Reply::ok(whole)
        });
        let view = server.client().await.node("node-1").await.unwrap().unwrap();
        assert!(view.ready.is_unknown(), "{:?}", view.ready);
    }
    let breaks: [fn(&mut Value); 5] = [
        |node| drop(node["metadata"].as_object_mut().unwrap().remove("uid")),
        |node| drop(node["metadata"].as_object_mut().unwrap().remove("resourceVersion")),
        |node| node["metadata"]["name"] = json!(""),
        |node| drop(node.as_object_mut().unwrap().remove("spec")),
        |node| node["spec"]["unschedulable"] = json!("true"),
    ];
    for change in breaks {
        let error = read(change).await.unwrap_err();
        assert!(matches!(error, Error::Decode { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_long_list_is_read_page_by_page_and_begun_anew_if_the_server_forgot_its_moment() {
    let server = Server::new(|seen| {
        assert!(seen.query.contains("limit=500") && !seen.query.contains("resourceVersion"), "{}", seen.query);
        match (seen.nth, seen.query.contains("continue=next%2Fpage")) {
            (0 | 2, false) => {
                let mut page = list(vec![node("node-1")]);
                page["metadata"]["continue"] = json!("next/page");
                Reply::ok(page)
            }
            (1, true) => status(410, "Expired", "The provided continue parameter is too old", json!({})),
            (3, true) => Reply::ok(list(vec![node("node-2")])),
            other => panic!("{other:?}"),
        }
    });
    let nodes = server.client().await.nodes().await.unwrap();
    assert_eq!(nodes.iter().map(|node| node.node.name.as_str()).collect::<Vec<_>>(), ["node-1", "node-2"]);
}

#[tokio::test]
async fn a_list_that_is_none_is_no_empty_list() {
    for body in [json!({}), json!({ "metadata": { "resourceVersion": "1" } }), json!({ "items": [] }), json!(null)] {
        let reply = body.clone();
        let error = Server::new(move |_| Reply::ok(reply.clone())).client().await.nodes().await.unwrap_err();
        assert!(matches!(error, Error::Decode { .. }), "{body}: {error:?}");
    }
    let no_version = json!({ "metadata": {}, "items": [] });
    assert!(Server::new(move |_| Reply::ok(no_version.clone())).client().await.nodes().await.is_err());
    // Go writes a list of nothing as null.
    let null = json!({ "metadata": { "resourceVersion": "1" }, "items": null });
    assert_eq!(Server::new(move |_| Reply::ok(null.clone())).client().await.nodes().await.unwrap(), []);
    // One that never ends is no list either.
    let circle = Server::new(|_| {
        let mut page = list(vec![]);
        page["metadata"]["continue"] = json!("again");
        Reply::ok(page)
    });
    let error = circle.client().await.nodes().await.unwrap_err().to_string();
    assert!(error.contains("more than 1000 pages"), "{error}");
}

#[tokio::test]
async fn a_cordon_is_one_patch_that_rests_on_uid_and_version() {
    let server = patching(node("node-1"));
    let client = server.client().await;
    let patched = client.cordon(&node_ref(), "41", &mark()).await.unwrap();
    let Patched::Done(view) = patched else { panic!("{patched:?}") };
    assert!(view.unschedulable);
    assert_eq!((view.marked(), view.version.as_str()), (Fact::Known(mark()), "42"));
    let sent = server.only(&format!("PATCH {NODE}"));
    assert_eq!(sent.query, "fieldManager=poolwright");
    assert_eq!(
        sent.body,
        json!([
            { "op": "test", "path": "/metadata/uid", "value": "uid-node-1" },
            { "op": "test", "path": "/metadata/resourceVersion", "value": "41" },
            {
                "op": "add", "path": "/metadata/annotations/poolwright.io~1maintenance",
                "value": serde_json::to_string(&mark()).unwrap()
            },
            { "op": "add", "path": "/spec/unschedulable", "value": true },
        ])
    );
}

#[tokio::test]
async fn a_node_without_annotations_is_cordoned_too() {
    for annotations in [None, Some(json!({})), Some(json!(null))] {
        let mut bare = node("node-1");
        match annotations {
            Some(annotations) => bare["metadata"]["annotations"] = annotations,
            None => drop(bare["metadata"].as_object_mut().unwrap().remove("annotations")),
        }
        let client = patching(bare).client().await;
        let patched = client.cordon(&node_ref(), "41", &mark()).await.unwrap();
        assert!(matches!(patched, Patched::Done(view) if view.marked() == Fact::Known(mark())));
    }
}

#[tokio::test]
async fn who_was_faster_is_not_overwritten() {
    // Seen before the write is sent.
    let server = patching(node("node-1"));
    let client = server.client().await;
    assert_eq!(client.cordon(&node_ref(), "40", &mark()).await.unwrap(), Patched::Conflict);
    let other = NodeRef { uid: "uid-of-the-one-before".into(), ..node_ref() };
    assert_eq!(client.cordon(&other, "41", &mark()).await.unwrap(), Patched::Conflict);
    assert_eq!(server.count(&format!("PATCH {NODE}")), 0);
    // Seen by the server: the test in the patch fails.
    for answer in [invalid as fn() -> Reply, || status(409, "Conflict", "the object has been modified", json!({}))] {
        let server = Server::new(move |seen| match seen.what.as_str() {
            "PATCH /api/v1/nodes/node-1" => answer(),
            _ => {
                let mut node = marked();
                node["metadata"]["resourceVersion"] = json!(if seen.nth == 0 { "41" } else { "42" });
                Reply::ok(node)
            }
        });
        assert_eq!(server.client().await.remark(&node_ref(), "41", &mark()).await.unwrap(), Patched::Conflict);
        assert_eq!(server.count(&format!("PATCH {NODE}")), 1);
    }
    // A patch that the server does not take, of a node that nobody has changed, is no conflict.
    let server = Server::new(|seen| if seen.what.starts_with("PATCH") { invalid() } else { Reply::ok(node("node-1")) });
    let error = server.client().await.cordon(&node_ref(), "41", &mark()).await.unwrap_err();
    assert!(matches!(&error, Error::Refused { refusal, .. } if refusal.code == 422), "{error:?}");
    assert!(!error.may_have_acted());
}

#[tokio::test]
async fn a_node_that_is_gone_is_gone() {
    let server = Server::new(|_| not_found());
    let client = server.client().await;
    assert_eq!(client.node("node-1").await.unwrap(), None);
    assert_eq!(client.cordon(&node_ref(), "41", &mark()).await.unwrap(), Patched::Gone);
    assert_eq!(client.release(&node_ref(), "41", &mark().run, Release::Uncordon).await.unwrap(), Patched::Gone);
    let server =
        Server::new(|seen| if seen.what.starts_with("PATCH") { not_found() } else { Reply::ok(node("node-1")) });
    assert_eq!(server.client().await.cordon(&node_ref(), "41", &mark()).await.unwrap(), Patched::Gone);
}

#[tokio::test]
async fn a_write_that_the_server_did_not_take_is_told() {
    // A webhook, or a lie: it says 200 and shows the node as it was.
    let server = Server::new(|_| Reply::ok(node("node-1")));
    let error = server.client().await.cordon(&node_ref(), "41", &mark()).await.unwrap_err();
    assert!(matches!(error, Error::NotTaken { .. }) && error.may_have_acted(), "{error:?}");
    let server = Server::new(|_| Reply::ok(marked()));
    let error = server.client().await.release(&node_ref(), "41", &mark().run, Release::Uncordon).await.unwrap_err();
    assert!(matches!(error, Error::NotTaken { .. }), "{error:?}");
}

#[tokio::test]
async fn a_patch_is_never_sent_twice() {
    for reply in [Reply::broken as fn() -> Reply, || Reply::new(200, "{"), || status(503, "", "starting", json!({}))] {
        let server =
            Server::new(move |seen| if seen.what.starts_with("PATCH") { reply() } else { Reply::ok(node("node-1")) });
        let error = server.client().await.cordon(&node_ref(), "41", &mark()).await.unwrap_err();
        assert!(error.may_have_acted(), "{error:?}");
        assert_eq!(server.count(&format!("PATCH {NODE}")), 1);
    }
    let torn = Server::new(move |seen| match seen.what.starts_with("PATCH") {
        true => Reply::stream(&[(0, json!({ "half": 1 }))], End::Breaks),
        false => Reply::ok(node("node-1")),
    });
    let error = torn.client().await.cordon(&node_ref(), "41", &mark()).await.unwrap_err();
    assert!(matches!(error, Error::Net { .. }) && error.may_have_acted(), "{error:?}");
}

async fn released(start: Value, end: Release) -> Value {
    let server = patching(start);
    let client: Client = server.client().await;
    let patched = client.release(&node_ref(), "41", &mark().run, end).await.unwrap();
    assert!(matches!(patched, Patched::Done(_)), "{patched:?}");
    server.only(&format!("PATCH {NODE}")).body.as_array().unwrap()[2..].iter().cloned().collect()
}

#[tokio::test]
async fn a_release_takes_the_mark_off_and_leaves_the_node_as_it_is_told_to() {
    let off = json!({ "op": "remove", "path": "/metadata/annotations/poolwright.io~1maintenance" });
    let open = json!({ "op": "add", "path": "/spec/unschedulable", "value": false });
    assert_eq!(released(marked(), Release::Uncordon).await, json!([off, open]));
    assert_eq!(released(marked(), Release::KeepCordoned).await, json!([off]));
    let plan = Release::LeftOff { plan: "0123456789abcdef".into() };
    let left =
        json!({ "op": "add", "path": "/metadata/annotations/poolwright.io~1left-off", "value": "0123456789abcdef" });
    let closed = json!({ "op": "add", "path": "/spec/unschedulable", "value": true });
    assert_eq!(released(marked(), plan.clone()).await, json!([off, left, closed]));
    // A node that was left off, and is opened again.
    let mut again = marked();
    again["metadata"]["annotations"][NodeMark::LEFT_OFF] = json!("fedcba9876543210");
    let forget = json!({ "op": "remove", "path": "/metadata/annotations/poolwright.io~1left-off" });
    assert_eq!(released(again, Release::Uncordon).await, json!([off, forget, open]));
}

/// Of another run, of nobody, of a version that nobody here knows: at the very version that was read.
#[tokio::test]
async fn what_is_not_this_runs_mark_is_neither_taken_off_nor_written_over() {
    let theirs = NodeMark { run: RunId::from("01KB3T7Z0N3K5V7X9B1C2D4F6H"), ..mark() };
    let newer = NodeMark { v: 2, ..mark() };
    let with = |mark: &NodeMark| {
        let mut node = marked();
        node["metadata"]["annotations"][NodeMark::ANNOTATION] = json!(serde_json::to_string(mark).unwrap());
        node
    };
    let mut garbled = marked();
    garbled["metadata"]["annotations"][NodeMark::ANNOTATION] = json!("another's");
    for (start, word) in [
        (with(&theirs), "01KB3T7Z0N3K5V7X9B1C2D4F6H"),
        (with(&newer), "version 2"),
        (garbled, "cannot be read"),
        (node("node-1"), "none"),
    ] {
        let bare = word == "none";
        let server = patching(start);
        let client = server.client().await;
        let plan = Release::LeftOff { plan: "0123456789abcdef".into() };
        let mut all = Vec::new();
        for end in [Release::Uncordon, Release::KeepCordoned, plan] {
            all.push(client.release(&node_ref(), "41", &mark().run, end).await.unwrap());
        }
        all.push(client.remark(&node_ref(), "41", &mark()).await.unwrap());
        if !bare {
            all.push(client.cordon(&node_ref(), "41", &mark()).await.unwrap());
        }
        for patched in all {
            let Patched::NotOurs { found } = patched else { panic!("{word}: {patched:?}") };
            assert!(found.contains(word), "{found}");
        }
        assert_eq!(server.count(&format!("PATCH {NODE}")), 0, "{word}");
    }
}
