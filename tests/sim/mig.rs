//! MIG of a world's GPUs: switched at the shell, seen by vCenter as a reading says, used by VMs (§2.1).

use super::raw::{Raw, VGPU, pass, world_with};
use poolwright::sim::World;

const GPU: &str = "0000:17:00.0";
const A100: &str = "            - {names: esx-01, driver: {component: NVD-AIE-800, version: 580.95.02}, gpus: [{model: a100-pcie-40, mode: {vgpu: {size: same}}}]}";

/// A person who stops the monitor and switches MIG, a while after the start.
fn person(after: &str, on: u8) -> String {
    let does = |command: &str| {
        format!("{{who: person, host: esx-01, after: {after}, does: {{shell: {{command: {command}}}}}}}")
    };
    format!("  actors: [{}, {}]", does("nvdGpuMgmtDaemon stop"), does(&format!("\"nvidia-smi -i {GPU} -mig {on}\"")))
}

async fn mode(raw: &Raw) -> String {
    raw.esx(&["config.graphicsInfo"]).await.text("vgpuMode")
}

async fn lists(raw: &Raw, kind: &str) -> bool {
    raw.esx(&["config.sharedPassthruGpuTypes"]).await.body.contains(&format!(">{kind}<"))
}

/// Current and pending, as the world keeps it.
fn mig(world: &World) -> (bool, bool) {
    let snapshot = world.snapshot();
    let host = snapshot["hosts"].as_object().unwrap().values().next().unwrap();
    let gpu = host["devices"].as_array().unwrap().iter().find(|device| device["address"] == GPU).unwrap();
    (gpu["graphics"]["mig"].as_bool().unwrap(), gpu["graphics"]["migPending"].as_bool().unwrap())
}

#[tokio::test(start_paused = true)]
async fn hopper_switches_at_once_vcenter_sees_it_by_the_reading_and_a_boot_loses_it() {
    for (reading, seen) in [("atOnce", "multiInstanceGpu"), ("afterRefresh", "sameSize")] {
        let world = world_with(VGPU, &format!("  readings: {{migVisible: {reading}}}\n{}", person("1m", 1)));
        let raw = Raw::login(&world).await;
        assert_eq!((mode(&raw).await.as_str(), mig(&world)), ("sameSize", (false, false)));
        raw.close().await;
        pass(60).await;
        assert_eq!((mode(&raw).await.as_str(), mig(&world)), (seen, (true, true)), "{reading}");
        assert_eq!(lists(&raw, "nvidia_h100l-3-47c").await, reading == "atOnce");
        let manager = raw.value("configManager.graphicsManager").await;
        raw.method("RefreshGraphicsManager", "HostGraphicsManager", &manager, "").await.ok();
        assert_eq!(mode(&raw).await, "multiInstanceGpu");
        assert!(lists(&raw, "nvidia_h100l-3-47c").await);
        raw.boot().await;
        assert_eq!((mode(&raw).await.as_str(), mig(&world)), ("sameSize", (false, false)), "F29");
        assert!(!lists(&raw, "nvidia_h100l-3-47c").await);
    }
}

#[tokio::test(start_paused = true)]
async fn ampere_waits_for_the_boot_and_keeps_it_from_then_on() {
    let world = world_with(A100, &person("1m", 1));
    let raw = Raw::login(&world).await;
    raw.close().await;
    pass(60).await;
    assert_eq!((mode(&raw).await.as_str(), mig(&world)), ("sameSize", (false, true)));
    for _ in 0..2 {
        raw.boot().await;
        assert_eq!((mode(&raw).await.as_str(), mig(&world)), ("multiInstanceGpu", (true, true)));
    }
    assert!(lists(&raw, "grid_a100-3-20c").await);
}

#[tokio::test(start_paused = true)]
async fn f30_a_bit_that_was_left_behind_passthrough_shows_when_the_driver_owns_the_gpu() {
    let ampere = A100.replace("{vgpu: {size: same}}", "{passthrough: {}}, migLeft: true");
    let hopper = ampere.replace("a100-pcie-40", "h100-nvl-94");
    for (hosts, after) in [(ampere, "multiInstanceGpu"), (hopper, "sameSize")] {
        let raw = Raw::login(&world_with(&hosts, "")).await;
        assert_eq!(mode(&raw).await, "none");
        raw.close().await;
        raw.passthru(&format!("<config><id>{GPU}</id><passthruEnabled>false</passthruEnabled></config>")).await.ok();
        raw.graphics("sharedDirect", "").await.ok();
        raw.boot().await;
        assert_eq!(mode(&raw).await, after);
    }
}

#[tokio::test(start_paused = true)]
async fn f28_a_gpu_that_a_vm_uses_stays_pending_and_a_gpu_instance_keeps_mig_on() {
    let vm =
        |kind: &str| format!("          vms: [{{name: one, host: esx-01, power: on, devices: [{{vgpu: {kind}}}]}}]");
    let mig_mode = VGPU.replace("{vgpu: {size: same}}", "{migVgpu: {}}");
    for (hosts, kind, on) in [(VGPU, "nvidia_h100l-94c", 1), (mig_mode.as_str(), "nvidia_h100l-1-12c", 0)] {
        let world = world_with(hosts, &format!("{}\n{}", vm(kind), person("1m", on)));
        let raw = Raw::login(&world).await;
        let before = mode(&raw).await;
        pass(61).await;
        assert_eq!(mode(&raw).await, before);
        assert_eq!(mig(&world), (on == 0, on == 1));
    }
}

#[tokio::test(start_paused = true)]
async fn f29_a_vm_with_mig_powers_on_once_it_is_switched_and_not_after_a_boot() {
    let vm = "          vms: [{name: one, host: esx-01, devices: [{vgpu: nvidia_h100l-3-47c}]}]";
    let raw = Raw::login(&world_with(VGPU, &format!("{vm}\n{}", person("5m", 1)))).await;
    assert_eq!(raw.vm_task("PowerOnVM_Task", "one", "").await, "InsufficientGraphicsResourcesFault");
    pass(200).await;
    assert_eq!(raw.vm_task("PowerOnVM_Task", "one", "").await, "success", "whatever vCenter shows of it");
    assert_eq!(raw.vm_task("PowerOffVM_Task", "one", "").await, "success");
    raw.close().await;
    raw.boot().await;
    raw.exit().await.ok();
    pass(30).await;
    assert_eq!(raw.vm_task("PowerOnVM_Task", "one", "").await, "InsufficientGraphicsResourcesFault");
}
