//! Each of the six transitions between the three modes, on two generations of GPUs and two versions
//! of vSphere, under settings of the readings in which every pair of values occurs.

use poolwright::model::HostName;
use poolwright::plan::{Plan, Reason};
use poolwright::rollout::{Exit, HostPhase};

use crate::support::lab::{Lab, PASSWORD, USER};
use crate::support::look::{self, Gpu};
use crate::support::readings;

/// A mode as documents write it, and what the world then shows of a GPU.
#[derive(Clone, Copy)]
struct Mode {
    yaml: &'static str,
    active: bool,
    label: &'static str,
    graphics: &'static str,
    size: &'static str,
}

const MODES: [Mode; 3] = [
    Mode { yaml: "{passthrough: {label: train}}", active: true, label: "train", graphics: "direct", size: "none" },
    Mode { yaml: "{vgpu: {size: same}}", active: false, label: "", graphics: "sharedDirect", size: "sameSize" },
    Mode { yaml: "{vgpu: {size: mixed}}", active: false, label: "", graphics: "sharedDirect", size: "mixedSize" },
];

const VERSIONS: [&str; 2] = ["8.0.3", "9.0.0"];

/// From and to, as places in [`MODES`].
const TRANSITIONS: [(usize, usize); 6] = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];

/// A managed host, and a stranger in the same cluster whose GPUs are as that one's were.
fn world(version: &str, model: &str, from: Mode, readings: &str) -> String {
    format!(
        r#"
apiVersion: poolwright/v1
kind: World
metadata: {{name: transitions}}
spec:
  vcenter: {{address: vc.lab, version: {version}, users: [{{name: {USER}, password: "{PASSWORD}"}}]}}
  readings: {readings}
  datacenters:
    - path: /Prod/DC1
      clusters:
        - name: gpu-a
          ha: {{enabled: true}}
          hosts:
            - names: esx-01
              driver: {{component: NVD-AIE-800, version: 580.95.02}}
              gpus: [{{model: {model}, count: 2, mode: {mode}}}]
              boot: {{down: 4m, flaps: 1, stale: 90s, storage: 60s, agent: 45s}}
            - names: stranger
              driver: {{component: NVD-AIE-800, version: 580.95.02}}
              gpus: [{{model: {model}, count: 2, mode: {mode}}}]
"#,
        mode = from.yaml
    )
}

fn documents(model: &str, to: Mode, select: &str) -> String {
    format!(
        r#"
apiVersion: poolwright/v1
kind: Site
metadata: {{name: lab}}
spec:
  vcenter: {{address: vc.lab, credentials: {{user: {USER}, password: "env:LAB"}}}}
---
apiVersion: poolwright/v1
kind: GpuPool
metadata: {{name: pool}}
spec:
  hosts: {{site: lab, cluster: gpu-a, names: ["esx-*"]}}
  gpuModel: {model}
  gpuCount: 2
  gpus: [{{select: {select}, mode: {mode}}}]
  rollout: {{maxUnavailable: 1, maxReboots: 2}}
"#,
        mode = to.yaml
    )
}

fn lab(version: &str, model: &str, from: Mode, to: Mode, readings: &str) -> Lab {
    Lab::new(&world(version, model, from, readings), &documents(model, to, "all"))
}

/// Plan, apply, plan again: what the world, not the engine, says of it.
async fn walk(case: &str, lab: &Lab, to: Mode) -> Plan {
    let plan = lab.plan().await;
    assert_eq!(plan.hosts.len(), 1, "{case}: {:#?} {:#?}", plan.not_acted, plan.findings);
    // As a file: what is applied is what was approved.
    let plan = Plan::from_bytes(&plan.to_bytes()).unwrap();
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::Done, "{case}: {state:#?}");

    let after = lab.world.snapshot();
    for gpu in look::gpus(&after, "esx-01") {
        let Gpu { address, enabled, active, label, graphics, size, .. } = gpu;
        if plan.hosts[0].target.gpus.iter().any(|target| target.address.to_string() == address) {
            let found = (enabled, active, label.as_str(), graphics.as_str(), size.as_str());
            assert_eq!(found, (to.active, to.active, to.label, to.graphics, to.size), "{case}: {address}");
        }
    }
    look::assert_released(case, &after, &plan);
    look::assert_only_managed(case, lab, &plan);
    look::assert_within_bounds(case, lab, &plan);

    let again = lab.plan().await;
    assert_eq!(again.hosts, [], "{case}");
    assert!(again.not_acted.iter().all(|host| host.reason == Reason::Converged), "{case}: {:#?}", again.not_acted);
    plan
}

/// One transition of one model: every pair of values of two readings, and of a reading and a version.
async fn transition(model: &str, at: usize) {
    let (from, to) = (MODES[TRANSITIONS[at].0], MODES[TRANSITIONS[at].1]);
    for (readings, other) in readings::pairs_with(VERSIONS.len()) {
        let version = VERSIONS[other];
        let case = format!("{version} {model} {} -> {} under {readings}", from.yaml, to.yaml);
        walk(&case, &lab(version, model, from, to, &readings), to).await;
    }
}

/// A test for each transition of each model, so that they run side by side.
macro_rules! transitions {
    ($($name:ident = $model:literal $at:literal;)+) => {
        $(#[tokio::test(start_paused = true)]
        async fn $name() {
            transition($model, $at).await;
        })+
    };
}

transitions! {
    h100_passthrough_to_same_size = "h100-nvl-94" 0;
    h100_passthrough_to_mixed_size = "h100-nvl-94" 1;
    h100_same_size_to_passthrough = "h100-nvl-94" 2;
    h100_same_size_to_mixed_size = "h100-nvl-94" 3;
    h100_mixed_size_to_passthrough = "h100-nvl-94" 4;
    h100_mixed_size_to_same_size = "h100-nvl-94" 5;
    a100_passthrough_to_same_size = "a100-pcie-80" 0;
    a100_passthrough_to_mixed_size = "a100-pcie-80" 1;
    a100_same_size_to_passthrough = "a100-pcie-80" 2;
    a100_same_size_to_mixed_size = "a100-pcie-80" 3;
    a100_mixed_size_to_passthrough = "a100-pcie-80" 4;
    a100_mixed_size_to_same_size = "a100-pcie-80" 5;
}

/// One of the host's two GPUs is not in the pool: it stays as it is, configured and active.
#[tokio::test(start_paused = true)]
async fn beside_a_gpu_of_somebody_else() {
    for (from, to) in TRANSITIONS {
        let (from, to) = (MODES[from], MODES[to]);
        for readings in readings::pairs().iter().filter(|readings| readings.contains("hostDefaultNeeded: no")) {
            let case = format!("one of two, {} -> {} under {readings}", from.yaml, to.yaml);
            let world = world("8.0.3", "a100-pcie-80", from, readings);
            let lab = Lab::new(&world, &documents("a100-pcie-80", to, "{count: 1}"));
            let plan = walk(&case, &lab, to).await;
            assert_eq!(plan.hosts[0].target.others.len(), 1, "{case}");
        }
    }
}

/// A reading that changes no journal is no reading of ours. `deviceType` must change none: the whole
/// list is sent as it was read, which means the same under both.
#[tokio::test(start_paused = true)]
async fn each_reading_changes_a_journal_or_must_not() {
    let [passthrough, same, _] = MODES;
    // A whole host, and one with a GPU of somebody else, whose host default is not ours to change.
    let walks = [(passthrough, same, "all"), (same, passthrough, "all"), (passthrough, same, "{count: 1}")];
    let mut defaults = Vec::new();
    for (from, to, select) in walks {
        defaults.push(journal(from, to, select, &readings::only(0, 0)).await);
    }
    for (switch, (name, values)) in readings::SWITCHES.iter().enumerate() {
        for value in 1..values.len() {
            let mut differs = false;
            for ((from, to, select), default) in walks.into_iter().zip(&defaults) {
                differs |= journal(from, to, select, &readings::only(switch, value)).await != *default;
            }
            assert_eq!(differs, *name != "deviceType", "{name}: {}", values[value]);
        }
    }
}

/// What the journal says happened, and when; the id of the run is by chance.
async fn journal(from: Mode, to: Mode, select: &str, readings: &str) -> Vec<String> {
    let world = world("8.0.3", "h100-nvl-94", from, readings);
    let lab = Lab::new(&world, &documents("h100-nvl-94", to, select));
    let plan = lab.plan().await;
    let run = lab.apply(&plan).await.unwrap().run;
    let entries = lab.state.entries(&run).unwrap();
    entries.iter().map(|entry| format!("{} {:?}", entry.at, entry.e).replace(run.as_str(), "RUN")).collect()
}

/// The host default is needed, and is not ours to change: a GPU of the host is not in the pool. The
/// GPU never becomes a vGPU, the host is left closed, and the report says why.
#[tokio::test(start_paused = true)]
async fn a_host_default_that_is_not_ours_leaves_the_host_closed() {
    let [passthrough, same, _] = MODES;
    let world = world("8.0.3", "h100-nvl-94", passthrough, "{hostDefaultNeeded: yes}");
    let lab = Lab::new(&world, &documents("h100-nvl-94", same, "{count: 1}"));
    let plan = lab.plan().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    let after = lab.world.snapshot();
    assert_eq!(look::host(&after, "esx-01")["maintenance"], true);
    look::assert_only_managed("not ours", &lab, &plan);
    look::assert_within_bounds("not ours", &lab, &plan);
    let HostPhase::Failed { error, .. } = &state.hosts[&HostName::from("esx-01")].phase else { panic!("{state:#?}") };
    assert!(error.contains("the reboot had no effect on") && error.contains("type sharedDirect"), "{error}");
}
