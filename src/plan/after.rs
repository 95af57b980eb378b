//! Whether a VM that is off would start on a host whose GPUs are as wished.

use super::blocks::vm_name;
use super::device::Gap;
use super::room::{Bay, Berth, Guest, NoRoom, Room, vgpu};
use super::{GpuSetting, HostTarget};
use crate::catalog::{Combination, FitMode, catalog};
use crate::model::{Fact, Firmware, GraphicsType, HostName, HostView, Mode, PciAddress, VgpuMode, VmGpuDevice, VmView};

/// From this framebuffer on the BAR of a GPU does not fit below 4 GB (vsphere-gpu §1.15), GB.
const LARGE_BAR_GB: u32 = 16;

/// The GPUs of a host after the change.
pub(super) struct After<'a> {
    target: &'a HostTarget,
    view: &'a HostView,
}

impl<'a> After<'a> {
    /// The host with its GPUs as wished.
    pub fn of(target: &'a HostTarget, view: &'a HostView) -> Self {
        Self { target, view }
    }

    /// Why the VM would not start, were it alone; none if it would.
    pub fn misfit(&self, vm: &VmView) -> Option<String> {
        match &vm.gpus {
            Fact::Known(gpus) => gpus.iter().find_map(|device| self.device(device)),
            Fact::Absent => None,
            Fact::Unknown { why } => Some(format!("its devices could not be read: {why}")),
        }
    }

    /// Of VMs that would start alone, those that would not beside the others, with why. In start
    /// order: see [`start_order`].
    pub fn crowd(&self, vms: &[&VmView]) -> Vec<(usize, String)> {
        let mut out = self.labels(vms);
        let mut left: Vec<usize> =
            (0..vms.len()).filter(|index| !out.iter().any(|(other, _)| other == index)).collect();
        // A type that the catalogue does not know proves nothing either way: the host lists it, and
        // decides.
        let known = |vm: &VmView| vgpus(vm).iter().all(|name| catalog().vgpu_type(name).is_some());
        left.retain(|index| !vgpus(vms[*index]).is_empty() && known(vms[*index]));
        loop {
            let guests: Vec<Guest> = left.iter().map(|index| guest(vms[*index])).collect();
            match Room::alone(self.berth()).place(&guests) {
                Ok(_) => return out,
                Err(NoRoom { guest, .. }) => {
                    let index = left.remove(guest);
                    out.push((index, format!("no GPU will have room for {}", vgpus(vms[index]).join(" and "))));
                }
            }
        }
    }

    /// VMs for which no passed-through GPU is left: those of a fixed device first, then those that
    /// ask for a label.
    fn labels(&self, vms: &[&VmView]) -> Vec<(usize, String)> {
        let mut free: Vec<(PciAddress, String)> = self.passthroughs().collect();
        let devices = |vm: &VmView| vm.gpus.known().cloned().unwrap_or_default();
        for device in vms.iter().flat_map(|vm| devices(vm)) {
            if let VmGpuDevice::DirectPath { id, .. } = device
                && let Ok(address) = id.parse::<PciAddress>()
            {
                free.retain(|(other, _)| *other != address);
            }
        }
        let mut out = Vec::new();
        // Whoever takes any device leaves the labelled ones to the others.
        for any in [false, true] {
            for (index, vm) in vms.iter().enumerate() {
                for device in devices(vm) {
                    let VmGpuDevice::DynamicDirectPath { label, .. } = device else { continue };
                    let label = label.known().cloned();
                    if label.is_none() != any {
                        continue;
                    }
                    let fits = |(_, own): &(PciAddress, String)| label.as_ref().is_none_or(|label| label == own);
                    match free.iter().position(fits) {
                        Some(at) => drop(free.remove(at)),
                        None => out.push((index, "other VMs take the GPUs that are passed through".to_owned())),
                    }
                }
            }
        }
        out.sort();
        out.dedup_by_key(|(index, _)| *index);
        out
    }

    /// Why no GPU fits the device; none if one does.
    fn device(&self, device: &VmGpuDevice) -> Option<String> {
        match device {
            VmGpuDevice::Vgpu { name, .. } => {
                // Of a type that the catalogue does not know the mode is not known either: the host decides.
                let vgpu = catalog().vgpu_type(name).map(|(_, vgpu)| vgpu);
                let fits = self.bays().any(|mode| vgpu.is_none_or(|vgpu| mode.takes(vgpu)));
                (!fits).then(|| format!("no GPU will offer vGPU {name}"))
            }
            VmGpuDevice::DirectPath { id, .. } => {
                let fits = match id.parse::<PciAddress>() {
                    Ok(address) => self.passed_through(address),
                    Err(_) => self.passthroughs().next().is_some(),
                };
                (!fits).then(|| format!("{id} will not be passed through"))
            }
            VmGpuDevice::DynamicDirectPath { label: Fact::Known(label), .. } => {
                let fits = self.passthroughs().any(|(_, own)| own == *label);
                (!fits).then(|| format!("no GPU with label {label} will be passed through"))
            }
            VmGpuDevice::DynamicDirectPath { label: Fact::Absent, .. } => {
                self.passthroughs().next().is_none().then(|| "no GPU will be passed through".to_owned())
            }
            VmGpuDevice::DynamicDirectPath { label: Fact::Unknown { why }, .. } => {
                Some(format!("the label it asks for could not be read: {why}"))
            }
            VmGpuDevice::Other(kind) => Some(format!("it has a device of a kind that is not known: {kind}")),
        }
    }

    /// The modes of the GPUs that take vGPUs.
    fn bays(&self) -> impl Iterator<Item = FitMode> {
        self.target.gpus.iter().filter_map(|gpu| FitMode::of(&gpu.mode)).chain(self.others().filter_map(fit_mode))
    }

    /// The GPUs that will be passed through, each with its label.
    fn passthroughs(&self) -> impl Iterator<Item = (PciAddress, String)> {
        let mine = self.target.gpus.iter().filter_map(|gpu| match &gpu.mode {
            Mode::Passthrough { label } => Some((gpu.address, label.clone().unwrap_or_default())),
            Mode::Vgpu { .. } | Mode::MigVgpu => None,
        });
        let others = self.target.others.iter().filter_map(|address| {
            let setting = GpuSetting::of(self.view, *address).ok().filter(|setting| setting.passthru_enabled)?;
            Some((*address, setting.label.known().cloned().unwrap_or_default()))
        });
        mine.chain(others)
    }

    /// Whether a device will be passed through. What is no GPU of the pool stays as it is.
    fn passed_through(&self, address: PciAddress) -> bool {
        match self.target.gpus.iter().find(|gpu| gpu.address == address) {
            Some(gpu) => matches!(gpu.mode, Mode::Passthrough { .. }),
            None => {
                let states = self.view.passthru.known().into_iter().flatten();
                states.into_iter().any(|state| state.address == address && state.enabled)
            }
        }
    }

    fn others(&self) -> impl Iterator<Item = GpuSetting> {
        self.target.others.iter().filter_map(|address| GpuSetting::of(self.view, *address).ok())
    }

    /// The empty host, with any memory.
    pub fn berth(&self) -> Berth {
        let identity = |address: PciAddress| {
            let device = self.view.pci.known()?.iter().find(|device| device.address == address)?;
            catalog().identify(device.id).model()
        };
        let mine = self.target.gpus.iter().filter_map(|gpu| Some((gpu.address, FitMode::of(&gpu.mode)?)));
        let others = self
            .target
            .others
            .iter()
            .filter_map(|address| Some((*address, GpuSetting::of(self.view, *address).ok().and_then(fit_mode)?)));
        let gpus = mine
            .chain(others)
            .filter_map(|(address, mode)| Some(Bay { model: identity(address)?, mode, running: Combination::new() }));
        // Memory was theirs before.
        Berth {
            host: HostName("this host".to_owned()),
            free_mib: u64::MAX,
            gpus: gpus.collect(),
            listed: None,
            no_vgpu: None,
        }
    }
}

/// The mode of a GPU that takes vGPUs now.
fn fit_mode(setting: GpuSetting) -> Option<FitMode> {
    if setting.passthru_enabled || setting.active_type != Fact::Known(GraphicsType::SharedDirect) {
        return None;
    }
    match setting.active_mode.known() {
        Some(VgpuMode::SameSize) => Some(FitMode::Same),
        Some(VgpuMode::MixedSize) => Some(FitMode::Mixed),
        Some(VgpuMode::MultiInstanceGpu) => Some(FitMode::MigVgpu),
        Some(VgpuMode::None | VgpuMode::Other(_)) | None => None,
    }
}

/// Types of the vGPUs of a VM.
pub(super) fn vgpus(vm: &VmView) -> Vec<String> {
    vm.gpus.known().into_iter().flatten().filter_map(vgpu).cloned().collect()
}

/// A VM that looks for a place; what is not known of its memory is for others to say.
pub(super) fn guest(vm: &VmView) -> Guest {
    Guest {
        vgpus: vgpus(vm),
        reserved_mib: vm.reserved_mib.known().copied().unwrap_or_default(),
        name: vm_name(vm),
        vm: vm.moref.clone(),
    }
}

/// Largest vGPUs first, then by name: what starts late finds what the others leave (vGPU, MIG and
/// placement ids are never rearranged).
pub(super) fn start_order(vms: &mut [&VmView]) {
    let largest = |vm: &VmView| {
        let memory = |name: &String| catalog().vgpu_type(name).map_or(0, |(_, vgpu)| vgpu.memory_gb);
        vgpus(vm).iter().map(memory).max().unwrap_or(0)
    };
    vms.sort_by_key(|vm| (std::cmp::Reverse(largest(vm)), vm_name(vm)));
}

/// Why a VM with passed-through GPUs would not power on again as it is set (case A30, vsphere-gpu F1);
/// none if it would. `Err`: the property that could not be read.
pub(super) fn mmio(vm: &VmView, view: &HostView) -> Result<Option<String>, Gap> {
    let models: Vec<_> = passed(vm)
        .filter_map(|address| {
            let device = view.pci.known()?.iter().find(|device| device.address == address)?;
            catalog().identify(device.id).model()
        })
        .collect();
    let Some(large) = models.iter().find(|model| model.memory.gb >= LARGE_BAR_GB) else { return Ok(None) };
    let firmware = Gap::need(&vm.firmware, "config.firmware")?;
    if *firmware != Firmware::Efi {
        return Ok(Some(format!("its firmware is {firmware}, and {} needs efi", large.name)));
    }
    let extra = Gap::optional(&vm.extra, "config.extraConfig")?;
    let value = |key: &str| extra.and_then(|extra| extra.get(key));
    if !value(VmView::MMIO_64BIT).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(Some(format!("{} is not TRUE, and {} needs it", VmView::MMIO_64BIT, large.name)));
    }
    let needed: u32 = models.iter().filter_map(|model| model.mmio_gb.as_ref()).map(|mmio| mmio.gb).sum();
    let room = value(VmView::MMIO_64BIT_SIZE_GB).and_then(|value| value.parse::<u32>().ok());
    Ok(room
        .filter(|room| *room < needed)
        .map(|room| format!("{} is {room}, and its GPUs need {needed}", VmView::MMIO_64BIT_SIZE_GB)))
}

/// Addresses of the devices that are passed through to a VM now.
fn passed(vm: &VmView) -> impl Iterator<Item = PciAddress> {
    vm.gpus.known().into_iter().flatten().filter_map(|device| match device {
        VmGpuDevice::DirectPath { id, .. } => id.parse().ok(),
        VmGpuDevice::DynamicDirectPath { assigned, .. } => assigned.known().and_then(|id| id.parse().ok()),
        VmGpuDevice::Vgpu { .. } | VmGpuDevice::Other(_) => None,
    })
}
