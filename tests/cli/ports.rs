//! The simulator on a port, and our own binary as its client: real TLS, real time.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use super::harness::{Folder, L40S, SITE};

/// `poolwright sim`, ended when it is dropped.
pub struct Sim {
    child: Child,
    pub address: String,
    pub thumbprint: String,
    stdout: BufReader<ChildStdout>,
}

impl Sim {
    pub fn start(folder: &Folder, options: &str) -> Self {
        let mut command = folder.command(&format!("sim --world world.yaml{options}"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut value = |key: &str| {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            line.trim().strip_prefix(key).unwrap_or_else(|| panic!("{line:?} is not {key}")).to_owned()
        };
        let (address, thumbprint) = (value("address: "), value("thumbprint: "));
        Self { child, address, thumbprint, stdout }
    }

    /// The shipped site, at this port and pinned.
    pub fn pinned_site(&self) -> String {
        self.pin(SITE)
    }

    /// A site of which the vCenter is this one, pinned.
    pub fn pin(&self, site: &str) -> String {
        self.of(site, &format!("trust: {{thumbprint: \"{}\"}}", self.thumbprint))
    }

    fn of(&self, site: &str, trust: &str) -> String {
        site.replace("address: vc.lab", &format!("address: {}", self.address)).replace("trust: system", trust)
    }

    /// The next line that it prints.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    /// Ends it as a person does: then it keeps the state of its world.
    pub fn end(mut self) {
        signal(&self.child, "INT");
        assert!(self.child.wait().unwrap().success());
    }

    /// The shipped site, at this port.
    pub fn site(&self, trust: &str) -> String {
        self.of(SITE, trust)
    }
}

/// Sends a signal.
pub fn signal(child: &Child, name: &str) {
    let sent =
        std::process::Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(sent.success(), "{name} could not be sent");
}

impl Drop for Sim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn c11_an_untrusted_certificate_shows_the_thumbprint_to_pin_and_the_pin_works() {
    let folder = Folder::lab(&[("l40s", L40S)]);
    let sim = Sim::start(&folder, "");
    folder.write("inventories/lab.yaml", sim.site("trust: system"));
    let refused = folder.run("discover").expect(5);
    assert!(refused.stderr.contains(&sim.thumbprint), "{}", refused.stderr);
    let hint = format!(
        "hint: if that is the thumbprint of the right server, pin it in the Site: `trust: {{thumbprint: \"{}\"}}`",
        sim.thumbprint
    );
    assert!(refused.stderr.lines().any(|line| line == hint), "{}", refused.stderr);
    // As the hint says it.
    let trust = hint.split('`').nth(1).unwrap();
    folder.write("inventories/lab.yaml", sim.site(trust));
    let found = folder.run("discover").expect(0);
    assert!(found.stdout.contains("esx-l40s-01"), "{}", found.stdout);
    // Another certificate than the pinned one.
    let other = sim.thumbprint.replace(&sim.thumbprint[..2], "00");
    folder.write("inventories/lab.yaml", sim.site(&format!("trust: {{thumbprint: \"{other}\"}}")));
    let wrong = folder.run("discover").expect(5);
    assert!(wrong.stderr.contains(&sim.thumbprint), "{}", wrong.stderr);
}

/// Each host's shell has a port of its own, and its key is in the file that `ssh` reads.
#[test]
fn shells_are_listed_with_their_ports_and_keys() {
    let folder = Folder::lab(&[]);
    let users = "shell: {ssh: {running: true}, users: [{name: root, password: lab}]}";
    folder.write(
        "world.yaml",
        format!(
            "apiVersion: poolwright/v1\nkind: World\nmetadata: {{name: lab}}\nspec:\n  vcenter: {{address: vc.lab}}\n  \
             datacenters:\n    - path: /DC\n      hosts: [{{names: \"esx-[01-02]\", {users}}}, {{names: esx-03}}]\n"
        ),
    );
    let mut sim = Sim::start(&folder, " --known-hosts known_hosts");
    let lines = [sim.line(), sim.line()];
    let mut ports = Vec::new();
    for (line, host) in lines.iter().zip(["esx-01", "esx-02"]) {
        let port = line.trim().strip_prefix(&format!("shell: {host} 127.0.0.1:")).expect(line);
        ports.push(port.parse::<u16>().unwrap());
    }
    let known = folder.read("known_hosts");
    assert_eq!(known.lines().count(), 2);
    for port in ports {
        assert!(known.contains(&format!("[127.0.0.1]:{port} ssh-ed25519 AAAA")), "{known}");
    }
}

/// Each guest cluster has a port of its own, and a kubeconfig opens it.
#[test]
fn guest_clusters_are_listed_with_their_ports_and_opened_by_a_kubeconfig() {
    let folder = Folder::lab(&[]);
    folder.write(
        "world.yaml",
        "apiVersion: poolwright/v1\nkind: World\nmetadata: {name: lab}\nspec:\n  vcenter: {address: vc.lab}\n  guests:\n    - \
         {name: serve, address: \"https://serve.lab:6443\"}\n    - {name: train, address: \"https://train.lab:6443\", \
         token: other}\n",
    );
    let printed = folder.run("sim kubeconfig world.yaml").expect(0).stdout;
    let printed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["clusters"][0]["cluster"]["server"], "https://serve.lab:6443");
    assert_eq!(printed["users"][1]["user"]["token"], "other");
    let mut sim = Sim::start(&folder, " --kubeconfig kubeconfig");
    let lines = [sim.line(), sim.line()];
    let written: serde_json::Value = serde_json::from_str(&folder.read("kubeconfig")).unwrap();
    for (number, name) in ["serve", "train"].iter().enumerate() {
        let address = lines[number].trim().strip_prefix(&format!("guest: {name} ")).expect("a line of the cluster");
        assert_eq!(written["clusters"][number]["cluster"]["server"], format!("https://{address}"));
        assert!(written["clusters"][number]["cluster"]["certificate-authority-data"].is_string());
        assert_eq!(written["contexts"][number]["name"], *name);
    }
}

/// Started again it is where it was, and who it was: what names it stays true.
#[test]
fn a_fleet_that_is_served_again_has_its_ports_its_certificates_and_its_state() {
    let folder = Folder::lab(&[("l40s", L40S)]);
    let world = folder.read("world.yaml");
    folder.write(
        "world.yaml",
        format!("{world}\n  guests: [{{name: serve, address: \"https://serve.lab:6443\", nodes: [{{name: a}}]}}]\n"),
    );
    let mut sim = Sim::start(&folder, " --kubeconfig kubeconfig --known-hosts known_hosts");
    let until_ready = |sim: &mut Sim| {
        let mut lines = Vec::new();
        while !lines.last().is_some_and(|line: &String| line.starts_with("guest: ")) {
            lines.push(sim.line());
        }
        lines
    };
    let lines = until_ready(&mut sim);
    folder.write("inventories/lab.yaml", sim.pinned_site());
    let first =
        (sim.address.clone(), sim.thumbprint.clone(), lines, folder.read("kubeconfig"), folder.read("known_hosts"));
    let found = folder.run("discover").expect(0).stdout;
    // Another one cannot be served there meanwhile.
    let taken = folder.run("sim --world world.yaml").expect(3);
    let said = format!("cannot listen on {}", first.0);
    assert!(taken.stderr.contains(&said) && taken.stderr.contains("hint: end what listens there"), "{}", taken.stderr);
    sim.end();
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(folder.path().join("world.yaml.served")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600, "private keys are in it");
    let mut sim = Sim::start(&folder, " --kubeconfig again --known-hosts known_hosts");
    let lines = until_ready(&mut sim);
    let again = (sim.address.clone(), sim.thumbprint.clone(), lines, folder.read("again"), folder.read("known_hosts"));
    assert_eq!(again, first);
    // The Site pins the certificate of the first start.
    assert_eq!(folder.run("discover").expect(0).stdout, found);
    sim.end();
    // What cannot be read is told, and not passed over.
    folder.write("world.yaml.served", "{");
    let torn = folder.run("sim --world world.yaml").expect(3);
    assert!(torn.stderr.contains("world.yaml.served") && torn.stderr.contains("hint: `rm "), "{}", torn.stderr);
}

#[test]
fn an_unreachable_vcenter_is_told_as_such() {
    let folder = Folder::lab(&[]);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    folder.write("inventories/lab.yaml", SITE.replace("address: vc.lab", &format!("address: 127.0.0.1:{port}")));
    let ended = folder.run("discover").expect(5);
    insta::assert_snapshot!(ended.shown().replace(&port.to_string(), "PORT"));
}
