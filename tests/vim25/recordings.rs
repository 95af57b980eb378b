//! The decoders read recorded traffic of a real vCenter 8.0.3 and a real host with A100s.

use std::collections::BTreeMap;

use poolwright::model::{AssignmentPolicy, Fact, GraphicsType, MoRef};
use poolwright::vim25::wire::answer::{self, Answer};
use poolwright::vim25::wire::{ApiVersion, Fault, Limits, Node, decode, vm};
use serde::Deserialize;

use crate::support::shared;

#[derive(Deserialize)]
struct Cassette {
    interactions: Vec<Interaction>,
}

#[derive(Deserialize)]
struct Interaction {
    request: Request,
    response: Response,
}

#[derive(Deserialize)]
struct Request {
    body: Option<String>,
    headers: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct Response {
    body: Body,
    headers: BTreeMap<String, Vec<String>>,
    status: Status,
}

#[derive(Deserialize)]
struct Body {
    string: String,
}

#[derive(Deserialize)]
struct Status {
    code: u16,
}

/// The answers of a recording: the property that was fetched, or else the method, and the answer.
pub struct Recording(Vec<(String, Answer)>);

fn cassette(name: &str) -> Option<Cassette> {
    let text = std::fs::read_to_string(shared(&format!("recordings/vcenter-8.0.3-{name}.yaml"))?).unwrap();
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_total_scalar_bytes: 16 << 20 },
        reject_unsupported_tags: false,
        with_snippet: false
    };
    Some(serde_saphyr::from_str_with_options(&text, options).unwrap())
}

pub fn recording(name: &str) -> Option<Recording> {
    let mut answers = Vec::new();
    for Interaction { request, response } in cassette(name)?.interactions {
        let Some(body) = request.body.filter(|body| !body.is_empty()) else {
            assert_eq!(ApiVersion::negotiate(response.body.string.as_bytes()).unwrap().to_string(), "8.0.2.0");
            continue;
        };
        let envelope = Node::parse(body.as_bytes(), Limits::default()).unwrap();
        let call = &envelope.get("Body").unwrap().children[0];
        let status = http::StatusCode::from_u16(response.status.code).unwrap();
        let answer = answer::read(status, response.body.string.as_bytes(), &call.name).unwrap();
        let what = call.text_of("prop").filter(|_| call.name == "Fetch").unwrap_or(&call.name).to_owned();
        answers.push((what, answer));
    }
    Some(Recording(answers))
}

impl Recording {
    /// The value that came for this property or method; none if it was absent.
    pub fn value(&self, what: &str) -> Option<&Node> {
        let (_, answer) = self.0.iter().find(|(name, _)| name == what).expect(what);
        let Answer::Result(response) = answer else { panic!("{what}: {answer:?}") };
        response.get("returnval")
    }

    pub fn get(&self, what: &str) -> &Node {
        self.value(what).expect(what)
    }
}

#[test]
fn every_recording_is_read() {
    let Some(folder) = shared("recordings") else { return };
    let mut read = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        if let Some(name) = name.strip_prefix("vcenter-8.0.3-").and_then(|name| name.strip_suffix(".yaml")) {
            let recording = recording(name).unwrap();
            let faults = recording.0.iter().filter(|(_, answer)| !matches!(answer, Answer::Result(_))).count();
            assert_eq!(faults, usize::from(name.ends_with("bad_password")), "{name}");
            read += 1;
        }
    }
    assert_eq!(read, 8);
}

#[test]
fn a_login_is_made_without_a_cookie_and_gives_one_with_quotes() {
    let Some(cassette) = cassette("basic_connection") else { return };
    let login = &cassette.interactions[1];
    assert!(login.request.body.as_deref().unwrap().contains("<Login"));
    assert_eq!(login.request.headers["Cookie"], [""]);
    assert!(login.response.headers["set-cookie"][0].starts_with("vmware_soap_session=\"7bea48466ca7"));
    // The next request sends it back as it came.
    assert!(cassette.interactions[2].request.headers["Cookie"][0].contains("vmware_soap_session=\"7bea48466ca7"));
}

#[test]
fn service_content_names_the_server() {
    let Some(recording) = recording("smart_connection") else { return };
    let content = recording.get("RetrieveServiceContent");
    let about = content.get("about").unwrap();
    assert_eq!(about.text_of("fullName"), Some("VMware vCenter Server 8.0.3 build-69507950"));
    assert_eq!(about.text_of("apiVersion"), Some("8.0.2.0"));
    assert_eq!(about.text_of("instanceUuid"), Some("61f12cb6-9de0-40cb-9c47-61d494229f4f"));
    let manager = |name| decode::reference(content.get(name).unwrap()).unwrap();
    assert_eq!(manager("rootFolder"), MoRef::new("Folder", "group-d1"));
    assert_eq!(manager("customFieldsManager"), MoRef::new("CustomFieldsManager", "CustomFieldsManager"));
    let session = recording.get("currentSession");
    assert_eq!(session.text_of("userName"), Some("my_user"));
    assert_eq!(session.type_name(), Some("UserSession"));
}

#[test]
fn a_wrong_password_is_a_fault_with_its_sentence() {
    let Some(recording) = recording("basic_connection_bad_password") else { return };
    let Answer::Fault(fault) = &recording.0[1].1 else { panic!("{:?}", recording.0[1]) };
    assert_eq!(fault.kind, "InvalidLogin");
    let said = "Cannot complete login due to an incorrect user name or password (InvalidLogin)";
    assert_eq!(fault.to_string(), said);
}

#[test]
fn a_view_and_what_it_holds() {
    let Some(recording) = recording("basic_container_view") else { return };
    let view = decode::reference(recording.get("CreateContainerView")).unwrap();
    assert_eq!(view.kind, "ContainerView");
    assert!(view.id.starts_with("session["), "{view}");
    let held = decode::references(recording.get("view")).unwrap();
    assert!(held.iter().all(|object| object.kind == "Datacenter") && !held.is_empty(), "{held:?}");
    assert!(recording.value("DestroyView").is_none());
}

#[test]
fn the_root_has_no_parent() {
    let Some(recording) = recording("root_folder_parent") else { return };
    assert!(recording.value("parent").is_none());
}

#[test]
fn a_datacenter() {
    let Some(recording) = recording("test_json_datacenter_explode") else { return };
    assert_eq!(recording.get("name").text, "DataCenter");
    assert_eq!(decode::reference(recording.get("hostFolder")).unwrap().kind, "Folder");
    assert_eq!(decode::references(recording.get("recentTask")).unwrap(), []);
    let alarms = recording.get("triggeredAlarmState");
    assert!(alarms.children.iter().all(|alarm| alarm.name == "AlarmState" && alarm.get("overallStatus").is_some()));
    assert!(!alarms.children.is_empty());
}

#[test]
fn a_host_with_its_pci_devices_as_signed_shorts() {
    let Some(recording) = recording("test_json_host_explode") else { return };
    assert_eq!(recording.get("name").text, "10.218.43.170");
    assert_eq!(decode::reference(recording.get("parent")).unwrap(), MoRef::new("ClusterComputeResource", "domain-c9"));
    let hardware = recording.get("hardware");
    let devices: Vec<_> = hardware.all("pciDevice").map(|node| decode::pci_device(node).unwrap()).collect();
    assert_eq!(devices.len(), 48);
    assert_eq!(devices[0].address.to_string(), "0000:00:00.0");
    // -32634 on the wire.
    assert_eq!((devices[0].id.vendor, devices[0].id.device, devices[0].class), (0x8086, 0x7190, 0x0600));
    assert_eq!(devices[0].vendor_name, "Intel Corporation");
    let uuid = hardware.get("systemInfo").unwrap().text_of("uuid");
    assert_eq!(uuid, Some("a6b70142-625f-e04e-edf6-05098f74aff3"));
    let nodes: Vec<_> = hardware.get("numaInfo").unwrap().all("numaNode").cloned().collect();
    let nodes = decode::numa_nodes(&Node::new("val").with_all(nodes)).unwrap();
    assert_eq!((nodes.len(), nodes[0].id, nodes[0].devices.len()), (1, 0, 0));
}

#[test]
fn a_host_without_gpus_has_a_graphics_configuration_and_no_active_graphics() {
    let Some(recording) = recording("test_json_host_explode") else { return };
    let config = recording.get("config");
    let graphics = decode::graphics_config(config.get("graphicsConfig").unwrap()).unwrap();
    assert_eq!(graphics.default_type, GraphicsType::Shared);
    assert_eq!(graphics.policy, AssignmentPolicy::Performance);
    assert_eq!(graphics.devices, []);
    assert!(config.get("graphicsInfo").is_none());
    let product = decode::product(config.get("product").unwrap()).unwrap();
    assert_eq!((product.version.as_str(), product.build.as_str()), ("8.0.3", "69507956"));
    let states: Vec<_> = config.all("pciPassthruInfo").map(|node| decode::passthru_state(node).unwrap()).collect();
    assert_eq!(states.len(), 48);
    assert!(states.iter().all(|state| !state.enabled && !state.active));
    assert_eq!(states[0].dependent, Fact::Absent);
    let capability = recording.get("capability");
    let flag = |name| decode::boolean(capability.get(name).unwrap()).unwrap();
    assert!(flag("deviceRebindWithoutRebootSupported") && flag("assignHwPciConfigSupported"));
}

#[test]
fn the_runtime_of_a_host() {
    let Some(recording) = recording("test_json_host_explode") else { return };
    let runtime = recording.get("runtime");
    assert_eq!(runtime.text_of("connectionState"), Some("connected"));
    assert!(!decode::boolean(runtime.get("inMaintenanceMode").unwrap()).unwrap());
    let boot = decode::timestamp(runtime.get("bootTime").unwrap()).unwrap();
    assert_eq!(boot.to_string(), "2023-12-12T09:07:01.778318Z");
    let managers = recording.get("configManager");
    let manager = |name| decode::reference(managers.get(name).unwrap()).unwrap();
    assert_eq!(manager("graphicsManager"), MoRef::new("HostGraphicsManager", "graphicsManager-14"));
    assert_eq!(manager("serviceSystem"), MoRef::new("HostServiceSystem", "serviceSystem-14"));
    let services = decode::host_services(recording.get("config").get("service").unwrap()).unwrap();
    let ssh = services.iter().find(|service| service.key == "TSM-SSH").unwrap();
    assert_eq!((ssh.running, ssh.policy.as_str(), services.len() > 5), (true, "on", true));
    assert_eq!(recording.get("config").text_of("lockdownMode"), Some("lockdownDisabled"));
    let bytes = recording.get("hardware").get("memorySize").unwrap();
    assert_eq!(decode::mebibytes_of_bytes(bytes).unwrap(), 16_382);
    assert_eq!(manager("pciPassthruSystem"), MoRef::new("HostPciPassthruSystem", "pciPassthruSystem-14"));
    assert_eq!(decode::custom_values(recording.get("customValue")).unwrap(), []);
    let fields = decode::array(recording.get("availableField"), decode::custom_field).unwrap();
    assert!(!fields.is_empty() && fields.iter().all(|field| field.key > 0), "{fields:?}");
}

#[test]
fn a_vm_without_gpus_among_devices_of_every_kind() {
    let Some(recording) = recording("test_json_vm_explode_default") else { return };
    let devices: Vec<_> = recording.get("config").get("hardware").unwrap().all("device").cloned().collect();
    assert!(devices.len() > 10, "{}", devices.len());
    let devices = Node::new("val").with_all(devices);
    assert_eq!(vm::vm_gpu_devices(&devices).unwrap(), []);
    // None of a hundred entries decides anything here, and none is kept.
    let entries: Vec<_> = recording.get("config").all("extraConfig").cloned().collect();
    assert!(entries.len() > 20, "{}", entries.len());
    assert!(vm::vm_extra(&Node::new("val").with_all(entries)).unwrap().is_empty());
    let owner = vm::managed_by(recording.get("config").get("managedBy").unwrap()).unwrap();
    assert_eq!((owner.extension.as_str(), owner.kind.as_str()), ("com.vmware.vim.eam", "cluster-agent"));
    assert!(recording.value("snapshot").is_none());
    assert!(!recording.get("runtime").text_of("powerState").unwrap().is_empty());
}

#[test]
fn a16_the_a100s_of_a_real_host_come_as_sriov_devices() {
    let Some(path) = shared("recordings/esxi-a100-config-target.xml") else { return };
    let target = Node::parse(&std::fs::read(path).unwrap(), Limits::default()).unwrap();
    let gpus: Vec<_> = target
        .all("sriov")
        .map(|info| {
            assert_eq!(info.text_of("virtualFunction"), Some("false"));
            decode::pci_device(info.get("pciDevice").unwrap()).unwrap()
        })
        .collect();
    let addresses: Vec<_> = gpus.iter().map(|gpu| gpu.address.to_string()).collect();
    assert_eq!(addresses, ["0000:8a:00.0", "0000:8c:00.0", "0000:c1:00.0", "0000:c3:00.0"]);
    for gpu in &gpus {
        // NVIDIA A100 PCIe 40GB, 3D controller.
        assert_eq!((gpu.id.vendor, gpu.id.device, gpu.class), (0x10de, 0x20f1, 0x0302));
    }
    // None of them is among the plain passthrough devices.
    let plain: Vec<_> = target.all("pciPassthrough").filter_map(|info| info.get("pciDevice")).collect();
    assert_eq!(plain.len(), 1);
    assert_eq!(decode::pci_device(plain[0]).unwrap().id.vendor, 0x8086);
    // `xsi:type` under a generated prefix.
    assert_eq!(target.get("pciPassthrough").unwrap().type_name(), Some("VirtualMachinePciPassthroughInfo"));
    let types: Vec<_> = target.all("sharedGpuPassthroughTypes").filter_map(|info| info.text_of("vgpu")).collect();
    assert!(types.contains(&"grid_a100-4c") && types.iter().all(|name| name.starts_with("grid_a100")), "{types:?}");
}

/// Not recorded; the shape is the serializer's own (vsphere-gpu §5.3).
#[test]
fn a_host_with_an_h100_as_the_serializer_writes_it() {
    let text = r#"<val xmlns="urn:vim25" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
      xsi:type="ArrayOfHostPciPassthruInfo"><HostPciPassthruInfo xsi:type="HostSriovInfo"><id>0000:3b:00.0</id>
      <dependentDevice>0000:3a:00.0</dependentDevice><passthruEnabled>false</passthruEnabled>
      <passthruCapable>true</passthruCapable><passthruActive>false</passthruActive><hardwareLabel></hardwareLabel>
      <sriovEnabled>false</sriovEnabled><sriovCapable>true</sriovCapable><sriovActive>false</sriovActive>
      <numVirtualFunctionRequested>0</numVirtualFunctionRequested><numVirtualFunction>0</numVirtualFunction>
      <maxVirtualFunctionSupported>16</maxVirtualFunctionSupported></HostPciPassthruInfo><HostPciPassthruInfo>
      <id>0000:86:00.0</id><dependentDevice></dependentDevice><passthruEnabled>1</passthruEnabled>
      <passthruCapable>1</passthruCapable><passthruActive>0</passthruActive><hardwareLabel>train</hardwareLabel>
      </HostPciPassthruInfo></val>"#;
    let value = Node::parse(text.as_bytes(), Limits::default()).unwrap();
    let states = decode::passthru_states(&value).unwrap();
    assert!(states[0].sriov && !states[1].sriov);
    assert_eq!((states[0].enabled, states[1].enabled, states[1].active), (false, true, false));
    assert_eq!(states[0].label, Fact::Absent);
    assert_eq!(states[1].label, Fact::Known("train".into()));
    assert_eq!(states[0].dependent, Fact::Known("0000:3a:00.0".into()));
    assert_eq!((states[0].virtual_functions, states[1].virtual_functions), (0, 0));
}

#[test]
fn faults_of_the_reference_are_read_to_their_words() {
    let soap = |detail: &str, said: &str| {
        let text = format!(
            "<soapenv:Fault xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\" \
             xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">\
             <faultcode>ServerFaultCode</faultcode><faultstring>{said}</faultstring>{detail}</soapenv:Fault>"
        );
        Fault::of_soap(&Node::parse(text.as_bytes(), Limits::default()).unwrap())
    };
    let config = soap(
        r#"<detail><HostConfigFaultFault xmlns="urn:vim25" xsi:type="PlatformConfigFault"><faultMessage>
           <key>com.vmware.esx.x</key><arg><key>1</key><value xsi:type="xsd:string">Device is in use</value></arg>
           <message>Device is in use</message></faultMessage><text>busy</text></HostConfigFaultFault></detail>"#,
        "",
    );
    assert_eq!(config.kind, "PlatformConfigFault");
    assert_eq!(config.details[0].key, "com.vmware.esx.x");
    assert_eq!(config.to_string(), "Device is in use: busy (PlatformConfigFault)");
    let progress = soap(
        r#"<detail><TaskInProgressFault xmlns="urn:vim25" xsi:type="TaskInProgress"><task type="Task">task-9</task>
           </TaskInProgressFault></detail>"#,
        "Another task is already in progress.",
    );
    assert_eq!(progress.task, Some(MoRef::new("Task", "task-9")));
    for detail in ["", "<detail></detail>", "<detail/>"] {
        let bare = soap(detail, "Unable to parse the request");
        assert_eq!(bare.to_string(), "Unable to parse the request (ServerFaultCode)", "{detail}");
    }
}
