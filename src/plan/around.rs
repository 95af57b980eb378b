//! What is around a host: the cluster, and the hosts that may take its VMs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Memory;
use super::blocks::powered_on_vms;
use crate::model::{ClusterView, Fact, GuestView, HostRecord, HostRef, HostView, MoRef, Observed};

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
    /// Guest clusters of the site by name.
    pub guests: BTreeMap<String, Fact<GuestView>>,
}

impl Around {
    /// Whether what is around the host decides: a VM runs on it, or one that was stopped, or is a node that we
    /// marked, is not there.
    pub fn is_needed(record: &HostRecord, memory: &Memory) -> bool {
        let Ok(view) = &record.view else { return false };
        let here = |vm: &MoRef| view.vms.known().is_some_and(|vms| vms.iter().any(|found| found.moref == *vm));
        let marked = memory.nodes.iter().map(|node| &node.vm);
        powered_on_vms(view).is_ok_and(|vms| !vms.is_empty()) || memory.vms.iter().chain(marked).any(|vm| !here(vm))
    }

    /// For a host of which nothing around decides.
    pub fn nothing() -> Self {
        Self { cluster: Fact::Absent, neighbours: Vec::new(), hot_migrate: Fact::Absent, guests: BTreeMap::new() }
    }

    /// What is around could not be read.
    pub fn unread(why: &str) -> Self {
        Self {
            cluster: Fact::unknown(why),
            neighbours: Vec::new(),
            hot_migrate: Fact::unknown(why),
            guests: BTreeMap::new(),
        }
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
    /// Guest clusters of the site by name.
    pub guests: &'a BTreeMap<String, Fact<GuestView>>,
}

impl<'a> From<&'a Around> for Near<'a> {
    fn from(around: &'a Around) -> Self {
        Self {
            cluster: around.cluster.as_ref(),
            neighbours: around.neighbours.iter().collect(),
            hot_migrate: &around.hot_migrate,
            guests: &around.guests,
        }
    }
}

/// What an observation shows around hosts, by cluster: looked up for each host of a large fleet.
pub(super) struct Surroundings<'a> {
    observed: &'a Observed,
    hosts: BTreeMap<&'a str, Vec<&'a HostRecord>>,
}

impl<'a> Surroundings<'a> {
    /// Sorts the hosts by their clusters.
    pub fn of(observed: &'a Observed) -> Self {
        let mut hosts: BTreeMap<&str, Vec<&HostRecord>> = BTreeMap::new();
        for record in observed.hosts.values() {
            hosts.entry(&record.host.cluster).or_default().push(record);
        }
        Self { observed, hosts }
    }

    /// What is around a host. Its neighbours matter only where a VM has to go somewhere.
    pub fn near(&self, host: &HostRef, view: &HostView) -> Near<'a> {
        let mut near = self.cluster(&host.cluster);
        if powered_on_vms(view).is_ok_and(|vms| vms.is_empty()) {
            return near;
        }
        let others = self.hosts_of(&host.cluster).iter().filter(|record| record.host.moref != host.moref);
        near.neighbours = others.copied().collect();
        near
    }

    /// A whole cluster.
    pub fn whole(&self, cluster: &str) -> Near<'a> {
        Near { neighbours: self.hosts_of(cluster).to_vec(), ..self.cluster(cluster) }
    }

    /// The record of a host.
    pub fn record(&self, host: &HostRef) -> Option<&'a HostRecord> {
        self.observed.hosts.get(&host.path)
    }

    fn hosts_of(&self, cluster: &str) -> &[&'a HostRecord] {
        self.hosts.get(cluster).map(Vec::as_slice).unwrap_or_default()
    }

    /// A cluster without its hosts.
    fn cluster(&self, cluster: &str) -> Near<'a> {
        let seen = match self.observed.clusters.get(cluster) {
            Some(cluster) => cluster.as_ref(),
            None => Fact::unknown("the cluster was not read"),
        };
        let Observed { hot_migrate, guests, .. } = self.observed;
        Near { cluster: seen, neighbours: Vec::new(), hot_migrate, guests }
    }
}
