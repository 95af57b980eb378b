//! `VirtualMachine`: configuration, power, guest, and GPU devices by their backings (vsphere-gpu §1.6,
//! §1.15).

use super::super::objects::escape;
use super::super::value::{Data, Value};
use super::Source;
use super::managers::text_option;
use crate::sim::document::{Firmware, Power, Tools, VmDevice};
use crate::sim::world::state::State;
use crate::sim::world::vm::{Seat, Vm};
use crate::vim25::wire::Node;

/// With `stale`, host and power are those of before the last change.
pub(super) fn property(from: Source<'_>, id: u32, name: &str, stale: bool) -> Option<Value> {
    let known = from.state.vms.get(&id)?;
    let old = known.before.filter(|_| stale).map(|(host, power)| Vm { host, power, ..known.clone() });
    let vm = old.as_ref().unwrap_or(known);
    match name {
        "config" => Some(config(from.state, vm)),
        "runtime" => Some(runtime(vm)),
        "guest" => Some(guest(vm)),
        "summary" => Some(summary(vm, id)),
        "resourceConfig" => Some(
            Data::of("ResourceConfigSpec")
                .reference("entity", "VirtualMachine", format!("vm-{id}"))
                .set("cpuAllocation", allocation(0))
                .set("memoryAllocation", memory_allocation(vm))
                .done(),
        ),
        "resourcePool" => {
            let host = from.state.hosts.get(&vm.host)?;
            Some(Value::Ref("ResourcePool", format!("resgroup-{}", host.cluster)))
        }
        "datastore" | "network" => Some(Value::List(Vec::new())),
        _ => None,
    }
}

fn summary(vm: &Vm, id: u32) -> Value {
    let (status, version) = tools(vm);
    let guest =
        Data::of("VirtualMachineGuestSummary").text("toolsStatus", version).text("toolsRunningStatus", status).done();
    Data::of("VirtualMachineSummary")
        .reference("vm", "VirtualMachine", format!("vm-{id}"))
        .set("runtime", runtime(vm))
        .set("guest", guest)
        .set("config", config_summary(vm))
        .text("overallStatus", "green")
        .done()
}

fn runtime(vm: &Vm) -> Value {
    let power = match vm.power {
        Power::On => "poweredOn",
        Power::Off => "poweredOff",
        Power::Suspended => "suspended",
    };
    Data::of("VirtualMachineRuntimeInfo")
        .reference("host", "HostSystem", format!("host-{}", vm.host))
        .text("connectionState", "connected")
        .text("powerState", power)
        .done()
}

/// `toolsRunningStatus` and `toolsStatus`.
fn tools(vm: &Vm) -> (&'static str, &'static str) {
    match (vm.tools, vm.power) {
        (Tools::Running, Power::On) => ("guestToolsRunning", "toolsOk"),
        (Tools::Running | Tools::NotRunning, _) => ("guestToolsNotRunning", "toolsNotRunning"),
        (Tools::Missing, _) => ("guestToolsNotRunning", "toolsNotInstalled"),
    }
}

fn guest(vm: &Vm) -> Value {
    let (running, status) = tools(vm);
    let state = match (vm.power, vm.shutting_down) {
        (Power::On, true) => "shuttingDown",
        (Power::On, false) if running == "guestToolsRunning" => "running",
        (Power::On, false) => "unknown",
        _ => "notRunning",
    };
    Data::of("GuestInfo")
        .text("toolsStatus", status)
        .text("toolsRunningStatus", running)
        .text("guestState", state)
        .done()
}

fn config_summary(vm: &Vm) -> Value {
    let vgpus = vm.devices.iter().filter(|device| matches!(device, VmDevice::Vgpu(_))).count();
    Data::of("VirtualMachineConfigSummary")
        .text("name", escape(&vm.name))
        .text("template", vm.template)
        .text("vmPathName", format!("[store] {0}/{0}.vmx", vm.name))
        .text("memorySizeMB", mib(vm.memory_gib))
        .text("memoryReservation", mib(vm.reserved_gib))
        .text("uuid", &vm.uuid)
        .text("instanceUuid", instance_uuid(vm))
        .some("managedBy", managed_by(vm))
        .text("numVmiopBackings", vgpus)
        .done()
}

fn mib(gib: u32) -> u64 {
    u64::from(gib) * 1024
}

/// Another one than the guest sees; those that vCenter makes begin with 50.
fn instance_uuid(vm: &Vm) -> String {
    format!("50{}", vm.uuid.get(2..).unwrap_or_default())
}

/// vCLS agents are managed by EAM, as recorded.
fn managed_by(vm: &Vm) -> Option<Value> {
    let by = |extension: &str, kind: &str| {
        Data::of("ManagedByInfo").text("extensionKey", extension).text("type", kind).done()
    };
    match &vm.managed_by {
        Some(owner) => Some(by(&owner.extension, &owner.kind)),
        None => vm.vcls.then(|| by("com.vmware.vim.eam", "cluster-agent")),
    }
}

fn allocation(reservation: u64) -> Value {
    Data::of("ResourceAllocationInfo")
        .text("reservation", reservation)
        .text("expandableReservation", false)
        .text("limit", -1)
        .done()
}

/// In MB (§1.8 of the API's reference: memory allocations are).
fn memory_allocation(vm: &Vm) -> Value {
    allocation(mib(vm.reserved_gib))
}

fn config(state: &State, vm: &Vm) -> Value {
    let devices = vm.devices.iter().zip(&vm.slots).enumerate();
    let devices = devices
        .map(|(index, (device, slot))| {
            pci_device(state, vm, device, vm.seats.get(index).and_then(Option::as_ref), *slot)
        })
        .collect();
    let extra = vm.extra.iter().map(|(key, value)| text_option(key, value));
    Data::of("VirtualMachineConfigInfo")
        .text("changeVersion", vm.configured)
        .text("modified", "1970-01-01T00:00:00Z")
        .text("name", escape(&vm.name))
        .text("guestFullName", "Other 5.x Linux (64-bit)")
        .text("version", "vmx-21")
        .text("uuid", &vm.uuid)
        .text("instanceUuid", instance_uuid(vm))
        .text("template", vm.template)
        .text("guestId", "other5xLinux64Guest")
        .set(
            "hardware",
            Data::of("VirtualHardware")
                .text("numCPU", 8)
                .text("memoryMB", mib(vm.memory_gib))
                .set("device", Value::List(devices))
                .done(),
        )
        .set("memoryAllocation", memory_allocation(vm))
        .set("extraConfig", Value::List(extra.collect()))
        .text("firmware", if vm.firmware == Firmware::Bios { "bios" } else { "efi" })
        .some("managedBy", managed_by(vm))
        .done()
}

fn pci_device(state: &State, vm: &Vm, device: &VmDevice, seat: Option<&Seat>, slot: u32) -> Value {
    let backing = match device {
        VmDevice::Vgpu(kind) => Data::of("VirtualPCIPassthroughVmiopBackingInfo")
            .text("vgpu", kind)
            .text("migrateSupported", vm.migrate)
            .done(),
        VmDevice::DirectPath(address) => fixed(state, vm, address),
        VmDevice::DynamicDirectPath(label) => dynamic(state, vm, label, seat),
        VmDevice::Other(kind) => Value::Raw(Node::new("backing").typed(kind)),
    };
    let label = Data::of("Description").text("label", format!("PCI device {slot}")).text("summary", "");
    Data::of("VirtualPCIPassthrough")
        .text("key", Vm::FIRST_KEY + slot)
        .set("deviceInfo", label.done())
        .set("backing", backing)
        .text("controllerKey", 100)
        .text("unitNumber", Vm::FIRST_UNIT + slot)
        .done()
}

fn fixed(state: &State, vm: &Vm, address: &str) -> Value {
    let host = state.hosts.get(&vm.device_host);
    let function = host.and_then(|host| host.functions.iter().find(|known| known.address.to_string() == address));
    Data::of("VirtualPCIPassthroughDeviceBackingInfo")
        .text("deviceName", function.map(|function| function.name.as_str()).unwrap_or_default())
        .text("id", address)
        // Case A14: the decimal of the unsigned value, while the vendor is a signed short.
        .text("deviceId", function.map(|function| function.device).unwrap_or_default())
        .text("systemId", host.map(|host| host.uuid.as_str()).unwrap_or_default())
        .text("vendorId", function.map(|function| function.vendor.cast_signed()).unwrap_or_default())
        .done()
}

fn dynamic(state: &State, vm: &Vm, label: &str, seat: Option<&Seat>) -> Value {
    let host = state.hosts.get(&vm.host);
    let function = host.and_then(|host| host.functions.iter().find(|known| known.gpu.is_some()));
    let allowed = Data::of("VirtualPCIPassthroughAllowedDevice")
        .text("vendorId", function.map(|function| function.vendor).unwrap_or_default())
        .text("deviceId", function.map(|function| function.device).unwrap_or_default())
        .done();
    Data::of("VirtualPCIPassthroughDynamicBackingInfo")
        .text("deviceName", "")
        .set("allowedDevice", Value::List(vec![allowed]))
        .text("customLabel", label)
        // Only while it is powered on.
        .some("assignedId", seat.map(|seat| Value::Text(seat.gpu.to_string())))
        .done()
}
