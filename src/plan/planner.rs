//! The approved plan, from the wish, what was seen and the time.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use super::around::Surroundings;
use super::capacity::{capacity, unavailable};
use super::forecast::forecast;
use super::host::{Context, Judged, Outcome, judge};
use super::{
    HostPlan, Impact, Input, Limits, NotActed, Plan, Reason, UNTOLD, accept, node_findings, offers, shell_findings,
};
use crate::catalog;
use crate::model::{
    Desired, DesiredPool, Fact, Finding, HostName, HostRecord, HostView, Marker, Observed, PlanId, Rule, Severity, are,
    counted,
};

/// How long a plan may be applied: modes change slowly and are compared again before each host, but
/// who approved it looked at the fleet of that day.
const VALID: SignedDuration = SignedDuration::from_hours(24);

/// One host at a time, and none after one that failed: what a first failure has in common with the
/// other hosts is found out by people.
const LIMITS: Limits = Limits { hosts_at_once: 1, halt_after_failed_hosts: 1 };

/// Makes the plan. Total: what cannot be done is a finding and a host that is not acted on.
///
/// Order: hosts that are out of service anyway, then the smallest harm first (impact, reboots), then
/// by pool and name. What goes wrong then shows where it costs least.
pub fn plan(desired: &Desired, observed: &Observed, inputs: &[Input], tool: &str, now: Timestamp) -> Plan {
    let today = now.to_zoned_datetime(TimeZone::UTC).date();
    let twins = twins(desired, observed);
    let twin = |record: &HostRecord| twins.get(record.host.path.as_str()).cloned();
    let around = Surroundings::of(observed);
    let context =
        Context { site: &observed.site, pace: desired.pace, shell: desired.shell, twins: &twin, around: &around };
    let mut down = BTreeSet::new();
    let (mut hosts, mut not_acted, mut findings) = (Vec::new(), Vec::new(), Vec::new());
    for pool in &desired.pools {
        let out = unavailable(pool, observed);
        let found = pool_plan(pool, observed, &context, &out, today);
        hosts.extend(found.hosts);
        not_acted.extend(found.not_acted);
        findings.extend(found.findings);
        down.extend(out.into_iter().map(|host| host.host));
    }
    findings.extend(field(observed, &hosts));
    let converged = hosts.is_empty() && not_acted.iter().all(|host| host.reason == Reason::Converged);
    findings.extend(node_findings::of_others(&desired.pools, observed, converged));
    hosts.sort_by_cached_key(|host: &HostPlan| {
        (!down.contains(&host.host.name), host.impact, host.reboots.expected, host.pool.clone(), host.host.name.clone())
    });
    findings.extend(forecast(&mut hosts, &around));
    shell_findings::not_checked(&mut findings, &hosts);
    not_acted.sort_by(|a, b| (&a.pool, &a.host).cmp(&(&b.pool, &b.host)));
    findings.sort_by(|a, b| key(a).cmp(&key(b)));
    Plan {
        schema: Plan::SCHEMA.to_owned(),
        id: PlanId(String::new()),
        tool: tool.to_owned(),
        catalog: catalog::digest().to_owned(),
        now,
        expires: now.saturating_add(VALID).unwrap_or(now),
        inputs: inputs.to_vec(),
        site: observed.site.clone(),
        desired: desired.clone(),
        limits: LIMITS,
        order: hosts.iter().map(|host| host.host.name.clone()).collect(),
        capacity: capacity(&desired.pools, observed, &hosts, &not_acted),
        hosts,
        not_acted,
        findings,
    }
    .sealed()
}

/// Worst first, then by what it is about.
fn key(finding: &Finding) -> impl Ord + '_ {
    (std::cmp::Reverse(finding.severity), &finding.subject, &finding.id, &finding.place, &finding.message)
}

/// One pool's part of the plan.
struct PoolPlan {
    hosts: Vec<HostPlan>,
    not_acted: Vec<NotActed>,
    findings: Vec<Finding>,
}

fn pool_plan(
    pool: &DesiredPool,
    observed: &Observed,
    context: &Context,
    out: &[NotActed],
    today: jiff::civil::Date,
) -> PoolPlan {
    let record = |path: &str| observed.hosts.get(path);
    let views: Vec<(&HostName, &HostView)> = pool
        .hosts
        .iter()
        .filter_map(|pin| Some((&pin.host.name, record(&pin.host.path)?.view.as_ref().ok()?.as_ref())))
        .collect();
    let mut findings = offers::judge(pool, &views);
    let mut judged: Vec<Judged> = Vec::new();
    for pin in &pool.hosts {
        let mut host = judge(pool, pin, record(&pin.host.path), context);
        findings.append(&mut host.findings);
        judged.push(host);
    }
    accept::apply(pool, &mut findings, today);
    let worst_of_pool = worst(findings.iter().filter(|finding| finding.subject.host.is_none()));
    let by_host: BTreeMap<&HostName, Vec<&Finding>> = findings.iter().fold(BTreeMap::new(), |mut map, finding| {
        if let Some(host) = &finding.subject.host {
            map.entry(host).or_insert_with(Vec::new).push(finding);
        }
        map
    });

    let down: BTreeSet<&HostName> = out.iter().map(|host| &host.host).collect();
    let (mut hosts, mut not_acted, mut budget) = (Vec::new(), Vec::new(), Vec::new());
    for Judged { pin, outcome, .. } in judged {
        let own = worst(by_host.get(&pin.host.name).into_iter().flatten().copied());
        let mut leave = |reason, detail: String| {
            not_acted.push(NotActed { host: pin.host.name.clone(), pool: pool.name.value.clone(), reason, detail });
        };
        match (own.or(worst_of_pool), outcome) {
            (Some(finding), _) => leave(reason(finding), detail(finding)),
            (None, Outcome::Converged) => leave(Reason::Converged, "as the profile says".to_owned()),
            (None, Outcome::Undecided) => leave(Reason::Unknown, "what it needs could not be told".to_owned()),
            (None, Outcome::Change(mut host)) => {
                let is_out = down.contains(&pin.host.name);
                let room = u64::from(pool.rollout.max_unavailable.value) > out.len() as u64;
                if host.impact >= Impact::Maintenance && !is_out && !room {
                    let finding = no_room(pool, pin, out);
                    leave(Reason::Budget, finding.message.clone());
                    budget.push(finding);
                } else {
                    host.not_checked.sort();
                    hosts.push(*host);
                }
            }
        }
    }
    findings.extend(budget);
    let starts = hosts.iter().any(|host| host.impact >= Impact::Maintenance && !down.contains(&host.host.name));
    if starts && !out.is_empty() {
        let message = format!(
            "{} {} out of service already; at the worst moment one more is",
            counted(out.len(), "host"),
            are(out.len())
        );
        let mut finding = Finding::new(&Rule::POOL_NO_CHANGE_ROOM, message)
            .at(&pool.rollout.max_unavailable.place)
            .in_pool(&pool.name.value);
        finding.evidence = causes(out);
        findings.push(finding);
    }
    PoolPlan { hosts, not_acted, findings }
}

/// The finding of severity error that says most: the first of the worst class.
fn worst<'a>(findings: impl Iterator<Item = &'a Finding>) -> Option<&'a Finding> {
    // Of several reasons the one that a reader looks for first; the order of the checks decides among
    // equals.
    findings.filter(|finding| finding.severity == Severity::Error).min_by_key(|finding| match reason(finding) {
        Reason::Held => 0,
        Reason::Refused | Reason::Budget | Reason::Converged => 1,
        Reason::Unknown => 2,
    })
}

/// Why a host is not acted on: of what could not be checked, what could not be read.
fn detail(finding: &Finding) -> String {
    if finding.message.starts_with(UNTOLD) { finding.evidence.join("; ") } else { finding.message.clone() }
}

/// The class of a refusal.
fn reason(finding: &Finding) -> Reason {
    if finding.message.starts_with(UNTOLD) {
        return Reason::Unknown;
    }
    let is = |rules: &[&Rule]| rules.iter().any(|rule| rule.id == finding.id.0);
    if is(&[&Rule::HOST_IN_MAINTENANCE, &Rule::HOST_MARKED, &Rule::NODE_MARKED]) {
        Reason::Held
    } else if is(&[&Rule::HOST_UNREADABLE, &Rule::HOST_NOT_CONNECTED, &Rule::HOST_MISSING, &Rule::GUEST_UNREAD]) {
        Reason::Unknown
    } else {
        Reason::Refused
    }
}

fn no_room(pool: &DesiredPool, pin: &crate::model::HostPin, out: &[NotActed]) -> Finding {
    let message = format!(
        "{} of the pool {} out of service, the pool allows {}",
        counted(out.len(), "host"),
        are(out.len()),
        pool.rollout.max_unavailable
    );
    let mut finding = Finding::new(&Rule::POOL_BUDGET, message)
        .at(&pool.rollout.max_unavailable.place)
        .in_pool(&pool.name.value)
        .on_host(&pin.host.name);
    finding.evidence = causes(out);
    finding.hint("bring one back, or raise rollout.maxUnavailable")
}

/// How many hosts a finding names: one for each blocked host names them, so that all would be a
/// list for each host of a large fleet.
const NAMED: usize = 10;

fn causes(out: &[NotActed]) -> Vec<String> {
    let mut causes: Vec<String> =
        out.iter().take(NAMED).map(|down| format!("{}: {}", down.host, down.detail)).collect();
    if out.len() > NAMED {
        causes.push(format!("and {} more", out.len() - NAMED));
    }
    causes
}

/// Hosts that share a name or an identity with another one: all that is stored of a host goes by
/// these. By path, with the sentence that says so.
fn twins(desired: &Desired, observed: &Observed) -> BTreeMap<String, String> {
    let mut seen: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
    for (path, record) in &observed.hosts {
        seen.entry(("name", record.host.name.to_string())).or_default().push(path);
        if let Some(uuid) = record.view.as_ref().ok().and_then(|view| view.uuid.known()) {
            seen.entry(("machine", uuid.clone())).or_default().push(path);
        }
    }
    for pin in desired.pools.iter().flat_map(|pool| &pool.hosts) {
        let paths = seen.entry(("name", pin.host.name.to_string())).or_default();
        if !paths.contains(&pin.host.path.as_str()) {
            paths.push(&pin.host.path);
        }
    }
    let mut twins = BTreeMap::new();
    for ((what, value), paths) in seen.into_iter().filter(|(_, paths)| paths.len() > 1) {
        for path in &paths {
            twins.insert(
                (*path).to_owned(),
                format!("{} hosts have the {what} {value}: {}", paths.len(), paths.join(", ")),
            );
        }
    }
    twins
}

/// The one write outside managed objects: the definition of the custom field.
fn field(observed: &Observed, hosts: &[HostPlan]) -> Option<Finding> {
    let word = match &observed.marker_field {
        Fact::Known(true) => return None,
        Fact::Known(false) | Fact::Absent => "will be created".to_owned(),
        Fact::Unknown { why } => format!("will be created if it is not there ({why})"),
    };
    let message = format!("the definition of the custom field {} of hosts {word}", Marker::FIELD);
    (!hosts.is_empty()).then(|| Finding::new(&Rule::SITE_FIELD, message))
}
