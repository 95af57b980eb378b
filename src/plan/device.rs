//! What of a host's PCI devices is a GPU, what goes with it, and what is neither.
//!
//! A GPU is a physical function of NVIDIA of class VGA or 3D controller. With vGPU on Ampere and
//! later the driver creates virtual functions, which vSphere lists beside the real devices, with the
//! same class and, for NVIDIA, the same device id. What vim25 shows of the difference: the physical
//! function comes as `HostSriovInfo`, a virtual one never does, and it sits on the bus of its physical
//! function at a higher address. So a function is virtual if another one of the same vendor and class
//! on its bus, at a lower address, is an SR-IOV function, and it is none itself.
//! (docs/assumptions.md; a GPU that is hidden by this rule or counted beside it makes the number of
//! GPUs differ from the profile's, which refuses the host.)

use std::collections::BTreeMap;

use crate::model::{Fact, HostView, PassthruState, PciAddress, PciDevice, PciId};

/// What could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gap {
    /// The property.
    pub what: String,
    /// Why.
    pub why: String,
}

impl Gap {
    /// The value of a property that must be there.
    pub fn need<'a, T>(fact: &'a Fact<T>, what: &str) -> Result<&'a T, Self> {
        match fact {
            Fact::Known(value) => Ok(value),
            Fact::Absent => Err(Self { what: what.to_owned(), why: "the host does not show it".to_owned() }),
            Fact::Unknown { why } => Err(Self { what: what.to_owned(), why: why.clone() }),
        }
    }

    /// The value of a property that may be absent.
    pub fn optional<'a, T>(fact: &'a Fact<T>, what: &str) -> Result<Option<&'a T>, Self> {
        match fact {
            Fact::Absent => Ok(None),
            other => Self::need(other, what).map(Some),
        }
    }
}

impl std::fmt::Display for Gap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} could not be read: {}", self.what, self.why)
    }
}

/// VGA controller.
const VGA: u16 = 0x0300;
/// 3D controller: a GPU without display.
const CONTROLLER_3D: u16 = 0x0302;
/// Bridge of kind *other*: an NVSwitch, if NVIDIA made it.
const BRIDGE_OTHER: u16 = 0x0680;
/// Mass storage controllers.
const STORAGE: u8 = 0x01;

/// The devices of a host, sorted by what they are.
pub(super) struct Devices<'a> {
    /// All physical functions, in address order.
    pub all: Vec<&'a PciDevice>,
    /// Physical functions that are GPUs, in address order.
    pub gpus: Vec<&'a PciDevice>,
    /// GPUs that have virtual functions, with how many are listed.
    pub virtual_functions: BTreeMap<PciAddress, u32>,
    passthru: BTreeMap<PciAddress, &'a PassthruState>,
}

impl<'a> Devices<'a> {
    /// Sorts the devices.
    pub fn of(view: &'a HostView) -> Result<Self, Gap> {
        let listed = Gap::need(&view.pci, "hardware.pciDevice")?;
        let passthru: BTreeMap<PciAddress, &PassthruState> = Gap::optional(&view.passthru, "config.pciPassthruInfo")?
            .into_iter()
            .flatten()
            .map(|state| (state.address, state))
            .collect();
        let mut sorted: Vec<&PciDevice> = listed.iter().collect();
        sorted.sort();
        let mut all = Vec::new();
        let mut virtual_functions = BTreeMap::new();
        // The first SR-IOV function of a bus, vendor and class; in address order it comes before its
        // virtual functions.
        let mut physical: BTreeMap<(u16, u8, u16, u16), &PciDevice> = BTreeMap::new();
        for device in sorted {
            let PciAddress { segment, bus, .. } = device.address;
            let key = (segment, bus, device.id.vendor, device.class);
            let sriov = passthru.get(&device.address).is_some_and(|state| state.sriov);
            match physical.get(&key) {
                Some(physical) if !sriov => {
                    if is_gpu(physical) {
                        *virtual_functions.entry(physical.address).or_default() += 1;
                    }
                }
                _ => all.push(device),
            }
            if sriov {
                physical.entry(key).or_insert(device);
            }
        }
        let gpus = all.iter().copied().filter(|device| is_gpu(device)).collect();
        Ok(Self { all, gpus, virtual_functions, passthru })
    }

    /// The device at an address.
    pub fn at(&self, address: PciAddress) -> Option<&'a PciDevice> {
        self.all.iter().copied().find(|device| device.address == address)
    }

    /// What pciPassthruInfo says of a device.
    pub fn passthru(&self, address: PciAddress) -> Option<&'a PassthruState> {
        self.passthru.get(&address).copied()
    }

    /// Functions that go with a GPU: NVIDIA's others of the same bus and slot that are no GPU (audio,
    /// USB, UCSI).
    pub fn companions(&self, gpu: PciAddress) -> impl Iterator<Item = &'a PciDevice> {
        self.all.iter().copied().filter(move |device| {
            device.address != gpu
                && device.address.same_device(&gpu)
                && device.id.vendor == PciId::NVIDIA
                && !is_gpu(device)
        })
    }

    /// NVSwitch functions.
    pub fn nvswitches(&self) -> impl Iterator<Item = &'a PciDevice> {
        self.all.iter().copied().filter(|device| device.id.vendor == PciId::NVIDIA && device.class == BRIDGE_OTHER)
    }

    /// Whether the GPU is the only display adapter of VGA class, and so the console.
    pub fn is_console(&self, gpu: &PciDevice) -> bool {
        gpu.class == VGA && self.all.iter().filter(|device| device.class == VGA).count() == 1
    }

    /// Devices that are configured for passthrough and are neither a GPU nor go with one.
    pub fn strangers(&self) -> impl Iterator<Item = &'a PciDevice> {
        self.all.iter().copied().filter(|device| {
            self.passthru(device.address).is_some_and(|state| state.enabled)
                && !is_gpu(device)
                && !self
                    .gpus
                    .iter()
                    .any(|gpu| gpu.address.same_device(&device.address) && device.id.vendor == PciId::NVIDIA)
        })
    }
}

/// Whether a physical function is a GPU.
fn is_gpu(device: &PciDevice) -> bool {
    device.id.vendor == PciId::NVIDIA && matches!(device.class, VGA | CONTROLLER_3D)
}

/// Whether a device is a mass storage controller.
pub(super) fn is_storage(device: &PciDevice) -> bool {
    device.class.to_be_bytes()[0] == STORAGE
}

/// A device as people name it: address, name and ids.
pub(super) fn named(device: &PciDevice) -> String {
    format!("{} {} [{:04x}:{:04x}]", device.address, device.name, device.id.vendor, device.id.device)
}

/// Addresses, apart by commas.
pub(super) fn addresses<'a>(devices: impl IntoIterator<Item = &'a PciAddress>) -> String {
    devices.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
