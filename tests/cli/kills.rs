//! A whole run whose process is killed again and again, on ports: real TLS, real time, a host with nodes of
//! two guest clusters. Each step waits for what the program prints, never for a time.

use serde_json::Value;

use super::harness::Folder;
use super::ports::Sim;
use super::signals::Watched;

/// Two hosts; on the one that is changed run nodes of two clusters.
const WORLD: &str = r#"
apiVersion: poolwright/v1
kind: World
metadata: {name: kills}
spec:
  vcenter:
    address: vc.lab
    version: 8.0.3
    instanceUuid: 6f0e1c52-9de0-40cb-9c47-61d494229f4f
    users: [{name: poolwright@vsphere.local, password: lab}]
    options: {vgpu.hotmigrate.enabled: "true"}
  datacenters:
    - path: /DC
      clusters:
        - name: gpu
          ha: {enabled: true}
          drs: {level: fullyAutomated, options: {VgpuMMAutomationTimeoutSecs: "-1"}}
          hosts:
            - names: "esx-[01-02]"
              memoryGiB: 1024
              driver: {component: NVD-AIE-800, version: 580.95.02}
              gpus: [{model: h100-nvl-94, count: 2, mode: {vgpu: {size: same}}}]
              boot: {down: 90s}
          vms:
            - {name: vm-1, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}], node: {cluster: k8s-a, name: gpu-a}}
            - {name: vm-2, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}], node: {cluster: k8s-b, name: gpu-b, systemUUID: swapped}}
  guests:
    - name: k8s-a
      address: https://k8s-a.lab:6443
      nodes: [{name: spare, gpus: 4}]
      workloads:
        - {name: web, replicas: 2, gpu: 1, pdb: {minAvailable: 1}}
        - {name: agent, kind: daemonSet}
    - name: k8s-b
      address: https://k8s-b.lab:6443
      nodes: [{name: spare, gpus: 4}]
      workloads: [{name: batch, replicas: 1, gpu: 1}]
"#;

const SITE: &str = r#"
apiVersion: poolwright/v1
kind: Site
metadata: {name: kills}
spec:
  vcenter:
    address: vc.lab
    trust: system
    credentials: {user: poolwright@vsphere.local, password: "file:password"}
  pace: {hostStable: 1s, readBack: 5s, drainRecheck: 1s}
  guests:
    - {name: k8s-a, kubeconfig: "file:kubeconfig", context: k8s-a}
    - {name: k8s-b, kubeconfig: "file:kubeconfig", context: k8s-b}
"#;

const POOL: &str = r#"
apiVersion: poolwright/v1
kind: GpuPool
metadata: {name: serving}
spec:
  hosts: {site: kills, cluster: gpu, names: [esx-01]}
  gpuModel: h100-nvl-94
  gpuCount: 2
  gpus: [{mode: {vgpu: {size: mixed}}}]
  vms: {mayStop: [{guest: k8s-a}, {guest: k8s-b}]}
  rollout: {maxUnavailable: 1, maxReboots: 2}
  guests:
    - cluster: k8s-a
      expect: {resource: nvidia.com/gpu, perNode: 1}
      drain: {timeout: 20m}
      validate: [{template: {file: templates/cuda-vector-add.yaml, set: {image: "cuda-vector-add:1"}}}]
    - cluster: k8s-b
      expect: {resource: nvidia.com/gpu, perNode: 1}
      drain: {timeout: 20m}
      validate: [{template: {file: templates/cuda-vector-add.yaml, set: {image: "cuda-vector-add:1"}}}]
"#;

/// Where the process is killed, one after the other: what it tells when a step begins or is done.
const POINTS: [&str; 16] = [
    "cordon a node (gpu-a of k8s-a) ...",
    "cordon a node (gpu-b of k8s-b) ...",
    "drain a node (gpu-a of k8s-a) ...",
    "the node gpu-a of k8s-a is cordoned, drained",
    "begin to enter maintenance mode ...",
    "stop a VM (vm-1) ...",
    "stop a VM: done",
    "enter maintenance mode ...",
    "set graphics ...",
    "leave maintenance mode ...",
    "start a VM (vm-1) ...",
    "start a VM (vm-2) ...",
    "wait for a node (gpu-b of k8s-b) ...",
    "validate a node (gpu-a of k8s-a) ...",
    "validate a node: done",
    "uncordon a node (gpu-a of k8s-a) ...",
];

/// At least so often it dies: two points may lie so close that one death is past both.
const DEATHS: usize = POINTS.len() - 3;

/// A run that dies at all of these points. `again`: the command that goes on after so many deaths.
fn dies_at_every_point(again: impl Fn(usize) -> String) {
    let folder = Folder::empty();
    folder.write("world.yaml", WORLD);
    folder.write("password", "lab");
    folder.write("profiles/serving.yaml", POOL);
    folder.write("templates/cuda-vector-add.yaml", include_str!("../../templates/cuda-vector-add.yaml"));
    let mut sim = Sim::start(&folder, " --speed 60 --kubeconfig kubeconfig");
    // The kubeconfig is there once they are told.
    for guest in ["k8s-a", "k8s-b"] {
        assert!(sim.line().starts_with(&format!("guest: {guest} ")));
    }
    folder.write("inventories/kills.yaml", sim.pin(SITE));
    let _ = folder.run("plan --out plan.json").expect(0);
    let (mut command, mut told, mut deaths) = ("apply plan.json".to_owned(), String::new(), 0);
    for point in POINTS {
        // The one that was killed may have come so far before it died.
        if !told.contains(point) {
            let mut process = Watched::start(&folder, &command);
            process.until(point);
            told.push_str(&process.kill());
            command = again(deaths);
            deaths += 1;
        }
    }
    assert!(deaths >= DEATHS, "{deaths} deaths, {told}");
    let ended = folder.run(&command).expect(0);
    assert!(ended.stderr.contains("every host of the plan is as it should be"), "{}", ended.stderr);
    let again = folder.run("plan --detailed-exitcode").expect(0);
    assert!(again.stdout.contains("No host is changed"), "{}", again.stdout);
    // What the world has seen, in whatever order its clients lived and died.
    sim.end();
    let state: Value = serde_json::from_str(&folder.read("world.yaml.state")).unwrap();
    left_as_found(&state["state"]);
    seen_in_order(state["state"]["log"].as_array().unwrap());
}

/// Nothing of ours stays: no mark, no cordon, no Job, no maintenance, and every VM runs.
fn left_as_found(state: &Value) {
    for (cluster, guest) in state["guests"].as_object().unwrap() {
        for (name, object) in guest["objects"].as_object().unwrap() {
            assert!(!name.starts_with("jobs/") || !name.contains("poolwright"), "{cluster}: {name} is left");
            let marks = object["metadata"]["annotations"].as_object().into_iter().flatten();
            let ours = marks.filter(|(key, _)| key.starts_with("poolwright.io/")).count();
            assert!(ours == 0 && object["spec"]["unschedulable"].is_null(), "{cluster}: {object:#}");
        }
    }
    for host in state["hosts"].as_object().unwrap().values() {
        assert_eq!(host["maintenance"], false, "{host:#}");
        let fields = host["values"].as_object().unwrap();
        assert!(fields.values().all(|field| field["value"] == ""), "{fields:#?}");
    }
    assert!(state["vms"].as_object().unwrap().values().all(|vm| vm["power"] == "on"), "{:#}", state["vms"]);
}

/// Each VM was stopped once, when its node was drained, and each node uncordoned after a Job on its new boot.
fn seen_in_order(log: &[Value]) {
    let text = |write: &Value, key: &str| write[key].as_str().unwrap_or_default().to_owned();
    let count = |call: &str| log.iter().filter(|write| write["effect"] == true && text(write, "call") == call).count();
    assert_eq!((count("EnterMaintenanceMode_Task"), count("ExitMaintenanceMode_Task")), (1, 1));
    for (node, vm) in [("gpu-a", "vm-1"), ("gpu-b", "vm-2")] {
        let of_node = |write: &Value| {
            let arguments = text(write, "arguments");
            match text(write, "call").as_str() {
                "patch nodes" if text(write, "object") != node => None,
                "patch nodes" if arguments.contains("drained") => Some("drained"),
                "patch nodes" if arguments.contains("draining") => Some("cordoned"),
                "patch nodes" if arguments.contains("remove") => Some("uncordoned"),
                "ShutdownGuest" if text(write, "object") == vm => Some("stopped"),
                "PowerOnVM_Task" if text(write, "object") == vm => Some("started"),
                "create jobs" if arguments.contains(node) => Some("validated"),
                _ => None,
            }
        };
        let seen: Vec<&str> = log.iter().filter(|write| write["effect"] == true).filter_map(of_node).collect();
        // A Job that was under way at a death is followed, or made again.
        let mut once = seen.clone();
        once.dedup();
        assert_eq!(once, ["cordoned", "drained", "stopped", "started", "validated", "uncordoned"], "{node}: {seen:?}");
        assert_eq!(seen.iter().filter(|event| **event == "stopped").count(), 1, "{node}: {seen:?}");
    }
}

#[test]
fn a_run_that_dies_at_every_point_goes_on_by_its_journal() {
    dies_at_every_point(|_| "resume".to_owned());
}

/// Each process knows the plan and what stands on the hosts and the nodes, and no more.
#[test]
fn a_run_that_dies_at_every_point_goes_on_by_its_marks() {
    dies_at_every_point(|death| format!("resume --from-live plan.json --state state-{death}"));
}
