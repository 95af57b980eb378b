//! `VirtualMachine`: name, power, host and GPU devices by their backings (vsphere-gpu §1.6).

use super::super::objects::escape;
use super::super::value::{Data, Value};
use super::Source;
use crate::sim::document::{Power, VmDevice};
use crate::sim::world::state::{State, Vm};
use crate::vim25::wire::Node;

pub(super) fn property(from: Source<'_>, id: u32, name: &str) -> Option<Value> {
    let vm = from.state.vms.get(&id)?;
    match name {
        "config" => Some(config(from.state, vm)),
        "runtime" => Some(runtime(vm)),
        "summary" => Some(
            Data::of("VirtualMachineSummary")
                .reference("vm", "VirtualMachine", format!("vm-{id}"))
                .set("runtime", runtime(vm))
                .set("config", config_summary(vm))
                .text("overallStatus", "green")
                .done(),
        ),
        "guest" => {
            let running = if vm.power == Power::On { "guestToolsRunning" } else { "guestToolsNotRunning" };
            Some(Data::of("GuestInfo").text("toolsRunningStatus", running).text("guestState", "unknown").done())
        }
        "resourcePool" => {
            let host = from.state.hosts.get(&vm.host)?;
            Some(Value::Ref("ResourcePool", format!("resgroup-{}", host.cluster)))
        }
        "datastore" | "network" => Some(Value::List(Vec::new())),
        _ => None,
    }
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

fn config_summary(vm: &Vm) -> Value {
    let vgpus = vm.devices.iter().filter(|device| matches!(device, VmDevice::Vgpu(_))).count();
    Data::of("VirtualMachineConfigSummary")
        .text("name", escape(&vm.name))
        .text("template", vm.template)
        .text("vmPathName", format!("[store] {0}/{0}.vmx", vm.name))
        .text("uuid", &vm.uuid)
        .some("managedBy", managed_by(vm))
        .text("numVmiopBackings", vgpus)
        .done()
}

/// vCLS agents are managed by EAM, as recorded.
fn managed_by(vm: &Vm) -> Option<Value> {
    let by = Data::of("ManagedByInfo").text("extensionKey", "com.vmware.vim.eam").text("type", "cluster-agent");
    vm.vcls.then(|| by.done())
}

fn config(state: &State, vm: &Vm) -> Value {
    // Keys of PCI passthrough devices start at 13000.
    let devices = vm.devices.iter().zip(13_000..).map(|(device, key)| pci_device(state, vm, device, key)).collect();
    Data::of("VirtualMachineConfigInfo")
        .text("changeVersion", state.time)
        .text("modified", "1970-01-01T00:00:00Z")
        .text("name", escape(&vm.name))
        .text("guestFullName", "Other 5.x Linux (64-bit)")
        .text("version", "vmx-21")
        .text("uuid", &vm.uuid)
        // Another one than the guest sees; those that vCenter makes begin with 50.
        .text("instanceUuid", format!("50{}", vm.uuid.get(2..).unwrap_or_default()))
        .text("template", vm.template)
        .text("guestId", "other5xLinux64Guest")
        .set(
            "hardware",
            Data::of("VirtualHardware")
                .text("numCPU", 8)
                .text("memoryMB", 65_536)
                .set("device", Value::List(devices))
                .done(),
        )
        .set("memoryAllocation", Data::of("ResourceAllocationInfo").text("reservation", 0).text("limit", -1).done())
        .text("firmware", "efi")
        .some("managedBy", managed_by(vm))
        .done()
}

fn pci_device(state: &State, vm: &Vm, device: &VmDevice, key: u32) -> Value {
    let backing = match device {
        VmDevice::Vgpu(kind) => {
            Data::of("VirtualPCIPassthroughVmiopBackingInfo").text("vgpu", kind).text("migrateSupported", true).done()
        }
        VmDevice::DirectPath(address) => fixed(state, vm, address),
        VmDevice::DynamicDirectPath(label) => dynamic(state, vm, label),
        VmDevice::Other(kind) => Value::Raw(Node::new("backing").typed(kind)),
    };
    Data::of("VirtualPCIPassthrough").text("key", key).set("backing", backing).done()
}

fn fixed(state: &State, vm: &Vm, address: &str) -> Value {
    let host = state.hosts.get(&vm.host);
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

fn dynamic(state: &State, vm: &Vm, label: &str) -> Value {
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
        .done()
}
