//! What becomes of the VMs of a host that is to be closed.
//!
//! ```text
//!   a device that never moves, DRS that does not move it ──────────────┐
//!   DRS moves it ─► the pool allows it? ─► room for all at once? ─ no ─┤
//!                        │ no: refused          │ yes                  ▼
//!                        ▼                      ▼             the pool lets it be stopped?
//!                     refused                 moves               │ no: refused
//!                                                                 ▼ yes: no owner, tools run
//!                                             stops ◄─ yes ─ would it start again? ─ no ─► left off, or refused
//! ```

use std::collections::BTreeMap;

use super::after::{After, guest, mmio, start_order};
use super::around::Near;
use super::blocks::{own_vms, powered_on_vms, vm_label, vm_name};
use super::device::Gap;
use super::drs::{self, Moves};
use super::room::Room;
use super::{Fate, HostTarget, NodeMemory, VmFate, node_check};
use crate::catalog::catalog;
use crate::model::{
    Fact, GuestRules, HostName, HostView, MayMove, MoRef, NodeRef, OnMismatch, PowerState, Rule, ToolsStatus,
    VmGpuDevice, VmRules, VmView,
};

/// What DRS moves in a second: about what a link of 10 Gbit/s carries. Nobody measured this fleet.
const GIB_A_SECOND: u64 = 1;

/// What the fates are made from.
pub(super) struct Scene<'a> {
    /// What the pool allows.
    pub rules: &'a VmRules,
    /// What the host becomes; none if that cannot be told.
    pub target: Option<&'a HostTarget>,
    /// The host.
    pub view: &'a HostView,
    /// What is around it.
    pub near: Near<'a>,
    /// VMs that this visit stopped already.
    pub stopped: &'a [MoRef],
    /// The guest clusters of the pool.
    pub guests: &'a [GuestRules],
    /// Nodes that carry our mark.
    pub ours: &'a [NodeMemory],
    /// Nodes by the id of a rule that they broke when the plan was made, which somebody accepted.
    pub accepted: &'a BTreeMap<String, Vec<NodeRef>>,
}

/// Why a host is not closed because of a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Against {
    /// The rule.
    pub rule: &'static Rule,
    /// The VM and what is wrong, one sentence.
    pub why: String,
    /// What was looked at, one line each.
    pub seen: Vec<String>,
}

/// What becomes of the VMs.
#[derive(Debug, Default)]
pub(super) struct Fates {
    /// Fates in name order; VMs that were stopped already are among them.
    pub fates: Vec<VmFate>,
    /// VMs that are stopped, or were, and are started again: in the order of starting.
    pub starts: Vec<MoRef>,
    /// What speaks against it.
    pub against: Vec<Against>,
    /// VMs of which it cannot be told which node they are.
    pub untold: Vec<Gap>,
    /// What decides and could not be read.
    pub gaps: Vec<Gap>,
}

/// The fates of all VMs that are powered on, or that were stopped by this visit.
pub(super) fn fates(scene: &Scene) -> Result<Fates, Gap> {
    let mut made = Fates::default();
    let (mut movers, mut stayers) = (Vec::new(), Vec::new());
    for vm in powered_on_vms(scene.view)? {
        match made.sort(vm, scene) {
            Ok(Some(Way::Moves)) => movers.push(vm),
            Ok(Some(Way::Stays(against))) => stayers.push((vm, against)),
            Ok(None) => {}
            Err(gap) => made.gaps.push(gap),
        }
    }
    made.against.extend(node_check::unread(powered_on_vms(scene.view)?, scene));
    made.against.extend(node_check::twins(&powered_on_vms(scene.view)?, scene));
    made.place(movers, &mut stayers, scene);
    let mut stoppers = Vec::new();
    for (vm, against) in stayers {
        match made.may_stop(vm, &against, scene) {
            Ok(true) => stoppers.push((vm, against.why)),
            Ok(false) => {}
            Err(gap) => made.gaps.push(gap),
        }
    }
    made.stop(&stoppers, scene)?;
    made.fates.sort_by(|a, b| (&a.name, &a.vm).cmp(&(&b.name, &b.vm)));
    Ok(made)
}

/// The fates of the VMs that this visit stopped, on a host that is closed already, or open again: what
/// else runs there is not ours.
pub(super) fn restarts(scene: &Scene) -> Result<Fates, Gap> {
    let mut made = Fates::default();
    made.stop(&[], scene)?;
    // Somebody was faster, or our call got through: the step proves what is left.
    for vm in powered_on_vms(scene.view)?.into_iter().filter(|vm| scene.stopped.contains(&vm.moref)) {
        made.starts.push(vm.moref.clone());
        made.fates.push(fated(vm, Fate::Stops { why: "it was stopped by this visit".to_owned() }));
    }
    Ok(made)
}

enum Way {
    Moves,
    Stays(Against),
}

impl Fates {
    /// Whether DRS moves the VM, were there room; none if the host is refused because of it.
    fn sort(&mut self, vm: &VmView, scene: &Scene) -> Result<Option<Way>, Gap> {
        let name = vm_name(vm);
        let gap = |what: &str, why: String| Gap { what: format!("{what} of {name}"), why };
        match &vm.power {
            Fact::Known(PowerState::On) => {}
            Fact::Unknown { why } => return Err(gap("the power state", why.clone())),
            other => return Err(gap("the power state", format!("it is {}", shown(other)))),
        }
        if let Fact::Unknown { why } = &vm.template {
            return Err(gap("whether it is a template", why.clone()));
        }
        let devices = match &vm.gpus {
            Fact::Known(devices) => devices.as_slice(),
            Fact::Absent => &[],
            Fact::Unknown { why } => return Err(gap("the devices", why.clone())),
        };
        match &vm.node {
            Fact::Unknown { why } => self.untold.push(Gap { what: format!("which node {name} is"), why: why.clone() }),
            Fact::Known(node) => self.against.extend(node_check::marked(&name, node, scene)),
            Fact::Absent => {}
        }
        let stays =
            |rule, why: String| Ok(Some(Way::Stays(Against { rule, why: format!("{name}: {why}"), seen: Vec::new() })));
        if let Some(device) = devices.iter().find(|device| !matches!(device, VmGpuDevice::Vgpu { .. })) {
            return stays(&Rule::VM_DIRECT_PATH, format!("{} never moves while it runs", device_words(device)));
        }
        match drs::moves(vm, devices, &scene.near) {
            Moves::Untold(Gap { what, why }) => return Err(gap(&what, why)),
            Moves::PowersOff => {
                let why = format!("DRS powers it off when its host closes ({})", VmView::EVACUATION_POWEROFF);
                return stays(&Rule::VM_POWERED_OFF, why);
            }
            Moves::No(why) => return stays(&Rule::VM_NO_EVACUATION, why),
            Moves::Yes => {}
        }
        match scene.rules.may_move(vm) {
            Fact::Known(true) => Ok(Some(Way::Moves)),
            // It is not known which node it is: said already.
            Fact::Unknown { why } if vm.node == Fact::unknown(&why) => Ok(None),
            Fact::Unknown { why } => Err(gap("whether the pool lets it be moved, by the folder or name", why)),
            Fact::Known(false) | Fact::Absent => {
                let why = format!("{name}: DRS would move it, and vms.mayMove does not select it");
                self.against.push(Against { rule: &Rule::VM_WOULD_BE_MOVED, why, seen: Vec::new() });
                if let MayMove::Only(selectors) = &scene.rules.may_move {
                    self.against.extend(node_check::unselected(vm, selectors, scene));
                }
                Ok(None)
            }
        }
    }

    /// Places the VMs that move, all at once. Who finds no room stays.
    fn place<'a>(&mut self, mut movers: Vec<&'a VmView>, stayers: &mut Vec<(&'a VmView, Against)>, scene: &Scene) {
        movers.retain(|vm| {
            let facts = [
                Gap::need(&vm.reserved_mib, "config.memoryAllocation").map(drop),
                Gap::need(&vm.memory_mib, "config.hardware.memoryMB").map(drop),
            ];
            let gap = facts.into_iter().find_map(Result::err);
            let read = gap.is_none();
            self.gaps.extend(gap.map(|Gap { what, why }| Gap { what: format!("{what} of {}", vm_name(vm)), why }));
            read
        });
        if movers.is_empty() {
            return;
        }
        let room = Room::of(scene.view, &scene.near);
        loop {
            let guests: Vec<_> = movers.iter().map(|vm| guest(vm)).collect();
            match room.clone().place(&guests) {
                Ok(hosts) => {
                    self.fates.extend(movers.iter().zip(hosts).map(|(vm, to)| moving(vm, to)));
                    return;
                }
                Err(none) => {
                    let vm = movers.remove(none.guest);
                    let why = format!("{}: no other host has room for it", vm_name(vm));
                    stayers.push((vm, Against { rule: &Rule::VM_NO_EVACUATION, why, seen: none.why }));
                }
            }
        }
    }

    /// Whether a VM that does not move may be stopped. What speaks against it is said.
    fn may_stop(&mut self, vm: &VmView, stays: &Against, scene: &Scene) -> Result<bool, Gap> {
        let name = vm_name(vm);
        let gap = |what: &str, why: &str| Gap { what: format!("{what} of {name}"), why: why.to_owned() };
        match scene.rules.may_stop(vm) {
            Fact::Known(true) => {}
            // It is not known which node it is: said already.
            Fact::Unknown { why } if vm.node == Fact::unknown(&why) => return Ok(false),
            Fact::Unknown { why } => {
                return Err(gap("whether the pool lets it be stopped, by the folder or name", &why));
            }
            // It may be a node that a selector takes: said already.
            Fact::Known(false) | Fact::Absent if node_check::is_untold(vm, scene) => return Ok(false),
            Fact::Known(false) | Fact::Absent => {
                self.against.push(stays.clone());
                self.against.extend(node_check::unselected(vm, &scene.rules.may_stop, scene));
                return Ok(false);
            }
        }
        self.against.extend(node_check::stopped(vm, scene));
        let mut against = |rule, why: String| {
            self.against.push(Against { rule, why: format!("{name}: {why}"), seen: vec![stays.why.clone()] });
            Ok(false)
        };
        match &vm.managed_by {
            Fact::Absent => {}
            Fact::Known(owner) => {
                return against(
                    &Rule::VM_OWNED,
                    format!("{} ({}) owns it and would start or replace it", owner.extension, owner.kind),
                );
            }
            Fact::Unknown { why } => return Err(gap("the owner", why)),
        }
        match &vm.tools {
            Fact::Known(ToolsStatus::Running) => Ok(true),
            Fact::Unknown { why } => Err(gap("the guest tools", why)),
            Fact::Known(_) | Fact::Absent => {
                against(&Rule::VM_NO_TOOLS, "its guest tools do not run, so that it cannot be shut down".to_owned())
            }
        }
    }

    /// What becomes of the VMs that are stopped, and of those that were stopped by this visit.
    fn stop(&mut self, stoppers: &[(&VmView, String)], scene: &Scene) -> Result<(), Gap> {
        let off = own_vms(scene.view)?
            .filter(|vm| scene.stopped.contains(&vm.moref) && vm.power == Fact::Known(PowerState::Off));
        let mut all: Vec<&VmView> = stoppers.iter().map(|(vm, _)| *vm).chain(off).collect();
        start_order(&mut all);
        let after = scene.target.map(|target| After::of(target, scene.view));
        let mut misfits: Vec<(MoRef, String)> = Vec::new();
        let mut fitting: Vec<&VmView> = Vec::new();
        for vm in &all {
            let misfit = match &after {
                Some(after) => after.misfit(vm),
                None => Some("it cannot be told what the GPUs will be".to_owned()),
            };
            match misfit {
                Some(why) => misfits.push((vm.moref.clone(), why)),
                None => fitting.push(vm),
            }
        }
        for (index, why) in after.map(|after| after.crowd(&fitting)).unwrap_or_default() {
            misfits.push((fitting[index].moref.clone(), why));
        }
        for vm in all {
            let name = vm_name(vm);
            let reason = stoppers.iter().find(|(other, _)| other.moref == vm.moref).map(|(_, why)| why.clone());
            let misfit = misfits.iter().find(|(other, _)| *other == vm.moref).map(|(_, why)| why.clone());
            let fate = match (misfit, &reason) {
                // It is off already: there is nothing left to refuse.
                (Some(why), None) => Fate::LeftOff { why },
                (Some(why), Some(_)) if scene.rules.on_mismatch == OnMismatch::LeaveOff => Fate::LeftOff { why },
                (Some(why), Some(stays)) => {
                    let why = format!("{name}: it would not start again: {why}");
                    self.against.push(Against { rule: &Rule::VM_WOULD_NOT_START, why, seen: vec![stays.clone()] });
                    continue;
                }
                (None, reason) => {
                    if reason.is_some()
                        && let Some(why) = mmio(vm, scene.view)?
                    {
                        let why = format!("{name}: it would not power on again: {why}");
                        self.against.push(Against { rule: &Rule::VM_WOULD_NOT_START, why, seen: Vec::new() });
                        continue;
                    }
                    self.starts.push(vm.moref.clone());
                    let why = reason.as_deref().unwrap_or("it was stopped by this visit");
                    // A fate has its name already.
                    let why = why.strip_prefix(&format!("{name}: ")).unwrap_or(why).to_owned();
                    Fate::Stops { why }
                }
            };
            self.fates.push(fated(vm, fate));
        }
        Ok(())
    }
}

fn fated(vm: &VmView, fate: Fate) -> VmFate {
    let gpus = vm.gpus.known().cloned().unwrap_or_default();
    let node = vm.node.known().map(|node| node.node.clone());
    VmFate { vm: vm.moref.clone(), name: vm_name(vm), gpus, node, fate }
}

fn moving(vm: &VmView, to: HostName) -> VmFate {
    let memory = vm.memory_mib.known().map_or(0, |mib| mib.div_ceil(1024));
    let framebuffer: u64 = vm
        .gpus
        .known()
        .into_iter()
        .flatten()
        .filter_map(super::room::vgpu)
        .filter_map(|name| catalog().vgpu_type(name))
        .map(|(_, vgpu)| u64::from(vgpu.memory_gb))
        .sum();
    let minutes = u32::try_from(((memory + framebuffer) / GIB_A_SECOND).div_ceil(60).max(1)).unwrap_or(u32::MAX);
    let mut why = format!("{memory} GiB of memory");
    if framebuffer > 0 {
        why.push_str(&format!(
            " and {framebuffer} GB of framebuffer; it stands still for up to {} s at 10 Gbit/s",
            stun_seconds(framebuffer)
        ));
    }
    fated(vm, Fate::Moves { to, minutes, why })
}

/// How long a VM stands still at the end of its move, if all of its framebuffer is used: a line
/// through what was measured with V100 at 10 Gbit/s, 1 GB 2 s, 8 GB 12 s, 16 GB 22 s, 32 GB 39 s
/// (vsphere-gpu §3.4).
fn stun_seconds(framebuffer_gb: u64) -> u64 {
    2 + framebuffer_gb * 6 / 5
}

/// A GPU device for people.
pub(super) fn device_words(device: &VmGpuDevice) -> String {
    match device {
        VmGpuDevice::Vgpu { name, .. } => format!("vGPU {name}"),
        VmGpuDevice::DirectPath { id, .. } => format!("DirectPath I/O {id}"),
        VmGpuDevice::DynamicDirectPath { label: Fact::Known(label), .. } => {
            format!("Dynamic DirectPath I/O, label {label}")
        }
        VmGpuDevice::DynamicDirectPath { .. } => "Dynamic DirectPath I/O".to_owned(),
        VmGpuDevice::Other(kind) => format!("device {kind}"),
    }
}

fn shown(power: &Fact<PowerState>) -> String {
    power.known().map_or_else(|| "not told".to_owned(), ToString::to_string)
}

/// Names of VMs that hold a GPU while they are suspended. A power state that could not be read counts
/// as that.
pub(super) fn suspended(view: &HostView) -> Result<Vec<String>, Gap> {
    Ok(own_vms(view)?
        .filter(|vm| has_gpu(vm))
        .filter(|vm| !matches!(vm.power, Fact::Known(PowerState::On | PowerState::Off)))
        .map(vm_label)
        .collect())
}

/// Whether the VM has a GPU device, or may have one.
pub(super) fn has_gpu(vm: &VmView) -> bool {
    !matches!(&vm.gpus, Fact::Absent) && vm.gpus.known().is_none_or(|gpus| !gpus.is_empty())
}
