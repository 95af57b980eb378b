//! What becomes of the VMs of a host (DESIGN §4), as the plan and the journal store it.

use serde::{Deserialize, Serialize};

use std::collections::BTreeMap;

use crate::model::{HostName, MoRef, NodeRef, VmGpuDevice};

/// A VM that is powered on, and what becomes of it while its host is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VmFate {
    /// `VirtualMachine` reference.
    pub vm: MoRef,
    /// Name.
    pub name: String,
    /// Its GPU devices, in device order.
    pub gpus: Vec<VmGpuDevice>,
    /// The node of a guest cluster that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeRef>,
    /// What becomes of it.
    pub fate: Fate,
}

/// What becomes of a VM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Fate {
    /// DRS moves it while it runs. It is not moved back.
    Moves {
        /// A host with room for it. DRS chooses, and may choose another one.
        to: HostName,
        /// How long the move usually takes, in minutes.
        minutes: u32,
        /// What proves that it can move.
        why: String,
    },
    /// It is shut down, and started again on the same host.
    Stops {
        /// Why it does not move.
        why: String,
    },
    /// It is shut down and stays off: its GPU devices do not fit what the GPUs become.
    LeftOff {
        /// Why it would not start.
        why: String,
    },
}

impl Fate {
    /// Whether the VM is shut down.
    pub fn is_stopped(&self) -> bool {
        matches!(self, Self::Stops { .. } | Self::LeftOff { .. })
    }

    /// Why.
    pub fn why(&self) -> &str {
        match self {
            Self::Moves { why, .. } | Self::Stops { why } | Self::LeftOff { why } => why,
        }
    }
}

/// How many VMs of one host may be stopped and moved: counts, because VMs come and go between the
/// plan and its night (FORMATS rule 1). Which ones, the selectors of the pool say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// VMs that may be stopped.
    pub stops: u32,
    /// VMs that may be moved.
    pub moves: u32,
    /// Nodes that may go down, by guest cluster: no more than planned.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes: BTreeMap<String, u32>,
}

impl Bounds {
    /// How many more than planned: VMs are started and moved all day.
    pub(super) const MORE: u32 = 2;

    /// The bounds of a plan with these fates; without VMs to be closed around there are none.
    pub(super) fn of(fates: &[VmFate]) -> Self {
        let (stops, moves) = Self::counts(fates);
        Self { stops: stops + Self::MORE, moves: moves + Self::MORE, nodes: Self::nodes(fates) }
    }

    /// How many nodes these take down, by guest cluster.
    pub(super) fn nodes(fates: &[VmFate]) -> BTreeMap<String, u32> {
        let stopped = fates.iter().filter(|fate| fate.fate.is_stopped()).filter_map(|fate| fate.node.as_ref());
        stopped.fold(BTreeMap::new(), |mut down, node| {
            *down.entry(node.cluster.clone()).or_default() += 1;
            down
        })
    }

    /// How many of these are stopped, and how many move.
    pub(super) fn counts(fates: &[VmFate]) -> (u32, u32) {
        let stopped = fates.iter().filter(|fate| fate.fate.is_stopped()).count();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX - Self::MORE);
        (count(stopped), count(fates.len() - stopped))
    }
}

/// A VM that DRS moves away while the host enters maintenance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moving {
    /// `VirtualMachine` reference.
    pub vm: MoRef,
    /// Name.
    pub name: String,
    /// How long the move usually takes, in minutes.
    pub minutes: u32,
}
