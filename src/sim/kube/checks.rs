//! What may be written, and what the API server fills in (pkg/registry, pkg/apis/*/validation).

use serde_json::{Value, json};

use super::resources::Resource;
use super::route::{Ask, Verb};
use super::status::ApiError;
use super::strict;
use crate::sim::world::guest::{items, number, set, text, unset};

/// `ValidateAnnotations`: all of them together.
const ANNOTATIONS: usize = 256 << 10;

/// What a write may be asked for beside its object (apimachinery, pkg/apis/meta/v1/validation).
pub(super) fn options(ask: &Ask) -> Result<(), ApiError> {
    let query = |name: &str| ask.query.get(name).map(String::as_str).unwrap_or_default();
    let (dry, fields) = (query("dryRun"), query("fieldValidation"));
    if !matches!(dry, "" | "All") {
        return Err(ApiError::unsupported(ask.verb, "dryRun", &format!("[\"{dry}\"]"), "\"All\""));
    }
    if !matches!(fields, "" | "Ignore" | "Strict" | "Warn") {
        let may = "\"\", \"Ignore\", \"Strict\", \"Warn\"";
        return Err(ApiError::unsupported(ask.verb, "fieldValidation", &format!("\"{fields}\""), may));
    }
    Ok(())
}

/// A new object, as it was sent, becomes one that can be kept, but for what the server makes up.
pub(super) fn creatable(ask: &Ask, object: &mut Value) -> Result<(), ApiError> {
    let resource = ask.resource;
    is_of(resource, object)?;
    if resource.plural == "jobs" {
        strict::decode(object, ask.query.get("fieldValidation").is_some_and(|value| value == "Strict"))?;
    }
    let name = text(object, "/metadata/name").to_owned();
    if name.is_empty() && text(object, "/metadata/generateName").is_empty() {
        let why = "Required value: name or generateName is required";
        return Err(ApiError::invalid(resource, "", "metadata.name", why));
    }
    if !text(object, "/metadata/resourceVersion").is_empty() {
        // The server has no better reason for it.
        return Err(ApiError::new(500, "", "resourceVersion should not be set on objects to be created"));
    }
    match (text(object, "/metadata/namespace"), ask.namespace.as_deref()) {
        (sent, Some(wanted)) if !sent.is_empty() && sent != wanted => {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(ApiError::bad_request(message));
        }
        (_, Some(wanted)) => set(object, &["metadata", "namespace"], json!(wanted)),
        (_, None) => unset(object, &["metadata", "namespace"]),
    }
    if !text(object, "/metadata/name").is_empty() {
        is_name(resource, &name)?;
    }
    unset(object, &["status"]);
    texts(object).map_err(ApiError::bad_request)?;
    metadata(resource, &name, object)?;
    match resource.plural {
        "pods" => pod(resource, &name, object.pointer("/spec"), "spec")?,
        "jobs" => job(resource, &name, object)?,
        "poddisruptionbudgets" => budget(resource, &name, object)?,
        _ => {}
    }
    if has_generation(resource) {
        set(object, &["metadata", "generation"], json!(1));
    }
    Ok(())
}

/// Kind and version of what was sent are those of the resource; where it does not say them, they are.
pub(super) fn is_of(resource: &Resource, object: &mut Value) -> Result<(), ApiError> {
    if !object.is_object() {
        return Err(ApiError::bad_request("the object provided is unrecognized: couldn't get version/kind"));
    }
    for (field, value) in [("kind", resource.kind.to_owned()), ("apiVersion", resource.api_version())] {
        if text(object, &format!("/{field}")).is_empty() {
            set(object, &[field], json!(value));
        }
    }
    let (kind, version) = (text(object, "/kind"), text(object, "/apiVersion"));
    if kind != resource.kind || version != resource.api_version() {
        return Err(other_kind(kind, version, resource.group, resource.kind));
    }
    Ok(())
}

/// What was sent is of another kind than what its path takes.
pub(super) fn other_kind(kind: &str, version: &str, group: &str, wanted: &str) -> ApiError {
    let version = version.rsplit('/').next().unwrap_or_default();
    let group = group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
    ApiError::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {wanted}: converting ({version}.{kind}) to \
         ({group}.{wanted}): unknown conversion"
    ))
}

fn budget(resource: &Resource, name: &str, object: &Value) -> Result<(), ApiError> {
    let both =
        ["minAvailable", "maxUnavailable"].iter().all(|field| object.pointer(&format!("/spec/{field}")).is_some());
    if both {
        let why = "Invalid value: minAvailable and maxUnavailable cannot be both set";
        return Err(ApiError::invalid(resource, name, "spec", why));
    }
    Ok(())
}

/// Labels and annotations are texts, `unschedulable` is a truth value: else there is no such object.
fn texts(object: &Value) -> Result<(), String> {
    for field in ["labels", "annotations"] {
        let map = object.pointer(&format!("/metadata/{field}")).and_then(Value::as_object);
        if map.into_iter().flatten().any(|(_, value)| !value.is_string()) {
            let at = format!("ObjectMeta.metadata.{field} of type string");
            return Err(format!("json: cannot unmarshal into Go struct field {at}"));
        }
    }
    if object.pointer("/spec/unschedulable").is_some_and(|value| !value.is_boolean() && !value.is_null()) {
        return Err("json: cannot unmarshal into Go struct field NodeSpec.spec.unschedulable of type bool".to_owned());
    }
    Ok(())
}

/// RFC 1123, as names of objects are.
fn is_name(resource: &Resource, name: &str) -> Result<(), ApiError> {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let good = name.len() <= 253
        && name.starts_with(letter)
        && name.ends_with(letter)
        && name.chars().all(|c| letter(c) || c == '-' || c == '.');
    if good {
        return Ok(());
    }
    let why = format!(
        "Invalid value: \"{name}\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
         '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    );
    Err(ApiError::invalid(resource, name, "metadata.name", &why))
}

/// Labels and annotations are texts, and not too long; what is empty is not written.
fn metadata(resource: &Resource, name: &str, object: &mut Value) -> Result<(), ApiError> {
    for field in ["labels", "annotations"] {
        let Some(map) = object.pointer(&format!("/metadata/{field}")) else { continue };
        let Some(map) = map.as_object() else {
            unset(object, &["metadata", field]);
            continue;
        };
        let long: usize = map.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
        if field == "annotations" && long > ANNOTATIONS {
            let why = format!("Too long: may not be more than {ANNOTATIONS} bytes");
            return Err(ApiError::invalid(resource, name, "metadata.annotations", &why));
        }
        if map.is_empty() {
            unset(object, &["metadata", field]);
        }
    }
    for field in ["finalizers", "ownerReferences"] {
        if object.pointer(&format!("/metadata/{field}")).is_some_and(|all| all.as_array().is_none_or(Vec::is_empty)) {
            unset(object, &["metadata", field]);
        }
    }
    Ok(())
}

fn pod(resource: &Resource, name: &str, spec: Option<&Value>, at: &str) -> Result<(), ApiError> {
    let containers = spec.map(|spec| items(spec, "/containers")).unwrap_or_default();
    if containers.is_empty() {
        return Err(ApiError::invalid(resource, name, &format!("{at}.containers"), "Required value"));
    }
    for (index, container) in containers.iter().enumerate() {
        for field in ["name", "image"] {
            if text(container, &format!("/{field}")).is_empty() {
                let at = format!("{at}.containers[{index}].{field}");
                return Err(ApiError::invalid(resource, name, &at, "Required value"));
            }
        }
    }
    Ok(())
}

/// A Job with its defaults (pkg/apis/batch/v1/defaults.go); its template has labels that its pods are
/// found by once it has a UID.
fn job(resource: &Resource, name: &str, job: &mut Value) -> Result<(), ApiError> {
    pod(resource, name, job.pointer("/spec/template/spec"), "spec.template.spec")?;
    if !matches!(text(job, "/spec/template/spec/restartPolicy"), "Never" | "OnFailure") {
        let why = "Required value: valid values: \"OnFailure\", \"Never\"";
        return Err(ApiError::invalid(resource, name, "spec.template.spec.restartPolicy", why));
    }
    for field in ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit"] {
        if let Some(value) = number(job, &format!("/spec/{field}")).filter(|value| *value < 0) {
            let why = format!("Invalid value: {value}: must be greater than or equal to 0");
            return Err(ApiError::invalid(resource, name, &format!("spec.{field}"), &why));
        }
    }
    for (field, value) in [
        ("parallelism", json!(1)),
        ("completions", json!(1)),
        ("backoffLimit", json!(6)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("podReplacementPolicy", json!("TerminatingOrFailed")),
    ] {
        if job.pointer(&format!("/spec/{field}")).is_none() {
            set(job, &["spec", field], value);
        }
    }
    Ok(())
}

/// Labels by which a Job finds its pods, once its UID is known.
pub(super) fn label_job(job: &mut Value) {
    let (name, uid) = (text(job, "/metadata/name").to_owned(), text(job, "/metadata/uid").to_owned());
    for (label, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ] {
        set(job, &["spec", "template", "metadata", "labels", label], json!(value));
    }
    if job.pointer("/spec/selector").is_none() {
        set(job, &["spec", "selector"], json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}));
    }
}

/// An object as it will be, from what it is and what was sent for it.
pub(super) fn updatable(ask: &Ask, known: &Value, mut new: Value) -> Result<Value, ApiError> {
    let resource = ask.resource;
    let name = text(known, "/metadata/name");
    let patched = ask.verb == Verb::Patch;
    texts(&new).map_err(|why| if patched { ApiError::misfit(&why) } else { ApiError::bad_request(why) })?;
    is_of(resource, &mut new)?;
    if text(&new, "/metadata/name") != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({}) does not match the name on the URL ({name})",
            text(&new, "/metadata/name")
        )));
    }
    let (sent, uid) = (text(&new, "/metadata/uid"), text(known, "/metadata/uid"));
    let another = !sent.is_empty() && sent != uid;
    // A whole object names the one that it is to replace; a patch only changes a field of it.
    if another && ask.verb != Verb::Patch {
        let why = format!("Precondition failed: UID in precondition: {sent}, UID in object meta: {uid}");
        return Err(ApiError::conflict(resource, name, &why));
    }
    let version = text(&new, "/metadata/resourceVersion");
    if !version.is_empty() && version != text(known, "/metadata/resourceVersion") {
        return Err(ApiError::modified(resource, name));
    }
    if another {
        let why = format!("Invalid value: \"{sent}\": field is immutable");
        return Err(ApiError::invalid(resource, name, "metadata.uid", &why));
    }
    for field in ["uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        keep(&mut new, known, &["metadata", field]);
    }
    // Each of the two has a path of its own.
    match ask.subresource {
        Some("status") => {
            keep(&mut new, known, &["spec"]);
            keep(&mut new, known, &["metadata"]);
        }
        _ => keep(&mut new, known, &["status"]),
    }
    metadata(resource, name, &mut new)?;
    if new.pointer("/spec/unschedulable").is_some_and(|value| value != &json!(true)) {
        unset(&mut new, &["spec", "unschedulable"]);
    }
    fixed(resource, name, known, &new)?;
    if has_generation(resource) && known.get("spec") != new.get("spec") {
        let generation = number(known, "/metadata/generation").unwrap_or(1) + 1;
        set(&mut new, &["metadata", "generation"], json!(generation));
    }
    Ok(new)
}

/// Fields that do not change once they are written.
fn fixed(resource: &Resource, name: &str, known: &Value, new: &Value) -> Result<(), ApiError> {
    let changes = |pointer: &str| known.pointer(pointer) != new.pointer(pointer);
    match resource.plural {
        "pods" => {
            let open = |pod: &Value| {
                let mut spec = pod.get("spec").cloned().unwrap_or_default();
                for field in ["tolerations", "activeDeadlineSeconds", "terminationGracePeriodSeconds"] {
                    unset(&mut spec, &[field]);
                }
                spec
            };
            if open(known) != open(new) {
                let why = "Forbidden: pod updates may not change fields other than \
                           `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                           `spec.tolerations` (only additions to existing tolerations),\
                           `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
                return Err(ApiError::invalid(resource, name, "spec", why));
            }
        }
        "nodes" if known.pointer("/spec/providerID").is_some() && changes("/spec/providerID") => {
            let why = "Invalid value: null: field cannot be modified once set";
            return Err(ApiError::invalid(resource, name, "spec.providerID", why));
        }
        "jobs" if changes("/spec/template") || changes("/spec/selector") => {
            return Err(ApiError::invalid(resource, name, "spec.template", "Invalid value: field is immutable"));
        }
        _ => {}
    }
    Ok(())
}

fn keep(new: &mut Value, known: &Value, path: &[&str]) {
    match known.pointer(&format!("/{}", path.join("/"))) {
        Some(value) => set(new, path, value.clone()),
        None => unset(new, path),
    }
}

/// Whether `metadata.generation` counts changes of what is wanted.
fn has_generation(resource: &Resource) -> bool {
    !matches!(resource.plural, "configmaps" | "events" | "leases" | "namespaces" | "nodes" | "services")
}
