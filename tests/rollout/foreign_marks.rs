//! Nodes whose mark is not ours any more, since another run has written its own over it or somebody took it off:
//! nobody uncordons them, and nobody takes off what is there (DESIGN §2, truth 6).

use std::time::Duration;

use poolwright::model::NodeMark;
use poolwright::rollout::{self, Exit, HostPhase, Outcome, RunState, StepKind};
use serde_json::Value;

use super::nodes::{BAD_GPU, Nodes, stands};
use super::scene::{asked, closed, failure, host_of, interrupted};
use super::ways::once_after;
use crate::support::lab::{Lab, USER};

const THEIRS: &str = "01KB3T7Z0N3K5V7X9B1C2D4F6H";
const GPU_A: &str = "k8s-a/nodes/gpu-a";

/// Clusters in which the Job of the second node takes its time.
const LONG: &str = "{name: k8s-a, address: \"https://k8s-a.lab:6443\", nodes: [{name: spare-a, gpus: 4}]}, \
    {name: k8s-b, address: \"https://k8s-b.lab:6443\", nodes: [{name: spare-b, gpus: 4}], containers: [{image: \"cuda*\", takes: 8m}]}";

/// What becomes of the mark on gpu-a.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Deed {
    /// Another run writes its own over it.
    Replaced,
    /// Somebody takes it off; the cordon stays.
    TakenOff,
}

const DEEDS: [Deed; 2] = [Deed::Replaced, Deed::TakenOff];

fn theirs() -> String {
    format!(
        r#"{{"v":1,"run":"{THEIRS}","plan":"0123456789abcdef","host":"4c4c4544-0000-1000-8000-000000000009","vm":"vm-901","phase":"drained","wasUnschedulable":false,"since":"2026-11-30T20:00:00Z","deadline":"2026-11-30T21:00:00Z","boot":"b-1","gpus":1}}"#
    )
}

/// A world in which anna does that so long after a call.
fn after(deed: Deed, once: &str, after: &str) -> &'static str {
    let value = match deed {
        Deed::Replaced => format!(", value: '{}'", theirs()),
        Deed::TakenOff => String::new(),
    };
    let does = format!("annotate: {{cluster: k8s-a, node: gpu-a, key: {}{value}}}", NodeMark::ANNOTATION);
    Box::leak(format!("actors: [{{who: anna, once: {once}, after: {after}, does: {{{does}}}}}]").into_boxed_str())
}

/// The node is as anna left it: cordoned, with what she wrote, and nobody has written to it since.
fn is_left_alone(lab: &Lab, deed: Deed) {
    let snapshot = lab.world.snapshot();
    let node = &snapshot["guests"]["k8s-a"]["nodes"]["gpu-a"];
    let mark = node["annotations"][NodeMark::ANNOTATION].as_str();
    assert_eq!(mark, (deed == Deed::Replaced).then(theirs).as_deref(), "{deed:?}");
    assert_eq!(node["unschedulable"], Value::Bool(true), "{deed:?}: it is opened");
    let log = lab.world.log();
    let hers = log.iter().position(|write| write.who == "anna" && write.effect).expect("anna has written");
    let ours = |write: &&poolwright::sim::Write| {
        ["kubernetes-admin", USER].contains(&write.who.as_str()) && write.id == GPU_A && write.call != "get nodes"
    };
    let since: Vec<_> = log[hers..].iter().filter(ours).map(|write| (&write.call, &write.arguments)).collect();
    assert!(since.is_empty(), "{deed:?}: {since:?}");
}

/// Whoever goes on, goes back or gives the host up later finds the same, and does no more.
async fn stays_so(lab: &Lab, state: &RunState, deed: Deed) {
    let (run, name) = (state.run.clone(), state.hosts.keys().next().unwrap().clone());
    let state = lab.run(async |engine| rollout::abort(engine, &run).await).await.unwrap();
    is_left_alone(lab, deed);
    if !matches!(host_of(&state, 1).phase, HostPhase::Done { .. }) {
        lab.run(async |engine| rollout::give_up(engine, &run, &name).await).await.unwrap();
        is_left_alone(lab, deed);
    }
}

/// It has passed its gate by then, and waits for its neighbour.
#[tokio::test(start_paused = true)]
async fn a_node_that_passed_is_not_uncordoned_under_another_mark_or_none() {
    for deed in DEEDS {
        let world = after(deed, "{method: PowerOnVM_Task, object: vm-1}", "350s");
        let (lab, plan) = Nodes { clusters: LONG, world, ..Nodes::default() }.planned().await;
        let state = lab.apply(&plan).await.unwrap();
        is_left_alone(&lab, deed);
        if deed == Deed::Replaced {
            let why = failure(host_of(&state, 1));
            assert!(why.contains("gpu-a") && why.contains(&format!("that of run {THEIRS}")), "{why}");
            assert_eq!(state.exit(), Exit::HostsLeft);
        } else {
            let told = &host_of(&state, 1).left_alone;
            assert!(told.iter().any(|(_, found)| found.contains("taken off by somebody; it is cordoned")), "{told:?}");
        }
        assert!(!closed(&lab, 1), "{deed:?}: nobody takes down what others work on");
        assert_eq!(asked(&lab, "ShutdownGuest"), 2, "{deed:?}");
        stays_so(&lab, &state, deed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_others_take_in_mid_drain_is_theirs() {
    for deed in DEEDS {
        let world = after(deed, &format!("{{method: \"patch nodes\", object: {GPU_A}}}"), "5s");
        let (lab, plan) = Nodes { world, ..Nodes::default() }.planned().await;
        let state = lab.apply(&plan).await.unwrap();
        assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
        let why = failure(host_of(&state, 1));
        assert!(why.starts_with("draining") && why.contains("gpu-a"), "{why}");
        is_left_alone(&lab, deed);
        assert_eq!(stands(&lab, "k8s-b", "gpu-b"), (false, None), "{deed:?}: the other one is given back");
        assert_eq!((asked(&lab, "EnterMaintenanceMode_Task"), asked(&lab, "ShutdownGuest")), (0, 0));
        stays_so(&lab, &state, deed).await;
    }
}

/// While it is waited for.
#[tokio::test(start_paused = true)]
async fn a_node_that_others_take_in_its_gate_is_theirs() {
    for clusters in [BAD_GPU, LONG] {
        for deed in DEEDS {
            let world = after(deed, "{method: PowerOnVM_Task, object: vm-1}", "70s");
            let (lab, plan) = Nodes { clusters, world, ..Nodes::default() }.planned().await;
            let state = lab.apply(&plan).await.unwrap();
            is_left_alone(&lab, deed);
            assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
            let why = failure(host_of(&state, 1));
            assert!(why.contains("expected our mark on the node gpu-a"), "it is not waited for: {why}");
            let found = if deed == Deed::Replaced { THEIRS } else { "found none" };
            assert!(why.contains(found) && why.contains("it is cordoned"), "{why}");
            assert!(!closed(&lab, 1), "{deed:?}");
            stays_so(&lab, &state, deed).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_abort_takes_off_no_mark_but_its_own() {
    for deed in DEEDS {
        // Drained: our second write.
        let world = after(deed, &format!("{{method: \"patch nodes\", object: {GPU_A}, onCall: 2}}"), "20m");
        let (lab, plan) = Nodes { world, ..Nodes::default() }.planned().await;
        let state = interrupted(&lab, &plan, once_after(StepKind::DrainNode, true)).await;
        tokio::time::sleep(Duration::from_secs(1800)).await;
        let run = state.run.clone();
        let state = lab.run(async |engine| rollout::abort(engine, &run).await).await.unwrap();
        is_left_alone(&lab, deed);
        assert_eq!(stands(&lab, "k8s-b", "gpu-b"), (false, None), "{deed:?}");
        let as_it_was = host_of(&state, 1).phase == HostPhase::Done { outcome: Outcome::AsItWas };
        assert_eq!(as_it_was, deed == Deed::TakenOff, "{state:#?}");
        stays_so(&lab, &state, deed).await;
    }
}
