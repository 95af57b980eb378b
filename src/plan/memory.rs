//! What a visit remembers of itself: from the journal's fold, or else from the marker.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::Step;
use crate::model::{Baseline, Fact, MigKind, MoRef, NodeMark, NodeRef, PciAddress, ShellWay};

/// What a visit remembers of itself. The default is a visit that did nothing yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Memory {
    /// The configuration of the host was written, or a reboot asked for: slow facts are no longer
    /// compared. Maintenance alone changes none of them.
    pub begun: bool,
    /// How far our maintenance is.
    pub maintenance: OurMaintenance,
    /// Reboots of this visit that are proven.
    pub reboots: u32,
    /// The reboot that was asked for last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reboot: Option<RebootAsked>,
    /// A graphics write was sent while its GPUs were still passed through; it is not sent again
    /// before they are not.
    pub early_graphics_sent: bool,
    /// Something was written since the last reboot: what is pending now may be that, and says nothing
    /// of the reboot.
    pub written_since_reboot: bool,
    /// VMs that this visit stops or stopped, and has not started again: all that it will stop, from
    /// before the first.
    pub vms: Vec<MoRef>,
    /// Nodes that carry our mark.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeMemory>,
    /// GPUs whose boards were given another MIG switch, seen or confirmed: it waits for a reboot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mig: Vec<(PciAddress, bool)>,
    /// The monitoring daemon was stopped and not started again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub monitor_stopped: bool,
    /// MIG was switched through the shell: the gate asks there, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shell: bool,
    /// State before the visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
}

/// A node that carries our mark: what its gate compares with is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeMemory {
    /// The node.
    pub node: NodeRef,
    /// Its VM.
    pub vm: MoRef,
    /// The mark, as it was written last.
    pub mark: NodeMark,
}

/// How far the maintenance that we asked for is. Leaving it is ours only if entering was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OurMaintenance {
    /// We did not ask for it.
    #[default]
    NotAsked,
    /// We asked for it; whether the host is in it is not proven.
    Asked,
    /// The host was in it.
    Closed,
    /// We asked to leave it.
    Leaving,
}

/// A reboot that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RebootAsked {
    /// Boot time before it.
    pub boot_before: Timestamp,
    /// What was pending: the same after it means that it had no effect.
    pub pending: Vec<String>,
    /// A later boot time was seen; it is counted in [`Memory::reboots`].
    pub proven: bool,
}

impl Memory {
    /// The least that the boot time moves with a reboot: it drifts by fractions of a second between
    /// reads, with the clock (vsphere-gpu §3.5), and no server boots within a minute.
    pub const BOOT_TOLERANCE: SignedDuration = SignedDuration::from_secs(60);

    /// The step's effect is about to be sent.
    pub fn started(&mut self, step: &Step) {
        match step {
            Step::StartClosing { .. } | Step::EnterMaintenance { .. } => {
                self.maintenance = OurMaintenance::Asked;
                return;
            }
            Step::StopVm { vm, .. } => {
                if !self.vms.contains(vm) {
                    self.vms.push(vm.clone());
                }
                return;
            }
            Step::ExitMaintenance => {
                self.maintenance = OurMaintenance::Leaving;
                return;
            }
            Step::SetPassthrough { .. } => self.written_since_reboot = true,
            Step::SetGraphics { early, .. } => {
                self.written_since_reboot = true;
                self.early_graphics_sent |= early;
            }
            Step::Reboot { pending, boot_before } => {
                // The boot time of now proves or denies the reboot before.
                self.reboots = self.reboots_by(&Fact::Known(*boot_before));
                self.written_since_reboot = false;
                self.last_reboot =
                    Some(RebootAsked { boot_before: *boot_before, pending: pending.clone(), proven: false });
            }
            Step::SetMig { way, .. } => {
                self.written_since_reboot = true;
                self.shell |= *way == ShellWay::Direct;
            }
            // The configuration is left as it is. Whether the daemon ran is known only when it is looked at.
            Step::StartShell | Step::StopMonitor | Step::StartMonitor | Step::VerifyHost | Step::StartVm { .. } => {
                return;
            }
            // What is known of nodes is their mark.
            Step::CordonNode { .. }
            | Step::DrainNode { .. }
            | Step::AwaitNode { .. }
            | Step::ValidateNode { .. }
            | Step::UncordonNode { .. } => return,
        }
        self.begun = true;
    }

    /// The step was done by us, and that is verified.
    pub fn done(&mut self, step: &Step) {
        match step {
            Step::EnterMaintenance { .. } => self.maintenance = OurMaintenance::Closed,
            Step::StartVm { vm, .. } => self.vms.retain(|stopped| stopped != vm),
            Step::SetMig { gpus, on, kind: MigKind::Board, .. } => {
                self.mig.retain(|(gpu, _)| !gpus.contains(gpu));
                self.mig.extend(gpus.iter().map(|gpu| (*gpu, *on)));
            }
            Step::StartMonitor => self.monitor_stopped = false,
            Step::Reboot { .. } => {
                self.mig.clear();
                if let Some(asked) = self.last_reboot.as_mut().filter(|asked| !asked.proven) {
                    asked.proven = true;
                    self.reboots = self.reboots.saturating_add(1);
                }
            }
            Step::StartClosing { .. }
            | Step::StopVm { .. }
            | Step::ExitMaintenance
            | Step::SetPassthrough { .. }
            | Step::SetGraphics { .. }
            | Step::StartShell
            | Step::StopMonitor
            | Step::SetMig { kind: MigKind::Driver, .. }
            | Step::VerifyHost
            | Step::CordonNode { .. }
            | Step::DrainNode { .. }
            | Step::AwaitNode { .. }
            | Step::ValidateNode { .. }
            | Step::UncordonNode { .. } => {}
        }
    }

    /// Reboots of this visit, with the last one if this boot time proves it.
    pub fn reboots_by(&self, boot_time: &Fact<Timestamp>) -> u32 {
        let unproven = self.last_reboot.as_ref().is_some_and(|asked| !asked.proven && asked.happened(boot_time));
        self.reboots.saturating_add(unproven.into())
    }
}

impl RebootAsked {
    /// Whether this boot time proves it.
    pub fn happened(&self, boot_time: &Fact<Timestamp>) -> bool {
        boot_time.known().is_some_and(|now| now.duration_since(self.boot_before) > Memory::BOOT_TOLERANCE)
    }
}
