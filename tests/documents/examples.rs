//! The shipped examples are right, and say what their comments say.

use std::path::Path;

use poolwright::model::Severity;
use poolwright::profile::{self, Loaded};
use poolwright::sim::document::WorldSpec;

use super::{TODAY, problems, shown};

fn shipped() -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["profiles", "inventories"] {
        let mut paths: Vec<_> =
            std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            assert!(name.ends_with(".yaml"), "{name}");
            files.push((name, std::fs::read(&path).unwrap()));
        }
    }
    files
}

/// Documents, with the shipped templates that they name filled in.
fn loaded(files: &[(String, Vec<u8>)]) -> Loaded {
    let mut loaded = profile::load(files);
    let read = |path: &str| std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let templates: Vec<_> = loaded.templates().into_iter().map(|path| (path.to_owned(), Ok(read(path)))).collect();
    loaded.fill(&templates);
    loaded
}

#[test]
fn every_example_is_valid() {
    let loaded = loaded(&shipped());
    assert!(loaded.problems.is_empty(), "{}", problems(&loaded.problems));
    assert!(loaded.pools.len() >= 3 && !loaded.sites.is_empty());
    assert!(!loaded.worlds.is_empty());
    for world in &loaded.worlds {
        let read = world.parse::<WorldSpec>();
        assert!(read.is_ok(), "{}", problems(&read.unwrap_err()));
    }
    let findings = profile::check(&loaded, Some(TODAY));
    let bad: Vec<String> =
        findings.iter().filter(|f| f.severity > Severity::Info).map(|finding| shown(&loaded, finding)).collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// With what is commented out in it: deeper than prose, behind a line `#` alone.
fn uncommented(bytes: Vec<u8>) -> String {
    let text = String::from_utf8(bytes).unwrap();
    let mut out = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        let bare = line.trim_start();
        let indent = &line[..line.len() - bare.len()];
        match bare.strip_prefix('#') {
            Some("") => in_block = true,
            Some(rest) if in_block => out.push(format!("{indent}{}", rest.strip_prefix(' ').unwrap_or(rest))),
            Some(_) => {}
            None => {
                in_block = false;
                out.push(line.to_owned());
            }
        }
    }
    out.join("\n")
}

#[test]
fn what_the_comments_offer_is_valid_too() {
    for (path, bytes) in shipped().into_iter().filter(|(path, _)| path.starts_with("profiles")) {
        // The first group of a100-pcie.yaml is what the block replaces.
        let text = uncommented(bytes).replacen(
            "    - mode: {passthrough: {label: a100-train}}\n    - select",
            "    - select",
            1,
        );
        let mut files: Vec<(String, Vec<u8>)> = vec![(path.clone(), text.clone().into_bytes())];
        let site = shipped().into_iter().filter(|(path, _)| path == "inventories/lab.yaml");
        files.extend(site.map(|(path, bytes)| (path, uncommented(bytes).into_bytes())));
        let loaded = loaded(&files);
        let guests = ["profiles/h100-nvl.yaml", "profiles/h100-serve.yaml"].contains(&path.as_str());
        assert_eq!(loaded.templates().is_empty(), !guests, "{path}");
        assert!(loaded.problems.is_empty(), "{}\n{text}", problems(&loaded.problems));
        let findings = profile::check(&loaded, Some(TODAY));
        let bad: Vec<String> =
            findings.iter().filter(|f| f.severity > Severity::Info).map(|finding| shown(&loaded, finding)).collect();
        assert!(bad.is_empty(), "{}\n{text}", bad.join("\n"));
    }
}
