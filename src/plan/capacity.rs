//! What is out of service, now and at the worst moment.

use std::collections::BTreeSet;

use super::fleet::out_of_service;
use super::{Capacity, HostPlan, Impact, NotActed, PoolCapacity, Reason};
use crate::model::{DesiredPool, Fact, HostName, HostRecord};

/// Hosts of a pool that are out of service now, whatever the cause.
pub(super) fn unavailable<'a>(pool: &'a DesiredPool, record: impl Fn(&str) -> Option<&'a HostRecord>) -> Vec<NotActed> {
    pool.hosts
        .iter()
        .filter_map(|pin| {
            let (reason, detail) = match record(&pin.host.path) {
                None => (Reason::Unknown, Some("it is not there".to_owned())),
                Some(record) => (reason(record), out_of_service(record, &pool.guests)),
            };
            let (host, pool) = (pin.host.name.clone(), pool.name.value.clone());
            Some(NotActed { host, pool, reason, detail: detail? })
        })
        .collect()
}

/// The class of a cause: taken out by somebody, or not known to be in service.
fn reason(record: &HostRecord) -> Reason {
    match &record.view {
        Ok(view) if view.in_maintenance == Fact::Known(true) => Reason::Held,
        _ => Reason::Unknown,
    }
}

/// The capacity of all pools. One host is worked on at once, and no other starts after one that
/// failed: at the worst moment one host is out beside those that are out now.
pub(super) fn capacity(pools: &[(&DesiredPool, Vec<NotActed>)], hosts: &[HostPlan]) -> Capacity {
    let mut total = Capacity { gpu_hours_tenths: 0, gpu_hours_most_tenths: 0, pools: Vec::new() };
    for (pool, unavailable) in pools {
        let per_host = pool.gpu_count.value;
        let down: BTreeSet<&HostName> = unavailable.iter().map(|other| &other.host).collect();
        let taken: Vec<&HostPlan> = hosts
            .iter()
            .filter(|host| {
                host.pool == pool.name.value && host.impact >= Impact::Maintenance && !down.contains(&host.host.name)
            })
            .collect();
        for host in &taken {
            total.gpu_hours_tenths += tenths(per_host, host.minutes.expected);
            total.gpu_hours_most_tenths += tenths(per_host, host.minutes.most);
        }
        let count = |hosts: usize| per_host.saturating_mul(u32::try_from(hosts).unwrap_or(u32::MAX));
        let gpus = count(pool.hosts.len());
        let now = gpus - count(unavailable.len());
        let worst = if taken.is_empty() { now } else { now.saturating_sub(per_host) };
        total.pools.push(PoolCapacity {
            pool: pool.name.value.clone(),
            gpus,
            now,
            worst,
            unavailable: unavailable.clone(),
        });
    }
    total
}

/// GPU-hours in tenths, rounded up.
fn tenths(gpus: u32, minutes: u32) -> u64 {
    (u64::from(gpus) * u64::from(minutes) * 10).div_ceil(60)
}
