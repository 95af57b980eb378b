//! vcsim, govmomi's simulator of a vCenter: a server that we did not write judges our client.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Lines, Write};
use std::num::NonZeroU32;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use poolwright::base::clock::Clock;
use poolwright::base::net::{Endpoint, NetError, Network, RealNetwork, Trust};
use poolwright::model::{Fact, MoRef, PowerState};
use poolwright::observe::Fleet;
use poolwright::vim25::wire::decode;
use poolwright::vim25::{Client, Error, ObjectContent, PropertySet, Scope, TaskEnd, TaskState, Waited};
use secrecy::SecretString;

use crate::support::peer;

/// A running vcsim; it ends when its input is closed, with this value.
struct Vcsim {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    address: String,
    user: String,
    password: String,
    pin: [u8; 32],
}

impl Vcsim {
    /// None where vcsim is not installed (a line says so).
    fn start(arguments: &[&str]) -> Option<Self> {
        let program = peer("vcsim/vcsim")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut value = |key: &str| value(&mut output, key);
        let (address, user, password) = (value("address"), value("user"), value("password"));
        let hex = value("sha256");
        let mut pin = [0; 32];
        for (byte, digits) in pin.iter_mut().zip(hex.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap();
        }
        Some(Self { input: child.stdin.take(), output, child, address, user, password, pin })
    }

    /// An administrator ends every session; says how many there were.
    fn end_sessions(&mut self) -> String {
        self.input.as_mut().unwrap().write_all(b"end sessions\n").unwrap();
        value(&mut self.output, "ended")
    }

    async fn connect_with(&self, trust: Trust, password: &str) -> Result<Client, Error> {
        let endpoint = Endpoint::new(self.address.clone(), trust);
        let exchange = RealNetwork.open(&endpoint).unwrap();
        let password = SecretString::from(password);
        Client::connect(exchange, self.address.clone(), None, self.user.clone(), password, Clock::system()).await
    }

    async fn connect(&self) -> Client {
        self.connect_with(Trust::Thumbprint(self.pin), &self.password).await.unwrap()
    }
}

/// The value of the next line, which has this key.
fn value(output: &mut Lines<BufReader<ChildStdout>>, key: &str) -> String {
    let line = output.next().expect(key).unwrap();
    line.strip_prefix(key).expect(key).trim().to_owned()
}

impl Drop for Vcsim {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

async fn hosts(client: &Client, paths: &[&'static str]) -> Vec<ObjectContent> {
    let mut hosts = Vec::new();
    let sets = [PropertySet::new("HostSystem", paths)];
    let scope = Scope::Below(client.root_folder().clone());
    let retrieved = client.retrieve(&scope, &sets, |page| hosts.extend(page)).await.unwrap();
    assert_eq!((retrieved.objects, retrieved.gone.len()), (hosts.len(), 0));
    hosts
}

async fn in_maintenance(client: &Client, host: &MoRef) -> bool {
    let content = client.properties(host, &["runtime.inMaintenanceMode"]).await.unwrap();
    decode::boolean(content.get("runtime.inMaintenanceMode").unwrap()).unwrap()
}

fn timeout() -> NonZeroU32 {
    NonZeroU32::new(60).unwrap()
}

const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn log_in_with_a_pinned_certificate() {
    let Some(vcsim) = Vcsim::start(&[]) else { return };
    let client = vcsim.connect().await;
    assert_eq!(client.about().api_type, "VirtualCenter");
    assert!(!client.about().instance_uuid.is_empty());
    client.check_session().await.unwrap();
    assert!(client.clock_difference().abs().as_secs() < 60);
    client.logout().await.unwrap();

    let mut wrong = vcsim.pin;
    wrong[0] ^= 1;
    let error = vcsim.connect_with(Trust::Thumbprint(wrong), &vcsim.password).await.unwrap_err();
    assert!(matches!(error, Error::Net { source: NetError::Untrusted { .. }, .. }), "{error:?}");
    let error = vcsim.connect_with(Trust::Thumbprint(vcsim.pin), "").await.unwrap_err();
    assert!(matches!(error, Error::LoginRefused { .. }), "{error:?}");
}

#[tokio::test]
async fn page_an_inventory_of_500_hosts() {
    let Some(vcsim) = Vcsim::start(&["-clusters", "5", "-hosts", "100"]) else { return };
    let client = vcsim.connect().await;
    let mut pages = Vec::new();
    let paths = ["name", "parent", "runtime.connectionState", "config.graphicsInfo", "hardware.pciDevice"];
    let sets = [PropertySet::new("HostSystem", &paths)];
    let scope = Scope::Below(client.root_folder().clone());
    let mut names = BTreeSet::new();
    client
        .retrieve(&scope, &sets, |page| {
            pages.push(page.len());
            for host in &page {
                let Fact::Known(name) = host.fact("name", decode::string) else { panic!("{host:?}") };
                names.insert(name);
                let Fact::Known(parent) = host.fact("parent", decode::reference) else { panic!("{host:?}") };
                assert_eq!(parent.kind, "ClusterComputeResource");
                assert_eq!(host.get("runtime.connectionState").unwrap().text, "connected");
                // No graphics: an empty array, where a real host has nothing at all.
                assert_eq!(host.fact("config.graphicsInfo", decode::graphics_states), Fact::Known(vec![]));
                // Its bytes are unsigned.
                assert!(!host.fact("hardware.pciDevice", decode::pci_devices).is_unknown());
            }
        })
        .await
        .unwrap();
    assert_eq!(names.len(), 500);
    assert_eq!(pages, [100; 5]);
    client.logout().await.unwrap();
}

#[tokio::test]
async fn enter_and_leave_maintenance_and_wait_for_the_tasks() {
    let Some(vcsim) = Vcsim::start(&["-delay", "1500"]) else { return };
    let client = vcsim.connect().await;
    let host = hosts(&client, &["name"]).await.remove(0).object;
    assert!(!in_maintenance(&client, &host).await);

    let task = client.enter_maintenance(&host, timeout()).await.unwrap();
    let mut told = Vec::new();
    let end = client.wait_task(&task, SOON, |progress| told.push(progress.state)).await.unwrap();
    let TaskEnd::Success(info) = end else { panic!("{end:?}") };
    assert_eq!((&info.task, info.entity.as_ref()), (&task, Some(&host)));
    assert_eq!(info.what, "HostSystem.enterMaintenanceMode");
    assert_eq!(told.last(), Some(&TaskState::Success));
    assert!(in_maintenance(&client, &host).await);

    let task = client.exit_maintenance(&host, timeout()).await.unwrap();
    let end = client.wait_task(&task, SOON, |_| {}).await.unwrap();
    assert!(matches!(end, TaskEnd::Success(_)), "{end:?}");
    let waited = client
        .wait_for_change(&host, &["runtime.inMaintenanceMode"], SOON, |content| {
            content.get("runtime.inMaintenanceMode").is_some_and(|value| value.text == "false")
        })
        .await
        .unwrap();
    assert!(matches!(waited, Waited::Done(_)), "{waited:?}");

    client.logout().await.unwrap();
}

/// An administrator ends the session: before a read, before a write, and while a task is awaited.
#[tokio::test]
async fn a_session_that_another_ends_is_renewed_unseen() {
    let Some(mut vcsim) = Vcsim::start(&["-delay", "500"]) else { return };
    let client = vcsim.connect().await;
    assert_eq!(vcsim.end_sessions(), "1");
    let host = hosts(&client, &["name"]).await.remove(0).object;
    assert_eq!(vcsim.end_sessions(), "1");
    let task = client.enter_maintenance(&host, timeout()).await.unwrap();
    assert_eq!(vcsim.end_sessions(), "1");
    let end = client.wait_task(&task, SOON, |_| {}).await.unwrap();
    assert!(matches!(end, TaskEnd::Success(_)), "{end:?}");
    assert!(in_maintenance(&client, &host).await);
    // And nobody is left logged in.
    client.logout().await.unwrap();
    assert_eq!(vcsim.end_sessions(), "0");
}

#[tokio::test]
async fn custom_fields_are_defined_set_and_read_back() {
    let Some(vcsim) = Vcsim::start(&[]) else { return };
    let client = vcsim.connect().await;
    let host = hosts(&client, &["name"]).await.remove(0).object;
    let field = client.add_custom_field("poolwright.run", "HostSystem").await.unwrap();
    assert!(client.custom_fields().await.unwrap().iter().any(|known| known.name == "poolwright.run"));
    let error = client.add_custom_field("poolwright.run", "HostSystem").await.unwrap_err();
    assert!(error.is_fault("DuplicateName") && !error.may_have_acted(), "{error:?}");
    let value = r#"{"v":1,"run":"01JD","phase":"changing <&> ü"}"#;
    client.set_custom_field(&host, field.key, value).await.unwrap();
    let content = client.properties(&host, &["customValue"]).await.unwrap();
    let values = decode::custom_values(content.get("customValue").unwrap()).unwrap();
    assert_eq!(values, [(field.key, value.to_owned())]);
    // vcsim has no user events; a method that does not exist did nothing.
    let error = client.log_user_event(&host, "poolwright: closing for maintenance").await.unwrap_err();
    assert!(error.is_fault("MethodNotFound") && !error.may_have_acted(), "{error:?}");
    client.logout().await.unwrap();
}

/// Clusters, VMs with their folders, the setting of the vCenter: every path that is read, vcsim knows.
#[tokio::test]
async fn a_fleet_with_its_clusters_and_vms_is_read() {
    let Some(vcsim) = Vcsim::start(&["-alone", "1", "-vms", "2"]) else { return };
    let hex: String = vcsim.pin.iter().map(|byte| format!("{byte:02x}")).collect();
    let text = format!(
        "apiVersion: poolwright/v1\nkind: Site\nmetadata: {{name: lab}}\nspec:\n  vcenter: {{address: \"{}\", \
         trust: {{thumbprint: {hex}}}, credentials: {{user: u, password: \"env:LAB\"}}}}\n",
        vcsim.address
    );
    let loaded = poolwright::profile::load(&[("site.yaml".to_owned(), text.into_bytes())]);
    let password = SecretString::from(vcsim.password.as_str());
    let site = &loaded.sites[0].spec;
    let fleet = Fleet::connect("lab", site, &vcsim.user, password, &RealNetwork, Clock::system()).await.unwrap();
    let roster = fleet.roster().await.unwrap();
    let observed = fleet.facts(&roster.hosts).await;

    let path = roster.clusters[0].path.as_str();
    assert!(observed.clusters[path].known().unwrap().drs.known().unwrap().enabled.known().is_some(), "{observed:?}");
    // A host that stands alone has no cluster.
    assert!(observed.clusters.values().any(Fact::is_absent));
    assert_eq!(observed.hot_migrate, Fact::Absent, "vcsim has no such setting");
    let views = || observed.hosts.values().filter_map(|record| record.view.as_ref().ok());
    assert_eq!(views().count(), observed.hosts.len());
    let vms: Vec<_> = views().flat_map(|view| view.vms.known().unwrap()).collect();
    assert!(!vms.is_empty());
    for vm in vms {
        assert_eq!(vm.folder, Fact::Known("/DC0/vm".to_owned()));
        assert_eq!(vm.power, Fact::Known(PowerState::On));
        let unknown = serde_json::to_string(vm).unwrap().matches("\"unknown\"").count();
        assert_eq!(unknown, 0, "{vm:?}");
    }
    fleet.close().await.unwrap();
}

#[tokio::test]
async fn a_vm_is_switched_off_and_started_on_its_host() {
    let Some(vcsim) = Vcsim::start(&["-vms", "1"]) else { return };
    let client = vcsim.connect().await;
    let mut vms = Vec::new();
    let sets = [PropertySet::new("VirtualMachine", &["runtime.host"])];
    let scope = Scope::Below(client.root_folder().clone());
    client.retrieve(&scope, &sets, |page| vms.extend(page)).await.unwrap();
    let vm = vms.remove(0);
    let host = vm.fact("runtime.host", decode::reference);
    let host = host.known().unwrap();
    let power = async || {
        let content = client.properties(&vm.object, &["runtime.powerState"]).await.unwrap();
        content.get("runtime.powerState").unwrap().text.clone()
    };
    let done = async |task: MoRef| {
        let end = client.wait_task(&task, SOON, |_| {}).await.unwrap();
        assert!(matches!(end, TaskEnd::Success(_)), "{end:?}");
    };
    done(client.power_off(&vm.object).await.unwrap()).await;
    assert_eq!(power().await, "poweredOff");
    // Nobody is there to be asked.
    assert!(client.shutdown_guest(&vm.object).await.unwrap_err().is_fault("InvalidPowerState"));
    done(client.power_on(&vm.object, Some(host)).await.unwrap()).await;
    assert_eq!(power().await, "poweredOn");
    client.logout().await.unwrap();
}

#[tokio::test]
async fn an_object_that_does_not_exist_is_gone_and_the_others_are_read() {
    let Some(vcsim) = Vcsim::start(&[]) else { return };
    let client = vcsim.connect().await;
    let host = hosts(&client, &["name"]).await.remove(0).object;
    let ghost = MoRef::new("HostSystem", "host-99999");
    let sets = [PropertySet::new("HostSystem", &["name"])];
    let mut read = Vec::new();
    let scope = Scope::Objects(vec![ghost.clone(), host.clone()]);
    let retrieved = client.retrieve(&scope, &sets, |page| read.extend(page)).await.unwrap();
    assert_eq!(retrieved.gone, [ghost]);
    assert_eq!(read.into_iter().map(|content| content.object).collect::<Vec<_>>(), [host]);
    client.logout().await.unwrap();
}
