//! What proves a node, and for how long: its gate is of one boot, on one host, and pods that come before it
//! has passed are no part of it.

use poolwright::model::NodePhase;
use poolwright::report::{self, Again, Paper};
use poolwright::rollout::Exit;

use super::nodes::{Nodes, are_free, stands};
use super::scene::{closed, failure, host_of};

/// The Job of the second node takes its time; the first one has passed by then.
const LONG: &str = "{name: k8s-a, address: \"https://k8s-a.lab:6443\", nodes: [{name: spare-a, gpus: 4}]}, \
    {name: k8s-b, address: \"https://k8s-b.lab:6443\", nodes: [{name: spare-b, gpus: 4}], containers: [{image: \"cuda*\", takes: 8m}]}";

/// A node that has passed waits for its neighbours; its VM is started anew meanwhile. Nobody has proven that
/// boot, and wherever it has landed, its GPUs.
#[tokio::test(start_paused = true)]
async fn a_node_that_was_started_anew_after_its_gate_has_not_passed_it() {
    let world = "actors: [\
        {who: anna, host: esx-01, once: {method: PowerOnVM_Task, object: vm-1}, after: 250s, does: {powerOff: {vm: vm-1}}}, \
        {who: anna, host: esx-01, once: {method: PowerOnVM_Task, object: vm-1}, after: 310s, does: {powerOn: {vm: vm-1}}}]";
    let (lab, plan) = Nodes { clusters: LONG, world, ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    let why = failure(host_of(&state, 1));
    assert!(why.contains("does not any more") && why.contains("started anew"), "{why}");
    assert_eq!(stands(&lab, "k8s-a", "gpu-a"), (true, Some(NodePhase::Failed)), "{state:#?}");
    assert!(closed(&lab, 1), "its host is closed again");
}

/// Its turn to be looked at has not come: somebody uncordons it all the same, and it is cordoned again at once.
#[tokio::test(start_paused = true)]
async fn a_node_whose_turn_has_not_come_is_kept_cordoned() {
    let vms = "[{name: vm-1, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}], \
          node: {cluster: k8s-a, name: gpu-a, boot: {ready: 1m, gpus: 15m}}}, \
        {name: vm-2, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}], node: {cluster: k8s-b, name: gpu-b}}]";
    let world = "actors: [{who: anna, once: {method: PowerOnVM_Task, object: vm-2}, after: 150s, \
        does: {uncordon: {cluster: k8s-b, node: gpu-b}}}]";
    let (lab, plan) = Nodes { vms, world, ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    are_free(&lab);
    let log = lab.world.log();
    let of_node = |write: &&poolwright::sim::Write| write.effect && write.id == "k8s-b/nodes/gpu-b";
    let opened = log.iter().filter(of_node).position(|write| write.who == "anna").expect("anna uncordons it");
    let (hers, ours) = {
        let writes: Vec<_> = log.iter().filter(of_node).collect();
        (writes[opened].at, writes[opened + 1].at)
    };
    // One round of looks.
    assert!(ours.duration_since(hers).as_secs() <= 10, "opened at {hers}, cordoned again at {ours}");
}

/// A token that has just expired when the Job is asked for: nothing was found of the node, so it is asked
/// again.
#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_hear_us_for_a_moment_fails_no_node() {
    let world = "faults: [{face: k8s, method: \"create jobs\", object: k8s-a, onCall: 1, times: 3, then: {fault: Unauthorized}}]";
    let (lab, plan) = Nodes { world, ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    are_free(&lab);
}

/// A Job that has passed is deleted once its server takes that; one that it does not let go is told at the end, and
/// its node is uncordoned all the same.
#[tokio::test(start_paused = true)]
async fn a_job_that_has_passed_is_deleted_or_told() {
    let refusing = |times: u32, then: &str| {
        format!(
            "faults: [{{face: k8s, method: \"delete jobs\", object: k8s-a, onCall: 1, times: {times}, then: {{{then}}}}}]"
        )
    };
    let cases = [
        (refusing(3, "status: 503"), false),
        (refusing(99, "status: 503"), true),
        (refusing(99, "fault: Forbidden"), true),
    ];
    for (world, left) in cases {
        let world = world.leak();
        let (lab, plan) = Nodes { world, ..Nodes::default() }.planned().await;
        let state = lab.apply(&plan).await.unwrap();
        assert_eq!(state.exit(), Exit::Done, "{world}: {state:#?}");
        are_free(&lab);
        let jobs = lab.world.snapshot()["guests"]["k8s-a"]["jobs"].as_array().unwrap().len();
        let mut paper = Paper::new();
        report::run(&mut paper, &state, Some(&plan), &Again::default(), None);
        let report = paper.render(false).split_whitespace().collect::<Vec<_>>().join(" ");
        let told = report.matches("of k8s-a is left there").count();
        assert_eq!((jobs, told), if left { (1, 1) } else { (0, 0) }, "{world}: {report}");
    }
}

/// A GPU that works at the second try: in another pod, or in the same one. The node is given back, and the report
/// tells of the try that failed.
#[tokio::test(start_paused = true)]
async fn a_job_that_passes_at_its_second_try_has_passed_and_the_first_is_told() {
    let clusters = "{name: k8s-a, address: \"https://k8s-a.lab:6443\", nodes: [{name: spare-a, gpus: 4}], \
          containers: [{image: \"cuda*\", ends: {fails: 7}, times: 1}, {image: \"cuda*\"}]}, \
        {name: k8s-b, address: \"https://k8s-b.lab:6443\", nodes: [{name: spare-b, gpus: 4}]}";
    for (restart, told) in [
        ("Never", "ended with exit code 7"),
        ("OnFailure", "was started again 1 time, the last time after exit code 7"),
    ] {
        let lab = Nodes { clusters, ..Nodes::default() }.lab();
        let mut plan = lab.plan().await;
        let guest = plan.hosts[0].guests.iter_mut().find(|guest| guest.cluster.value == "k8s-a").unwrap();
        let spec = &mut guest.validate[0].job["spec"];
        spec["backoffLimit"] = 2.into();
        spec["template"]["spec"]["restartPolicy"] = restart.into();
        let state = lab.apply(&plan).await.unwrap();
        assert_eq!(state.exit(), Exit::Done, "{restart}: {state:#?}");
        are_free(&lab);
        assert_eq!(lab.world.tally().vms["vm-1"].stops, 1, "{restart}");
        let mut paper = Paper::new();
        report::run(&mut paper, &state, Some(&plan), &Again::default(), None);
        let report = paper.render(false).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(report.contains(told), "{restart}: {report}");
    }
}
