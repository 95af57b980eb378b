use jiff::Timestamp;

use super::*;
use crate::model::{Fact, MigKind, MoRef, PlanId, RunId, ShellWay};
use crate::plan::{Impact, Reboots, Refusal, Step, Visit};
use crate::rollout::{Compensation, Entry, Event, FailureClass, Held, Outcome, RunOutcome, SeenFacts, StepKind, fold};

fn at(minute: i64) -> Timestamp {
    "2026-11-30T20:00:00Z".parse::<Timestamp>().unwrap() + jiff::SignedDuration::from_mins(minute)
}

/// A journal of five hosts, one of each fate.
fn journal() -> Vec<Entry> {
    let hosts = ["esx-1", "esx-2", "esx-3", "esx-4", "東京-5"].map(HostName::from).to_vec();
    let visit = Visit {
        impact: Impact::Reboot,
        steps: vec![Step::EnterMaintenance { moves: Vec::new() }, Step::VerifyHost],
        reboots: Reboots { expected: 1, most: 2, why: Vec::new() },
    };
    let planned = Event::VisitPlanned {
        visit,
        facts: SeenFacts {
            read_at: at(0),
            connection: Fact::Absent,
            in_maintenance: Fact::Known(false),
            boot_time: Fact::Absent,
        },
        memory: Box::default(),
    };
    let started = |step| Event::StepStarted { step, attempt: 1, server_time: at(1), again: None };
    let left_as = LeftAs {
        maintenance: Some(true),
        pending: vec!["0000:3b:00.0: mixed size".into()],
        marker: true,
        uncompensated: vec![Compensation::Maintenance],
        opened: Vec::new(),
        notes: vec!["3 GPUs are listed instead of 4".into()],
        at: at(31),
    };
    let vm = Compensation::Vm(MoRef::new("VirtualMachine", "vm-7"));
    let events: Vec<(Option<usize>, Event)> = vec![
        (
            None,
            Event::RunStarted {
                run: RunId("01JDABCDEFGHJKMNPQRSTVWXYZ".into()),
                tool: "0.1.0".into(),
                plan: PlanId("ab12cd34ef567890aaaa".into()),
                inputs: Vec::new(),
                site_uuid: "6f0e".into(),
                user: "pw@vsphere.local".into(),
                hosts: hosts.clone(),
            },
        ),
        (Some(0), planned.clone()),
        (Some(0), Event::Armed { comp: vm.clone() }),
        (Some(0), Event::LeftAlone { comp: vm, found: "web-1 left off, as planned".into() }),
        (Some(0), Event::HostReleased { outcome: Outcome::Converged }),
        (
            Some(1),
            Event::HostHeld {
                why: Held::Refused(Refusal::Stale { expected: "4 GPUs".into(), found: "3 GPUs".into() }),
            },
        ),
        (Some(2), Event::HostHeld { why: Held::ForeignMarker { run: RunId("01OTHER".into()) } }),
        (Some(3), planned),
        (Some(3), Event::Armed { comp: Compensation::Maintenance }),
        (Some(3), started(Step::EnterMaintenance { moves: Vec::new() })),
        (
            Some(3),
            Event::StepDone { step: StepKind::EnterMaintenance, how: crate::rollout::How::Did, evidence: Vec::new() },
        ),
        (Some(3), started(Step::VerifyHost)),
        (
            Some(3),
            Event::GateRead {
                gate: crate::plan::GateCheck::Devices,
                subject: "0000:af:00.0".into(),
                result: crate::plan::Verdict::Failed,
                evidence: "the GPU is not listed any more".into(),
            },
        ),
        (
            Some(3),
            Event::StepFailed {
                step: StepKind::VerifyHost,
                class: FailureClass::NotVerified,
                error: "the host gate did not pass within 10 min".into(),
            },
        ),
        (Some(3), Event::HostLeft { left_as }),
        (None, Event::Halted { why: "1 host failed".into() }),
        (None, Event::RunFinished { outcome: RunOutcome::HostsLeft }),
    ];
    let entry = |(n, (host, e)): (usize, (Option<usize>, Event))| Entry {
        n: n as u64 + 1,
        at: at(n as i64 * 3),
        host: host.map(|host: usize| hosts[host].clone()),
        e,
    };
    events.into_iter().enumerate().map(entry).collect()
}

fn text(state: &RunState) -> String {
    let mut paper = Paper::new();
    run(&mut paper, state, None, &Again { world: Some("lab.yaml".into()), ..Again::default() }, None);
    paper.render(false)
}

#[test]
fn a_run_tells_how_each_host_stands_and_what_to_do() {
    insta::assert_snapshot!(text(&fold(&journal()).unwrap()));
}

/// Hosts at which a person is asked to type: one whose switch only the person can tell of, and one
/// whose switch shows.
fn handed_off(end: bool) -> Vec<Entry> {
    let mut entries = journal();
    let host = entries[1].host.clone();
    entries.truncate(2);
    let step = Step::SetMig { gpus: Vec::new(), on: true, kind: MigKind::Board, way: ShellWay::Handoff };
    let started = Event::StepStarted { step, attempt: 1, server_time: at(1), again: None };
    let commands = ["nvidia-smi -i 0000:3b:00.0 -mig 1", "nvidia-smi --query-gpu=mig.mode.pending --format=csv"];
    let asked = |confirm| Event::HandoffAsked { commands: commands.map(str::to_owned).to_vec(), confirm };
    let left_as = LeftAs {
        maintenance: Some(true),
        pending: Vec::new(),
        marker: true,
        uncompensated: vec![Compensation::Maintenance],
        opened: Vec::new(),
        notes: Vec::new(),
        at: at(40),
    };
    let planned = entries[1].e.clone();
    let second = Some(HostName::from("esx-2"));
    let armed = Event::Armed { comp: Compensation::Maintenance };
    let mut events = vec![(host.clone(), armed.clone()), (host.clone(), started.clone()), (host.clone(), asked(true))];
    if end {
        events.extend([
            (host, Event::HostLeft { left_as: left_as.clone() }),
            (second.clone(), planned),
            (second.clone(), armed),
            (second.clone(), started),
            (second.clone(), asked(false)),
            (second, Event::HostLeft { left_as }),
            (None, Event::RunFinished { outcome: RunOutcome::HostsLeft }),
        ]);
    }
    for (host, e) in events {
        entries.push(Entry { n: entries.len() as u64 + 1, at: at(30), host, e });
    }
    entries
}

#[test]
fn a_host_that_waits_for_a_person_has_the_commands_and_what_to_type_then() {
    let state = fold(&handed_off(true)).unwrap();
    assert_eq!(state.exit().code(), 10);
    insta::assert_snapshot!(text(&state));
    let json = serde_json::to_value(&state).unwrap();
    assert_eq!(json["hosts"]["esx-1"]["handoff"]["commands"][0], "nvidia-smi -i 0000:3b:00.0 -mig 1");
}

#[test]
fn a_host_that_waits_while_a_process_works_on_it_shows_the_commands() {
    let mut paper = Paper::new();
    run(&mut paper, &fold(&handed_off(false)).unwrap(), None, &Again::default(), Some("poolwright, process 7"));
    insta::assert_snapshot!(paper.render(false));
}

/// Whatever the journal holds so far: the sentence counts every host once, and a run that ends
/// with 0 speaks of no host that is not as it should be.
#[test]
fn f08_the_summary_and_the_exit_code_are_of_one_state() {
    let journal = journal();
    for length in 1..=journal.len() {
        let state = fold(&journal[..length]).unwrap();
        let summary = {
            let mut paper = Paper::new();
            paper.say(0, run_summary(&state));
            paper.render(false)
        };
        let counted: usize = summary.split_whitespace().filter_map(|word| word.parse::<usize>().ok()).sum();
        assert_eq!(counted, state.hosts.len(), "{summary}");
        let all_good = summary.trim() == "5 hosts as the plan wants it.";
        assert_eq!(state.exit().code() == 0, all_good, "{summary}");
    }
}
