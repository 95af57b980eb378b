//! The lines of the live view: what happens is on them, on any terminal.

use jiff::Timestamp;
use poolwright::model::HostName;
use poolwright::report::Live;
use poolwright::rollout::{Entry, Event, RunState, StepKind, Waiting};

use super::stages::{HOST, Stage, at};

fn draining() -> (Live, RunState) {
    let state = Stage::planned().to(StepKind::DrainNode).state();
    let mut live = Live::default();
    live.take(&state, None);
    (live, state)
}

fn waits(live: &mut Live, what: &[&str]) {
    let what: Vec<String> = what.iter().map(|line| (*line).to_owned()).collect();
    live.waiting(&Waiting {
        host: &HOST.into(),
        step: Some(StepKind::DrainNode),
        what: &what,
        since: at(12),
        until: at(42),
        progress: None,
    });
}

fn lines(live: &Live, now: Timestamp, columns: usize, rows: usize) -> Vec<String> {
    live.lines(now, columns, rows).iter().map(|line| line.inline(false)).collect()
}

#[test]
fn a_host_has_one_line_with_what_it_waits_for_since_when_and_until() {
    let (mut live, state) = draining();
    assert_eq!(lines(&live, at(15), 120, 20)[1], "  esx-gpu-01  draining nodes  for 4 min");
    waits(&mut live, &["the PDB web/web needs 2 and has 2", "pod web/web-0 ends", "pod web/web-1 ends"]);
    assert_eq!(
        lines(&live, at(15), 200, 20),
        [
            "run 01JDABCDEFGHJKMNPQRSTVWXYZ: 1 host, 1 under way",
            "  esx-gpu-01  draining nodes  for 3 min, until 20:42:00: waiting: the PDB web/web needs 2 and has 2; pod web/web-0 ends; and 1 more",
        ]
    );
    // Since when and until when are still there where the line is cut.
    assert_eq!(lines(&live, at(15), 60, 20)[1], "  esx-gpu-01  draining nodes  for 3 min, until 20:42:00: wa…");
    // A line of the journal about it: the wait is over, or it is told again.
    live.take(&state, Some(&HOST.into()));
    assert_eq!(lines(&live, at(15), 120, 20)[1], "  esx-gpu-01  draining nodes  for 4 min");
}

/// A run of so many hosts, of which the first is under way.
fn run_of(number: usize) -> (RunState, HostName) {
    let hosts: Vec<HostName> = (1..=number).map(|n| HostName(format!("東京-{n}"))).collect();
    let first = hosts[0].clone();
    let stage = Stage::planned().state();
    let entry = |n: u64, host: Option<&HostName>, e: Event| Entry { n, at: at(n as i64), host: host.cloned(), e };
    let started = Event::RunStarted {
        run: stage.run,
        tool: stage.tool,
        plan: stage.plan,
        inputs: Vec::new(),
        site_uuid: stage.site_uuid,
        user: stage.user,
        hosts,
    };
    let mut state = RunState::start(&entry(1, None, started)).unwrap();
    state.take(&entry(2, Some(&first), Stage::planned().events.remove(0))).unwrap();
    (state, first)
}

#[test]
fn where_not_all_hosts_find_room_those_that_stir_do() {
    let (state, first) = run_of(40);
    let mut live = Live::default();
    live.take(&state, Some(&first));
    let all = lines(&live, at(5), 100, 60);
    assert_eq!(all.len(), 41, "{all:#?}");
    assert_eq!(all[1], "  東京-1   prechecking  for 3 min");
    assert_eq!(all[40], "  東京-40  pending");
    let few = lines(&live, at(5), 100, 10);
    assert_eq!(
        few,
        ["run 01JDABCDEFGHJKMNPQRSTVWXYZ: 40 hosts, 1 under way, 39 not begun", "  東京-1  prechecking  for 3 min",]
    );
}

#[test]
fn no_line_is_wider_than_the_terminal_and_none_is_left_out_for_it() {
    let (state, first) = run_of(5);
    let mut live = Live::default();
    live.take(&state, Some(&first));
    for columns in 0..120 {
        let shown = live.lines(at(5), columns, 20);
        assert_eq!(shown.len(), 6);
        assert!(shown.iter().all(|line| line.width() <= columns), "{columns}: {shown:?}");
    }
}
