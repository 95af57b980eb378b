//! Where VMs lie in the inventory: their folders, followed upwards to the root.

use std::collections::{BTreeMap, BTreeSet};

use super::fleet::{Fleet, entity};
use super::tree::{self, Entity};
use crate::model::{Fact, HostFault, HostFaultKind, MoRef};
use crate::vim25::wire::names::{managed, path};
use crate::vim25::{ObjectContent, PropertySet};

/// Folders and datacenters above VMs, as far as they could be read.
pub(super) struct Folders {
    root: MoRef,
    known: BTreeMap<MoRef, Entity>,
}

impl Fleet {
    /// Reads these folders and all above them, a level at a time. They are few, whatever the number
    /// of VMs and of folders on the vCenter.
    pub(super) async fn folders(&self, from: impl IntoIterator<Item = MoRef>) -> Folders {
        let sets =
            [managed::FOLDER, managed::DATACENTER].map(|kind| PropertySet::new(kind, &[path::NAME, path::PARENT]));
        let root = self.vcenter().root_folder().clone();
        let mut known = BTreeMap::new();
        let mut asked = BTreeSet::from([root.clone()]);
        let mut level: BTreeSet<MoRef> = from.into_iter().collect();
        // Each level asks only for what was not asked for yet, so a loop ends.
        loop {
            level.retain(|folder| asked.insert(folder.clone()));
            if level.is_empty() {
                return Folders { root, known };
            }
            let found = self.objects(level.into_iter().collect(), &sets, named).await;
            level = found.values().filter_map(|folder| folder.as_ref().ok()?.parent.clone()).collect();
            known.extend(found.into_iter().filter_map(|(moref, folder)| Some((moref, folder.ok()?))));
        }
    }
}

impl Folders {
    /// The path of a folder; of a VM in a vApp (no folder) absent.
    pub(super) fn path(&self, folder: &Fact<MoRef>) -> Fact<String> {
        match folder {
            Fact::Known(folder) => match tree::path(&self.root, &self.known, folder) {
                Ok(path) => Fact::Known(path),
                Err(why) => Fact::unknown(why),
            },
            Fact::Absent => Fact::Absent,
            Fact::Unknown { why } => Fact::unknown(why.clone()),
        }
    }
}

fn named(content: &ObjectContent) -> Result<Entity, HostFault> {
    let hidden = || HostFault { kind: HostFaultKind::Fault, message: "it does not show its name".to_owned() };
    entity(content).ok_or_else(hidden)
}
