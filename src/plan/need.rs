//! What one GPU still needs to be as wished: writes, and what only a reboot makes active.
//!
//! The signature of a mode is on active fields (vsphere-gpu §3.1):
//!
//! ```text
//!   passthrough      passthrough on, active     type direct or absent     label as wished
//!   vGPU same size   passthrough off, inactive  type sharedDirect         size sameSize
//!   vGPU mixed size  passthrough off, inactive  type sharedDirect         size mixedSize
//!   MIG-backed vGPU  passthrough off, inactive  type sharedDirect         size multiInstanceGpu
//! ```
//!
//! Where MIG is a switch of the board, there may be a reboot before it and one after it (§3.3):
//!
//! ```text
//!   passthrough ─► passthrough off ─ reboot ─► MIG on ─ reboot ─► MIG-backed vGPU
//!   passthrough ◄─ reboot ─ passthrough on ◄─ reboot ─ MIG off ◄─ MIG-backed vGPU
//! ```
//!
//! Where it is the driver's, it is switched without one: off at first, on after the last.

use super::device::{Devices, Gap};
use super::mig_state::MigState;
use super::setting::{on, own_entry};
use super::stage::Stage;
use super::{GpuSetting, GpuTarget, GraphicsChange, Memory, PassthruChange};
use crate::model::{Fact, GraphicsType, HostView, MigKind, Mode, PciAddress, VgpuMode};

/// What one GPU needs.
#[derive(Debug, Default)]
pub(super) struct Need {
    /// What is due now. MIG of a driver that is to be on stands here, too: when it is due depends on
    /// the reboots of the whole host.
    pub now: Stage,
    /// What is due after the reboot that this ends with.
    pub then: Stage,
    /// What is configured already, and waits for a reboot.
    pub stuck: Vec<String>,
    /// What a reboot would have made active, had it been set: `stuck`, and a switch of the board that
    /// is not in effect, whether or not anybody can say that it is set.
    pub unmet: Vec<String>,
    /// An early entry goes out, or went out before: the host may ignore it.
    pub may_ignore: bool,
    /// A guest may have left MIG on, which has to be off: nothing shows it before the driver owns the GPU.
    pub may_hide: bool,
    /// A guest may have left MIG on, which is to be on.
    pub may_spare: bool,
}

impl Need {
    /// What the GPU needs. Empty: it is as wished.
    pub fn of(target: &GpuTarget, view: &HostView, devices: &Devices, memory: &Memory) -> Result<Self, Gap> {
        let setting = GpuSetting::of(view, target.address)?;
        let mig = MigState::of(target, &setting, view, memory)?;
        let gpu = Gpu { target, setting: &setting, mig, devices };
        match &target.mode {
            Mode::Passthrough { label } => gpu.passthrough(label.as_deref()),
            Mode::Vgpu { size } => gpu.vgpu(&VgpuMode::from(*size), view, memory),
            Mode::MigVgpu => gpu.vgpu(&VgpuMode::MultiInstanceGpu, view, memory),
        }
    }

    /// Whether the GPU is as wished.
    pub fn is_empty(&self) -> bool {
        self.now.is_empty() && self.then.is_empty()
    }

    /// Reboots: as the reference describes it, and at most.
    pub fn reboots(&self) -> (u32, u32) {
        let expected = u32::from(self.now.reboots()) + u32::from(self.then.reboots());
        // What is ignored before the first of two reboots is made up for by the second.
        let ignored = self.may_ignore && !self.then.reboots();
        (expected, expected + u32::from(ignored) + u32::from(self.may_hide))
    }

    /// MIG of the board or of the driver, to be switched to this.
    fn switch(&mut self, target: &GpuTarget, mig: &MigState, wanted: bool) -> Result<(), Gap> {
        let Some(kind) = mig.differs(target, wanted)? else { return Ok(()) };
        let of_board = kind == MigKind::Board;
        // A board is switched when the driver owns it.
        let stage = if of_board && !mig.owned { &mut self.then } else { &mut self.now };
        if mig.is_due(wanted) {
            if wanted { &mut stage.mig_on } else { &mut stage.mig_off }.push((target.address, kind));
        }
        if of_board && mig.on != wanted {
            let line = mig_line(target.address, wanted);
            if mig.owned {
                self.unmet.push(line.clone());
            }
            if mig.is_stuck(wanted) {
                self.stuck.push(line.clone());
            }
            stage.pending.push(line);
        }
        Ok(())
    }
}

/// One GPU, and what was read of it.
struct Gpu<'a> {
    target: &'a GpuTarget,
    setting: &'a GpuSetting,
    mig: MigState,
    devices: &'a Devices<'a>,
}

impl Gpu<'_> {
    fn passthrough(&self, label: Option<&str>) -> Result<Need, Gap> {
        let Self { target, setting, mig, .. } = self;
        let wanted = label.unwrap_or_default();
        let current = Gap::optional(&setting.label, "hardwareLabel")?.map_or("", String::as_str);
        let active_type = Gap::optional(&setting.active_type, "config.graphicsInfo")?;
        let mut need = Need::default();
        if !setting.passthru_active {
            need.switch(target, mig, false)?;
        }
        let pending = if !setting.passthru_active {
            Some(line(target, "passthrough on"))
        } else if !matches!(active_type, None | Some(GraphicsType::Direct)) {
            // Toggled, active, and the graphics type never became direct (vsphere-gpu F5).
            Some(line(target, "type direct"))
        } else {
            None
        };
        // A guest inherits the MIG of a board: it is seen to be off before the driver loses the GPU
        // (vsphere-gpu §3.3). Passthrough that is configured already waits with it.
        let first_off = need.now.reboots();
        if first_off && setting.passthru_enabled {
            need.now.passthru = self.flip(true, false, None);
        }
        let enabled = setting.passthru_enabled && !first_off;
        let stage = if first_off { &mut need.then } else { &mut need.now };
        if !enabled || current != wanted {
            stage.passthru = self.flip(enabled, true, (current != wanted).then(|| wanted.to_owned()));
        }
        if enabled {
            need.stuck.extend(pending.clone());
            need.unmet.extend(pending.clone());
        }
        stage.pending.extend(pending);
        Ok(need)
    }

    fn vgpu(&self, mode: &VgpuMode, view: &HostView, memory: &Memory) -> Result<Need, Gap> {
        let Self { target, setting, mig, .. } = self;
        let config = Gap::need(&view.graphics_config, "config.graphicsConfig")?;
        let own = own_entry(config, target.address);
        let active_mode = Gap::optional(&setting.active_mode, "vgpuMode")?;
        let configured_mode = Gap::optional(&setting.configured_mode, "configured vgpuMode")?;
        let to_mig = *mode == VgpuMode::MultiInstanceGpu;

        // A GPU that is not active yet gets an entry of its own, whatever the host default says: NVIDIA's
        // guide sets both (vsphere-gpu §2.4).
        let type_set = match own {
            Some(entry) => entry.graphics_type == GraphicsType::SharedDirect,
            None => config.default_type == GraphicsType::SharedDirect && mig.shown,
        };
        let change = |vgpu_mode: Option<VgpuMode>| GraphicsChange {
            address: target.address,
            graphics_type: GraphicsType::SharedDirect,
            vgpu_mode,
            from_type: own.map_or(Fact::Absent, |entry| Fact::Known(entry.graphics_type.clone())),
            from_mode: own.map_or(Fact::Absent, |entry| entry.vgpu_mode.clone()),
        };
        // Once the type is written, the entry is there.
        let after = |mode: VgpuMode| {
            let from_type = if type_set { change(None).from_type } else { Fact::Known(GraphicsType::SharedDirect) };
            GraphicsChange { from_type, ..change(Some(mode)) }
        };
        // The size to be written: MIG is switched on from same size, and leaves the configured one.
        let size = if to_mig {
            let mixed = [active_mode, configured_mode].contains(&Some(&VgpuMode::MixedSize));
            (mixed && !mig.on).then_some(VgpuMode::SameSize)
        } else if mig.on {
            // Same size is the default of ESXi (vsphere-gpu §2.2).
            (configured_mode.unwrap_or(&VgpuMode::SameSize) != mode).then(|| mode.clone())
        } else {
            let is_set = active_mode == Some(mode) && configured_mode.is_none_or(|configured| configured == mode);
            (!is_set).then(|| mode.clone())
        };

        let mut need = Need::default();
        if setting.passthru_enabled {
            let label = Gap::optional(&setting.label, "hardwareLabel")?;
            let clear = label.is_some_and(|label| !label.is_empty()).then(String::new);
            need.now.passthru = self.flip(true, false, clear);
        }
        for (what, waits, is_set) in [
            ("passthrough off", setting.passthru_active, !setting.passthru_enabled),
            ("type sharedDirect", !mig.shown, !setting.passthru_active && own.is_some() && type_set),
        ] {
            if waits {
                need.now.pending.push(line(target, what));
            }
            if waits && is_set {
                need.stuck.push(line(target, what));
                need.unmet.push(line(target, what));
            }
        }
        need.switch(target, mig, to_mig)?;
        let hidden = mig.kind == Some(MigKind::Board) && !mig.shown;
        need.may_hide = hidden && !to_mig;
        need.may_spare = hidden && to_mig && setting.passthru_active;
        if mig.owned {
            // What MIG leaves behind shows when it is off: of a board, after the reboot.
            let later = mig.on && need.now.reboots();
            if later {
                need.then.graphics.extend(size.clone().map(after));
            }
            let size = size.filter(|_| !later);
            if !type_set || size.is_some() {
                need.now.graphics.push(change(size));
            }
        } else {
            need.may_ignore = setting.passthru_active && !type_set;
            // The server had it once and did not keep it; it is due after the reboot.
            if !(type_set || need.may_ignore && memory.early_graphics_sent) {
                if setting.passthru_active { &mut need.now.early } else { &mut need.now.graphics }.push(change(None));
            }
            need.then.graphics.extend(size.map(after));
        }
        Ok(need)
    }

    /// Entries that switch passthrough, of the GPU and of its companions: functions of one device move
    /// together (KB 312208, vsphere-gpu F7). `from`: what is configured before.
    fn flip(&self, from: bool, to: bool, label: Option<String>) -> Vec<PassthruChange> {
        let Self { target, setting, devices, .. } = self;
        let gpu = PassthruChange {
            address: target.address,
            enabled: to,
            label,
            from_enabled: from,
            from_label: setting.label.clone(),
        };
        // Those of a GPU that has to go back first go back with it.
        let goes_back = from != setting.passthru_enabled;
        let companions = target.companions.iter().filter(|_| from != to).filter_map(|address| {
            let state = devices.passthru(*address)?;
            let from_enabled = state.enabled && !goes_back;
            (from_enabled != to).then(|| PassthruChange {
                address: *address,
                enabled: to,
                label: None,
                from_enabled,
                from_label: state.label.clone(),
            })
        });
        std::iter::once(gpu).chain(companions).collect()
    }
}

/// One line of what is pending. The lines of before and after a reboot are compared: the words for
/// one thing never change.
fn line(target: &GpuTarget, what: &str) -> String {
    format!("{} {what}", target.address)
}

/// The line of a switch of MIG that waits for a reboot.
pub(super) fn mig_line(gpu: PciAddress, wanted: bool) -> String {
    format!("{gpu} MIG {}", on(wanted))
}

/// What a GPU is and what it should be, for people.
pub(super) fn difference(target: &GpuTarget, setting: &GpuSetting) -> String {
    let wanted = match &target.mode {
        Mode::Passthrough { label } => {
            format!("passthrough {0}/{0}, label {1}, type direct", on(true), label.as_deref().unwrap_or("-"))
        }
        Mode::Vgpu { size } => {
            format!("passthrough {0}/{0}, type sharedDirect, size {1}", on(false), VgpuMode::from(*size))
        }
        Mode::MigVgpu => {
            format!("passthrough {0}/{0}, type sharedDirect, size {1}", on(false), VgpuMode::MultiInstanceGpu)
        }
    };
    format!("expected {wanted}; found {setting}")
}
