//! What a client reads to learn what there is.

use serde_json::{Value, json};

use super::resources::{GROUPS, RESOURCES, Resource};

/// The group of reviews, of which nothing is kept.
const REVIEWS: &str = "authorization.k8s.io";

/// The answer for a path of discovery.
pub(super) fn answer(path: &str, version: &str) -> Option<Value> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["version"] => Some(build(version)),
        ["api"] => {
            let address = json!([{"clientCIDR": "0.0.0.0/0", "serverAddress": "10.96.0.1:443"}]);
            Some(json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": address}))
        }
        ["apis"] => {
            let groups: Vec<Value> = GROUPS.iter().chain([&REVIEWS]).map(|name| group(name)).collect();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        ["apis", name] if GROUPS.contains(name) || *name == REVIEWS => {
            let mut group = group(name);
            if let Some(map) = group.as_object_mut() {
                map.insert("kind".to_owned(), json!("APIGroup"));
                map.insert("apiVersion".to_owned(), json!("v1"));
            }
            Some(group)
        }
        ["api", "v1"] => Some(resources("")),
        ["apis", name, "v1"] if GROUPS.contains(name) => Some(resources(name)),
        ["apis", REVIEWS, "v1"] => {
            let review = json!({
                "name": "selfsubjectaccessreviews", "singularName": "selfsubjectaccessreview", "namespaced": false,
                "kind": "SelfSubjectAccessReview", "verbs": ["create"],
            });
            let version = format!("{REVIEWS}/v1");
            Some(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": [review]}))
        }
        ["openapi", "v3"] => {
            Some(json!({"paths": {"apis/batch/v1": {"serverRelativeURL": "/openapi/v3/apis/batch/v1"}}}))
        }
        ["openapi", "v3", "apis", "batch", "v1"] => Some(strict_jobs(version)),
        _ => None,
    }
}

/// Of the OpenAPI document what clients look for before they leave it to the server to refuse unknown fields
/// (cli-runtime, pkg/resource/query_param_verifier_v3.go): of Jobs, whose fields are known here.
fn strict_jobs(version: &str) -> Value {
    let kind = json!({"group": "batch", "version": "v1", "kind": "Job"});
    let parameter = json!({"name": "fieldValidation", "in": "query", "schema": {"type": "string"}});
    let patch = json!({"parameters": [parameter], "responses": {}, "x-kubernetes-group-version-kind": kind});
    json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": version},
        "paths": {"/apis/batch/v1/namespaces/{namespace}/jobs/{name}": {"patch": patch}},
    })
}

/// Whether a path belongs to an API that is there.
pub(super) fn serves(path: &str) -> bool {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["api", ..] => true,
        ["apis", group, ..] => GROUPS.contains(group) || *group == REVIEWS,
        _ => false,
    }
}

fn build(version: &str) -> Value {
    let mut parts = version.trim_start_matches('v').split('.');
    let (major, minor) = (parts.next().unwrap_or("1"), parts.next().unwrap_or("0"));
    json!({
        "major": major, "minor": minor, "gitVersion": version, "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "2026-08-12T10:00:00Z", "goVersion": "go1.26.0", "compiler": "gc", "platform": "linux/amd64",
    })
}

fn group(name: &str) -> Value {
    let version = json!({"groupVersion": format!("{name}/v1"), "version": "v1"});
    json!({"name": name, "versions": [version], "preferredVersion": version})
}

fn resources(group: &str) -> Value {
    let all: Vec<Value> = RESOURCES.iter().filter(|one| one.group == group).flat_map(listed).collect();
    let version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": all})
}

fn listed(resource: &Resource) -> Vec<Value> {
    let verbs = json!(["create", "delete", "get", "list", "patch", "update", "watch"]);
    let mut all = vec![json!({
        "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
        "kind": resource.kind, "verbs": verbs, "shortNames": resource.short,
    })];
    for below in resource.subresources {
        let name = format!("{}/{below}", resource.plural);
        all.push(match *below {
            "eviction" => json!({
                "name": name, "singularName": "", "namespaced": true, "group": "policy", "version": "v1",
                "kind": "Eviction", "verbs": ["create"],
            }),
            "log" => json!({
                "name": name, "singularName": "", "namespaced": true, "kind": "Pod", "verbs": ["get"],
            }),
            _ => json!({
                "name": name, "singularName": "", "namespaced": resource.namespaced, "kind": resource.kind,
                "verbs": ["get", "patch", "update"],
            }),
        });
    }
    all
}
