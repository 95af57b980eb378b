//! Wire values -> views: what is there, what is not, and what cannot be known.

use super::host::{self, Partial};
use super::{cluster, vm};
use crate::model::{
    ClusterView, Drs, DrsLevel, Fact, GraphicsType, HostView, MoRef, PowerState, Tally, VgpuMode, VmGpuDevice, VmView,
};
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
    vm::partial(&content("VirtualMachine", "vm-5", inner)).view
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
        device(
            "<backing xsi:type=\"VirtualPCIPassthroughVmiopBackingInfo\"><vgpu>nvidia_h100l-47c</vgpu>\
             <migrateSupported>false</migrateSupported></backing>",
        ),
        device("<backing xsi:type=\"VirtualPCIPassthroughVmiopBackingInfo\"><vgpu>nvidia_h100l-94c</vgpu></backing>"),
        device(
            "<backing xsi:type=\"VirtualPCIPassthroughDynamicBackingInfo\"><allowedDevice><vendorId>4318</vendorId>\
             <deviceId>9009</deviceId></allowedDevice><customLabel>train</customLabel></backing>",
        ),
        // Case A14: the decimal of the unsigned value, beside a vendor that is a signed short.
        device(
            "<backing xsi:type=\"VirtualPCIPassthroughDeviceBackingInfo\"><deviceName>x</deviceName>\
             <id>0000:3b:00.0</id><deviceId>35072</deviceId><systemId>s</systemId><vendorId>-32634</vendorId></backing>",
        ),
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
        VmGpuDevice::Vgpu { name: "nvidia_h100l-47c".to_owned(), migrate: Fact::Known(false) },
        VmGpuDevice::Vgpu { name: "nvidia_h100l-94c".to_owned(), migrate: Fact::Absent },
        VmGpuDevice::DynamicDirectPath { label: Fact::Known("train".to_owned()), assigned: Fact::Absent },
        VmGpuDevice::DirectPath { id: "0000:3b:00.0".to_owned(), device_id: Fact::Known(0x8900) },
        VmGpuDevice::Other("VirtualPCIPassthroughPluginBackingInfo".to_owned()),
    ];
    assert_eq!(vm.gpus.known().unwrap(), &expected);
}

/// `deviceId` of a backing is the decimal of the unsigned value; what is none leaves the device what it is.
#[test]
fn a14_the_device_id_of_a_backing_is_a_decimal_text() {
    let device_id = |text: &str| {
        let backing = format!("<id>0000:3b:00.0</id><deviceId>{text}</deviceId><vendorId>4318</vendorId>");
        let device = format!(
            "<VirtualDevice xsi:type=\"VirtualPCIPassthrough\">\
             <backing xsi:type=\"VirtualPCIPassthroughDeviceBackingInfo\">{backing}</backing></VirtualDevice>"
        );
        let inner = [
            set("config.template", "xsd:boolean", "false"),
            set("config.hardware.device", "ArrayOfVirtualDevice", &device),
        ];
        match machine(&inner.concat()).gpus.known().map(Vec::as_slice) {
            Some([VmGpuDevice::DirectPath { id, device_id }]) if id == "0000:3b:00.0" => device_id.clone(),
            other => panic!("{text}: {other:?}"),
        }
    };
    assert_eq!(device_id("9009"), Fact::Known(0x2331));
    assert_eq!(device_id("35072"), Fact::Known(0x8900));
    for text in ["-30464", "0x2331", "2330h", "65536", ""] {
        assert!(device_id(text).is_unknown(), "{text}");
    }
}

#[test]
fn a_vm_whose_configuration_is_unreachable_has_unknown_devices() {
    let inner = [set("name", "xsd:string", "x"), set("runtime.powerState", "xsd:string", "poweredOff")].concat();
    let vm = machine(&inner);
    assert!(vm.gpus.is_unknown() && vm.template.is_unknown() && !vm.vcls);
}

fn cluster_view(inner: &str) -> ClusterView {
    cluster::view(&content("ClusterComputeResource", "domain-c8", inner))
}

fn configuration(inner: &str) -> String {
    set("configurationEx", "ClusterConfigInfoEx", inner)
}

const AUTOMATIC: &str = "<dasConfig><enabled>true</enabled><failoverLevel>1</failoverLevel>\
    <admissionControlPolicy xsi:type=\"ClusterFailoverHostAdmissionControlPolicy\">\
    <failoverHosts type=\"HostSystem\">host-24</failoverHosts></admissionControlPolicy>\
    <admissionControlEnabled>true</admissionControlEnabled></dasConfig><drsConfig><enabled>true</enabled>\
    <enableVmBehaviorOverrides>true</enableVmBehaviorOverrides><defaultVmBehavior>fullyAutomated</defaultVmBehavior>\
    <vmotionRate>3</vmotionRate><option><key>VgpuMMAutomationTimeoutSecs</key><value xsi:type=\"xsd:string\">-1</value>\
    </option></drsConfig><drsVmConfig><key type=\"VirtualMachine\">vm-7</key><enabled>false</enabled>\
    <behavior>manual</behavior></drsVmConfig><rule xsi:type=\"ClusterAffinityRuleSpec\"><key>1</key></rule>";

#[test]
fn b16_a_cluster_says_how_drs_is_set_and_which_hosts_are_kept_free() {
    let view = cluster_view(&configuration(AUTOMATIC));
    let drs = view.drs.known().unwrap();
    assert_eq!((&drs.enabled, &drs.overrides_count), (&Fact::Known(true), &Fact::Known(true)));
    assert_eq!(drs.level, Fact::Known(DrsLevel::FullyAutomated));
    assert_eq!(drs.options[Drs::VGPU_EVACUATION], "-1");
    let [vm] = drs.overrides.as_slice() else { panic!("{drs:?}") };
    assert_eq!(
        (vm.vm.id.as_str(), &vm.enabled, &vm.level),
        ("vm-7", &Fact::Known(false), &Fact::Known(DrsLevel::Manual))
    );
    let ha = view.ha_admission.known().unwrap();
    assert_eq!((&ha.enabled, ha.failover_hosts[0].id.as_str()), (&Fact::Known(true), "host-24"));
    assert_eq!(ha.policy, Fact::Known("ClusterFailoverHostAdmissionControlPolicy".to_owned()));
    assert_eq!(view.drs_faults, Fact::Known(Vec::new()), "no drsFault is no complaint");
}

#[test]
fn what_a_cluster_does_not_show_is_unknown_and_never_off() {
    let hidden = cluster_view(&missing("configurationEx", "NoPermission"));
    assert!(hidden.drs.is_unknown() && hidden.ha_admission.is_unknown());
    let left_out = cluster_view("");
    assert!(left_out.drs.is_unknown() && left_out.ha_admission.is_unknown());
    let half = cluster_view(&configuration("<dasConfig></dasConfig><drsConfig></drsConfig>"));
    let drs = half.drs.known().unwrap();
    assert!(drs.enabled.is_absent() && drs.level.is_absent() && half.ha_admission.is_unknown());
    let off = "<dasConfig><enabled>false</enabled></dasConfig><drsConfig><enabled>false</enabled></drsConfig>";
    assert_eq!(cluster_view(&configuration(off)).ha_admission, Fact::Absent);
    assert!(cluster_view(&missing("drsFault", "NoPermission")).drs_faults.is_unknown());
}

/// vsphere-gpu §1.8: the faults of DRS are nested; each is told down to what is behind it.
#[test]
fn faults_of_drs_are_told_to_the_deepest_cause_with_the_host_they_are_about() {
    let fault = |kind: &str, said: &str, inner: &str| {
        format!("<fault xsi:type=\"{kind}\">{inner}</fault><localizedMessage>{said}</localizedMessage>")
    };
    let graphics = fault("InsufficientGraphicsResourcesFault", "No GPU has room for nvidia_h100l-94c.", "");
    let device = fault("DeviceNotSupported", "", "<device>PCI device 0</device><reason>not migratable</reason>");
    let attached = fault("DisallowedMigrationDeviceAttached", "", &format!("<fault>{device}</fault>"));
    let none = fault(
        "NoCompatibleHost",
        "No host is compatible with the virtual machine.",
        &format!(
            "<host type=\"HostSystem\">host-22</host><host type=\"HostSystem\">host-23</host>\
             <error>{graphics}</error><error>{attached}</error>"
        ),
    );
    let off = fault("DrsDisabledOnVm", "", "");
    let inner = format!(
        "<ClusterDrsFaults><reason>hostMaint</reason><faultsByVm><vm type=\"VirtualMachine\">vm-7</vm>\
         <fault>{none}</fault></faultsByVm><faultsByVm xsi:type=\"ClusterDrsFaultsFaultsByVirtualDisk\">\
         <fault>{off}</fault></faultsByVm></ClusterDrsFaults>"
    );
    let view = cluster_view(&set("drsFault", "ArrayOfClusterDrsFaults", &inner));
    let [of_vm, of_none] = view.drs_faults.known().unwrap().as_slice() else { panic!("{view:?}") };
    assert_eq!((of_vm.about.as_str(), of_vm.vm.known().unwrap().id.as_str()), ("hostMaint", "vm-7"));
    let said: Vec<(&str, &str)> = of_vm
        .reasons
        .iter()
        .map(|reason| (reason.host.known().map_or("", |host| host.id.as_str()), reason.said.as_str()))
        .collect();
    assert_eq!(
        said,
        [
            (
                "host-22",
                "No host is compatible with the virtual machine: No GPU has room for nvidia_h100l-94c \
                 (NoCompatibleHost > InsufficientGraphicsResourcesFault)"
            ),
            (
                "host-23",
                "No host is compatible with the virtual machine: a device keeps the virtual machine from moving: \
                 not migratable (NoCompatibleHost > DisallowedMigrationDeviceAttached > DeviceNotSupported)"
            ),
        ]
    );
    assert_eq!(of_none.vm, Fact::Absent);
    assert_eq!(of_none.reasons[0].said, "DRS is switched off for the virtual machine (DrsDisabledOnVm)");
}
