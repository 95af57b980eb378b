//! The state of one GPU, configured and active.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::device::Gap;
use crate::model::{Fact, GraphicsConfig, GraphicsDeviceConfig, GraphicsType, HostView, PciAddress, VgpuMode};

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

impl GpuSetting {
    /// Reads it.
    pub(super) fn of(view: &HostView, address: PciAddress) -> Result<Self, Gap> {
        let passthru = Gap::need(&view.passthru, "config.pciPassthruInfo")?
            .iter()
            .find(|state| state.address == address)
            .ok_or_else(|| Gap {
                what: format!("config.pciPassthruInfo of {address}"),
                why: "the host does not list the device".to_owned(),
            })?;
        let entry = view.graphics_config.as_ref().map(|config| own_entry(config, address));
        let (configured_type, configured_mode) = match (&view.graphics_config, entry) {
            (_, Fact::Known(Some(entry))) => (Fact::Known(entry.graphics_type.clone()), entry.vgpu_mode.clone()),
            (Fact::Known(config), _) => (Fact::Known(config.default_type.clone()), Fact::Absent),
            (Fact::Absent, _) => (Fact::Absent, Fact::Absent),
            (Fact::Unknown { why }, _) => (Fact::unknown(why), Fact::unknown(why)),
        };
        let (active_type, active_mode) = match &view.graphics_active {
            Fact::Known(states) => match states.iter().find(|state| state.address == address) {
                Some(state) => (Fact::Known(state.graphics_type.clone()), state.vgpu_mode.clone()),
                None => (Fact::Absent, Fact::Absent),
            },
            Fact::Absent => (Fact::Absent, Fact::Absent),
            Fact::Unknown { why } => (Fact::unknown(why), Fact::unknown(why)),
        };
        Ok(Self {
            passthru_enabled: passthru.enabled,
            passthru_active: passthru.active,
            label: passthru.label.clone(),
            configured_type,
            configured_mode,
            active_type,
            active_mode,
        })
    }

    /// Whether something is configured that is not active: it will be at the next boot.
    pub fn is_pending(&self) -> bool {
        if self.passthru_enabled != self.passthru_active {
            return true;
        }
        // A GPU that is passed through is not under the graphics configuration.
        !self.passthru_active
            && matches!((&self.configured_type, &self.active_type),
                (Fact::Known(configured), Fact::Known(active)) if configured != active && *active != GraphicsType::Basic)
    }
}

/// The entry of the device itself, without the host default.
pub(super) fn own_entry(config: &GraphicsConfig, address: PciAddress) -> Option<&GraphicsDeviceConfig> {
    config.devices.iter().find(|entry| entry.address == address)
}

impl fmt::Display for GpuSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |fact: Fact<&str>| match fact {
            Fact::Known(text) => text.to_owned(),
            Fact::Absent => "-".to_owned(),
            Fact::Unknown { .. } => "?".to_owned(),
        };
        write!(
            f,
            "passthrough {}/{}, label {}, type {}/{}, size {}/{}",
            on(self.passthru_enabled),
            on(self.passthru_active),
            text(self.label.as_ref().map(String::as_str)),
            text(self.configured_type.as_ref().map(GraphicsType::as_str)),
            text(self.active_type.as_ref().map(GraphicsType::as_str)),
            text(self.configured_mode.as_ref().map(VgpuMode::as_str)),
            text(self.active_mode.as_ref().map(VgpuMode::as_str)),
        )
    }
}

/// `on` or `off`.
pub(super) fn on(value: bool) -> &'static str {
    if value { "on" } else { "off" }
}
