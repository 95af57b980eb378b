//! What is around a host, read just before its visit is planned.

use std::collections::BTreeMap;

use super::chain;
use super::run::Run;
use crate::model::{Fact, GuestView, HostRecord, HostRef};
use crate::plan::{Around, HostPlan, Memory};

impl Run<'_> {
    /// What is around a host, if a VM of it asks for that: reading the whole cluster takes as long as
    /// reading each of its hosts. `guests`: the guest clusters, read with the host; with the whole cluster they are
    /// read again, since a node may name a VM of another host.
    pub(super) async fn around(
        &self,
        host: &HostPlan,
        record: &HostRecord,
        memory: &Memory,
        guests: BTreeMap<String, Fact<GuestView>>,
    ) -> Around {
        if !Around::is_needed(record, memory) {
            return Around { guests, ..Around::nothing() };
        }
        let roster = match self.fleet.roster().await {
            Ok(roster) => roster,
            Err(error) => return Around { guests, ..Around::unread(&chain(&error)) },
        };
        let cluster = &host.host.cluster;
        let hosts: Vec<HostRef> = roster.hosts.into_iter().filter(|other| other.cluster == *cluster).collect();
        let mut read = self.fleet.facts_and_nodes(&hosts).await;
        Around {
            cluster: read.clusters.remove(cluster).unwrap_or_else(|| Fact::unknown("the cluster is not where it was")),
            neighbours: read.hosts.into_values().filter(|other| other.host.moref != host.host.moref).collect(),
            hot_migrate: read.hot_migrate,
            guests: read.guests,
        }
    }
}
