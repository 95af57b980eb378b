//! Lists as `kubectl get` prints them: the server makes the columns (pkg/printers/internalversion).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::resources::Resource;
use crate::sim::world::guest::{deleting, items, number, text};

/// A column: its name, and what it shows of an object.
type Column = (&'static str, fn(&Value) -> Value);

/// Whether an `Accept` header asks for a table, as kubectl does.
pub(super) fn asked(accept: &str) -> bool {
    accept.split(',').next().is_some_and(|first| first.contains("as=Table"))
}

/// The table of these objects; `now` is for their age.
pub(super) fn of(resource: &Resource, objects: &[Value], version: &str, now: Option<Timestamp>) -> Value {
    let (columns, wide) = (columns(resource.plural), wide(resource.plural));
    let define = |name: &str, priority: u32| {
        let kind = if name == "Name" { "name" } else { "" };
        json!({"name": name, "type": "string", "format": kind, "description": "", "priority": priority})
    };
    let names = ["Name"].into_iter().chain(columns.iter().map(|(name, _)| *name)).chain(["Age"]);
    let mut definitions: Vec<Value> = names.map(|name| define(name, 0)).collect();
    definitions.extend(wide.iter().map(|(name, _)| define(name, 1)));
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut cells = vec![object["metadata"]["name"].clone()];
            cells.extend(columns.iter().map(|(_, cell)| cell(object)));
            cells.push(json!(age(text(object, "/metadata/creationTimestamp"), now)));
            cells.extend(wide.iter().map(|(_, cell)| cell(object)));
            let shown = json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"],
            });
            json!({"cells": cells, "object": shown})
        })
        .collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": version},
        "columnDefinitions": definitions, "rows": rows,
    })
}

fn columns(plural: &str) -> &'static [Column] {
    match plural {
        "nodes" => &[
            ("Status", node_status),
            ("Roles", |_| json!("<none>")),
            ("Version", |node| node["status"]["nodeInfo"]["kubeletVersion"].clone()),
        ],
        "pods" => &[("Ready", pod_ready), ("Status", pod_status), ("Restarts", restarts)],
        "namespaces" => &[("Status", |one| one["status"]["phase"].clone())],
        "deployments" => &[
            ("Ready", |one| json!(format!("{}/{}", count(one, "status/readyReplicas"), count(one, "spec/replicas")))),
            ("Up-to-date", |one| json!(count(one, "status/updatedReplicas"))),
            ("Available", |one| json!(count(one, "status/availableReplicas"))),
        ],
        "statefulsets" => {
            &[("Ready", |one| json!(format!("{}/{}", count(one, "status/readyReplicas"), count(one, "spec/replicas"))))]
        }
        "replicasets" => &[
            ("Desired", |one| json!(count(one, "spec/replicas"))),
            ("Current", |one| json!(count(one, "status/replicas"))),
            ("Ready", |one| json!(count(one, "status/readyReplicas"))),
        ],
        "daemonsets" => &[
            ("Desired", |one| json!(count(one, "status/desiredNumberScheduled"))),
            ("Current", |one| json!(count(one, "status/currentNumberScheduled"))),
            ("Ready", |one| json!(count(one, "status/numberReady"))),
        ],
        "jobs" => &[("Completions", |one| {
            json!(format!("{}/{}", count(one, "status/succeeded"), count(one, "spec/completions")))
        })],
        "poddisruptionbudgets" => &[
            ("Min available", |one| bound(one, "/spec/minAvailable")),
            ("Max unavailable", |one| bound(one, "/spec/maxUnavailable")),
            ("Allowed disruptions", |one| json!(count(one, "status/disruptionsAllowed"))),
        ],
        "volumeattachments" => &[
            ("Attacher", |one| one["spec"]["attacher"].clone()),
            ("PV", |one| one["spec"]["source"]["persistentVolumeName"].clone()),
            ("Node", |one| one["spec"]["nodeName"].clone()),
            ("Attached", |one| one["status"]["attached"].clone()),
        ],
        "leases" => &[("Holder", |one| one["spec"]["holderIdentity"].clone())],
        _ => &[],
    }
}

/// Columns that `-o wide` adds.
fn wide(plural: &str) -> &'static [Column] {
    match plural {
        "nodes" => &[("Internal-IP", |node| node["status"]["addresses"][0]["address"].clone())],
        "pods" => &[("Node", |pod| json!(pod["spec"]["nodeName"].as_str().unwrap_or("<none>")))],
        _ => &[],
    }
}

fn count(object: &Value, path: &str) -> i64 {
    number(object, &format!("/{path}")).unwrap_or(0)
}

fn bound(object: &Value, pointer: &str) -> Value {
    match object.pointer(pointer) {
        Some(Value::String(text)) => json!(text),
        Some(value) => json!(value.to_string()),
        None => json!("N/A"),
    }
}

fn node_status(node: &Value) -> Value {
    let ready = items(node, "/status/conditions").iter().find(|one| text(one, "/type") == "Ready");
    let status = match ready.map(|one| text(one, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let cordoned = node.pointer("/spec/unschedulable") == Some(&json!(true));
    json!(if cordoned { format!("{status},SchedulingDisabled") } else { status.to_owned() })
}

fn pod_ready(pod: &Value) -> Value {
    let ready = items(pod, "/status/containerStatuses").iter().filter(|one| one.get("ready") == Some(&json!(true)));
    json!(format!("{}/{}", ready.count(), items(pod, "/spec/containers").len()))
}

fn pod_status(pod: &Value) -> Value {
    let state = pod.pointer("/status/containerStatuses/0/state");
    let of_container = ["waiting", "terminated"].iter().find_map(|kind| state?.get(*kind)?.get("reason")?.as_str());
    let reason = match text(pod, "/status/reason") {
        "" => of_container.unwrap_or_else(|| text(pod, "/status/phase")),
        reason => reason,
    };
    json!(if deleting(pod) { "Terminating" } else { reason })
}

fn restarts(pod: &Value) -> Value {
    let counts = items(pod, "/status/containerStatuses").iter().filter_map(|one| number(one, "/restartCount"));
    json!(counts.sum::<i64>())
}

/// The age of an object as kubectl shows it.
fn age(created: &str, now: Option<Timestamp>) -> String {
    let (Some(now), Ok(created)) = (now, created.parse::<Timestamp>()) else { return "<unknown>".to_owned() };
    let seconds = now.duration_since(created).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}
