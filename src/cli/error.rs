//! The end of a command that failed: what, why, and what to do next; printed by one function.

use super::Ui;
use super::exit::Exit;
use crate::base::files::FileError;
use crate::base::net::NetError;
use crate::base::secret::SecretError;
use crate::document::{Problem, Snippet};
use crate::model::{Finding, Severity};
use crate::observe::{ConnectError, ShellsError};
use crate::report::{Tone, severity_tone, words};
use crate::rollout::StateError;
use crate::sim::WorldError;
use crate::vim25;

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

    /// Adds what to do next, with the command to run where there is one: between backticks, without
    /// the options that reach documents, fleet and runs; those are added where it is printed.
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
            ui.hint(text);
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
            Some(text) => ui.hint(text),
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
        ui.hint(text);
    }
    ui.talk("");
}

impl From<FileError> for CommandError {
    fn from(error: FileError) -> Self {
        let exit = match &error {
            FileError::Read { .. }
            | FileError::TooLong { .. }
            | FileError::NotUtf8 { .. }
            | FileError::NoFile { .. } => Exit::Invalid,
            FileError::Write { source, .. } if is_no_place(source) => Exit::Invalid,
            FileError::Write { .. } | FileError::Broken { .. } => Exit::Internal,
            FileError::Locked { .. } => Exit::Taken,
        };
        let hint = matches!(error, FileError::NoFile { .. }).then(|| "write what it gives into a file".to_owned());
        Self { hints: hint.into_iter().collect(), ..Self::new(exit, error) }
    }
}

/// Whether a path that an argument names is no place to write to; a full disk is another matter.
fn is_no_place(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::AlreadyExists
            | ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
    )
}

impl From<SecretError> for CommandError {
    fn from(error: SecretError) -> Self {
        let hint = secret_hint(&error);
        Self::new(Exit::Unreachable, error).hint(hint)
    }
}

fn secret_hint(error: &SecretError) -> &'static str {
    match error {
        SecretError::Env { .. } => "set the variable for this command, or change the reference in the Site",
        SecretError::Value { .. } => "one line with the credential is expected; try the reference by hand",
        SecretError::File { .. }
        | SecretError::Spawn { .. }
        | SecretError::Failed { .. }
        | SecretError::Deadline { .. } => "try it by hand, or change the reference in the Site",
    }
}

/// The exit code of an error of the state directory.
pub fn state_exit(error: &StateError) -> Exit {
    match error {
        StateError::Busy { .. } => Exit::Taken,
        StateError::NoSuchRun { .. } => Exit::Invalid,
        StateError::File(file) if file.is_missing() => Exit::Invalid,
        StateError::File(FileError::Write { source, .. }) if is_no_place(source) => Exit::Invalid,
        StateError::File(_) | StateError::Damaged { .. } | StateError::Plan { .. } | StateError::Journal { .. } => {
            Exit::Internal
        }
    }
}

/// What to do about an error of the state directory.
pub fn state_hint(error: &StateError) -> Option<String> {
    match error {
        StateError::Journal { run, .. } => Some(format!(
            "keep the folder runs/{run} for whoever looks into it, move it away, and go on from the hosts with the plan that was applied: `poolwright resume --from-live plan.json`"
        )),
        StateError::Plan { .. } => Some("the plan that was applied can be put there again".to_owned()),
        StateError::NoSuchRun { .. } => Some("`poolwright status` shows the runs".to_owned()),
        StateError::Busy { .. } => Some("wait until it has ended; `poolwright status` shows how far it is".to_owned()),
        StateError::File(_) => Some("name another one with `--state DIR`".to_owned()),
        StateError::Damaged { .. } => None,
    }
}

impl From<StateError> for CommandError {
    fn from(error: StateError) -> Self {
        let hints = state_hint(&error);
        Self { hints: hints.into_iter().collect(), ..Self::new(state_exit(&error), error) }
    }
}

impl From<ConnectError> for CommandError {
    fn from(error: ConnectError) -> Self {
        let hints = match &error {
            ConnectError::Way { source, .. } => net_hint(source),
            ConnectError::Vcenter { source, .. } => vcenter_hint(source),
        };
        Self { hints: hints.into_iter().collect(), ..Self::new(Exit::Unreachable, error) }
    }
}

impl From<vim25::Error> for CommandError {
    fn from(error: vim25::Error) -> Self {
        let hints = vcenter_hint(&error);
        Self { hints: hints.into_iter().collect(), ..Self::new(Exit::Unreachable, error) }
    }
}

impl From<ShellsError> for CommandError {
    fn from(error: ShellsError) -> Self {
        let exit = match &error {
            ShellsError::Credential { .. } => Exit::Unreachable,
            _ => Exit::Invalid,
        };
        let hint = match &error {
            ShellsError::Credential { source, .. } => Some(secret_hint(source)),
            _ => None,
        };
        Self { hints: hint.into_iter().map(str::to_owned).collect(), ..Self::new(exit, error) }
    }
}

fn net_hint(error: &NetError) -> Option<String> {
    match error {
        NetError::Untrusted { thumbprint, .. } => Some(format!(
            "if that is the thumbprint of the right server, pin it in the Site: `trust: {{thumbprint: \"{thumbprint}\"}}`"
        )),
        NetError::Connect { .. } => {
            Some("check `vcenter.address` in the Site, and that this machine reaches it".to_owned())
        }
        NetError::Setup { .. } => Some("check `vcenter.trust` in the Site".to_owned()),
        NetError::Broken { .. } | NetError::Deadline { .. } | NetError::TooLong { .. } => None,
    }
}

fn vcenter_hint(error: &vim25::Error) -> Option<String> {
    use vim25::Error;
    match error {
        Error::Net { source, .. } => net_hint(source),
        Error::LoginRefused { .. } => {
            Some("check user and password; it was tried once, since wrong logins lock accounts".to_owned())
        }
        Error::NotVcenter { .. } => Some("the Site needs the address of a vCenter, not of a host".to_owned()),
        Error::OtherVcenter { .. } => {
            Some("if that is the right vCenter, change `instanceUuid` in the Site".to_owned())
        }
        Error::Http { .. } => Some("vCenter may be starting; try again in some minutes".to_owned()),
        Error::Redirected { .. }
        | Error::Fault { .. }
        | Error::Decode { .. }
        | Error::SessionRenewed { .. }
        | Error::SessionRefused { .. }
        | Error::Closed { .. }
        | Error::TooOld { .. } => None,
    }
}

impl From<WorldError> for CommandError {
    fn from(error: WorldError) -> Self {
        match error {
            WorldError::Document { problems } => Self::documents(problems, Vec::new()),
            WorldError::Files(error) => error.into(),
            error => Self::new(Exit::Invalid, error),
        }
    }
}

impl From<serde_json::Error> for CommandError {
    fn from(error: serde_json::Error) -> Self {
        Self::new(Exit::Internal, error)
    }
}
