//! From a PCI id to a model.

use super::{Catalog, Model};
use crate::model::PciId;

/// What a PCI device is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity<'a> {
    /// This model.
    Model(&'a Model),
    /// One of these: they share the device id, and the subsystem is none of theirs (A2 and A16,
    /// rule NAME-3).
    Ambiguous(Vec<&'a Model>),
    /// Not in the catalogue: another vendor, or a device that we do not know.
    Unknown,
}

impl<'a> Identity<'a> {
    /// The model, if it is certain.
    pub fn model(&self) -> Option<&'a Model> {
        match self {
            Self::Model(model) => Some(model),
            Self::Ambiguous(_) | Self::Unknown => None,
        }
    }
}

impl Catalog {
    /// The model of a PCI device.
    ///
    /// The device id decides. The subsystem decides only where the device id is shared, or where it
    /// is another board that offers the types of a model (`alias`): server makers put their own
    /// subsystems on boards.
    pub fn identify(&self, id: PciId) -> Identity<'_> {
        if id.vendor != PciId::NVIDIA {
            return Identity::Unknown;
        }
        let mut candidates: Vec<&Model> = Vec::new();
        for model in &self.models {
            for entry in model.pci.iter().filter(|entry| entry.device == id.device) {
                if entry.subsystems.contains(&id.sub_device) {
                    return Identity::Model(model);
                }
                if !entry.alias && candidates.last() != Some(&model) {
                    candidates.push(model);
                }
            }
        }
        match candidates.as_slice() {
            [] => Identity::Unknown,
            [model] => Identity::Model(model),
            _ => Identity::Ambiguous(candidates),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::catalog;

    fn id(device: u16, sub_device: u16) -> PciId {
        PciId { vendor: PciId::NVIDIA, device, sub_vendor: PciId::NVIDIA, sub_device }
    }

    fn name(device: u16, sub_device: u16) -> Option<&'static str> {
        catalog().identify(id(device, sub_device)).model().map(|model| model.id.as_str())
    }

    #[test]
    fn the_device_id_decides() {
        assert_eq!(name(0x2321, 0x1839), Some("h100-nvl-94"));
        assert_eq!(name(0x20f1, 0x145f), Some("a100-pcie-40"));
        assert_eq!(name(0x2321, 0xbeef), Some("h100-nvl-94"), "a board of another maker");
        assert_eq!(name(0x1db1, 0x0001), Some("v100-sxm2-16"), "no subsystem was found");
        assert_eq!(name(0x1eb9, 0x0001), None);
        assert_eq!(catalog().identify(PciId { vendor: 0x8086, ..id(0x2321, 0x1839) }), Identity::Unknown);
    }

    #[test]
    fn a2_and_a16_are_told_apart_by_the_subsystem_only() {
        assert_eq!(name(0x25b6, 0x157e), Some("a2"));
        assert_eq!(name(0x25b6, 0x14a9), Some("a16"));
        let Identity::Ambiguous(models) = catalog().identify(id(0x25b6, 0x0001)) else {
            panic!("an unknown subsystem is no guess");
        };
        assert_eq!(models.iter().map(|model| model.id.as_str()).collect::<Vec<_>>(), ["a2", "a16"]);
    }

    #[test]
    fn aliases_are_boards_that_offer_the_types_of_a_model() {
        assert_eq!(name(0x20b9, 0x157f), Some("a30"));
        assert_eq!(name(0x20b8, 0x1581), Some("a100-pcie-80"));
        assert_eq!(name(0x2336, 0x16c2), Some("h100-sxm5-80"));
        assert_eq!(name(0x20b9, 0x0001), None, "an alias is this board and no other");
    }
}
