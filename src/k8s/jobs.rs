//! Jobs: the requests, and what a Job and its pods show.

use http::uri::InvalidUri;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod as RawPod};
use kube::Resource;
use kube::api::{DeleteParams, GetParams, ListParams, LogParams, PostParams, Preconditions};
use kube::core::Request;
use kube::core::request::Error as BuildError;
use serde_json::Value;

use super::answer::{name, shown};
use super::client::Client;
use super::error::Error;
use super::nodes::{MANAGER, PAGE};
use super::pods::pods;
use super::transport::{DEADLINE, Made};
use crate::base::cause::chain;
use crate::model::{NodeMark, counted};

/// The label that the Job controller writes on the pods of a Job (Kubernetes 1.27 and later).
const JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// How many lines of a log are shown at most, and how many bytes of it are read.
const LOG_LINES: i64 = 20;
const LOG_BYTES: i64 = 16 << 10;

/// What a Job shows of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobView {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// The run that made it, by its label.
    pub run: Option<String>,
    /// The UID of the node that it is for, by its annotation.
    pub node_uid: Option<String>,
    /// The boot of the node that it is for, by its annotation.
    pub boot: Option<String>,
    /// The node that its pods are pinned to.
    pub node_name: Option<String>,
    /// Whether it is held back (`spec.suspend`): a queue has not admitted it.
    pub suspended: bool,
    /// Pods that succeeded.
    pub succeeded: u32,
    /// How it ended, if it has.
    pub end: Option<JobEnd>,
}

/// How a Job ended, as its controller says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEnd {
    /// Condition `Complete`.
    Complete,
    /// Condition `Failed`, with its reason and message.
    Failed(String),
}

/// How the label and the annotations are called that tell whose a Job is.
pub(super) const RUN: &str = NodeMark::JOB_RUN;
pub(super) const NODE_UID: &str = "poolwright.io/node-uid";
pub(super) const BOOT: &str = "poolwright.io/boot";

impl Client {
    /// Creates a Job, once. A field that the server does not know is refused.
    ///
    /// # Errors
    /// [`Error`]; HTTP 409 where there is one of this name.
    pub async fn create_job(&self, job: &Value) -> Result<JobView, Error> {
        let call = format!("create Job {}", title(job));
        let job: Job = self.transport().once(&call, creation(job, false)).await?;
        view(job).map_err(|what| self.transport().decode(&call, what))
    }

    /// Has the server do all that it does to create a Job, but keep it: names, fields, rights, namespace,
    /// quotas of Jobs and admission webhooks. Nothing is written, so that it is asked again while that can help.
    ///
    /// # Errors
    /// [`Error`]; HTTP 409 where there is one of this name, and all else is well.
    pub async fn try_job(&self, job: &Value) -> Result<JobView, Error> {
        let call = format!("create Job {} in a dry run", title(job));
        let job: Job = self.transport().read(&call, || creation(job, true)).await?;
        view(job).map_err(|what| self.transport().decode(&call, what))
    }

    /// The Job of this name, if there is one.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn job(&self, namespace: &str, name: &str) -> Result<Option<JobView>, Error> {
        let call = format!("read Job {namespace}/{name}");
        match self.transport().read::<Job>(&call, || jobs(namespace).get(name, &GetParams::default())).await {
            Ok(job) => view(job).map(Some).map_err(|what| self.transport().decode(&call, what)),
            Err(error) if error.is_code(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes this very Job and its pods. One that is gone already is no error.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn delete_job(&self, job: &JobView) -> Result<(), Error> {
        let call = format!("delete Job {}/{}", job.namespace, job.name);
        let params = DeleteParams::background()
            .preconditions(Preconditions { uid: Some(job.uid.clone()), resource_version: None });
        match self.transport().once::<Value>(&call, jobs(&job.namespace).delete(&job.name, &params)).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_code(404) || error.is_code(409) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What the pods of a Job show.
    pub(super) async fn job_pods(&self, job: &JobView) -> Result<Vec<RawPod>, Error> {
        let call = format!("list the pods of Job {}/{}", job.namespace, job.name);
        let page = |next: Option<&str>| -> Made {
            let mut params = ListParams::default().labels(&format!("{JOB_NAME}={}", job.name)).limit(PAGE);
            params.continue_token = next.map(str::to_owned);
            pods(Some(&job.namespace)).list(&params)
        };
        let (_, mut found) = self.transport().list::<RawPod>(&call, page).await?;
        found.retain(|pod| pod.metadata.owner_references.iter().flatten().any(|owner| owner.uid == job.uid));
        Ok(found)
    }

    /// The last lines of the log of a container, or why they cannot be read.
    pub(super) async fn log_of(&self, namespace: &str, pod: &str, container: &str) -> Vec<String> {
        let params = LogParams {
            container: Some(container.to_owned()),
            tail_lines: Some(LOG_LINES),
            limit_bytes: Some(LOG_BYTES),
            ..LogParams::default()
        };
        let call = format!("read the log of pod {namespace}/{pod}");
        match self.transport().send(&call, pods(Some(namespace)).logs(pod, &params), DEADLINE).await {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let lines: Vec<String> = text.lines().map(shown).filter(|line| !line.is_empty()).collect();
                // A server need not keep to what it was asked for.
                let first = lines.len().saturating_sub(LOG_LINES as usize);
                lines.into_iter().skip(first).collect()
            }
            Err(error) => vec![chain(&error)],
        }
    }
}

fn jobs(namespace: &str) -> Request {
    Request::new(Job::url_path(&(), Some(namespace)))
}

/// Namespace and name of a Job that is to be made.
fn title(job: &Value) -> String {
    let text = |key: &str| job["metadata"][key].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

/// What creates a Job. Without `Strict` a server passes over a field that it does not know, with a warning.
fn creation(job: &Value, dry_run: bool) -> Made {
    let params = PostParams { dry_run, field_manager: Some(MANAGER.to_owned()) };
    let namespace = job["metadata"]["namespace"].as_str().unwrap_or("default");
    let mut request = jobs(namespace).create(&params, job.to_string().into_bytes())?;
    // The builder has no parameter for it.
    let uri = format!("{}&fieldValidation=Strict", request.uri());
    *request.uri_mut() = uri.parse().map_err(|error: InvalidUri| BuildError::BuildRequest(error.into()))?;
    Ok(request)
}

fn view(job: Job) -> Result<JobView, String> {
    let metadata = job.metadata;
    let spec = job.spec.ok_or("it has no spec")?;
    let status = job.status.unwrap_or_default();
    let said = |kind: &str| {
        let mut conditions = status.conditions.iter().flatten();
        conditions.find(|condition| condition.type_ == kind && condition.status == "True")
    };
    let end = match (said("Failed"), said("Complete")) {
        // Both at once is a contradiction, and no success.
        (Some(failed), _) => {
            let words = [failed.reason.as_deref(), failed.message.as_deref()];
            Some(JobEnd::Failed(shown(&words.into_iter().flatten().collect::<Vec<_>>().join(": "))))
        }
        (None, Some(_)) => Some(JobEnd::Complete),
        (None, None) => None,
    };
    let mut annotations = metadata.annotations.unwrap_or_default();
    Ok(JobView {
        namespace: name(metadata.namespace, "namespace")?,
        name: name(metadata.name, "name")?,
        uid: metadata.uid.filter(|uid| !uid.is_empty()).ok_or("it has no uid")?,
        run: metadata.labels.and_then(|mut labels| labels.remove(RUN)),
        node_uid: annotations.remove(NODE_UID),
        boot: annotations.remove(BOOT),
        node_name: spec.template.spec.and_then(|pod| pod.node_name),
        suspended: spec.suspend.unwrap_or(false),
        succeeded: status.succeeded.and_then(|count| u32::try_from(count).ok()).unwrap_or(0),
        end,
    })
}

/// What a pod waits for, in the words of the kubelet: `ImagePullBackOff: …`, `Pending`.
pub(super) fn waits(pod: &RawPod) -> String {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or("in no phase");
    let waiting = containers(pod).find_map(|container| container.state.as_ref()?.waiting.as_ref());
    match waiting.and_then(|waiting| waiting.reason.as_ref().map(|reason| (reason, waiting.message.as_deref()))) {
        Some((reason, None)) => format!("pod {name} waits: {reason}"),
        Some((reason, Some(message))) => format!("pod {name} waits: {reason} ({})", shown(message)),
        None => format!("pod {name} is {phase}"),
    }
}

/// How a pod failed: its reason, and each container that ended with an error.
pub(super) fn failures(pod: &RawPod) -> Vec<String> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let status = pod.status.as_ref();
    let mut all = Vec::new();
    if let Some(reason) = status.and_then(|status| status.reason.as_deref()) {
        let message = status.and_then(|status| status.message.as_deref()).unwrap_or_default();
        all.push(shown(&format!("pod {name}: {reason} {message}")));
    }
    for container in containers(pod) {
        let Some(ended) = container.state.as_ref().and_then(|state| state.terminated.as_ref()) else { continue };
        if ended.exit_code != 0 {
            let reason = ended.reason.as_deref().unwrap_or("Error");
            all.push(format!(
                "pod {name}: container {} ended with exit code {} ({reason})",
                container.name, ended.exit_code
            ));
        }
    }
    all
}

/// Containers of a pod that were started more than once.
pub(super) fn restarts(pod: &RawPod) -> Vec<String> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let again = containers(pod).filter(|container| container.restart_count > 0);
    again
        .map(|one| {
            let ended = one.last_state.as_ref().and_then(|state| state.terminated.as_ref());
            let code = ended.map(|ended| format!(", the last time after exit code {}", ended.exit_code));
            let times = counted(one.restart_count, "time");
            format!("pod {name}: container {} was started again {times}{}", one.name, code.unwrap_or_default())
        })
        .collect()
}

/// The container whose log tells most: the one that failed, else the first.
pub(super) fn telling(pod: &RawPod) -> Option<String> {
    let failed = containers(pod).find(|container| {
        let ended = container.state.as_ref().and_then(|state| state.terminated.as_ref());
        ended.is_some_and(|ended| ended.exit_code != 0)
    });
    let first = || pod.spec.as_ref().and_then(|spec| spec.containers.first()).map(|container| container.name.clone());
    failed.map(|container| container.name.clone()).or_else(first)
}

fn containers(pod: &RawPod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.as_ref();
    let init = status.and_then(|status| status.init_container_statuses.as_ref());
    let main = status.and_then(|status| status.container_statuses.as_ref());
    init.into_iter().chain(main).flatten()
}
