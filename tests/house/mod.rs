//! The rules of the house, enforced on the sources: who may import whom, how long a file may be, what
//! a folder's page looks like, and which calls belong to one file.
//!
//! ```text
//!   src/**/*.rs ──source──► items, paths with their lines ──┬─► law    the table of floors
//!                                                           └─► rules  everything else
//!   broken: small bad sources, each of which must be seen
//! ```

mod broken;
mod law;
mod rules;
mod source;

use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files below a folder of the repository, with their path from its root.
fn rust_files(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn assert_none(broken: Vec<String>) {
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

#[test]
fn floors_import_only_from_below() {
    let files = rust_files("src");
    assert!(files.len() > 50, "only {} sources were found", files.len());
    assert_none(files.iter().flat_map(|(path, text)| law::check(path, text)).collect());
}

#[test]
fn every_source_keeps_the_rules() {
    assert_none(rust_files("src").iter().flat_map(|(path, text)| rules::check(path, text)).collect());
}

#[test]
fn no_file_is_longer_than_600_lines() {
    let files = ["src", "tests", "benches"].into_iter().flat_map(rust_files);
    assert_none(files.filter_map(|(path, text)| rules::too_long(&path, &text)).collect());
}

#[test]
fn every_folder_has_its_page() {
    let mut broken = Vec::new();
    for folder in ["src", "tests"] {
        let files = rust_files(folder);
        let folders: std::collections::BTreeSet<&str> = files
            .iter()
            .filter_map(|(path, _)| Some(path.rsplit_once('/')?.0))
            .filter(|path| *path != folder)
            .collect();
        for inner in folders {
            match files.iter().find(|(path, _)| *path == format!("{inner}/mod.rs")) {
                // A folder of tests beside a file of the same name needs no page of its own.
                None if files.iter().any(|(path, _)| *path == format!("{inner}.rs")) => {}
                None => broken.push(format!("{inner} has no mod.rs")),
                Some((path, text)) => broken.extend(rules::page(path, text, folder == "src")),
            }
        }
    }
    assert_none(broken);
}
