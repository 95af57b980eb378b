//! Visits from mid-states, and what a step finds.

use poolwright::model::{
    Connection, Fact, HostFault, HostFaultKind, HostRecord, HostView, MoRef, PowerState, RunningTask, VgpuSize,
};
use poolwright::plan::{self, Check, HostPlan, Memory, OurMaintenance, Refusal, Step, Verify, Visit, waits_for_reboot};

use super::findings::make;
use crate::support::seen::{H100, Set, around, desired, device, fleet, host, known, pool, record, set_gpu, vgpu, vm};

/// Passthrough to vGPU on one host, and the host.
fn planned() -> (HostPlan, HostView) {
    let mut view = host(H100, &[(0x3b, Set::Passthrough(Some("old"))), (0xd8, Set::Passthrough(None))]);
    view.uuid = Fact::Known("uuid-esx-01".into());
    let wish = desired(vec![pool(H100, 2, vgpu(VgpuSize::Same), &["esx-01"])]);
    (make(&wish, &fleet(vec![("esx-01", view.clone())])).hosts[0].clone(), view)
}

/// The visit of a host that stands alone in its cluster.
fn visit(plan: &HostPlan, record: &HostRecord, memory: &Memory) -> Result<Visit, Refusal> {
    plan::visit(plan, record, memory, &around(&fleet(vec![]), "esx-01"))
}

fn seen(view: &HostView) -> HostRecord {
    record("esx-01", view.clone())
}

/// What a fresh visit says to this alteration.
fn refusal(alter: impl FnOnce(&mut HostView)) -> Refusal {
    let (plan, mut view) = planned();
    alter(&mut view);
    visit(&plan, &seen(&view), &Memory::default()).unwrap_err()
}

fn task(what: &str) -> RunningTask {
    RunningTask {
        moref: MoRef::new("Task", "task-9"),
        what: what.into(),
        user: Fact::Known("pw".into()),
        queued_at: Fact::Absent,
    }
}

fn reboot(view: &HostView) -> Step {
    Step::Reboot { pending: vec!["0000:3b:00.0 passthrough off".into()], boot_before: *view.boot_time.known().unwrap() }
}

/// A memory in maintenance that is ours.
fn closed() -> Memory {
    Memory { begun: true, maintenance: OurMaintenance::Closed, ..Memory::default() }
}

fn boot(view: &mut HostView) {
    *known(&mut view.boot_time) += jiff::SignedDuration::from_mins(9);
}

#[test]
fn f12_a_changed_host_is_refused_with_what_changed() {
    type Alter = fn(&mut HostView);
    let cases: Vec<(Alter, &str, &str)> = vec![
        (|view| known(&mut view.product).build = "9".into(), "build 24022510", "build 9"),
        (|view| known(&mut view.packages)[0].version = "1".into(), "580.95.02", "NVD-AIE-800 1"),
        (|view| set_gpu(view, 0xd8, &Set::Same), "0000:d8:00.0: passthrough on/on", "passthrough off/off"),
        (|view| known(&mut view.graphics_config).policy = "consolidation".into(), "performance", "consolidation"),
        (|view| known(&mut view.graphics_config).default_type = "sharedDirect".into(), "shared", "sharedDirect"),
        (|view| known(&mut view.passthru)[0].label = Fact::Known("new".into()), "label old", "label new"),
        (
            |view| known(&mut view.pci).push(device("0000:5e:00.0", 0x15b3, 0x1021, 0x0207, "NIC")),
            "the set of other PCI devices",
            "",
        ),
        (|view| known(&mut view.pci)[1].id.device = 0x20f1, "10de:2321", "10de:20f1"),
        (|view| view.uuid = Fact::Known("another".into()), "uuid-esx-01", "another"),
        (|view| known(&mut view.pci).retain(|device| device.address.bus != 0xd8), "10de:2321", "no device"),
    ];
    for (alter, was, is) in cases {
        match refusal(alter) {
            Refusal::Stale { expected, found } => {
                assert!(expected.contains(was) && found.contains(is), "{expected}; {found}");
            }
            other => panic!("{was}: {other}"),
        }
    }
}

#[test]
fn f12_fast_facts_and_facts_after_the_first_effect_do_not_make_a_plan_stale() {
    let (plan, mut view) = planned();
    view.vms = Fact::Known(vec![vm("stopped", PowerState::Off)]);
    view.vgpu_types = Fact::Known(vec!["nvidia_h100l-94c".into()]);
    view.parity.alarms = Fact::Known(3);
    boot(&mut view);
    assert!(visit(&plan, &seen(&view), &Memory::default()).is_ok());
    known(&mut view.passthru)[0].enabled = false;
    assert!(matches!(visit(&plan, &seen(&view), &Memory::default()), Err(Refusal::Stale { .. })));
    let begun = Memory { begun: true, ..Memory::default() };
    assert!(visit(&plan, &seen(&view), &begun).is_ok());
}

#[test]
fn what_stands_in_the_way_is_named() {
    let blocked = |refusal: Refusal| match refusal {
        Refusal::Blocked(why) => why,
        other => panic!("{other:?}"),
    };
    let on = blocked(refusal(|view| view.vms = Fact::Known(vec![vm("web-1", PowerState::On)])));
    assert_eq!(on, "web-1: no other host has room for it");
    let busy = blocked(refusal(|view| view.tasks = Fact::Known(vec![task("HostSystem.enterMaintenanceMode")])));
    assert!(busy.contains("enterMaintenanceMode by pw"), "{busy}");
    let taken = blocked(refusal(|view| view.in_maintenance = Fact::Known(true)));
    assert!(taken.contains("not by this visit"), "{taken}");
    let down = blocked(refusal(|view| view.connection = Fact::Known(Connection::Disconnected)));
    assert!(down.contains("disconnected"), "{down}");
}

#[test]
fn what_cannot_be_read_refuses_the_visit() {
    let blanks: Vec<fn(&mut HostView)> = vec![
        |view| view.tasks = Fact::unknown("x"),
        |view| view.vms = Fact::unknown("x"),
        |view| view.pci = Fact::unknown("x"),
        |view| view.passthru = Fact::unknown("x"),
        |view| view.graphics_active = Fact::unknown("x"),
        |view| view.graphics_config = Fact::unknown("x"),
        |view| view.in_maintenance = Fact::unknown("x"),
        |view| view.boot_time = Fact::unknown("x"),
        |view| view.packages = Fact::unknown("x"),
    ];
    for (index, blank) in blanks.into_iter().enumerate() {
        let refused = refusal(blank);
        assert!(matches!(refused, Refusal::Unreadable(_) | Refusal::Stale { .. }), "{index}: {refused:?}");
    }
    let (plan, _) = planned();
    let gone = HostFault { kind: HostFaultKind::Gone, message: "deleted".into() };
    let record = HostRecord { view: Err(gone), ..seen(&planned().1) };
    assert_eq!(visit(&plan, &record, &Memory::default()), Err(Refusal::Unreadable("deleted".into())));
}

#[test]
fn a_running_maintenance_task_of_ours_is_followed_and_never_started_twice() {
    let (plan, mut view) = planned();
    view.tasks = Fact::Known(vec![task("HostSystem.enterMaintenanceMode")]);
    let asked = Memory { begun: true, maintenance: OurMaintenance::Asked, ..Memory::default() };
    let planned = visit(&plan, &seen(&view), &asked).unwrap();
    assert_eq!(planned.steps[0], Step::EnterMaintenance { moves: vec![] });
    let task = Some(MoRef::new("Task", "task-9"));
    assert_eq!(planned.steps[0].check(&plan, &view, &asked), Check::InFlight { task });
    assert!(
        matches!(planned.steps[0].check(&plan, &view, &Memory::default()), Check::Refused { .. }),
        "somebody else's"
    );
    view.tasks = Fact::Known(vec![]);
    assert_eq!(planned.steps[0].check(&plan, &view, &asked), Check::Ready);
    view.in_maintenance = Fact::Known(true);
    assert!(matches!(planned.steps[0].check(&plan, &view, &asked), Check::AlreadyDone { .. }));
}

#[test]
fn somebody_who_takes_the_host_out_of_maintenance_stops_the_visit() {
    let (plan, view) = planned();
    let refused = visit(&plan, &seen(&view), &closed()).unwrap_err();
    assert!(refused.to_string().contains("somebody took the host out"), "{refused}");
    let step = Step::SetPassthrough { changes: vec![] };
    let written = Step::ExitMaintenance.check(&plan, &view, &closed());
    assert!(matches!(written, Check::Refused { .. }), "{written:?}");
    assert!(!step.needs_maintenance());
}

#[test]
fn an_exit_that_was_asked_for_is_finished_and_not_begun_again() {
    let (plan, mut view) = planned();
    for bus in [0x3b, 0xd8] {
        set_gpu(&mut view, bus, &Set::Same);
    }
    let leaving = Memory { begun: true, maintenance: OurMaintenance::Leaving, ..Memory::default() };
    let steps = visit(&plan, &seen(&view), &leaving).unwrap().steps;
    assert_eq!(steps, [Step::ExitMaintenance]);
    assert!(matches!(steps[0].check(&plan, &view, &leaving), Check::AlreadyDone { .. }));
    // Out, and not as wished: nobody may call that done.
    set_gpu(&mut view, 0x3b, &Set::Shared);
    assert!(matches!(visit(&plan, &seen(&view), &leaving), Err(Refusal::Blocked(_))));
}

#[test]
fn a_host_that_reboots_is_waited_for_whatever_it_shows() {
    let (plan, mut view) = planned();
    view.in_maintenance = Fact::Known(true);
    let (step, mut memory) = (reboot(&view), closed());
    memory.started(&step);
    // Down: its facts are of before.
    view.connection = Fact::Known(Connection::NotResponding);
    let steps = visit(&plan, &seen(&view), &memory).unwrap().steps;
    assert_eq!(steps, std::slice::from_ref(&step));
    assert_eq!(step.check(&plan, &view, &memory), Check::InFlight { task: None });
    assert!(matches!(step.verify(&plan, &view, &memory), Verify::NotYet { .. }));
    // Back, with stale facts: proven, and not settled.
    view.connection = Fact::Known(Connection::Connected);
    boot(&mut view);
    assert_eq!(visit(&plan, &seen(&view), &memory).unwrap().steps, std::slice::from_ref(&step));
    assert_eq!(step.check(&plan, &view, &memory), Check::InFlight { task: None });
    match step.verify(&plan, &view, &memory) {
        Verify::Settling { waiting_for } => assert!(!waiting_for.is_empty()),
        other => panic!("{other:?}"),
    }
    // A GPU that is not there yet is waited for, not taken for another host.
    let mut missing = view.clone();
    known(&mut missing.pci).pop();
    assert!(matches!(step.verify(&plan, &missing, &memory), Verify::Settling { .. }));
    // Settled.
    for bus in [0x3b, 0xd8] {
        set_gpu(&mut view, bus, &Set::Same);
    }
    assert!(matches!(step.verify(&plan, &view, &memory), Verify::Reached { .. }));
    memory.done(&step);
    assert_eq!(memory.reboots, 1);
    memory.done(&step);
    assert_eq!(memory.reboots, 1, "counted once");
    assert_eq!(visit(&plan, &seen(&view), &memory).unwrap().steps, [Step::VerifyHost, Step::ExitMaintenance]);
}

#[test]
fn a_drifting_boot_time_is_no_reboot() {
    let (plan, mut view) = planned();
    view.in_maintenance = Fact::Known(true);
    let (step, mut memory) = (reboot(&view), closed());
    memory.started(&step);
    *known(&mut view.boot_time) += jiff::SignedDuration::from_secs(59);
    assert!(matches!(step.verify(&plan, &view, &memory), Verify::NotYet { .. }));
    assert_eq!(memory.reboots_by(&view.boot_time), 0);
    *known(&mut view.boot_time) += jiff::SignedDuration::from_secs(2);
    assert_eq!(memory.reboots_by(&view.boot_time), 1);
    // Found by the next process: the second reboot counts the first.
    memory.started(&reboot(&view));
    assert_eq!(memory.reboots, 1);
}

#[test]
fn a_reboot_task_is_followed_and_a_reboot_beyond_the_bound_is_refused() {
    let (plan, mut view) = planned();
    view.in_maintenance = Fact::Known(true);
    known(&mut view.passthru).iter_mut().for_each(|state| state.enabled = false);
    let (step, mut memory) = (reboot(&view), closed());
    assert_eq!(step.check(&plan, &view, &memory), Check::Ready);
    let mut spent = closed();
    spent.reboots = plan.reboots.most;
    assert!(matches!(step.check(&plan, &view, &spent), Check::Refused { .. }));
    memory.started(&step);
    view.tasks = Fact::Known(vec![task("host.HostSystem.reboot")]);
    let task = Some(MoRef::new("Task", "task-9"));
    assert_eq!(step.check(&plan, &view, &memory), Check::InFlight { task });
}

#[test]
fn a_reboot_for_nothing_is_found_done() {
    let (plan, mut view) = planned();
    view.in_maintenance = Fact::Known(true);
    for bus in [0x3b, 0xd8] {
        set_gpu(&mut view, bus, &Set::Same);
    }
    assert!(matches!(reboot(&view).check(&plan, &view, &closed()), Check::AlreadyDone { .. }));
}

#[test]
fn a_write_meets_a_foreign_value_and_is_not_sent() {
    let (plan, mut view) = planned();
    view.in_maintenance = Fact::Known(true);
    let steps = visit(&plan, &seen(&view), &closed()).unwrap().steps;
    let [passthru, graphics] = &steps[..2] else { panic!("{steps:?}") };
    assert_eq!(passthru.check(&plan, &view, &closed()), Check::Ready);
    assert_eq!(graphics.check(&plan, &view, &closed()), Check::Ready);
    let mut other = view.clone();
    known(&mut other.passthru)[0].label = Fact::Known("somebody's".into());
    match passthru.check(&plan, &other, &closed()) {
        Check::Refused { expected, found } => {
            assert!(expected.contains("label old") && found.contains("somebody's"), "{expected} {found}");
        }
        other => panic!("{other:?}"),
    }
    let mut other = view.clone();
    known(&mut other.graphics_config).default_type = "basic".into();
    assert!(matches!(graphics.check(&plan, &other, &closed()), Check::Refused { .. }));
    let mut other = view.clone();
    other.in_maintenance = Fact::Known(false);
    assert!(matches!(passthru.check(&plan, &other, &closed()), Check::Refused { .. }), "open");
    let mut other = view.clone();
    other.vms = Fact::Known(vec![vm("raced-in", PowerState::On)]);
    assert!(matches!(passthru.check(&plan, &other, &closed()), Check::Refused { .. }), "a VM raced in");
    let mut other = view;
    known(&mut other.pci)[1].id.device = 0x20f1;
    assert!(matches!(passthru.check(&plan, &other, &closed()), Check::Refused { .. }), "another device");
}

#[test]
fn the_whole_configuration_is_sent_with_only_our_devices_changed() {
    let (plan, view) = planned();
    let steps = visit(&plan, &seen(&view), &Memory::default()).unwrap().steps;
    let graphics = steps.iter().find(|step| matches!(step, Step::SetGraphics { early: true, .. })).unwrap();
    let mut current = view.graphics_config.known().unwrap().clone();
    let foreign = poolwright::model::GraphicsDeviceConfig {
        address: "0000:99:00.0".parse().unwrap(),
        graphics_type: "someLaterType".into(),
        vgpu_mode: Fact::Known("someLaterMode".into()),
    };
    current.devices.push(foreign.clone());
    let sent = graphics.merged(&current).unwrap();
    assert_eq!(sent.devices.len(), 3);
    assert_eq!(sent.devices[0], foreign, "kept as received");
    assert!(
        sent.devices[1..].iter().all(|entry| entry.vgpu_mode == Fact::Absent),
        "the size mode waits for the driver"
    );
    assert_eq!(Step::VerifyHost.merged(&current), None);
}

#[test]
fn only_what_is_configured_waits_for_a_reboot() {
    let (plan, mut view) = planned();
    assert!(waits_for_reboot(&plan, &view, &Memory::default()).unwrap().is_empty(), "nothing was written yet");
    known(&mut view.passthru).iter_mut().find(|state| state.address.bus == 0x3b).unwrap().enabled = false;
    assert_eq!(waits_for_reboot(&plan, &view, &Memory::default()).unwrap(), ["0000:3b:00.0 passthrough off"]);
    view.passthru = Fact::unknown("no privilege");
    assert!(
        matches!(waits_for_reboot(&plan, &view, &Memory::default()), Err(Refusal::Unreadable(why)) if why.contains("no privilege"))
    );
}

#[test]
fn a_marked_host_in_maintenance_is_not_called_somebody_elses() {
    let (_, mut view) = planned();
    view.in_maintenance = Fact::Known(true);
    let wish = desired(vec![pool(H100, 2, vgpu(VgpuSize::Same), &["esx-01"])]);
    let ids = |view: &HostView| -> Vec<String> {
        let plan = make(&wish, &fleet(vec![("esx-01", view.clone())]));
        assert!(plan.hosts.is_empty(), "held either way");
        plan.findings.into_iter().map(|finding| finding.id.0).filter(|id| id.starts_with("PW-HOST-0")).collect()
    };
    assert_eq!(ids(&view), ["PW-HOST-07"]);
    view.marker = Fact::Known("{}".into());
    assert_eq!(ids(&view), ["PW-HOST-09"]);
    view.marker = Fact::unknown("no privilege");
    assert_eq!(ids(&view), ["PW-HOST-07", "PW-HOST-09"]);
}
