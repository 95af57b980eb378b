//! `Status`: errors as the API server words them (apimachinery, pkg/api/errors).

use serde_json::{Value, json};

use super::resources::Resource;
use crate::sim::world::guest::{set, unset};

/// An error of the API.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ApiError {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    pub details: Value,
}

impl ApiError {
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: json!({}) }
    }

    /// With the object that it is about.
    fn about(mut self, resource: &Resource, name: &str) -> Self {
        self.details = json!({"name": name});
        if !resource.group.is_empty() {
            set(&mut self.details, &["group"], json!(resource.group));
        }
        set(&mut self.details, &["kind"], json!(resource.plural));
        self
    }

    pub fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", resource.qualified());
        Self::new(404, "NotFound", message).about(resource, name)
    }

    pub fn exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", resource.qualified());
        Self::new(409, "AlreadyExists", message).about(resource, name)
    }

    pub fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.qualified());
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// A precondition of a deletion does not hold: this one says the kind, where others say what the path says.
    pub fn outdated(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.kind);
        let mut error = Self::new(409, "Conflict", message).about(resource, name);
        set(&mut error.details, &["kind"], json!(resource.kind));
        error
    }

    /// The version that was sent is not that of the object.
    pub fn modified(resource: &Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    pub fn invalid(resource: &Resource, name: &str, field: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is invalid: {field}: {why}", resource.kind);
        let mut error = Self::new(422, "Invalid", message).about(resource, name);
        // Not what the path says, as in the others (NewInvalid).
        set(&mut error.details, &["kind"], json!(resource.kind));
        set(&mut error.details, &["causes"], json!([{"reason": "FieldValueInvalid", "message": why, "field": field}]));
        error
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self { details: Value::Null, ..Self::new(400, "BadRequest", message) }
    }

    pub fn unauthorized() -> Self {
        Self { details: Value::Null, ..Self::new(401, "Unauthorized", "Unauthorized") }
    }

    pub fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
    }

    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message)
    }

    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// A budget does not allow an eviction; `after`: seconds to wait, where the server can tell.
    pub fn disruption(cause: String, after: Option<u64>) -> Self {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let mut error = Self::new(429, "TooManyRequests", message);
        error.details = json!({"causes": [{"reason": "DisruptionBudget", "message": cause}]});
        if let Some(after) = after {
            set(&mut error.details, &["retryAfterSeconds"], json!(after));
        }
        error
    }

    /// What a fault rule names: a reason of the API (`Forbidden`, `TooManyRequests`, `Timeout` …).
    pub fn named(reason: &str) -> Self {
        let (code, reason, message) = match reason {
            "BadRequest" => (400, "BadRequest", "the server rejected our request for an unknown reason"),
            "Unauthorized" => (401, "Unauthorized", "Unauthorized"),
            "Forbidden" => (403, "Forbidden", "User cannot do this at the cluster scope"),
            "NamespaceTerminating" => (403, "Forbidden", "unable to create new content because it is being terminated"),
            "NotFound" => (404, "NotFound", "the server could not find the requested resource"),
            "Conflict" => (409, "Conflict", "the object has been modified"),
            "Expired" => (410, "Expired", "The provided continue parameter is too old"),
            "Invalid" => (422, "Invalid", "admission webhook \"policy.example\" denied the request"),
            "TooManyRequests" => (
                429,
                "TooManyRequests",
                "the server has received too many requests and has asked us to try again later",
            ),
            "ServiceUnavailable" => (503, "ServiceUnavailable", "the server is currently unable to handle the request"),
            "Timeout" => (
                504,
                "Timeout",
                "the server was unable to return a response in the time allotted, but may still be processing the request",
            ),
            _ => (500, "InternalError", "Internal error occurred"),
        };
        let mut error = Self::new(code, reason, message);
        if code == 429 {
            set(&mut error.details, &["retryAfterSeconds"], json!(1));
        }
        if message.contains("being terminated") {
            error.details = json!({"causes": [{"reason": "NamespaceTerminating", "message": message}]});
        }
        error
    }

    /// As the wire has it.
    pub fn body(&self) -> Value {
        let mut body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
            "reason": self.reason, "details": self.details, "code": self.code,
        });
        if self.details.is_null() {
            unset(&mut body, &["details"]);
        }
        body
    }

    /// `Retry-After`.
    pub fn retry_after(&self) -> Option<u64> {
        self.details.get("retryAfterSeconds").and_then(Value::as_u64)
    }
}

/// Several budgets take the pod: this status has no reason (pkg/registry/core/pod/storage/eviction.go).
pub(super) fn several_budgets() -> Value {
    let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "code": 500})
}

/// A success that has nothing to show.
pub(super) fn success(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code})
}
