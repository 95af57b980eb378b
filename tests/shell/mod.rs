//! The shell of hosts: what is run and read, our client against the simulator, and what must not go
//! wrong in it.

mod bad_input;
mod login;
mod mig;
mod nvidia;
mod services;
mod site;

use poolwright::model::HostKeyPin;
use poolwright::shell::{Access, Credential, KnownHosts, PORT, Shell, ShellError};
use poolwright::sim::{SimNetwork, World};
use secrecy::SecretString;

/// The password of every root here.
const PASSWORD: &str = "marked-r00t-pa55";

/// A world of these hosts in one cluster. Each has the driver, and its SSH service runs, unless it
/// says otherwise.
fn world(hosts: &str) -> World {
    world_with("", hosts)
}

/// The same with more lines of `spec` before.
fn world_with(spec: &str, hosts: &str) -> World {
    let text = format!(
        "apiVersion: poolwright/v1\nkind: World\nmetadata: {{name: shells}}\nspec:\n{spec}  vcenter: {{address: \
         vc.lab, users: [{{name: pw@vsphere.local, password: lab}}]}}\n  datacenters:\n    - path: /DC\n      \
         clusters:\n        - name: c\n          hosts:\n{hosts}"
    );
    World::parse("shells.yaml", text.as_bytes()).unwrap()
}

/// A host line for [`world`]: its name, its GPUs and what else it has.
fn host(name: &str, gpus: &str, more: &str) -> String {
    format!(
        "            - {{names: {name}, driver: {{component: NVD-AIE-800, version: 580.95.02}}, gpus: [{gpus}]{more}}}\n"
    )
}

/// The shell of a host as it is with us.
fn shell(more: &str) -> String {
    format!(", shell: {{users: [{{name: root, password: {PASSWORD}}}], ssh: {{running: true, policy: off}}{more}}}")
}

/// The pins that `sim` would export.
fn pins(world: &World, host: &str) -> Vec<HostKeyPin> {
    KnownHosts::parse(&world.known_hosts()).unwrap().pins(host, PORT)
}

fn access(world: &World, host: &str, password: &str) -> Access {
    Access {
        host: host.to_owned(),
        port: PORT,
        pins: pins(world, host),
        user: "root".to_owned(),
        credential: Credential::Password(SecretString::from(password)),
    }
}

async fn open(world: &World, host: &str) -> Result<Shell, ShellError> {
    Shell::open(&SimNetwork::new(world.clone()), &access(world, host, PASSWORD)).await
}

/// The error and its causes, as they are printed.
fn told(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        told.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    told
}

/// Logins that the world counted as wrong.
fn wrong_logins(world: &World) -> usize {
    world.log().iter().filter(|write| write.call == "SshLogin").count()
}
