//! Objects as they are first written.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Cluster;
use crate::sim::document::{Pdb, Workload, WorkloadKind};
use crate::sim::world::guest::{Guest, Machine, key, set, text, time};
use crate::sim::world::uuid;

/// The image of workloads of the document; nobody pulls it.
const IMAGE: &str = "registry.example/app:1";

/// `metadata` of a new object.
pub(super) fn metadata(cluster: &str, guest: &mut Guest, namespace: &str, name: &str, now: Timestamp) -> Value {
    let number = guest.number();
    let mut metadata = json!({"name": name});
    if !namespace.is_empty() {
        set(&mut metadata, &["namespace"], json!(namespace));
    }
    set(&mut metadata, &["uid"], json!(uuid(&format!("{cluster} {namespace} {name} {number}"))));
    set(&mut metadata, &["creationTimestamp"], json!(time(now)));
    metadata
}

/// `ownerReferences` for what an object controls.
pub(super) fn owned_by(owner: &Value) -> Value {
    json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }])
}

/// The boot id of a machine.
pub(super) fn boot_id(cluster: &str, node: &str, boot: u32) -> String {
    uuid(&format!("{cluster} {node} boot {boot}"))
}

impl Cluster<'_> {
    /// `metadata` of a new object.
    pub(super) fn metadata(&mut self, namespace: &str, name: &str) -> Value {
        metadata(&self.spec.name, self.guest, namespace, name, self.now)
    }

    /// A node as its kubelet registers it.
    pub(super) fn node(&mut self, name: &str, machine: &Machine) -> Value {
        let mut labels = json!({
            "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
        });
        machine.labels.iter().for_each(|(key, value)| set(&mut labels, &[key], json!(value)));
        let mut node = json!({"apiVersion": "v1", "kind": "Node", "metadata": self.metadata("", name), "spec": {}});
        set(&mut node, &["metadata", "labels"], labels);
        if !machine.annotations.is_empty() {
            set(&mut node, &["metadata", "annotations"], json!(machine.annotations));
        }
        if let Some(id) = &machine.provider_id {
            set(&mut node, &["spec", "providerID"], json!(id));
        }
        let octet = 11 + self.guest.all("nodes").count() % 240;
        set(
            &mut node,
            &["status"],
            json!({
                "capacity": {"cpu": "32", "memory": "263921720Ki", "pods": "110"},
                "allocatable": {"cpu": "32", "memory": "263819320Ki", "pods": "110"},
                "conditions": [],
                "addresses": [
                    {"type": "InternalIP", "address": format!("10.10.0.{octet}")}, {"type": "Hostname", "address": name},
                ],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
                "nodeInfo": {
                    "machineID": uuid(&format!("{name} machine")).replace('-', ""),
                    "systemUUID": machine.system_uuid.clone().unwrap_or_default(),
                    "bootID": boot_id(&self.spec.name, name, machine.boots),
                    "kernelVersion": "6.8.0-45-generic", "osImage": "Ubuntu 24.04.3 LTS",
                    "containerRuntimeVersion": "containerd://2.1.4", "kubeletVersion": self.spec.version,
                    "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64",
                },
            }),
        );
        node
    }

    /// The template of a workload's pods.
    pub(super) fn template(&self, work: &Workload) -> Value {
        let mut container = json!({"name": "main", "image": IMAGE, "resources": {}});
        if work.gpu > 0 {
            let amount = json!({self.spec.resource.as_str(): work.gpu.to_string()});
            set(&mut container, &["resources"], json!({"limits": amount, "requests": amount}));
        }
        let policy = if work.kind == WorkloadKind::Job { "Never" } else { "Always" };
        let mut spec = json!({
            "containers": [container], "restartPolicy": policy,
            "terminationGracePeriodSeconds": work.grace.0.as_secs(), "priority": work.priority,
            "tolerations": tolerations(work.kind == WorkloadKind::DaemonSet),
        });
        if !work.nodes.is_empty() && work.kind != WorkloadKind::DaemonSet {
            let term = json!([{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": work.nodes},
            ]}]);
            let required = json!({"nodeSelectorTerms": term});
            let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
            set(&mut spec, &["affinity"], affinity);
        }
        let mut volumes = Vec::new();
        if work.empty_dir {
            volumes.push(json!({"name": "scratch", "emptyDir": {}}));
        }
        if work.volume {
            let claim = format!("data-{}", work.name);
            volumes.push(json!({"name": "data", "persistentVolumeClaim": {"claimName": claim}}));
        }
        if !volumes.is_empty() {
            set(&mut spec, &["volumes"], json!(volumes));
        }
        json!({"metadata": {"labels": {"app": work.name}}, "spec": spec})
    }

    /// Writes a pod from a template, of this owner.
    pub(super) fn create_pod(&mut self, namespace: &str, name: &str, template: &Value, owner: Option<&Value>) -> Value {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": self.metadata(namespace, name)});
        for field in ["labels", "annotations", "finalizers"] {
            if let Some(value) = template.pointer(&format!("/metadata/{field}")) {
                set(&mut pod, &["metadata", field], value.clone());
            }
        }
        if let Some(owner) = owner {
            set(&mut pod, &["metadata", "ownerReferences"], owned_by(owner));
        }
        if let Some(finalizer) = self.workload(&pod).and_then(|work| work.finalizer.as_ref()) {
            set(&mut pod, &["metadata", "finalizers"], json!([finalizer]));
        }
        set(&mut pod, &["spec"], template.get("spec").cloned().unwrap_or_default());
        default_pod(&mut pod);
        self.guest.put(&key("pods", namespace, name), pod.clone(), self.now);
        pod
    }

    /// An object that somebody creates, with what the server makes up of it.
    pub fn fresh(&mut self, namespace: &str, name: &str, mut object: Value) -> Value {
        let made = self.metadata(namespace, name);
        for (field, value) in made.as_object().into_iter().flatten() {
            set(&mut object, &["metadata", field], value.clone());
        }
        if text(&object, "/kind") == "Pod" {
            default_pod(&mut object);
        }
        object
    }

    /// A budget for the pods of an app.
    pub(super) fn pdb(&mut self, namespace: &str, name: &str, app: &str, budget: &Pdb) {
        let mut spec = json!({"selector": {"matchLabels": {"app": app}}});
        let bounds = [("minAvailable", budget.min_available), ("maxUnavailable", budget.max_unavailable)];
        for (field, value) in bounds {
            if let Some(value) = value {
                set(&mut spec, &[field], json!(value));
            }
        }
        if budget.always_allow_unhealthy {
            set(&mut spec, &["unhealthyPodEvictionPolicy"], json!("AlwaysAllow"));
        }
        let mut metadata = self.metadata(namespace, name);
        set(&mut metadata, &["generation"], json!(1));
        let pdb = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec});
        self.guest.put(&key("poddisruptionbudgets", namespace, name), pdb, self.now);
    }
}

/// What the API server fills in of a pod.
pub(super) fn default_pod(pod: &mut Value) {
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("priority", json!(0)),
    ] {
        if pod.pointer(&format!("/spec/{field}")).is_none() {
            set(pod, &["spec", field], value);
        }
    }
    // The admission plugin DefaultTolerationSeconds.
    let mut all = pod.pointer("/spec/tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    for taint in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let taint = json!({"key": taint, "effect": "NoExecute"});
        if !super::pods::tolerates(pod, &taint) {
            let (key, effect) = (text(&taint, "/key"), text(&taint, "/effect"));
            all.push(json!({"key": key, "operator": "Exists", "effect": effect, "tolerationSeconds": 300}));
        }
    }
    set(pod, &["spec", "tolerations"], json!(all));
    set(pod, &["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
}

/// What a DaemonSet's pods tolerate, which its controller adds, and what GPU pods usually do.
fn tolerations(daemon: bool) -> Value {
    let mut all = vec![json!({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"})];
    if daemon {
        for (key, effect) in [
            ("node.kubernetes.io/not-ready", "NoExecute"),
            ("node.kubernetes.io/unreachable", "NoExecute"),
            ("node.kubernetes.io/disk-pressure", "NoSchedule"),
            ("node.kubernetes.io/memory-pressure", "NoSchedule"),
            ("node.kubernetes.io/pid-pressure", "NoSchedule"),
            ("node.kubernetes.io/unschedulable", "NoSchedule"),
        ] {
            all.push(json!({"key": key, "operator": "Exists", "effect": effect}));
        }
    }
    json!(all)
}
