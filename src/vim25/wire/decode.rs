//! Values of answers, decoded by hand: tolerant of what may differ, strict on what we rely on.
//!
//! Each decoder takes one property's value, so one that cannot be read leaves the others alone.

use std::str::FromStr;

use jiff::Timestamp;

use super::tree::Node;
use crate::model::{
    Fact, GraphicsConfig, GraphicsDeviceConfig, GraphicsState, HostService, MoRef, NumaNode, Package, PassthruState,
    PciAddress, PciDevice, PciId, Product,
};

/// A value that is not what vim25 says it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{element}`: {what}")]
pub struct DecodeError {
    /// The element.
    pub element: String,
    /// What is wrong with it.
    pub what: String,
}

impl DecodeError {
    pub(crate) fn new(element: &str, what: impl Into<String>) -> Self {
        Self { element: element.to_owned(), what: what.into() }
    }
}

type Decoded<T> = Result<T, DecodeError>;

/// A child that must be there.
pub fn required<'a>(node: &'a Node, name: &str) -> Decoded<&'a Node> {
    node.get(name).ok_or_else(|| DecodeError::new(&node.name, format!("`{name}` is missing")))
}

/// Text as it is.
pub fn string(node: &Node) -> Decoded<String> {
    Ok(node.text.clone())
}

/// Text of a child that must be there.
pub fn text(node: &Node, name: &str) -> Decoded<String> {
    Ok(required(node, name)?.text.clone())
}

/// Text of a child; a child that is absent or empty is absent. (vcsim sends empty enumerations, and
/// vim25 an empty `hardwareLabel` or `dependentDevice` for none.)
pub fn text_fact(node: &Node, name: &str) -> Fact<String> {
    match node.text_of(name) {
        Some(text) if !text.is_empty() => Fact::Known(text.to_owned()),
        _ => Fact::Absent,
    }
}

/// A child that may be left out, as a fact: one that is not understood leaves the rest what it is.
pub fn optional<T>(node: &Node, name: &str, decode: impl FnOnce(&Node) -> Decoded<T>) -> Fact<T> {
    match node.get(name).map(decode) {
        Some(Ok(value)) => Fact::Known(value),
        Some(Err(error)) => Fact::unknown(error.to_string()),
        None => Fact::Absent,
    }
}

/// A number or anything else that parses from text.
pub fn parsed<T: FromStr>(node: &Node) -> Decoded<T> {
    let text = node.text.trim();
    text.parse().map_err(|_| DecodeError::new(&node.name, format!("unexpected `{text}`")))
}

/// `true`, `false`, `1`, `0`.
pub fn boolean(node: &Node) -> Decoded<bool> {
    match node.text.trim() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        other => Err(DecodeError::new(&node.name, format!("`{other}` is no boolean"))),
    }
}

/// `xsd:dateTime`: `2023-12-12T09:07:01.778318Z`, also with an offset. One without is refused: it
/// could be any time.
pub fn timestamp(node: &Node) -> Decoded<Timestamp> {
    parsed(node)
}

/// A PCI id: a signed short on the wire (`-32634` is 8086), unsigned from some servers.
pub fn pci_short(node: &Node) -> Decoded<u16> {
    match parsed::<i32>(node)? {
        // The two's complement of 16 bits is meant.
        value @ -0x8000..=0xffff => Ok((value & 0xffff) as u16),
        value => Err(DecodeError::new(&node.name, format!("{value} is no 16-bit id"))),
    }
}

/// A PCI address, `0000:3b:00.0`. Taken from `id` always: `bus` is a signed byte, which real hosts
/// print as -122 and vcsim as 134.
pub fn pci_address(node: &Node) -> Decoded<PciAddress> {
    node.text.trim().parse().map_err(|error| DecodeError::new(&node.name, format!("{error}")))
}

/// A reference: `<x type="HostSystem">host-21</x>`.
pub fn reference(node: &Node) -> Decoded<MoRef> {
    match (node.attribute("type"), node.text.trim()) {
        (Some(kind), id) if !id.is_empty() => Ok(MoRef::new(kind, id)),
        (None, _) => Err(DecodeError::new(&node.name, "a reference without `type`")),
        (Some(_), _) => Err(DecodeError::new(&node.name, "a reference without an id")),
    }
}

/// `ArrayOf…`: each element decoded. The elements are named after their declared type, so all are
/// taken whatever their name.
pub fn array<T>(node: &Node, item: impl Fn(&Node) -> Decoded<T>) -> Decoded<Vec<T>> {
    node.children.iter().map(item).collect()
}

/// `ArrayOfManagedObjectReference`.
pub fn references(node: &Node) -> Decoded<Vec<MoRef>> {
    array(node, reference)
}

/// `ArrayOfString`.
pub fn strings(node: &Node) -> Decoded<Vec<String>> {
    array(node, string)
}

/// `hardware.pciDevice`.
pub fn pci_devices(node: &Node) -> Decoded<Vec<PciDevice>> {
    array(node, pci_device)
}

/// One `HostPciDevice`.
pub fn pci_device(item: &Node) -> Decoded<PciDevice> {
    let short = |name| pci_short(required(item, name)?);
    Ok(PciDevice {
        address: pci_address(required(item, "id")?)?,
        id: PciId {
            vendor: short("vendorId")?,
            device: short("deviceId")?,
            sub_vendor: short("subVendorId")?,
            sub_device: short("subDeviceId")?,
        },
        class: short("classId")?,
        name: text(item, "deviceName")?,
        vendor_name: text(item, "vendorName")?,
        parent_bridge: text_fact(item, "parentBridge"),
    })
}

/// `config.pciPassthruInfo`: plain devices and `HostSriovInfo` (A100 and later) in one array.
pub fn passthru_states(node: &Node) -> Decoded<Vec<PassthruState>> {
    array(node, passthru_state)
}

/// One `HostPciPassthruInfo`.
pub fn passthru_state(item: &Node) -> Decoded<PassthruState> {
    let flag = |name| boolean(required(item, name)?);
    Ok(PassthruState {
        address: pci_address(required(item, "id")?)?,
        enabled: flag("passthruEnabled")?,
        active: flag("passthruActive")?,
        capable: flag("passthruCapable")?,
        label: text_fact(item, "hardwareLabel"),
        dependent: text_fact(item, "dependentDevice"),
        sriov: item.type_name() == Some("HostSriovInfo"),
        virtual_functions: item.get("numVirtualFunction").map_or(Ok(0), parsed)?,
    })
}

/// `config.graphicsConfig`.
pub fn graphics_config(node: &Node) -> Decoded<GraphicsConfig> {
    let device = |item: &Node| {
        Ok(GraphicsDeviceConfig {
            address: pci_address(required(item, "deviceId")?)?,
            graphics_type: text(item, "graphicsType")?.as_str().into(),
            vgpu_mode: text_fact(item, "vgpuMode").map(|mode| mode.as_str().into()),
        })
    };
    Ok(GraphicsConfig {
        default_type: text(node, "hostDefaultGraphicsType")?.as_str().into(),
        policy: text(node, "sharedPassthruAssignmentPolicy")?.as_str().into(),
        devices: node.all("deviceType").map(device).collect::<Decoded<_>>()?,
    })
}

/// `config.graphicsInfo`.
pub fn graphics_states(node: &Node) -> Decoded<Vec<GraphicsState>> {
    array(node, |item| {
        Ok(GraphicsState {
            address: pci_address(required(item, "pciId")?)?,
            name: text(item, "deviceName")?,
            graphics_type: text(item, "graphicsType")?.as_str().into(),
            vgpu_mode: text_fact(item, "vgpuMode").map(|mode| mode.as_str().into()),
            // "or zero if not available"
            memory_kib: parsed(required(item, "memorySizeInKB")?)?,
            vms: item.all("vm").map(reference).collect::<Decoded<_>>()?,
        })
    })
}

/// `hardware.numaInfo.numaNode`.
pub fn numa_nodes(node: &Node) -> Decoded<Vec<NumaNode>> {
    array(node, |item| {
        Ok(NumaNode {
            // xsd:byte; no host has so many nodes that the sign would matter.
            id: parsed(required(item, "typeId")?)?,
            devices: item.all("pciId").map(pci_address).collect::<Decoded<_>>()?,
        })
    })
}

/// `config.product`, an `AboutInfo`.
pub fn product(node: &Node) -> Decoded<Product> {
    Ok(Product { version: text(node, "version")?, build: text(node, "build")? })
}

/// One `SoftwarePackage`.
pub fn package(node: &Node) -> Decoded<Package> {
    Ok(Package { name: text(node, "name")?, version: text(node, "version")?, vendor: text(node, "vendor")? })
}

/// `HostServiceInfo`.
pub fn host_services(node: &Node) -> Decoded<Vec<HostService>> {
    let service = |item: &Node| {
        Ok(HostService {
            key: text(item, "key")?,
            running: boolean(required(item, "running")?)?,
            policy: text(item, "policy")?,
        })
    };
    node.all("service").map(service).collect()
}

/// Bytes, as MiB rounded down.
pub fn mebibytes_of_bytes(node: &Node) -> Decoded<u64> {
    Ok(parsed::<u64>(node)? >> 20)
}

/// A custom field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomField {
    /// Its key: what values refer to.
    pub key: i32,
    /// Its name.
    pub name: String,
    /// The managed type it is for; absent for all.
    pub kind: Fact<String>,
}

/// One `CustomFieldDef`.
pub fn custom_field(node: &Node) -> Decoded<CustomField> {
    Ok(CustomField {
        key: parsed(required(node, "key")?)?,
        name: text(node, "name")?,
        kind: text_fact(node, "managedObjectType"),
    })
}

/// `customValue` of an entity: key and value of each field that is set.
pub fn custom_values(node: &Node) -> Decoded<Vec<(i32, String)>> {
    array(node, |item| Ok((parsed(required(item, "key")?)?, text(item, "value")?)))
}
