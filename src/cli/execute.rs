//! What `apply`, `resume` and `abort` share: the documents of a plan, and the end of a run.

use std::path::PathBuf;

use serde::Serialize;

use super::args::{Output, RunArgs};
use super::documents::{self, Documents};
use super::{CommandError, Exit, Ui};
use crate::base::clock::Clock;
use crate::base::files;
use crate::model::RunId;
use crate::plan::Plan;
use crate::report::{self, NextCommand, Paper, words};
use crate::rollout::{Interrupt, RunError, RunState, Signal, StateDir, status};

/// The version that journals and plans name.
pub const TOOL: &str = env!("CARGO_PKG_VERSION");

/// Who holds a lock, for people.
pub fn holder() -> String {
    format!("poolwright, process {}", std::process::id())
}

/// The documents in which the site of a plan stands: those that were named, else those it was made
/// from, as far as they are there.
///
/// # Errors
/// No document with the site; mistakes in them.
pub fn documents_of(plan: &Plan, named: &[PathBuf]) -> Result<Documents, CommandError> {
    if !named.is_empty() {
        return documents::load_sites(named);
    }
    let recorded: Vec<PathBuf> =
        plan.inputs.iter().map(|input| PathBuf::from(&input.path)).filter(|path| path.exists()).collect();
    if recorded.is_empty() {
        return Err(CommandError::words(
            Exit::Invalid,
            format!(
                "the documents of plan {} are not here, so the way to site {} is unknown",
                plan.id.short(),
                plan.site.name
            ),
        )
        .hint("run it where the documents are, or name the Site with `--documents`"));
    }
    documents::load_sites(&recorded)
}

/// A run as JSON: the exit code, and the state that it comes from.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunJson<'a> {
    exit_code: u8,
    /// None: no run was made.
    run: Option<&'a RunState>,
    /// The process that works on it now, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_work: Option<&'a str>,
}

impl<'a> RunJson<'a> {
    /// Of this state.
    pub fn of(run: &'a RunState) -> Self {
        Self { exit_code: run.exit().code(), run: Some(run), at_work: None }
    }

    /// With the process that works on it now.
    pub fn with_worker(self, at_work: Option<&'a str>) -> Self {
        Self { at_work, ..self }
    }

    /// Of no run, with nothing to do.
    pub fn none() -> Self {
        Self { exit_code: Exit::Done.code(), run: None, at_work: None }
    }
}

/// Proves that the report can be written before anything is done.
///
/// # Errors
/// It cannot.
pub fn check_report(args: &RunArgs) -> Result<(), CommandError> {
    Ok(args.json_into.as_deref().map_or(Ok(()), files::check_writable)?)
}

/// The end of a command that had no run to make; programs get their JSON all the same.
///
/// # Errors
/// The report cannot be written.
pub fn no_run(args: &RunArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let json = serde_json::to_string_pretty(&RunJson::none())? + "\n";
    if args.output == Output::Json {
        ui.data(&json);
    }
    if let Some(file) = &args.json_into {
        files::replace(file, json.as_bytes())?;
    }
    Ok(Exit::Done)
}

/// Works, and answers the first signal at once: the running step may take as long as a reboot.
pub async fn answering<T>(interrupt: &Interrupt, clock: Clock, ui: &Ui, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        biased;
        done = &mut work => return done,
        () = interrupt.first() => {}
    }
    let signal = if interrupt.raised() == Some(Signal::Terminate) { "SIGTERM" } else { "Ctrl-C" };
    let now = words::clock(clock.now());
    ui.talk(format!("{now}  {signal}: the running step ends, then the run stops; once more stops at once"));
    work.await
}

/// Reports the end of a run; the exit code is of the state that is reported.
///
/// # Errors
/// The report cannot be written.
pub fn report(state: &RunState, args: &RunArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let json = serde_json::to_string_pretty(&RunJson::of(state))? + "\n";
    match args.output {
        Output::Json => ui.data(&json),
        Output::Text => {
            let mut paper = Paper::new();
            report::run(&mut paper, state, &NextCommand { options: args.typed(), at_work: None });
            ui.page(&paper);
        }
    }
    if let Some(file) = &args.json_into {
        files::replace(file, json.as_bytes())?;
    }
    Ok(state.exit().into())
}

/// The error of a run that could not begin or go on, with what to do next.
pub fn failed(error: RunError, dir: &StateDir, run: Option<&RunId>, args: &RunArgs) -> CommandError {
    let options = args.typed();
    let (exit, hint) = match &error {
        RunError::Journal { .. } => {
            // The journal is whole up to the line that failed: it says how the hosts stand.
            let left = run
                .and_then(|run| status(dir, run).ok())
                .is_some_and(|state| state.exit().code() == Exit::HostsFailed.code());
            let run = run.map(RunId::as_str).unwrap_or_default();
            let exit = if left { Exit::HostsFailed } else { Exit::Internal };
            (exit, Some(format!("make room for the state directory, then: poolwright resume {run}{options}")))
        }
        RunError::State(state) => (super::error::state_exit(state), super::error::state_hint(state)),
        RunError::Fold(_) => (Exit::Internal, None),
        RunError::Spent { run, open: true, .. } => {
            (Exit::Stale, Some(format!("go on with that run: poolwright resume {run}{options}")))
        }
        RunError::Spent { run, open: false, .. } => {
            (Exit::Stale, Some(format!("see what it did with `poolwright status {run}`, and plan again")))
        }
        RunError::Expired { .. } => {
            (Exit::Stale, Some(format!("plan again: poolwright plan --out plan.json{}", args.world.typed())))
        }
        RunError::OtherSite { .. } => (Exit::Unreachable, Some("check `vcenter.address` in the Site".to_owned())),
        RunError::JournalIsHere { run } => (Exit::Invalid, Some(format!("poolwright resume {run}{options}"))),
        RunError::SeveralRuns { .. } => {
            (Exit::Taken, Some("only one of them can be resumed from its own journal".to_owned()))
        }
        RunError::NotFailed { run, .. } => {
            (Exit::Invalid, Some(format!("see how the hosts stand with `poolwright status {run}`")))
        }
        RunError::Unreachable(_) => (Exit::Unreachable, None),
    };
    let error = CommandError::new(exit, error);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}
