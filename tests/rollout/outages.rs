//! A guest cluster that goes away in the middle of a visit, at one place after the other, for a while or for good.

use std::time::Duration;

use poolwright::rollout::{Exit, RunState};
use poolwright::sim::Write;

use super::nodes::Nodes;
use crate::support::lab::Lab;

/// So many calls to the cluster lie between two places.
const EVERY: usize = 7;
/// Calls that find nobody before the cluster is back: minutes.
const WHILE: u32 = 40;
/// More calls than any visit makes.
const FOR_GOOD: u32 = 1_000_000;

/// A visit in which nobody answers for k8s-b from its nth call on, for so many calls; none while it is still planned
/// then. An hour later whatever was begun has come to its end.
async fn away(from: usize, calls: u32) -> Option<(Lab, RunState)> {
    let fault = format!("face: k8s, method: \"*\", object: k8s-b, onCall: {from}, times: {calls}, then: dropBefore");
    let world = format!("faults: [{{{fault}}}]");
    let lab = Nodes { world: world.leak(), ..Nodes::default() }.lab();
    let plan = lab.plan().await;
    if plan.hosts.is_empty() {
        return None;
    }
    let state = lab.apply(&plan).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    Some((lab, state))
}

/// Where in the log something stands last.
fn last(log: &[Write], is: impl Fn(&Write) -> bool) -> Option<usize> {
    log.iter().rposition(is)
}

/// What we tried to do to gpu-b, also in vain: it is opened only where its VM was left alone, or once a Job was made
/// on the boot that followed.
fn is_opened_by_its_gate_alone(lab: &Lab, place: &str) -> bool {
    let log = lab.world.log();
    let opens = |write: &Write| write.id == "k8s-b/nodes/gpu-b" && write.arguments.replace(' ', "").contains(OPENS);
    let Some(opened) = last(&log, opens) else { return false };
    let before = &log[..opened];
    if let Some(stopped) = last(before, |write| write.call == "ShutdownGuest" && write.object == "vm-2") {
        let started = last(before, |write| write.call == "PowerOnVM_Task" && write.object == "vm-2" && write.effect);
        let job = last(before, |write| write.call == "create jobs" && write.id.starts_with("k8s-b/") && write.effect);
        assert!(
            started > Some(stopped) && job > started,
            "{place}: {stopped}, {started:?}, {job:?}, {opened}: {log:#?}"
        );
    }
    true
}

/// Of the patch that uncordons a node.
const OPENS: &str = r#""path":"/spec/unschedulable","value":false"#;

#[tokio::test(start_paused = true)]
async fn a_cluster_that_goes_away_in_mid_visit_opens_nothing_that_is_not_proven() {
    let (mut begun, mut stopped, mut opened) = (0, 0, 0);
    for from in (1..).step_by(EVERY) {
        let Some((lab, state)) = away(from, FOR_GOOD).await else { continue };
        if state.exit() == Exit::Done {
            break;
        }
        begun += usize::from(state.exit() == Exit::HostsLeft);
        is_opened_by_its_gate_alone(&lab, &format!("away for good from call {from} on"));
        stopped += usize::from(lab.world.tally().vms["vm-2"].stops > 0);
        let (lab, _) = away(from, WHILE).await.unwrap();
        opened += usize::from(is_opened_by_its_gate_alone(&lab, &format!("away for a while from call {from} on")));
    }
    assert!(begun > stopped && stopped > 0, "before its VM was stopped, and after: {stopped} of {begun}");
    assert!(opened > 0, "once it is back: {opened} of {begun}");
}
