//! A node of a guest cluster: which VM it is, how it stands, and the mark that a visit leaves on it.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Fact, RunId};

/// A node, by what never changes of it. Its name may be given to another node once it is deleted; its
/// UID is never.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeRef {
    /// Name of the guest cluster in the Site.
    pub cluster: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
}

impl fmt::Display for NodeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.name, self.cluster)
    }
}

/// What was read of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeView {
    /// Which.
    pub node: NodeRef,
    /// `metadata.resourceVersion`: a write is compared with it.
    pub version: String,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// `spec.providerID`, `vsphere://<bios uuid>`.
    pub provider_id: Fact<String>,
    /// `status.nodeInfo.systemUUID`.
    pub system_uuid: Fact<String>,
    /// `status.nodeInfo.bootID`: another one after each boot.
    pub boot_id: Fact<String>,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// The condition `Ready`: `True` or `False`. Unknown if its status is, as it is 40 s after the
    /// kubelet was last heard of; absent if no kubelet has set it.
    pub ready: Fact<bool>,
    /// `status.allocatable`, extended resources only (with a domain, `nvidia.com/gpu`), as written.
    /// Absent before the kubelet has reported.
    pub allocatable: Fact<BTreeMap<String, String>>,
    /// The raw annotation [`NodeMark::ANNOTATION`].
    pub mark: Fact<String>,
    /// Whether it has the annotation [`NodeMark::LEFT_OFF`].
    pub left_off: bool,
    /// The annotation `cluster.x-k8s.io/machine`: the Machine of Cluster API that owns it.
    pub machine: Fact<String>,
    /// `status.volumesAttached`, by name.
    pub attached: Vec<String>,
}

impl NodeView {
    /// The name of the annotation by which Cluster API names the Machine of a node.
    pub const MACHINE: &str = "cluster.x-k8s.io/machine";

    /// How many of an extended resource pods may use; none of it where the node does not list it. Such
    /// resources are whole numbers (Kubernetes, "Extended resources").
    pub fn count(&self, resource: &str) -> Fact<u64> {
        self.allocatable.as_ref().map(|all| all.get(resource)).or_absent(None).and_then(|found| match found {
            None => Fact::Known(0),
            Some(text) => match text.parse() {
                Ok(count) => Fact::Known(count),
                Err(_) => Fact::unknown(format!("allocatable {resource} is `{text}`, not a whole number")),
            },
        })
    }

    /// The mark on it.
    pub fn marked(&self) -> Fact<NodeMark> {
        self.mark.as_ref().and_then(|text| match serde_json::from_str::<NodeMark>(text) {
            Ok(mark) if mark.v == NodeMark::VERSION => Fact::Known(mark),
            Ok(mark) => Fact::unknown(format!("the mark on the node is of version {}", mark.v)),
            Err(error) => Fact::unknown(format!("the mark on the node cannot be read: {error}")),
        })
    }

    /// The mark on it, if it is this run's. The error says what is there instead: `none`, `that of run …`. Nobody
    /// takes off, or writes over, what is not this run's (FORMATS "Marker").
    ///
    /// # Errors
    /// There is none, another run's, or one that cannot be read.
    pub fn mark_of(&self, run: &RunId) -> Result<NodeMark, String> {
        match self.marked() {
            Fact::Known(mark) if mark.run == *run => Ok(mark),
            Fact::Known(mark) => Err(format!("that of run {}", mark.run)),
            Fact::Absent => Err("none".to_owned()),
            Fact::Unknown { why } => Err(why),
        }
    }

    /// What the node says of the machine that it runs on, without the scheme of a provider id.
    pub fn machine_ids(&self) -> Vec<&str> {
        let provider = self.provider_id.known().and_then(|id| id.strip_prefix("vsphere://"));
        provider.into_iter().chain(self.system_uuid.known().map(String::as_str)).collect()
    }
}

/// Whether two UUIDs name one machine ([`machine_key`]).
pub fn is_same_machine(one: &str, other: &str) -> bool {
    matches!((machine_key(one), machine_key(other)), (Some(one), Some(other)) if one == other)
}

/// The machine that a UUID names; none if it is no UUID. The first three groups of a BIOS UUID are written
/// in either byte order, by the SMBIOS version of the VM (kubernetes §6.8): both give one key. Letter case
/// and dashes do not matter.
pub fn machine_key(uuid: &str) -> Option<[u8; 16]> {
    uuid_bytes(uuid).map(|bytes| bytes.min(swapped(bytes)))
}

fn uuid_bytes(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !matches!(c, '-' | ' '))
        .map(|c| c.to_digit(16).map(|d| d as u8))
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    (digits.len() == 32).then(|| bytes.try_into().ok()).flatten()
}

fn swapped(mut bytes: [u8; 16]) -> [u8; 16] {
    bytes[0..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    bytes
}

/// What a visit writes on a node in the same write as the cordon (FORMATS "Marker").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeMark {
    /// Version of the format: [`NodeMark::VERSION`].
    pub v: u32,
    /// The run that cordoned it.
    pub run: RunId,
    /// The plan, its first 16 characters.
    pub plan: String,
    /// `hardware.systemInfo.uuid` of the host.
    pub host: String,
    /// Id of its VM, `vm-77`.
    pub vm: String,
    /// How far it is.
    pub phase: NodePhase,
    /// `spec.unschedulable` before: it is then left as it was.
    pub was_unschedulable: bool,
    /// When it was cordoned, by our clock.
    pub since: Timestamp,
    /// Until when it is drained, by our clock.
    pub deadline: Timestamp,
    /// `status.nodeInfo.bootID` before.
    pub boot: String,
    /// Allocatable of the resource that the pool expects, before.
    pub gpus: u64,
}

impl NodeMark {
    /// The annotation that holds it.
    pub const ANNOTATION: &str = "poolwright.io/maintenance";
    /// The annotation of a node whose VM stays off as planned.
    pub const LEFT_OFF: &str = "poolwright.io/left-off";
    /// The label of a Job that says which run it is of.
    pub const JOB_RUN: &str = "poolwright.io/run";
    /// The version that this program writes, and the only one that it reads.
    pub const VERSION: u32 = 1;
}

/// How far a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodePhase {
    /// Cordoned; its pods are evicted.
    Draining,
    /// Nothing is left on it, and its volumes are detached: its VM may be stopped.
    Drained,
    /// It did not pass its gate. It is never validated again by itself.
    Failed,
}

impl fmt::Display for NodePhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Draining => "draining",
            Self::Drained => "drained",
            Self::Failed => "failed",
        })
    }
}

/// A guest cluster as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GuestView {
    /// Version of its API server, `v1.37.2`.
    pub version: String,
    /// UID of the namespace `kube-system`: the identity of the cluster.
    pub uid: String,
    /// How many nodes it has.
    pub nodes: u32,
    /// Nodes whose machine is not known, by name, with the reason: they say none, or one that they cannot run on.
    pub unidentified: BTreeMap<String, String>,
    /// Names of nodes that run on a machine of their own word, which is none of the VMs that were read with them:
    /// elsewhere, or on a VM that they do not name.
    pub elsewhere: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_the_same_in_both_byte_orders() {
        let bios = "42389AB1-2c3d-4e5f-8192-a3b4c5d6e7f8";
        for same in [
            "42389ab1-2c3d-4e5f-8192-a3b4c5d6e7f8",
            "b19a3842-3d2c-5f4e-8192-a3b4c5d6e7f8",
            "42389ab12c3d4e5f8192a3b4c5d6e7f8",
        ] {
            assert!(is_same_machine(bios, same) && is_same_machine(same, bios), "{same}");
        }
        for other in
            ["42389ab1-2c3d-4e5f-8192-a3b4c5d6e7f9", "b19a3842-2c3d-4e5f-8192-a3b4c5d6e7f8", "", "42389ab1", "serve-1"]
        {
            assert!(!is_same_machine(bios, other) && !is_same_machine(other, bios), "{other}");
        }
        assert!(!is_same_machine("", ""), "nothing is no machine");
    }
}
