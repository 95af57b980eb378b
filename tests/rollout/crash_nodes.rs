//! Killed at every point of a visit of a host with two nodes in two clusters: after each line of the
//! journal and after each write, resumed from the journal and from the live marks alone. No node is ever
//! uncordoned without its gate, and none of ours is left cordoned at the end.

use std::time::Duration;

use poolwright::model::NodePhase;
use poolwright::plan::Plan;
use poolwright::rollout::{self, Exit, RunError, RunState, StateDir};
use serde_json::Value;

use super::crash::{apply, cut_journal};
use super::nodes::{BAD_GPU, Nodes, are_free, stands};
use super::scene::{asked, closed};
use super::trap::{Point, Trap};
use crate::support::lab::{Lab, in_memory};
use crate::support::{look, person};

/// Lines of the journal and writes of a run that is left alone: each is a crash point. Counted here so that
/// none is lost unseen.
const POINTS: (usize, usize) = (96, 28);
/// Pods settle, Jobs that were deleted are gone, volumes are detached.
const LATER: Duration = Duration::from_secs(1800);

struct Crash {
    wanted: Value,
}

impl Crash {
    async fn new() -> Self {
        let (lab, plan) = Nodes::default().planned().await;
        let trap = Trap::new(Point::Never, &lab.world);
        let state = apply(&lab, &plan, &trap).await.unwrap().unwrap();
        assert_eq!(state.exit(), Exit::Done, "{state:#?}");
        assert_eq!((trap.lines(), trap.writes()), POINTS, "crash points");
        gates_come_first("left alone", &lab);
        tokio::time::sleep(LATER).await;
        Self { wanted: lab.world.snapshot() }
    }

    async fn at(&self, point: Point, nth: usize, from_live: bool) {
        let case = format!("{point:?}, {}", if from_live { "from live" } else { "from the journal" });
        let (lab, plan) = Nodes::default().planned().await;
        let trap = Trap::new(point, &lab.world);
        let lived = apply(&lab, &plan, &trap).await.is_some();
        match point {
            Point::Line(lines) => cut_journal(&lab.state, lines),
            Point::Write(_) | Point::Never => assert!(!lived, "{case}: the client lived"),
        }
        // Some are resumed at once, some when guests and clusters have gone on by themselves.
        tokio::time::sleep(Duration::from_secs([0, 45, 600][nth % 3])).await;
        let state = again(&lab, &plan, from_live).await;
        let state = state.unwrap_or_else(|error| panic!("{case}: {error:?}"));
        assert_eq!(state.exit(), Exit::Done, "{case}: {state:#?}");
        assert!(state.hosts.values().all(|host| host.armed.is_empty()), "{case}: {state:#?}");
        gates_come_first(&case, &lab);
        are_free(&lab);
        tokio::time::sleep(LATER).await;
        let after = lab.world.snapshot();
        assert_eq!(after, self.wanted, "{case}");
        look::assert_released(&case, &after, &plan);
        look::assert_only_managed(&case, &lab, &plan);
        done_once(&case, &lab);
    }
}

/// Goes on after a death: with the journal, or with nothing but the plan and what stands on hosts and nodes.
async fn again(lab: &Lab, plan: &Plan, from_live: bool) -> Result<RunState, RunError> {
    if from_live {
        let elsewhere = in_memory();
        let state = StateDir::open(elsewhere.path()).unwrap();
        return person::with(lab, Some(&state), async |engine| rollout::resume_from_live(engine, plan).await).await;
    }
    let run = lab.state.runs().unwrap().remove(0);
    lab.run(async |engine| rollout::resume(engine, &run).await).await
}

/// Nothing was done twice, whatever was lost.
fn done_once(case: &str, lab: &Lab) {
    for once in ["EnterMaintenanceMode_Task", "ExitMaintenanceMode_Task"] {
        assert_eq!(asked(lab, once), 1, "{case}: {once}");
    }
    let tally = lab.world.tally();
    for name in ["vm-1", "vm-2"] {
        let vm = &tally.vms[name];
        assert_eq!((vm.on, vm.host.as_str(), vm.stops, vm.starts), (true, "esx-01", 1, 1), "{case}: {name}");
    }
}

/// Each write of ours that uncordons a node comes after a Job in its cluster, and that after its VM's start.
fn gates_come_first(case: &str, lab: &Lab) {
    let log = lab.world.log();
    let done: Vec<_> = log.iter().filter(|write| write.effect).collect();
    for (cluster, node, vm) in [("k8s-a", "gpu-a", "vm-1"), ("k8s-b", "gpu-b", "vm-2")] {
        let of_node = format!("{cluster}/nodes/{node}");
        let of_jobs = format!("{cluster}/jobs/");
        let opens = |arguments: &str| arguments.contains("unschedulable") && !arguments.contains("true");
        let mut opened = 0;
        for (at, write) in done.iter().enumerate() {
            if write.who != "kubernetes-admin" || write.id != of_node || !opens(&write.arguments) {
                continue;
            }
            opened += 1;
            let before = &done[..at];
            let started = before.iter().rposition(|write| write.call == "PowerOnVM_Task" && write.object == vm);
            let judged = before.iter().rposition(|write| write.call == "create jobs" && write.id.starts_with(&of_jobs));
            assert!(started.is_some() && judged > started, "{case}: {node} was uncordoned without its gate");
        }
        assert_eq!(opened, 1, "{case}: {node}");
    }
}

/// At each point of its kind.
async fn crash_at(from_live: bool, writes: bool) {
    let crash = Crash::new().await;
    let points: Vec<Point> = match writes {
        true => (1..=POINTS.1).map(Point::Write).collect(),
        false => (1..=POINTS.0 as u64).map(Point::Line).collect(),
    };
    for (nth, point) in points.into_iter().enumerate() {
        crash.at(point, nth, from_live).await;
    }
}

#[tokio::test(start_paused = true)]
async fn after_each_line_the_journal_is_enough() {
    crash_at(false, false).await;
}

#[tokio::test(start_paused = true)]
async fn after_each_line_the_live_marks_are_enough() {
    crash_at(true, false).await;
}

#[tokio::test(start_paused = true)]
async fn after_each_write_the_journal_is_enough() {
    crash_at(false, true).await;
}

#[tokio::test(start_paused = true)]
async fn after_each_write_the_live_marks_are_enough() {
    crash_at(true, true).await;
}

/// A validation that failed stays failed, wherever the process dies: the host ends closed, and no second Job
/// is ever asked for.
struct Failing;

impl Failing {
    async fn planned() -> (Lab, Plan) {
        Nodes { clusters: BAD_GPU, ..Nodes::default() }.planned().await
    }

    /// Lines of the journal and writes of a run that is left alone.
    async fn points() -> (u64, usize) {
        let (lab, plan) = Self::planned().await;
        let trap = Trap::new(Point::Never, &lab.world);
        assert_eq!(apply(&lab, &plan, &trap).await.unwrap().unwrap().exit(), Exit::HostsLeft);
        assert_eq!(Self::jobs(&lab), 1);
        (trap.lines() as u64, trap.writes())
    }

    fn jobs(lab: &Lab) -> usize {
        let made = |write: &&poolwright::sim::Write| write.effect && write.call == "create jobs";
        lab.world.log().iter().filter(made).filter(|write| write.id.starts_with("k8s-a/")).count()
    }

    async fn at(point: Point, from_live: bool) {
        let case = format!("{point:?}, {}", if from_live { "from live" } else { "from the journal" });
        let (lab, plan) = Self::planned().await;
        let trap = Trap::new(point, &lab.world);
        apply(&lab, &plan, &trap).await;
        if let Point::Line(lines) = point {
            cut_journal(&lab.state, lines);
        }
        let state = again(&lab, &plan, from_live).await.unwrap_or_else(|error| panic!("{case}: {error:?}"));
        assert_eq!(state.exit(), Exit::HostsLeft, "{case}");
        assert_eq!(Self::jobs(&lab), 1, "{case}");
        assert!(closed(&lab, 1), "{case}: it is in maintenance mode again");
        let tally = lab.world.tally();
        assert!(!tally.vms["vm-1"].on && !tally.vms["vm-2"].on, "{case}: {tally:?}");
        assert_eq!(stands(&lab, "k8s-a", "gpu-a"), (true, Some(NodePhase::Failed)), "{case}");
        assert!(stands(&lab, "k8s-b", "gpu-b").0, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_validation_that_failed_stays_failed_after_each_write() {
    let (_, writes) = Failing::points().await;
    for nth in 1..=writes {
        Failing::at(Point::Write(nth), nth % 2 == 0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_validation_that_failed_stays_failed_after_each_line() {
    let (lines, _) = Failing::points().await;
    for nth in 1..=lines {
        Failing::at(Point::Line(nth), nth % 2 == 0).await;
    }
}
