//! One host and its PCI devices, from the document.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::build::{impossible, uuid};
use super::device::{Function, Gpu, GraphicsEntry};
use super::error::WorldError;
use super::shell::Shell;
use super::state::{Graphics, Host};
use crate::catalog::Model;
use crate::model::{PciAddress, PciId};
use crate::sim::behaviour::FULL_WIDTH;
use crate::sim::document::{Connection, ExtraDevice, GpuGroup, GpuMode, HostGroup, VgpuSize, WorldSpec};
use crate::sim::gpus;

/// What a host is made from.
pub(super) struct NewHost<'a> {
    pub name: &'a str,
    pub cluster: u32,
    pub group: &'a HostGroup,
    pub ha: bool,
    pub spec: &'a WorldSpec,
    pub at: &'a str,
}

/// How long a host has been up when a world begins: 12 days and a fraction, as nothing boots on the
/// second.
const UP: SignedDuration = SignedDuration::new(12 * 24 * 3600, 221_682_000);

const INTEL: u16 = 0x8086;

pub(super) fn make_host(new: &NewHost<'_>) -> Result<Host, WorldError> {
    let NewHost { name, cluster, group, ha, spec, at } = new;
    let mut functions = board();
    let mut entries = Vec::new();
    for (index, gpus) in group.gpus.iter().enumerate() {
        gpu_group(gpus, group, &format!("{at}.gpus[{index}]"), &mut functions, &mut entries)?;
    }
    for (index, device) in group.devices.iter().enumerate() {
        functions.push(extra(device, &format!("{at}.devices[{index}]"))?);
    }
    functions.sort_by_key(|function| function.address);
    if let Some(pair) = functions.windows(2).find(|pair| pair[0].address == pair[1].address) {
        return Err(impossible(at, format!("two devices at {}", pair[0].address)));
    }
    entries.sort_by_key(|entry: &GraphicsEntry| entry.address);
    let default_type = group.default_type.clone().unwrap_or_else(|| {
        let vgpu = entries.iter().any(|entry| entry.graphics_type == "sharedDirect");
        if vgpu { "sharedDirect" } else { "shared" }.to_owned()
    });
    let boot_time = spec.now.checked_sub(UP).unwrap_or(spec.now);
    Ok(Host {
        name: (*name).to_owned(),
        cluster: *cluster,
        uuid: uuid(&format!("host {cluster} {name}")),
        version: group.version.clone().unwrap_or_else(|| spec.vcenter.version.clone()),
        memory_gib: group.memory_gib,
        driver: group.driver.clone(),
        connection: group.connection,
        power: group.power,
        maintenance: group.maintenance,
        up: group.connection != Connection::NotResponding,
        shell: Shell::of(&group.shell, name),
        boot_time,
        boot_seen: boot_time,
        boots: 0,
        graphics: Graphics { default_type, policy: group.policy.clone(), devices: entries },
        functions,
        shown: None,
        before: None,
        ha_agent: ha.then(|| "connectedToMaster".to_owned()),
        storage: true,
        datastores: Vec::new(),
        uplinks: group.uplinks,
        uplinks_up: group.uplinks_up.min(group.uplinks),
        crypto: group.crypto.clone(),
        alarms: group.alarms.clone(),
        values: BTreeMap::new(),
        rebind_supported: group.rebind_supported,
        label_supported: group.label_supported,
        enter_s: group.enter.0.as_secs(),
        exit_s: group.exit.0.as_secs(),
        boot: group.boot.clone(),
        unreadable: group.unreadable.clone(),
        absent: group.absent.clone(),
    })
}

/// Functions that every server has: ids as recorded (vsphere-gpu §1.4: 0x8086 arrives as -32634),
/// and a console VGA, which is of class 0x0300 and no GPU of ours.
fn board() -> Vec<Function> {
    let root = address(0, 0x00, 0, 0);
    let of = |at, id, class, name: &str, maker: &str| Function { bridge: root, ..plain(at, id, class, name, maker) };
    let nic = PciId { vendor: INTEL, device: 0x1572, sub_vendor: 0x1028, sub_device: 0 };
    vec![
        of(root, pci(INTEL, 0x8900), 0x0600, "Ice Lake IEH", "Intel Corporation"),
        of(address(0, 0x03, 0, 0), pci(0x1a03, 0x2000), 0x0300, "ASPEED Graphics Family", "ASPEED Technology, Inc."),
        of(address(0, 0x05, 0, 0), nic, 0x0200, "Ethernet Controller X710 for 10GbE SFP+", "Intel(R)"),
        of(address(0, 0x05, 0, 1), nic, 0x0200, "Ethernet Controller X710 for 10GbE SFP+", "Intel(R)"),
    ]
}

fn pci(vendor: u16, device: u16) -> PciId {
    PciId { vendor, device, sub_vendor: vendor, sub_device: 0 }
}

fn address(segment: u16, bus: u8, device: u8, function: u8) -> PciAddress {
    PciAddress { segment, bus, device, function }
}

fn plain(at: PciAddress, id: PciId, class: u16, name: &str, maker: &str) -> Function {
    Function {
        address: at,
        vendor: id.vendor,
        device: id.device,
        sub_vendor: id.sub_vendor,
        sub_device: id.sub_device,
        class,
        name: name.to_owned(),
        vendor_name: maker.to_owned(),
        bridge: at,
        numa: 0,
        enabled: false,
        active: false,
        capable: false,
        label: String::new(),
        virtual_functions: None,
        virtual_of: None,
        gpu: None,
    }
}

fn extra(spec: &ExtraDevice, at: &str) -> Result<Function, WorldError> {
    let hex =
        |text: &str| u16::from_str_radix(text, 16).map_err(|_| impossible(at, format!("`{text}` is not a hex id")));
    let place: PciAddress = spec.address.parse().map_err(|error| impossible(at, format!("{error}")))?;
    let id = pci(hex(&spec.vendor)?, hex(&spec.device)?);
    let maker = if id.vendor == PciId::NVIDIA { "NVIDIA Corporation" } else { "Unknown" };
    let base = plain(place, id, hex(&spec.class)?, &spec.name, maker);
    Ok(Function { capable: true, enabled: spec.passthrough, active: spec.passthrough, ..base })
}

/// The address of the n-th GPU of a NUMA node, as two-socket servers spread them: two nodes a
/// segment, eight buses apart.
fn made_up(node: u32, nth: u32) -> PciAddress {
    let base = if node.is_multiple_of(2) { 0x17 } else { 0x97 };
    let segment = u16::try_from(node / 2).unwrap_or(u16::MAX);
    address(segment, u8::try_from(base + 8 * (nth % 13)).unwrap_or(u8::MAX), 0, 0)
}

fn gpu_group(
    spec: &GpuGroup,
    host: &HostGroup,
    at: &str,
    functions: &mut Vec<Function>,
    entries: &mut Vec<GraphicsEntry>,
) -> Result<(), WorldError> {
    let model = gpus::model(&spec.model)
        .ok_or_else(|| impossible(&format!("{at}.model"), format!("the catalogue has no model `{}`", spec.model)))?;
    for index in 0..spec.count {
        let node = spec.numa.get(index as usize).copied().unwrap_or(0);
        let nth = functions.iter().filter(|known| known.gpu.is_some() && known.numa == node).count();
        let place = match spec.addresses.get(index as usize) {
            Some(text) => text.parse().map_err(|error| impossible(at, format!("{error}")))?,
            None => made_up(node, u32::try_from(nth).unwrap_or(u32::MAX)),
        };
        let bridge = PciAddress { bus: place.bus.saturating_sub(1), device: 0, function: 0, ..place };
        if !functions.iter().any(|known| known.address == bridge) {
            let name = "PCI Express Root Port";
            functions
                .push(Function { numa: node, ..plain(bridge, pci(INTEL, 0x352a), 0x0604, name, "Intel Corporation") });
        }
        let function = Function { bridge, numa: node, ..gpu(spec, model, host, place) };
        virtual_functions(spec, &function, functions);
        entries.extend(entry(spec.pending.as_ref().unwrap_or(&spec.mode), place));
        functions.push(function);
    }
    Ok(())
}

fn gpu(spec: &GpuGroup, model: &Model, host: &HostGroup, place: PciAddress) -> Function {
    let pci = model.pci.first();
    let id = PciId {
        vendor: PciId::NVIDIA,
        device: pci.map_or(0, |pci| pci.device),
        sub_vendor: PciId::NVIDIA,
        sub_device: pci.and_then(|pci| pci.subsystems.first()).copied().unwrap_or(0),
    };
    let name = model.smi_name.as_deref().unwrap_or(&model.name);
    let active = matches!(spec.mode, GpuMode::Passthrough { .. });
    let configured = spec.pending.as_ref().unwrap_or(&spec.mode);
    let label = match (configured, &spec.mode) {
        (GpuMode::Passthrough { label }, _) | (_, GpuMode::Passthrough { label }) => label.clone().unwrap_or_default(),
        _ => String::new(),
    };
    let (graphics_type, vgpu_mode, mig) = match (&spec.mode, host.driver.is_some()) {
        (GpuMode::Passthrough { .. }, _) => ("direct", "none", spec.mig_left && gpus::mig_survives_boot(&model.id)),
        (_, false) => ("basic", "none", false),
        (GpuMode::Vgpu { size: VgpuSize::Same }, true) => ("sharedDirect", "sameSize", false),
        (GpuMode::Vgpu { size: VgpuSize::Mixed }, true) => ("sharedDirect", "mixedSize", false),
        (GpuMode::MigVgpu {}, true) => ("sharedDirect", "multiInstanceGpu", true),
        (GpuMode::Shared {}, true) => ("shared", "none", false),
    };
    Function {
        enabled: matches!(configured, GpuMode::Passthrough { .. }),
        active,
        capable: spec.passthrough_capable,
        label,
        // SR-IOV physical functions, as the recorded A100s are.
        virtual_functions: (model.can.sriov == Some(true)).then_some(spec.virtual_functions),
        gpu: Some(Gpu {
            model: model.id.clone(),
            memory_mib: u64::from(model.memory.mib.unwrap_or(model.memory.gb * 1024)),
            graphics_type: graphics_type.to_owned(),
            vgpu_mode: vgpu_mode.to_owned(),
            mig,
            mig_pending: mig,
            lanes: FULL_WIDTH,
        }),
        // 0x0302 "3D controller", as recorded (classId 770).
        ..plain(place, id, 0x0302, name, "NVIDIA Corporation")
    }
}

/// Virtual functions of a GPU, listed as devices of their own on the same bus (a trap: they carry the
/// vendor, class and name of a GPU).
fn virtual_functions(spec: &GpuGroup, parent: &Function, functions: &mut Vec<Function>) {
    for index in 0..spec.virtual_functions.min(31 * 8) {
        let (device, function) = ((index + 8) / 8, (index + 8) % 8);
        let place = PciAddress {
            device: u8::try_from(device).unwrap_or(31),
            function: u8::try_from(function).unwrap_or(7),
            ..parent.address
        };
        functions.push(Function {
            address: place,
            virtual_functions: None,
            virtual_of: Some(parent.address),
            enabled: false,
            active: false,
            capable: false,
            label: String::new(),
            gpu: None,
            ..parent.clone()
        });
    }
}

fn entry(mode: &GpuMode, place: PciAddress) -> Option<GraphicsEntry> {
    let (graphics_type, vgpu_mode) = match mode {
        GpuMode::Passthrough { .. } => return None,
        GpuMode::Vgpu { size: VgpuSize::Same } | GpuMode::MigVgpu {} => ("sharedDirect", Some("sameSize")),
        GpuMode::Vgpu { size: VgpuSize::Mixed } => ("sharedDirect", Some("mixedSize")),
        GpuMode::Shared {} => ("shared", None),
    };
    Some(GraphicsEntry {
        address: place,
        graphics_type: graphics_type.to_owned(),
        vgpu_mode: vgpu_mode.map(str::to_owned),
    })
}
