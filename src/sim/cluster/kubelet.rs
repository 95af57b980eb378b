//! Kubelets: boot, status, admission, and the life of containers (kubernetes §3.1, §3.8; DESIGN §3,
//! honesty rule 10).

use std::time::Duration;

use serde_json::{Value, json};

use super::Cluster;
use super::control::{GuestDue, Program};
use super::make::boot_id;
use super::pods::{asks, finished};
use crate::sim::document::{Ending, WorkloadKind};
use crate::sim::world::guest::{Machine, deleting, items, key, number, set, text, time, unset};

/// `nodeStatusReportFrequency`: a kubelet reports so often although nothing changed.
const REPORTS: Duration = Duration::from_secs(300);
/// How long a container of a Job runs where no rule says otherwise.
const JOB_RUNS: Duration = Duration::from_secs(20);
/// How long a pod of no workload takes to start.
const STARTS: Duration = Duration::from_secs(2);
/// The first backoff of image pulls.
const PULL_BACKOFF: Duration = Duration::from_secs(10);
/// The label of a node that says what its GPUs are.
const PRODUCT: &str = "nvidia.com/gpu.product";
/// A kubelet notices so late that a container has ended (`plegRelistPeriod`).
const NOTICED: Duration = Duration::from_secs(1);
/// How long a kubelet waits with the second restart of a container; with each further one twice as long (Kubernetes,
/// "Pod Lifecycle", "How Pods handle problems with containers": the first restart is immediate, then 10 s, 20 s, 40 s,
/// ... capped at 300 s). That it begins anew after a container has run for 10 minutes is not modelled.
const CRASH_BACKOFF: Duration = Duration::from_secs(10);
/// The longest of these.
const CRASH_BACKOFF_MOST: Duration = Duration::from_secs(300);

impl Cluster<'_> {
    /// A machine was powered on.
    pub fn machine_on(&mut self, name: &str, built_in: u32, product: Option<String>) {
        let Some(machine) = self.guest.machines.get_mut(name) else { return };
        machine.boots += 1;
        machine.on = true;
        machine.built_in = built_in.saturating_sub(machine.boot.loses);
        machine.product = product;
        machine.gpus = 0;
        let (boot, spec) = (machine.boots, machine.boot.clone());
        if spec.returns {
            let node = name.to_owned();
            self.later(spec.ready.0, GuestDue::NodeUp { node, boot });
        }
    }

    /// A machine was powered off: its kubelet says nothing more, and does not say so; one that was booting never
    /// does.
    pub fn machine_off(&mut self, name: &str) {
        let now = self.now;
        let Some(machine) = self.guest.machines.get_mut(name) else { return };
        machine.on = false;
        let ran = std::mem::take(&mut machine.runs);
        machine.gpus = 0;
        if ran {
            machine.silent_since = Some(now);
            let node = name.to_owned();
            self.later(super::lifecycle::GRACE, GuestDue::NodeLost { node, since: now });
        }
    }

    /// The kubelet of a node is up: it registers, or finds itself registered, and takes stock.
    pub(super) fn node_up(&mut self, name: &str, boot: u32) {
        let boots = |machine: &&mut Machine| machine.boots == boot && machine.on;
        let Some(machine) = self.guest.machines.get_mut(name).filter(boots) else { return };
        machine.runs = true;
        machine.silent_since = None;
        let machine = machine.clone();
        let at = key("nodes", "", name);
        if self.guest.get(&at).is_none() {
            let node = self.node(name, &machine);
            self.guest.put(&at, node, self.now);
        }
        self.report(name, &machine);
        self.lease(name);
        for pod in self.pods_on(name) {
            self.taken_over(&pod);
        }
        let node = || name.to_owned();
        self.later(machine.boot.gpus.0, GuestDue::PluginUp { node: node(), boot });
        self.later(REPORTS, GuestDue::Heartbeat { node: node(), boot });
        if let Some(manager) = &self.spec.driver_manager {
            self.later(manager.after.0, GuestDue::DriverRuns { node: node(), boot });
        }
    }

    /// What a kubelet does after a boot with a pod that was on its node: its containers are gone.
    fn taken_over(&mut self, pod: &str) {
        let Some(object) = self.guest.get(pod).filter(|pod| !finished(pod)) else { return };
        if deleting(object) {
            return self.pod_stops(pod);
        }
        let never = text(object, "/spec/restartPolicy") == "Never";
        let now = self.now;
        self.guest.edit(pod, now, |pod| {
            if never {
                set(pod, &["status", "phase"], json!("Failed"));
                let state = json!({"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}});
                set(pod, &["status", "containerStatuses"], json!([{"name": "main", "ready": false, "state": state}]));
            } else {
                // Admitted again, which is where GPUs that are not registered yet are missed.
                unset(pod, &["status", "startTime"]);
            }
        });
    }

    /// What the container of a pod has printed.
    pub fn printed(&self, pod: &Value) -> String {
        self.rule(pod).and_then(|rule| rule.log.clone()).unwrap_or_default()
    }

    /// The device plugin has registered: only now pods find GPUs.
    pub(super) fn plugin_up(&mut self, name: &str, boot: u32) {
        let up = |machine: &&mut Machine| machine.boots == boot && machine.runs;
        let Some(machine) = self.guest.machines.get_mut(name).filter(up) else { return };
        machine.gpus = machine.built_in;
        let machine = machine.clone();
        self.report(name, &machine);
        self.discover(name, &machine);
    }

    /// GPU feature discovery labels the node with what it finds (kubernetes §3.2). Until then the label of the boot
    /// before stays, and so does one that the document gives.
    fn discover(&mut self, name: &str, machine: &Machine) {
        let Some(product) = machine.product.as_ref().filter(|_| !machine.labels.contains_key(PRODUCT)) else { return };
        let value = json!(product.replace(' ', "-"));
        self.guest.edit(&key("nodes", "", name), self.now, |node| set(node, &["metadata", "labels", PRODUCT], value));
    }

    pub(super) fn heartbeat(&mut self, name: &str, boot: u32) {
        let up = |machine: &&Machine| machine.boots == boot && machine.runs;
        let Some(machine) = self.guest.machines.get(name).filter(up).cloned() else { return };
        self.report(name, &machine);
        self.later(REPORTS, GuestDue::Heartbeat { node: name.to_owned(), boot });
    }

    /// k8s-driver-manager at the start of a driver pod (kubernetes §2.2): uncordons whoever cordoned, unless
    /// the node says that the operator upgrades it.
    pub(super) fn driver_runs(&mut self, name: &str, boot: u32) {
        let runs = self.guest.machines.get(name).is_some_and(|machine| machine.boots == boot && machine.runs);
        let at = key("nodes", "", name);
        let Some(node) = self.guest.get(&at).filter(|_| runs) else { return };
        let upgrades = node.pointer("/metadata/annotations/nvidia.com~1gpu-driver-upgrade-enabled");
        let may = self.spec.driver_manager.as_ref().is_some_and(|manager| manager.uncordons);
        if !may || upgrades == Some(&json!("true")) || node.pointer("/spec/unschedulable") != Some(&json!(true)) {
            return;
        }
        self.guest.edit(&at, self.now, |node| unset(node, &["spec", "unschedulable"]));
        self.programs.push(Program {
            who: "system:serviceaccount:gpu-operator:nvidia-driver",
            object: at,
            call: "patch nodes",
            arguments: "unschedulable=false".to_owned(),
        });
    }

    /// The kubelet writes the status of its node.
    fn report(&mut self, name: &str, machine: &Machine) {
        let (resource, now) = (self.spec.resource.clone(), self.now);
        let at = key("nodes", "", name);
        let Some(mut node) = self.guest.get(&at).cloned() else { return };
        let boot = boot_id(&self.spec.name, name, machine.boots);
        let same_boot = text(&node, "/status/nodeInfo/bootID") == boot;
        set(&mut node, &["status", "nodeInfo", "bootID"], json!(boot));
        // kubernetes §3.1: without its plugin nothing of the resource is allocatable; capacity follows.
        let known = node.pointer("/status/capacity").and_then(|all| all.get(&resource)).is_some();
        if machine.gpus > 0 || known {
            let gpus = json!(machine.gpus.to_string());
            set(&mut node, &["status", "allocatable", &resource], gpus.clone());
            if machine.gpus > 0 || same_boot {
                set(&mut node, &["status", "capacity", &resource], gpus);
            }
        }
        for (kind, status, reason, message) in [
            ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        ] {
            self.condition(&mut node, kind, status, reason, message);
        }
        let mut conditions = items(&node, "/status/conditions").to_vec();
        conditions.iter_mut().for_each(|one| set(one, &["lastHeartbeatTime"], json!(time(now))));
        set(&mut node, &["status", "conditions"], json!(conditions));
        super::lifecycle::untaint(&mut node, super::lifecycle::UNREACHABLE);
        self.guest.put(&at, node, now);
    }

    /// The Lease by which a kubelet says that it lives. Reads show it renewed, as it is every 10 s.
    fn lease(&mut self, name: &str) {
        let at = key("leases", "kube-node-lease", name);
        if self.guest.get(&at).is_none() {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": self.metadata("kube-node-lease", name),
                "spec": {"holderIdentity": name, "leaseDurationSeconds": 40},
            });
            self.guest.put(&at, lease, self.now);
        }
    }

    /// Kubelets look at the pods that are bound to their nodes and not begun.
    pub(super) fn admit_pods(&mut self) {
        let waits = |(_, pod): &(&String, &Value)| {
            !text(pod, "/spec/nodeName").is_empty() && text(pod, "/status/startTime").is_empty() && !finished(pod)
        };
        let pods: Vec<String> = self.guest.all("pods").filter(waits).map(|(key, _)| key.clone()).collect();
        for pod in pods {
            self.admit(&pod);
        }
    }

    fn admit(&mut self, at: &str) {
        let Some(pod) = self.guest.get(at).cloned() else { return };
        let name = text(&pod, "/spec/nodeName");
        if !self.guest.machines.get(name).is_some_and(|machine| machine.runs) || deleting(&pod) {
            return;
        }
        let wanted = asks(&pod, &self.spec.resource);
        let Some(node) = self.guest.get(&key("nodes", "", name)) else { return };
        let available = self.allocatable(node).saturating_sub(self.taken_before(name, at));
        if wanted > available {
            let resource = &self.spec.resource;
            let message = format!(
                "Pod was rejected: Allocate failed due to requested number of devices unavailable for {resource}. \
                 Requested: {wanted}, Available: {available}, which is unexpected"
            );
            return self.guest.edit(at, self.now, |pod| {
                set(
                    pod,
                    &["status"],
                    json!({"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": message}),
                );
            });
        }
        if !self.volumes_attached(&pod) {
            return;
        }
        if !self.is_ruled(&pod) {
            self.decide_rule(&pod);
        }
        let began = time(self.now);
        self.guest.edit(at, self.now, |pod| set(pod, &["status", "startTime"], json!(began)));
        let containers = self.containers(at, &pod);
        if self.rule(&pod).is_some_and(|rule| rule.ends == Ending::NotPulled) {
            return self.later(STARTS, GuestDue::PullFails(containers));
        }
        let takes = self.workload(&pod).map_or(STARTS, |work| work.start.0);
        self.later(takes, GuestDue::PodRuns(containers));
    }

    /// GPUs of a node that pods have which were admitted before.
    fn taken_before(&self, node: &str, this: &str) -> u32 {
        let has = |(key, pod): &(&String, &Value)| {
            text(pod, "/spec/nodeName") == node
                && key.as_str() != this
                && !finished(pod)
                && !text(pod, "/status/startTime").is_empty()
        };
        self.guest.all("pods").filter(has).map(|(_, pod)| asks(pod, &self.spec.resource)).sum()
    }

    pub(super) fn pod_runs(&mut self, at: &str) {
        let Some(pod) = self.guest.get(at).filter(|pod| !deleting(pod) && !finished(pod)).cloned() else { return };
        let work = self.workload(&pod);
        let node = text(&pod, "/spec/nodeName");
        let ready = !work.is_some_and(|work| work.unready_on.iter().any(|name| name == node));
        let mut new = pod.clone();
        let containers: Vec<Value> = items(&pod, "/spec/containers")
            .iter()
            .enumerate()
            .map(|(index, container)| {
                let before = pod.pointer(&format!("/status/containerStatuses/{index}"));
                let restarts = before.map_or(0, |status| number(status, "/restartCount").unwrap_or(0) + 1);
                let mut status = json!({
                    "name": container["name"], "image": container["image"], "ready": ready, "started": true,
                    "restartCount": restarts, "state": {"running": {"startedAt": time(self.now)}},
                });
                if let Some(ended) = before.and_then(|status| status.get("lastState")) {
                    set(&mut status, &["lastState"], ended.clone());
                }
                status
            })
            .collect();
        set(&mut new, &["status", "phase"], json!("Running"));
        set(&mut new, &["status", "containerStatuses"], json!(containers));
        for kind in ["PodReadyToStartContainers", "Initialized", "PodScheduled"] {
            self.condition(&mut new, kind, "True", "", "");
        }
        for kind in ["ContainersReady", "Ready"] {
            let (status, reason) = if ready { ("True", "") } else { ("False", "ContainersNotReady") };
            self.condition(&mut new, kind, status, reason, "");
        }
        self.guest.put(at, new, self.now);
        let of_job = text(&pod, "/spec/restartPolicy") != "Always";
        let takes = match self.rule(&pod) {
            Some(rule) if rule.ends == Ending::Never => None,
            Some(rule) if of_job => Some(rule.takes.0),
            None if of_job && work.is_none_or(|work| work.kind != WorkloadKind::Job) => Some(JOB_RUNS),
            _ => None,
        };
        if let Some(takes) = takes {
            self.later(takes, GuestDue::PodEnds(self.containers(at, &pod)));
        }
    }

    /// An image cannot be pulled: tried again, with a growing backoff between.
    pub(super) fn pull_fails(&mut self, at: &str) {
        let Some(pod) = self.guest.get(at).filter(|pod| !deleting(pod) && !finished(pod)).cloned() else { return };
        let image = text(&pod, "/spec/containers/0/image").to_owned();
        let failed = text(&pod, "/status/containerStatuses/0/state/waiting/reason") == "ErrImagePull";
        let (reason, message) = if failed {
            ("ImagePullBackOff", format!("Back-off pulling image \"{image}\""))
        } else {
            ("ErrImagePull", format!("failed to pull and unpack image \"{image}\": not found"))
        };
        let mut new = pod.clone();
        let state = json!({"waiting": {"reason": reason, "message": message}});
        let status = json!({
            "name": pod["spec"]["containers"][0]["name"], "image": image, "ready": false, "started": false,
            "restartCount": 0, "state": state,
        });
        set(&mut new, &["status", "containerStatuses"], json!([status]));
        for kind in ["ContainersReady", "Ready"] {
            self.condition(&mut new, kind, "False", "ContainersNotReady", "containers with unready status: [main]");
        }
        self.guest.put(at, new, self.now);
        if !failed {
            self.later(PULL_BACKOFF, GuestDue::PullFails(self.containers(at, &pod)));
        }
    }

    /// The containers of a pod have run their time.
    pub(super) fn pod_ends(&mut self, at: &str) {
        let Some(pod) = self.guest.get(at).filter(|pod| !finished(pod)) else { return };
        let code = match self.rule(pod).map(|rule| &rule.ends) {
            Some(Ending::Fails(code)) => *code,
            _ => 0,
        };
        if code != 0 && text(pod, "/spec/restartPolicy") == "OnFailure" {
            return self.crashed(at, code);
        }
        self.ended(at, code, "");
    }

    /// A container has failed, and is started anew in its pod: at once the first time, then after a back-off.
    fn crashed(&mut self, at: &str, code: i32) {
        let Some(mut pod) = self.guest.get(at).filter(|pod| !deleting(pod)).cloned() else { return };
        let name = text(&pod, "/metadata/name").to_owned();
        let restarts = number(&pod, "/status/containerStatuses/0/restartCount").unwrap_or(0);
        let wait = crash_backoff(restarts);
        let ended = json!({"terminated": {"exitCode": code, "reason": "Error", "finishedAt": time(self.now)}});
        let mut statuses = items(&pod, "/status/containerStatuses").to_vec();
        for status in &mut statuses {
            let container = text(status, "/name").to_owned();
            let state = match wait {
                NOTICED => ended.clone(),
                wait => {
                    let seconds = wait.as_secs();
                    let message = format!("back-off {seconds}s restarting failed container={container} pod={name}");
                    json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}})
                }
            };
            set(status, &["state"], state);
            set(status, &["lastState"], ended.clone());
            set(status, &["ready"], json!(false));
            set(status, &["started"], json!(false));
        }
        set(&mut pod, &["status", "containerStatuses"], json!(statuses));
        for kind in ["ContainersReady", "Ready"] {
            self.condition(&mut pod, kind, "False", "ContainersNotReady", "containers with unready status: [main]");
        }
        self.guest.put(at, pod.clone(), self.now);
        self.later(wait, GuestDue::PodRestarts(self.containers(at, &pod)));
    }

    /// The container of a pod is started anew.
    pub(super) fn pod_restarts(&mut self, at: &str) {
        let Some(pod) = self.guest.get(at).filter(|pod| !deleting(pod) && !finished(pod)).cloned() else { return };
        self.decide_rule(&pod);
        self.pod_runs(at);
    }

    /// Writes that the containers of a pod have ended.
    fn ended(&mut self, at: &str, code: i32, reason: &str) {
        let now = self.now;
        let Some(mut pod) = self.guest.get(at).cloned() else { return };
        let reason = match (reason, code) {
            ("", 0) => "Completed",
            ("", _) => "Error",
            (reason, _) => reason,
        };
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        set(&mut pod, &["status", "phase"], json!(phase));
        let statuses: Vec<Value> = items(&pod, "/status/containerStatuses")
            .iter()
            .map(|status| {
                let mut status = status.clone();
                set(&mut status, &["ready"], json!(false));
                let state = json!({"terminated": {"exitCode": code, "reason": reason, "finishedAt": time(now)}});
                set(&mut status, &["state"], state);
                status
            })
            .collect();
        set(&mut pod, &["status", "containerStatuses"], json!(statuses));
        for kind in ["ContainersReady", "Ready"] {
            let why = if code == 0 { "PodCompleted" } else { "PodFailed" };
            self.condition(&mut pod, kind, "False", why, "");
        }
        self.guest.put(at, pod, now);
    }

    /// The containers of a pod that is being deleted have ended: the kubelet deletes it for good, unless
    /// finalizers keep it.
    pub(super) fn pod_stops(&mut self, at: &str) {
        let Some(pod) = self.guest.get(at).filter(|pod| deleting(pod)).cloned() else { return };
        if !finished(&pod) {
            self.ended(at, 0, "");
        }
        let held = self.workload(&pod).filter(|work| work.finalizer.is_some()).and_then(|work| work.finalizer_for);
        if let Some(span) = held {
            let uid = text(&pod, "/metadata/uid").to_owned();
            self.later(span.0, GuestDue::Unheld { pod: at.to_owned(), uid });
        }
        self.guest.edit(at, self.now, |pod| set(pod, &["metadata", "deletionGracePeriodSeconds"], json!(0)));
    }

    /// Somebody takes the finalizer of a workload off its pod.
    pub(super) fn unheld(&mut self, at: &str) {
        self.guest.edit(at, self.now, |pod| unset(pod, &["metadata", "finalizers"]));
    }
}

/// How long a kubelet waits until it starts a container anew that it has so often already.
fn crash_backoff(restarts: i64) -> Duration {
    match u32::try_from(restarts).unwrap_or(0) {
        0 => NOTICED,
        restarts => CRASH_BACKOFF.saturating_mul(2_u32.saturating_pow(restarts - 1)).min(CRASH_BACKOFF_MOST),
    }
}
