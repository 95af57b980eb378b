//! `status`: runs from the state directory.

use std::path::Path;

use crate::cli::args::{Output, StatusArgs};
use crate::cli::execute::RunJson;
use crate::cli::{CommandError, Exit, Ui};
use crate::model::{PlanId, RunId};
use crate::report::{self, Again, Paper, Table, Text, Tone, words};
use crate::rollout::{self, RunState, StateDir, StateError, fold};

pub fn run(args: &StatusArgs, ui: &Ui) -> Result<Exit, CommandError> {
    if !args.state.dir.exists() {
        let words = format!("no run was made here: there is no state directory {}", args.state.dir.display());
        return no_run(args, ui, &words);
    }
    let dir = StateDir::open(&args.state.dir)?;
    let mut runs = dir.runs()?;
    let wanted = match &args.run {
        Some(run) => RunId(run.clone()),
        None => match runs.pop() {
            Some(latest) => latest,
            None => return no_run(args, ui, "no run was made here"),
        },
    };
    runs.retain(|run| *run != wanted);
    let at_work = dir.worked_on(&wanted)?;
    let Some(state) = state_of(&dir, &wanted)? else {
        return not_begun(&dir, &wanted, at_work.as_deref(), args, ui);
    };
    // It gives names to what is handed over; without it the card has ids.
    let plan =
        dir.plan(&state.plan).inspect_err(|error| tracing::warn!(%error, "the plan of the run cannot be read")).ok();
    if args.output == Output::Json {
        ui.json(&RunJson::of(&state, plan.as_ref(), at_work.as_deref()))?;
        return Ok(Exit::Done);
    }
    let mut paper = ui.paper();
    let again = again(&dir, &state.plan, args, ui)?;
    report::run(&mut paper, &state, plan.as_ref(), &again, at_work.as_deref());
    if args.run.is_none() && !runs.is_empty() {
        earlier(&mut paper, &dir, &runs, &ui.again());
    }
    ui.page(&paper);
    Ok(Exit::Done)
}

/// What proposed commands need: the run is reached as by the command that worked on it last.
fn again(dir: &StateDir, plan: &PlanId, args: &StatusArgs, ui: &Ui) -> Result<Again, CommandError> {
    let Some(reach) = dir.reach(plan)? else { return Ok(ui.again()) };
    let mut again = Again { documents: reach.documents, site: reach.site, world: reach.world, ..ui.again() };
    // The paths, and those in the documents, are relative to where that command was typed.
    if std::env::current_dir().is_ok_and(|here| here != Path::new(&reach.dir)) {
        again.dir = Some(reach.dir);
        again.state = std::path::absolute(&args.state.dir).ok().map(|state| state.to_string_lossy().into_owned());
    }
    Ok(again)
}

/// A run whose process ended before the first line of the journal.
fn not_begun(
    dir: &StateDir,
    run: &RunId,
    at_work: Option<&str>,
    args: &StatusArgs,
    ui: &Ui,
) -> Result<Exit, CommandError> {
    let plan = dir.plan_of(run)?;
    if args.output == Output::Json {
        ui.json(&RunJson::not_begun(run, at_work))?;
        return Ok(Exit::Done);
    }
    let mut paper = ui.paper();
    let of = plan.as_ref().map(|plan| format!(" of plan {}", plan.short())).unwrap_or_default();
    paper.say(0, Text::toned(Tone::Strong, format!("Run {run}")).and(Tone::Plain, format!("{of}: not begun")));
    paper.blank();
    paper.say(0, "Its journal has no line, and each line is written before what it tells: no host was touched.");
    paper.heading("Next");
    let again = plan.as_ref().map_or_else(|| Ok(ui.again()), |plan| again(dir, plan, args, ui))?;
    match (at_work, plan) {
        (Some(who), _) => paper.say(2, format!("wait: {who} works on it")),
        (None, Some(_)) => {
            paper.say(2, "begin it (its plan is spent, and cannot be applied by another run):");
            paper.line(4, again.line(&format!("resume {run}")));
        }
        (None, None) => {
            paper.say(2, "nothing says what it was to do: remove its folder, and plan again:");
            paper.line(4, again.line("plan --out plan.json"));
        }
    }
    ui.page(&paper);
    Ok(Exit::Done)
}

/// There is nothing to show; who names a run asks for more than that.
fn no_run(args: &StatusArgs, ui: &Ui, words: &str) -> Result<Exit, CommandError> {
    if args.run.is_some() {
        return Err(
            CommandError::words(Exit::Invalid, words.to_owned()).hint("name the state directory with `--state DIR`")
        );
    }
    match args.output {
        Output::Json => ui.json(&RunJson::none(Exit::Done))?,
        Output::Text => ui.talk(words),
    }
    Ok(Exit::Done)
}

fn earlier(paper: &mut Paper, dir: &StateDir, runs: &[RunId], again: &Again) {
    paper.heading("Earlier runs");
    let mut table = Table::new(&["run", "plan", "begun", "summary"]);
    let mut unfinished = None;
    for run in runs.iter().rev() {
        let name = Text::from(run.as_str());
        // A journal that cannot be read must not hide the others.
        match state_of(dir, run) {
            Ok(Some(state)) => {
                if state.exit() != rollout::Exit::Done {
                    unfinished.get_or_insert(run);
                }
                let begun = Text::from(words::time(state.started));
                table.row([name, Text::from(state.plan.short()), begun, report::run_summary(&state)]);
            }
            Ok(None) => table.row([name, Text::default(), Text::default(), Text::from("not begun")]),
            Err(error) => {
                table.row([name, Text::default(), Text::default(), Text::toned(Tone::Bad, error.summary())]);
            }
        }
    }
    paper.table(2, &table);
    if let Some(run) = unfinished {
        paper.say(2, "how one stands, and what to do next:");
        paper.line(4, again.line(&format!("status {run}")));
    }
}

/// The state of a run, from its journal; none if that has no line yet.
fn state_of(dir: &StateDir, run: &RunId) -> Result<Option<RunState>, CommandError> {
    let entries = match dir.entries(run) {
        // The plan is spent by a run of which there is nothing more.
        Err(StateError::NoSuchRun { .. }) if dir.runs()?.contains(run) || dir.plan_of(run)?.is_some() => Vec::new(),
        entries => entries?,
    };
    if entries.is_empty() {
        return Ok(None);
    }
    fold(&entries).map(Some).map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("the journal of run {run} cannot be understood"));
        CommandError::new(Exit::Internal, error)
    })
}
