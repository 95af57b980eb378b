//! The budget, asked before each start of an outage, by whatever way it comes to that.

use std::time::Duration;

use poolwright::plan::Reason;
use poolwright::rollout::{self, Engine, Exit, Held, HostPhase, StateDir, StepKind};

use super::nodes::{Nodes, stands};
use super::scene::{Scene, Watch, asked, calls, host_of, interrupted, marker, resume, watched};
use super::ways::once_after;
use crate::support::lab::{USER, in_memory};

const ENTER: &str = "EnterMaintenanceMode_Task";

/// Two hosts of which one may be down; a person closes the second after an hour.
fn scene() -> Scene {
    Scene {
        hosts: 2,
        world: "actors: [{who: somebody, host: esx-02, after: 1h, does: enterMaintenance}]",
        ..Scene::default()
    }
}

fn is_held_by_budget(phase: &HostPhase) -> bool {
    matches!(phase, HostPhase::Held { why: Held::Budget { .. } })
}

#[tokio::test(start_paused = true)]
async fn a_host_whose_entering_was_cancelled_is_in_service_and_asks_again() {
    let (lab, plan) = scene().planned().await;
    interrupted(&lab, &plan, once_after(StepKind::EnterMaintenance, false)).await;
    let before = asked(&lab, ENTER);
    tokio::time::sleep(Duration::from_secs(2 * 3600)).await;
    let state = resume(&lab).await;
    assert_eq!(asked(&lab, ENTER), before, "nothing is closed beside esx-02");
    assert!(is_held_by_budget(&host_of(&state, 1).phase), "{:?}", host_of(&state, 1).phase);
    assert_eq!(marker(&lab, 1), "", "nothing of ours is left on a host in service");
    assert_eq!(host_of(&state, 1).armed, []);
    assert_eq!(state.exit(), Exit::WorkLeft);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_changed_while_it_was_given_back_is_refused() {
    let scene = Scene {
        world: "actors: [{who: somebody, host: esx-01, after: 1h, does: {configure: {gpu: \"0000:17:00.0\", \
                mode: {passthrough: {label: mine}}}}}]",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    interrupted(&lab, &plan, once_after(StepKind::EnterMaintenance, false)).await;
    tokio::time::sleep(Duration::from_secs(2 * 3600)).await;
    let state = resume(&lab).await;
    assert_eq!(calls(&lab, "UpdatePassthruConfig").iter().filter(|write| write.who == USER).count(), 0, "{state:#?}");
    assert_ne!(state.exit(), Exit::Done);
}

/// The marker of another run, as a world document quotes it.
pub const THEIRS: &str = r#"{\"v\":1,\"run\":\"01OTHER\",\"plan\":\"ab12\",\"host\":\"x\",\"phase\":\"closing\",\"at\":\"2026-11-30T20:00:00Z\",\"reboots\":[0,1],\"arm\":[],\"base\":{\"ds\":\"1/1\",\"up\":\"1/1\",\"das\":\"-\",\"crypto\":\"-\",\"dev\":\"?\",\"alarms\":\"0\"}}"#;

#[tokio::test(start_paused = true)]
async fn a_host_that_another_run_has_marked_counts_as_down() {
    let world = format!(
        "actors: [{{who: somebody, host: esx-02, after: 1m, does: {{setField: {{name: poolwright.run, value: \"{THEIRS}\"}}}}}}]"
    );
    let scene = Scene { hosts: 2, world: world.leak(), ..Scene::default() };
    let (lab, plan) = scene.planned().await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!(asked(&lab, ENTER), 0);
    assert!(is_held_by_budget(&host_of(&state, 1).phase), "{:?}", host_of(&state, 1).phase);
    assert_eq!(marker(&lab, 1), "");
}

/// A person cordons the node of the second host: its GPUs give no service. The second host itself is not held by
/// that, nor by the cordon of its own visit.
#[tokio::test(start_paused = true)]
async fn a_host_with_a_node_that_a_person_has_cordoned_counts_as_down() {
    let vms = "[{name: vm-1, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}], node: {cluster: k8s-a, name: gpu-a}}, \
        {name: vm-2, host: esx-02, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}], node: {cluster: k8s-b, name: gpu-b}}]";
    let world = "actors: [{who: somebody, after: 1m, does: {cordon: {cluster: k8s-b, node: gpu-b}}}]";
    let lab = Nodes { vms, world, names: "esx-*", ..Nodes::default() }.lab();
    let plan = lab.plan().await;
    assert_eq!(plan.order.len(), 2, "{:#?}", plan.findings);
    tokio::time::sleep(Duration::from_secs(120)).await;
    let state = lab.apply(&plan).await.unwrap();
    match &host_of(&state, 1).phase {
        HostPhase::Held { why: Held::Budget { down, .. } } => assert_eq!(down, &["esx-02: gpu-b of k8s-b: cordoned"]),
        other => panic!("{other:?}"),
    }
    assert!(matches!(host_of(&state, 2).phase, HostPhase::Done { .. }), "{:?}", host_of(&state, 2).phase);
    assert_eq!(stands(&lab, "k8s-b", "gpu-b"), (true, None), "as the person wanted it");
    assert_eq!(state.exit(), Exit::WorkLeft);
    let again = lab.plan().await;
    assert_eq!(
        again.not_acted.iter().filter(|host| host.reason == Reason::Budget).count(),
        1,
        "{:#?}",
        again.not_acted
    );
}

/// Two runs on two hosts of one pool begin at the same moment: each sees the other's mark after it
/// has written its own, if not before.
#[tokio::test(start_paused = true)]
async fn two_runs_of_one_pool_never_close_more_than_it_allows() {
    let (lab, plan) = Scene { hosts: 2, ..Scene::default() }.planned().await;
    let only = |number: usize| {
        let mut plan = plan.clone();
        plan.hosts.retain(|host| host.host.name.as_str() == format!("esx-{number:02}"));
        plan.order.retain(|host| host.as_str() == format!("esx-{number:02}"));
        plan
    };
    let (one, two) = (only(1), only(2));
    let dir = in_memory();
    let other = StateDir::open(dir.path()).unwrap();
    let second = async {
        let fleet = lab.connect().await;
        let (_raise, signals) = rollout::interrupt();
        let mut sink = Watch::default();
        let engine = Engine { state: &other, ..lab.engine(&fleet, &mut sink, signals) };
        let ended = rollout::apply(engine, &two).await;
        fleet.close().await.unwrap();
        ended.unwrap()
    };
    let ((first, _), second) = tokio::join!(watched(&lab, &one), second);
    let mut closed = 0;
    for write in lab.world.log().iter().filter(|write| write.effect) {
        match write.call.as_str() {
            ENTER => closed += 1,
            "ExitMaintenanceMode_Task" => closed -= 1,
            _ => {}
        }
        assert!(closed <= 1, "{:#?}", lab.world.log());
    }
    let held = [host_of(&first.unwrap(), 1).phase.clone(), host_of(&second, 2).phase.clone()];
    assert!(held.iter().any(is_held_by_budget), "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn a_plan_under_way_whose_journal_is_lost_is_not_applied_anew() {
    let (lab, plan) = Scene::default().planned().await;
    let run = interrupted(&lab, &plan, once_after(StepKind::Reboot, true)).await.run;
    let dir = in_memory();
    let empty = StateDir::open(dir.path()).unwrap();
    let fleet = lab.connect().await;
    let (_raise, signals) = rollout::interrupt();
    let mut sink = Watch::default();
    let again = rollout::apply(Engine { state: &empty, ..lab.engine(&fleet, &mut sink, signals) }, &plan).await;
    match again.unwrap_err() {
        rollout::RunError::UnderWay { run: found, .. } => assert_eq!(found, run),
        other => panic!("{other}"),
    }
    assert_eq!(empty.spent(&plan.id).unwrap(), None, "the plan is not spent by it");
    let (_raise, signals) = rollout::interrupt();
    let engine = Engine { state: &empty, ..lab.engine(&fleet, &mut sink, signals) };
    let state = rollout::resume_from_live(engine, &plan).await.unwrap();
    fleet.close().await.unwrap();
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    assert_eq!(asked(&lab, "RebootHost_Task"), 1);
}
