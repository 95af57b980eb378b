//! A plan as a reviewer wants it: what changes and what it costs first, then host by host, then
//! every host that is left alone, then the findings.

use std::collections::BTreeMap;

use super::{Again, Paper, Table, Text, Tone, findings, words};
use crate::model::{Fact, HostName, PciAddress, PciId};
use crate::plan::{Fate, HostPlan, Impact, NotActed, Plan, Reason};

/// Writes the plan.
pub fn plan(paper: &mut Paper, plan: &Plan, again: &Again) {
    head(paper, plan);
    if !plan.hosts.is_empty() {
        order(paper, plan);
        details(paper, plan);
    }
    if !plan.hosts.is_empty() || plan.capacity.pools.iter().any(|pool| !pool.nodes.is_empty()) {
        capacity(paper, plan);
    }
    not_acted(paper, &plan.not_acted);
    findings(paper, &plan.findings, again);
}

/// One paragraph: what the plan does to the fleet.
fn head(paper: &mut Paper, plan: &Plan) {
    let site = &plan.site;
    paper.say(
        0,
        Text::toned(Tone::Strong, format!("Plan {}", plan.id.short())).and(
            Tone::Plain,
            format!(
                " for site {} ({}, vCenter {}), made {}, good until {}",
                site.name,
                site.address,
                site.version,
                words::time(plan.now),
                words::time(plan.expires)
            ),
        ),
    );
    paper.blank();
    paper.say(0, summary(plan));
}

/// The sentence that says it all.
pub fn summary(plan: &Plan) -> Text {
    let mut text = if plan.hosts.is_empty() {
        Text::toned(Tone::Strong, "No host is changed.")
    } else {
        let sum = |value: fn(&HostPlan) -> u32| plan.hosts.iter().map(value).map(u64::from).sum::<u64>();
        let change = if plan.hosts.len() == 1 { "changes" } else { "change" };
        Text::toned(Tone::Strong, format!("{} {change}", words::count(plan.hosts.len(), "host")))
            .and(
                Tone::Plain,
                format!(
                    ", {} at a time: {} (at most {}), {} min (at most {}).",
                    plan.limits.hosts_at_once,
                    words::count(sum(|host| host.reboots.expected) as usize, "reboot"),
                    sum(|host| host.reboots.most),
                    sum(|host| host.minutes.expected),
                    sum(|host| host.minutes.most),
                ),
            )
            .and(Tone::Plain, person_in_all(plan))
            .and(Tone::Plain, vms_in_all(plan))
            .and(Tone::Plain, nodes::in_all(plan))
    };
    for (reason, words, tone) in [
        (Reason::Converged, "as the profiles want it", Tone::Good),
        (Reason::Held, "held", Tone::Warn),
        (Reason::Budget, "without room in the budget", Tone::Warn),
        (Reason::Refused, "refused", Tone::Bad),
        (Reason::Unknown, "not readable", Tone::Bad),
    ] {
        let number = plan.not_acted.iter().filter(|host| host.reason == reason).count();
        if number > 0 {
            text = text.and(Tone::Plain, " ").and(tone, format!("{} {words}.", words::count(number, "host")));
        }
    }
    match plan.capacity.pools.iter().map(|pool| pool.nodes.len()).sum() {
        0 => text,
        out => text.and(Tone::Plain, " ").and(Tone::Warn, nodes::out_in_all(out)),
    }
}

/// On how many hosts a person is waited for; nothing where on none.
fn person_in_all(plan: &Plan) -> String {
    match plan.hosts.iter().filter(|host| host.minutes.person).count() {
        0 => String::new(),
        number => format!(" A person types on {}, whose time comes on top.", words::count(number, "host")),
    }
}

/// How many VMs are moved, stopped and left off; nothing where there is none.
fn vms_in_all(plan: &Plan) -> String {
    let (mut moved, mut stopped, mut left) = (0, 0, 0);
    for fate in plan.hosts.iter().flat_map(|host| &host.fates) {
        match fate.fate {
            Fate::Moves { .. } => moved += 1,
            Fate::Stops { .. } => stopped += 1,
            Fate::LeftOff { .. } => left += 1,
        }
    }
    let words: Vec<String> = [(moved, "moved"), (stopped, "stopped and started again"), (left, "left off")]
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{} {word}", words::count(number, "VM")))
        .collect();
    if words.is_empty() { String::new() } else { format!(" {}.", words.join(", ")) }
}

fn order(paper: &mut Paper, plan: &Plan) {
    paper.heading("Order");
    let mut table = Table::new(&[">", "host", "pool", "becomes", "impact", ">reboots", ">minutes"]);
    for (number, host) in plan.hosts.iter().enumerate() {
        table.row([
            Text::from((number + 1).to_string()),
            Text::toned(Tone::Strong, host.host.name.as_str()),
            Text::from(host.pool.as_str()),
            Text::from(becomes(host)),
            Text::toned(impact_tone(host.impact), impact(host.impact)),
            Text::from(figure(host.reboots.expected, host.reboots.most)),
            Text::from(format!(
                "{}{}",
                figure(host.minutes.expected, host.minutes.most),
                if host.minutes.person { "+" } else { "" }
            )),
        ]);
    }
    paper.table(2, &table);
    let person = plan.hosts.iter().any(|host| host.minutes.person);
    let besides = if person { " `+`: and the time of a person." } else { "" };
    paper.say(2, Text::toned(Tone::Dim, format!("Figures: as expected, and after the dash at most.{besides}")));
}

/// `1-2`: expected and at most; one number where both are the same.
fn figure(expected: u32, most: u32) -> String {
    if expected == most { expected.to_string() } else { format!("{expected}-{most}") }
}

/// The target of a host in a few words: `4 x passthrough (label train)`.
fn becomes(host: &HostPlan) -> String {
    let mut modes: BTreeMap<String, usize> = BTreeMap::new();
    for gpu in &host.target.gpus {
        *modes.entry(gpu.mode.to_string()).or_default() += 1;
    }
    let modes: Vec<String> = modes.into_iter().map(|(mode, number)| format!("{number} x {mode}")).collect();
    modes.join(", ")
}

fn impact(impact: Impact) -> &'static str {
    match impact {
        Impact::None => "none",
        Impact::Maintenance => "maintenance",
        Impact::Reboot => "reboot",
    }
}

fn impact_tone(impact: Impact) -> Tone {
    match impact {
        Impact::None => Tone::Good,
        Impact::Maintenance | Impact::Reboot => Tone::Warn,
    }
}

/// Hosts whose change reads the same are told once, in the order of the plan.
fn details(paper: &mut Paper, plan: &Plan) {
    let mut groups: Vec<(Paper, Vec<&str>)> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for host in &plan.hosts {
        let mut page = paper.sheet();
        detail(&mut page, host);
        let group = *known.entry(page.render(false)).or_insert_with(|| {
            groups.push((page, Vec::new()));
            groups.len() - 1
        });
        groups[group].1.push(host.host.name.as_str());
    }
    for (page, hosts) in groups {
        paper.heading(hosts.join(", "));
        paper.append(page);
    }
}

fn detail(paper: &mut Paper, host: &HostPlan) {
    let stays = if host.stays_in_maintenance { "; found in maintenance and left there" } else { "" };
    let product = &host.slow.product;
    paper.say(
        2,
        Text::toned(
            Tone::Dim,
            format!(
                "pool {}, {}, ESXi {} build {}{stays}",
                host.pool, host.host.cluster, product.version, product.build
            ),
        ),
    );
    if let Fact::Unknown { why } = &host.slow.packages {
        paper.say(2, Text::toned(Tone::Warn, format!("driver could not be read: {why}")));
    }
    for package in host.slow.packages.known().into_iter().flatten() {
        paper.say(2, Text::toned(Tone::Dim, format!("driver {} {}", package.name, package.version)));
    }
    gpus(paper, host);
    if let Some(policy) = host.target.placement.as_ref().filter(|policy| **policy != host.slow.policy) {
        paper.item(2, "assignment policy: ", format!("{} -> {policy}", host.slow.policy));
    }
    if let Some(kind) = host.target.default_type.as_ref().filter(|kind| **kind != host.slow.default_type) {
        paper.item(2, "host default graphics type: ", format!("{} -> {kind}", host.slow.default_type));
    }
    if !host.target.others.is_empty() {
        let others: Vec<String> = host.target.others.iter().map(PciAddress::to_string).collect();
        paper.item(2, "kept as they are, compared before and after: ", others.join(", "));
    }
    fates(paper, host);
    nodes::of_host(paper, host);
    for (number, step) in host.steps.iter().enumerate() {
        let perhaps = if step.perhaps { Text::toned(Tone::Warn, "perhaps: ") } else { Text::default() };
        paper.item(2, format!("{:>2}. ", number + 1), perhaps.and(Tone::Plain, &step.does));
        paper.item(6, Text::toned(Tone::Dim, "expects "), Text::toned(Tone::Dim, &step.expects));
    }
    let reboots = &host.reboots;
    let why = if reboots.why.is_empty() { String::new() } else { format!(": {}", reboots.why.join("; ")) };
    paper.item(2, "reboots: ", format!("{} expected, {} at most{why}", reboots.expected, reboots.most));
    let minutes = &host.minutes;
    paper.item(2, "minutes: ", format!("{} expected, {} at most: {}", minutes.expected, minutes.most, minutes.basis));
}

/// Each VM that is powered on, by name, and why it fares so.
fn fates(paper: &mut Paper, host: &HostPlan) {
    for fate in &host.fates {
        let (tone, what) = match &fate.fate {
            Fate::Moves { to, minutes, .. } => (Tone::Plain, format!("moves, as to {to}, in {minutes} min")),
            Fate::Stops { .. } => (Tone::Warn, "stops and starts again here".to_owned()),
            Fate::LeftOff { .. } => (Tone::Bad, "stops and stays off".to_owned()),
        };
        let why = Text::toned(tone, what).and(Tone::Plain, format!(": {}", fate.fate.why()));
        let node = fate.node.as_ref().map(|node| format!(" (node {node})")).unwrap_or_default();
        paper.item(2, format!("VM {}{node}: ", fate.name), why);
    }
    if !host.fates.is_empty() {
        let bounds = &host.bounds;
        let text = format!("{} stopped, {} moved; DRS chooses the hosts", bounds.stops, bounds.moves);
        paper.item(2, "VMs at most: ", text);
    }
}

/// One line for all GPUs that are the same and become the same.
fn gpus(paper: &mut Paper, host: &HostPlan) {
    let mut lines: Vec<(PciId, String, String, Vec<String>)> = Vec::new();
    for target in &host.target.gpus {
        let now = host.slow.gpus.iter().find(|gpu| gpu.address == target.address);
        let now = now.map_or_else(|| "unknown".to_owned(), |gpu| words::setting(&gpu.setting));
        let then = target.mode.to_string();
        let address = if target.companions.is_empty() {
            target.address.to_string()
        } else {
            let companions: Vec<String> = target.companions.iter().map(PciAddress::to_string).collect();
            format!("{} (with {})", target.address, companions.join(", "))
        };
        match lines
            .iter_mut()
            .find(|(id, from, to, _)| (*id, from.as_str(), to.as_str()) == (target.id, now.as_str(), then.as_str()))
        {
            Some((.., addresses)) => addresses.push(address),
            None => lines.push((target.id, now, then, vec![address])),
        }
    }
    for (id, now, then, addresses) in lines {
        let change = if now == then {
            Text::toned(Tone::Plain, now).and(Tone::Dim, " (kept)")
        } else {
            Text::toned(Tone::Plain, now).and(Tone::Dim, " -> ").and(Tone::Strong, then)
        };
        paper.item(2, format!("{} x {}: ", addresses.len(), words::gpu(id)), change);
        paper.say(6, Text::toned(Tone::Dim, addresses.join(", ")));
    }
}

fn capacity(paper: &mut Paper, plan: &Plan) {
    let capacity = &plan.capacity;
    paper.heading("Out of service");
    if !plan.hosts.is_empty() {
        let person = plan.hosts.iter().any(|host| host.minutes.person);
        paper.say(
            2,
            format!(
                "{} GPU-hours (at most {}){}",
                words::tenths(capacity.gpu_hours_tenths),
                words::tenths(capacity.gpu_hours_most_tenths),
                if person { ", and while a person is waited for" } else { "" }
            ),
        );
    }
    let mut table = Table::new(&["pool", ">GPUs", ">in service now", ">at the worst moment", "unavailable now"]);
    for pool in &capacity.pools {
        let down: Vec<String> = pool.unavailable.iter().map(|host| format!("{}: {}", host.host, host.detail)).collect();
        table.row([
            Text::from(pool.pool.as_str()),
            Text::from(pool.gpus.to_string()),
            Text::from(pool.now.to_string()),
            Text::toned(if pool.worst < pool.now { Tone::Warn } else { Tone::Plain }, pool.worst.to_string()),
            Text::from(if down.is_empty() { nodes::if_none(pool).to_owned() } else { down.join("; ") }),
        ]);
    }
    paper.table(2, &table);
    nodes::out(paper, plan);
}

fn not_acted(paper: &mut Paper, hosts: &[NotActed]) {
    if hosts.is_empty() {
        return;
    }
    paper.heading("Not acted on");
    // Hosts of the same reason in the same words are one row: a fleet is mostly converged.
    let mut rows: BTreeMap<(std::cmp::Reverse<Reason>, &str, &str), Vec<&HostName>> = BTreeMap::new();
    for host in hosts {
        rows.entry((std::cmp::Reverse(host.reason), &host.pool, &host.detail)).or_default().push(&host.host);
    }
    let mut table = Table::new(&["reason", "pool", "hosts", "detail"]);
    for ((reason, pool, detail), hosts) in rows {
        let (word, tone) = match reason.0 {
            Reason::Converged => ("converged", Tone::Good),
            Reason::Held => ("held", Tone::Warn),
            Reason::Budget => ("no room", Tone::Warn),
            Reason::Refused => ("refused", Tone::Bad),
            Reason::Unknown => ("unknown", Tone::Bad),
        };
        let names: Vec<&str> = hosts.iter().map(|host| host.as_str()).collect();
        table.row([Text::toned(tone, word), Text::from(pool), Text::from(names.join(", ")), Text::from(detail)]);
    }
    paper.table(2, &table);
}

mod nodes;

#[cfg(test)]
mod tests;
