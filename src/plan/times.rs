//! How long the steps take, and the deadlines of the run. Constants carry their reason.

use std::time::Duration;

use super::Step;
use crate::model::Pace;

/// Minutes in a `Duration`.
const fn minutes(n: u64) -> Duration {
    Duration::from_secs(60 * n)
}

/// A host without VMs enters and leaves maintenance in seconds; a minute leaves room for a busy
/// vCenter.
const CLOSE: Duration = minutes(1);
/// The server's own limit for entering is the same. Nothing has to move, so 15 minutes without an
/// end is a fault (vsphere-gpu F35: it never ends by itself).
const CLOSE_DEADLINE: Duration = minutes(15);
/// A configuration write is one synchronous call and one read.
const WRITE: Duration = minutes(1);
/// vCenter's copy of a host's configuration lags the host by up to minutes (vsphere-gpu §3.5).
const WRITE_DEADLINE: Duration = minutes(5);
/// Power-on self test of a server with a terabyte of memory, boot of ESXi and its reconnect; server
/// vendors and administrators speak of 8 to 15 minutes.
const REBOOT: Duration = minutes(12);
/// Three times the long end of that: then somebody has to look at its console (vsphere-gpu F47).
const REBOOT_DEADLINE: Duration = minutes(45);
/// The gate is one read.
const GATE: Duration = minutes(1);
/// Datastores, HA agent and graphics come back some minutes after the host (vsphere-gpu §3.5).
const GATE_DEADLINE: Duration = minutes(15);

impl Step {
    /// How long facts may lag behind a reboot that is proven (vsphere-gpu §3.5: up to minutes) before
    /// what they say is believed.
    pub const SETTLE: Duration = minutes(10);

    /// How long it usually takes.
    pub fn usual(&self, pace: &Pace) -> Duration {
        let stable = Duration::from_secs(pace.host_stable_s.into());
        match self {
            Self::EnterMaintenance | Self::ExitMaintenance => CLOSE,
            Self::SetPassthrough { .. } | Self::SetGraphics { .. } => WRITE,
            Self::Reboot { .. } => REBOOT + stable,
            Self::VerifyHost => GATE,
        }
    }

    /// When it is given up: the state is then read again before anything is concluded.
    pub fn deadline(&self, pace: &Pace) -> Duration {
        let stable = Duration::from_secs(pace.host_stable_s.into());
        match self {
            Self::EnterMaintenance => CLOSE_DEADLINE,
            Self::ExitMaintenance => CLOSE_DEADLINE + GATE_DEADLINE,
            Self::SetPassthrough { .. } | Self::SetGraphics { .. } => WRITE_DEADLINE,
            Self::Reboot { .. } => REBOOT_DEADLINE + stable,
            Self::VerifyHost => GATE_DEADLINE,
        }
    }
}
