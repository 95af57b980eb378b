use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::*;
use crate::model::{At, PciAddress};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Sample {
    text: At<String>,
    count: At<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    flag: Option<bool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<At<PciAddress>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    options: BTreeMap<String, At<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<At<Choice>>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum Choice {
    Plain,
    Sized { size: u8 },
    Empty {},
}

fn document(spec: &str) -> String {
    format!("apiVersion: poolwright/v1\nkind: World\nmetadata: {{name: lab}}\nspec:\n{spec}")
}

fn parse(text: &str) -> Result<Sample, Vec<Problem>> {
    let (mut documents, problems) = read("f.yaml", text.as_bytes());
    if !problems.is_empty() {
        return Err(problems);
    }
    assert_eq!(documents.len(), 1);
    documents.remove(0).parse::<Sample>().map(|document| document.spec)
}

fn spec(spec: &str) -> Result<Sample, Vec<Problem>> {
    parse(&document(spec))
}

fn shown(problems: Vec<Problem>) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n")
}

fn mistake(text: &str) -> String {
    shown(spec(text).unwrap_err())
}

#[test]
fn values_have_their_place_in_later_documents_too() {
    let text =
        format!("# c\n---\n{}---\n{}", document("  text: a\n  count: 1\n"), document("  text: 'ü'\n  count: 2\n"));
    let (documents, problems) = read("f.yaml", text.as_bytes());
    assert_eq!(problems, []);
    let second = documents[1].parse::<Sample>().unwrap();
    assert_eq!(second.spec.text.place.to_string(), "f.yaml:14:9");
    assert_eq!(second.spec.count.place.to_string(), "f.yaml:15:10");
    assert_eq!((second.name.value.as_str(), second.name.place.line), ("lab", 12));
}

#[test]
fn columns_count_characters() {
    let sample = spec("  {text: \"東京ü\", count: 7}\n").unwrap();
    assert_eq!((sample.count.place.line, sample.count.place.column), (5, 24));
}

#[test]
fn scalars_keep_their_raw_text() {
    for raw in
        ["1e30", "010", "no", "on", "0x1F", "2026-01-01", ".inf", "1_000", "true", "1.10", "-1", "12:30:45", "+1"]
    {
        let sample = spec(&format!("  text: {raw}\n  count: 1\n  options: {{{raw}: {raw}, \"k\": {raw} }}\n")).unwrap();
        assert_eq!(sample.text.value, raw);
        assert_eq!(sample.options[raw].value, raw);
        assert_eq!(sample.options["k"].value, raw);
    }
    let sample = spec("  text: \"1e30\"\n  count: 1\n  options: {a: 'no', b: |-\n    x\n }\n");
    assert!(sample.is_err());
    let sample = spec("  text: |\n    two\n    lines\n  count: 1\n").unwrap();
    assert_eq!(sample.text.value, "two\nlines\n");
}

#[test]
fn numbers_and_booleans_are_exact() {
    for bad in ["010", "0x1F", "1e3", "1_000", "-1", "4294967296", "1.0", "\"4\"", "", "four", "+4", "[4]", "0o7"] {
        let shown = mistake(&format!("  text: a\n  count: {bad}\n"));
        assert!(shown.contains("a whole number from 0 to 4294967295") && shown.contains("f.yaml:6:"), "{shown}");
    }
    for bad in ["yes", "no", "on", "True", "1", "'true'"] {
        let shown = mistake(&format!("  text: a\n  count: 1\n  flag: {bad}\n"));
        assert!(shown.contains("expected true or false"), "{shown}");
    }
}

#[test]
fn every_unknown_and_duplicate_key_is_told() {
    let shown = mistake(
        "  text: a\n  txet: b\n  text: c\n  count: 1\n  options: {a: x, a: y}\n  mode: {sized: {size: 1, sise: 2}}\n",
    );
    insta::assert_snapshot!(shown);
}

#[test]
fn a_misspelt_key_is_one_problem_not_two() {
    let problems = spec("  text: a\n  cuont: 1\n").unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    let problems = spec("  text: a\n  other: 1\n").unwrap_err();
    assert_eq!(problems.len(), 2, "{problems:?}");
}

#[test]
fn wrong_values_are_told_in_words() {
    let cases = [
        "  text: [a]\n  count: 1\n",
        "  text:\n  count: 1\n",
        "  text: a\n",
        "  - text\n",
        "  text: a\n  count: 1\n  addresses: [\"0000:3b:00.0\", 3b:00.0]\n",
        "  text: a\n  count: 1\n  addresses: 0000:3b:00.0\n",
        "  text: a\n  count: 1\n  mode: {sized: {size: 1}, plain: {}}\n",
        "  text: a\n  count: 1\n  mode: sized\n",
        "  text: a\n  count: 1\n  mode: {plain: 1}\n",
        "  text: a\n  count: 1\n  mode: {sised: {}}\n",
        "  text: a\n  count: 1\n  mode: {sized: {}}\n",
        "  text: a\n  count: 1\n  mode: {sized: {size: 256}}\n",
        "  text: a\n  count: 1\n  mode: {}\n",
        "  text: a\n  count: 1\n  mode:\n",
        "  text: a\n  count: 1\n  mode: {empty: {size: 1}}\n",
    ];
    let shown: Vec<String> = cases.iter().map(|case| mistake(case)).collect();
    insta::assert_snapshot!(shown.join("\n\n"));
}

#[test]
fn frames_are_checked() {
    let cases = [
        "apiVersion: poolwright/v2\nkind: World\nmetadata: {name: a}\nspec: {}\n",
        "apiVersion: poolwright/v1\nkind: Wolrd\nmetadata: {name: a}\nspec: {}\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a b, labels: {}}\nspec: {}\n",
        "kind: World\nmetadata: {name: a}\nspec: {}\n",
        "apiVersion: poolwright/v1\nkind: World\nmetadata: {name: a}\nstatus: {}\n",
        "apiVersion: poolwright/v1\nkind: World\nmetadata: {}\nspec: {}\n",
        "just text\n",
        "- a\n- b\n",
        "",
        "# nothing\n",
    ];
    let shown: Vec<String> = cases.iter().map(|case| shown(parse(case).unwrap_err())).collect();
    insta::assert_snapshot!(shown.join("\n\n"));
}

#[test]
fn a_broken_document_does_not_hide_the_others() {
    let text =
        format!("a: [1\n---\n{}---\nb: \"\n...\n{}", document("  text: a\n  count: 1\n"), document("  cuont: 1\n"));
    let (documents, problems) = read("f.yaml", text.as_bytes());
    assert_eq!((documents.len(), problems.len()), (2, 2), "{problems:?}");
    assert_eq!(problems[1].place.line, 10, "{problems:?}");
    assert!(documents[0].parse::<Sample>().is_ok() && documents[1].parse::<Sample>().is_err());
}

#[test]
fn line_ends_marks_and_tabs() {
    let crlf = document("  text: a\n  count: x\n").replace('\n', "\r\n");
    let shown_crlf = shown(parse(&crlf).unwrap_err());
    assert_eq!(shown_crlf, mistake("  text: a\n  count: x\n"));
    let bom = format!("\u{feff}{}", document("  text: a\n  count: 1\n"));
    assert!(parse(&bom).is_ok());
    let tab = mistake("  text: a\n\tcount: 1\n");
    assert!(tab.contains("f.yaml:6:1") && tab.contains("tab"), "{tab}");
}

#[test]
fn bombs_and_depths_are_refused_with_the_limit() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..10 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    assert!(shown(parse(&bomb).unwrap_err()).contains("alias bomb"));
    let deep = format!("a: {}", "[".repeat(100_000));
    let shown_deep = shown(parse(&deep).unwrap_err());
    assert!(shown_deep.contains("nested deeper than 32 levels"), "{shown_deep}");
    let deep = format!("a:\n{}", (1..100).map(|n| format!("{}b:\n", " ".repeat(n))).collect::<String>());
    let shown_deep = shown(parse(&deep).unwrap_err());
    assert!(shown_deep.contains("nested deeper than 32 levels"), "{shown_deep}");
    assert!(shown(parse("a: {<<: {b: 1}}").unwrap_err()).contains("merge keys"));
    assert!(shown(parse("a: !ruby/object x").unwrap_err()).contains("the tag"));
    assert!(shown(parse("a: *b").unwrap_err()).contains("alias without its anchor"));
}

#[test]
fn an_alias_is_read_where_it_stands() {
    let sample = spec("  text: &t 1e30\n  count: 1\n  options: {a: *t}\n").unwrap();
    assert_eq!(sample.options["a"].value, "1e30");
    assert_eq!((sample.options["a"].place.line, sample.options["a"].place.column), (7, 16));
}

#[test]
fn written_and_read_again_is_equal() {
    let sample = spec("  text: 'no'\n  count: 1\n  flag: true\n  addresses: [0000:3B:00.0]\n  options: {a: 1e3}\n  mode: {sized: {size: 3}}\n").unwrap();
    let text = to_yaml(Kind::World, "lab", &sample).unwrap();
    let again = parse(&text).unwrap();
    assert_eq!(to_yaml(Kind::World, "lab", &again).unwrap(), text);
    assert_eq!((&again.text.value, &again.options["a"].value), (&sample.text.value, &sample.options["a"].value));
}

#[test]
fn null_is_none_and_a_blank_is_a_mistake() {
    for none in ["null", "~"] {
        assert_eq!(spec(&format!("  text: a\n  count: 1\n  flag: {none}\n")).unwrap().flag, None);
        let shown = mistake(&format!("  text: {none}\n  count: 1\n"));
        assert!(shown.contains("expected text, found null") && shown.contains("quote it"), "{shown}");
    }
    assert!(mistake("  text: a\n  count: 1\n  flag:\n").contains("`spec.flag` has no value"));
    assert_eq!(spec("  text: 'null'\n  count: 1\n").unwrap().text.value, "null");
}

#[test]
fn every_wrong_value_is_told_in_one_run() {
    let problems = spec("  text: [a]\n  count: four\n  flag: maybe\n  addresses: [zz, '0000:3b:00.0', yy]\n  mode: {sized: {size: 300}}\n  extra: 1\n")
        .unwrap_err();
    let lines: Vec<(u32, u32)> = problems.iter().map(|problem| (problem.place.line, problem.place.column)).collect();
    assert_eq!(lines, [(5, 9), (6, 10), (7, 9), (8, 15), (8, 35), (9, 24), (10, 3)], "{problems:#?}");
}

#[test]
fn a_value_that_is_wrong_is_not_missing_too() {
    let problems = spec("  text: a\n  count: four\n").unwrap_err();
    let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(messages.len(), 1, "{messages:?}");
    let both = spec("  flag: maybe\n  count: 1\n").unwrap_err();
    assert!(both.iter().any(|problem| problem.message.contains("`text` is missing")), "{both:#?}");
}

#[test]
fn a_long_value_does_not_fill_the_screen() {
    let long = "x".repeat(5000);
    for line in [format!("  text: a\n  count: {long}\n"), format!("  text: a\n  count: 1\n  addresses: [{long}]\n")] {
        let text = mistake(&line);
        assert!(text.len() < 600 && text.contains("xxx…"), "{text}");
    }
}
