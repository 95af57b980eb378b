//! Documents from files: found, read, checked.

use std::path::{Path, PathBuf};

use jiff::civil::Date;
use sha2::{Digest, Sha256};

use super::{CommandError, Exit};
use crate::base::files::{self, FileError};
use crate::document::{Document, MAX_BYTES, Problem, nearest};
use crate::inventory::Site;
use crate::model::{At, Finding, Place, Severity};
use crate::plan::{Input, Plan};
use crate::profile::{self, GpuPool, Loaded};
use crate::sim::document::WorldSpec;

/// Where documents are if nothing is said.
const DEFAULTS: [&str; 2] = ["profiles", "inventories"];

/// Whether a file is found if nothing is said.
pub fn is_default(path: &str) -> bool {
    DEFAULTS.iter().any(|default| Path::new(path).starts_with(default))
}

/// Folders within folders; a link that leads back into itself ends here.
const DEEPEST: usize = 16;

/// Documents, and the files they stand in.
#[derive(Debug)]
pub struct Documents {
    /// The documents.
    pub loaded: Loaded,
    /// What they mean together, without any live system.
    pub findings: Vec<Finding>,
    /// Digests of the files, in the order in which they were read.
    files: Vec<Input>,
    /// Those of the templates that the pools name.
    templates: Vec<Input>,
}

/// The documents of these files and folders, or of the default ones, without a mistake in them.
///
/// # Errors
/// Everything that is wrong with them, with its place.
pub fn load(paths: &[PathBuf]) -> Result<Documents, CommandError> {
    // Acceptances are held against the time of the plan, by the planner.
    let documents = read(paths, None)?;
    if documents.are_wrong() { Err(documents.mistakes()) } else { Ok(documents) }
}

/// The documents of these files and folders, for their sites: what the pools say was approved with a
/// plan, and may be gone.
///
/// # Errors
/// Mistakes of form.
pub fn load_sites(paths: &[PathBuf]) -> Result<Documents, CommandError> {
    let mut documents = read(paths, None)?;
    documents.findings.clear();
    if documents.are_wrong() { Err(documents.mistakes()) } else { Ok(documents) }
}

/// The documents of these files and folders, or of the default ones, with their mistakes. `today`
/// (UTC) is for the expiry of acceptances.
///
/// # Errors
/// A path that cannot be read, or no document at all.
pub fn read(paths: &[PathBuf], today: Option<Date>) -> Result<Documents, CommandError> {
    let mut found = Vec::new();
    if paths.is_empty() {
        for default in DEFAULTS.map(Path::new).into_iter().filter(|default| default.is_dir()) {
            walk(default, 0, &mut found)?;
        }
    }
    for path in paths {
        if path.is_dir() {
            walk(path, 0, &mut found)?;
        } else {
            found.push(path.clone());
        }
    }
    if found.is_empty() {
        let looked: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let looked = if paths.is_empty() { DEFAULTS.join(" and ") } else { looked.join(" and ") };
        return Err(CommandError::words(Exit::Invalid, format!("there are no documents in {looked}"))
            .hint("name files, or folders with *.yaml files; `poolwright demo` writes a set to look at"));
    }
    let mut contents: Vec<(String, Vec<u8>)> = Vec::new();
    let mut too_long = Vec::new();
    for path in found {
        let name = path.display().to_string();
        if contents.iter().any(|(known, _)| *known == name) {
            continue;
        }
        match files::read_bytes(&path, MAX_BYTES as u64) {
            Ok(bytes) => contents.push((name, bytes)),
            Err(FileError::TooLong { limit, .. }) => too_long.push(Problem {
                place: Place { file: name.as_str().into(), line: 0, column: 0 },
                message: format!("the file is longer than {} MiB", limit >> 20),
                snippet: None,
                hint: "split it; a document of this size is usually another kind of file".to_owned(),
            }),
            Err(error) => return Err(error.into()),
        }
    }
    let mut loaded = profile::load(&contents);
    loaded.problems.extend(too_long);
    let templates = templates(&loaded);
    loaded.fill(&templates);
    let worlds = loaded.worlds.iter().filter_map(|world| world.parse::<WorldSpec>().err());
    let wrong: Vec<Problem> = worlds.flatten().collect();
    loaded.problems.extend(wrong);
    loaded.problems.sort_by(|one, other| one.place.cmp(&other.place));
    let findings = profile::check(&loaded, today);
    let digest = |(path, bytes): (String, Vec<u8>)| Input {
        path,
        sha256: Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    let read = templates.into_iter().filter_map(|(path, bytes)| Some((path, bytes.ok()?)));
    let templates = read.map(digest).collect();
    Ok(Documents { loaded, findings, files: contents.into_iter().map(digest).collect(), templates })
}

/// The templates that the pools name, with their bytes, or why there are none.
fn templates(loaded: &Loaded) -> Vec<(String, Result<Vec<u8>, String>)> {
    let read = |path: &str| {
        files::read_bytes(Path::new(path), MAX_BYTES as u64).map_err(|error| {
            let mut words = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                words = format!("{words}: {cause}");
                source = cause.source();
            }
            words
        })
    };
    loaded.templates().into_iter().map(|path| (path.to_owned(), read(path))).collect()
}

/// The documents that a plan was made from: its inputs without the templates, which stand in it filled in.
pub fn recorded(plan: &Plan) -> impl Iterator<Item = &Input> {
    let guests = || plan.desired.pools.iter().flat_map(|pool| &pool.guests);
    let is_template = move |path: &str| guests().flat_map(|guest| &guest.validate).any(|job| job.file.value == path);
    plan.inputs.iter().filter(move |input| !is_template(&input.path))
}

fn walk(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), CommandError> {
    for path in files::list(dir)? {
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        if path.is_dir() && !hidden && depth < DEEPEST {
            walk(&path, depth + 1, found)?;
        } else if yaml && !hidden && path.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

impl Documents {
    /// Whether there is a mistake: then nothing is planned.
    pub fn are_wrong(&self) -> bool {
        !self.loaded.problems.is_empty() || self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// The mistakes, as the end of a command.
    pub fn mistakes(mut self) -> CommandError {
        let findings = std::mem::take(&mut self.findings);
        self.wrong(findings)
    }

    /// These findings about the documents, with the source lines, as the end of a command.
    pub fn wrong(&self, findings: Vec<Finding>) -> CommandError {
        let with_line = |finding: Finding| {
            let snippet = finding.place.as_ref().and_then(|place| self.loaded.snippet(place));
            (finding, snippet)
        };
        CommandError::documents(self.loaded.problems.clone(), findings.into_iter().map(with_line).collect())
    }

    /// How many documents of each kind could be read: pools, sites, worlds.
    pub fn counts(&self) -> [usize; 3] {
        [self.loaded.pools.len(), self.loaded.sites.len(), self.loaded.worlds.len()]
    }

    /// The site of this name, or the only one.
    ///
    /// # Errors
    /// No site, several and none named, or none of that name.
    pub fn site(&self, name: Option<&str>) -> Result<&Document<Site>, CommandError> {
        let sites = self.loaded.sites.as_slice();
        let names: Vec<&str> = sites.iter().map(|site| site.name.value.as_str()).collect();
        let error = |words: String| CommandError::words(Exit::Invalid, words);
        match (name, sites) {
            (None, [site]) => Ok(site),
            (None, []) => Err(error("the documents have no Site, so there is no vCenter to ask".to_owned())
                .hint("`poolwright schema Site` shows its fields, README.md an example")),
            (None, [first, ..]) => Err(error(format!("the documents have several sites: {}", names.join(", ")))
                .hint(format!("say which, as `--site {}`", first.name.value))),
            (Some(name), sites) => sites.iter().find(|site| site.name.value == name).ok_or_else(|| {
                let error = error(format!("the documents have no site `{name}`"));
                match nearest(name, names.iter().copied()) {
                    Some(near) => error.hint(format!("nearest: `{near}`")),
                    None => error,
                }
            }),
        }
    }

    /// The files that a plan for this site is made from: its own, and those of its pools with their
    /// templates.
    pub fn inputs(&self, site: &At<String>) -> Vec<Input> {
        let mut files: Vec<&str> = self.pools_of(site).map(|pool| &*pool.name.place.file).collect();
        files.push(&site.place.file);
        let of_pools = self.pools_of(site).flat_map(|pool| &pool.spec.guests).flat_map(|guest| &guest.validate);
        let named: Vec<&str> = of_pools.map(|one| one.template.file.as_str()).collect();
        let documents = self.files.iter().filter(|input| files.contains(&input.path.as_str()));
        documents.chain(self.templates.iter().filter(|input| named.contains(&input.path.as_str()))).cloned().collect()
    }

    fn pools_of<'a>(&'a self, site: &'a At<String>) -> impl Iterator<Item = &'a Document<GpuPool>> {
        self.loaded.pools.iter().filter(move |pool| pool.spec.hosts.site.value == site.value)
    }
}
