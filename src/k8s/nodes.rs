//! Nodes: how they are read, and the one write that closes, marks or opens them.

use std::collections::BTreeMap;

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch as JsonPatch, PatchOperation, RemoveOperation, TestOperation};
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use kube::Resource;
use kube::api::{GetParams, ListParams, Patch, PatchParams};
use kube::core::Request;
use serde_json::{Value, json};

use super::answer::{is_name, name, shown};
use super::client::Client;
use super::error::Error;
use super::transport::Made;
use crate::model::{Fact, NodeMark, NodeRef, NodeView, RunId};

/// How many objects a page has: as kubectl asks for.
pub(super) const PAGE: u32 = 500;

/// Who writes, in the `managedFields` of an object.
pub(super) const MANAGER: &str = "poolwright";

/// What became of a write that was to rest on a certain version of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Patched {
    /// Written; this is the node as the server then showed it.
    Done(Box<NodeView>),
    /// Somebody has changed the node since it was read, or it is another node of this name. Nothing was
    /// written; read again.
    Conflict,
    /// There is no such node.
    Gone,
    /// The mark on the node is not this run's, or there is none that could be taken off. Nothing was written.
    NotOurs {
        /// What is there instead, in words.
        found: String,
    },
}

/// How a node is left when its mark is taken off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Release {
    /// Pods may be placed on it again.
    Uncordon,
    /// It stays as it is: somebody else had cordoned it before us.
    KeepCordoned,
    /// It stays cordoned, since its VM stays off as planned; an annotation says by which plan.
    LeftOff {
        /// The plan, its first 16 characters.
        plan: String,
    },
}

impl Client {
    /// All nodes, as they were at one moment.
    ///
    /// # Errors
    /// [`Error`]; one node that cannot be told from others spoils the list.
    pub async fn nodes(&self) -> Result<Vec<NodeView>, Error> {
        let call = "list the nodes";
        let page = |next: Option<&str>| {
            let mut params = ListParams::default().limit(PAGE);
            params.continue_token = next.map(str::to_owned);
            nodes().list(&params)
        };
        let (_, nodes) = self.transport().list::<Node>(call, page).await?;
        nodes.into_iter().map(|node| self.node_view(call, node)).collect()
    }

    /// The node of this name, if there is one.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn node(&self, name: &str) -> Result<Option<NodeView>, Error> {
        Ok(self.whole_node(name).await?.map(|(view, _)| view))
    }

    /// Cordons a node and leaves our mark on it, in one write that rests on the `version` that was read. It
    /// carries no mark yet, or one of this run.
    ///
    /// # Errors
    /// [`Error`]; where it [may have acted](Error::may_have_acted), read the node.
    pub async fn cordon(&self, node: &NodeRef, version: &str, mark: &NodeMark) -> Result<Patched, Error> {
        self.write_mark("cordon", node, version, mark, |view| view.mark.is_absent()).await
    }

    /// Writes our mark anew on a node that has one, and cordons it if somebody has uncordoned it.
    ///
    /// # Errors
    /// As [`Client::cordon`].
    pub async fn remark(&self, node: &NodeRef, version: &str, mark: &NodeMark) -> Result<Patched, Error> {
        self.write_mark("mark", node, version, mark, |_| false).await
    }

    /// Takes the mark of a run off a node, and leaves it as `end` says, in one write.
    ///
    /// # Errors
    /// As [`Client::cordon`].
    pub async fn release(&self, node: &NodeRef, version: &str, run: &RunId, end: Release) -> Result<Patched, Error> {
        let Some((view, has)) = self.whole_node(&node.name).await? else { return Ok(Patched::Gone) };
        if !is(&view, node, version) {
            return Ok(Patched::Conflict);
        }
        if let Err(found) = view.mark_of(run) {
            return Ok(Patched::NotOurs { found });
        }
        let mut changes = vec![remove(&ANNOTATION)];
        match &end {
            Release::Uncordon => {
                if has.contains_key(NodeMark::LEFT_OFF) {
                    changes.push(remove(&LEFT_OFF));
                }
                changes.push(add(&UNSCHEDULABLE, json!(false)));
            }
            Release::KeepCordoned => {}
            Release::LeftOff { plan } => {
                changes.push(add(&LEFT_OFF, json!(plan)));
                changes.push(add(&UNSCHEDULABLE, json!(true)));
            }
        }
        let call = format!("release node {}", node.name);
        self.patch(&call, node, version, changes, |view| {
            view.mark.is_absent()
                && match end {
                    Release::Uncordon => !view.unschedulable && !view.left_off,
                    Release::KeepCordoned => true,
                    Release::LeftOff { .. } => view.unschedulable && view.left_off,
                }
        })
        .await
    }

    /// `may_lack`: whether a node without a mark of this run may be written to all the same.
    async fn write_mark(
        &self,
        verb: &str,
        node: &NodeRef,
        version: &str,
        mark: &NodeMark,
        may_lack: impl Fn(&NodeView) -> bool,
    ) -> Result<Patched, Error> {
        let call = format!("{verb} node {}", node.name);
        let Some((view, has)) = self.whole_node(&node.name).await? else { return Ok(Patched::Gone) };
        if !is(&view, node, version) {
            return Ok(Patched::Conflict);
        }
        if let Err(found) = view.mark_of(&mark.run)
            && !may_lack(&view)
        {
            return Ok(Patched::NotOurs { found });
        }
        let text =
            serde_json::to_string(mark).map_err(|error| self.transport().unsendable(&call, error.to_string()))?;
        let mut changes = Vec::new();
        if has.is_empty() {
            // A patch adds to a map that is there; what reads as an empty one may be none at all. The
            // version that is tested says that nobody has added to it meanwhile.
            changes.push(add(&ANNOTATIONS, json!({})));
        }
        changes.push(add(&ANNOTATION, json!(text)));
        changes.push(add(&UNSCHEDULABLE, json!(true)));
        self.patch(&call, node, version, changes, |view| view.unschedulable && view.mark.known() == Some(&text)).await
    }

    /// The node with all its annotations.
    async fn whole_node(&self, name: &str) -> Result<Option<(NodeView, BTreeMap<String, String>)>, Error> {
        let call = format!("read node {name}");
        if !is_name(name) {
            return Err(self.transport().unsendable(&call, "that is no name of a node"));
        }
        let read = self.transport().read::<Node>(&call, || nodes().get(name, &GetParams::default())).await;
        match read {
            Ok(node) => {
                let annotations = node.metadata.annotations.clone().unwrap_or_default();
                Ok(Some((self.node_view(&call, node)?, annotations)))
            }
            Err(error) if error.is_code(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// One JSON patch on this very node in this very version.
    async fn patch(
        &self,
        call: &str,
        node: &NodeRef,
        version: &str,
        changes: Vec<PatchOperation>,
        taken: impl Fn(&NodeView) -> bool,
    ) -> Result<Patched, Error> {
        match self.transport().once::<Node>(call, patch(&node.name, &node.uid, version, changes)).await {
            Ok(written) => {
                let view = self.node_view(call, written)?;
                if view.node.uid != node.uid || !taken(&view) {
                    let found = "the node that it then showed is not as it was written".to_owned();
                    return Err(Error::NotTaken { cluster: self.name().to_owned(), call: call.into(), found });
                }
                Ok(Patched::Done(Box::new(view)))
            }
            Err(error) if error.is_code(409) => Ok(Patched::Conflict),
            Err(error) if error.is_code(404) => Ok(Patched::Gone),
            // A test that failed, and a change that the server finds invalid, have one code.
            Err(error) if error.is_code(422) => match self.whole_node(&node.name).await? {
                None => Ok(Patched::Gone),
                Some((view, _)) if !is(&view, node, version) => Ok(Patched::Conflict),
                Some(_) => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    pub(super) fn node_view(&self, call: &str, node: Node) -> Result<NodeView, Error> {
        view(self.name(), node).map_err(|what| self.transport().decode(call, what))
    }
}

fn is(view: &NodeView, node: &NodeRef, version: &str) -> bool {
    view.node.uid == node.uid && view.version == version
}

fn nodes() -> Request {
    Request::new(Node::url_path(&(), None))
}

const ANNOTATIONS: [&str; 2] = ["metadata", "annotations"];
const ANNOTATION: [&str; 3] = ["metadata", "annotations", NodeMark::ANNOTATION];
const LEFT_OFF: [&str; 3] = ["metadata", "annotations", NodeMark::LEFT_OFF];
const UNSCHEDULABLE: [&str; 2] = ["spec", "unschedulable"];

fn patch(name: &str, uid: &str, version: &str, changes: Vec<PatchOperation>) -> Made {
    let mut all = vec![test(&["metadata", "uid"], uid), test(&["metadata", "resourceVersion"], version)];
    all.extend(changes);
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    nodes().patch(name, &params, &Patch::Json::<()>(JsonPatch(all)))
}

fn test(path: &[&str], value: &str) -> PatchOperation {
    PatchOperation::Test(TestOperation { path: PointerBuf::from_tokens(path.iter().copied()), value: json!(value) })
}

fn add(path: &[&str], value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path: PointerBuf::from_tokens(path.iter().copied()), value })
}

fn remove(path: &[&str]) -> PatchOperation {
    PatchOperation::Remove(RemoveOperation { path: PointerBuf::from_tokens(path.iter().copied()) })
}

/// What a node says of itself.
pub(super) fn view(cluster: &str, node: Node) -> Result<NodeView, String> {
    let metadata = node.metadata;
    let name = name(metadata.name, "name of a node")?;
    let lacks = |what| format!("node {name} has no {what}");
    let uid = metadata.uid.filter(|uid| !uid.is_empty()).ok_or_else(|| lacks("uid"))?;
    let version = metadata.resource_version.filter(|version| !version.is_empty());
    let version = version.ok_or_else(|| lacks("resourceVersion"))?;
    // The API server writes an empty spec too; without one nothing is said of `unschedulable`.
    let spec = node.spec.ok_or_else(|| lacks("spec"))?;
    let status = node.status.unwrap_or_default();
    let annotations = metadata.annotations.unwrap_or_default();
    let info = status.node_info.unwrap_or_default();
    let allocatable = status.allocatable.filter(|all| !all.is_empty());
    Ok(NodeView {
        node: NodeRef { cluster: cluster.to_owned(), name, uid },
        version,
        deleting: metadata.deletion_timestamp.is_some(),
        provider_id: text(spec.provider_id),
        system_uuid: text(Some(info.system_uuid)),
        boot_id: text(Some(info.boot_id)),
        unschedulable: spec.unschedulable.unwrap_or(false),
        ready: ready(status.conditions.as_deref().unwrap_or_default()),
        allocatable: allocatable.map_or(Fact::Absent, |all| {
            Fact::Known(all.into_iter().filter(|(name, _)| is_extended(name)).map(|(name, q)| (name, q.0)).collect())
        }),
        mark: text(annotations.get(NodeMark::ANNOTATION).cloned()),
        left_off: annotations.contains_key(NodeMark::LEFT_OFF),
        machine: text(annotations.get(NodeView::MACHINE).cloned()),
        attached: status.volumes_attached.into_iter().flatten().map(|volume| volume.name).collect(),
    })
}

fn text(text: Option<String>) -> Fact<String> {
    text.filter(|text| !text.is_empty()).map_or(Fact::Absent, Fact::Known)
}

/// Extended resources have a domain that is not Kubernetes' own (Kubernetes, "Extended resources").
pub(super) fn is_extended(name: &str) -> bool {
    name.split_once('/').is_some_and(|(domain, _)| domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io"))
}

fn ready(conditions: &[NodeCondition]) -> Fact<bool> {
    let mut all = conditions.iter().filter(|condition| condition.type_ == "Ready");
    match (all.next(), all.next()) {
        (None, _) => Fact::Absent,
        (Some(_), Some(_)) => Fact::unknown("it has two conditions Ready"),
        (Some(one), None) => match one.status.as_str() {
            "True" => Fact::Known(true),
            "False" => Fact::Known(false),
            status => {
                let message = one.message.as_deref().unwrap_or_default();
                Fact::unknown(format!("its condition Ready is {status} {}", shown(message)).trim_end().to_owned())
            }
        },
    }
}
