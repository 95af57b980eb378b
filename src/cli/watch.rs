//! Live progress of a run: a line for each event, and what is waited for.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::Ui;
use super::handoff::Asking;
use crate::base::clock::Clock;
use crate::model::HostName;
use crate::plan;
use crate::report::{self, Text, Tone, words};
use crate::rollout::{Entry, Event, RunState, Sink, Waiting};

/// How often the same wait is told again where there is no terminal, in seconds: often enough that a
/// CI job which is watched does not look dead, seldom enough that an hour of it is read.
const AGAIN_S: i64 = 300;

/// Shows a run to the person who started it.
pub struct Watch<'a> {
    ui: &'a Ui,
    clock: Clock,
    asking: Asking,
    /// What was told last of each host, without its figures, and when.
    told: BTreeMap<HostName, (String, Timestamp)>,
}

impl<'a> Watch<'a> {
    /// Shows it on this terminal.
    pub fn new(ui: &'a Ui, clock: Clock, asking: Asking) -> Self {
        Self { ui, clock, asking, told: BTreeMap::new() }
    }

    /// Commands for a person who is waited for; otherwise the report has them.
    fn hand_over(&self, commands: &[String], confirm: bool) {
        if self.asking.wait.is_zero() {
            return;
        }
        let mut paper = self.ui.talk_paper();
        report::commands(&mut paper, commands);
        let then = match (confirm, self.asking.enter) {
            (false, _) => "It goes on when vCenter shows the change.",
            (true, true) => {
                "Then press Enter here, alone on its line: nothing else shows the change before the reboot."
            }
            (true, false) => {
                "Nothing shows the change before the reboot: when this command has ended, its report says how to go on."
            }
        };
        paper.say(2, Text::toned(Tone::Strong, then));
        self.ui.talk_page(&paper);
    }
}

impl Sink for Watch<'_> {
    fn entry(&mut self, entry: &Entry, _: &RunState) {
        // What was waited for is over, or it is told again at once.
        self.ui.idle();
        if let Some(line) = report::event(entry) {
            self.ui.talk(line);
        }
        if let Event::HandoffAsked { commands, confirm } = &entry.e {
            self.hand_over(commands, *confirm);
        }
    }

    fn waiting(&mut self, waiting: &Waiting<'_>) {
        let Waiting { host, what, since, until, .. } = waiting;
        let now = self.clock.now();
        let line = words_of(waiting);
        if self.ui.has_terminal() {
            self.ui.busy(format!(
                "{line}, for {}, given up in {}",
                words::span(now.as_second() - since.as_second()),
                words::span(until.as_second() - now.as_second())
            ));
            return;
        }
        let what = unnumbered(what);
        let known = self.told.get(*host);
        let due = known.is_none_or(|(told, at)| *told != what || now.as_second() - at.as_second() >= AGAIN_S);
        if due {
            self.told.insert((*host).clone(), (what, now));
            self.ui.talk(format!("{}  {line}, since {}", words::clock(now), words::clock(*since)));
        }
    }
}

/// Lines of what is waited for that are told; the rest is counted.
const SHOWN: usize = 2;

/// `esx-1  reboot: waiting: the task task-7 (40 %)`.
fn words_of(waiting: &Waiting<'_>) -> String {
    let step = waiting.step.map(|step| format!("{step}: ")).unwrap_or_default();
    let progress = waiting.progress.map(|percent| format!(" ({percent} %)")).unwrap_or_default();
    let lines = plan::grouped(waiting.what);
    let more = lines.len().saturating_sub(SHOWN);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    let what: Vec<&str> = lines.iter().take(SHOWN).map(String::as_str).collect();
    format!("{}  {step}waiting: {}{more}{progress}", waiting.host, what.join("; "))
}

/// What is waited for without its figures: a count or a time that goes on is no news.
fn unnumbered(what: &[String]) -> String {
    what.iter().flat_map(|line| line.chars()).filter(|character| !character.is_ascii_digit()).collect()
}
