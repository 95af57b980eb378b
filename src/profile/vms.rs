//! The part `vms` of a pool: what may be done to the VMs on its hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{At, FolderPattern, MayMove, NamePattern, OnMismatch, VmRules, VmSelector};

/// What may be done to the VMs that are powered on on the hosts, with a GPU or not. vCLS agents and
/// templates do not count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VmWish {
    /// VMs that DRS may move to other hosts while they run. A host with another VM on it is not
    /// changed.
    #[serde(default, skip_serializing_if = "Moves::is_all")]
    pub may_move: Moves,
    /// VMs that may be shut down, to be started on the same host again. Nothing else is stopped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_stop: Vec<At<Vms>>,
    /// What becomes of a VM whose GPU devices do not fit what the GPUs become.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_mismatch: Option<At<Mismatch>>,
}

impl VmWish {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// VMs that may be moved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Moves {
    /// All.
    #[default]
    All,
    /// None.
    None,
    /// Those that one of these selects.
    Only(#[schemars(length(min = 1))] At<Vec<At<Vms>>>),
}

impl VmWish {
    /// The guest clusters that selectors name.
    pub(super) fn guests(&self) -> impl Iterator<Item = &At<String>> {
        let moves = match &self.may_move {
            Moves::Only(vms) => vms.as_slice(),
            Moves::All | Moves::None => &[],
        };
        moves.iter().chain(&self.may_stop).filter_map(|vms| match &vms.value {
            Vms::Guest(cluster) => Some(cluster),
            Vms::Folder(_) | Vms::Name(_) => None,
        })
    }
}

impl Moves {
    fn is_all(&self) -> bool {
        *self == Self::All
    }
}

/// Which VMs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Vms {
    /// Those in this folder and below it.
    Folder(At<FolderPattern>),
    /// Those of this name.
    Name(At<NamePattern>),
    /// Those that are nodes of this guest cluster.
    Guest(At<String>),
}

/// What becomes of a VM whose GPU devices do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Mismatch {
    /// Its host is not changed (the default).
    Refuse,
    /// It is stopped, if `mayStop` selects it, and stays off.
    LeaveOff,
}

impl From<&VmWish> for VmRules {
    fn from(wish: &VmWish) -> Self {
        let selectors =
            |vms: &[At<Vms>]| vms.iter().map(|one| At::new((&one.value).into(), one.place.clone())).collect();
        Self {
            may_move: match &wish.may_move {
                Moves::All => MayMove::All,
                Moves::None => MayMove::None,
                Moves::Only(vms) => MayMove::Only(selectors(vms)),
            },
            may_stop: selectors(&wish.may_stop),
            on_mismatch: match wish.on_mismatch.as_ref().map(|wish| wish.value) {
                None | Some(Mismatch::Refuse) => OnMismatch::Refuse,
                Some(Mismatch::LeaveOff) => OnMismatch::LeaveOff,
            },
        }
    }
}

impl From<&Vms> for VmSelector {
    fn from(vms: &Vms) -> Self {
        match vms {
            Vms::Folder(folder) => Self::Folder(folder.value.clone()),
            Vms::Name(name) => Self::Name(name.value.clone()),
            Vms::Guest(cluster) => Self::Guest(cluster.value.clone()),
        }
    }
}
