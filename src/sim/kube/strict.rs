//! What the API server knows of a Job: the fields of its types, which are generated from Kubernetes' own
//! description of them.

use k8s_openapi::api::batch::v1::Job;
use serde_json::{Value, json};

use super::status::ApiError;

/// Reads a Job as its server does. A field that it does not know is refused if the caller asks for that, and
/// passed over else (apiserver, pkg/endpoints/handlers/create.go).
pub(super) fn decode(job: &mut Value, strict: bool) -> Result<(), ApiError> {
    let refused =
        |why: String| ApiError::bad_request(format!("Job in version \"v1\" cannot be handled as a Job: {why}"));
    let mut sent = job.clone();
    quantities(&mut sent);
    let known: Job = serde_json::from_value(sent).map_err(|error| refused(format!("json: {error}")))?;
    let known = serde_json::to_value(known).map_err(|error| refused(format!("json: {error}")))?;
    let mut unknown = Vec::new();
    pass_over(job, &known, "", &mut unknown);
    if strict && !unknown.is_empty() {
        let all: Vec<String> = unknown.iter().map(|field| format!("unknown field \"{field}\"")).collect();
        return Err(refused(format!("strict decoding error: {}", all.join(", "))));
    }
    Ok(())
}

/// A quantity may be a number (apimachinery, pkg/api/resource), and is a text for the generated types.
fn quantities(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match key.as_str() {
                    "limits" | "requests" => {
                        value.as_object_mut().into_iter().flatten().for_each(|(_, one)| as_text(one))
                    }
                    "sizeLimit" | "divisor" => as_text(value),
                    _ => quantities(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(quantities),
        _ => {}
    }
}

fn as_text(value: &mut Value) {
    if value.is_number() {
        *value = json!(value.to_string());
    }
}

/// Takes off what is not in `known`, and tells where it was.
fn pass_over(sent: &mut Value, known: &Value, at: &str, unknown: &mut Vec<String>) {
    match sent {
        Value::Object(map) => map.retain(|key, value| {
            let at = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
            match known.get(key) {
                Some(known) => pass_over(value, known, &at, unknown),
                // A known field that is null is one that is not there.
                None if value.is_null() => {}
                None => {
                    unknown.push(at);
                    return false;
                }
            }
            true
        }),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                pass_over(item, known.get(index).unwrap_or(&Value::Null), &format!("{at}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}
