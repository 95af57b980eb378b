//! Which GPUs of a host each group of the pool means, and what they should be.

use std::collections::BTreeMap;

use super::device::{Devices, Gap, addresses, named};
use super::sheet::Sheet;
use super::{GpuTarget, HostTarget};
use crate::catalog::catalog;
use crate::model::{
    At, GpuGroup, GpuSelect, GraphicsType, HostView, MigKind, PciAddress, PciId, Place, Rule, are, counted,
};

/// The rules that need the list of devices.
pub(super) const DEVICE_RULES: &[&Rule] = &[
    &Rule::HOST_UNREADABLE,
    &Rule::GPU_MODEL,
    &Rule::GPU_COUNT,
    &Rule::GPU_SELECT,
    &Rule::GPU_NOT_CAPABLE,
    &Rule::GPU_CONSOLE,
    &Rule::GPU_NVSWITCH,
    &Rule::GPU_STRANGER,
    &Rule::GPU_STORAGE,
    &Rule::GPU_OTHER_PENDING,
    &Rule::GPU_IN_USE,
    &Rule::GPU_LABEL,
    &Rule::MIG_BESIDE,
    &Rule::HOST_PENDING,
    &Rule::HOST_REBOOTS,
];

/// The rules that need to know which GPUs the pool means.
const BOUND_RULES: &[&Rule] = &[
    &Rule::HOST_UNREADABLE,
    &Rule::GPU_SELECT,
    &Rule::GPU_NOT_CAPABLE,
    &Rule::GPU_CONSOLE,
    &Rule::GPU_LABEL,
    &Rule::GPU_OTHER_PENDING,
    &Rule::MIG_BESIDE,
    &Rule::HOST_PENDING,
    &Rule::HOST_REBOOTS,
];

/// Binds the groups of the pool to the GPUs of the host. None if a selector or the hardware is not
/// what the profile says; the findings say what.
pub(super) fn bind(sheet: &mut Sheet, view: &HostView, devices: &Devices) -> Option<HostTarget> {
    let before = sheet.findings.len();
    hardware(sheet, devices);
    let chosen = select(sheet, view, devices);
    if sheet.findings.len() > before {
        return None;
    }
    let pool = sheet.pool;
    let gpus: Vec<GpuTarget> = devices
        .gpus
        .iter()
        .filter_map(|gpu| {
            let group = &pool.gpus[*chosen.get(&gpu.address)?];
            Some(GpuTarget {
                address: gpu.address,
                id: gpu.id,
                mode: group.mode.value.clone(),
                companions: devices.companions(gpu.address).map(|device| device.address).collect(),
                mig: mig_kind(gpu.id),
            })
        })
        .collect();
    let others: Vec<PciAddress> =
        devices.gpus.iter().map(|gpu| gpu.address).filter(|address| !chosen.contains_key(address)).collect();
    // FORMATS rule 6: every GPU of the host is in the pool. What is passed through does not mind it.
    let ours = others.is_empty() && gpus.iter().any(|gpu| gpu.mode.needs_driver());
    Some(HostTarget {
        gpus,
        others,
        placement: pool.host.placement.as_ref().map(|placement| placement.value.clone()),
        default_type: ours.then_some(GraphicsType::SharedDirect),
    })
}

/// Model and number of the GPUs.
fn hardware(sheet: &mut Sheet, devices: &Devices) {
    let pool = sheet.pool;
    let wanted = pool.gpu_model.value.as_str();
    let strangers: Vec<String> = devices
        .gpus
        .iter()
        .filter(|gpu| catalog().identify(gpu.id).model().is_none_or(|model| model.id != wanted))
        .map(|gpu| {
            let model = catalog().identify(gpu.id).model().map_or("not in the catalogue", |model| model.id.as_str());
            format!("{}: {model}", named(gpu))
        })
        .collect();
    if !strangers.is_empty() {
        let message = format!(
            "{} of {} {} no {wanted}",
            strangers.len(),
            counted(devices.gpus.len(), "GPU"),
            are(strangers.len())
        );
        let mut finding = sheet.at(&Rule::GPU_MODEL, Some(&pool.gpu_model.place), message);
        finding.evidence = strangers;
        sheet.add(finding.hint(format!(
            "give the host to a pool of its model, or take it out with `except: [{}]`",
            sheet.pin.host.name
        )));
    }
    if devices.gpus.len() as u64 != u64::from(pool.gpu_count.value) {
        let list: Vec<PciAddress> = devices.gpus.iter().map(|gpu| gpu.address).collect();
        let found = if list.is_empty() { "none".to_owned() } else { format!("{} ({})", list.len(), addresses(&list)) };
        let message = format!("the profile says {}, the host has {found}", counted(pool.gpu_count.value, "GPU"));
        let finding = sheet.at(&Rule::GPU_COUNT, Some(&pool.gpu_count.place), message);
        sheet.add(
            finding.hint("a GPU that is missing may be broken; one too many may be new: correct gpuCount or the host"),
        );
    }
}

/// The group of each GPU that one selects.
fn select(sheet: &mut Sheet, view: &HostView, devices: &Devices) -> BTreeMap<PciAddress, usize> {
    let mut chosen: BTreeMap<PciAddress, usize> = BTreeMap::new();
    let pool = sheet.pool;
    // `count` takes from what the others leave, wherever it stands.
    let (counts, named): (Vec<_>, Vec<_>) =
        pool.gpus.iter().enumerate().partition(|(_, group)| matches!(group.select.value, GpuSelect::Count(_)));
    for (index, group) in named.into_iter().chain(counts) {
        let free: Vec<PciAddress> =
            devices.gpus.iter().map(|gpu| gpu.address).filter(|address| !chosen.contains_key(address)).collect();
        let matched: Vec<PciAddress> = match &group.select.value {
            GpuSelect::All => devices.gpus.iter().map(|gpu| gpu.address).collect(),
            GpuSelect::Addresses(wanted) => by_address(sheet, wanted, devices),
            GpuSelect::NumaNode(node) => match by_node(view, *node, devices) {
                Ok(matched) => matched,
                Err(gap) => {
                    sheet.unread(BOUND_RULES, &gap);
                    continue;
                }
            },
            GpuSelect::Count(count) => {
                if (free.len() as u64) < u64::from(*count) {
                    let list = if free.is_empty() { "none".to_owned() } else { addresses(&free) };
                    wrong(
                        sheet,
                        &group.select.place,
                        format!("count: {}, but the groups before leave {list}", counted(*count, "GPU")),
                    );
                    continue;
                }
                free.iter().copied().take(*count as usize).collect()
            }
        };
        if matched.is_empty() && !matches!(group.select.value, GpuSelect::Addresses(_)) {
            wrong(sheet, &group.select.place, format!("the selector `{}` matches no GPU of the host", words(group)));
        }
        let twice: Vec<PciAddress> = matched.iter().copied().filter(|address| chosen.contains_key(address)).collect();
        if let Some(first) = twice.first() {
            let other = &pool.gpus[chosen[first]].select.place;
            let message = format!("{} is selected by two groups: here and at {other}", addresses(&twice));
            wrong(sheet, &group.select.place, message);
        }
        for address in matched {
            chosen.entry(address).or_insert(index);
        }
    }
    chosen
}

fn by_address(sheet: &mut Sheet, wanted: &[At<PciAddress>], devices: &Devices) -> Vec<PciAddress> {
    let mut matched = Vec::new();
    for address in wanted {
        if matched.contains(&address.value) {
            wrong(sheet, &address.place, format!("{address} is listed twice"));
        } else if devices.gpus.iter().any(|gpu| gpu.address == address.value) {
            matched.push(address.value);
        } else {
            let found = match devices.at(address.value) {
                Some(device) => format!("{} is there, which is no GPU", named(device)),
                None => "no physical device is there".to_owned(),
            };
            wrong(sheet, &address.place, format!("there is no GPU at {address}: {found}"));
        }
    }
    matched.sort();
    matched
}

fn by_node(view: &HostView, node: u32, devices: &Devices) -> Result<Vec<PciAddress>, Gap> {
    let nodes = Gap::need(&view.numa, "hardware.numaInfo")?;
    let listed = nodes.iter().find(|numa| numa.id == node).map_or(&[][..], |numa| &numa.devices);
    Ok(devices.gpus.iter().map(|gpu| gpu.address).filter(|address| listed.contains(address)).collect())
}

fn wrong(sheet: &mut Sheet, place: &Place, message: String) {
    let finding = sheet.at(&Rule::GPU_SELECT, Some(place), message);
    sheet.add(
        finding.hint("`poolwright discover --output json` shows the GPUs of the host, with address and NUMA node"),
    );
}

fn words(group: &GpuGroup) -> String {
    match &group.select.value {
        GpuSelect::All => "all".to_owned(),
        GpuSelect::Addresses(list) => format!("addresses: {}", addresses(list.iter().map(|at| &at.value))),
        GpuSelect::NumaNode(node) => format!("numaNode: {node}"),
        GpuSelect::Count(count) => format!("count: {count}"),
    }
}

/// Where a GPU keeps MIG (vsphere-gpu §2.1): by the architecture of its model. None if it does not know
/// MIG, or is not in the catalogue.
fn mig_kind(id: PciId) -> Option<MigKind> {
    let model = catalog().identify(id).model().filter(|model| model.mig.is_some())?;
    Some(match model.board.architecture.as_str() {
        "ampere" => MigKind::Board,
        _ => MigKind::Driver,
    })
}
