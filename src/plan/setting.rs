//! The state of one GPU, configured and active.

use serde::{Deserialize, Serialize};

use crate::model::{Fact, GraphicsType, VgpuMode};

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
