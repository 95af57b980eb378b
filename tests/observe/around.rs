//! What is around a host: its cluster, the setting of the vCenter, VMs by themselves and where they lie.

use poolwright::model::{DrsLevel, Fact, HostFaultKind, HostRef, MoRef};

use super::{INSTANCE, connect, host_ref};
use crate::vim25::script::{Reply, Seen, Server, object, text};

fn named(seen: &Seen) -> Vec<String> {
    let specs = seen.body.all("specSet").flat_map(|spec| spec.all("objectSet"));
    specs.filter_map(|set| set.text_of("obj")).map(str::to_owned).collect()
}

fn page(seen: &Seen, objects: &str) -> Option<Reply> {
    Some(Reply::ok(&seen.call, &format!("<returnval>{objects}</returnval>")))
}

fn reference(kind: &str, id: &str) -> String {
    format!("<val type=\"{kind}\" xsi:type=\"ManagedObjectReference\">{id}</val>")
}

/// A host of this cluster, or of a compute resource of its own.
fn host(id: &str, parent: (&str, &str)) -> String {
    let parent = reference(parent.0, parent.1);
    object("HostSystem", id, &[("hardware.systemInfo.uuid", &text(id)), ("parent", &parent)])
}

fn cluster(id: &str, level: &str) -> String {
    let configuration = format!(
        "<val xsi:type=\"ClusterConfigInfoEx\"><dasConfig><enabled>false</enabled></dasConfig><drsConfig>\
         <enabled>true</enabled><defaultVmBehavior>{level}</defaultVmBehavior></drsConfig></val>"
    );
    object("ClusterComputeResource", id, &[("configurationEx", &configuration)])
}

/// Hosts 1 and 2 in cluster c, 3 in cluster d, 4 alone.
fn hosts() -> [HostRef; 4] {
    let of = |id: &str, name: &str, cluster: &str| HostRef {
        path: format!("/DC/host/{cluster}/{name}"),
        cluster: format!("/DC/host/{cluster}"),
        ..host_ref(id, name)
    };
    [of("host-1", "a", "c"), of("host-2", "b", "c"), of("host-3", "e", "d"), of("host-4", "alone", "alone")]
}

fn hosts_answer(seen: &Seen) -> Option<Reply> {
    let parent = |id: &str| match id {
        "host-1" | "host-2" => ("ClusterComputeResource", "domain-c1"),
        "host-3" => ("ClusterComputeResource", "domain-c2"),
        _ => ("ComputeResource", "domain-s3"),
    };
    page(seen, &named(seen).iter().map(|id| host(id, parent(id))).collect::<String>())
}

#[tokio::test(start_paused = true)]
async fn each_cluster_is_read_once_and_one_that_fails_leaves_the_others() {
    let server = Server::new(|seen| match (seen.call.as_str(), seen.asks()) {
        ("RetrievePropertiesEx", "HostSystem") => hosts_answer(seen),
        ("RetrievePropertiesEx", "ClusterComputeResource") => {
            let asked = named(seen);
            if asked.iter().any(|id| id == "domain-c2") {
                return Some(Reply::fault("SystemError", "<reason>no</reason>", "A general error."));
            }
            assert_eq!(asked, ["domain-c1"], "a compute resource is no cluster");
            page(seen, &cluster("domain-c1", "partiallyAutomated"))
        }
        ("RetrievePropertiesEx", "CustomFieldsManager") => page(seen, ""),
        ("QueryOptions", _) => Some(Reply::ok(&seen.call, "")),
        _ => None,
    });
    let fleet = connect(&server, INSTANCE).await.unwrap();
    let observed = fleet.facts(&hosts()).await;
    let of = |name: &str| &observed.clusters[&format!("/DC/host/{name}")];
    let view = of("c").known().unwrap();
    assert_eq!(view.moref, MoRef::new("ClusterComputeResource", "domain-c1"));
    assert_eq!(view.drs.known().unwrap().level, Fact::Known(DrsLevel::PartiallyAutomated));
    assert!(matches!(of("d"), Fact::Unknown { why } if why.contains("general error")), "{:?}", of("d"));
    assert_eq!(*of("alone"), Fact::Absent);
    assert_eq!(observed.clusters.len(), 3);
    assert!(observed.hosts.values().all(|record| record.view.is_ok()));
}

/// One host that shows its cluster is enough; of none, the cluster is unknown and not absent.
#[tokio::test(start_paused = true)]
async fn a_cluster_is_known_by_any_of_its_hosts() {
    let server = Server::new(|seen| match (seen.call.as_str(), seen.asks()) {
        // The first host of the cluster is gone, and the one of the other shows nothing of it.
        ("RetrievePropertiesEx", "HostSystem") => {
            let silent = object("HostSystem", "host-3", &[("hardware.systemInfo.uuid", &text("host-3"))]);
            page(seen, &(host("host-2", ("ClusterComputeResource", "domain-c1")) + &silent))
        }
        ("RetrievePropertiesEx", "ClusterComputeResource") => page(seen, &cluster("domain-c1", "manual")),
        ("RetrievePropertiesEx", "CustomFieldsManager") => page(seen, ""),
        _ => None,
    });
    let fleet = connect(&server, INSTANCE).await.unwrap();
    let [gone, good, silent, _] = hosts();
    let observed = fleet.facts(&[gone.clone(), good.clone(), silent.clone()]).await;
    assert!(observed.clusters["/DC/host/c"].known().is_some());
    assert!(observed.clusters["/DC/host/d"].is_unknown());
    assert!(fleet.facts(&[gone]).await.clusters["/DC/host/c"].is_unknown());
    // And each by itself, afresh.
    let level = |cluster: Fact<poolwright::model::ClusterView>| cluster.known()?.drs.known()?.level.known().cloned();
    assert_eq!(level(fleet.cluster(&good).await), Some(DrsLevel::Manual));
    assert!(fleet.cluster(&silent).await.is_unknown());
}

#[tokio::test(start_paused = true)]
async fn a_setting_that_does_not_exist_is_absent_and_one_that_is_not_understood_unknown() {
    let asked = |answer: fn(&Seen) -> Reply| async move {
        let server = Server::new(move |seen| match (seen.call.as_str(), seen.asks()) {
            ("QueryOptions", _) => Some(answer(seen)),
            ("RetrievePropertiesEx", "CustomFieldsManager" | "HostSystem") => page(seen, ""),
            _ => None,
        });
        connect(&server, INSTANCE).await.unwrap().facts(&[]).await.hot_migrate
    };
    fn option(seen: &Seen, value: &str) -> Reply {
        assert_eq!(seen.body.text_of("name"), Some("vgpu.hotmigrate.enabled"));
        Reply::ok(&seen.call, &format!("<returnval><key>vgpu.hotmigrate.enabled</key>{value}</returnval>"))
    }
    let on = asked(|seen| option(seen, "<value xsi:type=\"xsd:boolean\">true</value>")).await;
    assert_eq!(on, Fact::Known(true));
    let off = asked(|seen| option(seen, "<value xsi:type=\"xsd:string\">False</value>")).await;
    assert_eq!(off, Fact::Known(false));
    assert!(asked(|seen| option(seen, "<value xsi:type=\"xsd:string\">maybe</value>")).await.is_unknown());
    let none = asked(|_| Reply::fault("InvalidName", "<name>vgpu.hotmigrate.enabled</name>", "Invalid name.")).await;
    assert_eq!(none, Fact::Absent);
    assert!(asked(|_| Reply::fault("NoPermission", "", "No.")).await.is_unknown());
    // What lies below the name is another setting.
    let other = asked(|seen| {
        let value = "<value xsi:type=\"xsd:boolean\">true</value>";
        Reply::ok(&seen.call, &format!("<returnval><key>vgpu.hotmigrate.enabled.x</key>{value}</returnval>"))
    });
    assert_eq!(other.await, Fact::Absent);
}

/// VMs 0 to 4: one that hides where it is; in a folder with an odd name, in a vApp, in a folder that
/// hides, in a loop of folders.
fn vm_answer(seen: &Seen) -> Option<Reply> {
    match (seen.call.as_str(), seen.asks()) {
        ("RetrievePropertiesEx", "VirtualMachine") => {
            let vm = |id: &str| {
                let place = match id {
                    "vm-0" => ("config.uuid", text("u")),
                    "vm-1" => ("parent", reference("Folder", "group-v2")),
                    "vm-2" => ("parentVApp", reference("VirtualApp", "resgroup-v5")),
                    "vm-3" => ("parent", reference("Folder", "group-v8")),
                    _ => ("parent", reference("Folder", "group-v9")),
                };
                let host = reference("HostSystem", "host-2");
                object("VirtualMachine", id, &[("name", &text(id)), ("runtime.host", &host), (place.0, &place.1)])
            };
            let known = |id: &&String| id.as_str() <= "vm-4";
            page(seen, &named(seen).iter().filter(known).map(|id| vm(id)).collect::<String>())
        }
        ("RetrievePropertiesEx", "Folder") => {
            let folder = |id: &String| match id.as_str() {
                "group-v2" => {
                    object("Folder", id, &[("name", &text("a%2fb")), ("parent", &reference("Folder", "group-v1"))])
                }
                "group-v1" => {
                    object("Folder", id, &[("name", &text("vm")), ("parent", &reference("Datacenter", "dc-1"))])
                }
                "dc-1" => {
                    object("Datacenter", id, &[("name", &text("DC")), ("parent", &reference("Folder", "group-d1"))])
                }
                "group-v9" => {
                    object("Folder", id, &[("name", &text("x")), ("parent", &reference("Folder", "group-v10"))])
                }
                "group-v10" => {
                    object("Folder", id, &[("name", &text("y")), ("parent", &reference("Folder", "group-v9"))])
                }
                _ => String::new(),
            };
            page(seen, &named(seen).iter().map(folder).collect::<String>())
        }
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_vm_is_read_by_itself_with_its_host_and_the_path_of_its_folder() {
    let server = Server::new(vm_answer);
    let fleet = connect(&server, INSTANCE).await.unwrap();
    let read = |id: &'static str| {
        let fleet = &fleet;
        async move { fleet.vm(&MoRef::new("VirtualMachine", id)).await }
    };
    let first = read("vm-1").await;
    assert_eq!((first.moref.id.as_str(), first.read_at), ("vm-1", fleet.now()));
    let view = first.view.unwrap();
    assert_eq!(view.host, Fact::Known(MoRef::new("HostSystem", "host-2")));
    assert_eq!(view.folder, Fact::Known("/DC/vm/a%2fb".to_owned()), "written as paths of hosts are");
    assert!(read("vm-0").await.view.unwrap().folder.is_unknown(), "neither folder nor vApp is shown");
    assert_eq!(read("vm-2").await.view.unwrap().folder, Fact::Absent, "in a vApp");
    assert!(read("vm-3").await.view.unwrap().folder.is_unknown(), "its folder can't be read");
    assert!(read("vm-4").await.view.unwrap().folder.is_unknown(), "its folders are a loop");
    // Deleted, or never there.
    assert_eq!(read("vm-5").await.view.unwrap_err().kind, HostFaultKind::Gone);
}

#[tokio::test(start_paused = true)]
async fn services_that_cannot_be_read_are_unknown_and_a_host_without_them_has_none() {
    let server = Server::new(|seen| match (seen.call.as_str(), seen.asks()) {
        ("RetrievePropertiesEx", "HostSystem") => {
            let system = reference("HostServiceSystem", "serviceSystem-1");
            let with = |id: &str| {
                let uuid = text(id);
                object(
                    "HostSystem",
                    id,
                    &[("hardware.systemInfo.uuid", &uuid), ("configManager.serviceSystem", &system)],
                )
            };
            let one = |id: &String| if id == "host-4" { host(id, ("ComputeResource", "domain-s3")) } else { with(id) };
            page(seen, &named(seen).iter().map(one).collect::<String>())
        }
        // The followed objects come in one call, which names VMs first.
        ("RetrievePropertiesEx", "VirtualMachine") => page(seen, &object("HostServiceSystem", "serviceSystem-1", &[])),
        ("RetrievePropertiesEx", "CustomFieldsManager") => page(seen, ""),
        _ => None,
    });
    let fleet = connect(&server, INSTANCE).await.unwrap();
    let [first, .., alone] = hosts();
    assert!(fleet.host(&first).await.view.unwrap().services.is_unknown());
    assert_eq!(fleet.host(&alone).await.view.unwrap().services, Fact::Absent);
}
