//! A pure twin of one host, and of the engine that visits it. It knows the readings that nobody could
//! verify (vsphere-gpu §6, open questions) and nothing of what the planner wants.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use poolwright::model::{
    Fact, GpuShellView, GraphicsConfig, GraphicsType, HostView, MigKind, MoRef, NodeMark, NodePhase, NodeView,
    PciAddress, PciId, PowerState, RunId, RunningTask, ShellView, ShellWay, Switch, VgpuMode, VmGpuDevice, VmView,
};
use poolwright::plan::{
    Around, Check, HostPlan, Memory, NodeEnd, NodeMemory, Refusal, Step, Verify, Visit, baseline, visit,
};

use crate::support::seen::{A100, known, record};

/// What the server does with graphics entries of GPUs that are passed through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhilePassthrough {
    Ignored,
    Stored,
    Refused,
}

/// The readings.
#[derive(Debug, Clone, Copy)]
pub struct Readings {
    /// `deviceType` is replaced, not merged.
    pub replace: bool,
    pub while_passthrough: WhilePassthrough,
    /// Idle devices are rebound without a reboot.
    pub rebind: bool,
    /// A device entry needs the host default to be sharedDirect, too.
    pub default_needed: bool,
    /// vCenter shows a switch of MIG when it is asked to look again.
    pub mig_lags: bool,
}

pub const PLAIN: Readings = Readings {
    replace: false,
    while_passthrough: WhilePassthrough::Stored,
    rebind: false,
    default_needed: false,
    mig_lags: true,
};

/// All settings.
pub fn readings() -> Vec<Readings> {
    let mut all = Vec::new();
    for while_passthrough in [WhilePassthrough::Ignored, WhilePassthrough::Stored, WhilePassthrough::Refused] {
        for bits in 0..8 {
            let [replace, rebind, default_needed] = [1, 2, 4].map(|bit| bits & bit != 0);
            // Decides nothing beside the others.
            let mig_lags = replace != rebind;
            all.push(Readings { replace, while_passthrough, rebind, default_needed, mig_lags });
        }
    }
    all
}

/// One host, and what was done to it.
#[derive(Debug, Clone)]
pub struct Twin {
    pub view: HostView,
    pub readings: Readings,
    /// The cluster; DRS moves VMs to the first of its other hosts.
    pub around: Around,
    pub reboots: u32,
    /// Calls that wrote, in order.
    pub log: Vec<String>,
    /// MIG of each GPU in truth, which may hide: now, and what was set.
    pub mig: BTreeMap<PciAddress, (bool, bool)>,
    /// The monitoring daemon, which keeps GPUs in use.
    pub monitor: bool,
    /// A board forgets at the boot what was set.
    pub forgets: bool,
    /// Nodes on which nothing is left, and those that passed each half of their gate in this visit.
    pub nodes: TwinNodes,
}

/// What was done to nodes, by UID.
#[derive(Debug, Clone, Default)]
pub struct TwinNodes {
    drained: BTreeSet<String>,
    awaited: BTreeSet<String>,
    validated: BTreeSet<String>,
    /// Boots of all nodes.
    boots: u32,
}

impl Twin {
    pub fn new(mut view: HostView, readings: Readings) -> Self {
        view.capabilities.rebind_without_reboot = Fact::Known(readings.rebind);
        // Where it is needed, a GPU that is active without it cannot be.
        let active = view.graphics_active.known().unwrap().iter();
        if readings.default_needed && active.clone().any(|state| state.graphics_type == GraphicsType::SharedDirect) {
            known(&mut view.graphics_config).default_type = GraphicsType::SharedDirect;
        }
        let states = view.graphics_active.known().unwrap().iter();
        let mig = states
            .map(|state| (state.address, state.vgpu_mode == Fact::Known(VgpuMode::MultiInstanceGpu)))
            .map(|(address, on)| (address, (on, on)))
            .collect();
        let around = Around::nothing();
        Self {
            view,
            readings,
            around,
            reboots: 0,
            log: Vec::new(),
            mig,
            monitor: true,
            forgets: false,
            nodes: TwinNodes::default(),
        }
    }

    /// Where the GPU keeps MIG.
    fn mig_kind(&self, address: PciAddress) -> MigKind {
        let ampere = PciId { device: A100.id.0, ..A100.pci() };
        let device = self.view.pci.known().unwrap().iter().find(|device| device.address == address).unwrap();
        if device.id == ampere { MigKind::Board } else { MigKind::Driver }
    }

    fn ssh(&mut self) -> &mut bool {
        &mut known(&mut self.view.services)[0].running
    }

    /// What nvidia-smi shows: the GPUs that are not passed through.
    fn shell(&self) -> ShellView {
        let switch =
            |(current, pending): (bool, bool)| Switch { current: Fact::Known(current), pending: Fact::Known(pending) };
        let gpus = self.mig.iter().filter(|(address, _)| !self.passed(**address)).map(|(address, mig)| {
            let gpu = GpuShellView {
                mig: switch(*mig),
                ecc: switch((true, true)),
                link_generation: Fact::Known(4),
                link_width: Fact::Known(16),
                remap_pending: Fact::Known(false),
                remap_failed: Fact::Known(false),
            };
            (*address, gpu)
        });
        ShellView { gpus: gpus.collect(), monitor: Fact::Known(self.monitor), unread: vec![] }
    }

    /// What the engine would read for this step: the shell only where it asks there.
    fn look(&mut self, step: &Step, memory: &Memory) {
        let gate = matches!(step, Step::VerifyHost) && memory.shell;
        let asks = gate
            || matches!(
                step,
                Step::StartShell | Step::StopMonitor | Step::StartMonitor | Step::SetMig { way: ShellWay::Direct, .. }
            );
        self.view.shell = match (asks, *self.ssh()) {
            (false, _) => Fact::Absent,
            (true, true) => Fact::Known(self.shell()),
            (true, false) => Fact::unknown("the SSH service does not run"),
        };
    }

    /// vCenter looks again.
    fn refresh(&mut self) {
        let config = self.view.graphics_config.known().unwrap().clone();
        for state in known(&mut self.view.graphics_active) {
            let shows = state.vgpu_mode == Fact::Known(VgpuMode::MultiInstanceGpu);
            let on = self.mig[&state.address].0;
            if state.graphics_type == GraphicsType::SharedDirect && shows != on {
                let own = config.devices.iter().find(|entry| entry.address == state.address);
                let configured = own.and_then(|entry| entry.vgpu_mode.known()).cloned();
                state.vgpu_mode = Fact::Known(match on {
                    true => VgpuMode::MultiInstanceGpu,
                    false => configured.unwrap_or(VgpuMode::SameSize),
                });
            }
        }
    }

    /// By whom ever.
    fn set_mig(&mut self, gpus: &[PciAddress], on: bool, way: ShellWay) {
        assert_eq!(self.view.in_maintenance, Fact::Known(true), "MIG is switched on an open host");
        if way == ShellWay::Direct {
            assert!(*self.ssh() && !self.monitor, "MIG is switched with the daemon at work");
        }
        for gpu in gpus {
            assert!(!self.passed(*gpu), "{gpu} is not there for the driver");
            let kind = self.mig_kind(*gpu);
            let mig = self.mig.get_mut(gpu).unwrap();
            mig.1 = on;
            if kind == MigKind::Driver {
                mig.0 = on;
            }
        }
        if !self.readings.mig_lags {
            self.refresh();
        }
    }

    fn passed(&self, address: PciAddress) -> bool {
        let states = self.view.passthru.known().unwrap();
        states.iter().any(|state| state.address == address && state.active)
    }

    /// The step's effect; Err: the server refuses the call.
    pub fn effect(&mut self, step: &Step) -> Result<(), ()> {
        self.log.push(step.to_string());
        match step {
            Step::StartClosing { .. } => {
                known(&mut self.view.tasks).push(RunningTask {
                    moref: MoRef::new("Task", "task-77"),
                    what: "HostSystem.enterMaintenanceMode".into(),
                    user: Fact::Known("pw".into()),
                    queued_at: Fact::Absent,
                });
            }
            Step::StopVm { vm, .. } => {
                assert!(!known(&mut self.view.tasks).is_empty(), "stopped on a host that does not close");
                if let Some(node) = self.node(vm) {
                    let uid = node.node.uid.clone();
                    assert!(node.unschedulable && node.mark.known().is_some(), "{uid} is stopped and not cordoned");
                    node.ready = Fact::unknown("NodeStatusUnknown");
                    assert!(self.nodes.drained.contains(&uid), "{uid} is stopped and not drained");
                }
                self.vm(vm).power = Fact::Known(PowerState::Off);
                known(&mut self.view.graphics_active).iter_mut().for_each(|state| state.vms.retain(|user| user != vm));
            }
            Step::StartShell => *self.ssh() = true,
            Step::StopMonitor | Step::StartMonitor => {
                assert!(*self.ssh(), "nobody is logged in");
                self.monitor = matches!(step, Step::StartMonitor);
            }
            Step::SetMig { gpus, on, kind, way } => {
                assert!(gpus.iter().all(|gpu| self.mig_kind(*gpu) == *kind), "{step}");
                self.set_mig(gpus, *on, *way);
            }
            Step::EnterMaintenance { .. } => self.close(),
            Step::StartVm { vm, .. } => self.start(vm),
            Step::ExitMaintenance => {
                self.view.in_maintenance = Fact::Known(false);
                self.view.parity.ha = Fact::Known("connectedToMaster".into());
            }
            Step::SetPassthrough { changes } => {
                for change in changes {
                    let states = known(&mut self.view.passthru);
                    let state = states.iter_mut().find(|state| state.address == change.address).unwrap();
                    state.enabled = change.enabled;
                    if let Some(label) = &change.label {
                        state.label = if label.is_empty() { Fact::Absent } else { Fact::Known(label.clone()) };
                    }
                    if self.readings.rebind && state.active != state.enabled {
                        state.active = state.enabled;
                        self.claim(change.address);
                    }
                }
            }
            Step::SetGraphics { devices, .. } => {
                let refused = self.readings.while_passthrough == WhilePassthrough::Refused;
                if refused && devices.iter().any(|change| self.passed(change.address)) {
                    return Err(());
                }
                let sent = step.merged(self.view.graphics_config.known().unwrap()).unwrap();
                self.store(sent);
            }
            Step::Reboot { .. } => self.reboot(),
            Step::VerifyHost => {}
            node => self.on_node(node),
        }
        Ok(())
    }

    fn vm(&mut self, vm: &MoRef) -> &mut VmView {
        known(&mut self.view.vms).iter_mut().find(|found| found.moref == *vm).unwrap()
    }

    /// The node that a VM is, wherever it runs.
    fn node(&mut self, vm: &MoRef) -> Option<&mut NodeView> {
        let others = self.around.neighbours.iter_mut().map(|other| other.view.as_mut().unwrap().as_mut());
        let mut vms = std::iter::once(&mut self.view).chain(others).flat_map(|view| known(&mut view.vms));
        match &mut vms.find(|found| found.moref == *vm)?.node {
            Fact::Known(node) => Some(node),
            Fact::Absent | Fact::Unknown { .. } => None,
        }
    }

    /// All nodes with our mark, as a resume finds them on the live cluster.
    pub fn marked(&self) -> Vec<NodeMemory> {
        let others = self.around.neighbours.iter().map(|other| other.view.as_ref().unwrap().as_ref());
        let vms = std::iter::once(&self.view).chain(others).flat_map(|view| view.vms.known().unwrap());
        let marked = vms.filter_map(|vm| {
            let node = vm.node.known()?;
            let mark = node.marked().known()?.clone();
            Some(NodeMemory { node: node.node.clone(), vm: vm.moref.clone(), mark })
        });
        marked.collect()
    }

    fn on_node(&mut self, step: &Step) {
        let wanted = step.works_on().unwrap().clone();
        let vms = self.view.vms.known().unwrap().iter();
        let others = self.around.neighbours.iter().flat_map(|other| other.view.as_ref().unwrap().vms.known().unwrap());
        let is = |vm: &&VmView| vm.node.known().is_some_and(|node| node.node == wanted);
        let vm = vms.chain(others).find(is).expect("the VM of the node").moref.clone();
        let here = self.view.vms.known().unwrap().iter().any(|found| found.moref == vm);
        let node = self.node(&vm).unwrap();
        match step {
            Step::CordonNode { .. } => {
                assert_eq!(node.mark, Fact::Absent, "{wanted} is marked twice");
                let mark = NodeMark {
                    v: NodeMark::VERSION,
                    run: RunId("01JDOURS".into()),
                    plan: "plan".into(),
                    host: "host".into(),
                    vm: vm.id.clone(),
                    phase: NodePhase::Draining,
                    was_unschedulable: node.unschedulable,
                    since: "2026-11-30T20:00:00Z".parse().unwrap(),
                    deadline: "2026-11-30T20:30:00Z".parse().unwrap(),
                    boot: node.boot_id.known().unwrap().clone(),
                    gpus: *node.count("nvidia.com/gpu").known().unwrap(),
                };
                (node.unschedulable, node.mark) = (true, Fact::Known(serde_json::to_string(&mark).unwrap()));
            }
            Step::DrainNode { timeout_s, .. } => {
                assert!(node.unschedulable && node.mark.known().is_some(), "{wanted} is drained and not cordoned");
                assert_eq!(*timeout_s, 1800);
                self.nodes.drained.insert(wanted.uid);
            }
            Step::AwaitNode { stopped, .. } => {
                assert_eq!(node.ready, Fact::Known(true), "{wanted} does not come back");
                let booted = node.boot_id != Fact::Known(format!("boot-1-{}", wanted.name));
                assert_eq!(*stopped, booted, "{wanted}: the boot is another one iff the VM was stopped");
                assert!(here || !stopped, "{wanted} runs elsewhere");
                self.nodes.awaited.insert(wanted.uid);
            }
            Step::ValidateNode { .. } => {
                assert!(self.nodes.awaited.contains(&wanted.uid), "{wanted} is validated before it is back");
                self.nodes.validated.insert(wanted.uid);
            }
            Step::UncordonNode { leave, .. } => {
                let mark = node.marked().known().expect("our mark").clone();
                node.mark = Fact::Absent;
                match leave {
                    NodeEnd::LeftOff => {
                        node.left_off = true;
                        assert_ne!(node.ready, Fact::Known(true), "{wanted} runs, and is left off");
                    }
                    NodeEnd::Open => {
                        node.unschedulable = mark.was_unschedulable;
                        assert!(self.nodes.validated.contains(&wanted.uid), "{wanted} is uncordoned and not validated");
                    }
                }
            }
            other => panic!("{other} is no step of a node"),
        }
    }

    /// DRS moves what runs, and the host is in maintenance mode.
    pub fn close(&mut self) {
        let vms = known(&mut self.view.vms);
        let (on, rest): (Vec<VmView>, Vec<VmView>) =
            vms.drain(..).partition(|vm| vm.power == Fact::Known(PowerState::On));
        *vms = rest;
        for state in known(&mut self.view.graphics_active) {
            state.vms.retain(|user| !on.iter().any(|vm| vm.moref == *user));
        }
        for vm in on {
            let fixed = vm.gpus.known().unwrap().iter().any(|device| !matches!(device, VmGpuDevice::Vgpu { .. }));
            assert!(!fixed, "{:?} keeps the host from closing", vm.name);
            let other = self.around.neighbours.first_mut().expect("a host to move to");
            known(&mut other.view.as_mut().unwrap().vms).push(vm);
        }
        known(&mut self.view.tasks).clear();
        self.view.in_maintenance = Fact::Known(true);
        self.view.parity.ha = Fact::Absent;
    }

    /// Powers a VM on, and gives it the first GPU that fits.
    fn start(&mut self, vm: &MoRef) {
        assert_eq!(self.view.in_maintenance, Fact::Known(false), "power-on in maintenance mode");
        let passed: Vec<PciAddress> = {
            let states = self.view.passthru.known().unwrap().iter();
            states.filter(|state| state.active).map(|state| state.address).collect()
        };
        let devices = self.vm(vm).gpus.known().unwrap().clone();
        for (index, device) in devices.iter().enumerate() {
            match device {
                VmGpuDevice::Vgpu { .. } => {
                    let states = known(&mut self.view.graphics_active);
                    let gpu = states.iter_mut().find(|state| state.graphics_type == GraphicsType::SharedDirect);
                    gpu.expect("a GPU for the vGPU").vms.push(vm.clone());
                }
                VmGpuDevice::DirectPath { id, .. } => assert!(passed.contains(&id.parse().unwrap()), "{id}"),
                VmGpuDevice::DynamicDirectPath { label, .. } => {
                    let device = VmGpuDevice::DynamicDirectPath {
                        label: label.clone(),
                        assigned: Fact::Known(passed.first().expect("a GPU to pass through").to_string()),
                    };
                    known(&mut self.vm(vm).gpus)[index] = device;
                }
                VmGpuDevice::Other(kind) => panic!("{kind}"),
            }
        }
        self.vm(vm).power = Fact::Known(PowerState::On);
        self.nodes.boots += 1;
        let boots = self.nodes.boots;
        if let Some(node) = self.node(vm) {
            (node.ready, node.boot_id) = (Fact::Known(true), Fact::Known(format!("boot-again-{boots}")));
        }
    }

    fn store(&mut self, sent: GraphicsConfig) {
        let before = self.view.graphics_config.known().unwrap().clone();
        let ignored = |address| self.readings.while_passthrough == WhilePassthrough::Ignored && self.passed(address);
        let mut devices = before.devices.clone();
        if self.readings.replace {
            devices.retain(|entry| sent.devices.iter().any(|other| other.address == entry.address));
        }
        for entry in sent.devices.iter().filter(|entry| !ignored(entry.address)) {
            match devices.iter_mut().find(|other| other.address == entry.address) {
                Some(other) => *other = entry.clone(),
                None => devices.push(entry.clone()),
            }
        }
        let stored = GraphicsConfig { devices, ..sent };
        self.view.graphics_config = Fact::Known(stored.clone());
        // A size mode takes effect at once where the driver owns the GPU as a vGPU GPU.
        for state in known(&mut self.view.graphics_active) {
            if state.graphics_type == GraphicsType::SharedDirect && !self.mig[&state.address].0 {
                let own = stored.devices.iter().find(|entry| entry.address == state.address);
                if let Some(mode) = own.and_then(|entry| entry.vgpu_mode.known()) {
                    state.vgpu_mode = Fact::Known(mode.clone());
                }
            }
        }
    }

    pub fn reboot(&mut self) {
        self.reboots += 1;
        let boot = known(&mut self.view.boot_time);
        *boot += SignedDuration::from_mins(20);
        let states = known(&mut self.view.passthru);
        states.iter_mut().for_each(|state| state.active = state.enabled);
        let all: Vec<PciAddress> = states.iter().map(|state| state.address).collect();
        for (address, mig) in std::mem::take(&mut self.mig) {
            let on = match self.mig_kind(address) {
                MigKind::Board if self.forgets => mig.0,
                MigKind::Board => mig.1,
                MigKind::Driver => false,
            };
            self.mig.insert(address, (on, on));
        }
        all.into_iter().for_each(|address| self.claim(address));
        // Policy `off`: it does not come up with the host, the daemon does.
        *self.ssh() = false;
        self.monitor = true;
    }

    /// What becomes of a GPU when its owner changes.
    fn claim(&mut self, address: PciAddress) {
        let passed = self.passed(address);
        let kind_of = self.mig_kind(address);
        let config = self.view.graphics_config.known().unwrap().clone();
        let own = config.devices.iter().find(|entry| entry.address == address);
        let mut kind = own.map_or(&config.default_type, |entry| &entry.graphics_type).clone();
        if self.readings.default_needed && config.default_type != GraphicsType::SharedDirect {
            kind = config.default_type.clone();
        }
        let Some(state) = known(&mut self.view.graphics_active).iter_mut().find(|state| state.address == address)
        else {
            return;
        };
        let mode = own.and_then(|entry| entry.vgpu_mode.known()).cloned();
        // The driver that lets go of a GPU forgets its MIG; a board keeps it.
        if passed && kind_of == MigKind::Driver {
            self.mig.insert(address, (false, false));
        }
        let mode =
            if self.mig.get(&address).is_some_and(|mig| mig.0) { Some(VgpuMode::MultiInstanceGpu) } else { mode };
        (state.graphics_type, state.vgpu_mode) = match passed {
            true => (GraphicsType::Direct, Fact::Known(VgpuMode::None)),
            false if kind == GraphicsType::SharedDirect => (kind, Fact::Known(mode.unwrap_or(VgpuMode::SameSize))),
            false => (kind, Fact::Known(VgpuMode::None)),
        };
    }
}

/// Where the process dies: after so many effects.
#[derive(Debug, Clone, Copy)]
pub enum Death {
    Never,
    /// The effect was sent, and nobody lived to see its answer.
    After(usize),
}

/// Runs the visit of one host to its end, as the engine does. `memory` survives deaths.
pub fn run(twin: &mut Twin, host: &HostPlan, memory: &mut Memory, death: Death) -> Result<Vec<Visit>, Refusal> {
    let mut visits = Vec::new();
    let mut effects = 0;
    memory.baseline.get_or_insert_with(|| baseline(host, &twin.view));
    'visits: for _ in 0..20 {
        twin.view.shell = Fact::Absent;
        memory.nodes = twin.marked();
        (twin.nodes.awaited, twin.nodes.validated) = Default::default();
        let planned = visit(host, &record(host.host.name.as_str(), twin.view.clone()), memory, &twin.around)?;
        visits.push(planned.clone());
        // All that will be stopped is written down before the first is.
        for step in &planned.steps {
            if let Step::StopVm { vm, .. } = step
                && !memory.vms.contains(vm)
            {
                memory.vms.push(vm.clone());
            }
        }
        for step in &planned.steps {
            if step.works_on().is_some() {
                memory.started(step);
                twin.effect(step).unwrap();
                effects += 1;
                if matches!(death, Death::After(last) if last == effects) {
                    return Ok(visits);
                }
                memory.done(step);
                memory.nodes = twin.marked();
                continue;
            }
            twin.look(step, memory);
            match step.check(host, &twin.view, memory) {
                Check::AlreadyDone { .. } if matches!(step, Step::Reboot { .. }) => {
                    // One that took effect without a reboot is none.
                    if memory.reboots_by(&twin.view.boot_time) > memory.reboots {
                        memory.done(step);
                    }
                    continue 'visits;
                }
                Check::AlreadyDone { .. } => {
                    memory.done(step);
                    continue;
                }
                Check::InFlight { task: Some(_) } if matches!(step, Step::EnterMaintenance { .. }) => {
                    twin.close();
                    memory.done(step);
                    continue;
                }
                Check::InFlight { .. } => panic!("nothing runs on by itself here: {step}"),
                Check::Refused { expected, found } => panic!("{step}: expected {expected}, found {found}"),
                Check::Ready => {}
            }
            memory.started(step);
            memory.monitor_stopped |= matches!(step, Step::StopMonitor) && twin.monitor;
            let sent = twin.effect(step);
            assert!(sent.is_ok() || matches!(step, Step::SetGraphics { early: true, .. }), "refused: {step}");
            if !matches!(step, Step::VerifyHost) {
                effects += 1;
                if matches!(death, Death::After(last) if last == effects) {
                    return Ok(visits);
                }
            }
            if matches!(step, Step::SetMig { .. }) {
                twin.refresh();
            }
            twin.look(step, memory);
            let word = matches!(step, Step::SetMig { kind: MigKind::Board, way: ShellWay::Handoff, .. });
            match step.verify(host, &twin.view, memory) {
                Verify::Reached { .. } => {}
                // Only the person can say that it is done.
                Verify::NotYet { .. } if word => {}
                Verify::Settling { waiting_for } if matches!(step, Step::Reboot { .. }) => {
                    assert!(!waiting_for.is_empty());
                }
                other => panic!("{step} is not verified: {other:?}"),
            }
            memory.done(step);
            if matches!(step, Step::Reboot { .. }) {
                continue 'visits;
            }
        }
        return Ok(visits);
    }
    panic!("the visit does not end");
}
