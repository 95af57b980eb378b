//! `validate`: documents, offline.

use jiff::tz::TimeZone;
use serde::Serialize;

use crate::base::clock::Clock;
use crate::cli::args::{Output, ValidateArgs};
use crate::cli::{CommandError, Exit, Ui, documents, error};
use crate::document::Problem;
use crate::model::{Finding, Place};
use crate::report::words;

/// What was found, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Found<'a> {
    problems: Vec<ProblemJson<'a>>,
    findings: &'a [Finding],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProblemJson<'a> {
    place: &'a Place,
    message: &'a str,
    hint: &'a str,
}

impl<'a> From<&'a Problem> for ProblemJson<'a> {
    fn from(problem: &'a Problem) -> Self {
        Self { place: &problem.place, message: &problem.message, hint: &problem.hint }
    }
}

pub fn run(args: &ValidateArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let today = TimeZone::UTC.to_datetime(Clock::system().now()).date();
    let documents = documents::read(&args.documents, Some(today))?;
    if args.output == Output::Json {
        let problems = documents.loaded.problems.iter().map(ProblemJson::from).collect();
        ui.json(&Found { problems, findings: &documents.findings })?;
        return Ok(if documents.are_wrong() { Exit::Invalid } else { Exit::Done });
    }
    if documents.are_wrong() {
        return Err(documents.mistakes());
    }
    for finding in &documents.findings {
        let snippet = finding.place.as_ref().and_then(|place| documents.loaded.snippet(place));
        error::print_finding(ui, finding, snippet.as_ref());
    }
    let [pools, sites, worlds] = documents.counts();
    ui.data(&format!(
        "{}, {}, {}: no mistakes\n",
        words::count(pools, "pool"),
        words::count(sites, "site"),
        words::count(worlds, "world")
    ));
    Ok(Exit::Done)
}
