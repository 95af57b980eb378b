//! Guest clusters: nodes that are VMs of this world or machines elsewhere, and what runs on them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Span;

/// A guest cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Guest {
    /// Name: that of its context in the kubeconfig, and that by which VMs name it.
    pub name: String,
    /// Where its API server is: `https://k8s-serve.lab:6443`.
    pub address: String,
    /// Version of Kubernetes.
    #[serde(default = "version")]
    pub version: String,
    /// The bearer token that opens it, which is no secret: it opens nothing but this world. None: made
    /// from the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The extended resource of GPUs, whatever the mode of those of its VMs: a vGPU is a whole GPU to its guest, also
    /// one that is backed by MIG. MIG inside of a guest, whose resources are `nvidia.com/mig-...`, is not modelled.
    #[serde(default = "nvidia_gpu")]
    pub resource: String,
    /// Nodes that are no VM of this world; they are always on.
    #[serde(default)]
    pub nodes: Vec<GuestNode>,
    /// What runs there when the world begins.
    #[serde(default)]
    pub workloads: Vec<Workload>,
    /// More disruption budgets, beside those of the workloads.
    #[serde(default)]
    pub pdbs: Vec<ExtraPdb>,
    /// What becomes of containers, by their image; the first rule that fits decides. None fits: a container
    /// of a Job ends well after 20 s, any other runs.
    #[serde(default)]
    pub containers: Vec<ContainerRule>,
    /// NVIDIA's k8s-driver-manager: its init container runs at each start of a driver pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_manager: Option<DriverManager>,
    /// How long a volume takes to be detached once no pod of the node uses it.
    #[serde(default = "five_seconds")]
    pub detach: Span,
    /// How long the disruption controller takes to see a budget that is new or was changed.
    #[serde(default)]
    pub budget_lag: Span,
    /// How long the API server keeps changes for watches and pages (`--etcd-compaction-interval`).
    #[serde(default = "five_minutes")]
    pub compact: Span,
}

impl Guest {
    /// The bearer token that opens it.
    pub fn token(&self) -> String {
        self.token.clone().unwrap_or_else(|| format!("{}-token", self.name))
    }

    /// Host and port of its address.
    pub fn authority(&self) -> Option<&str> {
        self.address.strip_prefix("https://").map(|rest| rest.trim_end_matches('/'))
    }
}

fn version() -> String {
    "v1.37.2".to_owned()
}
fn nvidia_gpu() -> String {
    "nvidia.com/gpu".to_owned()
}
fn five_seconds() -> Span {
    Span::seconds(5)
}
fn five_minutes() -> Span {
    Span::seconds(300)
}
fn half_a_minute() -> Span {
    Span::seconds(30)
}
fn twenty_seconds() -> Span {
    Span::seconds(20)
}
fn one() -> u32 {
    1
}
fn yes() -> bool {
    true
}
fn default_namespace() -> String {
    "default".to_owned()
}

/// A node that is no VM of this world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GuestNode {
    /// Name.
    pub name: String,
    /// GPUs.
    #[serde(default)]
    pub gpus: u32,
    /// Cordoned when the world begins.
    #[serde(default)]
    pub unschedulable: bool,
    /// Its labels, beside those of the kubelet.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// The node that a VM is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VmNode {
    /// Name of its cluster.
    pub cluster: String,
    /// Name of the node; none: that of the VM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How it comes up.
    #[serde(default)]
    pub boot: NodeBoot,
    /// Cordoned when the world begins.
    #[serde(default)]
    pub unschedulable: bool,
    /// Its labels, beside those of the kubelet.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// Which machine `spec.providerID` names.
    #[serde(default)]
    pub provider_id: MachineId,
    /// Which machine `status.nodeInfo.systemUUID` names.
    #[serde(default, rename = "systemUUID")]
    pub system_uuid: MachineId,
}

/// The machine that a node says it runs on (kubernetes §6.8).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum MachineId {
    /// The BIOS UUID of its VM.
    #[default]
    Own,
    /// The same with the first three groups in the other byte order.
    Swapped,
    /// None.
    Missing,
    /// That of another VM, by name.
    Of(String),
}

/// How a node comes up after its VM was powered on (DESIGN §3, honesty rule 10).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NodeBoot {
    /// From power-on until its kubelet reports `Ready`.
    pub ready: Span,
    /// From then on until the device plugin has registered the GPUs.
    pub gpus: Span,
    /// GPUs that the device plugin does not find from the next boot on.
    pub loses: u32,
    /// Whether the kubelet comes up at all.
    pub returns: bool,
}

impl Default for NodeBoot {
    fn default() -> Self {
        Self { ready: Span::seconds(60), gpus: Span::seconds(60), loses: 0, returns: true }
    }
}

/// What runs in a guest cluster: pods that are alike, and what owns them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Workload {
    /// Name; pods have it as the label `app`.
    pub name: String,
    /// Namespace.
    #[serde(default = "default_namespace")]
    pub namespace: String,
    /// What owns its pods.
    #[serde(default)]
    pub kind: WorkloadKind,
    /// How many pods; of a DaemonSet, one on each node whatever this says.
    #[serde(default = "one")]
    pub replicas: u32,
    /// GPUs that each pod asks for.
    #[serde(default)]
    pub gpu: u32,
    /// Nodes to which its pods are bound by a node affinity; none: any.
    #[serde(default)]
    pub nodes: Vec<String>,
    /// Its disruption budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pdb: Option<Pdb>,
    /// `terminationGracePeriodSeconds`.
    #[serde(default = "half_a_minute")]
    pub grace: Span,
    /// How long its containers take to end once they are asked to; none: as long as they may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Span>,
    /// How long a pod takes from being bound to a node until it is Ready.
    #[serde(default = "five_seconds")]
    pub start: Span,
    /// Nodes on which its pods run and never get Ready.
    #[serde(default)]
    pub unready_on: Vec<String>,
    /// A finalizer that its pods have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalizer: Option<String>,
    /// How long after the end of a pod's containers its finalizer is taken off; none: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalizer_for: Option<Span>,
    /// It has a volume that one node at a time can use: one for each pod of a StatefulSet.
    #[serde(default)]
    pub volume: bool,
    /// It has an `emptyDir`.
    #[serde(default)]
    pub empty_dir: bool,
    /// `spec.priority`.
    #[serde(default)]
    pub priority: i32,
}

/// What owns pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WorkloadKind {
    /// A Deployment with its ReplicaSet.
    #[default]
    Deployment,
    /// A StatefulSet: a pod is made anew under its name once it is gone.
    StatefulSet,
    /// A DaemonSet.
    DaemonSet,
    /// A Job of so many completions at once, which runs until the world ends unless a container rule says
    /// otherwise.
    Job,
    /// Nobody: a pod that is gone is gone.
    Bare,
    /// The kubelet: static pods, shown as mirror pods.
    Mirror,
}

/// A disruption budget. One of the two is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pdb {
    /// Pods that must stay healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_available: Option<u32>,
    /// Pods that may be missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<u32>,
    /// `unhealthyPodEvictionPolicy: AlwaysAllow`.
    #[serde(default)]
    pub always_allow_unhealthy: bool,
}

/// A disruption budget beside that of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExtraPdb {
    /// Name.
    pub name: String,
    /// Namespace.
    #[serde(default = "default_namespace")]
    pub namespace: String,
    /// The workload whose pods it takes.
    pub app: String,
    /// What it asks for.
    pub budget: Pdb,
}

/// What becomes of containers of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContainerRule {
    /// The image; `*` at its end or start stands for any text.
    pub image: String,
    /// On which node; none: on each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// How long they run.
    #[serde(default = "twenty_seconds")]
    pub takes: Span,
    /// How they end.
    #[serde(default)]
    pub ends: Ending,
    /// What they print.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// For how many containers, the first that start; none: for all. Those that come then follow the next rule. One
    /// that is started anew after it failed (`restartPolicy: OnFailure`) counts once more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
}

/// How a container ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Ending {
    /// With exit code 0.
    #[default]
    Succeeds,
    /// With this exit code.
    Fails(i32),
    /// It runs until it is killed.
    Never,
    /// Its image cannot be pulled.
    NotPulled,
}

/// k8s-driver-manager (kubernetes §2.2): it uncordons the node at each boot, whoever cordoned it, unless
/// the node has the annotation `nvidia.com/gpu-driver-upgrade-enabled: "true"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DriverManager {
    /// Whether it does (`ENABLE_GPU_POD_EVICTION`, default true).
    #[serde(default = "yes")]
    pub uncordons: bool,
    /// How long after the node is Ready.
    #[serde(default = "twenty_seconds")]
    pub after: Span,
}
