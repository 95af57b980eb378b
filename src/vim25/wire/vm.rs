//! Values of VMs, decoded.

use std::collections::BTreeMap;

use super::decode::{DecodeError, boolean, optional, parsed, text, text_fact};
use super::tree::Node;
use crate::model::{ManagedBy, VmGpuDevice, VmView};

/// The GPU devices among `config.hardware.device`, by their backing; every other device is left
/// alone, whatever its type.
pub fn vm_gpu_devices(node: &Node) -> Result<Vec<VmGpuDevice>, DecodeError> {
    node.children.iter().filter(|device| device.type_name() == Some("VirtualPCIPassthrough")).map(gpu_device).collect()
}

fn gpu_device(device: &Node) -> Result<VmGpuDevice, DecodeError> {
    let Some(backing) = device.get("backing") else { return Ok(VmGpuDevice::Other(String::new())) };
    Ok(match backing.type_name() {
        Some("VirtualPCIPassthroughVmiopBackingInfo") => {
            VmGpuDevice::Vgpu { name: text(backing, "vgpu")?, migrate: optional(backing, "migrateSupported", boolean) }
        }
        Some("VirtualPCIPassthroughDeviceBackingInfo") => {
            VmGpuDevice::DirectPath { id: text(backing, "id")?, device_id: optional(backing, "deviceId", device_id) }
        }
        Some("VirtualPCIPassthroughDynamicBackingInfo") => VmGpuDevice::DynamicDirectPath {
            label: text_fact(backing, "customLabel"),
            assigned: text_fact(backing, "assignedId"),
        },
        other => VmGpuDevice::Other(other.unwrap_or_default().to_owned()),
    })
}

/// Case A14: `deviceId` of a backing is a string, the decimal of the unsigned value, while
/// `hardware.pciDevice` has a signed short for the same.
fn device_id(node: &Node) -> Result<u16, DecodeError> {
    parsed(node)
}

/// `ManagedByInfo`.
pub fn managed_by(node: &Node) -> Result<ManagedBy, DecodeError> {
    Ok(ManagedBy { extension: text(node, "extensionKey")?, kind: text(node, "type")? })
}

/// `config.extraConfig`, the entries that are kept ([`VmView::is_extra`]).
pub fn vm_extra(node: &Node) -> Result<BTreeMap<String, String>, DecodeError> {
    let kept = |item: &&Node| item.text_of("key").is_none_or(VmView::is_extra);
    node.children.iter().filter(kept).map(option_value).collect()
}

/// `OptionValue`: its key, and its value as text whatever its type.
pub fn option_value(item: &Node) -> Result<(String, String), DecodeError> {
    Ok((text(item, "key")?, item.text_of("value").unwrap_or_default().to_owned()))
}

/// Whether a setting is on: `TRUE` as advanced settings have it, a boolean as the option manager has.
pub fn option_flag(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}
