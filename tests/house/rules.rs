//! Rules beside the law of imports.

use syn::Item;

use super::source::{Named, module_of, read};

/// Longest file, in lines: what a reader still keeps in mind.
const LONGEST: usize = 600;

/// A crate that belongs to some files.
struct Belongs {
    /// A crate.
    krate: &'static str,
    /// Path prefixes of files.
    to: &'static [&'static str],
    because: &'static str,
}

const BELONGS: &[Belongs] = &[
    Belongs { krate: "serde_saphyr", to: &["src/document/"], because: "document/ is the user of YAML" },
    Belongs { krate: "backoff", to: &["src/base/retry.rs"], because: "there is one retry policy" },
    Belongs { krate: "anyhow", to: &["src/cli/", "src/main.rs"], because: "modules have typed errors" },
    Belongs { krate: "clap", to: &["src/cli/"], because: "arguments are the command line's" },
    Belongs { krate: "reqwest", to: &["src/base/"], because: "base::net is the network" },
];

/// Folders whose output must be the same every time.
const ORDERED: &[&str] = &["src/plan/", "src/report/"];

const PRINTS: &[&str] = &["print", "println", "eprint", "eprintln", "dbg"];
const UNDONE: &[&str] = &["todo", "unimplemented"];

/// What in a file of `src/` breaks a rule, one line each.
pub fn check(path: &str, text: &str) -> Vec<String> {
    let source = match read(path, text) {
        Ok(source) => source,
        Err(error) => return vec![error],
    };
    let mut broken = Vec::new();
    for (name, line) in &source.macros {
        if PRINTS.contains(&name.as_str()) && path != "src/cli/ui.rs" {
            broken.push(format!("{path}:{line}: {name}! belongs to cli/ui.rs"));
        }
        if UNDONE.contains(&name.as_str()) {
            broken.push(format!("{path}:{line}: {name}! is a stub"));
        }
    }
    for named in &source.named {
        for rule in BELONGS {
            let uses = !named.inside && named.path.first().is_some_and(|first| first == rule.krate);
            if uses && !rule.to.iter().any(|to| path.starts_with(to)) {
                broken.push(format!("{path}:{}: {}: {}", named.line, named.path.join("::"), rule.because));
            }
        }
        if ORDERED.iter().any(|folder| path.starts_with(folder)) && (has(named, "HashMap") || has(named, "HashSet")) {
            broken.push(format!("{path}:{}: {}: its order is not ours", named.line, named.path.join("::")));
        }
    }
    broken
}

fn has(named: &Named, name: &str) -> bool {
    named.path.iter().any(|part| part == name)
}

/// A file that is too long.
pub fn too_long(path: &str, text: &str) -> Option<String> {
    let lines = text.lines().count();
    (lines > LONGEST).then(|| format!("{path}: {lines} lines, {LONGEST} at most"))
}

/// The page of a folder: documentation first, then only `mod` and `use` lines. A page of tests may
/// hold tests.
pub fn page(path: &str, text: &str, bare: bool) -> Vec<String> {
    let Ok(file) = syn::parse_file(text) else { return vec![format!("{path}: does not parse")] };
    let mut broken = Vec::new();
    if !text.starts_with("//!") {
        broken.push(format!("{path}: begins without its documentation (`//!`)"));
    }
    let module = module_of(path);
    let doc: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
    let words: usize = doc.iter().map(|line| line.trim_start_matches("//!").split_whitespace().count()).sum();
    if bare && words < 10 {
        broken.push(format!("{path}: says in {words} words what {} is for", module.join("::")));
    }
    for item in &file.items {
        let line = match item {
            Item::Mod(module) if module.content.is_none() => continue,
            Item::Use(_) => continue,
            _ if !bare => continue,
            other => {
                use syn::spanned::Spanned as _;
                other.span().start().line
            }
        };
        broken.push(format!("{path}:{line}: holds more than `mod` and `use` lines"));
    }
    broken
}
