//! Patches of the three kinds that a client may send.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation};
use serde_json::Value;

use super::status::ApiError;

/// An object with a patch applied; `kind` is the media type.
pub(super) fn apply(kind: &str, object: &Value, body: &[u8]) -> Result<Value, ApiError> {
    let unread = |error: serde_json::Error| ApiError::bad_request(format!("error decoding patch: {error}"));
    let mut new = object.clone();
    match kind {
        "application/json-patch+json" => {
            let patch: Patch = serde_json::from_slice(body).map_err(unread)?;
            // One by one, since the server's library sets a missing member of an object on `replace`, too.
            for operation in &patch.0 {
                let operation = match operation {
                    PatchOperation::Replace(replace) if misses(&new, &replace.path) => {
                        PatchOperation::Add(AddOperation { path: replace.path.clone(), value: replace.value.clone() })
                    }
                    operation => operation.clone(),
                };
                json_patch::patch(&mut new, &[operation]).map_err(|_| ApiError::unpatchable())?;
            }
        }
        "application/merge-patch+json" => merge(&mut new, &serde_json::from_slice(body).map_err(unread)?),
        "application/strategic-merge-patch+json" => {
            let patch: Value = serde_json::from_slice(body).map_err(unread)?;
            super::strategic::apply(&mut new, &patch).map_err(ApiError::bad_request)?;
        }
        _ => return Err(ApiError::unsupported_media()),
    }
    Ok(new)
}

/// Whether there is an object for the last part of a path, and it is not in it.
fn misses(value: &Value, path: &PointerBuf) -> bool {
    let text = path.as_str();
    let above = text.rsplit_once('/').map_or("", |(above, _)| above);
    value.pointer(text).is_none() && value.pointer(above).is_some_and(Value::is_object)
}

/// RFC 7386.
fn merge(value: &mut Value, patch: &Value) {
    json_patch::merge(value, patch);
}
