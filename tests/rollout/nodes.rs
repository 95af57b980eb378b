//! Hosts that carry nodes of guest clusters: cordoned before the first eviction, drained before the host
//! closes, proven before they are uncordoned; and the ways out.

use std::time::Duration;

use poolwright::model::{Fact, NodeMark, NodePhase};
use poolwright::plan::Plan;
use poolwright::rollout::{self, Compensation, Event, Exit, HostPhase, Outcome, RunState, Signal, Stage, StepKind};
use serde_json::Value;

use super::scene::{Scene, asked, closed, failure, host_of, interrupted, marker, resume, signalled, watched};
use super::ways::once_after;
use crate::support::lab::{Lab, USER};

/// Two nodes in two clusters on one host, each with work that has another place to go.
pub const CLUSTERS: &str = "{name: k8s-a, address: \"https://k8s-a.lab:6443\", nodes: [{name: spare-a, gpus: 4}], \
      workloads: [{name: web, replicas: 2, gpu: 1, pdb: {minAvailable: 1}}, {name: agent, kind: daemonSet}]}, \
    {name: k8s-b, address: \"https://k8s-b.lab:6443\", nodes: [{name: spare-b, gpus: 4}], \
      workloads: [{name: batch, replicas: 1, gpu: 1}]}";
/// Their VMs, whose names are others than those of the nodes.
pub const NODES: &str = "[{name: vm-1, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}], node: {cluster: k8s-a, name: gpu-a}}, \
    {name: vm-2, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}], node: {cluster: k8s-b, name: gpu-b, systemUUID: swapped}}]";

/// A scene with guest clusters. `rollout` of the pool may go on with other keys.
pub struct Nodes {
    pub clusters: &'static str,
    pub vms: &'static str,
    /// `vms` of the pool.
    pub may: &'static str,
    /// Names of the hosts of the pool, of two that there are.
    pub names: &'static str,
    /// Whether a Job validates the nodes of k8s-b: always those of k8s-a.
    pub both: bool,
    /// More keys of the world.
    pub world: &'static str,
    /// `rollout` of the pool.
    pub rollout: &'static str,
    /// `expect` of both clusters.
    pub expect: u32,
    /// `drain.timeout`.
    pub timeout: &'static str,
    pub to: &'static str,
}

impl Default for Nodes {
    fn default() -> Self {
        Self {
            clusters: CLUSTERS,
            vms: NODES,
            may: "{mayStop: [{guest: k8s-a}, {guest: k8s-b}]}",
            names: "esx-01",
            both: true,
            world: "faults: []",
            rollout: "maxUnavailable: 1, maxReboots: 2",
            expect: 1,
            timeout: "20m",
            to: "[{mode: {vgpu: {size: mixed}}}]",
        }
    }
}

/// A Job as a template of files would give it.
const JOB: &str = "{template: {file: templates/cuda-vector-add.yaml, set: {image: \"cuda-vector-add:1\"}}}";

impl Nodes {
    pub fn lab(&self) -> Lab {
        let Self { clusters, vms, may, names, both, world, rollout, expect, timeout, to } = self;
        let guest = |name: &str| {
            let jobs = if *both || name == "k8s-a" { format!(", validate: [{JOB}]") } else { String::new() };
            format!(
                "{{cluster: {name}, expect: {{resource: nvidia.com/gpu, perNode: {expect}}}, \
                 drain: {{timeout: {timeout}}}{jobs}}}"
            )
        };
        let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
        let scene = Scene {
            hosts: 2,
            names,
            to,
            vms,
            may,
            world: leak(format!("{world}\n  guests: [{clusters}]")),
            site: "guests: [{name: k8s-a, kubeconfig: \"file:KUBECONFIG\", context: k8s-a}, \
                   {name: k8s-b, kubeconfig: \"file:KUBECONFIG\", context: k8s-b}]",
            rollout: leak(format!("{{{rollout}}}\n  guests: [{}, {}]", guest("k8s-a"), guest("k8s-b"))),
            ..Scene::default()
        };
        scene.lab()
    }

    pub async fn planned(&self) -> (Lab, Plan) {
        let lab = self.lab();
        let plan = lab.plan().await;
        assert_eq!(plan.hosts.len(), 1, "{:#?} {:#?}", plan.not_acted, plan.findings);
        (lab, plan)
    }
}

/// Whether a node is cordoned, and the phase of the mark on it.
pub fn stands(lab: &Lab, cluster: &str, name: &str) -> (bool, Option<NodePhase>) {
    let snapshot = lab.world.snapshot();
    let node = &snapshot["guests"][cluster]["nodes"][name];
    assert!(node.is_object(), "no node {name} in {}", snapshot["guests"]);
    let mark = node["annotations"][NodeMark::ANNOTATION].as_str();
    let mark = mark.map(|text| serde_json::from_str::<NodeMark>(text).unwrap().phase);
    (node["unschedulable"] == Value::Bool(true), mark)
}

/// Both nodes are as before: open, without our mark.
pub fn are_free(lab: &Lab) {
    for (cluster, name) in [("k8s-a", "gpu-a"), ("k8s-b", "gpu-b")] {
        assert_eq!(stands(lab, cluster, name), (false, None), "{cluster}/{name}");
    }
}

/// Our calls that had an effect, in order, each with its object.
pub fn ours(lab: &Lab) -> Vec<(String, String)> {
    let done = lab.world.log().into_iter().filter(|write| [USER, "kubernetes-admin"].contains(&write.who.as_str()));
    done.filter(|write| write.effect).map(|write| (write.call, write.id)).collect()
}

fn first(calls: &[(String, String)], is: impl Fn(&(String, String)) -> bool) -> usize {
    calls.iter().position(is).unwrap_or_else(|| panic!("no such call in {calls:#?}"))
}

fn last(calls: &[(String, String)], is: impl Fn(&(String, String)) -> bool) -> usize {
    calls.iter().rposition(is).unwrap_or_else(|| panic!("no such call in {calls:#?}"))
}

fn state_of(result: Result<RunState, rollout::RunError>) -> RunState {
    result.unwrap()
}

#[tokio::test(start_paused = true)]
async fn e06_cordon_then_evict_then_stop_then_change_then_validate_then_uncordon() {
    let (lab, plan) = Nodes::default().planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state_of(state);
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    are_free(&lab);
    assert_eq!((closed(&lab, 1), marker(&lab, 1)), (false, String::new()));
    assert_eq!(host_of(&state, 1).armed, Vec::new());
    let calls = ours(&lab);
    let is_node = |call: &(String, String)| call.1.contains("/nodes/");
    let evicts = |call: &(String, String)| call.1.contains("/eviction") || call.0.contains("eviction");
    let cordons: Vec<usize> =
        calls.iter().enumerate().filter(|(_, call)| is_node(call)).map(|(at, _)| at).take(2).collect();
    let names: Vec<&str> = cordons.iter().map(|at| calls[*at].1.as_str()).collect();
    assert!(names[0].contains("gpu-a") && names[1].contains("gpu-b"), "both are cordoned first: {calls:#?}");
    let (first_eviction, last_eviction) = (first(&calls, evicts), last(&calls, evicts));
    let order = [
        cordons[1],
        first_eviction,
        last_eviction,
        first(&calls, |call| call.0 == "EnterMaintenanceMode_Task"),
        first(&calls, |call| call.0 == "ShutdownGuest"),
        first(&calls, |call| call.0 == "UpdateGraphicsConfig"),
        first(&calls, |call| call.0 == "ExitMaintenanceMode_Task"),
        first(&calls, |call| call.0 == "PowerOnVM_Task"),
        first(&calls, |call| call.1.contains("jobs/")),
        last(&calls, is_node),
    ];
    assert!(order.is_sorted(), "{order:?} {calls:#?}");
    let tally = lab.world.tally();
    for vm in ["vm-1", "vm-2"] {
        let vm = &tally.vms[vm];
        assert_eq!((vm.host.as_str(), vm.on, vm.stops, vm.starts), ("esx-01", true, 1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn e03_a_node_that_was_cordoned_before_stays_so() {
    let vms = "[{name: vm-1, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}], node: {cluster: k8s-a, name: gpu-a, unschedulable: true}}, \
        {name: vm-2, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}], node: {cluster: k8s-b, name: gpu-b}}]";
    let (lab, plan) = Nodes { vms, ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    assert_eq!(stands(&lab, "k8s-a", "gpu-a"), (true, None));
    assert_eq!(stands(&lab, "k8s-b", "gpu-b"), (false, None));
    // The same where nothing is done to the host in the end.
    let (lab, plan) = Nodes { vms, ..Nodes::default() }.planned().await;
    let state = interrupted(&lab, &plan, once_after(StepKind::DrainNode, true)).await;
    let run = state.run;
    let state = lab.run(async |engine| rollout::abort(engine, &run).await).await.unwrap();
    assert_eq!(host_of(&state, 1).phase, HostPhase::Done { outcome: Outcome::AsItWas });
    assert_eq!(stands(&lab, "k8s-a", "gpu-a"), (true, None));
    assert_eq!(stands(&lab, "k8s-b", "gpu-b"), (false, None));
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_never_gives_way_is_named_and_everything_is_given_back() {
    let clusters = "{name: k8s-a, address: \"https://k8s-a.lab:6443\", workloads: [{name: web, replicas: 1, gpu: 1, pdb: {minAvailable: 1}}]}, \
        {name: k8s-b, address: \"https://k8s-b.lab:6443\", nodes: [{name: spare-b, gpus: 4}]}";
    let (lab, plan) = Nodes { clusters, timeout: "10m", ..Nodes::default() }.planned().await;
    let (state, watch) = watched(&lab, &plan).await;
    let state = state_of(state);
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    let why = failure(host_of(&state, 1));
    assert!(why.contains("web") && why.contains("draining"), "{why}");
    let blocked = watch.events().into_iter().any(
        |event| matches!(event, Event::NodeBlocked { why, .. } if why.iter().any(|line| line.contains("default/web"))),
    );
    assert!(blocked, "the budget is in the journal");
    are_free(&lab);
    assert_eq!((closed(&lab, 1), marker(&lab, 1)), (false, String::new()));
    assert_eq!((asked(&lab, "EnterMaintenanceMode_Task"), asked(&lab, "ShutdownGuest")), (0, 0));
    match &host_of(&state, 1).phase {
        HostPhase::Failed { left_as: Some(left), .. } => assert!(left.is_clean(), "{left:?}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn pods_that_never_end_since_the_vm_of_their_node_is_off_are_told_with_that() {
    let world = "actors: [{who: anna, host: esx-01, once: {method: \"patch nodes\", object: k8s-a/nodes/gpu-a}, after: 5s, \
                 does: {powerOff: {vm: vm-1}}}]";
    let (lab, plan) = Nodes { world, ..Nodes::default() }.planned().await;
    let (_, watch) = watched(&lab, &plan).await;
    let blocked: Vec<String> = watch
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::NodeBlocked { why, .. } => Some(why.join("; ")),
            _ => None,
        })
        .collect();
    let stuck: Vec<&String> = blocked.iter().filter(|why| why.contains("is stuck")).collect();
    let told = |why: &&&String| why.contains("its VM vm-1 is powered off") && why.contains("is not Ready");
    assert!(!stuck.is_empty() && stuck.iter().any(|why| told(&why)), "{blocked:#?}");
}

/// The Job fails on one node.
pub const BAD_GPU: &str = "{name: k8s-a, address: \"https://k8s-a.lab:6443\", nodes: [{name: spare-a, gpus: 4}], \
      containers: [{image: \"cuda-vector-add*\", node: gpu-a, ends: {fails: 7}, log: \"CUDA error 719\"}]}, \
    {name: k8s-b, address: \"https://k8s-b.lab:6443\", nodes: [{name: spare-b, gpus: 4}]}";

#[tokio::test(start_paused = true)]
async fn e05_a_validation_that_fails_closes_the_host_again_and_stays_failed() {
    let (lab, plan) = Nodes { clusters: BAD_GPU, ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    let why = failure(host_of(&state, 1));
    assert!(why.contains("gpu-a") && why.contains("CUDA error 719"), "{why}");
    let closed_again = |lab: &Lab| {
        assert!(closed(lab, 1), "the host is in maintenance mode again");
        let tally = lab.world.tally();
        assert!(!tally.vms["vm-1"].on && !tally.vms["vm-2"].on, "its nodes are off");
        assert_eq!(stands(lab, "k8s-a", "gpu-a"), (true, Some(NodePhase::Failed)));
        assert_eq!(stands(lab, "k8s-b", "gpu-b"), (true, Some(NodePhase::Drained)));
        assert!(marker(lab, 1).contains("\"failed\""), "{}", marker(lab, 1));
    };
    closed_again(&lab);
    let HostPhase::Failed { left_as: Some(left), at: Stage::ValidatingNodes, .. } = &host_of(&state, 1).phase else {
        panic!("{:?}", host_of(&state, 1).phase)
    };
    assert_eq!(left.maintenance, Some(true));
    assert_eq!(left.uncompensated.iter().filter(|comp| matches!(comp, Compensation::Node(_))).count(), 2);
    // Nobody takes it up by itself, however often: not from the journal, not from the marker.
    let writes = lab.world.log().len();
    let state = resume(&lab).await;
    assert_eq!(state.exit(), Exit::HostsLeft);
    closed_again(&lab);
    assert_eq!(lab.world.log().len(), writes, "nothing is written");
    // A person says so, and it fails again: the Job is a new one.
    let run = state.run.clone();
    let name = plan.order[0].clone();
    let state = lab.run(async |engine| rollout::retry(engine, &run, &name).await).await.unwrap();
    assert!(failure(host_of(&state, 1)).contains("CUDA error 719"), "{state:#?}");
    closed_again(&lab);
    let jobs =
        lab.world.log().into_iter().filter(|write| write.call.starts_with("create") && write.id.contains("/jobs/"));
    assert_eq!(jobs.filter(|write| write.effect && write.id.contains("k8s-a")).count(), 2);
    // Or leaves it to somebody: the marks go, the cordons stay.
    let state = lab.run(async |engine| rollout::give_up(engine, &run, &name).await).await.unwrap();
    assert_eq!(host_of(&state, 1).phase, HostPhase::Done { outcome: Outcome::GivenUp }, "{state:#?}");
    assert_eq!((stands(&lab, "k8s-a", "gpu-a"), marker(&lab, 1)), ((true, None), String::new()));
}

#[tokio::test(start_paused = true)]
async fn a_validation_that_fails_leaves_the_host_open_where_the_pool_says_so() {
    let nodes = Nodes {
        clusters: BAD_GPU,
        rollout: "maxUnavailable: 1, maxReboots: 2, onValidationFailure: keepOpen",
        ..Nodes::default()
    };
    let (lab, plan) = nodes.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft);
    assert!(!closed(&lab, 1));
    assert!(lab.world.tally().vms["vm-1"].on);
    let HostPhase::Failed { left_as: Some(left), .. } = &host_of(&state, 1).phase else { panic!("{state:#?}") };
    let nodes = left.uncompensated.iter().all(|comp| matches!(comp, Compensation::Node(_)));
    assert!(nodes && !left.uncompensated.is_empty(), "its host is open, and its VMs run: {left:?}");
    assert_eq!(stands(&lab, "k8s-a", "gpu-a"), (true, Some(NodePhase::Failed)));
    assert!(marker(&lab, 1).contains("\"failed\""));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_comes_back_with_fewer_gpus_is_not_opened() {
    let vms = "[{name: vm-1, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}], node: {cluster: k8s-a, name: gpu-a, boot: {loses: 1}}}, \
        {name: vm-2, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}], node: {cluster: k8s-b, name: gpu-b}}]";
    let (lab, plan) = Nodes { vms, ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    let why = failure(host_of(&state, 1));
    assert!(why.contains("gpu-a") && why.contains("nvidia.com/gpu"), "{why}");
    assert!(closed(&lab, 1));
    assert_eq!(stands(&lab, "k8s-a", "gpu-a"), (true, Some(NodePhase::Failed)));
}

#[tokio::test(start_paused = true)]
async fn what_uncordons_a_node_after_its_boot_is_undone_until_it_passed() {
    let clusters = "{name: k8s-a, address: \"https://k8s-a.lab:6443\", nodes: [{name: spare-a, gpus: 4}], driverManager: {after: 20s}}, \
        {name: k8s-b, address: \"https://k8s-b.lab:6443\", nodes: [{name: spare-b, gpus: 4}]}";
    let (lab, plan) = Nodes { clusters, ..Nodes::default() }.planned().await;
    let (state, watch) = watched(&lab, &plan).await;
    let state = state_of(state);
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    let again = watch.events().into_iter().filter(|event| matches!(event, Event::NodeRecordoned { .. })).count();
    assert!(again > 0, "the driver's manager uncordons at each boot");
    are_free(&lab);
}

#[tokio::test(start_paused = true)]
async fn somebody_who_uncordons_a_node_that_is_drained_wins() {
    let clusters = "{name: k8s-a, address: \"https://k8s-a.lab:6443\", workloads: [{name: web, replicas: 1, gpu: 1, pdb: {minAvailable: 1}}]}, \
        {name: k8s-b, address: \"https://k8s-b.lab:6443\", nodes: [{name: spare-b, gpus: 4}]}";
    let world = "actors: [{who: somebody, once: {method: \"patch nodes\", object: k8s-a/nodes/gpu-a}, after: 5m, does: {uncordon: {cluster: k8s-a, node: gpu-a}}}]";
    let (lab, plan) = Nodes { clusters, world, ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    let why = failure(host_of(&state, 1));
    assert!(why.contains("gpu-a of k8s-a: the node was uncordoned"), "{why}");
    are_free(&lab);
    assert_eq!(asked(&lab, "EnterMaintenanceMode_Task"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_run_stopped_while_it_drains_goes_on_or_is_given_back() {
    for (step, abort) in [
        (StepKind::CordonNode, false),
        (StepKind::CordonNode, true),
        (StepKind::DrainNode, false),
        (StepKind::DrainNode, true),
        (StepKind::StopVm, false),
        (StepKind::StopVm, true),
        (StepKind::AwaitNode, false),
        (StepKind::ValidateNode, false),
    ] {
        let (lab, plan) = Nodes::default().planned().await;
        let state = interrupted(&lab, &plan, once_after(step, true)).await;
        assert!(matches!(host_of(&state, 1).phase, HostPhase::Left { .. }), "{step}: {:?}", host_of(&state, 1).phase);
        let marked = |lab: &Lab| stands(lab, "k8s-a", "gpu-a").1.is_some();
        assert!(marked(&lab), "{step}");
        let run = state.run;
        let state = match abort {
            true => lab.run(async |engine| rollout::abort(engine, &run).await).await.unwrap(),
            false => resume(&lab).await,
        };
        assert_eq!(state.exit(), Exit::Done, "{step}, abort {abort}: {state:#?}");
        are_free(&lab);
        assert_eq!((closed(&lab, 1), marker(&lab, 1)), (false, String::new()), "{step}");
        assert_eq!(asked(&lab, "UpdateGraphicsConfig"), usize::from(!abort), "{step}");
        let tally = lab.world.tally();
        assert!(tally.vms["vm-1"].on && tally.vms["vm-2"].on, "{step}");
        // A node whose VM was stopped passes its gate before it is given back, too.
        let jobs = lab.world.log().into_iter().filter(|write| write.id.contains("/jobs/") && write.effect).count();
        assert_eq!(jobs > 0, !abort || step == StepKind::StopVm, "{step}, abort {abort}: {jobs} writes of Jobs");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_somebody_opens_between_its_drain_and_its_stop_is_not_stopped() {
    let world = "actors: [{who: somebody, once: {method: EnterMaintenanceMode_Task, object: esx-01}, after: 0s, \
                 does: {uncordon: {cluster: k8s-a, node: gpu-a}}}]";
    let (lab, plan) = Nodes { world, ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    let why = failure(host_of(&state, 1));
    assert!(why.contains("uncordoned"), "{why}");
    assert_eq!((asked(&lab, "ShutdownGuest"), asked(&lab, "UpdateGraphicsConfig")), (0, 0));
    are_free(&lab);
    assert_eq!((closed(&lab, 1), marker(&lab, 1)), (false, String::new()));
}

#[tokio::test(start_paused = true)]
async fn a_cordon_that_nobody_could_read_back_is_put_back_all_the_same() {
    let mut cordoned = 0;
    for world in [
        "faults: [{face: k8s, method: \"get nodes\", object: k8s-a/nodes/gpu-a, onCall: 3, times: 60, then: {status: 401}}]",
        "faults: [{face: k8s, method: \"get nodes\", object: k8s-a/nodes/gpu-a, onCall: 3, times: 60, then: {status: 500}}]",
        "faults: [{face: k8s, method: \"get nodes\", object: k8s-a/nodes/gpu-a, onCall: 3, times: 120, then: {status: 500}}]",
    ] {
        let (lab, plan) = Nodes { world, ..Nodes::default() }.planned().await;
        let state = lab.apply(&plan).await.unwrap();
        assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
        let cordons = ours(&lab).iter().filter(|(call, id)| call == "patch nodes" && id == "k8s-a/nodes/gpu-a").count();
        cordoned += cordons;
        assert!(stands(&lab, "k8s-a", "gpu-a").1.is_none() || !marker(&lab, 1).is_empty(), "{world}");
        let run = state.run;
        for _ in 0..6 {
            if marker(&lab, 1).is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_secs(3600)).await;
            lab.run(async |engine| rollout::abort(engine, &run).await).await.unwrap();
        }
        are_free(&lab);
        assert_eq!(marker(&lab, 1), "", "{world}");
    }
    assert!(cordoned > 0, "it was cordoned before it could not be read");
}

#[tokio::test(start_paused = true)]
async fn nodes_that_boot_slowly_are_given_back_once_they_passed() {
    let vms = "[{name: vm-1, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}], node: {cluster: k8s-a, name: gpu-a, boot: {gpus: 12m}}}, \
        {name: vm-2, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}], node: {cluster: k8s-b, name: gpu-b, boot: {gpus: 12m}}}]";
    let (lab, plan) = Nodes { vms, ..Nodes::default() }.planned().await;
    let state = interrupted(&lab, &plan, once_after(StepKind::StopVm, true)).await;
    let run = state.run;
    let state = lab.run(async |engine| rollout::abort(engine, &run).await).await.unwrap();
    assert_eq!(host_of(&state, 1).phase, HostPhase::Done { outcome: Outcome::AsItWas }, "{state:#?}");
    are_free(&lab);
}

/// Both nodes have passed their gate; the first one is given back, and the VM of the second one is powered off
/// before its uncordon is tried once more.
pub const OFF_AT_THE_END: &str = "faults: [{face: k8s, method: \"patch nodes\", object: k8s-b/nodes/gpu-b, onCall: 3, times: 30, then: {status: 500}}]
  actors: [{who: anna, host: esx-01, once: {method: \"patch nodes\", object: k8s-a/nodes/gpu-a, onCall: 3}, after: 0s, does: {powerOff: {vm: vm-2}}}]";

#[tokio::test(start_paused = true)]
async fn a_node_that_was_given_back_is_not_taken_down_again() {
    let (lab, plan) = Nodes { world: OFF_AT_THE_END, ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    assert_eq!(stands(&lab, "k8s-a", "gpu-a"), (false, None), "it passed, and serves");
    assert!(stands(&lab, "k8s-b", "gpu-b").0, "it stays cordoned");
    assert!(!closed(&lab, 1) && lab.world.tally().vms["vm-1"].on);
    let HostPhase::Failed { left_as: Some(left), .. } = &host_of(&state, 1).phase else { panic!("{state:#?}") };
    assert!(left.notes.iter().any(|note| note.contains("gpu-a") && note.contains("not closed again")), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn pods_that_come_while_somebody_uncordons_a_node_are_evicted_before_it_is_judged() {
    // It waits for the GPU that was drained, and the driver's manager uncordons once GPUs are on offer.
    let clusters = "{name: k8s-a, address: \"https://k8s-a.lab:6443\", workloads: [{name: web, replicas: 1, gpu: 1}], driverManager: {after: 75s}}, \
        {name: k8s-b, address: \"https://k8s-b.lab:6443\", nodes: [{name: spare-b, gpus: 4}]}";
    let (lab, plan) = Nodes { clusters, ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    are_free(&lab);
    let evicted =
        ours(&lab).into_iter().filter(|(call, id)| call == "create pods/eviction" && id.starts_with("k8s-a/"));
    assert_eq!(evicted.count(), 2, "once for the drain, once for the uncordon of somebody");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_never_ends_and_one_whose_image_cannot_be_pulled_open_nothing() {
    const NEVER: &str = "{name: k8s-a, address: \"https://k8s-a.lab:6443\", nodes: [{name: spare-a, gpus: 4}], \
          containers: [{image: \"cuda-vector-add*\", ends: never}]}, \
        {name: k8s-b, address: \"https://k8s-b.lab:6443\", nodes: [{name: spare-b, gpus: 4}]}";
    const NOT_PULLED: &str = "{name: k8s-a, address: \"https://k8s-a.lab:6443\", nodes: [{name: spare-a, gpus: 4}], \
          containers: [{image: \"cuda-vector-add*\", ends: notPulled}]}, \
        {name: k8s-b, address: \"https://k8s-b.lab:6443\", nodes: [{name: spare-b, gpus: 4}]}";
    for (clusters, word) in [(NEVER, "DeadlineExceeded"), (NOT_PULLED, "cuda-vector-add:1")] {
        let (lab, plan) = Nodes { clusters, ..Nodes::default() }.planned().await;
        let state = lab.apply(&plan).await.unwrap();
        assert_eq!(state.exit(), Exit::HostsLeft, "{word}: {state:#?}");
        let why = failure(host_of(&state, 1));
        assert!(why.contains(word) && why.contains("gpu-a"), "{why}");
        assert!(closed(&lab, 1), "{word}");
        assert_eq!(stands(&lab, "k8s-a", "gpu-a"), (true, Some(NodePhase::Failed)), "{word}");
    }
}

/// Nothing was done to the host, its VMs and its nodes, by nobody.
fn is_untouched(lab: &Lab, state: &RunState) {
    assert_eq!(state.exit(), Exit::WorkLeft, "{state:#?}");
    are_free(lab);
    assert_eq!((closed(lab, 1), marker(lab, 1)), (false, String::new()));
    assert_eq!((host_of(state, 1).armed.as_slice(), ours(lab)), (&[][..], Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_a_cluster_would_not_take_refuses_the_host_before_anything_is_touched() {
    for (then, word) in [
        ("fault: Forbidden", "cannot do this"),
        ("fault: Invalid", "admission webhook"),
        ("fault: NamespaceTerminating", "being terminated"),
        // Unclear to the end.
        ("fault: InternalError", "Internal error"),
        ("status: 503", "503"),
        ("delay: 90s", "did not answer"),
    ] {
        let faults = format!(
            "faults: [{{face: k8s, method: \"create jobs\", object: k8s-b, dryRun: only, onCall: 1, times: 99, then: {{{then}}}}}]"
        );
        let (lab, plan) = Nodes { world: Box::leak(faults.into_boxed_str()), ..Nodes::default() }.planned().await;
        let state = lab.apply(&plan).await.unwrap();
        let HostPhase::Held { why } = &host_of(&state, 1).phase else { panic!("{then}: {state:#?}") };
        let why = why.to_string();
        for word in ["templates/cuda-vector-add.yaml", "gpu-b of k8s-b", "default/poolwright-", word] {
            assert!(why.contains(word), "{then}: {why}");
        }
        is_untouched(&lab, &state);
    }
    // What can be known of a namespace, and of a field.
    for (path, value, word) in [
        ("/metadata/namespace", Value::from("gpu-check"), "namespaces \"gpu-check\" not found"),
        ("/spec/template/spec/containers/0/volumeMount", Value::Null, "unknown field"),
    ] {
        let lab = Nodes::default().lab();
        let mut plan = lab.plan().await;
        let job = &mut plan.hosts[0].guests[0].validate[0].job;
        let (parent, key) = path.rsplit_once('/').unwrap();
        let value = if value.is_null() { serde_json::json!([]) } else { value };
        job.pointer_mut(parent).unwrap()[key] = value;
        let state = lab.apply(&plan).await.unwrap();
        let HostPhase::Held { why } = &host_of(&state, 1).phase else { panic!("{path}: {state:#?}") };
        assert!(why.to_string().contains(word), "{why}");
        is_untouched(&lab, &state);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_only_starts_is_asked_again_and_a_signal_ends_the_asking() {
    let world = "faults: [{face: k8s, method: \"create jobs\", object: k8s-b, dryRun: only, onCall: 1, times: 3, then: {status: 503}}]";
    let (lab, plan) = Nodes { world, ..Nodes::default() }.planned().await;
    assert_eq!(lab.apply(&plan).await.unwrap().exit(), Exit::Done);
    are_free(&lab);
    let world = "faults: [{face: k8s, method: \"create jobs\", object: k8s-b, dryRun: only, onCall: 1, times: 99, then: {delay: 90s}}]";
    let (lab, plan) = Nodes { world, ..Nodes::default() }.planned().await;
    let state = signalled(&lab, &plan, Duration::from_secs(20), Signal::Interrupt).await;
    assert_eq!(state.exit(), Exit::Interrupted);
    are_free(&lab);
    assert_eq!((marker(&lab, 1), ours(&lab)), (String::new(), Vec::new()));
}

/// Its nodes come back by their gate alone.
#[tokio::test(start_paused = true)]
async fn a_cluster_without_jobs_gets_its_nodes_back_beside_one_with_jobs() {
    let (lab, plan) = Nodes { both: false, ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    are_free(&lab);
    let jobs: Vec<String> =
        ours(&lab).into_iter().filter(|(call, _)| call == "create jobs").map(|call| call.1).collect();
    assert!(!jobs.is_empty() && jobs.iter().all(|id| id.starts_with("k8s-a/")), "{jobs:?}");
}

/// gpu-a runs on vm-1 and names the machine of vm-9, as after a clone; the pool selects VMs by their names.
#[tokio::test(start_paused = true)]
async fn a_ready_node_that_names_a_vm_that_is_off_may_be_any_vm_that_is_no_node() {
    let nodes = |power: &str| {
        let vms = format!(
            "[{{name: vm-1, host: esx-01, power: on, migrate: false, devices: [{{vgpu: nvidia_h100l-23c}}], \
               node: {{cluster: k8s-a, name: gpu-a, providerId: missing, systemUUID: {{of: vm-9}}}}}}, \
              {{name: vm-9, host: esx-02, power: {power}}}]"
        );
        Nodes { vms: Box::leak(vms.into_boxed_str()), may: "{mayStop: [{name: \"vm-*\"}]}", ..Nodes::default() }
    };
    let plan = nodes("off").lab().plan().await;
    assert_eq!(plan.hosts.len(), 0, "{:#?}", plan.hosts);
    let said = plan.findings.iter().find(|finding| finding.id.0 == "PW-NODE-02").unwrap();
    assert_eq!(said.message, "vm-1 may be a node of k8s-a: where gpu-a runs is not known");
    assert_eq!(said.evidence, ["gpu-a: it is Ready, and the VM that it names, vm-9, does not run"]);
    // While vm-9 runs, nobody can see that it is not gpu-a; a visit looks again.
    let (lab, plan) = nodes("on").planned().await;
    let fleet = lab.connect().await;
    let roster = fleet.roster().await.unwrap();
    let seen = fleet.facts(&roster.hosts).await;
    let vms = seen.hosts.values().flat_map(|record| record.view.as_ref().unwrap().vms.known().unwrap());
    let other = vms.into_iter().find(|vm| vm.name == Fact::Known("vm-9".into())).unwrap();
    let task = fleet.vcenter().power_off(&other.moref).await.unwrap();
    fleet.vcenter().wait_task(&task, Duration::from_secs(60), |_| {}).await.unwrap();
    let state = lab.apply(&plan).await.unwrap();
    assert_ne!(state.exit(), Exit::Done, "{state:#?}");
    assert!(!ours(&lab).iter().any(|(call, _)| call == "ShutdownGuest"), "{:#?}", ours(&lab));
    let held = format!("{:?}", host_of(&state, 1));
    assert!(held.contains("vm-1 may be a node of k8s-a"), "{held}");
}
