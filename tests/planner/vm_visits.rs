//! Visits of hosts with VMs, from every mid-state, and what their steps find.

use poolwright::model::{
    At, Fact, GpuSelect, HostView, MoRef, OnMismatch, PowerState, RunningTask, VgpuSize, VmGpuDevice, VmView,
};
use poolwright::plan::{
    Around, Check, Fate, HostPlan, Memory, NodeEnd, OurMaintenance, Refusal, Step, Verify, Visit, visit,
};

use super::findings::make;
use super::twin::{Death, PLAIN, Twin, run};
use super::vms::{HALF, QUARTER, Scene, find, runs, selector};
use crate::support::seen::{
    H100, Set, around, at, desired, direct_path, dynamic, group, host, known, passthrough, place, record, vgpu,
    vgpu_device, vm,
};

fn moref(name: &str) -> MoRef {
    MoRef::new("VirtualMachine", format!("vm-{name}"))
}

/// A VM of each fate on esx-01: `web` and `serve-1` move, `serve-2` and `train` stop and start again,
/// `old` is left off.
pub fn scene() -> Scene {
    let mut scene = Scene::new();
    let mut leaving = host(
        H100,
        &[
            (0x3b, Set::Same),
            (0x5e, Set::Passthrough(Some("old"))),
            (0x86, Set::Same),
            (0xd8, Set::Passthrough(Some("train"))),
        ],
    );
    runs(&mut leaving, "web", vec![], &[]);
    runs(&mut leaving, "serve-1", vec![vgpu_device(HALF)], &[0x3b]);
    let still = VmGpuDevice::Vgpu { name: HALF.into(), migrate: Fact::Known(false) };
    runs(&mut leaving, "serve-2", vec![still], &[0x86]);
    runs(&mut leaving, "train", vec![direct_path("0000:d8:00.0")], &[]);
    known(&mut find(&mut leaving, "train").extra).insert(VmView::MMIO_64BIT.into(), "TRUE".into());
    runs(&mut leaving, "old", vec![dynamic(Some("old"))], &[]);
    scene.leaving = leaving;
    let address = |bus| At::new(at(bus), place(11));
    scene.pool.gpu_count.value = 4;
    scene.pool.gpus = vec![
        group(10, GpuSelect::Addresses(vec![address(0x3b)]), vgpu(VgpuSize::Mixed)),
        group(13, GpuSelect::Addresses(vec![address(0x5e), address(0x86), address(0xd8)]), passthrough(Some("train"))),
    ];
    scene.pool.vms.may_stop = vec![selector("*")];
    scene.pool.vms.on_mismatch = OnMismatch::LeaveOff;
    scene
}

fn planned(scene: &Scene) -> (HostPlan, HostView, Around) {
    let seen = scene.fleet();
    let plan = make(&desired(vec![scene.pool.clone()]), &seen);
    assert_eq!(plan.hosts.len(), 1, "{:#?}", plan.findings);
    let view = seen.hosts["/DC1/host/gpu-a/esx-01"].view.clone().unwrap();
    (plan.hosts[0].clone(), *view, around(&seen, "esx-01"))
}

fn go(plan: &HostPlan, view: &HostView, memory: &Memory, around: &Around) -> Result<Visit, Refusal> {
    visit(plan, &record("esx-01", view.clone()), memory, around)
}

/// The steps of VMs, and those around them, in words.
pub fn words(visit: &Visit) -> Vec<String> {
    let name = |step: &Step| match step {
        Step::StartClosing { moves, stops } => format!("start closing, {} move, {stops} stop", moves.len()),
        Step::StopVm { name, .. } => format!("stop {name}"),
        Step::EnterMaintenance { moves } => format!("enter, {} move", moves.len()),
        Step::StartVm { name, .. } => format!("start {name}"),
        Step::ExitMaintenance => "exit".to_owned(),
        Step::SetPassthrough { .. } | Step::SetGraphics { .. } => "write".to_owned(),
        Step::StartShell | Step::StopMonitor | Step::SetMig { .. } | Step::StartMonitor => "shell".to_owned(),
        Step::Reboot { .. } => "reboot".to_owned(),
        Step::VerifyHost => "verify".to_owned(),
        Step::CordonNode { node, .. } => format!("cordon {}", node.name),
        Step::DrainNode { node, .. } => format!("drain {}", node.name),
        Step::AwaitNode { node, .. } => format!("await {}", node.name),
        Step::ValidateNode { node, .. } => format!("validate {}", node.name),
        Step::UncordonNode { node, leave: NodeEnd::LeftOff } => format!("leave off {}", node.name),
        Step::UncordonNode { node, .. } => format!("uncordon {}", node.name),
    };
    visit.steps.iter().map(name).collect()
}

fn closing_task() -> Fact<Vec<RunningTask>> {
    Fact::Known(vec![RunningTask {
        moref: MoRef::new("Task", "task-9"),
        what: "HostSystem.enterMaintenanceMode".into(),
        user: Fact::Known("pw".into()),
        queued_at: Fact::Absent,
    }])
}

fn asked(vms: &[&str]) -> Memory {
    let vms = vms.iter().map(|name| moref(name)).collect();
    Memory { begun: true, maintenance: OurMaintenance::Asked, vms, ..Memory::default() }
}

fn switch(view: &mut HostView, name: &str, power: PowerState) {
    find(view, name).power = Fact::Known(power);
    let vm = moref(name);
    known(&mut view.graphics_active).iter_mut().for_each(|state| state.vms.retain(|user| *user != vm));
}

#[test]
fn a_visit_closes_first_and_stops_second() {
    let (plan, view, around) = planned(&scene());
    let fates: Vec<(&str, &str)> = plan
        .fates
        .iter()
        .map(|fate| {
            let word = match fate.fate {
                Fate::Moves { .. } => "moves",
                Fate::Stops { .. } => "stops",
                Fate::LeftOff { .. } => "left off",
            };
            (fate.name.as_str(), word)
        })
        .collect();
    let expected =
        [("old", "left off"), ("serve-1", "moves"), ("serve-2", "stops"), ("train", "stops"), ("web", "moves")];
    assert_eq!(fates, expected);
    assert_eq!((plan.bounds.stops, plan.bounds.moves), (5, 4));
    let visit = go(&plan, &view, &Memory::default(), &around).unwrap();
    let expected = [
        "start closing, 2 move, 3 stop",
        "stop old",
        "stop serve-2",
        "stop train",
        "enter, 2 move",
        "write",
        "write",
        "reboot",
        "verify",
        "exit",
        "start serve-2",
        "start train",
    ];
    assert_eq!(words(&visit), expected);
    // The task that closes may run for as long as all that happens meanwhile.
    let [closing, stop, .., enter] = &visit.steps[..5] else { panic!() };
    let pace = Default::default();
    let sum = closing.deadline(&pace) + stop.deadline(&pace) * 3 + enter.deadline(&pace);
    assert_eq!(closing.closing_limit(&pace), sum);
}

#[test]
fn a_death_after_every_effect_with_vms_of_every_fate_comes_to_the_same_end() {
    let (plan, view, around) = planned(&scene());
    let twin = || Twin { around: around.clone(), ..Twin::new(view.clone(), PLAIN) };
    let mut whole = twin();
    run(&mut whole, &plan, &mut Memory::default(), Death::Never).unwrap();
    let effects = whole.log.iter().filter(|call| *call != "verify the host").count();
    assert!(effects >= 10, "{:#?}", whole.log);
    for last in 1..=effects {
        let (mut twin, mut memory) = (twin(), Memory::default());
        run(&mut twin, &plan, &mut memory, Death::After(last)).unwrap();
        run(&mut twin, &plan, &mut memory, Death::Never).unwrap();
        let case = format!("{last}: {:#?}", twin.log);
        assert_eq!(twin.view, whole.view, "{case}");
        assert_eq!(twin.around, whole.around, "{case}");
        assert_eq!(memory.vms, [moref("old")], "{case}");
        for name in ["serve-2", "train"] {
            let times = |word: &str| twin.log.iter().filter(|call| call.starts_with(&format!("{word} {name}"))).count();
            assert_eq!((times("shut down the guest of"), times("start")), (1, 1), "{case}");
        }
    }
    let power = |name: &str| whole.view.vms.known().unwrap().iter().find(|vm| vm.moref == moref(name)).unwrap();
    assert_eq!(power("old").power, Fact::Known(PowerState::Off));
    assert_eq!(power("train").power, Fact::Known(PowerState::On));
    assert_eq!(whole.view.vms.known().unwrap().len(), 3, "the others moved and are not moved back");
}

#[test]
fn the_second_of_three_stopped_is_taken_up_where_it_was() {
    let (plan, mut view, around) = planned(&scene());
    let memory = asked(&["old", "serve-2", "train"]);
    view.tasks = closing_task();
    for name in ["old", "serve-2"] {
        switch(&mut view, name, PowerState::Off);
    }
    let visit = go(&plan, &view, &memory, &around).unwrap();
    assert_eq!(words(&visit)[..3], ["start closing, 2 move, 1 stop", "stop train", "enter, 2 move"]);
    assert_eq!(words(&visit)[words(&visit).len() - 2..], ["start serve-2", "start train"]);
    assert!(matches!(visit.steps[0].check(&plan, &view, &memory), Check::AlreadyDone { .. }), "its task runs");
    assert_eq!(visit.steps[1].check(&plan, &view, &memory), Check::Ready);
    // All are off: the task that runs is followed.
    switch(&mut view, "train", PowerState::Off);
    let visit = go(&plan, &view, &memory, &around).unwrap();
    assert_eq!(words(&visit)[0], "enter, 2 move");
    let task = Some(MoRef::new("Task", "task-9"));
    assert_eq!(visit.steps[0].check(&plan, &view, &memory), Check::InFlight { task });
    assert!(
        matches!(visit.steps[0].check(&plan, &view, &Memory::default()), Check::Refused { .. }),
        "somebody else's task"
    );
}

#[test]
fn a_vm_on_a_closed_host_cannot_be_and_is_refused() {
    let (plan, mut view, around) = planned(&scene());
    view.in_maintenance = Fact::Known(true);
    known(&mut view.vms).retain(|vm| vm.moref == moref("train"));
    let memory = Memory { maintenance: OurMaintenance::Closed, ..asked(&["train"]) };
    let refused = go(&plan, &view, &memory, &around).unwrap_err().to_string();
    assert_eq!(refused, "VMs are powered on in maintenance mode: train");
    let stop = Step::StopVm { vm: moref("train"), name: "train".into(), node: None };
    assert!(matches!(stop.check(&plan, &view, &memory), Check::Refused { .. }));
}

/// The host as it is when it is open again, and the memory of then.
fn reopened() -> (HostPlan, HostView, Around, Memory) {
    let (plan, mut view, around) = planned(&scene());
    known(&mut view.vms).retain(|vm| ![moref("web"), moref("serve-1")].contains(&vm.moref));
    for name in ["old", "serve-2", "train"] {
        switch(&mut view, name, PowerState::Off);
    }
    for (bus, set) in
        [(0x3b, Set::Mixed), (0x5e, Set::Passthrough(Some("train"))), (0x86, Set::Passthrough(Some("train")))]
    {
        crate::support::seen::set_gpu(&mut view, bus, &set);
    }
    let memory = Memory { maintenance: OurMaintenance::Leaving, ..asked(&["old", "serve-2", "train"]) };
    (plan, view, around, memory)
}

#[test]
fn an_open_host_gets_its_vms_back_and_only_those() {
    let (plan, mut view, around, memory) = reopened();
    let visit = |view: &HostView| words(&go(&plan, view, &memory, &around).unwrap());
    assert_eq!(visit(&view), ["exit", "start serve-2", "start train"]);
    // Somebody uses the host already: that is not ours to judge.
    known(&mut view.vms).push(vm("other", PowerState::On));
    assert_eq!(visit(&view), ["exit", "start serve-2", "start train"]);
    // Somebody started one: only the proof is left.
    switch(&mut view, "serve-2", PowerState::On);
    assert_eq!(visit(&view), ["exit", "start train", "start serve-2"]);
    let start = Step::StartVm { vm: moref("serve-2"), name: "serve-2".into(), gpus: vec![vgpu_device(HALF)] };
    assert_eq!(start.check(&plan, &view, &memory), Check::InFlight { task: None }, "no GPU shows it");
    assert!(matches!(start.verify(&plan, &view, &memory), Verify::NotYet { .. }));
    crate::support::seen::active(&mut view, 0x3b).vms.push(moref("serve-2"));
    match start.check(&plan, &view, &memory) {
        Check::AlreadyDone { evidence } => assert_eq!(evidence[1], "uses 0000:3b:00.0"),
        other => panic!("{other:?}"),
    }
}

/// The approved plan says who stays off: what fits by now, or again, changes nothing of that.
#[test]
fn what_was_approved_to_stay_off_is_never_started() {
    let (plan, mut view, around, memory) = reopened();
    find(&mut view, "old").gpus = Fact::Known(Vec::new());
    assert_eq!(words(&go(&plan, &view, &memory, &around).unwrap()), ["exit", "start serve-2", "start train"]);
}

#[test]
fn a_vm_that_is_gone_or_off_elsewhere_is_named_and_one_that_runs_elsewhere_is_let_be() {
    let (plan, mut view, mut around, memory) = reopened();
    let train = known(&mut view.vms).iter().position(|vm| vm.moref == moref("train")).unwrap();
    let mut train = known(&mut view.vms).remove(train);
    let gone = go(&plan, &view, &memory, &around).unwrap();
    assert_eq!(words(&gone), ["exit", "start serve-2", "start train"]);
    match gone.steps[2].check(&plan, &view, &memory) {
        Check::Refused { expected, found } => {
            assert_eq!(
                (expected.as_str(), found.as_str()),
                ("train on this host", "it is not: somebody moved or deleted it")
            );
        }
        other => panic!("{other:?}"),
    }
    known(&mut around.neighbours[0].view.as_mut().unwrap().vms).push(train.clone());
    assert_eq!(words(&go(&plan, &view, &memory, &around).unwrap()).len(), 3, "off elsewhere");
    train.power = Fact::Known(PowerState::On);
    *known(&mut around.neighbours[0].view.as_mut().unwrap().vms).last_mut().unwrap() = train;
    assert_eq!(words(&go(&plan, &view, &memory, &around).unwrap()), ["exit", "start serve-2"], "it runs");
}

#[test]
fn more_than_were_approved_is_refused_with_the_names() {
    let mut one = Scene::new();
    one.pool.vms.may_stop = vec![selector("*")];
    let (plan, view, around) = planned(&one);
    let with = |count: usize, device: Option<VmGpuDevice>| {
        let mut view = view.clone();
        for number in 0..count {
            runs(&mut view, &format!("new-{number}"), device.clone().into_iter().collect(), &[]);
            find(&mut view, &format!("new-{number}")).reserved_mib = Fact::Known(0);
        }
        go(&plan, &view, &Memory::default(), &around)
    };
    assert!(with(2, None).is_ok(), "one was planned to move, three may");
    match with(3, None).unwrap_err() {
        Refusal::TooManyVms { what, vms, most } => {
            assert_eq!((what.as_str(), vms.len(), most), ("moved", 4, 3));
            assert_eq!(vms[0], "new-0");
        }
        other => panic!("{other:?}"),
    }
    let still = Some(VmGpuDevice::Vgpu { name: QUARTER.into(), migrate: Fact::Known(false) });
    assert!(with(2, still.clone()).is_ok());
    assert!(matches!(with(3, still), Err(Refusal::TooManyVms { what, most: 2, .. }) if what == "stopped"));
}

#[test]
fn what_comes_between_the_visit_and_its_step_is_looked_at_again() {
    let (plan, mut view, around) = planned(&Scene::new());
    let step = go(&plan, &view, &Memory::default(), &around).unwrap().steps.remove(0);
    assert_eq!(step.check(&plan, &view, &Memory::default()), Check::Ready);
    known(&mut view.vms).push(vm("web", PowerState::On));
    assert_eq!(step.check(&plan, &view, &Memory::default()), Check::Ready, "DRS moves it on as it came");
    let refused = |view: &HostView| match step.check(&plan, view, &Memory::default()) {
        Check::Refused { found, .. } => found,
        other => panic!("{other:?}"),
    };
    let mut gpu = view.clone();
    runs(&mut gpu, "late", vec![vgpu_device(HALF)], &[0xd8]);
    assert_eq!(refused(&gpu), "late", "nothing proves that it can move");
    known(&mut view.vms).extend([vm("web-2", PowerState::On), vm("web-3", PowerState::On)]);
    assert_eq!(refused(&view), "web, web-2, web-3");
}

#[test]
fn a_guest_is_shut_down_only_on_a_host_that_closes() {
    let (plan, mut view, _) = planned(&scene());
    let memory = asked(&["train"]);
    let stop = Step::StopVm { vm: moref("train"), name: "train".into(), node: None };
    match stop.check(&plan, &view, &memory) {
        Check::Refused { expected, .. } => assert_eq!(expected, "a host that enters maintenance mode"),
        other => panic!("{other:?}"),
    }
    view.tasks = closing_task();
    assert_eq!(stop.check(&plan, &view, &memory), Check::Ready);
    assert!(matches!(stop.verify(&plan, &view, &memory), Verify::NotYet { .. }));
    for power in [Fact::unknown("no privilege"), Fact::Known(PowerState::Suspended)] {
        find(&mut view, "train").power = power;
        assert!(matches!(stop.check(&plan, &view, &memory), Check::Refused { .. }));
        assert!(matches!(stop.verify(&plan, &view, &memory), Verify::NotYet { .. }));
    }
    switch(&mut view, "train", PowerState::Off);
    assert!(matches!(stop.check(&plan, &view, &memory), Check::AlreadyDone { .. }));
    assert!(matches!(stop.verify(&plan, &view, &memory), Verify::Reached { .. }));
    known(&mut view.vms).retain(|vm| vm.moref != moref("train"));
    assert!(matches!(stop.check(&plan, &view, &memory), Check::AlreadyDone { .. }), "it moved away");
    view.vms = Fact::unknown("no privilege");
    assert!(matches!(stop.check(&plan, &view, &memory), Check::Refused { .. }));
    assert!(matches!(stop.verify(&plan, &view, &memory), Verify::NotYet { .. }));
}

#[test]
fn a_vm_is_started_as_it_was_on_an_open_host() {
    let (plan, mut view, _, memory) = reopened();
    let gpus = vec![direct_path("0000:d8:00.0")];
    let start = Step::StartVm { vm: moref("train"), name: "train".into(), gpus };
    assert_eq!(start.check(&plan, &view, &memory), Check::Ready);
    let refused = |view: &HostView| matches!(start.check(&plan, view, &memory), Check::Refused { .. });
    let mut closed = view.clone();
    closed.in_maintenance = Fact::Known(true);
    assert!(refused(&closed));
    let mut other = view.clone();
    find(&mut other, "train").gpus = Fact::Known(vec![direct_path("0000:86:00.0")]);
    assert!(refused(&other), "somebody gave it another device");
    find(&mut other, "train").gpus = Fact::unknown("no privilege");
    assert!(refused(&other));
    switch(&mut view, "train", PowerState::Suspended);
    assert!(refused(&view));
    switch(&mut view, "train", PowerState::On);
    assert!(matches!(start.verify(&plan, &view, &memory), Verify::Reached { .. }));
    // A device that is chosen at power-on is proven by what was chosen.
    find(&mut view, "train").gpus = Fact::Known(vec![dynamic(Some("train"))]);
    assert!(matches!(start.verify(&plan, &view, &memory), Verify::NotYet { .. }));
    let assigned = Fact::Known("0000:d8:00.0".to_owned());
    let device = VmGpuDevice::DynamicDirectPath { label: Fact::Known("train".into()), assigned };
    find(&mut view, "train").gpus = Fact::Known(vec![device]);
    assert!(matches!(start.verify(&plan, &view, &memory), Verify::Reached { .. }));
}

#[test]
fn what_changed_around_the_host_is_judged_again_before_the_visit() {
    let (plan, view, mut around) = planned(&Scene::new());
    around.neighbours[0].view.as_mut().unwrap().in_maintenance = Fact::Known(true);
    match go(&plan, &view, &Memory::default(), &around).unwrap_err() {
        Refusal::Blocked(why) => assert_eq!(why, "serve-1: no other host has room for it"),
        other => panic!("{other:?}"),
    }
    around.cluster = Fact::unknown("no privilege");
    assert!(matches!(go(&plan, &view, &Memory::default(), &around), Err(Refusal::Unreadable(_))));
    let mut suspended = view.clone();
    known(&mut suspended.vms).clear();
    let paused = VmView { gpus: Fact::Known(vec![vgpu_device(HALF)]), ..vm("paused", PowerState::Suspended) };
    known(&mut suspended.vms).push(paused);
    assert!(
        matches!(go(&plan, &suspended, &Memory::default(), &around), Err(Refusal::Blocked(why)) if why.contains("paused"))
    );
}
