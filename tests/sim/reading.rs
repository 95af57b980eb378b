//! Reading: pages, gaps, names, watches (honesty rule 8; cases D06, D13, A12).

use std::time::Duration;

use super::raw::{PASSTHROUGH, Raw, VGPU, element, filter, pass, spec, world_with};

const FIVE: &str = "            - {names: \"esx-[01-05]\"}";

#[tokio::test(start_paused = true)]
async fn pages_are_linked_by_tokens_that_work_once() {
    let raw = Raw::login(&world_with(FIVE, "")).await;
    let view = "<specSet><propSet><type>HostSystem</type><pathSet>name</pathSet></propSet><objectSet><obj type=\"Folder\">group-d1</obj><skip>true</skip><selectSet xsi:type=\"TraversalSpec\"><name>f</name><type>Folder</type><path>childEntity</path><skip>true</skip><selectSet><name>f</name></selectSet><selectSet xsi:type=\"TraversalSpec\"><type>Datacenter</type><path>hostFolder</path><skip>true</skip><selectSet><name>f</name></selectSet></selectSet><selectSet xsi:type=\"TraversalSpec\"><type>ComputeResource</type><path>host</path></selectSet></selectSet></objectSet></specSet>";
    let first = raw.retrieve(view, 2).await.ok();
    assert_eq!(first.body.matches("<objects>").count(), 2);
    let go_on = async |token: &str| {
        raw.method(
            "ContinueRetrievePropertiesEx",
            "PropertyCollector",
            "propertyCollector",
            &format!("<token>{token}</token>"),
        )
        .await
    };
    let token = first.text("token");
    let second = go_on(&token).await.ok();
    assert_eq!(second.body.matches("<objects>").count(), 2);
    assert_eq!(go_on(&token).await.fault(), "InvalidArgument");
    let token = second.text("token");
    let third = go_on(&token).await.ok();
    assert_eq!(third.body.matches("<objects>").count(), 1);
    assert!(!third.body.contains("<token>"));
    let again = raw.retrieve(view, 1).await.ok().text("token");
    let cancel = format!("<token>{again}</token>");
    raw.method("CancelRetrievePropertiesEx", "PropertyCollector", "propertyCollector", &cancel).await.ok();
    assert_eq!(go_on(&again).await.fault(), "InvalidArgument");
}

#[tokio::test(start_paused = true)]
async fn d06_an_object_that_goes_away_between_pages_is_left_out() {
    let world = world_with(FIVE, "  faults: [{method: ContinueRetrievePropertiesEx, object: esx-04, then: gone}]");
    let raw = Raw::login(&world).await;
    let view = raw
        .method(
            "CreateContainerView",
            "ViewManager",
            "ViewManager",
            "<container type=\"Folder\">group-d1</container><type>HostSystem</type><recursive>true</recursive>",
        )
        .await
        .ok()
        .text("returnval");
    let first = raw.retrieve(&format!("<specSet><propSet><type>HostSystem</type><pathSet>name</pathSet></propSet><objectSet><obj type=\"ContainerView\">{view}</obj><skip>true</skip><selectSet xsi:type=\"TraversalSpec\"><type>ContainerView</type><path>view</path></selectSet></objectSet></specSet>"), 3).await.ok();
    let rest = raw
        .method(
            "ContinueRetrievePropertiesEx",
            "PropertyCollector",
            "propertyCollector",
            &format!("<token>{}</token>", first.text("token")),
        )
        .await
        .ok();
    assert!(rest.body.contains("esx-05") && !rest.body.contains("esx-04"), "{}", rest.body);
}

#[tokio::test(start_paused = true)]
async fn unreadable_is_missing_with_a_reason_and_absent_is_nothing_at_all() {
    let host = "            - {names: esx-01, unreadable: [config.pciPassthruInfo], absent: [config.graphicsConfig], gpus: [{model: l40s, mode: {shared: {}}}]}";
    let raw = Raw::login(&world_with(host, "")).await;
    let answer =
        raw.esx(&["name", "config.pciPassthruInfo", "config.graphicsConfig", "config.assignableHardwareBinding"]).await;
    let missing = answer.text("missingSet");
    assert!(
        missing.contains("<path>config.pciPassthruInfo</path>") && missing.contains("xsi:type=\"NoPermission\""),
        "{missing}"
    );
    assert_eq!(answer.body.matches("<propSet>").count(), 1);
    assert_eq!(answer.body.matches("<missingSet>").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_host_without_gpus_has_no_graphics_info() {
    let raw = Raw::login(&world_with(FIVE, "")).await;
    let answer = raw.esx(&["config.graphicsInfo", "config.graphicsConfig", "config.sharedPassthruGpuTypes"]).await;
    assert_eq!(answer.body.matches("<propSet>").count(), 1, "{}", answer.body);
    assert!(answer.body.contains("<hostDefaultGraphicsType>shared</hostDefaultGraphicsType><sharedPassthruAssignmentPolicy>performance</sharedPassthruAssignmentPolicy></val>"));
}

#[tokio::test(start_paused = true)]
async fn d13_names_come_escaped_and_whole() {
    let world = poolwright::sim::World::parse(
        "names",
        "apiVersion: poolwright/v1
kind: World
metadata: {name: names}
spec:
  vcenter: {address: vc.lab, users: [{name: pw@vsphere.local, password: lab}]}
  datacenters:
    - path: '/Prod/a%2fb'
      clusters:
        - {name: '100% \"東京\" #ü', hosts: [{names: 'esx \\ <1>&'}]}
"
        .as_bytes(),
    )
    .unwrap();
    let raw = Raw::login(&world).await;
    assert!(raw.view("Datacenter", &["name"]).await.body.contains(">a%2fb</val>"));
    assert!(raw.view("ClusterComputeResource", &["name"]).await.body.contains(">100%25 \"東京\" #ü</val>"));
    assert!(raw.view("HostSystem", &["name"]).await.body.contains(">esx %5c &lt;1&gt;&amp;</val>"));
}

#[tokio::test(start_paused = true)]
async fn gpus_are_sriov_physical_functions_and_virtual_ones_come_and_go() {
    let host = "            - {names: esx-01, driver: {component: NVD-AIE-800, version: 580.95.02}, gpus: [{model: a100-pcie-40, count: 1, virtualFunctions: 4, mode: {vgpu: {size: same}}}, {model: t4, numa: [1], mode: {vgpu: {size: same}}}]}";
    let raw = Raw::login(&world_with(host, "")).await;
    let info = raw.esx(&["config.pciPassthruInfo"]).await.text("val");
    let of = |address: &str| {
        info.split("</HostPciPassthruInfo>")
            .find(|info| info.contains(&format!("<id>{address}</id>")))
            .unwrap()
            .to_owned()
    };
    let a100 = of("0000:17:00.0");
    assert!(
        a100.contains("xsi:type=\"HostSriovInfo\"") && a100.contains("<numVirtualFunction>4</numVirtualFunction>"),
        "{a100}"
    );
    assert!(!of("0000:97:00.0").contains("HostSriovInfo"), "a T4 has no SR-IOV");
    let devices = raw.esx(&["hardware.pciDevice"]).await.body;
    assert_eq!(devices.matches("<deviceName>NVIDIA A100-PCIE-40GB</deviceName>").count(), 5);
    let graphics = raw.esx(&["config.graphicsInfo"]).await.body;
    assert_eq!(graphics.matches("<pciId>").count(), 2, "virtual functions are no graphics devices");
    let numa = raw.esx(&["hardware.numaInfo"]).await.text("val");
    let second = numa.split("</numaNode>").nth(1).unwrap();
    assert!(second.contains("<typeId>1</typeId>") && second.contains("<pciId>0000:97:00.0</pciId>"), "{second}");
    let refused = raw.passthru("<config><id>0000:17:01.0</id><passthruEnabled>true</passthruEnabled></config>").await;
    assert_eq!(refused.fault(), "InvalidArgument");
}

#[tokio::test(start_paused = true)]
async fn a12_vm_devices_come_with_three_backings_and_one_that_nobody_knows() {
    let vms = "          vms: [{name: one, host: esx-01, devices: [{vgpu: nvidia_h100l-94c}, {directPath: \"0000:17:00.0\"}, {dynamicDirectPath: train}, {other: VirtualPCIPassthroughNextBackingInfo}]}]";
    let raw = Raw::login(&world_with(PASSTHROUGH, vms)).await;
    let devices = raw.view("VirtualMachine", &["config.hardware.device"]).await.ok().body;
    for part in [
        "ArrayOfVirtualDevice",
        "xsi:type=\"VirtualPCIPassthroughVmiopBackingInfo\"><vgpu>nvidia_h100l-94c</vgpu>",
        "xsi:type=\"VirtualPCIPassthroughDeviceBackingInfo\"",
        "<deviceId>8993</deviceId>",
        "<customLabel>train</customLabel>",
        "xsi:type=\"VirtualPCIPassthroughNextBackingInfo\"",
    ] {
        assert!(devices.contains(part), "{part} not in {devices}");
    }
    let host = raw.host("esx-01").await;
    assert!(raw.view("VirtualMachine", &["runtime.host"]).await.body.contains(&host));
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_something_changes_and_tells_only_that() {
    for method in ["WaitForUpdatesEx", "WaitForUpdates"] {
        let raw = Raw::login(&world_with(PASSTHROUGH, "")).await;
        let host = raw.host("esx-01").await;
        let paths = ["name", "runtime.inMaintenanceMode"];
        let create =
            format!("<spec>{}</spec><partialUpdates>false</partialUpdates>", filter("HostSystem", &host, &paths));
        let id =
            raw.method("CreateFilter", "PropertyCollector", "propertyCollector", &create).await.ok().text("returnval");
        let wait = async |version: &str| {
            raw.method(method, "PropertyCollector", "propertyCollector", &format!("<version>{version}</version>")).await
        };
        let all = wait("").await.ok();
        assert_eq!(all.text("kind"), "enter");
        assert_eq!(all.body.matches("<changeSet>").count(), 2);
        let version = all.text("version");
        raw.enter(0).await.ok();
        let before = tokio::time::Instant::now();
        let changed = wait(&version).await.ok();
        assert!(before.elapsed() >= Duration::from_secs(19), "it waited for the task");
        assert_eq!(changed.text("kind"), "modify");
        assert_eq!(changed.body.matches("<changeSet>").count(), 1);
        assert_eq!(changed.text("name"), "runtime.inMaintenanceMode");
        // A client that lost the answer asks again with the version before.
        let again = wait(&version).await.ok();
        assert_eq!(again.text("name"), "runtime.inMaintenanceMode");
        assert_eq!(wait("77").await.fault(), "InvalidCollectorVersion");
        raw.method("DestroyPropertyFilter", "PropertyFilter", &id, "").await.ok();
        assert_eq!(
            raw.method("DestroyPropertyFilter", "PropertyFilter", &id, "").await.fault(),
            "ManagedObjectNotFound"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_with_a_limit_ends_without_a_result_and_a_long_update_is_cut() {
    let raw = Raw::login(&world_with(FIVE, "")).await;
    for number in 1..=5 {
        let host = raw.host(&format!("esx-0{number}")).await;
        let create =
            format!("<spec>{}</spec><partialUpdates>false</partialUpdates>", filter("HostSystem", &host, &["name"]));
        raw.method("CreateFilter", "PropertyCollector", "propertyCollector", &create).await.ok();
    }
    let wait = async |version: &str| {
        let options = "<options><maxWaitSeconds>40</maxWaitSeconds><maxObjectUpdates>3</maxObjectUpdates></options>";
        raw.method(
            "WaitForUpdatesEx",
            "PropertyCollector",
            "propertyCollector",
            &format!("<version>{version}</version>{options}"),
        )
        .await
        .ok()
    };
    let first = wait("").await;
    assert_eq!((first.body.matches("<objectSet>").count(), first.text("truncated").as_str()), (3, "true"));
    let second = wait(&first.text("version")).await;
    assert_eq!(second.body.matches("<objectSet>").count(), 2);
    assert!(!second.body.contains("truncated"));
    let start = tokio::time::Instant::now();
    let none = wait(&second.text("version")).await;
    assert!(
        none.body.contains("<WaitForUpdatesExResponse xmlns=\"urn:vim25\"></WaitForUpdatesExResponse>"),
        "{}",
        none.body
    );
    assert_eq!(start.elapsed().as_secs(), 40);
}

#[tokio::test(start_paused = true)]
async fn the_list_of_types_follows_the_mode() {
    let raw = Raw::login(&world_with(VGPU, "")).await;
    let types = raw.esx(&["config.sharedPassthruGpuTypes"]).await.text("val");
    assert!(types.contains("nvidia_h100l-94c") && !types.contains("nvidia_h100l-1-12c"), "{types}");
    let host = "            - {names: esx-01, driver: {component: NVD-AIE-800, version: 580.95.02}, gpus: [{model: h100-nvl-94, mode: {migVgpu: {}}}]}";
    let raw = Raw::login(&world_with(host, "")).await;
    let types = raw.esx(&["config.sharedPassthruGpuTypes"]).await.text("val");
    assert!(!types.contains("nvidia_h100l-94c") && types.contains("nvidia_h100l-1-12c"), "{types}");
    let raw = Raw::login(&world_with(PASSTHROUGH, "")).await;
    assert!(!raw.esx(&["config.sharedPassthruGpuTypes"]).await.body.contains("propSet"));
}

#[tokio::test(start_paused = true)]
async fn packages_options_and_time() {
    let raw = Raw::login(&world_with(VGPU, "")).await;
    let manager = raw.value("configManager.imageConfigManager").await;
    let packages = raw.method("fetchSoftwarePackages", "HostImageConfigManager", &manager, "").await.ok().body;
    assert!(packages.contains("<name>NVD-AIE-800</name><version>580.95.02-1OEM"), "{packages}");
    let option = async |name: &str| {
        raw.method("QueryOptions", "OptionManager", "VpxSettings", &format!("<name>{name}</name>")).await
    };
    assert!(option("vgpu.hotmigrate.enabled").await.ok().body.contains("<value xsi:type=\"xsd:boolean\">true</value>"));
    let unknown = option("no.such.key").await;
    assert_eq!((unknown.fault(), unknown.text("name")), ("InvalidName".to_owned(), "no.such.key".to_owned()));
    pass(1200).await;
    let time = raw.method("CurrentTime", "ServiceInstance", "ServiceInstance", "").await.ok().text("returnval");
    assert_eq!(time, "2026-11-30T20:20:00Z");
    // Two specs in one call.
    let host = raw.host("esx-01").await;
    let two = format!("{}{}", spec("HostSystem", &host, &["name"]), spec("Folder", "group-d1", &["name"]));
    assert_eq!(element(&raw.retrieve(&two, 9).await.ok().body, "returnval").unwrap().matches("<objects>").count(), 2);
}

#[tokio::test(start_paused = true)]
async fn property_collectors_of_a_session_are_apart() {
    let raw = Raw::login(&world_with(PASSTHROUGH, "")).await;
    let make = async || {
        let made = raw.method("CreatePropertyCollector", "PropertyCollector", "propertyCollector", "").await.ok();
        made.text("returnval")
    };
    let (one, other) = (make().await, make().await);
    let host = raw.host("esx-01").await;
    let create =
        format!("<spec>{}</spec><partialUpdates>false</partialUpdates>", filter("HostSystem", &host, &["name"]));
    let on = async |collector: &str, method: &str, rest: &str| {
        raw.method(method, "PropertyCollector", collector, rest).await
    };
    let filter = on(&one, "CreateFilter", &create).await.ok().text("returnval");
    let wait = "<version></version><options><maxWaitSeconds>5</maxWaitSeconds></options>";
    assert_eq!(on(&one, "WaitForUpdatesEx", wait).await.ok().text("filter"), filter);
    for nothing in [other.as_str(), "propertyCollector"] {
        assert!(!on(nothing, "WaitForUpdatesEx", wait).await.ok().body.contains("filterSet"), "{nothing}");
    }
    // What is destroyed has no filters any more, and tells nobody of anything.
    on(&one, "DestroyPropertyCollector", "").await.ok();
    assert_eq!(
        raw.method("DestroyPropertyFilter", "PropertyFilter", &filter, "").await.fault(),
        "ManagedObjectNotFound"
    );
    for method in ["CreateFilter", "WaitForUpdatesEx"] {
        let rest = if method == "CreateFilter" { create.as_str() } else { wait };
        assert_eq!(on(&one, method, rest).await.fault(), "ManagedObjectNotFound", "{method}");
    }
    assert!(!on(&other, "WaitForUpdatesEx", wait).await.ok().body.contains("filterSet"));
}

#[tokio::test(start_paused = true)]
async fn an_object_is_found_by_its_inventory_path() {
    let raw = Raw::login(&world_with(PASSTHROUGH, "")).await;
    let find = async |path: &str| {
        let path = format!("<inventoryPath>{path}</inventoryPath>");
        raw.method("FindByInventoryPath", "SearchIndex", "SearchIndex", &path).await.ok().body
    };
    let host = raw.host("esx-01").await;
    for path in ["/Prod/EU/DC1/host/gpu-a/esx-01", "Prod/EU/DC1/host/gpu-a/esx-01/"] {
        let found = find(path).await;
        assert!(found.contains(&format!("<returnval type=\"HostSystem\">{host}</returnval>")), "{found}");
    }
    assert!(find("/").await.contains("<returnval type=\"Folder\">group-d1</returnval>"));
    for nowhere in ["/Prod/EU/DC1/host/gpu-a/esx-02", "/DC1", "/Prod/EU/DC1/esx-01"] {
        assert!(!find(nowhere).await.contains("returnval"), "{nowhere}");
    }
}
