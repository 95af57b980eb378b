//! The cordon and its mark are one write, which fails if anybody wrote in between; so is their end.

use poolwright::k8s::{Client, Patched, Release};
use poolwright::model::{Fact, NodeMark, NodeView, RunId};
use serde_json::{Value, json};

use super::api::Change;
use super::between::Between;
use super::lab::{Lab, connect, connect_over, mark, register};
use super::plane::{ADMIN, ApiServer, POOLWRIGHT};

async fn look(client: &Client, name: &str) -> NodeView {
    client.node(name).await.unwrap().unwrap()
}

fn done(patched: Patched) -> NodeView {
    let Patched::Done(view) = patched else { panic!("{patched:?}") };
    *view
}

/// What happened to a node after a version, first to last, until it has this label.
async fn history(lab: &Lab, node: &str, since: &str) -> Vec<Value> {
    lab.api.patch(&format!("/api/v1/nodes/{node}"), &json!({"metadata": {"labels": {"lab-end": since}}})).await;
    let query = format!("fieldSelector=metadata.name={node}&resourceVersion={since}");
    let mut feed = lab.api.follow("/api/v1/nodes", &query).await;
    let mut seen = Vec::new();
    while let Some((change, object)) = feed.next().await {
        assert!(change == Change::There);
        if object["metadata"]["labels"]["lab-end"] == since {
            return seen;
        }
        seen.push(object);
    }
    panic!("the end is not seen: {seen:?}");
}

#[tokio::test]
async fn a_node_is_read_as_it_is() {
    let Some(lab) = Lab::start("read").await else { return };
    let name = lab.node("a").await;
    let client = lab.client().await;
    let view = look(&client, &name).await;
    let raw = lab.api.get(&format!("/api/v1/nodes/{name}")).await;
    assert_eq!(view.node.uid, raw["metadata"]["uid"]);
    assert_eq!(view.version, raw["metadata"]["resourceVersion"]);
    assert_eq!(view.provider_id, Fact::Known(raw["spec"]["providerID"].as_str().unwrap().to_owned()));
    assert_eq!(view.system_uuid, Fact::Known(super::lab::machine(&name)));
    assert_eq!(view.boot_id, Fact::Known(format!("boot-1-of-{name}")));
    assert_eq!((view.ready.clone(), view.count("nvidia.com/gpu")), (Fact::Known(true), Fact::Known(4)));
    assert_eq!((view.unschedulable, view.deleting, view.mark.clone()), (false, false, Fact::Absent));
    let Fact::Known(resources) = &view.allocatable else { panic!("{view:?}") };
    assert_eq!(resources.keys().collect::<Vec<_>>(), ["nvidia.com/gpu"]);
    assert_eq!(client.node("read-nobody").await.unwrap(), None);
    let listed = client.nodes().await.unwrap();
    assert_eq!(listed.iter().find(|one| one.node.name == name), Some(&view));

    // The kubelet is not heard of for 40 s.
    let lost = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    lab.api.patch(&format!("/api/v1/nodes/{name}/status"), &lost).await;
    assert!(look(&client, &name).await.ready.is_unknown());
}

#[tokio::test]
async fn cordon_and_mark_are_one_write_and_so_is_their_end() {
    let Some(lab) = Lab::start("cordon").await else { return };
    let client = lab.client().await;
    let name = lab.node("a").await;
    let before = look(&client, &name).await;
    let mark = mark(&name);
    let cordoned = done(client.cordon(&before.node, &before.version, &mark).await.unwrap());
    assert!(cordoned.unschedulable);
    let written: NodeMark = serde_json::from_str(cordoned.mark.known().unwrap()).unwrap();
    assert_eq!(written, mark);
    assert_eq!(cordoned, look(&client, &name).await);
    let writes = history(&lab, &name, &before.version).await;
    assert_eq!(writes.len(), 1, "{writes:#?}");

    let mut later = mark.clone();
    later.phase = poolwright::model::NodePhase::Drained;
    let view = look(&client, &name).await;
    let remarked = done(client.remark(&view.node, &view.version, &later).await.unwrap());
    assert!(remarked.unschedulable);
    assert_eq!(serde_json::from_str::<NodeMark>(remarked.mark.known().unwrap()).unwrap(), later);

    let opened = done(client.release(&remarked.node, &remarked.version, &mark.run, Release::Uncordon).await.unwrap());
    assert_eq!((opened.unschedulable, &opened.mark), (false, &Fact::Absent));
    assert_eq!(history(&lab, &name, &remarked.version).await.len(), 1);
}

#[tokio::test]
async fn nothing_is_written_over_another_write() {
    let Some(lab) = Lab::start("conflict").await else { return };
    let client = lab.client().await;
    let name = lab.node("a").await;
    let path = format!("/api/v1/nodes/{name}");
    let before = look(&client, &name).await;
    lab.api.patch(&path, &json!({"metadata": {"labels": {"somebody": "wrote"}}})).await;
    let patched = client.cordon(&before.node, &before.version, &mark(&name)).await.unwrap();
    assert!(matches!(patched, Patched::Conflict), "{patched:?}");
    let raw = lab.api.get(&path).await;
    assert!(raw["spec"]["unschedulable"].is_null() && raw["metadata"]["annotations"].is_null(), "{raw:#}");

    // The same for the end of a cordon.
    let view = look(&client, &name).await;
    let cordoned = done(client.cordon(&view.node, &view.version, &mark(&name)).await.unwrap());
    let taken = json!({"metadata": {"annotations": {NodeMark::ANNOTATION: "another's"}}});
    lab.api.patch(&path, &taken).await;
    for end in [Release::Uncordon, Release::KeepCordoned] {
        let patched = client.release(&cordoned.node, &cordoned.version, &mark(&name).run, end).await.unwrap();
        assert!(matches!(patched, Patched::Conflict), "{patched:?}");
    }
    let raw = lab.api.get(&path).await;
    assert_eq!(raw["spec"]["unschedulable"], true);
    assert_eq!(raw["metadata"]["annotations"][NodeMark::ANNOTATION], "another's");
}

/// The node shows another run's mark, or none, and nobody has written since it was read.
#[tokio::test]
async fn what_is_not_ours_is_not_released_at_its_own_version() {
    let Some(lab) = Lab::start("others").await else { return };
    let client = lab.client().await;
    let name = lab.node("a").await;
    let path = format!("/api/v1/nodes/{name}");
    let view = look(&client, &name).await;
    done(client.cordon(&view.node, &view.version, &mark(&name)).await.unwrap());
    let theirs = NodeMark { run: RunId::from("01KB3T7Z0N3K5V7X9B1C2D4F6J"), ..mark(&name) };
    let theirs = serde_json::to_string(&theirs).unwrap();
    for (written, word) in [(json!(theirs), "01KB3T7Z0N3K5V7X9B1C2D4F6J"), (Value::Null, "none")] {
        lab.api.patch(&path, &json!({"metadata": {"annotations": {NodeMark::ANNOTATION: written}}})).await;
        let view = look(&client, &name).await;
        for end in [Release::Uncordon, Release::KeepCordoned] {
            let patched = client.release(&view.node, &view.version, &mark(&name).run, end).await.unwrap();
            assert!(matches!(&patched, Patched::NotOurs { found } if found.contains(word)), "{patched:?}");
        }
        let patched = client.remark(&view.node, &view.version, &mark(&name)).await.unwrap();
        assert!(matches!(&patched, Patched::NotOurs { .. }), "{patched:?}");
        assert_eq!(look(&client, &name).await, view, "something was written");
        assert!(view.unschedulable);
    }
}

/// What we read was still true when we asked; only the server can know that it is not when we write.
#[tokio::test]
async fn nothing_is_written_over_a_write_that_comes_in_between() {
    let Some(lab) = Lab::start("between").await else { return };
    let name = lab.node("a").await;
    let path = format!("/api/v1/nodes/{name}");
    let client = lab.client().await;
    let label = |text: &str| json!({"metadata": {"labels": {"somebody": text}}});
    let change = Between::Change { api: lab.api.clone(), path: path.clone(), change: label("first") };
    let hurried = connect_over(&change, lab.server, POOLWRIGHT).await;
    let before = look(&client, &name).await;
    let patched = hurried.cordon(&before.node, &before.version, &mark(&name)).await.unwrap();
    assert!(matches!(patched, Patched::Conflict), "{patched:?}");
    let raw = lab.api.get(&path).await;
    assert_eq!(raw["metadata"]["labels"]["somebody"], "first");
    assert!(raw["spec"]["unschedulable"].is_null() && raw["metadata"]["annotations"].is_null(), "{raw:#}");

    let view = look(&client, &name).await;
    let cordoned = done(client.cordon(&view.node, &view.version, &mark(&name)).await.unwrap());
    let taken = json!({"metadata": {"annotations": {NodeMark::ANNOTATION: "another's"}}});
    let change = Between::Change { api: lab.api.clone(), path: path.clone(), change: taken };
    let hurried = connect_over(&change, lab.server, POOLWRIGHT).await;
    let patched =
        hurried.release(&cordoned.node, &cordoned.version, &mark(&name).run, Release::Uncordon).await.unwrap();
    assert!(matches!(patched, Patched::Conflict), "{patched:?}");
    let raw = lab.api.get(&path).await;
    assert_eq!(raw["spec"]["unschedulable"], true);
    assert_eq!(raw["metadata"]["annotations"][NodeMark::ANNOTATION], "another's");
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_may_have_acted_and_is_sent_once() {
    let Some(lab) = Lab::start("answer").await else { return };
    let name = lab.node("a").await;
    let client = lab.client().await;
    let deaf = connect_over(&Between::LostAnswer, lab.server, POOLWRIGHT).await;
    let before = look(&client, &name).await;
    let error = deaf.cordon(&before.node, &before.version, &mark(&name)).await.unwrap_err();
    assert!(error.may_have_acted(), "{error:?}");
    let view = look(&client, &name).await;
    assert!(view.unschedulable);
    assert_eq!(serde_json::from_str::<NodeMark>(view.mark.known().unwrap()).unwrap(), mark(&name));
    assert_eq!(history(&lab, &name, &before.version).await.len(), 1);
    // Who did not hear of it comes too late.
    let patched = client.cordon(&before.node, &before.version, &mark(&name)).await.unwrap();
    assert!(matches!(patched, Patched::Conflict), "{patched:?}");
}

#[tokio::test]
async fn another_node_of_the_same_name_is_not_ours() {
    let Some(lab) = Lab::start("reborn").await else { return };
    let client = lab.client().await;
    let name = lab.node("a").await;
    let path = format!("/api/v1/nodes/{name}");
    let before = look(&client, &name).await;
    lab.api.delete(&path, None).await;
    let patched = client.cordon(&before.node, &before.version, &mark(&name)).await.unwrap();
    assert!(matches!(patched, Patched::Gone), "{patched:?}");
    assert_eq!(lab.node("a").await, name);
    let reborn = look(&client, &name).await;
    assert_ne!(reborn.node.uid, before.node.uid);
    let patched = client.cordon(&before.node, &reborn.version, &mark(&name)).await.unwrap();
    assert!(matches!(patched, Patched::Conflict | Patched::Gone), "{patched:?}");
    assert_eq!(look(&client, &name).await, reborn, "something was written");
}

#[tokio::test]
async fn a_node_that_was_cordoned_before_is_left_so() {
    let Some(lab) = Lab::start("before").await else { return };
    let client = lab.client().await;
    let name = lab.node("a").await;
    lab.server.kubectl(&["cordon", &name]).await;
    let view = look(&client, &name).await;
    assert!(view.unschedulable);
    let mark = NodeMark { was_unschedulable: true, ..mark(&name) };
    let marked = done(client.cordon(&view.node, &view.version, &mark).await.unwrap());
    assert!(marked.unschedulable);
    let left = done(client.release(&marked.node, &marked.version, &mark.run, Release::KeepCordoned).await.unwrap());
    assert_eq!((left.unschedulable, &left.mark), (true, &Fact::Absent));
}

#[tokio::test]
async fn a_node_that_stays_off_says_so() {
    let Some(lab) = Lab::start("off").await else { return };
    let client = lab.client().await;
    let name = lab.node("a").await;
    let view = look(&client, &name).await;
    let marked = done(client.cordon(&view.node, &view.version, &mark(&name)).await.unwrap());
    let end = Release::LeftOff { plan: "0f3c9a71d2b4e856".to_owned() };
    let left = done(client.release(&marked.node, &marked.version, &mark(&name).run, end).await.unwrap());
    assert_eq!((left.unschedulable, left.left_off, &left.mark), (true, true, &Fact::Absent));
    let raw = lab.api.get(&format!("/api/v1/nodes/{name}")).await;
    assert!(raw["metadata"]["annotations"][NodeMark::LEFT_OFF].as_str().unwrap().contains("0f3c9a71d2b4e856"));
}

/// Another cluster whose node has the same name, and a thousand more.
#[tokio::test]
async fn the_wrong_cluster_is_told_by_its_uid_and_pages_are_read_to_the_end() {
    let Some(lab) = Lab::start("wrong").await else { return };
    let name = lab.node("a").await;
    let right = lab.client().await;
    let other = ApiServer::start(lab.server.store(), "wrong").await;
    let api = other.api();
    register(&api, "wrong", &name, 1).await;
    let wrong = connect(&other, ADMIN).await;
    let (here, there) = (right.describe().await.unwrap(), wrong.describe().await.unwrap());
    assert_eq!((here.version.as_str(), there.version.as_str()), ("v1.37.2", "v1.37.2"));
    assert_ne!(here.uid, there.uid);
    let node = look(&right, &name).await;
    let stranger = look(&wrong, &name).await;
    let patched = wrong.cordon(&node.node, &stranger.version, &mark(&name)).await.unwrap();
    assert!(matches!(patched, Patched::Conflict | Patched::Gone), "{patched:?}");
    assert_eq!(look(&wrong, &name).await, stranger);

    let many: Vec<String> = (0..1001).map(|number| format!("many-{number:04}")).collect();
    for name in &many {
        api.create("/api/v1/nodes", &json!({"metadata": {"name": name}})).await;
    }
    let mut listed: Vec<String> = wrong.nodes().await.unwrap().into_iter().map(|view| view.node.name).collect();
    listed.sort();
    assert_eq!(listed[..1001], many);
    assert_eq!(listed[1001..], [name]);
    // Nobody has bound this user to anything here.
    let refused = connect(&other, POOLWRIGHT).await.nodes().await.unwrap_err();
    assert!(refused.refusal().is_some_and(|refusal| refusal.code == 403), "{refused:?}");
    assert!(!refused.is_retriable(), "{refused:?}");
}
