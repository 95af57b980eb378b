//! The shell of a host: how it is reached, and what it shows of the GPUs, the only place where MIG's
//! pending state can be seen.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Fact, PciAddress};

/// How the shell of a host is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ShellWay {
    /// By SSH.
    Direct,
    /// By a person.
    Handoff,
}

/// How we would log in to the shell of a host: known from the Site, without asking the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellLogin {
    /// The user.
    pub user: String,
    /// Whether a key of the host is pinned. Without one there is no login.
    pub pinned: bool,
}

/// What `nvidia-smi` on a host shows. It lists only the GPUs that the driver owns: what is passed
/// through is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellView {
    /// GPUs by address.
    pub gpus: BTreeMap<PciAddress, GpuShellView>,
    /// Whether NVIDIA's monitoring daemon runs, which keeps GPUs in use; absent where it is not
    /// installed.
    pub monitor: Fact<bool>,
    /// What was not understood, or why nothing is listed: lines of the host, shortened.
    pub unread: Vec<String>,
}

/// What `nvidia-smi` shows of one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GpuShellView {
    /// MIG; absent of a GPU that does not know it.
    pub mig: Switch,
    /// ECC; absent of a GPU that does not know it.
    pub ecc: Switch,
    /// Generation of the PCIe link as it is now. An idle GPU may run it slower.
    pub link_generation: Fact<u32>,
    /// Lanes of the PCIe link as it is now.
    pub link_width: Fact<u32>,
    /// Whether a row of memory waits for a reboot to be remapped.
    pub remap_pending: Fact<bool>,
    /// Whether a row of memory could not be remapped: the board is broken.
    pub remap_failed: Fact<bool>,
}

/// A switch that may wait for a reboot or for an idle GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Switch {
    /// In effect.
    pub current: Fact<bool>,
    /// What will be in effect.
    pub pending: Fact<bool>,
}

impl Switch {
    /// The state, if it is in effect and nothing is pending.
    pub fn settled(&self) -> Option<bool> {
        match (&self.current, &self.pending) {
            (Fact::Known(current), Fact::Known(pending)) if current == pending => Some(*current),
            _ => None,
        }
    }
}

impl ShellView {
    /// What is shown of this GPU; unknown, with the reason, of one that is not listed.
    pub fn gpu(&self, address: &PciAddress) -> Fact<&GpuShellView> {
        match (self.gpus.get(address), self.unread.first()) {
            (Some(gpu), _) => Fact::Known(gpu),
            (None, Some(line)) => Fact::unknown(format!("nvidia-smi does not list it, but says `{line}`")),
            (None, None) => Fact::unknown("nvidia-smi does not list it"),
        }
    }
}
