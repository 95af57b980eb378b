//! Answers as servers and proxies really send them, and worse.

use poolwright::vim25::wire::answer::{self, Answer};
use poolwright::vim25::wire::{
    ApiVersion, Attribute, Fault, Limits, Namespace, Node, ObjectContent, Page, TaskInfo, TypeName, Updates, cluster,
    decode, document, envelope, vm,
};
use proptest::prelude::*;

use super::script::{Reply, Server, host, says};

fn read(status: u16, body: &str) -> Answer {
    answer::read(http::StatusCode::from_u16(status).unwrap(), body.as_bytes(), "CurrentTime").unwrap()
}

#[test]
fn vcsims_spelling_is_vcenters_meaning() {
    let vcsim = r#"<?xml version="1.0" encoding="UTF-8"?>
<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body><CurrentTimeResponse xmlns="urn:vim25">
<returnval xmlns:_XMLSchema-instance="http://www.w3.org/2001/XMLSchema-instance"
_XMLSchema-instance:type="ArrayOfHostPciPassthruInfo"><HostPciPassthruInfo
xmlns:XMLSchema-instance="http://www.w3.org/2001/XMLSchema-instance" XMLSchema-instance:type="HostSriovInfo">
<id>0000:86:00.0</id><dependentDevice></dependentDevice><passthruEnabled>true</passthruEnabled>
<passthruCapable>true</passthruCapable><passthruActive>true</passthruActive></HostPciPassthruInfo></returnval>
</CurrentTimeResponse></Body></Envelope>"#;
    let Answer::Result(response) = read(200, vcsim) else { panic!() };
    let states = decode::passthru_states(response.get("returnval").unwrap()).unwrap();
    assert!(states[0].sriov && states[0].active);
}

#[test]
fn a_timestamp_has_any_fraction_and_an_offset_and_never_none() {
    let time = |text: &str| decode::timestamp(&Node::leaf("t", text)).map(|time| time.to_string());
    assert_eq!(time("2026-11-30T20:00:00.123456789Z").as_deref(), Ok("2026-11-30T20:00:00.123456789Z"));
    assert_eq!(time("2026-11-30T21:00:00+01:00").as_deref(), Ok("2026-11-30T20:00:00Z"));
    assert!(time("2026-11-30T20:00:00").is_err() && time("").is_err());
}

#[test]
fn an_empty_enumeration_is_absent_and_a_new_one_is_kept() {
    let info = |mode: &str| {
        let text = format!(
            "<a xmlns=\"urn:vim25\"><HostGraphicsInfo><deviceName>x</deviceName><vendorName/><pciId>0000:3b:00.0</pciId>\
             <graphicsType>sharedDirect</graphicsType><vgpuMode>{mode}</vgpuMode><memorySizeInKB>0</memorySizeInKB>\
             </HostGraphicsInfo></a>"
        );
        let node = Node::parse(text.as_bytes(), Limits::default()).unwrap();
        decode::graphics_states(&node).unwrap().remove(0).vgpu_mode
    };
    assert!(info("").is_absent());
    assert_eq!(info("fractional").known().unwrap().as_str(), "fractional");
}

#[test]
fn what_is_no_soap_is_told_in_a_line() {
    let page = "<html><head><title>503</title></head>\n<body><h1>Service Unavailable</h1>&nbsp;</body></html>";
    assert_eq!(read(503, page), Answer::NotSoap("503 Service Unavailable &nbsp;".into()));
    assert_eq!(read(401, ""), Answer::NotSoap(String::new()));
    let Answer::NotSoap(long) = read(500, &"ü".repeat(5000)) else { panic!() };
    assert_eq!(long.chars().count(), 121);
    // XML that is no SOAP, and SOAP that is no fault, with the status of an error.
    assert!(matches!(read(500, "<error>x</error>"), Answer::NotSoap(_)));
    assert!(matches!(read(500, &envelope(&Node::new("CurrentTimeResponse"))), Answer::NotSoap(_)));
}

#[test]
fn a_success_that_is_none_is_an_error() {
    let status = http::StatusCode::OK;
    let wrong = [
        String::new(),
        "<html><body>login</body></html>".to_owned(),
        "{\"ok\":true}".to_owned(),
        envelope(&Node::new("OtherResponse")),
        document(&Node::new("Envelope").in_namespace(Namespace::Envelope)),
        envelope(&Node::new("CurrentTimeResponse"))[..300].to_owned(),
    ];
    for body in wrong {
        assert!(answer::read(status, body.as_bytes(), "CurrentTime").is_err(), "{body}");
    }
}

#[test]
fn a_fault_is_one_whatever_its_status() {
    let fault = Node::new("Fault")
        .in_namespace(Namespace::Envelope)
        .with(Node::leaf("faultstring", "no").in_namespace(Namespace::None));
    for status in [200, 400, 500] {
        assert!(matches!(read(status, &envelope(&fault)), Answer::Fault(_)), "{status}");
    }
}

/// The sentence names what was tried and on what; the types come after it.
#[tokio::test(start_paused = true)]
async fn b23_a_raw_fault_becomes_a_sentence_with_its_type_after_it() {
    let server = Server::new(|seen| match seen.call.as_str() {
        "EnterMaintenanceMode_Task" => Some(Reply::fault("InvalidState", "", "")),
        "ExitMaintenanceMode_Task" => Some(Reply::fault(
            "PlatformConfigFault",
            "<faultMessage><key>com.vmware.cdrs.maintenancemode.wcp.exitmaintenancemode</key></faultMessage>\
             <text>failed to exit Namespaces maintenance mode on the node</text>",
            "An error occurred during host configuration.",
        )),
        "RebootHost_Task" => {
            Some(Reply::fault("NoPermission", "<privilegeId>Host.Config.Maintenance</privilegeId>", ""))
        }
        _ => None,
    });
    let client = server.connect().await.unwrap();
    let timeout = std::num::NonZeroU32::new(60).unwrap();
    let error = client.enter_maintenance(&host("host-1"), timeout).await.unwrap_err();
    assert_eq!(
        says(&error),
        "cannot enter maintenance mode on HostSystem:host-1: the operation is not allowed in the current state \
         (InvalidState)"
    );
    let error = client.exit_maintenance(&host("host-1"), timeout).await.unwrap_err();
    assert_eq!(
        says(&error),
        "cannot exit maintenance mode on HostSystem:host-1: An error occurred during host configuration: \
         com.vmware.cdrs.maintenancemode.wcp.exitmaintenancemode: failed to exit Namespaces maintenance mode on the \
         node (PlatformConfigFault)"
    );
    let error = client.reboot_host(&host("host-1")).await.unwrap_err();
    assert_eq!(
        says(&error),
        "cannot reboot on HostSystem:host-1: the user lacks a privilege: privilege Host.Config.Maintenance \
         (NoPermission)"
    );
}

/// A page as strange as possible: nothing here may panic, whatever it says.
fn decode_everything(node: &Node) {
    let _ = Page::decode(node);
    let _ = Updates::decode(node);
    let _ = ObjectContent::decode(node).map(|content| {
        let _ = (content.is_gone(), content.lost_session());
        for path in ["name", "config", "config.graphicsInfo", ""] {
            let _ = content.fact(path, decode::graphics_states);
        }
    });
    let _ = TaskInfo::decode(node).map(|info| info.error.map(|fault| fault.to_string()));
    for fault in [Fault::of_soap(node), Fault::of_localized(node)] {
        let _ = (fault.to_string(), fault.deepest(), fault.chain(), fault.involves("x"));
    }
    let _ = decode::references(node);
    let _ = decode::strings(node);
    let _ = decode::pci_devices(node);
    let _ = decode::passthru_states(node);
    let _ = decode::graphics_config(node);
    let _ = decode::graphics_states(node);
    let _ = decode::numa_nodes(node);
    let _ = decode::product(node);
    let _ = decode::package(node);
    let _ = (vm::vm_gpu_devices(node), vm::managed_by(node), vm::vm_extra(node));
    let _ = (cluster::drs(node), cluster::ha_admission(node), cluster::drs_faults(node));
    let _ = (decode::host_services(node), decode::mebibytes_of_bytes(node));
    let _ = decode::custom_field(node);
    let _ = decode::custom_values(node);
    let _ = (decode::boolean(node), decode::timestamp(node), decode::pci_short(node), decode::pci_address(node));
}

const NAMES: [&str; 40] = [
    "returnval",
    "objects",
    "obj",
    "propSet",
    "name",
    "val",
    "missingSet",
    "path",
    "fault",
    "faultCause",
    "error",
    "localizedMessage",
    "faultMessage",
    "key",
    "message",
    "task",
    "state",
    "reason",
    "userName",
    "version",
    "truncated",
    "filterSet",
    "objectSet",
    "kind",
    "changeSet",
    "op",
    "id",
    "vendorId",
    "deviceId",
    "subVendorId",
    "subDeviceId",
    "classId",
    "deviceType",
    "graphicsType",
    "pciId",
    "memorySizeInKB",
    "typeId",
    "backing",
    "detail",
    "faultstring",
];

fn node() -> impl Strategy<Value = Node> {
    let name = prop_oneof![prop::sample::select(&NAMES[..]).prop_map(str::to_owned), "[a-zA-Z_][a-zA-Z0-9_.-]{0,6}"];
    let text = prop_oneof![
        Just(String::new()),
        prop::sample::select(&["true", "-32634", "134", "0000:3b:00.0", "2026-11-30T20:00:00Z", "leave", "remove"][..])
            .prop_map(str::to_owned),
        "[ -~\\n\\r\\tü東]{0,12}",
    ];
    let namespace = prop_oneof![
        6 => Just(Namespace::Vim25),
        1 => Just(Namespace::None),
        1 => Just(Namespace::Envelope),
        1 => Just(Namespace::Other("urn:a\"<&b".to_owned())),
    ];
    let types = prop::option::of(
        (
            prop::sample::select(&["HostSriovInfo", "string", "VirtualPCIPassthrough", "TaskReasonUser"][..]),
            any::<bool>(),
        )
            .prop_map(|(name, xsd)| TypeName {
                namespace: if xsd { Namespace::Xsd } else { Namespace::Vim25 },
                name: name.to_owned(),
            }),
    );
    let attribute =
        (prop::sample::select(vec![Namespace::None, Namespace::Xsi, Namespace::Other("urn:x".into())]), text.clone())
            .prop_map(|(namespace, value)| {
                // `xsi:type` is not an attribute of the tree.
                let name = if namespace == Namespace::None { "type" } else { "nil" };
                Attribute { namespace, name: name.to_owned(), value }
            });
    let leaf = (name, namespace, types, prop::option::of(attribute), text).prop_map(
        |(name, namespace, xsi_type, attribute, text)| Node {
            namespace,
            name,
            xsi_type,
            attributes: attribute.into_iter().collect(),
            text,
            children: Vec::new(),
        },
    );
    leaf.clone().prop_recursive(6, 60, 6, move |inner| {
        (leaf.clone(), prop::collection::vec(inner, 0..6)).prop_map(|(mut node, children)| {
            node.children = children;
            if !node.children.is_empty() && node.text.trim().is_empty() {
                node.text = String::new();
            }
            node
        })
    })
}

proptest! {
    // A failure prints its smallest input; that becomes a test by hand, not a file at the top.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decoders_never_panic_on_arbitrary_trees(node in node()) {
        decode_everything(&node);
    }

    #[test]
    fn a_tree_is_read_back_as_it_was_written(node in node()) {
        let text = document(&node);
        prop_assert_eq!(Node::parse(text.as_bytes(), Limits::default()).unwrap(), node);
    }

    #[test]
    fn reading_never_panics_on_arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(node) = Node::parse(&bytes, Limits::default()) {
            decode_everything(&node);
        }
        let _ = ApiVersion::negotiate(&bytes);
        for status in [http::StatusCode::OK, http::StatusCode::INTERNAL_SERVER_ERROR] {
            let _ = answer::read(status, &bytes, "CurrentTime");
        }
    }

    /// Real answers with bytes changed, cut and repeated.
    #[test]
    fn reading_never_panics_on_damaged_answers(
        at in 0_usize..2000,
        length in 0_usize..40,
        with in prop_oneof!["[<>&;/='\"a-z ]{0,8}", "\\PC{0,4}"],
    ) {
        let content = Node::new("CurrentTimeResponse").with(
            Node::new("returnval").with(
                Node::new("objects")
                    .with(Node::reference("obj", "HostSystem", "host-1"))
                    .with(Node::new("propSet").with(Node::leaf("name", "info")).with(Node::leaf("val", "x").xsd("string"))),
            ),
        );
        let text = envelope(&content);
        let start = text.floor_char_boundary(at % text.len());
        let end = text.ceil_char_boundary((start + length).min(text.len()));
        let damaged = format!("{}{with}{}", &text[..start], &text[end..]);
        if let Ok(Answer::Result(node)) = answer::read(http::StatusCode::OK, damaged.as_bytes(), "CurrentTime") {
            decode_everything(&node);
        }
    }
}
