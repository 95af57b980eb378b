//! Wire values -> views: what is there, what is not, and what cannot be known.

use super::host::{self, Partial};
use super::vm;
use crate::model::{Fact, GraphicsType, HostView, MoRef, PowerState, Tally, VgpuMode, VmGpuDevice, VmView};
use crate::vim25::ObjectContent;
use crate::vim25::wire::{Limits, Node};

/// `objects` of an answer with these inner elements.
fn content(kind: &str, id: &str, inner: &str) -> ObjectContent {
    let text = format!(
        "<objects xmlns=\"urn:vim25\" xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"><obj type=\"{kind}\">{id}</obj>{inner}</objects>"
    );
    ObjectContent::decode(&Node::parse(text.as_bytes(), Limits::default()).unwrap()).unwrap()
}

fn set(path: &str, kind: &str, value: &str) -> String {
    format!("<propSet><name>{path}</name><val xsi:type=\"{kind}\">{value}</val></propSet>")
}

fn missing(path: &str, kind: &str) -> String {
    format!(
        "<missingSet><path>{path}</path><fault><fault xsi:type=\"{kind}\"></fault>\
         <localizedMessage>Permission to perform this operation was denied.</localizedMessage></fault></missingSet>"
    )
}

fn product() -> String {
    set("config.product", "AboutInfo", "<version>8.0.3</version><build>24280767</build>")
}

fn uuid() -> String {
    set("hardware.systemInfo.uuid", "xsd:string", "4c4c4544-0043-4a10-8056-b4c04f4d5a32")
}

fn read(inner: &str, field: &Fact<i32>) -> Partial {
    host::partial(&content("HostSystem", "host-21", inner), field)
}

fn view(inner: &str) -> HostView {
    *read(inner, &Fact::Absent).view
}

/// The H100 host of vsphere-gpu §5.3: the shape is the serializer's, the values are invented.
fn h100() -> String {
    [
        product(),
        uuid(),
        set(
            "config.graphicsConfig",
            "HostGraphicsConfig",
            "<hostDefaultGraphicsType>sharedDirect</hostDefaultGraphicsType>\
             <sharedPassthruAssignmentPolicy>performance</sharedPassthruAssignmentPolicy><deviceType>\
             <deviceId>0000:3b:00.0</deviceId><graphicsType>sharedDirect</graphicsType><vgpuMode>sameSize</vgpuMode>\
             </deviceType>",
        ),
        set(
            "config.graphicsInfo",
            "ArrayOfHostGraphicsInfo",
            "<HostGraphicsInfo><deviceName>NVIDIA H100 PCIe</deviceName><vendorName>NVIDIA Corporation</vendorName>\
             <pciId>0000:3b:00.0</pciId><graphicsType>sharedDirect</graphicsType><vgpuMode>sameSize</vgpuMode>\
             <memorySizeInKB>83886080</memorySizeInKB><vm type=\"VirtualMachine\">vm-77</vm></HostGraphicsInfo>",
        ),
        set(
            "config.pciPassthruInfo",
            "ArrayOfHostPciPassthruInfo",
            "<HostPciPassthruInfo xsi:type=\"HostSriovInfo\"><id>0000:3b:00.0</id>\
             <dependentDevice>0000:3a:00.0</dependentDevice><passthruEnabled>true</passthruEnabled>\
             <passthruCapable>true</passthruCapable><passthruActive>false</passthruActive>\
             <hardwareLabel></hardwareLabel><sriovEnabled>false</sriovEnabled><sriovCapable>true</sriovCapable>\
             <sriovActive>false</sriovActive><numVirtualFunctionRequested>0</numVirtualFunctionRequested>\
             <numVirtualFunction>0</numVirtualFunction><maxVirtualFunctionSupported>16</maxVirtualFunctionSupported>\
             </HostPciPassthruInfo>",
        ),
        set("runtime.inMaintenanceMode", "xsd:boolean", "false"),
        missing("config.sharedPassthruGpuTypes", "NoPermission"),
    ]
    .concat()
}

#[test]
fn configured_and_active_are_read_apart() {
    let view = view(&h100());
    let config = view.graphics_config.known().unwrap();
    assert_eq!(config.devices[0].vgpu_mode, Fact::Known(VgpuMode::SameSize));
    let active = &view.graphics_active.known().unwrap()[0];
    assert_eq!(active.graphics_type, GraphicsType::SharedDirect);
    assert_eq!(active.vms, [MoRef::new("VirtualMachine", "vm-77")]);
    assert_eq!(view.in_maintenance, Fact::Known(false));
}

#[test]
fn a07_enabled_and_not_active_is_kept_as_both() {
    let passthru = view(&h100()).passthru;
    let state = &passthru.known().unwrap()[0];
    assert!(state.enabled && !state.active && state.sriov);
    assert_eq!(state.label, Fact::Absent, "an empty label is none");
}

#[test]
fn what_may_not_be_read_is_unknown_with_the_servers_words() {
    let Fact::Unknown { why } = view(&h100()).vgpu_types else { panic!("not unknown") };
    assert!(why.contains("Permission") && why.contains("NoPermission"), "{why}");
}

#[test]
fn left_out_means_none_only_where_the_part_around_it_is_there() {
    let known = view(&[product(), uuid()].concat());
    assert_eq!(known.graphics_active, Fact::Absent, "a host without GPUs has no graphicsInfo");
    assert_eq!(known.graphics_config, Fact::Absent);
    assert_eq!(known.pci, Fact::Known(Vec::new()));
    // A host that was never connected has no `config` at all: that says nothing about its GPUs.
    let unread = view(&uuid());
    assert!(unread.graphics_active.is_unknown() && unread.passthru.is_unknown() && unread.product.is_unknown());
    assert!(unread.parity.uplinks.is_unknown());
    assert!(view(&product()).pci.is_unknown());
}

#[test]
fn a_required_property_that_is_left_out_is_unknown() {
    let view = view(&[product(), uuid()].concat());
    assert!(view.in_maintenance.is_unknown() && view.connection.is_unknown() && view.reboot_required.is_unknown());
    assert_eq!(view.boot_time, Fact::Absent);
    assert_eq!(view.parity.ha, Fact::Absent);
}

#[test]
fn a_value_that_is_not_understood_leaves_the_others_alone() {
    let bad = set("config.pciPassthruInfo", "ArrayOfHostPciPassthruInfo", "<X><id>11.0</id></X>");
    let view = view(&[product(), uuid(), bad].concat());
    assert!(view.passthru.is_unknown());
    assert!(view.product.known().is_some());
}

#[test]
fn what_is_followed_later_is_never_taken_for_nothing() {
    let view = view(&h100());
    assert!(view.vms.is_unknown() && view.tasks.is_unknown() && view.packages.is_unknown());
    assert!(view.parity.datastores.is_unknown());
}

#[test]
fn uplinks_and_alarms_are_counted_on_the_host_itself() {
    let pnic = "<PhysicalNic><device>vmnic0</device><linkSpeed><speedMb>25000</speedMb><duplex>true</duplex></linkSpeed>\
                </PhysicalNic><PhysicalNic><device>vmnic1</device></PhysicalNic>";
    let alarm = |kind: &str, id: &str, status: &str| {
        format!("<AlarmState><entity type=\"{kind}\">{id}</entity><overallStatus>{status}</overallStatus></AlarmState>")
    };
    let alarms = [
        alarm("HostSystem", "host-21", "red"),
        alarm("HostSystem", "host-21", "yellow"),
        alarm("VirtualMachine", "vm-3", "red"),
    ]
    .concat();
    let inner = [
        product(),
        set("config.network.pnic", "ArrayOfPhysicalNic", pnic),
        set("triggeredAlarmState", "ArrayOfAlarmState", &alarms),
        set("runtime.dasHostState", "ClusterDasFdmHostState", "<state>connectedToMaster</state>"),
    ]
    .concat();
    let parity = view(&inner).parity;
    assert_eq!(parity.uplinks, Fact::Known(Tally { good: 1, all: 2 }));
    assert_eq!(parity.alarms, Fact::Known(1));
    assert_eq!(parity.ha, Fact::Known("connectedToMaster".to_owned()));
}

#[test]
fn the_marker_is_the_value_of_its_field_and_an_empty_one_is_none() {
    let values = |text: &str| {
        let value = format!("<key>101</key><value>{text}</value>");
        let inner = format!("<CustomFieldValue xsi:type=\"CustomFieldStringValue\">{value}</CustomFieldValue>");
        set("customValue", "ArrayOfCustomFieldValue", &inner)
    };
    let marker = |inner: &str, field| read(inner, &field).view.marker;
    assert_eq!(marker(&values("{}"), Fact::Known(101)), Fact::Known("{}".to_owned()));
    assert_eq!(marker(&values(""), Fact::Known(101)), Fact::Absent);
    assert_eq!(marker(&values("{}"), Fact::Known(102)), Fact::Absent);
    assert_eq!(marker(&values("{}"), Fact::Absent), Fact::Absent);
    assert!(marker(&values("{}"), Fact::unknown("no permission")).is_unknown());
    assert!(marker(&missing("customValue", "NoPermission"), Fact::Known(101)).is_unknown());
}

fn machine(inner: &str) -> VmView {
    vm::view(&content("VirtualMachine", "vm-5", inner))
}

/// Cases A12 and D07: three kinds of GPU devices, one nobody knows, and devices of other types.
#[test]
fn a12_devices_are_told_apart_by_backing_and_none_is_dropped() {
    let device = |backing: &str| {
        format!("<VirtualDevice xsi:type=\"VirtualPCIPassthrough\"><key>13000</key>{backing}</VirtualDevice>")
    };
    let devices = [
        "<VirtualDevice xsi:type=\"VirtualFlux\"><key>1</key><backing xsi:type=\"FluxBackingInfo\"/></VirtualDevice>"
            .to_owned(),
        device("<backing xsi:type=\"VirtualPCIPassthroughVmiopBackingInfo\"><vgpu>nvidia_h100l-47c</vgpu></backing>"),
        device(
            "<backing xsi:type=\"VirtualPCIPassthroughDynamicBackingInfo\"><allowedDevice><vendorId>4318</vendorId>\
             <deviceId>9009</deviceId></allowedDevice><customLabel>train</customLabel></backing>",
        ),
        device("<backing xsi:type=\"VirtualPCIPassthroughDeviceBackingInfo\"><id>0000:3b:00.0</id></backing>"),
        device("<backing xsi:type=\"VirtualPCIPassthroughPluginBackingInfo\"></backing>"),
    ]
    .concat();
    let inner = [
        set("name", "xsd:string", "serve%2f1"),
        set("runtime.powerState", "VirtualMachinePowerState", "poweredOn"),
        set("config.template", "xsd:boolean", "false"),
        set("config.hardware.device", "ArrayOfVirtualDevice", &devices),
    ]
    .concat();
    let vm = machine(&inner);
    assert_eq!(vm.name, Fact::Known("serve/1".to_owned()));
    assert_eq!(vm.power, Fact::Known(PowerState::On));
    let expected = [
        VmGpuDevice::Vgpu("nvidia_h100l-47c".to_owned()),
        VmGpuDevice::DynamicDirectPath(Fact::Known("train".to_owned())),
        VmGpuDevice::DirectPath("0000:3b:00.0".to_owned()),
        VmGpuDevice::Other("VirtualPCIPassthroughPluginBackingInfo".to_owned()),
    ];
    assert_eq!(vm.gpus.known().unwrap(), &expected);
}

#[test]
fn a_vm_whose_configuration_is_unreachable_has_unknown_devices() {
    let inner = [set("name", "xsd:string", "x"), set("runtime.powerState", "xsd:string", "poweredOff")].concat();
    let vm = machine(&inner);
    assert!(vm.gpus.is_unknown() && vm.template.is_unknown() && !vm.vcls);
}
