//! What one host still needs, and the steps that do it.

use super::device::{Devices, Gap};
use super::need::Need;
use super::{Change, Fate, GraphicsChange, HostTarget, Impact, Memory, Moving, PassthruChange, Step, VmFate};
use crate::model::{AssignmentPolicy, GraphicsType, HostView, MoRef};

/// What one host needs.
#[derive(Debug)]
pub(super) struct Work {
    passthru: Vec<PassthruChange>,
    graphics: Vec<GraphicsChange>,
    early: Vec<GraphicsChange>,
    later: Vec<GraphicsChange>,
    default_type: Option<Change<GraphicsType>>,
    policy: Option<Change<AssignmentPolicy>>,
    /// What will be configured and not active once the writes are done, one line each.
    pub pending: Vec<String>,
    /// What is so already.
    pub stuck: Vec<String>,
    /// How much it disturbs.
    pub impact: Impact,
    /// Reboots as the reference describes the transition.
    pub expected: u32,
    /// Reboots at most.
    pub most: u32,
}

impl Work {
    /// What the host needs to be as the target says.
    pub fn of(target: &HostTarget, view: &HostView, devices: &Devices, memory: &Memory) -> Result<Self, Gap> {
        let mut work = Self {
            passthru: Vec::new(),
            graphics: Vec::new(),
            early: Vec::new(),
            later: Vec::new(),
            default_type: None,
            policy: None,
            pending: Vec::new(),
            stuck: Vec::new(),
            impact: Impact::None,
            expected: 0,
            most: 0,
        };
        for gpu in &target.gpus {
            let mut need = Need::of(gpu, view, devices)?;
            if need.early && memory.early_graphics_sent {
                // The server had it once and did not keep it; it is due after the reboot.
                need.graphics = None;
                need.early = false;
                need.early_again = true;
            }
            let (expected, most) = need.reboots();
            work.expected = work.expected.max(expected);
            work.most = work.most.max(most);
            work.impact = work.impact.max(need.impact());
            work.passthru.extend(need.passthru);
            if need.early { &mut work.early } else { &mut work.graphics }.extend(need.graphics);
            work.later.extend(need.later);
            work.pending.extend(need.pending);
            work.stuck.extend(need.stuck);
        }
        // A companion of two GPUs is one function.
        work.passthru.sort_by_key(|change| change.address);
        work.passthru.dedup_by_key(|change| change.address);
        if let Some(wanted) = &target.placement {
            let found = &Gap::need(&view.graphics_config, "config.graphicsConfig")?.policy;
            work.policy = (found != wanted).then(|| Change { from: found.clone(), to: wanted.clone() });
        }
        // The default rides along with a write of devices; alone it changes nothing that runs.
        if let Some(wanted) = target.default_type.as_ref().filter(|_| work.writes_devices()) {
            let found = &Gap::need(&view.graphics_config, "config.graphicsConfig")?.default_type;
            work.default_type = (found != wanted).then(|| Change { from: found.clone(), to: wanted.clone() });
        }
        Ok(work)
    }

    /// Whether nothing is left to do.
    pub fn is_empty(&self) -> bool {
        self.passthru.is_empty() && !self.writes_devices() && self.policy.is_none() && self.pending.is_empty()
    }

    /// Whether the passthrough of a function is written.
    pub fn writes_passthru(&self) -> bool {
        !self.passthru.is_empty()
    }

    /// Whether a label is written.
    pub fn writes_label(&self) -> bool {
        self.passthru.iter().any(|change| change.label.is_some())
    }

    /// Whether the graphics configuration is written, now or after a reboot.
    pub fn writes_graphics(&self) -> bool {
        self.writes_devices() || self.policy.is_some()
    }

    /// Whether the host may ignore what is sent while GPUs are passed through.
    pub fn may_ignore(&self) -> bool {
        self.most > self.expected
    }

    fn writes_devices(&self) -> bool {
        !self.graphics.is_empty() || !self.early.is_empty() || !self.later.is_empty()
    }

    /// The steps, from where the host is. `closed`: it is in maintenance mode. `ours`: we took it
    /// there, or will. `vms`: what becomes of VMs then.
    pub fn steps(&self, view: &HostView, closed: bool, ours: bool, vms: &Vms) -> Result<Vec<Step>, Gap> {
        let mut steps = Vec::new();
        if !closed && ours {
            steps.extend(vms.close());
        }
        if self.writes_passthru() {
            steps.push(Step::SetPassthrough { changes: self.passthru.clone() });
        }
        // The driver's GPUs and those that are passed through go out in two calls: the server may
        // refuse the second.
        let mut default_type = self.default_type.clone();
        if !self.graphics.is_empty() || self.policy.is_some() {
            steps.push(Step::SetGraphics {
                default_type: default_type.take_if(|_| !self.graphics.is_empty()),
                policy: self.policy.clone(),
                devices: self.graphics.clone(),
                early: false,
            });
        }
        if !self.early.is_empty() {
            steps.push(Step::SetGraphics { default_type, policy: None, devices: self.early.clone(), early: true });
        }
        if !self.pending.is_empty() {
            let boot_before = *Gap::need(&view.boot_time, "runtime.bootTime")?;
            steps.push(Step::Reboot { pending: self.pending.clone(), boot_before });
            if !self.later.is_empty() {
                let devices = self.later.clone();
                steps.push(Step::SetGraphics { default_type: None, policy: None, devices, early: false });
            }
        }
        steps.push(Step::VerifyHost);
        if ours {
            steps.push(Step::ExitMaintenance);
        }
        steps.extend(vms.starts.iter().cloned());
        Ok(steps)
    }
}

/// The steps of the VMs around those of the host.
#[derive(Debug, Default)]
pub(super) struct Vms {
    /// VMs that DRS moves away.
    pub moves: Vec<Moving>,
    /// [`Step::StopVm`] for each VM that is on and has to be off.
    pub stops: Vec<Step>,
    /// [`Step::StartVm`] for each VM that is off, or will be, and starts again.
    pub starts: Vec<Step>,
}

impl Vms {
    /// The steps for VMs with these fates; `starts` in the order of starting. `stopped`: those that are
    /// off already.
    pub fn of(fates: &[VmFate], starts: &[MoRef], stopped: impl Fn(&MoRef) -> bool) -> Self {
        let mut steps = Self::default();
        for fate in fates {
            let (vm, name) = (fate.vm.clone(), fate.name.clone());
            match &fate.fate {
                Fate::Moves { minutes, .. } => steps.moves.push(Moving { vm, name, minutes: *minutes }),
                Fate::Stops { .. } | Fate::LeftOff { .. } if stopped(&vm) => {}
                Fate::Stops { .. } | Fate::LeftOff { .. } => steps.stops.push(Step::StopVm { vm, name }),
            }
        }
        let started = starts.iter().filter_map(|vm| fates.iter().find(|fate| fate.vm == *vm));
        steps.starts = started.map(start).collect();
        steps
    }

    /// Close first, stop second (DESIGN §6): a host that enters maintenance takes no VM any more.
    fn close(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if !self.stops.is_empty() {
            let stops = u32::try_from(self.stops.len()).unwrap_or(u32::MAX);
            steps.push(Step::StartClosing { moves: self.moves.clone(), stops });
            steps.extend(self.stops.iter().cloned());
        }
        steps.push(Step::EnterMaintenance { moves: self.moves.clone() });
        steps
    }
}

/// The step that starts a VM again.
pub(super) fn start(fate: &VmFate) -> Step {
    Step::StartVm { vm: fate.vm.clone(), name: fate.name.clone(), gpus: fate.gpus.clone() }
}
