//! The one place that prints. stdout is data, stderr is talk.

#![expect(clippy::disallowed_methods, reason = "the environment is read in cli/ and base/secret.rs only")]

use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::Mutex;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::report::{Paper, Text, Tone};

/// The terminal, or what stands in its place.
#[derive(Debug)]
pub struct Ui {
    colour_out: bool,
    colour_err: bool,
    /// Whether a person reads stderr and can answer on stdin.
    pub interactive: bool,
    /// Animation on stderr, on a terminal alone.
    bar: Option<ProgressBar>,
    /// The first error of stdout that is not a reader who went away.
    failed: Mutex<Option<io::Error>>,
}

impl Ui {
    /// As the streams and the environment are: colour only on a terminal, and never with a set
    /// `NO_COLOR` or a dumb terminal.
    pub fn from_environment() -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let plain = set("NO_COLOR") || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let terminal = io::stderr().is_terminal();
        let bar = (terminal && !plain).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
            bar.set_style(
                ProgressStyle::with_template("{spinner} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()),
            );
            bar
        });
        Self {
            colour_out: !plain && io::stdout().is_terminal(),
            colour_err: !plain && terminal,
            interactive: terminal && io::stdin().is_terminal(),
            bar,
            failed: Mutex::new(None),
        }
    }

    /// Whether somebody watches stderr on a terminal that can move its cursor.
    pub fn has_terminal(&self) -> bool {
        self.bar.is_some()
    }

    /// The log filter of the environment.
    pub fn log_filter(&self) -> Option<String> {
        std::env::var("POOLWRIGHT_LOG").ok().filter(|filter| !filter.is_empty())
    }

    /// Whether the log may use colour.
    pub fn log_colour(&self) -> bool {
        self.colour_err
    }

    /// Writes a page to stdout.
    pub fn page(&self, paper: &Paper) {
        self.data(&paper.render(self.colour_out));
    }

    /// Writes text to stdout. A reader who went away is fine; every other error is told at the end
    /// by [`Ui::finish`].
    pub fn data(&self, text: &str) {
        let Ok(mut failed) = self.failed.lock() else { return };
        if failed.is_some() {
            return;
        }
        let mut out = io::stdout().lock();
        if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush())
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            *failed = Some(error);
        }
    }

    /// Writes a value to stdout as JSON.
    pub fn json(&self, value: &impl Serialize) -> Result<(), serde_json::Error> {
        self.data(&format!("{}\n", serde_json::to_string_pretty(value)?));
        Ok(())
    }

    /// Writes a page to stderr.
    pub fn talk_page(&self, paper: &Paper) {
        self.err(&paper.render(self.colour_err));
    }

    /// Writes a line to stderr.
    pub fn talk(&self, text: impl Into<Text>) {
        self.label("", Tone::Plain, text);
    }

    /// Writes `label: text` to stderr, the label in a tone.
    pub fn label(&self, label: &str, tone: Tone, text: impl Into<Text>) {
        let mut paper = Paper::new();
        let label = if label.is_empty() { Text::default() } else { Text::toned(tone, format!("{label}: ")) };
        paper.line(0, label.join(text.into()));
        self.talk_page(&paper);
    }

    fn err(&self, text: &str) {
        let write = || {
            // Nobody can be told when stderr fails.
            let _ = io::stderr().lock().write_all(text.as_bytes());
        };
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Shows what is under way, on a terminal: the line stays the last one.
    pub fn busy(&self, message: impl Into<String>) {
        if let Some(bar) = &self.bar {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.set_message(message.into());
            bar.tick();
        }
    }

    /// Takes away what [`Ui::busy`] shows.
    pub fn idle(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
            bar.set_draw_target(ProgressDrawTarget::hidden());
            bar.reset();
        }
    }

    /// Writes a note about something that was left out.
    pub fn note(&self, text: &str) {
        self.label("note", Tone::Warn, text);
    }

    /// Asks; [`Ui::answer`] reads what is typed.
    pub fn ask(&self, question: &str) {
        self.idle();
        self.err(&format!("{question} Only `yes` goes on: "));
    }

    /// The line that is typed; blocks until there is one.
    pub fn answer() -> String {
        let mut answer = String::new();
        match io::stdin().lock().read_line(&mut answer) {
            Ok(_) => answer,
            // No answer is no consent.
            Err(_) => String::new(),
        }
    }

    /// The error of stdout, if it had one.
    pub fn finish(&self) -> Option<io::Error> {
        self.idle();
        self.failed.lock().ok()?.take()
    }
}
