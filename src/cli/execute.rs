//! What `apply`, `resume` and `abort` share: the documents of a plan, and the end of a run.

use std::path::PathBuf;

use serde::Serialize;

use super::args::{Output, RunArgs};
use super::documents::{self, Documents};
use super::{CommandError, Exit, Ui};
use crate::base::clock::Clock;
use crate::base::files;
use crate::model::{Rule, RunId, Severity};
use crate::plan::{Plan, Reason};
use crate::report::{self, Again, Handover, words};
use crate::rollout::{Interrupt, Reach, RunError, RunState, Signal, StateDir, status};

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
        documents::recorded(plan).map(|input| PathBuf::from(&input.path)).filter(|path| path.exists()).collect();
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
    /// The run, if it is one that ended before its first line.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_begun: Option<&'a RunId>,
    /// The process that works on it now, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_work: Option<&'a str>,
    /// What a person has to bring to its end, host by host.
    handover: Vec<Handover>,
}

impl<'a> RunJson<'a> {
    /// Of this state; `at_work` is the process that works on the run now.
    pub fn of(run: &'a RunState, plan: Option<&Plan>, at_work: Option<&'a str>) -> Self {
        let handover = report::handovers(run, plan, at_work.is_some());
        Self { exit_code: run.exit().code(), run: Some(run), not_begun: None, at_work, handover }
    }

    /// Of no run.
    pub fn none(exit: Exit) -> Self {
        Self { exit_code: exit.code(), run: None, not_begun: None, at_work: None, handover: Vec::new() }
    }

    /// Of a run without a line: its hosts wait. `at_work` is the process that works on it now.
    pub fn not_begun(run: &'a RunId, at_work: Option<&'a str>) -> Self {
        Self { not_begun: Some(run), at_work, ..Self::none(Exit::Halted) }
    }
}

/// Proves that the report can be written before anything is done.
///
/// # Errors
/// It cannot.
pub fn check_report(args: &RunArgs) -> Result<(), CommandError> {
    Ok(args.json_into.as_deref().map_or(Ok(()), files::check_writable)?)
}

/// How a plan ends of which nothing is done: by what it leaves (FORMATS "Exit code").
pub fn undone(plan: &Plan) -> Exit {
    let marked = |id: &str| id == Rule::HOST_MARKED.id;
    if plan.hosts.is_empty() && plan.not_acted.iter().all(|host| host.reason == Reason::Converged) {
        Exit::Done
    } else if plan.findings.iter().any(|finding| finding.severity == Severity::Error && marked(&finding.id.0)) {
        Exit::Taken
    } else {
        Exit::Halted
    }
}

/// The end of a command that had no run to make; programs get their JSON all the same.
///
/// # Errors
/// The report cannot be written.
pub fn no_run(exit: Exit, args: &RunArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let json = serde_json::to_string_pretty(&RunJson::none(exit))? + "\n";
    if args.output == Output::Json {
        ui.data(&json);
    }
    if let Some(file) = &args.json_into {
        files::replace(file, json.as_bytes())?;
    }
    Ok(exit)
}

/// Proposes commands from now on for what a saved plan reaches: its documents and its site, where
/// those that a command finds by itself are others.
pub fn propose(plan: &Plan, args: &RunArgs, ui: &Ui) {
    let mut again = ui.again();
    if args.documents.is_empty() && !documents::recorded(plan).all(|input| documents::is_default(&input.path)) {
        again.documents = documents::recorded(plan).map(|input| input.path.clone()).collect();
    }
    let paths: Vec<PathBuf> = again.documents.iter().map(PathBuf::from).collect();
    let alone = documents::read(&paths, None).is_ok_and(|documents| documents.site(None).is_ok());
    if !alone {
        again.site = Some(plan.site.name.clone());
    }
    ui.propose(again);
}

/// Keeps how the runs of a plan are reached, for `status`, before there is one.
pub fn keep_reach(plan: &Plan, dir: &StateDir, ui: &Ui) {
    let Again { documents, site, world, .. } = ui.again();
    let here = std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned();
    if let Err(error) = dir.keep_reach(&plan.id, &Reach { dir: here, documents, site, world }) {
        // The run itself needs the folder more, and will say what is wrong with it.
        tracing::warn!(%error, "status will not know how the run was reached");
    }
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
pub fn report(state: &RunState, plan: &Plan, args: &RunArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let json = serde_json::to_string_pretty(&RunJson::of(state, Some(plan), None))? + "\n";
    match args.output {
        Output::Json => ui.data(&json),
        Output::Text => {
            let mut paper = ui.paper();
            report::run(&mut paper, state, Some(plan), &ui.again(), None);
            ui.page(&paper);
        }
    }
    if let Some(file) = &args.json_into {
        files::replace(file, json.as_bytes())?;
    }
    Ok(state.exit().into())
}

/// The error of a run that could not begin or go on, with what to do next.
pub fn failed(error: RunError, dir: &StateDir, run: Option<&RunId>) -> CommandError {
    let (exit, hint) = match &error {
        RunError::Journal { .. } => {
            // The journal is whole up to the line that failed: it says how the hosts stand.
            let left = run
                .and_then(|run| status(dir, run).ok())
                .is_some_and(|state| state.exit().code() == Exit::HostsFailed.code());
            let run = run.map(|run| format!(" {run}")).unwrap_or_default();
            let exit = if left { Exit::HostsFailed } else { Exit::Internal };
            (exit, Some(format!("make room for the state directory, then go on: `poolwright resume{run}`")))
        }
        RunError::State(state) => (super::error::state_exit(state), super::error::state_hint(state)),
        RunError::Fold(_) => (Exit::Internal, None),
        RunError::Spent { run, open: true, .. } => {
            (Exit::Stale, Some(format!("go on with that run: `poolwright resume {run}`")))
        }
        RunError::Spent { run, open: false, .. } => (
            Exit::Stale,
            Some(format!("see what it did: `poolwright status {run}`; plan again: `poolwright plan --out plan.json`")),
        ),
        RunError::UnderWay { .. } => {
            (Exit::Taken, Some("take it up where its hosts are: `poolwright resume --from-live plan.json`".to_owned()))
        }
        RunError::Expired { .. } => (Exit::Stale, Some("plan again: `poolwright plan --out plan.json`".to_owned())),
        RunError::OtherSite { .. } => (Exit::Unreachable, Some("check `vcenter.address` in the Site".to_owned())),
        RunError::JournalIsHere { run } => (Exit::Invalid, Some(format!("go on from it: `poolwright resume {run}`"))),
        RunError::SeveralRuns { .. } => {
            (Exit::Taken, Some("only one of them can be resumed from its own journal".to_owned()))
        }
        RunError::NotFailed { run, .. } | RunError::NotAwaited { run, .. } => {
            (Exit::Invalid, Some(format!("see how the hosts stand: `poolwright status {run}`")))
        }
        RunError::Unreachable(_) => (Exit::Unreachable, None),
    };
    let error = CommandError::new(exit, error);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}
