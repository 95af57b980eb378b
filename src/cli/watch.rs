//! Live progress of a run: a line for each event, and below them, on a terminal, one line a host.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::Ui;
use super::handoff::Asking;
use crate::base::clock::Clock;
use crate::model::HostName;
use crate::report::{self, Live, Text, Tone, waited_for, words};
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
    live: Live,
}

impl<'a> Watch<'a> {
    /// Shows it on this terminal.
    pub fn new(ui: &'a Ui, clock: Clock, asking: Asking) -> Self {
        Self { ui, clock, asking, told: BTreeMap::new(), live: Live::default() }
    }

    /// Shows how all hosts stand now, below what was told.
    fn draw(&self) {
        let (columns, rows) = self.ui.screen();
        // What was told last must stay in sight: the lines of hosts take half of the screen at most.
        self.ui.live(&self.live.lines(self.clock.now(), columns, rows / 2));
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
    fn entry(&mut self, entry: &Entry, state: &RunState) {
        if let Some(line) = report::event(entry) {
            self.ui.talk(line);
        }
        if let Event::HandoffAsked { commands, confirm } = &entry.e {
            self.hand_over(commands, *confirm);
        }
        // What keeps a node from being drained is an event, and then what is waited for: told once.
        if let (Event::NodeBlocked { why, .. }, Some(host)) = (&entry.e, &entry.host) {
            self.told.insert(host.clone(), (unnumbered(why), self.clock.now()));
        }
        if !self.ui.has_terminal() {
            return;
        }
        self.live.take(state, entry.host.as_ref());
        match &entry.e {
            Event::RunFinished { .. } => self.ui.idle(),
            _ => self.draw(),
        }
    }

    fn waiting(&mut self, waiting: &Waiting<'_>) {
        if self.ui.has_terminal() {
            self.live.waiting(waiting);
            return self.draw();
        }
        let Waiting { host, what, since, step, .. } = waiting;
        let now = self.clock.now();
        let what = unnumbered(what);
        let known = self.told.get(*host);
        let due = known.is_none_or(|(told, at)| *told != what || now.as_second() - at.as_second() >= AGAIN_S);
        if due {
            self.told.insert((*host).clone(), (what, now));
            let step = step.map(|step| format!("{step}: ")).unwrap_or_default();
            let line = format!("{host}  {step}waiting: {}", waited_for(waiting));
            self.ui.talk(format!("{}  {line}, since {}", words::clock(now), words::clock(*since)));
        }
    }
}

/// What is waited for without its figures: a count or a time that goes on is no news.
fn unnumbered(what: &[String]) -> String {
    what.iter().flat_map(|line| line.chars()).filter(|character| !character.is_ascii_digit()).collect()
}
