//! The JSON Schemas: strict, described, and of one mind with the parser.

use poolwright::{inventory, profile};
use serde_json::Value;

/// Every object schema of a document: its path, its keys.
fn objects<'v>(path: &str, value: &'v Value, found: &mut Vec<(String, &'v Value)>) {
    if let Some(map) = value.as_object() {
        if map.contains_key("properties") {
            found.push((path.to_owned(), value));
        }
        for (key, inner) in map {
            objects(&format!("{path}/{key}"), inner, found);
        }
    } else if let Some(items) = value.as_array() {
        for (n, inner) in items.iter().enumerate() {
            objects(&format!("{path}/{n}"), inner, found);
        }
    }
}

fn each(check: impl Fn(&str, &Value)) {
    for (kind, schema) in [("GpuPool", profile::schema()), ("Site", inventory::schema())] {
        let mut found = Vec::new();
        objects(kind, &schema, &mut found);
        assert!(found.len() > 4, "{kind}");
        for (path, object) in found {
            check(&path, object);
        }
    }
}

#[test]
fn no_other_keys_are_allowed() {
    each(|path, object| assert_eq!(object["additionalProperties"], Value::Bool(false), "{path}"));
}

#[test]
fn every_field_is_described() {
    each(|path, object| {
        for (name, field) in object["properties"].as_object().unwrap() {
            let frame = !path.contains("spec") && !path.contains("$defs") || path.contains("oneOf");
            assert!(frame || field["description"].is_string(), "{path}/{name}: {field}");
        }
    });
}

#[test]
fn the_schemas_are_as_reviewed() {
    insta::assert_json_snapshot!("schema_gpupool", profile::schema());
    insta::assert_json_snapshot!("schema_site", inventory::schema());
}
