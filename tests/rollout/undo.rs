//! A visit that fails before a mode is written gives back by itself all that it did: maintenance first,
//! then VMs, then nodes.

use std::time::Duration;

use poolwright::model::NodePhase;
use poolwright::plan::{Plan, Step};
use poolwright::rollout::{self, Event, Exit, HostPhase, LeftAs, RunState, Stage, StateDir, StepKind};

use super::budget::THEIRS;
use super::crash::{apply, cut_journal};
use super::nodes::{CLUSTERS, Nodes, are_free, stands};
use super::scene::{asked, closed, failure, host_of, hosts_as_they_are, interrupted, marker, watched};
use super::trap::{Point, Trap};
use super::ways::once_after;
use crate::support::lab::{Lab, in_memory};
use crate::support::person;

/// One node moves live, the other is stopped.
const ONE_MOVES: &str = "[{name: vm-1, host: esx-01, power: on, node: {cluster: k8s-a, name: gpu-a}}, \
    {name: vm-2, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}], node: {cluster: k8s-b, name: gpu-b}}]";
/// Nobody can look at the node that moved.
const NOT_SEEN: &str =
    "faults: [{face: k8s, method: \"get nodes\", object: k8s-a/nodes/gpu-a, times: 100000, then: dropBefore}]";
/// The node that moved is deleted meanwhile.
const DELETED: &str = "actors: [{who: somebody, once: {method: EnterMaintenanceMode_Task, object: esx-01}, after: 5s, \
     does: {deleteObject: {cluster: k8s-a, object: nodes/gpu-a}}}]";

fn moving(world: &'static str) -> Nodes {
    Nodes { clusters: CLUSTERS, vms: ONE_MOVES, world, ..Nodes::default() }
}

fn left_as(state: &RunState) -> &LeftAs {
    match &host_of(state, 1).phase {
        HostPhase::Failed { left_as: Some(left), .. } => left,
        other => panic!("{other:?}"),
    }
}

/// As before, but for the VM that DRS has moved: nothing moves it back (FORMATS rule 2).
fn assert_given_back(case: &str, lab: &Lab, state: &RunState) {
    assert_eq!(state.exit(), Exit::HostsLeft, "{case}: {state:#?}");
    assert!(left_as(state).is_clean(), "{case}: {:?}", left_as(state));
    assert_eq!((closed(lab, 1), marker(lab, 1)), (false, String::new()), "{case}");
    assert_eq!(asked(lab, "UpdateGraphicsConfig"), 0, "{case}");
    let tally = lab.world.tally();
    let (moved, stopped) = (&tally.vms["vm-1"], &tally.vms["vm-2"]);
    assert_eq!((moved.on, moved.stops), (true, 0), "{case}");
    assert_eq!((stopped.host.as_str(), stopped.on), ("esx-01", true), "{case}");
    assert_eq!(stands(lab, "k8s-b", "gpu-b"), (false, None), "{case}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_moved_and_is_not_as_before_gives_the_host_back() {
    for world in [NOT_SEEN, DELETED] {
        let (lab, plan) = moving(world).planned().await;
        let before = hosts_as_they_are(&lab);
        let (state, watch) = watched(&lab, &plan).await;
        let state = state.unwrap();
        let looks =
            |event: &Event| matches!(event, Event::StepStarted { step: Step::AwaitNode { stopped: false, .. }, .. });
        assert!(watch.events().iter().any(looks), "the node is looked at after its move");
        assert!(failure(host_of(&state, 1)).contains("gpu-a"), "{}", failure(host_of(&state, 1)));
        assert_given_back(world, &lab, &state);
        let calls: Vec<String> = lab.world.log().into_iter().map(|write| write.call).collect();
        let place = |call: &str| calls.iter().position(|of| of == call).unwrap_or_else(|| panic!("{call}: {calls:#?}"));
        assert!(place("ExitMaintenanceMode_Task") < place("PowerOnVM_Task"), "{calls:#?}");
        let last_node = calls.iter().rposition(|call| call == "patch nodes").unwrap();
        assert!(place("PowerOnVM_Task") < place("create jobs") && place("create jobs") < last_node, "{calls:#?}");
        assert_eq!(hosts_as_they_are(&lab), before);
    }
}

/// Killed at each line of it: the next process gives back what is left.
#[tokio::test(start_paused = true)]
async fn giving_back_is_taken_up_after_each_line() {
    let (lab, plan) = moving(NOT_SEEN).planned().await;
    let trap = Trap::new(Point::Never, &lab.world);
    assert_given_back("left alone", &lab, &apply(&lab, &plan, &trap).await.unwrap().unwrap());
    let lines = trap.lines() as u64;
    let mut points = 0;
    for line in 1..=lines {
        for from_live in [false, true] {
            let (lab, plan) = moving(NOT_SEEN).planned().await;
            apply(&lab, &plan, &Trap::new(Point::Line(line), &lab.world)).await;
            // Before it the visit is one like any other.
            if !has_failed(&lab) {
                continue;
            }
            // All is given back: whoever asks again asks for a visit like any other.
            if from_live && marker(&lab, 1).is_empty() {
                continue;
            }
            points += 1;
            let case = format!("line {line}, {}", if from_live { "from live" } else { "from the journal" });
            cut_journal(&lab.state, line);
            tokio::time::sleep(Duration::from_secs([0, 45, 600][line as usize % 3])).await;
            assert_given_back(&case, &lab, &taken_up(&lab, &plan, from_live).await);
        }
    }
    assert!(points >= 10, "{points} points");
}

fn has_failed(lab: &Lab) -> bool {
    let run = lab.state.runs().unwrap().remove(0);
    matches!(host_of(&rollout::status(&lab.state, &run).unwrap(), 1).phase, HostPhase::Failed { .. })
}

async fn taken_up(lab: &Lab, plan: &Plan, from_live: bool) -> RunState {
    if from_live {
        let elsewhere = in_memory();
        let state = StateDir::open(elsewhere.path()).unwrap();
        person::with(lab, Some(&state), async |engine| rollout::resume_from_live(engine, plan).await).await.unwrap()
    } else {
        let run = lab.state.runs().unwrap().remove(0);
        lab.run(async |engine| rollout::resume(engine, &run).await).await.unwrap()
    }
}

/// Giving back does not succeed at once: the host says what is left, and an abort gives it back later.
#[tokio::test(start_paused = true)]
async fn what_could_not_be_given_back_is_said_and_an_abort_does_it() {
    for (fault, left) in [
        ("{method: ExitMaintenanceMode_Task, times: 3, then: {taskFault: GenericVmConfigFault}}", "maintenance"),
        (
            "{method: PowerOnVM_Task, object: vm-2, times: 1, then: {taskFault: InsufficientMemoryResourcesFault}}",
            "vm-2",
        ),
        // For longer than a token takes to be renewed.
        ("{face: k8s, method: \"create jobs\", object: k8s-b, onCall: 1, times: 26, then: {status: 403}}", "gpu-b"),
    ] {
        let world = NOT_SEEN.replace("faults: [", &format!("faults: [{fault}, "));
        let (lab, plan) = moving(world.leak()).planned().await;
        let state = lab.apply(&plan).await.unwrap();
        assert_eq!(state.exit(), Exit::HostsLeft, "{fault}: {state:#?}");
        let said = left_as(&state);
        assert!(!said.is_clean() && said.marker, "{fault}: {said:?}");
        assert!(said.notes.iter().any(|note| note.contains(left)), "{fault}: {said:?}");
        if left == "maintenance" {
            assert_eq!((closed(&lab, 1), asked(&lab, "PowerOnVM_Task")), (true, 0), "nothing starts on a closed host");
        }
        let run = state.run;
        let state = lab.run(async |engine| rollout::abort(engine, &run).await).await.unwrap();
        assert_eq!(state.exit(), Exit::Done, "{fault}: {state:#?}");
        are_free(&lab);
        assert_eq!((closed(&lab, 1), marker(&lab, 1)), (false, String::new()), "{fault}");
        assert!(lab.world.tally().vms["vm-2"].on, "{fault}");
    }
}

/// A visit that is taken up on the closed host and refused there, since somebody has changed it: the same
/// way back.
#[tokio::test(start_paused = true)]
async fn a_visit_that_is_refused_on_the_closed_host_gives_it_back() {
    let world = "actors: [{who: anna, host: esx-01, once: {method: EnterMaintenanceMode_Task}, after: 20m, \
                 does: {configure: {gpu: \"0000:17:00.0\", mode: {passthrough: {label: theirs}}}}}]";
    let (lab, plan) = Nodes { world, ..Nodes::default() }.planned().await;
    let state = interrupted(&lab, &plan, once_after(StepKind::EnterMaintenance, true)).await;
    assert!(matches!(host_of(&state, 1).phase, HostPhase::Left { at: Stage::InMaintenance, .. }), "{state:#?}");
    assert!(closed(&lab, 1));
    tokio::time::sleep(Duration::from_secs(1800)).await;
    let state = taken_up(&lab, &plan, false).await;
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    let why = failure(host_of(&state, 1));
    assert!(why.contains("the host changed since the plan"), "{why}");
    assert!(left_as(&state).is_clean(), "{:?}", left_as(&state));
    are_free(&lab);
    assert_eq!((closed(&lab, 1), marker(&lab, 1)), (false, String::new()));
    let tally = lab.world.tally();
    assert!(tally.vms["vm-1"].on && tally.vms["vm-2"].on, "{tally:?}");
}

/// Another run has marked the host while ours stood still, closed or about to be: nothing of ours is undone
/// under its hands.
#[tokio::test(start_paused = true)]
async fn a_host_that_somebody_else_has_marked_is_left_as_it_is() {
    for step in [StepKind::StopVm, StepKind::EnterMaintenance] {
        let world = format!(
            "actors: [{{who: other, host: esx-01, once: {{method: EnterMaintenanceMode_Task}}, after: 20m, \
             does: {{setField: {{name: poolwright.run, value: \"{THEIRS}\"}}}}}}]"
        );
        let (lab, plan) = Nodes { world: world.leak(), ..Nodes::default() }.planned().await;
        interrupted(&lab, &plan, once_after(step, true)).await;
        tokio::time::sleep(Duration::from_secs(1800)).await;
        let before = (lab.world.snapshot(), lab.world.log().len());
        let state = taken_up(&lab, &plan, false).await;
        assert_eq!(state.exit(), Exit::HostsLeft, "{step}: {state:#?}");
        assert!(left_as(&state).notes.iter().any(|note| note.contains("01OTHER")), "{step}: {:?}", left_as(&state));
        assert_eq!((lab.world.snapshot(), lab.world.log().len()), before, "{step}: nothing is written");
    }
}

/// A request that is lost once on its way is sent again.
#[tokio::test(start_paused = true)]
async fn what_is_lost_while_giving_back_is_sent_again() {
    let stays = "{method: ShutdownGuest, object: vm-2, onCall: 1, then: {fault: InvalidState}}";
    for (call, fault) in [
        ("CancelTask", "{method: CancelTask, onCall: 1, then: dropBefore}"),
        ("CancelTask", "{method: CancelTask, onCall: 1, then: {lie: noEffect}}"),
        ("PowerOnVM_Task", "{method: PowerOnVM_Task, object: vm-1, onCall: 1, then: dropBefore}"),
    ] {
        let world = format!("faults: [{stays}, {fault}]").leak();
        let (lab, plan) = Nodes { world, ..Nodes::default() }.planned().await;
        let state = lab.apply(&plan).await.unwrap();
        assert_eq!(state.exit(), Exit::HostsLeft, "{fault}: {state:#?}");
        assert!(left_as(&state).is_clean(), "{fault}: {:?}", left_as(&state));
        assert_eq!((asked(&lab, call), closed(&lab, 1), marker(&lab, 1)), (2, false, String::new()), "{fault}");
        let vm = &lab.world.tally().vms["vm-1"];
        assert_eq!((vm.on, vm.host.as_str(), vm.starts), (true, "esx-01", 1), "{fault}");
        are_free(&lab);
    }
}

/// What a Job has shown of a node before its host was changed is believed no more after it, neither good nor
/// bad, wherever the Job was left.
#[tokio::test(start_paused = true)]
async fn a_job_of_before_the_change_says_nothing_of_the_changed_host() {
    let clusters = |first: &str, later: &str| {
        format!(
            "{{name: k8s-a, address: \"https://k8s-a.lab:6443\", nodes: [{{name: spare-a, gpus: 4}}], containers: \
               [{{image: \"cuda*\", {first}, times: 1}}, {{image: \"cuda*\", {later}}}]}}, \
             {{name: k8s-b, address: \"https://k8s-b.lab:6443\", nodes: [{{name: spare-b, gpus: 4}}]}}"
        )
    };
    // A VM that is not stopped: the visit is given back, and the node whose VM was stopped passes a gate.
    let world = "faults: [{method: ShutdownGuest, object: vm-2, onCall: 1, then: {fault: InvalidState}}, \
        {face: k8s, method: \"delete jobs\", onCall: 1, times: 6, then: {status: 500}}]";
    for (first, later, exit) in
        [("takes: 10s", "ends: {fails: 1}", Exit::HostsLeft), ("ends: {fails: 1}", "takes: 10s", Exit::Done)]
    {
        let case = format!("{first}, then {later}");
        let clusters = clusters(first, later).leak();
        let (lab, plan) = Nodes { clusters, world, ..Nodes::default() }.planned().await;
        let state = lab.apply(&plan).await.unwrap();
        assert_eq!((state.exit(), asked(&lab, "UpdateGraphicsConfig")), (Exit::HostsLeft, 0), "{case}: {state:#?}");
        let made = |lab: &Lab| {
            let log = lab.world.log();
            log.iter()
                .filter(|write| write.call == "create jobs" && write.effect && write.id.starts_with("k8s-a/"))
                .count()
        };
        assert_eq!(made(&lab), 1, "{case}");
        let host = plan.order[0].clone();
        let state = lab.run(async |engine| rollout::retry(engine, &state.run, &host).await).await.unwrap();
        assert_eq!((state.exit(), asked(&lab, "UpdateGraphicsConfig")), (exit, 1), "{case}: {state:#?}");
        assert_eq!(made(&lab), 2, "{case}: each boot has its Job");
        match exit {
            Exit::Done => are_free(&lab),
            _ => assert_eq!(stands(&lab, "k8s-a", "gpu-a"), (true, Some(NodePhase::Failed)), "{case}"),
        }
    }
}
