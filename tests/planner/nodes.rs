//! Nodes of guest clusters: the order of a visit, and visits from every mid-state.

use std::collections::BTreeMap;

use poolwright::model::{
    At, Desired, Fact, GpuSelect, GuestView, HostView, JobTemplate, MoRef, NodeMark, NodePhase, NodeView, Observed,
    OnMismatch, PowerState, RunId, VgpuSize, VmGpuDevice, VmSelector,
};
use poolwright::plan::{
    Around, Boot, Fate, HostPlan, Memory, NodeMemory, OurMaintenance, Plan, Reason, Refusal, Step, Verdict, Visit,
    node_gate, visit,
};

use super::findings::{accept, make};
use super::node_findings::unread;
use super::twin::{Death, PLAIN, Twin, run};
use super::vm_visits::words;
use super::vms::{self, QUARTER, find, runs, selector};
use crate::support::seen::{
    H100, Set, around, desired, dynamic, group, guest_rules, host, known, node, place, record, set_gpu, text, vgpu,
    vgpu_device,
};

/// On esx-01: `serve-1`, `serve-2` of k8s-serve and `train-1` of k8s-train stop and start again, `old` of
/// k8s-serve is left off, `web` of k8s-serve moves; `db` is no node, and stops.
pub struct Scene {
    pub vms: vms::Scene,
    pub guests: BTreeMap<String, Fact<GuestView>>,
}

fn guest_view(nodes: u32) -> Fact<GuestView> {
    let uid = format!("cluster-{nodes}");
    Fact::Known(GuestView { version: "v1.37.2".into(), uid, nodes, unidentified: BTreeMap::new(), elsewhere: vec![] })
}

pub fn still(name: &str) -> VmGpuDevice {
    VmGpuDevice::Vgpu { name: name.into(), migrate: Fact::Known(false) }
}

fn guest(cluster: &str) -> At<VmSelector> {
    At::new(VmSelector::Guest(cluster.into()), place(26))
}

impl Scene {
    pub fn new() -> Self {
        let mut scene = vms::Scene::new();
        let mut leaving = host(H100, &[(0x3b, Set::Same), (0x5e, Set::Passthrough(Some("old"))), (0x86, Set::Same)]);
        runs(&mut leaving, "serve-1", vec![still(QUARTER)], &[0x3b]);
        runs(&mut leaving, "serve-2", vec![still(QUARTER)], &[0x3b]);
        runs(&mut leaving, "train-1", vec![still(QUARTER)], &[0x86]);
        runs(&mut leaving, "web", vec![vgpu_device(QUARTER)], &[0x86]);
        runs(&mut leaving, "db", vec![still(QUARTER)], &[0x86]);
        runs(&mut leaving, "old", vec![dynamic(Some("old"))], &[]);
        for (name, cluster) in
            [("serve-1", "k8s-serve"), ("serve-2", "k8s-serve"), ("train-1", "k8s-train"), ("web", "k8s-serve")]
        {
            find(&mut leaving, name).node = Fact::Known(Box::new(node(cluster, name, 1)));
        }
        find(&mut leaving, "old").node = Fact::Known(Box::new(node("k8s-serve", "old", 1)));
        scene.leaving = leaving;
        scene.pool.gpu_count.value = 3;
        scene.pool.gpus = vec![group(10, GpuSelect::All, vgpu(VgpuSize::Mixed))];
        scene.pool.vms.may_stop = vec![guest("k8s-serve"), guest("k8s-train"), selector("db")];
        scene.pool.vms.on_mismatch = OnMismatch::LeaveOff;
        let job = |file: &str| JobTemplate { file: text(33, file), job: serde_json::json!({"kind": "Job"}) };
        scene.pool.guests = vec![guest_rules("k8s-serve", 1), guest_rules("k8s-train", 1)];
        scene.pool.guests.iter_mut().for_each(|rules| rules.validate = vec![job("templates/add.yaml")]);
        let guests = [("k8s-serve", 4), ("k8s-train", 1)].map(|(name, nodes)| (name.to_owned(), guest_view(nodes)));
        Self { vms: scene, guests: BTreeMap::from(guests) }
    }

    /// With the GPUs as the pool wishes: nothing is to be changed.
    pub fn as_wished(&mut self) {
        [0x3b, 0x5e, 0x86].into_iter().for_each(|bus| set_gpu(&mut self.vms.leaving, bus, &Set::Mixed));
    }

    /// k8s-serve as a whole.
    pub fn guest(&mut self) -> &mut GuestView {
        known(self.guests.get_mut("k8s-serve").unwrap())
    }

    pub fn node(&mut self, name: &str) -> &mut NodeView {
        known(&mut find(&mut self.vms.leaving, name).node).as_mut()
    }

    fn fleet(&self) -> Observed {
        Observed { guests: self.guests.clone(), ..self.vms.fleet() }
    }

    pub fn parts(&self) -> (Desired, Observed) {
        (desired(vec![self.vms.pool.clone()]), self.fleet())
    }

    pub fn plan(&self) -> Plan {
        let (wish, seen) = self.parts();
        make(&wish, &seen)
    }

    fn planned(&self) -> (HostPlan, HostView, Around) {
        let seen = self.fleet();
        let plan = self.plan();
        assert_eq!(plan.hosts.len(), 1, "{:#?}", plan.findings);
        let view = seen.hosts["/DC1/host/gpu-a/esx-01"].view.clone().unwrap();
        (plan.hosts[0].clone(), *view, around(&seen, "esx-01"))
    }
}

pub fn altered(alter: impl FnOnce(&mut Scene)) -> Plan {
    let mut scene = Scene::new();
    alter(&mut scene);
    scene.plan()
}

pub fn mark(name: &str) -> NodeMark {
    NodeMark {
        v: NodeMark::VERSION,
        run: RunId("01JDOURS".into()),
        plan: "ab12cd34ef567890".into(),
        host: "uuid-esx-01".into(),
        vm: format!("vm-{name}"),
        phase: NodePhase::Draining,
        was_unschedulable: false,
        since: "2026-11-30T20:00:00Z".parse().unwrap(),
        deadline: "2026-11-30T20:30:00Z".parse().unwrap(),
        boot: format!("boot-1-{name}"),
        gpus: 1,
    }
}

pub fn raw(mark: &NodeMark) -> String {
    serde_json::to_string(mark).unwrap()
}

fn ours(cluster: &str, name: &str) -> NodeMemory {
    let vm = MoRef::new("VirtualMachine", format!("vm-{name}"));
    NodeMemory { node: node(cluster, name, 1).node, vm, mark: mark(name) }
}

fn go(plan: &HostPlan, view: &HostView, memory: &Memory, around: &Around) -> Result<Visit, Refusal> {
    visit(plan, &record("esx-01", view.clone()), memory, around)
}

fn of_nodes_and_vms(visit: &Visit) -> Vec<String> {
    words(visit).into_iter().filter(|word| word != "write").collect()
}

/// The end of a visit of [`Scene`], once its host is open again.
const BACK: [&str; 14] = [
    "start serve-1",
    "start serve-2",
    "start train-1",
    "await serve-1",
    "await serve-2",
    "await train-1",
    "validate serve-1",
    "validate serve-2",
    "validate train-1",
    "leave off old",
    "uncordon serve-1",
    "uncordon serve-2",
    "uncordon train-1",
    "start db",
];

/// Case E06: driver pods restart while GPU pods still run.
#[test]
fn e06_cordon_evict_stop_change_validate_uncordon() {
    let (plan, view, around) = Scene::new().planned();
    let fates: Vec<(&str, Option<&str>, bool)> = plan
        .fates
        .iter()
        .map(|fate| {
            let node = fate.node.as_ref().map(|node| node.cluster.as_str());
            (fate.name.as_str(), node, fate.fate.is_stopped())
        })
        .collect();
    let serve = Some("k8s-serve");
    assert_eq!(
        fates,
        [
            ("db", None, true),
            ("old", serve, true),
            ("serve-1", serve, true),
            ("serve-2", serve, true),
            ("train-1", Some("k8s-train"), true),
            ("web", serve, false),
        ]
    );
    assert_eq!(plan.bounds.nodes, BTreeMap::from([("k8s-serve".to_owned(), 3), ("k8s-train".to_owned(), 1)]));
    let visit = go(&plan, &view, &Memory::default(), &around).unwrap();
    let words = of_nodes_and_vms(&visit);
    let (closing, back) = words.split_at(words.len() - BACK.len());
    assert_eq!(
        closing,
        [
            "cordon old",
            "cordon serve-1",
            "cordon serve-2",
            "cordon train-1",
            "drain old",
            "drain serve-1",
            "drain serve-2",
            "drain train-1",
            "start closing, 1 move, 5 stop",
            "stop db",
            "stop old",
            "stop serve-1",
            "stop serve-2",
            "stop train-1",
            "enter, 1 move",
            "await web",
            "reboot",
            "verify",
            "exit",
        ]
    );
    assert_eq!(back, BACK);
    let stops = visit.steps.iter().filter_map(|step| match step {
        Step::StopVm { name, node, .. } => Some((name.as_str(), node.is_some())),
        _ => None,
    });
    assert_eq!(stops.filter(|(_, node)| !node).collect::<Vec<_>>(), [("db", false)]);
    let awaited = visit.steps.iter().filter_map(|step| match step {
        Step::AwaitNode { node, stopped, .. } => Some((node.name.as_str(), *stopped)),
        _ => None,
    });
    assert_eq!(awaited.collect::<Vec<_>>(), [("web", false), ("serve-1", true), ("serve-2", true), ("train-1", true)]);
    // The plan says the same, with the time that it takes at most.
    let of_nodes = visit.steps.iter().filter(|step| step.works_on().is_some());
    let said = plan.steps.iter().filter(|step| step.does.contains(" the node "));
    assert!(of_nodes.map(ToString::to_string).eq(said.map(|step| step.does.clone())), "{:#?}", plan.steps);
    assert!(plan.minutes.most >= 4 * 30, "each node may take half an hour to drain: {}", plan.minutes.most);
    assert!(plan.minutes.basis.contains("drain a node 5 min (at most 30)"), "{}", plan.minutes.basis);
}

#[test]
fn a_cluster_without_jobs_has_nothing_to_validate() {
    let mut scene = Scene::new();
    scene.vms.pool.guests.iter_mut().for_each(|rules| rules.validate.clear());
    let (plan, view, around) = scene.planned();
    let visit = go(&plan, &view, &Memory::default(), &around).unwrap();
    assert!(!visit.steps.iter().any(|step| matches!(step, Step::ValidateNode { .. })));
    assert!(visit.steps.iter().any(|step| matches!(step, Step::AwaitNode { stopped: true, .. })));
}

/// How the nodes are at the end: name, schedulable, marked, left off.
fn ends(twin: &Twin) -> Vec<(String, bool, bool, bool)> {
    let others = twin.around.neighbours.iter().map(|other| other.view.as_ref().unwrap().as_ref());
    let vms = std::iter::once(&twin.view).chain(others).flat_map(|view| view.vms.known().unwrap());
    let mut nodes: Vec<_> = vms
        .filter_map(|vm| vm.node.known())
        .map(|node| (node.node.name.clone(), !node.unschedulable, node.mark != Fact::Absent, node.left_off))
        .collect();
    nodes.sort();
    nodes
}

#[test]
fn a_death_after_any_effect_is_recovered_from() {
    let mut scene = Scene::new();
    scene.node("serve-2").unschedulable = true;
    let (plan, view, around) = scene.planned();
    let fresh = || Twin { around: around.clone(), ..Twin::new(view.clone(), PLAIN) };
    let mut twin = fresh();
    run(&mut twin, &plan, &mut Memory::default(), Death::Never).unwrap();
    let whole = ends(&twin);
    let end = |name: &str, open, left_off| (name.to_owned(), open, false, left_off);
    assert_eq!(
        whole,
        [
            end("old", false, true),
            end("serve-1", true, false),
            end("serve-2", false, false),
            end("train-1", true, false),
            end("web", true, false),
        ],
        "case E03: serve-2 was cordoned before"
    );
    let power = |twin: &Twin| {
        let vms = twin.view.vms.known().unwrap().iter();
        vms.map(|vm| (vm.moref.clone(), vm.power.clone())).collect::<Vec<_>>()
    };
    let effects = twin.log.len();
    assert!(effects > 30, "{:#?}", twin.log);
    for last in 1..effects {
        let (mut again, mut memory) = (fresh(), Memory::default());
        run(&mut again, &plan, &mut memory, Death::After(last)).unwrap();
        run(&mut again, &plan, &mut memory, Death::Never)
            .unwrap_or_else(|refusal| panic!("after {last} ({}): {refusal}", again.log.last().unwrap()));
        assert_eq!(ends(&again), whole, "after {last}: {:#?}", again.log);
        assert_eq!(power(&again), power(&twin), "after {last}");
        assert_eq!(again.reboots, twin.reboots, "after {last}");
    }
}

/// The cluster is away once the host is closed: what is known of its nodes is their marks.
#[test]
fn a_closed_host_goes_on_without_its_guest_clusters() {
    let (plan, mut view, mut around) = Scene::new().planned();
    around.guests.values_mut().for_each(|view| *view = Fact::unknown("connection refused"));
    let all = [("k8s-serve", "old"), ("k8s-serve", "serve-1"), ("k8s-serve", "serve-2"), ("k8s-train", "train-1")];
    let memory = |maintenance| Memory {
        maintenance,
        begun: true,
        vms: ["db", "old", "serve-1", "serve-2", "train-1"].map(|name| ours("", name).vm).to_vec(),
        nodes: all.map(|(cluster, name)| ours(cluster, name)).to_vec(),
        ..Memory::default()
    };
    known(&mut view.vms).retain(|vm| vm.name != Fact::Known("web".into()));
    for vm in known(&mut view.vms) {
        (vm.power, vm.node) = (Fact::Known(PowerState::Off), Fact::Absent);
    }
    known(&mut view.graphics_active).iter_mut().for_each(|state| state.vms.clear());
    view.in_maintenance = Fact::Known(true);
    let visit = go(&plan, &view, &memory(OurMaintenance::Closed), &around).unwrap();
    let words = of_nodes_and_vms(&visit);
    let back = words.iter().position(|word| word == BACK[0]).unwrap();
    assert_eq!(words[back..], BACK);
    // The same cluster away before: the host is not closed.
    let (plan, view, _) = Scene::new().planned();
    let mut away = Scene::new();
    unread(&mut away, "k8s-serve");
    let blind = away.fleet().hosts["/DC1/host/gpu-a/esx-01"].view.clone().unwrap();
    match go(&plan, &blind, &Memory::default(), &around).unwrap_err() {
        Refusal::Blocked(why) => assert!(why.contains("serve-1, serve-2, web may be nodes of k8s-serve"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert!(go(&plan, &view, &Memory::default(), &self::around_of(&Scene::new())).is_ok());
}

fn around_of(scene: &Scene) -> Around {
    around(&scene.fleet(), "esx-01")
}

#[test]
fn a_node_that_was_cordoned_for_nothing_is_given_back() {
    let (plan, _, around) = Scene::new().planned();
    let mut scene = Scene::new();
    // Somebody has set the GPUs as wished meanwhile: nothing is left but the mark.
    scene.as_wished();
    let cordoned = scene.node("serve-1");
    (cordoned.unschedulable, cordoned.mark) = (true, Fact::Known(raw(&mark("serve-1"))));
    let memory = Memory { nodes: vec![ours("k8s-serve", "serve-1")], begun: true, ..Memory::default() };
    let view = scene.fleet().hosts["/DC1/host/gpu-a/esx-01"].view.clone().unwrap();
    let visit = go(&plan, &view, &memory, &around).unwrap();
    let words = of_nodes_and_vms(&visit);
    assert!(
        words.ends_with(&["await serve-1", "validate serve-1", "uncordon serve-1"].map(str::to_owned)),
        "{words:?}"
    );
    assert!(visit.steps.iter().any(|step| matches!(step, Step::AwaitNode { stopped: false, .. })));
}

#[test]
fn more_nodes_than_were_approved_are_refused_by_name() {
    let (plan, mut view, around) = Scene::new().planned();
    runs(&mut view, "serve-3", vec![still(QUARTER)], &[0x3b]);
    find(&mut view, "serve-3").node = Fact::Known(Box::new(node("k8s-serve", "serve-3", 1)));
    match go(&plan, &view, &Memory::default(), &around).unwrap_err() {
        Refusal::TooManyNodes { cluster, nodes, most } => {
            assert_eq!((cluster.as_str(), most), ("k8s-serve", 3));
            assert_eq!(nodes, ["old", "serve-1", "serve-2", "serve-3"]);
        }
        other => panic!("{other:?}"),
    }
    // A VM more that is no node is within the bounds.
    find(&mut view, "serve-3").node = Fact::Absent;
    find(&mut view, "serve-3").name = Fact::Known("db".into());
    assert!(go(&plan, &view, &Memory::default(), &around).is_ok());
}

/// Case E05: validation fails.
#[test]
fn e05_a_node_that_failed_is_never_done_by_itself() {
    let failed = NodeMark { phase: NodePhase::Failed, boot: "boot-0".into(), ..mark("serve-1") };
    let node = NodeView { unschedulable: true, mark: Fact::Known(raw(&failed)), ..node("k8s-serve", "serve-1", 1) };
    let memory = NodeMemory { mark: failed, ..ours("k8s-serve", "serve-1") };
    let lines = node_gate(&guest_rules("k8s-serve", 1), &memory, &node, Boot::Another);
    let closed: Vec<_> = lines.iter().filter(|line| !line.verdict.opens()).collect();
    assert_eq!(closed.len(), 1, "{closed:#?}");
    assert_eq!((closed[0].verdict, closed[0].evidence.as_str()), (Verdict::Failed, "it did not pass its gate before"));
}

#[test]
fn what_somebody_accepted_of_a_node_is_no_reason_at_the_visit_either() {
    let owned = |scene: &mut Scene| {
        scene.node("serve-1").machine = Fact::Known("md-0-abc".into());
        scene.vms.pool.accept = vec![accept("PW-NODE-03", "2026-12-31", &["esx-01"])];
    };
    let mut scene = Scene::new();
    owned(&mut scene);
    let (plan, view, around) = scene.planned();
    assert!(plan.fates.iter().any(|fate| fate.name == "serve-1" && matches!(fate.fate, Fate::Stops { .. })));
    assert!(go(&plan, &view, &Memory::default(), &around).is_ok());
    // Another node, or another reason, was not accepted.
    let mut other = Scene::new();
    owned(&mut other);
    other.node("serve-2").machine = Fact::Known("md-0-def".into());
    other.node("train-1").ready = Fact::unknown("NodeStatusUnknown");
    let view = other.fleet().hosts["/DC1/host/gpu-a/esx-01"].view.clone().unwrap();
    match go(&plan, &view, &Memory::default(), &around).unwrap_err() {
        Refusal::Blocked(why) => {
            assert!(why.contains("md-0-def") && why.contains("train-1") && !why.contains("md-0-abc"), "{why}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_node_with_our_mark_is_ours_and_any_other_holds_the_host() {
    let (plan, mut view, around) = Scene::new().planned();
    {
        let Fact::Known(node) = &mut find(&mut view, "serve-1").node else { panic!() };
        (node.unschedulable, node.mark) = (true, Fact::Known(raw(&mark("serve-1"))));
    }
    match go(&plan, &view, &Memory::default(), &around).unwrap_err() {
        Refusal::Blocked(why) => assert!(why.contains("run 01JDOURS has marked it"), "{why}"),
        other => panic!("{other:?}"),
    }
    let memory = Memory { nodes: vec![ours("k8s-serve", "serve-1")], ..Memory::default() };
    let words = of_nodes_and_vms(&go(&plan, &view, &memory, &around).unwrap());
    assert!(!words.contains(&"cordon serve-1".to_owned()) && words.contains(&"drain serve-1".to_owned()), "{words:?}");
    let held = altered(|scene| scene.node("web").mark = Fact::Known(raw(&mark("web"))));
    assert_eq!(held.not_acted[0].reason, Reason::Held, "moving on does not make it ours");
}

/// The kubeconfig leads elsewhere since the plan was made: nodes of the cluster that was approved look like plain VMs.
#[test]
fn another_cluster_behind_the_name_of_one_holds_the_host_until_it_is_closed() {
    let (plan, view, mut around) = Scene::new().planned();
    let uid = |name: &str| plan.guest_uids[name].clone();
    let Fact::Known(seen) = around.guests.get_mut("k8s-train").unwrap() else { panic!() };
    assert_eq!(uid("k8s-train"), seen.uid);
    seen.uid = "cluster-of-somebody".into();
    match go(&plan, &view, &Memory::default(), &around).unwrap_err() {
        Refusal::Blocked(why) => {
            let was = uid("k8s-train");
            assert_eq!(
                why,
                format!(
                    "k8s-train is another cluster than when the plan was made: its namespace kube-system was {was}, and \
                     is cluster-of-somebody; look at the context and server of its kubeconfig"
                )
            );
        }
        other => panic!("{other:?}"),
    }
    // What could not be read then, or cannot now, is said by its own rule.
    around.guests.insert("k8s-train".into(), Fact::unknown("connection refused"));
    match go(&plan, &view, &Memory::default(), &around).unwrap_err() {
        Refusal::Blocked(why) => {
            assert!(why.contains("connection refused") && !why.contains("another cluster"), "{why}")
        }
        other => panic!("{other:?}"),
    }
    let mut scene = Scene::new();
    scene.guest().uid = "cluster-of-all-nodes".into();
    assert!(scene.plan().hosts[0].guest_uids.values().any(|uid| uid == "cluster-of-all-nodes"));
}

/// Nothing says what such a node has to offer, so nothing is expected of it after its move.
#[test]
fn a_node_of_a_cluster_that_the_pool_does_not_list_may_move() {
    let mut scene = Scene::new();
    scene.vms.pool.guests.pop();
    find(&mut scene.vms.leaving, "train-1").gpus = Fact::Known(vec![vgpu_device(QUARTER)]);
    let (plan, view, around) = scene.planned();
    let steps = go(&plan, &view, &Memory::default(), &around).unwrap().steps;
    let worked_on: Vec<&str> = steps
        .iter()
        .filter_map(Step::works_on)
        .map(|node| node.name.as_str())
        .filter(|name| *name == "train-1")
        .collect();
    assert_eq!(worked_on, [""; 0]);
    assert!(plan.fates.iter().any(|fate| fate.name == "train-1" && matches!(fate.fate, Fate::Moves { .. })));
    assert!(plan.steps.iter().any(|step| step.does == "look at the node web of k8s-serve"), "{:#?}", plan.steps);
}
