//! What the fold remembers for whoever takes a host over.

use jiff::Timestamp;
use poolwright::model::{Fact, HostName, MoRef, NodeMark, NodePhase, NodeRef, RunId};
use poolwright::plan::{Impact, NodeEnd, Reboots, Step, Visit};
use poolwright::rollout::{
    Compensation, Entry, Event, FailureClass, HostState, How, LeftAs, Outcome, SeenFacts, StepKind, WhyClosed, fold,
};

use super::arbitrary::run_started;

fn at() -> Timestamp {
    "2026-11-30T20:00:00Z".parse().unwrap()
}

fn node(name: &str) -> NodeRef {
    NodeRef { cluster: "k8s-serve".into(), name: name.into(), uid: format!("uid-{name}") }
}

fn vm(id: &str) -> MoRef {
    MoRef::new("VirtualMachine", id)
}

fn marked(name: &str, was_unschedulable: bool) -> Event {
    let mark = NodeMark {
        v: NodeMark::VERSION,
        run: RunId("01JD".into()),
        plan: "ab12".into(),
        host: "4c4c".into(),
        vm: "vm-7".into(),
        phase: NodePhase::Draining,
        was_unschedulable,
        since: at(),
        deadline: at(),
        boot: "boot-1".into(),
        gpus: 1,
    };
    Event::NodeMarked { node: node(name), vm: vm("vm-7"), mark: Some(Box::new(mark)) }
}

fn unmarked(name: &str) -> Event {
    Event::NodeMarked { node: node(name), vm: vm("vm-7"), mark: None }
}

fn planned(steps: Vec<Step>) -> Event {
    let reboots = Reboots { expected: 0, most: 1, why: Vec::new() };
    let facts = SeenFacts {
        read_at: at(),
        connection: Fact::Absent,
        in_maintenance: Fact::Known(false),
        boot_time: Fact::Absent,
    };
    Event::VisitPlanned { visit: Visit { impact: Impact::Maintenance, steps, reboots }, facts, memory: Box::default() }
}

fn started(step: Step) -> Event {
    Event::StepStarted { step, attempt: 1, server_time: at(), again: None }
}

fn done(step: StepKind) -> Event {
    Event::StepDone { step, how: How::Did, evidence: Vec::new() }
}

fn standing(events: Vec<Event>) -> HostState {
    let Event::RunStarted { hosts, .. } = run_started() else { unreachable!("a run begins so") };
    let host: HostName = hosts[0].clone();
    let about = events.into_iter().map(|e| (Some(host.clone()), e));
    let lines = [(None, run_started())].into_iter().chain(about).enumerate();
    let entries: Vec<Entry> = lines.map(|(n, (host, e))| Entry { n: n as u64 + 1, at: at(), host, e }).collect();
    fold(&entries).unwrap().hosts.remove(&host).unwrap()
}

#[test]
fn the_steps_that_are_left_are_those_that_are_not_done() {
    let stop = |id: &str| Step::StopVm { vm: vm(id), name: id.into(), node: None };
    let steps = vec![stop("vm-1"), stop("vm-2"), Step::VerifyHost];
    let left = |events: &[Event]| standing([&[planned(steps.clone())], events].concat()).to_do;
    assert_eq!(left(&[]), steps);
    assert_eq!(left(&[started(stop("vm-1"))]), steps, "a step that runs is not done");
    let first = [started(stop("vm-1")), done(StepKind::StopVm)];
    assert_eq!(left(&first), steps[1..]);
    let second = [&first[..], &[started(stop("vm-2")), done(StepKind::StopVm), started(Step::VerifyHost)]].concat();
    let class = FailureClass::NotVerified;
    let failed = Event::StepFailed { step: StepKind::VerifyHost, class, error: "no".into() };
    assert_eq!(left(&[&second[..], &[failed]].concat()), [Step::VerifyHost], "one that failed is not done");
    // Of two of one kind the one that ran.
    assert_eq!(left(&[started(stop("vm-2")), done(StepKind::StopVm)]), [stop("vm-1"), Step::VerifyHost]);
    let again = Event::VisitReplanned {
        why: "seen".into(),
        visit: Visit {
            impact: Impact::Maintenance,
            steps: vec![Step::ExitMaintenance],
            reboots: Reboots { expected: 0, most: 1, why: Vec::new() },
        },
    };
    assert_eq!(left(&[again]), [Step::ExitMaintenance]);
}

#[test]
fn e03_a_node_that_stays_cordoned_is_remembered_with_the_reason() {
    let uncordon = |name: &str, leave| Step::UncordonNode { node: node(name), leave };
    let steps = vec![uncordon("a", NodeEnd::Open), uncordon("b", NodeEnd::Open), uncordon("c", NodeEnd::LeftOff)];
    let mut events = vec![planned(steps.clone()), marked("a", false), marked("b", true), marked("c", false)];
    for (step, name) in steps.into_iter().zip(["a", "b", "c"]) {
        events.extend([started(step), unmarked(name), done(StepKind::UncordonNode)]);
    }
    let why =
        |host: &HostState| host.closed.iter().map(|closed| (closed.node.name.clone(), closed.why)).collect::<Vec<_>>();
    let host = standing(events.clone());
    assert_eq!(why(&host), [("b".into(), WhyClosed::Before), ("c".into(), WhyClosed::LeftOff)]);
    // Marked again, it is ours again.
    events.push(marked("b", true));
    assert_eq!(why(&standing(events)), [("c".into(), WhyClosed::LeftOff)]);
    // Given back before its VM is off, a node that would have been left off is not.
    let given_back = vec![planned(vec![uncordon("c", NodeEnd::LeftOff)]), marked("c", false), unmarked("c")];
    assert!(why(&standing(given_back)).is_empty());
}

#[test]
fn who_uncordoned_a_node_too_early_is_remembered() {
    let early = Event::NodeRecordoned { node: node("a") };
    let host = standing(vec![
        planned(vec![Step::ValidateNode { node: node("a"), timeout_s: 1200 }]),
        marked("a", false),
        early,
    ]);
    let told: Vec<_> = host.recordoned.iter().map(|of| (of.node.name.as_str(), of.at)).collect();
    assert_eq!(told, [("a", at())]);
}

#[test]
fn a_host_that_is_given_up_is_remembered_as_it_stood() {
    let comp = Compensation::Node(node("a"));
    let left_as = LeftAs {
        maintenance: Some(true),
        pending: Vec::new(),
        marker: true,
        uncompensated: vec![comp.clone()],
        opened: Vec::new(),
        notes: Vec::new(),
        at: at(),
    };
    let reboot = Step::Reboot { pending: Vec::new(), boot_before: at() };
    let failed = Event::StepFailed { step: StepKind::Reboot, class: FailureClass::Timeout, error: "no".into() };
    let host = standing(vec![
        planned(vec![reboot.clone()]),
        Event::Armed { comp: comp.clone() },
        marked("a", true),
        started(reboot.clone()),
        failed,
        Event::HostLeft { left_as: left_as.clone() },
        Event::LeftAlone { comp, found: "given up".into() },
        Event::MarkerWritten { marker: None },
        Event::HostReleased { outcome: Outcome::GivenUp },
    ]);
    assert!(!host.changed && host.memory.nodes.is_empty(), "the visit has nothing to remember");
    let stood = host.stood.unwrap();
    assert!(stood.changed && stood.left_as == left_as, "{stood:?}");
    assert!(stood.memory.nodes[0].mark.was_unschedulable, "{stood:?}");
    assert_eq!(host.to_do, [reboot]);
}
