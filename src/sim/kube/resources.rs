//! The resources that the API has.

/// A resource.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Resource {
    /// API group; empty: the core.
    pub group: &'static str,
    pub version: &'static str,
    /// Name in paths and keys; no two groups share one here.
    pub plural: &'static str,
    pub singular: &'static str,
    pub kind: &'static str,
    pub short: &'static [&'static str],
    pub namespaced: bool,
    pub subresources: &'static [&'static str],
}

impl Resource {
    /// `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// As messages name it: `jobs.batch`.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }
}

const fn of(
    group: &'static str,
    plural: &'static str,
    singular: &'static str,
    kind: &'static str,
    namespaced: bool,
) -> Resource {
    Resource { group, version: "v1", plural, singular, kind, short: &[], namespaced, subresources: &[] }
}

/// All of them.
pub(super) const RESOURCES: &[Resource] = &[
    Resource { short: &["cm"], ..of("", "configmaps", "configmap", "ConfigMap", true) },
    Resource { short: &["ev"], ..of("", "events", "event", "Event", true) },
    Resource { short: &["ns"], ..of("", "namespaces", "namespace", "Namespace", false) },
    Resource { short: &["no"], subresources: &["status"], ..of("", "nodes", "node", "Node", false) },
    Resource { short: &["po"], subresources: &["eviction", "log", "status"], ..of("", "pods", "pod", "Pod", true) },
    Resource { short: &["svc"], ..of("", "services", "service", "Service", true) },
    Resource { short: &["ds"], ..of("apps", "daemonsets", "daemonset", "DaemonSet", true) },
    Resource { short: &["deploy"], ..of("apps", "deployments", "deployment", "Deployment", true) },
    Resource { short: &["rs"], ..of("apps", "replicasets", "replicaset", "ReplicaSet", true) },
    Resource { short: &["sts"], ..of("apps", "statefulsets", "statefulset", "StatefulSet", true) },
    of("batch", "jobs", "job", "Job", true),
    of("coordination.k8s.io", "leases", "lease", "Lease", true),
    Resource {
        short: &["pdb"],
        ..of("policy", "poddisruptionbudgets", "poddisruptionbudget", "PodDisruptionBudget", true)
    },
    of("storage.k8s.io", "volumeattachments", "volumeattachment", "VolumeAttachment", false),
];

/// The resource of this name in a group.
pub(super) fn find(group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
    RESOURCES.iter().find(|one| one.group == group && one.version == version && one.plural == plural)
}

/// The groups beside the core, in the order of discovery.
pub(super) const GROUPS: [&str; 5] = ["apps", "batch", "coordination.k8s.io", "policy", "storage.k8s.io"];
