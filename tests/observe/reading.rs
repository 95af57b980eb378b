//! What goes wrong while a fleet is read, and what is read all the same.

use poolwright::model::{Fact, HostFaultKind};

use super::{INSTANCE, connect, host_ref};
use crate::vim25::script::{Reply, Seen, Server, object, says, text};

const BOOLEAN: &str = "<val xsi:type=\"xsd:boolean\">false</val>";

/// The objects that a request names.
fn named(seen: &Seen) -> Vec<String> {
    let specs = seen.body.all("specSet").flat_map(|spec| spec.all("objectSet"));
    specs.filter_map(|set| set.text_of("obj")).map(str::to_owned).collect()
}

fn page(seen: &Seen, objects: &str) -> Reply {
    Reply::ok(&seen.call, &format!("<returnval>{objects}</returnval>"))
}

fn host(id: &str) -> String {
    object("HostSystem", id, &[("runtime.inMaintenanceMode", BOOLEAN), ("hardware.systemInfo.uuid", &text(id))])
}

/// What a healthy server with these hosts answers besides.
fn rest(seen: &Seen) -> Option<Reply> {
    match (seen.call.as_str(), seen.asks()) {
        ("RetrievePropertiesEx", "CustomFieldsManager") => Some(page(seen, "")),
        ("RetrievePropertiesEx", "HostSystem") => {
            Some(page(seen, &named(seen).iter().map(|id| host(id)).collect::<String>()))
        }
        _ => None,
    }
}

fn two() -> [poolwright::model::HostRef; 2] {
    [host_ref("host-1", "esx-01"), host_ref("host-2", "esx-02")]
}

#[tokio::test(start_paused = true)]
async fn another_vcenter_than_the_pinned_one_never_gets_the_password() {
    let server = Server::new(|_| None);
    let other = "00000000-1111-4222-8333-444444444444";
    let error = connect(&server, other).await.unwrap_err();
    let said = says(&error);
    assert!(said.contains("lab") && said.contains(other) && said.contains(INSTANCE), "{said}");
    assert_eq!(server.count("Login"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_makes_the_whole_call_fail_is_a_fault_beside_the_others() {
    let server = Server::new(|seen| {
        let asked = named(seen);
        let faults = seen.asks() == "HostSystem" && asked.iter().any(|id| id == "host-2");
        faults
            .then(|| Reply::fault("SystemError", "<reason>vpxd could not</reason>", "A general error."))
            .or_else(|| rest(seen))
    });
    let fleet = connect(&server, INSTANCE).await.unwrap();
    let observed = fleet.facts(&two()).await;
    assert_eq!(observed.hosts.len(), 2);
    let good = observed.host(&"esx-01".into()).unwrap().view.as_ref().unwrap();
    assert_eq!(good.in_maintenance, Fact::Known(false));
    let fault = observed.host(&"esx-02".into()).unwrap().view.as_ref().unwrap_err();
    assert_eq!(fault.kind, HostFaultKind::Fault);
    assert!(fault.message.contains("vpxd could not"), "{}", fault.message);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_gone_and_one_that_may_not_be_read_are_told_apart() {
    let server = Server::new(|seen| {
        (seen.asks() == "HostSystem")
            .then(|| {
                let fault =
                    "<fault><fault xsi:type=\"NoPermission\"></fault><localizedMessage>No.</localizedMessage></fault>";
                let refused = "<objects><obj type=\"HostSystem\">host-2</obj>";
                page(seen, &format!("{refused}<missingSet><path>config.product</path>{fault}</missingSet></objects>"))
            })
            .or_else(|| rest(seen))
    });
    let fleet = connect(&server, INSTANCE).await.unwrap();
    let observed = fleet.facts(&two()).await;
    let kind = |name: &str| observed.host(&name.into()).unwrap().view.as_ref().unwrap_err().kind;
    assert_eq!(kind("esx-01"), HostFaultKind::Gone);
    assert_eq!(kind("esx-02"), HostFaultKind::NoPermission);
}

#[tokio::test(start_paused = true)]
async fn d06_a_vm_that_is_deleted_while_it_is_read_is_noted_and_the_rest_is_read() {
    let server = Server::new(|seen| match seen.asks() {
        "HostSystem" => {
            let vms = "<val xsi:type=\"ArrayOfManagedObjectReference\"><ManagedObjectReference type=\"VirtualMachine\">vm-1\
                       </ManagedObjectReference><ManagedObjectReference type=\"VirtualMachine\">vm-2\
                       </ManagedObjectReference></val>";
            Some(page(seen, &object("HostSystem", "host-1", &[("vm", vms), ("hardware.systemInfo.uuid", &text("u"))])))
        }
        "VirtualMachine" if named(seen).iter().any(|id| id == "vm-2") => {
            let fields = "<obj type=\"VirtualMachine\">vm-2</obj>";
            Some(Reply::fault("ManagedObjectNotFound", fields, "The object has already been deleted."))
        }
        "VirtualMachine" => Some(page(seen, &object("VirtualMachine", "vm-1", &[("name", &text("one"))]))),
        _ => rest(seen),
    });
    let fleet = connect(&server, INSTANCE).await.unwrap();
    let observed = fleet.facts(&two()[..1]).await;
    let view = observed.host(&"esx-01".into()).unwrap().view.as_ref().unwrap();
    let names: Vec<_> = view.vms.known().unwrap().iter().map(|vm| vm.name.known().unwrap().as_str()).collect();
    assert_eq!(names, ["one"]);
    assert!(observed.notes.iter().any(|note| note.contains("vm-2")), "{:?}", observed.notes);
}

#[tokio::test(start_paused = true)]
async fn vms_that_may_not_be_read_make_the_list_unknown_not_empty() {
    let server = Server::new(|seen| match seen.asks() {
        "HostSystem" => {
            let fault =
                "<fault><fault xsi:type=\"NoPermission\"></fault><localizedMessage>No.</localizedMessage></fault>";
            let missing = format!("<missingSet><path>vm</path>{fault}</missingSet>");
            let uuid = format!("<propSet><name>hardware.systemInfo.uuid</name>{}</propSet>", text("u"));
            let object = format!("<objects><obj type=\"HostSystem\">host-1</obj>{uuid}{missing}</objects>");
            Some(page(seen, &object))
        }
        _ => rest(seen),
    });
    let fleet = connect(&server, INSTANCE).await.unwrap();
    let view = fleet.host(&two()[0]).await.view.unwrap();
    assert!(view.vms.is_unknown(), "{:?}", view.vms);
}

/// Case C14: an expired session during an inventory look-up is a matter of logging in, and says so.
#[tokio::test(start_paused = true)]
async fn c14_a_session_that_cannot_be_renewed_is_a_login_error_and_no_empty_inventory() {
    let server = Server::new(|seen| match seen.call.as_str() {
        "Login" if seen.nth > 0 => Some(Reply::fault("InvalidLogin", "", "Cannot complete login.")),
        _ => None,
    });
    let fleet = connect(&server, INSTANCE).await.unwrap();
    server.forget_sessions();
    let said = says(&fleet.roster().await.unwrap_err());
    assert!(said.contains("login") && said.contains("pw@vsphere.local"), "{said}");
    assert!(!said.to_lowercase().contains("not found"), "{said}");
    // A host that is read then says the same.
    let fault = fleet.host(&two()[0]).await.view.unwrap_err();
    assert!(fault.message.contains("login"), "{}", fault.message);
}

#[tokio::test(start_paused = true)]
async fn d13_names_come_byte_for_byte() {
    let names = ["esx \"one\"", "#2", "ü-東京", "a%252fb"];
    let server = Server::new(move |seen| {
        (seen.call == "RetrievePropertiesEx" && seen.asks() == "Folder").then(|| {
            let parent = |id: &str| format!("<val type=\"Folder\" xsi:type=\"ManagedObjectReference\">{id}</val>");
            let hosts = names.iter().enumerate().map(|(n, name)| {
                object("HostSystem", &format!("host-{n}"), &[("name", &text(name)), ("parent", &parent("group-d1"))])
            });
            page(seen, &hosts.collect::<String>())
        })
    });
    let fleet = connect(&server, INSTANCE).await.unwrap();
    let roster = fleet.roster().await.unwrap();
    let mut found: Vec<_> = roster.hosts.iter().map(|host| host.name.as_str()).collect();
    found.sort_unstable();
    assert_eq!(found, ["#2", "a%2fb", "esx \"one\"", "ü-東京"]);
}
