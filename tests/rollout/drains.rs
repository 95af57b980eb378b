//! What the engine does when a drain does not end by its timeout.

use std::time::Duration;

use poolwright::report::{self, Again, Paper};
use poolwright::rollout::{Event, Exit, FailureClass, HostPhase, Stage, StepKind};

use super::nodes::{Nodes, are_free};
use super::scene::{asked, closed, failure, host_of, marker, watched};

/// The third pod is on our node and never ready, and its budget lets none go.
const NEVER_READY: &str = "{name: k8s-a, address: \"https://k8s-a.lab:6443\", nodes: [{name: spare-a, gpus: 4}], \
      workloads: [{name: web, replicas: 3, gpu: 1, unreadyOn: [gpu-a], pdb: {minAvailable: 3}}]}, \
    {name: k8s-b, address: \"https://k8s-b.lab:6443\", nodes: [{name: spare-b, gpus: 4}]}";

/// It is named within seconds; at the deadline the host fails and is as it was before (docs/decisions/013 says why
/// it is not held with its nodes cordoned).
#[tokio::test(start_paused = true)]
async fn e01_at_the_deadline_of_its_drain_a_host_fails_and_its_nodes_are_uncordoned() {
    let (lab, plan) = Nodes { clusters: NEVER_READY, timeout: "10m", ..Nodes::default() }.planned().await;
    let (state, watch) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    let why = failure(host_of(&state, 1));
    assert!(why.contains("is not drained within 600 s") && why.contains("default/web needs 3"), "{why}");
    let HostPhase::Failed { at, class, left_as: Some(left), .. } = &host_of(&state, 1).phase else {
        panic!("{state:#?}")
    };
    assert_eq!((*at, *class), (Stage::DrainingNodes, FailureClass::Timeout));
    assert!(left.is_clean(), "{left:?}");
    are_free(&lab);
    assert_eq!((closed(&lab, 1), marker(&lab, 1)), (false, String::new()));
    assert_eq!((asked(&lab, "EnterMaintenanceMode_Task"), asked(&lab, "ShutdownGuest")), (0, 0));

    let entries = watch.entries.lock().unwrap();
    let at = |is: fn(&Event) -> bool| entries.iter().find(|entry| is(&entry.e)).unwrap().at;
    let begun =
        at(|event| matches!(event, Event::StepStarted { step, .. } if StepKind::from(step) == StepKind::DrainNode));
    let blocked = at(|event| matches!(event, Event::NodeBlocked { .. }));
    let failed = at(|event| matches!(event, Event::StepFailed { .. }));
    let (told, ended) = (blocked.duration_since(begun), failed.duration_since(begun));
    assert!(told.unsigned_abs() < Duration::from_secs(5), "{told:#}");
    assert!(ended.unsigned_abs() >= Duration::from_secs(600), "it has all its time: {ended:#}");
}

/// A pod without a controller ends for good as its node is drained: the report says so, and of what it has lost.
#[tokio::test(start_paused = true)]
async fn a_pod_that_nothing_starts_again_is_told_at_the_end() {
    const BARE: &str = "{name: k8s-a, address: \"https://k8s-a.lab:6443\", nodes: [{name: spare-a, gpus: 4}], \
          workloads: [{name: lab, kind: bare, nodes: [gpu-a], emptyDir: true}, {name: web, replicas: 1, nodes: [gpu-a, spare-a]}]}, \
        {name: k8s-b, address: \"https://k8s-b.lab:6443\", nodes: [{name: spare-b, gpus: 4}]}";
    let (lab, plan) = Nodes { clusters: BARE, ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    let ended = &host_of(&state, 1).ended;
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert!(ended[0].pod.contains("default/lab (nothing starts it again; its emptyDir is lost)"), "{ended:?}");
    let mut paper = Paper::new();
    report::run(&mut paper, &state, Some(&plan), &Again::default(), None);
    let report = paper.render(false);
    assert!(report.contains("evicted from the node gpu-a of k8s-a: pod default/lab"), "{report}");
}
