//! Graphics configuration: a void call that stores, and what of it takes effect when
//! (vsphere-gpu §1.2, §2.2, §2.4, §3.2; DESIGN §3, honesty rule 5).

use super::Moment;
use crate::model::PciAddress;
use crate::sim::document::{DeviceTypeReading, HostDefaultReading, Readings, WhilePassthrough};
use crate::sim::fault::VimFault;
use crate::sim::world::device::{Function, GraphicsEntry};
use crate::sim::world::state::{Graphics, Host};
use crate::sim::{gpus, seats};

/// A `HostGraphicsConfig` that is sent.
#[derive(Debug, Clone)]
pub(in crate::sim) struct SentGraphics {
    pub default_type: String,
    pub policy: String,
    pub devices: Vec<SentDevice>,
}

/// One `deviceType` that is sent.
#[derive(Debug, Clone)]
pub(in crate::sim) struct SentDevice {
    pub device_id: String,
    pub graphics_type: String,
    pub vgpu_mode: Option<String>,
}

/// When configuration takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    /// The host has booted.
    Boot,
    /// This device was bound to another driver.
    Rebind(PciAddress),
}

impl Moment<'_> {
    /// `UpdateGraphicsConfig`: success means stored.
    pub fn update_graphics(&mut self, number: u32, sent: &SentGraphics) -> Result<(), VimFault> {
        self.connected(number)?;
        let readings = self.spec.readings.clone();
        let busy = self.busy_gpus(number);
        let host = self.host(number)?;
        if !matches!(sent.default_type.as_str(), "shared" | "sharedDirect") {
            return Err(VimFault::argument("config.hostDefaultGraphicsType"));
        }
        if !matches!(sent.policy.as_str(), "performance" | "consolidation") {
            return Err(VimFault::argument("config.sharedPassthruAssignmentPolicy"));
        }
        let mut accepted = Vec::new();
        for device in &sent.devices {
            accepted.extend(accept(host, device, &readings, &busy)?);
        }
        self.remember(number);
        let host = self.host(number)?;
        store(&mut host.graphics, sent, &accepted, readings.device_type);
        for entry in &accepted {
            set_mode_now(host, entry);
        }
        self.changed = true;
        Ok(())
    }

    /// GPUs that a running VM uses.
    pub(super) fn busy_gpus(&self, number: u32) -> Vec<PciAddress> {
        seats::used_by_vms(self.state, number).into_iter().map(|(address, _)| address).collect()
    }
}

/// Checks one entry; none if the server drops it without a word.
fn accept(
    host: &Host,
    sent: &SentDevice,
    readings: &Readings,
    busy: &[PciAddress],
) -> Result<Option<GraphicsEntry>, VimFault> {
    if !matches!(sent.graphics_type.as_str(), "shared" | "sharedDirect") {
        return Err(VimFault::argument("config.deviceType.graphicsType"));
    }
    let function = host
        .functions
        .iter()
        .find(|function| function.address.to_string() == sent.device_id)
        .ok_or_else(|| VimFault::argument("config.deviceType.deviceId"))?;
    let gpu = function.gpu.as_ref().ok_or_else(|| VimFault::argument("config.deviceType.deviceId"))?;
    match sent.vgpu_mode.as_deref() {
        None | Some("sameSize") => {}
        Some("mixedSize") if gpus::mixed_size(&gpu.model) => {}
        Some(_) => return Err(VimFault::argument("config.deviceType.vgpuMode")),
    }
    let entry = GraphicsEntry {
        address: function.address,
        graphics_type: sent.graphics_type.clone(),
        vgpu_mode: sent.vgpu_mode.clone(),
    };
    if function.active {
        // §3.3-1: "may be refused/ignored"; nobody has seen which [D].
        return match readings.while_passthrough {
            WhilePassthrough::Ignored => Ok(None),
            WhilePassthrough::Stored => Ok(Some(entry)),
            WhilePassthrough::Refused => Err(VimFault::platform("Device is in passthrough mode")),
        };
    }
    let stored = host.graphics.devices.iter().find(|known| known.address == function.address);
    let changes = stored.is_none_or(|known| {
        known.graphics_type != entry.graphics_type || entry.vgpu_mode.is_some() && known.vgpu_mode != entry.vgpu_mode
    });
    if changes && busy.contains(&function.address) {
        return Err(VimFault::platform("Device is in use")); // §3.2: needs that GPU empty
    }
    Ok(Some(entry))
}

fn store(graphics: &mut Graphics, sent: &SentGraphics, accepted: &[GraphicsEntry], reading: DeviceTypeReading) {
    graphics.default_type.clone_from(&sent.default_type);
    graphics.policy.clone_from(&sent.policy);
    let known = std::mem::take(&mut graphics.devices);
    let mut devices: Vec<GraphicsEntry> = match reading {
        DeviceTypeReading::Merge => known.clone(),
        // An entry that was sent and dropped is in the list that was sent.
        DeviceTypeReading::Replace => known
            .iter()
            .filter(|known| sent.devices.iter().any(|sent| sent.device_id == known.address.to_string()))
            .cloned()
            .collect(),
    };
    for entry in accepted {
        // §1.2: "If this value is unset, the mode remains unchanged."
        let mode_before =
            known.iter().find(|known| known.address == entry.address).and_then(|known| known.vgpu_mode.clone());
        devices.retain(|known| known.address != entry.address);
        devices.push(GraphicsEntry { vgpu_mode: entry.vgpu_mode.clone().or(mode_before), ..entry.clone() });
    }
    devices.sort_by_key(|entry| entry.address);
    graphics.devices = devices;
}

/// §3.2: a size mode takes effect at once where the driver owns the GPU as vGPU; a type does not.
fn set_mode_now(host: &mut Host, entry: &GraphicsEntry) {
    let Some(mode) = &entry.vgpu_mode else { return };
    let owned = host.driver.is_some();
    let Some(function) = host.functions.iter_mut().find(|function| function.address == entry.address) else { return };
    if !owned || function.active {
        return;
    }
    if let Some(gpu) = &mut function.gpu
        && gpu.graphics_type == "sharedDirect"
        && !gpu.mig
    {
        gpu.vgpu_mode.clone_from(mode);
    }
}

/// What is configured takes effect.
pub(super) fn take_effect(host: &mut Host, readings: &Readings, occasion: Occasion) {
    let odd = super::passthru::split_devices(&host.functions);
    let Host { driver, graphics, functions, .. } = host;
    for function in functions.iter_mut() {
        match occasion {
            // F7: functions of one device must move together.
            Occasion::Boot => function.active = function.enabled && !odd.contains(&function.address),
            Occasion::Rebind(address) if address == function.address => function.active = function.enabled,
            Occasion::Rebind(_) => continue,
        }
        own(function, driver.is_some(), graphics, readings, occasion);
    }
}

fn own(function: &mut Function, driver: bool, graphics: &Graphics, readings: &Readings, occasion: Occasion) {
    let (address, active) = (function.address, function.active);
    let Some(gpu) = &mut function.gpu else { return };
    if occasion == Occasion::Boot {
        // §2.1: of Ampere it is a bit of the board, of Hopper and later it lives in the driver.
        gpu.mig = gpu.mig_pending && gpus::mig_survives_boot(&gpu.model);
        gpu.mig_pending = gpu.mig;
    }
    let entry = graphics.devices.iter().find(|entry| entry.address == address);
    let configured = entry.map_or(graphics.default_type.as_str(), |entry| entry.graphics_type.as_str());
    let default_holds =
        readings.host_default_needed == HostDefaultReading::Yes && graphics.default_type != "sharedDirect";
    let kind = match (active, driver) {
        (true, _) => "direct",
        (false, false) => "basic",
        (false, true) if configured == "sharedDirect" && default_holds => "shared",
        (false, true) => configured,
    };
    let mode = match kind {
        "sharedDirect" if gpu.mig => "multiInstanceGpu",
        "sharedDirect" => entry.and_then(|entry| entry.vgpu_mode.as_deref()).unwrap_or("sameSize"),
        _ => "none",
    };
    gpu.graphics_type = kind.to_owned();
    gpu.vgpu_mode = mode.to_owned();
}
