//! What several documents say together.

use std::collections::BTreeMap;

use jiff::civil::Date;

use super::check_pool;
use crate::document::{Document, nearest};
use crate::model::{At, Finding, Place, Rule};
use crate::profile::{GpuPool, Loaded};

/// All findings that need no live system: of each pool, and of the documents together, in the order
/// of files and lines. `today` (UTC) is for the expiry of acceptances.
pub fn check(loaded: &Loaded, today: Option<Date>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = loaded.pools.iter().flat_map(|pool| check_pool(pool, today)).collect();
    same_name("GpuPool", loaded.pools.iter().map(|pool| &pool.name), &mut findings);
    same_name("Site", loaded.sites.iter().map(|site| &site.name), &mut findings);
    sites(loaded, &mut findings);
    guests(loaded, &mut findings);
    claims(&loaded.pools, &mut findings);
    findings.sort_by(|a, b| a.place.cmp(&b.place));
    findings
}

fn same_name<'a>(kind: &str, names: impl Iterator<Item = &'a At<String>>, findings: &mut Vec<Finding>) {
    let mut first: BTreeMap<&str, &Place> = BTreeMap::new();
    for name in names {
        if let Some(place) = first.insert(&name.value, &name.place) {
            for (here, there) in [(place, &name.place), (&name.place, place)] {
                findings.push(
                    Finding::new(&Rule::DOC_DUPLICATE, format!("two {kind} documents have the name `{name}`"))
                        .at(here)
                        .seen(format!("the other: {there}")),
                );
            }
        }
    }
}

fn sites(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let Loaded { pools, sites, broken_sites, .. } = loaded;
    for pool in pools {
        let wanted = &pool.spec.hosts.site;
        let told = wanted.trim().is_empty() || broken_sites.contains(&wanted.value);
        if told || sites.iter().any(|site| site.name.value == wanted.value) {
            continue;
        }
        let known = || sites.iter().map(|site| site.name.value.as_str());
        let hint = match nearest(wanted, known()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if sites.is_empty() => "give the inventory too: `poolwright validate profiles inventories`".to_owned(),
            None => format!("sites are {}", known().collect::<Vec<_>>().join(", ")),
        };
        findings.push(
            Finding::new(&Rule::DOC_SITE, format!("no document describes the site `{}`", wanted.escape_debug()))
                .at(&wanted.place)
                .in_pool(&pool.name)
                .hint(hint),
        );
    }
}

/// Guest clusters that a pool lists and its site does not name.
fn guests(loaded: &Loaded, findings: &mut Vec<Finding>) {
    for pool in &loaded.pools {
        let Some(site) = loaded.sites.iter().find(|site| site.name.value == pool.spec.hosts.site.value) else {
            continue;
        };
        let known = || site.spec.guests.iter().map(|guest| guest.name.value.as_str());
        for wanted in pool.spec.guests.iter().map(|guest| &guest.cluster) {
            if wanted.trim().is_empty() || known().any(|name| name == wanted.value) {
                continue;
            }
            let message = format!("the site {} has no guest cluster `{}`", site.name, wanted.escape_debug());
            let hint = match nearest(wanted, known()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "name it in the Site: `guests: [{name: NAME, kubeconfig: \"file:PATH\"}]`".to_owned(),
            };
            findings.push(Finding::new(&Rule::DOC_GUEST, message).at(&wanted.place).in_pool(&pool.name).hint(hint));
        }
    }
}

/// Hosts that two pools claim, as far as names are written out: the rest shows against the roster.
fn claims(pools: &[Document<GpuPool>], findings: &mut Vec<Finding>) {
    // (site, cluster, host) -> (pool, place of the pattern)
    let mut claimed: BTreeMap<(&str, &str, &str), (&str, &Place)> = BTreeMap::new();
    for pool in pools {
        let hosts = &pool.spec.hosts;
        for pattern in hosts.names.iter() {
            for name in pattern.names().unwrap_or_default() {
                if hosts.except.iter().any(|except| except.matches(name)) {
                    continue;
                }
                let key = (hosts.site.as_str(), hosts.cluster.as_str(), name.as_str());
                match claimed.get(&key) {
                    Some((owner, place)) if *owner != pool.name.value => {
                        findings.extend(claimed_twice(name, (*owner, *place), (&pool.name, &pattern.place)));
                    }
                    Some(_) => {}
                    None => {
                        claimed.insert(key, (&pool.name, &pattern.place));
                    }
                }
            }
        }
    }
}

/// A finding at each of the two lines that claim a host.
pub(in crate::profile) fn claimed_twice(host: &str, one: (&str, &Place), other: (&str, &Place)) -> [Finding; 2] {
    [(one, other), (other, one)].map(|((pool, here), (rival, there))| {
        Finding::new(&Rule::DOC_CLAIMED, format!("the pools {pool} and {rival} both claim {host}"))
            .at(here)
            .in_pool(pool)
            .on_host(&host.into())
            .seen(format!("also claimed at {there}"))
            .hint("a host belongs to one pool: narrow one of the selectors, or use `except`")
    })
}
