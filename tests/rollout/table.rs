//! The table "crash after" of the marker's format, row by row where the crash test alone does not tell.

use std::path::Path;
use std::time::Duration;

use poolwright::plan::Plan;
use poolwright::rollout::{self, Engine, Event, Exit, HostPhase, Outcome, RunState, StateDir, StepKind, interrupt};

use super::scene::{Scene, Watch, asked, closed, failure, host_of, interrupted, marker, resume, watched};
use super::trap::{Point, Trap};
use crate::support::lab::{Lab, in_memory};

/// Resumes from the live markers, with another state directory.
pub async fn from_live(lab: &Lab, plan: &Plan, elsewhere: &Path) -> RunState {
    with_state(lab, elsewhere, async |engine| rollout::resume_from_live(engine, plan).await.unwrap()).await
}

/// Does something with an engine that has another state directory.
pub async fn with_state<T>(lab: &Lab, elsewhere: &Path, work: impl AsyncFnOnce(Engine<'_>) -> T) -> T {
    let state = StateDir::open(elsewhere).unwrap();
    let fleet = lab.connect().await;
    let (_raise, signals) = interrupt();
    let mut watch = Watch::default();
    let ended = work(Engine { state: &state, ..lab.engine(&fleet, &mut watch, signals) }).await;
    fleet.close().await.unwrap();
    ended
}

/// The line of the journal, of a run that is left alone, after which `when` holds for the first time.
pub async fn line_of(scene: &Scene, when: impl Fn(&Event) -> bool) -> Point {
    let (lab, plan) = scene.planned().await;
    let (_, watch) = watched(&lab, &plan).await;
    let at = watch.events().iter().position(when).unwrap();
    Point::Line(at as u64 + 1)
}

fn started(kind: StepKind) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::StepStarted { step, .. } if StepKind::from(step) == kind)
}

#[tokio::test(start_paused = true)]
async fn marker_written_and_nothing_done_an_abort_clears_it() {
    let (lab, plan) = Scene::default().planned().await;
    // The field's definition, then the marker.
    let trap = Trap::new(Point::Write(2), &lab.world);
    assert!(super::crash::apply(&lab, &plan, &trap).await.is_none());
    assert!(marker(&lab, 1).contains("\"phase\":\"prechecking\""), "{}", marker(&lab, 1));
    let run = lab.state.runs().unwrap().remove(0);
    let state = lab.run(async |engine| rollout::abort(engine, &run).await).await.unwrap();
    assert_eq!(host_of(&state, 1).phase, HostPhase::Done { outcome: Outcome::AsItWas });
    assert_eq!(marker(&lab, 1), "");
    assert_eq!(asked(&lab, "EnterMaintenanceMode_Task"), 0);
}

#[tokio::test(start_paused = true)]
async fn taken_out_of_maintenance_by_somebody_else_it_is_held_and_says_who() {
    let scene = Scene::default();
    let point = line_of(&scene, started(StepKind::VerifyHost)).await;
    for live in [false, true] {
        let scene = Scene {
            world: "actors: [{who: somebody@vsphere.local, host: esx-01, after: 1h, does: leaveMaintenance}]",
            ..Scene::default()
        };
        let (lab, plan) = scene.planned().await;
        let trap = Trap::new(point, &lab.world);
        assert!(super::crash::apply(&lab, &plan, &trap).await.is_none());
        tokio::time::sleep(Duration::from_secs(2 * 3600)).await;
        assert!(!closed(&lab, 1));
        let elsewhere = in_memory();
        let state = if live { from_live(&lab, &plan, elsewhere.path()).await } else { resume(&lab).await };
        assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
        let said = failure(host_of(&state, 1));
        assert!(said.contains("out of the maintenance") && said.contains("somebody"), "{said}");
        assert_eq!(asked(&lab, "EnterMaintenanceMode_Task"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_visit_is_never_taken_up_by_itself() {
    let scene = Scene {
        world: "faults: [{method: UpdatePassthruConfig, times: 99, then: {lie: noEffect}}]",
        ..Scene::default()
    };
    // Dead just after the failure stands in the journal, and dead after all was said.
    let failed = line_of(&scene, |event| matches!(event, Event::StepFailed { .. })).await;
    for point in [failed, Point::Never] {
        for live in [false, true] {
            let (lab, plan) = scene.planned().await;
            let trap = Trap::new(point, &lab.world);
            let ended = super::crash::apply(&lab, &plan, &trap).await;
            assert_eq!(ended.is_none(), point != Point::Never);
            let tried = asked(&lab, "UpdatePassthruConfig");
            let elsewhere = in_memory();
            let state = if live { from_live(&lab, &plan, elsewhere.path()).await } else { resume(&lab).await };
            // The marker says `failed` only if the client lived to write it.
            if live && point != Point::Never {
                continue;
            }
            let HostPhase::Failed { left_as: Some(left_as), .. } = &host_of(&state, 1).phase else {
                panic!("{point:?}, {live}: {state:#?}");
            };
            assert!(left_as.marker && left_as.maintenance == Some(true), "{left_as:?}");
            assert!(marker(&lab, 1).contains("\"phase\":\"failed\""), "{}", marker(&lab, 1));
            assert_eq!(state.exit(), Exit::HostsLeft);
            let again = asked(&lab, "UpdatePassthruConfig");
            assert_eq!(again, tried, "nothing is tried again");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_visit_whose_journal_is_gone_can_be_retried() {
    let scene = Scene {
        world: "faults: [{method: ExitMaintenanceMode_Task, times: 3, then: {fault: InvalidState}}]",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    assert_eq!(state.unwrap().exit(), Exit::HostsLeft);
    let elsewhere = in_memory();
    let state = from_live(&lab, &plan, elsewhere.path()).await;
    assert_eq!(state.exit(), Exit::HostsLeft);
    let (run, host) = (state.run, "esx-01".into());
    let retry = async |engine: Engine<'_>| rollout::retry(engine, &run, &host).await.unwrap();
    let state = with_state(&lab, elsewhere.path(), retry).await;
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    assert_eq!(asked(&lab, "RebootHost_Task"), 1);
}

#[tokio::test(start_paused = true)]
async fn from_live_knows_hosts_that_are_done_and_goes_on_with_the_others() {
    let scene = Scene { hosts: 3, ..Scene::default() };
    let (lab, plan) = scene.planned().await;
    let nth = std::cell::Cell::new(0);
    let state = interrupted(&lab, &plan, move |event| match event {
        Event::StepDone { step: StepKind::EnterMaintenance, .. } => {
            nth.set(nth.get() + 1);
            u32::from(nth.get() == 2)
        }
        _ => 0,
    })
    .await;
    assert!(host_of(&state, 1).is_converged());
    let elsewhere = in_memory();
    let state = from_live(&lab, &plan, elsewhere.path()).await;
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    assert_eq!(host_of(&state, 1).phase, HostPhase::Done { outcome: Outcome::AlreadyConverged });
    assert_eq!(asked(&lab, "RebootHost_Task"), 3);
    assert_eq!(asked(&lab, "EnterMaintenanceMode_Task"), 3);
}

#[tokio::test(start_paused = true)]
async fn f11_no_secret_is_in_the_state_the_world_or_the_words_of_a_run() {
    let scene = Scene {
        hosts: 2,
        world: "faults: [{method: WaitForUpdatesEx, onCall: 2, then: endSession}, \
                {method: ExitMaintenanceMode_Task, onCall: 1, times: 3, then: {fault: InvalidState}}]",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    let (state, watch) = watched(&lab, &plan).await;
    let mut texts = vec![format!("{state:?}"), format!("{:?}", watch.entries), lab.world.snapshot().to_string()];
    texts.push(lab.world.log().iter().map(|write| format!("{write:?}")).collect());
    texts.push(String::from_utf8(plan.to_bytes()).unwrap());
    let mut folders = vec![lab.state_path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { texts.push(std::fs::read_to_string(path).unwrap()) }
        }
    }
    assert!(texts.len() > 8, "plan, mark, journal, lock and what was before of two hosts");
    let heard = lab.network.heard();
    assert!(heard.cookies.len() >= 3, "{:?}", heard.cookies);
    for secret in heard.cookies.iter().map(String::as_str).chain(["l4b-pa55"]).filter(|secret| !secret.is_empty()) {
        for text in &texts {
            assert!(!text.contains(secret), "{secret} is in {text}");
        }
    }
}
