//! The one place that prints. stdout is data, stderr is talk.

#![expect(clippy::disallowed_methods, reason = "the environment is read in cli/ and base/secret.rs only")]

use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use terminal_size::{Height, Width, terminal_size_of};

use crate::report::{Again, Paper, Text, Tone};

/// A page for a stream: one that is no terminal has no size, and one that nobody set up has 0 columns.
fn paper(size: Option<(Width, Height)>) -> Paper {
    match size {
        Some((Width(columns @ 1..), _)) => Paper::of_width(columns.into()),
        Some(_) | None => Paper::new(),
    }
}

/// Columns that the sign of life takes before the first line.
const SPINNER: usize = 2;

/// The terminal, or what stands in its place.
#[derive(Debug)]
pub struct Ui {
    colour_out: bool,
    colour_err: bool,
    /// Whether a person reads stderr and can answer on stdin.
    pub interactive: bool,
    /// Whether stderr is a terminal that can move its cursor.
    animated: bool,
    /// What is under way: the last lines of the terminal, while it lasts.
    bar: Mutex<Option<ProgressBar>>,
    /// The first error of stdout that is not a reader who went away.
    failed: Mutex<Option<io::Error>>,
    /// What commands that are proposed need.
    again: Mutex<Again>,
}

impl Ui {
    /// As the streams and the environment are: colour only on a terminal, and never with a set
    /// `NO_COLOR` or a dumb terminal.
    pub fn from_environment() -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let plain = set("NO_COLOR") || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let terminal = io::stderr().is_terminal();
        Self {
            colour_out: !plain && io::stdout().is_terminal(),
            colour_err: !plain && terminal,
            interactive: terminal && io::stdin().is_terminal(),
            animated: terminal && !plain,
            bar: Mutex::default(),
            failed: Mutex::new(None),
            again: Mutex::default(),
        }
    }

    /// From now on commands are proposed with these options: those of the command that is run.
    pub fn propose(&self, options: Again) {
        *self.again.lock().unwrap_or_else(PoisonError::into_inner) = options;
    }

    /// The options of commands that are proposed.
    pub fn again(&self) -> Again {
        self.again.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// An empty page for stdout.
    pub fn paper(&self) -> Paper {
        paper(terminal_size_of(io::stdout()))
    }

    /// An empty page for stderr.
    pub fn talk_paper(&self) -> Paper {
        paper(terminal_size_of(io::stderr()))
    }

    /// Whether somebody watches stderr on a terminal that can move its cursor.
    pub fn has_terminal(&self) -> bool {
        self.animated
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
        match &*self.bar() {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    fn bar(&self) -> MutexGuard<'_, Option<ProgressBar>> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows what is under way, on a terminal: it stays the last line.
    pub fn busy(&self, message: impl AsRef<str>) {
        self.live(&[Text::from(message.as_ref())]);
    }

    /// Shows what is under way, on a terminal: these stay the last lines, and are rewritten in place. What does
    /// not fit a line is cut: a line that the terminal breaks would not be found again.
    pub fn live(&self, lines: &[Text]) {
        if !self.animated {
            return;
        }
        let columns = self.screen().0.saturating_sub(SPINNER);
        let lines: Vec<String> = lines.iter().map(|line| line.clone().cut(columns).inline(self.colour_err)).collect();
        let mut bar = self.bar();
        // One for as long as it lasts: another one would not know the lines that it should replace.
        let bar = bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{spinner} {msg}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        });
        bar.set_message(lines.join("\n"));
        bar.tick();
    }

    /// Columns and rows of the terminal behind stderr, which may change at any time.
    pub fn screen(&self) -> (usize, usize) {
        match terminal_size_of(io::stderr()) {
            Some((Width(columns @ 1..), Height(rows))) => (columns.into(), rows.into()),
            // As a terminal that nobody set up is taken to be since the VT100.
            Some(_) | None => (80, 24),
        }
    }

    /// Takes away what [`Ui::busy`] shows.
    pub fn idle(&self) {
        if let Some(bar) = self.bar().take() {
            bar.finish_and_clear();
        }
    }

    /// Writes what to do next; the commands in it, between backticks, get the options they need.
    pub fn hint(&self, text: &str) {
        self.label("hint", Tone::Good, self.again().complete(text));
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
