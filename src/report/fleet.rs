//! The fleet as it is: one row a host, what its GPUs are, and what could not be read.

use std::collections::BTreeMap;

use super::{Paper, Table, Text, Tone, words};
use crate::model::{Connection, Fact, HostRecord, HostView, Observed, PowerState, Product};
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
    let mut table = Table::new(&["host", "cluster", "ESXi", "state", "GPUs", "VMs on", "driver"]);
    for record in observed.hosts.values() {
        table.row(row(record));
    }
    if table.is_empty() {
        paper.say(0, "There are no hosts that this user can see.");
    } else {
        paper.table(0, &table);
    }
    pending(paper, observed);
    gaps(paper, observed);
}

fn row(record: &HostRecord) -> Vec<Text> {
    let name = Text::toned(Tone::Strong, record.host.name.as_str());
    let cluster = Text::from(record.host.cluster.rsplit('/').next().unwrap_or_default());
    match &record.view {
        Err(fault) => vec![name, cluster, Text::default(), Text::toned(Tone::Bad, &fault.message)],
        Ok(view) => vec![
            name,
            cluster,
            fact(&view.product, |product: &Product| product.version.clone()),
            state(view),
            gpus(view),
            vms(view),
            driver(view),
        ],
    }
}

/// A fact as text: `-` for what is not there, `?` for what could not be read.
fn fact<T>(fact: &Fact<T>, words: impl FnOnce(&T) -> String) -> Text {
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

/// GPUs that are alike in one entry: `4 x NVIDIA H100 NVL: passthrough (label train)`.
fn gpus(view: &HostView) -> Text {
    let gpus = match plan::gpus(view) {
        Fact::Known(gpus) if gpus.is_empty() => return Text::toned(Tone::Dim, "none"),
        Fact::Known(gpus) => gpus,
        Fact::Absent | Fact::Unknown { .. } => return Text::toned(Tone::Warn, "?"),
    };
    let mut kinds: Vec<(String, usize)> = Vec::new();
    for gpu in &gpus {
        let words = format!("{}: {}", words::gpu(gpu.id), setting(gpu));
        match kinds.iter_mut().find(|(known, _)| *known == words) {
            Some((_, number)) => *number += 1,
            None => kinds.push((words, 1)),
        }
    }
    let kinds: Vec<String> = kinds.into_iter().map(|(words, number)| format!("{number} x {words}")).collect();
    Text::from(kinds.join("; "))
}

fn setting(gpu: &SeenGpu) -> String {
    match &gpu.setting {
        Fact::Known(setting) => words::setting(setting),
        Fact::Absent => "-".to_owned(),
        Fact::Unknown { .. } => "?".to_owned(),
    }
}

/// VMs that are powered on, of those that are registered; agents of vCenter itself are left out.
fn vms(view: &HostView) -> Text {
    fact(&view.vms, |vms| {
        let on = vms.iter().filter(|vm| !vm.vcls && vm.power == Fact::Known(PowerState::On)).count();
        let unknown = vms.iter().filter(|vm| !vm.vcls && vm.power.is_unknown()).count();
        if unknown > 0 { format!("{on} and {unknown} ?") } else { on.to_string() }
    })
}

fn driver(view: &HostView) -> Text {
    fact(&view.packages, |packages| {
        let packages: Vec<String> =
            packages.iter().map(|package| format!("{} {}", package.name, package.version)).collect();
        if packages.is_empty() { "none".to_owned() } else { packages.join(", ") }
    })
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
    let mut gaps: BTreeMap<String, Vec<&crate::model::HostName>> = BTreeMap::new();
    for record in observed.hosts.values() {
        let why = match &record.view {
            Err(fault) => vec![format!("the host: {}", fault.message)],
            Ok(view) => unread(view),
        };
        for why in why {
            gaps.entry(why).or_default().push(&record.host.name);
        }
    }
    if gaps.is_empty() && observed.notes.is_empty() {
        return;
    }
    paper.heading("Not read");
    for (why, hosts) in gaps {
        paper.item(2, format!("{}: ", words::names(hosts)), why);
    }
    for note in &observed.notes {
        paper.item(2, "note: ", note.as_str());
    }
}

fn unread(view: &HostView) -> Vec<String> {
    fn why<T>(name: &str, fact: &Fact<T>) -> Option<String> {
        match fact {
            Fact::Unknown { why } => Some(format!("{name}: {why}")),
            Fact::Known(_) | Fact::Absent => None,
        }
    }
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
        why("tasks", &view.tasks),
        why("marker", &view.marker),
    ]
    .into_iter()
    .flatten()
    .collect()
}
