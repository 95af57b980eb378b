//! Patches of the three kinds that a client may send.

use json_patch::Patch;
use serde_json::Value;

use super::status::ApiError;

/// An object with a patch applied; `kind` is the media type.
pub(super) fn apply(kind: &str, object: &Value, body: &[u8]) -> Result<Value, ApiError> {
    let unread = |error: serde_json::Error| ApiError::bad_request(format!("error decoding patch: {error}"));
    let mut new = object.clone();
    match kind {
        "application/json-patch+json" => {
            let patch: Patch = serde_json::from_slice(body).map_err(unread)?;
            // A failed `test` too: the server says no more than this (endpoints/handlers/patch.go,
            // NewGenericServerResponse of 422).
            json_patch::patch(&mut new, &patch).map_err(|_| {
                ApiError::new(422, "Invalid", "the server rejected our request due to an error in our request")
            })?;
        }
        "application/merge-patch+json" => merge(&mut new, &serde_json::from_slice(body).map_err(unread)?),
        "application/strategic-merge-patch+json" => {
            let patch: Value = serde_json::from_slice(body).map_err(unread)?;
            // Without lists and directives it says the same as a merge patch; with them it needs the merge
            // keys of each type, which this face does not know.
            if has_lists(&patch) {
                return Err(unsupported(kind));
            }
            merge(&mut new, &patch);
        }
        other => return Err(unsupported(other)),
    }
    Ok(new)
}

fn unsupported(kind: &str) -> ApiError {
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: \
         application/json-patch+json, application/merge-patch+json (not {kind} of this patch)"
    );
    ApiError::new(415, "UnsupportedMediaType", message)
}

fn has_lists(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Object(map) => map.iter().any(|(key, value)| key.starts_with('$') || has_lists(value)),
        _ => false,
    }
}

/// RFC 7386.
fn merge(value: &mut Value, patch: &Value) {
    json_patch::merge(value, patch);
}
