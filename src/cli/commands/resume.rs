//! `resume`: on with a run, from its journal or from the live markers.

use crate::cli::args::{ResumeArgs, RunArgs};
use crate::cli::commands::apply::read_plan;
use crate::cli::execute::{self, TOOL};
use crate::cli::handoff::{self, Asking};
use crate::cli::session::{Purpose, with_session};
use crate::cli::watch::Watch;
use crate::cli::{CommandError, Exit, Ui};
use crate::model::{HostName, RunId};
use crate::plan::Plan;
use crate::report::quoted;
use crate::rollout::{self, Engine, RunError, RunState, StateDir, status};

pub fn run(args: &ResumeArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let asking = handoff::asking(&args.handoff, &args.args.world, ui);
    if let Some(file) = &args.from_live {
        let plan = read_plan(file)?;
        let dir = StateDir::open(&args.args.state.dir)?;
        return take_up(&plan, &dir, None, &args.args, asking, ui, async |engine| {
            rollout::resume_from_live(engine, &plan).await
        });
    }
    let (dir, run, plan) = find(args.run.as_deref(), &args.args)?;
    let host = |name: &Option<String>| name.as_deref().map(HostName::from);
    take_up(&plan, &dir, Some(&run), &args.args, asking, ui, async |engine| {
        match (host(&args.retry), host(&args.done)) {
            (Some(host), _) => rollout::retry(engine, &run, &host).await,
            (None, Some(host)) => rollout::confirm(engine, &run, &host).await,
            (None, None) => rollout::resume(engine, &run).await,
        }
    })
}

/// Logs in, takes a run up, reports how it ended.
pub fn take_up(
    plan: &Plan,
    dir: &StateDir,
    run: Option<&RunId>,
    args: &RunArgs,
    asking: Asking,
    ui: &Ui,
    work: impl AsyncFnOnce(Engine<'_>) -> Result<RunState, RunError>,
) -> Result<Exit, CommandError> {
    execute::check_report(args)?;
    execute::propose(plan, args, ui);
    let documents = execute::documents_of(plan, &args.documents)?;
    let site = documents.site(Some(&plan.site.name))?;
    let reached = dir.reach(&plan.id)?;
    let mut began = false;
    let state = with_session(site, args.world.file(), Purpose::Changing, ui, async |session| {
        began = true;
        execute::keep_reach(plan, dir, ui);
        let mut watch = Watch::new(ui, session.clock, asking);
        let holder = execute::holder();
        let engine = Engine {
            fleet: &session.fleet,
            clock: session.clock,
            state: dir,
            sink: &mut watch,
            interrupt: session.interrupt.clone(),
            handoff: handoff::open(asking),
            tool: TOOL,
            holder: &holder,
        };
        execute::answering(&session.interrupt, session.clock, ui, work(engine))
            .await
            .map_err(|error| execute::failed(error, dir, run))
    });
    let state = state.map_err(|error| match reached.and_then(|reached| Some((reached.world?, reached.dir))) {
        Some((world, here)) if !began && args.world.file().is_none() => error.hint(format!(
            "its fleet is a simulated one: give `--world {}`, as the command in {here} did that worked on it last",
            quoted(&world)
        )),
        _ => error,
    })?;
    execute::report(&state, plan, args, ui)
}

/// The run that is meant, with its plan: the one that is named, or the only unfinished one.
pub fn find(run: Option<&str>, args: &RunArgs) -> Result<(StateDir, RunId, Plan), CommandError> {
    let path = &args.state.dir;
    if !path.exists() {
        return Err(CommandError::words(Exit::Invalid, format!("there is no state directory {}", path.display()))
            .hint("name it with `--state DIR`; if it is lost, go on with the plan that was applied: `poolwright resume --from-live plan.json`"));
    }
    let dir = StateDir::open(path)?;
    let run = match run {
        Some(run) => RunId(run.to_owned()),
        None => only_unfinished(&dir)?,
    };
    let plan = match status(&dir, &run) {
        Ok(state) => state.plan,
        // Spent, and not a line was written.
        Err(error) => match dir.plan_of(&run)? {
            Some(plan) => plan,
            None => return Err(execute::failed(error, &dir, Some(&run))),
        },
    };
    let plan = dir.plan(&plan)?;
    Ok((dir, run, plan))
}

fn only_unfinished(dir: &StateDir) -> Result<RunId, CommandError> {
    let mut unfinished = Vec::new();
    for run in dir.runs()? {
        // One that cannot be read is not finished either: it is named below, or found alone.
        if status(dir, &run).map_or(true, |state| state.exit() != rollout::Exit::Done) {
            unfinished.push(run);
        }
    }
    match unfinished.as_slice() {
        [run] => Ok(run.clone()),
        [] => {
            Err(CommandError::words(Exit::Invalid, format!("there is no unfinished run in {}", dir.path().display()))
                .hint("`poolwright status` shows the runs"))
        }
        several => {
            let names: Vec<&str> = several.iter().map(RunId::as_str).collect();
            Err(CommandError::words(Exit::Invalid, format!("several runs are unfinished: {}", names.join(", ")))
                .hint(format!("say which; `poolwright status {}` shows how it stands", names[names.len() - 1])))
        }
    }
}
