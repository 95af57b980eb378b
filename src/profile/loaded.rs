//! Files to documents.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::document::{self, Document, Kind, Problem, RawDocument, Snippet, Source};
use crate::inventory::{self, Site};
use crate::model::Place;

use super::pool::GpuPool;

/// The documents of some files.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Pools that could be read.
    pub pools: Vec<Document<GpuPool>>,
    /// Sites that could be read.
    pub sites: Vec<Document<Site>>,
    /// Names of sites that could not be read: a mistake in them is told once, and not by their pools.
    pub broken_sites: Vec<String>,
    /// Worlds: their frames only, since the simulator reads the rest.
    pub worlds: Vec<RawDocument>,
    /// What is wrong with the form of the files, in the order of files and lines.
    pub problems: Vec<Problem>,
    sources: Vec<Arc<Source>>,
}

impl Loaded {
    /// The source line of a place in one of the files, for a finding, with the word there marked.
    pub fn snippet(&self, place: &Place) -> Option<Snippet> {
        self.sources.iter().find(|source| *source.file() == place.file)?.snippet_of_word(place)
    }
}

/// Reads files: each its path, as the user gave it, and its bytes. Does no I/O. A file that a pool names as a template
/// is no document, though it lies among them: what is wrong with it as one is not told.
pub fn load(files: &[(String, Vec<u8>)]) -> Loaded {
    let mut loaded = Loaded::default();
    for (path, bytes) in files {
        let (documents, problems) = document::read(path, bytes);
        loaded.problems.extend(problems);
        loaded.sources.extend(documents.first().map(|document| document.source().clone()));
        for document in documents {
            let problems = match document.kind.value {
                Kind::GpuPool => {
                    let (pool, problems) = document.read();
                    loaded.pools.extend(pool);
                    problems
                }
                Kind::Site => match inventory::read(&document) {
                    Ok(site) => {
                        loaded.sites.push(site);
                        Vec::new()
                    }
                    Err(problems) => {
                        loaded.broken_sites.push(document.name.value);
                        problems
                    }
                },
                Kind::World => {
                    loaded.worlds.push(document);
                    Vec::new()
                }
            };
            loaded.problems.extend(problems);
        }
    }
    let templates: Vec<String> = loaded.templates().into_iter().map(str::to_owned).collect();
    let is_template = |file: &str| templates.iter().any(|named| is_same_path(named, file));
    loaded.problems.retain(|problem| !is_template(&problem.place.file));
    loaded.problems.sort_by(|a, b| a.place.cmp(&b.place));
    loaded
}

/// Whether two paths name one file, as far as their words tell: `./a/b` is `a/b`.
fn is_same_path(one: &str, other: &str) -> bool {
    let plain = |path| Path::new(path).components().filter(|part| *part != Component::CurDir).collect::<PathBuf>();
    plain(one) == plain(other)
}
