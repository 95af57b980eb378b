//! A disk that is full: from the first line that does not stand, nothing more is done to hosts.

use std::path::Path;

use poolwright::base::files::{Appender, FileError};
use poolwright::rollout::journal::{Journal, Lines};
use poolwright::rollout::{self, RunError, Spent, interrupt};

use super::scene::{Scene, Watch, resume};
use crate::support::lab::Lab;

/// A journal whose disk has room for some lines; then it is `/dev/full`.
struct Filling {
    disk: Appender,
    full: Appender,
    room: u64,
}

impl Lines for Filling {
    fn append(&mut self, line: &str) -> Result<(), FileError> {
        match self.room.checked_sub(1) {
            Some(left) => {
                self.room = left;
                self.disk.append(line)
            }
            None => self.full.append(line),
        }
    }
}

/// Applies a plan on a disk with room for so many lines, the header among them.
async fn apply(lab: &Lab, plan: &poolwright::plan::Plan, room: u64) -> Result<(), RunError> {
    let run = "01FULL".into();
    lab.state.keep(plan).unwrap();
    lab.state.spend(&plan.id, &Spent { run, at: lab.world.now() }).unwrap().unwrap();
    let dir = lab.state.lock(&"01FULL".into(), "test").unwrap();
    let path = lab.state.path().join("runs/01FULL/journal.jsonl");
    let out =
        Filling { disk: Appender::open(&path).unwrap(), full: Appender::open(Path::new("/dev/full")).unwrap(), room };
    let journal = Journal::begin(Box::new(out)).unwrap();
    let fleet = lab.connect().await;
    let (_raise, signals) = interrupt();
    let mut watch = Watch::default();
    let ended = rollout::apply_into(lab.engine(&fleet, &mut watch, signals), plan, dir, journal).await;
    fleet.close().await.unwrap();
    ended.map(drop)
}

/// `/dev/null` takes every line, and cannot be synced.
#[cfg(target_os = "linux")]
#[test]
fn a_line_that_is_written_and_cannot_be_synced_does_not_stand() {
    let mut appender = Appender::open(Path::new("/dev/null")).unwrap();
    assert!(matches!(appender.append_synced("{}"), Err(FileError::Write { .. })));
}

#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn nothing_is_done_after_a_line_that_does_not_stand_and_resume_goes_on() {
    let scene = Scene { from: "{vgpu: {size: same}}", to: "[{mode: {vgpu: {size: mixed}}}]", ..Scene::default() };
    let mut stopped = 0;
    for room in 1..60 {
        let (lab, plan) = scene.planned().await;
        match apply(&lab, &plan, room).await {
            Ok(()) => break,
            Err(RunError::Journal { n, .. }) => assert_eq!(n, room),
            Err(other) => panic!("{room}: {other}"),
        }
        stopped += 1;
        let log = lab.world.log();
        tokio::time::sleep(std::time::Duration::from_secs(600)).await;
        assert_eq!(lab.world.log(), log, "room for {room} lines");
        // An effect never goes before the line that announces it.
        let text = std::fs::read_to_string(lab.state.path().join("runs/01FULL/journal.jsonl")).unwrap();
        for (call, step) in [
            ("EnterMaintenanceMode_Task", "enterMaintenance"),
            ("UpdateGraphicsConfig", "setGraphics"),
            ("ExitMaintenanceMode_Task", "exitMaintenance"),
        ] {
            let sent = log.iter().any(|write| write.call == call);
            let announces = |line: &str| line.contains(r#""StepStarted":{"step":"#) && line.contains(step);
            assert!(!sent || text.lines().any(announces), "{call} before its line, room for {room} lines");
        }
        let state = resume(&lab).await;
        assert_eq!(state.exit(), poolwright::rollout::Exit::Done, "room for {room} lines: {state:#?}");
    }
    assert!(stopped > 20, "only {stopped} lines");
}
