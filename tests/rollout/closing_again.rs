//! A host whose nodes did not pass their gate is closed again: what it waits for, what ends that, and who
//! goes on.

use std::time::Duration;

use poolwright::model::NodePhase;
use poolwright::plan::Plan;
use poolwright::rollout::{self, Engine, Event, Exit, HostPhase, LeftAs, Outcome, RunState, StateDir, StepKind};

use super::crash::{apply, trapped};
use super::nodes::{BAD_GPU, Nodes, OFF_AT_THE_END, stands};
use super::scene::{asked, closed, host_of, interrupted, marker, resume, watched};
use super::trap::{Point, Trap};
use crate::support::lab::{Lab, in_memory};
use crate::support::person;

/// A Job that runs into its deadline: its pod still ends when the node has failed.
const NEVER_ENDS: &str = "{name: k8s-a, address: \"https://k8s-a.lab:6443\", nodes: [{name: spare-a, gpus: 4}], \
      containers: [{image: \"cuda-vector-add*\", ends: never}]}, \
    {name: k8s-b, address: \"https://k8s-b.lab:6443\", nodes: [{name: spare-b, gpus: 4}]}";

/// Guests that take their time, so that the host closes for a while.
const SLOW: &str = "[{name: vm-1, host: esx-01, power: on, migrate: false, shutdownTakes: 3m, devices: [{vgpu: nvidia_h100l-23c}], node: {cluster: k8s-a, name: gpu-a}}, \
    {name: vm-2, host: esx-01, power: on, migrate: false, shutdownTakes: 3m, devices: [{vgpu: nvidia_h100l-23c}], node: {cluster: k8s-b, name: gpu-b}}]";

fn left_as(state: &RunState) -> &LeftAs {
    match &host_of(state, 1).phase {
        HostPhase::Failed { left_as: Some(left), .. } => left,
        other => panic!("{other:?}"),
    }
}

fn assert_closed_again(lab: &Lab) {
    assert!(closed(lab, 1), "in maintenance mode again");
    let tally = lab.world.tally();
    assert!(!tally.vms["vm-1"].on && !tally.vms["vm-2"].on, "its nodes are off");
    assert!(marker(lab, 1).contains("\"failed\""), "{}", marker(lab, 1));
}

/// A run whose process died once the host had begun to close again.
async fn dies_while_closing_again() -> (Lab, Plan) {
    let nodes = || Nodes { clusters: BAD_GPU, vms: SLOW, ..Nodes::default() };
    let (lab, plan) = nodes().planned().await;
    let trap = Trap::new(Point::Never, &lab.world);
    apply(&lab, &plan, &trap).await;
    let log = lab.world.log();
    let again = log.iter().rposition(|write| write.call == "EnterMaintenanceMode_Task").unwrap() + 1;
    let before = log.len() - trap.writes();

    let (lab, plan) = nodes().planned().await;
    let lived = apply(&lab, &plan, &Trap::new(Point::Write(again - before), &lab.world)).await;
    assert!(lived.is_none() && asked(&lab, "EnterMaintenanceMode_Task") == 2, "it died while the host closed again");
    (lab, plan)
}

/// Its journal is lost, and whoever took it up by its marks dies, too: the next one finds it closing.
#[tokio::test(start_paused = true)]
async fn a_host_that_closes_again_is_closed_after_two_deaths() {
    let mut deaths = 0;
    for nth in 1..=4 {
        let (lab, plan) = dies_while_closing_again().await;
        let elsewhere = in_memory();
        let state = StateDir::open(elsewhere.path()).unwrap();
        let trap = Trap::new(Point::Write(nth), &lab.world);
        let second = async |engine: Engine<'_>| rollout::resume_from_live(engine, &plan).await.unwrap();
        if trapped(&lab, &state, &trap, second).await.is_some() {
            continue;
        }
        deaths += 1;
        let run = state.runs().unwrap().remove(0);
        let third = async |engine: Engine<'_>| rollout::resume(engine, &run).await;
        let ended = person::with(&lab, Some(&state), third).await.unwrap();
        assert_eq!(ended.exit(), Exit::HostsLeft, "write {nth}: {ended:#?}");
        assert_closed_again(&lab);
    }
    assert!(deaths >= 2, "{deaths}");
}

/// A node that was given back serves again, however long one waits.
#[tokio::test(start_paused = true)]
async fn a_reason_that_lasts_is_not_waited_out() {
    let (lab, plan) = Nodes { world: OFF_AT_THE_END, ..Nodes::default() }.planned().await;
    let (state, watch) = watched(&lab, &plan).await;
    assert!(left_as(&state.unwrap()).notes.iter().any(|note| note.contains("was given back and serves again")));
    let entries = watch.entries.lock().unwrap();
    let at = |is: fn(&Event) -> bool| entries.iter().rfind(|entry| is(&entry.e)).unwrap().at;
    let failed = at(|event| matches!(event, Event::StepFailed { .. }));
    let left = at(|event| matches!(event, Event::HostLeft { .. }));
    assert!(left.duration_since(failed).unsigned_abs() < Duration::from_secs(60), "{failed} to {left}");
}

/// A signal while the pods of a Job end: nothing is done to the host any more, and whoever goes on closes it.
#[tokio::test(start_paused = true)]
async fn a_signal_ends_the_wait_and_the_next_process_closes_the_host() {
    let (lab, plan) = Nodes { clusters: NEVER_ENDS, ..Nodes::default() }.planned().await;
    let fails = |event: &Event| u32::from(matches!(event, Event::StepFailed { step: StepKind::ValidateNode, .. }));
    let state = interrupted(&lab, &plan, fails).await;
    assert_eq!(state.exit().code(), 130, "{state:#?}");
    assert!(!closed(&lab, 1) && asked(&lab, "EnterMaintenanceMode_Task") == 1, "it is not closed again yet");
    let state = resume(&lab).await;
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    assert_eq!(left_as(&state).maintenance, Some(true));
    assert_closed_again(&lab);
    assert_eq!(stands(&lab, "k8s-a", "gpu-a"), (true, Some(NodePhase::Failed)));
}

/// While the VM of one node shuts down a second time, somebody takes another one: that is looked at before
/// its VM is stopped, too, and the host does not close under it.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_opened_while_its_host_closes_again_is_not_taken_down() {
    let world = "actors: [{who: anna, once: {method: ShutdownGuest, object: vm-1, onCall: 2}, after: 3s, \
        does: {uncordon: {cluster: k8s-b, node: gpu-b}}}]";
    let (lab, plan) = Nodes { clusters: BAD_GPU, vms: SLOW, world, ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    let tally = lab.world.tally();
    assert!((tally.vms["vm-1"].stops, tally.vms["vm-2"].stops) == (2, 1) && tally.vms["vm-2"].on, "{tally:?}");
    assert!(!stands(&lab, "k8s-b", "gpu-b").0, "it serves");
    let left = left_as(&state);
    assert!(left.notes.iter().any(|note| note.contains("is open, unverified: gpu-b of k8s-b")), "{left:?}");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(!closed(&lab, 1) && asked(&lab, "CancelTask") == 1, "nothing goes on closing it");
}

/// Given up while it closes again: what we asked for is cancelled, and the host is somebody's.
#[tokio::test(start_paused = true)]
async fn a_host_that_closes_again_is_given_up_in_one_command() {
    let (lab, plan) = dies_while_closing_again().await;
    let (run, name) = (lab.state.runs().unwrap().remove(0), plan.order[0].clone());
    let state = lab.run(async |engine| rollout::give_up(engine, &run, &name).await).await.unwrap();
    assert_eq!(host_of(&state, 1).phase, HostPhase::Done { outcome: Outcome::GivenUp }, "{state:#?}");
    assert_eq!((asked(&lab, "CancelTask"), marker(&lab, 1)), (1, String::new()));
    let told = host_of(&state, 1).left_alone.iter().filter(|(_, found)| found.contains("may power off later"));
    assert_eq!(told.count(), 2, "of both VMs that run: {state:#?}");
    assert_eq!(stands(&lab, "k8s-a", "gpu-a"), (true, None), "cordoned, without our mark");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(!closed(&lab, 1), "nothing goes on closing it");
}

/// Somebody opens a node again and again, second by second: what is said of it in the end is what was seen.
#[tokio::test(start_paused = true)]
async fn a_node_that_somebody_keeps_opening_is_told_as_open() {
    let opens = |once: &str, after: &str| {
        format!("{{who: anna, once: {once}, after: {after}, does: {{uncordon: {{cluster: k8s-a, node: gpu-a}}}}}}")
    };
    let of_patch =
        |nth: u32| opens(&format!("{{method: \"patch nodes\", object: k8s-a/nodes/gpu-a, onCall: {nth}}}"), "1s");
    let actors: Vec<String> =
        (3..=120).map(of_patch).chain([opens("{method: PowerOnVM_Task, object: vm-1}", "20s")]).collect();
    let world = format!("actors: [{}]", actors.join(", "));
    let (lab, plan) = Nodes { world: world.leak(), ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    assert_eq!(stands(&lab, "k8s-a", "gpu-a"), (false, Some(NodePhase::Failed)), "open in fact");
    let left = left_as(&state);
    let opened: Vec<&str> = left.opened.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(opened, ["gpu-a"], "{left:?}");
}
