//! A site in which hosts go from one mode to another, with or without VMs, and what has to be true
//! afterwards: as the world says it, never the engine.

use std::time::Duration;

use poolwright::plan::{Fate, Plan, Reason};
use poolwright::rollout::{self, Exit};

use crate::support::lab::{DIRECT, Lab, PASSWORD, USER};
use crate::support::look::{self, Gpu};
use crate::support::nodes;
use crate::support::person;
use crate::support::replay::Replay;

/// A mode as documents write it, and what the world then shows of a GPU.
#[derive(Clone, Copy)]
pub struct Mode {
    pub yaml: &'static str,
    pub active: bool,
    pub label: &'static str,
    pub graphics: &'static str,
    pub size: &'static str,
}

/// The modes; transitions name them by their place.
pub const MODES: [Mode; 4] = [
    Mode { yaml: "{passthrough: {label: train}}", active: true, label: "train", graphics: "direct", size: "none" },
    Mode { yaml: "{vgpu: {size: same}}", active: false, label: "", graphics: "sharedDirect", size: "sameSize" },
    Mode { yaml: "{vgpu: {size: mixed}}", active: false, label: "", graphics: "sharedDirect", size: "mixedSize" },
    Mode { yaml: "{migVgpu: {}}", active: false, label: "", graphics: "sharedDirect", size: "multiInstanceGpu" },
];

/// The place of MIG in [`MODES`].
pub const MIG: usize = 3;

/// From and to, as places in [`MODES`].
pub const TRANSITIONS: [(usize, usize); 12] =
    [(0, 1), (0, 2), (0, 3), (1, 0), (1, 2), (1, 3), (2, 0), (2, 1), (2, 3), (3, 0), (3, 1), (3, 2)];

/// How the shell of the hosts is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Ssh,
    /// A person types what is asked for, some minutes later, and says so.
    Hand,
}

/// What has to become of a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Becomes {
    /// DRS moves it.
    Moves,
    /// It is stopped, and started again where it was.
    Stops,
    /// It is stopped and stays off.
    LeftOff,
    /// It is off, and nobody minds.
    Nothing,
}

/// A VM on `esx-01`.
pub struct Guest {
    pub name: String,
    /// Its devices and what else the world should know of it, as YAML.
    pub spec: String,
    /// DRS leaves it alone.
    pub pinned: bool,
    /// The guest cluster that it is a node of: `k8s-a` or `k8s-b`, whose node has another name than the VM.
    pub node: Option<&'static str>,
    pub becomes: Becomes,
}

/// The guest clusters of a site whose VMs are nodes. Pods of `web` have another place to go.
const CLUSTERS: &str = "[{name: k8s-a, address: \"https://k8s-a.lab:6443\", nodes: [{name: spare-a, gpus: 4}], \
      workloads: [{name: web, replicas: 2, gpu: 1, pdb: {minAvailable: 1}}]}, \
    {name: k8s-b, address: \"https://k8s-b.lab:6443\", nodes: [{name: spare-b, gpus: 4}], \
      workloads: [{name: agent, kind: daemonSet}]}]";

/// The site: hosts `esx-01`, `esx-02` … of a pool, and a stranger in the same cluster, in no pool, whose GPUs
/// are as those were.
pub struct Site<'a> {
    pub version: &'a str,
    pub model: &'a str,
    pub from: Mode,
    pub to: Mode,
    pub readings: &'a str,
    pub hosts: u32,
    /// GPUs of each host.
    pub gpus: u32,
    /// Which of them are the pool's.
    pub select: &'a str,
    pub vms: Vec<Guest>,
    /// More of the world, `actors: [...]`.
    pub world: &'a str,
    pub way: Way,
}

impl<'a> Site<'a> {
    /// One empty host with two GPUs, all of the pool.
    pub fn of(version: &'a str, model: &'a str, (from, to): (usize, usize), readings: &'a str) -> Self {
        let (from, to, vms) = (MODES[from], MODES[to], Vec::new());
        Self { version, model, from, to, readings, hosts: 1, gpus: 2, select: "all", vms, world: "", way: Way::Ssh }
    }

    pub fn lab(&self) -> Lab {
        Lab::new(&self.world(), &self.documents())
    }

    fn world(&self) -> String {
        let Self { version, model, readings, hosts, gpus, world, .. } = self;
        let vms: Vec<String> = self
            .vms
            .iter()
            .map(|Guest { name, spec, becomes, node, .. }| {
                let power = if *becomes == Becomes::Nothing { "off" } else { "on" };
                let node = node.map(|cluster| {
                    format!(", node: {{cluster: {cluster}, name: node-{name}, boot: {{ready: 1m, gpus: 3m}}}}")
                });
                let node = node.unwrap_or_default();
                format!("{{name: {name}, host: esx-01, power: {power}, memoryGiB: 16, {spec}{node}}}")
            })
            .collect();
        let pinned = self.vms.iter().filter(|vm| vm.pinned);
        let overrides: Vec<String> = pinned.map(|vm| format!("{{vm: {}, enabled: false}}", vm.name)).collect();
        // An empty host is closed by itself; VMs need DRS.
        let drs = match vms.is_empty() {
            true => String::new(),
            false => format!(
                "drs: {{level: fullyAutomated, options: {{VgpuMMAutomationTimeoutSecs: \"-1\"}}, overrides: [{}]}}",
                overrides.join(", ")
            ),
        };
        format!(
            r#"
apiVersion: poolwright/v1
kind: World
metadata: {{name: transitions}}
spec:
  vcenter:
    address: vc.lab
    version: {version}
    users: [{{name: {USER}, password: "{PASSWORD}"}}]
    options: {{vgpu.hotmigrate.enabled: "true"}}
  readings: {readings}
  {world}
  guests: {clusters}
  datacenters:
    - path: /Prod/DC1
      clusters:
        - name: gpu-a
          ha: {{enabled: true}}
          {drs}
          vms: [{vms}]
          hosts:
            - names: "esx-[01-{hosts:02}]"
              driver: {{component: NVD-AIE-800, version: 580.95.02}}
              gpus: [{{model: {model}, count: {gpus}, mode: {mode}}}]
              shell: {{users: [{{name: root, password: lab}}]}}
              boot: {{down: 90s, flaps: 1, stale: 40s, storage: 30s, agent: 20s}}
            # The roomiest: DRS moves VMs there.
            - names: stranger
              memoryGiB: 1024
              driver: {{component: NVD-AIE-800, version: 580.95.02}}
              gpus: [{{model: {model}, count: {gpus}, mode: {mode}}}]
"#,
            mode = self.from.yaml,
            vms = vms.join(", "),
            clusters = if self.has_nodes() { CLUSTERS } else { "[]" },
        )
    }

    fn has_nodes(&self) -> bool {
        self.vms.iter().any(|vm| vm.node.is_some())
    }

    fn documents(&self) -> String {
        let (sites, pools) = match self.has_nodes() {
            true => {
                let site = |name| format!("{{name: {name}, kubeconfig: \"file:KUBECONFIG\", context: {name}}}");
                // A Job on the nodes of one cluster, and none on those of the other.
                let job = ", validate: [{template: {file: templates/cuda-vector-add.yaml, set: {image: a}}}]";
                let pool = |name, jobs| {
                    let expect = "{resource: nvidia.com/gpu, perNode: 1}";
                    format!("{{cluster: {name}, expect: {expect}, drain: {{timeout: 20m}}{jobs}}}")
                };
                (
                    format!("guests: [{}, {}]", site("k8s-a"), site("k8s-b")),
                    format!("guests: [{}, {}]", pool("k8s-a", job), pool("k8s-b", "")),
                )
            }
            false => (String::new(), String::new()),
        };
        let Self { model, select, gpus, .. } = self;
        format!(
            r#"
apiVersion: poolwright/v1
kind: Site
metadata: {{name: lab}}
spec:
  vcenter: {{address: vc.lab, credentials: {{user: {USER}, password: "env:LAB"}}}}
  pace: {{hostStable: 20s}}
  shell: {shell}
  {sites}
---
apiVersion: poolwright/v1
kind: GpuPool
metadata: {{name: pool}}
spec:
  hosts: {{site: lab, cluster: gpu-a, names: ["esx-*"]}}
  gpuModel: {model}
  gpuCount: {gpus}
  gpus: [{{select: {select}, mode: {mode}}}]
  vms: {{mayStop: [{{name: "keep-*"}}, {{name: "late-*"}}], onMismatch: leaveOff}}
  rollout: {{maxUnavailable: 1, maxReboots: 2}}
  {pools}
"#,
            mode = self.to.yaml,
            shell = if self.way == Way::Ssh { DIRECT } else { "{way: handoff}" },
        )
    }

    /// Plan, apply, plan again.
    pub async fn walk(&self, case: &str) -> (Plan, Lab) {
        let lab = self.lab();
        let plan = lab.plan().await;
        assert_eq!(plan.hosts.len(), self.hosts as usize, "{case}: {:#?} {:#?}", plan.not_acted, plan.findings);
        self.assert_fates(case, &plan);
        (self.apply(case, &lab, plan).await, lab)
    }

    /// Applies a plan, and looks at what the world says of it.
    pub async fn apply(&self, case: &str, lab: &Lab, plan: Plan) -> Plan {
        // As a file: what is applied is what was approved.
        let plan = Plan::from_bytes(&plan.to_bytes()).unwrap();
        let state = match self.way {
            Way::Ssh => lab.apply(&plan).await,
            Way::Hand => person::with(lab, None, async |engine| rollout::apply(engine, &plan).await).await,
        };
        let state = state.unwrap();
        assert_eq!(state.exit(), Exit::Done, "{case}: {state:#?}");
        if self.way == Way::Hand {
            // The run goes on as soon as it sees what it needs; the person has the rest of the lines to type.
            tokio::time::sleep(Duration::from_secs(600)).await;
        }

        let after = lab.world.snapshot();
        let to = self.to;
        for host in &plan.hosts {
            for gpu in look::gpus(&after, host.host.name.as_str()) {
                let Gpu { address, enabled, active, label, graphics, size, .. } = gpu;
                if host.target.gpus.iter().any(|target| target.address.to_string() == address) {
                    let found = (enabled, active, label.as_str(), graphics.as_str(), size.as_str());
                    let expected = (to.active, to.active, to.label, to.graphics, to.size);
                    assert_eq!(found, expected, "{case}: {} {address}", host.host.name);
                }
            }
        }
        look::assert_released(case, &after, &plan);
        look::assert_shells_as_before(case, lab);
        look::assert_only_managed(case, lab, &plan);
        look::assert_within_bounds(case, lab, &plan);
        nodes::assert_as_planned(case, lab, &plan);
        if plan.hosts.iter().any(|host| host.host.name.as_str() == "esx-01") {
            self.assert_vms(case, lab);
        }

        let again = lab.plan().await;
        assert_eq!(again.hosts, [], "{case}");
        let reasons = again.not_acted.iter().filter(|not| plan.hosts.iter().any(|host| host.host.name == not.host));
        assert!(
            reasons.map(|not| not.reason).all(|reason| reason == Reason::Converged),
            "{case}: {:#?}",
            again.not_acted
        );
        plan
    }

    /// The plan says by name what becomes of each VM.
    fn assert_fates(&self, case: &str, plan: &Plan) {
        let on = self.vms.iter().filter(|vm| vm.becomes != Becomes::Nothing);
        let mut expected: Vec<(&str, Becomes)> = on.map(|vm| (vm.name.as_str(), vm.becomes)).collect();
        expected.sort_by_key(|(name, _)| *name);
        let planned: Vec<(&str, Becomes)> = plan.hosts[0]
            .fates
            .iter()
            .map(|fate| {
                let becomes = match &fate.fate {
                    Fate::Moves { .. } => Becomes::Moves,
                    Fate::Stops { .. } => Becomes::Stops,
                    Fate::LeftOff { .. } => Becomes::LeftOff,
                };
                (fate.name.as_str(), becomes)
            })
            .collect();
        assert_eq!(planned, expected, "{case}");
        assert!(plan.hosts[1..].iter().all(|host| host.fates.is_empty()), "{case}: {:#?}", plan.hosts[1].fates);
    }

    /// What the world counts of each VM is what the plan said, no more and no less.
    fn assert_vms(&self, case: &str, lab: &Lab) {
        let tally = lab.world.tally();
        for vm in &self.vms {
            let counted = &tally.vms[&vm.name];
            let found = (counted.host.as_str(), counted.on, counted.moves, counted.stops, counted.starts);
            let expected = match vm.becomes {
                Becomes::Moves => ("stranger", true, 1, 0, 0),
                Becomes::Stops => ("esx-01", true, 0, 1, 1),
                Becomes::LeftOff => ("esx-01", false, 0, 1, 0),
                Becomes::Nothing => ("esx-01", false, 0, 0, 0),
            };
            assert_eq!(found, expected, "{case}: {}", vm.name);
        }
        // The log tells the same: what is computed from it is not computed from nothing.
        let replay = Replay::of(lab);
        let counted = tally.vms.values().fold((0, 0), |sum, vm| (sum.0 + vm.stops, sum.1 + vm.moves));
        let logged = replay.hosts.values().fold((0, 0), |sum, host| (sum.0 + host.stops, sum.1 + host.moves));
        assert_eq!(logged, counted, "{case}");
        let boots: u32 = tally.hosts.values().map(|host| host.boots).sum();
        assert_eq!(replay.hosts.values().map(|host| host.reboots).sum::<u32>(), boots, "{case}");
    }
}
