//! What is found on nodes of guest clusters when a plan is made.

use poolwright::model::{Fact, Severity};
use poolwright::plan::{Plan, Reason};

use super::findings::{Case, ids, said};
use super::nodes::{Scene, altered, mark, raw, still};
use super::vms::{QUARTER, find, runs, selector};
use crate::support::seen::{H100, Set, host, known, node, passthrough};

/// Nodes with something to say about nearly everything that does not refuse the host.
pub fn odd() -> Scene {
    let mut scene = Scene::new();
    scene.node("serve-1").unschedulable = true;
    known(&mut scene.node("serve-2").allocatable).clear();
    scene.node("train-1").left_off = true;
    scene.guests.insert("k8s-other".into(), Fact::unknown("connection refused"));
    scene.guest().elsewhere = vec!["far-1".into()];
    scene
}

pub fn unread(scene: &mut Scene, cluster: &str) {
    scene.guests.insert(cluster.into(), Fact::unknown("connection refused"));
    for vm in known(&mut scene.vms.leaving.vms) {
        if vm.node.known().is_some_and(|node| node.node.cluster == cluster) {
            vm.node = Fact::Absent;
        }
    }
}

/// One alteration for each finding on nodes, with words that must be said.
pub fn cases() -> Vec<Case> {
    let marked = |scene: &mut Scene| scene.node("serve-1").mark = Fact::Known(raw(&mark("serve-1")));
    vec![
        ("PW-GUEST-01", altered(|scene| unread(scene, "k8s-train")), &["train-1", "k8s-train", "connection refused"]),
        (
            "PW-GUEST-02",
            altered(|scene| {
                scene.vms.pool.guests.pop();
                scene.vms.pool.vms.may_stop.push(selector("train-*"));
            }),
            &["train-1 of k8s-train", "without a drain", "`guests`"],
        ),
        (
            "PW-GUEST-03",
            altered(|scene| _ = scene.guests.insert("k8s-other".into(), Fact::unknown("no route"))),
            &["k8s-other", "no route"],
        ),
        (
            "PW-GUEST-04",
            altered(|scene| scene.guest().uid = "cluster-1".into()),
            &["k8s-serve and k8s-train are one cluster", "cluster-1", "list it once"],
        ),
        (
            "PW-NODE-01",
            altered(|scene| find(&mut scene.vms.leaving, "web").node = Fact::unknown("two nodes")),
            &["web", "two nodes"],
        ),
        (
            "PW-NODE-02",
            altered(|scene| _ = scene.guest().unidentified.insert("n-7".into(), "it names vm-9, which is off".into())),
            &["db may be a node of k8s-serve: where n-7 runs", "n-7: it names vm-9"],
        ),
        (
            "PW-NODE-03",
            altered(|scene| scene.node("serve-1").machine = Fact::Known("md-0-abc".into())),
            &["serve-1 of k8s-serve", "the Machine md-0-abc", "pause the owner"],
        ),
        (
            "PW-NODE-04",
            altered(|scene| scene.node("serve-1").ready = Fact::Known(false)),
            &["serve-1 of k8s-serve", "not Ready"],
        ),
        ("PW-NODE-05", altered(|scene| scene.node("serve-1").deleting = true), &["serve-1 of k8s-serve", "deleted"]),
        ("PW-NODE-06", altered(marked), &["run 01JDOURS has marked it", "draining"]),
        (
            "PW-NODE-07",
            altered(|scene| scene.node("serve-1").unschedulable = true),
            &["left so at the end: serve-1 of k8s-serve"],
        ),
        ("PW-NODE-08", altered(|scene| scene.node("serve-1").left_off = true), &["serve-1 of k8s-serve"]),
        (
            "PW-NODE-09",
            altered(|scene| known(&mut scene.node("serve-1").allocatable).clear()),
            &["1 node offers less", "allocatable nvidia.com/gpu 0, expected 1"],
        ),
        (
            "PW-NODE-10",
            altered(|_| {}),
            &["5 nodes", "serve-1 of k8s-serve: it has to pass its gate", "old of k8s-serve: its VM stays off"],
        ),
        (
            "PW-NODE-11",
            altered(|scene| scene.guest().elsewhere = (1..8).map(|number| format!("far-{number}")).collect()),
            &["db is taken for no node", "k8s-serve: far-1, far-2", "far-5 and 2 more"],
        ),
        (
            "PW-NODE-12",
            altered(|scene| {
                scene.as_wished();
                scene.node("serve-1").unschedulable = true;
            }),
            &["serve-1 of k8s-serve gives no service", "(VM serve-1): cordoned"],
        ),
    ]
}

/// Case E03: the node was cordoned before we came.
#[test]
fn e03_a_node_that_was_cordoned_is_drained_and_said_to_stay_so() {
    let plan = altered(|scene| scene.node("serve-1").unschedulable = true);
    let finding = plan.findings.iter().find(|finding| finding.id.0 == "PW-NODE-07").unwrap();
    assert_eq!(finding.severity, Severity::Info);
    assert_eq!(finding.message, "cordoned before, and left so at the end: serve-1 of k8s-serve");
    assert!(plan.hosts[0].steps.iter().any(|step| step.does == "drain the node serve-1 of k8s-serve"));
}

/// Case E13: three node VMs on one host, in two clusters, one of them unreachable.
#[test]
fn e13_a_host_with_nodes_of_a_cluster_that_is_away_is_held_and_others_go_on() {
    let mut scene = Scene::new();
    unread(&mut scene, "k8s-train");
    scene.vms.pool.hosts.push(scene.vms.pool.hosts[0].clone());
    scene.vms.pool.hosts[1].host = crate::support::seen::reference("esx-02");
    scene.vms.other = host(H100, &[(0x3b, Set::Same), (0x5e, Set::Same), (0x86, Set::Same)]);
    runs(&mut scene.vms.other, "serve-9", vec![still(QUARTER)], &[0x3b]);
    find(&mut scene.vms.other, "serve-9").node = Fact::Known(Box::new(node("k8s-serve", "serve-9", 1)));
    let plan = scene.plan();
    assert_eq!(plan.order.iter().map(|host| host.as_str()).collect::<Vec<_>>(), ["esx-02"], "{:#?}", plan.findings);
    let [left] = plan.not_acted.as_slice() else { panic!("{:#?}", plan.not_acted) };
    assert_eq!((left.host.as_str(), left.reason), ("esx-01", Reason::Unknown));
    let said = said(&plan, "PW-GUEST-01");
    assert!(said.contains("db, train-1 may be nodes of k8s-train, which cannot be read: connection refused"), "{said}");
    assert_eq!(said.matches("connection refused").count(), 1, "{said}");
}

/// Case A27: a pool changes from passthrough to vGPU while guests carry the bare-metal driver.
#[test]
fn a27_a_change_of_the_guest_driver_is_said_where_nodes_are() {
    let finding = |plan: &Plan| plan.findings.iter().any(|finding| finding.id.0 == "PW-NODE-10");
    let plan = altered(|_| {});
    assert!(finding(&plan));
    let uncordons = plan.hosts[0].steps.iter().position(|step| step.does.starts_with("uncordon")).unwrap();
    let validates = plan.hosts[0].steps.iter().position(|step| step.does.starts_with("validate")).unwrap();
    assert!(validates < uncordons);
    // One size to another: the same driver.
    let same = altered(|scene| {
        crate::support::seen::set_gpu(&mut scene.vms.leaving, 0x5e, &Set::Same);
        known(&mut scene.vms.leaving.vms).retain(|vm| vm.name != Fact::Known("old".into()));
    });
    assert_eq!(same.hosts.len(), 1);
    assert!(!finding(&same), "{:?}", ids(&same));
    // To passthrough, with a node whose VM has no GPU device of it any more.
    let back = altered(|scene| scene.vms.pool.gpus[0].mode.value = passthrough(None));
    assert!(finding(&back), "{:?}", ids(&back));
}

/// VMs of Cluster API and of VKS have the names of their nodes.
#[test]
fn a_vm_with_the_name_of_a_node_that_runs_nowhere_here_is_not_stopped_as_no_node() {
    for name in ["db", "DB", "db.lab.example"] {
        let plan = altered(|scene| scene.guest().elsewhere = vec!["far-1".into(), name.into()]);
        assert_eq!(plan.hosts.len(), 0, "{name}");
        assert!(said(&plan, "PW-NODE-01").contains(&format!("db has the name of the node {name}")), "{name}");
    }
    let plan = altered(|scene| scene.guest().elsewhere = vec!["db-2".into()]);
    assert_eq!(plan.hosts.len(), 1, "another name");
}
