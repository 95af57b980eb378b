//! `apply`: a saved plan, or plan, show and ask.

use std::path::Path;

use sha2::{Digest, Sha256};

use crate::base::files::{self, FileError};
use crate::catalog;
use crate::cli::args::{ApplyArgs, Output};
use crate::cli::execute::{self, TOOL};
use crate::cli::planning::make_plan;
use crate::cli::session::{Purpose, Session, with_session};
use crate::cli::watch::Watch;
use crate::cli::{CommandError, Exit, Ui, documents, handoff};
use crate::plan::{Plan, PlanFileError};
use crate::report::{self, Paper, words};
use crate::rollout::{self, Engine, StateDir};

/// A plan of ten thousand hosts has some tens of megabytes.
const PLAN_LIMIT: u64 = 1 << 30;

pub fn run(args: &ApplyArgs, ui: &Ui) -> Result<Exit, CommandError> {
    match &args.plan {
        Some(file) => apply_saved(file, args, ui),
        None => plan_and_apply(args, ui),
    }
}

fn apply_saved(file: &Path, args: &ApplyArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let plan = read_plan(file)?;
    execute::propose(&plan, &args.run, ui);
    same_documents(&plan, ui)?;
    if plan.hosts.is_empty() {
        ui.talk(report::summary(&plan));
        let exit = execute::undone(&plan);
        if exit != Exit::Done {
            ui.hint("each host has its reason in the plan; plan again to see how they stand: `poolwright plan`");
        }
        return execute::no_run(exit, &args.run, ui);
    }
    execute::check_report(&args.run)?;
    let documents = execute::documents_of(&plan, &args.run.documents)?;
    let site = documents.site(Some(&plan.site.name))?;
    let dir = StateDir::open(&args.run.state.dir)?;
    let state = with_session(site, args.run.world.file(), Purpose::Changing, ui, async |session| {
        execute_plan(session, &dir, &plan, args, ui).await
    })?;
    execute::report(&state, &plan, &args.run, ui)
}

fn plan_and_apply(args: &ApplyArgs, ui: &Ui) -> Result<Exit, CommandError> {
    if !args.yes && !ui.interactive {
        return Err(CommandError::words(Exit::Invalid, "nobody is there to approve the plan: this is no terminal")
            .hint("save a plan, have it approved, and apply it: `poolwright plan --out plan.json`, `poolwright apply plan.json`")
            .hint("or approve it unseen with `poolwright apply --yes`"));
    }
    execute::check_report(&args.run)?;
    let documents = documents::load(&args.run.documents)?;
    let site = documents.site(args.site.as_deref())?;
    let dir = StateDir::open(&args.run.state.dir)?;
    let done = with_session(site, args.run.world.file(), Purpose::Changing, ui, async |session| {
        let plan = make_plan(session, &documents, site, ui).await?;
        ui.idle();
        let show = |mut paper: Paper, print: fn(&Ui, &Paper)| {
            report::plan(&mut paper, &plan, &ui.again());
            print(ui, &paper);
        };
        match args.run.output {
            Output::Text => show(ui.paper(), Ui::page),
            // stdout is for the JSON of the report.
            Output::Json => show(ui.talk_paper(), Ui::talk_page),
        }
        if plan.hosts.is_empty() {
            return Ok(Err(execute::undone(&plan)));
        }
        let question = format!("Apply this plan to {}?", words::count(plan.hosts.len(), "host"));
        if !args.yes && !session.confirm(ui, &question).await? {
            ui.talk("nothing was changed");
            return Ok(Err(execute::undone(&plan)));
        }
        execute_plan(session, &dir, &plan, args, ui).await.map(|state| Ok((state, plan)))
    })?;
    match done {
        Ok((state, plan)) => execute::report(&state, &plan, &args.run, ui),
        Err(exit) => execute::no_run(exit, &args.run, ui),
    }
}

async fn execute_plan(
    session: &Session,
    dir: &StateDir,
    plan: &Plan,
    args: &ApplyArgs,
    ui: &Ui,
) -> Result<rollout::RunState, CommandError> {
    execute::keep_reach(plan, dir, ui);
    let asking = handoff::asking(&args.handoff, &args.run.world, ui);
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
    execute::answering(&session.interrupt, session.clock, ui, rollout::apply(engine, plan)).await.map_err(|error| {
        let run = dir.spent(&plan.id).ok().flatten().map(|spent| spent.run);
        execute::failed(error, dir, run.as_ref())
    })
}

/// Reads a saved plan and proves that it is what was approved.
pub fn read_plan(file: &Path) -> Result<Plan, CommandError> {
    let bytes = files::read_bytes(file, PLAN_LIMIT)?;
    let plan = Plan::from_bytes(&bytes).map_err(|error| {
        let exit = match &error {
            PlanFileError::Json(_) | PlanFileError::Id { .. } => Exit::Invalid,
            PlanFileError::Schema { .. } | PlanFileError::Catalog { .. } => Exit::Stale,
        };
        let error = anyhow::Error::new(error).context(format!("cannot use {} as a plan", file.display()));
        CommandError::new(exit, error).hint("make it again: `poolwright plan --out plan.json`")
    })?;
    if plan.catalog != catalog::digest() {
        return Err(CommandError::words(
            Exit::Stale,
            format!("plan {} was made with another catalogue", plan.id.short()),
        )
        .hint("make it again with this version: `poolwright plan --out plan.json`"));
    }
    Ok(plan)
}

/// The documents that the plan was made from must be those that are here: else what was approved is
/// not what git says any more. Documents that are not here cannot be compared, and that is said.
fn same_documents(plan: &Plan, ui: &Ui) -> Result<(), CommandError> {
    let mut differing = Vec::new();
    for input in &plan.inputs {
        match files::read_bytes(Path::new(&input.path), crate::document::MAX_BYTES as u64) {
            Ok(bytes) => {
                let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
                if digest != input.sha256 {
                    differing.push(input.path.as_str());
                }
            }
            Err(error) if error.is_missing() => {
                ui.note(&format!("{} is not here, so it was not compared with the plan", input.path))
            }
            Err(FileError::TooLong { .. }) => differing.push(&input.path),
            Err(error) => return Err(error.into()),
        }
    }
    if differing.is_empty() {
        return Ok(());
    }
    let error =
        format!("the documents are not those that plan {} was made from: {}", plan.id.short(), differing.join(", "));
    Err(CommandError::words(Exit::Stale, error)
        .hint("plan again, and see what that changes: `poolwright plan --out plan.json`"))
}
