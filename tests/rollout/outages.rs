//! A guest cluster that goes away in the middle of a visit, at one place after the other, for a while or for good.

use std::time::Duration;

use poolwright::rollout::{Exit, HostPhase, Outcome, RunState};
use poolwright::sim::Write;

use super::nodes::{CLUSTERS, Nodes, stands};
use super::scene::host_of;
use crate::support::lab::Lab;

/// So many calls to the cluster lie between two places.
const EVERY: usize = 5;
/// Calls that find nobody before the cluster is back: minutes.
const WHILE: u32 = 40;
/// As [`CLUSTERS`], and the Job fails on gpu-b.
const BAD_GPU: &str = "{name: k8s-a, address: \"https://k8s-a.lab:6443\", nodes: [{name: spare-a, gpus: 4}]}, \
    {name: k8s-b, address: \"https://k8s-b.lab:6443\", nodes: [{name: spare-b, gpus: 4}], \
      containers: [{image: \"cuda-vector-add*\", node: gpu-b, ends: {fails: 7}, log: \"CUDA error 719\"}]}";
/// More calls than any visit makes.
const FOR_GOOD: u32 = 1_000_000;

/// A visit in which nobody answers for k8s-b from its nth call on, for so many calls; none while it is still planned
/// then. An hour later whatever was begun has come to its end.
async fn away(clusters: &'static str, from: usize, calls: u32) -> Option<(Lab, RunState)> {
    let fault = format!("face: k8s, method: \"*\", object: k8s-b, onCall: {from}, times: {calls}, then: dropBefore");
    let world = format!("faults: [{{{fault}}}]");
    let lab = Nodes { clusters, world: world.leak(), ..Nodes::default() }.lab();
    let plan = lab.plan().await;
    if plan.hosts.is_empty() {
        return None;
    }
    let state = lab.apply(&plan).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    Some((lab, state))
}

/// Where in the log something stands last.
fn last(log: &[Write], is: impl Fn(&Write) -> bool) -> Option<usize> {
    log.iter().rposition(is)
}

/// Of the patch that uncordons a node.
const OPENS: &str = r#""path":"/spec/unschedulable","value":false"#;

/// Whether we tried to open gpu-b, be it in vain, after its VM was stopped; then a Job was made on its new boot.
fn is_opened(lab: &Lab, place: &str) -> bool {
    let log = lab.world.log();
    let opens = |write: &Write| write.id == "k8s-b/nodes/gpu-b" && write.arguments.replace(' ', "").contains(OPENS);
    let vm = |write: &Write, call: &str| write.call == call && write.object == "vm-2";
    let Some(opened) = last(&log, opens) else { return false };
    let before = &log[..opened];
    let Some(stopped) = last(before, |write| vm(write, "ShutdownGuest")) else { return false };
    let started = last(before, |write| vm(write, "PowerOnVM_Task") && write.effect);
    let job = last(before, |write| write.call == "create jobs" && write.id.starts_with("k8s-b/") && write.effect);
    assert!(started > Some(stopped) && job > started, "{place}: {stopped}, {started:?}, {job:?}, {opened}: {log:#?}");
    true
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_goes_away_in_mid_visit_opens_nothing_that_is_not_proven() {
    let (mut begun, mut stopped, mut opened) = (0, 0, 0);
    for from in (1..).step_by(EVERY) {
        let Some((lab, state)) = away(CLUSTERS, from, FOR_GOOD).await else { continue };
        if state.exit() == Exit::Done {
            break;
        }
        begun += usize::from(state.exit() == Exit::HostsLeft);
        is_opened(&lab, &format!("away for good from call {from} on"));
        stopped += usize::from(lab.world.tally().vms["vm-2"].stops > 0);
        let (lab, _) = away(BAD_GPU, from, WHILE).await.unwrap();
        let place = format!("away for a while from call {from} on");
        assert!(!is_opened(&lab, &place), "{place}: its Job failed");
        if from % 4 == 0 {
            let (lab, _) = away(CLUSTERS, from, WHILE).await.unwrap();
            opened += usize::from(is_opened(&lab, &place));
        }
    }
    assert!(begun > stopped && stopped > 0, "before its VM was stopped, and after: {stopped} of {begun}");
    assert!(opened > 0, "once it is back, a good one is opened: {opened} of {begun}");
}

/// The kubeconfig leads to another cluster than when the plan was made.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_another_one_since_the_plan_holds_its_hosts_and_nothing_is_written() {
    let (lab, mut plan) = Nodes::default().planned().await;
    let uid = plan.hosts[0].guest_uids.get_mut("k8s-b").expect("the plan knows which cluster it is");
    *uid = "6b2f0a4e-0000-4000-8000-00000000c1b5".to_owned();
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::WorkLeft, "{state:#?}");
    let HostPhase::Held { why } = &host_of(&state, 1).phase else { panic!("{state:#?}") };
    assert!(why.to_string().contains("k8s-b is another cluster than when the plan was made"), "{why}");
    assert_eq!(lab.world.log().iter().filter(|write| write.effect).count(), 0, "{:#?}", lab.world.log());
}

/// Each of two hosts carries a node of another cluster.
const ONE_EACH: &str = "[{name: vm-1, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}], node: {cluster: k8s-a, name: gpu-a}}, \
    {name: vm-2, host: esx-02, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}], node: {cluster: k8s-b, name: gpu-b}}]";

/// The first cluster goes away after the plan is made, and before the visit.
#[tokio::test(start_paused = true)]
async fn e13_a_host_whose_cluster_went_away_after_the_plan_is_held_and_the_other_one_is_done() {
    for from in 1.. {
        let fault =
            format!("face: k8s, method: \"*\", object: k8s-a, onCall: {from}, times: {FOR_GOOD}, then: dropBefore");
        let world = format!("faults: [{{{fault}}}]");
        let lab = Nodes { names: "esx-*", vms: ONE_EACH, world: world.leak(), ..Nodes::default() }.lab();
        let plan = lab.plan().await;
        if plan.hosts.len() < 2 {
            continue;
        }
        let state = lab.apply(&plan).await.unwrap();
        assert_eq!(state.exit(), Exit::WorkLeft, "{state:#?}");
        assert!(matches!(host_of(&state, 1).phase, HostPhase::Held { .. }), "{state:#?}");
        assert!(matches!(host_of(&state, 2).phase, HostPhase::Done { outcome: Outcome::Converged }), "{state:#?}");
        let stops = lab.world.tally().vms.into_values().map(|vm| vm.stops).collect::<Vec<_>>();
        assert_eq!((stops, stands(&lab, "k8s-b", "gpu-b")), (vec![0, 1], (false, None)));
        return;
    }
}
