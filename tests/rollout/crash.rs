//! Killed at every point: after each line of the journal, and after each write. Resumed from the
//! journal, and from the live markers alone, the world ends as if nothing had happened.

use std::path::Path;
use std::time::Duration;

use poolwright::plan::{Impact, Plan};
use poolwright::rollout::{self, Compensation, Exit, RunError, RunState, StateDir, interrupt};
use serde_json::Value;

use super::scene::asked;
use super::trap::{Point, Trap, TrapNetwork};
use crate::support::lab::{DIRECT, Lab, PASSWORD, USER, in_memory};
use crate::support::{look, person};

/// A person types on when the run has seen what it needs.
const LATER: Duration = Duration::from_secs(600);

/// A change of some impact.
struct Change {
    model: &'static str,
    /// `shell` of the site.
    shell: &'static str,
    /// Mode before.
    from: &'static str,
    /// The pool's groups of GPUs.
    to: &'static str,
    readings: &'static str,
    /// VMs of the cluster.
    vms: &'static str,
    impact: Impact,
    /// Reboots that it takes.
    reboots: u32,
    /// Reboots that it takes at most: what is announced while a GPU is passed through and never arrives is
    /// taken for sent, and due after the reboot.
    most: u32,
    /// Lines of a journal and writes in the world's log, of a run that is left alone: each is a
    /// crash point. Counted here so that none is lost unseen.
    points: (usize, usize),
}

const NONE: Change = Change {
    model: "h100-nvl-94",
    shell: BY_HAND,
    from: "{passthrough: {label: train}}",
    to: "[{mode: {passthrough: {label: infer}}}]",
    readings: "{}",
    vms: "[]",
    impact: Impact::None,
    reboots: 0,
    most: 0,
    points: (22, 7),
};
const MAINTENANCE: Change = Change {
    from: "{vgpu: {size: same}}",
    to: "[{mode: {vgpu: {size: mixed}}}]",
    impact: Impact::Maintenance,
    reboots: 0,
    most: 0,
    points: (32, 11),
    ..NONE
};
const ONE_REBOOT: Change = Change {
    from: "{vgpu: {size: same}}",
    to: "[{mode: {passthrough: {label: train}}}]",
    impact: Impact::Reboot,
    reboots: 1,
    most: 1,
    points: (36, 13),
    ..NONE
};
const TWO_REBOOTS: Change = Change {
    from: "{passthrough: {label: train}}",
    // One of two GPUs: the host default stays, so the entry that is ignored while the GPU is passed
    // through is due after the first reboot, and the second makes it active.
    to: "[{select: {count: 1}, mode: {vgpu: {size: same}}}]",
    readings: "{whilePassthrough: ignored}",
    impact: Impact::Reboot,
    reboots: 2,
    most: 2,
    points: (46, 18),
    ..NONE
};
/// Three VMs are stopped and started again, one is moved by DRS.
const VMS: Change = Change {
    vms: "[{name: train-1, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}]}, \
          {name: train-2, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}]}, \
          {name: train-3, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}]}, \
          {name: web-1, host: esx-01, power: on}]",
    points: (54, 18),
    ..MAINTENANCE
};

/// MIG of a board, set through the shell: it waits for the reboot, and survives it.
const MIG_OF_A_BOARD: Change = Change { model: "a100-pcie-80", shell: DIRECT, to: MIG, points: (54, 21), ..ONE_REBOOT };
/// MIG of a driver, set through the shell after the last reboot of the visit, which would lose it.
const MIG_OF_A_DRIVER: Change = Change {
    from: "{passthrough: {label: train}}",
    // So that it does not depend on the moment of the crash whether entries are sent once more.
    readings: "{whilePassthrough: stored}",
    shell: DIRECT,
    to: MIG,
    most: 2,
    points: (59, 24),
    ..ONE_REBOOT
};
/// The same boards, at which a person types.
const MIG_BY_HAND: Change = Change { shell: BY_HAND, points: (39, 16), ..MIG_OF_A_BOARD };
/// The person's work shows in vCenter, without a reboot.
const MIG_BY_HAND_SHOWN: Change = Change { to: MIG, points: (34, 13), ..MAINTENANCE };

const MIG: &str = "[{mode: {migVgpu: {}}}]";
const BY_HAND: &str = "{way: handoff}";

impl Change {
    fn is_by_hand(&self) -> bool {
        self.to == MIG && self.shell == BY_HAND
    }
}

fn lab(change: &Change) -> Lab {
    let world = if change.is_by_hand() { person::actors(&["esx-01"], true, 1) } else { String::new() };
    let world = format!(
        r#"
apiVersion: poolwright/v1
kind: World
metadata: {{name: crash}}
spec:
  vcenter: {{address: vc.lab, version: 8.0.3, users: [{{name: {USER}, password: "{PASSWORD}"}}]}}
  readings: {}
  {}
  datacenters:
    - path: /Prod/DC1
      clusters:
        - name: gpu-a
          ha: {{enabled: true}}
          drs: {{level: fullyAutomated}}
          vms: {}
          hosts:
            - names: "esx-[01-02]"
              driver: {{component: NVD-AIE-800, version: 580.95.02}}
              gpus: [{{model: {}, count: 2, mode: {}}}]
              shell: {{users: [{{name: root, password: lab}}]}}
              boot: {{down: 90s, flaps: 1, stale: 20s}}
"#,
        change.readings, world, change.vms, change.model, change.from
    );
    let documents = format!(
        r#"
apiVersion: poolwright/v1
kind: Site
metadata: {{name: lab}}
spec:
  vcenter: {{address: vc.lab, credentials: {{user: {USER}, password: "env:LAB"}}}}
  pace: {{hostStable: 20s}}
  shell: {}
---
apiVersion: poolwright/v1
kind: GpuPool
metadata: {{name: pool}}
spec:
  hosts: {{site: lab, cluster: gpu-a, names: [esx-01]}}
  gpuModel: {}
  gpuCount: 2
  gpus: {}
  vms: {{mayStop: [{{name: "train-*"}}]}}
  rollout: {{maxUnavailable: 1, maxReboots: 2}}
"#,
        change.shell, change.model, change.to
    );
    Lab::new(&world, &documents)
}

/// Applies the plan with a client that dies at this point; the answer is there only if it did not.
pub async fn apply(lab: &Lab, plan: &Plan, trap: &Trap) -> Option<Result<RunState, RunError>> {
    trapped(lab, &lab.state, trap, async |engine| rollout::apply(engine, plan).await).await
}

/// A process that keeps its state here, and that dies where the trap is.
pub async fn trapped<T>(
    lab: &Lab,
    state: &StateDir,
    trap: &Trap,
    work: impl AsyncFnOnce(rollout::Engine<'_>) -> T,
) -> Option<T> {
    let network = TrapNetwork { inner: lab.network.clone(), trap: trap.clone() };
    let fleet = lab.connect_over(network).await.unwrap();
    let (_raise, signals) = interrupt();
    let mut sink = trap.clone();
    let (confirm, handoff) = rollout::handoff(Duration::from_secs(3600));
    let engine = rollout::Engine { handoff, state, ..lab.engine(&fleet, &mut sink, signals) };
    tokio::select! {
        biased;
        () = trap.sprung() => None,
        ended = work(engine) => Some(ended),
        () = person::says_so(lab, confirm) => unreachable!("a person is there as long as the run"),
    }
}

/// Cuts the journal of the only run to so many lines after the header: what the process wrote after
/// the point, without sending anything, had not been written.
pub fn cut_journal(state: &StateDir, lines: u64) {
    let run = state.runs().unwrap().remove(0);
    let path = state.path().join("runs").join(run.as_str()).join("journal.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let kept: Vec<&str> = text.lines().take(lines as usize + 1).collect();
    std::fs::write(&path, kept.join("\n") + "\n").unwrap();
}

async fn crash_everywhere(change: &Change) {
    // Left alone, and counted.
    let alone = lab(change);
    let plan = alone.plan().await;
    assert_eq!((plan.hosts.len(), plan.hosts[0].impact), (1, change.impact), "{:#?}", plan.findings);
    let trap = Trap::new(Point::Never, &alone.world);
    let state = apply(&alone, &plan, &trap).await.unwrap().unwrap();
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    assert_eq!(state.hosts.values().map(|host| host.memory.reboots).sum::<u32>(), 0, "released hosts remember nothing");
    assert_eq!(alone.world.tally().hosts["esx-01"].boots, change.reboots);
    assert_eq!((trap.lines(), trap.writes()), change.points, "crash points");
    tokio::time::sleep(LATER).await;
    let wanted = alone.world.snapshot();

    let lines = (1..=trap.lines() as u64).map(Point::Line);
    let writes = (1..=change.points.1).map(Point::Write);
    for (nth, point) in lines.chain(writes).enumerate() {
        for from_live in [false, true] {
            // Some are resumed at once, some when the server has gone on by itself.
            let pause = Duration::from_secs([0, 45, 600][nth % 3]);
            let case = format!("{point:?}, {}", if from_live { "from live" } else { "from the journal" });
            crash(&case, change, point, pause, from_live, &wanted).await;
        }
    }
}

async fn crash(case: &str, change: &Change, point: Point, pause: Duration, from_live: bool, wanted: &Value) {
    let lab = &lab(change);
    let plan = lab.plan().await;
    let trap = Trap::new(point, &lab.world);
    let lived = apply(lab, &plan, &trap).await.is_some();
    match point {
        // Lines after the last call are all written; they are cut.
        Point::Line(lines) => cut_journal(&lab.state, lines),
        Point::Write(_) | Point::Never => assert!(!lived, "{case}: the client lived"),
    }
    tokio::time::sleep(pause).await;

    let state = if from_live {
        let elsewhere = in_memory();
        resume_from_live(lab, &plan, elsewhere.path()).await
    } else {
        let run = lab.state.runs().unwrap().remove(0);
        person::with(lab, None, async |engine| rollout::resume(engine, &run).await).await
    };
    let state = state.unwrap_or_else(|error| panic!("{case}: {error:?}"));
    assert_eq!(state.exit(), Exit::Done, "{case}: {state:#?}");
    for (name, host) in &state.hosts {
        assert_eq!(host.armed, [], "{case}: {name}");
        // What was put back before nobody could write it down is found so, and said.
        let found = |comp: &Compensation| from_live && matches!(comp, Compensation::Ssh | Compensation::Monitor);
        let others: Vec<_> = host.left_alone.iter().filter(|(comp, _)| !found(comp)).collect();
        assert!(others.is_empty(), "{case}: {name}: {others:?}");
    }
    tokio::time::sleep(LATER).await;
    let after = lab.world.snapshot();
    assert_eq!(&after, wanted, "{case}");
    look::assert_released(case, &after, &plan);
    look::assert_only_managed(case, lab, &plan);
    // Nothing was done twice, whatever was lost.
    for once in ["EnterMaintenanceMode_Task", "RebootHost_Task", "ExitMaintenanceMode_Task"] {
        let expected = match once {
            "RebootHost_Task" => change.reboots as usize..=change.most as usize,
            _ => usize::from(change.impact > Impact::None)..=usize::from(change.impact > Impact::None),
        };
        assert!(expected.contains(&asked(lab, once)), "{case}: {once}: {}", asked(lab, once));
    }
    let stopped = lab.world.tally().vms.into_iter().filter(|(name, _)| name.starts_with("train-"));
    for (name, vm) in stopped {
        assert_eq!((vm.on, vm.host.as_str(), vm.stops, vm.starts), (true, "esx-01", 1, 1), "{case}: {name}");
    }
    assert_eq!(lab.plan().await.hosts, [], "{case}");
}

async fn resume_from_live(lab: &Lab, plan: &Plan, elsewhere: &Path) -> Result<RunState, RunError> {
    let state = StateDir::open(elsewhere).unwrap();
    person::with(lab, Some(&state), async |engine| rollout::resume_from_live(engine, plan).await).await
}

#[tokio::test(start_paused = true)]
async fn a_change_without_impact_survives_a_crash_anywhere() {
    crash_everywhere(&NONE).await;
}

#[tokio::test(start_paused = true)]
async fn a_change_in_maintenance_survives_a_crash_anywhere() {
    crash_everywhere(&MAINTENANCE).await;
}

#[tokio::test(start_paused = true)]
async fn a_change_with_one_reboot_survives_a_crash_anywhere() {
    crash_everywhere(&ONE_REBOOT).await;
}

#[tokio::test(start_paused = true)]
async fn a_change_with_two_reboots_survives_a_crash_anywhere() {
    crash_everywhere(&TWO_REBOOTS).await;
}

#[tokio::test(start_paused = true)]
async fn a_change_that_stops_vms_survives_a_crash_anywhere() {
    crash_everywhere(&VMS).await;
}

#[tokio::test(start_paused = true)]
async fn mig_of_a_board_survives_a_crash_anywhere() {
    crash_everywhere(&MIG_OF_A_BOARD).await;
}

#[tokio::test(start_paused = true)]
async fn mig_of_a_driver_survives_a_crash_anywhere() {
    crash_everywhere(&MIG_OF_A_DRIVER).await;
}

#[tokio::test(start_paused = true)]
async fn mig_by_hand_survives_a_crash_anywhere() {
    crash_everywhere(&MIG_BY_HAND).await;
}

#[tokio::test(start_paused = true)]
async fn mig_by_hand_that_shows_survives_a_crash_anywhere() {
    crash_everywhere(&MIG_BY_HAND_SHOWN).await;
}
