//! One validation Job on one node: what is made of the template, and how it is followed.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod as RawPod;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::answer::shown;
use super::client::Client;
use super::error::Error;
use super::jobs::{BOOT, JobEnd, JobView, NODE_UID, RUN, failures, restarts, telling, waits};
use super::nodes::is_extended;
use crate::base::cause::chain;
use crate::model::{JobTemplate, NodeRef, RunId};

/// How many pods of a failed Job are told of.
const TOLD: usize = 3;

/// One validation Job on one node.
#[derive(Debug, Clone)]
pub struct JobRun {
    client: Client,
    node: NodeRef,
    run: RunId,
    boot: String,
    namespace: String,
    name: String,
    job: Value,
}

/// What a validation shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobLook {
    /// It has not ended.
    Waiting {
        /// What it waits for: `ImagePullBackOff`, a queue, its own work.
        why: String,
    },
    /// It succeeded, on this node.
    Passed {
        /// What it said.
        evidence: Vec<String>,
        /// Tries that failed before: of a GPU that is worth knowing.
        tries: Vec<String>,
    },
    /// It failed, is gone, or was not run on this node.
    Failed {
        /// Reasons, exit codes, last lines of its log.
        evidence: Vec<String>,
    },
}

impl JobRun {
    /// The Job number `number` of this run on this node, of a whole Job as template. It runs on the node
    /// whatever its taints say; it ends, and is not tried again, unless the template says otherwise. What it
    /// shows is true of this boot (`status.nodeInfo.bootID`) alone: a run may validate a node before its host
    /// is changed, and has to once more after it.
    ///
    /// # Errors
    /// [`Error::Unsendable`] if the template is no Job.
    pub fn new(
        client: Client,
        node: NodeRef,
        boot: &str,
        run: &RunId,
        number: usize,
        template: &Value,
    ) -> Result<Self, Error> {
        // A run is told from another by its end: it begins with the time.
        let short: String = run.as_str().to_lowercase().chars().rev().take(8).collect();
        let short: String = short.chars().rev().collect();
        let hash = Sha256::digest(node.uid.as_bytes());
        let hash: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let name = format!("poolwright-{short}-{hash}-{number}");
        let problem = |problem: String| client.transport().unsendable(&format!("create Job {name}"), problem);
        let mut job = template.clone();
        let is = |key: &str, value: &str| job[key].as_str() == Some(value);
        if !is("apiVersion", "batch/v1") || !is("kind", "Job") {
            return Err(problem("the template is not of apiVersion batch/v1 and kind Job".to_owned()));
        }
        if !job["spec"]["template"]["spec"]["containers"].is_array() {
            return Err(problem("the template has no spec.template.spec.containers".to_owned()));
        }
        let namespace = job["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
        if !is_label(&namespace) {
            return Err(problem(format!("`{namespace}` is no namespace")));
        }
        object(&mut job["metadata"]).remove("generateName");
        job["metadata"]["name"] = json!(name);
        job["metadata"]["namespace"] = json!(namespace);
        let pods = &mut job["spec"]["template"];
        pods["spec"]["nodeName"] = json!(node.name);
        default(&mut pods["spec"]["restartPolicy"], json!("Never"));
        match pods["spec"]["tolerations"].as_array_mut() {
            Some(tolerations) => tolerations.push(json!({ "operator": "Exists" })),
            None => pods["spec"]["tolerations"] = json!([{ "operator": "Exists" }]),
        }
        let longest = JobTemplate::longest_s(&job);
        let spec = object(&mut job["spec"]);
        spec.entry("backoffLimit").or_insert(json!(0));
        spec.insert("activeDeadlineSeconds".to_owned(), json!(longest));
        // It is deleted once it has been read, by us.
        spec.remove("ttlSecondsAfterFinished");
        sign(&mut job["metadata"], run, &node, boot);
        sign(&mut job["spec"]["template"]["metadata"], run, &node, boot);
        let (run, boot) = (run.clone(), boot.to_owned());
        Ok(Self { client, node, run, boot, namespace, name, job })
    }

    /// Namespace and name of the Job.
    pub fn title(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Asks the server whether it would take this very Job. Nothing is written; unclear is no yes.
    ///
    /// # Errors
    /// [`Error`]: what is refused, and what could not be found out; [`Error::NotTaken`] if there is a Job of
    /// this name that is not ours, or something between makes another Job of it.
    pub async fn rehearse(&self) -> Result<(), Error> {
        match self.client.try_job(&self.job).await {
            Ok(job) if self.is_ours(&job) && job.node_name.as_deref() == Some(&self.node.name) => Ok(()),
            Ok(_) => Err(self.not_taken("what it would make of it is not of this run and node")),
            // The name is looked for last: all else is well.
            Err(error) if error.is_code(409) => self.known(error).await.map(drop),
            Err(error) => Err(error),
        }
    }

    /// Whether a Job of this run and node is there that was made on another boot of it: what it shows is true
    /// no more, and it has to go before this one can be created.
    ///
    /// # Errors
    /// [`Error`] if that could not be read.
    pub async fn is_outdated(&self) -> Result<bool, Error> {
        Ok(self.found().await?.is_some_and(|job| self.is_ours(&job) && !self.is_of_this_boot(&job)))
    }

    /// Creates the Job. One that this run has created before for this node, on this boot, is followed.
    ///
    /// # Errors
    /// [`Error`]; [`Error::NotTaken`] if there is a Job of this name that is not ours, or of another boot.
    pub async fn start(&self) -> Result<(), Error> {
        match self.client.create_job(&self.job).await {
            Ok(_) => Ok(()),
            // There is one, or the answer was lost: look before anything is concluded.
            Err(error) if error.is_code(409) || error.may_have_acted() => {
                match self.is_of_this_boot(&self.known(error).await?) {
                    true => Ok(()),
                    false => Err(self.not_taken("the Job of this name was made on another boot of the node")),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// The Job that is there already, if it is ours; without one it is as the server said.
    async fn known(&self, said: Error) -> Result<JobView, Error> {
        match self.found().await? {
            Some(job) if self.is_ours(&job) => Ok(job),
            Some(_) => Err(self.not_taken("a Job of this name is there that is not of this run and node")),
            None => Err(said),
        }
    }

    /// Looks how it stands.
    ///
    /// # Errors
    /// [`Error`] if that could not be read.
    pub async fn look(&self) -> Result<JobLook, Error> {
        let failed = |text: String| JobLook::Failed { evidence: vec![text] };
        let title = self.title();
        let Some(job) = self.found().await? else { return Ok(failed(format!("Job {title} is gone"))) };
        if !self.is_ours(&job) {
            return Ok(failed(format!("Job {title} is not of this run and node")));
        }
        if !self.is_of_this_boot(&job) {
            return Ok(failed(format!("Job {title} was made on another boot of the node")));
        }
        if job.node_name.as_deref() != Some(&self.node.name) {
            return Ok(failed(format!("Job {title} is not pinned to node {}", self.node.name)));
        }
        match &job.end {
            Some(JobEnd::Complete) if job.succeeded > 0 => {
                let pods = self.client.job_pods(&job).await?;
                match self.proof(&pods) {
                    Ok(pod) => {
                        let mut evidence = vec![format!("Job {title} has completed")];
                        evidence.extend(self.log(pod).await);
                        Ok(JobLook::Passed { evidence, tries: tries(&pods) })
                    }
                    Err(why) => Ok(failed(format!("Job {title} says that it has completed, and {why}"))),
                }
            }
            Some(JobEnd::Complete) => {
                Ok(failed(format!("Job {title} says that it has completed, and no pod succeeded")))
            }
            Some(JobEnd::Failed(said)) => {
                let mut evidence = vec![format!("Job {title} has failed: {said}")];
                let pods = self.client.job_pods(&job).await?;
                if pods.is_empty() {
                    evidence.push(self.no_pod(&job).await);
                }
                for pod in pods.iter().take(TOLD) {
                    evidence.extend(failures(pod));
                    evidence.extend(self.log(pod).await);
                }
                Ok(JobLook::Failed { evidence })
            }
            None if job.suspended => {
                Ok(JobLook::Waiting { why: format!("Job {title} is suspended: no queue has admitted it") })
            }
            None => {
                let pods = self.client.job_pods(&job).await?;
                let why = match pods.first() {
                    Some(pod) => waits(pod),
                    None => self.no_pod(&job).await,
                };
                Ok(JobLook::Waiting { why })
            }
        }
    }

    /// The pod that succeeded on this node with the GPUs that were asked for. A Job says nothing of its pods: a
    /// webhook or a policy may have sent them elsewhere, or taken their GPUs from them.
    fn proof<'pods>(&self, pods: &'pods [RawPod]) -> Result<&'pods RawPod, String> {
        let asked = extended(&self.job["spec"]["template"]["spec"]);
        let mut found = "no pod of it is there that has succeeded".to_owned();
        let succeeded = |pod: &&RawPod| pod.status.as_ref().and_then(|is| is.phase.as_deref()) == Some("Succeeded");
        for pod in pods.iter().filter(succeeded) {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            let spec = serde_json::to_value(&pod.spec).unwrap_or_default();
            let on = spec["nodeName"].as_str().unwrap_or("no node");
            if on != self.node.name {
                found = format!("its pod {name} ran on {}, not on {}", shown(on), self.node.name);
                continue;
            }
            let has = extended(&spec);
            let lacks = asked.iter().find(|(resource, number)| has.get(*resource) < Some(number));
            let Some((resource, number)) = lacks else { return Ok(pod) };
            let had = has.get(resource).copied().unwrap_or_default();
            found = format!("its pod {name} ran with {had} {resource}, not with {number}");
        }
        Err(found)
    }

    /// That a Job has no pod, and why, as far as anybody says: quotas, Pod Security and webhooks admit pods, and
    /// what they refuse stands in an event of the Job alone. Without the right to read it nothing is lost but the
    /// reason.
    async fn no_pod(&self, job: &JobView) -> String {
        let title = self.title();
        match self.client.last_warning(&job.namespace, &job.uid).await {
            Ok(Some(said)) => format!("Job {title} has no pod: {said}"),
            Ok(None) => format!("Job {title} has no pod yet"),
            Err(error) => {
                let why = if error.is_code(403) { "its events may not be read".to_owned() } else { chain(&error) };
                let ask = format!("kubectl -n {} describe job {}", self.namespace, self.name);
                format!("Job {title} has no pod yet; `{ask}` says why ({why})")
            }
        }
    }

    /// Deletes the Job and its pods, if it is ours.
    ///
    /// # Errors
    /// [`Error`]; the Job is then left behind, and harms nothing.
    pub async fn tidy(&self) -> Result<(), Error> {
        match self.found().await? {
            Some(job) if self.is_ours(&job) => self.client.delete_job(&job).await,
            _ => Ok(()),
        }
    }

    async fn found(&self) -> Result<Option<JobView>, Error> {
        self.client.job(&self.namespace, &self.name).await
    }

    fn is_ours(&self, job: &JobView) -> bool {
        job.run.as_deref() == Some(self.run.as_str()) && job.node_uid.as_deref() == Some(&self.node.uid)
    }

    fn is_of_this_boot(&self, job: &JobView) -> bool {
        job.boot.as_deref() == Some(self.boot.as_str())
    }

    async fn log(&self, pod: &RawPod) -> Vec<String> {
        let (Some(name), Some(container)) = (pod.metadata.name.as_deref(), telling(pod)) else { return Vec::new() };
        let lines = self.client.log_of(&self.namespace, name, &container).await;
        lines.into_iter().map(|line| format!("log: {line}")).collect()
    }

    fn not_taken(&self, found: &str) -> Error {
        Error::NotTaken {
            cluster: self.client.name().to_owned(),
            call: format!("create Job {}", self.title()).into(),
            found: found.to_owned(),
        }
    }
}

/// What failed before a Job passed: pods of it, and containers that were started again.
fn tries(pods: &[RawPod]) -> Vec<String> {
    let failed = pods.iter().filter(|pod| pod.status.as_ref().and_then(|is| is.phase.as_deref()) == Some("Failed"));
    failed.take(TOLD).flat_map(failures).chain(pods.iter().flat_map(restarts)).collect()
}

/// How much the containers of a pod are given of each extended resource (GPUs are), by its spec. What is no
/// whole number is none.
fn extended(spec: &Value) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    let containers = ["initContainers", "containers"].into_iter().filter_map(|kind| spec[kind].as_array());
    for container in containers.flatten() {
        for (name, amount) in container["resources"]["limits"].as_object().into_iter().flatten() {
            let amount = amount.as_u64().or_else(|| amount.as_str()?.parse().ok());
            if is_extended(name) {
                *all.entry(name.clone()).or_default() += amount.unwrap_or_default();
            }
        }
    }
    all
}

/// The label by which tools group what one program has made.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Says whose it is, in the metadata of a Job or of its pods.
fn sign(metadata: &mut Value, run: &RunId, node: &NodeRef, boot: &str) {
    let metadata = object(metadata);
    let labels = object(metadata.entry("labels").or_insert(json!({})));
    labels.insert(RUN.to_owned(), json!(run.as_str()));
    labels.insert(MANAGED_BY.to_owned(), json!("poolwright"));
    let annotations = object(metadata.entry("annotations").or_insert(json!({})));
    annotations.insert(NODE_UID.to_owned(), json!(node.uid));
    annotations.insert(BOOT.to_owned(), json!(boot));
}

/// The value as an object; what is none becomes an empty one.
fn object(value: &mut Value) -> &mut serde_json::Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("it was made one above"),
    }
}

fn default(value: &mut Value, instead: Value) {
    if value.is_null() {
        *value = instead;
    }
}

/// An RFC 1123 label, as names of namespaces are.
fn is_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.len() <= 63 && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}
