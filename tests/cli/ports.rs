//! The simulator on a port, and our own binary as its client: real TLS, real time.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use super::harness::{Ended, Folder, L40S, SITE};

/// `poolwright sim`, ended when it is dropped.
struct Sim {
    child: Child,
    address: String,
    thumbprint: String,
    stdout: BufReader<ChildStdout>,
}

impl Sim {
    fn start(folder: &Folder, options: &str) -> Self {
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

    /// The shipped site, at this port.
    fn site(&self, trust: &str) -> String {
        SITE.replace("address: vc.lab", &format!("address: {}", self.address)).replace("trust: system", trust)
    }
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
    let mut line = || {
        let mut line = String::new();
        sim.stdout.read_line(&mut line).unwrap();
        line
    };
    let lines = [line(), line()];
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

#[test]
fn an_unreachable_vcenter_is_told_as_such() {
    let folder = Folder::lab(&[]);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    folder.write("inventories/lab.yaml", SITE.replace("address: vc.lab", &format!("address: 127.0.0.1:{port}")));
    let ended = folder.run("discover").expect(5);
    insta::assert_snapshot!(ended.shown().replace(&port.to_string(), "PORT"));
}

/// F13 and FORMATS rule 16: the first Ctrl-C ends the run in order, the journal is whole, and
/// `resume` ends it.
#[cfg(unix)]
#[test]
fn f13_ctrl_c_stops_in_order_and_resume_goes_on() {
    let profile = L40S.replace("\"esx-l40s-*\"", "esx-l40s-01").replace("size: same", "size: mixed");
    let profile = profile.replace("offers: [{nvidia_l40s-24q: 2}, {nvidia_l40s-12q: 4}]", "");
    let folder = Folder::lab(&[("l40s", &profile)]);
    let sim = Sim::start(&folder, "");
    let trust = format!("trust: {{thumbprint: \"{}\"}}", sim.thumbprint);
    folder.write("inventories/lab.yaml", sim.site(&trust));
    let ended = interrupted(&folder, "apply --yes", "enter maintenance mode ...");
    assert_eq!(ended.code, 130, "\n--- stdout\n{}--- stderr\n{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("Ctrl-C: the running step ends"), "{}", ended.stderr);
    let run = folder.run_id();
    assert!(ended.stdout.contains(&format!("poolwright resume {run}")), "{}", ended.stdout);
    let status = folder.run("status").expect(0);
    assert!(status.stdout.contains("esx-l40s-01"), "{}", status.stdout);
}

/// Runs a command, sends it SIGINT when it has printed `after` on stderr, and waits for its end.
#[cfg(unix)]
fn interrupted(folder: &Folder, line: &str, after: &str) -> Ended {
    let mut child = folder.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut told = String::new();
    while !told.contains(after) {
        assert_ne!(stderr.read_line(&mut told).unwrap(), 0, "ended before {after:?}: {told}");
    }
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    std::io::Read::read_to_string(&mut stderr, &mut told).unwrap();
    let output = child.wait_with_output().unwrap();
    let mut ended = folder.ended(&output);
    ended.stderr = told;
    ended
}
