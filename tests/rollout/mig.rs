//! MIG through the shell of a host and by hand: what is started and stopped around it and put back, one
//! login, a person who is waited for.

use std::time::Duration;

use poolwright::model::HostName;
use poolwright::plan::Plan;
use poolwright::rollout::{
    self, Compensation, Event, Exit, HostPhase, Outcome, RunError, RunState, Stage, StepKind, interrupt,
};

use super::scene::{Scene, Watch, asked, closed, failure, host_of, interrupted, marker, resume, watched};
use crate::support::lab::{DIRECT, Lab, Silent, USER};

const SHELL: &str =
    "shell: {way: direct, users: [{user: root, password: \"file:ESX_PASSWORD\"}], hostKeys: {file: KNOWN_HOSTS}}";
const MIG: &str = "[{mode: {migVgpu: {}}}]";
const A100: &str = "a100-pcie-80";
const HOST: &str = "shell: {users: [{name: root, password: lab}]}";

fn by_shell() -> Scene {
    assert!(SHELL.ends_with(DIRECT));
    Scene { to: MIG, site: SHELL, host: HOST, ..Scene::default() }
}

fn by_hand() -> Scene {
    Scene { to: MIG, host: HOST, ..Scene::default() }
}

/// What was done to hosts and at their shells, in order, refused calls left out.
fn deeds(lab: &Lab) -> Vec<String> {
    let told = |call: &str| {
        let calls = [
            "StartService",
            "StopService",
            "EnterMaintenanceMode_Task",
            "ExitMaintenanceMode_Task",
            "UpdatePassthruConfig",
            "UpdateGraphicsConfig",
            "RebootHost_Task",
            "ShutdownGuest",
            "PowerOnVM_Task",
        ];
        calls.contains(&call) || call.starts_with("nv")
    };
    let log = lab.world.log().into_iter().filter(|write| write.effect && told(&write.call));
    let words = log.map(|write| match write.call.starts_with("nvdGpu") {
        true => format!("{} {}", write.call, write.arguments),
        false => write.call.trim_end_matches("_Task").to_owned(),
    });
    words.collect()
}

/// How the shell of a host stands: the SSH service, the daemon.
fn shell(lab: &Lab, number: u32) -> (bool, String) {
    let snapshot = lab.world.snapshot();
    let host = crate::support::look::host(&snapshot, &format!("esx-{number:02}"));
    (host["ssh"]["running"].as_bool().unwrap(), host["monitor"].as_str().unwrap().to_owned())
}

/// Resumes after a person has said that it is done.
async fn confirmed(lab: &Lab, state: &RunState) -> Result<RunState, RunError> {
    lab.run(async |engine| rollout::confirm(engine, &state.run, &HostName::from("esx-01")).await).await
}

/// Applies, and waits for a person so long.
async fn waiting(lab: &Lab, plan: &Plan, wait: Duration) -> (RunState, Watch) {
    let fleet = lab.connect().await;
    let (_raise, signals) = interrupt();
    let watch = Watch::default();
    let mut sink = watch.clone();
    let (_confirm, handoff) = rollout::handoff(wait);
    let engine = rollout::Engine { handoff, ..lab.engine(&fleet, &mut sink, signals) };
    let ended = rollout::apply(engine, plan).await;
    fleet.close().await.unwrap();
    (ended.unwrap(), watch)
}

fn logins(lab: &Lab) -> usize {
    lab.world.log().iter().filter(|write| write.call == "SshLogin").count()
}

#[tokio::test(start_paused = true)]
async fn of_hopper_it_is_switched_once_the_host_is_empty_and_everything_is_put_back() {
    let (lab, plan) = by_shell().planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    assert_eq!(
        deeds(&lab),
        [
            "StartService",
            "EnterMaintenanceMode",
            "nvdGpuMgmtDaemon stop",
            "nvidia-smi -mig",
            "nvidia-smi -mig",
            "nvdGpuMgmtDaemon start",
            "ExitMaintenanceMode",
            "StopService",
        ]
    );
    assert_eq!(shell(&lab, 1), (false, "running".to_owned()));
    assert_eq!((host_of(&state, 1).armed.len(), marker(&lab, 1)), (0, String::new()));
    assert_eq!(lab.plan().await.hosts.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn of_ampere_it_waits_for_one_reboot() {
    let (lab, plan) = Scene { model: A100, ..by_shell() }.planned().await;
    assert_eq!((plan.hosts[0].reboots.expected, plan.hosts[0].reboots.most), (1, 1));
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    assert_eq!(
        deeds(&lab),
        [
            "StartService",
            "EnterMaintenanceMode",
            "nvdGpuMgmtDaemon stop",
            "nvidia-smi -mig",
            "nvidia-smi -mig",
            "nvdGpuMgmtDaemon start",
            "RebootHost",
            // The gate asks there, too, and the boot has stopped the service.
            "StartService",
            "ExitMaintenanceMode",
            "StopService",
        ]
    );
    assert_eq!((shell(&lab, 1), marker(&lab, 1)), ((false, "running".to_owned()), String::new()));
    assert_eq!(lab.plan().await.hosts.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_runs_and_a_daemon_that_does_not_are_left_so() {
    let host = "shell: {users: [{name: root, password: lab}], ssh: {running: true, policy: on}, monitor: stopped}";
    let (lab, plan) = Scene { host, ..by_shell() }.planned().await;
    let (state, watch) = watched(&lab, &plan).await;
    assert_eq!(state.unwrap().exit(), Exit::Done);
    assert_eq!(deeds(&lab), ["EnterMaintenanceMode", "nvidia-smi -mig", "nvidia-smi -mig", "ExitMaintenanceMode"]);
    assert_eq!(shell(&lab, 1), (true, "stopped".to_owned()));
    let armed = watch.events().into_iter().filter(|event| matches!(event, Event::Armed { .. })).count();
    assert_eq!(armed, 1, "maintenance alone");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_is_tried_once_and_nothing_is_disturbed() {
    let host = "shell: {users: [{name: root, password: other}]}";
    let vms = "[{name: train-1, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-94c}]}]";
    let may = "{mayStop: [{name: \"train-*\"}], onMismatch: leaveOff}";
    let (lab, plan) = Scene { host, vms, may, ..by_shell() }.planned().await;
    let (state, watch) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft);
    let why = failure(host_of(&state, 1));
    assert!(why.contains("refuses the login of root"), "{why}");
    assert_eq!((logins(&lab), asked(&lab, "EnterMaintenanceMode_Task"), asked(&lab, "ShutdownGuest")), (1, 0, 0));
    assert_eq!((shell(&lab, 1).0, marker(&lab, 1)), (false, String::new()));
    assert!(watch.events().iter().any(|event| matches!(event, Event::ShellLoginFailed { .. })));
    // Whoever goes on does not log in again; only a person who says that the cause is gone does, once.
    let again = resume(&lab).await;
    assert_eq!((again.exit(), logins(&lab)), (Exit::HostsLeft, 1));
    let host = HostName::from("esx-01");
    let again = lab.run(async |engine| rollout::retry(engine, &state.run, &host).await).await.unwrap();
    assert_eq!((again.exit(), logins(&lab)), (Exit::HostsLeft, 2));
    assert_eq!((shell(&lab, 1).0, closed(&lab, 1), asked(&lab, "ShutdownGuest")), (false, false, 0));
}

/// A login that is lost once, on a host that is changed: a person's word goes on with it.
#[tokio::test(start_paused = true)]
async fn a_login_that_failed_on_a_changed_host_is_tried_again_at_a_persons_word() {
    let world = "faults: [{face: ssh, method: login, onCall: 2, then: dropBefore}]";
    let (lab, plan) = Scene { world, model: A100, ..by_shell() }.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!((state.exit(), closed(&lab, 1)), (Exit::HostsLeft, true));
    assert!(host_of(&state, 1).shell_ended.is_some());
    assert_eq!(resume(&lab).await.exit(), Exit::HostsLeft);
    let host = HostName::from("esx-01");
    let state = lab.run(async |engine| rollout::retry(engine, &state.run, &host).await).await.unwrap();
    assert_eq!((state.exit(), marker(&lab, 1)), (Exit::Done, String::new()), "{state:#?}");
    assert_eq!(shell(&lab, 1), (false, "running".to_owned()));
}

/// The connection breaks while the daemon is stopped, and the login after it fails: nobody logs in once more to
/// start it again, not in another process either, and it is told.
#[tokio::test(start_paused = true)]
async fn a_login_that_failed_is_not_tried_again_to_put_back_what_it_left() {
    let world = "faults: [{face: ssh, method: nvidia-smi -mig, then: dropBefore}, {face: ssh, method: login, onCall: 2, then: dropBefore}]";
    // Its SSH service stays up, so that another login would come through.
    let host = "shell: {users: [{name: root, password: lab}], ssh: {running: true, policy: on}}";
    let (lab, plan) = Scene { world, host, ..by_shell() }.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert!(host_of(&state, 1).armed.contains(&Compensation::Monitor), "{state:#?}");
    assert_eq!((state.exit(), shell(&lab, 1).1.as_str()), (Exit::HostsLeft, "stopped"));
    let host = HostName::from("esx-01");
    let state = lab.run(async |engine| rollout::give_up(engine, &state.run, &host).await).await.unwrap();
    assert_eq!(shell(&lab, 1).1, "stopped", "{state:#?}");
    assert!(host_of(&state, 1).left_alone.iter().any(|(comp, _)| *comp == Compensation::Monitor), "{state:#?}");
}

/// Where no visit goes on a person takes the host over: it stays as it is, without a mark, and nothing of
/// the way to its shell is left.
#[tokio::test(start_paused = true)]
async fn a_host_is_left_to_somebody_as_it_stands() {
    let world = "faults: [{face: ssh, method: login, onCall: 2, then: dropBefore}]";
    let (lab, plan) = Scene { world, model: A100, ..by_shell() }.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let run = state.unwrap().run;
    let nobody = HostName::from("esx-09");
    let wrong = lab.run(async |engine| rollout::give_up(engine, &run, &nobody).await).await;
    assert!(matches!(wrong, Err(RunError::NotFailed { .. })), "{wrong:?}");
    let host = HostName::from("esx-01");
    let state = lab.run(async |engine| rollout::give_up(engine, &run, &host).await).await.unwrap();
    assert_eq!(host_of(&state, 1).phase, HostPhase::Done { outcome: Outcome::GivenUp });
    assert_eq!((state.exit(), closed(&lab, 1), marker(&lab, 1)), (Exit::HostsLeft, true, String::new()));
    assert_eq!((shell(&lab, 1), host_of(&state, 1).armed.len()), ((false, "running".to_owned()), 0));
    let left: Vec<String> = host_of(&state, 1).left_alone.iter().map(|(comp, _)| comp.to_string()).collect();
    assert_eq!(left, ["maintenance mode"]);
    // Once given up it is nobody's.
    let again = lab.run(async |engine| rollout::give_up(engine, &run, &host).await).await;
    assert!(matches!(again, Err(RunError::NotFailed { .. })), "{again:?}");
    assert_eq!(asked(&lab, "ExitMaintenanceMode_Task"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_person_is_asked_and_nothing_goes_on_without_them() {
    let (lab, plan) = by_hand().planned().await;
    let (state, watch) = waiting(&lab, &plan, Duration::ZERO).await;
    assert_eq!(state.exit(), Exit::HostsLeft);
    let host = host_of(&state, 1);
    assert!(matches!(host.phase, HostPhase::Left { at: Stage::AwaitingHandoff, .. }), "{:?}", host.phase);
    let asked_for = host.handoff.as_ref().unwrap();
    assert!(!asked_for.confirm);
    assert_eq!(
        asked_for.commands.iter().map(|line| line.split(' ').next().unwrap()).collect::<Vec<_>>(),
        ["/etc/init.d/nvdGpuMgmtDaemon", "nvidia-smi", "nvidia-smi", "/etc/init.d/nvdGpuMgmtDaemon", "nvidia-smi"]
    );
    assert!(closed(&lab, 1) && !marker(&lab, 1).is_empty());
    let said = lab.world.log().into_iter().find(|write| write.call == "LogUserEvent").unwrap();
    assert!(said.arguments.contains(&asked_for.commands[1]), "{}", said.arguments);
    assert_eq!(said.who, USER);
    assert_eq!((logins(&lab), deeds(&lab)), (0, vec!["EnterMaintenanceMode".to_owned()]));
    // The visit stopped, and did not fail.
    assert!(!watch.events().iter().any(|event| matches!(event, Event::StepFailed { .. })));
    // Nobody typed anything: their word alone changes nothing where vCenter would show it.
    let state = confirmed(&lab, &state).await.unwrap();
    assert_eq!((state.exit(), asked(&lab, "ExitMaintenanceMode_Task")), (Exit::HostsLeft, 0));
}

/// The person types; it goes on by itself.
#[tokio::test(start_paused = true)]
async fn of_hopper_vcenter_shows_what_the_person_typed() {
    let world = "actors: [{who: person, host: esx-01, once: {method: LogUserEvent}, after: 7m, does: {shell: {command: nvdGpuMgmtDaemon stop}}}, \
        {who: person, host: esx-01, once: {method: LogUserEvent}, after: 8m, does: {shell: {command: \"nvidia-smi -mig 1\"}}}]";
    let (lab, plan) = Scene { world, ..by_hand() }.planned().await;
    let (state, watch) = waiting(&lab, &plan, Duration::from_secs(1800)).await;
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    assert!(watch.events().iter().any(|event| matches!(event, Event::HandoffSeen { .. })));
    assert!(watch.waits.lock().unwrap().iter().any(|wait| wait.contains("a person to type")));
    assert_eq!((host_of(&state, 1).handoff.clone(), asked(&lab, "RebootHost_Task")), (None, 0));
}

/// Of Ampere nothing shows it before the reboot: the person says so, in another process.
#[tokio::test(start_paused = true)]
async fn of_ampere_the_person_has_to_say_so() {
    let world = "actors: [{who: person, host: esx-01, once: {method: LogUserEvent}, after: 1m, does: {shell: {command: nvdGpuMgmtDaemon stop}}}, \
        {who: person, host: esx-01, once: {method: LogUserEvent}, after: 2m, does: {shell: {command: \"nvidia-smi -mig 1\"}}}]";
    let (lab, plan) = Scene { world, model: A100, ..by_hand() }.planned().await;
    let (state, _) = waiting(&lab, &plan, Duration::from_secs(600)).await;
    assert_eq!(state.exit(), Exit::HostsLeft);
    assert!(host_of(&state, 1).handoff.as_ref().unwrap().confirm);
    assert_eq!(asked(&lab, "RebootHost_Task"), 0);
    let nobody = HostName::from("esx-09");
    let wrong = lab.run(async |engine| rollout::confirm(engine, &state.run, &nobody).await).await;
    assert!(matches!(wrong, Err(RunError::NotAwaited { .. })), "{wrong:?}");
    // Resumed without a word of theirs, it asks again.
    let state = resume(&lab).await;
    assert_eq!((state.exit(), asked(&lab, "RebootHost_Task")), (Exit::HostsLeft, 0));
    let state = confirmed(&lab, &state).await.unwrap();
    assert_eq!((state.exit(), asked(&lab, "RebootHost_Task")), (Exit::Done, 1), "{state:#?}");
    assert!(host_of(&state, 1).done.contains(&StepKind::SetMig));
}

/// A word that was not true: the reboot shows it, and is not repeated.
#[tokio::test(start_paused = true)]
async fn a_false_word_costs_one_reboot() {
    let (lab, plan) = Scene { model: A100, ..by_hand() }.planned().await;
    let (state, _) = waiting(&lab, &plan, Duration::ZERO).await;
    let state = confirmed(&lab, &state).await.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft);
    let why = failure(host_of(&state, 1));
    assert!(why.contains("no effect"), "{why}");
    assert_eq!((asked(&lab, "RebootHost_Task"), closed(&lab, 1)), (1, true));
}

/// Enter, while the process waits.
#[tokio::test(start_paused = true)]
async fn a_word_while_it_waits_is_taken() {
    let world = "actors: [{who: person, host: esx-01, once: {method: LogUserEvent}, after: 1s, does: {shell: {command: nvdGpuMgmtDaemon stop}}}, \
        {who: person, host: esx-01, once: {method: LogUserEvent}, after: 2s, does: {shell: {command: \"nvidia-smi -mig 1\"}}}]";
    let (lab, plan) = Scene { world, model: A100, ..by_hand() }.planned().await;
    let fleet = lab.connect().await;
    let (_raise, signals) = interrupt();
    let mut silent = Silent;
    let (confirm, handoff) = rollout::handoff(Duration::from_secs(86_400));
    // Before anything was asked for it means nothing.
    confirm.confirm();
    let engine = rollout::Engine { handoff, ..lab.engine(&fleet, &mut silent, signals) };
    let (state, ()) = tokio::join!(rollout::apply(engine, &plan), async {
        tokio::time::sleep(Duration::from_secs(7200)).await;
        assert_eq!(asked(&lab, "RebootHost_Task"), 0);
        confirm.confirm();
    });
    fleet.close().await.unwrap();
    assert_eq!(state.unwrap().exit(), Exit::Done);
}

/// From passthrough the driver has to own the board first: two reboots, and the service is started
/// again after each.
#[tokio::test(start_paused = true)]
async fn of_ampere_from_passthrough_it_takes_two_reboots() {
    let (lab, plan) = Scene { from: "{passthrough: {}}", model: A100, ..by_shell() }.planned().await;
    assert_eq!((plan.hosts[0].reboots.expected, plan.hosts[0].reboots.most), (2, 2));
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    assert_eq!((asked(&lab, "RebootHost_Task"), shell(&lab, 1)), (2, (false, "running".to_owned())));
}

/// A host that waits for somebody to resume does not stand with an open SSH service meanwhile.
#[tokio::test(start_paused = true)]
async fn a_signal_puts_the_service_and_the_daemon_back_and_the_run_goes_on_later() {
    let (lab, plan) = Scene { model: A100, ..by_shell() }.planned().await;
    let at = |event: &Event| {
        u32::from(matches!(event, Event::StepStarted { step, .. } if StepKind::from(step) == StepKind::SetMig))
    };
    let state = interrupted(&lab, &plan, at).await;
    assert_eq!(state.exit(), Exit::Interrupted);
    assert_eq!((shell(&lab, 1), closed(&lab, 1)), ((false, "running".to_owned()), true));
    assert_eq!(asked(&lab, "RebootHost_Task"), 0);
    let state = resume(&lab).await;
    assert_eq!((state.exit(), asked(&lab, "RebootHost_Task")), (Exit::Done, 1), "{state:#?}");
    assert_eq!((shell(&lab, 1), marker(&lab, 1)), ((false, "running".to_owned()), String::new()));
    // What was set before the signal is not set again.
    assert_eq!(deeds(&lab).iter().filter(|deed| *deed == "nvidia-smi -mig").count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_does_not_stop_keeps_the_host_from_being_given_back() {
    let world = "faults: [{method: StopService, times: 20, then: {fault: HostConfigFault}}]";
    let (lab, plan) = Scene { world, ..by_shell() }.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft);
    let why = failure(host_of(&state, 1));
    assert!(why.contains("the SSH service was not stopped again"), "{why}");
    assert_eq!((host_of(&state, 1).armed.clone(), closed(&lab, 1)), (vec![Compensation::Ssh], false));
    assert!(!marker(&lab, 1).is_empty());
    // Later it does.
    let mut tries = 0;
    while !marker(&lab, 1).is_empty() {
        let host = HostName::from("esx-01");
        lab.run(async |engine| rollout::retry(engine, &state.run, &host).await).await.unwrap();

        tries += 1;
        assert!(tries < 10, "it is never given back");
    }
    assert!(!shell(&lab, 1).0);
}

/// Where vCenter shows that nothing was typed, an abort gives the host back, VMs and all.
#[tokio::test(start_paused = true)]
async fn an_abort_gives_back_a_host_on_which_nobody_has_typed() {
    let vms = "[{name: train-1, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-94c}]}]";
    let may = "{mayStop: [{name: \"train-*\"}], onMismatch: leaveOff}";
    let (lab, plan) = Scene { vms, may, ..by_hand() }.planned().await;
    let (state, _) = waiting(&lab, &plan, Duration::ZERO).await;
    assert!(host_of(&state, 1).is_awaited() && !lab.world.tally().vms["train-1"].on);
    let state = lab.run(async |engine| rollout::abort(engine, &state.run).await).await.unwrap();
    assert_eq!(host_of(&state, 1).phase, HostPhase::Done { outcome: Outcome::AsItWas }, "{state:#?}");
    let train = &lab.world.tally().vms["train-1"];
    assert_eq!((train.on, train.host.as_str(), closed(&lab, 1)), (true, "esx-01", false));
    assert_eq!((marker(&lab, 1), state.exit()), (String::new(), Exit::Done));
}

/// Of a board nothing would show it: it is not given back.
#[tokio::test(start_paused = true)]
async fn an_abort_leaves_a_board_of_which_nothing_can_be_known() {
    let (lab, plan) = Scene { model: A100, ..by_hand() }.planned().await;
    let (state, _) = waiting(&lab, &plan, Duration::ZERO).await;
    let state = lab.run(async |engine| rollout::abort(engine, &state.run).await).await.unwrap();
    assert_eq!((state.exit(), closed(&lab, 1)), (Exit::HostsLeft, true));
    assert!(host_of(&state, 1).is_awaited(), "{state:#?}");
}

/// A person who reboots the host, too, as NVIDIA's guide says, is waited for all the same.
#[tokio::test(start_paused = true)]
async fn a_person_who_reboots_the_host_has_done_our_work() {
    let world = "actors: [{who: person, host: esx-01, once: {method: LogUserEvent}, after: 1m, does: {shell: {command: nvdGpuMgmtDaemon stop}}}, \
        {who: person, host: esx-01, once: {method: LogUserEvent}, after: 2m, does: {shell: {command: \"nvidia-smi -mig 1\"}}}, \
        {who: person, host: esx-01, once: {method: LogUserEvent}, after: 3m, does: reboot}]";
    let (lab, plan) = Scene { world, model: A100, ..by_hand() }.planned().await;
    let (state, watch) = waiting(&lab, &plan, Duration::from_secs(7200)).await;
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    assert_eq!((asked(&lab, "RebootHost_Task"), marker(&lab, 1)), (0, String::new()));
    assert!(watch.waits.lock().unwrap().iter().any(|wait| wait.contains("0000:17:00.0 MIG on")));
}

/// What is lost once on its way is sent again.
#[tokio::test(start_paused = true)]
async fn a_start_of_the_service_that_is_lost_is_asked_for_again() {
    for then in ["dropBefore", "{lie: noEffect}"] {
        let world = format!("faults: [{{method: StartService, then: {then}}}]");
        let (lab, plan) = Scene { world: String::leak(world), ..by_shell() }.planned().await;
        let (state, _) = watched(&lab, &plan).await;
        assert_eq!(state.unwrap().exit(), Exit::Done, "{then}");
        assert_eq!(shell(&lab, 1), (false, "running".to_owned()), "{then}");
    }
}

/// MIG that passthrough hides may have to be switched off: whether we get in is found out before the host
/// is closed; where nobody can, it is said.
#[tokio::test(start_paused = true)]
async fn what_passthrough_hides_is_prepared_for() {
    let hidden = Scene {
        model: A100,
        from: "{passthrough: {}}",
        to: "[{mode: {vgpu: {size: same}}}]",
        rollout: "{maxUnavailable: 1, maxReboots: 3}",
        ..by_shell()
    };
    let wrong = "shell: {users: [{name: root, password: other}]}";
    let (lab, plan) = Scene { host: wrong, ..hidden }.planned().await;
    assert!(plan.hosts[0].steps[0].does.starts_with("log in to the shell"), "{:?}", plan.hosts[0].steps);
    let (state, _) = watched(&lab, &plan).await;
    assert_eq!(
        (state.unwrap().exit(), logins(&lab), asked(&lab, "EnterMaintenanceMode_Task")),
        (Exit::HostsLeft, 1, 0)
    );
}

/// A switch that somebody left waiting on a GPU outside the pool would take effect with our reboot.
#[tokio::test(start_paused = true)]
async fn a_switch_that_waits_beside_the_pool_keeps_the_host_from_being_closed() {
    let world =
        "actors: [{who: person, host: esx-01, does: {shell: {command: \"nvidia-smi -i 0000:1f:00.0 -mig 1\"}}}]";
    let host = "shell: {users: [{name: root, password: lab}], monitor: stopped}";
    let one = "[{select: {addresses: [\"0000:17:00.0\"]}, mode: {migVgpu: {}}}]";
    let (lab, plan) = Scene { world, host, to: one, model: A100, ..by_shell() }.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    let why = failure(host_of(&state, 1));
    assert!(why.contains("0000:1f:00.0, which is not of the pool"), "{why}");
    assert_eq!(
        (asked(&lab, "EnterMaintenanceMode_Task"), shell(&lab, 1).0, marker(&lab, 1)),
        (0, false, String::new())
    );
}

/// What was typed may not have come to vCenter: it is asked for before anything is given back.
#[tokio::test(start_paused = true)]
async fn an_abort_does_not_believe_what_vcenter_has_not_looked_at_again() {
    let world = "actors: [{who: person, host: esx-01, once: {method: LogUserEvent}, does: {shell: {command: nvdGpuMgmtDaemon stop}}}, \
        {who: person, host: esx-01, once: {method: LogUserEvent}, after: 1s, does: {shell: {command: \"nvidia-smi -i 0000:1f:00.0 -mig 1\"}}}]";
    let (lab, plan) = Scene { world, ..by_hand() }.planned().await;
    let (state, _) = waiting(&lab, &plan, Duration::ZERO).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let state = lab.run(async |engine| rollout::abort(engine, &state.run).await).await.unwrap();
    assert_eq!((state.exit(), closed(&lab, 1)), (Exit::HostsLeft, true), "{state:#?}");
    assert!(!marker(&lab, 1).is_empty());
}

/// A halt stops new hosts. One that waited for a person is none.
#[tokio::test(start_paused = true)]
async fn a_host_that_is_done_by_hand_goes_on_though_another_failed() {
    let world = "actors: [{who: person, host: esx-01, once: {method: LogUserEvent}, after: 1s, does: {shell: {command: nvdGpuMgmtDaemon stop}}}, \
        {who: person, host: esx-01, once: {method: LogUserEvent}, after: 2s, does: {shell: {command: \"nvidia-smi -mig 1\"}}}]";
    let rollout = "{maxUnavailable: 2, maxReboots: 2}";
    let (lab, plan) = Scene { world, rollout, hosts: 2, model: A100, ..by_hand() }.planned().await;
    let (state, _) = waiting(&lab, &plan, Duration::ZERO).await;
    assert!(host_of(&state, 1).is_awaited() && host_of(&state, 2).is_awaited());
    let done = async |host: &str| {
        let host = HostName::from(host);
        lab.run(async |engine| rollout::confirm(engine, &state.run, &host).await).await.unwrap()
    };
    let second = done("esx-02").await;
    assert!(failure(host_of(&second, 2)).contains("no effect"));
    let first = done("esx-01").await;
    assert_eq!(host_of(&first, 1).phase, HostPhase::Done { outcome: Outcome::Converged }, "{first:#?}");
    assert_eq!((marker(&lab, 1), closed(&lab, 1), first.exit()), (String::new(), false, Exit::HostsLeft));
}

/// A marker that would grow too long in the middle of a visit is found out before the first is written.
#[tokio::test(start_paused = true)]
async fn a_host_whose_marker_would_not_fit_is_not_touched() {
    let vm = |n: u32| format!("{{name: train-{n}, host: esx-01, power: on, memoryGiB: 1, migrate: false}}");
    let vms = format!("[{}]", (1..=95).map(vm).collect::<Vec<_>>().join(", "));
    let (lab, plan) = Scene { vms: String::leak(vms), ..Scene::default() }.planned().await;
    let (state, _) = watched(&lab, &plan).await;
    let state = state.unwrap();
    let HostPhase::Held { why } = &host_of(&state, 1).phase else { panic!("{state:#?}") };
    assert!(why.to_string().contains("bytes long"), "{why}");
    assert_eq!((marker(&lab, 1), asked(&lab, "SetField"), asked(&lab, "ShutdownGuest")), (String::new(), 0, 0));
}

/// A login that lockdown is bound to refuse is not tried.
#[tokio::test(start_paused = true)]
async fn a_host_that_was_locked_down_since_the_plan_is_not_logged_in_to() {
    let host = "shell: {users: [{name: root, password: lab}], lockdown: normal}";
    let hidden = Scene { model: A100, from: "{passthrough: {}}", to: "[{mode: {vgpu: {size: same}}}]", ..by_shell() };
    let from = "{passthrough: {}}, migLeft: true";
    let (lab, plan) = Scene { from, host, ..hidden }.planned().await;
    assert!(plan.findings.iter().any(|finding| finding.id.0 == "PW-SHELL-07"), "{:#?}", plan.findings);
    let (state, _) = watched(&lab, &plan).await;
    let why = failure(host_of(&state.unwrap(), 1));
    assert!(why.contains("lockdown"), "{why}");
    assert_eq!(logins(&lab), 0);
}
