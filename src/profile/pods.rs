//! The pods of a Job that validates a node: what they ask for, and what keeps them from running there.

use serde_json::Value;

use crate::document::{Filled, Problem};

/// Where the pods of a Job are described.
const POD: [&str; 3] = ["spec", "template", "spec"];

/// Fields that are mappings, with all that stands above them.
const MAPPINGS: [&[&str]; 9] = [
    &["metadata"],
    &["metadata", "labels"],
    &["metadata", "annotations"],
    &["spec"],
    &["spec", "template"],
    &["spec", "template", "metadata"],
    &["spec", "template", "metadata", "labels"],
    &["spec", "template", "metadata", "annotations"],
    &POD,
];

/// Fields that are whole numbers.
const NUMBERS: [&[&str]; 5] = [
    &["spec", "backoffLimit"],
    &["spec", "activeDeadlineSeconds"],
    &["spec", "completions"],
    &["spec", "parallelism"],
    &["spec", "template", "spec", "activeDeadlineSeconds"],
];

/// What is at this path, if it is not null: a server takes null as nothing.
pub(super) fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key)).filter(|value| !value.is_null())
}

/// Values of another form than Jobs have. At the visit some are written into, so they must not be passed over.
pub(super) fn misshapen(filled: &Filled) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut expect = |path: &[&str], what: &str, fits: fn(&Value) -> bool| {
        if at(&filled.value, path).is_some_and(|value| !fits(value)) {
            let hint = format!("write {what}, or remove it");
            problems.push(filled.problem(path, format!("`{}` is no {}", path.join("."), bare(what)), &hint));
        }
    };
    for path in MAPPINGS {
        expect(path, "a mapping", Value::is_object);
    }
    expect(&["metadata", "namespace"], "a name", |value| value.as_str().is_some_and(|text| !text.is_empty()));
    for list in ["tolerations", "containers", "initContainers"] {
        expect(&[POD.as_slice(), &[list]].concat(), "a list", Value::is_array);
    }
    for path in NUMBERS {
        expect(path, "a whole number, without quotes", Value::is_u64);
    }
    problems
}

/// "a mapping" to "mapping".
fn bare(what: &str) -> &str {
    let what = what.strip_prefix("a ").unwrap_or(what);
    what.split_once(',').map_or(what, |(what, _)| what)
}

/// What a server takes, and what keeps the pod from running on the node.
pub(super) fn never_runs(filled: &Filled) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut refuse = |path: &[&str], message: &str, hint: &str| problems.push(filled.problem(path, message, hint));
    let pod = |keys: &[&'static str]| [POD.as_slice(), keys].concat();
    let holds = |path: &[&str]| at(&filled.value, path).is_some_and(|value| !is_empty(value));
    let gates = pod(&["schedulingGates"]);
    if holds(&gates) {
        refuse(&gates, "`schedulingGates`: the pod waits until somebody lifts them", "remove them");
    }
    let pinned = "the Job is put on its node, whose kubelet rejects a pod that does not match it (labels of GPUs may \
                  come late after a boot)";
    for path in [pod(&["nodeSelector"]), pod(&["affinity", "nodeAffinity", REQUIRED])] {
        if holds(&path) {
            refuse(&path, &format!("`{}`: {pinned}", path.join(".")), "remove it");
        }
    }
    let managed = ["spec", "managedBy"];
    if at(&filled.value, &managed).is_some_and(|by| by != CONTROLLER) {
        let message = format!("`managedBy` is not `{CONTROLLER}`: nothing in the cluster would make its pod");
        refuse(&managed, &message, "remove it");
    }
    let policy = ["spec", "podFailurePolicy"];
    if holds(&policy) && at(&filled.value, &pod(&["restartPolicy"])).is_some_and(|policy| policy == "OnFailure") {
        let message = "`podFailurePolicy` goes with `restartPolicy: Never` only";
        refuse(&policy, message, "remove it, or write `restartPolicy: Never`");
    }
    problems
}

/// The part of a node affinity that has to hold.
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Who makes the pods of Jobs, as `spec.managedBy` calls it.
const CONTROLLER: &str = "kubernetes.io/job-controller";

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(|map| map.is_empty())
}

/// The containers of a list of the pod.
pub(super) fn containers<'a>(job: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    at(job, &[POD.as_slice(), &[list]].concat()).and_then(Value::as_array).into_iter().flatten()
}

/// What a container says of a resource: its limit, or its request.
pub(super) fn of<'a>(container: &'a Value, what: &str, resource: &str) -> Option<&'a Value> {
    at(container, &["resources", what, resource])
}

/// How many of a resource a pod of the Job needs, as Kubernetes counts: its containers run beside its sidecars (init
/// containers that are restarted always), its other init containers one after the other, beside the sidecars before
/// them. None where a limit is no whole number.
pub(super) fn needs(job: &Value, resource: &str) -> Option<u64> {
    let limit = |container: &Value| of(container, "limits", resource).map_or(Some(0), amount);
    let (mut beside, mut most) = (0_u64, 0_u64);
    for container in containers(job, "initContainers") {
        let own = beside.saturating_add(limit(container)?);
        match container.get("restartPolicy").is_some_and(|policy| policy == "Always") {
            true => beside = own,
            false => most = most.max(own),
        }
    }
    for container in containers(job, "containers") {
        beside = beside.saturating_add(limit(container)?);
    }
    Some(most.max(beside))
}

/// A quantity that is a whole number: `2`, or `"2"`.
pub(super) fn amount(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// An extended resource cannot be overcommitted: a request is the limit.
pub(super) fn overcommitted(filled: &Filled, resource: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for list in ["containers", "initContainers"] {
        for (index, container) in containers(&filled.value, list).enumerate() {
            let Some(request) = of(container, "requests", resource) else { continue };
            let limit = of(container, "limits", resource);
            if limit.is_none_or(|limit| amount(limit) != amount(request)) {
                let index = index.to_string();
                let path = [POD.as_slice(), &[list, &index, "resources", "requests", resource]].concat();
                let message = format!("the request of {resource} is not its limit");
                problems.push(filled.problem(&path, message, "remove the request: the limit stands for both"));
            }
        }
    }
    problems
}
