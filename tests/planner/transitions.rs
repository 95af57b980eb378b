//! Every transition under every reading: the visit converges, within the bound of the plan, and the
//! plan of the world after it is empty.

use poolwright::model::{Desired, Fact, GpuSelect, GraphicsType, HostView, Mode, PciAddress, ShellWay, VgpuSize};
use poolwright::plan::{HostPlan, Impact, Memory, OurMaintenance, Plan, Reason, Refusal, plan};

use super::twin::{Death, PLAIN, Readings, Twin, WhilePassthrough, readings, run};
use crate::support::seen::{
    A100, Card, H100, Set, at, desired, fleet, group, host, known, passthrough, passthru, pool, set_gpu, vgpu,
};

/// The modes that a pool can ask for, with the setting that is it.
fn modes() -> Vec<(Mode, Set)> {
    vec![
        (passthrough(Some("train")), Set::Passthrough(Some("train"))),
        (vgpu(VgpuSize::Same), Set::Same),
        (vgpu(VgpuSize::Mixed), Set::Mixed),
        (Mode::MigVgpu, Set::Mig),
    ]
}

/// The wish of a pool of all GPUs, MIG switched this way, as many reboots as it may take.
fn wish(card: Card, count: u32, mode: Mode, way: ShellWay) -> Desired {
    let mut pool = pool(card, count, mode, &["esx-01"]);
    pool.rollout.max_reboots.value = 3;
    Desired { shell: way, ..desired(vec![pool]) }
}

const WAYS: [ShellWay; 2] = [ShellWay::Direct, ShellWay::Handoff];

fn make(wish: &Desired, view: &HostView) -> Plan {
    plan(wish, &fleet(vec![("esx-01", view.clone())]), &[], "test", "2026-11-30T20:00:00Z".parse().unwrap())
}

fn the_host(plan: &Plan) -> &HostPlan {
    assert_eq!(plan.hosts.len(), 1, "{:#?} {:#?}", plan.not_acted, plan.findings);
    &plan.hosts[0]
}

fn assert_empty(plan: &Plan) {
    assert!(plan.hosts.is_empty() && plan.order.is_empty(), "{:#?}", plan.hosts);
    assert!(plan.not_acted.iter().all(|host| host.reason == Reason::Converged), "{:#?}", plan.not_acted);
}

/// The world as the plan made it, planned again, and GPUs outside the pool as they were.
fn converges(card: Card, view: &HostView, wish: &Desired, readings: Readings, death: Death) -> Twin {
    goes_on(card, Twin::new(view.clone(), readings), wish, death)
}

/// The same, from a twin.
fn goes_on(card: Card, mut twin: Twin, wish: &Desired, death: Death) -> Twin {
    let readings = twin.readings;
    twin.view.uuid = Fact::Known("uuid-esx-01".into());
    let before = twin.view.clone();
    let planned = make(wish, &twin.view);
    let host = the_host(&planned).clone();
    let mut memory = Memory::default();
    let end = |twin: &mut Twin, memory: &mut Memory, death| {
        if let Err(refusal) = run(twin, &host, memory, death) {
            panic!("{refusal}: {readings:?} {death:?} {:#?}", twin.log);
        }
    };
    end(&mut twin, &mut memory, death);
    if !matches!(death, Death::Never) {
        end(&mut twin, &mut memory, Death::Never);
    }
    let case = format!("{} {readings:?} {death:?} {:#?}", card.model, twin.log);
    assert!(twin.reboots <= host.reboots.most, "{} reboots, at most {}: {case}", twin.reboots, host.reboots.most);
    assert_eq!(twin.view.in_maintenance, before.in_maintenance, "{case}");
    for other in &host.target.others {
        let of = |view: &HostView| {
            let config =
                view.graphics_config.known().unwrap().devices.iter().find(|entry| entry.address == *other).cloned();
            let active = view.graphics_active.known().unwrap().iter().find(|state| state.address == *other).cloned();
            let passed = view.passthru.known().unwrap().iter().find(|state| state.address == *other).cloned();
            (config, active, passed)
        };
        assert_eq!(of(&before), of(&twin.view), "{case}");
    }
    assert!(twin.monitor && !memory.monitor_stopped, "the daemon rests: {case}");
    for gpu in &host.target.gpus {
        let on = gpu.mode == Mode::MigVgpu;
        // What a guest left on a GPU that it keeps is nobody's.
        let kept =
            matches!(gpu.mode, Mode::Passthrough { .. }) && !twin.log.iter().any(|call| call.contains("MIG off"));
        assert!(kept || twin.mig[&gpu.address] == (on, on), "{} {:?}: {case}", gpu.address, twin.mig);
    }
    twin.view.shell = Fact::Absent;
    assert_empty(&make(wish, &twin.view));
    twin
}

#[test]
fn all_transitions_converge_within_the_bound_under_every_reading() {
    let mut count = 0;
    for card in [H100, A100] {
        for version in ["8.0.3", "9.0.0"] {
            for (mode, goal) in modes() {
                let mut from: Vec<Set> = modes().into_iter().map(|(_, set)| set).filter(|set| *set != goal).collect();
                from.extend([Set::Shared, Set::Basic]);
                for start in from {
                    let mut view = host(card, &[(0x3b, start.clone()), (0xd8, start.clone())]);
                    known(&mut view.product).version = version.into();
                    // How MIG is switched decides nothing where it is not.
                    let in_mig = goal == Set::Mig || start == Set::Mig;
                    for way in WAYS.into_iter().filter(|way| in_mig || *way == ShellWay::Direct) {
                        for readings in readings() {
                            converges(card, &view, &wish(card, 2, mode.clone(), way), readings, Death::Never);
                            count += 1;
                        }
                    }
                }
            }
        }
    }
    // Three goals of which MIG is one start out of five, and MIG.
    assert_eq!(count, 2 * 2 * (3 * (4 + 2) + 5 * 2) * 24);
}

#[test]
fn what_is_there_already_gives_an_empty_plan() {
    for (mode, set) in modes() {
        let view = host(H100, &[(0x3b, set.clone()), (0xd8, set)]);
        assert_empty(&make(&desired(vec![pool(H100, 2, mode, &["esx-01"])]), &view));
    }
}

#[test]
fn reboots_are_as_the_reference_says() {
    let count = |start: Set, mode: Mode| {
        let view = host(H100, &[(0x3b, start)]);
        let planned = make(&desired(vec![pool(H100, 1, mode, &["esx-01"])]), &view);
        let host = the_host(&planned);
        (host.impact, host.reboots.expected, host.reboots.most)
    };
    let passed = Set::Passthrough(None);
    assert_eq!(count(passed.clone(), vgpu(VgpuSize::Same)), (Impact::Reboot, 1, 2));
    assert_eq!(count(passed.clone(), vgpu(VgpuSize::Mixed)), (Impact::Reboot, 1, 2));
    assert_eq!(count(Set::Same, passthrough(None)), (Impact::Reboot, 1, 1));
    assert_eq!(count(Set::Mixed, passthrough(None)), (Impact::Reboot, 1, 1));
    assert_eq!(count(Set::Same, vgpu(VgpuSize::Mixed)), (Impact::Maintenance, 0, 0));
    assert_eq!(count(Set::Mixed, vgpu(VgpuSize::Same)), (Impact::Maintenance, 0, 0));
    assert_eq!(count(Set::Shared, vgpu(VgpuSize::Mixed)), (Impact::Reboot, 1, 1));
    assert_eq!(count(passed, passthrough(Some("train"))), (Impact::None, 0, 0));
}

#[test]
fn reboots_of_mig_are_as_the_reference_says() {
    let count = |card: Card, start: Set, mode: Mode| {
        let view = host(card, &[(0x3b, start)]);
        let mut reboots = WAYS.map(|way| {
            let wish = wish(card, 1, mode.clone(), way);
            let planned = make(&wish, &view);
            let host = the_host(&planned);
            let twin = converges(card, &view, &wish, PLAIN, Death::Never);
            assert_eq!(twin.reboots, host.reboots.expected, "{:?}", twin.log);
            (host.impact, host.reboots.expected, host.reboots.most)
        });
        reboots.sort();
        assert_eq!(reboots[0], reboots[1]);
        reboots[0]
    };
    let (passed, closed, reboot) = (|| Set::Passthrough(None), Impact::Maintenance, Impact::Reboot);
    // MIG of the driver: at once, after the last reboot.
    assert_eq!(count(H100, Set::Same, Mode::MigVgpu), (closed, 0, 0));
    assert_eq!(count(H100, Set::Mixed, Mode::MigVgpu), (closed, 0, 0));
    assert_eq!(count(H100, passed(), Mode::MigVgpu), (reboot, 1, 2));
    assert_eq!(count(H100, Set::Mig, vgpu(VgpuSize::Same)), (closed, 0, 0));
    assert_eq!(count(H100, Set::Mig, vgpu(VgpuSize::Mixed)), (closed, 0, 0));
    assert_eq!(count(H100, Set::Mig, passthrough(None)), (reboot, 1, 1));
    // MIG of the board: with a reboot, and before passthrough with one of its own.
    assert_eq!(count(A100, Set::Same, Mode::MigVgpu), (reboot, 1, 1));
    assert_eq!(count(A100, Set::Mixed, Mode::MigVgpu), (reboot, 1, 1));
    assert_eq!(count(A100, passed(), Mode::MigVgpu), (reboot, 2, 2));
    assert_eq!(count(A100, Set::Mig, vgpu(VgpuSize::Same)), (reboot, 1, 1));
    assert_eq!(count(A100, Set::Mig, vgpu(VgpuSize::Mixed)), (reboot, 1, 1));
    assert_eq!(count(A100, Set::Mig, passthrough(None)), (reboot, 2, 2));
    // It may hide behind passthrough.
    assert_eq!(count(A100, passed(), vgpu(VgpuSize::Same)), (reboot, 1, 3));
}

/// Idle devices are rebound: only the switch of the board takes a reboot, and what is due after a reboot is
/// no reason for one.
#[test]
fn mig_takes_no_reboot_that_rebinding_spares() {
    let rebinds = Readings { rebind: true, ..PLAIN };
    for way in WAYS {
        for (card, start, mode, reboots) in [
            (A100, Set::Passthrough(None), Mode::MigVgpu, 1),
            (A100, Set::Mig, passthrough(None), 1),
            (H100, Set::Passthrough(None), Mode::MigVgpu, 0),
            (H100, Set::Mig, passthrough(None), 0),
        ] {
            let mut view = host(card, &[(0x3b, start)]);
            // So that the driver takes a GPU as one of vGPU at once.
            known(&mut view.graphics_config).default_type = GraphicsType::SharedDirect;
            let twin = converges(card, &view, &wish(card, 1, mode, way), rebinds, Death::Never);
            assert_eq!(twin.reboots, reboots, "{:#?}", twin.log);
        }
    }
}

#[test]
fn mig_that_a_guest_left_is_used_or_switched_off() {
    for way in WAYS {
        for readings in readings() {
            let hidden = || {
                let mut twin = Twin::new(host(A100, &[(0x3b, Set::Passthrough(None))]), readings);
                twin.mig.insert(at(0x3b), (true, true));
                twin
            };
            for mode in [Mode::MigVgpu, vgpu(VgpuSize::Same), vgpu(VgpuSize::Mixed)] {
                let wish = wish(A100, 1, mode.clone(), way);
                let whole = goes_on(A100, hidden(), &wish, Death::Never);
                let stored = readings.while_passthrough == WhilePassthrough::Stored;
                if mode == Mode::MigVgpu && stored && !readings.rebind {
                    assert_eq!(whole.reboots, 1, "{readings:?} {:?}", whole.log);
                    assert!(!whole.log.iter().any(|call| call.contains("MIG on")), "{:?}", whole.log);
                }
                for last in 1..=whole.log.len() {
                    goes_on(A100, hidden(), &wish, Death::After(last));
                }
            }
        }
    }
}

#[test]
fn a_death_after_every_effect_of_every_transition_with_mig() {
    let mut deaths = 0;
    for card in [H100, A100] {
        for way in WAYS {
            for (mode, goal) in modes() {
                for (_, start) in modes().into_iter().filter(|(_, set)| (*set == Set::Mig) != (goal == Set::Mig)) {
                    for readings in readings() {
                        let view = host(card, &[(0x3b, start.clone())]);
                        let wish = wish(card, 1, mode.clone(), way);
                        let whole = converges(card, &view, &wish, readings, Death::Never);
                        for last in 1..=whole.log.len() {
                            let resumed = converges(card, &view, &wish, readings, Death::After(last));
                            let case = format!("{start:?} -> {mode:?} {way:?} {readings:?} {last} {:#?}", resumed.log);
                            assert!(resumed.reboots <= whole.reboots, "a reboot was repeated: {case}");
                            deaths += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(deaths > 2000, "{deaths}");
}

#[test]
fn readings_change_what_is_done() {
    let view = host(H100, &[(0x3b, Set::Passthrough(None)), (0xd8, Set::Passthrough(None))]);
    // One GPU stays outside, so that the host default is not changed: with it, an entry that the host
    // ignores is made up for.
    let mut half = pool(H100, 2, vgpu(VgpuSize::Mixed), &["esx-01"]);
    half.gpus[0].select.value = GpuSelect::Count(1);
    let wish = desired(vec![half]);
    let reboots = |readings| converges(H100, &view, &wish, readings, Death::Never).reboots;
    assert_eq!(reboots(PLAIN), 1);
    assert_eq!(reboots(Readings { while_passthrough: WhilePassthrough::Ignored, ..PLAIN }), 2);
    assert_eq!(reboots(Readings { while_passthrough: WhilePassthrough::Refused, ..PLAIN }), 2);
    let idle = Readings { rebind: true, ..PLAIN };
    let off = host(H100, &[(0x3b, Set::Same), (0xd8, Set::Same)]);
    let back = desired(vec![pool(H100, 2, passthrough(None), &["esx-01"])]);
    assert_eq!(converges(H100, &off, &back, idle, Death::Never).reboots, 0, "rebound without a reboot");
}

#[test]
fn a_death_after_every_effect_is_resumed_to_the_same_end() {
    let others = [(0x3b, Set::Passthrough(Some("old"))), (0x86, Set::Mixed), (0xd8, Set::Passthrough(None))];
    let view = host(H100, &others);
    // One group becomes vGPU, one passthrough, one GPU is outside the pool.
    let mut mixed = pool(H100, 3, vgpu(VgpuSize::Mixed), &["esx-01"]);
    let address =
        |bus| GpuSelect::Addresses(vec![poolwright::model::At::new(at(bus), crate::support::seen::place(11))]);
    mixed.gpus =
        vec![group(10, address(0x3b), vgpu(VgpuSize::Mixed)), group(13, address(0x86), passthrough(Some("train")))];
    let wish = desired(vec![mixed]);
    for readings in readings() {
        // The device entry never takes effect without the host default, which is not ours to change.
        if readings.default_needed {
            continue;
        }
        let whole = converges(H100, &view, &wish, readings, Death::Never);
        for last in 1..=whole.log.iter().filter(|call| *call != "verify the host").count() {
            let resumed = converges(H100, &view, &wish, readings, Death::After(last));
            assert_eq!(resumed.view.graphics_config, whole.view.graphics_config, "{readings:?} {last}");
            assert!(resumed.reboots <= whole.reboots, "{readings:?} {last}: a reboot was repeated");
        }
    }
}

#[test]
fn a_death_is_resumed_from_the_marker_alone() {
    // The marker knows the phase and the reboots; what was sent while passed through is forgotten.
    let view = host(A100, &[(0x3b, Set::Passthrough(Some("old")))]);
    let wish = desired(vec![pool(A100, 1, vgpu(VgpuSize::Mixed), &["esx-01"])]);
    for readings in readings() {
        for last in 1..=6 {
            let mut twin = Twin::new(view.clone(), readings);
            twin.view.uuid = Fact::Known("uuid-esx-01".into());
            let planned = make(&wish, &twin.view);
            let host = the_host(&planned);
            let mut memory = Memory::default();
            run(&mut twin, host, &mut memory, Death::After(last)).unwrap();
            memory = Memory { early_graphics_sent: false, last_reboot: None, reboots: twin.reboots, ..memory };
            run(&mut twin, host, &mut memory, Death::Never).unwrap();
            assert!(twin.reboots <= host.reboots.most, "{readings:?} {last}: {:?}", twin.log);
            assert_empty(&make(&wish, &twin.view));
        }
    }
}

/// The marker does not say which boards were switched: what the shell shows is found, a person is asked
/// again, and no reboot is repeated.
#[test]
fn mig_is_resumed_from_the_marker_alone() {
    for card in [H100, A100] {
        for way in WAYS {
            for (start, mode) in [
                (Set::Passthrough(None), Mode::MigVgpu),
                (Set::Mixed, Mode::MigVgpu),
                (Set::Mig, vgpu(VgpuSize::Mixed)),
                (Set::Mig, passthrough(None)),
            ] {
                let wish = wish(card, 1, mode, way);
                for last in 1..=12 {
                    let mut twin = Twin::new(host(card, &[(0x3b, start.clone())]), PLAIN);
                    twin.view.uuid = Fact::Known("uuid-esx-01".into());
                    let planned = make(&wish, &twin.view);
                    let host = the_host(&planned);
                    let mut memory = Memory::default();
                    run(&mut twin, host, &mut memory, Death::After(last)).unwrap();
                    memory = Memory {
                        early_graphics_sent: false,
                        last_reboot: None,
                        mig: vec![],
                        reboots: twin.reboots,
                        ..memory
                    };
                    run(&mut twin, host, &mut memory, Death::Never).unwrap();
                    assert_eq!(twin.reboots, host.reboots.expected, "{start:?} {way:?} {last}: {:?}", twin.log);
                    twin.view.shell = Fact::Absent;
                    assert_empty(&make(&wish, &twin.view));
                }
            }
        }
    }
}

/// Somebody else reboots the host while nobody of ours is at work.
#[test]
fn a_reboot_by_somebody_else_in_mid_visit_is_taken_as_it_comes() {
    for card in [H100, A100] {
        for way in WAYS {
            for (mode, goal) in modes() {
                for (_, start) in modes().into_iter().filter(|(_, set)| (*set == Set::Mig) != (goal == Set::Mig)) {
                    let wish = wish(card, 1, mode.clone(), way);
                    for last in 1..=12 {
                        let mut twin = Twin::new(host(card, &[(0x3b, start.clone())]), PLAIN);
                        twin.view.uuid = Fact::Known("uuid-esx-01".into());
                        let planned = make(&wish, &twin.view);
                        let host = the_host(&planned);
                        let mut memory = Memory::default();
                        run(&mut twin, host, &mut memory, Death::After(last)).unwrap();
                        let open = twin.view.in_maintenance == Fact::Known(false);
                        twin.reboot();
                        let case = format!("{} {start:?} -> {goal:?} {way:?} {last}", card.model);
                        match run(&mut twin, host, &mut memory, Death::Never) {
                            Ok(_) => {}
                            // MIG went with the boot, and the host is in service again.
                            Err(Refusal::Blocked(why)) => {
                                assert!(open && goal == Set::Mig && card.model == H100.model, "{case}: {why}");
                                continue;
                            }
                            // Nothing was written yet, and the host is not that of the plan any more.
                            Err(Refusal::Stale { .. }) => {
                                assert!(!memory.begun && start == Set::Mig && card.model == H100.model, "{case}");
                                continue;
                            }
                            Err(other) => panic!("{case}: {other} {:#?}", twin.log),
                        }
                        assert!(twin.monitor && memory.reboots <= host.reboots.most, "{case}: {:#?}", twin.log);
                        twin.view.shell = Fact::Absent;
                        let after = make(&wish, &twin.view);
                        // After its release a host is nobody's: the next plan gives it back its MIG.
                        let released = open && goal == Set::Mig && card.model == H100.model;
                        assert!(after.hosts.is_empty() || released, "{case}: {:#?}", twin.log);
                    }
                }
            }
        }
    }
}

#[test]
fn a07_configured_and_not_active_is_one_reboot_and_no_write() {
    let mut view = host(H100, &[(0x3b, Set::Same)]);
    known(&mut view.passthru)[0].enabled = true;
    let wish = desired(vec![pool(H100, 1, passthrough(None), &["esx-01"])]);
    let twin = converges(H100, &view, &wish, PLAIN, Death::Never);
    assert_eq!(twin.reboots, 1);
    assert!(!twin.log.iter().any(|call| call.starts_with("set ")), "{:?}", twin.log);
    let planned = make(&wish, &view);
    assert!(planned.findings.iter().any(|finding| finding.id.0 == "PW-HOST-11"), "drift is reported");

    // The neighbour: a graphics type that waits.
    let mut view = host(H100, &[(0x3b, Set::Shared)]);
    set_gpu(&mut view, 0x3b, &Set::Same);
    known(&mut view.graphics_active)[0].graphics_type = GraphicsType::Shared;
    let twin =
        converges(H100, &view, &desired(vec![pool(H100, 1, vgpu(VgpuSize::Same), &["esx-01"])]), PLAIN, Death::Never);
    assert_eq!((twin.reboots, twin.log.iter().any(|call| call.starts_with("set "))), (1, false), "{:?}", twin.log);
}

#[test]
fn f9b_a_reboot_without_effect_is_never_repeated() {
    let view = host(H100, &[(0x3b, Set::Same)]);
    let wish = desired(vec![pool(H100, 1, passthrough(None), &["esx-01"])]);
    let mut twin = Twin::new(view, PLAIN);
    twin.view.uuid = Fact::Known("uuid-esx-01".into());
    let planned = make(&wish, &twin.view);
    let host = the_host(&planned);
    let mut memory = Memory::default();
    let dead_before_reboot = Death::After(2);
    run(&mut twin, host, &mut memory, dead_before_reboot).unwrap();
    // The host boots, and its stale store keeps the device with the VMkernel.
    let step = poolwright::plan::Step::Reboot {
        pending: vec!["0000:3b:00.0 passthrough on".into()],
        boot_before: *twin.view.boot_time.known().unwrap(),
    };
    memory.started(&step);
    let before = twin.view.passthru.clone();
    twin.reboot();
    twin.view.passthru = before;
    memory.done(&step);
    let refused = run(&mut twin, host, &mut memory, Death::Never).unwrap_err();
    assert_eq!(refused, Refusal::RebootWithoutEffect { pending: vec!["0000:3b:00.0 passthrough on".into()] });
    assert_eq!(memory.maintenance, OurMaintenance::Closed, "held in maintenance");
}

#[test]
fn a_second_reboot_that_is_not_approved_is_refused_in_mid_visit_and_said_before() {
    let view = host(H100, &[(0x3b, Set::Passthrough(None)), (0xd8, Set::Same)]);
    let mut one = pool(H100, 2, vgpu(VgpuSize::Same), &["esx-01"]);
    one.gpus[0].select.value = GpuSelect::Count(1);
    one.rollout.max_reboots.value = 1;
    let wish = desired(vec![one]);
    let mut twin = Twin::new(view, Readings { while_passthrough: WhilePassthrough::Ignored, ..PLAIN });
    twin.view.uuid = Fact::Known("uuid-esx-01".into());
    let planned = make(&wish, &twin.view);
    let host = the_host(&planned);
    assert_eq!((host.reboots.expected, host.reboots.most), (1, 1));
    assert!(host.reboots.why.iter().any(|why| why.contains("not approved")), "{:?}", host.reboots.why);
    let refused = run(&mut twin, host, &mut Memory::default(), Death::Never).unwrap_err();
    assert!(matches!(refused, Refusal::TooManyReboots { needed: 2, most: 1, .. }), "{refused}");
    assert_eq!(twin.reboots, 1);
}

#[test]
fn the_host_default_is_changed_only_if_every_gpu_is_in_the_pool() {
    let view = host(H100, &[(0x3b, Set::Passthrough(None)), (0xd8, Set::Passthrough(None))]);
    let default = |twin: &Twin| twin.view.graphics_config.known().unwrap().default_type.clone();
    let all = desired(vec![pool(H100, 2, vgpu(VgpuSize::Same), &["esx-01"])]);
    assert_eq!(default(&converges(H100, &view, &all, PLAIN, Death::Never)), GraphicsType::SharedDirect);
    let mut half = pool(H100, 2, vgpu(VgpuSize::Same), &["esx-01"]);
    half.gpus[0].select.value = GpuSelect::Count(1);
    let half = desired(vec![half]);
    assert_eq!(default(&converges(H100, &view, &half, PLAIN, Death::Never)), GraphicsType::Shared);
    let planned = make(&half, &view);
    for id in ["PW-HOST-12", "PW-GPU-08"] {
        assert!(planned.findings.iter().any(|finding| finding.id.0 == id), "{id}");
    }
}

#[test]
fn companions_go_with_their_gpu_in_one_call() {
    let audio: PciAddress = "0000:3b:00.1".parse().unwrap();
    let mut view = host(H100, &[(0x3b, Set::Same)]);
    let function = crate::support::seen::device("0000:3b:00.1", 0x10de, 0x22ba, 0x0403, "NVIDIA audio");
    known(&mut view.pci).push(function);
    known(&mut view.passthru).push(passthru(audio, false));
    let wish = desired(vec![pool(H100, 1, passthrough(None), &["esx-01"])]);
    let twin = converges(H100, &view, &wish, PLAIN, Death::Never);
    let writes: Vec<&String> = twin.log.iter().filter(|call| call.starts_with("set passthrough")).collect();
    assert_eq!(writes, ["set passthrough on: 0000:3b:00.0, 0000:3b:00.1"]);
    let back = desired(vec![pool(H100, 1, vgpu(VgpuSize::Same), &["esx-01"])]);
    let mut off = twin.view.clone();
    off.parity = view.parity.clone();
    let twin = converges(H100, &off, &back, PLAIN, Death::Never);
    assert!(twin.log.iter().any(|call| call == "set passthrough off: 0000:3b:00.0, 0000:3b:00.1"), "{:?}", twin.log);
}
