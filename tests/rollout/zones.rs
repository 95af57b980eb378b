//! The three zones of giving up (DESIGN §6), on a host with VMs: nothing stopped, VMs off, changed. What
//! the host and each VM end as.

use std::time::Duration;

use poolwright::plan::Fate;
use poolwright::rollout::{self, Compensation, Event, Exit, HostPhase, LeftAs, Outcome, RunState, StepKind};

use super::scene::{Scene, asked, closed, failure, host_of, hosts_as_they_are, interrupted, marker, resume, watched};
use super::vms::{THREE, scene, trains};
use super::ways::once_after;
use crate::support::lab::Lab;

const ENTER: &str = "EnterMaintenanceMode_Task";
const WRITE: &str = "UpdateGraphicsConfig";

async fn abort(lab: &Lab) -> RunState {
    let run = lab.state.runs().unwrap().remove(0);
    lab.run(async |engine| rollout::abort(engine, &run).await).await.unwrap()
}

async fn retry(lab: &Lab) -> RunState {
    let run = lab.state.runs().unwrap().remove(0);
    lab.run(async |engine| rollout::retry(engine, &run, &"esx-01".into()).await).await.unwrap()
}

/// The three VMs: whether each is on, how often it was stopped and started. None ever leaves the host.
fn counts(lab: &Lab) -> Vec<(bool, u32, u32)> {
    let trains = trains(lab);
    assert!(trains.iter().all(|(_, host, ..)| host == "esx-01"), "{trains:?}");
    trains.into_iter().map(|(_, _, on, stops, starts)| (on, stops, starts)).collect()
}

fn left_as(state: &RunState) -> &LeftAs {
    match &host_of(state, 1).phase {
        HostPhase::Failed { left_as: Some(left), .. } | HostPhase::Left { left_as: left, .. } => left,
        other => panic!("{other:?}"),
    }
}

/// A move that DRS began goes on when its host does not close any more.
async fn settled(lab: &Lab) {
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(lab.world.tally().vms["web-1"].on && !closed(lab, 1));
}

/// VMs that are named as not put back.
fn named(left: &LeftAs) -> usize {
    left.uncompensated.iter().filter(|comp| matches!(comp, Compensation::Vm(_))).count()
}

fn assert_given_back(lab: &Lab, state: &RunState) {
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    assert_eq!(host_of(state, 1).phase, HostPhase::Done { outcome: Outcome::AsItWas });
    assert_eq!((host_of(state, 1).armed.len(), closed(lab, 1), marker(lab, 1)), (0, false, String::new()));
    assert_eq!(asked(lab, WRITE), 0);
}

fn assert_converged(lab: &Lab, state: &RunState) {
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    assert_eq!(host_of(state, 1).phase, HostPhase::Done { outcome: Outcome::Converged });
    assert_eq!((host_of(state, 1).armed.len(), closed(lab, 1), marker(lab, 1)), (0, false, String::new()));
    assert_eq!(counts(lab), [(true, 1, 1); 3]);
}

/// The second of three does not stop, for one reason or another: the host is not changed, and all that
/// run end as they began.
#[tokio::test(start_paused = true)]
async fn the_second_of_three_refuses_to_stop_in_every_way() {
    for then in ["{fault: ToolsUnavailable}", "{lie: noEffect}", "dropBefore", "{fault: TaskInProgress}"] {
        let world = format!("faults: [{{method: ShutdownGuest, object: train-2, times: 99, then: {then}}}]");
        let (lab, plan) = Scene { world: world.leak(), ..scene(THREE) }.planned().await;
        let before = hosts_as_they_are(&lab);
        let (state, _) = watched(&lab, &plan).await;
        let state = state.unwrap();
        assert_eq!(state.exit(), Exit::HostsLeft, "{then}: {state:#?}");
        assert!(failure(host_of(&state, 1)).contains("train-2"), "{then}: {}", failure(host_of(&state, 1)));
        assert!(left_as(&state).is_clean(), "{then}: {:?}", left_as(&state));
        assert_eq!(counts(&lab), [(true, 1, 1), (true, 0, 0), (true, 0, 0)], "{then}");
        assert_eq!((asked(&lab, WRITE), asked(&lab, "PowerOffVM_Task")), (0, 0), "{then}");
        settled(&lab).await;
        assert_eq!(hosts_as_they_are(&lab), before, "{then}");
    }
}

/// A signal before the first VM is stopped: the entering is cancelled, so that nothing waits for VMs that
/// nobody stops; the run goes on from there, or is given back.
#[tokio::test(start_paused = true)]
async fn a_signal_before_the_first_stop_cancels_the_entering() {
    for goes_on in [true, false] {
        let (lab, plan) = scene(THREE).planned().await;
        let before = hosts_as_they_are(&lab);
        let state = interrupted(&lab, &plan, once_after(StepKind::StartClosing, true)).await;
        assert_eq!(state.exit().code(), 130);
        let left = left_as(&state);
        assert_eq!((left.maintenance, named(left)), (Some(false), 0), "{left:?}");
        assert_eq!((asked(&lab, "CancelTask"), counts(&lab)), (1, vec![(true, 0, 0); 3]));
        settled(&lab).await;
        if goes_on {
            assert_converged(&lab, &resume(&lab).await);
        } else {
            assert_given_back(&lab, &abort(&lab).await);
            assert_eq!(hosts_as_they_are(&lab), before);
        }
    }
}

/// Zone untouched: the host closes, no VM was stopped yet.
#[tokio::test(start_paused = true)]
async fn an_abort_before_the_first_stop_stops_nothing() {
    let (lab, plan) = scene(THREE).planned().await;
    let before = hosts_as_they_are(&lab);
    let state = interrupted(&lab, &plan, once_after(StepKind::StartClosing, true)).await;
    assert!(matches!(host_of(&state, 1).phase, HostPhase::Left { .. }), "{:?}", host_of(&state, 1).phase);
    let state = abort(&lab).await;
    assert_given_back(&lab, &state);
    assert_eq!(counts(&lab), [(true, 0, 0); 3]);
    settled(&lab).await;
    assert_eq!(hosts_as_they_are(&lab), before);
    assert_eq!((asked(&lab, ENTER), asked(&lab, "ExitMaintenanceMode_Task")), (1, 0));
}

/// Zone stopped: one VM is off, all are, the host is closed; nothing is written.
#[tokio::test(start_paused = true)]
async fn an_abort_of_a_host_whose_vms_are_off_starts_them_again() {
    for (kind, off) in [(StepKind::StopVm, 1), (StepKind::EnterMaintenance, 3)] {
        let (lab, plan) = scene(THREE).planned().await;
        let before = hosts_as_they_are(&lab);
        let state = interrupted(&lab, &plan, once_after(kind, true)).await;
        assert_eq!(counts(&lab).iter().filter(|(on, ..)| !on).count(), off, "{kind}");
        assert_eq!((closed(&lab, 1), named(left_as(&state))), (off == 3, 3), "{kind}: {state:#?}");
        let state = abort(&lab).await;
        assert_given_back(&lab, &state);
        assert!(counts(&lab).iter().all(|(on, stops, starts)| *on && stops == starts), "{kind}: {:?}", counts(&lab));
        settled(&lab).await;
        assert_eq!(hosts_as_they_are(&lab), before, "{kind}");
    }
}

/// Zone changed: only forward. An abort says how the host is left and touches nothing; a run that goes on
/// brings it to its end.
#[tokio::test(start_paused = true)]
async fn an_abort_of_a_changed_host_leaves_it_as_it_is_and_says_so() {
    let (lab, plan) = scene(THREE).planned().await;
    interrupted(&lab, &plan, once_after(StepKind::SetGraphics, true)).await;
    let before = (lab.world.snapshot(), lab.world.log().len());
    let state = abort(&lab).await;
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    let left = left_as(&state);
    assert_eq!((left.maintenance, left.marker, named(left)), (Some(true), true, 3), "{left:?}");
    assert_eq!((lab.world.snapshot(), lab.world.log().len()), before);
    assert_eq!(counts(&lab), [(false, 1, 0); 3]);
    assert_converged(&lab, &resume(&lab).await);
}

/// A failure in zone changed: VMs stay off, and are named; nothing goes on by itself. `resume --retry` is
/// the way out.
#[tokio::test(start_paused = true)]
async fn a_failure_of_a_changed_host_leaves_its_vms_off_until_somebody_retries() {
    let world = "faults: [{method: UpdateGraphicsConfig, times: 3, then: {lie: noEffect}}]";
    let (lab, plan) = Scene { world, ..scene(THREE) }.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let check = |state: &RunState, why: &str| {
        assert_eq!(state.exit(), Exit::HostsLeft, "{why}: {state:#?}");
        let left = left_as(state);
        assert_eq!((left.maintenance, left.marker, named(left)), (Some(true), true, 3), "{why}: {left:?}");
        assert_eq!((counts(&lab), closed(&lab, 1)), (vec![(false, 1, 0); 3], true), "{why}");
        assert!(marker(&lab, 1).contains("\"phase\":\"failed\""), "{why}: {}", marker(&lab, 1));
        assert_eq!(asked(&lab, WRITE), 3, "{why}: nothing is tried again");
    };
    check(&state.unwrap(), "failed");
    check(&resume(&lab).await, "resumed");
    check(&abort(&lab).await, "aborted");
    assert_converged(&lab, &retry(&lab).await);
}

/// After the change one VM does not start again: the others do, the host is open, and what is missing is
/// named until somebody retries.
#[tokio::test(start_paused = true)]
async fn a_vm_that_does_not_start_after_the_change_is_named_until_somebody_retries() {
    let world = "faults: [{method: PowerOnVM_Task, object: train-2, times: 4, then: {taskFault: InsufficientGraphicsResourcesFault}}]";
    let (lab, plan) = Scene { world, ..scene(THREE) }.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    let said = failure(host_of(&state, 1));
    assert!(said.contains("train-2") && said.contains("InsufficientGraphicsResourcesFault"), "{said}");
    let left = left_as(&state);
    assert_eq!((left.maintenance, left.marker, named(left)), (Some(false), true, 1), "{left:?}");
    assert_eq!(counts(&lab), [(true, 1, 1), (false, 1, 0), (true, 1, 1)]);
    assert_eq!(asked(&lab, WRITE), 1);
    assert_converged(&lab, &retry(&lab).await);
    assert_eq!((asked(&lab, WRITE), asked(&lab, ENTER)), (1, 1));
}

/// DRS moves a VM off, the call went well, and its task ends in an error: not swallowed. The host does not
/// get empty, says why, and is given back.
#[tokio::test(start_paused = true)]
async fn b14_a_move_whose_task_fails_is_not_taken_for_a_move() {
    let world = "faults: [{method: evacuation, object: web-1, times: 999, then: {taskFault: GenericVmConfigFault}}]";
    let (lab, plan) = Scene { world, ..scene(THREE) }.planned().await;
    let (state, watch) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    assert!(failure(host_of(&state, 1)).contains("web-1"), "{}", failure(host_of(&state, 1)));
    assert!(watch.waits.lock().unwrap().iter().any(|line| line.contains("still powered on there: web-1")));
    assert!(
        !watch.events().iter().any(|event| matches!(event, Event::StepDone { step: StepKind::EnterMaintenance, .. }))
    );
    assert_eq!((closed(&lab, 1), marker(&lab, 1), asked(&lab, WRITE)), (false, String::new(), 0));
    let web = &lab.world.tally().vms["web-1"];
    assert_eq!((web.host.as_str(), web.on, web.moves), ("esx-01", true, 0));
    assert_eq!(counts(&lab), [(true, 1, 1); 3]);
}

/// A VM that the change would leave off is started again where nothing was changed.
#[tokio::test(start_paused = true)]
async fn an_abort_before_the_change_starts_what_the_change_would_leave_off() {
    let scene = Scene {
        to: "[{mode: {passthrough: {label: train}}}]",
        may: "{mayStop: [{name: \"train-*\"}], onMismatch: leaveOff}",
        ..scene(THREE)
    };
    let (lab, plan) = scene.planned().await;
    assert!(plan.hosts[0].fates.iter().any(|fate| matches!(fate.fate, Fate::LeftOff { .. })));
    interrupted(&lab, &plan, once_after(StepKind::EnterMaintenance, true)).await;
    assert_eq!(counts(&lab), [(false, 1, 0); 3]);
    assert_given_back(&lab, &abort(&lab).await);
    assert_eq!(counts(&lab), [(true, 1, 1); 3]);
}

/// A VM does not start when the host is given back: it is named, and a second abort starts it.
#[tokio::test(start_paused = true)]
async fn an_abort_whose_start_fails_can_be_repeated() {
    let world = "faults: [{method: PowerOnVM_Task, object: train-2, times: 1, then: {taskFault: InsufficientMemoryResourcesFault}}]";
    let (lab, plan) = Scene { world, ..scene(THREE) }.planned().await;
    interrupted(&lab, &plan, once_after(StepKind::EnterMaintenance, true)).await;
    let state = abort(&lab).await;
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    assert!(failure(host_of(&state, 1)).contains("train-2"), "{}", failure(host_of(&state, 1)));
    assert_eq!((named(left_as(&state)), left_as(&state).marker), (1, true));
    assert_given_back(&lab, &abort(&lab).await);
    assert_eq!(counts(&lab), [(true, 1, 1); 3]);
}

/// A guest may heed us after we have given up: the host is given back, and it is said.
#[tokio::test(start_paused = true)]
async fn a_guest_that_may_still_shut_down_is_named() {
    let vms = "[{name: train-1, host: esx-01, power: on, migrate: false, shutdownTakes: 6m, devices: [{vgpu: nvidia_h100l-23c}]}]";
    let scene = Scene { names: "esx-01", to: "[{mode: {vgpu: {size: mixed}}}]", vms, ..Scene::default() };
    let (lab, plan) = scene.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!((state.exit(), closed(&lab, 1), marker(&lab, 1)), (Exit::HostsLeft, false, String::new()));
    let said: Vec<&str> = host_of(&state, 1).left_alone.iter().map(|(_, found)| found.as_str()).collect();
    assert!(said.len() == 1 && said[0].contains("train-1 runs; it was asked to shut down"), "{said:?}");
}
