//! `Status`: errors as the API server words them (apimachinery, pkg/api/errors).

use serde_json::{Value, json};

use super::resources::Resource;
use super::route::Verb;
use crate::sim::world::guest::set;

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
        Self { code, reason, message: message.into(), details: Value::Null }
    }

    /// An answer that is about nothing in particular (NewGenericServerResponse).
    fn generic(code: u16, reason: &'static str, message: &str) -> Self {
        Self { details: json!({}), ..Self::new(code, reason, message) }
    }

    /// With the object that it is about; some errors name its resource, others its kind.
    fn about(mut self, resource: &Resource, kind: &str, name: &str) -> Self {
        self.details = json!({});
        for (field, value) in [("name", name), ("group", resource.group), ("kind", kind)] {
            if !value.is_empty() {
                set(&mut self.details, &[field], json!(value));
            }
        }
        self
    }

    pub fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", resource.qualified());
        Self::new(404, "NotFound", message).about(resource, resource.plural, name)
    }

    pub fn exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", resource.qualified());
        Self::new(409, "AlreadyExists", message).about(resource, resource.plural, name)
    }

    /// What the caller knows of an object is not true of it.
    pub fn precondition(resource: &Resource, name: &str, field: &str, wanted: &str, is: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": the {field} in the precondition ({wanted}) does not match the \
             {field} in record ({is}). The object might have been {}",
            resource.kind,
            if field == "UID" { "deleted and then recreated" } else { "modified" }
        );
        Self::new(409, "Conflict", message).about(resource, resource.kind, name)
    }

    pub fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.qualified());
        Self::new(409, "Conflict", message).about(resource, resource.plural, name)
    }

    /// The version that was sent is not that of the object.
    pub fn modified(resource: &Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    pub fn invalid(resource: &Resource, name: &str, field: &str, why: &str) -> Self {
        let group = if resource.group.is_empty() { String::new() } else { format!(".{}", resource.group) };
        let message = format!("{}{group} \"{name}\" is invalid: {field}: {why}", resource.kind);
        let mut error = Self::new(422, "Invalid", message).about(resource, resource.kind, name);
        let reason = match why.split(':').next() {
            Some("Required value") => "FieldValueRequired",
            Some("Too long") => "FieldValueTooLong",
            Some("Forbidden") => "FieldValueForbidden",
            _ => "FieldValueInvalid",
        };
        set(&mut error.details, &["causes"], json!([{"reason": reason, "message": why, "field": field}]));
        error
    }

    /// An option of a write that there is not.
    pub fn unsupported(verb: Verb, option: &str, value: &str, may: &str) -> Self {
        let kind = match verb {
            Verb::Update => "UpdateOptions",
            Verb::Patch => "PatchOptions",
            Verb::Delete => "DeleteOptions",
            _ => "CreateOptions",
        };
        let why = format!("Unsupported value: {value}: supported values: {may}");
        let message = format!("{kind}.meta.k8s.io \"\" is invalid: {option}: {why}");
        let mut error = Self::new(422, "Invalid", message);
        let causes = json!([{"reason": "FieldValueNotSupported", "message": why, "field": option}]);
        error.details = json!({"group": "meta.k8s.io", "kind": kind, "causes": causes});
        error
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub fn no_such_path() -> Self {
        Self::generic(404, "NotFound", "the server could not find the requested resource")
    }

    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::generic(405, "MethodNotAllowed", message)
    }

    /// A patch that cannot be applied: the server says no more than this, of a failed `test` neither.
    pub fn unpatchable() -> Self {
        Self::generic(422, "Invalid", "the server rejected our request due to an error in our request")
    }

    /// A patch after which the object has no place in its type.
    pub fn misfit(why: &str) -> Self {
        let mut error = Self::generic(422, "Invalid", &format!(" \"\" is invalid: patch: Invalid value: {why}"));
        error.details = json!({"causes": [{"reason": "FieldValueInvalid", "message": why, "field": "patch"}]});
        error
    }

    /// A body of a type that is not taken.
    pub fn unsupported_media() -> Self {
        Self::generic(415, "UnsupportedMediaType", "415: Unsupported Media Type")
    }

    /// An answer that cannot be shown as it is asked for.
    pub fn not_acceptable() -> Self {
        let message =
            "406: Not Acceptable\n\nAvailable representations: application/json, application/json;stream=watch";
        Self::generic(406, "NotAcceptable", message)
    }

    /// Nobody may not do this.
    pub fn anonymous(resource: &Resource, verb: &str, namespace: Option<&str>) -> Self {
        let place = namespace.map_or("at the cluster scope".to_owned(), |name| format!("in the namespace \"{name}\""));
        let message = format!(
            "{} is forbidden: User \"system:anonymous\" cannot {verb} resource \"{}\" in API group \"{}\" {place}",
            resource.qualified(),
            resource.plural,
            resource.group
        );
        Self::new(403, "Forbidden", message).about(resource, resource.plural, "")
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
            error.details = json!({});
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
        });
        if !self.reason.is_empty() {
            set(&mut body, &["reason"], json!(self.reason));
        }
        if !self.details.is_null() {
            set(&mut body, &["details"], self.details.clone());
        }
        set(&mut body, &["code"], json!(self.code));
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
