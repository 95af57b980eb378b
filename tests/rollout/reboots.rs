//! A reboot is asked for once, and one that had no effect is never repeated: with the journal, and
//! from the marker alone.

use std::time::Duration;

use poolwright::model::Marker;
use poolwright::plan::Plan;
use poolwright::rollout::{self, Engine, Exit, FailureClass, HostPhase, RunState};

use super::scene::{Scene, asked, failure, host_of, marker, resume, watched};
use super::table::{from_live, with_state};
use super::trap::{Point, Trap};
use crate::support::lab::{Lab, in_memory};

const REBOOT: &str = "RebootHost_Task";

/// The reboot's task ends well, and the host stays up.
fn hollow() -> Scene {
    Scene { world: "faults: [{method: RebootHost_Task, then: {lie: noEffect}}]", ..Scene::default() }
}

/// The host boots, and the GPU does not become what it should: the host default is not ours to change.
fn in_vain() -> Scene {
    Scene {
        from: "{passthrough: {label: train}}",
        to: "[{select: {count: 1}, mode: {vgpu: {size: same}}}]",
        world: "readings: {hostDefaultNeeded: yes, whilePassthrough: stored}",
        rollout: "{maxUnavailable: 1, maxReboots: 3}",
        ..Scene::default()
    }
}

/// The write, of a run that is left alone, that is the reboot, and how many there are.
async fn writes(scene: &Scene) -> (usize, usize) {
    let (lab, plan) = scene.planned().await;
    let before = lab.world.log().len();
    watched(&lab, &plan).await.0.unwrap();
    let log = lab.world.log();
    (log.iter().position(|write| write.call == REBOOT).unwrap() + 1 - before, log.len() - before)
}

/// A lab whose client died after a write, and some time later.
async fn dead(scene: &Scene, write: usize, pause: u64) -> (Lab, Plan) {
    let (lab, plan) = scene.planned().await;
    let trap = Trap::new(Point::Write(write), &lab.world);
    assert!(super::crash::apply(&lab, &plan, &trap).await.is_none());
    tokio::time::sleep(Duration::from_secs(pause)).await;
    (lab, plan)
}

/// Resumes, and retries the host once; with the journal or from live.
async fn resumed_and_retried(lab: &Lab, plan: &Plan, live: bool) -> [RunState; 2] {
    let host = "esx-01".into();
    if !live {
        let first = resume(lab).await;
        let run = first.run.clone();
        return [first, lab.run(async |engine| rollout::retry(engine, &run, &host).await).await.unwrap()];
    }
    let elsewhere = in_memory();
    let first = from_live(lab, plan, elsewhere.path()).await;
    let run = first.run.clone();
    let retry = async |engine: Engine<'_>| rollout::retry(engine, &run, &host).await.unwrap();
    let second = with_state(lab, elsewhere.path(), retry).await;
    [first, second]
}

/// Its task has ended and the host is still up when somebody looks again.
#[tokio::test(start_paused = true)]
async fn a_reboot_whose_task_has_ended_is_not_sent_again_while_the_host_is_still_up() {
    let (reboot, all) = writes(&hollow()).await;
    for write in reboot..=all {
        for live in [false, true] {
            let (lab, plan) = dead(&hollow(), write, 60).await;
            for state in resumed_and_retried(&lab, &plan, live).await {
                assert_eq!(state.exit(), Exit::HostsLeft, "write {write}, live {live}: {state:#?}");
                assert_eq!(asked(&lab, REBOOT), 1, "write {write}, live {live}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reboot_without_effect_is_not_repeated_whatever_is_lost() {
    let (reboot, all) = writes(&in_vain()).await;
    assert!(all > reboot, "the marker of the failure comes after it");
    for write in reboot..=all {
        for live in [false, true] {
            let (lab, plan) = dead(&in_vain(), write, 1200).await;
            assert!(plan.hosts[0].reboots.most > 1, "another one is approved");
            for state in resumed_and_retried(&lab, &plan, live).await {
                assert_eq!(state.exit(), Exit::HostsLeft, "write {write}, live {live}: {state:#?}");
                assert_eq!(asked(&lab, REBOOT), 1, "write {write}, live {live}");
                assert_eq!(lab.world.tally().hosts["esx-01"].boots, 1);
            }
            let said = failure(host_of(&resumed(&lab, &plan).await, 1));
            assert!(said.contains("no effect on type sharedDirect: 0000:17:00.0"), "write {write}: {said}");
        }
    }
}

/// What a further retry from live says.
async fn resumed(lab: &Lab, plan: &Plan) -> RunState {
    let [_, state] = resumed_and_retried(lab, plan, true).await;
    state
}

/// Somebody else's reboot is one, too: the host goes down once.
#[tokio::test(start_paused = true)]
async fn a_reboot_that_somebody_else_asked_for_meanwhile_is_waited_for() {
    let scene = Scene {
        host: "boot: {shutdown: 5m, down: 90s}",
        world: "faults: [{method: RebootHost_Task, then: dropBefore}]\n  \
                actors: [{who: somebody, host: esx-01, once: {method: SetField, onCall: 4}, after: 10s, does: reboot}]",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    assert_eq!(state.unwrap().exit(), Exit::Done);
    assert_eq!((asked(&lab, REBOOT), lab.world.tally().hosts["esx-01"].boots), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_marker_says_what_a_reboot_is_for_until_something_else_is_written() {
    let (reboot, _) = writes(&Scene::default()).await;
    let (lab, _) = dead(&Scene::default(), reboot, 0).await;
    let asked: Marker = serde_json::from_str(&marker(&lab, 1)).unwrap();
    let last = asked.last.unwrap();
    assert!(last.asked.is_some() && last.boot < lab.world.now());
    assert_eq!(last.pend.keys().collect::<Vec<_>>(), ["passthrough on"]);
    assert_eq!(last.pend["passthrough on"].len(), 2);
    // The next marker is that of the gate.
    let (lab, _) = dead(&Scene::default(), reboot + 1, 0).await;
    let proven: Marker = serde_json::from_str(&marker(&lab, 1)).unwrap();
    assert_eq!((proven.reboots[0], proven.last.unwrap().asked), (1, None));
}

/// As many GPUs as a host has, each with two things that wait: still short enough to be written.
#[test]
fn the_marker_of_the_largest_host_is_short_enough() {
    let text = r#"{"v":1,"run":"01JDAAAAAAAAAAAAAAAAAAAAAA","plan":"ab12cd34ef567890","host":"4c4c4544-0042-3510-8058-b4c04f4e4d32","phase":"rebooting","at":"2026-11-30T22:04:11.123456789Z","reboots":[1,2],"last":{"asked":"2026-11-30T22:04:11.123456789Z","boot":"2026-11-01T03:00:00.123456Z"},"arm":[["maintenance","-","out"]],"base":{"ds":"120/120","up":"8/8","das":"connectedToMaster","crypto":"incapable","dev":"7b1e7b1e7b1e7b1e","alarms":"12"}}"#;
    let mut marker: Marker = serde_json::from_str(text).unwrap();
    let gpus: Vec<_> = (0..16).map(|bus| format!("0000:{:02x}:00.0", 16 + 8 * bus).parse().unwrap()).collect();
    let pend = &mut marker.last.as_mut().unwrap().pend;
    pend.insert("passthrough off".to_owned(), gpus.clone());
    pend.insert("type sharedDirect".to_owned(), gpus);
    let long = serde_json::to_string(&marker).unwrap().len();
    assert!(long <= Marker::LIMIT * 3 / 4, "{long} bytes");
}

#[tokio::test(start_paused = true)]
async fn a_reboot_that_is_not_proven_in_time_says_so() {
    let (lab, plan) = hollow().planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    let HostPhase::Failed { class, .. } = host_of(&state, 1).phase else { panic!("{state:#?}") };
    assert_eq!(class, FailureClass::Timeout);
    let left: Marker = serde_json::from_str(&marker(&lab, 1)).unwrap();
    assert!(left.last.unwrap().asked.is_some(), "it is still looked for after the failure");
}
