//! The host gate.

use poolwright::model::{
    AssignmentPolicy, At, Baseline, Connection, Fact, GpuSelect, GraphicsType, HostView, Tally, VgpuMode, VgpuSize,
};
use poolwright::plan::{GateCheck, GateRead, HostPlan, Verdict, baseline, device_digest, gate};

use super::findings::make;
use crate::support::seen::{
    H100, Set, active, desired, device, fleet, host, known, passthrough, place, pool, set_gpu, vgpu,
};

/// A plan of one GPU of two, its host before, and as it should be afterwards.
fn visited() -> (HostPlan, HostView, HostView) {
    let mut pool = pool(H100, 2, vgpu(VgpuSize::Mixed), &["esx-01"]);
    pool.gpus[0].select.value = GpuSelect::Count(1);
    pool.host.placement = Some(At::new(AssignmentPolicy::Consolidation, place(16)));
    let mut before = host(H100, &[(0x3b, Set::Passthrough(None)), (0xd8, Set::Passthrough(Some("other")))]);
    before.uuid = Fact::Known("uuid-esx-01".into());
    let plan = make(&desired(vec![pool]), &fleet(vec![("esx-01", before.clone())]));
    let mut after = before.clone();
    set_gpu(&mut after, 0x3b, &Set::Mixed);
    known(&mut after.graphics_config).policy = AssignmentPolicy::Consolidation;
    after.in_maintenance = Fact::Known(true);
    after.parity.ha = Fact::Absent;
    (plan.hosts[0].clone(), before, after)
}

/// The lines that do not open the gate, after this happened.
fn closed(happens: impl FnOnce(&mut HostView)) -> Vec<(GateCheck, String, Verdict)> {
    let (plan, before, mut after) = visited();
    happens(&mut after);
    lines(&gate(&plan, Some(&baseline(&plan, &before)), &after))
}

fn lines(read: &[GateRead]) -> Vec<(GateCheck, String, Verdict)> {
    read.iter()
        .filter(|line| !line.verdict.opens())
        .map(|line| (line.check, line.subject.clone(), line.verdict))
        .collect()
}

fn one(check: GateCheck, subject: &str, verdict: Verdict) -> Vec<(GateCheck, String, Verdict)> {
    vec![(check, subject.to_owned(), verdict)]
}

#[test]
fn a_host_as_it_should_be_passes() {
    assert_eq!(closed(|_| {}), vec![]);
}

#[test]
fn the_signature_is_read_on_active_fields() {
    let failed = one(GateCheck::Signature, "0000:3b:00.0", Verdict::Failed);
    assert_eq!(closed(|view| active(view, 0x3b).vgpu_mode = Fact::Known(VgpuMode::SameSize)), failed);
    assert_eq!(closed(|view| set_gpu(view, 0x3b, &Set::Same)), failed);
    assert_eq!(closed(|view| known(&mut view.passthru)[0].active = true), failed);
    let policy = one(GateCheck::Signature, "assignment policy", Verdict::Failed);
    assert_eq!(closed(|view| known(&mut view.graphics_config).policy = AssignmentPolicy::Performance), policy);
}

#[test]
fn what_cannot_be_read_is_unverifiable_and_never_passed() {
    type Blank = fn(&mut HostView);
    let blanks: Vec<(Blank, GateCheck)> = vec![
        (|view| view.pci = Fact::unknown("x"), GateCheck::Identity),
        (|view| view.graphics_active = Fact::unknown("x"), GateCheck::Signature),
        (|view| view.graphics_config = Fact::unknown("x"), GateCheck::Signature),
        (|view| view.parity.datastores = Fact::unknown("x"), GateCheck::Parity),
        (|view| view.parity.alarms = Fact::unknown("x"), GateCheck::Parity),
    ];
    for (blank, check) in blanks {
        let closed = closed(blank);
        assert!(closed.contains(&(check, closed[0].1.clone(), Verdict::Unverifiable)), "{closed:?}");
    }
    assert_eq!(closed(|view| view.uuid = Fact::unknown("x")), one(GateCheck::Identity, "host", Verdict::Failed));
    let down = closed(|view| view.connection = Fact::Known(Connection::NotResponding));
    assert_eq!(down, one(GateCheck::Identity, "host", Verdict::Failed));
}

#[test]
fn devices_that_shift_vanish_or_appear_close_it() {
    let kinds = |closed: Vec<(GateCheck, String, Verdict)>| closed.into_iter().map(|line| line.0).collect::<Vec<_>>();
    let nic = |view: &mut HostView| known(&mut view.pci).push(device("0000:5e:00.0", 0x15b3, 0x1021, 0x0207, "NIC"));
    assert_eq!(kinds(closed(nic)), [GateCheck::Devices]);
    let gone = |view: &mut HostView| known(&mut view.pci).retain(|device| device.class != 0x0106);
    assert_eq!(kinds(closed(gone)), [GateCheck::Devices]);
    let swapped = closed(|view| known(&mut view.pci)[2].id.device = 0x20f1);
    assert!(kinds(swapped).contains(&GateCheck::Identity));
    // Virtual functions come with the mode.
    let functions = |view: &mut HostView| {
        for function in 4..8 {
            known(&mut view.pci).push(device(&format!("0000:3b:00.{function}"), 0x10de, 0x2321, 0x0302, "VF"));
        }
    };
    assert_eq!(closed(functions), vec![]);
}

#[test]
fn gpus_outside_the_pool_are_compared_configured_and_active() {
    let other = one(GateCheck::Others, "0000:d8:00.0", Verdict::Failed);
    let without_devices = |closed: Vec<(GateCheck, String, Verdict)>| {
        closed.into_iter().filter(|line| line.0 != GateCheck::Devices).collect::<Vec<_>>()
    };
    let label = |view: &mut HostView| known(&mut view.passthru)[1].label = Fact::Known("mine".into());
    assert_eq!(without_devices(closed(label)), other);
    let active = |view: &mut HostView| known(&mut view.passthru)[1].active = false;
    assert_eq!(without_devices(closed(active)), other);
    let default = |view: &mut HostView| known(&mut view.graphics_config).default_type = GraphicsType::SharedDirect;
    assert_eq!(without_devices(closed(default)), other, "it inherits the host default");
}

#[test]
fn parity_is_no_worse_and_what_was_sick_before_is_not_blamed() {
    let ends = |before: fn(&mut HostView), after: fn(&mut HostView)| {
        let (plan, mut was, mut is) = visited();
        before(&mut was);
        after(&mut is);
        lines(&gate(&plan, Some(&baseline(&plan, &was)), &is))
    };
    let failed = |subject| one(GateCheck::Parity, subject, Verdict::Failed);
    let lost: fn(&mut HostView) = |view| view.parity.datastores = Fact::Known(Tally { good: 11, all: 12 });
    assert_eq!(ends(|_| {}, lost), failed("datastores"));
    assert_eq!(ends(lost, lost), vec![], "sick before");
    assert_eq!(ends(lost, |_| {}), vec![], "better than before");
    assert_eq!(
        ends(|_| {}, |view| view.parity.datastores = Fact::Known(Tally { good: 11, all: 11 })),
        failed("datastores")
    );
    assert_eq!(ends(|_| {}, |view| view.parity.uplinks = Fact::Known(Tally { good: 3, all: 4 })), failed("uplinks"));
    assert_eq!(ends(|_| {}, |view| view.parity.alarms = Fact::Known(1)), failed("alarms"));
    assert_eq!(ends(|view| view.parity.alarms = Fact::Known(2), |view| view.parity.alarms = Fact::Known(1)), vec![]);
}

#[test]
fn the_ha_agent_is_judged_when_the_host_is_open() {
    // The property is unset while a host is in maintenance.
    let (plan, before, mut after) = visited();
    let base = baseline(&plan, &before);
    let ha =
        |view: &HostView| gate(&plan, Some(&base), view).into_iter().find(|line| line.subject == "ha").unwrap().verdict;
    assert_eq!(ha(&after), Verdict::NotNow);
    after.in_maintenance = Fact::Known(false);
    assert_eq!(ha(&after), Verdict::Failed, "open, and the agent is not there");
    for state in ["master", "connectedToMaster"] {
        after.parity.ha = Fact::Known(state.into());
        assert_eq!(ha(&after), Verdict::Passed);
    }
    after.parity.ha = Fact::Known("fdmUnreachable".into());
    assert_eq!(ha(&after), Verdict::Failed);
}

#[test]
fn a_lost_baseline_is_unverifiable_and_the_markers_short_form_is_enough() {
    let (plan, before, after) = visited();
    let lost = lines(&gate(&plan, None, &after));
    assert!(lost.iter().all(|line| line.2 == Verdict::Unverifiable) && lost.len() == 2, "{lost:?}");
    let stored = serde_json::to_string(&baseline(&plan, &before)).unwrap();
    let marker: Baseline = serde_json::from_str(&stored).unwrap();
    assert_eq!(lines(&gate(&plan, Some(&marker), &after)), vec![]);
    assert_eq!(device_digest(&plan, &before), device_digest(&plan, &after));
    assert_eq!(marker.dev.len(), 16);
}

#[test]
fn accepted_gaps_are_said_to_be_not_checked() {
    let (mut plan, mut before, mut after) = visited();
    (before.parity.alarms, after.parity.alarms) = (Fact::unknown("x"), Fact::unknown("x"));
    let base = baseline(&plan, &before);
    assert_eq!(lines(&gate(&plan, Some(&base), &after)), one(GateCheck::Parity, "alarms", Verdict::Unverifiable));
    plan.not_checked = vec!["alarms".into()];
    let read = gate(&plan, Some(&base), &after);
    assert_eq!(lines(&read), vec![]);
    assert!(read.iter().any(|line| line.subject == "alarms" && line.verdict == Verdict::NotChecked));
}

#[test]
fn passthrough_needs_both_the_device_and_the_graphics_type() {
    // vsphere-gpu F5: toggled, and the type never became direct.
    let view = host(H100, &[(0x3b, Set::Same)]);
    let plan = make(&desired(vec![pool(H100, 1, passthrough(None), &["esx-01"])]), &fleet(vec![("esx-01", view)]));
    let plan = &plan.hosts[0];
    let mut after = host(H100, &[(0x3b, Set::Passthrough(None))]);
    after.uuid = Fact::Known(plan.uuid.clone());
    let signature = |view: &HostView| {
        gate(plan, None, view).into_iter().find(|line| line.check == GateCheck::Signature).unwrap().verdict
    };
    assert_eq!(signature(&after), Verdict::Passed);
    known(&mut after.graphics_active).clear();
    assert_eq!(signature(&after), Verdict::Passed, "not listed is as good");
    set_gpu(&mut after, 0x3b, &Set::Passthrough(None));
    known(&mut after.graphics_active)[0].graphics_type = GraphicsType::SharedDirect;
    assert_eq!(signature(&after), Verdict::Failed);
}
