//! pyVmomi, VMware's own client, uses the simulator on a real port: what it can do, any client can.
//!
//! `tests/run` installs it under `target/peers/pyvmomi`.

use std::path::PathBuf;

use poolwright::sim::{Served, World, serve};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::peer;

/// How many times faster the world runs: a boot of four minutes takes two seconds.
const SPEED: u32 = 120;

const WORLD: &str = r#"
apiVersion: poolwright/v1
kind: World
metadata: {name: peers}
spec:
  readings: {whilePassthrough: ignored, rebind: never}
  vcenter: {address: vc.lab, users: [{name: pw@vsphere.local, password: lab}]}
  datacenters:
    - path: /Prod/EU/DC1
      clusters:
        - name: gpu-a
          hosts:
            - names: esx-01
              driver: {component: NVD-AIE-800, version: 580.95.02}
              boot: {flaps: 1, stale: 30s}
              gpus: [{model: h100-nvl-94, count: 2, numa: [0, 1], mode: {passthrough: {label: train}}}]
            - names: esx-02
              driver: {component: NVD-AIE-800, version: 580.95.02}
              gpus: [{model: a100-pcie-40, count: 1, virtualFunctions: 4, mode: {vgpu: {size: same}}}]
          vms:
            - name: one
              host: esx-02
              power: on
              devices: [{vgpu: grid_a100-40c}]
            - name: two
              host: esx-02
              devices: [{vgpu: grid_a100-40c}, {dynamicDirectPath: train}]
"#;

struct Peer {
    python: PathBuf,
    served: Served,
    world: World,
    dir: tempfile::TempDir,
}

impl Peer {
    async fn start() -> Option<Self> {
        Self::of(WORLD).await
    }

    async fn of(document: &str) -> Option<Self> {
        let python = peer("pyvmomi/bin/python")?;
        let world = World::parse("peers", document.as_bytes()).unwrap();
        world.set_speed(SPEED);
        let served = serve(world.clone(), "127.0.0.1:0".parse().unwrap()).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ca.pem"), &served.certificate).unwrap();
        Some(Self { python, served, world, dir })
    }

    async fn run(&self, arguments: &[&str]) -> Value {
        let output = Command::new(&self.python)
            .arg("tests/peers/pyvmomi/client.py")
            .arg(self.served.addr.port().to_string())
            .arg(self.dir.path().join("ca.pem"))
            .args(arguments)
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

const A: &str = "0000:17:00.0";
const B: &str = "0000:97:00.0";

#[tokio::test]
async fn pyvmomi_logs_in_walks_the_inventory_and_reads_graphics_and_pci_state() {
    let Some(peer) = Peer::start().await else { return };
    let seen = peer.run(&["walk"]).await;
    assert_eq!(
        (&seen["version"], &seen["user"], &seen["pages"]),
        (&json!("8.0.3"), &json!("VSPHERE.LOCAL\\pw"), &json!(2))
    );
    let paths = seen["paths"].as_array().unwrap();
    assert!(paths.contains(&json!("/Datacenters/Prod/EU/DC1/host/gpu-a/esx-02")), "{paths:?}");
    assert!(paths.contains(&json!("/Datacenters/Prod/EU/DC1/vm/one")));
    let one = &seen["hosts"]["esx-01"];
    assert_eq!(one["nvidia"], json!([A, B]));
    assert_eq!(one["gpus"][A], json!([null, "direct", "none", true, true]));
    assert_eq!((&one["sriov"], &one["numa"]), (&json!(2), &json!([0, 1])));
    assert!(one["intel"].as_u64().unwrap() > 0, "signed ids");
    let two = &seen["hosts"]["esx-02"];
    assert_eq!(two["nvidia"].as_array().unwrap().len(), 5, "a GPU and its virtual functions");
    assert_eq!(two["gpus"][A], json!(["sharedDirect", "sharedDirect", "sameSize", false, false]));
    let backings = &seen["vms"]["two"];
    assert!(backings[0].as_str().unwrap().ends_with("VmiopBackingInfo"), "{backings}");
    assert!(backings[1].as_str().unwrap().ends_with("DynamicBackingInfo"), "{backings}");
    assert!(peer.world.log().is_empty(), "nothing was written");
}

#[tokio::test]
async fn pyvmomi_alone_takes_a_host_from_passthrough_to_vgpu_while_another_client_reads() {
    let Some(peer) = Peer::start().await else { return };
    let (converted, walked) = tokio::join!(peer.run(&["convert", "esx-01"]), peer.run(&["walk"]));
    assert_eq!(walked["hosts"].as_object().unwrap().len(), 2);
    let step =
        |name: &str| converted["steps"].as_array().unwrap().iter().find(|step| step[0] == name).unwrap()[1][A].clone();
    assert_eq!(step("found"), json!([null, "direct", "none", true, true]));
    assert_eq!(step("configured"), json!([null, "direct", "none", false, true]), "stored, ignored, pending");
    assert_eq!(step("rebooted"), json!([null, "sharedDirect", "sameSize", false, false]), "by the host default");
    assert_eq!(step("sent again"), json!(["sharedDirect", "sharedDirect", "mixedSize", false, false]));
    assert!(converted["types"].as_array().unwrap().contains(&json!("nvidia_h100l-47c")));
    assert_eq!(converted["field"], "pyVmomi");
    let tally = peer.world.tally();
    assert_eq!((tally.hosts["esx-01"].boots, tally.hosts["esx-01"].in_maintenance), (1, false));
    assert!(peer.world.log().iter().all(|write| write.effect && write.object != "esx-02"));
}

#[tokio::test]
async fn pyvmomi_starts_the_ssh_service_of_a_host_and_stops_it() {
    let Some(peer) = Peer::start().await else { return };
    let seen = peer.run(&["services", "esx-02"]).await;
    assert_eq!(
        seen["steps"],
        json!([["SSH", false, "off"], ["SSH", true, "off"], ["SSH", true, "on"], ["SSH", false, "on"]])
    );
    assert_eq!(seen["refused"], json!(["vim.fault.InvalidState", "vim.fault.NotFound"]));
    assert_eq!(seen["lockdown"], "lockdownDisabled");
}

#[tokio::test]
async fn pyvmomi_reads_faults_by_their_types() {
    let Some(peer) = Peer::start().await else { return };
    let seen = peer.run(&["faults", "esx-01"]).await;
    let expected = json!([
        ["exit", "vim.fault.InvalidState"],
        ["reboot", "vim.fault.InvalidState"],
        ["option", "vim.fault.InvalidName"],
        ["property", "vmodl.query.InvalidProperty"],
        ["login", "vim.fault.InvalidLogin"],
        ["in use", "vim.fault.PlatformConfigFault"],
        ["task", "vmodl.fault.RequestCanceled"],
    ]);
    assert_eq!(seen["faults"], expected);
}

/// One host with a GPU that is shared and one that is passed through, and VMs for both.
const VMS: &str = r#"
apiVersion: poolwright/v1
kind: World
metadata: {name: peers}
spec:
  vcenter: {address: vc.lab, users: [{name: pw@vsphere.local, password: lab}], options: {vgpu.hotmigrate.enabled: "true"}}
  datacenters:
    - path: /DC1
      clusters:
        - name: gpu-a
          drs: {level: fullyAutomated, options: {VgpuMMAutomationTimeoutSecs: "-1"}}
          hosts:
            - names: "esx-[01-02]"
              driver: {component: NVD-AIE-800, version: 580.95.02}
              gpus:
                - {model: h100-nvl-94, addresses: ["0000:17:00.0"], mode: {vgpu: {size: same}}}
                - {model: h100-nvl-94, addresses: ["0000:97:00.0"], mode: {passthrough: {label: train}}}
          vms:
            - {name: pinned, host: esx-01, migrate: false, devices: [{vgpu: nvidia_h100l-47c}]}
            - name: passed
              host: esx-01
              extra: {pciPassthru.use64bitMMIO: "TRUE"}
              devices: [{dynamicDirectPath: train}]
            - {name: late, host: esx-01, devices: [{vgpu: nvidia_h100l-47c}]}
"#;

#[tokio::test]
async fn pyvmomi_powers_vms_on_pinned_and_sees_a_closing_host_wait_for_them_and_take_no_other() {
    let Some(peer) = Peer::of(VMS).await else { return };
    let seen = peer.run(&["vms", "esx-01"]).await;
    assert_eq!(seen["device"], json!(["nvidia_h100l-47c", false, "PCI device 0"]));
    assert_eq!(seen["assigned"], json!([null, B]));
    assert_eq!(seen["users"], json!([["pinned"], ["passed"]]));
    assert!(seen["profiles"].as_u64().unwrap() > 5, "{seen}");
    assert_eq!(seen["devices"], json!([[0x10de, true]]));
    assert_eq!(seen["drs"], json!([true, "fullyAutomated", { "VgpuMMAutomationTimeoutSecs": "-1" }]));
    assert_eq!(seen["memory"], json!([65_536, 65_536, "TRUE"]));
    assert_eq!(
        seen["stay"],
        json!({ "pinned": ["vim.fault.MigrationFeatureNotSupported"], "passed": ["vim.fault.DeviceNotSupported"] })
    );
    assert_eq!(seen["closing"][0][0], "vim.fault.InvalidState", "{seen}");
    assert_eq!(seen["closing"][1], false);
    assert_eq!(seen["closed"], json!([true, ["poweredOff", "poweredOff"], []]));
    let tally = peer.world.tally();
    assert_eq!((tally.vms["pinned"].stops, tally.vms["late"].starts), (1, 0));
}

/// Two devices in one call have keys of their own, and get units that are free.
#[tokio::test]
async fn a11_pyvmomi_gives_a_vm_two_new_gpu_devices_in_one_reconfiguration() {
    let Some(peer) = Peer::of(VMS).await else { return };
    let seen = peer.run(&["refit", "esx-01"]).await;
    assert_eq!(seen["before"], json!([[13_000, 100, 18, "nvidia_h100l-47c"]]));
    assert_eq!(seen["doubled"][0], "vim.fault.InvalidDeviceSpec", "{seen}");
    assert_eq!(seen["gone"][0], "vim.fault.InvalidDeviceSpec", "{seen}");
    assert_eq!(seen["unchanged"], true);
    let after = [[json!(13_000), json!(100), json!(18)], [json!(13_001), json!(100), json!(19)]];
    let after = after.map(|[key, controller, unit]| json!([key, controller, unit, "nvidia_h100l-23c"]));
    assert_eq!(seen["after"], json!(after));
    assert_eq!(seen["stale"][0], "vim.fault.ConcurrentAccess", "{seen}");
    assert_eq!(seen["runs"], json!([["pinned"], []]));
    assert_eq!(seen["powered on"][0], "vim.fault.InvalidPowerState", "{seen}");
}
