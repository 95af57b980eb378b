//! Every request that we make equals, as a tree, what VMware's own serializer writes for it.
//!
//! `versionId`, which is optional, and prefix declarations are left out of the comparison.

use std::collections::{BTreeMap, BTreeSet};

use poolwright::model::{AssignmentPolicy, Fact, GraphicsConfig, GraphicsDeviceConfig, GraphicsType, MoRef, VgpuMode};
use poolwright::vim25::wire::calls::{self, PassthruEntry, PropertySet};
use poolwright::vim25::wire::names::{managed, method};
use poolwright::vim25::wire::{ApiVersion, Call, Limits, Node, ObjectSet, encode};

use crate::support::shared;

fn parse(text: &str) -> Node {
    let mut tree = Node::parse(text.as_bytes(), Limits::default()).unwrap();
    without_version(&mut tree);
    tree
}

fn without_version(node: &mut Node) {
    node.attributes.retain(|attribute| attribute.name != "versionId");
    node.children.iter_mut().for_each(without_version);
}

/// The requests of the reference by method, some in two forms, each with its SOAPAction.
fn golden() -> Option<BTreeMap<String, Vec<(String, Node)>>> {
    let text = std::fs::read_to_string(shared("reference/wire-requests-8.0.3.txt")?).unwrap();
    let mut all: BTreeMap<String, Vec<(String, Node)>> = BTreeMap::new();
    for section in text.split("### ").skip(1) {
        let (head, xml) = section.split_once('\n').unwrap();
        let (name, action) = head.split_once("  (SOAPAction: ").unwrap();
        let form = (action.trim_end_matches(')').to_owned(), parse(xml.trim()));
        all.entry(name.to_owned()).or_default().push(form);
    }
    assert!(all.len() > 40, "{}", all.len());
    Some(all)
}

fn host() -> MoRef {
    MoRef::new(managed::HOST_SYSTEM, "host-21")
}

fn collector() -> MoRef {
    MoRef::new(managed::PROPERTY_COLLECTOR, "propertyCollector")
}

fn retrieve() -> Call {
    let paths = [
        "name",
        "config.graphicsConfig",
        "config.graphicsInfo",
        "config.pciPassthruInfo",
        "hardware.pciDevice",
        "runtime.inMaintenanceMode",
        "summary.rebootRequired",
        "configManager.graphicsManager",
    ];
    let view = "session[52bb85b0-adbe-7f20-156d-6130b6dc066e]5286fa88-7318-63fc-4917-f258ec859d33";
    let objects = ObjectSet::View(MoRef::new(managed::CONTAINER_VIEW, view));
    calls::retrieve_properties(&collector(), &[PropertySet::new(managed::HOST_SYSTEM, &paths)], &objects, 100)
}

fn graphics(version: ApiVersion) -> Call {
    let device = |address: &str, vgpu_mode| GraphicsDeviceConfig {
        address: address.parse().unwrap(),
        graphics_type: GraphicsType::SharedDirect,
        vgpu_mode,
    };
    let config = GraphicsConfig {
        default_type: GraphicsType::SharedDirect,
        policy: AssignmentPolicy::Performance,
        devices: vec![device("0000:3b:00.0", Fact::Known(VgpuMode::MixedSize)), device("0000:86:00.0", Fact::Absent)],
    };
    calls::update_graphics(&MoRef::new(managed::GRAPHICS_MANAGER, "graphicsManager-21"), &config, version)
}

fn passthru() -> Call {
    let on = PassthruEntry {
        address: "0000:3b:00.0".parse().unwrap(),
        enabled: true,
        apply_now: Some(true),
        label: Some("train".into()),
    };
    let off = PassthruEntry { address: "0000:86:00.0".parse().unwrap(), enabled: false, apply_now: None, label: None };
    calls::update_passthru(&MoRef::new(managed::PCI_PASSTHRU_SYSTEM, "pciPassthruSystem-21"), &[on, off])
}

fn ours() -> Vec<Call> {
    let session_manager = MoRef::new(managed::SESSION_MANAGER, "SessionManager");
    let view_manager = MoRef::new(managed::VIEW_MANAGER, "ViewManager");
    let fields = MoRef::new(managed::CUSTOM_FIELDS_MANAGER, "CustomFieldsManager");
    let history = MoRef::new(managed::TASK_HISTORY_COLLECTOR, "session[52bb85b0]taskHistoryCollector-1");
    let task = MoRef::new(managed::TASK, "task-1234");
    let task_set = PropertySet::new(managed::TASK, &["info.state", "info.progress", "info.error", "info.result"]);
    let graphics_manager = MoRef::new(managed::GRAPHICS_MANAGER, "graphicsManager-21");
    let services = MoRef::new(managed::SERVICE_SYSTEM, "serviceSystem-21");
    let vm = MoRef::new(managed::VIRTUAL_MACHINE, "vm-77");
    vec![
        calls::retrieve_service_content(),
        calls::current_time(),
        calls::login(&session_manager, "administrator@vsphere.local", "s3cret<&"),
        calls::logout(&session_manager),
        calls::create_container_view(&view_manager, &MoRef::new("Folder", "group-d1"), &[managed::HOST_SYSTEM]),
        calls::destroy_view(&MoRef::new(managed::CONTAINER_VIEW, "session[52bb85b0]view-1")),
        retrieve(),
        calls::continue_retrieve(&collector(), "1"),
        calls::create_filter(&collector(), &task_set, &task),
        calls::destroy_filter(&MoRef::new(managed::PROPERTY_FILTER, "session[52bb85b0]filter-1")),
        calls::wait_for_updates(&collector(), "", 30),
        calls::enter_maintenance(&host(), 1800),
        calls::exit_maintenance(&host(), 600),
        calls::reboot_host(&host()),
        graphics(ApiVersion::V8_0_3),
        calls::refresh_graphics(&graphics_manager),
        passthru(),
        calls::refresh_passthru(&MoRef::new(managed::PCI_PASSTHRU_SYSTEM, "pciPassthruSystem-21")),
        calls::fetch_packages(&MoRef::new(managed::IMAGE_CONFIG_MANAGER, "imageConfigManager-21")),
        calls::add_custom_field(&fields, "gpupool.generation", managed::HOST_SYSTEM),
        calls::set_field(&fields, &host(), 101, "sha256:abc"),
        calls::cancel_task(&task),
        calls::create_task_collector(
            &MoRef::new(managed::TASK_MANAGER, "TaskManager"),
            &host(),
            "2026-11-30T20:00:00Z".parse().unwrap(),
            Some("poolwright@vsphere.local"),
        ),
        calls::read_next_tasks(&history, 100),
        calls::destroy_collector(&history),
        calls::log_user_event(
            &MoRef::new(managed::EVENT_MANAGER, "EventManager"),
            &host(),
            "poolwright: closing for maintenance",
        ),
        calls::power_on(&vm, None),
        calls::power_on(&vm, Some(&host())),
        calls::power_off(&vm),
        calls::shutdown_guest(&vm),
        calls::query_options(&MoRef::new(managed::OPTION_MANAGER, "VpxSettings"), "vgpu.hotmigrate.enabled"),
        calls::start_service(&services, "TSM-SSH"),
        calls::stop_service(&services, "TSM-SSH"),
    ]
}

#[test]
fn every_call_equals_the_request_of_vmwares_serializer() {
    let Some(golden) = golden() else { return };
    for call in ours() {
        let request = encode(&call, ApiVersion::V8_0_3, None).unwrap();
        let sent = parse(std::str::from_utf8(request.body()).unwrap());
        let forms = &golden[call.method];
        let (action, expected) = forms.iter().find(|(_, form)| *form == sent).unwrap_or(&forms[0]);
        assert_eq!(request.headers()["SOAPAction"], action.as_str(), "{}", call.method);
        assert_eq!(sent, *expected, "{}", call.method);
    }
}

/// The one call that the reference does not hold has the shape of the one beside it.
#[test]
fn cancelling_a_reading_has_the_shape_of_going_on_with_it() {
    let go_on = calls::continue_retrieve(&collector(), "7");
    let cancel = calls::cancel_retrieve(&collector(), "7");
    assert_eq!(cancel.method, method::CANCEL_RETRIEVE_PROPERTIES_EX);
    assert_eq!((cancel.this, cancel.arguments), (go_on.this, go_on.arguments));
}

/// No call is left out above: the sources that make calls name no other method.
#[test]
fn every_call_is_compared() {
    let source = include_str!("../../src/vim25/wire/calls.rs");
    let made: BTreeSet<&str> = source
        .split("method::")
        .skip(1)
        .filter_map(|rest| rest.split(|c: char| !c.is_ascii_uppercase() && c != '_').next())
        .filter(|name| !name.is_empty())
        .collect();
    let compared: BTreeSet<&str> = ours().iter().map(|call| call.method).collect();
    // All but the one that cancels a reading.
    assert_eq!(made.len(), compared.len() + 1, "{made:?}");
}

#[test]
fn requests_go_to_sdk_with_the_headers_of_soap() {
    let request = encode(&calls::current_time(), ApiVersion::V8_0_3, Some("vmware_soap_session=\"ab\"")).unwrap();
    assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/sdk"));
    let header = |name| request.headers().get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    assert_eq!(header("content-type"), Some("text/xml; charset=UTF-8"));
    assert_eq!(header("soapaction"), Some("\"urn:vim25/8.0.3.0\""));
    assert_eq!(header("cookie"), Some("vmware_soap_session=\"ab\""));
    assert!(header("user-agent").unwrap().starts_with("poolwright/"));
}

#[test]
fn the_size_mode_is_sent_only_to_versions_that_know_it() {
    let sent = |version| {
        let request = encode(&graphics(version), version, None).unwrap();
        String::from_utf8(request.body().to_vec()).unwrap().contains("vgpuMode")
    };
    for version in ApiVersion::KNOWN {
        assert_eq!(sent(version), version >= ApiVersion::V8_0_3, "{version}");
    }
}

#[test]
fn a_password_with_markup_arrives_whole_and_shows_nowhere_else() {
    let password = "a<&>\"'\r\n]]>ü";
    let call = calls::login(&MoRef::new(managed::SESSION_MANAGER, "SessionManager"), "u", password);
    let request = encode(&call, ApiVersion::V8_0_3, None).unwrap();
    let tree = parse(std::str::from_utf8(request.body()).unwrap());
    let login = &tree.get("Body").unwrap().children[0];
    assert_eq!(login.text_of("password"), Some(password));
    assert!(!format!("{call:?}").contains("password") && !format!("{call:?}").contains('ü'));
}
