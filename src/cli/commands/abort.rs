//! `abort`: what is not changed yet is given back.

use crate::cli::args::AbortArgs;
use crate::cli::commands::resume::{find, take_up};
use crate::cli::handoff::Asking;
use crate::cli::{CommandError, Exit, Ui};
use crate::model::HostName;
use crate::rollout;

pub fn run(args: &AbortArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let (dir, run, plan) = find(args.run.as_deref(), &args.args)?;
    let host = args.give_up.as_deref().map(HostName::from);
    take_up(&plan, &dir, Some(&run), &args.args, Asking::NOBODY, ui, async |engine| match &host {
        Some(host) => rollout::give_up(engine, &run, host).await,
        None => rollout::abort(engine, &run).await,
    })
}
