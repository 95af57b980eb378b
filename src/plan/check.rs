//! What a step finds before its effect, and what proves it afterwards.

use super::blocks::{TaskKind, not_connected, powered_on, powered_on_vms, running, switching, vm_label};
use super::device::{Devices, Gap};
use super::gate::gate;
use super::need::Need;
use super::setting::{on, own_entry};
use super::visit::{Mismatch, identity};
use super::{
    Bounds, GpuSetting, GraphicsChange, HostPlan, Memory, Moving, OurMaintenance, PassthruChange, Step, mig, power,
};
use crate::model::{Fact, GraphicsType, HostView, MoRef, VmView, counted};

/// What a step found, just before its effect, from fresh facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// Its goal is reached already; nothing is sent.
    AlreadyDone {
        /// What was read, one line each.
        evidence: Vec<String>,
    },
    /// What it expects is there. A reboot that was asked for before and is not proven may still be
    /// on its way: look for its task, finished ones too, before another one is sent.
    Ready,
    /// Its effect is under way: wait for it, start nothing.
    InFlight {
        /// The server's task; none if the host is down, or no task is left to follow.
        task: Option<MoRef>,
    },
    /// Something else is there. Nothing is sent.
    Refused {
        /// What the step expects.
        expected: String,
        /// What was read.
        found: String,
    },
}

/// Whether a step's goal is reached, from fresh facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verify {
    /// Reached.
    Reached {
        /// What was read, one line each.
        evidence: Vec<String>,
    },
    /// The effect is proven, but the facts may lag behind it: read again for at most
    /// [`Step::SETTLE`], then go on as if reached. The visit that is then planned judges what it finds.
    Settling {
        /// What is waited for, one line each.
        waiting_for: Vec<String>,
    },
    /// Not yet: read again until the step's deadline.
    NotYet {
        /// What is waited for, one line each.
        waiting_for: Vec<String>,
    },
}

impl From<Gap> for Check {
    fn from(gap: Gap) -> Self {
        Self::Refused { expected: format!("{} to be readable", gap.what), found: gap.why }
    }
}

impl From<Mismatch> for Check {
    fn from(Mismatch { expected, found }: Mismatch) -> Self {
        Self::Refused { expected, found }
    }
}

pub(super) fn refused<T>(expected: &str, found: impl Into<String>) -> Result<T, Check> {
    Err(Check::Refused { expected: expected.to_owned(), found: found.into() })
}

pub(super) fn done(line: impl Into<String>) -> Result<Check, Check> {
    Ok(Check::AlreadyDone { evidence: vec![line.into()] })
}

impl Step {
    /// Compares the live host with what the step expects; of a step on a node nothing is expected of the
    /// host. `memory` is that of before the step, or,
    /// when it is taken up again, of after its start.
    pub fn check(&self, host: &HostPlan, view: &HostView, memory: &Memory) -> Check {
        let check = match self {
            Self::StartClosing { moves, .. } => start_closing(host, view, memory, moves),
            Self::StopVm { vm, .. } => power::stop(vm, view),
            Self::EnterMaintenance { moves } => enter(host, view, memory, moves),
            Self::SetPassthrough { changes } => {
                self.writable(host, view).and_then(|devices| passthru(changes, &devices))
            }
            Self::SetGraphics { .. } => self.writable(host, view).and_then(|_| self.graphics(view)),
            Self::StartShell => mig::start_shell(host, view),
            Self::StopMonitor => mig::stop_monitor(view),
            Self::SetMig { .. } => self.writable(host, view).and_then(|_| mig::set(self, view, memory)),
            Self::StartMonitor => mig::start_monitor(view, memory),
            Self::Reboot { pending, .. } => self.reboot(host, view, memory, pending),
            Self::VerifyHost => match not_connected(view) {
                Some(why) => refused("a host that answers", why),
                None => Ok(Check::Ready),
            },
            Self::ExitMaintenance => exit(host, view, memory),
            Self::StartVm { vm, name, gpus } => power::start(vm, name, gpus, view),
            Self::CordonNode { .. }
            | Self::DrainNode { .. }
            | Self::AwaitNode { .. }
            | Self::ValidateNode { .. }
            | Self::UncordonNode { .. } => Ok(Check::Ready),
        };
        check.unwrap_or_else(|refused| refused)
    }

    /// Whether the step's goal is reached. `memory` is that of after [`Memory::started`].
    pub fn verify(&self, host: &HostPlan, view: &HostView, memory: &Memory) -> Verify {
        let waiting = |waiting_for: Vec<String>, evidence: Vec<String>| match waiting_for.is_empty() {
            true => Verify::Reached { evidence },
            false => Verify::NotYet { waiting_for },
        };
        match self {
            Self::StartClosing { .. } => power::closing(view, memory),
            Self::StopVm { vm, .. } => power::stopped(vm, view),
            Self::StartShell => mig::shell_open(host, view),
            Self::StopMonitor => mig::monitor_is(false, view),
            Self::SetMig { .. } => mig::is_set(self, view, memory),
            Self::StartMonitor => mig::monitor_is(true, view),
            Self::EnterMaintenance { .. } => match view.in_maintenance {
                Fact::Known(true) => Verify::Reached { evidence: vec!["in maintenance mode".to_owned()] },
                _ => Verify::NotYet { waiting_for: vec!["the host to be in maintenance mode".to_owned()] },
            },
            Self::SetPassthrough { changes } => match Devices::of(view) {
                Ok(devices) => {
                    let open = changes.iter().filter(|change| !is_set(change, &devices));
                    waiting(
                        open.map(|change| format!("{change} to read back; found {}", found(change, &devices)))
                            .collect(),
                        changes.iter().map(text).collect(),
                    )
                }
                Err(gap) => Verify::NotYet { waiting_for: vec![gap.to_string()] },
            },
            Self::SetGraphics { early: true, .. } => Verify::Reached {
                evidence: vec![match self.graphics(view) {
                    Ok(Check::AlreadyDone { .. }) => "stored".to_owned(),
                    _ => "not stored while the GPUs are passed through; it is due after the reboot".to_owned(),
                }],
            },
            Self::SetGraphics { .. } => match self.graphics(view) {
                Ok(Check::AlreadyDone { evidence }) => Verify::Reached { evidence },
                Err(Check::Refused { expected, found }) => {
                    Verify::NotYet { waiting_for: vec![format!("{expected}; found {found}")] }
                }
                Ok(_) | Err(_) => Verify::NotYet { waiting_for: vec![self.graphics_to_read_back(view)] },
            },
            Self::Reboot { .. } => self.booted(host, view, memory),
            Self::VerifyHost => match closed_gate(host, view, memory) {
                open if open.is_empty() => Verify::Reached { evidence: vec!["the host gate is passed".to_owned()] },
                waiting_for => Verify::NotYet { waiting_for },
            },
            Self::ExitMaintenance => {
                let mut open = Vec::new();
                if view.in_maintenance != Fact::Known(false) {
                    open.push("the host to be out of maintenance mode".to_owned());
                }
                open.extend(closed_gate(host, view, memory));
                waiting(open, vec!["out of maintenance mode, the host gate is passed".to_owned()])
            }
            Self::StartVm { vm, .. } => power::started(vm, view),
            // A host says nothing of a node.
            Self::CordonNode { node, .. }
            | Self::DrainNode { node, .. }
            | Self::AwaitNode { node, .. }
            | Self::ValidateNode { node, .. }
            | Self::UncordonNode { node, .. } => {
                Verify::NotYet { waiting_for: vec![format!("a look at the node {node}")] }
            }
        }
    }

    /// What every write needs: the right host, alive, closed if the write disturbs, empty.
    fn writable<'a>(&self, host: &HostPlan, view: &'a HostView) -> Result<Devices<'a>, Check> {
        if let Some(why) = not_connected(view) {
            return refused("a host that answers", why);
        }
        let devices = Devices::of(view)?;
        identity(host, view, &devices)?;
        if self.needs_maintenance() {
            if !*Gap::need(&view.in_maintenance, "runtime.inMaintenanceMode")? {
                return refused("a host in maintenance mode", "it is not");
            }
            undisturbed(view)?;
            empty(view)?;
        }
        Ok(devices)
    }

    fn graphics(&self, view: &HostView) -> Result<Check, Check> {
        let Self::SetGraphics { default_type, policy, devices, early } = self else {
            unreachable!("called for graphics writes only");
        };
        let config = Gap::need(&view.graphics_config, "config.graphicsConfig")?;
        let mut all_set = true;
        if let Some(change) = default_type {
            all_set &= one_of("host default graphics type", &config.default_type, &change.from, &change.to)?;
        }
        if let Some(change) = policy {
            all_set &= one_of("assignment policy", &config.policy, &change.from, &change.to)?;
        }
        for change in devices {
            let own = own_entry(config, change.address);
            let found_type = own.map_or(Fact::Absent, |entry| Fact::Known(entry.graphics_type.clone()));
            let found_mode = own.map_or(Fact::Absent, |entry| entry.vgpu_mode.clone());
            if found_mode.is_unknown() {
                return refused("the configured size mode to be readable", format!("{}: it is not", change.address));
            }
            let to_type = Fact::Known(change.graphics_type.clone());
            let to_mode = change.vgpu_mode.clone().map_or_else(|| found_mode.clone(), Fact::Known);
            let is_to = found_type == to_type && found_mode == to_mode;
            let is_from = found_type == change.from_type && found_mode == change.from_mode;
            if !is_to && !is_from {
                return refused(
                    &format!("{} type {}, size {}", change.address, show(&change.from_type), show(&change.from_mode)),
                    format!("type {}, size {}", show(&found_type), show(&found_mode)),
                );
            }
            all_set &= is_to && (*early || size_is_active(change, view)?);
        }
        if all_set { done(self.to_string()) } else { Ok(Check::Ready) }
    }

    /// What is waited for, and what is there instead.
    fn graphics_to_read_back(&self, view: &HostView) -> String {
        let found = match (&view.graphics_config, self) {
            (Fact::Known(config), Self::SetGraphics { devices, .. }) => {
                let entries = devices.iter().map(|change| match own_entry(config, change.address) {
                    Some(own) => format!("{} {}, size {}", own.address, own.graphics_type, show(&own.vgpu_mode)),
                    None => format!("{} without an entry", change.address),
                });
                let general = format!("host default {}, policy {}", config.default_type, config.policy);
                std::iter::once(general).chain(entries).collect::<Vec<_>>().join("; ")
            }
            _ => "no graphics configuration".to_owned(),
        };
        format!("{self} to read back; found {found}")
    }

    fn reboot(&self, host: &HostPlan, view: &HostView, memory: &Memory, lines: &[String]) -> Result<Check, Check> {
        let asked = memory.last_reboot.as_ref().filter(|asked| !asked.proven);
        if let Some(asked) = asked {
            if asked.happened(&view.boot_time) {
                return match self.booted(host, view, memory) {
                    Verify::Reached { evidence } => Ok(Check::AlreadyDone { evidence }),
                    Verify::Settling { .. } | Verify::NotYet { .. } => Ok(Check::InFlight { task: None }),
                };
            }
            if not_connected(view).is_some() {
                return Ok(Check::InFlight { task: None });
            }
            if let Some(task) = running(view, TaskKind::Reboot) {
                return Ok(Check::InFlight { task: Some(task.moref.clone()) });
            }
        }
        self.writable(host, view)?;
        Gap::need(&view.boot_time, "runtime.bootTime")?;
        if !waits(host, view, memory, lines)? {
            return done("nothing is pending: it took effect without a reboot");
        }
        let (needed, most) = (memory.reboots_by(&view.boot_time).saturating_add(1), host.reboots.most);
        if needed > most {
            return refused(&format!("at most {}", counted(most, "reboot")), format!("this would be number {needed}"));
        }
        Ok(Check::Ready)
    }

    /// Whether the host came back from the reboot, with what the reboot was for.
    fn booted(&self, host: &HostPlan, view: &HostView, memory: &Memory) -> Verify {
        let Some(asked) = &memory.last_reboot else {
            return Verify::NotYet { waiting_for: vec!["the reboot to be asked for".to_owned()] };
        };
        let mut waiting_for = Vec::new();
        if !asked.happened(&view.boot_time) {
            waiting_for.push(format!("a boot time later than {:.0}", asked.boot_before));
        }
        waiting_for.extend(not_connected(view));
        if !waiting_for.is_empty() {
            return Verify::NotYet { waiting_for };
        }
        if view.in_maintenance != Fact::Known(true) {
            waiting_for.push("the host to show that it is in maintenance mode".to_owned());
        }
        let evidence =
            vec![format!("booted at {}", view.boot_time.known().map(|at| format!("{at:.0}")).unwrap_or_default())];
        match Devices::of(view) {
            Err(gap) => waiting_for.push(gap.to_string()),
            Ok(devices) => {
                if let Err(Mismatch { expected, found }) = identity(host, view, &devices) {
                    waiting_for.push(format!("{expected} (found {found})"));
                } else {
                    waiting_for.extend(unsettled(host, view, &devices, memory));
                }
            }
        }
        if waiting_for.is_empty() { Verify::Reached { evidence } } else { Verify::Settling { waiting_for } }
    }
}

fn start_closing(host: &HostPlan, view: &HostView, memory: &Memory, moves: &[Moving]) -> Result<Check, Check> {
    let known: Vec<&MoRef> = moves.iter().map(|moving| &moving.vm).collect();
    match closing(host, view, memory, |vm| known.contains(&&vm.moref) || host.vms.may_stop(vm) == Fact::Known(true))? {
        // Its goal is that the task runs.
        Check::InFlight { task: Some(task) } => done(format!("{task} takes it into maintenance mode")),
        other => Ok(other),
    }
}

fn enter(host: &HostPlan, view: &HostView, memory: &Memory, moves: &[Moving]) -> Result<Check, Check> {
    closing(host, view, memory, |vm| moves.iter().any(|moving| moving.vm == vm.moref))
}

/// What is found before maintenance mode is asked for. `planned`: VMs that the visit knows.
fn closing(
    host: &HostPlan,
    view: &HostView,
    memory: &Memory,
    planned: impl Fn(&VmView) -> bool,
) -> Result<Check, Check> {
    let asked = memory.maintenance == OurMaintenance::Asked;
    if let Some(why) = not_connected(view) {
        return refused("a host that answers", why);
    }
    identity(host, view, &Devices::of(view)?)?;
    if *Gap::need(&view.in_maintenance, "runtime.inMaintenanceMode")? {
        return match memory.maintenance {
            OurMaintenance::NotAsked => refused("a host that is not in maintenance mode", "somebody took it there"),
            _ => done("in maintenance mode"),
        };
    }
    if memory.maintenance > OurMaintenance::Asked {
        return refused("the host in maintenance mode", "somebody took it out");
    }
    if let Some(task) = running(view, TaskKind::Enter).filter(|_| asked) {
        return Ok(Check::InFlight { task: Some(task.moref.clone()) });
    }
    undisturbed(view)?;
    let strangers: Vec<&VmView> = powered_on_vms(view)?.into_iter().filter(|vm| !planned(vm)).collect();
    // A VM without a GPU that came meanwhile moves on as it came.
    let moves_on = |vm: &&VmView| vm.gpus == Fact::Known(Vec::new()) && host.vms.may_move(vm) == Fact::Known(true);
    let in_the_way: Vec<String> = strangers.iter().filter(|vm| !moves_on(vm)).map(|vm| vm_label(vm)).collect();
    if !in_the_way.is_empty() {
        return refused("no other VM powered on", in_the_way.join(", "));
    }
    if strangers.len() > Bounds::MORE as usize {
        return refused(&format!("at most {} VMs that came meanwhile", Bounds::MORE), names(&strangers));
    }
    Ok(Check::Ready)
}

fn names(vms: &[&VmView]) -> String {
    vms.iter().map(|vm| vm_label(vm)).collect::<Vec<_>>().join(", ")
}

fn exit(host: &HostPlan, view: &HostView, memory: &Memory) -> Result<Check, Check> {
    let leaving = memory.maintenance == OurMaintenance::Leaving;
    if let Some(why) = not_connected(view) {
        return refused("a host that answers", why);
    }
    if !*Gap::need(&view.in_maintenance, "runtime.inMaintenanceMode")? {
        return if leaving {
            done("out of maintenance mode")
        } else {
            refused("the host in maintenance mode", "somebody took it out")
        };
    }
    if let Some(task) = running(view, TaskKind::Exit).filter(|_| leaving) {
        return Ok(Check::InFlight { task: Some(task.moref.clone()) });
    }
    match closed_gate(host, view, memory) {
        closed if closed.is_empty() => Ok(Check::Ready),
        closed => refused("a host that passes the gate", closed.join("; ")),
    }
}

/// The lines of the gate that do not open it.
fn closed_gate(host: &HostPlan, view: &HostView, memory: &Memory) -> Vec<String> {
    gate(host, memory.baseline.as_ref(), view)
        .into_iter()
        .filter(|line| !line.verdict.opens())
        .map(|line| format!("{} {}: {}", line.check, line.subject, line.evidence))
        .collect()
}

/// Refused if the host is about to be opened, closed or rebooted.
fn undisturbed(view: &HostView) -> Result<(), Check> {
    match switching(view)? {
        None => Ok(()),
        Some(task) => refused("a host that nobody works on", format!("{task} runs")),
    }
}

/// Refused if a VM runs on the host.
fn empty(view: &HostView) -> Result<(), Check> {
    let on = powered_on(view)?;
    if on.is_empty() { Ok(()) } else { refused("no VM powered on", on.join(", ")) }
}

fn passthru(changes: &[PassthruChange], devices: &Devices) -> Result<Check, Check> {
    for change in changes {
        let Some(state) = devices.passthru(change.address) else {
            return refused(&format!("{} in pciPassthruInfo", change.address), "it is not listed");
        };
        let label = Gap::optional(&state.label, "hardwareLabel")?;
        let from_label = change.from_label.known();
        let label_is_to = change.label.as_deref().is_none_or(|to| label.map_or("", String::as_str) == to);
        if !(label == from_label || change.label.is_some() && label_is_to) {
            return refused(
                &format!("{} label {}", change.address, from_label.map_or("-", String::as_str)),
                format!("label {}", label.map_or("-", String::as_str)),
            );
        }
        if change.enabled && !state.capable {
            return refused(&format!("{} capable of passthrough", change.address), "the host says that it is not");
        }
    }
    if changes.iter().all(|change| is_set(change, devices)) {
        return Ok(Check::AlreadyDone { evidence: changes.iter().map(text).collect() });
    }
    Ok(Check::Ready)
}

/// Whether the entry reads back as set.
fn is_set(change: &PassthruChange, devices: &Devices) -> bool {
    devices.passthru(change.address).is_some_and(|state| {
        let label_set = match (&change.label, &state.label) {
            (None, _) => true,
            (Some(to), Fact::Known(label)) => to == label,
            (Some(to), Fact::Absent) => to.is_empty(),
            (Some(_), Fact::Unknown { .. }) => false,
        };
        state.enabled == change.enabled && label_set
    })
}

/// What is there in place of what was asked for.
fn found(change: &PassthruChange, devices: &Devices) -> String {
    devices.passthru(change.address).map_or_else(
        || "no such device".to_owned(),
        |state| format!("{}, label {}", on(state.enabled), show(&state.label)),
    )
}

fn text(change: &PassthruChange) -> String {
    format!("{} passthrough {}", change.address, on(change.enabled))
}

/// Whether `found` is `to`; refused if it is neither that nor `from`.
fn one_of<T: PartialEq + std::fmt::Display>(what: &str, found: &T, from: &T, to: &T) -> Result<bool, Check> {
    if found == to {
        Ok(true)
    } else if found == from {
        Ok(false)
    } else {
        refused(&format!("{what} {from}"), found.to_string())
    }
}

/// A size mode takes effect at once where the driver owns the GPU as a vGPU GPU (vsphere-gpu §3.2);
/// everywhere else there is nothing to wait for.
fn size_is_active(change: &GraphicsChange, view: &HostView) -> Result<bool, Check> {
    let Some(mode) = &change.vgpu_mode else {
        return Ok(true);
    };
    let setting = GpuSetting::of(view, change.address)?;
    Ok(setting.passthru_active
        || setting.active_type != Fact::Known(GraphicsType::SharedDirect)
        || setting.active_mode.known() == Some(mode))
}

fn show<T: std::fmt::Display>(fact: &Fact<T>) -> String {
    match fact {
        Fact::Known(value) => value.to_string(),
        Fact::Absent => "-".to_owned(),
        Fact::Unknown { .. } => "?".to_owned(),
    }
}

/// Whether some of this still waits for the reboot. What is due after it does not count.
fn waits(host: &HostPlan, view: &HostView, memory: &Memory, lines: &[String]) -> Result<bool, Gap> {
    let devices = Devices::of(view)?;
    for gpu in &host.target.gpus {
        let need = Need::of(gpu, view, &devices, memory)?;
        if need.now.pending.iter().any(|line| lines.contains(line)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What a reboot usually settles within minutes: what was pending, and the driver's hold on the GPUs.
fn unsettled(host: &HostPlan, view: &HostView, devices: &Devices, memory: &Memory) -> Vec<String> {
    let mut open = Vec::new();
    let asked = memory.last_reboot.as_ref().map(|asked| asked.pending.as_slice()).unwrap_or_default();
    for gpu in &host.target.gpus {
        match (Need::of(gpu, view, devices, memory), GpuSetting::of(view, gpu.address)) {
            (Err(gap), _) | (_, Err(gap)) => open.push(gap.to_string()),
            (Ok(need), Ok(setting)) => {
                let unowned = gpu.mode.needs_driver()
                    && !matches!(setting.active_type, Fact::Known(GraphicsType::Shared | GraphicsType::SharedDirect));
                if unowned {
                    open.push(format!("{} to be claimed by the driver", gpu.address));
                }
                let stuck = need.unmet.iter().filter(|line| need.stuck.contains(line) || asked.contains(line));
                open.extend(stuck.cloned());
            }
        }
    }
    open
}
