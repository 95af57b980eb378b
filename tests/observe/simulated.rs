//! A simulated fleet with VMs, as the fleet is read: the server is written from the reference alone.

use std::num::NonZeroU32;
use std::time::Duration;

use poolwright::model::{
    DrsLevel, Fact, Firmware, HostName, Lockdown, MoRef, PowerState, ToolsStatus, VmGpuDevice, VmView,
};

use crate::support::lab::{Lab, PASSWORD, USER};

fn lab() -> Lab {
    let world = format!(
        r#"
apiVersion: poolwright/v1
kind: World
metadata: {{name: vms}}
spec:
  vcenter: {{address: vc.lab, users: [{{name: {USER}, password: "{PASSWORD}"}}], options: {{vgpu.hotmigrate.enabled: "true"}}}}
  datacenters:
    - path: /Prod/DC1
      clusters:
        - name: gpu-a
          drs: {{level: partiallyAutomated, options: {{VgpuMMAutomationTimeoutSecs: "-1"}}, overrides: [{{vm: pinned, enabled: false}}]}}
          hosts:
            - names: "esx-[01-02]"
              driver: {{component: NVD-AIE-800, version: 580.95.02}}
              gpus: [{{model: h100-nvl-94, count: 1, mode: {{vgpu: {{size: same}}}}}}]
          vms:
            - name: pinned
              host: esx-01
              power: on
              devices: [{{vgpu: nvidia_h100l-47c}}]
              folder: teams/a
              memoryGiB: 32
              reservedGiB: 16
              firmware: bios
              extra: {{pciPassthru.use64bitMMIO: "TRUE", pciPassthru0.cfg.enable_profiling: "1", guestinfo.userdata: c2VjcmV0}}
              managedBy: {{extension: com.vmware.vcenter.wcp, type: VirtualMachine}}
            - {{name: off, host: esx-01}}
"#
    );
    let documents = format!(
        r#"
apiVersion: poolwright/v1
kind: Site
metadata: {{name: lab}}
spec:
  vcenter: {{address: vc.lab, credentials: {{user: {USER}, password: "env:LAB"}}}}
---
apiVersion: poolwright/v1
kind: GpuPool
metadata: {{name: pool}}
spec:
  hosts: {{site: lab, cluster: gpu-a, names: ["esx-*"]}}
  gpuModel: h100-nvl-94
  gpuCount: 1
  gpus: [{{mode: {{vgpu: {{size: same}}}}}}]
  rollout: {{maxUnavailable: 1, maxReboots: 2}}
"#
    );
    Lab::new(&world, &documents)
}

#[tokio::test(start_paused = true)]
async fn every_fact_of_a_vm_its_host_and_its_cluster_is_read() {
    let lab = lab();
    let fleet = lab.connect().await;
    let observed = lab.facts(&fleet).await;
    assert_eq!(observed.hot_migrate, Fact::Known(true));
    let record = observed.host(&HostName::from("esx-01")).unwrap();
    let view = record.view.as_ref().unwrap();
    let vm = |name: &str| {
        let vms = view.vms.known().unwrap();
        vms.iter().find(|vm| vm.name == Fact::Known(name.to_owned())).unwrap().clone()
    };
    let pinned = vm("pinned");
    assert_eq!(pinned.power, Fact::Known(PowerState::On));
    assert_eq!(pinned.host.known(), Some(&record.host.moref));
    assert_eq!((&pinned.memory_mib, &pinned.reserved_mib), (&Fact::Known(32 << 10), &Fact::Known(16 << 10)));
    assert_eq!(pinned.firmware, Fact::Known(Firmware::Bios));
    assert_eq!(pinned.tools, Fact::Known(ToolsStatus::Running));
    assert_eq!(pinned.managed_by.known().unwrap().extension, "com.vmware.vcenter.wcp");
    assert_eq!(pinned.folder, Fact::Known("/Prod/DC1/vm/teams/a".to_owned()));
    let device = VmGpuDevice::Vgpu { name: "nvidia_h100l-47c".to_owned(), migrate: Fact::Known(true) };
    assert_eq!(pinned.gpus, Fact::Known(vec![device]));
    assert_eq!(pinned.plugin_parameters(), Fact::Known(vec![("enable_profiling", "1")]));
    assert_eq!(pinned.extra.known().unwrap()[VmView::MMIO_64BIT], "TRUE");
    assert!(!serde_json::to_string(&observed).unwrap().contains("userdata"), "what a guest was given is not kept");
    assert_ne!(pinned.bios_uuid, pinned.instance_uuid);
    assert_eq!(vm("off").managed_by, Fact::Absent);
    // The same by itself.
    assert_eq!(*fleet.vm(&pinned.moref).await.view.unwrap(), pinned);

    let cluster = observed.clusters[&record.host.cluster].known().unwrap();
    let drs = cluster.drs.known().unwrap();
    assert_eq!((&drs.enabled, &drs.level), (&Fact::Known(true), &Fact::Known(DrsLevel::PartiallyAutomated)));
    assert_eq!(drs.options["VgpuMMAutomationTimeoutSecs"], "-1");
    assert_eq!(
        drs.overrides.iter().map(|one| (&one.vm, &one.enabled)).collect::<Vec<_>>(),
        [(&pinned.moref, &Fact::Known(false))]
    );
    assert_eq!(cluster.ha_admission, Fact::Absent);
    assert_eq!(cluster.drs_faults, Fact::Known(Vec::new()));
    let unknown = serde_json::to_string(&observed).unwrap().matches("\"unknown\"").count();
    assert_eq!(unknown, 0, "{observed:#?}");
    fleet.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn why_a_closing_host_does_not_get_empty_is_read_from_its_cluster() {
    let lab = lab();
    let fleet = lab.connect().await;
    let observed = lab.facts(&fleet).await;
    let host = observed.host(&HostName::from("esx-01")).unwrap().host.clone();
    fleet.vcenter().enter_maintenance(&host.moref, NonZeroU32::new(3600).unwrap()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(120)).await;
    let cluster = fleet.cluster(&host).await;
    let faults = cluster.known().unwrap().drs_faults.known().unwrap();
    let [fault] = faults.as_slice() else { panic!("{faults:?}") };
    let vm = fleet.vm(fault.vm.known().unwrap()).await.view.unwrap();
    assert_eq!((&vm.name, &vm.power), (&Fact::Known("pinned".to_owned()), &Fact::Known(PowerState::On)));
    assert!(fault.reasons[0].said.contains("DrsDisabledOnVm"), "{fault:?}");
    fleet.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_vm_is_shut_down_and_started_on_its_host() {
    let lab = lab();
    let fleet = lab.connect().await;
    let observed = lab.facts(&fleet).await;
    let view = observed.host(&HostName::from("esx-01")).unwrap().view.as_ref().unwrap();
    let find = |name: &str| -> MoRef {
        let vms = view.vms.known().unwrap();
        vms.iter().find(|vm| vm.name == Fact::Known(name.to_owned())).unwrap().moref.clone()
    };
    let (on, off) = (find("pinned"), find("off"));
    let power = async |vm: &MoRef| fleet.vm(vm).await.view.unwrap().power;
    fleet.vcenter().shutdown_guest(&on).await.unwrap();
    assert_eq!(power(&on).await, Fact::Known(PowerState::On), "asked is not off");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(power(&on).await, Fact::Known(PowerState::Off));
    let host = observed.host(&HostName::from("esx-02")).unwrap().host.moref.clone();
    let task = fleet.vcenter().power_on(&off, Some(&host)).await.unwrap();
    fleet.vcenter().wait_task(&task, Duration::from_secs(60), |_| {}).await.unwrap();
    let vm = fleet.vm(&off).await.view.unwrap();
    assert_eq!((vm.power, vm.host), (Fact::Known(PowerState::On), Fact::Known(host)));
    let task = fleet.vcenter().power_off(&off).await.unwrap();
    fleet.vcenter().wait_task(&task, Duration::from_secs(60), |_| {}).await.unwrap();
    assert_eq!(power(&off).await, Fact::Known(PowerState::Off));
    fleet.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_service_of_a_host_is_started_and_stopped_and_read_each_time() {
    let lab = lab();
    let fleet = lab.connect().await;
    let observed = lab.facts(&fleet).await;
    let record = observed.host(&HostName::from("esx-01")).unwrap();
    let view = record.view.as_ref().unwrap();
    assert_eq!(view.lockdown, Fact::Known(Lockdown::Disabled));
    let system = view.service_system.known().unwrap();
    let runs = async || {
        let services = fleet.host(&record.host).await.view.unwrap().services;
        services.known().unwrap().iter().find(|service| service.key == "TSM-SSH").unwrap().running
    };
    assert!(!runs().await);
    fleet.vcenter().start_service(system, "TSM-SSH").await.unwrap();
    assert!(runs().await);
    fleet.vcenter().stop_service(system, "TSM-SSH").await.unwrap();
    assert!(!runs().await);
    let error = fleet.vcenter().stop_service(system, "TSM-SSH").await.unwrap_err();
    assert!(error.is_fault("InvalidState"), "{error:?}");
    fleet.close().await.unwrap();
}
