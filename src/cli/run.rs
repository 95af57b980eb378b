//! From the arguments to the exit code.

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use super::args::{Cli, Command};
use super::commands;
use super::{CommandError, Exit, Ui};
use crate::base::logging;

/// Runs the program.
pub fn main() -> ExitCode {
    let ui = Ui::from_environment();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            // clap chooses the stream; nobody can be told when it fails.
            let _ = error.print();
            return if help { Exit::Done } else { Exit::Invalid }.into();
        }
    };
    let exit = match run(cli, &ui) {
        Ok(exit) => exit,
        Err(error) => {
            ui.idle();
            error.print(&ui);
            error.exit()
        }
    };
    match ui.finish() {
        None => exit.into(),
        Some(error) => {
            let error = anyhow::Error::new(error).context("cannot write to standard output");
            CommandError::new(Exit::Internal, error).print(&ui);
            // A run that left hosts must not look like a full disk.
            if exit == Exit::Done { Exit::Internal.into() } else { exit.into() }
        }
    }
}

/// Runs one command line.
pub fn run(cli: Cli, ui: &Ui) -> Result<Exit, CommandError> {
    logging::start(cli.verbose, ui.log_filter().as_deref(), ui.log_colour())
        .map_err(|error| CommandError::new(Exit::Invalid, error).hint("see POOLWRIGHT_LOG in `poolwright --help`"))?;
    ui.propose(cli.command.again());
    match cli.command {
        Command::Validate(args) => commands::validate::run(&args, ui),
        Command::Schema(args) => commands::schema::run(&args, ui),
        Command::Catalog(args) => commands::catalog::run(&args, ui),
        Command::Discover(args) => commands::discover::run(&args, ui),
        Command::Plan(args) => commands::plan::run(&args, ui),
        Command::Status(args) => commands::status::run(&args, ui),
        Command::Sim(args) => commands::sim::run(&args, ui),
        Command::Apply(args) => commands::apply::run(&args, ui),
        Command::Resume(args) => commands::resume::run(&args, ui),
        Command::Abort(args) => commands::abort::run(&args, ui),
        Command::Demo(args) => commands::demo::run(&args, ui),
        Command::Completions(args) => commands::completions::run(&args, ui),
        Command::Man(args) => commands::man::run(&args, ui),
    }
}
