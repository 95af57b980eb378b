//! What one GPU still needs to be as wished: writes, and what only a reboot makes active.
//!
//! The signature of a mode is on active fields (vsphere-gpu §3.1):
//!
//! ```text
//!   passthrough      passthrough on, active     type direct or absent     label as wished
//!   vGPU same size   passthrough off, inactive  type sharedDirect         size sameSize
//!   vGPU mixed size  passthrough off, inactive  type sharedDirect         size mixedSize
//! ```

use super::device::{Devices, Gap};
use super::setting::{on, own_entry};
use super::{GpuSetting, GpuTarget, GraphicsChange, Impact, PassthruChange};
use crate::model::{Fact, GraphicsType, HostView, Mode, VgpuMode, VgpuSize};

/// What one GPU needs.
#[derive(Debug, Default)]
pub(super) struct Need {
    /// Entries of `UpdatePassthruConfig`: the GPU, and its companions if it flips.
    pub passthru: Vec<PassthruChange>,
    /// Entry of `UpdateGraphicsConfig` that can be sent now.
    pub graphics: Option<GraphicsChange>,
    /// The entry goes out while the GPU is still passed through.
    pub early: bool,
    /// An early entry would be due, and was sent before.
    pub early_again: bool,
    /// Entry that has to wait until the driver owns the GPU.
    pub later: Option<GraphicsChange>,
    /// What will be configured and not active once the writes are done.
    pub pending: Vec<String>,
    /// What is so already, without them.
    pub stuck: Vec<String>,
}

impl Need {
    /// What the GPU needs. Empty: it is as wished.
    pub fn of(target: &GpuTarget, view: &HostView, devices: &Devices) -> Result<Self, Gap> {
        let setting = GpuSetting::of(view, target.address)?;
        match &target.mode {
            Mode::Passthrough { label } => passthrough(target, label.as_deref(), &setting, devices),
            Mode::Vgpu { size } => vgpu(target, *size, &setting, view, devices),
            // The planner refuses pools of this mode before a target is made.
            Mode::MigVgpu => Err(Gap { what: "MIG mode".to_owned(), why: "vSphere has no call for it".to_owned() }),
        }
    }

    /// Whether the GPU is as wished.
    pub fn is_empty(&self) -> bool {
        self.passthru.is_empty() && self.graphics.is_none() && self.later.is_none() && self.pending.is_empty()
    }

    /// How much it disturbs.
    pub fn impact(&self) -> Impact {
        if !self.pending.is_empty() {
            Impact::Reboot
        } else if self.graphics.is_some()
            || self.later.is_some()
            || self.passthru.iter().any(|change| change.enabled != change.from_enabled)
        {
            Impact::Maintenance
        } else {
            Impact::None
        }
    }

    /// Reboots: as the reference describes it, and at most.
    pub fn reboots(&self) -> (u32, u32) {
        let expected = u32::from(!self.pending.is_empty());
        (expected, expected + u32::from(self.early || self.early_again))
    }
}

fn passthrough(target: &GpuTarget, label: Option<&str>, setting: &GpuSetting, devices: &Devices) -> Result<Need, Gap> {
    let wanted = label.unwrap_or_default();
    let current = Gap::optional(&setting.label, "hardwareLabel")?.map_or("", String::as_str);
    let active_type = Gap::optional(&setting.active_type, "config.graphicsInfo")?;
    let flips = !setting.passthru_enabled;
    let mut need = Need::default();
    if flips || current != wanted {
        need.passthru.push(PassthruChange {
            address: target.address,
            enabled: true,
            label: (current != wanted).then(|| wanted.to_owned()),
            from_enabled: setting.passthru_enabled,
            from_label: setting.label.clone(),
        });
    }
    if flips {
        need.passthru.extend(companions(target, true, devices));
    }
    if !setting.passthru_active {
        need.pending.push(line(target, "passthrough on"));
    } else if !matches!(active_type, None | Some(GraphicsType::Direct)) {
        // Toggled, active, and the graphics type never became direct (vsphere-gpu F5).
        need.pending.push(line(target, "type direct"));
    }
    if !flips {
        need.stuck = need.pending.clone();
    }
    Ok(need)
}

fn vgpu(
    target: &GpuTarget,
    size: VgpuSize,
    setting: &GpuSetting,
    view: &HostView,
    devices: &Devices,
) -> Result<Need, Gap> {
    let mode = VgpuMode::from(size);
    let config = Gap::need(&view.graphics_config, "config.graphicsConfig")?;
    let own = own_entry(config, target.address);
    let active_type = Gap::optional(&setting.active_type, "config.graphicsInfo")?;
    let active_mode = Gap::optional(&setting.active_mode, "vgpuMode")?;
    let configured_mode = Gap::optional(&setting.configured_mode, "configured vgpuMode")?;

    let driver_owns =
        !setting.passthru_active && matches!(active_type, Some(GraphicsType::SharedDirect | GraphicsType::Shared));
    let type_active = driver_owns && active_type == Some(&GraphicsType::SharedDirect);
    // A GPU that is not active yet gets an entry of its own, whatever the host default says: NVIDIA's
    // guide sets both (vsphere-gpu §2.4).
    let type_set = match own {
        Some(entry) => entry.graphics_type == GraphicsType::SharedDirect,
        None => config.default_type == GraphicsType::SharedDirect && type_active,
    };
    let mode_set = active_mode == Some(&mode) && configured_mode.is_none_or(|configured| *configured == mode);
    let change = |vgpu_mode: Option<VgpuMode>| GraphicsChange {
        address: target.address,
        graphics_type: GraphicsType::SharedDirect,
        vgpu_mode,
        from_type: own.map_or(Fact::Absent, |entry| Fact::Known(entry.graphics_type.clone())),
        from_mode: own.map_or(Fact::Absent, |entry| entry.vgpu_mode.clone()),
    };

    let mut need = Need::default();
    if setting.passthru_enabled {
        let label = Gap::optional(&setting.label, "hardwareLabel")?;
        need.passthru.push(PassthruChange {
            address: target.address,
            enabled: false,
            label: label.is_some_and(|label| !label.is_empty()).then(String::new),
            from_enabled: true,
            from_label: setting.label.clone(),
        });
        need.passthru.extend(companions(target, false, devices));
    }
    if setting.passthru_active {
        need.pending.push(line(target, "passthrough off"));
    }
    if !type_active {
        need.pending.push(line(target, "type sharedDirect"));
    }
    if !setting.passthru_enabled && setting.passthru_active {
        need.stuck.push(line(target, "passthrough off"));
    }
    if !setting.passthru_active && own.is_some() && type_set && !type_active {
        need.stuck.push(line(target, "type sharedDirect"));
    }
    if driver_owns {
        if !type_set || !mode_set {
            need.graphics = Some(change((!mode_set).then(|| mode.clone())));
        }
    } else {
        need.early = setting.passthru_active && !type_set;
        need.graphics = (!type_set).then(|| change(None));
        let stored = configured_mode == Some(&mode);
        need.later = (!stored || active_mode != Some(&mode))
            .then(|| GraphicsChange { from_type: Fact::Known(GraphicsType::SharedDirect), ..change(Some(mode)) });
    }
    Ok(need)
}

/// Entries of the companions whose passthrough is not as that of their GPU will be: functions of one
/// device move together (KB 312208, vsphere-gpu F7).
fn companions<'a>(target: &'a GpuTarget, enabled: bool, devices: &'a Devices) -> impl Iterator<Item = PassthruChange> {
    target.companions.iter().filter_map(move |address| {
        let state = devices.passthru(*address).filter(|state| state.enabled != enabled)?;
        Some(PassthruChange {
            address: *address,
            enabled,
            label: None,
            from_enabled: state.enabled,
            from_label: state.label.clone(),
        })
    })
}

/// One line of what is pending. The lines of before and after a reboot are compared: the words for
/// one thing never change.
fn line(target: &GpuTarget, what: &str) -> String {
    format!("{} {what}", target.address)
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
        Mode::MigVgpu => "MIG".to_owned(),
    };
    format!("expected {wanted}; found {setting}")
}
