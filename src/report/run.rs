//! A run: what became of each host, how the others were left, and what to do next.

use super::handover::blocked;
use super::{Again, Handover, Paper, Table, Text, Tone, handovers, quoted, words};
use crate::model::{HostName, NodePhase};
use crate::plan::{self, Plan, Verdict};
use crate::rollout::{Compensation, HostPhase, HostState, LeftAs, Outcome, RunState, StepKind, WhyClosed};

/// Writes the report of a run; `plan` gives names to what is handed over; `at_work` is the process that
/// works on it now: until that ends, nothing else can be done with the run.
pub fn run(paper: &mut Paper, state: &RunState, plan: Option<&Plan>, again: &Again, at_work: Option<&str>) {
    paper.say(
        0,
        Text::toned(Tone::Strong, format!("Run {}", state.run)).and(
            Tone::Plain,
            format!(
                " of plan {}, begun {}, last written {}",
                state.plan.short(),
                words::time(state.started),
                words::time(state.last)
            ),
        ),
    );
    paper.blank();
    paper.say(0, run_summary(state));
    for (name, host) in state.in_order() {
        for line in blocked(host) {
            let label = if matches!(host.phase, HostPhase::Working { .. }) { "waits for " } else { "not drained: " };
            paper.item(0, Text::toned(Tone::Warn, label), format!("{name}: {line}"));
        }
    }
    if let Some(why) = &state.halted {
        paper.item(0, Text::toned(Tone::Warn, "halted: "), why.as_str());
    }
    if let Some(who) = at_work {
        paper.item(0, Text::toned(Tone::Strong, "at work: "), who);
    }
    paper.blank();
    let mut table = Table::new(&["host", "state", "since (UTC)", ">reboots"]);
    for (name, host) in state.in_order() {
        table.row([
            Text::toned(Tone::Strong, name.as_str()),
            Text::toned(tone(host), host.phase.to_string()),
            Text::from(host.since.map(words::clock).unwrap_or_default()),
            Text::from(host.done.iter().filter(|step| **step == StepKind::Reboot).count().to_string()),
        ]);
    }
    paper.table(2, &table);
    let cards = handovers(state, plan, at_work.is_some());
    for (name, host) in state.in_order() {
        let card = cards.iter().find(|card| card.host == *name);
        stand(paper, state, name, host, card, again);
        if let Some(card) = card {
            card.hands(paper);
        }
    }
    nodes(paper, state);
    if state.hosts.values().any(|host| !host.left_alone.is_empty()) {
        paper.heading("Not put back");
    }
    for (name, host) in state.in_order() {
        for (comp, found) in &host.left_alone {
            paper.item(2, format!("{name}: "), format!("{comp}: {found}"));
        }
    }
    outlook(paper, state, again, at_work);
}

/// The sentence that says it all; the exit code comes from the same state.
pub fn run_summary(state: &RunState) -> Text {
    let number = |test: fn(&HostState) -> bool| state.hosts.values().filter(|host| test(host)).count();
    let mut text = Text::default();
    for (number, what, tone) in [
        (number(HostState::is_converged), "as the plan wants it", Tone::Good),
        (number(|host| host.phase == HostPhase::Done { outcome: Outcome::AsItWas }), "as it was", Tone::Plain),
        (number(|host| host.phase == HostPhase::Done { outcome: Outcome::GivenUp }), "given up", Tone::Warn),
        (number(|host| matches!(host.phase, HostPhase::Failed { .. })), "failed", Tone::Bad),
        (number(|host| matches!(host.phase, HostPhase::Refused { .. })), "changed since the plan", Tone::Warn),
        (number(|host| matches!(host.phase, HostPhase::Held { .. })), "held", Tone::Warn),
        (number(HostState::is_awaited), "waiting for a person", Tone::Warn),
        (
            number(|host| matches!(host.phase, HostPhase::Left { .. }) && !host.is_awaited()),
            "left half-way",
            Tone::Warn,
        ),
        (number(|host| matches!(host.phase, HostPhase::Working { .. })), "under way", Tone::Warn),
        (number(|host| matches!(host.phase, HostPhase::Pending)), "not begun", Tone::Plain),
    ] {
        if number > 0 {
            let blank = if text.is_empty() { "" } else { " " };
            text = text.and(Tone::Plain, blank).and(tone, format!("{} {what}.", words::count(number, "host")));
        }
    }
    text
}

fn tone(host: &HostState) -> Tone {
    match &host.phase {
        HostPhase::Done { .. } => Tone::Good,
        HostPhase::Failed { .. } => Tone::Bad,
        HostPhase::Pending => Tone::Dim,
        HostPhase::Held { .. } | HostPhase::Refused { .. } | HostPhase::Working { .. } | HostPhase::Left { .. } => {
            Tone::Warn
        }
    }
}

/// How one host stands, why, and what can be done.
fn stand(
    paper: &mut Paper,
    state: &RunState,
    name: &HostName,
    host: &HostState,
    card: Option<&Handover>,
    again: &Again,
) {
    let run = state.run.as_str();
    let how = |paper: &mut Paper, left_as: &LeftAs| match card {
        Some(card) => card.head(paper),
        None => left(paper, left_as),
    };
    match &host.phase {
        HostPhase::Pending | HostPhase::Done { .. } if card.is_some() => {
            let given_up = host.phase == HostPhase::Done { outcome: Outcome::GivenUp };
            let how = if given_up { ", left to somebody as it stood" } else { "" };
            paper.heading(format!("{name}: {}{how}", host.phase));
            gate(paper, host, "");
            if let Some(card) = card {
                card.head(paper);
            }
        }
        HostPhase::Pending => {}
        // What was noted and decided nothing is told all the same.
        HostPhase::Done { .. } if host.gate.iter().any(|line| line.verdict == Verdict::Noted) => {
            paper.heading(format!("{name}: {}", host.phase));
            gate(paper, host, "");
        }
        HostPhase::Done { .. } => {}
        HostPhase::Held { why } => {
            paper.heading(format!("{name}: held"));
            paper.say(2, why.to_string());
            marked(paper, run, host, card, again);
        }
        HostPhase::Refused { expected, found } => {
            paper.heading(format!("{name}: changed since the plan"));
            paper.item(2, "expected: ", expected.as_str());
            paper.item(2, "found: ", found.as_str());
            if host.is_released() {
                paper.say(2, "next: plan again, and look at what changed:");
                paper.line(4, again.line("plan --out plan.json"));
            }
            marked(paper, run, host, card, again);
        }
        HostPhase::Working { stage } => {
            paper.heading(format!("{name}: under way, {stage}"));
            if let Some(running) = &host.running {
                let task = running.task.as_ref().map(|task| format!(", {task}")).unwrap_or_default();
                paper.say(2, format!("step: {}{task}", running.step));
            }
            if let Some(asked) = &host.handoff {
                commands(paper, &asked.commands);
            }
            match card {
                Some(card) => card.head(paper),
                None => uncompensated(paper, host),
            }
        }
        HostPhase::Left { left_as, .. } if host.is_awaited() => {
            paper.heading(format!("{name}: waiting for a person"));
            let asked = host.handoff.as_ref();
            commands(paper, asked.map_or(&[], |asked| &asked.commands));
            how(paper, left_as);
            paper.say(2, "next, when it is typed:");
            let confirmed = asked.is_some_and(|asked| !asked.confirm || asked.confirmed);
            let done = if confirmed { String::new() } else { format!(" --done {}", quoted(name.as_str())) };
            paper.line(4, again.line(&format!("resume {run}{done}")));
        }
        HostPhase::Left { at, left_as } => {
            paper.heading(format!("{name}: left half-way, while {at}"));
            gate(paper, host, "");
            how(paper, left_as);
            paper.say(2, "next:");
            paper.line(4, again.line(&format!("resume {run}")));
        }
        HostPhase::Failed { error, left_as, .. } => {
            paper.heading(format!("{name}: {}", host.phase));
            paper.say(2, Text::toned(Tone::Bad, error.as_str()));
            gate(paper, host, error);
            match (left_as, card) {
                (Some(left_as), _) => how(paper, left_as),
                (None, Some(card)) => card.head(paper),
                (None, None) => paper.say(2, "How it stands could not be read."),
            }
            let name = quoted(name.as_str());
            paper.say(
                2,
                match &host.shell_ended {
                    Some(_) => "next: set the login right; then visit it again, with one more login:",
                    None => "next: look at the host; when the cause is gone, visit it again:",
                },
            );
            paper.line(4, again.line(&format!("resume {run} --retry {name}")));
            if !host.is_released() {
                paper.say(
                    2,
                    "or see to it by hand: this takes the mark of the run off, and leaves the host as it stands:",
                );
                paper.line(4, again.line(&format!("abort {run} --give-up {name}")));
            }
        }
    }
}

/// What became of nodes that is not as somebody might expect it.
fn nodes(paper: &mut Paper, state: &RunState) {
    let told = |host: &HostState| {
        !host.closed.is_empty() || !host.recordoned.is_empty() || !host.renewed.is_empty() || !host.ended.is_empty()
    };
    if !state.hosts.values().any(told) {
        return;
    }
    paper.heading("Nodes");
    for (name, host) in state.in_order() {
        for of in &host.closed {
            let why = match of.why {
                WhyClosed::Before => "stays cordoned: it was so before",
                WhyClosed::LeftOff => "stays cordoned: its VM is left off, as planned",
            };
            paper.item(2, format!("{name}: "), format!("the node {} {why}", of.node));
        }
        for of in &host.ended {
            let what = format!("evicted from the node {}: {}", of.node, of.pod);
            paper.item(2, Text::toned(Tone::Warn, format!("{name}: ")), what);
        }
        for of in &host.recordoned {
            let when = words::clock(of.at);
            let what = format!(
                "somebody uncordoned the node {} before it passed its gate: cordoned again (seen {when} UTC)",
                of.node
            );
            paper.item(2, Text::toned(Tone::Warn, format!("{name}: ")), what);
        }
        for of in &host.renewed {
            let when = words::clock(of.at);
            let what = format!(
                "the node {} was deleted, and registered anew ({}) before it passed its gate, open to pods until it was \
                 cordoned again (at {when} UTC)",
                of.node, of.node.uid
            );
            paper.item(2, Text::toned(Tone::Warn, format!("{name}: ")), what);
        }
    }
}

/// A host that is held with something of the run on it: its visit had begun.
fn marked(paper: &mut Paper, run: &str, host: &HostState, card: Option<&Handover>, again: &Again) {
    match (card, &host.marker) {
        (Some(card), _) => card.head(paper),
        (None, Some(marker)) => {
            paper.say(2, format!("left as: marked by this run, {} at {} UTC", marker.phase, words::clock(marker.at)));
        }
        (None, None) => return,
    }
    paper.say(2, "next: look at the host; when the cause is gone, go on:");
    paper.line(4, again.line(&format!("resume {run}")));
}

fn gate(paper: &mut Paper, host: &HostState, told: &str) {
    for line in host.gate.iter().filter(|line| told.is_empty() || !told.contains(&line.evidence)) {
        let (word, tone) = match line.verdict {
            Verdict::Passed | Verdict::NotNow | Verdict::NotChecked => continue,
            Verdict::Noted => ("noted", Tone::Warn),
            Verdict::Failed => ("not passed", Tone::Bad),
            Verdict::Unverifiable => ("could not be read", Tone::Warn),
        };
        let what = Text::toned(tone, format!("{}, {}: {word}: ", line.check, line.subject));
        paper.item(2, "gate: ", what.and(Tone::Plain, &line.evidence));
    }
}

/// How a host was left.
fn left(paper: &mut Paper, left_as: &LeftAs) {
    let LeftAs { maintenance, pending, marker, uncompensated, opened, notes, at } = left_as;
    let maintenance = match maintenance {
        Some(true) => "in maintenance mode",
        Some(false) => "not in maintenance mode",
        None => "maintenance mode unknown",
    };
    let marker = if *marker { "marked by this run" } else { "not marked" };
    paper.item(2, "left as: ", format!("{maintenance}, {marker} (seen {} UTC)", words::clock(*at)));
    for line in plan::grouped(pending) {
        paper.item(2, "waits for a reboot: ", line.as_str());
    }
    for comp in uncompensated {
        let node = opened.iter().find(|node| Compensation::Node((*node).clone()) == *comp);
        let what = node.map_or_else(|| comp.to_string(), words::opened);
        paper.item(2, Text::toned(Tone::Warn, "not put back: "), what);
    }
    for note in notes {
        paper.item(2, "note: ", note.as_str());
    }
}

/// What a person is asked to type, as a block that can be pasted.
pub fn commands(paper: &mut Paper, commands: &[String]) {
    paper.say(2, "type at its shell as root, by SSH or at its console:");
    for command in commands {
        paper.line(4, command.as_str());
    }
}

fn uncompensated(paper: &mut Paper, host: &HostState) {
    for comp in &host.armed {
        paper.item(2, Text::toned(Tone::Warn, "not put back yet: "), comp.to_string());
    }
}

/// What can be done with the run as a whole. A failed host has its own commands above.
fn outlook(paper: &mut Paper, state: &RunState, again: &Again, at_work: Option<&str>) {
    let run = state.run.as_str();
    let any = |test: fn(&HostState) -> bool| state.hosts.values().any(test);
    let failed = any(HostState::is_failed);
    // A host that waits for a person has its own command above, and the others wait for it.
    if !any(|host| !host.is_converged()) || (!failed && any(HostState::is_awaited)) {
        return;
    }
    paper.heading("Next");
    if at_work.is_some() {
        paper.say(2, "wait: a process works on this run (Ctrl-C there ends its running step, then stops)");
        return;
    }
    if !failed && any(|host| !host.is_released() || matches!(host.phase, HostPhase::Left { .. } | HostPhase::Pending)) {
        paper.say(2, "go on:");
        paper.line(4, again.line(&format!("resume {run}")));
    }
    if any(abort_helps) {
        paper.say(
            2,
            if failed { "give back what is not changed yet:" } else { "or give back what is not changed yet:" },
        );
        paper.line(4, again.line(&format!("abort {run}")));
    }
    if failed || !any(|host| !host.is_released()) {
        paper.say(
            2,
            if failed { "hosts that did not fail need not wait; plan them again:" } else { "plan what is left:" },
        );
        paper.line(4, again.line("plan --out plan.json"));
    }
}

/// Whether an abort gives something of the host back: no mode is written, and not all that is left are nodes that
/// did not pass their gate, which a person's word alone takes up again.
fn abort_helps(host: &HostState) -> bool {
    let failed = |comp: &Compensation| {
        let nodes = &host.memory.nodes;
        nodes
            .iter()
            .any(|known| known.mark.phase == NodePhase::Failed && Compensation::Node(known.node.clone()) == *comp)
    };
    !host.is_released() && !host.changed && (host.armed.is_empty() || !host.armed.iter().all(failed))
}

#[cfg(test)]
mod tests;
