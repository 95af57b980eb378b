//! What is written between two reboots, and what the second of them then makes active.

use super::{GraphicsChange, PassthruChange};
use crate::model::{MigKind, PciAddress};

/// Writes, and what waits for a reboot after them: of one GPU, or of all GPUs of a host.
#[derive(Debug, Default)]
pub(super) struct Stage {
    /// GPUs whose MIG is switched off: first of all, while the driver owns them.
    pub mig_off: Vec<(PciAddress, MigKind)>,
    /// Entries of `UpdatePassthruConfig`: GPUs, with their companions if they flip.
    pub passthru: Vec<PassthruChange>,
    /// Entries of `UpdateGraphicsConfig`.
    pub graphics: Vec<GraphicsChange>,
    /// Those of GPUs that are passed through still.
    pub early: Vec<GraphicsChange>,
    /// GPUs whose MIG is switched on: last of all.
    pub mig_on: Vec<(PciAddress, MigKind)>,
    /// What is configured and not active then, one line each.
    pub pending: Vec<String>,
}

impl Stage {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        !self.writes() && self.pending.is_empty()
    }

    /// Whether it ends with a reboot.
    pub fn reboots(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether the graphics configuration of a device is written.
    pub fn writes_devices(&self) -> bool {
        !self.graphics.is_empty() || !self.early.is_empty()
    }

    /// Whether MIG is switched.
    pub fn switches(&self) -> bool {
        !self.mig_off.is_empty() || !self.mig_on.is_empty()
    }

    /// Whether it disturbs what runs, were there no reboot.
    pub fn disturbs(&self) -> bool {
        self.switches()
            || self.writes_devices()
            || self.passthru.iter().any(|change| change.enabled != change.from_enabled)
    }

    /// That of another GPU, too.
    pub fn append(&mut self, mut other: Self) {
        self.mig_off.append(&mut other.mig_off);
        self.passthru.append(&mut other.passthru);
        self.graphics.append(&mut other.graphics);
        self.early.append(&mut other.early);
        self.mig_on.append(&mut other.mig_on);
        self.pending.append(&mut other.pending);
        self.mig_off.sort_by_key(|(address, _)| *address);
        self.mig_on.sort_by_key(|(address, _)| *address);
        // A companion of two GPUs is one function.
        self.passthru.sort_by_key(|change| change.address);
        self.passthru.dedup_by_key(|change| change.address);
    }

    fn writes(&self) -> bool {
        self.switches() || self.writes_devices() || !self.passthru.is_empty()
    }
}
