//! `kubectl auth can-i`: a `SelfSubjectAccessReview`, of which nothing is kept. The token of a cluster is that of
//! an administrator, who may do everything.

use serde_json::{Value, json};

use super::resources::Resource;
use super::status::ApiError;
use crate::sim::world::guest::set;

/// Where it is posted.
pub(super) const PATH: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// The name under which rules know it.
pub(super) const CALL: &str = "create selfsubjectaccessreviews";

/// What the protobuf of Kubernetes begins with, in which kubectl sends reviews
/// (apimachinery, pkg/runtime/serializer/protobuf).
const MAGIC: &[u8] = b"k8s\0";

/// The review with its answer.
pub(super) fn answer(body: &[u8]) -> Result<Value, ApiError> {
    let mut review = match body.strip_prefix(MAGIC) {
        Some(sent) => decode(sent).ok_or_else(|| ApiError::bad_request("the review cannot be decoded"))?,
        None => serde_json::from_slice(body).map_err(|error| ApiError::bad_request(error.to_string()))?,
    };
    let asks = |field: &str| review.pointer(&format!("/spec/{field}")).is_some_and(|value| !value.is_null());
    if asks("resourceAttributes") == asks("nonResourceAttributes") {
        // pkg/apis/authorization/validation/validation.go
        let why = "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified";
        return Err(ApiError::invalid(&RESOURCE, "", "spec.resourceAttributes", why));
    }
    set(&mut review, &["kind"], json!("SelfSubjectAccessReview"));
    set(&mut review, &["apiVersion"], json!("authorization.k8s.io/v1"));
    set(&mut review, &["status"], json!({"allowed": true}));
    Ok(review)
}

/// As messages name it.
const RESOURCE: Resource = Resource {
    group: "authorization.k8s.io",
    version: "v1",
    plural: "selfsubjectaccessreviews",
    singular: "selfsubjectaccessreview",
    kind: "SelfSubjectAccessReview",
    short: &[],
    namespaced: false,
    subresources: &[],
};

/// A review out of a `runtime.Unknown` (staging/src/k8s.io/api/authorization/v1/generated.proto).
fn decode(unknown: &[u8]) -> Option<Value> {
    let spec = field(field(unknown, 2)?, 2)?;
    let mut review = json!({"metadata": {}, "spec": {}});
    for (number, name, texts) in [
        (
            1,
            "resourceAttributes",
            ["namespace", "verb", "group", "version", "resource", "subresource", "name"].as_slice(),
        ),
        (2, "nonResourceAttributes", &["path", "verb"]),
    ] {
        let Some(asked) = field(spec, number) else { continue };
        set(&mut review, &["spec", name], json!({}));
        for (number, text) in (1..).zip(texts) {
            let value = field(asked, number).and_then(|bytes| std::str::from_utf8(bytes).ok());
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                set(&mut review, &["spec", name, text], json!(value));
            }
        }
    }
    Some(review)
}

/// The bytes of a field that has a length, the only kind that there is here.
fn field(mut message: &[u8], wanted: u64) -> Option<&[u8]> {
    while !message.is_empty() {
        let (key, rest) = varint(message)?;
        let (length, rest) = varint(rest).filter(|_| key & 7 == 2)?;
        let (value, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        if key >> 3 == wanted {
            return Some(value);
        }
        message = rest;
    }
    None
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let end = bytes.iter().take(9).position(|byte| byte & 0x80 == 0)?;
    let (number, rest) = bytes.split_at_checked(end + 1)?;
    Some((number.iter().rev().fold(0, |sum, byte| sum << 7 | u64::from(byte & 0x7f)), rest))
}
