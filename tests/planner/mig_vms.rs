//! VMs of hosts that come to MIG or leave it: what fits a GPU before fits it no more afterwards.

use poolwright::model::{DesiredPool, Fact, GpuSelect, HostView, Mode, OnMismatch, PowerState, VgpuSize, VmView};
use poolwright::plan::{Fate, Plan};

use super::findings::said;
use super::vms::{HALF, Scene, runs, selector};
use crate::support::seen::{H100, Set, group, host, passthrough, pool, vgpu, vgpu_device, vm};

/// Half a GPU in MIG: two of them on each.
const MIG_HALF: &str = "nvidia_h100l-3-47c";
const MIG_SMALL: &str = "nvidia_h100l-1-12c";

fn serving(set: Set) -> HostView {
    let mut view = host(H100, &[(0x3b, set.clone()), (0xd8, set)]);
    view.vgpu_types = Fact::Known([HALF, MIG_HALF, MIG_SMALL].map(str::to_owned).to_vec());
    view
}

fn to(mode: Mode) -> DesiredPool {
    pool(H100, 2, mode, &["esx-01"])
}

/// A host with a VM of this type becomes something else; the other host of the cluster is of this kind.
fn planned(vgpu: &str, from: Set, becomes: Mode, other: Set, alter: impl FnOnce(&mut Scene)) -> Plan {
    let mut scene = Scene::new();
    scene.leaving = serving(from);
    runs(&mut scene.leaving, "serve-1", vec![vgpu_device(vgpu)], &[0x3b]);
    scene.other = serving(other);
    scene.pool = to(becomes);
    alter(&mut scene);
    scene.plan()
}

fn fate(plan: &Plan) -> &Fate {
    assert_eq!(plan.hosts.len(), 1, "{:#?}", plan.findings);
    &plan.hosts[0].fates[0].fate
}

fn may_stop(scene: &mut Scene) {
    scene.pool.vms.may_stop = vec![selector("serve-*")];
}

#[test]
fn a_vm_moves_to_a_host_of_its_mode_alone() {
    for (vgpu, from, becomes, like) in [
        (MIG_SMALL, Set::Mig, vgpu(VgpuSize::Same), Set::Mig),
        (MIG_SMALL, Set::Mig, passthrough(None), Set::Mig),
        (HALF, Set::Same, Mode::MigVgpu, Set::Same),
    ] {
        let moves = planned(vgpu, from.clone(), becomes.clone(), like.clone(), |_| {});
        assert!(matches!(fate(&moves), Fate::Moves { to, .. } if to.as_str() == "esx-02"), "{:?}", fate(&moves));
        let unlike = if like == Set::Mig { Set::Same } else { Set::Mig };
        let stays = planned(vgpu, from, becomes, unlike, |_| {});
        assert!(stays.hosts.is_empty() && said(&stays, "PW-VM-03").contains("serve-1"), "{:#?}", stays.findings);
    }
}

#[test]
fn a_vm_that_fits_the_new_mode_no_more_is_refused_or_left_off() {
    for (vgpu, from, becomes) in [
        (MIG_SMALL, Set::Mig, vgpu(VgpuSize::Mixed)),
        (MIG_SMALL, Set::Mig, passthrough(None)),
        (HALF, Set::Mixed, Mode::MigVgpu),
    ] {
        let refused = planned(vgpu, from.clone(), becomes.clone(), Set::Basic, may_stop);
        assert!(refused.hosts.is_empty());
        assert!(said(&refused, "PW-VM-04").contains(&format!("no GPU will offer vGPU {vgpu}")));
        let left = planned(vgpu, from, becomes, Set::Basic, |scene| {
            may_stop(scene);
            scene.pool.vms.on_mismatch = OnMismatch::LeaveOff;
        });
        assert!(matches!(fate(&left), Fate::LeftOff { .. }), "{:?}", fate(&left));
        assert!(!left.hosts[0].steps.iter().any(|step| step.does.starts_with("start serve-1")));
    }
}

/// One GPU has lost its MIG, on the other one a VM runs.
#[test]
fn a_vm_with_a_gpu_instance_starts_again_on_a_host_that_stays_in_mig() {
    let plan = planned(MIG_HALF, Set::Mig, Mode::MigVgpu, Set::Basic, |scene| {
        crate::support::seen::set_gpu(&mut scene.leaving, 0xd8, &Set::Same);
        may_stop(scene);
    });
    assert!(matches!(fate(&plan), Fate::Stops { .. }), "{:?}", fate(&plan));
    let steps: Vec<&str> = plan.hosts[0].steps.iter().map(|step| step.does.as_str()).collect();
    assert!(steps.contains(&"switch MIG on by hand, the commands are printed: 0000:d8:00.0"), "{steps:?}");
    assert_eq!(*steps.last().unwrap(), format!("start serve-1 (vGPU {MIG_HALF})"));
}

/// Three GPU instances of half a GPU ran on two GPUs, of which one stays in MIG.
#[test]
fn gpu_instances_crowd_each_other_as_the_geometry_says() {
    let plan = planned(MIG_HALF, Set::Mig, Mode::MigVgpu, Set::Basic, |scene| {
        runs(&mut scene.leaving, "serve-2", vec![vgpu_device(MIG_HALF)], &[0x3b]);
        runs(&mut scene.leaving, "serve-3", vec![vgpu_device(MIG_HALF)], &[0xd8]);
        scene.pool.gpus[0].select.value = GpuSelect::Count(1);
        scene.pool.gpus.push(group(13, GpuSelect::Count(1), passthrough(None)));
        may_stop(scene);
        scene.pool.vms.on_mismatch = OnMismatch::LeaveOff;
    });
    let fates: Vec<(&str, bool)> = plan.hosts[0]
        .fates
        .iter()
        .map(|fate| (fate.name.as_str(), matches!(fate.fate, Fate::LeftOff { .. })))
        .collect();
    assert_eq!(fates, [("serve-1", false), ("serve-2", false), ("serve-3", true)]);
    let left = &plan.hosts[0].fates[2].fate;
    assert!(left.why().contains(&format!("no GPU will have room for {MIG_HALF}")), "{}", left.why());
}

#[test]
fn a_vm_that_is_off_is_judged_by_the_mode_that_comes() {
    let off = |name: &str, gpu: &str| VmView { gpus: Fact::Known(vec![vgpu_device(gpu)]), ..vm(name, PowerState::Off) };
    let stranded = |from, becomes| {
        let plan = planned(MIG_HALF, from, becomes, Set::Mig, |scene| {
            scene.leaving.vms = Fact::Known(vec![
                off("sliced-1", HALF),
                off("instance-1", MIG_HALF),
                off("unknown-1", "nvidia_z9-7-99c"),
            ]);
            for state in crate::support::seen::known(&mut scene.leaving.graphics_active) {
                state.vms.clear();
            }
        });
        plan.findings.iter().find(|finding| finding.id.0 == "PW-HOST-06").unwrap().evidence.join("; ")
    };
    let to_mig = stranded(Set::Same, Mode::MigVgpu);
    assert!(to_mig.contains("sliced-1") && !to_mig.contains("instance-1"), "{to_mig}");
    let from_mig = stranded(Set::Mig, vgpu(VgpuSize::Same));
    assert!(from_mig.contains("instance-1") && !from_mig.contains("sliced-1"), "{from_mig}");
    // Only the host knows what a type is that the catalogue does not list.
    assert!(!to_mig.contains("unknown-1") && !from_mig.contains("unknown-1"));
    let to_passthrough = stranded(Set::Mig, passthrough(None));
    assert!(["sliced-1", "instance-1", "unknown-1"].iter().all(|name| to_passthrough.contains(name)));
}

/// Both hosts come to MIG: what moves from the first to the second finds no place after the second.
#[test]
fn the_order_of_hosts_that_come_to_mig_leaves_their_vms_nowhere() {
    let plan = planned(HALF, Set::Same, Mode::MigVgpu, Set::Same, |scene| {
        runs(&mut scene.other, "serve-2", vec![vgpu_device(HALF)], &[0x3b]);
        scene.pool = pool(H100, 2, Mode::MigVgpu, &["esx-01", "esx-02"]);
    });
    assert_eq!(plan.hosts.len(), 2, "{:#?}", plan.findings);
    assert!(said(&plan, "PW-VM-10").contains("esx-02") || said(&plan, "PW-VM-10").contains("serve-"));
    // The other way round the second finds room where the first was.
    let back = planned(MIG_SMALL, Set::Mig, vgpu(VgpuSize::Same), Set::Mig, |_| {});
    assert!(!back.findings.iter().any(|finding| finding.id.0 == "PW-VM-10"));
}
