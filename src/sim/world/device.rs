//! PCI functions and GPUs of a host.

use serde::{Deserialize, Serialize};

use crate::model::PciAddress;

/// A PCI function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sim) struct Function {
    pub address: PciAddress,
    pub vendor: u16,
    pub device: u16,
    pub sub_vendor: u16,
    pub sub_device: u16,
    pub class: u16,
    pub name: String,
    pub vendor_name: String,
    pub bridge: PciAddress,
    pub numa: u32,
    /// `passthruEnabled`: configured.
    pub enabled: bool,
    /// `passthruActive`: in effect.
    pub active: bool,
    /// `passthruCapable`.
    pub capable: bool,
    pub label: String,
    /// Present on a physical function with SR-IOV: the virtual functions that are configured.
    pub virtual_functions: Option<u32>,
    /// The physical function that this is a virtual function of.
    pub virtual_of: Option<PciAddress>,
    pub gpu: Option<Gpu>,
}

/// What makes a function a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sim) struct Gpu {
    /// Catalogue id.
    pub model: String,
    /// Framebuffer.
    pub memory_mib: u64,
    /// Active graphics type.
    pub graphics_type: String,
    /// Active size mode.
    pub vgpu_mode: String,
    /// Whether MIG is on: of Ampere a bit of the board, of Hopper the driver's.
    pub mig: bool,
    /// What MIG will be at the next reboot, of Ampere; of later ones what waits for an idle GPU.
    pub mig_pending: bool,
    /// Lanes of its PCIe link.
    pub lanes: u32,
}

/// `HostGraphicsConfigDeviceType` as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sim) struct GraphicsEntry {
    pub address: PciAddress,
    pub graphics_type: String,
    pub vgpu_mode: Option<String>,
}
