//! Where the GPU devices of a VM may sit on a host (vsphere-gpu §1.2, §2.1, §2.2; DESIGN §3, honesty
//! rule 3). Geometry is the catalogue's; what runs is never rearranged.
//!
//! ```text
//!   DirectPath          its function, passed through and free, on the host that it names
//!   Dynamic DirectPath  a free function with its label
//!   vGPU  same size     a GPU of that size or empty; the host's policy chooses
//!         mixed sizes   the first GPU with a free placement id
//!         MIG           the first GPU with room for a GPU instance, at its lowest free start
//! ```

use crate::catalog::{Beside, FitMode, Model, TypeKind, VgpuType, catalog, same_type};
use crate::model::PciAddress;
use crate::sim::document::{Power, VmDevice};
use crate::sim::gpus;
use crate::sim::world::device::{Function, Gpu};
use crate::sim::world::state::{Host, State};
use crate::sim::world::vm::{Seat, Seats, Vm};

/// Why a VM cannot start on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sim) enum Misfit {
    /// No GPU of the host can take its vGPUs.
    Graphics,
    /// A device that is to be passed through is not there for it: a sentence.
    Device(String),
    /// The host has not that much memory left to reserve; both in GiB.
    Memory {
        /// What is left.
        free: u32,
        /// What the VM reserves.
        wanted: u32,
    },
}

/// Seats of a host that are taken, with the VM: by VMs that run there, and by those that are about
/// to.
pub(in crate::sim) fn taken(state: &State, host: u32) -> Vec<(u32, Seat)> {
    let mut found = Vec::new();
    for (number, vm) in &state.vms {
        let here = (vm.host == host && vm.power == Power::On).then_some(&vm.seats);
        let soon = vm.bound.as_ref().filter(|bound| bound.to == host).map(|bound| &bound.seats);
        found.extend(here.into_iter().chain(soon).flatten().flatten().map(|seat| (*number, seat.clone())));
    }
    found
}

/// GPUs that running VMs use, as pairs of address and VM.
pub(in crate::sim) fn used_by_vms(state: &State, host: u32) -> Vec<(PciAddress, u32)> {
    let running = state.vms.iter().filter(|(_, vm)| vm.host == host && vm.power == Power::On);
    running.flat_map(|(number, vm)| vm.seats.iter().flatten().map(|seat| (seat.gpu, *number))).collect()
}

/// What the driver in the guest of a VM calls its first GPU: the name of the board where it is passed through, that of
/// the vGPU type else (gpu-catalog, the check `product name`). None: it has none, or nobody knows its name.
pub(in crate::sim) fn product(state: &State, vm: &Vm) -> Option<String> {
    let seat = vm.seats.iter().flatten().next()?;
    let functions = &state.hosts.get(&vm.host)?.functions;
    let gpu = functions.iter().find(|function| function.address == seat.gpu)?.gpu.as_ref()?;
    let model = gpus::model(&gpu.model)?;
    match &seat.vgpu {
        Some(kind) => named(model, kind).map(|vgpu| vgpu.nvidia_name.clone()),
        None => model.smi_name.clone(),
    }
}

/// Memory of a host that is reserved, GiB.
pub(in crate::sim) fn reserved(state: &State, host: u32) -> u32 {
    let holds =
        |vm: &&Vm| vm.host == host && vm.power == Power::On || vm.bound.as_ref().is_some_and(|bound| bound.to == host);
    state.vms.values().filter(holds).map(|vm| vm.reserved_gib).fold(0, u32::saturating_add)
}

/// Seats on a host for all devices of a VM, beside what is taken.
pub(in crate::sim) fn find(state: &State, host: u32, vm: &Vm) -> Result<Seats, Misfit> {
    let Some(on) = state.hosts.get(&host) else { return Err(Misfit::Graphics) };
    let free = on.memory_gib.saturating_sub(reserved(state, host));
    if vm.reserved_gib > free {
        return Err(Misfit::Memory { free, wanted: vm.reserved_gib });
    }
    let mut all: Vec<Seat> = taken(state, host).into_iter().map(|(_, seat)| seat).collect();
    let mut own = Seats::new();
    for device in &vm.devices {
        let seat = match device {
            VmDevice::Vgpu(kind) => Some(vgpu(on, kind, &all).ok_or(Misfit::Graphics)?),
            VmDevice::DirectPath(id) => Some(fixed(on, vm.device_host == host, id, &all)?),
            VmDevice::DynamicDirectPath(label) => Some(dynamic(on, label, &all)?),
            VmDevice::Other(_) => None,
        };
        all.extend(seat.clone());
        own.push(seat);
    }
    Ok(own)
}

fn passed_through(function: &Function) -> Seat {
    Seat { gpu: function.address, vgpu: None, start: None }
}

fn free(function: &Function, all: &[Seat]) -> bool {
    function.active && !all.iter().any(|seat| seat.gpu == function.address)
}

fn fixed(host: &Host, own: bool, id: &str, all: &[Seat]) -> Result<Seat, Misfit> {
    let function = host.functions.iter().find(|function| own && function.address.to_string() == id);
    let Some(function) = function else {
        return Err(Misfit::Device(format!("Device {id} of another system is not on this host."))); // F12
    };
    if free(function, all) {
        return Ok(passed_through(function));
    }
    // F2, case A09: the id in short, without segment and leading zeros.
    let PciAddress { bus, device, function: number, .. } = function.address;
    let what = if function.active { "is in use by another VM" } else { "is not a passthrough device" };
    Err(Misfit::Device(format!("Device {bus:x}:{device:x}.{number} {what}.")))
}

fn dynamic(host: &Host, label: &str, all: &[Seat]) -> Result<Seat, Misfit> {
    let mut fitting = host.functions.iter().filter(|function| {
        function.gpu.is_some() && (label.is_empty() || function.label == label) && free(function, all)
    });
    let found = fitting.next().map(passed_through);
    found.ok_or_else(|| Misfit::Device(format!("No free device with the hardware label '{label}' is on this host.")))
}

/// What sits on one GPU already: type and start.
type Sitting = Vec<(&'static VgpuType, Option<u32>)>;

fn vgpu(host: &Host, kind: &str, all: &[Seat]) -> Option<Seat> {
    let mut fitting: Vec<(usize, Seat)> = Vec::new();
    for function in host.functions.iter().filter(|function| !function.active) {
        let can = |gpu: &&Gpu| gpus::types(gpu, gpus::active_mode(gpu)).iter().any(|known| same_type(known, kind));
        let Some(gpu) = function.gpu.as_ref().filter(can) else { continue };
        let Some((model, wanted)) = gpus::model(&gpu.model).and_then(|model| Some((model, named(model, kind)?))) else {
            continue;
        };
        let sitting: Sitting = all
            .iter()
            .filter(|seat| seat.gpu == function.address)
            .filter_map(|seat| Some((named(model, seat.vgpu.as_deref()?)?, seat.start)))
            .collect();
        if let Some(start) = start_on(gpu, model, wanted, &sitting) {
            let seat = Seat { gpu: function.address, vgpu: Some(wanted.name.clone()), start };
            fitting.push((sitting.len(), seat));
        }
    }
    // The policy is honoured in same-size mode only: elsewhere the first that fits (§1.2).
    let by_policy = |(sitting, seat): &(usize, Seat)| match (seat.start, host.graphics.policy.as_str()) {
        (Some(_), _) => (0, seat.gpu),
        (None, "consolidation") => (usize::MAX - sitting, seat.gpu),
        (None, _) => (*sitting, seat.gpu),
    };
    fitting.into_iter().min_by_key(by_policy).map(|(_, seat)| seat)
}

fn named(model: &'static Model, name: &str) -> Option<&'static VgpuType> {
    model.types.iter().find(|kind| same_type(&kind.name, name))
}

/// Where a vGPU starts on a GPU, if it fits there; `Some(None)` where no place is told apart.
fn start_on(gpu: &Gpu, model: &Model, wanted: &VgpuType, sitting: &Sitting) -> Option<Option<u32>> {
    match gpus::active_mode(gpu) {
        "sameSize" => same_size(model, wanted, sitting).then_some(None),
        "mixedSize" => mixed_size(model, wanted, sitting).map(Some),
        "multiInstanceGpu" => gpu_instance(model, wanted, sitting).map(Some),
        _ => None,
    }
}

/// The first VM fixes the size (§2.2; F20).
fn same_size(model: &Model, wanted: &VgpuType, sitting: &Sitting) -> bool {
    let all = || sitting.iter().map(|(kind, _)| *kind).chain([wanted]);
    let most = |kind: &VgpuType| match (&kind.kind, kind.memory_mib, model.memory.mib) {
        (TypeKind::TimeSliced { same: Some(most), .. }, ..) => *most,
        (_, Some(each), Some(whole)) => whole / each.max(1),
        _ => 1,
    };
    all().all(|kind| kind.memory_gb == wanted.memory_gb)
        && u32::try_from(all().count()).is_ok_and(|count| all().all(|kind| count <= most(kind)))
}

/// The lowest placement id at which it does not overlap another.
fn mixed_size(model: &Model, wanted: &VgpuType, sitting: &Sitting) -> Option<u32> {
    let sizes = &model.region.as_ref()?.sizes;
    let size = |kind: &VgpuType| sizes.iter().find(|size| Some(size.fb) == kind.memory_mib);
    let own = size(wanted)?;
    let apart = |start: u32| {
        sitting.iter().all(|(kind, at)| match (size(kind), at) {
            (Some(other), Some(at)) => start + own.gb <= *at || at + other.gb <= start,
            _ => false,
        })
    };
    own.ids.iter().copied().find(|start| apart(*start))
}

/// The memory slice at which its GPU instance starts: one that runs and has a seat left, else the
/// lowest start of the profile that is free (§2.1: instances are never rearranged).
fn gpu_instance(model: &Model, wanted: &VgpuType, sitting: &Sitting) -> Option<u32> {
    let profile_of = |kind: &VgpuType| match &kind.kind {
        TypeKind::Mig { profile, per_instance, .. } => Some((model.mig_profile(profile)?, *per_instance)),
        TypeKind::TimeSliced { .. } => None,
    };
    let (own, seats) = profile_of(wanted)?;
    let mut running: Vec<(&VgpuType, u32, u32)> = Vec::new();
    for (kind, start) in sitting {
        let start = (*start)?;
        match running.iter_mut().find(|(_, at, _)| *at == start) {
            Some((_, _, count)) => *count += 1,
            None => running.push((kind, start, 1)),
        }
    }
    if let Some((_, start, _)) = running.iter().find(|(kind, _, count)| kind.name == wanted.name && *count < seats) {
        return Some(*start);
    }
    let apart = |start: u32| {
        running.iter().all(|(kind, at, _)| {
            profile_of(kind).is_some_and(|(other, _)| start + own.memory <= *at || at + other.memory <= start)
        })
    };
    let start = own.starts.iter().copied().find(|start| apart(*start))?;
    // Compute slices and engines are limits of the whole GPU, wherever instances sit.
    let beside: Vec<Beside> = running
        .iter()
        .filter_map(|(kind, at, _)| Some(Beside::Placed { what: profile_of(kind)?.0.name.clone(), start: *at }))
        .collect();
    let fit = catalog().fit(model, FitMode::MigVgpu, &[(wanted.name.clone(), 1)].into(), &beside);
    (fit.fits != Some(false)).then_some(start)
}
