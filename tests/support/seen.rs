//! Hosts as they would be seen, for tests of the planner and for benches.

use std::collections::BTreeMap;

use poolwright::model::{
    AssignmentPolicy, At, Capabilities, ClusterView, Connection, Desired, DesiredPool, Drs, DrsLevel, Expect, Fact,
    Firmware, FoundInMaintenance, GpuGroup, GpuSelect, GraphicsConfig, GraphicsDeviceConfig, GraphicsState,
    GraphicsType, GuestRules, HostPin, HostRecord, HostRef, HostService, HostSettings, HostView, Lockdown, MoRef, Mode,
    NodeRef, NodeView, NumaNode, Observed, OnValidationFailure, Pace, Package, Parity, PassthruState, PciAddress,
    PciDevice, PciId, Place, PowerState, Product, RolloutRules, ShellLogin, ShellWay, SiteIdentity, Tally, ToolsStatus,
    VgpuMode, VgpuSize, VmGpuDevice, VmRules, VmView,
};
use poolwright::plan::Around;

/// A model that tests use.
#[derive(Debug, Clone, Copy)]
pub struct Card {
    /// Catalogue id.
    pub model: &'static str,
    /// Name as ESXi prints it.
    pub name: &'static str,
    /// Device and board.
    pub id: (u16, u16),
}

/// Hopper.
pub const H100: Card = Card { model: "h100-nvl-94", name: "NVIDIA H100 NVL", id: (0x2321, 0x1839) };
/// Ampere.
pub const A100: Card = Card { model: "a100-pcie-40", name: "NVIDIA A100-PCIE-40GB", id: (0x20f1, 0x145f) };
/// Turing: no mixed size.
pub const T4: Card = Card { model: "t4", name: "Tesla T4", id: (0x1eb8, 0x12a2) };

impl Card {
    pub fn pci(self) -> PciId {
        PciId { vendor: PciId::NVIDIA, device: self.id.0, sub_vendor: PciId::NVIDIA, sub_device: self.id.1 }
    }
}

/// How a GPU is set and active.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Set {
    Passthrough(Option<&'static str>),
    Same,
    Mixed,
    Mig,
    /// vSGA.
    Shared,
    /// No driver.
    Basic,
}

pub fn at(bus: u8) -> PciAddress {
    PciAddress { segment: 0, bus, device: 0, function: 0 }
}

pub fn place(line: u32) -> Place {
    Place { file: "profiles/pool.yaml".into(), line, column: 3 }
}

/// A text at a line.
pub fn text(line: u32, value: &str) -> At<String> {
    At::new(value.to_owned(), place(line))
}

/// A host of 8.0.3 with these GPUs, connected, empty and in service.
pub fn host(card: Card, gpus: &[(u8, Set)]) -> HostView {
    let tally = |n| Fact::Known(Tally { good: n, all: n });
    let mut view = HostView {
        uuid: Fact::Known("4c4c4544-0001".into()),
        product: Fact::Known(Product { version: "8.0.3".into(), build: "24022510".into() }),
        connection: Fact::Known(Connection::Connected),
        power: Fact::Known(PowerState::On),
        in_maintenance: Fact::Known(false),
        boot_time: Fact::Known("2026-11-01T03:00:00Z".parse().unwrap()),
        reboot_required: Fact::Known(false),
        pci: Fact::Known(vec![device("0000:00:1f.2", 0x8086, 0x8d62, 0x0106, "Intel SATA controller")]),
        passthru: Fact::Known(vec![]),
        memory_mib: Fact::Known(1 << 20),
        lockdown: Fact::Known(Lockdown::Disabled),
        services: Fact::Known(vec![HostService { key: "TSM-SSH".into(), running: false, policy: "off".into() }]),
        shell_login: Fact::Known(ShellLogin { user: "root".into(), pinned: true }),
        shell: Fact::Absent,
        graphics_config: Fact::Known(GraphicsConfig {
            default_type: GraphicsType::Shared,
            policy: AssignmentPolicy::Performance,
            devices: vec![],
        }),
        graphics_active: Fact::Known(vec![]),
        vgpu_types: Fact::Known(vec![]),
        numa: Fact::Known(vec![]),
        capabilities: Capabilities { rebind_without_reboot: Fact::Known(false), hardware_label: Fact::Known(true) },
        packages: Fact::Known(vec![Package {
            name: "NVD-AIE-800".into(),
            version: "580.95.02-1OEM.800.1.0.20613240".into(),
            vendor: "NVIDIA".into(),
        }]),
        vms: Fact::Known(vec![]),
        tasks: Fact::Known(vec![]),
        marker: Fact::Absent,
        parity: Parity {
            datastores: tally(12),
            uplinks: tally(4),
            ha: Fact::Known("connectedToMaster".into()),
            crypto: Fact::Absent,
            alarms: Fact::Known(0),
        },
        graphics_manager: Fact::Known(MoRef::new("HostGraphicsManager", "graphicsManager-21")),
        passthru_system: Fact::Known(MoRef::new("HostPciPassthruSystem", "pciPassthruSystem-21")),
        service_system: Fact::Known(MoRef::new("HostServiceSystem", "serviceSystem-21")),
    };
    for (bus, set) in gpus {
        plug(&mut view, card, *bus, set);
    }
    view
}

/// A PCI function.
pub fn device(address: &str, vendor: u16, device: u16, class: u16, name: &str) -> PciDevice {
    PciDevice {
        address: address.parse().unwrap(),
        id: PciId { vendor, device, sub_vendor: vendor, sub_device: 1 },
        class,
        name: name.into(),
        vendor_name: "vendor".into(),
        parent_bridge: Fact::Absent,
    }
}

/// An entry of pciPassthruInfo.
pub fn passthru(address: PciAddress, enabled: bool) -> PassthruState {
    PassthruState {
        address,
        enabled,
        active: enabled,
        capable: true,
        label: Fact::Absent,
        dependent: Fact::Absent,
        sriov: false,
        virtual_functions: 0,
    }
}

/// Puts a GPU into a host.
pub fn plug(view: &mut HostView, card: Card, bus: u8, set: &Set) {
    let mut function = device(&at(bus).to_string(), PciId::NVIDIA, card.id.0, 0x0302, card.name);
    function.id = card.pci();
    known(&mut view.pci).push(function);
    let mut state = passthru(at(bus), false);
    state.sriov = card.model != T4.model;
    known(&mut view.passthru).push(state);
    set_gpu(view, bus, set);
}

/// Sets a GPU, configured and active.
pub fn set_gpu(view: &mut HostView, bus: u8, set: &Set) {
    let passed = matches!(set, Set::Passthrough(_));
    let state = known(&mut view.passthru).iter_mut().find(|state| state.address == at(bus)).unwrap();
    (state.enabled, state.active) = (passed, passed);
    state.label = match set {
        Set::Passthrough(Some(label)) => Fact::Known((*label).to_owned()),
        _ => Fact::Absent,
    };
    let (active, mode, own) = match set {
        Set::Passthrough(_) => (GraphicsType::Direct, None, None),
        Set::Same => (GraphicsType::SharedDirect, Some(VgpuMode::SameSize), Some(GraphicsType::SharedDirect)),
        Set::Mixed => (GraphicsType::SharedDirect, Some(VgpuMode::MixedSize), Some(GraphicsType::SharedDirect)),
        // What is configured stays under MIG.
        Set::Mig => (GraphicsType::SharedDirect, Some(VgpuMode::MultiInstanceGpu), Some(GraphicsType::SharedDirect)),
        Set::Shared => (GraphicsType::Shared, None, None),
        Set::Basic => (GraphicsType::Basic, None, None),
    };
    let config = known(&mut view.graphics_config);
    config.devices.retain(|entry| entry.address != at(bus));
    config.devices.extend(own.map(|graphics_type| GraphicsDeviceConfig {
        address: at(bus),
        graphics_type,
        vgpu_mode: match mode.clone() {
            Some(VgpuMode::MultiInstanceGpu) => Fact::Known(VgpuMode::SameSize),
            other => other.map_or(Fact::Absent, Fact::Known),
        },
    }));
    let actives = known(&mut view.graphics_active);
    actives.retain(|state| state.address != at(bus));
    actives.push(GraphicsState {
        address: at(bus),
        name: "GPU".into(),
        graphics_type: active,
        vgpu_mode: Fact::Known(mode.unwrap_or(VgpuMode::None)),
        memory_kib: 0,
        vms: vec![],
    });
}

/// The active state of a GPU, to change it.
pub fn active(view: &mut HostView, bus: u8) -> &mut GraphicsState {
    known(&mut view.graphics_active).iter_mut().find(|state| state.address == at(bus)).unwrap()
}

/// The known value, to change it.
pub fn known<T>(fact: &mut Fact<T>) -> &mut T {
    match fact {
        Fact::Known(value) => value,
        _ => panic!("the builder makes known facts"),
    }
}

/// A VM without GPU, powered on.
pub fn vm(name: &str, power: PowerState) -> VmView {
    let on = power == PowerState::On;
    VmView {
        moref: MoRef::new("VirtualMachine", format!("vm-{name}")),
        name: Fact::Known(name.into()),
        power: Fact::Known(power),
        host: Fact::Known(MoRef::new("HostSystem", "host-21")),
        template: Fact::Known(false),
        vcls: false,
        gpus: Fact::Known(vec![]),
        memory_mib: Fact::Known(64 << 10),
        reserved_mib: Fact::Known(64 << 10),
        firmware: Fact::Known(Firmware::Efi),
        managed_by: Fact::Absent,
        extra: Fact::Known(BTreeMap::new()),
        folder: Fact::Known("/DC1/vm".into()),
        bios_uuid: Fact::Known(format!("bios-{name}")),
        instance_uuid: Fact::Known(format!("instance-{name}")),
        tools: Fact::Known(if on { ToolsStatus::Running } else { ToolsStatus::NotRunning }),
        node: Fact::Absent,
    }
}

/// A node as it is in service, with so many GPUs.
pub fn node(cluster: &str, name: &str, gpus: u32) -> NodeView {
    NodeView {
        node: NodeRef { cluster: cluster.into(), name: name.into(), uid: format!("uid-{name}") },
        version: "812".into(),
        deleting: false,
        provider_id: Fact::Known(format!("vsphere://bios-{name}")),
        system_uuid: Fact::Known(format!("bios-{name}")),
        boot_id: Fact::Known(format!("boot-1-{name}")),
        unschedulable: false,
        ready: Fact::Known(true),
        allocatable: Fact::Known(BTreeMap::from([("nvidia.com/gpu".into(), gpus.to_string())])),
        mark: Fact::Absent,
        left_off: false,
        machine: Fact::Absent,
        attached: vec![],
    }
}

/// What is done with the nodes of a guest cluster.
pub fn guest_rules(cluster: &str, per_node: u32) -> GuestRules {
    GuestRules {
        cluster: text(30, cluster),
        expect: Expect { resource: text(31, "nvidia.com/gpu"), per_node: At::new(per_node, place(31)) },
        drain_timeout_s: 1800,
        validate: vec![],
    }
}

/// A device of a VM.
pub fn vgpu_device(name: &str) -> VmGpuDevice {
    VmGpuDevice::Vgpu { name: name.into(), migrate: Fact::Known(true) }
}

/// A device of a VM.
pub fn direct_path(address: &str) -> VmGpuDevice {
    VmGpuDevice::DirectPath { id: address.into(), device_id: Fact::Known(H100.id.0) }
}

/// A device of a VM that asks for this label.
pub fn dynamic(label: Option<&str>) -> VmGpuDevice {
    let label = label.map_or(Fact::Absent, |label| Fact::Known(label.to_owned()));
    VmGpuDevice::DynamicDirectPath { label, assigned: Fact::Absent }
}

/// A cluster whose DRS empties hosts by itself, VMs with a vGPU too.
pub fn cluster() -> ClusterView {
    ClusterView {
        moref: MoRef::new("ClusterComputeResource", "domain-c8"),
        drs: Fact::Known(Drs {
            enabled: Fact::Known(true),
            level: Fact::Known(DrsLevel::FullyAutomated),
            overrides_count: Fact::Known(true),
            options: BTreeMap::from([(Drs::VGPU_EVACUATION.into(), "-1".into())]),
            overrides: vec![],
        }),
        ha_admission: Fact::Absent,
        drs_faults: Fact::Known(vec![]),
    }
}

/// NUMA nodes by the buses of their GPUs.
pub fn numa(nodes: &[&[u8]]) -> Fact<Vec<NumaNode>> {
    let node =
        |(id, buses): (usize, &&[u8])| NumaNode { id: id as u32, devices: buses.iter().map(|bus| at(*bus)).collect() };
    Fact::Known(nodes.iter().enumerate().map(node).collect())
}

/// The reference of a host of cluster `gpu-a`.
pub fn reference(name: &str) -> HostRef {
    HostRef {
        moref: MoRef::new("HostSystem", format!("host-{name}")),
        name: name.into(),
        path: format!("/DC1/host/gpu-a/{name}"),
        cluster: "/DC1/host/gpu-a".into(),
    }
}

/// A host that could be read.
pub fn record(name: &str, view: HostView) -> HostRecord {
    HostRecord { host: reference(name), read_at: "2026-11-30T20:00:00Z".parse().unwrap(), view: Ok(Box::new(view)) }
}

/// A fleet of these hosts; each gets a machine id of its own.
pub fn fleet(hosts: Vec<(&str, HostView)>) -> Observed {
    let record = |(name, mut view): (&str, HostView)| {
        if !view.uuid.is_unknown() {
            view.uuid = Fact::Known(format!("uuid-{name}"));
        }
        let record = record(name, view);
        (record.host.path.clone(), record)
    };
    Observed {
        site: SiteIdentity {
            name: "fra1".into(),
            address: "vc.lab".into(),
            instance_uuid: "6f0e".into(),
            version: "8.0.3".into(),
            api_version: "8.0.3.0".into(),
        },
        taken_at: "2026-11-30T20:00:00Z".parse().unwrap(),
        marker_field: Fact::Known(true),
        hot_migrate: Fact::Known(true),
        clusters: BTreeMap::from([("/DC1/host/gpu-a".into(), Fact::Known(cluster()))]),
        guests: BTreeMap::new(),
        hosts: hosts.into_iter().map(record).collect(),
        notes: vec![],
    }
}

/// What is around a host of the fleet.
pub fn around(seen: &Observed, name: &str) -> Around {
    let own = reference(name);
    Around {
        cluster: seen.clusters[&own.cluster].clone(),
        neighbours: seen.hosts.values().filter(|other| other.host.moref != own.moref).cloned().collect(),
        hot_migrate: seen.hot_migrate.clone(),
        guests: seen.guests.clone(),
    }
}

/// The mode of a pool.
pub fn passthrough(label: Option<&str>) -> Mode {
    Mode::Passthrough { label: label.map(str::to_owned) }
}

/// The mode of a pool.
pub fn vgpu(size: VgpuSize) -> Mode {
    Mode::Vgpu { size }
}

/// A group of a pool.
pub fn group(line: u32, select: GpuSelect, mode: Mode) -> GpuGroup {
    GpuGroup { select: At::new(select, place(line)), mode: At::new(mode, place(line + 1)), offers: vec![] }
}

/// A pool of all GPUs of its hosts.
pub fn pool(card: Card, count: u32, mode: Mode, hosts: &[&str]) -> DesiredPool {
    DesiredPool {
        name: text(3, "infer"),
        cluster: text(5, "/DC1/host/gpu-a"),
        gpu_model: text(7, card.model),
        gpu_count: At::new(count, place(8)),
        host: HostSettings::default(),
        gpus: vec![group(10, GpuSelect::All, mode)],
        vms: VmRules::default(),
        rollout: RolloutRules {
            max_unavailable: At::new(1, place(20)),
            max_reboots: At::new(2, place(21)),
            found_in_maintenance: FoundInMaintenance::Hold,
            on_validation_failure: OnValidationFailure::CloseHost,
        },
        guests: vec![],
        accept: vec![],
        hosts: hosts.iter().map(|name| HostPin { host: reference(name), selector: text(6, "esx-*") }).collect(),
    }
}

/// The wish of these pools.
pub fn desired(pools: Vec<DesiredPool>) -> Desired {
    Desired { site: text(4, "fra1"), pace: Pace::default(), shell: ShellWay::Handoff, pools }
}
