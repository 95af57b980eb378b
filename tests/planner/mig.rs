//! MIG: who switches it, in which order, and what is never believed.

use poolwright::model::{
    Desired, DesiredPool, Fact, GpuSelect, GpuShellView, HostView, Lockdown, MigKind, Mode, PowerState, ShellLogin,
    ShellView, ShellWay, Switch, VgpuSize,
};
use poolwright::plan::{
    Check, GateCheck, Impact, Memory, OurMaintenance, Plan, Refusal, Step, Verdict, gate, visit, waits_for_reboot,
};

use super::findings::{Case, ids, make, said};
use super::twin::{Death, PLAIN, Twin, run};
use crate::support::seen::{
    A100, Card, H100, Set, around, at, desired, fleet, host, known, passthrough, pool, record, vgpu, vm,
};

/// The plan of one host that has two GPUs.
fn planned(
    (card, from, to): (Card, Set, Mode),
    way: ShellWay,
    alter: impl FnOnce(&mut HostView, &mut DesiredPool),
) -> Plan {
    let mut view = host(card, &[(0x3b, from.clone()), (0xd8, from)]);
    let mut pool = pool(card, 2, to, &["esx-01"]);
    alter(&mut view, &mut pool);
    make(&Desired { shell: way, ..desired(vec![pool]) }, &fleet(vec![("esx-01", view)]))
}

/// A change to MIG through the shell, with a host that is not as it has to be.
fn direct(alter: impl FnOnce(&mut HostView)) -> Plan {
    planned((H100, Set::Same, Mode::MigVgpu), ShellWay::Direct, |view, _| alter(view))
}

/// A GPU of an NVSwitch baseboard.
const SXM: Card = Card { model: "h100-sxm5-80", name: "NVIDIA H100 80GB HBM3", id: (0x2330, 0x16c1) };

pub fn cases() -> Vec<Case> {
    vec![
        ("PW-SHELL-01", direct(|view| view.lockdown = Fact::Known(Lockdown::Strict)), &["lockdownStrict", "by SSH"]),
        (
            "PW-SHELL-02",
            direct(|view| view.shell_login = Fact::Known(ShellLogin { user: "ops".into(), pinned: false })),
            &["ops", "hostKeys"],
        ),
        ("PW-SHELL-03", direct(|view| view.shell_login = Fact::Absent), &["no user"]),
        ("PW-SHELL-04", planned((A100, Set::Same, Mode::MigVgpu), ShellWay::Handoff, |_, _| {}), &["a person types"]),
        (
            "PW-SHELL-05",
            planned((A100, Set::Same, passthrough(None)), ShellWay::Direct, |_, _| {}),
            &["PCIe link, ECC", "on 1 host"],
        ),
        ("PW-SHELL-06", direct(|view| known(&mut view.services).clear()), &["TSM-SSH"]),
        (
            "PW-SHELL-07",
            planned((A100, Set::Passthrough(None), vgpu(VgpuSize::Same)), ShellWay::Direct, |view, _| {
                view.lockdown = Fact::Known(Lockdown::Normal);
            }),
            &["left MIG on", "lockdownNormal"],
        ),
        (
            "PW-MIG-04",
            planned((A100, Set::Same, passthrough(None)), ShellWay::Direct, |_, _| {}),
            &["to the guest: 0000:"],
        ),
        ("PW-MIG-01", direct(|_| {}), &["does not survive a reboot", "the host booted at 2026-11-01T03:00:00Z"]),
        (
            "PW-MIG-03",
            planned((SXM, Set::Same, Mode::MigVgpu), ShellWay::Handoff, |_, _| {}),
            &["H100 SXM5 80GB", "no NVLink"],
        ),
        (
            "PW-MIG-02",
            planned((H100, Set::Passthrough(None), vgpu(VgpuSize::Same)), ShellWay::Direct, |view, pool| {
                *view = host(H100, &[(0x3b, Set::Passthrough(None)), (0xd8, Set::Mig)]);
                pool.gpus[0].select.value = GpuSelect::Count(1);
            }),
            &["take MIG from GPUs outside the pool: 0000:d8:00.0"],
        ),
    ]
}

#[test]
fn what_cannot_be_read_of_the_shell_refuses_the_host() {
    let blanks: [fn(&mut HostView); 3] = [
        |view| view.lockdown = Fact::unknown("no privilege"),
        |view| view.shell_login = Fact::unknown("no privilege"),
        |view| view.services = Fact::unknown("no privilege"),
    ];
    for (number, blank) in blanks.into_iter().enumerate() {
        let plan = direct(blank);
        assert!(plan.hosts.is_empty(), "{number}");
        assert!(plan.not_acted[0].detail.contains("no privilege"), "{number}: {:#?}", plan.not_acted);
    }
}

#[test]
fn what_the_gate_does_not_ask_is_said_once() {
    let said = |mode: Mode, way, hosts: &[&str]| {
        let mut pool = pool(A100, 1, mode, hosts);
        pool.rollout.max_unavailable.value = 3;
        let fleet = fleet(hosts.iter().map(|name| (*name, host(A100, &[(0x3b, Set::Same)]))).collect());
        let plan = make(&Desired { shell: way, ..desired(vec![pool]) }, &fleet);
        assert_eq!(plan.hosts.len(), hosts.len());
        let of = plan.findings.into_iter().filter(|finding| finding.id.0 == "PW-SHELL-05");
        of.map(|finding| finding.message).collect::<Vec<_>>()
    };
    let [one] = &said(passthrough(None), ShellWay::Direct, &["esx-01", "esx-02"])[..] else { panic!("not once") };
    assert!(one.contains("on 2 hosts"), "{one}");
    assert_eq!(said(Mode::MigVgpu, ShellWay::Handoff, &["esx-01"]).len(), 1);
    assert_eq!(said(Mode::MigVgpu, ShellWay::Direct, &["esx-01"]), Vec::<String>::new());
    // Nothing is closed for it, so there is no gate to speak of.
    let mut label = pool(H100, 1, passthrough(Some("train")), &["esx-01"]);
    label.rollout.max_unavailable.value = 1;
    let plan = make(&desired(vec![label]), &fleet(vec![("esx-01", host(H100, &[(0x3b, Set::Passthrough(None))]))]));
    assert_eq!((plan.hosts.len(), plan.findings), (1, vec![]));
}

#[test]
fn a_host_whose_mig_nobody_switches_asks_nothing_of_its_shell() {
    let locked = |view: &mut HostView| {
        view.lockdown = Fact::Known(Lockdown::Strict);
        view.shell_login = Fact::Absent;
        view.services = Fact::unknown("no privilege");
    };
    let size = planned((H100, Set::Same, vgpu(VgpuSize::Mixed)), ShellWay::Direct, |view, _| locked(view));
    assert_eq!((ids(&size), size.hosts.len()), (vec![], 1));
    // By hand nobody of ours logs in.
    let by_hand = planned((A100, Set::Same, Mode::MigVgpu), ShellWay::Handoff, |view, _| locked(view));
    assert_eq!((ids(&by_hand), by_hand.hosts.len()), (vec!["PW-SHELL-04"], 1));
}

#[test]
fn a_board_beside_the_pool_keeps_its_mig_over_a_reboot() {
    let plan = planned((A100, Set::Passthrough(None), vgpu(VgpuSize::Same)), ShellWay::Direct, |view, pool| {
        *view = host(A100, &[(0x3b, Set::Passthrough(None)), (0xd8, Set::Mig)]);
        pool.gpus[0].select.value = GpuSelect::Count(1);
    });
    assert_eq!(plan.hosts.len(), 1, "{:#?}", plan.findings);
}

/// The steps of a plan as words.
fn does(plan: &Plan) -> Vec<&str> {
    plan.hosts[0].steps.iter().map(|step| step.does.as_str()).collect()
}

#[test]
fn the_login_comes_before_anything_is_disturbed_and_again_after_each_reboot() {
    let plan = planned((A100, Set::Passthrough(None), Mode::MigVgpu), ShellWay::Direct, |_, _| {});
    let login = "log in to the shell, the SSH service started if it is stopped";
    let gpus = "0000:3b:00.0, 0000:d8:00.0";
    assert_eq!(
        does(&plan),
        [
            login,
            "enter maintenance mode",
            &format!("set passthrough off: {gpus}"),
            &format!(
                "set host default type shared to sharedDirect; graphics type sharedDirect: {gpus} (again after the reboot, if the host ignores it now)"
            ),
            &format!("reboot, to activate passthrough off, type sharedDirect: {gpus}"),
            "set graphics again",
            login,
            "stop the NVIDIA monitoring daemon, if it runs",
            &format!("switch MIG on through the shell: {gpus}"),
            "start the NVIDIA monitoring daemon again, if it ran",
            &format!("reboot, to activate MIG on: {gpus}"),
            login,
            "verify the host",
            "leave maintenance mode",
        ]
    );
    let back = planned((A100, Set::Mig, passthrough(None)), ShellWay::Handoff, |_, _| {});
    assert_eq!(
        does(&back),
        [
            "enter maintenance mode",
            &format!("switch MIG off by hand, the commands are printed: {gpus}"),
            &format!("reboot, to activate MIG off: {gpus}"),
            &format!("set passthrough on: {gpus}"),
            &format!("reboot, to activate passthrough on: {gpus}"),
            "verify the host",
            "leave maintenance mode",
        ]
    );
}

/// Another one reboots the host, or it crashes.
#[test]
fn a23_mig_of_the_driver_is_given_back_without_a_reboot_and_that_of_a_board_needs_nothing() {
    for way in [ShellWay::Direct, ShellWay::Handoff] {
        let wish = |card| Desired { shell: way, ..desired(vec![pool(card, 2, Mode::MigVgpu, &["esx-01"])]) };
        let rebooted = |card| {
            let mut twin = Twin::new(host(card, &[(0x3b, Set::Mig), (0xd8, Set::Mig)]), PLAIN);
            twin.reboot();
            (make(&wish(card), &fleet(vec![("esx-01", twin.view.clone())])), twin)
        };
        let (board, _) = rebooted(A100);
        assert!(board.hosts.is_empty(), "{:#?}", board.hosts);
        let (plan, mut twin) = rebooted(H100);
        let host = &plan.hosts[0];
        assert_eq!((host.impact, host.reboots.most), (Impact::Maintenance, 0));
        assert!(said(&plan, "PW-MIG-01").contains("does not survive a reboot"));
        assert!(!does(&plan).iter().any(|does| does.starts_with("set ")), "{:?}", does(&plan));
        twin.view.uuid = Fact::Known(host.uuid.clone());
        run(&mut twin, host, &mut Memory::default(), Death::Never).unwrap();
        assert_eq!((twin.reboots, twin.mig[&at(0x3b)]), (1, (true, true)), "by somebody else: {:?}", twin.log);
    }
}

/// One GPU of the pool is to be passed through, which takes a reboot: the others lose their MIG by it.
#[test]
fn a_reboot_for_another_gpu_is_followed_by_a_switch_of_mig() {
    let mut both = pool(H100, 2, Mode::MigVgpu, &["esx-01"]);
    both.gpus[0].select.value = GpuSelect::Count(1);
    both.gpus.push(crate::support::seen::group(13, GpuSelect::Count(1), passthrough(None)));
    let view = host(H100, &[(0x3b, Set::Mig), (0xd8, Set::Same)]);
    let plan = make(&desired(vec![both]), &fleet(vec![("esx-01", view.clone())]));
    let steps = does(&plan);
    assert_eq!(
        steps[2..4],
        [
            "reboot, to activate passthrough on: 0000:d8:00.0",
            "switch MIG on by hand, the commands are printed: 0000:3b:00.0"
        ],
        "{steps:?}"
    );
    let mut twin = Twin::new(view, PLAIN);
    twin.view.uuid = Fact::Known("uuid-esx-01".into());
    run(&mut twin, &plan.hosts[0], &mut Memory::default(), Death::Never).unwrap();
    assert_eq!((twin.reboots, twin.mig[&at(0x3b)]), (1, (true, true)));
}

/// A board of the pool that is switched on waits for the last reboot: a person is asked once.
#[test]
fn boards_are_switched_on_together_before_the_last_reboot() {
    let view = host(A100, &[(0x3b, Set::Same), (0xd8, Set::Passthrough(None))]);
    let plan = make(&desired(vec![pool(A100, 2, Mode::MigVgpu, &["esx-01"])]), &fleet(vec![("esx-01", view.clone())]));
    let steps = does(&plan);
    let switches: Vec<&&str> = steps.iter().filter(|does| does.starts_with("switch")).collect();
    assert_eq!(switches, [&"switch MIG on by hand, the commands are printed: 0000:3b:00.0, 0000:d8:00.0"]);
    let mut twin = Twin::new(view, PLAIN);
    twin.view.uuid = Fact::Known("uuid-esx-01".into());
    run(&mut twin, &plan.hosts[0], &mut Memory::default(), Death::Never).unwrap();
    assert_eq!(twin.reboots, 2);
    assert_eq!(twin.log.iter().filter(|call| call.starts_with("switch MIG")).count(), 1, "{:?}", twin.log);
}

/// The board forgets what was set: whether it did is seen after the reboot, with a shell and without.
#[test]
fn a_switch_that_the_reboot_loses_is_never_followed_by_another_reboot() {
    for way in [ShellWay::Direct, ShellWay::Handoff] {
        for (from, to, lines) in [
            (Set::Same, Mode::MigVgpu, "0000:3b:00.0 MIG on"),
            (Set::Mig, vgpu(VgpuSize::Same), "0000:3b:00.0 MIG off"),
            (Set::Mig, passthrough(None), "0000:3b:00.0 MIG off"),
        ] {
            let view = host(A100, &[(0x3b, from)]);
            let mut one = pool(A100, 1, to, &["esx-01"]);
            one.rollout.max_reboots.value = 4;
            let wish = Desired { shell: way, ..desired(vec![one]) };
            let plan = make(&wish, &fleet(vec![("esx-01", view.clone())]));
            let mut twin = Twin::new(view, PLAIN);
            twin.view.uuid = Fact::Known("uuid-esx-01".into());
            twin.forgets = true;
            let mut memory = Memory::default();
            let refused = run(&mut twin, &plan.hosts[0], &mut memory, Death::Never).unwrap_err();
            assert_eq!(refused, Refusal::RebootWithoutEffect { pending: vec![lines.into()] });
            assert_eq!((twin.reboots, memory.maintenance), (1, OurMaintenance::Closed), "{:?}", twin.log);
            // Nobody knows it to be pending any more.
            assert_eq!(waits_for_reboot(&plan.hosts[0], &twin.view, &memory).unwrap(), Vec::<String>::new());
        }
    }
}

#[test]
fn what_is_known_to_wait_for_a_reboot_is_said_and_nothing_else() {
    let plan = planned((A100, Set::Same, Mode::MigVgpu), ShellWay::Handoff, |_, _| {});
    let view = host(A100, &[(0x3b, Set::Same), (0xd8, Set::Same)]);
    let waits = |memory: &Memory| waits_for_reboot(&plan.hosts[0], &view, memory).unwrap();
    assert_eq!(waits(&Memory::default()), Vec::<String>::new());
    let set = Memory { mig: vec![(at(0xd8), true)], ..Memory::default() };
    assert_eq!(waits(&set), ["0000:d8:00.0 MIG on"]);
}

/// The process died between the stop of the daemon and its start.
#[test]
fn a_daemon_that_was_stopped_is_started_whatever_else_is_due() {
    let plan = planned((H100, Set::Same, Mode::MigVgpu), ShellWay::Direct, |_, _| {});
    let host = &plan.hosts[0];
    let steps = |set: Set, maintenance, in_maintenance| {
        let mut view = crate::support::seen::host(H100, &[(0x3b, set.clone()), (0xd8, set)]);
        view.uuid = Fact::Known(host.uuid.clone());
        view.in_maintenance = Fact::Known(in_maintenance);
        let memory = Memory { begun: true, maintenance, monitor_stopped: true, shell: true, ..Memory::default() };
        visit(host, &record("esx-01", view), &memory, &around(&fleet(vec![]), "esx-01")).unwrap().steps
    };
    let closed = OurMaintenance::Closed;
    let rest = [Step::VerifyHost, Step::ExitMaintenance];
    assert_eq!(steps(Set::Mig, closed, true), [&[Step::StartShell, Step::StartMonitor], &rest[..]].concat());
    // Where MIG is switched still, it is started after that.
    let gpus = vec![at(0x3b), at(0xd8)];
    let switch = Step::SetMig { gpus, on: true, kind: MigKind::Driver, way: ShellWay::Direct };
    let switches = [Step::StartShell, Step::StopMonitor, switch, Step::StartMonitor];
    assert_eq!(steps(Set::Same, closed, true), [&switches, &rest[..]].concat());
    let open = [Step::StartShell, Step::StartMonitor, Step::ExitMaintenance];
    assert_eq!(steps(Set::Mig, OurMaintenance::Leaving, false), open);
}

/// What a shell shows of both GPUs.
fn shown(mig: (bool, bool)) -> ShellView {
    let switch = |(current, pending)| Switch { current: Fact::Known(current), pending: Fact::Known(pending) };
    let gpu = GpuShellView {
        mig: switch(mig),
        ecc: switch((true, true)),
        link_generation: Fact::Known(4),
        link_width: Fact::Known(16),
        remap_pending: Fact::Known(false),
        remap_failed: Fact::Known(false),
    };
    let gpus = [(at(0x3b), gpu.clone()), (at(0xd8), gpu)].into();
    ShellView { gpus, monitor: Fact::Known(true), unread: vec![] }
}

/// The lines of the gate about boards after a change to this mode, with this shown at the shell.
fn board_lines(to: Mode, shell: Fact<ShellView>) -> Vec<(String, Verdict, String)> {
    let is = if to == Mode::MigVgpu { Set::Mig } else { Set::Same };
    let plan = planned((A100, Set::Mixed, to), ShellWay::Direct, |_, _| {});
    let mut view = host(A100, &[(0x3b, is.clone()), (0xd8, is)]);
    view.shell = shell;
    let lines = gate(&plan.hosts[0], None, &view).into_iter().filter(|line| line.check == GateCheck::Board);
    lines.map(|line| (line.subject, line.verdict, line.evidence)).collect()
}

#[test]
fn the_gate_reads_mig_at_the_shell_and_only_notes_what_was_not_known_before() {
    let verdicts = |to: Mode, shell| -> Vec<Verdict> {
        board_lines(to, shell).into_iter().map(|(_, verdict, _)| verdict).collect()
    };
    use Verdict::{Failed, Noted, Passed, Unverifiable};
    let good = || shown((true, true));
    assert_eq!(verdicts(Mode::MigVgpu, Fact::Known(good())), [Passed; 4]);
    assert_eq!(verdicts(vgpu(VgpuSize::Same), Fact::Known(shown((false, false)))), [Passed; 4]);
    // Nobody asked; nobody could; the next boot would undo it.
    assert_eq!(board_lines(Mode::MigVgpu, Fact::Absent), []);
    assert_eq!(verdicts(Mode::MigVgpu, Fact::unknown("no login")), [Unverifiable; 2]);
    assert_eq!(verdicts(Mode::MigVgpu, Fact::Known(shown((true, false)))), [Failed, Passed, Failed, Passed]);
    assert_eq!(verdicts(vgpu(VgpuSize::Same), Fact::Known(shown((false, true)))), [Failed, Passed, Failed, Passed]);
    let altered = |alter: fn(&mut GpuShellView)| {
        let mut shell = good();
        alter(shell.gpus.get_mut(&at(0x3b)).unwrap());
        let lines = board_lines(Mode::MigVgpu, Fact::Known(shell));
        (lines[0].1, lines[1].1, lines[1].2.clone())
    };
    let (mig, _, _) = altered(|gpu| gpu.mig.pending = Fact::unknown("x"));
    assert_eq!(mig, Unverifiable);
    let (mig, _, _) = altered(|gpu| gpu.mig = Switch { current: Fact::Absent, pending: Fact::Absent });
    assert_eq!(mig, Failed);
    type Alter = fn(&mut GpuShellView);
    let sick: [(Alter, &str); 5] = [
        (|gpu| gpu.ecc.pending = Fact::Known(false), "another state is pending"),
        (|gpu| gpu.ecc.current = Fact::unknown("x"), "ECC not known"),
        (|gpu| gpu.remap_failed = Fact::Known(true), "the board is broken"),
        (|gpu| gpu.remap_failed = Fact::unknown("x"), "not known: "),
        (|gpu| gpu.remap_pending = Fact::Known(true), "waits for a reset"),
    ];
    for (alter, words) in sick {
        let (mig, health, said) = altered(alter);
        assert_eq!((mig, health), (Passed, Noted), "{said}");
        assert!(said.contains(words) && health.opens(), "{said}");
    }
    let mut one = good();
    one.gpus.remove(&at(0xd8));
    one.unread = vec!["Unable to determine the device handle".into()];
    let lines = board_lines(Mode::MigVgpu, Fact::Known(one));
    assert_eq!((lines[2].1, lines[2].2.contains("device handle")), (Unverifiable, true), "{lines:?}");
}

#[test]
fn vcenter_and_a_shell_that_contradict_each_other_are_both_not_believed() {
    let plan = planned((A100, Set::Same, Mode::MigVgpu), ShellWay::Direct, |_, _| {});
    let host = &plan.hosts[0];
    let signature = |set: Set, mig| {
        let mut view = crate::support::seen::host(A100, &[(0x3b, set.clone()), (0xd8, set)]);
        view.shell = Fact::Known(shown(mig));
        let lines = gate(host, None, &view);
        lines.into_iter().find(|line| line.check == GateCheck::Signature).unwrap()
    };
    assert_eq!(signature(Set::Mig, (true, true)).verdict, Verdict::Passed);
    let lags = signature(Set::Mig, (false, false));
    assert_eq!(lags.verdict, Verdict::Unverifiable);
    assert!(lags.evidence.contains("nvidia-smi shows it off, vCenter on"), "{}", lags.evidence);
    assert_eq!(signature(Set::Same, (true, true)).verdict, Verdict::Unverifiable);
    // Nothing shows a contradiction: it is not as wished.
    assert_eq!(signature(Set::Same, (false, true)).verdict, Verdict::Failed);
}

/// Somebody has switched a board before us, which the shell shows when it is looked at: only the reboot
/// is left, and it is said.
#[test]
fn what_somebody_else_has_switched_is_found_at_the_shell() {
    let plan = planned((A100, Set::Same, Mode::MigVgpu), ShellWay::Direct, |_, _| {});
    let host = &plan.hosts[0];
    let seen = |mig| {
        let mut view = crate::support::seen::host(A100, &[(0x3b, Set::Same), (0xd8, Set::Same)]);
        view.uuid = Fact::Known(host.uuid.clone());
        view.in_maintenance = Fact::Known(true);
        view.shell = Fact::Known(shown(mig));
        let memory = Memory { begun: true, maintenance: OurMaintenance::Closed, ..Memory::default() };
        let steps = visit(host, &record("esx-01", view.clone()), &memory, &around(&fleet(vec![]), "esx-01"));
        (steps.unwrap().steps, waits_for_reboot(host, &view, &memory).unwrap())
    };
    let lines = ["0000:3b:00.0 MIG on", "0000:d8:00.0 MIG on"];
    let (steps, waits) = seen((false, true));
    assert_eq!(waits, lines);
    assert!(!steps.iter().any(|step| matches!(step, Step::SetMig { .. })), "{steps:?}");
    assert!(matches!(&steps[0], Step::Reboot { pending, .. } if *pending == lines), "{steps:?}");
    let (steps, waits) = seen((false, false));
    assert!(waits.is_empty() && steps.iter().any(|step| matches!(step, Step::SetMig { on: true, .. })), "{steps:?}");
}

/// A VM that came between: MIG is switched on an empty host alone.
#[test]
fn a_gpu_in_use_is_not_switched() {
    let plan = planned((H100, Set::Same, Mode::MigVgpu), ShellWay::Handoff, |_, _| {});
    let mut view = host(H100, &[(0x3b, Set::Same), (0xd8, Set::Same)]);
    view.uuid = Fact::Known(plan.hosts[0].uuid.clone());
    let step = Step::SetMig { gpus: vec![at(0x3b)], on: true, kind: MigKind::Driver, way: ShellWay::Handoff };
    let check = |view: &HostView| step.check(&plan.hosts[0], view, &Memory::default());
    let refused = |check: Check| matches!(check, Check::Refused { .. });
    assert!(refused(check(&view)), "the host is open");
    view.in_maintenance = Fact::Known(true);
    assert_eq!(check(&view), Check::Ready);
    view.vms = Fact::Known(vec![vm("web-1", PowerState::On)]);
    assert!(refused(check(&view)), "a VM runs");
}
