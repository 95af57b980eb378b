//! What git says, host selectors expanded; each value with the place it came from.

use std::collections::BTreeMap;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::{AssignmentPolicy, At, HostName, HostRef, Mode, PciAddress, ShellWay, VmRules};

/// The wish of all pools of one site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Desired {
    /// Name of the Site document.
    pub site: At<String>,
    /// How long to look before a state counts as stable.
    pub pace: Pace,
    /// How the shells of the hosts are reached.
    pub shell: ShellWay,
    /// Pools in name order. A host belongs to one pool.
    pub pools: Vec<DesiredPool>,
}

/// Durations of a site, in seconds, each at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pace {
    /// How long a host must answer without a flip after a reboot.
    pub host_stable_s: u32,
    /// How long a value that we wrote may take to read back.
    pub read_back_s: u32,
    /// Between the two looks that find a node drained.
    #[serde(default = "Pace::drain_recheck")]
    pub drain_recheck_s: u32,
}

impl Pace {
    /// A pod that was bound just before the cordon shows within seconds.
    fn drain_recheck() -> u32 {
        10
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self { host_stable_s: 60, read_back_s: 30, drain_recheck_s: Self::drain_recheck() }
    }
}

/// One pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DesiredPool {
    /// Its name.
    pub name: At<String>,
    /// Path of the cluster that `hosts.cluster` names.
    pub cluster: At<String>,
    /// Catalogue id of the GPU model.
    pub gpu_model: At<String>,
    /// GPUs that each host must have.
    pub gpu_count: At<u32>,
    /// Settings of the whole host.
    pub host: HostSettings,
    /// Groups of the host's GPUs.
    pub gpus: Vec<GpuGroup>,
    /// What may be done to the VMs on the hosts.
    pub vms: VmRules,
    /// Guest clusters whose nodes run on the hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<GuestRules>,
    /// Rules of the rollout.
    pub rollout: RolloutRules,
    /// Findings that somebody accepted.
    pub accept: Vec<Accept>,
    /// Hosts that the selectors name, in name order, each with the place of the selector.
    pub hosts: Vec<HostPin>,
}

/// A host of the pool, and the selector that chose it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostPin {
    /// Who it is.
    pub host: HostRef,
    /// The pattern that matched.
    pub selector: At<String>,
}

/// Host-wide settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostSettings {
    /// Assignment policy; none leaves it as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<At<AssignmentPolicy>>,
    /// Driver that must be there: checked, never installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverPin>,
}

/// The host driver that a pool expects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriverPin {
    /// Name of the component, `NVD-AIE-800`.
    pub component: At<String>,
    /// Version; a host prints it with a suffix, so it must match up to a `.` or `-`.
    pub version: At<String>,
}

/// Some of a host's GPUs and what they should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GpuGroup {
    /// Which.
    pub select: At<GpuSelect>,
    /// The mode.
    pub mode: At<Mode>,
    /// Combinations of vGPU types that one GPU must be able to start; each by type and count.
    pub offers: Vec<At<BTreeMap<String, u32>>>,
}

/// Which GPUs of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GpuSelect {
    /// All of them.
    All,
    /// Those at these addresses.
    Addresses(Vec<At<PciAddress>>),
    /// Those of this NUMA node.
    NumaNode(u32),
    /// The first so many in address order that neither another kind of group nor a `count` group
    /// before this one selects.
    Count(u32),
}

/// Rules of the rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutRules {
    /// Hosts of the pool that may be out of service, whatever the cause.
    pub max_unavailable: At<u32>,
    /// Reboots of one host that are approved.
    pub max_reboots: At<u32>,
    /// What to do with a host that is in maintenance and has no marker.
    pub found_in_maintenance: FoundInMaintenance,
    /// What to do with a host whose nodes do not pass their gate.
    #[serde(default)]
    pub on_validation_failure: OnValidationFailure,
}

/// What to do with a host whose nodes do not pass their gate. They stay cordoned either way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnValidationFailure {
    /// Stop the VMs that the visit started, and take the host back into maintenance mode.
    #[default]
    CloseHost,
    /// Leave the host open and the VMs running.
    KeepOpen,
}

/// A guest cluster whose nodes run on the hosts of a pool, and what is done with them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GuestRules {
    /// Its name in the Site.
    pub cluster: At<String>,
    /// What each node must offer to pods.
    pub expect: Expect,
    /// How long a node may take to be drained, in seconds.
    pub drain_timeout_s: u32,
    /// Jobs that have to succeed on a node before it is uncordoned, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validate: Vec<JobTemplate>,
}

/// What a node must offer to pods: `status.allocatable`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expect {
    /// An extended resource, `nvidia.com/gpu`.
    pub resource: At<String>,
    /// How many of it, neither more nor less.
    pub per_node: At<u32>,
}

/// A Job that validates a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobTemplate {
    /// The file that it was made from.
    pub file: At<String>,
    /// The Job, its variables filled in: a `batch/v1` object. Its name and its node are given at the visit.
    pub job: serde_json::Value,
}

/// How long a Job may take beyond its own deadline, in seconds: that counts from when its controller has seen it
/// and no queue holds it back, and its pods have their grace to end.
const AROUND_A_JOB_S: u64 = 300;

impl JobTemplate {
    /// How long the Job may run, in seconds (`spec.activeDeadlineSeconds`, its image's pull counted in). One that
    /// does not say so gets half an hour: a test of all GPUs of a node takes minutes, and one that hangs must end
    /// before the person who waits for the window gives up.
    pub fn longest_s(job: &serde_json::Value) -> u64 {
        job["spec"]["activeDeadlineSeconds"].as_u64().unwrap_or(1800)
    }
}

impl GuestRules {
    /// How long all Jobs of one node may take, one after the other, in seconds.
    pub fn validation_s(&self) -> u32 {
        let each = self.validate.iter().map(|template| JobTemplate::longest_s(&template.job));
        let all = each.fold(0, |sum: u64, longest| sum.saturating_add(longest).saturating_add(AROUND_A_JOB_S));
        u32::try_from(all).unwrap_or(u32::MAX)
    }
}

/// What to do with a host found in maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FoundInMaintenance {
    /// Leave it alone and name it.
    Hold,
    /// Work on it and leave it in maintenance.
    Change,
}

/// A finding that somebody accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Accept {
    /// Id of the finding.
    pub finding: At<String>,
    /// Hosts it is accepted for; empty means all of the pool.
    pub hosts: Vec<At<HostName>>,
    /// Why.
    pub reason: String,
    /// Last day (UTC) on which it holds.
    pub until: At<Date>,
}
