//! What is around a host: the cluster, and the hosts that may take its VMs.

use serde::{Deserialize, Serialize};

use super::Memory;
use super::blocks::powered_on_vms;
use crate::model::{ClusterView, Fact, HostRecord, HostRef, MoRef, Observed};

/// What is around a host, read just before its visit is planned: the fates of its VMs are made from
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Around {
    /// Its cluster; absent for a host that stands alone.
    pub cluster: Fact<ClusterView>,
    /// The other hosts of the cluster.
    pub neighbours: Vec<HostRecord>,
    /// `vgpu.hotmigrate.enabled` of the vCenter.
    pub hot_migrate: Fact<bool>,
}

impl Around {
    /// Whether what is around the host decides: a VM runs on it, or one that was stopped is not there.
    pub fn is_needed(record: &HostRecord, memory: &Memory) -> bool {
        let Ok(view) = &record.view else { return false };
        let here = |vm: &MoRef| view.vms.known().is_some_and(|vms| vms.iter().any(|found| found.moref == *vm));
        powered_on_vms(view).is_ok_and(|vms| !vms.is_empty()) || memory.vms.iter().any(|vm| !here(vm))
    }

    /// For a host of which nothing around decides.
    pub fn nothing() -> Self {
        Self { cluster: Fact::Absent, neighbours: Vec::new(), hot_migrate: Fact::Absent }
    }

    /// What is around could not be read.
    pub fn unread(why: &str) -> Self {
        Self { cluster: Fact::unknown(why), neighbours: Vec::new(), hot_migrate: Fact::unknown(why) }
    }
}

/// The same, borrowed.
#[derive(Debug, Clone)]
pub(super) struct Near<'a> {
    /// Its cluster.
    pub cluster: Fact<&'a ClusterView>,
    /// The other hosts of the cluster.
    pub neighbours: Vec<&'a HostRecord>,
    /// `vgpu.hotmigrate.enabled`.
    pub hot_migrate: &'a Fact<bool>,
}

impl<'a> From<&'a Around> for Near<'a> {
    fn from(around: &'a Around) -> Self {
        Self {
            cluster: around.cluster.as_ref(),
            neighbours: around.neighbours.iter().collect(),
            hot_migrate: &around.hot_migrate,
        }
    }
}

impl<'a> Near<'a> {
    /// What an observation shows around a host.
    pub fn of(host: &HostRef, observed: &'a Observed) -> Self {
        let mut near = Self::whole(&host.cluster, observed);
        near.neighbours.retain(|record| record.host.moref != host.moref);
        near
    }

    /// A whole cluster.
    pub fn whole(cluster: &str, observed: &'a Observed) -> Self {
        Self {
            cluster: match observed.clusters.get(cluster) {
                Some(cluster) => cluster.as_ref(),
                None => Fact::unknown("the cluster was not read"),
            },
            neighbours: observed.hosts.values().filter(|record| record.host.cluster == cluster).collect(),
            hot_migrate: &observed.hot_migrate,
        }
    }
}
