//! Guest clusters that do not hear us for a while, or refuse to give a node back: nothing was found of a node
//! then, and no VM is stopped for it; and Jobs that take their time.

use poolwright::model::{JobTemplate, NodePhase};
use poolwright::plan::Plan;
use poolwright::rollout::{self, Exit, HostPhase, RunState, Stage};
use serde_json::{Value, json};

use super::nodes::{Nodes, are_free, stands};
use super::scene::{closed, failure, host_of};
use crate::support::lab::Lab;

/// How often each of the two VMs was shut down.
fn stops(lab: &Lab) -> Vec<usize> {
    let log = lab.world.log();
    let of = |vm: &str| log.iter().filter(|one| one.effect && one.call == "ShutdownGuest" && one.object == vm).count();
    vec![of("vm-1"), of("vm-2")]
}

/// A token that has expired for a moment, at each patch of a node and at calls spread over the visit.
#[tokio::test(start_paused = true)]
async fn an_expired_token_at_any_call_fails_no_node() {
    let at = |method: &str, call: u32, times: u32| {
        format!(
            "faults: [{{face: k8s, method: \"{method}\", object: k8s-a, onCall: {call}, times: {times}, then: {{fault: Unauthorized}}}}]"
        )
    };
    let patches = (1..=3).map(|call| at("patch nodes", call, 2));
    let any = [20, 30, 40, 50, 60, 70].map(|call| at("*", call, 3));
    for world in patches.chain(any) {
        let world = world.leak();
        let (lab, plan) = Nodes { world, ..Nodes::default() }.planned().await;
        let state = lab.apply(&plan).await.unwrap();
        assert_eq!(state.exit(), Exit::Done, "{world}: {state:#?}");
        are_free(&lab);
        assert_eq!(stops(&lab), [1, 1], "{world}");
    }
}

/// The uncordon is refused, by a policy of the cluster or otherwise. Both nodes have passed their gate: no VM is
/// stopped again, the other cluster's node is given back, and a retry does the rest.
#[tokio::test(start_paused = true)]
async fn an_uncordon_that_is_refused_closes_no_host() {
    // Tried once by the visit, and once as it is left.
    for (fault, times) in
        [("fault: Invalid", 2), ("fault: Forbidden", 9999), ("fault: Unauthorized", 9999), ("status: 500", 9999)]
    {
        let world = format!(
            "faults: [{{face: k8s, method: \"patch nodes\", object: k8s-a, onCall: 3, times: {times}, then: {{{fault}}}}}]"
        );
        let (lab, plan) = Nodes { world: world.leak(), ..Nodes::default() }.planned().await;
        let state = lab.apply(&plan).await.unwrap();
        assert_eq!(state.exit(), Exit::HostsLeft, "{fault}: {state:#?}");
        let host = host_of(&state, 1);
        assert!(matches!(host.phase, HostPhase::Failed { at: Stage::UncordoningNodes, .. }), "{fault}: {host:#?}");
        assert_eq!(stops(&lab), [1, 1], "{fault}");
        assert!(!closed(&lab, 1), "{fault}");
        assert_eq!(stands(&lab, "k8s-a", "gpu-a"), (true, Some(NodePhase::Drained)), "{fault}");
        assert_eq!(stands(&lab, "k8s-b", "gpu-b"), (false, None), "{fault}");
        if times < 9 {
            let state = retry(&lab, &state).await;
            assert_eq!(state.exit(), Exit::Done, "{fault}: {state:#?}");
            are_free(&lab);
            assert_eq!(stops(&lab), [1, 1], "{fault}");
        }
    }
}

/// A policy of the cluster, or somebody, keeps the cordon as our mark goes: that is not given back.
#[tokio::test(start_paused = true)]
async fn an_uncordon_that_does_not_show_is_no_success() {
    let world = "actors: [{who: policy, once: {method: \"patch nodes\", object: k8s-a/nodes/gpu-a, onCall: 3}, after: 0s, \
        does: {cordon: {cluster: k8s-a, node: gpu-a}}}]";
    let (lab, plan) = Nodes { world, ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    let why = failure(host_of(&state, 1));
    assert!(why.contains("cordoned still"), "{why}");
    assert_eq!((stops(&lab), closed(&lab, 1)), (vec![1, 1], false));
    assert_eq!(stands(&lab, "k8s-b", "gpu-b"), (false, None));
}

async fn retry(lab: &Lab, state: &RunState) -> RunState {
    let host = "esx-01".into();
    lab.run(async |engine| rollout::retry(engine, &state.run, &host).await).await.unwrap()
}

/// Two clusters; the containers of the first one's Jobs end like this.
fn containers(ends: &str) -> &'static str {
    format!(
        "{{name: k8s-a, address: \"https://k8s-a.lab:6443\", nodes: [{{name: spare-a, gpus: 4}}], \
          containers: [{{image: \"cuda*\", {ends}}}]}}, \
         {{name: k8s-b, address: \"https://k8s-b.lab:6443\", nodes: [{{name: spare-b, gpus: 4}}]}}"
    )
    .leak()
}

/// The Jobs of the first cluster.
fn jobs(plan: &mut Plan) -> &mut Vec<JobTemplate> {
    let rules = plan.hosts[0].guests.iter_mut().find(|rules| rules.cluster.value == "k8s-a");
    &mut rules.unwrap().validate
}

/// A validation has the time that its Jobs say, one after the other.
#[tokio::test(start_paused = true)]
async fn jobs_have_the_time_that_they_say() {
    for (takes, longest, number) in [("25m", json!(3600), 1), ("12m", json!(900), 2), ("28m", json!(null), 1)] {
        let clusters = containers(&format!("takes: {takes}"));
        let (lab, mut plan) = Nodes { clusters, ..Nodes::default() }.planned().await;
        let all = jobs(&mut plan);
        all[0].job["spec"]["activeDeadlineSeconds"] = longest;
        *all = vec![all[0].clone(); number];
        let state = lab.apply(&plan).await.unwrap();
        assert_eq!(state.exit(), Exit::Done, "{takes}: {state:#?}");
        are_free(&lab);
    }
}

/// A Job without a deadline gets one, and one that nobody lets begin is deleted when its time is over: its host is
/// closed again all the same.
#[tokio::test(start_paused = true)]
async fn a_job_that_does_not_end_in_its_time_keeps_no_host_open() {
    let hanging: fn(&mut Value) = |spec| spec["activeDeadlineSeconds"] = json!(null);
    let queued: fn(&mut Value) = |spec| spec["suspend"] = json!(true);
    for (change, word, left) in [(hanging, "DeadlineExceeded", 1), (queued, "no queue has admitted it", 0)] {
        let (lab, mut plan) = Nodes { clusters: containers("ends: never"), ..Nodes::default() }.planned().await;
        change(&mut jobs(&mut plan)[0].job["spec"]);
        let state = lab.apply(&plan).await.unwrap();
        assert_eq!(state.exit(), Exit::HostsLeft, "{word}: {state:#?}");
        let why = failure(host_of(&state, 1));
        assert!(why.contains(word), "{why}");
        assert!(closed(&lab, 1), "{word}: {state:#?}");
        assert_eq!(stands(&lab, "k8s-a", "gpu-a"), (true, Some(NodePhase::Failed)), "{word}");
        let jobs = lab.world.snapshot()["guests"]["k8s-a"]["jobs"].as_array().unwrap().len();
        assert_eq!(jobs, left, "{word}");
    }
}
