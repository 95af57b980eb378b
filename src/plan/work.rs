//! What one host still needs, and the steps that do it.

use super::device::{Devices, Gap};
use super::need::{Need, mig_line};
use super::shell_findings::keeps_out;
use super::stage::Stage;
use super::{Change, Fate, GpuTarget, HostTarget, Impact, Memory, Moving, PassthruChange, Step, VmFate};
use crate::model::{AssignmentPolicy, GraphicsType, HostView, MigKind, MoRef, Mode, PciAddress, ShellWay};

/// What one host needs.
#[derive(Debug)]
pub(super) struct Work {
    now: Stage,
    /// After the reboot that this ends with.
    then: Stage,
    /// GPUs whose MIG the driver keeps, switched on after the last reboot: each one loses it.
    last: Vec<PciAddress>,
    default_type: Option<Change<GraphicsType>>,
    policy: Option<Change<AssignmentPolicy>>,
    shell: AtShell,
    /// What is configured, and not active until a reboot.
    pub stuck: Vec<String>,
    /// What a reboot would have made active, had it been set.
    pub unmet: Vec<String>,
    /// How much it disturbs.
    pub impact: Impact,
    /// Reboots as the reference describes the transition.
    pub expected: u32,
    /// Reboots at most.
    pub most: u32,
    /// Whether the host may ignore what is sent while GPUs are passed through.
    pub may_ignore: bool,
    /// GPUs that may turn out to be in MIG, which has to be off.
    pub may_hide: Vec<PciAddress>,
    /// Whether GPUs may turn out to be in MIG, which is to be on.
    pub may_spare: bool,
}

/// How the shell is used, and what was left of it.
#[derive(Debug, Clone, Copy)]
struct AtShell {
    way: ShellWay,
    /// MIG was switched there in this visit.
    used: bool,
    /// The gate asks there then: the driver will own GPUs, which it shows.
    gate: bool,
    monitor_stopped: bool,
}

impl Work {
    /// What the host needs to be as the target says. `way`: how MIG is switched.
    pub fn of(
        target: &HostTarget,
        view: &HostView,
        devices: &Devices,
        memory: &Memory,
        way: ShellWay,
    ) -> Result<Self, Gap> {
        let mut work = Self {
            now: Stage::default(),
            then: Stage::default(),
            last: Vec::new(),
            default_type: None,
            policy: None,
            shell: AtShell {
                way,
                used: memory.shell,
                gate: target.gpus.iter().any(|gpu| gpu.mode.needs_driver()),
                monitor_stopped: memory.monitor_stopped,
            },
            stuck: Vec::new(),
            unmet: Vec::new(),
            impact: Impact::None,
            expected: 0,
            most: 0,
            may_ignore: false,
            may_hide: Vec::new(),
            may_spare: false,
        };
        for gpu in &target.gpus {
            let need = Need::of(gpu, view, devices, memory)?;
            let (expected, most) = need.reboots();
            work.expected = work.expected.max(expected);
            work.most = work.most.max(most);
            work.may_ignore |= need.may_ignore;
            work.may_hide.extend(need.may_hide.then_some(gpu.address));
            work.may_spare |= need.may_spare;
            work.now.append(need.now);
            work.then.append(need.then);
            work.stuck.extend(need.stuck);
            work.unmet.extend(need.unmet);
        }
        work.put_off(target);
        work.impact = match work.expected {
            0 if work.now.disturbs() => Impact::Maintenance,
            0 => Impact::None,
            _ => Impact::Reboot,
        };
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

    /// MIG is switched on as late as can be: of a board before the last reboot, so that it is asked for
    /// once; of a driver after it, also where it is on, since the reboot takes it.
    fn put_off(&mut self, target: &HostTarget) {
        if self.then.reboots() {
            let (boards, rest): (Vec<_>, Vec<_>) =
                self.now.mig_on.drain(..).partition(|(_, kind)| *kind == MigKind::Board);
            let lines: Vec<String> = boards.iter().map(|(gpu, _)| mig_line(*gpu, true)).collect();
            self.now.pending.retain(|line| !lines.contains(line));
            self.now.mig_on = rest;
            self.then.append(Stage { mig_on: boards, pending: lines, ..Stage::default() });
            self.then.pending.sort();
        }
        if self.now.reboots() {
            self.now.mig_on.retain(|(_, kind)| *kind == MigKind::Board);
            let of_driver = |gpu: &&GpuTarget| gpu.mode == Mode::MigVgpu && gpu.mig == Some(MigKind::Driver);
            self.last = target.gpus.iter().filter(of_driver).map(|gpu| gpu.address).collect();
        }
    }

    /// Whether nothing is left to do.
    pub fn is_empty(&self) -> bool {
        self.now.is_empty() && self.then.is_empty() && self.policy.is_none()
    }

    /// What will be configured and not active, one line each: before each reboot.
    pub fn pending(&self) -> impl Iterator<Item = &Vec<String>> {
        [&self.now.pending, &self.then.pending].into_iter().filter(|lines| !lines.is_empty())
    }

    /// Whether the passthrough of a function is written.
    pub fn writes_passthru(&self) -> bool {
        self.passthru().next().is_some()
    }

    /// Whether a label is written.
    pub fn writes_label(&self) -> bool {
        self.passthru().any(|change| change.label.is_some())
    }

    fn passthru(&self) -> impl Iterator<Item = &PassthruChange> {
        self.now.passthru.iter().chain(&self.then.passthru)
    }

    /// Whether the graphics configuration is written, now or after a reboot.
    pub fn writes_graphics(&self) -> bool {
        self.writes_devices() || self.policy.is_some()
    }

    /// Whether MIG is switched.
    pub fn switches_mig(&self) -> bool {
        self.now.switches() || self.then.switches() || !self.last.is_empty()
    }

    /// Whether the gate asks at the shell.
    pub fn gate_asks_shell(&self) -> bool {
        self.shell.way == ShellWay::Direct && self.shell.gate && (self.shell.used || self.switches_mig())
    }

    /// Whether MIG is switched on that the next reboot loses.
    pub fn gives_mig_of_driver(&self) -> bool {
        !self.last.is_empty() || self.now.mig_on.iter().any(|(_, kind)| *kind == MigKind::Driver)
    }

    fn writes_devices(&self) -> bool {
        self.now.writes_devices() || self.then.writes_devices()
    }

    /// The steps, from where the host is. `closed`: it is in maintenance mode. `ours`: we took it
    /// there, or will. `vms`: what becomes of VMs then.
    pub fn steps(&self, view: &HostView, closed: bool, ours: bool, vms: &Vms) -> Result<Vec<Step>, Gap> {
        let mut steps = self.monitor();
        if !closed && ours {
            steps.extend(vms.close());
        }
        steps.extend(vms.moved.iter().cloned());
        self.stage(&self.now, &mut steps);
        if self.now.reboots() {
            let boot_before = *Gap::need(&view.boot_time, "runtime.bootTime")?;
            steps.push(Step::Reboot { pending: self.now.pending.clone(), boot_before });
            self.stage(&self.then, &mut steps);
            if self.then.reboots() {
                steps.push(Step::Reboot { pending: self.then.pending.clone(), boot_before });
            }
            let last: Vec<_> = self.last.iter().map(|gpu| (*gpu, MigKind::Driver)).collect();
            self.switch(&last, true, &mut steps);
        }
        steps.push(Step::VerifyHost);
        if ours {
            steps.push(Step::ExitMaintenance);
        }
        steps.extend(vms.starts.iter().cloned());
        let mut steps = self.with_logins(steps);
        // What passthrough hides may have to be switched at the shell: whether we get in there is found out
        // before the host is closed.
        let tries = self.shell.way == ShellWay::Direct && !closed && !self.may_hide.is_empty();
        if tries && steps.first() != Some(&Step::StartShell) && keeps_out(view).is_none() {
            steps.insert(0, Step::StartShell);
        }
        Ok(steps)
    }

    /// The steps of a host that is out of maintenance again, by us.
    pub fn opened(&self, vms: Vms) -> Vec<Step> {
        let steps = self.monitor().into_iter().chain([Step::ExitMaintenance]).chain(vms.starts);
        self.with_logins(steps.collect())
    }

    /// What is due before one reboot more, where MIG turns out to be on.
    pub fn unhide(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let gpus: Vec<_> = self.may_hide.iter().map(|gpu| (*gpu, MigKind::Board)).collect();
        self.switch(&gpus, false, &mut steps);
        self.with_logins(steps)
    }

    /// The monitoring daemon that is still stopped is started, whatever else is due.
    fn monitor(&self) -> Vec<Step> {
        let due = self.shell.monitor_stopped && !self.now.switches();
        if due { vec![Step::StartMonitor] } else { Vec::new() }
    }

    fn stage(&self, stage: &Stage, steps: &mut Vec<Step>) {
        self.switch(&stage.mig_off, false, steps);
        if !stage.passthru.is_empty() {
            steps.push(Step::SetPassthrough { changes: stage.passthru.clone() });
        }
        // The driver's GPUs and those that are passed through go out in two calls: the server may
        // refuse the second.
        let first = std::ptr::eq(stage, &self.now);
        let mut default_type = self.default_type.clone().filter(|_| first || !self.now.writes_devices());
        let policy = self.policy.clone().filter(|_| first);
        if !stage.graphics.is_empty() || policy.is_some() {
            steps.push(Step::SetGraphics {
                default_type: default_type.take_if(|_| !stage.graphics.is_empty()),
                policy,
                devices: stage.graphics.clone(),
                early: false,
            });
        }
        if !stage.early.is_empty() {
            let devices = stage.early.clone();
            steps.push(Step::SetGraphics { default_type, policy: None, devices, early: true });
        }
        self.switch(&stage.mig_on, true, steps);
    }

    /// Switches MIG of these GPUs. The daemon, which keeps GPUs in use, rests meanwhile; a person is told
    /// to see to it.
    fn switch(&self, gpus: &[(PciAddress, MigKind)], on: bool, steps: &mut Vec<Step>) {
        for kind in [MigKind::Board, MigKind::Driver] {
            let gpus: Vec<PciAddress> =
                gpus.iter().filter(|(_, own)| *own == kind).map(|(address, _)| *address).collect();
            if gpus.is_empty() {
                continue;
            }
            let set = Step::SetMig { gpus, on, kind, way: self.shell.way };
            match self.shell.way {
                ShellWay::Direct => steps.extend([Step::StopMonitor, set, Step::StartMonitor]),
                ShellWay::Handoff => steps.push(set),
            }
        }
    }

    /// The steps with a login where the shell is used: first of all, before anything is disturbed, and
    /// again after each reboot, which ends it. Where MIG is switched there, the gate asks there, too.
    fn with_logins(&self, steps: Vec<Step>) -> Vec<Step> {
        let gate = |step: &Step| self.gate_asks_shell() && matches!(step, Step::VerifyHost);
        let needs = |step: &Step| step.is_at_shell() || gate(step);
        let mut with = Vec::new();
        let mut open = false;
        if steps.iter().any(needs) {
            with.push(Step::StartShell);
            open = true;
        }
        for step in steps {
            if needs(&step) && !open {
                with.push(Step::StartShell);
                open = true;
            }
            open &= !matches!(step, Step::Reboot { .. });
            with.push(step);
        }
        with
    }
}

/// The steps of the VMs around those of the host.
#[derive(Debug, Default)]
pub(super) struct Vms {
    /// [`Step::CordonNode`] and [`Step::DrainNode`] for the nodes whose VMs are stopped.
    pub drains: Vec<Step>,
    /// [`Step::AwaitNode`] for the nodes whose VMs DRS moves away.
    pub moved: Vec<Step>,
    /// VMs that DRS moves away.
    pub moves: Vec<Moving>,
    /// [`Step::StopVm`] for each VM that is on and has to be off.
    pub stops: Vec<Step>,
    /// [`Step::StartVm`] for each VM that is off, or will be, and starts again; with what brings nodes back.
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
                Fate::Stops { .. } | Fate::LeftOff { .. } => {
                    steps.stops.push(Step::StopVm { vm, name, node: fate.node.clone() });
                }
            }
        }
        let started = starts.iter().filter_map(|vm| fates.iter().find(|fate| fate.vm == *vm));
        steps.starts = started.map(start).collect();
        steps
    }

    /// Drained before anything of the host is disturbed. Close first, stop second (DESIGN §6): a host that enters maintenance takes no VM any more.
    fn close(&self) -> Vec<Step> {
        let mut steps = self.drains.clone();
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
