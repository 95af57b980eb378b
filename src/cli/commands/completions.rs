//! `completions`: what a shell needs to complete our commands.

use clap::CommandFactory;

use crate::cli::args::{Cli, CompletionsArgs};
use crate::cli::{CommandError, Exit, Ui};

pub fn run(args: &CompletionsArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "poolwright", &mut script);
    ui.data(&String::from_utf8_lossy(&script));
    Ok(Exit::Done)
}
