//! The hand-over card, in each stage that a host can be left in: read as the person on duty reads it, and what
//! must be on it whatever happened.

use poolwright::model::{HostName, MarkerPhase, MigKind, NodePhase, ShellWay};
use poolwright::plan::{Plan, Step};
use poolwright::report::{self, Again, ByHand, Handover, Paper, Way};
use poolwright::rollout::{Compensation, Event, FailureClass, HostPhase, Outcome, RunState, Stage as Phase, StepKind};
use poolwright::shell;
use proptest::prelude::*;

use super::stages::{HOST, Stage, at, node, nodes, plan, steps, visit, vm};
use crate::rollout::arbitrary::entries;

fn text(state: &RunState, plan: Option<&Plan>) -> String {
    let mut paper = Paper::new();
    report::run(&mut paper, state, plan, &Again::default(), None);
    paper.render(false)
}

fn card(stage: &Stage) -> Handover {
    let state = stage.state();
    let host = HostName::from(HOST);
    Handover::of(&state, &host, &state.hosts[&host], Some(&plan())).unwrap()
}

fn shown(stage: &Stage) -> String {
    text(&stage.state(), Some(&plan()))
}

fn cordoned() -> Stage {
    Stage::planned().to(StepKind::DrainNode).left(false, &[])
}

/// A process waits for a node to be drained.
fn draining() -> Stage {
    let why = vec!["the PDB web/web needs 2 and has 2".to_owned(), "pod web/web-0 ends since 20:05:00".to_owned()];
    Stage::planned().to(StepKind::DrainNode).event(Event::NodeBlocked { node: nodes()[0].0.clone(), why })
}

fn blocked() -> Stage {
    let error = "the node serve-a of k8s-serve is not drained within 30 min";
    let failed = draining().failed(StepKind::DrainNode, FailureClass::Timeout, error);
    failed.marker(MarkerPhase::Failed).left(false, &[])
}

fn vms_off() -> Stage {
    Stage::planned()
        .to(StepKind::EnterMaintenance)
        .failed(StepKind::EnterMaintenance, FailureClass::Timeout, "it did not end within our deadline")
        .left(false, &[])
}

/// The first VM was asked to shut down, and ran on.
fn unheeded() -> Stage {
    Stage::planned()
        .to(StepKind::StopVm)
        .failed(StepKind::StopVm, FailureClass::Timeout, "serve-vm runs after 5 min")
        .left(false, &[])
}

fn in_maintenance() -> Stage {
    let mut stage = Stage::planned().to(StepKind::SetPassthrough);
    // A signal came before the step began.
    stage.events.pop();
    stage.left(true, &[])
}

/// An abort is proposed where it gives something back, and only there.
#[test]
fn an_abort_is_proposed_where_it_helps() {
    let (node, vm, _) = nodes()[0].clone();
    let step = Step::AwaitNode { node, vm, stopped: false };
    let looked_at = || {
        let started = Event::StepStarted { step: step.clone(), attempt: 1, server_time: at(9), again: None };
        let stage = Stage::planned().to(StepKind::EnterMaintenance).event(started);
        stage.failed(StepKind::AwaitNode, FailureClass::NotVerified, "waited in vain").marker(MarkerPhase::Failed)
    };
    let offers = |stage: &Stage| shown(stage).contains("give back what is not changed yet:");
    assert!(offers(&looked_at().left(true, &[])), "{}", shown(&looked_at().left(true, &[])));
    // All is given back but nodes that did not pass their gate.
    let mut given_back = looked_at();
    let armed = given_back.state().hosts[&HostName::from(HOST)].armed.clone();
    for comp in armed.into_iter().filter(|comp| !matches!(comp, Compensation::Node(_))) {
        given_back = given_back.event(Event::Undone { comp });
    }
    for of in nodes() {
        given_back = given_back.mark(of, NodePhase::Failed);
    }
    let given_back = given_back.left(false, &[]);
    assert!(!offers(&given_back), "{}", shown(&given_back));
}

fn pending() -> Stage {
    Stage::planned()
        .to(StepKind::SetGraphics)
        .marker(MarkerPhase::Changing)
        .failed(StepKind::SetGraphics, FailureClass::Unknown, "the server did not answer")
        .marker(MarkerPhase::Failed)
        .left(true, &["0000:3b:00.0 passthrough off", "0000:5e:00.0 passthrough off"])
}

fn verified() -> Stage {
    let mut stage = Stage::planned().to(StepKind::ExitMaintenance);
    stage.events.pop();
    stage.marker(MarkerPhase::Verifying).left(true, &[])
}

fn starting() -> Stage {
    Stage::planned()
        .to(StepKind::StartVm)
        .marker(MarkerPhase::Exiting)
        .failed(StepKind::StartVm, FailureClass::Fault, "serve-vm: no GPU is available")
        // One VM that does not start keeps no other off.
        .event(Event::Undone { comp: Compensation::Vm(vm(72)) })
        .event(Event::Undone { comp: Compensation::Vm(vm(80)) })
        .event(Event::Undone { comp: Compensation::Maintenance })
        .marker(MarkerPhase::Failed)
        .left(false, &[])
}

fn gate_failed() -> Stage {
    Stage::planned().to(StepKind::ValidateNode).mark(nodes()[0].clone(), NodePhase::Failed)
}

fn closed_again() -> Stage {
    let comps = [Compensation::Maintenance, Compensation::Vm(vm(71)), Compensation::Vm(vm(72))];
    let stage = gate_failed()
        .failed(StepKind::ValidateNode, FailureClass::NotVerified, "Job checks/poolwright-x has failed: exit code 1")
        .marker(MarkerPhase::Failed);
    comps.into_iter().fold(stage, |stage, comp| stage.event(Event::Armed { comp })).left(true, &[])
}

fn kept_open() -> Stage {
    gate_failed()
        .failed(StepKind::ValidateNode, FailureClass::NotVerified, "Job checks/poolwright-x has failed: exit code 1")
        .marker(MarkerPhase::Failed)
        .left(false, &[])
}

fn given_up() -> Stage {
    let given = |comp| Event::LeftAlone { comp, found: "given up: somebody sees to it".into() };
    let stage = nodes().into_iter().fold(pending(), |stage, (node, vm, _)| {
        let unmarked = Event::NodeMarked { node: node.clone(), vm, mark: None };
        stage.event(unmarked).event(given(Compensation::Node(node)))
    });
    let stage = stage.left(true, &["0000:3b:00.0 passthrough off", "0000:5e:00.0 passthrough off"]);
    let rest =
        [Compensation::Maintenance, Compensation::Vm(vm(71)), Compensation::Vm(vm(72)), Compensation::Vm(vm(80))];
    rest.into_iter()
        .fold(stage, |stage, comp| stage.event(given(comp)))
        .event(Event::MarkerWritten { marker: None })
        .event(Event::HostReleased { outcome: Outcome::GivenUp })
}

#[test]
fn cordoned_and_nothing_else() {
    insta::assert_snapshot!(shown(&cordoned()));
}

#[test]
fn a_drain_that_is_blocked() {
    insta::assert_snapshot!(shown(&blocked()));
}

#[test]
fn vms_are_off_and_the_host_is_not_closed() {
    insta::assert_snapshot!(shown(&vms_off()));
}

#[test]
fn a_vm_was_asked_to_shut_down_and_did_not() {
    insta::assert_snapshot!(shown(&unheeded()));
    let card = card(&unheeded());
    let steps = does(&card);
    let place = |what: &str| steps.iter().position(|does| does.contains(what)).unwrap_or_else(|| panic!("{steps:#?}"));
    assert!(
        place("cancel entering") < place("see to the VM serve-vm")
            && place("see to") < place("wait for the node serve-a")
    );
    assert!(!steps.iter().any(|does| does.starts_with("start serve-vm")), "nobody stopped it: {steps:#?}");
    let waits = &step(&card, "wait for the node serve-a").then;
    assert!(!waits.iter().any(|line| line.contains("boot is not")), "no other boot comes by itself: {waits:#?}");
    // The others are not asked: they are as they were.
    assert!(steps.iter().any(|does| does.starts_with("leave the node train-b")), "{steps:#?}");
    // What cuts the power is not among the lines that run when all of them are pasted.
    let lines = card.steps.iter().flat_map(|step| &step.commands);
    assert!(lines.filter(|line| line.contains("-off")).all(|line| line.starts_with('#')), "{card:#?}");
}

#[test]
fn in_maintenance_and_unchanged() {
    insta::assert_snapshot!(shown(&in_maintenance()));
}

#[test]
fn changed_with_a_reboot_that_is_pending() {
    insta::assert_snapshot!(shown(&pending()));
}

#[test]
fn verified_and_still_closed() {
    insta::assert_snapshot!(shown(&verified()));
}

#[test]
fn vms_that_are_starting() {
    insta::assert_snapshot!(shown(&starting()));
}

#[test]
fn a_node_that_failed_its_gate_on_a_host_that_is_closed_again() {
    insta::assert_snapshot!(shown(&closed_again()));
}

#[test]
fn a_node_that_failed_its_gate_on_a_host_that_is_kept_open() {
    insta::assert_snapshot!(shown(&kept_open()));
}

#[test]
fn given_up_with_changes_on_it() {
    insta::assert_snapshot!(shown(&given_up()));
}

/// The plan file is gone, or the process died before it could look.
#[test]
fn without_the_plan_and_without_a_last_look() {
    let stage = Stage::planned().to(StepKind::Reboot).marker(MarkerPhase::Rebooting);
    insta::assert_snapshot!(text(&stage.state(), None));
}

fn does(card: &Handover) -> Vec<&str> {
    card.steps.iter().map(|step| step.does.as_str()).collect()
}

fn step<'a>(card: &'a Handover, does: &str) -> &'a ByHand {
    card.steps.iter().find(|step| step.does.contains(does)).unwrap_or_else(|| panic!("{does}: {card:#?}"))
}

#[test]
fn what_is_not_changed_goes_back_and_what_is_changed_only_forward() {
    for (stage, way) in [
        (cordoned(), Way::Back),
        (blocked(), Way::Back),
        (unheeded(), Way::Back),
        (vms_off(), Way::Back),
        (in_maintenance(), Way::Back),
        (pending(), Way::Forward),
        (verified(), Way::Forward),
        (starting(), Way::Forward),
        (closed_again(), Way::Forward),
        (kept_open(), Way::Forward),
        (given_up(), Way::Forward),
    ] {
        let card = card(&stage);
        assert_eq!(card.way, way, "{card:#?}");
        let writes =
            |step: &&ByHand| step.commands.iter().any(|line| line.contains("esxcli") || line.contains("shutdown"));
        assert!(way == Way::Forward || !card.steps.iter().any(|step| writes(&step)), "{card:#?}");
    }
}

#[test]
fn e03_a_node_that_was_cordoned_before_is_never_uncordoned() {
    for stage in [cordoned(), unheeded(), vms_off(), pending(), closed_again(), kept_open(), given_up()] {
        let card = card(&stage);
        let lines: Vec<&String> = card.steps.iter().flat_map(|step| &step.commands).collect();
        let about = |node: &str, what: &str| lines.iter().any(|line| line.contains(what) && line.contains(node));
        assert!(!about("train-b", "uncordon"), "{lines:#?}");
        assert!(about("serve-a", "uncordon"), "{lines:#?}");
        for node in ["serve-a", "train-b"] {
            assert!(about(node, "poolwright.io/maintenance-"), "{lines:#?}");
        }
    }
}

/// No person is told to uncordon a node before they are told what has to be proven.
#[test]
fn an_uncordon_comes_after_its_check_and_says_so() {
    for stage in [unheeded(), vms_off(), pending(), verified(), starting(), closed_again(), kept_open(), given_up()] {
        let card = card(&stage);
        let steps = does(&card);
        let of = |what: &str| steps.iter().position(|does| does.contains(what) && does.contains("serve-a"));
        let (check, job, open) = (of("wait for"), of("validate"), of("uncordon"));
        assert!(check.is_some() && check < job && job < open, "{steps:#?}");
        let first = &step(&card, "uncordon the node serve-a").first;
        assert!(first.iter().any(|line| line.contains("have passed")), "{first:?}");
        let shows = &step(&card, "wait for the node serve-a").then;
        for fact in ["uid-of-serve-a", "boot-of-serve-a", "Ready is True", "nvidia.com/gpu is 1"] {
            assert!(shows.iter().any(|line| line.contains(fact)), "{fact}: {shows:#?}");
        }
    }
    // Its VM was never stopped: the boot is to be the same, else it is to be validated.
    let first = &step(&card(&cordoned()), "leave the node serve-a").first.join(" ");
    assert!(first.contains("boot boot-of-serve-a") && first.contains("validate it first"), "{first}");
}

/// While a host waits for a person, its node may have come to another run.
#[test]
fn a_node_is_opened_by_hand_only_after_a_look_at_whose_it_is() {
    let mut opened = 0;
    for stage in [cordoned(), blocked(), vms_off(), pending(), starting(), closed_again(), kept_open(), given_up()] {
        let card = card(&stage);
        for step in card.steps.iter().filter(|step| step.commands.iter().any(|line| line.contains(" annotate node "))) {
            opened += 1;
            let mark = r"-o jsonpath='{.metadata.annotations.poolwright\.io/maintenance}";
            assert!(step.look.iter().any(|line| line.contains(mark)), "{step:#?}");
            let first =
                "its mark names the run 01JDABCDEFGHJKMNPQRSTVWXYZ, or it has none. With the mark of another run";
            assert!(step.first.iter().any(|line| line.starts_with(first)), "{step:#?}");
        }
    }
    assert_eq!(opened, 16, "two nodes in each");
}

/// The host is opened only behind its own check, and before its VMs start.
#[test]
fn the_order_is_that_of_a_visit() {
    let card = card(&closed_again());
    let steps = does(&card);
    let order = [
        "verify the host",
        "leave maintenance mode",
        "start serve-vm",
        "wait for the node serve-a",
        "validate the node serve-a",
        "uncordon the node serve-a",
        "start batch",
        "take the mark of the run off",
    ];
    let places: Vec<Option<usize>> =
        order.iter().map(|what| steps.iter().position(|does| does.contains(what))).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}: {steps:#?}");
}

#[test]
fn the_job_of_the_plan_is_pinned_to_the_node_and_quoted() {
    let card = card(&kept_open());
    let commands = &step(&card, "validate the node serve-a").commands;
    assert!(commands[0].starts_with("printf %s '{"), "{commands:#?}");
    for part in [r#""nodeName":"serve-a""#, r"it'\''s/cuda:1", r#""tolerations":[{"operator":"Exists"}]"#] {
        assert!(commands[0].contains(part), "{part}: {commands:#?}");
    }
    assert!(!commands[0].contains("generateName"), "{commands:#?}");
    assert!(commands[1].contains("-n checks get job by-hand-1-serve-a"), "{commands:#?}");
    assert!(commands[1].starts_with("until ") && commands[1].contains("'Complete|Failed'"), "{commands:#?}");
}

/// govc waits for the task, and the task for the VMs that are shut down by the lines below.
#[test]
fn a_host_is_asked_once_to_enter_and_the_lines_below_can_be_typed_meanwhile() {
    let again = Event::VisitReplanned { visit: visit(steps()), why: String::new() };
    let card = card(&Stage::planned().to(StepKind::SetPassthrough).event(again).left(false, &[]));
    let lines: Vec<&String> = card.steps.iter().flat_map(|step| &step.commands).collect();
    let enters: Vec<&&String> = lines.iter().filter(|line| line.contains("host.maintenance.enter")).collect();
    assert!(matches!(enters.as_slice(), [line] if line.ends_with(" &")), "{lines:#?}");
}

/// A shell takes each line apart as it is meant: names with blanks and quotes stay whole.
#[test]
fn lines_to_paste_are_quoted() {
    let mut stage = Stage::planned();
    let odd = node("k8s of the lab", "a'b");
    stage = stage.event(Event::Armed { comp: Compensation::Node(odd) }).left(false, &[]);
    let card = card(&stage);
    let lines: Vec<&String> = card.steps.iter().flat_map(|step| &step.commands).collect();
    assert!(lines.iter().any(|line| line.contains(r"kubectl --context 'k8s of the lab'")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains(r"'a'\''b'")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("'/DC 1/host/gpu-a/esx-gpu-01'")), "{lines:#?}");
}

#[test]
fn e10_why_a_drain_is_blocked_is_on_the_top_lines() {
    for stage in [blocked(), draining()] {
        let text = shown(&stage);
        let top: Vec<&str> = text.lines().take(7).collect();
        let said = top.iter().any(|line| line.contains(HOST) && line.contains("the PDB web/web needs 2 and has 2"));
        assert!(said && top.join(" ").contains("since 20:"), "{text}");
    }
}

#[test]
fn machines_read_the_same_card() {
    let value = serde_json::to_value(card(&closed_again())).unwrap();
    assert_eq!(value["owner"]["user"], "pw@vsphere.local");
    assert_eq!(value["owner"]["marker"], "failed");
    assert_eq!(value["maintenance"], true);
    assert_eq!(value["way"], "forward");
    assert_eq!(value["steps"][0]["does"], "verify the host");
    assert_eq!(value["notPutBack"].as_array().unwrap().len(), 6, "{value:#}");
}

#[test]
fn a_host_on_which_nothing_of_ours_is_left_has_no_card() {
    let state = Stage::planned().event(Event::MarkerWritten { marker: None }).state();
    let host = HostName::from(HOST);
    let mut clean = state.hosts[&host].clone();
    clean.phase = HostPhase::Done { outcome: Outcome::AsItWas };
    assert!(Handover::of(&state, &host, &clean, None).is_none());
    // While a process works on the run, what it may take up is not for a person.
    assert!(report::handovers(&cordoned().state(), None, true).is_empty());
    assert_eq!(report::handovers(&cordoned().state(), None, false).len(), 1);
    assert_eq!(report::handovers(&blocked().state(), None, true).len(), 1, "what failed is not taken up by itself");
    assert!(matches!(cordoned().state().hosts[&host].phase, HostPhase::Left { at: Phase::DrainingNodes, .. }));
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

proptest! {
    /// Whatever happened: every step that is left and everything that is not put back is on the card, in the
    /// text and in the data.
    #[test]
    fn nothing_that_is_left_is_missing_on_the_card(entries in entries(), planned in any::<bool>()) {
        let mut entries = entries.into_iter();
        let mut state = RunState::start(&entries.next().unwrap()).unwrap();
        for entry in entries {
            let _ = state.take(&entry);
        }
        let plan = planned.then(plan);
        let shown = squeezed(&text(&state, plan.as_ref()));
        for (name, host) in &state.hosts {
            let Some(card) = Handover::of(&state, name, host, plan.as_ref()) else {
                prop_assert!(host.armed.is_empty() && host.marker.is_none() && host.memory.nodes.is_empty());
                continue;
            };
            let all: Vec<&String> = card.steps.iter().map(|step| &step.does).chain(&card.not_needed).collect();
            for step in &host.to_do {
                let words = step.to_string();
                prop_assert!(all.iter().any(|does| does.starts_with(&words)), "{words}: {card:#?}");
            }
            // Where somebody looked, what was seen to be put back is no more to be told.
            let seen = match &host.phase {
                HostPhase::Left { left_as, .. } | HostPhase::Failed { left_as: Some(left_as), .. } => Some(left_as),
                _ => None,
            };
            let open = |comp: &&Compensation| seen.is_none_or(|left| left.uncompensated.contains(comp));
            for comp in host.armed.iter().filter(open) {
                let words = comp.to_string();
                prop_assert!(card.not_put_back.iter().any(|line| line.starts_with(&words)), "{words}: {card:#?}");
                prop_assert!(undone(&card, comp), "{words} has no step: {card:#?}");
            }
            if host.is_left() {
                for line in card.not_put_back.iter().chain(&card.not_needed) {
                    prop_assert!(shown.contains(&squeezed(line)), "{line}: {shown}");
                }
                for step in &card.steps {
                    let lines = step.look.iter().chain(&step.commands).chain(&step.clicks).chain(&step.shell);
                    for line in lines.chain(&step.first).chain(&step.then).chain([&step.does]) {
                        prop_assert!(shown.contains(&squeezed(line)), "{line}: {shown}");
                    }
                }
            }
        }
    }
}

/// Whether a step of the card puts this back, or the host was seen as it is to be.
fn undone(card: &Handover, comp: &Compensation) -> bool {
    let has = |test: &dyn Fn(&ByHand) -> bool| card.steps.iter().any(test);
    match comp {
        Compensation::Maintenance => {
            card.maintenance == Some(false) || has(&|step| step.does == Step::ExitMaintenance.to_string())
        }
        Compensation::Vm(vm) => {
            has(&|step| step.commands.iter().any(|line| line.contains("-on") && line.contains(&vm.id)))
        }
        Compensation::Ssh => has(&|step| step.commands.iter().any(|line| line.ends_with("stop TSM-SSH"))),
        Compensation::Monitor => has(&|step| step.shell.iter().any(|line| line.ends_with("nvdGpuMgmtDaemon start"))),
        Compensation::Node(node) => has(&|step| {
            step.commands.iter().any(|line| line.contains(&node.name) && line.contains("poolwright.io/maintenance-"))
        }),
    }
}

/// The lines for the shell of a host are those that the hand-off prints.
#[test]
fn lines_for_the_shell_are_those_of_the_hand_off() {
    let gpu = "0000:3b:00.0".parse().unwrap();
    let step = Step::SetMig { gpus: vec![gpu], on: true, kind: MigKind::Board, way: ShellWay::Direct };
    let planned = Stage::planned().events.remove(0);
    let Event::VisitPlanned { mut visit, facts, memory } = planned else { unreachable!("a visit begins so") };
    visit.steps = vec![step.clone()];
    let mut stage = Stage::planned();
    stage.events[0] = Event::VisitPlanned { visit, facts, memory };
    let stage = stage
        .event(Event::StepStarted { step, attempt: 1, server_time: at(3), again: None })
        .failed(StepKind::SetMig, FailureClass::Timeout, "no answer")
        .left(true, &[]);
    let card = card(&stage);
    let expected = [
        shell::Command::StopMonitor,
        shell::Command::SetMig { gpu, on: true },
        shell::Command::StartMonitor,
        shell::Command::Query(shell::Query::Modes),
    ];
    let shown = &card.steps[0].shell;
    for (line, command) in shown.iter().zip(expected) {
        let line = line.split(" --format").next().unwrap();
        assert!(command.line().starts_with(line), "{line}: {}", command.line());
    }
    assert_eq!(shown.len(), 4, "{shown:#?}");
}

#[test]
fn all_steps_of_the_visit_are_in_its_stages() {
    assert_eq!(Stage::planned().state().hosts[&HostName::from(HOST)].to_do, steps());
}
