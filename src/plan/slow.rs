//! The facts that a plan rests on and that change slowly: device identity, modes, driver, version.

use super::device::{Devices, Gap, addresses};
use super::seal::digest;
use super::{GpuSetting, SlowFacts, SlowGpu};
use crate::model::{AssignmentPolicy, Fact, GraphicsType, HostView, PciAddress, PciId};

impl SlowFacts {
    /// Reads them.
    pub(super) fn of(view: &HostView, devices: &Devices) -> Result<Self, Gap> {
        let config = Gap::optional(&view.graphics_config, "config.graphicsConfig")?;
        let none = || "-".to_owned();
        Ok(Self {
            product: Gap::need(&view.product, "config.product")?.clone(),
            packages: view.packages.clone(),
            default_type: config.map_or_else(|| GraphicsType::Other(none()), |config| config.default_type.clone()),
            policy: config.map_or_else(|| AssignmentPolicy::Other(none()), |config| config.policy.clone()),
            gpus: devices
                .gpus
                .iter()
                .map(|gpu| {
                    let setting = GpuSetting::of(view, gpu.address)?;
                    Ok(SlowGpu { address: gpu.address, id: gpu.id, setting })
                })
                .collect::<Result<_, Gap>>()?,
            devices: others(devices),
        })
    }
}

/// Digest of the addresses and ids of the devices that are no GPU.
pub(super) fn others(devices: &Devices) -> String {
    let set: Vec<(PciAddress, PciId)> = devices
        .all
        .iter()
        .filter(|device| !devices.gpus.iter().any(|gpu| gpu.address == device.address))
        .map(|device| (device.address, device.id))
        .collect();
    digest(&set)
}

/// The first thing that changed since the plan, as expected and found.
pub(super) fn changes(slow: &SlowFacts, view: &HostView, devices: &Devices) -> Result<Option<(String, String)>, Gap> {
    let now = SlowFacts::of(view, devices)?;
    let pair = |what: &str, expected: &dyn std::fmt::Display, found: &dyn std::fmt::Display| {
        Ok(Some((format!("{what} {expected}"), found.to_string())))
    };
    if slow.product != now.product {
        let text = |facts: &SlowFacts| format!("{} build {}", facts.product.version, facts.product.build);
        return pair("ESXi", &text(slow), &text(&now));
    }
    match (&slow.packages, &now.packages) {
        (expected, found) if expected == found => {}
        // The plan does not rest on packages that it could not read.
        (Fact::Unknown { .. }, _) => {}
        (_, Fact::Unknown { why }) => {
            return Err(Gap { what: "the driver packages".to_owned(), why: why.clone() });
        }
        _ => return pair("driver packages", &packages(slow), &packages(&now)),
    }
    if slow.default_type != now.default_type {
        return pair("host default graphics type", &slow.default_type, &now.default_type);
    }
    if slow.policy != now.policy {
        return pair("assignment policy", &slow.policy, &now.policy);
    }
    let place = |facts: &SlowFacts| facts.gpus.iter().map(|gpu| gpu.address).collect::<Vec<_>>();
    if place(slow) != place(&now) {
        return pair("GPUs at", &addresses(&place(slow)), &addresses(&place(&now)));
    }
    for (before, after) in slow.gpus.iter().zip(&now.gpus) {
        let what = format!("{}:", before.address);
        if before.id != after.id {
            return pair(&what, &before.id, &after.id);
        }
        if before.setting != after.setting {
            return pair(&what, &before.setting, &after.setting);
        }
    }
    if slow.devices != now.devices {
        let short = |facts: &SlowFacts| facts.devices.chars().take(16).collect::<String>();
        return pair("the set of other PCI devices", &short(slow), &short(&now));
    }
    Ok(None)
}

/// The driver packages for people.
fn packages(facts: &SlowFacts) -> String {
    match &facts.packages {
        Fact::Known(packages) if !packages.is_empty() => packages
            .iter()
            .map(|package| format!("{} {}", package.name, package.version))
            .collect::<Vec<_>>()
            .join(", "),
        Fact::Known(_) | Fact::Absent => "none".to_owned(),
        Fact::Unknown { .. } => "?".to_owned(),
    }
}
