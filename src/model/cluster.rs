//! A cluster as seen: whether DRS empties a host by itself, what HA reserves, and what DRS complains of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::gpu::wire_enum;
use super::{Fact, MoRef};

/// What was read of a cluster (vsphere-gpu §1.8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterView {
    /// `ClusterComputeResource` reference.
    pub moref: MoRef,
    /// `configurationEx.drsConfig` and `drsVmConfig`.
    pub drs: Fact<Drs>,
    /// `configurationEx.dasConfig`, the admission control. Absent where HA is off.
    pub ha_admission: Fact<HaAdmission>,
    /// `drsFault`: why DRS could not do what it wants to, at its last run.
    pub drs_faults: Fact<Vec<DrsFault>>,
}

/// How DRS is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Drs {
    /// `enabled`.
    pub enabled: Fact<bool>,
    /// `defaultVmBehavior`: of VMs without an override.
    pub level: Fact<DrsLevel>,
    /// `enableVmBehaviorOverrides`: whether the overrides of behaviour count.
    pub overrides_count: Fact<bool>,
    /// `option`: the advanced options.
    pub options: BTreeMap<String, String>,
    /// `drsVmConfig`: VMs that are set otherwise.
    pub overrides: Vec<DrsOverride>,
}

impl Drs {
    /// `-1`: DRS evacuates VMs with a vGPU from a host that enters maintenance; with anything else
    /// it does not even recommend (vsphere-gpu §1.16).
    pub const VGPU_EVACUATION: &'static str = "VgpuMMAutomationTimeoutSecs";
}

/// `ClusterDrsVmConfigInfo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DrsOverride {
    /// The VM.
    pub vm: MoRef,
    /// False: DRS never moves it, and the host that it runs on never gets empty.
    pub enabled: Fact<bool>,
    /// Its own level.
    pub level: Fact<DrsLevel>,
}

wire_enum! {
    /// `DrsBehavior`: how much DRS does without asking.
    DrsLevel {
        /// It recommends.
        Manual = "manual",
        /// It places VMs at power-on and recommends the rest.
        PartiallyAutomated = "partiallyAutomated",
        /// It places and moves.
        FullyAutomated = "fullyAutomated",
    }
}

/// Admission control of HA, while it is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HaAdmission {
    /// `admissionControlEnabled`: power-on and entering maintenance may be refused to keep a reserve.
    pub enabled: Fact<bool>,
    /// Wire type of `admissionControlPolicy`. Absent if there is none.
    pub policy: Fact<String>,
    /// Hosts that are kept free for failover; none runs VMs before that.
    pub failover_hosts: Vec<MoRef>,
}

/// What DRS complains of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DrsFault {
    /// `ClusterDrsFaults.reason`: what DRS was about, `hostMaint`.
    pub about: String,
    /// The VM; absent where it is not about one.
    pub vm: Fact<MoRef>,
    /// Why, one for each deepest cause.
    pub reasons: Vec<DrsReason>,
}

/// One reason of a [`DrsFault`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrsReason {
    /// The host that it is about; absent where it is about none.
    pub host: Fact<MoRef>,
    /// A sentence from the outside in to the deepest cause, with the types of the faults.
    pub said: String,
}
