//! What a host says of its vGPU types and devices: `RetrieveVgpuProfileInfo`, `RetrieveVgpuDeviceInfo`
//! (vsphere-gpu §1.2).

use super::super::value::{Data, Value, text};
use super::host_config::View;
use crate::catalog::{Model, Series, TypeKind, VgpuType};
use crate::sim::gpus;
use crate::sim::world::device::{Function, Gpu};
use crate::sim::world::state::State;

/// The 16 bits of the vendor, and above them those of the device.
fn device_vendor_id(function: &Function) -> u32 {
    u32::from(function.device) << 16 | u32::from(function.vendor)
}

fn class(kind: &VgpuType) -> &'static str {
    if kind.series == Series::C { "compute" } else { "quadro" }
}

/// GPUs that vCenter sees in vGPU mode.
fn shown<'a>(view: &View<'a>) -> Vec<(&'a Function, &'a Gpu, &'static Model)> {
    let vgpu = view.functions.iter().filter_map(|function| Some((*function, function.gpu.as_ref()?)));
    vgpu.filter(|(_, gpu)| gpu.graphics_type == "sharedDirect")
        .filter_map(|(function, gpu)| Some((function, gpu, gpus::model(&gpu.model)?)))
        .collect()
}

/// Types that can be started, each once.
pub(in super::super) fn profiles(state: &State, id: u32) -> Vec<Value> {
    let Some(host) = state.hosts.get(&id) else { return Vec::new() };
    let mut names: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for (function, gpu, model) in shown(&View::of(state, id, host, false)) {
        let startable = gpus::types(gpu, &gpu.vgpu_mode);
        for kind in model.types.iter().filter(|kind| startable.contains(&kind.name.as_str())) {
            if names.contains(&kind.name.as_str()) {
                continue;
            }
            names.push(&kind.name);
            let sharing = if matches!(kind.kind, TypeKind::Mig { .. }) { "mig" } else { "timeSliced" };
            found.push(
                Data::of("VirtualMachineVgpuProfileInfo")
                    .text("name", &kind.name)
                    .text("profileName", &kind.name)
                    .text("deviceVendorId", device_vendor_id(function))
                    .text("fbSizeInGib", kind.memory_gb)
                    .text("profileSharing", sharing)
                    .text("profileClass", class(kind))
                    .done(),
            );
        }
    }
    found
}

/// Models of the GPUs, each once.
pub(in super::super) fn devices(state: &State, id: u32) -> Vec<Value> {
    let Some(host) = state.hosts.get(&id) else { return Vec::new() };
    let mut models: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for (function, _, model) in shown(&View::of(state, id, host, false)) {
        if models.contains(&model.id.as_str()) {
            continue;
        }
        models.push(&model.id);
        let has = |wanted: &str| model.types.iter().any(|kind| class(kind) == wanted);
        let most = model.types.iter().map(|kind| kind.memory_gb).max().unwrap_or(0);
        found.push(
            Data::of("VirtualMachineVgpuDeviceInfo")
                .text("name", &function.name)
                .text("deviceName", &function.name)
                .text("deviceVendorId", device_vendor_id(function))
                .text("maxFbSizeInGib", most)
                .set("timeSlicedCapable", text(true))
                .text("migCapable", model.mig.is_some())
                .text("computeProfileCapable", has("compute"))
                .text("quadroProfileCapable", has("quadro"))
                .done(),
        );
    }
    found
}
