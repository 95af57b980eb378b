//! Eviction: one request for one pod, and what the answer means (kubernetes §1.5, §6.7).

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod as RawPod;
use k8s_openapi::api::policy::v1::{Eviction, PodDisruptionBudget};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use kube::Resource;
use kube::api::{GetParams, ListParams, PostParams};
use kube::core::{Request, Selector, SelectorExt};
use serde_json::Value;

use super::client::Client;
use super::error::{Error, Refusal};
use super::nodes::PAGE;
use super::pods::{PodRef, pods};
use super::transport::Made;

/// The cause of a refusal that comes from a disruption budget.
const BUDGET: &str = "DisruptionBudget";

/// The cause of a refusal in a namespace that is being deleted: its pods go by themselves.
const TERMINATING: &str = "NamespaceTerminating";

/// What became of an eviction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evicted {
    /// Accepted: the pod is ending.
    Accepted,
    /// There is no such pod any more; one of its name may be there.
    Gone,
    /// A disruption budget does not allow it now.
    Blocked(Blocked),
    /// Not now, and not because of a budget.
    Later {
        /// When to ask again, if the server says so.
        after: Option<Duration>,
        /// What it says.
        said: String,
    },
    /// Asking again does not help.
    Never {
        /// What the server says, and what we know of it.
        said: String,
    },
}

/// What a disruption budget says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// Namespace and name of the budget, if it names itself.
    pub budget: Option<String>,
    /// Its words.
    pub said: String,
    /// How many healthy pods it needs.
    pub needs: Option<u32>,
    /// How many there are.
    pub has: Option<u32>,
}

impl Client {
    /// Asks for the eviction of this very pod, once. Its own grace applies.
    ///
    /// # Errors
    /// [`Error`] where nothing is known of the answer, or the server failed for a reason of its own.
    pub async fn evict(&self, pod: &PodRef) -> Result<Evicted, Error> {
        let call = format!("evict pod {pod}");
        let error = match self.transport().once::<Value>(&call, eviction(pod)).await {
            Ok(_) => return Ok(Evicted::Accepted),
            Err(error) => error,
        };
        let Some(refusal) = error.refusal() else { return Err(error) };
        match meaning(pod, refusal) {
            Some(Evicted::Never { said }) if refusal.code == 500 => {
                Ok(Evicted::Never { said: format!("{said}{}", self.budgets_of(pod).await) })
            }
            Some(evicted) => Ok(evicted),
            None => Err(error),
        }
    }

    /// How many pods of the budget `namespace/name` may be evicted now. None if it is not there, or does
    /// not say.
    ///
    /// # Errors
    /// [`Error`].
    pub(super) async fn allowed(&self, budget: &str) -> Result<Option<i32>, Error> {
        let (namespace, name) = budget.split_once('/').unwrap_or_default();
        let call = format!("read PodDisruptionBudget {budget}");
        let requests = budgets(namespace);
        // Once: a drain that looks at its budgets must not be held up by one of them.
        match self.transport().once::<PodDisruptionBudget>(&call, requests.get(name, &GetParams::default())).await {
            // A status of an older spec says nothing of this one (kubernetes §1.5).
            Ok(budget) => Ok(budget
                .status
                .filter(|status| status.observed_generation == budget.metadata.generation)
                .and_then(|status| status.disruptions_allowed)),
            Err(error) if error.is_code(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The budgets of a pod, to be named: an API server that refuses because there are several names
    /// none of them.
    async fn budgets_of(&self, pod: &PodRef) -> String {
        let read = async {
            let name = &pod.name;
            let call = format!("read pod {pod}");
            let requests = pods(Some(&pod.namespace));
            let raw: RawPod = self.transport().read(&call, || requests.get(name, &GetParams::default())).await?;
            let call = format!("list the PodDisruptionBudgets of {}", pod.namespace);
            let page = |next: Option<&str>| {
                let mut params = ListParams::default().limit(PAGE);
                params.continue_token = next.map(str::to_owned);
                budgets(&pod.namespace).list(&params)
            };
            let (_, all) = self.transport().list::<PodDisruptionBudget>(&call, page).await?;
            Ok::<_, Error>((raw, all))
        };
        match read.await {
            Ok((raw, all)) => {
                let names = matching(&raw, all);
                if names.is_empty() { String::new() } else { format!(": {}", names.join(" and ")) }
            }
            Err(error) => format!(" (which ones could not be read: {error})"),
        }
    }
}

fn budgets(namespace: &str) -> Request {
    Request::new(PodDisruptionBudget::url_path(&(), Some(namespace)))
}

/// The body is written by hand: kube's own loses the precondition (kubernetes §0.4).
fn eviction(pod: &PodRef) -> Made {
    let body = Eviction {
        metadata: ObjectMeta {
            name: Some(pod.name.clone()),
            namespace: Some(pod.namespace.clone()),
            ..ObjectMeta::default()
        },
        delete_options: Some(DeleteOptions {
            preconditions: Some(Preconditions { uid: Some(pod.uid.clone()), resource_version: None }),
            ..DeleteOptions::default()
        }),
    };
    let body = serde_json::to_vec(&body).map_err(kube::core::request::Error::SerializeBody)?;
    pods(Some(&pod.namespace)).create_subresource("eviction", &pod.name, &PostParams::default(), body)
}

/// What a refusal means for the pod; none if it says something of the server alone.
fn meaning(pod: &PodRef, refusal: &Refusal) -> Option<Evicted> {
    let said = refusal.message.clone();
    let after = refusal.after;
    Some(match refusal.code {
        404 => Evicted::Gone,
        // The pod of this name has another UID.
        409 if said.contains("UID") => Evicted::Gone,
        409 => Evicted::Later { after, said },
        429 => match refusal.cause(BUDGET) {
            // Its controller has not yet looked at its newest spec: it asks to wait, and blocks nothing.
            Some(words) if words.contains("still being processed") => Evicted::Later { after, said: words.to_owned() },
            Some(words) => Evicted::Blocked(blocked(&pod.namespace, words)),
            None => Evicted::Later { after, said },
        },
        403 if refusal.cause(TERMINATING).is_some() => Evicted::Later { after, said },
        500 if said.contains("more than one PodDisruptionBudget") => Evicted::Never { said },
        400..500 if refusal.code != 408 => Evicted::Never { said: format!("{said} (HTTP {})", refusal.code) },
        _ => return None,
    })
}

/// "The disruption budget web needs 2 healthy pods and has 2 currently" (kubernetes §1.5).
fn blocked(namespace: &str, words: &str) -> Blocked {
    let after = |key: &str| words.split_once(key).and_then(|(_, rest)| rest.split_whitespace().next());
    let number = |key| after(key).and_then(|word| word.parse().ok());
    Blocked {
        budget: after("disruption budget ").map(|name| format!("{namespace}/{name}")),
        said: words.to_owned(),
        needs: number(" needs "),
        has: number(" has "),
    }
}

/// The names of the budgets that choose this pod.
fn matching(pod: &RawPod, all: Vec<PodDisruptionBudget>) -> Vec<String> {
    let labels = pod.metadata.labels.clone().unwrap_or_default();
    let chooses = |budget: &PodDisruptionBudget| {
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.clone());
        selector.is_some_and(|selector| Selector::try_from(selector).is_ok_and(|selector| selector.matches(&labels)))
    };
    let mut names: Vec<String> = all.into_iter().filter(chooses).filter_map(|budget| budget.metadata.name).collect();
    names.sort();
    names
}
