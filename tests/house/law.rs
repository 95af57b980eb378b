//! Who may import whom.

use super::source::{Source, module_of, read};

/// What a module may import.
enum May {
    /// Anything of another module.
    All(&'static str),
    /// Of a path only these names.
    Only(&'static [&'static str], &'static [&'static str]),
}

use May::{All, Only};

/// Of `rollout`, what a report shows: events, phases, state and hand-over, never the engine.
const SHOWN: &[&str] = &[
    "Compensation",
    "Entry",
    "Event",
    "FailureClass",
    "Header",
    "How",
    "Outcome",
    "Resumed",
    "RunOutcome",
    "SeenFacts",
    "Signal",
    "Held",
    "LeftAs",
    "Stage",
    "StepKind",
    "HostPhase",
    "IllegalEvent",
    "HostState",
    "RunState",
    "Running",
    "Blocked",
    "Recordoned",
    "ClosedNode",
    "WhyClosed",
    "Stood",
    "Waiting",
    "FoldError",
    "fold",
    "Exit",
];

/// Of `vim25`, what the simulator may share: trees and names. What encodes our requests must not
/// read them on the other side, or one mistake would cancel the other out.
const TREES: &[&str] =
    &["Attribute", "Limits", "Namespace", "Node", "TypeName", "XmlError", "names", "document", "envelope"];

/// The floors, lowest first. A module may import itself and what stands here.
const LAW: &[(&str, &[May])] = &[
    ("base", &[]),
    ("model", &[]),
    ("document", &[All("model")]),
    ("inventory", &[All("model"), All("document")]),
    ("catalog", &[All("model"), All("document")]),
    ("profile", &[All("model"), All("document"), All("catalog"), All("inventory")]),
    ("vim25", &[All("model"), All("base")]),
    ("shell", &[All("model"), All("base")]),
    ("k8s", &[All("model"), All("base")]),
    ("observe", &[All("model"), All("inventory"), All("vim25"), All("shell"), All("k8s"), All("base")]),
    ("plan", &[All("model"), All("catalog")]),
    ("rollout", &[All("model"), All("plan"), All("observe"), All("vim25"), All("shell"), All("k8s"), All("base")]),
    ("report", &[All("model"), All("catalog"), All("plan"), Only(&["rollout"], SHOWN)]),
    ("sim", &[All("model"), All("base"), All("document"), All("catalog"), Only(&["vim25", "wire"], TREES)]),
    (
        "cli",
        &[
            All("base"),
            All("model"),
            All("document"),
            All("inventory"),
            All("catalog"),
            All("profile"),
            All("vim25"),
            All("shell"),
            All("k8s"),
            All("observe"),
            All("plan"),
            All("rollout"),
            All("report"),
            All("sim"),
        ],
    ),
];

impl May {
    fn lets(&self, path: &[String]) -> bool {
        match self {
            All(module) => path.first().is_some_and(|first| first == module),
            Only(before, names) => {
                path.len() > before.len()
                    && path.iter().zip(*before).all(|(part, before)| part == before)
                    && names.contains(&path[before.len()].as_str())
            }
        }
    }
}

/// What in a file of `src/` breaks the law, one line each.
pub fn check(path: &str, text: &str) -> Vec<String> {
    let source = match read(path, text) {
        Ok(source) => source,
        Err(error) => return vec![error],
    };
    match (path, module_of(path).first()) {
        // The binary calls the library by its name, and of it the command line only.
        ("src/main.rs", _) => binary(&source, path),
        ("src/lib.rs", _) | (_, None) => library(path, text),
        (_, Some(module)) => module_law(&source, path, module),
    }
}

fn module_law(source: &Source, path: &str, module: &str) -> Vec<String> {
    let Some((_, may)) = LAW.iter().find(|(name, _)| name == &module) else {
        return vec![format!("{path}: module {module} has no line in the law")];
    };
    let mut broken: Vec<String> =
        source.lost.iter().map(|line| format!("{path}:{line}: `super` climbs above the root of the crate")).collect();
    for named in &source.named {
        let shown = || named.path.join("::");
        if !named.inside {
            if named.path.first().is_some_and(|first| first == "poolwright") {
                broken.push(format!("{path}:{}: {}: the library calls itself `crate`", named.line, shown()));
            }
            continue;
        }
        match named.path.first().map(String::as_str) {
            Some("*") | None => {
                broken.push(format!("{path}:{}: the root of the crate is imported whole", named.line));
            }
            Some(first) if first == module => {}
            Some(first) => {
                // Only modules stand at the root, so a name that is none (a macro of std by
                // `$crate`, a test's own item) is not an import between them.
                if LAW.iter().any(|(name, _)| *name == first) && !may.iter().any(|may| may.lets(&named.path)) {
                    broken.push(format!("{path}:{}: {module} may not import {}", named.line, shown()));
                }
            }
        }
    }
    broken
}

fn binary(source: &Source, path: &str) -> Vec<String> {
    let ours = source.named.iter().filter(|named| named.path.first().is_some_and(|first| first == "poolwright"));
    ours.filter(|named| named.path.get(1).is_none_or(|module| module != "cli"))
        .map(|named| format!("{path}:{}: the binary uses only `poolwright::cli`", named.line))
        .collect()
}

/// `lib.rs` declares the modules and holds nothing.
fn library(path: &str, text: &str) -> Vec<String> {
    let Ok(file) = syn::parse_file(text) else { return vec![format!("{path}: does not parse")] };
    file.items
        .iter()
        .filter(|item| !matches!(item, syn::Item::Mod(module) if module.content.is_none()))
        .map(|_| format!("{path}: holds something beside `mod` lines"))
        .collect()
}
