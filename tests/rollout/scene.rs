//! A small site with one pool, and what happens to it; the words in which tests speak of a run.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use poolwright::model::HostName;
use poolwright::plan::Plan;
use poolwright::rollout::{
    self, Entry, Event, HostPhase, HostState, RunError, RunState, Signal, Sink, Waiting, interrupt,
};
use poolwright::sim::Write;

use crate::support::lab::{Lab, PASSWORD, USER};

/// A world of hosts `esx-01`, `esx-02`, … with two H100 NVL each, and a pool of all of them.
pub struct Scene {
    pub hosts: u32,
    /// Mode of the GPUs before.
    pub from: &'static str,
    /// Groups of the pool.
    pub to: &'static str,
    /// More keys of the hosts in the world, one a line.
    pub host: &'static str,
    /// More keys of the world, `faults: [...]` and the like, one a line.
    pub world: &'static str,
    /// Which hosts are the pool's.
    pub names: &'static str,
    /// `drs` of the cluster.
    pub drs: &'static str,
    /// VMs of the cluster.
    pub vms: &'static str,
    /// `vms` of the pool.
    pub may: &'static str,
    /// `pace` of the site.
    pub pace: &'static str,
    /// More keys of the site, one a line.
    pub site: &'static str,
    /// The model of the GPUs.
    pub model: &'static str,
    /// `rollout` of the pool.
    pub rollout: &'static str,
}

impl Default for Scene {
    /// Same size to passthrough: maintenance and one reboot.
    fn default() -> Self {
        Self {
            hosts: 1,
            from: "{vgpu: {size: same}}",
            to: "[{mode: {passthrough: {label: train}}}]",
            host: "boot: {down: 90s}",
            world: "faults: []",
            names: "esx-*",
            drs: "{level: fullyAutomated}",
            vms: "[]",
            may: "{mayStop: [{name: \"train-*\"}]}",
            pace: "{hostStable: 20s}",
            site: "",
            model: "h100-nvl-94",
            rollout: "{maxUnavailable: 1, maxReboots: 2}",
        }
    }
}

impl Scene {
    pub fn lab(&self) -> Lab {
        let Self { hosts, from, to, host, world, names, drs, vms, may, pace, site, model, rollout } = self;
        let world = format!(
            r#"
apiVersion: poolwright/v1
kind: World
metadata: {{name: scene}}
spec:
  vcenter: {{address: vc.lab, version: 8.0.3, users: [{{name: {USER}, password: "{PASSWORD}"}}]}}
  {world}
  datacenters:
    - path: /Prod/DC1
      clusters:
        - name: gpu-a
          ha: {{enabled: true}}
          drs: {drs}
          vms: {vms}
          hosts:
            - names: "esx-[01-{hosts:02}]"
              driver: {{component: NVD-AIE-800, version: 580.95.02}}
              gpus: [{{model: {model}, count: 2, mode: {from}}}]
              {host}
"#
        );
        let documents = format!(
            r#"
apiVersion: poolwright/v1
kind: Site
metadata: {{name: lab}}
spec:
  vcenter: {{address: vc.lab, credentials: {{user: {USER}, password: "env:LAB"}}}}
  pace: {pace}
  {site}
---
apiVersion: poolwright/v1
kind: GpuPool
metadata: {{name: pool}}
spec:
  hosts: {{site: lab, cluster: gpu-a, names: ["{names}"]}}
  gpuModel: {model}
  gpuCount: 2
  gpus: {to}
  vms: {may}
  rollout: {rollout}
"#
        );
        Lab::new(&world, &documents)
    }

    /// The lab, and the plan of all its hosts.
    pub async fn planned(&self) -> (Lab, Plan) {
        let lab = self.lab();
        let plan = lab.plan().await;
        let planned = if self.names == "esx-*" { self.hosts } else { 1 };
        assert_eq!(plan.hosts.len(), planned as usize, "{:#?} {:#?}", plan.not_acted, plan.findings);
        (lab, plan)
    }
}

/// Calls of a method that the world took, on a host or on any.
pub fn calls(lab: &Lab, method: &str) -> Vec<Write> {
    lab.world.log().into_iter().filter(|write| write.call == method && write.effect).collect()
}

/// How often we called a method, refused calls too: what we asked for, whatever came of it.
pub fn asked(lab: &Lab, method: &str) -> usize {
    lab.world.log().iter().filter(|write| write.call == method && write.who == USER).count()
}

/// Writes to hosts.
pub fn host_writes(lab: &Lab) -> Vec<Write> {
    lab.world.log().into_iter().filter(|write| write.id.starts_with("host-")).collect()
}

/// The only host, or the one of this number.
pub fn host_of(state: &RunState, number: u32) -> &HostState {
    &state.hosts[&HostName(format!("esx-{number:02}"))]
}

/// Why the visit failed, and where.
pub fn failure(host: &HostState) -> String {
    match &host.phase {
        HostPhase::Failed { at, class, error, .. } => format!("{at}: {class}: {error}"),
        other => panic!("{other:?} is no failure"),
    }
}

/// Whether the world has the host in maintenance mode.
pub fn closed(lab: &Lab, number: u32) -> bool {
    lab.world.tally().hosts[&format!("esx-{number:02}")].in_maintenance
}

/// What stands in the marker's field of a host.
pub fn marker(lab: &Lab, number: u32) -> String {
    let snapshot = lab.world.snapshot();
    let host = crate::support::look::host(&snapshot, &format!("esx-{number:02}"));
    host["fields"]["poolwright.run"].as_str().unwrap_or_default().to_owned()
}

/// The hosts of the world, but for the marker's field: once written, it stays as an empty one.
pub fn hosts_as_they_are(lab: &Lab) -> serde_json::Value {
    let mut hosts = lab.world.snapshot()["hosts"].take();
    for host in hosts.as_object_mut().unwrap().values_mut() {
        let fields = host["fields"].as_object_mut().unwrap();
        if fields.get("poolwright.run").is_some_and(|value| value == "") {
            fields.remove("poolwright.run");
        }
    }
    hosts
}

/// How many signals to raise at an event.
type When = Arc<dyn Fn(&Event) -> u32>;

/// Watches a run: keeps its lines, and raises signals when told to.
#[derive(Clone, Default)]
pub struct Watch {
    pub entries: Arc<Mutex<Vec<Entry>>>,
    pub waits: Arc<Mutex<Vec<String>>>,
    /// What was waited for, and how long at most.
    pub limits: Arc<Mutex<Vec<(String, Duration)>>>,
    raise: Option<(rollout::Raise, When)>,
}

impl Watch {
    pub fn events(&self) -> Vec<Event> {
        self.entries.lock().unwrap().iter().map(|entry| entry.e.clone()).collect()
    }
}

impl Sink for Watch {
    fn entry(&mut self, entry: &Entry, _: &RunState) {
        if let Some((raise, when)) = &self.raise {
            (0..when(&entry.e)).for_each(|_| raise.raise(Signal::Interrupt));
        }
        self.entries.lock().unwrap().push(entry.clone());
    }

    fn waiting(&mut self, waiting: &Waiting<'_>) {
        let what = waiting.what.join("; ");
        let limit = waiting.until.duration_since(waiting.since).unsigned_abs();
        self.waits.lock().unwrap().push(format!("{}: {what}", waiting.host));
        self.limits.lock().unwrap().push((what, limit));
    }
}

/// Applies a plan under a watch.
pub async fn watched(lab: &Lab, plan: &Plan) -> (Result<RunState, RunError>, Watch) {
    let fleet = lab.connect().await;
    let (_raise, signals) = interrupt();
    let watch = Watch::default();
    let mut sink = watch.clone();
    let ended = rollout::apply(lab.engine(&fleet, &mut sink, signals), plan).await;
    fleet.close().await.unwrap();
    (ended, watch)
}

/// Applies a plan; so many Ctrl-C come after an event.
pub async fn interrupted(lab: &Lab, plan: &Plan, when: impl Fn(&Event) -> u32 + 'static) -> RunState {
    let fleet = lab.connect().await;
    let (raise, signals) = interrupt();
    let mut sink = Watch { raise: Some((raise, Arc::new(when))), ..Watch::default() };
    let ended = rollout::apply(lab.engine(&fleet, &mut sink, signals), plan).await;
    fleet.close().await.unwrap();
    ended.unwrap()
}

/// Applies a plan; a signal comes after a time.
pub async fn signalled(lab: &Lab, plan: &Plan, after: Duration, signal: Signal) -> RunState {
    let fleet = lab.connect().await;
    let (raise, signals) = interrupt();
    let mut sink = Watch::default();
    let come = async {
        tokio::time::sleep(after).await;
        raise.raise(signal);
    };
    let (ended, ()) = tokio::join!(rollout::apply(lab.engine(&fleet, &mut sink, signals), plan), come);
    fleet.close().await.unwrap();
    ended.unwrap()
}

/// Resumes the only run of the lab.
pub async fn resume(lab: &Lab) -> RunState {
    let run = lab.state.runs().unwrap().remove(0);
    lab.run(async |engine| rollout::resume(engine, &run).await).await.unwrap()
}
