//! The marker: what stands on the live host object while a visit is under way (FORMATS "Marker").
//!
//! It is enough, with the plan, to resume or release a host when the journal is gone.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Parity, PciAddress, RunId, Tally};

/// The value of the custom field `poolwright.run`, compact JSON of at most 2,000 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marker {
    /// Version of the format: 1.
    pub v: u32,
    /// The run that wrote it.
    pub run: RunId,
    /// The plan, its first 16 characters.
    pub plan: String,
    /// `hardware.systemInfo.uuid` of the host.
    pub host: String,
    /// How far the visit is.
    pub phase: MarkerPhase,
    /// When it was written, by the server's clock.
    pub at: Timestamp,
    /// Reboots that are proven, and the most that are allowed.
    pub reboots: [u32; 2],
    /// The reboot that was asked for last; none before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastReboot>,
    /// Compensations: kind, subject, value before.
    pub arm: Vec<[String; 3]>,
    /// Nodes that are cordoned, or about to be: guest cluster, name, UID.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<[String; 3]>,
    /// State before the visit.
    pub base: Baseline,
}

/// A reboot that was asked for: enough to find its task, to know it by the boot time, and never to
/// repeat one that had no effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastReboot {
    /// When it was asked for, by the server's clock; none once a later boot time was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Timestamp>,
    /// Boot time before it.
    pub boot: Timestamp,
    /// What was pending before it, each with its GPUs; nothing once something else was written.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pend: BTreeMap<String, Vec<PciAddress>>,
}

impl Marker {
    /// The name of the custom field on `HostSystem`.
    pub const FIELD: &str = "poolwright.run";
    /// The version that this program writes.
    pub const VERSION: u32 = 1;
    /// The most bytes that are written. The server's own limit is not known (docs/assumptions.md).
    pub const LIMIT: usize = 2_000;
}

/// How far a visit is, as far as the live object tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MarkerPhase {
    /// Written, nothing done.
    Prechecking,
    /// Nodes are cordoned and drained; nothing is done to the host.
    Draining,
    /// Entering maintenance.
    Closing,
    /// Modes are written; only forward from here.
    Changing,
    /// A reboot was asked for.
    Rebooting,
    /// The host gate.
    Verifying,
    /// Leaving maintenance.
    Exiting,
    /// The visit failed; the host is left closed.
    Failed,
    /// Done; only the marker is left.
    Released,
}

impl MarkerPhase {
    /// Whether modes may have been written. A failed visit does not say how far it was: it counts.
    pub fn is_changed(self) -> bool {
        match self {
            Self::Prechecking | Self::Draining | Self::Closing => false,
            Self::Changing | Self::Rebooting | Self::Verifying | Self::Exiting | Self::Failed | Self::Released => true,
        }
    }
}

impl fmt::Display for MarkerPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prechecking => "prechecking",
            Self::Draining => "draining",
            Self::Closing => "closing",
            Self::Changing => "changing",
            Self::Rebooting => "rebooting",
            Self::Verifying => "verifying",
            Self::Exiting => "exiting",
            Self::Failed => "failed",
            Self::Released => "released",
        })
    }
}

/// The state before the visit, short: equal or better passes the parity gate when the journal is
/// lost. `?` stands for what could not be read, `-` for what is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Accessible datastores, `12/12`.
    pub ds: String,
    /// Uplinks with link, `4/4`.
    pub up: String,
    /// HA agent.
    pub das: String,
    /// Crypto state.
    pub crypto: String,
    /// Digest of the device set and of the state of GPUs outside the pool, 16 hex characters.
    pub dev: String,
    /// Red alarms.
    pub alarms: String,
}

impl Baseline {
    /// The baseline of this parity and device digest.
    pub fn new(parity: &Parity, device_digest: &str) -> Self {
        let Parity { datastores, uplinks, ha, crypto, alarms } = parity;
        let tally = |fact: &super::Fact<Tally>| text(fact.as_ref().map(ToString::to_string));
        Self {
            ds: tally(datastores),
            up: tally(uplinks),
            das: text(ha.clone()),
            crypto: text(crypto.clone()),
            dev: device_digest.to_owned(),
            alarms: text(alarms.as_ref().map(ToString::to_string)),
        }
    }
}

fn text(fact: super::Fact<String>) -> String {
    match fact {
        super::Fact::Known(value) => value,
        super::Fact::Absent => "-".to_owned(),
        super::Fact::Unknown { .. } => "?".to_owned(),
    }
}
