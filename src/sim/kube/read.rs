//! Reads: one object, lists with selectors and pages, logs.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::resources::Resource;
use super::route::Ask;
use super::status::ApiError;
use crate::sim::faults::Target;
use crate::sim::world::guest::{Guest, items, set, text, unset};

/// What a list takes.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    prefix: String,
    namespace: Option<String>,
    labels: Vec<Test>,
    fields: Vec<Test>,
}

/// One part of a selector.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Missing(String),
}

impl Test {
    fn holds(&self, value: impl Fn(&str) -> Option<String>) -> bool {
        match self {
            Self::In(key, values) => value(key).is_some_and(|is| values.contains(&is)),
            Self::NotIn(key, values) => value(key).is_none_or(|is| !values.contains(&is)),
            Self::Exists(key) => value(key).is_some(),
            Self::Missing(key) => value(key).is_none(),
        }
    }
}

impl Wanted {
    /// From the path and the selectors of a request.
    pub fn of(ask: &Ask) -> Result<Self, ApiError> {
        let query = |name: &str| ask.query.get(name).map(String::as_str).unwrap_or_default();
        let mut fields = Vec::new();
        for test in parse(query("fieldSelector"))? {
            let (Test::In(key, _) | Test::NotIn(key, _)) = &test else {
                let selector = query("fieldSelector");
                let message = format!("invalid selector: '{selector}'; can't understand '{selector}'");
                return Err(ApiError::bad_request(message));
            };
            let known = key == "metadata.name"
                || key == "metadata.namespace"
                || ask.resource.plural == "pods"
                    && matches!(key.as_str(), "spec.nodeName" | "status.phase" | "spec.restartPolicy")
                || ask.resource.plural == "events"
                || ask.resource.plural == "nodes" && key == "spec.unschedulable";
            if !known {
                return Err(ApiError::bad_request(format!("field label not supported: {key}")));
            }
            fields.push(test);
        }
        if let Some(name) = &ask.name {
            fields.push(Test::In("metadata.name".to_owned(), vec![name.clone()]));
        }
        let (prefix, namespace) = (format!("{}/", ask.resource.plural), ask.namespace.clone());
        Ok(Self { prefix, namespace, labels: parse(query("labelSelector"))?, fields })
    }

    /// Whether it takes an object.
    pub fn takes(&self, key: &str, object: &Value) -> bool {
        let label = |key: &str| {
            let labels = object.pointer("/metadata/labels")?;
            labels.get(key).and_then(Value::as_str).map(str::to_owned)
        };
        let field = |path: &str| {
            let found = object.pointer(&format!("/{}", path.replace('.', "/")));
            Some(match found {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Bool(is)) => is.to_string(),
                _ if path == "spec.unschedulable" => "false".to_owned(),
                _ => String::new(),
            })
        };
        key.starts_with(&self.prefix)
            && self.namespace.as_deref().is_none_or(|wanted| text(object, "/metadata/namespace") == wanted)
            && self.labels.iter().all(|test| test.holds(label))
            && self.fields.iter().all(|test| test.holds(field))
    }

    fn selects(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }
}

/// The parts of a selector: `a=b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a`.
fn parse(selector: &str) -> Result<Vec<Test>, ApiError> {
    let mut parts = vec![String::new()];
    let mut depth = 0;
    for c in selector.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    let wrong = || ApiError::bad_request(format!("unable to parse requirement: found '{selector}'"));
    let set = |text: &str| -> Option<Vec<String>> {
        let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
        Some(inner.split(',').map(|value| value.trim().to_owned()).collect())
    };
    let owned = |text: &str| text.trim().to_owned();
    let mut tests = Vec::new();
    for part in parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()) {
        tests.push(if let Some((key, values)) = part.split_once(" notin ") {
            Test::NotIn(owned(key), set(values).ok_or_else(wrong)?)
        } else if let Some((key, values)) = part.split_once(" in ") {
            Test::In(owned(key), set(values).ok_or_else(wrong)?)
        } else if let Some((key, value)) = part.split_once("!=") {
            Test::NotIn(owned(key), vec![owned(value)])
        } else if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
            Test::In(owned(key), vec![owned(value)])
        } else if let Some(key) = part.strip_prefix('!') {
            Test::Missing(owned(key))
        } else {
            Test::Exists(owned(part))
        });
    }
    Ok(tests)
}

/// A cluster as reads see it.
pub(super) struct View<'a> {
    pub guest: &'a Guest,
    pub now: Timestamp,
    pub cluster: &'a str,
    /// Objects of which the state before the last change is shown.
    pub stale: &'a [Target],
}

impl View<'_> {
    /// An object as it is shown.
    pub fn shown(&self, key: &str, object: &Value) -> Value {
        let (name, id) = crate::sim::behaviour::named(self.cluster, key);
        let old = self.stale.iter().any(|target| target.is(Some(&name), &id) || target.is(Some(self.cluster), &id));
        let last = || self.guest.changes.iter().rev().find(|change| change.key == key);
        let before = old.then(last).flatten().and_then(|change| change.before.clone());
        let mut shown = before.map_or_else(|| object.clone(), |before| before.as_ref().clone());
        // Kubelets renew their Leases every ten seconds; only what it comes to is kept.
        let runs = self.guest.machines.get(text(&shown, "/spec/holderIdentity")).is_some_and(|machine| machine.runs);
        if key.starts_with("leases/kube-node-lease/") && runs {
            let seconds = self.now.as_second().div_euclid(10) * 10;
            let renewed = Timestamp::from_second(seconds).unwrap_or(self.now);
            set(&mut shown, &["spec", "renewTime"], json!(renewed.strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string()));
        }
        shown
    }

    /// One object.
    pub fn get(&self, ask: &Ask) -> Result<Value, ApiError> {
        let key = ask.key();
        let object = self.guest.get(&key).map(|object| self.shown(&key, object));
        object.ok_or_else(|| ApiError::not_found(ask.resource, ask.name.as_deref().unwrap_or_default()))
    }

    /// A list, or a page of it.
    pub fn list(&self, ask: &Ask) -> Result<Value, ApiError> {
        let wanted = Wanted::of(ask)?;
        let query = |name: &str| ask.query.get(name).filter(|value| !value.is_empty());
        let (mut revision, mut after) = (self.guest.revision, None);
        if let Some(token) = query("continue") {
            let (at, key) = page(token)?;
            (revision, after) = (at, Some(key));
        } else if let Some(asked) = query("resourceVersion") {
            let asked = version(asked)?;
            ahead(asked, self.guest.revision)?;
            if query("resourceVersionMatch").is_some_and(|how| how == "Exact") {
                revision = asked;
            }
        }
        let then = at(self.guest, revision)?;
        let unread = |text| ApiError::bad_request(format!("strconv.ParseInt: parsing \"{text}\": invalid syntax"));
        let limit = query("limit").map(|text| text.parse().map_err(|_| unread(text))).transpose()?;
        let limit = limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        let mut found = then
            .iter()
            .filter(|(key, _)| after.as_ref().is_none_or(|after| *key > after))
            .filter(|(key, object)| wanted.takes(key, object));
        let page: Vec<(&String, &Arc<Value>)> = found.by_ref().take(limit).collect();
        let left = found.count();
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if let (true, Some((last, _))) = (left > 0, page.last()) {
            let token = last.bytes().fold(format!("{revision}."), |token, byte| token + &format!("{byte:02x}"));
            set(&mut metadata, &["continue"], json!(token));
            if !wanted.selects() {
                set(&mut metadata, &["remainingItemCount"], json!(left));
            }
        }
        let items: Vec<Value> = page
            .iter()
            .map(|(key, object)| {
                let mut item = self.shown(key, object);
                // Items of typed lists do not say what they are.
                unset(&mut item, &["kind"]);
                unset(&mut item, &["apiVersion"]);
                item
            })
            .collect();
        let Resource { kind, .. } = ask.resource;
        let version = ask.resource.api_version();
        Ok(json!({"kind": format!("{kind}List"), "apiVersion": version, "metadata": metadata, "items": items}))
    }
}

/// The revision that a client names.
pub(super) fn version(text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|_| {
        ApiError::bad_request(format!(
            "invalid resource version: resourceVersion: Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": \
             invalid syntax"
        ))
    })
}

/// A version that is not there yet (apiserver, storage/errors.go).
pub(super) fn ahead(asked: u64, current: u64) -> Result<(), ApiError> {
    if asked <= current {
        return Ok(());
    }
    let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
    let mut error = ApiError::new(504, "Timeout", message);
    let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
    error.details = json!({"causes": [cause], "retryAfterSeconds": 1});
    Err(error)
}

fn page(token: &str) -> Result<(u64, String), ApiError> {
    let parse = || {
        let (revision, hex) = token.split_once('.')?;
        let bytes: Option<Vec<u8>> =
            (0..hex.len()).step_by(2).map(|start| u8::from_str_radix(hex.get(start..start + 2)?, 16).ok()).collect();
        Some((revision.parse().ok()?, String::from_utf8(bytes?).ok()?))
    };
    parse().ok_or_else(|| ApiError::bad_request("continue key is not valid"))
}

/// All objects as they were at a revision.
fn at(guest: &Guest, revision: u64) -> Result<BTreeMap<String, Arc<Value>>, ApiError> {
    if revision < guest.compacted {
        return Err(ApiError::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list \
             without the continue parameter.",
        ));
    }
    let mut objects = guest.objects.clone();
    for change in guest.changes.iter().rev().take_while(|change| change.revision > revision) {
        match &change.before {
            Some(before) => drop(objects.insert(change.key.clone(), Arc::clone(before))),
            None => drop(objects.remove(&change.key)),
        }
    }
    Ok(objects)
}

/// What the container of a pod printed.
pub(super) fn log(pod: &Value, ask: &Ask, said: &str) -> Result<String, ApiError> {
    let (name, container) = (text(pod, "/metadata/name"), text(pod, "/spec/containers/0/name"));
    if let Some(asked) = ask.query.get("container").filter(|asked| asked.as_str() != container) {
        return Err(ApiError::bad_request(format!("container {asked} is not valid for pod {name}")));
    }
    let state = items(pod, "/status/containerStatuses").first().and_then(|status| status.get("state"));
    let begun = state.is_some_and(|state| state.get("running").is_some() || state.get("terminated").is_some());
    if !begun {
        let why = match state.map(|state| text(state, "/waiting/reason")) {
            Some("ErrImagePull" | "ImagePullBackOff") => "trying and failing to pull image",
            _ => "ContainerCreating",
        };
        let message = format!("container \"{container}\" in pod \"{name}\" is waiting to start: {why}");
        return Err(ApiError::bad_request(message));
    }
    let lines: Vec<&str> = said.lines().collect();
    let tail = ask.query.get("tailLines").and_then(|text| text.parse().ok()).unwrap_or(lines.len());
    let mut text: String =
        lines.iter().skip(lines.len().saturating_sub(tail)).map(|line| format!("{line}\n")).collect();
    if let Some(limit) = ask.query.get("limitBytes").and_then(|text| text.parse().ok()) {
        text.truncate(text.floor_char_boundary(limit));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_read() {
        let object = json!({"metadata": {"labels": {"a": "b", "c": ""}}});
        let label = |key: &str| object["metadata"]["labels"].get(key).and_then(Value::as_str).map(str::to_owned);
        for (selector, holds) in [
            ("a=b", true),
            ("a==b,c", true),
            ("a!=b", false),
            ("d!=x", true),
            ("a in (x, b)", true),
            ("a notin (b)", false),
            ("!d,a", true),
            ("!a", false),
            ("", true),
        ] {
            assert_eq!(parse(selector).unwrap().iter().all(|test| test.holds(label)), holds, "{selector}");
        }
        assert!(parse("a in b").is_err());
    }
}
