//! What the catalogue says of a simulated GPU, and which GPU a VM uses.

use std::collections::BTreeMap;

use crate::catalog::{Model, TypeKind, catalog};
use crate::model::PciAddress;
use crate::sim::document::{Power, VmDevice};
use crate::sim::world::device::Gpu;
use crate::sim::world::state::{Host, State};

/// The model of this id.
pub(in crate::sim) fn model(id: &str) -> Option<&'static Model> {
    catalog().model(id)
}

/// Whether it can run time-sliced vGPUs of different sizes.
pub(in crate::sim) fn mixed_size(id: &str) -> bool {
    model(id).is_some_and(|model| model.can.mixed_size == Some(true))
}

/// Whether MIG is a bit of the board (Ampere) that survives a boot; of later ones it is not
/// (vsphere-gpu §2.1).
pub(in crate::sim) fn mig_survives_boot(id: &str) -> bool {
    model(id).is_some_and(|model| model.board.architecture == "ampere")
}

/// Whether it knows MIG: then it has types that are backed by MIG.
pub(in crate::sim) fn knows_mig(id: &str) -> bool {
    model(id).is_some_and(|model| model.types.iter().any(|kind| matches!(kind.kind, TypeKind::Mig { .. })))
}

/// Names of the vGPU types that this GPU can start in the mode that it is in.
pub(in crate::sim) fn types(gpu: &Gpu) -> Vec<&'static str> {
    let wanted = |kind: &TypeKind| match gpu.vgpu_mode.as_str() {
        "sameSize" => matches!(kind, TypeKind::TimeSliced { .. }),
        "mixedSize" => matches!(kind, TypeKind::TimeSliced { mixed: Some(_), .. }),
        "multiInstanceGpu" => matches!(kind, TypeKind::Mig { .. }),
        _ => false,
    };
    if gpu.graphics_type != "sharedDirect" {
        return Vec::new();
    }
    model(&gpu.model)
        .map(|model| model.types.iter().filter(|kind| wanted(&kind.kind)).map(|kind| kind.name.as_str()).collect())
        .unwrap_or_default()
}

/// Which GPU of the host each of its running VMs uses, as pairs of address and VM. The host chooses
/// for vGPUs: by `performance` the GPU with the fewest VMs, by `consolidation` the one with most
/// (vsphere-gpu §1.2); whether the type still fits is not asked here.
pub(in crate::sim) fn used_by_vms(state: &State, number: u32) -> Vec<(PciAddress, u32)> {
    let Some(host) = state.hosts.get(&number) else { return Vec::new() };
    let mut used: Vec<(PciAddress, u32)> = Vec::new();
    let running = state.vms.iter().filter(|(_, vm)| vm.host == number && vm.power == Power::On);
    for (vm, device) in running.flat_map(|(number, vm)| vm.devices.iter().map(move |device| (*number, device))) {
        let address = match device {
            VmDevice::DirectPath(address) => address.parse().ok(),
            VmDevice::DynamicDirectPath(label) => host
                .functions
                .iter()
                .find(|function| {
                    function.active
                        && function.label == *label
                        && !used.iter().any(|(taken, _)| *taken == function.address)
                })
                .map(|function| function.address),
            VmDevice::Vgpu(kind) => choose(host, kind, &used),
            VmDevice::Other(_) => None,
        };
        used.extend(address.map(|address| (address, vm)));
    }
    used
}

fn choose(host: &Host, kind: &str, used: &[(PciAddress, u32)]) -> Option<PciAddress> {
    let mut load: BTreeMap<PciAddress, usize> = host
        .functions
        .iter()
        .filter(|function| function.gpu.as_ref().is_some_and(|gpu| types(gpu).contains(&kind)))
        .map(|function| (function.address, 0))
        .collect();
    for (address, _) in used {
        if let Some(count) = load.get_mut(address) {
            *count += 1;
        }
    }
    let order = |count: usize| if host.graphics.policy == "consolidation" { usize::MAX - count } else { count };
    load.into_iter().min_by_key(|(address, count)| (order(*count), *address)).map(|(address, _)| address)
}
