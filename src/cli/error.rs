//! The end of a command that failed: what, why, and what to do next; printed by one function.

use super::Ui;
use super::exit::Exit;
use crate::base::files::FileError;
use crate::base::secret::SecretError;
use crate::document::{Problem, Snippet};
use crate::model::{Finding, Severity};
use crate::report::{Text, Tone, severity_tone, words};
use crate::rollout::StateError;

/// A command that failed.
#[derive(Debug)]
pub struct CommandError {
    exit: Exit,
    what: What,
    hints: Vec<String>,
}

#[derive(Debug)]
enum What {
    /// An error and its causes.
    Error(anyhow::Error),
    /// Mistakes in documents: of form, then of sense.
    Documents { problems: Vec<Problem>, findings: Vec<(Finding, Option<Snippet>)> },
}

impl CommandError {
    /// An error with its causes.
    pub fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self { exit, what: What::Error(error.into()), hints: Vec::new() }
    }

    /// An error in words.
    pub fn words(exit: Exit, words: impl Into<String>) -> Self {
        Self::new(exit, anyhow::Error::msg(words.into()))
    }

    /// Mistakes in documents, findings with their source lines.
    pub fn documents(problems: Vec<Problem>, findings: Vec<(Finding, Option<Snippet>)>) -> Self {
        Self { exit: Exit::Invalid, what: What::Documents { problems, findings }, hints: Vec::new() }
    }

    /// Says what the command was about to do.
    #[must_use]
    pub fn context(mut self, words: impl std::fmt::Display + Send + Sync + 'static) -> Self {
        if let What::Error(error) = self.what {
            self.what = What::Error(error.context(words));
        }
        self
    }

    /// Adds what to do next, with the command to run where there is one.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The line that says it all.
    pub fn summary(&self) -> String {
        match &self.what {
            What::Error(error) => error.to_string(),
            What::Documents { problems, findings } => {
                let errors = findings.iter().filter(|(finding, _)| finding.severity == Severity::Error).count();
                format!("{} in the documents", words::count(problems.len() + errors, "mistake"))
            }
        }
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// Prints it: `error:`, `caused by:`, `hint:`.
    pub fn print(&self, ui: &Ui) {
        if let What::Documents { problems, findings } = &self.what {
            for problem in problems {
                print_problem(ui, problem);
            }
            for (finding, snippet) in findings {
                print_finding(ui, finding, snippet.as_ref());
            }
        }
        ui.label("error", Tone::Bad, self.summary());
        if let What::Error(error) = &self.what {
            for cause in error.chain().skip(1) {
                ui.label("caused by", Tone::Bad, cause.to_string());
            }
        }
        for text in &self.hints {
            hint(ui, text.as_str());
        }
    }
}

/// Prints a mistake of form: place, what, the line itself, what to do.
fn print_problem(ui: &Ui, problem: &Problem) {
    let whole = problem.to_string();
    let mut lines = whole.lines();
    ui.label("error", Tone::Bad, lines.next().unwrap_or_default());
    for line in lines {
        match line.strip_prefix("hint: ") {
            Some(text) => hint(ui, text),
            None => ui.talk(line),
        }
    }
    ui.talk("");
}

/// Prints a finding in the same shape, with its id.
pub fn print_finding(ui: &Ui, finding: &Finding, snippet: Option<&Snippet>) {
    let place = finding.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
    let label = format!("{} {}", finding.severity, finding.id);
    ui.label(&label, severity_tone(finding.severity), format!("{place}{}", finding.message));
    for line in snippet.map(ToString::to_string).iter().flat_map(|snippet| snippet.lines()) {
        ui.talk(line);
    }
    for seen in &finding.evidence {
        ui.label("seen", Tone::Plain, seen.as_str());
    }
    if let Some(accepted) = &finding.accepted {
        ui.label(
            "accepted",
            Tone::Plain,
            format!("{} (until {}, {})", accepted.reason, accepted.until, accepted.place),
        );
    }
    if let Some(text) = &finding.hint {
        hint(ui, text.as_str());
    }
    ui.talk("");
}

impl From<FileError> for CommandError {
    fn from(error: FileError) -> Self {
        let exit = match &error {
            FileError::Read { .. } | FileError::TooLong { .. } | FileError::NotUtf8 { .. } => Exit::Invalid,
            FileError::Write { .. } | FileError::Broken { .. } => Exit::Internal,
            FileError::Locked { .. } => Exit::Taken,
        };
        Self::new(exit, error)
    }
}

impl From<SecretError> for CommandError {
    fn from(error: SecretError) -> Self {
        Self::new(Exit::Unreachable, error)
    }
}

impl From<StateError> for CommandError {
    fn from(error: StateError) -> Self {
        let exit = match &error {
            StateError::Busy { .. } => Exit::Taken,
            StateError::NoSuchRun { .. } => Exit::Invalid,
            StateError::File(file) if file.is_missing() => Exit::Invalid,
            StateError::File(_) | StateError::Damaged { .. } | StateError::Plan { .. } | StateError::Journal { .. } => {
                Exit::Internal
            }
        };
        Self::new(exit, error)
    }
}

impl From<serde_json::Error> for CommandError {
    fn from(error: serde_json::Error) -> Self {
        Self::new(Exit::Internal, error)
    }
}

/// Prints what to do next.
pub fn hint(ui: &Ui, text: impl Into<Text>) {
    ui.label("hint", Tone::Good, text);
}
