//! What cannot be read or written at the wrong moment, and what is not known to have ended: the host is
//! left alone, or left marked; never given back on a guess.

use std::time::Duration;

use poolwright::rollout::{self, Exit, HostPhase};

use super::scene::{Scene, Watch, asked, closed, failure, host_of, marker, resume, signalled, watched};
use crate::support::lab::in_memory;

const ENTER: &str = "EnterMaintenanceMode_Task";

fn scene(faults: &str) -> Scene {
    Scene { world: format!("faults: [{faults}]").leak(), ..Scene::default() }
}

/// A read of the host that fails while the visit is planned: the baseline would say "?" for ever.
#[tokio::test(start_paused = true)]
async fn a_visit_does_not_begin_with_a_state_that_could_not_be_compared() {
    let mut held = 0;
    let plan = scene("").lab().plan().await;
    for call in 1..=16 {
        for fault in ["RuntimeFault", "NoPermission"] {
            let lab =
                scene(&format!("{{method: RetrievePropertiesEx, onCall: {call}, times: 2, then: {{fault: {fault}}}}}"))
                    .lab();
            let Ok(fleet) = lab.try_connect().await else { continue };
            let (_raise, signals) = rollout::interrupt();
            let mut sink = Watch::default();
            let state = rollout::apply(lab.engine(&fleet, &mut sink, signals), &plan).await;
            fleet.close().await.unwrap();
            let mut state = state.unwrap();
            if state.exit() != Exit::Done {
                held += 1;
                assert_eq!(asked(&lab, ENTER), 0, "call {call} {fault}: {state:#?}");
                assert_eq!(state.exit(), Exit::WorkLeft, "call {call} {fault}: {state:#?}");
                // The second of the two may hit that one, too.
                state = resume(&lab).await;
                state = if state.exit() == Exit::Done { state } else { resume(&lab).await };
            }
            assert_eq!(state.exit(), Exit::Done, "call {call} {fault}: {state:#?}");
            assert_eq!(marker(&lab, 1), "");
        }
    }
    assert!(held > 0, "no read decided");
}

/// The marker of any step cannot be written: the run ends in order, says so, and goes on later.
#[tokio::test(start_paused = true)]
async fn a_marker_that_cannot_be_written_ends_the_visit_in_order() {
    let mut stopped = 0;
    for call in 1..=7 {
        for then in ["{fault: RuntimeFault}", "{lie: noEffect}", "dropBefore"] {
            let (lab, plan) =
                scene(&format!("{{method: SetField, onCall: {call}, times: 1000, then: {then}}}")).planned().await;
            let (state, _) = watched(&lab, &plan).await;
            let state = state.unwrap_or_else(|error| panic!("call {call} {then}: {error:?}"));
            stopped += u32::from(state.exit() != Exit::Done);
            match &host_of(&state, 1).phase {
                HostPhase::Held { .. } => assert!(!closed(&lab, 1), "call {call} {then}"),
                HostPhase::Failed { .. } => assert!(!failure(host_of(&state, 1)).is_empty()),
                other => panic!("call {call} {then}: {other:?}"),
            }
        }
    }
    assert_eq!(stopped, 21);
}

/// The entering cannot be cancelled: the host would end closed with nobody's mark on it.
#[tokio::test(start_paused = true)]
async fn an_abort_whose_cancel_is_refused_gives_nothing_back() {
    let scene = Scene {
        host: "enter: 5m",
        world: "faults: [{method: CancelTask, times: 1000, then: {fault: NotSupported}}]",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    let run = signalled(&lab, &plan, Duration::from_secs(30), rollout::Signal::Interrupt).await.run;
    let state = lab.run(async |engine| rollout::abort(engine, &run).await).await.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    assert_ne!(marker(&lab, 1), "", "it is still ours");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(closed(&lab, 1));
    // Once it has ended, the host is given back.
    let state = lab.run(async |engine| rollout::abort(engine, &run).await).await.unwrap();
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    assert_eq!((closed(&lab, 1), marker(&lab, 1)), (false, String::new()));
}

/// From some read on it cannot be read whether the host still enters: that is not "no".
#[tokio::test(start_paused = true)]
async fn a_host_that_may_still_enter_keeps_its_marker() {
    let mut closed_at_the_end = 0;
    for call in 1..=40 {
        let scene = Scene {
            host: "enter: 5m",
            world: format!(
                "faults: [{{method: CancelTask, times: 1000, then: {{fault: NotSupported}}}}, \
                 {{method: RetrievePropertiesEx, onCall: {call}, times: 1000, then: {{missing: [recentTask]}}}}]"
            )
            .leak(),
            ..Scene::default()
        };
        let lab = scene.lab();
        let plan = lab.plan().await;
        if plan.hosts.is_empty() {
            continue;
        }
        let run = signalled(&lab, &plan, Duration::from_secs(30), rollout::Signal::Interrupt).await.run;
        lab.run(async |engine| rollout::abort(engine, &run).await).await.unwrap();
        tokio::time::sleep(Duration::from_secs(600)).await;
        closed_at_the_end += u32::from(closed(&lab, 1));
        assert!(!closed(&lab, 1) || !marker(&lab, 1).is_empty(), "call {call}");
    }
    assert!(closed_at_the_end > 0, "the case did not come up");
}

#[tokio::test(start_paused = true)]
async fn an_abort_leaves_a_failed_host_failed_and_a_resume_does_not_verify_it() {
    let scene = Scene { hosts: 2, host: "boot: {down: 90s, storage: 30m}", ..Scene::default() };
    let (lab, plan) = scene.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let run = state.unwrap().run;
    let state = lab.run(async |engine| rollout::abort(engine, &run).await).await.unwrap();
    assert!(failure(host_of(&state, 1)).contains("datastores"), "{:?}", host_of(&state, 1).phase);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let writes = lab.world.log().len();
    let state = resume(&lab).await;
    assert_eq!(lab.world.log().len(), writes, "nothing is done by itself");
    assert_eq!(host_of(&state, 2).phase, HostPhase::Pending);
    let host = "esx-01".into();
    let state = lab.run(async |engine| rollout::retry(engine, &run, &host).await).await.unwrap();
    assert!(host_of(&state, 1).is_converged(), "{:?}", host_of(&state, 1).phase);
}

/// A second process takes the run up from the markers while the first still works: whoever finds the
/// other's marker stops, and leaves it.
#[tokio::test(start_paused = true)]
async fn of_two_processes_on_one_run_one_goes_on() {
    let mut met = 0;
    for after in [10, 40, 100, 150, 200] {
        let (lab, plan) = Scene::default().planned().await;
        let other = in_memory();
        let second = rollout::StateDir::open(other.path()).unwrap();
        let later = async {
            tokio::time::sleep(Duration::from_secs(after)).await;
            let fleet = lab.connect().await;
            let (_raise, signals) = rollout::interrupt();
            let mut sink = Watch::default();
            let engine = rollout::Engine { state: &second, ..lab.engine(&fleet, &mut sink, signals) };
            let ended = rollout::resume_from_live(engine, &plan).await;
            fleet.close().await.unwrap();
            ended
        };
        let ((first, _), second) = tokio::join!(watched(&lab, &plan), later);
        let ends = [first.unwrap(), second.unwrap()];
        let (done, stopped): (Vec<_>, Vec<_>) = ends.iter().partition(|state| state.exit() == Exit::Done);
        assert!(!done.is_empty(), "after {after} s: {ends:#?}");
        for state in &stopped {
            let said = format!("{:?}", host_of(state, 1).phase);
            assert!(said.contains("another process works on this run"), "after {after} s: {said}");
        }
        met += stopped.len();
        assert_eq!(asked(&lab, "ExitMaintenanceMode_Task"), 1, "after {after} s");
        assert_eq!(marker(&lab, 1), "", "after {after} s");
        assert_eq!(asked(&lab, "RebootHost_Task"), 1, "after {after} s");
    }
    assert!(met > 0, "they never met");
}

/// A reboot that never came: tried again by a person, it is not waited for a second time, and a boot
/// by hand is taken for it.
#[tokio::test(start_paused = true)]
async fn a_reboot_that_never_came_is_told_and_a_boot_by_hand_counts() {
    let scene = Scene {
        world: "faults: [{method: RebootHost_Task, then: {lie: noEffect}}]\n  \
                actors: [{who: somebody, host: esx-01, after: 10h, does: reboot}]",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    let said = failure(host_of(&state, 1));
    assert!(said.contains("reboot it by hand"), "{said}");
    let (run, host) = (state.run, "esx-01".into());
    let before = lab.world.now();
    let state = lab.run(async |engine| rollout::retry(engine, &run, &host).await).await.unwrap();
    assert!(failure(host_of(&state, 1)).contains("reboot it by hand"));
    assert!(lab.world.now().duration_since(before).as_secs() < 600, "no second wait");
    assert_eq!(asked(&lab, "RebootHost_Task"), 1);
    tokio::time::sleep(Duration::from_secs(11 * 3600)).await;
    let state = lab.run(async |engine| rollout::retry(engine, &run, &host).await).await.unwrap();
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    assert_eq!(asked(&lab, "RebootHost_Task"), 1);
}
