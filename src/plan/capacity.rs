//! What is out of service, now and at the worst moment.

use std::collections::BTreeMap;

use super::fleet::{host_down, nodes_out, out_of_service};
use super::{Capacity, Fate, HostPlan, Impact, NodeOut, NotActed, PoolCapacity, Reason};
use crate::model::{DesiredPool, Fact, HostName, HostPin, HostRecord, Observed};

/// Hosts of a pool that are out of service now, whatever the cause: with nodes that are, too.
pub(super) fn unavailable(pool: &DesiredPool, observed: &Observed) -> Vec<NotActed> {
    let out = |record: &HostRecord| out_of_service(record, &pool.guests, None);
    pool.hosts.iter().filter_map(|pin| entry(pool, pin, observed, out)).collect()
}

/// A host of a pool, if it is out by this judgement.
fn entry(
    pool: &DesiredPool,
    pin: &HostPin,
    observed: &Observed,
    out: impl Fn(&HostRecord) -> Option<String>,
) -> Option<NotActed> {
    let (reason, detail) = match observed.hosts.get(&pin.host.path) {
        None => (Reason::Unknown, "it is not there".to_owned()),
        Some(record) => (reason(record), out(record)?),
    };
    Some(NotActed { host: pin.host.name.clone(), pool: pool.name.value.clone(), reason, detail })
}

/// The class of a cause: taken out by somebody, or not known to be in service.
fn reason(record: &HostRecord) -> Reason {
    match &record.view {
        Ok(view) if view.in_maintenance == Fact::Known(true) => Reason::Held,
        _ => Reason::Unknown,
    }
}

/// What of a pool is in service now.
struct Service {
    unavailable: Vec<NotActed>,
    nodes: Vec<NodeOut>,
    /// GPUs in service, by host.
    gpus: BTreeMap<HostName, u32>,
}

impl Service {
    fn of(pool: &DesiredPool, observed: &Observed, as_wished: impl Fn(&HostName) -> bool) -> Self {
        let per_host = pool.gpu_count.value;
        let mut service = Self { unavailable: Vec::new(), nodes: Vec::new(), gpus: BTreeMap::new() };
        for pin in &pool.hosts {
            let host = &pin.host.name;
            if let Some(out) = entry(pool, pin, observed, host_down) {
                service.unavailable.push(out);
                service.gpus.insert(host.clone(), 0);
                continue;
            }
            let view = observed.hosts.get(&pin.host.path).and_then(|record| record.view.as_ref().ok());
            let out = view.map(|view| nodes_out(view, &pool.guests, as_wished(host))).unwrap_or_default();
            let nodes: Vec<NodeOut> = out
                .into_iter()
                .map(|out| NodeOut {
                    host: host.clone(),
                    gpus: out.gpus.unwrap_or(per_host).min(per_host),
                    node: out.node,
                    vm: out.vm,
                    why: out.why,
                })
                .collect();
            // Several vGPUs may share a GPU: at most so many are out.
            let down = nodes.iter().fold(0, |sum: u32, out| sum.saturating_add(out.gpus));
            service.gpus.insert(host.clone(), per_host.saturating_sub(down));
            service.nodes.extend(nodes);
        }
        service
    }
}

/// The capacity of all pools. One host is worked on at once, and no other starts after one that
/// failed: at the worst moment one host is out beside what is out now, and beside the nodes that were left off by then.
pub(super) fn capacity(
    pools: &[DesiredPool],
    observed: &Observed,
    hosts: &[HostPlan],
    not_acted: &[NotActed],
) -> Capacity {
    let mut total = Capacity { gpu_hours_tenths: 0, gpu_hours_most_tenths: 0, pools: Vec::new() };
    for pool in pools {
        let name = &pool.name.value;
        let is_converged = |host: &HostName| {
            not_acted.iter().any(|one| one.reason == Reason::Converged && one.host == *host && one.pool == *name)
        };
        let Service { unavailable, nodes, gpus } = Service::of(pool, observed, is_converged);
        let now = gpus.values().fold(0, |sum: u32, gpus| sum.saturating_add(*gpus));
        let (mut worst, mut left_off) = (now, 0);
        for host in hosts.iter().filter(|host| host.pool == *name && host.impact >= Impact::Maintenance) {
            let taken = gpus.get(&host.host.name).copied().unwrap_or_default();
            total.gpu_hours_tenths += tenths(taken, host.minutes.expected);
            total.gpu_hours_most_tenths += tenths(taken, host.minutes.most);
            worst = worst.min(now.saturating_sub(taken).saturating_sub(left_off));
            left_off += left_off_by(host).min(taken);
        }
        total.pools.push(PoolCapacity {
            pool: name.clone(),
            gpus: pool.gpu_count.value.saturating_mul(u32::try_from(pool.hosts.len()).unwrap_or(u32::MAX)),
            now,
            worst,
            unavailable,
            nodes,
        });
    }
    total
}

/// GPU devices of nodes that stay off once the host is done.
fn left_off_by(host: &HostPlan) -> u32 {
    let off = host.fates.iter().filter(|fate| fate.node.is_some() && matches!(fate.fate, Fate::LeftOff { .. }));
    off.fold(0, |sum, fate| sum.saturating_add(u32::try_from(fate.gpus.len()).unwrap_or(u32::MAX)))
}

/// GPU-hours in tenths, rounded up.
fn tenths(gpus: u32, minutes: u32) -> u64 {
    (u64::from(gpus) * u64::from(minutes) * 10).div_ceil(60)
}
