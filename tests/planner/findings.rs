//! Each finding of the planner, by what makes it.

use std::collections::{BTreeMap, BTreeSet};

use poolwright::model::{
    Accept, AssignmentPolicy, At, Connection, Desired, DesiredPool, DriverPin, Fact, FoundInMaintenance, GpuSelect,
    HostFault, HostFaultKind, HostView, MoRef, Mode, Observed, PowerState, RULES, RunningTask, Severity, VgpuSize,
    VmGpuDevice, VmView,
};
use poolwright::plan::{Plan, Reason, plan};

use crate::support::seen::{
    A100, H100, Set, T4, at, desired, device, direct_path, dynamic, fleet, group, host, known, passthrough, passthru,
    place, plug, pool, text, vgpu, vgpu_device, vm,
};

pub fn make(wish: &Desired, seen: &Observed) -> Plan {
    plan(wish, seen, &[], "test", "2026-11-30T20:00:00Z".parse().unwrap())
}

/// A host and a pool that together are one change without a finding: passthrough to vGPU.
fn change() -> (HostView, DesiredPool) {
    let view = host(H100, &[(0x3b, Set::Passthrough(None)), (0xd8, Set::Passthrough(None))]);
    (view, pool(H100, 2, vgpu(VgpuSize::Same), &["esx-01"]))
}

/// The plan of a change that was altered.
fn altered(alter: impl FnOnce(&mut HostView, &mut DesiredPool)) -> Plan {
    let (mut view, mut pool) = change();
    alter(&mut view, &mut pool);
    make(&desired(vec![pool]), &fleet(vec![("esx-01", view)]))
}

/// Without what is said of every change that does not use the shell.
pub fn ids(plan: &Plan) -> Vec<&str> {
    plan.findings.iter().map(|finding| finding.id.0.as_str()).filter(|id| *id != "PW-SHELL-05").collect()
}

/// The sentence, evidence and hint of a finding.
pub fn said(plan: &Plan, id: &str) -> String {
    let finding = plan.findings.iter().find(|finding| finding.id.0 == id);
    let finding = finding.unwrap_or_else(|| panic!("{id} is missing: {:#?}", plan.findings));
    format!("{} {} {}", finding.message, finding.evidence.join(" "), finding.hint.clone().unwrap_or_default())
}

fn off_vm(name: &str, gpu: VmGpuDevice) -> VmView {
    VmView { gpus: Fact::Known(vec![gpu]), ..vm(name, PowerState::Off) }
}

fn task(what: &str) -> RunningTask {
    RunningTask {
        moref: MoRef::new("Task", "task-1"),
        what: what.into(),
        user: Fact::Known("LAB\\ann".into()),
        queued_at: Fact::Known("2026-11-30T19:59:00Z".parse().unwrap()),
    }
}

#[test]
fn a_change_without_flaws_has_no_finding() {
    let plan = altered(|_, _| {});
    assert_eq!(ids(&plan), Vec::<&str>::new());
    assert_eq!(plan.order.len(), 1);
}

pub type Case = (&'static str, Plan, &'static [&'static str]);

/// One alteration for each finding of the planner, with words that must be said.
fn cases() -> Vec<Case> {
    let mut cases = of_hosts();
    cases.extend(super::vms::cases());
    cases.extend(super::mig::cases());
    cases.extend(super::node_findings::cases());
    cases
}

fn of_hosts() -> Vec<Case> {
    let pinned =
        |component: &str, version: &str| Some(DriverPin { component: text(15, component), version: text(15, version) });
    let offer = |pool: &mut DesiredPool, name: &str| {
        pool.gpus[0].offers = vec![At::new(BTreeMap::from([(name.to_owned(), 1)]), place(12))];
    };
    let to_passthrough = |view: &mut HostView, pool: &mut DesiredPool| {
        *view = host(H100, &[(0x3b, Set::Same), (0xd8, Set::Same)]);
        pool.gpus[0].mode.value = passthrough(Some("train"));
    };
    let half = |pool: &mut DesiredPool| pool.gpus[0].select.value = GpuSelect::Count(1);
    vec![
        ("PW-CAT-01", altered(|_, pool| offer(pool, "nvidia_h100l-93c")), &["nvidia_h100l-93c", "neither"]),
        (
            "PW-CAT-02",
            altered(|view, pool| {
                offer(pool, "nvidia_h100l-93c");
                view.vgpu_types = Fact::Known(vec!["nvidia_h100l-93c".into()]);
            }),
            &["esx-01 lists it"],
        ),
        ("PW-CAT-06", altered(|view, _| known(&mut view.packages)[0].version = "470.1.1".into()), &["vGPU", "from 16"]),
        (
            "PW-CAT-11",
            altered(|view, _| known(&mut view.packages)[0].version = "999.1".into()),
            &["may not work on the host"],
        ),
        ("PW-DRV-01", altered(|view, _| view.packages = Fact::Known(vec![])), &["NVIDIA host driver"]),
        (
            "PW-DRV-02",
            altered(|_, pool| pool.host.driver = pinned("NVD-AIE-800", "580.105.08")),
            &["580.105.08", "580.95.02-1OEM"],
        ),
        ("PW-DRV-03", altered(|view, _| view.packages = Fact::unknown("no privilege")), &["no privilege"]),
        (
            "PW-DRV-04",
            altered(|view, pool| {
                offer(pool, "nvidia_h100l-47c");
                known(&mut view.packages)[0].name = "NVD-VGPU-800".into();
            }),
            &["nvidia_h100l-47c comes with the driver NVD-AIE*", "the host has NVD-VGPU-800 580"],
        ),
        (
            "PW-GPU-01",
            altered(|view, _| plug(view, A100, 0x5e, &Set::Same)),
            &["1 of 3 GPUs is no h100-nvl-94", "0000:5e:00.0", "a100-pcie-40"],
        ),
        (
            "PW-GPU-02",
            altered(|_, pool| pool.gpu_count.value = 1),
            &["says 1 GPU, the host has 2 (0000:3b:00.0, 0000:d8:00.0)"],
        ),
        (
            "PW-GPU-03",
            altered(|_, pool| pool.gpus[0].select.value = GpuSelect::Count(3)),
            &["count: 3", "0000:d8:00.0"],
        ),
        (
            "PW-GPU-04",
            altered(|view, pool| {
                to_passthrough(view, pool);
                known(&mut view.passthru)[1].capable = false;
            }),
            &["0000:d8:00.0", "391460"],
        ),
        ("PW-GPU-05", altered(|view, _| known(&mut view.pci)[1].class = 0x0300), &["0000:3b:00.0", "console"]),
        (
            "PW-GPU-06",
            altered(|view, _| {
                known(&mut view.pci).push(device("0000:3b:00.1", 0x10de, 0x22ba, 0x0403, "NVIDIA audio"));
            }),
            &["0000:3b:00.1"],
        ),
        (
            "PW-GPU-07",
            altered(|view, _| {
                known(&mut view.pci).push(device("0000:07:00.0", 0x10de, 0x22a3, 0x0680, "NVSwitch"));
            }),
            &["1 NVSwitch", "0000:07:00.0"],
        ),
        ("PW-GPU-08", altered(|_, pool| half(pool)), &["no group", "0000:d8:00.0"]),
        (
            "PW-GPU-09",
            altered(|view, _| {
                known(&mut view.pci).push(device("0000:5e:00.0", 0x15b3, 0x1021, 0x0207, "ConnectX-7"));
                known(&mut view.passthru).push(passthru("0000:5e:00.0".parse().unwrap(), true));
            }),
            &["ConnectX-7", "15b3:1021", "addresses shift"],
        ),
        (
            "PW-GPU-10",
            altered(|view, _| {
                known(&mut view.graphics_active)[0].vms = vec![MoRef::new("VirtualMachine", "vm-7")];
            }),
            &["0000:3b:00.0", "vm-7"],
        ),
        (
            "PW-GPU-11",
            altered(|view, _| {
                for function in 4..8 {
                    let address = format!("0000:3b:00.{function}");
                    known(&mut view.pci).push(device(&address, 0x10de, 0x2321, 0x0302, "NVIDIA H100 NVL"));
                }
            }),
            &["4 of 0000:3b:00.0"],
        ),
        (
            "PW-GPU-12",
            altered(|view, _| known(&mut view.passthru).push(passthru("0000:00:1f.2".parse().unwrap(), true))),
            &["Intel SATA controller", "8086:8d62"],
        ),
        (
            "PW-GPU-13",
            altered(|view, pool| {
                to_passthrough(view, pool);
                view.capabilities.hardware_label = Fact::Absent;
            }),
            &["labels"],
        ),
        (
            "PW-GPU-14",
            altered(|view, pool| {
                half(pool);
                known(&mut view.passthru)[1].active = false;
            }),
            &["0000:d8:00.0", "outside the pool"],
        ),
        ("PW-HOST-01", altered(|view, _| known(&mut view.product).version = "8.0.2".into()), &["8.0.3", "ESXi 8.0.2"]),
        ("PW-HOST-02", altered(|view, _| view.connection = Fact::Known(Connection::NotResponding)), &["notResponding"]),
        ("PW-HOST-03", altered(|view, _| view.pci = Fact::unknown("fault NoPermission")), &["NoPermission"]),
        (
            "PW-HOST-05",
            altered(|view, _| {
                let gpus = Fact::Known(vec![vgpu_device("nvidia_h100l-94c")]);
                view.vms = Fact::Known(vec![VmView { gpus, ..vm("paused", PowerState::Suspended) }]);
            }),
            &["paused"],
        ),
        (
            "PW-HOST-06",
            altered(|view, _| {
                view.vms = Fact::Known(vec![
                    off_vm("train-1", direct_path("0000:3b:00.0")),
                    off_vm("train-2", dynamic(None)),
                    off_vm("serve-1", vgpu_device("nvidia_h100l-94c")),
                    off_vm("mig-1", vgpu_device("nvidia_h100l-1-12c")),
                ]);
            }),
            &["3 powered-off VMs", "train-1", "train-2", "mig-1"],
        ),
        ("PW-HOST-07", altered(|view, _| view.in_maintenance = Fact::Known(true)), &["foundInMaintenance"]),
        (
            "PW-HOST-08",
            altered(|view, _| view.tasks = Fact::Known(vec![task("HostSystem.enterMaintenanceMode")])),
            &["enterMaintenanceMode by LAB\\ann since 2026-11-30T19:59:00Z"],
        ),
        ("PW-HOST-09", altered(|view, _| view.marker = Fact::Known("{\"v\":9}".into())), &["does not understand", "v"]),
        ("PW-HOST-10", altered(|_, pool| pool.rollout.max_reboots.value = 0), &["needs 1 reboot, ", "approves 0"]),
        (
            "PW-HOST-11",
            altered(|view, _| known(&mut view.passthru)[0].enabled = false),
            &["0000:3b:00.0 passthrough off"],
        ),
        ("PW-HOST-12", altered(|_, pool| half(pool)), &["not every GPU is in the pool"]),
        (
            "PW-HOST-13",
            altered(|view, pool| {
                to_passthrough(view, pool);
                pool.host.placement = Some(At::new(AssignmentPolicy::Consolidation, place(16)));
            }),
            &["consolidation", "same-size mode only"],
        ),
        (
            "PW-HOST-14",
            {
                let (view, pool) = change();
                let mut seen = fleet(vec![("esx-01", view.clone()), ("esx-02", view)]);
                let twin = seen.hosts.values_mut().nth(1).unwrap().view.as_mut().unwrap();
                twin.uuid = Fact::Known("uuid-esx-01".into());
                make(&desired(vec![pool]), &seen)
            },
            &["2 hosts have the machine uuid-esx-01", "esx-02"],
        ),
        (
            "PW-HOST-15",
            altered(|view, _| view.parity.alarms = Fact::unknown("no privilege")),
            &["alarms: no privilege"],
        ),
        ("PW-HOST-16", make(&desired(vec![change().1]), &fleet(vec![])), &["not on this vCenter any more"]),
        (
            "PW-POOL-02",
            {
                let (view, _) = change();
                let down = HostView { connection: Fact::Known(Connection::Disconnected), ..view.clone() };
                let pool = pool(H100, 2, vgpu(VgpuSize::Same), &["esx-01", "esx-02"]);
                make(&desired(vec![pool]), &fleet(vec![("esx-01", view), ("esx-02", down)]))
            },
            &["1 host of the pool is", "allows 1", "esx-02: the host is disconnected"],
        ),
        (
            "PW-POOL-03",
            {
                let (view, _) = change();
                let down = HostView { connection: Fact::Known(Connection::Disconnected), ..view.clone() };
                let mut pool = pool(H100, 2, vgpu(VgpuSize::Same), &["esx-01", "esx-02"]);
                pool.rollout.max_unavailable.value = 2;
                make(&desired(vec![pool]), &fleet(vec![("esx-01", view), ("esx-02", down)]))
            },
            &["one more", "esx-02"],
        ),
        (
            "PW-SITE-01",
            {
                let (view, pool) = change();
                let mut seen = fleet(vec![("esx-01", view)]);
                seen.marker_field = Fact::Known(false);
                make(&desired(vec![pool]), &seen)
            },
            &["poolwright.run", "created"],
        ),
        (
            "PW-ACC-01",
            altered(|view, pool| accept_parity(view, pool, "2026-11-29", &[])),
            &["PW-HOST-15", "2026-11-29"],
        ),
        ("PW-ACC-02", altered(|view, pool| accept_parity(view, pool, "2026-12-31", &["esx-99"])), &["PW-HOST-15"]),
    ]
}

pub fn accept(id: &str, until: &str, hosts: &[&str]) -> Accept {
    Accept {
        finding: text(30, id),
        hosts: hosts.iter().map(|host| At::new((*host).into(), place(31))).collect(),
        reason: "case 01234".into(),
        until: At::new(until.parse().unwrap(), place(32)),
    }
}

fn accept_parity(view: &mut HostView, pool: &mut DesiredPool, until: &str, hosts: &[&str]) {
    view.parity.alarms = Fact::unknown("no privilege");
    pool.accept = vec![accept("PW-HOST-15", until, hosts)];
}

#[test]
fn each_finding_is_made_at_a_line_and_says_what_was_found() {
    for (id, plan, words) in cases() {
        let said = said(&plan, id);
        for word in words {
            assert!(said.contains(word), "{id} does not say `{word}`: {said}");
        }
        let finding = plan.findings.iter().find(|finding| finding.id.0 == id).unwrap();
        assert!(
            finding.place.is_some() || ["PW-SITE-01", "PW-VM-10", "PW-SHELL-05", "PW-GUEST-03"].contains(&id),
            "{id} has no place"
        );
        if plan.desired.pools[0].hosts.len() > 1 {
            continue;
        }
        let refused = plan.findings.iter().any(|finding| finding.severity == Severity::Error);
        let left = plan.not_acted.iter().any(|host| host.reason != Reason::Converged);
        assert_eq!(left, refused, "{id}: {:?}", ids(&plan));
        assert_eq!(plan.hosts.len() + plan.not_acted.len(), plan.desired.pools[0].hosts.len(), "{id}");
    }
}

/// Rule HOST-2 of the catalogue: a component whose name says nothing is unknown, and that is no yes;
/// only what the host itself lists proves that its driver has the type.
#[test]
fn host_2_the_driver_has_the_types_that_are_offered() {
    let with = |component: &str, lists: &[&str]| {
        altered(|view, pool| {
            pool.gpus[0].offers = vec![At::new(BTreeMap::from([("nvidia_h100l-47c".to_owned(), 1)]), place(12))];
            known(&mut view.packages)[0].name = component.into();
            view.vgpu_types = Fact::Known(lists.iter().map(|name| (*name).to_owned()).collect());
        })
    };
    assert_eq!(ids(&with("NVD-AIE-800", &[])), Vec::<&str>::new());
    assert_eq!(ids(&with("NVD-VGPU-800", &[])), ["PW-DRV-04"]);
    assert_eq!(ids(&with("NVD-VGPU-800", &["nvidia_h100l-47c"])), Vec::<&str>::new());
    let unknown = with("NVIDIA-VMware_ESXi_8.0.0_Driver", &["nvidia_h100l-23c"]);
    assert_eq!((ids(&unknown), unknown.hosts.len()), (vec!["PW-DRV-04"], 0));
    assert!(said(&unknown, "PW-DRV-04").contains("cannot be told"));
}

#[test]
fn every_rule_of_the_planner_is_made_by_a_case() {
    let made: BTreeSet<&str> = cases().iter().map(|(id, ..)| *id).collect();
    // The documents are checked before there is a plan, with these rules and those of DOC.
    let of_documents =
        ["PW-CAT-03", "PW-CAT-04", "PW-CAT-05", "PW-CAT-07", "PW-CAT-08", "PW-CAT-09", "PW-CAT-10", "PW-ACC-03"];
    let missing: Vec<&str> = RULES
        .iter()
        .map(|rule| rule.id)
        .filter(|id| !made.contains(id) && !of_documents.contains(id) && !id.starts_with("PW-DOC"))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn an_accepted_finding_is_a_visible_warning_and_the_host_goes_on() {
    let plan = altered(|view, pool| accept_parity(view, pool, "2026-11-30", &["esx-01"]));
    let finding = plan.findings.iter().find(|finding| finding.id.0 == "PW-HOST-15").unwrap();
    let accepted = finding.accepted.as_ref().unwrap();
    assert_eq!((finding.severity, accepted.reason.as_str()), (Severity::Warning, "case 01234"));
    assert_eq!(plan.hosts[0].not_checked, ["alarms"], "the last day is included");
}

#[test]
fn what_can_never_be_accepted_stays_an_error() {
    for (id, plan, _) in cases() {
        let rule = RULES.iter().find(|rule| rule.id == id).unwrap();
        if rule.severity != Severity::Error || rule.acceptable {
            continue;
        }
        let (mut wish, hosts) = (plan.desired.clone(), plan.hosts.len());
        wish.pools[0].accept = vec![accept(id, "2026-12-31", &[])];
        assert_eq!(hosts, 0, "{id}");
        let again = altered(|view, pool| {
            view.product = Fact::unknown("down");
            pool.accept = vec![accept(id, "2026-12-31", &[])];
        });
        assert!(again.hosts.is_empty(), "{id} was accepted");
    }
}

#[test]
fn a01_both_gpus_of_the_model_are_selected_in_address_order() {
    let view = host(H100, &[(0xd8, Set::Passthrough(None)), (0x3b, Set::Passthrough(None))]);
    let plan = make(&desired(vec![pool(H100, 2, vgpu(VgpuSize::Same), &["esx-01"])]), &fleet(vec![("esx-01", view)]));
    let order: Vec<String> = plan.hosts[0].target.gpus.iter().map(|gpu| gpu.address.to_string()).collect();
    assert_eq!(order, ["0000:3b:00.0", "0000:d8:00.0"]);
    // A count names all that matched; see PW-GPU-02 above. Upper case is the same address.
    assert_eq!("0000:D8:00.0".parse(), Ok(at(0xd8)));
}

#[test]
fn a02_a_selector_that_meets_another_vendor_names_it_in_unsigned_hex() {
    let plan = altered(|view, pool| {
        known(&mut view.pci).push(device("0000:5e:00.0", 0x8086, 0x8900, 0x0200, "Ethernet"));
        let address = At::new("0000:5e:00.0".parse().unwrap(), place(11));
        pool.gpus[0].select.value = GpuSelect::Addresses(vec![address]);
    });
    let finding = plan.findings.iter().find(|finding| finding.id.0 == "PW-GPU-03").unwrap();
    assert!(
        finding.message.contains("0000:5e:00.0 Ethernet [8086:8900] is there, which is no GPU"),
        "{}",
        finding.message
    );
    assert_eq!(finding.place, Some(place(11)));
    let nothing = altered(|_, pool| {
        let address = At::new("0000:77:00.0".parse().unwrap(), place(11));
        pool.gpus[0].select.value = GpuSelect::Addresses(vec![address]);
    });
    assert!(said(&nothing, "PW-GPU-03").contains("no physical device is there"));
    assert!(nothing.hosts.is_empty(), "never an empty success");
}

#[test]
fn a06_one_function_of_four_of_one_name_gives_one_entry() {
    let mut view = host(T4, &[(0x88, Set::Same)]);
    for function in 1..4 {
        let mut other = known(&mut view.pci)[1].clone();
        other.address.function = function;
        let mut state = known(&mut view.passthru)[0].clone();
        state.address.function = function;
        let mut active = known(&mut view.graphics_active)[0].clone();
        active.address.function = function;
        known(&mut view.pci).push(other);
        known(&mut view.passthru).push(state);
        known(&mut view.graphics_active).push(active);
        let mut entry = known(&mut view.graphics_config).devices[0].clone();
        entry.address.function = function;
        known(&mut view.graphics_config).devices.push(entry);
    }
    let mut pool = pool(T4, 4, passthrough(None), &["esx-01"]);
    let wanted = At::new("0000:88:00.1".parse().unwrap(), place(11));
    pool.gpus[0].select.value = GpuSelect::Addresses(vec![wanted]);
    let plan = make(&desired(vec![pool]), &fleet(vec![("esx-01", view)]));
    let writes: Vec<&str> =
        plan.hosts[0].steps.iter().map(|step| step.does.as_str()).filter(|does| does.starts_with("set ")).collect();
    assert_eq!(writes, ["set passthrough on: 0000:88:00.1"]);
}

#[test]
fn virtual_functions_are_neither_counted_nor_written() {
    // As the driver makes them: same ids and class, later functions of the bus, no SR-IOV of their own.
    let plan = altered(|view, _| {
        for number in 4..20u8 {
            let address = format!("0000:3b:{:02x}.{}", number / 8, number % 8);
            let mut function = device(&address, 0x10de, 0x2321, 0x0302, "NVIDIA H100 NVL");
            function.id = H100.pci();
            known(&mut view.passthru).push(passthru(function.address, true));
            known(&mut view.pci).push(function);
        }
    });
    assert_eq!(ids(&plan), ["PW-GPU-11"]);
    assert_eq!(plan.hosts[0].target.gpus.len(), 2);
    assert!(!plan.hosts[0].steps.iter().any(|step| step.does.contains("3b:00.4")), "{:?}", plan.hosts[0].steps);
}

#[test]
fn selectors_that_overlap_or_miss_are_errors_at_their_line() {
    let numa = |plan: &Plan| said(plan, "PW-GPU-03");
    let overlap = altered(|view, pool| {
        view.numa = crate::support::seen::numa(&[&[0x3b], &[0xd8]]);
        pool.gpus = vec![
            group(10, GpuSelect::NumaNode(0), vgpu(VgpuSize::Same)),
            group(13, GpuSelect::All, vgpu(VgpuSize::Mixed)),
        ];
    });
    assert!(numa(&overlap).contains("0000:3b:00.0 is selected by two groups: here and at profiles/pool.yaml:10:3"));
    let miss = altered(|view, pool| {
        view.numa = crate::support::seen::numa(&[&[0x3b, 0xd8]]);
        pool.gpus[0].select.value = GpuSelect::NumaNode(7);
    });
    assert!(numa(&miss).contains("`numaNode: 7` matches no GPU"));
    let split = altered(|view, pool| {
        view.numa = crate::support::seen::numa(&[&[0x3b], &[0xd8]]);
        pool.gpus = vec![
            group(10, GpuSelect::Count(1), vgpu(VgpuSize::Same)),
            group(13, GpuSelect::NumaNode(0), vgpu(VgpuSize::Mixed)),
        ];
    });
    let modes: Vec<Mode> = split.hosts[0].target.gpus.iter().map(|gpu| gpu.mode.clone()).collect();
    assert_eq!(modes, [vgpu(VgpuSize::Mixed), vgpu(VgpuSize::Same)], "a count takes what the others leave");
}

#[test]
fn changes_of_impact_none_pass_running_vms_by() {
    let view = |set| {
        let mut view = host(H100, &[(0x3b, set)]);
        view.vms = Fact::Known(vec![vm("web-1", PowerState::On)]);
        view
    };
    let mut label = pool(H100, 1, passthrough(Some("train")), &["esx-01"]);
    let plan = make(&desired(vec![label.clone()]), &fleet(vec![("esx-01", view(Set::Passthrough(Some("old"))))]));
    let does: Vec<&str> = plan.hosts[0].steps.iter().map(|step| step.does.as_str()).collect();
    assert_eq!(does, ["set label train: 0000:3b:00.0", "verify the host"]);
    assert_eq!(plan.capacity.gpu_hours_tenths, 0);

    label.gpus[0].mode.value = vgpu(VgpuSize::Same);
    label.host.placement = Some(At::new(AssignmentPolicy::Consolidation, place(16)));
    let plan = make(&desired(vec![label]), &fleet(vec![("esx-01", view(Set::Same))]));
    let does: Vec<&str> = plan.hosts[0].steps.iter().map(|step| step.does.as_str()).collect();
    assert_eq!(does, ["set assignment policy performance to consolidation", "verify the host"]);
}

#[test]
fn b21_each_host_that_is_left_keeps_its_reason() {
    let view = || host(H100, &[(0x3b, Set::Passthrough(None))]);
    let mut standby = view();
    standby.power = Fact::Known(PowerState::StandBy);
    let mut closed = view();
    closed.in_maintenance = Fact::Known(true);
    let done = host(H100, &[(0x3b, Set::Same)]);
    let names = ["esx-01", "esx-02", "esx-03", "esx-04", "esx-05"];
    let mut pool = pool(H100, 1, vgpu(VgpuSize::Same), &names);
    pool.rollout.max_unavailable.value = 3;
    let mut seen =
        fleet(vec![("esx-01", standby), ("esx-02", closed), ("esx-03", done), ("esx-04", view()), ("esx-05", view())]);
    let broken = seen.hosts.get_mut("/DC1/host/gpu-a/esx-05").unwrap();
    broken.view = Err(HostFault { kind: HostFaultKind::NoPermission, message: "no privilege System.Read".into() });
    let plan = make(&desired(vec![pool]), &seen);
    let left: Vec<(&str, Reason)> = plan.not_acted.iter().map(|host| (host.host.as_str(), host.reason)).collect();
    assert_eq!(
        left,
        [
            ("esx-01", Reason::Unknown),
            ("esx-02", Reason::Held),
            ("esx-03", Reason::Converged),
            ("esx-04", Reason::Budget),
            ("esx-05", Reason::Unknown),
        ]
    );
    let capacity = &plan.capacity.pools[0];
    assert_eq!((capacity.gpus, capacity.now, capacity.worst), (5, 2, 2));
    assert!(plan.not_acted.iter().all(|host| !host.detail.is_empty()));
}

#[test]
fn a_host_found_in_maintenance_is_changed_and_left_there_if_the_pool_says_so() {
    let plan = altered(|view, pool| {
        view.in_maintenance = Fact::Known(true);
        view.parity.ha = Fact::Absent;
        pool.rollout.found_in_maintenance = FoundInMaintenance::Change;
    });
    let host = &plan.hosts[0];
    assert!(host.stays_in_maintenance);
    let does: Vec<&str> = host.steps.iter().map(|step| step.does.as_str()).collect();
    assert!(!does.contains(&"enter maintenance mode") && !does.contains(&"leave maintenance mode"), "{does:?}");
}

#[test]
fn a_gpu_outside_the_pool_that_the_driver_would_claim_at_the_reboot_is_refused() {
    let with = |packages: bool| {
        altered(|view, pool| {
            *view = host(H100, &[(0x3b, Set::Same), (0xd8, Set::Basic)]);
            pool.gpus[0].select.value = GpuSelect::Count(1);
            pool.gpus[0].mode.value = passthrough(None);
            if !packages {
                view.packages = Fact::Known(vec![]);
            }
        })
    };
    assert!(said(&with(true), "PW-GPU-14").contains("0000:d8:00.0"));
    assert_eq!(with(false).hosts.len(), 1, "no driver, no claim");
}
