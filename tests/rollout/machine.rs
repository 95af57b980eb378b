//! The per-host machine, the fold and the journal's lines, for any events in any order.

use poolwright::model::HostName;
use poolwright::rollout::{Entry, Event, Exit, HostPhase, Outcome, RunState, fold};
use proptest::prelude::*;

use super::arbitrary::{entries, event, phase, run_started, time};

/// The lines of `entries` that can follow each other, numbered anew.
fn legal(entries: Vec<Entry>) -> (Vec<Entry>, RunState) {
    let mut entries = entries.into_iter();
    let first = entries.next().unwrap();
    let mut state = RunState::start(&first).unwrap();
    let mut kept = vec![first];
    for entry in entries {
        let entry = Entry { n: kept.len() as u64 + 1, ..entry };
        let before = state.clone();
        match state.take(&entry) {
            Ok(()) => kept.push(entry),
            Err(_) => assert_eq!(state, before, "a refused line changes nothing"),
        }
    }
    (kept, state)
}

proptest! {
    #[test]
    fn the_machine_has_an_answer_to_every_event_in_every_phase(phase in phase(), event in event()) {
        let about_the_run = matches!(
            event,
            Event::RunStarted { .. } | Event::RunResumed { .. } | Event::Signal { .. } | Event::Halted { .. }
                | Event::RunFinished { .. }
        );
        let next = phase.next(&event);
        if about_the_run || matches!(phase, HostPhase::Done { .. }) {
            prop_assert!(next.is_err());
        }
        // Nothing is done on a host before its visit is planned, and nothing after a failure but
        // putting back, until it is planned again.
        let acts = matches!(event, Event::StepStarted { .. } | Event::TaskSeen { .. });
        if acts && !matches!(phase, HostPhase::Working { .. }) {
            prop_assert!(next.is_err());
        }
        // A host whose nodes failed is closed again: that is put back, too.
        let begun = matches!(phase, HostPhase::Working { .. } | HostPhase::Left { .. } | HostPhase::Failed { .. });
        if matches!(event, Event::Armed { .. }) && !begun {
            prop_assert!(next.is_err());
        }
        if let (HostPhase::Failed { .. }, Ok(next)) = (&phase, &next) {
            let again = matches!(event, Event::VisitPlanned { .. });
            let released = matches!(event, Event::HostReleased { .. });
            let failed = matches!(next, HostPhase::Failed { .. });
            prop_assert!(again || released || failed);
        }
    }

    #[test]
    fn a_journal_folds_from_every_prefix_to_the_same_state(entries in entries()) {
        let (kept, state) = legal(entries);
        prop_assert_eq!(&fold(&kept).unwrap(), &state);
        for end in 1..=kept.len() {
            let mut resumed = fold(&kept[..end]).unwrap();
            for entry in &kept[end..] {
                resumed.take(entry).unwrap();
            }
            prop_assert_eq!(&resumed, &state);
        }
    }

    #[test]
    fn any_lines_fold_or_are_refused_with_their_number(entries in entries()) {
        if let Err(error) = fold(&entries) {
            prop_assert!(error.to_string().starts_with("line "), "{}", error);
        }
    }

    #[test]
    fn an_entry_reads_back_as_written(entries in entries()) {
        for entry in entries {
            let text = serde_json::to_string(&entry).unwrap();
            prop_assert!(!text.contains('\n'));
            prop_assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry);
        }
    }

    #[test]
    fn f08_the_exit_code_and_the_hosts_never_disagree(entries in entries()) {
        let (_, state) = legal(entries);
        let all_converged = state.hosts.values().all(|host| host.is_converged());
        match state.exit() {
            Exit::Done => prop_assert!(all_converged || state.aborting),
            Exit::Stale | Exit::Foreign | Exit::WorkLeft | Exit::HostsLeft => prop_assert!(!all_converged),
            Exit::Interrupted | Exit::Terminated => prop_assert!(state.signal.is_some() && !all_converged),
        }
        if state.hosts.values().any(|host| host.is_failed()) {
            prop_assert!(!matches!(state.exit(), Exit::Done | Exit::WorkLeft), "{:?}", state.exit());
        }
    }
}

#[test]
fn a_journal_begins_with_the_run() {
    let stray = Entry { n: 1, at: time(), host: None, e: Event::Halted { why: "x".to_owned() } };
    assert_eq!(fold([&stray]).unwrap_err().to_string(), "the journal does not begin with RunStarted");
    assert!(fold([]).is_err());
}

#[test]
fn a_run_of_hosts_that_are_as_they_should_be_ends_with_0_and_one_that_waits_with_9() {
    let mut state = RunState::start(&Entry { n: 1, at: time(), host: None, e: run_started() }).unwrap();
    let release = |n, host: &str| Entry {
        n,
        at: time(),
        host: Some(HostName::from(host)),
        e: Event::HostReleased { outcome: Outcome::AlreadyConverged },
    };
    assert_eq!(state.exit(), Exit::WorkLeft);
    state.take(&release(2, "esx-1")).unwrap();
    assert_eq!(state.exit(), Exit::WorkLeft);
    state.take(&release(3, "esx-2")).unwrap();
    assert_eq!(state.exit(), Exit::Done);
    assert_eq!((Exit::Done.code(), Exit::WorkLeft.code(), Exit::HostsLeft.code()), (0, 9, 10));
}
