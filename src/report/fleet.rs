//! The fleet as it is: one row a host, what its GPUs are, and what could not be read.

use std::collections::BTreeMap;

use super::{Paper, Table, Text, Tone, vms, words};
use crate::model::{
    ClusterView, Connection, Fact, HostName, HostRecord, HostView, Observed, Package, PowerState, Product,
};
use crate::plan::{self, SeenGpu};

/// Writes the fleet.
pub fn fleet(paper: &mut Paper, observed: &Observed) {
    let site = &observed.site;
    paper.say(
        0,
        Text::toned(Tone::Strong, format!("Site {}", site.name)).and(
            Tone::Plain,
            format!(
                " ({}, vCenter {}, instance {}), read {}",
                site.address,
                site.version,
                site.instance_uuid,
                words::time(observed.taken_at)
            ),
        ),
    );
    paper.blank();
    let mut clusters: BTreeMap<&str, Vec<&HostRecord>> = BTreeMap::new();
    for record in observed.hosts.values() {
        clusters.entry(&record.host.cluster).or_default().push(record);
    }
    if clusters.is_empty() {
        paper.say(0, "There are no hosts that this user can see.");
    }
    for (path, records) in clusters {
        paper.heading(path);
        cluster(paper, &records);
        if let Some(drs) =
            observed.clusters.get(path).filter(|_| records.iter().any(|one| has_vms(one))).and_then(vms::drs)
        {
            paper.item(2, "DRS: ", drs);
        }
    }
    vms::vms(paper, observed);
    vms::guests(paper, observed);
    pending(paper, observed);
    gaps(paper, observed);
}

fn cluster(paper: &mut Paper, records: &[&HostRecord]) {
    let mut table = Table::new(&["host", "ESXi", "state", "GPUs", "mode", ">VMs on"]);
    let mut drivers: BTreeMap<String, Vec<&HostName>> = BTreeMap::new();
    for record in records {
        table.row(row(record));
        if let Ok(view) = &record.view {
            drivers.entry(driver(view)).or_default().push(&record.host.name);
        }
    }
    paper.table(2, &table);
    for (driver, hosts) in drivers {
        paper.item(2, format!("driver {driver}: "), words::names(hosts));
    }
}

fn row(record: &HostRecord) -> Vec<Text> {
    let name = Text::toned(Tone::Strong, record.host.name.as_str());
    match &record.view {
        Err(fault) => vec![name, Text::default(), Text::toned(Tone::Bad, &fault.message)],
        Ok(view) => {
            let (gpus, modes) = gpus(view);
            let product = fact(&view.product, |product: &Product| product.version.clone());
            vec![name, product, state(view), gpus, modes, running(view)]
        }
    }
}

/// A fact as text: `-` for what is not there, `?` for what could not be read.
pub(super) fn fact<T>(fact: &Fact<T>, words: impl FnOnce(&T) -> String) -> Text {
    match fact {
        Fact::Known(value) => Text::from(words(value)),
        Fact::Absent => Text::toned(Tone::Dim, "-"),
        Fact::Unknown { .. } => Text::toned(Tone::Warn, "?"),
    }
}

fn state(view: &HostView) -> Text {
    let mut states = Vec::new();
    match &view.connection {
        Fact::Known(Connection::Connected) => {}
        Fact::Known(other) => states.push((Tone::Bad, other.to_string())),
        Fact::Absent | Fact::Unknown { .. } => states.push((Tone::Warn, "connection ?".to_owned())),
    }
    if let Fact::Known(power) = &view.power
        && *power != PowerState::On
    {
        states.push((Tone::Bad, power.to_string()));
    }
    match &view.in_maintenance {
        Fact::Known(true) => states.push((Tone::Warn, "maintenance".to_owned())),
        Fact::Known(false) => {}
        Fact::Absent | Fact::Unknown { .. } => states.push((Tone::Warn, "maintenance ?".to_owned())),
    }
    if view.reboot_required == Fact::Known(true) {
        states.push((Tone::Warn, "reboot required".to_owned()));
    }
    match &view.marker {
        Fact::Known(_) => states.push((Tone::Warn, "marked by a run".to_owned())),
        Fact::Absent => {}
        Fact::Unknown { .. } => states.push((Tone::Warn, "marker ?".to_owned())),
    }
    if let Fact::Known(tasks) = &view.tasks {
        states.extend(tasks.iter().map(|task| (Tone::Warn, format!("busy: {}", task.what))));
    }
    let mut text = Text::default();
    for (number, (tone, words)) in states.iter().enumerate() {
        text = text.and(Tone::Plain, if number == 0 { "" } else { ", " }).and(*tone, words);
    }
    if states.is_empty() { Text::toned(Tone::Good, "in service") } else { text }
}

/// The models of the GPUs with their number, and the modes; with the number where they differ.
fn gpus(view: &HostView) -> (Text, Text) {
    let gpus = match plan::gpus(view) {
        Fact::Known(gpus) if gpus.is_empty() => return (Text::toned(Tone::Dim, "none"), Text::default()),
        Fact::Known(gpus) => gpus,
        Fact::Absent | Fact::Unknown { .. } => return (Text::toned(Tone::Warn, "?"), Text::toned(Tone::Warn, "?")),
    };
    let models = tally(gpus.iter().map(|gpu| words::gpu(gpu.id)));
    let models: Vec<String> = models.into_iter().map(|(model, number)| format!("{number} x {model}")).collect();
    let modes = match tally(gpus.iter().map(setting)).as_slice() {
        [(mode, _)] => mode.clone(),
        several => several.iter().map(|(mode, number)| format!("{number} x {mode}")).collect::<Vec<_>>().join(", "),
    };
    (Text::from(models.join(", ")), Text::from(modes))
}

/// Words with how often they occur, in the order of the first of each.
pub(super) fn tally(words: impl Iterator<Item = String>) -> Vec<(String, usize)> {
    let mut tally: Vec<(String, usize)> = Vec::new();
    for word in words {
        match tally.iter_mut().find(|(known, _)| *known == word) {
            Some((_, number)) => *number += 1,
            None => tally.push((word, 1)),
        }
    }
    tally
}

fn setting(gpu: &SeenGpu) -> String {
    match &gpu.setting {
        Fact::Known(setting) => words::setting(setting),
        Fact::Absent => "-".to_owned(),
        Fact::Unknown { .. } => "?".to_owned(),
    }
}

/// VMs that are powered on, of those that are registered; agents of vCenter itself are left out.
fn running(view: &HostView) -> Text {
    fact(&view.vms, |vms| {
        let on = vms.iter().filter(|vm| !vm.vcls && vm.power == Fact::Known(PowerState::On)).count();
        let unknown = vms.iter().filter(|vm| !vm.vcls && vm.power.is_unknown()).count();
        if unknown > 0 { format!("{on} and {unknown} ?") } else { on.to_string() }
    })
}

/// Whether it has VMs that somebody could miss.
fn has_vms(record: &HostRecord) -> bool {
    record.view.as_ref().is_ok_and(|view| view.vms.known().is_some_and(|vms| vms.iter().any(|vm| !vm.vcls)))
}

fn driver(view: &HostView) -> String {
    match &view.packages {
        Fact::Absent => "none".to_owned(),
        Fact::Unknown { .. } => "unknown".to_owned(),
        Fact::Known(packages) if packages.is_empty() => "none".to_owned(),
        Fact::Known(packages) => {
            let named = |package: &Package| format!("{} {}", package.name, words::release(&package.version));
            packages.iter().map(named).collect::<Vec<_>>().join(", ")
        }
    }
}

/// GPUs that are configured otherwise than they are, with their addresses.
fn pending(paper: &mut Paper, observed: &Observed) {
    let mut lines = Vec::new();
    for record in observed.hosts.values() {
        let Ok(view) = &record.view else { continue };
        let Fact::Known(gpus) = plan::gpus(view) else { continue };
        for gpu in &gpus {
            if let Fact::Known(now) = &gpu.setting
                && now.is_pending()
            {
                lines.push((format!("{} {}: ", record.host.name, gpu.address), words::setting(now)));
            }
        }
    }
    if !lines.is_empty() {
        paper.heading("Waits for a reboot");
        for (label, words) in lines {
            paper.item(2, label, words);
        }
    }
}

/// Everything that could not be read, with the reason; alike ones together.
fn gaps(paper: &mut Paper, observed: &Observed) {
    let mut gaps: BTreeMap<String, Vec<&HostName>> = BTreeMap::new();
    for record in observed.hosts.values() {
        let why = match &record.view {
            Err(fault) => vec![format!("the host: {}", fault.message)],
            Ok(view) => unread(view),
        };
        for why in why {
            gaps.entry(why).or_default().push(&record.host.name);
        }
    }
    let clusters: Vec<(&String, String)> =
        observed.clusters.iter().filter_map(|(path, cluster)| Some((path, unread_cluster(cluster)?))).collect();
    let guests: Vec<(&String, String)> =
        observed.guests.iter().filter_map(|(name, guest)| Some((name, why("the cluster", guest)?))).collect();
    let setting = why("vgpu.hotmigrate.enabled", &observed.hot_migrate);
    let nothing = gaps.is_empty() && clusters.is_empty() && guests.is_empty();
    if nothing && setting.is_none() && observed.notes.is_empty() {
        return;
    }
    paper.heading("Not read");
    for (why, hosts) in gaps {
        paper.item(2, format!("{}: ", words::names(hosts)), why);
    }
    for (name, why) in clusters.into_iter().chain(guests) {
        paper.item(2, format!("{name}: "), why);
    }
    if let Some(why) = setting {
        paper.item(2, "vCenter: ", why);
    }
    for note in &observed.notes {
        paper.item(2, "note: ", note.as_str());
    }
}

/// Why a fact could not be read; none if it was.
fn why<T>(name: &str, fact: &Fact<T>) -> Option<String> {
    match fact {
        Fact::Unknown { why } => Some(format!("{name}: {why}")),
        Fact::Known(_) | Fact::Absent => None,
    }
}

fn unread_cluster(cluster: &Fact<ClusterView>) -> Option<String> {
    match cluster {
        Fact::Known(view) => why("DRS", &view.drs).or_else(|| why("HA", &view.ha_admission)),
        other => why("the cluster", other),
    }
}

fn unread(view: &HostView) -> Vec<String> {
    [
        why("version", &view.product),
        why("connection", &view.connection),
        why("maintenance mode", &view.in_maintenance),
        why("GPUs", &plan::gpus(view)),
        why("graphics configuration", &view.graphics_config),
        why("active graphics state", &view.graphics_active),
        why("vGPU types", &view.vgpu_types),
        why("NUMA", &view.numa),
        why("packages", &view.packages),
        why("VMs", &view.vms),
        nodes(view),
        why("services", &view.services),
        why("tasks", &view.tasks),
        why("marker", &view.marker),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// VMs of which it is not known whether they are a node, where their clusters could be read.
fn nodes(view: &HostView) -> Option<String> {
    let unknown = view.vms.known().into_iter().flatten().filter_map(|vm| match &vm.node {
        Fact::Unknown { why } => Some(format!("{}: {why}", vm.name.known().unwrap_or(&vm.moref.id))),
        Fact::Known(_) | Fact::Absent => None,
    });
    let unknown: Vec<String> = unknown.collect();
    (!unknown.is_empty()).then(|| format!("which node a VM is: {}", unknown.join("; ")))
}
