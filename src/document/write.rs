//! Typed values to YAML text.

use serde::Serialize;
use serde_json::{Value, json};

use super::raw::{API_VERSION, Kind};

/// A document as YAML text: what [`read`](super::read) and `parse` read back as the same value (places
/// differ). Fails only if `T` has map keys that are no text.
pub fn to_yaml<T: Serialize>(kind: Kind, name: &str, spec: &T) -> Result<String, WriteError> {
    let spec = without_places(serde_json::to_value(spec)?);
    let document = json!({
        "apiVersion": API_VERSION,
        "kind": kind.as_str(),
        "metadata": { "name": name },
        "spec": spec,
    });
    Ok(serde_saphyr::to_string(&document)?)
}

/// A value that cannot be written as a document.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Not a tree of text-keyed maps.
    #[error("the value has no form in YAML")]
    Shape(#[from] serde_json::Error),
    /// The YAML crate refused it.
    #[error("the YAML text could not be made")]
    Text(#[from] serde_saphyr::ser::Error),
}

/// `At` is written as its value alone.
fn without_places(value: Value) -> Value {
    match value {
        Value::Object(mut map) => {
            let is_at = map.len() == 2 && map.get("place").is_some_and(is_place);
            match map.remove("value") {
                Some(value) if is_at => without_places(value),
                Some(value) => {
                    map.insert("value".to_owned(), value);
                    Value::Object(map.into_iter().map(|(key, value)| (key, without_places(value))).collect())
                }
                None => Value::Object(map.into_iter().map(|(key, value)| (key, without_places(value))).collect()),
            }
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_places).collect()),
        other => other,
    }
}

fn is_place(value: &Value) -> bool {
    value.as_object().is_some_and(|place| place.keys().eq(["file", "line", "column"]))
}
