//! Names, paths and ids of hosts and clusters: cheap to read, and enough to expand selectors.

use serde::{Deserialize, Serialize};

use super::{HostName, MoRef};

/// A cluster: its reference, name and inventory path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRef {
    /// `ClusterComputeResource` reference.
    pub moref: MoRef,
    /// Name as shown (percent escapes of vim25 undone).
    pub name: String,
    /// Path from the root: `/Prod/EU/DC1/host/gpu-a`. A `/` inside a name is written `%2f`.
    pub path: String,
}

/// A host: its reference, name, path and cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostRef {
    /// `HostSystem` reference.
    pub moref: MoRef,
    /// Name as shown.
    pub name: HostName,
    /// Inventory path of the host.
    pub path: String,
    /// Inventory path of its cluster; a standalone host has the path of its compute resource.
    pub cluster: String,
}

/// What a vCenter holds, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roster {
    /// Clusters in path order.
    pub clusters: Vec<ClusterRef>,
    /// Hosts in path order.
    pub hosts: Vec<HostRef>,
    /// Objects that went away or could not be read while the roster was made, one line each.
    pub notes: Vec<String>,
}
