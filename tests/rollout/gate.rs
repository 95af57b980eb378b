//! The host gate stands twice: before a host leaves maintenance, where late facts are waited for, and
//! in the step that leaves. Each of the two is shown alone.

use std::time::Duration;

use poolwright::rollout::Exit;

use super::scene::{Scene, asked, closed, failure, host_of, watched};

const EXIT: &str = "ExitMaintenanceMode_Task";

/// A host without a step that leaves maintenance has the first gate alone.
#[tokio::test(start_paused = true)]
async fn a_host_that_is_worse_than_before_is_not_done_whatever_its_visit_consists_of() {
    let alarm = |method: &str| {
        let once = format!("once: {{method: {method}}}, does: {{alarm: {{name: fan}}}}");
        &*format!("actors: [{{who: hardware, host: esx-01, {once}}}]").leak()
    };
    let scenes = [
        ("maintenance and a reboot", Scene { world: alarm("RebootHost_Task"), ..Scene::default() }),
        (
            "found in maintenance and left there",
            Scene {
                host: "maintenance: true",
                rollout: "{maxUnavailable: 1, maxReboots: 2, foundInMaintenance: change}",
                world: alarm("RebootHost_Task"),
                ..Scene::default()
            },
        ),
        (
            "a label",
            Scene {
                from: "{passthrough: {label: train}}",
                to: "[{mode: {passthrough: {label: infer}}}]",
                world: alarm("UpdatePassthruConfig"),
                ..Scene::default()
            },
        ),
    ];
    for (case, scene) in scenes {
        let (lab, plan) = scene.planned().await;
        let (state, _) = watched(&lab, &plan).await;
        let state = state.unwrap();
        assert_eq!(state.exit(), Exit::HostsLeft, "{case}");
        let said = failure(host_of(&state, 1));
        assert!(said.starts_with("verifying: ") && said.contains("alarms"), "{case}: {said}");
        assert_eq!(asked(&lab, EXIT), 0, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_back_late_after_a_reboot_is_waited_for() {
    let scene = Scene { host: "boot: {down: 90s, storage: 8m}", ..Scene::default() };
    let (lab, plan) = scene.planned().await;
    let (state, watch) = watched(&lab, &plan).await;
    assert_eq!(state.unwrap().exit(), Exit::Done);
    let waits = watch.waits.lock().unwrap().clone();
    assert!(waits.iter().any(|wait| wait.contains("datastores")), "{waits:#?}");
}

/// Between the first gate and the way out somebody touches a GPU: the sixth marker says `exiting`.
#[tokio::test(start_paused = true)]
async fn a_host_that_turns_bad_after_the_gate_does_not_leave_maintenance() {
    let scene = Scene {
        world: "actors: [{who: somebody, host: esx-01, once: {method: SetField, onCall: 6}, does: {configure: \
                {gpu: \"0000:17:00.0\", mode: {vgpu: {size: same}}}}}]",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft);
    let said = failure(host_of(&state, 1));
    assert!(said.starts_with("leaving maintenance: refused: ") && said.contains("0000:17:00.0"), "{said}");
    assert_eq!(asked(&lab, EXIT), 0);
    assert!(closed(&lab, 1));
}

/// Its facts may be late for some minutes (vsphere-gpu §3.5), so the GPU is not taken for lost at once;
/// who watches reads which GPU it is, and until when it is waited for.
#[tokio::test(start_paused = true)]
async fn a_gpu_that_is_gone_after_a_reboot_is_named_while_it_is_waited_for() {
    let scene = Scene { host: "boot: {down: 90s, loseGpus: [\"0000:1f:00.0\"]}", ..Scene::default() };
    let (lab, plan) = scene.planned().await;
    let (state, watch) = watched(&lab, &plan).await;
    assert_eq!(state.unwrap().exit(), Exit::HostsLeft);
    let waits = watch.limits.lock().unwrap().clone();
    let named: Vec<_> = waits.iter().filter(|(what, _)| what.contains("0000:1f:00.0")).collect();
    assert!(named.len() > 10, "{waits:#?}");
    assert!(named.iter().all(|(_, limit)| *limit == Duration::from_secs(600)), "{named:#?}");
}
