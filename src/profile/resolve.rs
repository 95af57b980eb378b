//! Host selectors against the roster.

use std::collections::{BTreeMap, BTreeSet};

use crate::document::{Document, nearest};
use crate::inventory::Site;
use crate::model::{
    Accept, AssignmentPolicy, At, ClusterRef, Desired, DesiredPool, DriverPin, Finding, FoundInMaintenance, GpuGroup,
    GpuSelect, GuestRules, HostGlob, HostPattern, HostPin, HostRef, HostSettings, Mode, RolloutRules, Roster, Rule,
    Severity,
};

use super::check::claimed_twice;
use super::guests::GuestWish;
use super::pool::{GpuPool, Group, OnMaintenance, Placement, Select};
use super::roster::{cluster, hosts_of, shown};

/// Names that a finding lists before it says "and so many more".
const LISTED: usize = 10;

/// What resolving gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The wish of all pools of the site.
    pub desired: Desired,
    /// What there is to say beside it, in the order of files and lines; none is an error.
    pub findings: Vec<Finding>,
}

/// Expands the host selectors of the pools of a site against its roster.
///
/// Pools of other sites are left out. The pools must have passed [`check`](super::check).
///
/// # Errors
/// Findings with at least one error: then there is no plan, since a selector that means nothing, or
/// two things, must not decide which hosts are rebooted.
pub fn resolve(pools: &[Document<GpuPool>], site: &Document<Site>, roster: &Roster) -> Result<Resolved, Vec<Finding>> {
    let mut findings = Vec::new();
    let mut wished = Vec::new();
    let mut claims = Claims::default();
    let mut pools: Vec<_> = pools.iter().filter(|pool| pool.spec.hosts.site.value == site.name.value).collect();
    pools.sort_by(|a, b| a.name.cmp(&b.name));
    for pool in pools {
        match cluster(&pool.spec.hosts.cluster, roster) {
            Ok(cluster) => {
                let hosts = select(pool, cluster, roster, &mut findings);
                claims.add(pool, cluster, &hosts, &mut findings);
                match guests(pool) {
                    Ok(guests) => wished.push(desired_pool(pool, cluster, hosts, guests)),
                    Err(finding) => findings.push(*finding),
                }
            }
            Err(finding) => findings.push(finding.in_pool(&pool.name)),
        }
    }
    findings.extend(claims.unexpected(roster));
    findings.sort_by(|a, b| a.place.cmp(&b.place));
    if findings.iter().any(|finding| finding.severity == Severity::Error) {
        return Err(findings);
    }
    let desired =
        Desired { site: site.name.clone(), pace: site.spec.pace.into(), shell: site.spec.shell_way(), pools: wished };
    Ok(Resolved { desired, findings })
}

/// The hosts of a pool, in name order.
fn select(
    pool: &Document<GpuPool>,
    cluster: &ClusterRef,
    roster: &Roster,
    findings: &mut Vec<Finding>,
) -> Vec<HostPin> {
    let spec = &pool.spec.hosts;
    let there = hosts_of(cluster, roster);
    let mut pins: BTreeMap<&HostRef, HostPin> = BTreeMap::new();
    for pattern in spec.names.iter() {
        for glob in pattern.parts() {
            let matching: Vec<&HostRef> =
                there.iter().copied().filter(|host| glob.matches(host.name.as_str())).collect();
            if matching.is_empty() {
                findings.push(no_host(pool, pattern, glob, cluster, &there, roster));
            }
            for host in matching {
                let selector = At::new(pattern.to_string(), pattern.place.clone());
                pins.entry(host).or_insert_with(|| HostPin { host: host.clone(), selector });
            }
        }
    }
    for pattern in &spec.except {
        let before = pins.len();
        pins.retain(|host, _| !pattern.matches(host.name.as_str()));
        if pins.len() == before {
            findings.push(idle_except(pool, pattern, cluster, &there));
        }
    }
    if pins.is_empty() && !spec.except.is_empty() {
        findings.push(
            Finding::new(&Rule::DOC_EMPTY, "`hosts.except` leaves no host in the pool")
                .at(&spec.names.place)
                .in_pool(&pool.name),
        );
    }
    let mut pins: Vec<HostPin> = pins.into_values().collect();
    pins.sort_by(|a, b| a.host.name.cmp(&b.host.name));
    same_name(pool, &pins, findings);
    accepted_hosts(pool, &pins, findings);
    pins
}

fn no_host(
    pool: &Document<GpuPool>,
    pattern: &At<HostPattern>,
    glob: HostGlob<'_>,
    cluster: &ClusterRef,
    there: &[&HostRef],
    roster: &Roster,
) -> Finding {
    let name = shown(glob.as_str());
    let here = shown(&cluster.name);
    if !glob.is_name() {
        let message = format!("no host of cluster {here} matches {name}");
        return Finding::new(&Rule::DOC_HOST, message).at(&pattern.place).in_pool(&pool.name);
    }
    let near = nearest(glob.as_str(), there.iter().map(|host| host.name.as_str()));
    let message = match near {
        Some(near) => format!("no host {name} in cluster {here}; nearest: {}", shown(near)),
        None => format!("no host {name} in cluster {here}"),
    };
    let mut finding = Finding::new(&Rule::DOC_HOST, message).at(&pattern.place).in_pool(&pool.name);
    if let Some(elsewhere) = roster.hosts.iter().find(|host| host.name.as_str() == glob.as_str()) {
        finding = finding.seen(format!("there is {}", elsewhere.path)).hint("is the cluster the right one?");
    }
    finding
}

fn idle_except(
    pool: &Document<GpuPool>,
    pattern: &At<HostPattern>,
    cluster: &ClusterRef,
    there: &[&HostRef],
) -> Finding {
    let named = there.iter().find(|host| pattern.matches(host.name.as_str()));
    let message = match named {
        Some(_) => format!("`except` leaves out {pattern}, which `names` does not select"),
        None => format!("`except` leaves out {pattern}, and no host of cluster {} matches it", shown(&cluster.name)),
    };
    let finding = Finding::new(&Rule::DOC_EXCEPT, message).at(&pattern.place).in_pool(&pool.name);
    let near = nearest(pattern.as_str(), there.iter().map(|host| host.name.as_str()));
    match near.filter(|_| named.is_none()) {
        Some(near) => finding.hint(format!("nearest: {}", shown(near))),
        None => finding.hint("remove it, or correct the name: a host that should be left out may be in the pool"),
    }
}

/// One name, two hosts: which is meant cannot be said.
fn same_name(pool: &Document<GpuPool>, pins: &[HostPin], findings: &mut Vec<Finding>) {
    for pair in pins.windows(2) {
        let [one, other] = pair else { continue };
        if one.host.name == other.host.name {
            findings.push(
                Finding::new(&Rule::DOC_HOST, format!("two hosts have the name {}", shown(one.host.name.as_str())))
                    .at(&other.selector.place)
                    .in_pool(&pool.name)
                    .on_host(&one.host.name)
                    .seen(format!("{} ({})", one.host.path, one.host.moref))
                    .seen(format!("{} ({})", other.host.path, other.host.moref))
                    .hint("remove the stale one from vCenter"),
            );
        }
    }
}

fn accepted_hosts(pool: &Document<GpuPool>, pins: &[HostPin], findings: &mut Vec<Finding>) {
    for name in pool.spec.accept.iter().flat_map(|accept| &accept.hosts) {
        if pins.iter().any(|pin| pin.host.name == name.value) {
            continue;
        }
        let mut finding = Finding::new(
            &Rule::DOC_HOST,
            format!("`accept` names {}, which is no host of the pool", shown(name.as_str())),
        )
        .at(&name.place)
        .in_pool(&pool.name);
        if let Some(near) = nearest(name.as_str(), pins.iter().map(|pin| pin.host.name.as_str())) {
            finding = finding.hint(format!("nearest: {}", shown(near)));
        }
        findings.push(finding);
    }
}

/// Which pool has which host, and which clusters are looked at.
#[derive(Default)]
struct Claims<'p> {
    hosts: BTreeMap<HostRef, (&'p str, At<String>)>,
    /// Hosts that a pool leaves out by name.
    left_out: Vec<&'p HostPattern>,
    clusters: BTreeMap<ClusterRef, &'p At<String>>,
}

impl<'p> Claims<'p> {
    fn add(
        &mut self,
        pool: &'p Document<GpuPool>,
        cluster: &ClusterRef,
        pins: &[HostPin],
        findings: &mut Vec<Finding>,
    ) {
        self.clusters.entry(cluster.clone()).or_insert(&pool.spec.hosts.cluster);
        self.left_out.extend(pool.spec.hosts.except.iter().map(|pattern| &pattern.value));
        for HostPin { host, selector } in pins {
            match self.hosts.get(host) {
                Some((owner, place)) => {
                    let (one, other) = ((*owner, &place.place), (pool.name.as_str(), &selector.place));
                    findings.extend(claimed_twice(host.name.as_str(), one, other));
                }
                None => {
                    self.hosts.insert(host.clone(), (&pool.name, selector.clone()));
                }
            }
        }
    }

    /// Hosts of the clusters that are in no pool and left out by none (case B18): they are not touched,
    /// and somebody may have forgotten them.
    fn unexpected(&self, roster: &Roster) -> Vec<Finding> {
        let report = |(cluster, wanted): (&ClusterRef, &&At<String>)| {
            let names: BTreeSet<&str> = hosts_of(cluster, roster)
                .into_iter()
                .filter(|host| !self.hosts.contains_key(host))
                .map(|host| host.name.as_str())
                .filter(|name| !self.left_out.iter().any(|pattern| pattern.matches(name)))
                .collect();
            if names.is_empty() {
                return None;
            }
            let cluster = shown(&cluster.name);
            let message = match names.len() {
                1 => format!("1 host of cluster {cluster} is in no pool; it is not touched"),
                count => format!("{count} hosts of cluster {cluster} are in no pool; they are not touched"),
            };
            let mut finding = Finding::new(&Rule::DOC_UNEXPECTED, message).at(&wanted.place);
            finding.evidence.extend(names.iter().take(LISTED).map(|name| shown(name)));
            if names.len() > LISTED {
                finding = finding.seen(format!("and {} more", names.len() - LISTED));
            }
            Some(finding)
        };
        self.clusters.iter().filter_map(report).collect()
    }
}

/// The rules of its guest clusters. A template that is not filled would let nodes go unvalidated.
fn guests(pool: &Document<GpuPool>) -> Result<Vec<GuestRules>, Box<Finding>> {
    let rules = |guest: &GuestWish| {
        guest.rules().ok_or_else(|| {
            let message = format!("a template of {} was not read", guest.cluster);
            Box::new(Finding::new(&Rule::DOC_TEMPLATE, message).at(&guest.cluster.place).in_pool(&pool.name))
        })
    };
    pool.spec.guests.iter().map(rules).collect()
}

fn desired_pool(
    pool: &Document<GpuPool>,
    cluster: &ClusterRef,
    hosts: Vec<HostPin>,
    guests: Vec<GuestRules>,
) -> DesiredPool {
    let spec = &pool.spec;
    DesiredPool {
        name: pool.name.clone(),
        cluster: At::new(cluster.path.clone(), spec.hosts.cluster.place.clone()),
        gpu_model: spec.gpu_model.clone(),
        gpu_count: spec.gpu_count.clone(),
        host: HostSettings {
            placement: spec.host.placement.clone().map(|placement| placement.map(policy)),
            driver: spec
                .host
                .driver
                .as_ref()
                .map(|driver| DriverPin { component: driver.component.clone(), version: driver.version.clone() }),
        },
        gpus: spec.gpus.iter().map(gpu_group).collect(),
        vms: (&spec.vms).into(),
        rollout: RolloutRules {
            max_unavailable: spec.rollout.max_unavailable.clone(),
            max_reboots: spec.rollout.max_reboots.clone(),
            found_in_maintenance: match spec.rollout.found_in_maintenance {
                OnMaintenance::Hold => FoundInMaintenance::Hold,
                OnMaintenance::Change => FoundInMaintenance::Change,
            },
            on_validation_failure: spec
                .rollout
                .on_validation_failure
                .as_ref()
                .map(|wish| wish.value.into())
                .unwrap_or_default(),
        },
        guests,
        accept: spec
            .accept
            .iter()
            .map(|accept| Accept {
                finding: accept.finding.clone(),
                hosts: accept.hosts.clone(),
                reason: accept.reason.value.clone(),
                until: accept.until.clone(),
            })
            .collect(),
        hosts,
    }
}

fn policy(placement: Placement) -> AssignmentPolicy {
    match placement {
        Placement::Performance => AssignmentPolicy::Performance,
        Placement::Consolidation => AssignmentPolicy::Consolidation,
    }
}

fn gpu_group(group: &Group) -> GpuGroup {
    let all = || At::new(GpuSelect::All, group.mode.place.clone());
    GpuGroup {
        select: group.select.clone().map_or_else(all, |select| select.map(gpu_select)),
        mode: At::new(Mode::from(&group.mode.value), group.mode.place.clone()),
        offers: group
            .offers
            .iter()
            .map(|offer| {
                offer.clone().map(|offer| offer.0.into_iter().map(|(name, count)| (name.value, count.value)).collect())
            })
            .collect(),
    }
}

fn gpu_select(select: Select) -> GpuSelect {
    match select {
        Select::All => GpuSelect::All,
        Select::Addresses(addresses) => GpuSelect::Addresses(addresses),
        Select::NumaNode(node) => GpuSelect::NumaNode(node.value),
        Select::Count(count) => GpuSelect::Count(count.value),
    }
}
