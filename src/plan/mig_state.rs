//! MIG of one GPU: whether it is on, and what the next boot makes of it, as far as anybody knows.

use super::device::Gap;
use super::setting::on as word;
use super::{GpuSetting, GpuTarget, Memory};
use crate::model::{GraphicsType, HostView, MigKind, VgpuMode};

/// MIG of one GPU that is not passed through. What is passed through shows none: a switch of the board
/// hides behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct MigState {
    /// In effect.
    pub on: bool,
    /// Where the GPU keeps it; none if it does not know MIG.
    pub kind: Option<MigKind>,
    /// Whether the driver owns the GPU, which then can be switched.
    pub owned: bool,
    /// Whether what is in effect shows: only a GPU of vGPU shows it.
    pub shown: bool,
    /// What was set, if that is known: of a board, what the next reboot brings.
    set: Option<bool>,
}

impl MigState {
    /// Reads it. The shell, where it was read, and vCenter must not contradict each other: one of them
    /// lags, and neither is believed.
    pub fn of(target: &GpuTarget, setting: &GpuSetting, view: &HostView, memory: &Memory) -> Result<Self, Gap> {
        let kind = target.mig;
        let active_type = Gap::optional(&setting.active_type, "config.graphicsInfo")?;
        let owned =
            !setting.passthru_active && matches!(active_type, Some(GraphicsType::SharedDirect | GraphicsType::Shared));
        let shown = owned && active_type == Some(&GraphicsType::SharedDirect);
        if !owned {
            return Ok(Self { on: false, kind, owned, shown, set: None });
        }
        let in_mig = shown && Gap::optional(&setting.active_mode, "vgpuMode")? == Some(&VgpuMode::MultiInstanceGpu);
        let shell = view.shell.known().and_then(|shell| shell.gpus.get(&target.address)).map(|gpu| &gpu.mig);
        let current = shell.and_then(|mig| mig.current.known()).copied();
        if let Some(current) = current.filter(|current| shown && *current != in_mig) {
            return Err(Gap {
                what: format!("MIG of {}", target.address),
                why: format!("nvidia-smi shows it {}, vCenter {}", word(current), word(in_mig)),
            });
        }
        let remembered = memory.mig.iter().find(|(gpu, _)| *gpu == target.address).map(|(_, on)| *on);
        let set = shell.and_then(|mig| mig.pending.known()).copied();
        Ok(Self { on: current.unwrap_or(in_mig), kind, owned, shown, set: set.or(remembered) })
    }

    /// Where it is kept, if it has to be switched to this, now or when the driver owns the GPU.
    pub fn differs(&self, target: &GpuTarget, wanted: bool) -> Result<Option<MigKind>, Gap> {
        match self.kind {
            _ if self.on == wanted && self.set.is_none_or(|set| set == wanted) => Ok(None),
            Some(kind) => Ok(Some(kind)),
            None => Err(Gap {
                what: format!("how MIG of {} is switched", target.address),
                why: "the catalogue knows no MIG of this model".to_owned(),
            }),
        }
    }

    /// Whether it still has to be set.
    pub fn is_due(&self, wanted: bool) -> bool {
        match (self.kind, self.set) {
            // What waits for a reboot is in the board.
            (Some(MigKind::Board), Some(set)) => set != wanted,
            _ => self.on != wanted || self.set == Some(!wanted),
        }
    }

    /// Whether the board is known to wait for a reboot with it.
    pub fn is_stuck(&self, wanted: bool) -> bool {
        self.kind == Some(MigKind::Board) && self.on != wanted && self.set == Some(wanted)
    }
}
