//! What a pool allows to be done to the VMs on its hosts.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{At, Fact, FolderPattern, NamePattern, VmView};

/// What may be done to VMs that are powered on. The default: all may be moved, none may be stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VmRules {
    /// VMs that DRS may move away while they run.
    pub may_move: MayMove,
    /// VMs that may be shut down.
    pub may_stop: Vec<At<VmSelector>>,
    /// What becomes of a stopped VM whose GPU devices do not fit what the GPUs become.
    pub on_mismatch: OnMismatch,
}

/// VMs that may be moved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MayMove {
    /// All.
    #[default]
    All,
    /// None.
    None,
    /// Those that one of the selectors takes.
    Only(Vec<At<VmSelector>>),
}

/// Which VMs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum VmSelector {
    /// Those in this folder and below it.
    Folder(FolderPattern),
    /// Those of this name.
    Name(NamePattern),
    /// Those that are nodes of this guest cluster.
    Guest(String),
}

/// What becomes of a VM that would not start any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnMismatch {
    /// Its host is not changed.
    #[default]
    Refuse,
    /// It is stopped and stays off.
    LeaveOff,
}

impl VmRules {
    /// Whether the VM may be moved.
    pub fn may_move(&self, vm: &VmView) -> Fact<bool> {
        match &self.may_move {
            MayMove::All => Fact::Known(true),
            MayMove::None => Fact::Known(false),
            MayMove::Only(selectors) => any(selectors, vm),
        }
    }

    /// Whether the VM may be stopped.
    pub fn may_stop(&self, vm: &VmView) -> Fact<bool> {
        any(&self.may_stop, vm)
    }
}

/// Whether one of the selectors takes the VM. One that does is enough; one that cannot tell makes the
/// rest unknown.
fn any(selectors: &[At<VmSelector>], vm: &VmView) -> Fact<bool> {
    let mut answer = Fact::Known(false);
    for selector in selectors {
        match selector.takes(vm) {
            Fact::Known(true) => return Fact::Known(true),
            Fact::Known(false) | Fact::Absent => {}
            unknown => answer = unknown,
        }
    }
    answer
}

impl VmSelector {
    /// Whether it takes the VM. A VM in a vApp is in no folder.
    pub fn takes(&self, vm: &VmView) -> Fact<bool> {
        match self {
            Self::Folder(folder) => vm.folder.as_ref().map(|path| folder.matches(path)),
            Self::Name(name) => vm.name.as_ref().map(|own| name.matches(own)),
            Self::Guest(cluster) => vm.node.as_ref().map(|own| own.node.cluster == *cluster),
        }
        .or_absent(false)
    }
}

impl fmt::Display for VmSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "folder {folder}"),
            Self::Name(name) => write!(f, "name {name}"),
            Self::Guest(cluster) => write!(f, "nodes of {cluster}"),
        }
    }
}
