//! The lines of a hand-over card, typed as they stand: kubectl and govc, which are not ours, bring a host and
//! its node to their end on the simulated fleet.
//!
//! `tests/run` builds both with the servers that they belong to.

use std::process::Command;

use serde_json::Value;

use crate::cli::harness::Folder;
use crate::cli::ports::Sim;
use crate::support::peer;

/// How often a line that only looks is typed until it shows what the card says: the node boots meanwhile,
/// for some seconds, and a look takes a tenth of one.
const LOOKS: usize = 600;

/// A shell in which kubectl and govc are what they are on the desk of whoever is on duty.
struct Desk {
    folder: Folder,
    sim: Sim,
}

impl Desk {
    /// None where one of the two is not built (a line says so).
    fn new(folder: Folder) -> Option<Self> {
        let kubernetes = peer("kubernetes/kubernetes")?;
        let govc = peer("vcsim/govc")?;
        let script = |program: &str| format!("#!/bin/sh\nexec {program} \"$@\"\n");
        folder.write("bin/kubectl", script(&format!("'{}' kubectl", kubernetes.display())));
        folder.write("bin/govc", script(&format!("'{}'", govc.display())));
        let made = Command::new("chmod").args(["+x", "bin/kubectl", "bin/govc"]).current_dir(folder.path()).status();
        assert!(made.unwrap().success());
        let sim = Sim::start(&folder, " --kubeconfig served --speed 60");
        Some(Self { folder, sim })
    }

    /// What a line prints; it must end well.
    fn types(&self, line: &str) -> String {
        let own = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(self.folder.path()).env_clear();
        shell.env("PATH", format!("{}/bin:{own}", self.folder.path().display())).env("HOME", self.folder.path());
        shell.env("KUBECONFIG", "served").env("KUBERC", "off");
        shell.env("GOVC_URL", format!("https://{}/sdk", self.sim.address)).env("GOVC_INSECURE", "1");
        shell.env("GOVC_USERNAME", "poolwright@vsphere.local").env("GOVC_PASSWORD", "lab");
        // It speaks the language of vSphere 9 until it has asked for the server's.
        shell.env("GOVC_VIM_VERSION", "8.0.3.0").env("GOVC_PERSIST_SESSION", "false");
        let ended = shell.output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        assert!(ended.status.success(), "{line}\n{out}{err}");
        out.into_owned()
    }
}

fn lines<'a>(step: &'a Value, of: &str) -> impl Iterator<Item = &'a str> {
    step[of].as_array().unwrap().iter().map(|line| line.as_str().unwrap())
}

#[test]
fn the_lines_of_a_card_bring_a_host_and_its_node_to_their_end() {
    let folder = Folder::empty();
    let _ = folder.run("demo --dir .").expect(0);
    std::fs::remove_dir_all(folder.path().join(".poolwright")).unwrap();
    // The fleet of the demo, in which somebody mends the GPU that fails its Job.
    let world = folder.read("inventories/lab-world.yaml");
    folder.write("world.yaml", world.replace("ends: {fails: 1}", "ends: {fails: 1}\n          times: 1"));
    let _ = folder.run("plan --out plan.json --world world.yaml").expect(0);
    let _ = folder.run("apply plan.json --world world.yaml").expect(10);
    let status: Value = serde_json::from_str(&folder.run("status -o json").expect(0).stdout).unwrap();
    let [card] = status["handover"].as_array().unwrap().as_slice() else { panic!("{status:#}") };
    assert_eq!((&card["host"], &card["maintenance"]), (&"esx-serve-02".into(), &true.into()));

    let Some(mut desk) = Desk::new(folder) else { return };
    // The kubeconfig is written before the API servers are told of.
    let mut told = desk.sim.line();
    while !told.starts_with("guest: ") {
        assert!(!told.is_empty(), "it has ended");
        told = desk.sim.line();
    }
    let node = || desk.types("kubectl --context k8s-serve get node worker-b -o json");
    assert!(node().contains("poolwright.io/maintenance") && node().contains("\"unschedulable\": true"), "{}", node());
    let mut typed = Vec::new();
    for step in card["steps"].as_array().unwrap() {
        assert_eq!(step["shell"].as_array().unwrap().len(), 0, "nothing is done at a shell: {step:#}");
        let wanted = lines(step, "then").find(|then| then.starts_with("allocatable"));
        for line in lines(step, "look") {
            typed.push(line);
            let mut shown = desk.types(line);
            // `allocatable nvidia.com/gpu is 2, neither more nor less`: a person looks until it is so.
            let count = wanted.and_then(|then| then.split(" is ").nth(1)?.split(',').next());
            let Some(count) = count.filter(|_| shown.contains("allocatable")) else { continue };
            for _ in 0..LOOKS {
                if shown.contains(&format!("Ready True, allocatable {count}\n")) {
                    break;
                }
                shown = desk.types(line);
            }
            assert!(shown.contains(&format!("Ready True, allocatable {count}\n")), "{shown}");
        }
        for line in lines(step, "commands") {
            typed.push(line);
            let shown = desk.types(line);
            if line.contains(" wait --for=condition=complete ") {
                assert!(shown.contains("condition met"), "{line}: {shown}");
            }
            if line.contains(" logs ") {
                assert!(shown.contains("Test PASSED"), "{line}: {shown}");
            }
        }
    }
    for verb in ["host.maintenance.exit", "vm.power -on", "ls -L", "fields.set", "object.collect"] {
        assert!(typed.iter().any(|line| line.contains(verb)), "{verb} is not in {typed:#?}");
    }
    for verb in
        ["wait --for", "get node", "create -f -", "logs", "delete job ", "delete jobs -l", "uncordon", "annotate"]
    {
        assert!(
            typed.iter().any(|line| line.contains("kubectl") && line.contains(verb)),
            "{verb} is not in {typed:#?}"
        );
    }
    // As the card says that it is then.
    assert!(!node().contains("poolwright.io/") && !node().contains("unschedulable"), "{}", node());
    assert_eq!(desk.types("kubectl --context k8s-serve get jobs -A -o name"), "");
    let Desk { folder, sim } = desk;
    sim.end();
    let state: Value = serde_json::from_str(&folder.read("world.yaml.state")).unwrap();
    let host = state["state"]["hosts"].as_object().unwrap().values().find(|host| host["name"] == "esx-serve-02");
    let host = host.unwrap();
    assert_eq!((&host["maintenance"], &host["values"]["101"]["value"]), (&false.into(), &"".into()), "{host:#}");
    let vm = state["state"]["vms"].as_object().unwrap().values().find(|vm| vm["name"] == "serve-2").unwrap();
    assert_eq!(vm["power"], "on", "{vm:#}");
    // And that it is done is seen by the next plan: nothing of the host is left to be done.
    let plan = folder.run("plan --world world.yaml").expect(0);
    assert!(!plan.stdout.contains("PW-HOST-09"), "{}", plan.stdout);
}
