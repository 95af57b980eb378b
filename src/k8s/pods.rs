//! Pods of a node: which are to be evicted, which are ending, and which stay.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod as RawPod, Toleration};
use kube::Resource;
use kube::api::ListParams;
use kube::core::Request;

use super::answer::{is_name, name, time};
use super::client::Client;
use super::error::Error;
use super::nodes::PAGE;

/// The annotation of a pod that the kubelet runs from a file of its own: the API shows a mirror of it,
/// and deleting that does nothing (kubernetes §1.2).
const MIRROR: &str = "kubernetes.io/config.mirror";

/// A pod, by what never changes of it. Its name may be given to another pod, its UID never.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRef {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
}

impl fmt::Display for PodRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A pod that must leave the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Which.
    pub pod: PodRef,
    /// `spec.priority`; 0 if it has none.
    pub priority: i32,
    /// Its labels: disruption budgets choose pods by them.
    pub labels: BTreeMap<String, String>,
    /// Who starts it again, its controller: `ReplicaSet ml/web`. None if nothing does.
    pub owner: Option<String>,
    /// Whether it tolerates the cordon of its node, so that a scheduler may choose that node again.
    pub tolerates: bool,
    /// Whether it has a volume that ends with it (`emptyDir`).
    pub scratch: bool,
    /// `metadata.deletionTimestamp`, by the server's clock: the end of its grace, which is counted in.
    pub ends: Option<Timestamp>,
    /// `metadata.finalizers`: who must agree before it is gone.
    pub finalizers: Vec<String>,
}

/// Why a pod stays while its node is drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The kubelet runs it from a file.
    Mirror,
    /// A DaemonSet, of whatever API group, would start it again here.
    DaemonSet,
    /// It has ended: nothing of it runs.
    Finished,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mirror => "static pod",
            Self::DaemonSet => "DaemonSet",
            Self::Finished => "finished",
        })
    }
}

/// The pods of a node, as they were at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pods {
    /// Version of the list: a watch goes on from here.
    pub version: String,
    /// To be evicted, the least important first.
    pub due: Vec<Pod>,
    /// Being deleted.
    pub ending: Vec<Pod>,
    /// Left where they are.
    pub staying: Vec<(Pod, Why)>,
}

impl Client {
    /// The pods of a node, as etcd has them: without a version in the request no cache answers.
    ///
    /// # Errors
    /// [`Error`]; one pod that cannot be understood spoils the list, since a pod that is not read is not
    /// a pod that is gone.
    pub async fn pods_on(&self, node: &str) -> Result<Pods, Error> {
        let call = format!("list the pods of node {node}");
        if !is_name(node) {
            return Err(self.transport().unsendable(&call, "that is no name of a node"));
        }
        let page = |next: Option<&str>| {
            let mut params = on(node).limit(PAGE);
            params.continue_token = next.map(str::to_owned);
            pods(None).list(&params)
        };
        let (version, found) = self.transport().list::<RawPod>(&call, page).await?;
        sort(node, version, found).map_err(|what| self.transport().decode(&call, what))
    }
}

pub(super) fn pods(namespace: Option<&str>) -> Request {
    Request::new(RawPod::url_path(&(), namespace))
}

pub(super) fn on(node: &str) -> ListParams {
    ListParams::default().fields(&format!("spec.nodeName={node}"))
}

/// Sorts the pods of a node by what is done with them.
fn sort(node: &str, version: String, found: Vec<RawPod>) -> Result<Pods, String> {
    let mut pods = Pods { version, due: Vec::new(), ending: Vec::new(), staying: Vec::new() };
    for raw in found {
        let stays = stays(&raw);
        let pod = read(node, raw)?;
        match stays {
            Some(why) => pods.staying.push((pod, why)),
            None if pod.ends.is_some() => pods.ending.push(pod),
            None => pods.due.push(pod),
        }
    }
    let order = |pod: &Pod| (pod.priority, pod.pod.clone());
    pods.due.sort_by_key(order);
    pods.ending.sort_by_key(order);
    pods.staying.sort_by(|(one, why), (other, of)| (&one.pod, why).cmp(&(&other.pod, of)));
    Ok(pods)
}

fn stays(pod: &RawPod) -> Option<Why> {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let mut owners = pod.metadata.owner_references.iter().flatten();
    if pod.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(MIRROR)) {
        Some(Why::Mirror)
    } else if matches!(phase, Some("Succeeded" | "Failed")) {
        Some(Why::Finished)
    } else if owners.any(|owner| owner.controller == Some(true) && owner.kind == "DaemonSet") {
        Some(Why::DaemonSet)
    } else {
        None
    }
}

/// The taint that a cordon brings.
const CORDON: &str = "node.kubernetes.io/unschedulable";

fn tolerates_cordon(toleration: &Toleration) -> bool {
    let of_it = match toleration.key.as_deref() {
        None | Some("") => toleration.operator.as_deref() == Some("Exists"),
        Some(key) => key == CORDON,
    };
    of_it && matches!(toleration.effect.as_deref(), None | Some("" | "NoSchedule"))
}

fn read(node: &str, raw: RawPod) -> Result<Pod, String> {
    let metadata = raw.metadata;
    let pod = PodRef {
        namespace: name(metadata.namespace, "namespace of a pod")?,
        name: name(metadata.name, "name of a pod")?,
        uid: metadata.uid.filter(|uid| !uid.is_empty()).ok_or("a pod has no uid")?,
    };
    let controller = metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    let owner = controller.map(|owner| format!("{} {}/{}", owner.kind, pod.namespace, owner.name));
    let spec = raw.spec.ok_or_else(|| format!("pod {pod} has no spec"))?;
    // A server that passes over the selector would have us evict the pods of other nodes.
    if spec.node_name.as_deref() != Some(node) {
        return Err(format!(
            "pod {pod} is listed for this node and is on {}",
            spec.node_name.as_deref().unwrap_or("none")
        ));
    }
    Ok(Pod {
        pod,
        priority: spec.priority.unwrap_or(0),
        labels: metadata.labels.unwrap_or_default(),
        owner,
        tolerates: spec.tolerations.iter().flatten().any(tolerates_cordon),
        scratch: spec.volumes.iter().flatten().any(|volume| volume.empty_dir.is_some()),
        ends: metadata.deletion_timestamp.as_ref().map(time).transpose()?,
        finalizers: metadata.finalizers.unwrap_or_default(),
    })
}
