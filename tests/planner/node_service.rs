//! Nodes that are out of service: what the budget, the capacity and the plan as a whole make of them.

use poolwright::model::{Fact, NodeMark, NodePhase, NodeView, PowerState, RunId};
use poolwright::plan::{Impact, Reason, out_of_service};

use super::findings::said;
use super::nodes::{Scene, altered, mark, raw};
use super::vms::find;
use crate::support::seen::{H100, Set, host, known, record, reference};

/// Why the host is out of service, for a run that has marked nothing.
fn why(scene: &Scene) -> Option<String> {
    out_of_service(&record("esx-01", scene.vms.leaving.clone()), &scene.vms.pool.guests, None)
}

#[test]
fn a_host_whose_node_gives_no_service_is_out_of_service() {
    let with = |alter: &dyn Fn(&mut NodeView)| {
        let mut scene = Scene::new();
        alter(scene.node("train-1"));
        why(&scene)
    };
    let allocatable = |node: &mut NodeView, resource: &str, count: &str| {
        let all = known(&mut node.allocatable);
        all.clear();
        all.insert(resource.to_owned(), count.to_owned());
    };
    let failed = NodeMark { phase: NodePhase::Failed, ..mark("train-1") };
    type Change<'a> = &'a dyn Fn(&mut NodeView);
    let causes: [(Change<'_>, &str); 7] = [
        (&|node| node.ready = Fact::unknown("NodeStatusUnknown"), "not known to be Ready (NodeStatusUnknown)"),
        (&|node| node.ready = Fact::Known(false), "not Ready"),
        (&|node| node.unschedulable = true, "cordoned"),
        (&|node| node.mark = Fact::Known(raw(&mark("train-1"))), "draining by run 01JDOURS"),
        (&|node| node.mark = Fact::Known(raw(&failed)), "it did not pass its gate in run 01JDOURS"),
        (&|node| allocatable(node, "nvidia.com/gpu", "0"), "allocatable nvidia.com/gpu 0, expected 1"),
        (&|node| node.allocatable = Fact::Absent, "allocatable nvidia.com/gpu 0, expected 1"),
    ];
    for (alter, cause) in causes {
        assert_eq!(with(alter), Some(format!("train-1 of k8s-train: {cause}")));
    }
    assert_eq!(with(&|_| {}), None);
    // Before the change it rightly offers what the old mode gave.
    assert_eq!(with(&|node| allocatable(node, "nvidia.com/mig-1g.12gb", "7")), None);
    assert!(with(&|node| allocatable(node, "rdma/hca", "7")).is_some(), "that is no GPU");
    // A plan left it off, or somebody stopped its VM.
    assert_eq!(with(&|node| (node.unschedulable, node.left_off) = (true, true)), None);
    let mut scene = Scene::new();
    scene.node("train-1").ready = Fact::Known(false);
    find(&mut scene.vms.leaving, "train-1").power = Fact::Known(PowerState::Off);
    assert_eq!(why(&scene), None);
    // Of another pool.
    let mut scene = Scene::new();
    scene.node("train-1").unschedulable = true;
    scene.vms.pool.guests.pop();
    assert_eq!(why(&scene), None);
}

#[test]
fn what_a_run_has_cordoned_does_not_put_its_own_host_out_of_service() {
    let mut scene = Scene::new();
    let node = scene.node("serve-1");
    (node.unschedulable, node.mark) = (true, Fact::Known(raw(&mark("serve-1"))));
    let why = |scene: &Scene, run: &str| {
        let run = RunId(run.into());
        out_of_service(&record("esx-01", scene.vms.leaving.clone()), &scene.vms.pool.guests, Some(&run))
    };
    assert_eq!(why(&scene, "01JDOURS"), None);
    assert!(why(&scene, "01JDOTHER").is_some());
    scene.node("serve-2").unschedulable = true;
    assert_eq!(why(&scene, "01JDOURS").as_deref(), Some("serve-2 of k8s-serve: cordoned"));
}

#[test]
fn the_gpus_of_nodes_that_are_out_are_not_in_service() {
    let plan = altered(|scene| scene.node("serve-1").unschedulable = true);
    let pool = &plan.capacity.pools[0];
    assert_eq!((pool.gpus, pool.now, pool.worst), (3, 2, 0), "the others go with the host");
    let [out] = pool.nodes.as_slice() else { panic!("{:#?}", pool.nodes) };
    assert_eq!((out.node.name.as_str(), out.vm.as_str(), out.gpus), ("serve-1", "serve-1", 1));
    assert_eq!(plan.capacity.gpu_hours_tenths, (2 * u64::from(plan.hosts[0].minutes.expected) * 10).div_ceil(60));
    // FORMATS rule 5: also where it was meant.
    let plan = altered(|scene| scene.node("serve-1").left_off = true);
    assert_eq!(
        (plan.capacity.pools[0].now, plan.capacity.pools[0].nodes[0].why.as_str()),
        (2, "left off by an earlier run")
    );
    // Five devices on three GPUs: never more than there are.
    let plan = altered(|scene| {
        for name in ["serve-1", "serve-2", "train-1", "web", "old"] {
            scene.node(name).unschedulable = true;
        }
    });
    assert_eq!((plan.capacity.pools[0].now, plan.capacity.pools[0].worst), (0, 0));
}

/// FORMATS rule 5: the host is done, and its node is off.
#[test]
fn nodes_that_a_plan_leaves_off_count_at_the_worst_moment_of_later_hosts() {
    let mut scene = Scene::new();
    scene.vms.pool.hosts.push(scene.vms.pool.hosts[0].clone());
    scene.vms.pool.hosts[1].host = reference("esx-02");
    scene.vms.other = host(H100, &[(0x3b, Set::Same), (0x5e, Set::Passthrough(Some("old"))), (0x86, Set::Same)]);
    let plan = scene.plan();
    let hosts: Vec<(&str, Impact)> = plan.hosts.iter().map(|host| (host.host.name.as_str(), host.impact)).collect();
    assert_eq!(hosts, [("esx-01", Impact::Reboot), ("esx-02", Impact::Reboot)]);
    let pool = &plan.capacity.pools[0];
    assert_eq!((pool.gpus, pool.now, pool.worst), (6, 6, 2), "esx-02, beside the node old of esx-01");
}

/// After `abort --give-up`: the host is as wished, its nodes are not.
#[test]
fn nodes_that_are_out_are_said_of_a_host_without_work() {
    let given_up = |scene: &mut Scene| {
        scene.as_wished();
        scene.node("serve-1").unschedulable = true;
        scene.node("serve-2").ready = Fact::Known(false);
        known(&mut scene.node("train-1").allocatable).insert("nvidia.com/gpu".into(), "0".into());
    };
    let plan = altered(given_up);
    assert_eq!((plan.hosts.len(), plan.not_acted[0].reason), (0, Reason::Converged));
    let said = said(&plan, "PW-NODE-12");
    for words in [
        "serve-1 of k8s-serve, serve-2 of k8s-serve, train-1 of k8s-train give no service",
        "serve-2 of k8s-serve (VM serve-2): not Ready",
        "train-1 of k8s-train (VM train-1): allocatable nvidia.com/gpu 0, expected 1",
    ] {
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(plan.capacity.pools[0].nodes.len(), 3);
    // As it should be, nothing is said.
    let plan = altered(Scene::as_wished);
    assert_eq!((plan.findings.len(), plan.capacity.pools[0].nodes.len()), (0, 0), "{:#?}", plan.findings);
    // What cannot be told is.
    let plan = altered(|scene| {
        scene.as_wished();
        find(&mut scene.vms.leaving, "web").node = Fact::unknown("two nodes");
        scene.guests.insert("k8s-train".into(), Fact::unknown("connection refused"));
    });
    let said = super::findings::said(&plan, "PW-NODE-12");
    assert!(
        said.contains("which node web is could not be read: two nodes") && said.contains("connection refused"),
        "{said}"
    );
    assert_eq!(plan.not_acted[0].reason, Reason::Converged, "nothing is to be done to it");
}
