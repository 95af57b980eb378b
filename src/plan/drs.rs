//! Whether DRS moves a VM off a host that enters maintenance (vsphere-gpu §1.8, §1.16, §3.4).

use super::around::Near;
use super::device::Gap;
use crate::model::{ClusterView, Drs, DrsLevel, Fact, VmGpuDevice, VmView};

/// What DRS does with a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Moves {
    /// It moves it.
    Yes,
    /// It does not, and why.
    No(String),
    /// It powers the VM off instead.
    PowersOff,
    /// What decides could not be read.
    Untold(Gap),
}

/// Parameters of the vGPU plugin with which a VM does not move (vsphere-gpu F26).
const BLOCKING: [&str; 3] = ["enable_uvm", "enable_debugging", "enable_profiling"];

/// What DRS does with a VM that is powered on, were there room for it. Devices that cannot move are
/// the caller's.
pub(super) fn moves(vm: &VmView, gpus: &[VmGpuDevice], near: &Near) -> Moves {
    decide(vm, gpus, near).unwrap_or_else(Moves::Untold)
}

fn decide(vm: &VmView, gpus: &[VmGpuDevice], near: &Near) -> Result<Moves, Gap> {
    let no = |why: &str| Ok(Moves::No(why.to_owned()));
    let Some(cluster) = Gap::optional(&near.cluster, "the cluster")? else {
        return no("the host is in no cluster, so there is no DRS");
    };
    let drs = Gap::need(&cluster.drs, "configurationEx.drsConfig")?;
    if !*Gap::optional(&drs.enabled, "drsConfig.enabled")?.unwrap_or(&false) {
        return no("DRS is off");
    }
    let mine = drs.overrides.iter().find(|entry| entry.vm == vm.moref);
    if let Some(entry) = mine
        && Gap::optional(&entry.enabled, "drsVmConfig.enabled")? == Some(&false)
    {
        return no("DRS is off for this VM");
    }
    let level = Gap::need(&drs.level, "drsConfig.defaultVmBehavior")?;
    let own = match mine {
        Some(entry) if drs.overrides_count != Fact::Known(false) => {
            Gap::optional(&entry.level, "drsVmConfig.behavior")?
        }
        _ => None,
    };
    // With an override both count: whether overrides do may be unknown.
    let levels = match (own, &drs.overrides_count) {
        (Some(own), Fact::Known(true)) => vec![own],
        (Some(own), _) => vec![level, own],
        (None, _) => vec![level],
    };
    if let Some(level) = levels.into_iter().find(|level| **level != DrsLevel::FullyAutomated) {
        return Ok(Moves::No(format!("DRS is {level} and only recommends")));
    }
    let extra = Gap::optional(&vm.extra, "config.extraConfig")?;
    let value = |key: &str| extra.and_then(|extra| extra.get(key));
    if value(VmView::EVACUATION_POWEROFF).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(Moves::PowersOff);
    }
    if gpus.iter().any(|device| matches!(device, VmGpuDevice::Vgpu { .. })) {
        return vgpu(vm, gpus, drs, near);
    }
    Ok(Moves::Yes)
}

/// What a vGPU needs beside.
fn vgpu(vm: &VmView, gpus: &[VmGpuDevice], drs: &Drs, near: &Near) -> Result<Moves, Gap> {
    // A key that was never set is the default, which is off.
    if Gap::optional(near.hot_migrate, "vgpu.hotmigrate.enabled")? != Some(&true) {
        return Ok(Moves::No("vgpu.hotmigrate.enabled is not set on this vCenter".to_owned()));
    }
    let option = drs.options.get(Drs::VGPU_EVACUATION).map(String::as_str);
    if option != Some("-1") {
        let found = option.map_or_else(|| "is not set".to_owned(), |value| format!("is {value}"));
        return Ok(Moves::No(format!("the DRS option {} {found}; -1 is needed", Drs::VGPU_EVACUATION)));
    }
    for device in gpus {
        if let VmGpuDevice::Vgpu { name, migrate } = device
            && Gap::optional(migrate, "migrateSupported")? == Some(&false)
        {
            return Ok(Moves::No(format!("vGPU {name} does not support migration")));
        }
    }
    let parameters = vm.plugin_parameters();
    let blocking = Gap::optional(&parameters, "config.extraConfig")?.into_iter().flatten().find(|(key, value)| {
        BLOCKING.contains(key) && !matches!(value.to_ascii_lowercase().as_str(), "0" | "false" | "")
    });
    if let Some((key, value)) = blocking {
        return Ok(Moves::No(format!("its vGPU has {key} = {value}")));
    }
    Ok(Moves::Yes)
}

/// What in the cluster is heeded by DRS and HA and not read here, as far as it is seen.
pub(super) fn unread(cluster: &ClusterView) -> Vec<String> {
    let admission = cluster.ha_admission.known().filter(|ha| ha.enabled != Fact::Known(false));
    admission
        .map(|ha| {
            let policy = ha.policy.known().map_or("policy unknown", String::as_str);
            format!("admission control of HA is on ({policy}): it may keep a host from entering maintenance mode")
        })
        .into_iter()
        .collect()
}
