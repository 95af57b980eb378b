//! What becomes of VMs: findings, fates, figures.

use poolwright::model::{
    At, ClusterView, Drs, DrsLevel, DrsOverride, Fact, Firmware, HaAdmission, HostView, ManagedBy, MayMove, MoRef,
    Observed, OnMismatch, PowerState, Severity, ToolsStatus, VgpuSize, VmGpuDevice, VmSelector, VmView,
};
use poolwright::plan::{Fate, HostPlan, Plan};

use super::findings::{Case, make, said};
use crate::support::seen::{
    self, H100, Set, active, desired, direct_path, dynamic, fleet, host, known, passthrough, place, pool, vgpu,
    vgpu_device, vm,
};

pub const HALF: &str = "nvidia_h100l-47c";
pub const QUARTER: &str = "nvidia_h100l-23c";

/// A VM with these devices; it uses the GPUs of these buses.
pub fn runs(view: &mut HostView, name: &str, gpus: Vec<VmGpuDevice>, buses: &[u8]) {
    let one = VmView { gpus: Fact::Known(gpus), ..vm(name, PowerState::On) };
    for bus in buses {
        active(view, *bus).vms.push(one.moref.clone());
    }
    known(&mut view.vms).push(one);
}

pub fn find<'v>(view: &'v mut HostView, name: &str) -> &'v mut VmView {
    let wanted = MoRef::new("VirtualMachine", format!("vm-{name}"));
    known(&mut view.vms).iter_mut().find(|vm| vm.moref == wanted).unwrap()
}

pub fn selector(name: &str) -> At<VmSelector> {
    At::new(VmSelector::Name(name.parse().unwrap()), place(25))
}

/// A host in vGPU mode of one size, and what it offers.
pub fn serving() -> HostView {
    let mut view = host(H100, &[(0x3b, Set::Same), (0xd8, Set::Same)]);
    view.vgpu_types = Fact::Known(vec![HALF.into(), QUARTER.into()]);
    view
}

/// One VM with half a GPU runs on esx-01, which becomes a host of mixed size; esx-02 is empty, of the
/// same cluster, and in no pool.
pub struct Scene {
    pub leaving: HostView,
    pub other: HostView,
    pub pool: poolwright::model::DesiredPool,
    pub cluster: ClusterView,
    pub hot_migrate: Fact<bool>,
}

impl Scene {
    pub fn new() -> Self {
        let mut leaving = serving();
        runs(&mut leaving, "serve-1", vec![vgpu_device(HALF)], &[0x3b]);
        Self {
            leaving,
            other: serving(),
            pool: pool(H100, 2, vgpu(VgpuSize::Mixed), &["esx-01"]),
            cluster: seen::cluster(),
            hot_migrate: Fact::Known(true),
        }
    }

    pub fn drs(&mut self) -> &mut Drs {
        known(&mut self.cluster.drs)
    }

    pub fn fleet(&self) -> Observed {
        let mut fleet = fleet(vec![("esx-01", self.leaving.clone()), ("esx-02", self.other.clone())]);
        fleet.clusters.values_mut().for_each(|cluster| *cluster = Fact::Known(self.cluster.clone()));
        fleet.hot_migrate = self.hot_migrate.clone();
        fleet
    }

    pub fn plan(&self) -> Plan {
        make(&desired(vec![self.pool.clone()]), &self.fleet())
    }
}

fn altered(alter: impl FnOnce(&mut Scene)) -> Plan {
    let mut scene = Scene::new();
    alter(&mut scene);
    scene.plan()
}

/// One alteration for each finding on VMs that are powered on, with words that must be said.
pub fn cases() -> Vec<Case> {
    let stops = |scene: &mut Scene| {
        scene.other.in_maintenance = Fact::Known(true);
        scene.pool.vms.may_stop = vec![selector("serve-*")];
    };
    vec![
        (
            "PW-VM-01",
            altered(|scene| runs(&mut scene.leaving, "train-1", vec![direct_path("0000:d8:00.0")], &[])),
            &["train-1", "DirectPath I/O 0000:d8:00.0", "mayStop"],
        ),
        ("PW-VM-02", altered(|scene| scene.pool.vms.may_move = MayMove::None), &["serve-1", "mayMove"]),
        (
            "PW-VM-03",
            altered(|scene| scene.drs().options.clear()),
            &["serve-1", "the DRS option VgpuMMAutomationTimeoutSecs is not set; -1 is needed"],
        ),
        (
            "PW-VM-04",
            altered(|scene| {
                stops(scene);
                scene.pool.gpus[0].mode.value = passthrough(None);
            }),
            &["serve-1", "would not start again", "no GPU will offer vGPU nvidia_h100l-47c", "leaveOff"],
        ),
        (
            "PW-VM-05",
            altered(|scene| {
                stops(scene);
                let owner = ManagedBy { extension: "com.vmware.vcenter.wcp".into(), kind: "VirtualMachine".into() };
                find(&mut scene.leaving, "serve-1").managed_by = Fact::Known(owner);
            }),
            &["serve-1", "com.vmware.vcenter.wcp (VirtualMachine) owns it"],
        ),
        (
            "PW-VM-06",
            altered(|scene| {
                stops(scene);
                find(&mut scene.leaving, "serve-1").tools = Fact::Known(ToolsStatus::NotRunning);
            }),
            &["serve-1", "guest tools do not run"],
        ),
        (
            "PW-VM-07",
            altered(|scene| {
                let extra = known(&mut find(&mut scene.leaving, "serve-1").extra);
                extra.insert(VmView::EVACUATION_POWEROFF.into(), "TRUE".into());
            }),
            &["serve-1", "powers it off", "maintenance.vm.evacuation.poweroff", "mayStop"],
        ),
        (
            "PW-VM-08",
            altered(|scene| {
                stops(scene);
                scene.pool.gpus[0].mode.value = passthrough(None);
                scene.pool.vms.on_mismatch = OnMismatch::LeaveOff;
            }),
            &["1 VM will be stopped and stay off", "serve-1: no GPU will offer"],
        ),
        (
            "PW-VM-09",
            altered(|scene| {
                scene.cluster.ha_admission = Fact::Known(HaAdmission {
                    enabled: Fact::Known(true),
                    policy: Fact::Known("ClusterFailoverResourcesAdmissionControlPolicy".into()),
                    failover_hosts: vec![],
                });
            }),
            &["compute policies", "admission control of HA is on (ClusterFailoverResources"],
        ),
        ("PW-VM-10", both(false), &["serve-", "once the hosts before are changed", "judged again"]),
    ]
}

/// Both hosts become passthrough hosts; a third one, which is in no pool, is free or not there.
fn both(third: bool) -> Plan {
    let mut scene = Scene::new();
    runs(&mut scene.other, "serve-2", vec![vgpu_device(HALF)], &[0x3b]);
    scene.pool = pool(H100, 2, passthrough(None), &["esx-01", "esx-02"]);
    let mut fleet = scene.fleet();
    if third {
        fleet.hosts.extend(seen::fleet(vec![("esx-03", serving())]).hosts);
    }
    make(&desired(vec![scene.pool.clone()]), &fleet)
}

fn fates(plan: &Plan) -> Vec<(&str, &Fate)> {
    assert_eq!(plan.hosts.len(), 1, "{:#?}", plan.findings);
    plan.hosts[0].fates.iter().map(|fate| (fate.name.as_str(), &fate.fate)).collect()
}

fn does(host: &HostPlan) -> Vec<&str> {
    host.steps.iter().map(|step| step.does.as_str()).collect()
}

#[test]
fn a_vm_that_can_move_moves_to_a_named_host() {
    let plan = Scene::new().plan();
    match fates(&plan)[..] {
        [("serve-1", Fate::Moves { to, minutes, why })] => {
            assert_eq!((to.as_str(), *minutes), ("esx-02", 2));
            assert_eq!(why, "64 GiB of memory and 47 GB of framebuffer; it stands still for up to 58 s at 10 Gbit/s");
        }
        ref other => panic!("{other:?}"),
    }
    let host = &plan.hosts[0];
    assert_eq!((host.bounds.stops, host.bounds.moves), (2, 3));
    assert_eq!(does(host)[0], "enter maintenance mode; DRS moves serve-1");
    assert!(host.minutes.basis.contains("close 3 min (at most 21)"), "{}", host.minutes.basis);
    let errors = plan.findings.iter().filter(|finding| finding.severity > Severity::Info).count();
    assert_eq!(errors, 0, "{:#?}", plan.findings);
}

#[test]
fn b01_each_setting_that_keeps_drs_from_moving_a_vgpu_is_named() {
    type Alter = fn(&mut Scene);
    let cases: Vec<(Alter, &str)> = vec![
        (|scene| scene.drs().enabled = Fact::Known(false), "DRS is off"),
        (|scene| scene.drs().level = Fact::Known(DrsLevel::PartiallyAutomated), "DRS is partiallyAutomated"),
        (
            |scene| {
                let vm = MoRef::new("VirtualMachine", "vm-serve-1");
                let entry = DrsOverride { vm, enabled: Fact::Known(false), level: Fact::Absent };
                scene.drs().overrides.push(entry);
            },
            "DRS is off for this VM",
        ),
        (
            |scene| {
                let vm = MoRef::new("VirtualMachine", "vm-serve-1");
                let level = Fact::Known(DrsLevel::Manual);
                scene.drs().overrides.push(DrsOverride { vm, enabled: Fact::Absent, level });
            },
            "DRS is manual",
        ),
        (|scene| scene.hot_migrate = Fact::Absent, "vgpu.hotmigrate.enabled"),
        (|scene| scene.hot_migrate = Fact::Known(false), "vgpu.hotmigrate.enabled"),
        (
            |scene| drop(scene.drs().options.insert(Drs::VGPU_EVACUATION.into(), "300".into())),
            "VgpuMMAutomationTimeoutSecs is 300",
        ),
        (
            |scene| {
                let device = VmGpuDevice::Vgpu { name: HALF.into(), migrate: Fact::Known(false) };
                find(&mut scene.leaving, "serve-1").gpus = Fact::Known(vec![device]);
            },
            "does not support migration",
        ),
        (
            |scene| {
                let extra = known(&mut find(&mut scene.leaving, "serve-1").extra);
                extra.insert("pciPassthru0.cfg.enable_profiling".into(), "1".into());
            },
            "enable_profiling = 1",
        ),
    ];
    for (alter, words) in cases {
        let plan = altered(alter);
        assert!(plan.hosts.is_empty(), "{words}");
        assert!(said(&plan, "PW-VM-03").contains(words), "{words}: {:#?}", plan.findings);
        // With leave to stop it, it is stopped and started again.
        let stops = altered(|scene| {
            alter(scene);
            scene.pool.vms.may_stop = vec![selector("serve-1")];
        });
        assert!(matches!(fates(&stops)[..], [("serve-1", Fate::Stops { .. })]), "{words}");
        assert_eq!(
            does(&stops.hosts[0])[..3],
            [
                "begin to enter maintenance mode, so that 1 VM can be stopped",
                "shut down the guest of serve-1",
                "enter maintenance mode"
            ]
        );
        assert_eq!(does(&stops.hosts[0]).last(), Some(&"start serve-1 (vGPU nvidia_h100l-47c)"));
    }
}

#[test]
fn b03_a_directpath_vm_is_refused_before_anything_or_stopped_with_leave() {
    for device in [direct_path("0000:d8:00.0"), dynamic(None)] {
        let with = |stop: bool| {
            altered(|scene| {
                scene.leaving = host(H100, &[(0x3b, Set::Same), (0xd8, Set::Passthrough(None))]);
                runs(&mut scene.leaving, "train-1", vec![device.clone()], &[]);
                let extra = known(&mut find(&mut scene.leaving, "train-1").extra);
                extra.insert(VmView::MMIO_64BIT.into(), "TRUE".into());
                // The other GPU becomes one of mixed size.
                scene.pool.gpus[0].select.value = poolwright::model::GpuSelect::Count(1);
                if stop {
                    scene.pool.vms.may_stop = vec![selector("train-*")];
                }
            })
        };
        let refused = with(false);
        assert!(refused.hosts.is_empty() && said(&refused, "PW-VM-01").contains("train-1"));
        let plan = with(true);
        assert!(matches!(fates(&plan)[..], [("train-1", Fate::Stops { .. })]), "{:#?}", plan.findings);
    }
}

#[test]
fn a30_a_vm_that_would_not_power_on_again_is_named_before_it_is_stopped() {
    type Alter = fn(&mut VmView);
    let cases: Vec<(Alter, &str)> = vec![
        (|vm| vm.firmware = Fact::Known(Firmware::Bios), "firmware is bios"),
        (|vm| vm.extra = Fact::Known([].into()), "use64bitMMIO is not TRUE"),
        (
            |vm| drop(known(&mut vm.extra).insert(VmView::MMIO_64BIT_SIZE_GB.into(), "32".into())),
            "64bitMMIOSizeGB is 32, and its GPUs need 256",
        ),
    ];
    for (alter, words) in cases {
        let plan = altered(|scene| {
            scene.leaving = host(H100, &[(0x3b, Set::Same), (0xd8, Set::Passthrough(None))]);
            runs(&mut scene.leaving, "train-1", vec![direct_path("0000:d8:00.0")], &[]);
            known(&mut find(&mut scene.leaving, "train-1").extra).insert(VmView::MMIO_64BIT.into(), "true".into());
            alter(find(&mut scene.leaving, "train-1"));
            scene.pool.gpus[0].select.value = poolwright::model::GpuSelect::Count(1);
            scene.pool.vms.may_stop = vec![selector("train-*")];
        });
        assert!(said(&plan, "PW-VM-04").contains(words), "{:#?}", plan.findings);
    }
}

#[test]
fn b16_b21_hosts_that_take_no_vm_say_why() {
    type Alter = fn(&mut Scene);
    let cases: Vec<(Alter, &str)> = vec![
        (|scene| scene.other.in_maintenance = Fact::Known(true), "esx-02: it is in maintenance mode"),
        (
            |scene| scene.other.power = Fact::Known(PowerState::StandBy),
            "esx-02: the power state of the host is standBy",
        ),
        (|scene| scene.other.marker = Fact::Known("{}".into()), "esx-02: a run has marked it"),
        (
            |scene| {
                scene.cluster.ha_admission = Fact::Known(HaAdmission {
                    enabled: Fact::Known(true),
                    policy: Fact::Absent,
                    failover_hosts: vec![MoRef::new("HostSystem", "host-esx-02")],
                });
            },
            "esx-02: it is kept free for failover",
        ),
        (|scene| known(&mut scene.other.packages)[0].version = "550.1".into(), "esx-02: its host driver is another"),
        (|scene| scene.other.vgpu_types = Fact::Known(vec![]), "esx-02: does not offer vGPU nvidia_h100l-47c now"),
        (|scene| scene.other.memory_mib = Fact::Known(32 << 10), "esx-02: 32 GiB of memory free, 64 reserved"),
        (
            |scene| {
                runs(&mut scene.other, "one", vec![vgpu_device(QUARTER)], &[0x3b]);
                runs(&mut scene.other, "two", vec![vgpu_device(QUARTER)], &[0xd8]);
            },
            "esx-02: no GPU has room for nvidia_h100l-47c",
        ),
        (
            |scene| {
                let two = vec![vgpu_device(QUARTER), vgpu_device(HALF)];
                runs(&mut scene.other, "both", two, &[0x3b, 0xd8]);
            },
            "which GPUs both uses could not be read",
        ),
    ];
    for (alter, words) in cases {
        let plan = altered(alter);
        assert!(said(&plan, "PW-VM-03").contains(words), "{words}: {:#?}", plan.findings);
    }
}

#[test]
fn two_vms_never_get_one_slot() {
    let with = |vms: &[(&str, u8)]| {
        altered(|scene| {
            runs(&mut scene.other, "there", vec![vgpu_device(HALF)], &[0x3b]);
            runs(&mut scene.other, "full", vec![vgpu_device(QUARTER)], &[0xd8]);
            scene.leaving = serving();
            for (name, bus) in vms {
                runs(&mut scene.leaving, name, vec![vgpu_device(HALF)], &[*bus]);
            }
        })
    };
    assert_eq!(with(&[("serve-1", 0x3b)]).hosts.len(), 1, "one half is free beside the other");
    let plan = with(&[("serve-1", 0x3b), ("serve-2", 0xd8)]);
    assert!(plan.hosts.is_empty() && said(&plan, "PW-VM-03").contains("no other host has room for it"));
}

#[test]
fn a_vm_that_the_pool_keeps_still_is_stopped_only_where_drs_leaves_it() {
    let kept = |off: bool| {
        altered(|scene| {
            scene.pool.vms.may_move = MayMove::Only(vec![selector("web-*")]);
            scene.pool.vms.may_stop = vec![selector("serve-*")];
            scene.drs().enabled = Fact::Known(!off);
        })
    };
    assert!(said(&kept(false), "PW-VM-02").contains("serve-1"), "it would be moved before it is stopped");
    assert!(matches!(fates(&kept(true))[..], [("serve-1", Fate::Stops { .. })]));
}

#[test]
fn a12_a_device_of_a_kind_that_is_not_known_never_moves_and_is_named() {
    let plan = altered(|scene| {
        runs(&mut scene.leaving, "odd", vec![VmGpuDevice::Other("VirtualPCIPassthroughX".into())], &[]);
    });
    assert!(said(&plan, "PW-VM-01").contains("odd: device VirtualPCIPassthroughX never moves"));
}

#[test]
fn each_vm_that_is_in_the_way_is_named() {
    let plan = altered(|scene| {
        for name in ["train-1", "train-2", "train-3"] {
            runs(&mut scene.leaving, name, vec![dynamic(None)], &[]);
        }
    });
    let said = said(&plan, "PW-VM-01");
    for name in ["train-1", "train-2", "train-3"] {
        assert!(said.contains(name), "{said}");
    }
}

#[test]
fn vms_of_vcls_and_templates_do_not_count() {
    let plan = altered(|scene| {
        let agent = VmView { vcls: true, ..vm("vCLS-1", PowerState::On) };
        let template = VmView { template: Fact::Known(true), ..vm("gold", PowerState::On) };
        scene.leaving.vms = Fact::Known(vec![agent, template]);
        active(&mut scene.leaving, 0x3b).vms.clear();
    });
    assert_eq!(fates(&plan), []);
    assert_eq!(super::findings::ids(&plan), Vec::<&str>::new());
}

#[test]
fn stopped_vms_need_room_beside_each_other_when_they_start_again() {
    // Three halves were on three GPUs; two GPUs are left, of which one is passed through.
    let with = |names: &[(&str, u8)]| {
        altered(|scene| {
            let sets = [(0x3b, Set::Same), (0x86, Set::Same), (0xd8, Set::Same)];
            scene.leaving = host(H100, &sets);
            for (name, bus) in names {
                let still = VmGpuDevice::Vgpu { name: HALF.into(), migrate: Fact::Known(false) };
                runs(&mut scene.leaving, name, vec![still], &[*bus]);
            }
            let address = |bus| At::new(seen::at(bus), place(11));
            let select =
                |bus: &[u8]| poolwright::model::GpuSelect::Addresses(bus.iter().map(|bus| address(*bus)).collect());
            scene.pool.gpu_count.value = 3;
            scene.pool.gpus = vec![
                seen::group(10, select(&[0x3b]), vgpu(VgpuSize::Mixed)),
                seen::group(13, select(&[0x86, 0xd8]), passthrough(None)),
            ];
            scene.pool.vms.may_stop = vec![selector("*")];
        })
    };
    assert_eq!(fates(&with(&[("a", 0x3b), ("b", 0x86)])).len(), 2);
    let plan = with(&[("a", 0x3b), ("b", 0x86), ("c", 0xd8)]);
    assert!(said(&plan, "PW-VM-04").contains("no GPU will have room for nvidia_h100l-47c"), "{:#?}", plan.findings);
}

#[test]
fn the_hosts_before_leave_less_room_and_more_vms() {
    let plan = both(false);
    assert_eq!(plan.order.len(), 2, "{:#?}", plan.findings);
    // All that left the first host may be on the second at its turn.
    assert_eq!(plan.hosts.iter().map(|host| host.bounds.moves).collect::<Vec<_>>(), [3, 4]);
    let later: Vec<&str> = plan
        .findings
        .iter()
        .filter(|finding| finding.id.0 == "PW-VM-10")
        .filter_map(|finding| finding.subject.host.as_ref().map(|host| host.as_str()))
        .collect();
    assert_eq!(later, ["esx-02"], "the first host finds room on the second");
    assert!(both(true).findings.iter().all(|finding| finding.id.0 != "PW-VM-10"), "a third host takes all");
}
