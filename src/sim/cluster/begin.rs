//! A cluster as it is when the world begins: everything that the document says runs, and has run for a
//! while.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Cluster;
use super::control::GuestDue;
use super::make::owned_by;
use crate::sim::document::{Guest as Spec, Pdb, Workload, WorkloadKind};
use crate::sim::world::guest::{key, set, text};

/// Namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// What of a document cannot be: the place below the cluster, and what is wrong.
pub(in crate::sim) fn check(spec: &Spec, nodes: &[&str]) -> Result<(), (String, String)> {
    if spec.authority().is_none_or(str::is_empty) {
        return Err(("address".to_owned(), format!("`{}` is not `https://HOST:PORT`", spec.address)));
    }
    let mut names = BTreeSet::new();
    for (index, work) in spec.workloads.iter().enumerate() {
        let at = |field: &str| format!("workloads[{index}]{field}");
        if !names.insert((&work.namespace, &work.name)) {
            return Err((at(".name"), format!("`{}` is there twice in `{}`", work.name, work.namespace)));
        }
        if let Some(unknown) = work.nodes.iter().chain(&work.unready_on).find(|name| !nodes.contains(&name.as_str())) {
            return Err((at(""), format!("the cluster has no node `{unknown}`")));
        }
        if work.volume && work.replicas > 1 && work.kind != WorkloadKind::StatefulSet {
            return Err((at(".volume"), "one node at a time can use it: `replicas` must be 1".to_owned()));
        }
        if work.kind == WorkloadKind::Mirror && work.nodes.is_empty() {
            return Err((at(".nodes"), "a static pod stands on the nodes that are named".to_owned()));
        }
        if work.finalizer_for.is_some() && work.finalizer.is_none() {
            return Err((at(".finalizerFor"), "there is no `finalizer`".to_owned()));
        }
        work.pdb.as_ref().map_or(Ok(()), |pdb| bounds(pdb).map_err(|why| (at(".pdb"), why)))?;
    }
    for (index, pdb) in spec.pdbs.iter().enumerate() {
        let at = format!("pdbs[{index}]");
        if !spec.workloads.iter().any(|work| work.namespace == pdb.namespace && work.name == pdb.app) {
            return Err((format!("{at}.app"), format!("`{}` has no workload `{}`", pdb.namespace, pdb.app)));
        }
        bounds(&pdb.budget).map_err(|why| (format!("{at}.budget"), why))?;
    }
    Ok(())
}

fn bounds(pdb: &Pdb) -> Result<(), String> {
    match (pdb.min_available, pdb.max_unavailable) {
        (Some(_), None) | (None, Some(_)) => Ok(()),
        _ => Err("one of `minAvailable` and `maxUnavailable` must be there".to_owned()),
    }
}

impl Cluster<'_> {
    /// Makes everything that the document says. `cordoned` are names of nodes.
    pub fn begin(&mut self, cordoned: &BTreeSet<String>) {
        let spec = self.spec;
        let of_workloads = spec.workloads.iter().map(|work| work.namespace.as_str());
        for name in NAMESPACES.into_iter().chain(of_workloads).collect::<BTreeSet<_>>() {
            let mut metadata = self.metadata("", name);
            set(&mut metadata, &["labels"], json!({"kubernetes.io/metadata.name": name}));
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": metadata,
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
            });
            self.guest.put(&key("namespaces", "", name), namespace, self.now);
        }
        for name in self.guest.machines.keys().cloned().collect::<Vec<_>>() {
            self.begin_node(&name, cordoned.contains(&name));
        }
        for work in &spec.workloads {
            self.begin_workload(work);
        }
        for pdb in &spec.pdbs {
            self.pdb(&pdb.namespace, &pdb.name, &pdb.app, &pdb.budget);
        }
        self.settle();
        self.has_run();
    }

    fn begin_node(&mut self, name: &str, cordoned: bool) {
        let Some(machine) = self.guest.machines.get(name) else { return };
        let (boot, off) = (machine.boots, !machine.runs);
        let at = key("nodes", "", name);
        self.node_up(name, boot);
        self.plugin_up(name, boot);
        if cordoned {
            self.guest.edit(&at, self.now, |node| set(node, &["spec", "unschedulable"], json!(true)));
        }
        if off {
            self.machine_off(name);
            self.node_lost(name, self.now);
        }
        // None of this is a boot that somebody sees.
        self.due.retain(|(_, what)| matches!(what, GuestDue::Heartbeat { .. } | GuestDue::NodeGone { .. }));
    }

    fn begin_workload(&mut self, work: &Workload) {
        let (namespace, name) = (work.namespace.as_str(), work.name.as_str());
        let template = self.template(work);
        let selector = json!({"matchLabels": {"app": name}});
        let spec = json!({"replicas": work.replicas, "selector": selector, "template": template});
        match work.kind {
            WorkloadKind::Deployment => {
                let owner = self.owner("apps/v1", "Deployment", "deployments", namespace, name, spec.clone(), None);
                let set_name = format!("{name}-{}", self.guest.suffix());
                self.owner("apps/v1", "ReplicaSet", "replicasets", namespace, &set_name, spec, Some(&owner));
            }
            WorkloadKind::StatefulSet => {
                self.owner("apps/v1", "StatefulSet", "statefulsets", namespace, name, spec, None);
            }
            WorkloadKind::DaemonSet => {
                let spec = json!({"selector": selector, "template": template});
                self.owner("apps/v1", "DaemonSet", "daemonsets", namespace, name, spec, None);
            }
            WorkloadKind::Job => {
                let spec = json!({
                    "parallelism": work.replicas, "completions": work.replicas, "backoffLimit": 6, "template": template,
                });
                self.owner("batch/v1", "Job", "jobs", namespace, name, spec, None);
            }
            WorkloadKind::Bare => {
                for number in 1..=work.replicas {
                    let pod = if work.replicas == 1 { name.to_owned() } else { format!("{name}-{number}") };
                    self.create_pod(namespace, &pod, &template, None);
                }
            }
            // Shown by the kubelets of its nodes.
            WorkloadKind::Mirror => {}
        }
        if let Some(pdb) = &work.pdb {
            self.pdb(namespace, name, name, pdb);
        }
    }

    #[allow(clippy::too_many_arguments)] // what makes up an object, in the order in which it is written
    fn owner(
        &mut self,
        api: &str,
        kind: &str,
        resource: &str,
        namespace: &str,
        name: &str,
        spec: Value,
        of: Option<&Value>,
    ) -> Value {
        let mut metadata = self.metadata(namespace, name);
        set(&mut metadata, &["generation"], json!(1));
        if let Some(of) = of {
            set(&mut metadata, &["ownerReferences"], owned_by(of));
        }
        let app = spec.pointer("/template/metadata/labels").cloned().unwrap_or_default();
        set(&mut metadata, &["labels"], app);
        let object = json!({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec});
        self.guest.put(&key(resource, namespace, name), object.clone(), self.now);
        object
    }

    /// What was about to start has started long ago.
    fn has_run(&mut self) {
        loop {
            let (starts, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.due).into_iter().partition(|(_, what)| {
                matches!(what, GuestDue::PodRuns(_) | GuestDue::Attached { .. } | GuestDue::BudgetSeen { .. })
            });
            self.due = later;
            if starts.is_empty() {
                break;
            }
            starts.into_iter().for_each(|(_, what)| self.happen(what));
            self.settle();
        }
        let stuck = self.guest.all("pods").filter(|(_, pod)| text(pod, "/status/phase") == "Pending").count();
        tracing::debug!(cluster = %self.spec.name, stuck, "pods without a node when the world begins");
    }
}
