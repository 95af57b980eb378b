//! `config` of a host: product, network, graphics and PCI passthrough; the managers that show the same.

use std::collections::BTreeSet;

use super::super::value::{Data, Value, text};
use crate::model::PciAddress;
use crate::sim::document::{Lockdown, ServicePolicy};
use crate::sim::world::device::{Function, Gpu};
use crate::sim::world::shell::SSH;
use crate::sim::world::state::{Graphics, Host, State};
use crate::sim::{gpus, seats};

/// Most virtual functions of a GPU (§5.3).
const MAX_VIRTUAL_FUNCTIONS: u32 = 16;

/// What is shown of a host's changeable state: live, late after a boot, or as it was before the last
/// change.
pub(super) struct View<'a> {
    pub maintenance: bool,
    pub graphics: &'a Graphics,
    /// Functions that exist: virtual functions of a GPU in passthrough do not.
    pub functions: Vec<&'a Function>,
    /// GPUs that running VMs use, with the VM.
    used: Vec<(PciAddress, u32)>,
}

impl<'a> View<'a> {
    pub fn of(state: &State, id: u32, host: &'a Host, stale: bool) -> Self {
        let old = if stale { host.before.as_deref() } else { None };
        let late = old.or(host.shown.as_deref());
        let (graphics, functions) =
            late.map_or((&host.graphics, &host.functions), |shown| (&shown.graphics, &shown.functions));
        let exists = |function: &&Function| match function.virtual_of {
            Some(parent) => functions.iter().any(|other| other.address == parent && !other.active),
            None => true,
        };
        Self {
            maintenance: old.map_or(host.maintenance, |old| old.maintenance),
            graphics,
            functions: functions.iter().filter(exists).collect(),
            used: seats::used_by_vms(state, id),
        }
    }

    fn gpus(&self) -> impl Iterator<Item = (&'a Function, &'a Gpu)> {
        self.functions.iter().filter_map(|function| Some((*function, function.gpu.as_ref()?)))
    }

    /// `hardware.pciDevice`.
    pub fn pci_devices(&self) -> Value {
        Value::List(self.functions.iter().map(|function| pci_device(function)).collect())
    }

    /// `config.graphicsInfo`: absent on a host without GPUs, as recorded.
    fn graphics_info(&self) -> Option<Value> {
        let infos: Vec<Value> = self.gpus().map(|(function, gpu)| self.graphics_of(function, gpu)).collect();
        (!infos.is_empty()).then_some(Value::List(infos))
    }

    fn graphics_of(&self, function: &Function, gpu: &Gpu) -> Value {
        // A VM with two devices on one GPU uses it once.
        let used = self.used.iter().filter(|(address, _)| *address == function.address);
        let vms: BTreeSet<u32> = used.map(|(_, vm)| *vm).collect();
        let memory = if function.active { 0 } else { gpu.memory_mib * 1024 };
        Data::of("HostGraphicsInfo")
            .text("deviceName", &function.name)
            .text("vendorName", &function.vendor_name)
            .text("pciId", function.address)
            .text("graphicsType", &gpu.graphics_type)
            .text("vgpuMode", &gpu.vgpu_mode)
            .text("memorySizeInKB", memory)
            .set("vm", Value::List(vms.iter().map(|vm| Value::Ref("VirtualMachine", format!("vm-{vm}"))).collect()))
            .done()
    }

    fn graphics_config(&self) -> Value {
        let device = |entry: &crate::sim::world::device::GraphicsEntry| {
            Data::of("HostGraphicsConfigDeviceType")
                .text("deviceId", entry.address)
                .text("graphicsType", &entry.graphics_type)
                .some("vgpuMode", entry.vgpu_mode.as_ref().map(text))
                .done()
        };
        Data::of("HostGraphicsConfig")
            .text("hostDefaultGraphicsType", &self.graphics.default_type)
            .text("sharedPassthruAssignmentPolicy", &self.graphics.policy)
            .set("deviceType", Value::List(self.graphics.devices.iter().map(device).collect()))
            .done()
    }

    /// `config.sharedPassthruGpuTypes`: what can be started now, each once.
    fn vgpu_types(&self) -> Option<Value> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.gpus().flat_map(|(_, gpu)| gpus::types(gpu, &gpu.vgpu_mode)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        (!names.is_empty()).then(|| Value::List(names.into_iter().map(text).collect()))
    }

    fn passthru_info(&self) -> Value {
        Value::List(self.functions.iter().map(|function| passthru(function)).collect())
    }
}

/// The same 16 or 8 bits, signed: as vim25 sends ids (§1.4: 0x8086 arrives as -32634).
fn short(value: u16) -> i16 {
    value.cast_signed()
}

fn pci_device(function: &Function) -> Value {
    let PciAddress { bus, device, function: number, .. } = function.address;
    Data::of("HostPciDevice")
        .text("id", function.address)
        .text("classId", short(function.class))
        .text("bus", bus.cast_signed())
        .text("slot", device)
        .text("function", number)
        .text("vendorId", short(function.vendor))
        .text("subVendorId", short(function.sub_vendor))
        .text("vendorName", &function.vendor_name)
        .text("deviceId", short(function.device))
        .text("subDeviceId", short(function.sub_device))
        .text("parentBridge", function.bridge)
        .text("deviceName", &function.name)
        .some("deviceClassName", class_name(function.class).map(text))
        .done()
}

fn class_name(class: u16) -> Option<&'static str> {
    Some(match class {
        0x0200 => "Ethernet controller",
        0x0300 => "VGA compatible controller",
        0x0302 => "3D controller",
        0x0403 => "Audio device",
        0x0604 => "PCI bridge",
        _ => return None,
    })
}

fn passthru(function: &Function) -> Value {
    let gpu = function.gpu.is_some();
    let kind = if function.virtual_functions.is_some() { "HostSriovInfo" } else { "HostPciPassthruInfo" };
    let info = Data::of(kind)
        .text("id", function.address)
        .text("dependentDevice", if gpu { function.address.to_string() } else { String::new() })
        .text("passthruEnabled", function.enabled)
        .text("passthruCapable", function.capable)
        .text("passthruActive", function.active)
        .some("hardwareLabel", function.capable.then(|| text(&function.label)));
    let Some(count) = function.virtual_functions else { return info.done() };
    info.text("sriovEnabled", count > 0)
        .text("sriovCapable", true)
        .text("sriovActive", count > 0 && !function.active)
        .text("numVirtualFunctionRequested", count)
        .text("numVirtualFunction", if function.active { 0 } else { count })
        .text("maxVirtualFunctionSupported", MAX_VIRTUAL_FUNCTIONS)
        .done()
}

/// `config.product`.
pub(super) fn product(host: &Host) -> Value {
    // The build of the recorded host; no behaviour depends on it.
    const BUILD: &str = "69507956";
    Data::of("AboutInfo")
        .text("name", "VMware ESXi")
        .text("fullName", format!("VMware ESXi {} build-{BUILD}", host.version))
        .text("vendor", "VMware, Inc.")
        .text("version", &host.version)
        .text("build", BUILD)
        .text("localeVersion", "INTL")
        .text("localeBuild", "000")
        .text("osType", "vmnix-x86")
        .text("productLineId", "embeddedEsx")
        .text("apiType", "HostAgent")
        .text("apiVersion", super::super::versions::api_version(&host.version))
        .done()
}

/// `config`.
pub(super) fn config(id: u32, host: &Host, view: &View<'_>) -> Value {
    let nic = |index: u32| {
        let link = Data::of("PhysicalNicLinkInfo").text("speedMb", 25_000).text("duplex", true).done();
        Data::of("PhysicalNic")
            .text("key", format!("key-vim.host.PhysicalNic-vmnic{index}"))
            .text("device", format!("vmnic{index}"))
            .text("pci", format!("0000:05:00.{index}"))
            .some("linkSpeed", (index < host.uplinks_up).then_some(link))
            .text("wakeOnLanSupported", false)
            .text("mac", format!("02:00:00:00:{:02x}:{index:02x}", id % 256))
            .done()
    };
    Data::of("HostConfigInfo")
        .reference("host", "HostSystem", format!("host-{id}"))
        .set("product", product(host))
        .set(
            "network",
            Data::of("HostNetworkInfo").set("pnic", Value::List((0..host.uplinks).map(nic).collect())).done(),
        )
        .set("service", services(host))
        .text("lockdownMode", lockdown(host.shell.lockdown))
        .set("pciPassthruInfo", view.passthru_info())
        .some("graphicsInfo", view.graphics_info())
        .some("sharedPassthruGpuTypes", view.vgpu_types())
        .set("graphicsConfig", view.graphics_config())
        .set("assignableHardwareConfig", Data::of("HostAssignableHardwareConfig").done())
        .done()
}

fn lockdown(mode: Lockdown) -> &'static str {
    match mode {
        Lockdown::Off => "lockdownDisabled",
        Lockdown::Normal => "lockdownNormal",
        Lockdown::Strict => "lockdownStrict",
    }
}

/// `config.service`, with the ids that were seen on 8.0 (§1.10). NVIDIA's daemon is not among them.
fn services(host: &Host) -> Value {
    let service = |key: &str, label: &str, running: bool, policy: &str| {
        Data::of("HostService")
            .text("key", key)
            .text("label", label)
            .text("required", false)
            .text("uninstallable", false)
            .text("running", running)
            .text("policy", policy)
            .done()
    };
    let policy = match host.shell.ssh_policy {
        ServicePolicy::On => "on",
        ServicePolicy::Automatic => "automatic",
        ServicePolicy::Off => "off",
    };
    let services = vec![
        service("TSM", "ESXi Shell", false, "off"),
        service(SSH, "SSH", host.shell.ssh_running, policy),
        service("xorg", "X.Org Server", false, "on"),
    ];
    Data::of("HostServiceInfo").set("service", Value::List(services)).done()
}

/// `HostServiceSystem`.
pub(super) fn service_system(state: &State, id: u32, name: &str) -> Option<Value> {
    (name == "serviceInfo").then(|| state.hosts.get(&id).map(services))?
}

/// `HostGraphicsManager`.
pub(super) fn graphics_manager(state: &State, id: u32, name: &str, stale: bool) -> Option<Value> {
    let view = View::of(state, id, state.hosts.get(&id)?, stale);
    match name {
        "graphicsInfo" => view.graphics_info(),
        "graphicsConfig" => Some(view.graphics_config()),
        "sharedPassthruGpuTypes" => view.vgpu_types(),
        _ => None,
    }
}

/// `HostPciPassthruSystem`.
pub(super) fn passthru_system(state: &State, id: u32, name: &str, stale: bool) -> Option<Value> {
    let view = View::of(state, id, state.hosts.get(&id)?, stale);
    (name == "pciPassthruInfo").then(|| view.passthru_info())
}
