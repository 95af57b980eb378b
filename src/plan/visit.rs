//! The visit of one host: its steps, made from what is there now and what this visit remembers.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Impact, Reboots};
use crate::model::{AssignmentPolicy, Fact, GraphicsType, PciAddress, VgpuMode};

/// The state of one GPU, configured and active, as far as mode changes read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GpuSetting {
    /// `passthruEnabled`.
    pub passthru_enabled: bool,
    /// `passthruActive`.
    pub passthru_active: bool,
    /// `hardwareLabel`.
    pub label: Fact<String>,
    /// Configured graphics type (the device's entry, else the host default).
    pub configured_type: Fact<GraphicsType>,
    /// Configured size mode.
    pub configured_mode: Fact<VgpuMode>,
    /// Active graphics type; absent while the driver does not own the GPU.
    pub active_type: Fact<GraphicsType>,
    /// Active size mode.
    pub active_mode: Fact<VgpuMode>,
}

/// One entry of `UpdatePassthruConfig`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PassthruChange {
    /// Which function.
    pub address: PciAddress,
    /// Whether it should be passed through.
    pub enabled: bool,
    /// Label to set; `Some("")` clears it, `None` leaves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// `passthruEnabled` that is expected before.
    pub from_enabled: bool,
    /// Label that is expected before.
    pub from_label: Fact<String>,
}

/// One entry of `UpdateGraphicsConfig.deviceType`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GraphicsChange {
    /// Which GPU.
    pub address: PciAddress,
    /// Type to set.
    pub graphics_type: GraphicsType,
    /// Size mode to set; `None` leaves it ("if this value is unset, the mode remains unchanged").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vgpu_mode: Option<VgpuMode>,
    /// The state that is expected before.
    pub from: GpuSetting,
    /// The GPU is still passed through: the server may accept the entry and ignore it
    /// (docs/assumptions.md); it is read again after the reboot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_ignored: bool,
}

/// One step of a visit. What it expects to find travels with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// Enter maintenance mode; the host has no VM powered on.
    EnterMaintenance,
    /// `UpdatePassthruConfig` with exactly these entries.
    SetPassthrough {
        /// Entries in address order.
        changes: Vec<PassthruChange>,
    },
    /// `UpdateGraphicsConfig`: the whole configuration as read, with these changes.
    SetGraphics {
        /// Host default to set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        default_type: Option<GraphicsType>,
        /// Assignment policy to set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<AssignmentPolicy>,
        /// Devices in address order.
        devices: Vec<GraphicsChange>,
    },
    /// `RebootHost_Task`, in maintenance; proven by the boot time.
    Reboot {
        /// What is configured and not active, one line each.
        pending: Vec<String>,
    },
    /// The host gate: signature on active fields, device set, other GPUs, parity.
    VerifyHost,
    /// Leave maintenance mode.
    ExitMaintenance,
}

/// One host's steps, made from what is there now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Visit {
    /// How much it disturbs.
    pub impact: Impact,
    /// The steps that are left, in order. A step after a reboot may change when the facts are read
    /// again: the visit is then planned anew.
    pub steps: Vec<Step>,
    /// Reboots of the whole visit, done ones included.
    pub reboots: Reboots,
}

/// What a visit remembers of itself: from the journal's fold, or else from the marker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Memory {
    /// A first effect was sent: slow facts are no longer compared.
    pub begun: bool,
    /// We asked for maintenance: leaving it is ours.
    pub entered: bool,
    /// Reboots done.
    pub reboots: u32,
    /// Boot time before the reboot that was asked for last.
    pub boot_before: Option<Timestamp>,
    /// What was pending when it was asked for: the same after it means that it had no effect.
    pub pending_before: Option<Vec<String>>,
}

/// Why a visit is refused. The host is held; nothing more is sent to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
pub enum Refusal {
    /// The facts that the plan rests on changed.
    #[error("the host changed since the plan: expected {expected}, found {found}")]
    Stale {
        /// What the plan rests on.
        expected: String,
        /// What is there.
        found: String,
    },
    /// Something stands in the way.
    #[error("{0}")]
    Blocked(String),
    /// It would need more reboots than were approved.
    #[error("needs {needed} reboots, approved are {most}: {why}")]
    TooManyReboots {
        /// Reboots that would be needed, done ones included.
        needed: u32,
        /// The bound.
        most: u32,
        /// Why another one.
        why: String,
    },
    /// A reboot changed nothing of what was pending; it is never repeated.
    #[error("the reboot had no effect on: {}", pending.join("; "))]
    RebootWithoutEffect {
        /// What is still pending.
        pending: Vec<String>,
    },
    /// What decides could not be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
}
