//! Documents as people write them: good, bad and strange.

mod bad_input;
mod checks;
mod examples;
mod guests;
mod roundtrip;
mod schemas;
mod selectors;

use jiff::civil::{Date, date};
use poolwright::document::Problem;
use poolwright::model::Finding;
use poolwright::profile::{self, Loaded};

/// The day of these tests.
pub const TODAY: Date = date(2026, 11, 30);

/// A site that the tests' pools belong to.
pub const SITE: &str = "\
apiVersion: poolwright/v1
kind: Site
metadata: {name: lab}
spec:
  vcenter: {address: vc.lab, credentials: {user: pw@vsphere.local, password: env:VC_PASSWORD}}
";

/// A pool: `lines` replace those of the same key, at the same depth.
pub fn pool(name: &str, lines: &[&str]) -> String {
    let mut spec: Vec<String> = [
        "  hosts: {site: lab, cluster: gpu-a, names: [\"*\"]}",
        "  gpuModel: h100-nvl-94",
        "  gpuCount: 4",
        "  gpus: [{mode: {passthrough: {}}}]",
        "  rollout: {maxUnavailable: 1, maxReboots: 2}",
    ]
    .map(str::to_owned)
    .to_vec();
    for line in lines {
        let line = format!("  {line}");
        let key = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
        match spec.iter_mut().find(|known| key(known) == key(&line)) {
            Some(known) => *known = line,
            None => spec.push(line),
        }
    }
    format!("apiVersion: poolwright/v1\nkind: GpuPool\nmetadata: {{name: {name}}}\nspec:\n{}\n", spec.join("\n"))
}

pub fn load(files: &[(&str, &str)]) -> Loaded {
    let files: Vec<(String, Vec<u8>)> =
        files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect();
    profile::load(&files)
}

/// Loads documents that have the right form.
pub fn good(files: &[(&str, &str)]) -> Loaded {
    let loaded = load(files);
    assert!(loaded.problems.is_empty(), "{}", problems(&loaded.problems));
    loaded
}

/// Findings of these pools, with a site.
pub fn findings(pools: &[String]) -> Vec<Finding> {
    let names: Vec<String> = (1..=pools.len()).map(|n| format!("p{n}.yaml")).collect();
    let mut files: Vec<(&str, &str)> = vec![("site.yaml", SITE)];
    files.extend(names.iter().zip(pools).map(|(name, text)| (name.as_str(), text.as_str())));
    profile::check(&good(&files), Some(TODAY))
}

pub fn problems(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("{problem}\n")).collect::<Vec<_>>().join("\n")
}

/// A finding as text, as `validate` would show it.
pub fn shown(loaded: &Loaded, finding: &Finding) -> String {
    use std::fmt::Write;
    let Finding { id, severity, place, message, evidence, hint, .. } = finding;
    let mut text = String::new();
    if let Some(place) = place {
        write!(text, "{place}: ").unwrap();
    }
    writeln!(text, "{severity} {id}: {message}").unwrap();
    if let Some(snippet) = place.as_ref().and_then(|place| loaded.snippet(place)) {
        writeln!(text, "{snippet}").unwrap();
    }
    for line in evidence {
        writeln!(text, "  {line}").unwrap();
    }
    if let Some(hint) = hint {
        writeln!(text, "hint: {hint}").unwrap();
    }
    text
}

/// Everything that is wrong with some files.
pub fn validate(files: &[(&str, &str)]) -> String {
    let loaded = load(files);
    let findings = profile::check(&loaded, Some(TODAY));
    let mut text = problems(&loaded.problems);
    for finding in &findings {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&shown(&loaded, finding));
    }
    text
}
