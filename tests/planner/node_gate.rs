//! The gate of a node, and what is found before it is cordoned.

use poolwright::model::{Fact, MoRef, NodeMark, NodePhase, NodeView, RunId};
use poolwright::plan::{Boot, Check, GateCheck, GateRead, NodeMemory, Verdict, may_cordon, moved_gate, node_gate};

use crate::support::seen::{guest_rules, known, node};

fn mark() -> NodeMark {
    NodeMark {
        v: NodeMark::VERSION,
        run: RunId("01JDOURS".into()),
        plan: "ab12cd34ef567890".into(),
        host: "uuid-esx-01".into(),
        vm: "vm-serve-1".into(),
        phase: NodePhase::Drained,
        was_unschedulable: false,
        since: "2026-11-30T20:00:00Z".parse().unwrap(),
        deadline: "2026-11-30T20:30:00Z".parse().unwrap(),
        boot: "boot-1-serve-1".into(),
        gpus: 2,
    }
}

/// The node as it comes back after its VM was stopped and started.
fn returned() -> NodeView {
    NodeView {
        unschedulable: true,
        mark: Fact::Known(serde_json::to_string(&mark()).unwrap()),
        boot_id: Fact::Known("boot-2".into()),
        ..node("k8s-serve", "serve-1", 2)
    }
}

fn marked(change: impl FnOnce(&mut NodeMark)) -> Fact<String> {
    let mut mark = mark();
    change(&mut mark);
    Fact::Known(serde_json::to_string(&mark).unwrap())
}

fn read(node: &NodeView, boot: Boot) -> Vec<GateRead> {
    let memory = NodeMemory { node: returned().node, vm: MoRef::new("VirtualMachine", "vm-serve-1"), mark: mark() };
    node_gate(&guest_rules("k8s-serve", 2), &memory, node, boot)
}

/// The lines that do not open the gate: what, and the verdict.
fn closed(lines: &[GateRead]) -> Vec<(String, Verdict)> {
    let what = |line: &GateRead| line.subject.rsplit(", ").next().unwrap().to_owned();
    assert!(lines.iter().all(|line| line.check == GateCheck::Node && line.subject.starts_with("serve-1 of k8s-serve")));
    lines.iter().filter(|line| !line.verdict.opens()).map(|line| (what(line), line.verdict)).collect()
}

#[test]
fn a_node_that_is_back_passes() {
    let lines = read(&returned(), Boot::Another);
    assert_eq!(closed(&lines), []);
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[5].evidence, "allocatable nvidia.com/gpu: expected 2, before 2, now 2");
}

#[test]
fn each_thing_that_is_wrong_or_unknown_closes_the_gate_of_a_node() {
    use Verdict::{Failed, Unverifiable};
    type Case = (fn(&mut NodeView), &'static str, Verdict);
    let cases: [Case; 20] = [
        (|node| node.node.uid = "another".into(), "identity", Failed),
        (|node| node.deleting = true, "identity", Failed),
        (|node| node.mark = Fact::Absent, "mark", Failed),
        (|node| node.mark = marked(|mark| mark.run = RunId("01JDTHEIRS".into())), "mark", Failed),
        (|node| node.mark = marked(|mark| mark.vm = "vm-2".into()), "mark", Failed),
        (|node| node.mark = marked(|mark| mark.host = "uuid-esx-02".into()), "mark", Failed),
        (|node| node.mark = marked(|mark| mark.phase = NodePhase::Failed), "mark", Failed),
        (|node| node.mark = marked(|mark| mark.v = 2), "mark", Unverifiable),
        (|node| node.mark = Fact::Known("{".into()), "mark", Unverifiable),
        (|node| node.mark = Fact::unknown("no permission"), "mark", Unverifiable),
        (|node| node.unschedulable = false, "cordon", Failed),
        (|node| node.boot_id = Fact::Known("boot-1-serve-1".into()), "boot", Failed),
        (|node| node.boot_id = Fact::Absent, "boot", Unverifiable),
        (|node| node.ready = Fact::Known(false), "Ready", Failed),
        (|node| node.ready = Fact::unknown("NodeStatusUnknown"), "Ready", Unverifiable),
        (|node| node.ready = Fact::Absent, "Ready", Unverifiable),
        (|node| _ = known(&mut node.allocatable).insert("nvidia.com/gpu".into(), "3".into()), "GPUs", Failed),
        (|node| known(&mut node.allocatable).clear(), "GPUs", Failed),
        (|node| node.allocatable = Fact::Absent, "GPUs", Failed),
        (|node| node.allocatable = Fact::unknown("x"), "GPUs", Unverifiable),
    ];
    for (happens, what, verdict) in cases {
        let mut node = returned();
        happens(&mut node);
        assert_eq!(closed(&read(&node, Boot::Another)), [(what.to_owned(), verdict)]);
    }
}

#[test]
fn the_boot_is_another_one_if_and_only_if_the_vm_was_stopped() {
    let stayed = NodeView { boot_id: Fact::Known("boot-1-serve-1".into()), ..returned() };
    let failed = [("boot".to_owned(), Verdict::Failed)];
    assert_eq!(closed(&read(&stayed, Boot::Same)), []);
    assert_eq!(closed(&read(&stayed, Boot::Either)), []);
    assert_eq!(closed(&read(&returned(), Boot::Either)), []);
    assert_eq!(closed(&read(&returned(), Boot::Same)), failed);
    assert_eq!(closed(&read(&stayed, Boot::Another)), failed);
}

#[test]
fn a_node_offers_what_is_expected_and_no_less_than_before() {
    // Sick before: it may come back with what is expected, and not with what it had.
    let rules = guest_rules("k8s-serve", 2);
    let gate = |before, now: u32| {
        let memory = NodeMemory {
            node: returned().node,
            vm: MoRef::new("VirtualMachine", "vm-serve-1"),
            mark: NodeMark { gpus: before, ..mark() },
        };
        let node = NodeView { allocatable: node("k8s-serve", "serve-1", now).allocatable, ..returned() };
        closed(&node_gate(&rules, &memory, &node, Boot::Another)).is_empty()
    };
    assert!(gate(2, 2) && gate(1, 2) && gate(0, 2));
    assert!(!gate(1, 1), "fewer than expected, though as before");
    assert!(!gate(3, 2), "as expected, and fewer than before");
    assert!(!gate(2, 3), "more than expected");
}

#[test]
fn a_node_whose_vm_moved_is_no_worse_than_before() {
    let before = node("k8s-serve", "serve-1", 2);
    assert_eq!(closed(&moved_gate(Some(&before), &before)), []);
    let failed = |what: &str| vec![(what.to_owned(), Verdict::Failed)];
    let now = |change: fn(&mut NodeView)| {
        let mut now = before.clone();
        change(&mut now);
        closed(&moved_gate(Some(&before), &now))
    };
    assert_eq!(now(|now| now.node.uid = "x".into()), failed("identity"));
    assert_eq!(now(|now| now.boot_id = Fact::Known("x".into())), failed("boot"));
    assert_eq!(now(|now| now.ready = Fact::Known(false)), failed("Ready"));
    assert_eq!(
        now(|now| _ = known(&mut now.allocatable).insert("nvidia.com/gpu".into(), "1".into())),
        failed("nvidia.com/gpu")
    );
    assert_eq!(now(|now| now.allocatable = Fact::unknown("x")), [("nvidia.com/gpu".to_owned(), Verdict::Unverifiable)]);
    // What was sick before is said, not blamed.
    let sick = NodeView { ready: Fact::Known(false), ..before.clone() };
    let lines = moved_gate(Some(&sick), &sick);
    assert_eq!(closed(&lines), []);
    assert!(lines.iter().any(|line| line.verdict == Verdict::Noted && line.subject.ends_with("Ready")), "{lines:#?}");
    // After a crash what it was before is not known.
    assert_eq!(closed(&moved_gate(None, &before)), []);
    assert_eq!(closed(&moved_gate(None, &sick)), failed("Ready"));
}

#[test]
fn a_node_is_cordoned_if_nobody_has_marked_it() {
    let ours = RunId("01JDOURS".into());
    let fresh = node("k8s-serve", "serve-1", 2);
    assert_eq!(may_cordon(&ours, &fresh), Check::Ready);
    assert_eq!(may_cordon(&ours, &NodeView { unschedulable: true, ..fresh.clone() }), Check::Ready, "cordoned before");
    let done = Check::AlreadyDone { evidence: vec!["cordoned by this run since 2026-11-30T20:00:00Z".to_owned()] };
    assert_eq!(may_cordon(&ours, &returned()), done);
    let refused = |node: &NodeView| match may_cordon(&ours, node) {
        Check::Refused { found, .. } => found,
        other => panic!("{other:?}"),
    };
    let foreign = NodeView { mark: marked(|mark| mark.run = RunId("01JDTHEIRS".into())), ..fresh.clone() };
    assert_eq!(refused(&foreign), "run 01JDTHEIRS has marked serve-1 of k8s-serve: drained");
    let uncordoned = NodeView { unschedulable: false, ..returned() };
    assert_eq!(refused(&uncordoned), "somebody has uncordoned serve-1 of k8s-serve");
    assert!(refused(&NodeView { deleting: true, ..fresh.clone() }).contains("being deleted"));
    assert!(refused(&NodeView { mark: Fact::Known("{}".into()), ..fresh.clone() }).contains("cannot be read"));
    assert!(refused(&NodeView { mark: Fact::unknown("no permission"), ..fresh }).contains("no permission"));
}
