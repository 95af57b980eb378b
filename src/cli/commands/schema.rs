//! `schema`: the JSON Schema of a kind.

use crate::cli::args::SchemaArgs;
use crate::cli::{CommandError, Exit, Ui};
use crate::document::{Kind, envelope, nearest};
use crate::sim::document::WorldSpec;
use crate::{inventory, profile};

pub fn run(args: &SchemaArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let known = Kind::ALL.map(Kind::as_str);
    let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.as_str().eq_ignore_ascii_case(&args.kind)) else {
        let near = nearest(&args.kind, known).map(|near| format!("nearest: {near}; ")).unwrap_or_default();
        return Err(CommandError::words(Exit::Invalid, format!("there is no kind `{}`", args.kind))
            .hint(format!("{near}kinds are {}", known.join(", "))));
    };
    ui.json(&match kind {
        Kind::GpuPool => profile::schema(),
        Kind::Site => inventory::schema(),
        Kind::World => envelope::<WorldSpec>(Kind::World, "A simulated fleet."),
    })?;
    Ok(Exit::Done)
}
