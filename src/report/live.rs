//! The live view of a run: one line a host, with what it waits for, since when and until when.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Text, Tone, words};
use crate::model::HostName;
use crate::plan;
use crate::rollout::{HostPhase, HostState, RunState, Waiting};

/// The least lines of hosts that are shown, however low the terminal is.
const LEAST: usize = 3;
/// What is waited for is told up to this many lines; the rest is counted.
const SHOWN: usize = 2;

/// What is shown of a run while it goes on. It keeps no more of the run than it shows, so that a line costs
/// the same whatever the number of hosts.
#[derive(Debug, Clone, Default)]
pub struct Live {
    run: String,
    order: Vec<HostName>,
    rows: BTreeMap<HostName, Row>,
    /// How many hosts stand in each group.
    groups: BTreeMap<Group, usize>,
}

#[derive(Debug, Clone)]
struct Row {
    phase: String,
    group: Group,
    since: Option<Timestamp>,
    waits: Option<Waits>,
}

#[derive(Debug, Clone)]
struct Waits {
    what: String,
    since: Timestamp,
    until: Timestamp,
}

/// Where a host stands, as it is counted above the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    GivenBack,
    UnderWay,
    LookAtIt,
    NotBegun,
}

impl Group {
    fn of(phase: &HostPhase) -> Self {
        match phase {
            HostPhase::Done { .. } => Self::GivenBack,
            HostPhase::Working { .. } => Self::UnderWay,
            HostPhase::Pending => Self::NotBegun,
            HostPhase::Held { .. } | HostPhase::Refused { .. } | HostPhase::Left { .. } | HostPhase::Failed { .. } => {
                Self::LookAtIt
            }
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::GivenBack => "given back",
            Self::UnderWay => "under way",
            Self::LookAtIt => "to be looked at",
            Self::NotBegun => "not begun",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::GivenBack => Tone::Good,
            Self::UnderWay => Tone::Plain,
            Self::LookAtIt => Tone::Warn,
            Self::NotBegun => Tone::Dim,
        }
    }
}

impl Live {
    /// Takes in how the run stands after a line about this host, or about the whole run.
    pub fn take(&mut self, state: &RunState, about: Option<&HostName>) {
        if self.order.len() != state.order.len() {
            self.run = state.run.as_str().to_owned();
            self.order.clone_from(&state.order);
            for (name, host) in state.in_order() {
                self.set(name, host);
            }
        }
        if let Some((name, host)) = about.and_then(|name| state.hosts.get_key_value(name)) {
            self.set(name, host);
        }
    }

    fn set(&mut self, name: &HostName, host: &HostState) {
        let group = Group::of(&host.phase);
        // What was waited for is over, or it is told again at once.
        let row = Row { phase: host.phase.to_string(), group, since: host.since, waits: None };
        if let Some(before) = self.rows.insert(name.clone(), row)
            && let Some(count) = self.groups.get_mut(&before.group)
        {
            *count -= 1;
        }
        *self.groups.entry(group).or_default() += 1;
    }

    /// Takes in what a host waits for.
    pub fn waiting(&mut self, waiting: &Waiting<'_>) {
        if let Some(row) = self.rows.get_mut(waiting.host) {
            let Waiting { since, until, .. } = *waiting;
            row.waits = Some(Waits { what: waited_for(waiting), since, until });
        }
    }

    /// The lines, in so many columns and at most so many rows: how many hosts stand where, then one line a
    /// host. Where not all find room, those come first with which something happens or should.
    pub fn lines(&self, now: Timestamp, columns: usize, rows: usize) -> Vec<Text> {
        let room = rows.saturating_sub(1).max(LEAST);
        let all = self.order.len() <= room;
        let stirs = |name: &&HostName| {
            let row = self.rows.get(*name);
            all || row.is_some_and(|row| matches!(row.group, Group::UnderWay | Group::LookAtIt))
        };
        let hosts: Vec<(&HostName, &Row)> = if all || self.stirring() > 0 {
            let shown = self.order.iter().filter(stirs).take(room);
            shown.filter_map(|name| self.rows.get_key_value(name)).collect()
        } else {
            Vec::new()
        };
        let names = hosts.iter().map(|(name, _)| Text::from(name.as_str()).width()).max().unwrap_or(0);
        let phases = hosts.iter().map(|(_, row)| row.phase.len()).max().unwrap_or(0);
        let lines = hosts.iter().map(|(name, row)| line(name, row, names, phases, now));
        std::iter::once(self.summary()).chain(lines).map(|line| line.cut(columns)).collect()
    }

    fn stirring(&self) -> usize {
        [Group::UnderWay, Group::LookAtIt].iter().filter_map(|group| self.groups.get(group)).sum()
    }

    fn summary(&self) -> Text {
        let mut text = Text::from(format!("run {}: {}", self.run, words::count(self.order.len(), "host")));
        for (group, count) in self.groups.iter().filter(|(_, count)| **count > 0) {
            text = text.and(Tone::Plain, ", ").and(group.tone(), format!("{count} {}", group.words()));
        }
        text
    }
}

fn line(name: &HostName, row: &Row, names: usize, phases: usize, now: Timestamp) -> Text {
    let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(Text::from(text).width()) + 2);
    let spans = |since: Timestamp| words::span(now.as_second() - since.as_second());
    let text = Text::toned(Tone::Plain, "  ")
        .and(Tone::Strong, name.as_str())
        .and(Tone::Plain, pad(name.as_str(), names))
        .and(row.group.tone(), &row.phase);
    let tail = match (&row.waits, row.since) {
        // What it waits for is last: where the line is cut, since when and until when are still there.
        (Some(waits), _) => {
            format!("for {}, until {}: waiting: {}", spans(waits.since), words::clock(waits.until), waits.what)
        }
        (None, Some(since)) if row.group == Group::UnderWay => format!("for {}", spans(since)),
        (None, Some(since)) => format!("since {}", words::clock(since)),
        (None, None) => return text,
    };
    text.and(Tone::Plain, pad(&row.phase, phases)).and(Tone::Plain, tail)
}

/// What is waited for, in one line: `the task task-7 (40 %)`.
pub fn waited_for(waiting: &Waiting<'_>) -> String {
    let progress = waiting.progress.map(|percent| format!(" ({percent} %)")).unwrap_or_default();
    let lines = plan::grouped(waiting.what);
    let more = lines.len().saturating_sub(SHOWN);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    let what: Vec<&str> = lines.iter().take(SHOWN).map(String::as_str).collect();
    format!("{}{more}{progress}", what.join("; "))
}
