//! What the VMs of a host say to a change of its GPUs.

use super::blocks::{own_vms, powered_on, vm_label};
use super::sheet::Sheet;
use super::{GpuSetting, HostTarget};
use crate::catalog::{TypeKind, catalog};
use crate::model::{Fact, HostView, MoRef, Mode, PciAddress, PowerState, Rule, VmGpuDevice, VmView, are, counted};

/// The rules that need the VMs.
const VM_RULES: &[&Rule] =
    &[&Rule::HOST_UNREADABLE, &Rule::HOST_VMS, &Rule::HOST_SUSPENDED_VM, &Rule::HOST_OFF_VM, &Rule::GPU_IN_USE];

/// Findings on VMs, for a change that closes the host. Without a target every powered-off VM with a
/// GPU counts as one that would not start.
pub(super) fn judge(sheet: &mut Sheet, view: &HostView, target: Option<&HostTarget>) {
    let Some(vms) = sheet.take(VM_RULES, own_vms(view)) else { return };
    let (mut suspended, mut stranded) = (Vec::new(), Vec::new());
    for vm in vms {
        let has_gpu = !matches!(&vm.gpus, Fact::Absent) && vm.gpus.known().is_none_or(|gpus| !gpus.is_empty());
        if !has_gpu {
            continue;
        }
        // A power state that could not be read counts as each of them.
        let unknown = !matches!(vm.power, Fact::Known(PowerState::On | PowerState::Off | PowerState::Suspended));
        if unknown || vm.power == Fact::Known(PowerState::Suspended) {
            suspended.push(vm_label(vm));
        }
        if unknown || vm.power == Fact::Known(PowerState::Off) {
            stranded.extend(would_not_start(vm, view, target).map(|why| format!("{}: {why}", vm_label(vm))));
        }
    }
    if let Ok(on) = powered_on(view)
        && !on.is_empty()
    {
        let message = format!(
            "{} {} powered on, and the host has to be empty: {}",
            counted(on.len(), "VM"),
            are(on.len()),
            on.join(", ")
        );
        sheet.add(sheet.here(&Rule::HOST_VMS, message).hint("move or stop them, then plan again"));
    }
    if !suspended.is_empty() {
        let message =
            format!("suspended VMs have a GPU, which they hold until they are resumed: {}", suspended.join(", "));
        sheet.add(sheet.here(&Rule::HOST_SUSPENDED_VM, message).hint("resume and stop them, then plan again"));
    }
    if !stranded.is_empty() {
        let message = format!("{} would not start on this host afterwards", counted(stranded.len(), "powered-off VM"));
        let mut finding = sheet.here(&Rule::HOST_OFF_VM, message);
        finding.evidence = stranded;
        sheet.add(finding.hint("give them a GPU device of the new mode, or start them on another host"));
    }
    in_use(sheet, view, target);
}

/// GPUs of the pool that a VM uses now.
fn in_use(sheet: &mut Sheet, view: &HostView, target: Option<&HostTarget>) {
    let used: Vec<String> = view
        .graphics_active
        .known()
        .into_iter()
        .flatten()
        .filter(|state| !state.vms.is_empty())
        .filter(|state| target.is_none_or(|target| target.gpus.iter().any(|gpu| gpu.address == state.address)))
        .map(|state| {
            let known = view.vms.known();
            let name = |vm: &MoRef| known.and_then(|vms| vms.iter().find(|known| known.moref == *vm)).map(vm_label);
            let vms: Vec<String> = state.vms.iter().map(|vm| name(vm).unwrap_or_else(|| vm.to_string())).collect();
            format!("{}: {}", state.address, vms.join(", "))
        })
        .collect();
    if !used.is_empty() {
        let mut finding = sheet.here(&Rule::GPU_IN_USE, format!("VMs use {} of the pool", counted(used.len(), "GPU")));
        finding.evidence = used;
        sheet.add(finding.hint("move or stop them, then plan again"));
    }
}

/// Why a powered-off VM would not start after the change; none if it would.
fn would_not_start(vm: &VmView, view: &HostView, target: Option<&HostTarget>) -> Option<String> {
    let Some(target) = target else {
        return Some("it cannot be told what the GPUs will be".to_owned());
    };
    let gpus = match &vm.gpus {
        Fact::Known(gpus) => gpus,
        Fact::Absent => return None,
        Fact::Unknown { why } => return Some(format!("its devices could not be read: {why}")),
    };
    let after = After { target, view };
    gpus.iter().find_map(|device| after.misfit(device))
}

/// The GPUs of a host after the change.
struct After<'a> {
    target: &'a HostTarget,
    view: &'a HostView,
}

impl After<'_> {
    /// Why no GPU fits the device; none if one does.
    fn misfit(&self, device: &VmGpuDevice) -> Option<String> {
        match device {
            VmGpuDevice::Vgpu { name, .. } => {
                let time_sliced =
                    catalog().vgpu_type(name).is_none_or(|(_, vgpu)| matches!(vgpu.kind, TypeKind::TimeSliced { .. }));
                let fits = time_sliced && self.any_vgpu();
                (!fits).then(|| format!("no GPU will offer vGPU {name}"))
            }
            VmGpuDevice::DirectPath { id, .. } => {
                let fits = match id.parse::<PciAddress>() {
                    Ok(address) => self.passed_through(address),
                    Err(_) => self.any_passthrough(|_| true),
                };
                (!fits).then(|| format!("{id} will not be passed through"))
            }
            VmGpuDevice::DynamicDirectPath { label: Fact::Known(label), .. } => (!self
                .any_passthrough(|found| found == label))
            .then(|| format!("no GPU with label {label} will be passed through")),
            VmGpuDevice::DynamicDirectPath { label: Fact::Absent, .. } => {
                (!self.any_passthrough(|_| true)).then(|| "no GPU will be passed through".to_owned())
            }
            VmGpuDevice::DynamicDirectPath { label: Fact::Unknown { why }, .. } => {
                Some(format!("the label it asks for could not be read: {why}"))
            }
            VmGpuDevice::Other(kind) => Some(format!("it has a device of a kind that is not known: {kind}")),
        }
    }

    fn any_vgpu(&self) -> bool {
        self.target.gpus.iter().any(|gpu| matches!(gpu.mode, Mode::Vgpu { .. }))
            || self.others().any(|setting| !setting.passthru_enabled)
    }

    fn any_passthrough(&self, label: impl Fn(&str) -> bool) -> bool {
        self.target.gpus.iter().any(|gpu| match &gpu.mode {
            Mode::Passthrough { label: found } => label(found.as_deref().unwrap_or_default()),
            Mode::Vgpu { .. } | Mode::MigVgpu => false,
        }) || self
            .others()
            .any(|setting| setting.passthru_enabled && label(setting.label.known().map_or("", String::as_str)))
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
}
