//! Reports of facts; `left` alone needs a simulated world for them.

mod handover;
mod left;
mod live;
mod mig;
pub mod stages;

use poolwright::model::{ClusterView, Drs, DrsOverride, Fact, ManagedBy, MoRef, Observed, PowerState, VmView};
use poolwright::report::{self, Paper};

use crate::support::seen::{H100, Set, cluster, direct_path, dynamic, fleet, host, vgpu_device, vm};

fn text(observed: &Observed) -> String {
    let mut paper = Paper::new();
    report::fleet(&mut paper, observed);
    paper.render(false)
}

fn with(vms: Vec<VmView>) -> Observed {
    let mut view = host(H100, &[(0x3b, Set::Same)]);
    view.vms = Fact::Known(vms);
    fleet(vec![("esx-01", view)])
}

#[test]
fn vms_with_a_gpu_are_listed_with_devices_folder_and_owner() {
    let owner = ManagedBy { extension: "com.vmware.vcenter.wcp".into(), kind: "VirtualMachine".into() };
    let two = Fact::Known(vec![vgpu_device("nvidia_h100l-47c"), vgpu_device("nvidia_h100l-47c")]);
    let observed = with(vec![
        VmView { gpus: two, managed_by: Fact::Known(owner), ..vm("node-1", PowerState::On) },
        VmView {
            gpus: Fact::Known(vec![direct_path("0000:3b:00.0"), dynamic(Some("train"))]),
            ..vm("b", PowerState::Off)
        },
        VmView { gpus: Fact::Known(vec![dynamic(Some("train"))]), ..vm("c", PowerState::Off) },
        VmView { gpus: Fact::unknown("no"), folder: Fact::unknown("no"), ..vm("hidden", PowerState::On) },
        vm("web", PowerState::On),
    ]);
    let text = text(&observed);
    let row = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default();
    assert!(row("node-1").contains("2 x nvidia_h100l-47c"), "{text}");
    assert!(row("node-1").contains("/DC1/vm") && row("node-1").contains("com.vmware.vcenter.wcp"), "{text}");
    assert!(row("b ").contains("DirectPath 0000:3b:00.0"), "{text}");
    assert!(row("c ").contains("dynamic DirectPath, label train"), "{text}");
    assert_eq!(row("hidden").matches('?').count(), 2, "{text}");
    assert_eq!(row("web"), "", "{text}");
    assert!(text.contains("they can move while they run"), "{text}");
}

#[test]
fn what_drs_does_is_said_where_there_are_vms() {
    let drs = |alter: fn(&mut Drs)| {
        let mut view = cluster();
        if let Fact::Known(drs) = &mut view.drs {
            alter(drs);
        }
        Fact::Known(view)
    };
    let said = |cluster: Fact<ClusterView>, vms: Vec<VmView>| {
        let mut observed = with(vms);
        observed.clusters.values_mut().for_each(|known| *known = cluster.clone());
        text(&observed).lines().find_map(|line| line.trim().strip_prefix("DRS: ").map(str::to_owned))
    };
    let on = || vec![vm("web", PowerState::On)];
    let plain = said(drs(|_| ()), on());
    assert_eq!(plain.as_deref(), Some("fully automated, empties hosts of VMs with a vGPU"));
    let stays = said(drs(|drs| drs.options.clear()), on()).unwrap();
    assert_eq!(stays, "fully automated, leaves VMs with a vGPU where they are");
    let other = |drs: &mut Drs| {
        let vm = MoRef::new("VirtualMachine", "vm-1");
        drs.overrides = vec![DrsOverride { vm, enabled: Fact::Known(false), level: Fact::Absent }];
    };
    assert!(said(drs(other), on()).unwrap().contains("otherwise for 1 VM"));
    assert_eq!(said(drs(|drs| drs.enabled = Fact::Known(false)), on()).as_deref(), Some("off"));
    assert_eq!(said(Fact::unknown("no"), on()).as_deref(), Some("?"));
    assert_eq!(said(Fact::Absent, on()), None);
    assert_eq!(said(drs(|_| ()), Vec::new()), None);
}

#[test]
fn what_could_not_be_read_around_hosts_is_said_with_the_reason() {
    let mut observed = with(Vec::new());
    assert!(!text(&observed).contains("Not read"));
    observed.hot_migrate = Fact::unknown("the user lacks a privilege");
    observed.clusters.values_mut().for_each(|known| *known = Fact::unknown("the server was gone"));
    let text = text(&observed);
    assert!(text.contains("Not read"), "{text}");
    assert!(text.contains("vCenter: vgpu.hotmigrate.enabled: the user lacks a privilege"), "{text}");
    assert!(text.contains("/DC1/host/gpu-a: the cluster: the server was gone"), "{text}");
}
