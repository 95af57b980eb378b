//! JSON Schema of documents.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::model::{At, FolderPattern, HostName, HostPattern, NamePattern, PciAddress};

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

/// Nouns that are written as text.
macro_rules! text_schema {
    ($($name:ty = $schema:expr;)+) => {
        $(impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        })+
    };
}

text_schema! {
    HostName = json_schema!({ "type": "string", "description": "Name of a host, as vCenter shows it.", "minLength": 1 });
    HostPattern = json_schema!({
        "type": "string",
        "description": "A host name; `*` is any text, `?` one character, `[01-16]` a range of numbers.",
        "minLength": 1,
        "examples": ["esx-gpu-01", "esx-gpu-0*", "esx-gpu-[01-16]"],
    });
    NamePattern = json_schema!({
        "type": "string",
        "description": "A name; `*` is any text, `?` one character.",
        "minLength": 1,
        "examples": ["serve-1", "serve-*"],
    });
    FolderPattern = json_schema!({
        "type": "string",
        "description": "Path of a folder, for what is in it and below; in a part, `*` is any text, `?` one character.",
        "pattern": "^/",
        "examples": ["/DC1/vm/serve", "/*/vm/train-?"],
    });
    PciAddress = json_schema!({
        "type": "string",
        "description": "PCI address: segment, bus, device in hex, function.",
        "pattern": "^(0000)?[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\\.[0-7]$",
        "examples": ["0000:3b:00.0"],
    });
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
