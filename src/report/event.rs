//! One line of live progress for what happens in a run.

use super::{Text, Tone, words};
use crate::model::Fact;
use crate::plan::{Step, Verdict};
use crate::rollout::{Entry, Event, How, LeftAs, Outcome, Resumed, RunOutcome, Signal, StepKind};

/// The line of an event, `20:04:11 esx-1  reboot: done`; none for what only the journal needs.
pub fn event(entry: &Entry) -> Option<Text> {
    let what = what(&entry.e)?;
    let mut line = Text::toned(Tone::Dim, words::clock(entry.at)).and(Tone::Plain, "  ");
    if let Some(host) = &entry.host {
        line = line.and(Tone::Strong, host.as_str()).and(Tone::Plain, "  ");
    }
    Some(line.join(what))
}

fn what(event: &Event) -> Option<Text> {
    let plain = |text: String| Some(Text::toned(Tone::Plain, text));
    let toned = |tone, text: String| Some(Text::toned(tone, text));
    match event {
        Event::RunStarted { run, plan, hosts, .. } => {
            plain(format!("run {run} of plan {}: {}", plan.short(), words::count(hosts.len(), "host")))
        }
        Event::RunResumed { how, .. } => plain(match how {
            Resumed::Journal => "the run goes on from its journal".to_owned(),
            Resumed::Live => "the run goes on from the markers on the hosts".to_owned(),
            Resumed::Retry { host } => format!("{host} is visited again"),
            Resumed::GiveUp { host } => format!("{host} is left to somebody, as it stands"),
            Resumed::Abort => "what is not changed yet is given back".to_owned(),
        }),
        Event::HostHeld { why } => toned(Tone::Warn, format!("held: {why}")),
        Event::VisitPlanned { visit, facts, .. } => {
            let closed = if facts.in_maintenance == Fact::Known(true) { ", in maintenance mode" } else { "" };
            let steps = StepKind::in_words(&visit.steps);
            plain(format!("{steps} ({} expected{closed})", words::count(visit.reboots.expected as usize, "reboot")))
        }
        Event::VisitReplanned { why, .. } => plain(format!("planned again: {why}")),
        Event::StepStarted { step, again, .. } => {
            let again = again.as_ref().map(|why| format!(", again: {why}")).unwrap_or_default();
            let of = subject(step).map(|of| format!(" ({of})")).unwrap_or_default();
            plain(format!("{}{of} ...{again}", StepKind::from(step)))
        }
        Event::StepDone { step, how, .. } => plain(match how {
            How::Did => format!("{step}: done"),
            How::Already => format!("{step}: was so already"),
        }),
        Event::StepFailed { step, class, error } => toned(Tone::Bad, format!("{step}: {class}: {error}")),
        Event::GateRead { gate, subject, result, evidence } => match result {
            Verdict::Passed | Verdict::NotNow | Verdict::NotChecked => None,
            Verdict::Noted => {
                toned(Tone::Warn, format!("{gate}, {subject}: noted, and not held against it: {evidence}"))
            }
            Verdict::Failed => toned(Tone::Bad, format!("{gate}, {subject}: not passed: {evidence}")),
            Verdict::Unverifiable => toned(Tone::Warn, format!("{gate}, {subject}: could not be read: {evidence}")),
        },
        Event::HandoffAsked { commands, .. } => {
            let commands = words::count(commands.len(), "command");
            toned(Tone::Warn, format!("a person is asked to type {commands} at its shell"))
        }
        Event::HandoffConfirmed => plain("a person says that it is done".to_owned()),
        Event::HandoffWithdrawn { evidence } => plain(format!("the hand-off is withdrawn: {evidence}")),
        Event::HandoffSeen { evidence } => toned(Tone::Good, format!("the hand-off is done: {evidence}")),
        Event::ShellLoginFailed { error } => {
            toned(Tone::Bad, format!("its shell is not used again in this run: {error}"))
        }
        Event::NodeMarked { node, mark, .. } => plain(match mark {
            Some(mark) => format!("the node {node} is cordoned, {}", mark.phase),
            None => format!("our mark is off the node {node}"),
        }),
        Event::NodeBlocked { node, why } if why.is_empty() => {
            plain(format!("the node {node}: nothing keeps it from being drained now"))
        }
        Event::NodeBlocked { node, why } => {
            toned(Tone::Warn, format!("the node {node} is not drained: {}", why.join("; ")))
        }
        Event::PodsEnded { node, pods } => {
            toned(Tone::Warn, format!("evicted from the node {node}: {}", pods.join(", ")))
        }
        Event::NodeRecordoned { node } => toned(
            Tone::Warn,
            format!("the node {node} was uncordoned by somebody before it passed its gate: cordoned again"),
        ),
        Event::NodeRenewed { node, uid } => toned(
            Tone::Warn,
            format!("the node {node} was deleted and made anew ({uid}) before it passed its gate: cordoned again"),
        ),
        Event::LeftAlone { comp, found } => toned(Tone::Warn, format!("{comp} is not put back: found {found}")),
        Event::Signal { signal } => toned(
            Tone::Warn,
            match signal {
                Signal::Interrupt => "stopped by Ctrl-C",
                Signal::Terminate => "stopped by SIGTERM",
            }
            .to_owned(),
        ),
        Event::HostLeft { left_as } => toned(Tone::Warn, left_as_words(left_as)),
        Event::HostReleased { outcome } => match outcome {
            Outcome::Converged => toned(Tone::Good, "given back, verified".to_owned()),
            Outcome::AlreadyConverged => toned(Tone::Good, "is as the plan wants it".to_owned()),
            Outcome::GivenUp => toned(Tone::Warn, "left to somebody, as it stands".to_owned()),
            Outcome::AsItWas => toned(Tone::Warn, "given back as it was".to_owned()),
        },
        Event::Halted { why } => toned(Tone::Warn, why.clone()),
        Event::RunFinished { outcome } => match outcome {
            RunOutcome::Converged => toned(Tone::Good, "every host of the plan is as it should be".to_owned()),
            RunOutcome::WorkLeft => toned(Tone::Warn, "work is left; every host is given back".to_owned()),
            RunOutcome::HostsLeft => toned(Tone::Bad, "hosts are left to be looked at".to_owned()),
        },
        // Markers, compensations and tasks are for the journal.
        Event::MarkerWritten { .. } | Event::Armed { .. } | Event::Undone { .. } | Event::TaskSeen { .. } => None,
    }
}

/// The VM or the node of a step: a host has several.
fn subject(step: &Step) -> Option<String> {
    match step {
        Step::StopVm { name, .. } | Step::StartVm { name, .. } => Some(name.clone()),
        Step::CordonNode { node, .. }
        | Step::DrainNode { node, .. }
        | Step::AwaitNode { node, .. }
        | Step::ValidateNode { node, .. }
        | Step::UncordonNode { node, .. } => Some(node.to_string()),
        _ => None,
    }
}

fn left_as_words(left_as: &LeftAs) -> String {
    let maintenance = match left_as.maintenance {
        Some(true) => "in maintenance mode",
        Some(false) => "out of maintenance mode",
        None => "maintenance mode unknown",
    };
    let pending = if left_as.pending.is_empty() { "" } else { ", changes wait for a reboot" };
    format!("left as it is: {maintenance}{pending}")
}
