//! Hosts that carry VMs: closed first, stopped second, started again where they were; and the three
//! zones of giving up.

use std::time::Duration;

use poolwright::rollout::{self, Event, Exit, HostPhase, Outcome, StepKind};

use super::scene::{Scene, asked, closed, failure, host_of, interrupted, marker, resume, watched};
use super::ways::once_after;
use crate::support::lab::Lab;

const ENTER: &str = "EnterMaintenanceMode_Task";

/// Three VMs that cannot move, and one that DRS moves. Same size to mixed size: no reboot.
pub const THREE: &str = "[{name: train-1, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}]}, \
    {name: train-2, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}]}, \
    {name: train-3, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}]}, \
    {name: web-1, host: esx-01, power: on}]";
const SECOND_REFUSES: &str = "[{name: train-1, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}]}, \
    {name: train-2, host: esx-01, power: on, migrate: false, refusesShutdown: true, devices: [{vgpu: nvidia_h100l-23c}]}, \
    {name: train-3, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}]}]";

pub fn scene(vms: &'static str) -> Scene {
    Scene { hosts: 2, names: "esx-01", to: "[{mode: {vgpu: {size: mixed}}}]", vms, ..Scene::default() }
}

/// Every VM that was there at the beginning runs on the first host.
pub fn trains(lab: &Lab) -> Vec<(String, String, bool, u32, u32)> {
    let vms = lab.world.tally().vms.into_iter().filter(|(name, _)| name.starts_with("train-"));
    vms.map(|(name, vm)| (name, vm.host, vm.on, vm.stops, vm.starts)).collect()
}

fn place(lab: &Lab, call: &str) -> usize {
    lab.world.log().iter().position(|write| write.call == call).unwrap_or_else(|| panic!("{call} was not called"))
}

#[tokio::test(start_paused = true)]
async fn vms_are_stopped_once_the_host_closes_and_started_once_it_is_open() {
    let (lab, plan) = scene(THREE).planned().await;
    let (state, watch) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    for (name, host, on, stops, starts) in trains(&lab) {
        assert_eq!((host.as_str(), on, stops, starts), ("esx-01", true, 1, 1), "{name}");
    }
    let web = &lab.world.tally().vms["web-1"];
    assert_eq!((web.host.as_str(), web.on, web.moves, web.stops), ("esx-02", true, 1, 0));
    assert!(place(&lab, ENTER) < place(&lab, "ShutdownGuest"), "{:#?}", lab.world.log());
    assert!(place(&lab, "ExitMaintenanceMode_Task") < place(&lab, "PowerOnVM_Task"));
    assert_eq!((asked(&lab, ENTER), asked(&lab, "ShutdownGuest"), asked(&lab, "PowerOnVM_Task")), (1, 3, 3));
    assert_eq!((host_of(&state, 1).armed.len(), marker(&lab, 1)), (0, String::new()));
    // All three are in the marker before the first is stopped.
    let events = watch.events();
    let first_stop = events
        .iter()
        .position(|event| matches!(event, Event::StepStarted { step, .. } if StepKind::from(step) == StepKind::StopVm));
    let before = &events[..first_stop.unwrap()];
    let marked = before.iter().rev().find_map(|event| match event {
        Event::MarkerWritten { marker: Some(marker) } => Some(marker.arm.len()),
        _ => None,
    });
    assert_eq!(marked, Some(4), "maintenance and three VMs");
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_does_not_stop_gives_the_host_and_the_others_back() {
    let (lab, plan) = scene(SECOND_REFUSES).planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    assert!(failure(host_of(&state, 1)).contains("train-2"), "{}", failure(host_of(&state, 1)));
    assert!(trains(&lab).iter().all(|(_, host, on, stops, starts)| host == "esx-01" && *on && stops == starts));
    assert_eq!((asked(&lab, "UpdateGraphicsConfig"), asked(&lab, "PowerOffVM_Task")), (0, 0));
    assert_eq!((closed(&lab, 1), marker(&lab, 1)), (false, String::new()));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(!closed(&lab, 1), "nothing closes it later");
    match &host_of(&state, 1).phase {
        HostPhase::Failed { left_as: Some(left), .. } => assert!(left.is_clean(), "{left:?}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_stopped_between_two_vms_goes_on_or_is_given_back() {
    for abort in [false, true] {
        let (lab, plan) = scene(THREE).planned().await;
        let state = interrupted(&lab, &plan, once_after(StepKind::StopVm, true)).await;
        assert!(matches!(host_of(&state, 1).phase, HostPhase::Left { .. }), "{:?}", host_of(&state, 1).phase);
        assert_eq!(trains(&lab).iter().filter(|vm| !vm.2).count(), 1, "the first is off");
        let run = state.run;
        let state = match abort {
            true => lab.run(async |engine| rollout::abort(engine, &run).await).await.unwrap(),
            false => resume(&lab).await,
        };
        assert_eq!(state.exit(), Exit::Done, "abort {abort}: {state:#?}");
        let outcome = if abort { Outcome::AsItWas } else { Outcome::Converged };
        assert_eq!(host_of(&state, 1).phase, HostPhase::Done { outcome });
        assert!(trains(&lab).iter().all(|(_, host, on, ..)| host == "esx-01" && *on), "{:?}", trains(&lab));
        assert_eq!(asked(&lab, "UpdateGraphicsConfig"), usize::from(!abort));
        assert_eq!((closed(&lab, 1), marker(&lab, 1)), (false, String::new()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_get_empty_says_who_is_left_and_is_given_back() {
    let scene = scene(
        "[{name: web-1, host: esx-01, power: on, moveTakes: 10h}, \
          {name: train-1, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}]}]",
    );
    let (lab, plan) = scene.planned().await;
    let (state, watch) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    assert!(failure(host_of(&state, 1)).contains("web-1"), "{}", failure(host_of(&state, 1)));
    assert!(watch.waits.lock().unwrap().iter().any(|line| line.contains("still powered on there: web-1")));
    assert_eq!((closed(&lab, 1), marker(&lab, 1)), (false, String::new()));
    assert!(lab.world.tally().vms["train-1"].on);
    assert_eq!(asked(&lab, "UpdateGraphicsConfig"), 0);
}

/// A VM whose device fits nothing that the GPUs become: it is stopped, stays off, and that is said.
#[tokio::test(start_paused = true)]
async fn a_vm_that_would_not_start_is_left_off_and_said_so() {
    let scene = Scene {
        to: "[{mode: {passthrough: {label: train}}}]",
        may: "{mayStop: [{name: \"train-*\"}], onMismatch: leaveOff}",
        ..scene(
            "[{name: train-1, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}]}, \
             {name: web-1, host: esx-01, power: on}]",
        )
    };
    let (lab, plan) = scene.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    let host = host_of(&state, 1);
    assert_eq!(host.phase, HostPhase::Done { outcome: Outcome::Converged });
    assert_eq!((host.armed.len(), marker(&lab, 1)), (0, String::new()));
    assert!(host.left_alone.iter().any(|(_, found)| found.contains("left off")), "{:?}", host.left_alone);
    let vms = lab.world.tally().vms;
    assert_eq!((vms["train-1"].on, vms["train-1"].stops, vms["train-1"].starts), (false, 1, 0));
    assert_eq!((vms["web-1"].on, vms["web-1"].moves), (true, 1));
    assert_eq!((closed(&lab, 1), asked(&lab, "PowerOnVM_Task")), (false, 0));
}

/// A VM that is to be given back does not start: the task's error is told, and not waited out.
#[tokio::test(start_paused = true)]
async fn b14_a_start_whose_task_fails_is_told_with_its_error() {
    let scene = Scene {
        world: "faults: [{method: PowerOnVM_Task, onCall: 1, then: {taskFault: InsufficientGraphicsResourcesFault}}]",
        ..scene(SECOND_REFUSES)
    };
    let (lab, plan) = scene.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    let HostPhase::Failed { left_as: Some(left), .. } = &host_of(&state, 1).phase else { panic!("{state:#?}") };
    let said = left.notes.join("; ");
    assert!(said.contains("train-1 was not started again"), "{said}");
    assert!(said.contains("InsufficientGraphicsResourcesFault"), "{said}");
    assert_eq!(left.uncompensated.len(), 1, "{left:?}");
    assert_ne!(marker(&lab, 1), "");
}
