//! Cases of maintenance mode and reboots, by what the world did and what the journal says.

use std::time::Duration;

use poolwright::rollout::{Event, Exit, FailureClass, HostPhase, StepKind};

use super::scene::{Scene, asked, calls, closed, failure, host_of, hosts_as_they_are, marker, watched};
use super::trap::{Point, Trap};

const ENTER: &str = "EnterMaintenanceMode_Task";
const EXIT: &str = "ExitMaintenanceMode_Task";
const REBOOT: &str = "RebootHost_Task";

/// Attempts of a step, with what is said of the attempt before.
fn attempts(events: &[Event], kind: StepKind) -> Vec<Option<String>> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::StepStarted { step, again, .. } if StepKind::from(step) == kind => Some(again.clone()),
            _ => None,
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn b07_connections_that_die_in_a_long_wait_leave_one_task() {
    let scene = Scene {
        host: "enter: 13m",
        world: "faults: [{method: WaitForUpdatesEx, onCall: 3, times: 2, then: {status: 408}}, \
                {method: WaitForUpdatesEx, onCall: 7, times: 1, then: dropAfter}]",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    let (state, watch) = watched(&lab, &plan).await;
    assert_eq!(state.unwrap().exit(), Exit::Done);
    assert_eq!(asked(&lab, ENTER), 1);
    assert_eq!(attempts(&watch.events(), StepKind::EnterMaintenance), [None]);
}

#[tokio::test(start_paused = true)]
async fn b08_a_host_that_flips_on_its_way_up_is_left_alone_until_it_is_stable() {
    let scene = Scene {
        host: "boot: {shutdown: 20s, down: 60s, flaps: 3, flap: 25s}",
        pace: "{hostStable: 45s}",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    assert_eq!(state.unwrap().exit(), Exit::Done);
    let reboot = calls(&lab, REBOOT)[0].at;
    let exit = calls(&lab, EXIT)[0].at;
    // Down for 80 s; three times it answers for 25 s, shorter than it must, and drops out for 25 s.
    let stable = reboot + Duration::from_secs(80 + 3 * 50 + 45);
    assert!(exit >= stable, "left at {exit}, stable at {stable}");
}

#[tokio::test(start_paused = true)]
async fn b08_a_refused_exit_is_tried_again_after_a_look() {
    let scene = Scene {
        world: "faults: [{method: ExitMaintenanceMode_Task, onCall: 1, times: 1, then: {fault: InvalidState}}, \
                {method: ExitMaintenanceMode_Task, onCall: 2, times: 1, then: {taskFault: HostNotConnected}}]",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    let (state, watch) = watched(&lab, &plan).await;
    assert_eq!(state.unwrap().exit(), Exit::Done);
    let attempts = attempts(&watch.events(), StepKind::ExitMaintenance);
    assert_eq!(attempts.len(), 3);
    assert!(attempts[1].as_deref().unwrap().contains("InvalidState"), "{attempts:?}");
    assert!(attempts[2].as_deref().unwrap().contains("HostNotConnected"), "{attempts:?}");
    assert!(!closed(&lab, 1));
}

#[tokio::test(start_paused = true)]
async fn b10_our_own_deadline_is_a_timeout_and_leaves_the_host_as_it_was() {
    let scene = Scene { world: "faults: [{method: EnterMaintenanceMode_Task, then: taskHangs}]", ..Scene::default() };
    let (lab, plan) = scene.planned().await;
    let before = hosts_as_they_are(&lab);
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    let host = host_of(&state, 1);
    assert!(matches!(host.phase, HostPhase::Failed { class: FailureClass::Timeout, .. }), "{:?}", host.phase);
    assert!(failure(host).contains("cancelled"), "{}", failure(host));
    assert_eq!(asked(&lab, "CancelTask"), 1);
    assert_eq!((closed(&lab, 1), marker(&lab, 1)), (false, String::new()));
    assert_eq!(hosts_as_they_are(&lab), before);
    assert_eq!(state.exit(), Exit::HostsLeft);
}

#[tokio::test(start_paused = true)]
async fn b10_the_servers_own_limit_is_a_timeout_too_and_any_other_fault_is_none() {
    for (fault, class) in [("Timedout", FailureClass::Timeout), ("HostCommunication", FailureClass::Fault)] {
        let world = format!("faults: [{{method: EnterMaintenanceMode_Task, then: {{taskFault: {fault}}}}}]");
        let scene = Scene { world: world.leak(), ..Scene::default() };
        let (lab, plan) = scene.planned().await;
        let (state, _) = watched(&lab, &plan).await;
        let state = state.unwrap();
        let HostPhase::Failed { class: found, left_as, .. } = &host_of(&state, 1).phase else {
            panic!("{state:#?}");
        };
        assert_eq!(*found, class, "{fault}");
        assert!(left_as.as_ref().unwrap().is_clean(), "{left_as:?}");
        assert_eq!((closed(&lab, 1), marker(&lab, 1)), (false, String::new()));
    }
}

#[tokio::test(start_paused = true)]
async fn b12_a_killed_clients_task_is_waited_for_and_not_started_twice() {
    let scene = Scene { host: "enter: 5m", ..Scene::default() };
    // The fourth write starts it; line 6 announces it, line 7 tells its key.
    for (point, pause) in [(Point::Write(4), 0), (Point::Write(4), 60), (Point::Line(6), 0), (Point::Line(7), 0)] {
        let (lab, plan) = scene.planned().await;
        let trap = Trap::new(point, &lab.world);
        assert!(super::crash::apply(&lab, &plan, &trap).await.is_none());
        assert_eq!(asked(&lab, ENTER), usize::from(point != Point::Line(6)), "{point:?}");
        tokio::time::sleep(Duration::from_secs(pause)).await;
        let state = super::scene::resume(&lab).await;
        assert_eq!(state.exit(), Exit::Done, "{point:?}");
        assert_eq!(asked(&lab, ENTER), 1, "{point:?}: not even a call that the server refuses");
    }
}

#[tokio::test(start_paused = true)]
async fn b13_a_session_that_ends_while_a_task_runs_is_renewed_and_the_task_read() {
    let scene = Scene {
        host: "enter: 2m",
        world: "faults: [{method: WaitForUpdatesEx, onCall: 2, then: endSession}]",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    let (state, watch) = watched(&lab, &plan).await;
    assert_eq!(state.unwrap().exit(), Exit::Done);
    assert_eq!(asked(&lab, ENTER), 1);
    assert_eq!(attempts(&watch.events(), StepKind::EnterMaintenance), [None]);
}

#[tokio::test(start_paused = true)]
async fn b23_a_refusal_says_how_the_host_stands_what_was_tried_and_the_fault_last() {
    let scene = Scene {
        world: "faults: [{method: ExitMaintenanceMode_Task, times: 9, then: {fault: InvalidState}}]",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    let said = failure(host_of(&state, 1));
    let expected = "leaving maintenance: failed: the host is connected and in maintenance mode; \
                    tried to leave maintenance mode: ";
    assert!(said.starts_with(expected), "{said}");
    assert!(said.ends_with("(InvalidState)"), "{said}");
    // It is left closed, marked, and says so.
    assert!(closed(&lab, 1));
    assert!(marker(&lab, 1).contains("\"phase\":\"failed\""), "{}", marker(&lab, 1));
}

#[tokio::test(start_paused = true)]
async fn f15_f47_a_host_that_does_not_come_back_is_left_as_it_is_and_no_other_starts() {
    let scene = Scene { hosts: 2, host: "boot: {returns: false}", ..Scene::default() };
    let (lab, plan) = scene.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    let host = host_of(&state, 1);
    let HostPhase::Failed { class: FailureClass::Timeout, left_as: Some(left_as), .. } = &host.phase else {
        panic!("{:?}", host.phase);
    };
    assert!(left_as.marker);
    assert!(!left_as.uncompensated.is_empty());
    assert_eq!(host_of(&state, 2).phase, HostPhase::Pending);
    assert!(state.halted.is_some());
    assert_eq!(state.exit(), Exit::HostsLeft);
    // No blind undo: nothing was sent after the reboot but the marker.
    let log = lab.world.log();
    let reboot = log.iter().position(|write| write.call == REBOOT).unwrap();
    assert!(log[reboot + 1..].iter().all(|write| write.call == "SetField"), "{log:#?}");
    assert!(log.iter().all(|write| write.object != "esx-02"));
}

#[tokio::test(start_paused = true)]
async fn a_reboot_that_has_no_effect_is_never_repeated() {
    let scene = Scene { world: "faults: [{method: RebootHost_Task, then: {lie: noEffect}}]", ..Scene::default() };
    let (lab, plan) = scene.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft);
    assert!(failure(host_of(&state, 1)).starts_with("rebooting: timed out"), "{}", failure(host_of(&state, 1)));
    assert_eq!(asked(&lab, REBOOT), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_never_doubles_an_effect() {
    for method in ["SetField", ENTER, "UpdatePassthruConfig", REBOOT, EXIT] {
        for fault in ["dropAfter", "dropBefore"] {
            for call in 1..=if method == "SetField" { 6 } else { 1 } {
                let world = format!("faults: [{{method: {method}, onCall: {call}, then: {fault}}}]");
                let scene = Scene { world: world.leak(), ..Scene::default() };
                let (lab, plan) = scene.planned().await;
                let (state, _) = watched(&lab, &plan).await;
                let state = state.unwrap();
                assert_eq!(state.exit(), Exit::Done, "{fault} {method} {call}: {state:#?}");
                for once in [ENTER, "UpdatePassthruConfig", REBOOT, EXIT] {
                    // Asked again only for what did not arrive.
                    let again = usize::from(once == method && fault == "dropBefore");
                    assert_eq!(asked(&lab, once), 1 + again, "{once} after {fault} {method} {call}");
                    assert_eq!(calls(&lab, once).len(), 1, "{once} after {fault} {method} {call}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_without_effect_is_noticed_and_sent_again() {
    for (method, kind) in [(ENTER, StepKind::EnterMaintenance), ("UpdatePassthruConfig", StepKind::SetPassthrough)] {
        let world = format!("faults: [{{method: {method}, then: {{lie: noEffect}}}}]");
        let scene = Scene { world: world.leak(), ..Scene::default() };
        let (lab, plan) = scene.planned().await;
        let (state, watch) = watched(&lab, &plan).await;
        assert_eq!(state.unwrap().exit(), Exit::Done, "{method}");
        let attempts = attempts(&watch.events(), kind);
        assert_eq!(attempts.len(), 2, "{method}: {attempts:?}");
        assert!(attempts[1].as_deref().unwrap().starts_with("waited in vain for "), "{attempts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_never_has_an_effect_fails_and_the_host_stays_closed() {
    let scene = Scene {
        world: "faults: [{method: UpdatePassthruConfig, times: 99, then: {lie: noEffect}}]",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    let host = host_of(&state, 1);
    assert!(matches!(host.phase, HostPhase::Failed { class: FailureClass::NotVerified, .. }), "{:?}", host.phase);
    assert!(closed(&lab, 1));
    assert_eq!(asked(&lab, REBOOT), 0);
    assert_eq!(state.exit(), Exit::HostsLeft);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_somebody_takes_out_of_maintenance_is_not_rebooted() {
    let scene = Scene {
        world: "actors: [{who: somebody, host: esx-01, once: {method: UpdatePassthruConfig}, does: leaveMaintenance}]",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!(asked(&lab, REBOOT), 0);
    let said = failure(host_of(&state, 1));
    assert!(said.contains("exitMaintenanceMode by somebody"), "{said}");
    assert_eq!(state.exit(), Exit::HostsLeft);
}

#[tokio::test(start_paused = true)]
async fn it_says_what_it_waits_for() {
    let (lab, plan) = Scene::default().planned().await;
    let (state, watch) = watched(&lab, &plan).await;
    assert_eq!(state.unwrap().exit(), Exit::Done);
    let waits = watch.waits.lock().unwrap().clone();
    assert!(waits.iter().any(|wait| wait.contains("a boot time later than")), "{waits:#?}");
    assert!(waits.iter().any(|wait| wait.contains("enter maintenance mode")), "{waits:#?}");
}
