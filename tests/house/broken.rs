//! Small bad sources: each must be seen, and each good neighbour must pass.

use super::{law, rules};

/// Breaches of the law in a source at a path.
fn law_says(path: &str, text: &str) -> Vec<String> {
    law::check(path, text)
}

fn assert_law(path: &str, good: &str, bad: &str, says: &str) {
    assert_eq!(law_says(path, good), Vec::<String>::new(), "a good source is refused");
    let broken = law_says(path, bad);
    assert!(broken.iter().any(|line| line.contains(says)), "{bad:?} gives {broken:?}, not `{says}`");
}

#[test]
fn imports_upward_and_sideways() {
    assert_law(
        "src/plan/step.rs",
        "use crate::model::{Mode, Fact}; use crate::catalog::catalog; use super::visit::visit;",
        "use crate::rollout::Event;",
        "plan may not import rollout::Event",
    );
    assert_law("src/base/clock.rs", "use std::time::Duration;", "use crate::model::Fact;", "base may not import model");
    assert_law(
        "src/rollout/run.rs",
        "use crate::{plan::Step, observe::Fleet};",
        "use crate::{plan::Step, catalog};",
        "rollout may not import catalog",
    );
    assert_law("src/inventory/site.rs", "", "use crate::profile::GpuPool;", "inventory may not import profile");
}

#[test]
fn a_path_in_code_is_an_import_too() {
    assert_law(
        "src/model/gpu.rs",
        "fn f() -> crate::model::Mode { super::Mode::MigVgpu }",
        "fn f() { crate::document::nearest(\"\", []); }",
        "model may not import document",
    );
    assert_law("src/plan/a.rs", "", "fn f(x: &crate::vim25::Client) {}", "plan may not import vim25::Client");
    assert_law("src/plan/a.rs", "", "impl crate::observe::Watch for X {}", "plan may not import observe");
}

#[test]
fn climbing_is_followed() {
    assert_law(
        "src/catalog/fit/mig.rs",
        "use super::super::types::Model; use super::query::Fit;",
        "use super::super::super::plan::Plan;",
        "catalog may not import plan::Plan",
    );
    assert_law("src/catalog/mod.rs", "use self::fit::fit;", "use super::plan::Plan;", "catalog may not import plan");
    assert_law("src/model/a.rs", "", "use super::super::super::x;", "climbs above the root");
    // Inside a module of the file, one `super` more.
    assert_law(
        "src/model/a.rs",
        "mod tests { use super::super::Fact; }",
        "mod tests { use super::super::super::plan::Plan; }",
        "model may not import plan",
    );
}

#[test]
fn tests_obey_the_law() {
    assert_law(
        "src/plan/a.rs",
        "#[cfg(test)] mod tests { use super::*; use crate::model::Fact; }",
        "#[cfg(test)] mod tests { use crate::sim::World; }",
        "plan may not import sim",
    );
}

#[test]
fn macros_and_attributes_are_looked_into() {
    assert_law(
        "src/model/a.rs",
        "fn f() { assert_eq!(crate::model::X, 1, \"crate::plan\"); }",
        "fn f() { assert_eq!(vec![crate::plan::X], y); }",
        "model may not import plan::X",
    );
    assert_law(
        "src/model/a.rs",
        "macro_rules! m { () => { $crate::model::X } }",
        "macro_rules! m { () => { use $crate::{report::{a, b}}; } }",
        "model may not import report::a",
    );
    assert_law(
        "src/model/a.rs",
        "/// See [`crate::plan`].\n#[serde(with = \"crate::model::at\")] struct A;",
        "struct A { #[serde(default, with = \"crate::plan::at\")] a: u8 }",
        "model may not import plan::at",
    );
}

#[test]
fn the_root_is_not_imported_whole() {
    assert_law("src/model/a.rs", "use super::*;", "use crate::*;", "imported whole");
    assert_law("src/model/mod.rs", "use self::a::*;", "use super::*;", "imported whole");
    assert_law("src/plan/a.rs", "", "use crate as root;", "imported whole");
}

#[test]
fn some_neighbours_share_only_some_names() {
    assert_law(
        "src/report/run.rs",
        "use crate::rollout::{Event, fold, StepKind};",
        "use crate::rollout::{Event, apply};",
        "report may not import rollout::apply",
    );
    assert_law(
        "src/sim/soap/a.rs",
        "use crate::vim25::wire::{Node, names::METHOD};",
        "use crate::vim25::wire::calls::PropertySet;",
        "sim may not import vim25::wire::calls",
    );
    assert_law("src/sim/a.rs", "", "use crate::vim25::wire;", "sim may not import vim25::wire");
    assert_law("src/sim/a.rs", "", "use crate::vim25::Client;", "sim may not import vim25::Client");
    assert_law("src/sim/a.rs", "", "use crate::vim25::wire::*;", "sim may not import vim25::wire::*");
}

#[test]
fn the_crate_has_one_name_inside_and_one_outside() {
    assert_law("src/plan/a.rs", "", "use poolwright::model::Fact;", "the library calls itself `crate`");
    assert_law("src/plan/a.rs", "", "fn f() { ::poolwright::model::f(); }", "the library calls itself `crate`");
    assert_law(
        "src/main.rs",
        "fn main() -> std::process::ExitCode { poolwright::cli::main() }",
        "use poolwright::plan::Plan;",
        "only `poolwright::cli`",
    );
    assert_law("src/lib.rs", "//! Doc\npub mod plan;", "pub mod plan; pub use plan::Plan;", "beside `mod` lines");
}

#[test]
fn an_unknown_module_has_no_rights() {
    assert_eq!(law_says("src/vcenter/a.rs", "").len(), 1);
}

fn assert_rule(path: &str, good: &str, bad: &str, says: &str) {
    assert_eq!(rules::check(path, good), Vec::<String>::new(), "a good source is refused");
    let broken = rules::check(path, bad);
    assert!(broken.iter().any(|line| line.contains(says)), "{bad:?} gives {broken:?}, not `{says}`");
}

#[test]
fn calls_that_belong_to_one_place() {
    let print = "fn f() { println!(\"{}\", 1); }";
    assert_rule("src/cli/ui.rs", print, "fn f() { todo!() }", "is a stub");
    assert_rule("src/cli/run.rs", "fn f() { format!(\"println!\"); }", print, "belongs to cli/ui.rs");
    assert_rule("src/plan/a.rs", "", "fn f() { vec![{ dbg!(1) }]; }", "belongs to cli/ui.rs");
    assert_rule("src/document/a.rs", "use serde_saphyr::Error;", "fn f() { unimplemented!() }", "is a stub");
    assert_rule("src/profile/a.rs", "", "use serde_saphyr::Error;", "user of YAML");
    assert_rule("src/base/retry.rs", "use backoff::Clock;", "use anyhow::Result;", "typed errors");
    assert_rule("src/vim25/a.rs", "", "fn f() -> backoff::Error<()> {}", "one retry policy");
    assert_rule("src/cli/run.rs", "use anyhow::Result; use clap::Parser;", "use reqwest::Client;", "the network");
}

#[test]
fn plans_and_reports_have_an_order() {
    let map = "use std::collections::HashMap;";
    assert_rule("src/plan/a.rs", "use std::collections::BTreeMap;", map, "its order is not ours");
    assert_rule("src/vim25/a.rs", map, "fn f() { println!() }", "belongs");
    assert_rule("src/report/a.rs", "", "fn f() { m!(std::collections::HashMap::new()) }", "its order is not ours");
    assert_rule("src/report/a.rs", "", "use std::collections::{BTreeMap, HashSet};", "its order is not ours");
}

#[test]
fn long_files_and_bare_pages() {
    assert_eq!(rules::too_long("a.rs", &"x\n".repeat(600)), None);
    assert!(rules::too_long("a.rs", &"x\n".repeat(601)).is_some());
    let doc = "//! What this folder is for, what it does not know, and so on.\n";
    assert_eq!(rules::page("src/a/mod.rs", &format!("{doc}mod b;\npub use b::C;\n"), true), Vec::<String>::new());
    for (text, says) in [
        ("mod b;\n".to_owned(), "begins without"),
        ("//! a\nmod b;\n".to_owned(), "says in 1 words"),
        (format!("{doc}fn f() {{}}\n"), "holds more"),
        (format!("{doc}mod b {{ }}\n"), "holds more"),
        (format!("{doc}const A: u8 = 1;\n"), "holds more"),
        (format!("{doc}macro_rules! a {{ () => {{}} }}\n"), "holds more"),
    ] {
        let broken = rules::page("src/a/mod.rs", &text, true);
        assert!(broken.iter().any(|line| line.contains(says)), "{text:?} gives {broken:?}");
    }
}
