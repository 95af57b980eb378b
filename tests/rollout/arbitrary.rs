//! Arbitrary events, phases and entries.

use jiff::Timestamp;
use poolwright::model::{
    Baseline, Fact, HostName, Marker, MarkerPhase, MigKind, MoRef, NodeMark, NodePhase, NodeRef, ShellWay,
};
use poolwright::plan::{GateCheck, Impact, NodeEnd, Reboots, Refusal, Step, Verdict, Visit};
use poolwright::rollout::{
    Compensation, Entry, Event, FailureClass, Held, HostPhase, How, LeftAs, Outcome, Resumed, RunOutcome, SeenFacts,
    Signal, Stage, StepKind,
};
use proptest::prelude::*;

pub fn time() -> Timestamp {
    "2026-11-30T22:00:00Z".parse().unwrap()
}

pub fn hosts() -> Vec<HostName> {
    vec!["esx-1".into(), "esx-2".into()]
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::EnterMaintenance { moves: vec![] }),
        Just(Step::SetPassthrough { changes: Vec::new() }),
        Just(Step::SetGraphics { default_type: None, policy: None, devices: Vec::new(), early: false }),
        (0..3i64).prop_map(|hours| Step::Reboot {
            pending: vec!["0000:3b:00.0: passthrough off".to_owned()],
            boot_before: time() + jiff::SignedDuration::from_hours(hours),
        }),
        Just(Step::StartShell),
        Just(Step::StopMonitor),
        prop_oneof![Just(ShellWay::Direct), Just(ShellWay::Handoff)].prop_map(|way| Step::SetMig {
            gpus: vec!["0000:3b:00.0".parse().unwrap()],
            on: true,
            kind: MigKind::Board,
            way,
        }),
        Just(Step::StartMonitor),
        Just(Step::VerifyHost),
        Just(Step::ExitMaintenance),
        of_vms(),
        of_nodes(),
    ]
}

fn vm() -> impl Strategy<Value = MoRef> {
    (1..4u32).prop_map(|vm| MoRef::new("VirtualMachine", format!("vm-{vm}")))
}

fn node() -> impl Strategy<Value = NodeRef> {
    (1..4u32).prop_map(|node| NodeRef {
        cluster: "k8s-serve".to_owned(),
        name: format!("serve-{node}"),
        uid: format!("uid-{node}"),
    })
}

fn of_vms() -> impl Strategy<Value = Step> {
    let stop = (vm(), proptest::option::of(node())).prop_map(|(vm, node)| Step::StopVm {
        name: format!("name of {}", vm.id),
        vm,
        node,
    });
    let start = vm().prop_map(|vm| Step::StartVm { name: format!("name of {}", vm.id), vm, gpus: Vec::new() });
    prop_oneof![stop, start, (0..3u32).prop_map(|stops| Step::StartClosing { moves: Vec::new(), stops })]
}

fn of_nodes() -> impl Strategy<Value = Step> {
    prop_oneof![
        (node(), vm()).prop_map(|(node, vm)| Step::CordonNode { node, vm }),
        (node(), vm()).prop_map(|(node, vm)| Step::DrainNode { node, vm, timeout_s: 1_800 }),
        (node(), vm(), any::<bool>()).prop_map(|(node, vm, stopped)| Step::AwaitNode { node, vm, stopped }),
        node().prop_map(|node| Step::ValidateNode { node, timeout_s: 1200 }),
        (node(), any::<bool>()).prop_map(|(node, open)| Step::UncordonNode {
            node,
            leave: if open { NodeEnd::Open } else { NodeEnd::LeftOff },
        }),
    ]
}

fn node_events() -> impl Strategy<Value = Event> {
    let mark = |vm: &MoRef, was_unschedulable, drained| NodeMark {
        v: NodeMark::VERSION,
        run: "01RUN".into(),
        plan: "ab12".to_owned(),
        host: "uuid".to_owned(),
        vm: vm.id.clone(),
        phase: if drained { NodePhase::Drained } else { NodePhase::Draining },
        was_unschedulable,
        since: time(),
        deadline: time(),
        boot: "boot-before".to_owned(),
        gpus: 2,
    };
    prop_oneof![
        (node(), vm(), any::<(bool, bool, bool)>()).prop_map(move |(node, vm, (marked, cordoned, drained))| {
            Event::NodeMarked { mark: marked.then(|| Box::new(mark(&vm, cordoned, drained))), node, vm }
        }),
        (node(), any::<bool>()).prop_map(|(node, busy)| Event::NodeBlocked {
            node,
            why: if busy { vec!["the PDB web/web needs 2 and has 2".to_owned()] } else { Vec::new() },
        }),
        node().prop_map(|node| Event::NodeRecordoned { node }),
        node().prop_map(|node| Event::PodsEnded { node, pods: vec!["pod default/lab (its emptyDir is lost)".into()] }),
        (node(), "[a-f0-9]{8}").prop_map(|(node, uid)| Event::NodeRenewed { node, uid }),
    ]
}

fn visit(steps: Vec<Step>) -> Visit {
    Visit { impact: Impact::Reboot, steps, reboots: Reboots { expected: 1, most: 2, why: Vec::new() } }
}

fn held() -> impl Strategy<Value = Held> {
    prop_oneof![
        Just(Held::Refused(Refusal::Stale { expected: "a".to_owned(), found: "b".to_owned() })),
        Just(Held::Refused(Refusal::Blocked("a task runs".to_owned()))),
        Just(Held::ForeignMarker { run: "01OTHER".into() }),
        Just(Held::MarkerNotWritten { why: "it did not read back".to_owned() }),
        Just(Held::Budget { pool: "p".to_owned(), most: 1, down: vec!["esx-2: in maintenance".to_owned()] }),
    ]
}

fn comps() -> impl Strategy<Value = Compensation> {
    prop_oneof![
        Just(Compensation::Maintenance),
        Just(Compensation::Ssh),
        Just(Compensation::Monitor),
        vm().prop_map(Compensation::Vm),
        node().prop_map(Compensation::Node),
    ]
}

fn left_as() -> impl Strategy<Value = LeftAs> {
    (any::<Option<bool>>(), any::<bool>(), any::<bool>()).prop_map(|(maintenance, marker, armed)| LeftAs {
        maintenance,
        pending: Vec::new(),
        marker,
        uncompensated: if armed { vec![Compensation::Maintenance] } else { Vec::new() },
        opened: Vec::new(),
        notes: Vec::new(),
        at: time(),
    })
}

fn marker() -> impl Strategy<Value = Marker> {
    let phase = prop_oneof![
        Just(MarkerPhase::Prechecking),
        Just(MarkerPhase::Closing),
        Just(MarkerPhase::Changing),
        Just(MarkerPhase::Rebooting),
        Just(MarkerPhase::Exiting),
        Just(MarkerPhase::Released),
    ];
    phase.prop_map(|phase| Marker {
        v: 1,
        run: "01RUN".into(),
        plan: "ab12".to_owned(),
        host: "uuid".to_owned(),
        phase,
        at: time(),
        reboots: [0, 2],
        last: None,
        arm: Compensation::Maintenance.to_marker().into_iter().collect(),
        nodes: vec![],
        base: Baseline {
            ds: "1/1".to_owned(),
            up: "2/2".to_owned(),
            das: "-".to_owned(),
            crypto: "-".to_owned(),
            dev: "7b1e".to_owned(),
            alarms: "0".to_owned(),
        },
    })
}

fn kind() -> impl Strategy<Value = StepKind> {
    steps().prop_map(|step| StepKind::from(&step))
}

fn class() -> impl Strategy<Value = FailureClass> {
    prop_oneof![
        Just(FailureClass::Refused),
        Just(FailureClass::Fault),
        Just(FailureClass::Timeout),
        Just(FailureClass::NotVerified)
    ]
}

/// Any event.
pub fn event() -> impl Strategy<Value = Event> {
    let facts = SeenFacts {
        read_at: time(),
        connection: Fact::Absent,
        in_maintenance: Fact::Known(false),
        boot_time: Fact::unknown("no"),
    };
    prop_oneof![
        Just(run_started()),
        prop_oneof![Just(Resumed::Journal), Just(Resumed::Live), Just(Resumed::Abort)]
            .prop_map(|how| { Event::RunResumed { tool: "0.1.0".to_owned(), user: "pw".to_owned(), how } }),
        held().prop_map(|why| Event::HostHeld { why }),
        proptest::collection::vec(steps(), 0..3).prop_map(move |steps| Event::VisitPlanned {
            visit: visit(steps),
            facts: facts.clone(),
            memory: Box::default(),
        }),
        proptest::collection::vec(steps(), 0..3)
            .prop_map(|steps| Event::VisitReplanned { why: "read again".to_owned(), visit: visit(steps) }),
        proptest::option::of(marker().prop_map(Box::new)).prop_map(|marker| Event::MarkerWritten { marker }),
        comps().prop_map(|comp| Event::Armed { comp }),
        comps().prop_map(|comp| Event::Undone { comp }),
        comps().prop_map(|comp| Event::LeftAlone { comp, found: "out already".to_owned() }),
        (steps(), 1..4u32).prop_map(|(step, attempt)| Event::StepStarted {
            step,
            attempt,
            server_time: time(),
            again: (attempt > 1).then(|| "no answer".to_owned()),
        }),
        kind().prop_map(|step| Event::TaskSeen { step, key: MoRef::new("Task", "task-1") }),
        (kind(), prop_oneof![Just(How::Did), Just(How::Already)]).prop_map(|(step, how)| Event::StepDone {
            step,
            how,
            evidence: vec!["read".to_owned()]
        }),
        (kind(), class()).prop_map(|(step, class)| Event::StepFailed { step, class, error: "no".to_owned() }),
        any::<bool>()
            .prop_map(|confirm| Event::HandoffAsked { commands: vec!["nvidia-smi -mig 1".to_owned()], confirm }),
        Just(Event::HandoffConfirmed),
        Just(Event::HandoffWithdrawn { evidence: "as it was".to_owned() }),
        Just(Event::HandoffSeen { evidence: "MIG on".to_owned() }),
        Just(Event::ShellLoginFailed { error: "refused".to_owned() }),
        Just(Event::GateRead {
            gate: GateCheck::Signature,
            subject: "0000:3b:00.0".to_owned(),
            result: Verdict::Failed,
            evidence: "direct".to_owned(),
        }),
        prop_oneof![Just(Signal::Interrupt), Just(Signal::Terminate)].prop_map(|signal| Event::Signal { signal }),
        left_as().prop_map(|left_as| Event::HostLeft { left_as }),
        node_events(),
        prop_oneof![
            Just(Outcome::Converged),
            Just(Outcome::AlreadyConverged),
            Just(Outcome::AsItWas),
            Just(Outcome::GivenUp)
        ]
        .prop_map(|outcome| Event::HostReleased { outcome }),
        Just(Event::Halted { why: "esx-1 failed".to_owned() }),
        Just(Event::RunFinished { outcome: RunOutcome::WorkLeft }),
    ]
}

pub fn run_started() -> Event {
    Event::RunStarted {
        run: "01RUN".into(),
        tool: "0.1.0".to_owned(),
        plan: "ab12".into(),
        inputs: Vec::new(),
        site_uuid: "6f0e".to_owned(),
        user: "pw".to_owned(),
        hosts: hosts(),
    }
}

fn stage() -> impl Strategy<Value = Stage> {
    prop_oneof![
        Just(Stage::Prechecking),
        Just(Stage::ClosingHost),
        Just(Stage::InMaintenance),
        Just(Stage::Changing),
        Just(Stage::AwaitingHandoff),
        Just(Stage::Rebooting),
        Just(Stage::VerifyingHost),
        Just(Stage::ExitingMaintenance),
    ]
}

/// Any phase.
pub fn phase() -> impl Strategy<Value = HostPhase> {
    prop_oneof![
        Just(HostPhase::Pending),
        held().prop_map(|why| HostPhase::Held { why }),
        Just(HostPhase::Refused { expected: "a".to_owned(), found: "b".to_owned() }),
        stage().prop_map(|stage| HostPhase::Working { stage }),
        (stage(), left_as()).prop_map(|(at, left_as)| HostPhase::Left { at, left_as }),
        (stage(), class(), proptest::option::of(left_as())).prop_map(|(at, class, left_as)| HostPhase::Failed {
            at,
            class,
            error: "no".to_owned(),
            left_as
        }),
        Just(HostPhase::Done { outcome: Outcome::Converged }),
    ]
}

/// A run's start and any lines after it, about hosts of the run, another or none.
pub fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let host = prop_oneof![
        8 => Just(Some(HostName::from("esx-1"))),
        4 => Just(Some(HostName::from("esx-2"))),
        1 => Just(Some(HostName::from("esx-9"))),
        2 => Just(None)
    ];
    proptest::collection::vec((host, event()), 0..40).prop_map(|lines| {
        let first = Entry { n: 1, at: time(), host: None, e: run_started() };
        let rest = lines.into_iter().zip(2..).map(|((host, e), n)| Entry { n, at: time(), host, e });
        std::iter::once(first).chain(rest).collect()
    })
}
