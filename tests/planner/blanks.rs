//! What cannot be read never makes a plan bolder.

use poolwright::model::{
    AssignmentPolicy, At, Desired, DriverPin, Fact, GpuSelect, HostView, Mode, Observed, PowerState, ShellWay,
    VgpuSize, VmView,
};
use poolwright::plan::Plan;
use serde_json::{Value, json};

use super::findings::make;
use crate::support::seen::{
    A100, H100, Set, desired, device, direct_path, dynamic, fleet, group, host, known, passthrough, passthru, place,
    pool, text, vgpu, vm,
};

/// Paths of all facts in a value: objects with the one key `known`.
fn facts(value: &Value, at: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    match value {
        Value::Object(map) => {
            if map.len() == 1 && map.contains_key("known") {
                found.push(at.clone());
            }
            for (key, inner) in map {
                at.push(key.clone());
                facts(inner, at, found);
                at.pop();
            }
        }
        Value::Array(list) => {
            for (index, inner) in list.iter().enumerate() {
                at.push(index.to_string());
                facts(inner, at, found);
                at.pop();
            }
        }
        _ => {}
    }
}

/// The fleet with one fact blanked.
fn blanked(seen: &Observed, path: &[String]) -> Observed {
    let mut value = serde_json::to_value(seen).unwrap();
    let pointer: String = path.iter().map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1"))).collect();
    *value.pointer_mut(&pointer).unwrap() = json!({"unknown": {"why": "blanked"}});
    serde_json::from_value(value).unwrap()
}

/// A host with something to say about nearly everything.
fn busy_host() -> HostView {
    let mut view =
        host(H100, &[(0x3b, Set::Passthrough(Some("old"))), (0x86, Set::Same), (0xd8, Set::Passthrough(None))]);
    view.vms = Fact::Known(vec![
        vm("web-1", PowerState::On),
        VmView { gpus: Fact::Known(vec![direct_path("0000:3b:00.0")]), ..vm("train-1", PowerState::Off) },
        VmView { gpus: Fact::Known(vec![dynamic(Some("old"))]), ..vm("train-2", PowerState::Suspended) },
    ]);
    known(&mut view.pci).push(device("0000:3b:00.1", 0x10de, 0x22ba, 0x0403, "NVIDIA audio"));
    known(&mut view.pci).push(device("0000:3b:00.4", 0x10de, 0x2321, 0x0302, "NVIDIA H100 NVL"));
    known(&mut view.pci).push(device("0000:5e:00.0", 0x15b3, 0x1021, 0x0207, "ConnectX-7"));
    known(&mut view.passthru).push(passthru("0000:5e:00.0".parse().unwrap(), true));
    known(&mut view.passthru).push(passthru("0000:00:1f.2".parse().unwrap(), true));
    view.numa = crate::support::seen::numa(&[&[0x3b], &[0x86, 0xd8]]);
    view.reboot_required = Fact::Known(true);
    view
}

fn scenes() -> Vec<(&'static str, Desired, Observed)> {
    let mut rich = pool(H100, 3, vgpu(VgpuSize::Mixed), &["esx-01", "esx-02"]);
    rich.gpus = vec![
        group(10, GpuSelect::NumaNode(0), vgpu(VgpuSize::Mixed)),
        group(13, GpuSelect::Count(1), passthrough(Some("train"))),
    ];
    rich.host.placement = Some(At::new(AssignmentPolicy::Consolidation, place(16)));
    rich.host.driver = Some(DriverPin { component: text(15, "NVD-AIE-800"), version: text(15, "1.2") });
    let plain = |mode, hosts: &[&str]| desired(vec![pool(H100, 1, mode, hosts)]);
    let one = |set| host(H100, &[(0x3b, set)]);
    let mut old = one(Set::Same);
    known(&mut old.product).version = "7.0.3".into();
    known(&mut old.packages)[0].version = "470.1".into();
    old.parity.alarms = Fact::unknown("no privilege");
    let mut marked = one(Set::Passthrough(None));
    marked.marker = Fact::Known("{}".into());
    marked.in_maintenance = Fact::Known(true);
    let two = |set: Set| fleet(vec![("esx-01", one(set.clone())), ("esx-02", one(set))]);
    let mig = |mode, shell| Desired { shell, ..desired(vec![pool(A100, 1, mode, &["esx-01"])]) };
    let boards = |set| fleet(vec![("esx-01", host(A100, &[(0x3b, set)]))]);
    // VMs that move, that stop, and of each fate on one host.
    let vms = |scene: super::vms::Scene| (desired(vec![scene.pool.clone()]), scene.fleet());
    let (moves, moving) = vms(super::vms::Scene::new());
    let (fates, of_each_fate) = vms(super::vm_visits::scene());
    let (nodes, with_nodes) = super::nodes::Scene::new().parts();
    let (odd, with_odd_nodes) = super::node_findings::odd().parts();
    let mut out = super::node_findings::odd();
    out.as_wished();
    let (wished, with_nodes_out) = out.parts();
    vec![
        ("nodes out of service", wished, with_nodes_out),
        ("nodes", nodes, with_nodes),
        ("odd nodes", odd, with_odd_nodes),
        ("moves", moves, moving),
        ("fates", fates, of_each_fate),
        ("rich", desired(vec![rich]), fleet(vec![("esx-01", busy_host()), ("esx-02", busy_host())])),
        ("converged", plain(vgpu(VgpuSize::Same), &["esx-01", "esx-02"]), two(Set::Same)),
        ("to vGPU", plain(vgpu(VgpuSize::Same), &["esx-01", "esx-02"]), two(Set::Passthrough(None))),
        ("to passthrough", plain(passthrough(Some("a")), &["esx-01", "esx-02"]), two(Set::Mixed)),
        ("label", plain(passthrough(Some("a")), &["esx-01", "esx-02"]), two(Set::Passthrough(None))),
        ("size", plain(vgpu(VgpuSize::Mixed), &["esx-01", "esx-02"]), two(Set::Same)),
        ("old", plain(vgpu(VgpuSize::Mixed), &["esx-01"]), fleet(vec![("esx-01", old)])),
        ("to MIG by the shell", mig(Mode::MigVgpu, ShellWay::Direct), boards(Set::Same)),
        ("to MIG by hand", mig(Mode::MigVgpu, ShellWay::Handoff), boards(Set::Passthrough(None))),
        ("from MIG", mig(passthrough(None), ShellWay::Direct), boards(Set::Mig)),
        ("marked", plain(vgpu(VgpuSize::Mixed), &["esx-01"]), fleet(vec![("esx-01", marked)])),
    ]
}

fn refused(plan: &Plan) -> usize {
    plan.not_acted.len()
}

#[test]
fn blanking_any_fact_never_lowers_refusals_and_findings() {
    let mut blanks = 0;
    for (name, wish, seen) in scenes() {
        let whole = make(&wish, &seen);
        let mut paths = Vec::new();
        facts(&serde_json::to_value(&seen).unwrap(), &mut Vec::new(), &mut paths);
        for path in paths {
            let plan = make(&wish, &blanked(&seen, &path));
            let case = format!("{name}: {path:?}\n{:#?}\n{:#?}", whole.findings, plan.findings);
            assert!(refused(&plan) >= refused(&whole), "{case}");
            assert!(plan.findings.len() >= whole.findings.len(), "{case}");
            for host in &plan.hosts {
                assert!(whole.hosts.iter().any(|other| other.host == host.host), "{case}: a host more is changed");
            }
            blanks += 1;
        }
    }
    assert!(blanks > 300, "{blanks}");
}

#[test]
fn what_decides_refuses_the_host_when_it_is_blank() {
    let (_, wish, seen) = scenes().into_iter().find(|(name, ..)| *name == "to vGPU").unwrap();
    let decisive = [
        "uuid",
        "product",
        "connection",
        "power",
        "inMaintenance",
        "bootTime",
        "pci",
        "passthru",
        "graphicsConfig",
        "graphicsActive",
        "vms",
        "tasks",
        "packages",
        "graphicsManager",
        "passthruSystem",
    ];
    for field in decisive {
        let path = ["hosts", "/DC1/host/gpu-a/esx-01", "view", "ok", field].map(str::to_owned);
        let plan = make(&wish, &blanked(&seen, &path));
        assert!(!plan.order.iter().any(|host| host.as_str() == "esx-01"), "{field} is blank and esx-01 is changed");
    }
    // What does not decide here: NUMA nodes without a selector of them, the list of types without offers.
    for field in ["numa", "vgpuTypes", "rebootRequired"] {
        let path = ["hosts", "/DC1/host/gpu-a/esx-01", "view", "ok", field].map(str::to_owned);
        assert_eq!(make(&wish, &blanked(&seen, &path)).order.len(), 2, "{field}");
    }
}
