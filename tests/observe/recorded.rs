//! A whole host of a real vCenter 8.0.3 (no GPUs), read through the fleet.

use std::collections::BTreeMap;

use poolwright::model::{Fact, Firmware, Lockdown, PowerState, Product, Tally, ToolsStatus};
use poolwright::vim25::wire::{Node, document};

use super::{INSTANCE, connect, host_ref};
use crate::vim25::recordings::{Recording, recording};
use crate::vim25::script::{self, Reply, Seen, Server, text};

/// Paths whose value is an array: in the recording, which fetched whole parts, a repeated element.
const ARRAYS: [&str; 6] = [
    "hardware.pciDevice",
    "hardware.numaInfo.numaNode",
    "config.pciPassthruInfo",
    "config.network.pnic",
    "device",
    "config.extraConfig",
];

/// `propSet` of a path, taken out of the recorded parts; nothing where the recording has nothing.
fn property(recording: &Recording, path: &str) -> Option<Node> {
    let mut parts = path.split('.');
    let mut at = vec![recording.value(parts.next()?)?.clone()];
    for part in parts {
        at = at.iter().flat_map(|node| node.all(part).cloned().collect::<Vec<_>>()).collect();
    }
    let array = ARRAYS.iter().any(|array| path.ends_with(array));
    let value = if array && !at.is_empty() { Node::new("val").with_all(at) } else { at.into_iter().next()? };
    Some(Node::new("propSet").with(Node::leaf("name", path)).with(Node { name: "val".to_owned(), ..value }))
}

fn object(recording: &Recording, seen: &Seen, kind: &str, id: &str) -> String {
    let specs = seen.body.all("specSet").flat_map(|spec| spec.all("propSet"));
    let paths = specs.filter(|set| set.text_of("type") == Some(kind)).flat_map(|set| set.all("pathSet"));
    let sets = paths.filter_map(|path| property(recording, &path.text));
    document(&Node::new("objects").with(Node::reference("obj", kind, id)).with_all(sets))
}

fn answer(seen: &Seen, objects: &str) -> Reply {
    Reply::ok(&seen.call, &format!("<returnval>{objects}</returnval>"))
}

#[tokio::test(start_paused = true)]
async fn every_fact_of_a_recorded_host() {
    let (Some(host), Some(vm)) = (recording("test_json_host_explode"), recording("test_json_vm_explode_default"))
    else {
        return;
    };
    let server = Server::new(move |seen| match (seen.call.as_str(), seen.asks()) {
        ("RetrievePropertiesEx", "HostSystem") => Some(answer(seen, &object(&host, seen, "HostSystem", "host-14"))),
        // VMs, tasks, datastores and services come in one answer.
        ("RetrievePropertiesEx", "VirtualMachine") => {
            let datastore = "<objects><obj type=\"Datastore\">datastore-17</obj><propSet><name>summary.accessible</name>\
                             <val xsi:type=\"xsd:boolean\">true</val></propSet></objects>";
            let services = Node { name: "val".to_owned(), ..host.get("config").get("service").unwrap().clone() };
            let services = Node::new("objects")
                .with(Node::reference("obj", "HostServiceSystem", "serviceSystem-14"))
                .with(Node::new("propSet").with(Node::leaf("name", "serviceInfo")).with(services));
            let vm = object(&vm, seen, "VirtualMachine", "vm-20");
            Some(answer(seen, &[vm.as_str(), datastore, &document(&services)].concat()))
        }
        ("RetrievePropertiesEx", "CustomFieldsManager") => {
            let object = "<obj type=\"CustomFieldsManager\">CustomFieldsManager</obj>";
            Some(Reply::ok(&seen.call, &format!("<returnval><objects>{object}</objects></returnval>")))
        }
        // Folders above the VM, a level at a time: not recorded.
        ("RetrievePropertiesEx", "Folder") => {
            let up = [
                ("group-v8", "vCLS", "group-v4"),
                ("group-v4", "vm", "datacenter-3"),
                ("datacenter-3", "DC", "group-d1"),
            ];
            let asked =
                seen.body.all("specSet").flat_map(|spec| spec.all("objectSet")).find_map(|set| set.text_of("obj"));
            let (id, name, parent) = up.into_iter().find(|(id, ..)| asked == Some(*id))?;
            let kind = |id: &str| if id.starts_with("group") { "Folder" } else { "Datacenter" };
            let parent = format!("<val type=\"{}\" xsi:type=\"ManagedObjectReference\">{parent}</val>", kind(parent));
            Some(answer(seen, &script::object(kind(id), id, &[("name", &text(name)), ("parent", &parent)])))
        }
        ("fetchSoftwarePackages", _) => Some(Reply::fault("NoPermission", "", "Permission was denied.")),
        _ => None,
    });
    let fleet = connect(&server, INSTANCE).await.unwrap();
    let record = fleet.host(&host_ref("host-14", "10.218.43.170")).await;
    assert_eq!(record.read_at, fleet.now());
    let view = record.view.unwrap();

    assert_eq!(view.uuid, Fact::Known("a6b70142-625f-e04e-edf6-05098f74aff3".to_owned()));
    assert_eq!(view.product, Fact::Known(Product { version: "8.0.3".to_owned(), build: "69507956".to_owned() }));
    assert_eq!(view.power, Fact::Known(PowerState::On));
    assert_eq!(view.in_maintenance, Fact::Known(false));
    assert_eq!(view.boot_time.known().unwrap().to_string(), "2023-12-12T09:07:01.778318Z");
    assert_eq!(view.reboot_required, Fact::Known(false));
    assert_eq!(view.pci.known().unwrap().len(), 48);
    assert_eq!(view.passthru.known().unwrap().len(), 48);
    assert_eq!(view.graphics_config.known().unwrap().default_type.as_str(), "shared");
    assert_eq!(view.graphics_active, Fact::Absent, "there are no GPUs");
    assert_eq!(view.vgpu_types, Fact::Absent);
    assert_eq!(view.numa.known().unwrap().len(), 1);
    assert_eq!(view.capabilities.rebind_without_reboot, Fact::Known(true));
    assert_eq!(view.capabilities.hardware_label, Fact::Known(true));
    assert_eq!(view.marker, Fact::Absent, "the field is not defined");
    assert_eq!(view.tasks, Fact::Known(Vec::new()));
    assert!(view.packages.is_unknown(), "may not be read: {:?}", view.packages);
    assert_eq!(view.graphics_manager.known().unwrap().id, "graphicsManager-14");
    assert_eq!(view.passthru_system.known().unwrap().id, "pciPassthruSystem-14");
    assert_eq!(view.service_system.known().unwrap().id, "serviceSystem-14");
    assert!(view.services.known().unwrap().iter().any(|service| service.key == "TSM-SSH" && service.running));
    assert_eq!(view.lockdown, Fact::Known(Lockdown::Disabled));
    assert_eq!(view.memory_mib, Fact::Known(16_382));
    assert_eq!(view.parity.datastores, Fact::Known(Tally { good: 1, all: 1 }));
    assert_eq!(view.parity.uplinks.known().unwrap().all, 4);
    assert_eq!(view.parity.ha, Fact::Absent, "vSphere HA is off");
    assert_eq!(view.parity.crypto, Fact::Known("incapable".to_owned()));
    assert_eq!(view.parity.alarms, Fact::Known(0));
    let vms = view.vms.known().unwrap();
    assert_eq!(vms.len(), 1);
    assert_eq!(vms[0].gpus, Fact::Known(Vec::new()));
    assert!(vms[0].vcls, "an agent of vSphere Cluster Services, owned by the ESX Agent Manager");
    assert_eq!(vms[0].power, Fact::Known(PowerState::On));
    let vm = &vms[0];
    assert_eq!((&vm.memory_mib, &vm.reserved_mib), (&Fact::Known(128), &Fact::Known(0)));
    assert_eq!((&vm.firmware, &vm.tools), (&Fact::Known(Firmware::Bios), &Fact::Known(ToolsStatus::Running)));
    assert_eq!(vm.managed_by.known().unwrap().extension, "com.vmware.vim.eam");
    assert_eq!(vm.extra, Fact::Known(BTreeMap::new()));
    assert!(vm.host.known().is_some() && vm.bios_uuid.known().is_some() && vm.instance_uuid.known().is_some());
    assert_eq!(vm.folder, Fact::Known("/DC/vm/vCLS".to_owned()));
    // Nothing on the host itself is unknown.
    let unknown = serde_json::to_string(&view).unwrap().matches("\"unknown\"").count();
    assert_eq!(unknown, 1, "only the packages");
}
