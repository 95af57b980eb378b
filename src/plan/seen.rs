//! The GPUs of a host for people who look at the fleet: as the planner would see them.

use super::GpuSetting;
use super::device::Devices;
use crate::model::{Fact, HostView, PciAddress, PciId};

/// One GPU as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenGpu {
    /// Where.
    pub address: PciAddress,
    /// What.
    pub id: PciId,
    /// Its state.
    pub setting: Fact<GpuSetting>,
}

/// The GPUs of a host in address order: physical functions, never virtual ones.
pub fn gpus(view: &HostView) -> Fact<Vec<SeenGpu>> {
    match Devices::of(view) {
        Err(gap) => Fact::unknown(gap.to_string()),
        Ok(devices) => Fact::Known(
            devices
                .gpus
                .iter()
                .map(|gpu| {
                    let setting = match GpuSetting::of(view, gpu.address) {
                        Ok(setting) => Fact::Known(setting),
                        Err(gap) => Fact::unknown(gap.to_string()),
                    };
                    SeenGpu { address: gpu.address, id: gpu.id, setting }
                })
                .collect(),
        ),
    }
}
