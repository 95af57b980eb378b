//! The approved plan as it is stored (FORMATS "Plan file").
//!
//! Stored form: JSON in struct order, `id` = SHA-256 of the content with `id` empty.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::{
    AssignmentPolicy, Desired, Fact, Finding, GraphicsType, GuestRules, HostName, HostRef, MigKind, MoRef, Mode,
    NodeRef, OnValidationFailure, Package, PciAddress, PciId, PlanId, Product, ShellWay, SiteIdentity, VmRules,
};

use super::{Bounds, VmFate};

/// What people approve: hosts, target modes, order, bounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plan {
    /// `poolwright.plan/v1`.
    pub schema: String,
    /// SHA-256 of this document with an empty id.
    pub id: PlanId,
    /// Version of the program.
    pub tool: String,
    /// Digest of the embedded catalogue.
    pub catalog: String,
    /// The time that the planner was given.
    pub now: Timestamp,
    /// After this it is not applied any more.
    pub expires: Timestamp,
    /// The documents it was made from.
    pub inputs: Vec<Input>,
    /// The vCenter it was made for.
    pub site: SiteIdentity,
    /// The wish, selectors expanded.
    pub desired: Desired,
    /// Limits of the run.
    pub limits: Limits,
    /// Hosts in the order in which they are visited.
    pub order: Vec<HostName>,
    /// Hosts that are changed, in the same order.
    pub hosts: Vec<HostPlan>,
    /// What is out of service, and what is left.
    pub capacity: Capacity,
    /// Every other host of the pools, with its reason.
    pub not_acted: Vec<NotActed>,
    /// What the checks have to say.
    pub findings: Vec<Finding>,
}

/// A document the plan was made from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Path as given.
    pub path: String,
    /// SHA-256 of its bytes, lower-case hex.
    pub sha256: String,
}

/// Limits of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// Hosts worked on at once.
    pub hosts_at_once: u32,
    /// Hosts that may fail before no new one starts.
    pub halt_after_failed_hosts: u32,
}

/// How much a host's change disturbs (vsphere-gpu §3.2), least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Impact {
    /// Nothing is disturbed: policy, label.
    None,
    /// Maintenance mode.
    Maintenance,
    /// Maintenance mode and at least one reboot.
    Reboot,
}

/// One host that is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostPlan {
    /// Who it is.
    pub host: HostRef,
    /// `hardware.systemInfo.uuid`.
    pub uuid: String,
    /// Its pool.
    pub pool: String,
    /// The facts that the plan rests on and that change slowly.
    pub slow: SlowFacts,
    /// SHA-256 of `slow`.
    pub digest: String,
    /// What it should be.
    pub target: HostTarget,
    /// How much it disturbs.
    pub impact: Impact,
    /// What becomes of each VM that is powered on, in name order.
    pub fates: Vec<VmFate>,
    /// How many VMs may be stopped and moved.
    pub bounds: Bounds,
    /// Which VMs may be.
    pub vms: VmRules,
    /// Guest clusters whose nodes run on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<GuestRules>,
    /// Which clusters those were when the plan was made, by name: the UID of the namespace `kube-system` of each that
    /// could be read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub guest_uids: BTreeMap<String, String>,
    /// Nodes that broke a rule when the plan was made, which somebody accepted: by the id of the rule.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accepted_nodes: BTreeMap<String, Vec<NodeRef>>,
    /// What to do if its nodes do not pass their gate.
    #[serde(default)]
    pub on_validation_failure: OnValidationFailure,
    /// The steps, as words.
    pub steps: Vec<Outline>,
    /// Reboots.
    pub reboots: Reboots,
    /// Time.
    pub minutes: Minutes,
    /// How MIG is switched on it, where it is.
    pub shell: ShellWay,
    /// Whether the host was found in maintenance and is left there.
    pub stays_in_maintenance: bool,
    /// Parity that could not be read, which somebody accepted: the gate does not check it
    /// (`datastores`, `uplinks`, `ha`, `crypto`, `alarms`).
    pub not_checked: Vec<String>,
}

impl HostPlan {
    /// The name of a VM of the plan; the id of any other.
    pub fn vm_name<'a>(&'a self, vm: &'a MoRef) -> &'a str {
        self.fates.iter().find(|fate| fate.vm == *vm).map_or(vm.id.as_str(), |fate| fate.name.as_str())
    }
}

/// What the plan rests on: compared before the host's first effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SlowFacts {
    /// ESXi.
    pub product: Product,
    /// Driver packages.
    pub packages: Fact<Vec<Package>>,
    /// `hostDefaultGraphicsType`; `-` where the host has none.
    pub default_type: GraphicsType,
    /// Assignment policy.
    pub policy: AssignmentPolicy,
    /// GPUs, all of the host, in address order.
    pub gpus: Vec<SlowGpu>,
    /// SHA-256 of the addresses and ids of all other PCI devices.
    pub devices: String,
}

/// One GPU: identity and mode, configured and active.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SlowGpu {
    /// Where.
    pub address: PciAddress,
    /// What.
    pub id: PciId,
    /// Its state.
    pub setting: super::GpuSetting,
}

/// What a host should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostTarget {
    /// GPUs of the pool, in address order.
    pub gpus: Vec<GpuTarget>,
    /// GPUs of the host outside the pool: kept as they are, compared before and after.
    pub others: Vec<PciAddress>,
    /// Assignment policy, if the profile names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<AssignmentPolicy>,
    /// The host default graphics type to set: only if every GPU of the host is in the pool and
    /// becomes a vGPU GPU (FORMATS rule 6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_type: Option<GraphicsType>,
}

/// What a GPU should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GpuTarget {
    /// Where.
    pub address: PciAddress,
    /// What it must still be (identity before and after each reboot).
    pub id: PciId,
    /// The mode.
    pub mode: Mode,
    /// Other functions of the device that go with it.
    pub companions: Vec<PciAddress>,
    /// Where it keeps MIG; none if it does not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mig: Option<MigKind>,
}

/// A step as words, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outline {
    /// What is done.
    pub does: String,
    /// What it expects to find.
    pub expects: String,
    /// Only if what a reboot shows asks for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub perhaps: bool,
}

/// Reboots of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reboots {
    /// As the reference describes the transition.
    pub expected: u32,
    /// The bound: a visit that would need more is refused.
    pub most: u32,
    /// Why.
    pub why: Vec<String>,
}

/// Time of one host, in minutes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Minutes {
    /// Expected.
    pub expected: u32,
    /// At most, by our own deadlines.
    pub most: u32,
    /// What the figures rest on.
    pub basis: String,
    /// A person is waited for besides, who has no bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub person: bool,
}

/// What is out of service and what is left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Capacity {
    /// GPU-hours out of service, expected, in tenths.
    pub gpu_hours_tenths: u64,
    /// GPU-hours out of service at most, in tenths.
    pub gpu_hours_most_tenths: u64,
    /// By pool, in name order.
    pub pools: Vec<PoolCapacity>,
}

/// Capacity of one pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PoolCapacity {
    /// Pool.
    pub pool: String,
    /// GPUs that the profile counts.
    pub gpus: u32,
    /// GPUs in service now.
    pub now: u32,
    /// GPUs in service at the worst moment.
    pub worst: u32,
    /// Hosts that are unavailable now, each with its cause. Unknown counts as unavailable.
    pub unavailable: Vec<NotActed>,
    /// Nodes that are unavailable now on the other hosts, by host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeOut>,
}

/// A node that gives no service, or less than it should: cordoned, left off, not Ready, without its GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeOut {
    /// Which.
    pub node: NodeRef,
    /// The host of its VM.
    pub host: HostName,
    /// Its VM.
    pub vm: String,
    /// GPUs that are out of service with it, at most.
    pub gpus: u32,
    /// Why, one sentence.
    pub why: String,
}

/// A host that is not acted on, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NotActed {
    /// Host.
    pub host: HostName,
    /// Pool.
    pub pool: String,
    /// Class.
    pub reason: Reason,
    /// A sentence.
    pub detail: String,
}

/// Why a host is not acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// It is as the profile wants it.
    Converged,
    /// A finding of severity error.
    Refused,
    /// It could not be read, wholly or where it decides.
    Unknown,
    /// Found in maintenance, or marked by another run.
    Held,
    /// As many hosts of its pool are out of service as the pool allows.
    Budget,
}
