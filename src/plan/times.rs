//! How long the steps take, and the deadlines of the run. Constants carry their reason.

use std::time::Duration;

use super::{Moving, Step};
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
/// The task is seen as soon as vCenter took the call.
const ASK: Duration = minutes(1);
/// A busy vCenter queues tasks.
const ASK_DEADLINE: Duration = minutes(5);
/// A guest with a GPU unloads its driver and ends its services.
const STOP: Duration = minutes(2);
/// FORMATS rule 4; a guest that takes longer waits for somebody.
const STOP_DEADLINE: Duration = minutes(5);
/// The memory of a VM with a GPU is all reserved and has to be found free first.
const START: Duration = minutes(2);
/// A large VM with passed-through GPUs maps all of its memory before its firmware starts: minutes for
/// each terabyte.
const START_DEADLINE: Duration = minutes(15);
/// What a move may take beyond what it usually does: memory that the guest changes is sent again.
const MOVE_FACTOR: u32 = 3;
/// A configuration write is one synchronous call and one read.
const WRITE: Duration = minutes(1);
/// vCenter's copy of a host's configuration lags the host by up to minutes (vsphere-gpu §3.5).
const WRITE_DEADLINE: Duration = minutes(5);
/// The SSH service starts in seconds; a login with a busy driver takes some more.
const SHELL: Duration = minutes(1);
/// The host's own copy of its services lags as other facts do.
const SHELL_DEADLINE: Duration = minutes(5);
/// The daemon ends and starts in seconds.
const MONITOR: Duration = minutes(1);
/// Three times as long as the host itself lets its script run (`shell::Command::kill_after`).
const MONITOR_DEADLINE: Duration = minutes(3);
/// A switch of MIG resets the GPU; vCenter shows it after a refresh.
const MIG: Duration = minutes(1);
/// Each GPU has two minutes until its command is killed, and what vCenter shows lags.
const MIG_DEADLINE: Duration = minutes(10);
/// Power-on self test of a server with a terabyte of memory, boot of ESXi and its reconnect; server
/// vendors and administrators speak of 8 to 15 minutes.
const REBOOT: Duration = minutes(12);
/// Three times the long end of that: then somebody has to look at its console (vsphere-gpu F47).
const REBOOT_DEADLINE: Duration = minutes(45);
/// The gate is one read.
const GATE: Duration = minutes(1);
/// Datastores, HA agent and graphics come back some minutes after the host (vsphere-gpu §3.5).
const GATE_DEADLINE: Duration = minutes(15);

/// A write to an API server takes less than a second, and a minute leaves room for a busy one.
const PATCH: Duration = minutes(1);
/// An API server that is upgraded is away for minutes.
const PATCH_DEADLINE: Duration = minutes(5);
/// Most pods end within their grace of 30 s, and their replacements become ready within minutes.
const DRAIN: Duration = minutes(5);
/// The guest boots and its driver container starts.
const NODE: Duration = minutes(5);
/// A driver that is not precompiled is compiled at the first boot, 15 minutes and more (kubernetes §6.6:
/// driver and plugin 30 minutes, allocatable 10 minutes).
const NODE_DEADLINE: Duration = minutes(40);
/// A node that did not boot is Ready as before.
const STAYED: Duration = minutes(1);
/// A VM that stood still during its move missed heartbeats: the node is not Ready 40 s after the last, and is again
/// with the next, within minutes (kubernetes §6.6).
const STAYED_DEADLINE: Duration = minutes(10);
/// A Job that adds vectors on the GPUs; its image may have to be pulled.
const VALIDATE: Duration = minutes(3);

impl Step {
    /// How long facts may lag behind a reboot that is proven (vsphere-gpu §3.5: up to minutes) before
    /// what they say is believed.
    pub const SETTLE: Duration = minutes(10);

    /// How long it usually takes.
    pub fn usual(&self, pace: &Pace) -> Duration {
        let stable = Duration::from_secs(pace.host_stable_s.into());
        match self {
            Self::StartClosing { .. } => ASK,
            Self::StopVm { .. } => STOP,
            Self::EnterMaintenance { moves } => CLOSE + moving(moves),
            Self::ExitMaintenance => CLOSE,
            Self::SetPassthrough { .. } | Self::SetGraphics { .. } => WRITE,
            Self::StartShell => SHELL,
            Self::StopMonitor | Self::StartMonitor => MONITOR,
            Self::SetMig { .. } => MIG,
            Self::Reboot { .. } => REBOOT + stable,
            Self::VerifyHost => GATE,
            Self::StartVm { .. } => START,
            Self::CordonNode { .. } | Self::UncordonNode { .. } => PATCH,
            Self::DrainNode { .. } => DRAIN,
            Self::AwaitNode { stopped: true, .. } => NODE + stable,
            Self::AwaitNode { stopped: false, .. } => STAYED + stable,
            Self::ValidateNode { .. } => VALIDATE,
        }
    }

    /// When it is given up: the state is then read again before anything is concluded.
    pub fn deadline(&self, pace: &Pace) -> Duration {
        let stable = Duration::from_secs(pace.host_stable_s.into());
        match self {
            Self::StartClosing { .. } => ASK_DEADLINE,
            Self::StopVm { .. } => STOP_DEADLINE,
            Self::EnterMaintenance { moves } => CLOSE_DEADLINE + moving(moves) * MOVE_FACTOR,
            Self::ExitMaintenance => CLOSE_DEADLINE + GATE_DEADLINE,
            Self::SetPassthrough { .. } | Self::SetGraphics { .. } => WRITE_DEADLINE,
            Self::StartShell => SHELL_DEADLINE,
            Self::StopMonitor | Self::StartMonitor => MONITOR_DEADLINE,
            Self::SetMig { gpus, .. } => MIG_DEADLINE + MIG * u32::try_from(gpus.len()).unwrap_or(u32::MAX),
            Self::Reboot { .. } => REBOOT_DEADLINE + stable,
            Self::VerifyHost => GATE_DEADLINE,
            Self::StartVm { .. } => START_DEADLINE,
            Self::CordonNode { .. } | Self::UncordonNode { .. } => PATCH_DEADLINE,
            Self::DrainNode { timeout_s, .. } | Self::ValidateNode { timeout_s, .. } => {
                Duration::from_secs((*timeout_s).into())
            }
            Self::AwaitNode { stopped: true, .. } => NODE_DEADLINE + stable,
            Self::AwaitNode { stopped: false, .. } => STAYED_DEADLINE + stable,
        }
    }

    /// How long the task that enters maintenance may run: longer than the step that starts it, if VMs
    /// are stopped and moved meanwhile.
    pub fn closing_limit(&self, pace: &Pace) -> Duration {
        match self {
            Self::StartClosing { moves, stops } => {
                let closing = Self::EnterMaintenance { moves: moves.clone() };
                self.deadline(pace) + STOP_DEADLINE * *stops + closing.deadline(pace)
            }
            other => other.deadline(pace),
        }
    }
}

/// The moves one after the other: DRS moves few VMs with a vGPU at a time.
fn moving(moves: &[Moving]) -> Duration {
    moves.iter().map(|moving| minutes(moving.minutes.into())).sum()
}
