//! JSON Schema of documents.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

use crate::model::At;

use super::raw::{API_VERSION, Kind};

/// In a document a value with its place is the value alone.
impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// The JSON Schema (draft 2020-12) of a whole document whose `spec` is a `T`.
pub fn envelope<T: JsonSchema>(kind: Kind, description: &str) -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let spec = generator.subschema_for::<T>();
    let definitions = generator.take_definitions(true);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind.as_str(),
        "description": description,
        "type": "object",
        "additionalProperties": false,
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": { "const": API_VERSION },
            "kind": { "const": kind.as_str() },
            "metadata": {
                "type": "object",
                "additionalProperties": false,
                "required": ["name"],
                "properties": {
                    "name": {
                        "description": "Name of the document.",
                        "type": "string",
                        "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$",
                    },
                },
            },
            "spec": spec,
        },
        "$defs": definitions,
    })
}
