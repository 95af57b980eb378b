//! Reading clusters, each for itself.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::of_fault;
use super::fleet::Fleet;
use super::paths::{self, CLUSTER, HOST, Properties};
use crate::model::{ClusterView, Fact, HostRef, MoRef};
use crate::vim25::wire::names::{managed, path};
use crate::vim25::wire::{cluster, decode};
use crate::vim25::{ObjectContent, PropertySet};

impl Fleet {
    /// The cluster of a host, read now; absent for a host that stands alone.
    pub async fn cluster(&self, host: &HostRef) -> Fact<ClusterView> {
        let parent = match self.vcenter().properties(&host.moref, &[path::PARENT]).await {
            Ok(content) => Properties::new(&content, HOST).fact(path::PARENT, decode::reference),
            Err(error) => Fact::unknown(crate::base::cause::chain(&error)),
        };
        let parents = BTreeMap::from([(host.cluster.clone(), parent)]);
        let mut read = self.clusters(&parents).await;
        read.remove(&host.cluster).unwrap_or(Fact::Absent)
    }

    /// Clusters by path, of which the references are known.
    pub(super) async fn clusters(
        &self,
        parents: &BTreeMap<String, Fact<MoRef>>,
    ) -> BTreeMap<String, Fact<ClusterView>> {
        let is_cluster = |parent: &&MoRef| parent.kind == managed::CLUSTER;
        let wanted: BTreeSet<&MoRef> = parents.values().filter_map(Fact::known).filter(is_cluster).collect();
        let sets = [PropertySet::new(managed::CLUSTER, &paths::names(CLUSTER))];
        let read = self.objects(wanted.into_iter().cloned().collect(), &sets, |content| Ok(view(content))).await;
        let of = |parent: &Fact<MoRef>| match parent {
            Fact::Known(moref) if moref.kind != managed::CLUSTER => Fact::Absent,
            Fact::Known(moref) => match read.get(moref) {
                Some(Ok(view)) => Fact::Known(view.clone()),
                Some(Err(fault)) => of_fault(fault),
                None => Fact::unknown(format!("{moref} does not exist any more")),
            },
            Fact::Absent => Fact::unknown("the server does not show the cluster of its hosts"),
            Fact::Unknown { why } => Fact::unknown(why.clone()),
        };
        parents.iter().map(|(path, parent)| (path.clone(), of(parent))).collect()
    }
}

/// One `ClusterComputeResource` as read -> a view.
pub(super) fn view(content: &ObjectContent) -> ClusterView {
    let read = Properties::new(content, CLUSTER);
    let ha_admission = match read.fact(path::CONFIGURATION_EX, cluster::ha_admission) {
        Fact::Known(admission) => admission,
        Fact::Absent => Fact::Absent,
        Fact::Unknown { why } => Fact::Unknown { why },
    };
    ClusterView {
        moref: content.object.clone(),
        drs: read.fact(path::CONFIGURATION_EX, cluster::drs),
        ha_admission,
        drs_faults: read.list(path::DRS_FAULT, cluster::drs_faults),
    }
}
