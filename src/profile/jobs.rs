//! Templates to Jobs: a Job that cannot validate a node is refused before the night.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Loaded;
use super::guests::{ExpectWish, TemplateWish};
use super::pods;
use crate::document::{Filled, Problem, Unused, fill, nearest};
use crate::model::{At, Place};

/// Variables that `expect` gives.
const GIVEN: [&str; 2] = ["resource", "perNode"];

/// The lists of containers of a pod.
const LISTS: [&str; 2] = ["containers", "initContainers"];

impl Loaded {
    /// The templates that the pools name, each once.
    pub fn templates(&self) -> Vec<&str> {
        let guests = self.pools.iter().flat_map(|pool| &pool.spec.guests);
        let files = guests.flat_map(|guest| &guest.validate).map(|one| one.template.file.as_str());
        let mut files: Vec<&str> = files.collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    /// Fills the templates of all pools in: each by the path that [`Loaded::templates`] gave, with its bytes or
    /// why there are none. What is wrong with them is among the problems then.
    pub fn fill(&mut self, templates: &[(String, Result<Vec<u8>, String>)]) {
        let mut problems = Vec::new();
        for pool in &mut self.pools {
            let source = pool.source.clone();
            for guest in &mut pool.spec.guests {
                for one in &mut guest.validate {
                    let template = &mut one.template;
                    let at = |place: &Place, message: String, hint: &str| Problem {
                        place: place.clone(),
                        message,
                        snippet: source.snippet_of_word(place),
                        hint: hint.to_owned(),
                    };
                    let found = templates.iter().find(|(path, _)| *path == template.file.value);
                    match found.map(|(_, bytes)| bytes) {
                        Some(Ok(bytes)) => match job(template, &guest.expect, bytes, &at) {
                            Ok(job) => template.job = Some(job),
                            Err(found) => problems.extend(found),
                        },
                        Some(Err(why)) => problems.push(at(
                            &template.file.place,
                            format!("the template `{}` cannot be read: {why}", template.file.escape_debug()),
                            "paths of templates are relative to the working directory",
                        )),
                        None => {}
                    }
                }
            }
        }
        // A template that two pools use is wrong once.
        for problem in problems {
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
        self.problems.sort_by(|a, b| a.place.cmp(&b.place));
    }
}

fn job(
    template: &TemplateWish,
    expect: &ExpectWish,
    bytes: &[u8],
    at: &impl Fn(&Place, String, &str) -> Problem,
) -> Result<Value, Vec<Problem>> {
    let twice: Vec<Problem> = template
        .set
        .iter()
        .filter(|(name, _)| GIVEN.contains(&name.as_str()))
        .map(|(name, value)| at(&value.place, format!("`{name}` is given by `expect`"), "remove it from `set`"))
        .collect();
    if !twice.is_empty() {
        return Err(twice);
    }
    let own = template.set.iter().map(|(name, value)| (name.as_str(), value.value.clone()));
    let given = GIVEN.into_iter().zip([expect.resource.value.clone(), expect.per_node.to_string()]);
    let given: BTreeMap<&str, String> = own.chain(given).collect();
    let (filled, Unused(unused)) = fill(&template.file, bytes, &given)?;
    let mut problems = Vec::new();
    for name in &unused {
        if let Some(value) = template.set.get(name) {
            let message = format!("`{name}` does nothing: {} has no such variable", template.file.escape_debug());
            problems.push(at(&value.place, message, "remove it, or use it in the template as `{{ … }}`"));
        }
    }
    problems.extend(wrong(&filled, &expect.resource, expect.per_node.value));
    if problems.is_empty() { Ok(filled.value) } else { Err(problems) }
}

/// What keeps it from being a Job that validates a node.
fn wrong(filled: &Filled, resource: &At<String>, per_node: u32) -> Vec<Problem> {
    let value = &filled.value;
    let text = |path: &str| value.pointer(path).and_then(Value::as_str);
    let mut problems = Vec::new();
    let (version, kind) = (text("/apiVersion"), text("/kind"));
    if (version, kind) != (Some("batch/v1"), Some("Job")) {
        let key = if version == Some("batch/v1") { "kind" } else { "apiVersion" };
        let found = format!("{} {}", version.unwrap_or("-"), kind.unwrap_or("-"));
        let hint = "a template is one object: `apiVersion: batch/v1`, `kind: Job`";
        return vec![filled.problem(&[key], format!("no Job: expected batch/v1 Job, found {found}"), hint)];
    }
    let misshapen = pods::misshapen(filled);
    if !misshapen.is_empty() {
        return misshapen;
    }
    let mut set_at_visit = |path: &[&str], what: &str| {
        let pointer: String = path.iter().map(|key| format!("/{key}")).collect();
        if value.pointer(&pointer).is_some() {
            let message = format!("`{}` does nothing: {what} at the visit", path.join("."));
            problems.push(filled.problem(path, message, "remove it"));
        }
    };
    for name in ["name", "generateName"] {
        set_at_visit(&["metadata", name], "the Job is named");
    }
    set_at_visit(&["spec", "template", "spec", "nodeName"], "the Job is put on the node");
    let pod = ["spec", "template", "spec"];
    let restart = text("/spec/template/spec/restartPolicy");
    if !matches!(restart, Some("Never" | "OnFailure")) {
        let path = [pod.as_slice(), &["restartPolicy"]].concat();
        let message = "the pod of a Job has `restartPolicy: Never` or `OnFailure`";
        problems.push(filled.problem(
            &path,
            message,
            "write `restartPolicy: Never`: a second try hides what went wrong",
        ));
    }
    problems.extend(never_passes(filled));
    problems.extend(pods::never_runs(filled));
    let containers = [pod.as_slice(), &["containers"]].concat();
    let all = value.pointer("/spec/template/spec/containers").and_then(Value::as_array);
    let Some(all) = all.filter(|all| !all.is_empty()) else {
        problems.push(filled.problem(&containers, "the Job has no container", "it needs one, with an image"));
        return problems;
    };
    for (index, container) in all.iter().enumerate() {
        let index = index.to_string();
        for field in ["name", "image"] {
            let found = container.get(field).and_then(Value::as_str);
            if found.is_none_or(|text| text.trim().is_empty()) {
                let path = [containers.as_slice(), &[&index, field]].concat();
                problems.push(filled.problem(&path, format!("a container without `{field}`"), "give it one"));
            }
        }
    }
    problems.extend(pods::overcommitted(filled, resource));
    // An extended resource has one value for request and limit, and the limit is the one that is needed.
    let every = || LISTS.into_iter().flat_map(|list| pods::containers(value, list));
    let asked = every().any(|container| pods::of(container, "limits", resource).is_some());
    let sum = pods::needs(value, resource);
    let at_once = at_once(value);
    let hint = "write `resources: {limits: {\"{{ resource }}\": {{ perNode }}}}` on a container".to_owned();
    match (asked, sum) {
        (true, Some(each @ 1..)) if each.saturating_mul(at_once) <= per_node.into() => {}
        (false, _) => {
            let known = every().filter_map(|one| one.pointer("/resources/limits")?.as_object());
            let near = nearest(resource, known.flat_map(|limits| limits.keys()).map(String::as_str));
            let near = near.map(|near| format!("; nearest: `{near}`")).unwrap_or_default();
            let message = format!("no container has a limit of {resource}{near}: the Job would run beside the GPUs");
            problems.push(filled.problem(&containers, message, &hint));
        }
        (_, Some(0)) => {
            problems.push(filled.problem(&containers, format!("the limit of {resource} is 0"), &hint));
        }
        (_, Some(sum)) if at_once > 1 => {
            let message = format!("{at_once} pods at once ask for {sum} of {resource} each, and a node has {per_node}");
            let hint = "one pod that asks for all of them proves the node: remove `parallelism`";
            problems.push(filled.problem(&["spec", "parallelism"], message, hint));
        }
        (_, Some(sum)) => {
            let message = format!("the containers ask for {sum} of {resource}, and a node has {per_node}");
            problems.push(filled.problem(&containers, message, &hint));
        }
        (_, None) => {
            let message = format!("the limit of {resource} is no whole number");
            problems.push(filled.problem(&containers, message, &hint));
        }
    }
    problems
}

/// What a server takes, and what never succeeds: a Job of no pods is complete without one,
/// one without time fails as it starts, and one that is suspended waits for somebody.
fn never_passes(filled: &Filled) -> Vec<Problem> {
    let spec = |key: &str| filled.value.get("spec").and_then(|spec| spec.get(key));
    let mut problems = Vec::new();
    for (key, why) in [
        ("parallelism", "a Job of no pods validates nothing"),
        ("completions", "a Job of no pods validates nothing"),
        ("activeDeadlineSeconds", "the Job fails as it starts"),
    ] {
        if spec(key).and_then(Value::as_u64) == Some(0) {
            problems.push(filled.problem(&["spec", key], format!("`{key}: 0`: {why}"), "remove it"));
        }
    }
    if spec("suspend") == Some(&Value::Bool(true)) {
        let message = "`suspend: true`: the Job waits until somebody resumes it";
        problems.push(filled.problem(&["spec", "suspend"], message, "remove it: a queue holds Jobs back by itself"));
    }
    problems
}

/// How many of a resource the pods of a Job have at one time. None where it cannot be told.
pub(super) fn most_at_once(job: &Value, resource: &str) -> Option<u64> {
    Some(pods::needs(job, resource)?.saturating_mul(at_once(job)))
}

/// How many pods of the Job run at one time.
fn at_once(job: &Value) -> u64 {
    let count = |key: &str| job.pointer(key).and_then(Value::as_u64);
    let most = count("/spec/parallelism").unwrap_or(1);
    most.min(count("/spec/completions").unwrap_or(most))
}
