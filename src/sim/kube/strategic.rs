//! Strategic merge patches, as `kubectl taint`, `kubectl edit` and `kubectl apply` send them
//! (apimachinery, pkg/util/strategicpatch/patch.go).

use serde_json::{Map, Value};

/// The key by which the items of a list are merged: `patchMergeKey` of the field, in the types of this API
/// (staging/src/k8s.io/api). A list without one, as `spec.taints` of a node, is replaced.
fn merge_key(field: &str, services: bool) -> Option<&'static str> {
    Some(match field {
        "conditions" | "addresses" => "type",
        "ownerReferences" => "uid",
        "containers" | "initContainers" | "ephemeralContainers" | "env" | "volumes" | "imagePullSecrets" => "name",
        "volumeMounts" => "mountPath",
        "volumeDevices" => "devicePath",
        "ports" if services => "port",
        "ports" => "containerPort",
        "hostAliases" => "ip",
        "topologySpreadConstraints" => "topologyKey",
        _ => return None,
    })
}

/// Lists of plain values that are merged: `patchStrategy: merge` without a key.
const SETS: [&str; 2] = ["finalizers", "podCIDRs"];

/// Applies a patch; what is wrong with it is the error.
pub(super) fn apply(object: &mut Value, patch: &Value) -> Result<(), String> {
    let services = object.get("kind").and_then(Value::as_str) == Some("Service");
    match (object.as_object_mut(), patch.as_object()) {
        (Some(object), Some(patch)) => merge(object, patch, services),
        _ => Err("a patch is a map".to_owned()),
    }
}

fn directive(map: &Map<String, Value>) -> Option<&str> {
    map.get("$patch").and_then(Value::as_str)
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn merge(object: &mut Map<String, Value>, patch: &Map<String, Value>, services: bool) -> Result<(), String> {
    match directive(patch) {
        None | Some("merge") => {}
        Some(word @ ("replace" | "delete")) => {
            object.clear();
            if word == "replace" {
                let rest = patch.iter().filter(|(field, _)| !field.starts_with('$'));
                object.extend(rest.map(|(field, value)| (field.clone(), value.clone())));
            }
            return Ok(());
        }
        Some(other) => return Err(format!("Unknown patch type found: {other}")),
    }
    if let Some(kept) = patch.get("$retainKeys") {
        let kept = texts(kept);
        object.retain(|field, _| kept.contains(&field.as_str()));
    }
    for (field, value) in patch {
        let shrinks = field.strip_prefix("$deleteFromPrimitiveList/").and_then(|list| object.get_mut(list));
        if let (Some(all), Some(gone)) = (shrinks.and_then(Value::as_array_mut), value.as_array()) {
            all.retain(|one| !gone.contains(one));
        }
        if field.starts_with('$') {
            continue;
        }
        match (value, object.get_mut(field)) {
            (Value::Null, _) => drop(object.shift_remove(field)),
            (Value::Object(below), Some(Value::Object(known))) => merge(known, below, services)?,
            (Value::Object(below), _) => {
                let mut made = Map::new();
                merge(&mut made, below, services)?;
                object.insert(field.clone(), Value::Object(made));
            }
            (Value::Array(items), known) => {
                let known = known.and_then(|known| known.as_array_mut().map(std::mem::take)).unwrap_or_default();
                let order = patch.get(&format!("$setElementOrder/{field}"));
                let list = merge_list(field, known, items, order, services)?;
                object.insert(field.clone(), Value::Array(list));
            }
            (value, _) => drop(object.insert(field.clone(), value.clone())),
        }
    }
    Ok(())
}

fn merge_list(
    field: &str,
    mut known: Vec<Value>,
    items: &[Value],
    order: Option<&Value>,
    services: bool,
) -> Result<Vec<Value>, String> {
    if SETS.contains(&field) {
        items.iter().for_each(|one| {
            if !known.contains(one) {
                known.push(one.clone())
            }
        });
        return Ok(known);
    }
    let Some(key) = merge_key(field, services) else { return Ok(items.to_vec()) };
    let replaces = items.iter().any(|item| item.as_object().and_then(directive) == Some("replace"));
    if replaces {
        known.clear();
    }
    for item in items.iter().filter_map(Value::as_object) {
        let word = directive(item);
        if word == Some("replace") {
            continue;
        }
        let id = item.get(key).ok_or_else(|| {
            format!("map: {} does not contain declared merge key: {key}", Value::Object(item.clone()))
        })?;
        let place = known.iter().position(|one| one.get(key) == Some(id));
        match (word, place) {
            (Some("delete"), Some(place)) => drop(known.remove(place)),
            (Some("delete"), None) => {}
            (_, Some(place)) => {
                if let Some(Value::Object(one)) = known.get_mut(place) {
                    merge(one, item, services)?;
                }
            }
            (_, None) => {
                let mut made = Map::new();
                merge(&mut made, item, services)?;
                known.push(Value::Object(made));
            }
        }
    }
    if let Some(order) = order.and_then(Value::as_array) {
        // Items that the caller does not know of come last.
        known.sort_by_key(|one| order.iter().position(|wanted| wanted.get(key) == one.get(key)).unwrap_or(order.len()));
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn becomes(mut object: Value, patch: Value, wanted: Value) {
        apply(&mut object, &patch).unwrap();
        assert_eq!(object, wanted);
    }

    #[test]
    fn lists_with_a_key_are_merged_and_others_replaced() {
        let taints = json!({"spec": {"taints": [{"key": "a"}, {"key": "b"}]}});
        becomes(taints, json!({"spec": {"taints": [{"key": "c"}]}}), json!({"spec": {"taints": [{"key": "c"}]}}));
        becomes(
            json!({"conditions": [{"type": "Ready", "status": "True", "reason": "r"}, {"type": "X"}]}),
            json!({
                "$setElementOrder/conditions": [{"type": "X"}, {"type": "Ready"}],
                "conditions": [{"type": "Ready", "status": "False"}, {"type": "X", "$patch": "delete"}, {"type": "Y"}],
            }),
            json!({"conditions": [{"type": "Ready", "status": "False", "reason": "r"}, {"type": "Y"}]}),
        );
        becomes(
            json!({"containers": [{"name": "a", "image": "i", "args": ["1", "2"]}]}),
            json!({"containers": [{"name": "a", "args": ["3"]}, {"name": "b"}]}),
            json!({"containers": [{"name": "a", "image": "i", "args": ["3"]}, {"name": "b"}]}),
        );
        becomes(
            json!({"env": [{"name": "a"}]}),
            json!({"env": [{"$patch": "replace"}, {"name": "b"}]}),
            json!({"env": [{"name": "b"}]}),
        );
        assert!(apply(&mut json!({"env": []}), &json!({"env": [{"value": "b"}]})).is_err());
    }

    #[test]
    fn maps_follow_their_directives_and_sets_grow_and_shrink() {
        becomes(
            json!({"labels": {"a": "1", "b": "2"}, "strategy": {"type": "R", "rolling": {}}}),
            json!({"labels": {"$patch": "replace", "c": "3"}, "strategy": {"$retainKeys": ["type"], "type": "S"}}),
            json!({"labels": {"c": "3"}, "strategy": {"type": "S"}}),
        );
        becomes(json!({"labels": {"a": "1", "b": "2"}}), json!({"labels": {"a": null}}), json!({"labels": {"b": "2"}}));
        becomes(
            json!({"finalizers": ["a", "b"]}),
            json!({"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]}),
            json!({"finalizers": ["b", "c"]}),
        );
        assert!(apply(&mut json!({}), &json!({"$patch": "other"})).is_err());
    }
}
