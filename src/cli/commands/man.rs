//! `man`: the manual page of a command, from the same text as its `--help`.

use clap::CommandFactory;
use clap_mangen::Man;

use crate::cli::args::{Cli, ManArgs};
use crate::cli::{CommandError, Exit, Ui};
use crate::document::nearest;

pub fn run(args: &ManArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let mut program = Cli::command();
    // Gives each command below its full name, `poolwright-plan`.
    program.build();
    let mut command = &program;
    for name in &args.command {
        let below = command.get_subcommands().map(clap::Command::get_name);
        let near = nearest(name, below).map(|near| format!("did you mean `{near}`?"));
        command = command.find_subcommand(name).ok_or_else(|| {
            let hint = near.unwrap_or_else(|| "`poolwright --help` lists the commands".to_owned());
            CommandError::words(Exit::Invalid, format!("there is no command `{name}`")).hint(hint)
        })?;
    }
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page).map_err(|error| CommandError::new(Exit::Internal, error))?;
    ui.data(&String::from_utf8_lossy(&page));
    Ok(Exit::Done)
}
