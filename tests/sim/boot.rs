//! Honesty rule 4: a host boots in stages, with a tail.

use super::raw::{Raw, pass, world_with};

fn host(boot: &str, mode: &str) -> String {
    format!(
        "            - {{names: esx-01, driver: {{component: NVD-AIE-800, version: 580.95.02}}, boot: {{{boot}}}, gpus: [{{model: h100-nvl-94, count: 2, mode: {mode}}}]}}"
    )
}

const LABELLED: &str = "{passthrough: {label: train}}";

#[tokio::test(start_paused = true)]
async fn a_reboot_needs_maintenance_mode_unless_forced() {
    let raw = Raw::login(&world_with(&host("", LABELLED), "")).await;
    assert_eq!(raw.reboot().await.fault(), "InvalidState");
    raw.host_method("RebootHost_Task", "<force>true</force>").await.ok();
}

#[tokio::test(start_paused = true)]
async fn the_task_ends_when_the_reboot_begins_and_the_host_comes_back_in_stages() {
    let boot =
        "shutdown: 10s, down: 100s, disconnected: 20s, flaps: 1, flap: 10s, stale: 60s, storage: 30s, agent: 40s";
    let runs = "  readings: {haInMaintenance: runs}";
    let raw = Raw::login(&world_with(&host(boot, LABELLED), runs)).await;
    raw.close().await;
    raw.passthru("<config><id>0000:17:00.0</id><passthruEnabled>false</passthruEnabled></config>").await.ok();
    assert!(raw.value("runtime.bootTime").await.starts_with("2026-11-18T"));
    let task = raw.reboot().await.ok().text("returnval");
    pass(11).await;
    assert_eq!(raw.state(&task).await, "success");
    let mut seen = Vec::new();
    for second in 11..220 {
        let now = raw
            .esx(&[
                "runtime.connectionState",
                "config.pciPassthruInfo",
                "datastore",
                "runtime.dasHostState.state",
                "runtime.bootTime",
                "runtime.inMaintenanceMode",
            ])
            .await
            .body;
        let has = |text: &str| now.contains(text);
        let connection = ["notResponding", "disconnected", "connected"]
            .into_iter()
            .find(|state| has(&format!(">{state}<")))
            .unwrap();
        let fresh = now.matches("<passthruActive>true</passthruActive>").count() == 1;
        let stage = (connection, fresh, has("type=\"Datastore\""), has(">connectedToMaster<"), has("2026-11-30T"));
        assert!(has(">true<"), "it stays in maintenance");
        if seen.last().is_none_or(|(_, last)| *last != stage) {
            seen.push((second, stage));
        }
        pass(1).await;
    }
    assert_eq!(
        seen,
        [
            (11, ("notResponding", false, false, false, false)),
            (90, ("disconnected", false, false, false, false)),
            (110, ("connected", false, false, false, true)),
            (120, ("notResponding", false, false, false, true)),
            (130, ("connected", false, false, false, true)),
            (160, ("connected", false, true, false, true)),
            (170, ("connected", false, true, true, true)),
            (190, ("connected", true, true, true, true)),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn boot_time_jitters_by_less_than_a_second_and_moves_with_a_boot() {
    let raw = Raw::login(&world_with(&host("", LABELLED), "")).await;
    let read = async || raw.value("runtime.bootTime").await.parse::<jiff::Timestamp>().unwrap();
    let first = read().await;
    let mut differ = 0;
    for _ in 0..10 {
        pass(1).await;
        let drift = read().await.duration_since(first).abs();
        assert!(drift < jiff::SignedDuration::from_secs(1));
        differ += u32::from(!drift.is_zero());
    }
    assert!(differ > 0, "it never drifts");
    raw.close().await;
    raw.boot().await;
    assert!(read().await.duration_since(first) > jiff::SignedDuration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn a_gpu_may_be_gone_after_a_boot_and_a_host_may_never_return() {
    let raw = Raw::login(&world_with(&host("loseGpus: [\"0000:1f:00.0\"]", LABELLED), "")).await;
    assert_eq!(raw.esx(&["hardware.pciDevice"]).await.body.matches("NVIDIA H100 NVL").count(), 2);
    raw.close().await;
    raw.boot().await;
    assert_eq!(raw.esx(&["hardware.pciDevice"]).await.body.matches("NVIDIA H100 NVL").count(), 1);

    let raw = Raw::login(&world_with(&host("returns: false", LABELLED), "")).await;
    raw.close().await;
    raw.reboot().await.ok();
    pass(24 * 60).await;
    assert_eq!(raw.value("runtime.connectionState").await, "notResponding");
    assert_eq!(raw.exit().await.fault(), "HostNotReachable");
}

#[tokio::test(start_paused = true)]
async fn f29_mig_of_hopper_is_lost_at_boot_and_that_of_ampere_stays() {
    for (model, mode) in [("h100-nvl-94", "sameSize"), ("a100-pcie-80", "multiInstanceGpu")] {
        let host = host("", "{migVgpu: {}}").replace("h100-nvl-94", model);
        let raw = Raw::login(&world_with(&host, "")).await;
        assert_eq!(raw.esx(&["config.graphicsInfo"]).await.body.matches("multiInstanceGpu").count(), 2);
        raw.close().await;
        raw.boot().await;
        assert_eq!(raw.esx(&["config.graphicsInfo"]).await.body.matches(mode).count(), 2, "{model}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_disconnected_host_is_reconnected_and_a_dead_one_is_not() {
    let raw = Raw::login(&world_with(&host("shutdown: 10s, down: 1h, disconnected: 50m", LABELLED), "")).await;
    raw.close().await;
    raw.reboot().await.ok();
    pass(60).await;
    let task = raw.host_method("ReconnectHost_Task", "").await.ok().text("returnval");
    pass(10).await;
    assert_eq!(raw.state(&task).await, "error");
    pass(15 * 60).await;
    assert_eq!(raw.value("runtime.connectionState").await, "disconnected");
    let task = raw.host_method("ReconnectHost_Task", "").await.ok().text("returnval");
    pass(10).await;
    assert_eq!(raw.state(&task).await, "success");
    assert_eq!(raw.value("runtime.connectionState").await, "connected");
}
