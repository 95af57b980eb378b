//! The lines of a hand-over card, typed as they stand: kubectl and govc, which are not ours, bring a host and
//! its node to their end on the simulated fleet.
//!
//! `tests/run` builds both with the servers that they belong to.

use std::process::{Child, Command, Stdio};

use poolwright::model::{HostName, MigKind, MoRef, ShellWay};
use poolwright::plan::Step;
use poolwright::report::{ByHand, Handover};
use poolwright::rollout::{Compensation, Event, StepKind};
use serde_json::Value;

use crate::cli::harness::Folder;
use crate::cli::ports::Sim;
use crate::report::stages::{HOST, Stage, plan, steps, visit};
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
        let sim = Sim::start(&folder, " --kubeconfig served --known-hosts known_hosts --speed 60");
        Some(Self { folder, sim })
    }

    /// What a line prints; it must end well.
    fn types(&self, line: &str) -> String {
        let ended = self.shell(line).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        assert!(ended.status.success(), "{line}\n{out}{err}");
        out.into_owned()
    }

    /// What a line prints, once it shows what is wanted.
    fn looks(&self, line: &str, wanted: impl Fn(&str) -> bool) -> String {
        let mut shown = String::new();
        for _ in 0..LOOKS {
            shown = self.types(line);
            if wanted(&shown) {
                return shown;
            }
        }
        panic!("{line}\nnever shows what is wanted: {shown}");
    }

    /// A line that is typed into another window, since it waits for something.
    fn begins(&self, line: &str) -> Child {
        self.shell(line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn shell(&self, line: &str) -> Command {
        let own = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(self.folder.path()).env_clear();
        shell.env("PATH", format!("{}/bin:{own}", self.folder.path().display())).env("HOME", self.folder.path());
        shell.env("KUBECONFIG", "served").env("KUBERC", "off");
        shell.env("GOVC_URL", format!("https://{}/sdk", self.sim.address)).env("GOVC_INSECURE", "1");
        shell.env("GOVC_USERNAME", "poolwright@vsphere.local").env("GOVC_PASSWORD", "lab");
        // It speaks the language of vSphere 9 until it has asked for the server's.
        shell.env("GOVC_VIM_VERSION", "8.0.3.0").env("GOVC_PERSIST_SESSION", "false");
        shell
    }

    /// What it says until the fleet can be reached: the kubeconfig is written before the API servers are told of.
    fn is_up(&mut self) -> String {
        let mut told = String::new();
        while !told.contains("guest: ") {
            let line = self.sim.line();
            assert!(!line.is_empty(), "it has ended");
            told.push_str(&line);
        }
        told
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
    let _ = desk.is_up();
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
            if line.starts_with("until ") {
                assert_eq!(shown, "Complete\n", "{line}");
            }
            if line.contains(" logs ") {
                assert!(shown.contains("Test PASSED"), "{line}: {shown}");
            }
        }
    }
    for verb in ["host.maintenance.exit", "vm.power -on", "ls -L", "fields.set", "object.collect"] {
        assert!(typed.iter().any(|line| line.contains(verb)), "{verb} is not in {typed:#?}");
    }
    for verb in [
        "wait --for",
        "get node",
        "get job ",
        "create -f -",
        "logs",
        "delete job ",
        "delete jobs -l",
        "uncordon",
        "annotate",
    ] {
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

/// The fleet of which the cards of [`Stage`] tell, before anything is done.
const FLEET: &str = "apiVersion: poolwright/v1
kind: World
metadata: {name: lab}
spec:
  vcenter: {address: vc.lab, users: [{name: poolwright@vsphere.local, password: lab}]}
  datacenters:
    - path: /DC 1
      clusters:
        - name: gpu-a
          hosts:
            - {names: esx-gpu-01, driver: {component: NVD-AIE-800, version: 580.95.02}, shell: {users: [{name: root, password: lab}]}, gpus: [{model: h100-nvl-94, count: 2, addresses: [\"0000:3b:00.0\", \"0000:5e:00.0\"], mode: {passthrough: {label: train}}}]}
          vms:
            - {name: serve-vm, host: esx-gpu-01, power: on, devices: [{directPath: \"0000:3b:00.0\"}], extra: {pciPassthru.use64bitMMIO: \"TRUE\", pciPassthru.64bitMMIOSizeGB: \"512\"}, node: {cluster: k8s-serve, name: serve-a}}
            - {name: train-vm, host: esx-gpu-01, power: on, devices: [{directPath: \"0000:5e:00.0\"}], extra: {pciPassthru.use64bitMMIO: \"TRUE\", pciPassthru.64bitMMIOSizeGB: \"512\"}, node: {cluster: k8s-train, name: train-b}}
            - {name: batch, host: esx-gpu-01, power: on, migrate: false}
  guests:
    - {name: k8s-serve, address: \"https://serve.lab:6443\", workloads: [{name: web, gpu: 1, grace: 1s, emptyDir: true, nodes: [serve-a]}, {name: exporter, kind: daemonSet}]}
    - {name: k8s-train, address: \"https://train.lab:6443\"}
";

/// The card of a stage, with the ids that the VMs have in this fleet.
struct Card {
    steps: Vec<ByHand>,
    ids: Vec<(String, String)>,
}

impl Card {
    fn of(stage: &Stage, desk: &Desk) -> Self {
        let state = stage.state();
        let host = HostName::from(HOST);
        let card = Handover::of(&state, &host, &state.hosts[&host], Some(&plan())).unwrap();
        let id = |name: &str| desk.types(&format!("govc find -i / -type m -name {name}")).trim().to_owned();
        let ids = [("71", "serve-vm"), ("72", "train-vm"), ("80", "batch")];
        Self { steps: card.steps, ids: ids.map(|(of, name)| (format!("VirtualMachine:vm-{of}"), id(name))).to_vec() }
    }

    /// The lines of the step that does this: those that look, and those that do.
    fn lines(&self, does: &str) -> (Vec<String>, Vec<String>) {
        let found = self.steps.iter().find(|step| step.does.starts_with(does));
        let step = found.unwrap_or_else(|| panic!("{does} is not in {:#?}", self.steps));
        let own = |line: &String| self.ids.iter().fold(line.clone(), |line, (of, id)| line.replace(of, id));
        (step.look.iter().map(own).collect(), step.commands.iter().map(own).collect())
    }

    /// Types all lines of a step.
    fn types(&self, desk: &Desk, does: &str) -> Vec<String> {
        let (look, commands) = self.lines(does);
        look.iter().chain(&commands).map(|line| desk.types(line)).collect()
    }

    /// The only line of a step that does something.
    fn line(&self, does: &str) -> String {
        let (_, commands) = self.lines(does);
        let [line] = commands.as_slice() else { panic!("{commands:#?}") };
        line.clone()
    }
}

fn fleet() -> Option<Desk> {
    let folder = Folder::empty();
    folder.write("world.yaml", FLEET);
    let mut desk = Desk::new(folder)?;
    let _ = desk.is_up();
    Some(desk)
}

/// The state of a host or a VM as the fleet keeps it.
fn state(folder: &Folder, kind: &str, name: &str) -> Value {
    let state: Value = serde_json::from_str(&folder.read("world.yaml.state")).unwrap();
    let all = state["state"][kind].as_object().unwrap();
    all.values().find(|one| one["name"] == name).unwrap().clone()
}

/// From the first cordon to the last look at the modes: what a visit would have done, done by hand.
#[test]
fn the_lines_of_a_card_empty_a_host_and_change_its_modes() {
    let Some(desk) = fleet() else { return };
    let all = [vec![Step::StartShell], steps()].concat();
    let again = Event::VisitReplanned { visit: visit(all), why: String::new() };
    let ssh = Event::Armed { comp: Compensation::Ssh };
    let stage = Stage::planned().to(StepKind::SetPassthrough).event(again).event(ssh);
    let card = Card::of(&stage.left(false, &[]), &desk);

    card.types(&desk, "log in to the shell");
    assert!(
        desk.types("govc host.service.ls -host '/DC 1/host/gpu-a/esx-gpu-01'")
            .lines()
            .any(|line| { line.starts_with("TSM-SSH") && line.contains("Running") })
    );
    card.types(&desk, "cordon the node serve-a");
    let drained = card.types(&desk, "drain the node serve-a");
    assert!(drained[0].contains("node/serve-a drained") && drained[1].is_empty(), "{drained:#?}");
    // It waits for the VMs, and the next lines are typed meanwhile.
    let mut closes = desk.begins(&card.line("begin to enter maintenance mode"));
    assert!(closes.wait().unwrap().success());
    let (entered, none) = card.lines("enter maintenance mode");
    assert_eq!((desk.types(&entered[0]).trim(), none.as_slice()), ("false", [].as_slice()), "it is not begun again");
    for vm in ["serve-vm", "train-vm", "batch"] {
        card.types(&desk, &format!("shut down the guest of {vm}"));
    }
    desk.looks(&entered[0], |shown| shown.trim() == "true");
    assert!(card.types(&desk, "set passthrough").iter().any(|said| said.contains("true")));
    card.types(&desk, "set graphics type");
    let (looked, rebooting) = card.lines("reboot, to activate");
    let booted = |shown: &str| shown.lines().find(|line| line.contains("Boot time:")).map(str::to_owned);
    let reboots = || {
        let before = booted(&desk.types(&looked[0]));
        assert!(before.is_some());
        desk.types(&rebooting[0]);
        desk.looks(&looked[0], |shown| booted(shown) != before);
    };
    reboots();
    let (look, _) = card.lines("verify the host");
    desk.looks(&look[0], |shown| {
        let shown = shown.replace(' ', "");
        shown.contains("passthruActive\":false") && !shown.contains("passthruActive\":true")
    });
    // A GPU that was passed through ignored its graphics type: it is sent again, as the card says, and waits for
    // another reboot.
    card.types(&desk, "set graphics type");
    reboots();
    desk.looks(&look[0], |shown| shown.contains("sharedDirect") && shown.contains("mixedSize"));
    card.types(&desk, "leave maintenance mode");
    // Two reboots have stopped the service; to see its line at work it is started again.
    let (status, stop) = card.lines("stop the SSH service");
    assert!(desk.types(&status[0]).contains("Stopped"));
    card.types(&desk, "log in to the shell");
    assert!(desk.types(&status[0]).contains("Running"));
    desk.types(&stop[0]);
    assert!(desk.types(&status[0]).contains("Stopped"));

    let Desk { folder, sim } = desk;
    sim.end();
    let host = state(&folder, "hosts", "esx-gpu-01");
    assert_eq!(host["maintenance"], false);
    assert_eq!(host["shell"]["ssh_running"], false, "{host:#}");
    for function in host["functions"].as_array().unwrap().iter().filter(|function| !function["gpu"].is_null()) {
        let gpu = &function["gpu"];
        assert_eq!((&function["enabled"], &function["active"]), (&false.into(), &false.into()), "{function:#}");
        assert_eq!(
            (&gpu["graphics_type"], &gpu["vgpu_mode"]),
            (&"sharedDirect".into(), &"mixedSize".into()),
            "{gpu:#}"
        );
    }
}

/// An entering that still runs is found, and canceled; a VM that was asked to shut down, and runs, is given back.
#[test]
fn the_lines_of_a_card_give_a_host_back() {
    let Some(desk) = fleet() else { return };
    let begun = || Stage::planned().to(StepKind::StartClosing);
    let closes = Card::of(&full(), &desk).line("begin to enter maintenance mode");
    // In a window of its own, to see how it ends.
    let mut closes = desk.begins(closes.strip_suffix(" >/dev/null &").unwrap());
    let (look, commands) = Card::of(&begun().left(false, &[]), &desk).lines("cancel entering");
    assert_eq!(commands, ["govc task.cancel TASK"], "nobody has seen it");
    let shown = desk.looks(&look[0], |shown| shown.contains("task-"));
    // It says which it is, and so does the card, if anybody has seen it.
    let task = shown.split("Task:").nth(1).and_then(|rest| rest.split(']').next()).unwrap_or_else(|| panic!("{shown}"));
    let seen = Event::TaskSeen { step: StepKind::StartClosing, key: MoRef::new("Task", task) };
    let card = Card::of(&begun().event(seen).left(false, &[]), &desk);
    desk.types(&card.line("cancel entering"));
    assert!(!closes.wait().unwrap().success(), "it was canceled");

    let asked = Stage::planned().to(StepKind::StopVm).left(false, &[]);
    let (look, commands) = Card::of(&asked, &desk).lines("see to the VM serve-vm");
    assert!(desk.types(&look[0]).contains("poweredOn"));
    // Of lines that are all pasted none cuts its power.
    let paste = || {
        for line in &commands {
            let _ = desk.begins(line).wait().unwrap();
        }
    };
    paste();
    assert!(desk.types(&look[0]).contains("poweredOn"));
    // It hangs: what stands behind the `#` is typed, and then it is off, and the last line starts it.
    let (_, off) = commands[0].split_once(": ").unwrap();
    desk.types(off);
    desk.looks(&look[0], |shown| shown.contains("poweredOff"));
    paste();
    desk.looks(&look[0], |shown| shown.contains("poweredOn"));

    let Desk { folder, sim } = desk;
    sim.end();
    assert_eq!(state(&folder, "hosts", "esx-gpu-01")["maintenance"], false);
    let vm = state(&folder, "vms", "serve-vm");
    assert_eq!((&vm["counts"]["stops"], &vm["counts"]["starts"]), (&1.into(), &1.into()), "{vm:#}");
}

/// A host on which everything is still to be done.
fn full() -> Stage {
    let again = Event::VisitReplanned { visit: visit(steps()), why: String::new() };
    Stage::planned().to(StepKind::SetPassthrough).event(again).left(false, &[])
}

/// What is typed at the shell of the host: by ssh, as root.
#[test]
fn the_lines_for_the_shell_of_a_host_switch_mig() {
    let folder = Folder::empty();
    if peer("openssh/ssh").is_none() {
        return;
    }
    let options = ["-q", "-t", "ed25519", "-N", "", "-f", "key"];
    let made = Command::new("ssh-keygen").args(options).current_dir(folder.path()).status();
    assert!(made.unwrap().success());
    let (fleet, guests) = (FLEET.split("          vms:").next().unwrap(), FLEET.split("  guests:").nth(1).unwrap());
    let keys = format!("users: [{{name: root, password: lab, keys: [\"{}\"]}}]", folder.read("key.pub").trim());
    let fleet = fleet
        .replace("h100-nvl-94", "a100-pcie-80")
        .replace("{passthrough: {label: train}}", "{vgpu: {size: same}}")
        .replace("users: [{name: root, password: lab}]", &format!("ssh: {{running: true}}, {keys}"));
    let guests = guests.replace("nodes: [serve-a]", "replicas: 1");
    folder.write("world.yaml", format!("{fleet}  guests:{guests}"));
    let Some(mut desk) = Desk::new(folder) else { return };
    let told = desk.is_up();
    let address = told.split("shell: esx-gpu-01 ").nth(1).unwrap_or_else(|| panic!("{told}")).lines().next().unwrap();
    let port = address.rsplit(':').next().unwrap();

    let gpus = vec!["0000:3b:00.0".parse().unwrap(), "0000:5e:00.0".parse().unwrap()];
    let step = Step::SetMig { gpus, on: true, kind: MigKind::Board, way: ShellWay::Handoff };
    let again = Event::VisitReplanned { visit: visit(vec![step]), why: String::new() };
    let card = Card::of(&Stage::planned().to(StepKind::SetPassthrough).event(again).left(true, &[]), &desk);
    let found = card.steps.iter().find(|step| step.shell.len() > 2).unwrap_or_else(|| panic!("{:#?}", card.steps));
    let said: Vec<String> = found
        .shell
        .iter()
        .map(|line| {
            let ssh = "ssh -F none -i key -o UserKnownHostsFile=known_hosts -o StrictHostKeyChecking=yes";
            desk.types(&format!("{ssh} -p {port} root@127.0.0.1 '{line}' </dev/null"))
        })
        .collect();
    assert!(found.then.iter().any(|then| then.contains("pending shows Enabled")), "{:#?}", found.then);
    let modes = said.last().unwrap();
    assert_eq!(modes.lines().filter(|line| line.ends_with("Disabled, Enabled")).count(), 2, "{said:#?}");
    let Desk { folder, sim } = desk;
    sim.end();
    let host = state(&folder, "hosts", "esx-gpu-01");
    let gpus = host["functions"].as_array().unwrap().iter().filter(|function| !function["gpu"].is_null());
    assert!(gpus.map(|function| &function["gpu"]["mig_pending"]).all(|pending| *pending == true), "{host:#}");
    assert_ne!(host["shell"]["monitor"], "stopped", "it is started again");
}
