//! `status`: runs from the state directory.

use crate::cli::args::{Output, StatusArgs};
use crate::cli::execute::RunJson;
use crate::cli::{CommandError, Exit, Ui};
use crate::model::RunId;
use crate::report::{self, NextCommand, Paper, Table, Text, Tone, words};
use crate::rollout::{RunState, StateDir, fold};

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
    let state = state_of(&dir, &wanted)?;
    let at_work = dir.worked_on(&wanted)?;
    if args.output == Output::Json {
        ui.json(&RunJson::of(&state).with_worker(at_work.as_deref()))?;
        return Ok(Exit::Done);
    }
    let mut paper = Paper::new();
    report::run(&mut paper, &state, &NextCommand { options: args.state.typed(), at_work });
    if args.run.is_none() && !runs.is_empty() {
        earlier(&mut paper, &dir, &runs);
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
        Output::Json => ui.json(&RunJson::none())?,
        Output::Text => ui.talk(words),
    }
    Ok(Exit::Done)
}

fn earlier(paper: &mut Paper, dir: &StateDir, runs: &[RunId]) {
    paper.heading("Earlier runs");
    let mut table = Table::new(&["run", "plan", "begun", "summary"]);
    for run in runs.iter().rev() {
        let name = Text::from(run.as_str());
        // A journal that cannot be read must not hide the others.
        match state_of(dir, run) {
            Ok(state) => {
                let begun = Text::from(words::time(state.started));
                table.row([name, Text::from(state.plan.short()), begun, report::run_summary(&state)]);
            }
            Err(error) => {
                table.row([name, Text::default(), Text::default(), Text::toned(Tone::Bad, error.summary())]);
            }
        }
    }
    paper.table(2, &table);
}

/// The state of a run, from its journal.
pub fn state_of(dir: &StateDir, run: &RunId) -> Result<RunState, CommandError> {
    let entries = dir.entries(run)?;
    fold(&entries).map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("the journal of run {run} cannot be understood"));
        CommandError::new(Exit::Internal, error)
    })
}
