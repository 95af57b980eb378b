//! Other hands on a host while it is visited: what a step does not find as it expects is not touched,
//! and what others did is not undone.

use std::time::Duration;

use poolwright::rollout::{self, Compensation, Event, Exit, HostPhase, Outcome, StepKind};

use super::scene::{Scene, asked, calls, closed, failure, host_of, interrupted, marker, watched};
use super::table::line_of;
use super::trap::Trap;
use super::ways::once_after;
use crate::support::lab::USER;

const ENTER: &str = "EnterMaintenanceMode_Task";
const EXIT: &str = "ExitMaintenanceMode_Task";

/// A scene in which somebody acts on the host just after a call of ours.
fn scene(after: &str, does: &str) -> Scene {
    let actor = format!("actors: [{{who: somebody, host: esx-01, once: {after}, does: {does}}}]");
    Scene { world: actor.leak(), ..Scene::default() }
}

/// The marker that says which step comes is written before the step looks again: the first says
/// `prechecking`, the second `closing`, the third `changing`.
#[tokio::test(start_paused = true)]
async fn a_step_that_finds_something_else_sends_nothing() {
    let gpu = |mode: &str| format!("{{configure: {{gpu: \"0000:17:00.0\", mode: {mode}}}}}");
    let cases = [
        (ENTER, scene("{method: SetField, onCall: 2}", "enterMaintenance")),
        ("UpdatePassthruConfig", scene("{method: SetField, onCall: 3}", "leaveMaintenance")),
        (
            "UpdatePassthruConfig",
            Scene {
                from: "{passthrough: {label: train}}",
                to: "[{mode: {passthrough: {label: infer}}}]",
                ..scene("{method: SetField, onCall: 1}", &gpu("{passthrough: {label: mine}}"))
            },
        ),
        (
            "UpdateGraphicsConfig",
            Scene {
                to: "[{mode: {vgpu: {size: mixed}}}]",
                ..scene("{method: SetField, onCall: 3}", &gpu("{shared: {}}"))
            },
        ),
        ("RebootHost_Task", scene("{method: UpdatePassthruConfig}", "leaveMaintenance")),
    ];
    for (call, scene) in cases {
        let (lab, plan) = scene.planned().await;
        let (state, _) = watched(&lab, &plan).await;
        let state = state.unwrap();
        assert_eq!(state.exit(), Exit::HostsLeft, "{call} {}: {state:#?}", scene.world);
        let said = failure(host_of(&state, 1));
        assert!(said.contains("refused: expected "), "{call} {}: {said}", scene.world);
        assert_eq!(asked(&lab, call), 0, "{call} {}", scene.world);
    }
}

/// Whenever somebody else begins to close the host: what they close is not taken for ours. The reads
/// are slow, so that they also come between our look and our call.
#[tokio::test(start_paused = true)]
async fn maintenance_that_somebody_else_asked_for_is_never_left_by_us() {
    let (mut met, mut ours) = (0, 0);
    for after in 0..40 {
        let world = format!(
            "faults: [{{method: RetrievePropertiesEx, times: 9999, then: {{delay: 2s}}}}]\n  \
             actors: [{{who: somebody, host: esx-01, once: {{method: SetField, onCall: 1}}, after: {after}s, \
             does: enterMaintenance}}]"
        );
        let scene = Scene { world: world.leak(), pace: "{hostStable: 20s, readBack: 60s}", ..Scene::default() };
        let (lab, plan) = scene.planned().await;
        let (state, _) = watched(&lab, &plan).await;
        tokio::time::sleep(Duration::from_secs(300)).await;
        let entered = calls(&lab, ENTER).iter().filter(|write| write.who == USER).count();
        met += asked(&lab, ENTER) - entered;
        ours += entered;
        if entered == 0 {
            assert_eq!(asked(&lab, EXIT), 0, "after {after} s: {state:#?}");
            assert_eq!(asked(&lab, "UpdatePassthruConfig"), 0, "after {after} s");
            assert_eq!(asked(&lab, "CancelTask"), 0, "after {after} s");
            assert_eq!(marker(&lab, 1), "", "after {after} s");
            assert!(closed(&lab, 1), "after {after} s");
        }
    }
    assert!(met > 0 && ours > 0, "{met} calls met their task, {ours} were first");
}

/// Dead just after the failure stands in the journal: nobody has looked at the host yet.
#[tokio::test(start_paused = true)]
async fn an_abort_leaves_the_maintenance_of_somebody_else_alone() {
    let scene = scene("{method: SetField, onCall: 2}", "enterMaintenance");
    let point = line_of(&scene, |event| matches!(event, Event::StepFailed { .. })).await;
    let (lab, plan) = scene.planned().await;
    let trap = Trap::new(point, &lab.world);
    assert!(super::crash::apply(&lab, &plan, &trap).await.is_none());
    tokio::time::sleep(Duration::from_secs(300)).await;
    let run = lab.state.runs().unwrap().remove(0);
    let state = lab.run(async |engine| rollout::abort(engine, &run).await).await.unwrap();
    assert_eq!(host_of(&state, 1).armed, [], "{state:#?}");
    assert_eq!((asked(&lab, EXIT), asked(&lab, "CancelTask")), (0, 0));
    assert_eq!((closed(&lab, 1), marker(&lab, 1)), (true, String::new()));
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_put_back_is_left_alone_and_said_so() {
    let scene = Scene {
        world: "actors: [{who: somebody, host: esx-01, after: 1h, does: leaveMaintenance}]",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    let run = interrupted(&lab, &plan, once_after(StepKind::EnterMaintenance, true)).await.run;
    tokio::time::sleep(Duration::from_secs(2 * 3600)).await;
    let state = lab.run(async |engine| rollout::abort(engine, &run).await).await.unwrap();
    let host = host_of(&state, 1);
    assert_eq!(host.phase, HostPhase::Done { outcome: Outcome::AsItWas }, "{state:#?}");
    assert_eq!(host.left_alone.len(), 1, "{host:#?}");
    assert_eq!(host.left_alone[0].0, Compensation::Maintenance);
    assert_eq!(asked(&lab, EXIT), 0);
}
