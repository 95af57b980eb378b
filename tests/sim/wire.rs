//! The wire: versions, shapes, what a request may hold (vsphere-gpu §5; the recordings).

use poolwright::sim::SimNetwork;

use super::raw::{PASSTHROUGH, Raw, VGPU, element, spec, world_with};
use crate::support::shared;

#[tokio::test(start_paused = true)]
async fn service_content_is_as_recorded_and_needs_no_login() {
    let raw = Raw::new(&SimNetwork::new(world_with(PASSTHROUGH, "")));
    let answer = raw.method("RetrieveServiceContent", "ServiceInstance", "ServiceInstance", "").await.ok();
    for part in [
        "<RetrieveServiceContentResponse xmlns=\"urn:vim25\"><returnval><rootFolder type=\"Folder\">group-d1</rootFolder><propertyCollector type=\"PropertyCollector\">propertyCollector</propertyCollector><viewManager type=\"ViewManager\">ViewManager</viewManager><about><name>VMware vCenter Server</name>",
        "<apiType>VirtualCenter</apiType><apiVersion>8.0.3.0</apiVersion><instanceUuid>",
        "</about><setting type=\"OptionManager\">VpxSettings</setting>",
        "<sessionManager type=\"SessionManager\">SessionManager</sessionManager>",
        "<customFieldsManager type=\"CustomFieldsManager\">CustomFieldsManager</customFieldsManager>",
    ] {
        assert!(answer.body.contains(part), "{part}\nnot in\n{}", answer.body);
    }
    let cookie = answer.cookie.unwrap();
    assert!(
        cookie.starts_with("vmware_soap_session=\"") && cookie.ends_with("\"; Path=/; HttpOnly; Secure;"),
        "{cookie}"
    );
}

#[tokio::test(start_paused = true)]
async fn fetch_answers_as_recorded() {
    let raw = Raw::login(&world_with(PASSTHROUGH, "")).await;
    let host = raw.host("esx-01").await;
    let fetch =
        async |prop: &str| raw.method("Fetch", "HostSystem", &host, &format!("<prop>{prop}</prop>")).await.ok().body;
    assert!(fetch("name").await.contains(
        "<FetchResponse xmlns=\"urn:vim25\"><returnval xsi:type=\"xsd:string\">esx-01</returnval></FetchResponse>"
    ));
    assert!(fetch("overallStatus").await.contains("<returnval xsi:type=\"ManagedEntityStatus\">green</returnval>"));
    assert!(fetch("recentTask").await.contains("<returnval xsi:type=\"ArrayOfManagedObjectReference\"></returnval>"));
    // An optional property that is not there: no returnval at all.
    assert!(fetch("remediationState").await.contains("<FetchResponse xmlns=\"urn:vim25\"></FetchResponse>"));
    let parent = fetch("parent").await;
    assert!(
        parent.contains("type=\"ClusterComputeResource\"") && parent.contains("xsi:type=\"ManagedObjectReference\""),
        "{parent}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_fault_is_http_500_named_by_its_type() {
    let raw = Raw::login(&world_with(PASSTHROUGH, "")).await;
    let answer = raw.exit().await;
    assert_eq!(answer.fault(), "InvalidState");
    let expected = "<soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring>The operation is not allowed in the current state.</faultstring><detail><InvalidStateFault xmlns=\"urn:vim25\" xsi:type=\"InvalidState\"></InvalidStateFault></detail></soapenv:Fault>";
    assert!(answer.body.contains(expected), "{}", answer.body);
}

#[tokio::test(start_paused = true)]
async fn a_path_that_the_version_does_not_have_fails_the_whole_call() {
    let mut raw = Raw::login(&world_with(VGPU, "")).await;
    let host = raw.host("esx-01").await;
    for path in ["config.nonsense", "nonsense", "name.length", "config.pciPassthruInfo.id"] {
        let answer = raw.read("HostSystem", &host, &["name", path]).await;
        assert_eq!(answer.fault(), "InvalidProperty", "{path}");
        assert_eq!(answer.text("name"), path);
    }
    // Known to vCenter, though this world has none: absent, not invalid.
    assert!(!raw.read("HostSystem", &host, &["config.firewall.defaultPolicy"]).await.ok().body.contains("propSet"));
    raw.version = "6.0".into();
    assert_eq!(raw.read("HostSystem", &host, &["config.graphicsConfig"]).await.fault(), "InvalidProperty");
    raw.version = "6.5".into();
    raw.read("HostSystem", &host, &["config.graphicsConfig"]).await.ok();
}

#[tokio::test(start_paused = true)]
async fn below_8_0_3_a_size_mode_is_neither_sent_nor_taken() {
    let mut raw = Raw::login(&world_with(VGPU, "")).await;
    let paths = ["config.graphicsInfo", "config.graphicsConfig"];
    assert_eq!(raw.esx(&paths).await.body.matches("<vgpuMode>sameSize</vgpuMode>").count(), 4);
    let device = "<deviceType><deviceId>0000:17:00.0</deviceId><graphicsType>sharedDirect</graphicsType><vgpuMode>mixedSize</vgpuMode></deviceType>";
    raw.version = "8.0.2.0".into();
    assert!(!raw.esx(&paths).await.body.contains("vgpuMode"));
    assert_eq!(raw.graphics("sharedDirect", device).await.fault(), "InvalidRequest");
    raw.version = "8.0.3.0".into();
    assert!(!raw.esx(&paths).await.body.contains("mixedSize"));
    raw.graphics("sharedDirect", device).await.ok();
    assert!(raw.esx(&paths).await.body.contains("mixedSize"));
}

#[tokio::test(start_paused = true)]
async fn an_older_vcenter_refuses_the_new_version_and_does_not_know_the_mode() {
    let world = world_with(VGPU, "");
    let mut spec = world.spec().clone();
    spec.vcenter.version = "8.0.2".into();
    let world = poolwright::sim::World::from_document("old", spec).unwrap();
    let mut raw = Raw::new(&SimNetwork::new(world));
    assert_eq!(raw.log_in("pw@vsphere.local", "lab").await.fault(), "InvalidRequest");
    raw.version = "8.0.2.0".into();
    raw.log_in("pw@vsphere.local", "lab").await.ok();
    assert!(!raw.esx(&["config.graphicsInfo"]).await.body.contains("vgpuMode"));
}

#[tokio::test(start_paused = true)]
async fn requests_of_the_wrong_shape_are_refused_and_change_nothing() {
    let world = world_with(PASSTHROUGH, "");
    let raw = Raw::login(&world).await;
    let host = raw.host("esx-01").await;
    let cases = [
        ("unknown", "<timeout>0</timeout><sooner>true</sooner>"),
        ("order", "<evacuatePoweredOffVms>false</evacuatePoweredOffVms><timeout>0</timeout>"),
        ("missing", "<evacuatePoweredOffVms>false</evacuatePoweredOffVms>"),
        ("type", "<timeout>soon</timeout>"),
        ("twice", "<timeout>0</timeout><timeout>0</timeout>"),
        ("nested", "<timeout>0</timeout><maintenanceSpec><vsan>x</vsan></maintenanceSpec>"),
    ];
    for (case, parameters) in cases {
        let answer = raw.method("EnterMaintenanceMode_Task", "HostSystem", &host, parameters).await;
        assert_eq!(answer.fault(), "InvalidRequest", "{case}");
    }
    let answer = raw.method("EnterMaintenanceMode_Task", "HostSystem", "host-99999", "<timeout>0</timeout>").await;
    assert_eq!(answer.fault(), "ManagedObjectNotFound");
    assert_eq!(raw.method("PowerOffEverything", "HostSystem", &host, "").await.fault(), "InvalidRequest");
    assert!(world.log().is_empty());
    // A subclass says its type, and only a subclass.
    let wrong = format!(
        "<specSet>{}<reportMissingObjectsInResults xsi:type=\"xsd:boolean\">true</reportMissingObjectsInResults></specSet>",
        element(&spec("HostSystem", &host, &["name"]), "specSet").unwrap()
    );
    raw.retrieve(&wrong, 1).await.ok();
    let plain = "<specSet><propSet><type>HostSystem</type><pathSet>name</pathSet></propSet><objectSet><obj type=\"Folder\">group-d1</obj><selectSet><name>x</name><type>Folder</type><path>childEntity</path></selectSet></objectSet></specSet>";
    assert_eq!(raw.retrieve(plain, 1).await.fault(), "InvalidRequest");
}

#[tokio::test(start_paused = true)]
async fn ids_are_signed_shorts_and_classes_decimal() {
    let raw = Raw::login(&world_with(PASSTHROUGH, "")).await;
    let devices = raw.esx(&["hardware.pciDevice"]).await.text("val");
    let device =
        |address: &str| devices.split("</HostPciDevice>").find(|device| device.contains(address)).unwrap().to_owned();
    let bridge = device("<id>0000:00:00.0</id>");
    assert!(bridge.contains("<vendorId>-32634</vendorId>") && bridge.contains("<classId>1536</classId>"), "{bridge}");
    let gpu = device("<id>0000:17:00.0</id>");
    // 10de:2321, subsystem 10de:1839, class 0x0302.
    for part in [
        "<classId>770</classId>",
        "<vendorId>4318</vendorId>",
        "<deviceId>8993</deviceId>",
        "<subDeviceId>6201</subDeviceId>",
    ] {
        assert!(gpu.contains(part), "{part} in {gpu}");
    }
}

/// Methods of the reference that this world does not have; a real vCenter does.
const NOT_MODELLED: [&str; 20] = [
    "ApplyRecommendation",
    "BrowseDiagnosticLog",
    "ClusterEnterMaintenanceMode",
    "EnableAlarmActions",
    "FindRulesForVm",
    "PowerOffVM_Task",
    "PowerOnVM_Task",
    "QueryConfigTarget",
    "ReconfigVM_Task",
    "ReconfigureCluster_Task",
    "RefreshRecommendation",
    "RefreshServices",
    "RelocateVM_Task",
    "RestartService",
    "ShutdownGuest",
    "StartService",
    "StopService",
    "UpdateAssignableHardwareConfig",
    "UpdateModuleOptionString",
    "UpdateOptions",
];

#[tokio::test(start_paused = true)]
async fn what_vmwares_own_serializer_writes_has_the_right_shape() {
    let Some(path) = shared("reference/wire-requests-8.0.3.txt") else { return };
    let text = std::fs::read_to_string(path).unwrap();
    let mut count = 0;
    for section in text.split("### ").skip(1) {
        let method = section.split_whitespace().next().unwrap();
        if NOT_MODELLED.contains(&method) {
            continue;
        }
        let raw = Raw::login(&world_with(PASSTHROUGH, "")).await;
        let number = raw.host("esx-01").await.replace("host-", "");
        let body = element(section, "soapenv:Body").unwrap().replace("-21<", &format!("-{number}<"));
        let answer = raw.call(&body).await;
        if answer.status != 200 {
            let fault = answer.fault();
            assert!(!["InvalidRequest", "InvalidProperty"].contains(&fault.as_str()), "{method}: {}", answer.body);
        }
        count += 1;
    }
    assert!(count > 25, "{count}");
}
