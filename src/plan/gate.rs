//! The host gate: what must be true before a host leaves maintenance, and after.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::HostPlan;
use crate::model::{Baseline, Fact, HostView};

/// A check of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GateCheck {
    /// The host answers, and is the one of the plan.
    Identity,
    /// The mode of each GPU of the pool, on active fields, and the assignment policy.
    Signature,
    /// PCI devices: the same as before.
    Devices,
    /// GPUs outside the pool: as before, configured and active.
    Others,
    /// Datastores, uplinks, HA agent, crypto state, alarms: no worse than before.
    Parity,
}

impl fmt::Display for GateCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Identity => "identity",
            Self::Signature => "signature",
            Self::Devices => "devices",
            Self::Others => "other GPUs",
            Self::Parity => "parity",
        })
    }
}

/// What a check of the gate says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// As it should be.
    Passed,
    /// Does not apply now: the HA agent of a host in maintenance is inactive.
    NotNow,
    /// Could not be read, which somebody accepted when the plan was made.
    NotChecked,
    /// Could not be read. Never taken for passed.
    Unverifiable,
    /// Not as it should be.
    Failed,
}

impl Verdict {
    /// Whether the gate opens with this.
    pub fn opens(self) -> bool {
        matches!(self, Self::Passed | Self::NotNow | Self::NotChecked)
    }
}

/// One line of the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GateRead {
    /// Which check.
    pub check: GateCheck,
    /// Of what: a GPU's address, `datastores`, …
    pub subject: String,
    /// What it says.
    pub verdict: Verdict,
    /// What was read and what was expected.
    pub evidence: String,
}

/// Reads the gate. It opens if every line does ([`Verdict::opens`]). `baseline` is the state before
/// the visit, from [`baseline`] or from the marker.
pub fn gate(host: &HostPlan, baseline: Option<&Baseline>, view: &HostView) -> Vec<GateRead> {
    let _ = (host, baseline, view);
    Vec::new()
}

/// The state before the visit, for the marker and the gate.
pub fn baseline(host: &HostPlan, view: &HostView) -> Baseline {
    Baseline::new(&view.parity, device_digest(host, view).known().map_or("?", |digest| digest.as_str()))
}

/// Digest of the device set, and of the state of the GPUs outside the pool: 16 hex characters.
pub fn device_digest(host: &HostPlan, view: &HostView) -> Fact<String> {
    let _ = (host, view);
    Fact::Absent
}
