//! A host with two node VMs of two guest clusters and one other VM, in each stage that its visit can be
//! left in; built from the lines of a journal, as a run builds it.

use jiff::{SignedDuration, Timestamp};
use poolwright::model::{
    AssignmentPolicy, At, Baseline, Desired, Expect, Fact, GraphicsType, GuestRules, HostName, HostRef, JobTemplate,
    Marker, MarkerPhase, MoRef, Mode, NodeMark, NodePhase, NodeRef, OnValidationFailure, Pace, PciAddress, PciId,
    Place, PlanId, Product, RunId, ShellWay, SiteIdentity, VgpuMode, VgpuSize, VmRules,
};
use poolwright::plan::{
    Bounds, Capacity, Fate, GpuTarget, GraphicsChange, HostPlan, HostTarget, Impact, Limits, Memory, Minutes, NodeEnd,
    PassthruChange, Plan, Reboots, SlowFacts, Step, Visit, VmFate,
};
use poolwright::rollout::{
    Compensation, Entry, Event, FailureClass, HostState, How, LeftAs, RunState, SeenFacts, StepKind, fold,
};
use serde_json::json;

pub const HOST: &str = "esx-gpu-01";

pub fn at(minute: i64) -> Timestamp {
    "2026-11-30T20:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minute)
}

pub fn node(cluster: &str, name: &str) -> NodeRef {
    NodeRef { cluster: cluster.into(), name: name.into(), uid: format!("uid-of-{name}") }
}

/// The node of a VM that is stopped; the second was cordoned before.
pub fn nodes() -> [(NodeRef, MoRef, bool); 2] {
    [(node("k8s-serve", "serve-a"), vm(71), false), (node("k8s-train", "train-b"), vm(72), true)]
}

pub fn vm(id: u32) -> MoRef {
    MoRef::new("VirtualMachine", format!("vm-{id}"))
}

fn gpus() -> [PciAddress; 2] {
    ["0000:3b:00.0".parse().unwrap(), "0000:5e:00.0".parse().unwrap()]
}

/// The steps of the whole visit.
pub fn steps() -> Vec<Step> {
    let both = |step: fn(NodeRef, MoRef) -> Step| nodes().map(|(node, vm, _)| step(node, vm));
    let names = [(71, "serve-vm"), (72, "train-vm"), (80, "batch")];
    let stop = |(id, name): (u32, &str)| Step::StopVm {
        vm: vm(id),
        name: name.into(),
        node: nodes().into_iter().find(|(_, of, _)| *of == vm(id)).map(|(node, ..)| node),
    };
    let start = |(id, name): (u32, &str)| Step::StartVm { vm: vm(id), name: name.into(), gpus: Vec::new() };
    let passthrough = gpus().map(|address| PassthruChange {
        address,
        enabled: false,
        label: Some(String::new()),
        from_enabled: true,
        from_label: Fact::Known("train".into()),
    });
    let graphics = gpus().map(|address| GraphicsChange {
        address,
        graphics_type: GraphicsType::SharedDirect,
        vgpu_mode: Some(VgpuMode::MixedSize),
        from_type: Fact::Known(GraphicsType::Shared),
        from_mode: Fact::Absent,
    });
    let mut steps = Vec::new();
    steps.extend(both(|node, vm| Step::CordonNode { node, vm }));
    steps.extend(both(|node, vm| Step::DrainNode { node, vm, timeout_s: 1_800 }));
    steps.push(Step::StartClosing { moves: Vec::new(), stops: 3 });
    steps.extend(names.map(stop));
    steps.push(Step::EnterMaintenance { moves: Vec::new() });
    steps.push(Step::SetPassthrough { changes: passthrough.to_vec() });
    steps.push(Step::SetGraphics { default_type: None, policy: None, devices: graphics.to_vec(), early: true });
    steps.push(Step::Reboot { pending: vec!["0000:3b:00.0 passthrough off".into()], boot_before: at(-1_000) });
    steps.push(Step::VerifyHost);
    steps.push(Step::ExitMaintenance);
    steps.extend([start(names[0]), start(names[1])]);
    steps.extend(both(|node, vm| Step::AwaitNode { node, vm, stopped: true }));
    // As its cluster's Jobs have: one that does not say how long, and none.
    steps.extend(both(|node, _| {
        let timeout_s = if node.cluster == "k8s-serve" { 2_100 } else { 0 };
        Step::ValidateNode { node, timeout_s }
    }));
    steps.extend(both(|node, _| Step::UncordonNode { node, leave: NodeEnd::Open }));
    steps.push(start(names[2]));
    steps
}

pub fn visit(steps: Vec<Step>) -> Visit {
    Visit { impact: Impact::Reboot, steps, reboots: Reboots { expected: 1, most: 2, why: Vec::new() } }
}

fn base() -> Baseline {
    Baseline {
        ds: "12/12".into(),
        up: "4/4".into(),
        das: "connectedToMaster".into(),
        crypto: "-".into(),
        dev: "7b1e".into(),
        alarms: "0".into(),
    }
}

/// Events of the visit, as a run writes them, up to where it is left.
#[derive(Clone)]
pub struct Stage {
    pub events: Vec<Event>,
    steps: std::collections::VecDeque<Step>,
    /// VMs that run again.
    runs: Vec<MoRef>,
}

impl Stage {
    /// The visit is planned, and nothing is done.
    pub fn planned() -> Self {
        let facts = SeenFacts {
            read_at: at(0),
            connection: Fact::Absent,
            in_maintenance: Fact::Known(false),
            boot_time: Fact::Absent,
        };
        let memory = Box::new(Memory { baseline: Some(base()), ..Memory::default() });
        let planned = Event::VisitPlanned { visit: visit(steps()), facts, memory };
        Self { events: vec![planned], steps: steps().into(), runs: Vec::new() }.marker(MarkerPhase::Prechecking)
    }

    pub fn event(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }

    pub fn marker(self, phase: MarkerPhase) -> Self {
        let marker = Marker {
            v: 1,
            run: run(),
            plan: "ab12cd34ef567890".into(),
            host: "uuid".into(),
            phase,
            at: at(self.events.len() as i64),
            reboots: [0, 2],
            last: None,
            arm: vec![["maintenance".into(), "-".into(), "out".into()]],
            nodes: nodes().map(|(node, ..)| [node.cluster, node.name, node.uid]).to_vec(),
            base: base(),
        };
        self.event(Event::MarkerWritten { marker: Some(Box::new(marker)) })
    }

    pub fn mark(self, (node, vm, was_unschedulable): (NodeRef, MoRef, bool), phase: NodePhase) -> Self {
        let mark = NodeMark {
            v: NodeMark::VERSION,
            run: run(),
            plan: "ab12cd34ef567890".into(),
            host: "uuid".into(),
            vm: vm.id.clone(),
            phase,
            was_unschedulable,
            since: at(1),
            deadline: at(31),
            boot: format!("boot-of-{}", node.name),
            gpus: 1,
        };
        self.event(Event::NodeMarked { node, vm, mark: Some(Box::new(mark)) })
    }

    /// Does the next steps, up to the first of this kind, which begins.
    pub fn to(mut self, kind: StepKind) -> Self {
        loop {
            let step = self.steps.pop_front().unwrap();
            let of = StepKind::from(&step);
            self = self.arm(&step);
            self.events.push(Event::StepStarted { step: step.clone(), attempt: 1, server_time: at(2), again: None });
            if of == kind {
                return self;
            }
            if of == StepKind::DrainNode
                && let Some(node) = step.works_on().cloned()
            {
                let of = nodes().into_iter().find(|(of, ..)| *of == node).unwrap();
                self = self.mark(of, NodePhase::Drained);
            }
            if let Step::StartVm { vm, .. } = &step {
                self.runs.push(vm.clone());
            }
            self.events.push(Event::StepDone { step: of, how: How::Did, evidence: Vec::new() });
        }
    }

    fn arm(mut self, step: &Step) -> Self {
        match step {
            Step::CordonNode { node, .. } => {
                // All of them stand in the marker before the first is cordoned.
                let armed = self.host().armed;
                for (node, ..) in nodes() {
                    let comp = Compensation::Node(node);
                    if !armed.contains(&comp) {
                        self.events.push(Event::Armed { comp });
                    }
                }
                let of = nodes().into_iter().find(|(of, ..)| of == node).unwrap();
                self.mark(of, NodePhase::Draining)
            }
            Step::StartClosing { .. } => {
                self.events.push(Event::Armed { comp: Compensation::Maintenance });
                for id in [71, 72, 80] {
                    self.events.push(Event::Armed { comp: Compensation::Vm(vm(id)) });
                }
                self
            }
            _ => self,
        }
    }

    fn host(&self) -> HostState {
        self.state().hosts[&HostName::from(HOST)].clone()
    }

    pub fn failed(self, step: StepKind, class: FailureClass, error: &str) -> Self {
        self.event(Event::StepFailed { step, class, error: error.into() })
    }

    /// The visit ends here. What is armed is not put back, but for what is seen, on a host that is changed and
    /// open, to be as it was.
    pub fn left(self, maintenance: bool, pending: &[&str]) -> Self {
        let host = self.host();
        let is_back = |comp: &Compensation| match comp {
            Compensation::Maintenance => !maintenance,
            Compensation::Vm(vm) => !maintenance && self.runs.contains(vm),
            _ => false,
        };
        let uncompensated = host.armed.into_iter().filter(|comp| !host.changed || !is_back(comp)).collect();
        let left_as = LeftAs {
            maintenance: Some(maintenance),
            pending: pending.iter().map(|line| (*line).to_owned()).collect(),
            marker: true,
            uncompensated,
            opened: Vec::new(),
            notes: Vec::new(),
            at: at(60),
        };
        self.event(Event::HostLeft { left_as })
    }

    pub fn state(&self) -> RunState {
        let started = Event::RunStarted {
            run: run(),
            tool: "0.1.0".into(),
            plan: PlanId("ab12cd34ef567890aaaa".into()),
            inputs: Vec::new(),
            site_uuid: "6f0e".into(),
            user: "pw@vsphere.local".into(),
            hosts: vec![HOST.into()],
        };
        let about = self.events.iter().map(|event| (Some(HostName::from(HOST)), event.clone()));
        let lines = [(None, started)].into_iter().chain(about).enumerate();
        let entries: Vec<Entry> =
            lines.map(|(n, (host, e))| Entry { n: n as u64 + 1, at: at(n as i64), host, e }).collect();
        fold(&entries).unwrap()
    }
}

fn run() -> RunId {
    RunId("01JDABCDEFGHJKMNPQRSTVWXYZ".into())
}

fn placed<T>(value: T) -> At<T> {
    At::new(value, Place { file: "p.yaml".into(), line: 1, column: 1 })
}

fn guest(cluster: &str, validate: Vec<JobTemplate>) -> GuestRules {
    GuestRules {
        cluster: placed(cluster.into()),
        expect: Expect { resource: placed("nvidia.com/gpu".into()), per_node: placed(1) },
        drain_timeout_s: 1_800,
        validate,
    }
}

/// The plan that the visit is of.
pub fn plan() -> Plan {
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "gpu-", "namespace": "checks"},
        "spec": {"template": {"spec": {"containers": [{"name": "vector-add", "image": "it's/cuda:1",
            "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}},
    });
    let fate = |(id, name): (u32, &str)| VmFate {
        vm: vm(id),
        name: name.into(),
        gpus: Vec::new(),
        node: nodes().into_iter().find(|(_, of, _)| *of == vm(id)).map(|(node, ..)| node),
        fate: Fate::Stops { why: "a DirectPath I/O device never moves".into() },
    };
    let h100 = PciId { vendor: 0x10de, device: 0x2321, sub_vendor: 0x10de, sub_device: 0x1839 };
    let target = |address| GpuTarget {
        address,
        id: h100,
        mode: Mode::Vgpu { size: VgpuSize::Mixed },
        companions: Vec::new(),
        mig: None,
    };
    let host = HostPlan {
        host: HostRef {
            moref: MoRef::new("HostSystem", "host-12"),
            name: HOST.into(),
            path: format!("/DC 1/host/gpu-a/{HOST}"),
            cluster: "/DC 1/host/gpu-a".into(),
        },
        uuid: "uuid".into(),
        pool: "infer".into(),
        slow: SlowFacts {
            product: Product { version: "8.0.3".into(), build: "1".into() },
            packages: Fact::Known(Vec::new()),
            default_type: GraphicsType::Shared,
            policy: AssignmentPolicy::Performance,
            gpus: Vec::new(),
            devices: String::new(),
        },
        digest: String::new(),
        target: HostTarget {
            gpus: gpus().map(target).to_vec(),
            others: Vec::new(),
            placement: None,
            default_type: None,
        },
        impact: Impact::Reboot,
        fates: [(80, "batch"), (71, "serve-vm"), (72, "train-vm")].map(fate).to_vec(),
        bounds: Bounds::default(),
        vms: VmRules::default(),
        guests: vec![
            guest("k8s-serve", vec![JobTemplate { file: placed("templates/add.yaml".into()), job }]),
            guest("k8s-train", Vec::new()),
        ],
        on_validation_failure: OnValidationFailure::CloseHost,
        steps: Vec::new(),
        reboots: Reboots { expected: 1, most: 2, why: Vec::new() },
        minutes: Minutes { expected: 21, most: 110, basis: String::new(), person: false },
        shell: ShellWay::Handoff,
        stays_in_maintenance: false,
        not_checked: Vec::new(),
        accepted_nodes: std::collections::BTreeMap::new(),
        guest_uids: std::collections::BTreeMap::new(),
    };
    Plan {
        schema: "poolwright.plan/v1".into(),
        id: PlanId("ab12cd34ef567890aaaa".into()),
        tool: "0.1.0".into(),
        catalog: String::new(),
        now: at(-60),
        expires: at(1_000),
        inputs: Vec::new(),
        site: SiteIdentity {
            name: "fra1".into(),
            address: "vc.lab".into(),
            instance_uuid: "6f0e".into(),
            version: "8.0.3".into(),
            api_version: "8.0.3.0".into(),
        },
        desired: Desired {
            site: placed("fra1".into()),
            pace: Pace::default(),
            shell: ShellWay::Handoff,
            pools: Vec::new(),
        },
        limits: Limits { hosts_at_once: 1, halt_after_failed_hosts: 1 },
        order: vec![HOST.into()],
        hosts: vec![host],
        capacity: Capacity { gpu_hours_tenths: 0, gpu_hours_most_tenths: 0, pools: Vec::new() },
        not_acted: Vec::new(),
        findings: Vec::new(),
    }
}
