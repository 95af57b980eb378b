//! `discover`: the fleet as it is.

use crate::base::files;
use crate::cli::args::{DiscoverArgs, Output};
use crate::cli::{CommandError, Exit, Ui, documents, session};
use crate::report::{self, words};

pub fn run(args: &DiscoverArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let documents = documents::load(&args.documents.paths)?;
    let site = documents.site(args.site.as_deref())?;
    let observed = session::with_session(site, args.world.file(), session::Purpose::Reading, ui, async |session| {
        ui.busy("reading the names of clusters and hosts");
        let roster = session.read(session.fleet.roster()).await??;
        ui.busy(format!("reading {}", words::count(roster.hosts.len(), "host")));
        let mut observed = session.read(session.fleet.facts_and_nodes(&roster.hosts)).await?;
        observed.notes.extend(roster.notes);
        Ok(observed)
    })?;
    let json = || serde_json::to_string_pretty(&observed).map(|text| text + "\n");
    if let Some(file) = &args.json_into {
        files::replace(file, json()?.as_bytes())?;
    }
    match args.output {
        Output::Json => ui.data(&json()?),
        Output::Text => {
            let mut paper = ui.paper();
            report::fleet(&mut paper, &observed);
            ui.page(&paper);
        }
    }
    Ok(Exit::Done)
}
