//! `plan`: what applying the profiles would change.

use crate::base::files;
use crate::cli::args::{Output, PlanArgs, typed};
use crate::cli::planning::make_plan;
use crate::cli::{CommandError, Exit, Ui, documents, session};
use crate::plan::{Plan, Reason};
use crate::report;

pub fn run(args: &PlanArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let documents = documents::load(&args.documents.paths)?;
    let site = documents.site(args.site.as_deref())?;
    let plan = session::with_session(site, args.world.file(), session::Purpose::Reading, ui, async |session| {
        make_plan(session, &documents, site, ui).await
    })?;
    let bytes = plan.to_bytes();
    for file in [&args.out, &args.json_into].into_iter().flatten() {
        files::replace(file, &bytes)?;
    }
    match args.output {
        Output::Json => ui.data(&String::from_utf8_lossy(&bytes)),
        Output::Text => {
            let mut paper = ui.paper();
            report::plan(&mut paper, &plan, &ui.again());
            ui.page(&paper);
        }
    }
    if let Some(out) = args.out.as_ref().filter(|_| !plan.hosts.is_empty()) {
        ui.hint(&format!("to do this and nothing else: `poolwright apply {}`", typed(out)));
    }
    Ok(exit(&plan, args.detailed_exitcode))
}

/// F16: 2 only when it is asked for, and then whenever any host is not as its profile wants it. Three
/// refused hosts and no change must not look like nothing to do.
fn exit(plan: &Plan, detailed: bool) -> Exit {
    let converged = plan.hosts.is_empty() && plan.not_acted.iter().all(|host| host.reason == Reason::Converged);
    if detailed && !converged { Exit::Changes } else { Exit::Done }
}
