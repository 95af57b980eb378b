//! `catalog`, `catalog MODEL` and `catalog fit`.

use crate::catalog::{Beside, Combination, FitMode, Model, catalog};
use crate::cli::args::{CatalogArgs, CatalogCommand, FitArgs, FitModeArg, Output};
use crate::cli::{CommandError, Exit, Ui};
use crate::document::nearest_few;
use crate::report;

pub fn run(args: &CatalogArgs, ui: &Ui) -> Result<Exit, CommandError> {
    if let Some(CatalogCommand::Fit(args)) = &args.command {
        return fit(args, ui);
    }
    let mut paper = ui.paper();
    match (&args.model, args.output) {
        (None, Output::Json) => ui.json(&catalog().models())?,
        (None, Output::Text) => {
            report::catalog::models(&mut paper, catalog());
            ui.page(&paper);
        }
        (Some(id), Output::Json) => ui.json(model(id)?)?,
        (Some(id), Output::Text) => {
            report::catalog::model(&mut paper, model(id)?);
            ui.page(&paper);
        }
    }
    Ok(Exit::Done)
}

fn model(id: &str) -> Result<&'static Model, CommandError> {
    catalog().model(id).ok_or_else(|| {
        let near = nearest_few(id, catalog().models().iter().map(|model| model.id.as_str()), 3);
        let error = CommandError::words(Exit::Invalid, format!("there is no model `{id}`"));
        match near.as_slice() {
            [] => error.hint("`poolwright catalog` lists all models"),
            near => error.hint(format!("nearest: {}; `poolwright catalog` lists all", near.join(", "))),
        }
    })
}

fn fit(args: &FitArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let model = model(&args.model)?;
    let mode = match args.mode {
        FitModeArg::Same => FitMode::Same,
        FitModeArg::Mixed => FitMode::Mixed,
        FitModeArg::MigVgpu => FitMode::MigVgpu,
    };
    let mut want = Combination::new();
    for text in &args.types {
        let (name, count) = type_and_count(text)?;
        let total: &mut u32 = want.entry(name).or_default();
        *total = total.saturating_add(count);
    }
    let beside: Vec<Beside> = args
        .beside
        .iter()
        .map(|text| {
            text.parse().map_err(|error| {
                CommandError::new(Exit::Invalid, anyhow::Error::new(error)).hint(
                    "as `nvidia_h100l-47c=2` or `2g.24gb@2`; `catalog MODEL` shows names; `--beside` takes all words up to the next option",
                )
            })
        })
        .collect::<Result<_, _>>()?;
    let answer = catalog().fit(model, mode, &want, &beside);
    if args.output == Output::Json {
        ui.json(&answer)?;
    } else {
        let mut paper = ui.paper();
        report::catalog::fit(&mut paper, &answer);
        ui.page(&paper);
    }
    Ok(Exit::Done)
}

fn type_and_count(text: &str) -> Result<(String, u32), CommandError> {
    let parsed = text.rsplit_once('=').and_then(|(name, count)| Some((name.to_owned(), count.parse().ok()?)));
    parsed.filter(|(name, count)| !name.is_empty() && !name.contains('=') && *count > 0).ok_or_else(|| {
        CommandError::words(Exit::Invalid, format!("`{text}` is not TYPE=N"))
            .hint("a type and how many of it, as `nvidia_h100l-47c=2`")
    })
}
