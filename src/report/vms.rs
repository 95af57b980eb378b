//! VMs with a GPU: what a reader needs to write who may move and who may be stopped.

use super::fleet::{fact, tally};
use super::{Paper, Table, Text, Tone};
use crate::model::{ClusterView, Drs, DrsLevel, Fact, HostRecord, Observed, PowerState, VmGpuDevice, VmView};

/// Writes the VMs with a GPU, one row each; nothing if there are none.
pub(super) fn vms(paper: &mut Paper, observed: &Observed) {
    let all = || observed.hosts.values().flat_map(|record| with_gpu(record).map(move |vm| (record, vm)));
    // What none has takes no column.
    let (nodes, owners) = (!observed.guests.is_empty(), all().any(|(_, vm)| vm.managed_by != Fact::Absent));
    let unread = observed.guests.values().any(Fact::is_unknown);
    let mut columns = vec!["VM", "host", "power", "GPU devices"];
    columns.extend(nodes.then_some("node"));
    columns.push("folder");
    columns.extend(owners.then_some("owner"));
    let mut table = Table::new(&columns);
    for (record, vm) in all() {
        let mut row = row(record, vm);
        row.extend(nodes.then(|| node(vm, unread)));
        row.push(fact(&vm.folder, Clone::clone));
        row.extend(owners.then(|| fact(&vm.managed_by, |by| by.extension.clone())));
        table.row(row);
    }
    if table.is_empty() {
        return;
    }
    paper.heading("VMs with a GPU");
    paper.table(2, &table);
    let moves = match &observed.hot_migrate {
        Fact::Known(true) => Text::from("they can move while they run"),
        Fact::Known(false) | Fact::Absent => Text::toned(Tone::Warn, "they cannot move while they run"),
        Fact::Unknown { .. } => Text::toned(Tone::Warn, "it is not known whether they can move while they run"),
    };
    paper.item(2, "vGPU, by vgpu.hotmigrate.enabled of this vCenter: ", moves);
}

/// Writes the guest clusters whose nodes VMs may be, one row each; nothing if the site names none.
pub(super) fn guests(paper: &mut Paper, observed: &Observed) {
    if observed.guests.is_empty() {
        return;
    }
    let mut table = Table::new(&["cluster", "version", ">nodes", "without a machine"]);
    for (name, guest) in &observed.guests {
        let unidentified = fact(guest, |guest| match guest.unidentified.is_empty() {
            true => "-".to_owned(),
            false => guest.unidentified.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        });
        table.row(vec![
            Text::toned(Tone::Strong, name),
            fact(guest, |guest| guest.version.clone()),
            fact(guest, |guest| guest.nodes.to_string()),
            unidentified,
        ]);
    }
    paper.heading("Guest clusters");
    paper.table(2, &table);
}

/// VMs that have a GPU or may have one.
fn with_gpu(record: &HostRecord) -> impl Iterator<Item = &VmView> {
    let vms = record.view.iter().filter_map(|view| view.vms.known()).flatten();
    vms.filter(|vm| match &vm.gpus {
        Fact::Known(gpus) => !gpus.is_empty(),
        Fact::Absent => false,
        Fact::Unknown { .. } => true,
    })
}

fn row(record: &HostRecord, vm: &VmView) -> Vec<Text> {
    vec![
        match &vm.name {
            Fact::Known(name) => Text::toned(Tone::Strong, name),
            Fact::Absent | Fact::Unknown { .. } => Text::from(vm.moref.id.as_str()),
        },
        Text::from(record.host.name.as_str()),
        fact(&vm.power, power),
        fact(&vm.gpus, |gpus| {
            let devices = tally(gpus.iter().map(device)).into_iter();
            let devices =
                devices.map(|(device, number)| if number > 1 { format!("{number} x {device}") } else { device });
            devices.collect::<Vec<_>>().join(", ")
        }),
    ]
}

/// The node that a VM is. While a cluster cannot be read, a VM may be one of its nodes.
fn node(vm: &VmView, unread: bool) -> Text {
    match &vm.node {
        Fact::Absent if unread => Text::toned(Tone::Warn, "?"),
        known => fact(known, |node| format!("{}/{}", node.node.cluster, node.node.name)),
    }
}

fn power(power: &PowerState) -> String {
    match power {
        PowerState::On => "on".to_owned(),
        PowerState::Off => "off".to_owned(),
        other => other.to_string(),
    }
}

fn device(device: &VmGpuDevice) -> String {
    match device {
        VmGpuDevice::Vgpu { name, migrate: Fact::Known(false) } => format!("{name} (cannot move)"),
        VmGpuDevice::Vgpu { name, .. } => name.clone(),
        VmGpuDevice::DirectPath { id, .. } => format!("DirectPath {id}"),
        VmGpuDevice::DynamicDirectPath { label, assigned } => {
            let label = label.known().map_or_else(|| "any".to_owned(), |label| format!("label {label}"));
            let assigned = assigned.known().map(|id| format!(": {id}")).unwrap_or_default();
            format!("dynamic DirectPath, {label}{assigned}")
        }
        VmGpuDevice::Other(kind) => format!("unknown ({kind})"),
    }
}

/// What DRS does in a cluster, in words; none for a host that stands alone.
pub(super) fn drs(cluster: &Fact<ClusterView>) -> Option<Text> {
    let view = match cluster {
        Fact::Known(view) => view,
        Fact::Absent => return None,
        Fact::Unknown { .. } => return Some(Text::toned(Tone::Warn, "?")),
    };
    let drs = match &view.drs {
        Fact::Known(drs) => drs,
        Fact::Absent | Fact::Unknown { .. } => return Some(Text::toned(Tone::Warn, "?")),
    };
    if drs.enabled != Fact::Known(true) {
        return Some(fact(&drs.enabled, |_| "off".to_owned()));
    }
    let mut text = fact(&drs.level, |level| match level {
        DrsLevel::FullyAutomated => "fully automated".to_owned(),
        DrsLevel::PartiallyAutomated => "partially automated".to_owned(),
        DrsLevel::Manual | DrsLevel::Other(_) => level.to_string(),
    });
    if !drs.overrides.is_empty() {
        text = text.and(Tone::Plain, format!(", otherwise for {}", super::words::count(drs.overrides.len(), "VM")));
    }
    let evacuates = drs.options.get(Drs::VGPU_EVACUATION).is_some_and(|seconds| seconds.trim() == "-1");
    let vgpus =
        if evacuates { ", empties hosts of VMs with a vGPU" } else { ", leaves VMs with a vGPU where they are" };
    Some(text.and(Tone::Plain, vgpus))
}
