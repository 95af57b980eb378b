//! Cases of the rollout: stale and spent plans, foreign hands, budget, signals, abort, retry.

use std::time::Duration;

use poolwright::model::HostName;
use poolwright::rollout::{self, Event, Exit, Held, HostPhase, Outcome, RunError, Signal, Stage, StepKind};

use super::scene::{
    Scene, asked, closed, failure, host_of, host_writes, hosts_as_they_are, interrupted, marker, resume, signalled,
    watched,
};

const ENTER: &str = "EnterMaintenanceMode_Task";
const EXIT: &str = "ExitMaintenanceMode_Task";

/// Raised once after the first event of this kind.
pub fn once_after(kind: StepKind, done: bool) -> impl Fn(&Event) -> u32 {
    move |event| match event {
        Event::StepDone { step, .. } if done && *step == kind => 1,
        Event::StepStarted { step, .. } if !done && StepKind::from(step) == kind => 1,
        _ => 0,
    }
}

#[tokio::test(start_paused = true)]
async fn f12_a_host_that_changed_since_the_plan_is_refused_and_the_others_go_on() {
    let scene = Scene {
        hosts: 2,
        world: "actors: [{who: somebody, host: esx-01, after: 1h, does: {configure: {gpu: \"0000:17:00.0\", \
                mode: {passthrough: {label: mine}}}}}]",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    tokio::time::sleep(Duration::from_secs(2 * 3600)).await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert!(matches!(host_of(&state, 1).phase, HostPhase::Refused { .. }), "{:?}", host_of(&state, 1).phase);
    assert!(host_of(&state, 2).is_converged());
    assert_eq!(state.exit(), Exit::WorkLeft);
    let strange = host_writes(&lab).into_iter().filter(|write| write.object == "esx-01" && write.who != "somebody");
    assert_eq!(strange.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn f12_if_every_host_changed_the_plan_is_stale() {
    let scene = Scene {
        world: "actors: [{who: somebody, host: esx-01, after: 1h, does: {configure: {gpu: \"0000:17:00.0\", \
                mode: {passthrough: {label: mine}}}}}]",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    tokio::time::sleep(Duration::from_secs(2 * 3600)).await;
    let (state, _) = watched(&lab, &plan).await;
    assert_eq!(state.unwrap().exit().code(), 6);
}

#[tokio::test(start_paused = true)]
async fn f18_a_plan_is_applied_once() {
    let (lab, plan) = Scene::default().planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let run = state.unwrap().run;
    let writes = lab.world.log().len();
    let (again, _) = watched(&lab, &plan).await;
    match again.unwrap_err() {
        RunError::Spent { run: used_by, open, .. } => assert_eq!((used_by, open), (run, false)),
        other => panic!("{other}"),
    }
    assert_eq!(lab.world.log().len(), writes, "nothing is written");
}

#[tokio::test(start_paused = true)]
async fn f18_a_plan_whose_run_is_not_finished_is_resumed() {
    let (lab, plan) = Scene::default().planned().await;
    interrupted(&lab, &plan, once_after(StepKind::EnterMaintenance, true)).await;
    let (again, _) = watched(&lab, &plan).await;
    assert!(matches!(again.unwrap_err(), RunError::Spent { open: true, .. }));
}

#[tokio::test(start_paused = true)]
async fn a_plan_for_another_vcenter_or_past_its_day_is_not_applied() {
    let (lab, plan) = Scene::default().planned().await;
    let mut other = plan.clone();
    other.site.instance_uuid = "another".to_owned();
    assert!(matches!(lab.apply(&other).await, Err(RunError::OtherSite { .. })));
    let late = plan.expires.duration_since(lab.world.now()).unsigned_abs() + Duration::from_secs(1);
    tokio::time::sleep(late).await;
    assert!(matches!(lab.apply(&plan).await, Err(RunError::Expired { .. })));
    assert_eq!(host_writes(&lab), []);
    assert_eq!(lab.state.spent(&plan.id).unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_marker_holds_the_host_whatever_it_says() {
    let old = r#"{\"v\":1,\"run\":\"01OLD\",\"plan\":\"ab12\",\"host\":\"x\",\"phase\":\"closing\",\"at\":\"2001-01-01T00:00:00Z\",\"reboots\":[0,1],\"arm\":[],\"base\":{\"ds\":\"1/1\",\"up\":\"1/1\",\"das\":\"-\",\"crypto\":\"-\",\"dev\":\"?\",\"alarms\":\"0\"}}"#;
    for value in [old, "somebody was here", r#"{\"v\":2}"#] {
        let world = format!(
            "actors: [{{who: somebody, host: esx-01, after: 1m, does: {{setField: {{name: poolwright.run, value: \"{value}\"}}}}}}]"
        );
        let scene = Scene { world: world.leak(), ..Scene::default() };
        let (lab, plan) = scene.planned().await;
        tokio::time::sleep(Duration::from_secs(120)).await;
        let (state, _) = watched(&lab, &plan).await;
        let state = state.unwrap();
        assert!(matches!(host_of(&state, 1).phase, HostPhase::Held { .. }), "{:?}", host_of(&state, 1).phase);
        assert_eq!(state.exit().code(), 7);
        assert!(host_writes(&lab).iter().all(|write| write.who == "somebody"), "{:#?}", host_writes(&lab));
    }
}

#[tokio::test(start_paused = true)]
async fn a_marker_that_another_run_takes_over_stops_the_visit() {
    let scene = Scene {
        world: "actors: [{who: somebody, host: esx-01, once: {method: EnterMaintenanceMode_Task}, \
                does: {setField: {name: poolwright.run, value: mine}}}]",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft);
    assert_eq!(asked(&lab, "UpdatePassthruConfig"), 0);
    assert_eq!(asked(&lab, "RebootHost_Task"), 0);
    assert_eq!(marker(&lab, 1), "mine", "it is not overwritten");
}

#[tokio::test(start_paused = true)]
async fn a_marker_that_does_not_read_back_in_time_holds_the_host() {
    let scene =
        Scene { world: "readings: {fieldLag: 60s}", pace: "{hostStable: 20s, readBack: 5s}", ..Scene::default() };
    let (lab, plan) = scene.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    let held = matches!(host_of(&state, 1).phase, HostPhase::Held { why: Held::MarkerNotWritten { .. } });
    assert!(held, "{:?}", host_of(&state, 1).phase);
    assert_eq!(state.exit(), Exit::WorkLeft);
    assert_eq!(asked(&lab, ENTER), 0);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(marker(&lab, 1), "", "what came late is taken off");
}

#[tokio::test(start_paused = true)]
async fn a_marker_that_reads_back_late_but_in_time_is_waited_for() {
    let scene =
        Scene { world: "readings: {fieldLag: 7s}", pace: "{hostStable: 20s, readBack: 30s}", ..Scene::default() };
    let (lab, plan) = scene.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    assert_eq!(state.unwrap().exit(), Exit::Done);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(marker(&lab, 1), "");
}

#[tokio::test(start_paused = true)]
async fn the_budget_counts_hosts_that_are_down_for_any_cause_and_is_read_before_each_host() {
    let scene = Scene {
        hosts: 3,
        world: "actors: [{who: somebody, host: esx-03, once: {method: ExitMaintenanceMode_Task, onCall: 1}, does: enterMaintenance}, \
                {who: somebody, host: esx-03, after: 1m, does: enterMaintenance}]",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    for number in [1, 2] {
        let held = matches!(host_of(&state, number).phase, HostPhase::Held { why: Held::Budget { .. } });
        assert!(held, "{:?}", host_of(&state, number).phase);
    }
    assert_eq!(state.exit(), Exit::WorkLeft);
    assert!(host_writes(&lab).iter().all(|write| write.who == "somebody"), "{:#?}", host_writes(&lab));
}

#[tokio::test(start_paused = true)]
async fn a_host_found_in_maintenance_is_changed_and_left_there_if_the_profile_says_so() {
    let scene = Scene {
        host: "maintenance: true",
        rollout: "{maxUnavailable: 1, maxReboots: 2, foundInMaintenance: change}",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    assert_eq!(state.unwrap().exit(), Exit::Done);
    assert!(closed(&lab, 1));
    assert!(asked(&lab, ENTER) == 0 && asked(&lab, EXIT) == 0);
    assert_eq!(marker(&lab, 1), "");
}

#[tokio::test(start_paused = true)]
async fn the_first_signal_cancels_the_entering_of_an_untouched_host() {
    let scene = Scene { host: "enter: 10m", ..Scene::default() };
    let (lab, plan) = scene.planned().await;
    let state = signalled(&lab, &plan, Duration::from_secs(120), Signal::Interrupt).await;
    assert_eq!(state.exit().code(), 130);
    assert_eq!(asked(&lab, "CancelTask"), 1);
    assert!(!closed(&lab, 1));
    let HostPhase::Left { left_as, .. } = &host_of(&state, 1).phase else { panic!("{state:#?}") };
    assert_eq!((left_as.maintenance, left_as.uncompensated.len()), (Some(false), 0));
    let state = resume(&lab).await;
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
}

#[tokio::test(start_paused = true)]
async fn f10_f13_the_first_signal_lets_the_running_step_end_and_resume_goes_on() {
    for (kind, stage) in [
        (StepKind::EnterMaintenance, Stage::InMaintenance),
        (StepKind::SetPassthrough, Stage::Changing),
        (StepKind::Reboot, Stage::Rebooting),
        (StepKind::VerifyHost, Stage::VerifyingHost),
    ] {
        let (lab, plan) = Scene { hosts: 2, ..Scene::default() }.planned().await;
        let when = once_after(kind, kind == StepKind::EnterMaintenance);
        let state = interrupted(&lab, &plan, when).await;
        assert_eq!(state.exit().code(), 130);
        let host = host_of(&state, 1);
        let HostPhase::Left { at, left_as } = &host.phase else { panic!("{kind}: {:?}", host.phase) };
        assert_eq!(*at, stage, "{kind}");
        assert_eq!(host.done.last(), Some(&kind), "the running step ended");
        assert!(left_as.marker && left_as.maintenance == Some(true), "{left_as:?}");
        assert_eq!(host_of(&state, 2).phase, HostPhase::Pending, "nothing new starts");
        let state = resume(&lab).await;
        assert_eq!(state.exit(), Exit::Done, "{kind}: {state:#?}");
        assert_eq!(asked(&lab, ENTER), 2, "{kind}");
        assert_eq!(asked(&lab, "RebootHost_Task"), 2, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn sigterm_ends_with_143_and_a_signal_with_no_work_left_with_0() {
    let (lab, plan) = Scene::default().planned().await;
    let state = signalled(&lab, &plan, Duration::from_secs(60), Signal::Terminate).await;
    assert_eq!(state.exit().code(), 143);
    let (lab, plan) = Scene::default().planned().await;
    let state = interrupted(&lab, &plan, once_after(StepKind::ExitMaintenance, false)).await;
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
}

#[tokio::test(start_paused = true)]
async fn the_second_signal_sends_nothing_more_and_the_journal_is_whole() {
    let (lab, plan) = Scene::default().planned().await;
    let state = interrupted(&lab, &plan, |event| match event {
        Event::StepStarted { step, .. } if StepKind::from(step) == StepKind::Reboot => 2,
        _ => 0,
    })
    .await;
    assert_eq!(state.exit().code(), 130);
    assert!(asked(&lab, "RebootHost_Task") <= 1);
    assert_eq!(rollout::status(&lab.state, &state.run).unwrap(), state);
    let state = resume(&lab).await;
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    assert_eq!(asked(&lab, "RebootHost_Task"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_abort_gives_an_untouched_host_back() {
    let (lab, plan) = Scene { hosts: 2, ..Scene::default() }.planned().await;
    let before = hosts_as_they_are(&lab);
    let state = interrupted(&lab, &plan, once_after(StepKind::EnterMaintenance, true)).await;
    assert!(closed(&lab, 1));
    let run = state.run;
    let state = lab.run(async |engine| rollout::abort(engine, &run).await).await.unwrap();
    assert_eq!(host_of(&state, 1).phase, HostPhase::Done { outcome: Outcome::AsItWas }, "{state:#?}");
    assert_eq!(state.exit(), Exit::Done);
    assert_eq!(hosts_as_they_are(&lab), before);
    assert_eq!((closed(&lab, 1), marker(&lab, 1)), (false, String::new()));
}

#[tokio::test(start_paused = true)]
async fn an_abort_cancels_what_still_enters() {
    let scene = Scene { host: "enter: 10m", ..Scene::default() };
    let (lab, plan) = scene.planned().await;
    let trap = super::trap::Trap::new(super::trap::Point::Write(4), &lab.world);
    assert!(super::crash::apply(&lab, &plan, &trap).await.is_none());
    let run = lab.state.runs().unwrap().remove(0);
    let state = lab.run(async |engine| rollout::abort(engine, &run).await).await.unwrap();
    assert_eq!(host_of(&state, 1).phase, HostPhase::Done { outcome: Outcome::AsItWas }, "{state:#?}");
    assert_eq!(asked(&lab, "CancelTask"), 1);
    tokio::time::sleep(Duration::from_secs(1200)).await;
    assert_eq!((closed(&lab, 1), marker(&lab, 1)), (false, String::new()));
}

#[tokio::test(start_paused = true)]
async fn an_abort_of_a_changed_host_leaves_it_closed_and_only_forward_helps() {
    let (lab, plan) = Scene::default().planned().await;
    let state = interrupted(&lab, &plan, once_after(StepKind::SetPassthrough, true)).await;
    let run = state.run;
    let state = lab.run(async |engine| rollout::abort(engine, &run).await).await.unwrap();
    let HostPhase::Left { left_as, .. } = &host_of(&state, 1).phase else { panic!("{state:#?}") };
    assert_eq!((left_as.maintenance, left_as.marker), (Some(true), true));
    assert!(!left_as.pending.is_empty(), "{left_as:?}");
    assert_eq!(state.exit(), Exit::HostsLeft);
    assert_eq!(asked(&lab, EXIT), 0);
    assert_eq!(resume(&lab).await.exit(), Exit::Done);
}

#[tokio::test(start_paused = true)]
async fn a_failed_host_halts_the_run_until_it_is_retried() {
    let scene = Scene {
        hosts: 2,
        world: "faults: [{method: ExitMaintenanceMode_Task, times: 3, then: {fault: InvalidState}}]",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!(host_of(&state, 2).phase, HostPhase::Pending);
    assert_eq!(state.exit(), Exit::HostsLeft);
    // Resumed, it is still failed, and nothing new starts.
    let writes = lab.world.log().len();
    assert_eq!(resume(&lab).await.exit(), Exit::HostsLeft);
    assert_eq!(lab.world.log().len(), writes);
    // Another host cannot be retried.
    let (run, other) = (state.run, HostName::from("esx-02"));
    let refused = lab.run(async |engine| rollout::retry(engine, &run, &other).await).await;
    assert!(matches!(refused, Err(RunError::NotFailed { .. })));
    let failed = HostName::from("esx-01");
    let state = lab.run(async |engine| rollout::retry(engine, &run, &failed).await).await.unwrap();
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    assert_eq!(asked(&lab, "RebootHost_Task"), 2, "one for each host");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_lost_a_gpu_stays_closed() {
    let scene = Scene { host: "boot: {down: 90s, loseGpus: [\"0000:1f:00.0\"]}", ..Scene::default() };
    let (lab, plan) = scene.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft);
    assert!(closed(&lab, 1));
    assert!(failure(host_of(&state, 1)).contains("0000:1f:00.0"), "{}", failure(host_of(&state, 1)));
}

#[tokio::test(start_paused = true)]
async fn from_live_refuses_while_the_journal_is_here() {
    let (lab, plan) = Scene::default().planned().await;
    interrupted(&lab, &plan, once_after(StepKind::Reboot, true)).await;
    let refused = lab.run(async |engine| rollout::resume_from_live(engine, &plan).await).await;
    assert!(matches!(refused, Err(RunError::JournalIsHere { .. })));
}
