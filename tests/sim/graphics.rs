//! Honesty rule 5: void configuration calls store; what is active is another matter.

use super::raw::{PASSTHROUGH, Raw, VGPU, world_with};

const A: &str = "0000:17:00.0";
const B: &str = "0000:1f:00.0";

fn device(address: &str, kind: &str, mode: Option<&str>) -> String {
    let mode = mode.map(|mode| format!("<vgpuMode>{mode}</vgpuMode>")).unwrap_or_default();
    format!("<deviceType><deviceId>{address}</deviceId><graphicsType>{kind}</graphicsType>{mode}</deviceType>")
}

fn passthru(address: &str, enabled: bool, label: Option<&str>) -> String {
    let label = label.map(|label| format!("<hardwareLabel>{label}</hardwareLabel>")).unwrap_or_default();
    format!("<config><id>{address}</id><passthruEnabled>{enabled}</passthruEnabled>{label}</config>")
}

/// Configured type, active type and active mode of a GPU.
async fn gpu(raw: &Raw, address: &str) -> (String, String, String) {
    let answer = raw.esx(&["config.graphicsConfig", "config.graphicsInfo"]).await.body;
    let field = |part: &str, key: &str, name: &str| {
        let chunk = answer.split(part).find(|chunk| chunk.contains(&format!("<{key}>{address}</{key}>")));
        let chunk = chunk.unwrap_or_default();
        super::raw::element(chunk, name).unwrap_or_else(|| "-".into())
    };
    (
        field("<deviceType>", "deviceId", "graphicsType"),
        field("<HostGraphicsInfo", "pciId", "graphicsType"),
        field("<HostGraphicsInfo", "pciId", "vgpuMode"),
    )
}

/// Whether passthrough of a device is enabled, and active.
async fn passed(raw: &Raw, address: &str) -> (bool, bool) {
    let answer = raw.esx(&["config.pciPassthruInfo"]).await.body;
    let chunk = answer
        .split("</HostPciPassthruInfo>")
        .find(|chunk| chunk.contains(&format!("<id>{address}</id>")))
        .unwrap()
        .to_owned();
    let flag = |name: &str| super::raw::element(&chunk, name).unwrap() == "true";
    (flag("passthruEnabled"), flag("passthruActive"))
}

fn is(configured: &str, active: &str, mode: &str) -> (String, String, String) {
    (configured.into(), active.into(), mode.into())
}

async fn world_of(hosts: &str, readings: &str) -> Raw {
    let raw = Raw::login(&world_with(hosts, &format!("  readings: {{{readings}}}"))).await;
    raw.close().await;
    raw
}

#[tokio::test(start_paused = true)]
async fn passthrough_enabled_is_not_active_before_a_reboot() {
    let raw = world_of(VGPU, "").await;
    raw.passthru(&passthru(A, true, Some("train"))).await.ok();
    assert_eq!(passed(&raw, A).await, (true, false));
    assert_eq!(passed(&raw, B).await, (false, false), "a device that is not named is untouched");
    assert_eq!(gpu(&raw, A).await.1, "sharedDirect");
    raw.boot().await;
    assert_eq!(passed(&raw, A).await, (true, true));
    assert_eq!(gpu(&raw, A).await, is("sharedDirect", "direct", "none"));
    assert_eq!(gpu(&raw, B).await.1, "sharedDirect");
}

#[tokio::test(start_paused = true)]
async fn a_label_needs_no_reboot() {
    let raw = world_of(PASSTHROUGH, "").await;
    raw.passthru(&passthru(A, true, Some("infer"))).await.ok();
    let info = raw.esx(&["config.pciPassthruInfo"]).await.body;
    assert!(
        info.contains("<hardwareLabel>infer</hardwareLabel>") && info.contains("<hardwareLabel>train</hardwareLabel>")
    );
    assert_eq!(passed(&raw, A).await, (true, true));
    raw.passthru(&passthru(A, true, Some(""))).await.ok();
    assert!(raw.esx(&["config.pciPassthruInfo"]).await.body.contains("<hardwareLabel></hardwareLabel>"));
}

#[tokio::test(start_paused = true)]
async fn a_size_mode_is_immediate_and_a_type_is_not() {
    let raw = world_of(VGPU, "").await;
    raw.graphics("sharedDirect", &(device(A, "sharedDirect", Some("mixedSize")) + &device(B, "shared", None)))
        .await
        .ok();
    assert_eq!(gpu(&raw, A).await, is("sharedDirect", "sharedDirect", "mixedSize"));
    assert_eq!(gpu(&raw, B).await, is("shared", "sharedDirect", "sameSize"));
    raw.boot().await;
    assert_eq!(gpu(&raw, A).await, is("sharedDirect", "sharedDirect", "mixedSize"));
    assert_eq!(gpu(&raw, B).await, is("shared", "shared", "none"));
    // Unset leaves the mode as it is.
    raw.graphics("sharedDirect", &device(A, "sharedDirect", None)).await.ok();
    assert_eq!(gpu(&raw, A).await.2, "mixedSize");
}

#[tokio::test(start_paused = true)]
async fn device_entries_that_are_not_sent_stay_or_go_by_the_reading() {
    for (reading, left) in [("merge", "sharedDirect"), ("replace", "-")] {
        let raw = world_of(VGPU, &format!("deviceType: {reading}")).await;
        raw.graphics("shared", &device(A, "sharedDirect", Some("mixedSize"))).await.ok();
        assert_eq!(gpu(&raw, B).await.0, left);
        assert_eq!(gpu(&raw, B).await.1, "sharedDirect", "active state does not move");
        raw.boot().await;
        let after = if reading == "merge" { "sharedDirect" } else { "shared" };
        assert_eq!(gpu(&raw, B).await.1, after);
    }
}

#[tokio::test(start_paused = true)]
async fn an_entry_for_a_gpu_in_passthrough_is_ignored_stored_or_refused_by_the_reading() {
    for (reading, configured, active) in [("ignored", "-", "shared"), ("stored", "sharedDirect", "sharedDirect")] {
        let raw = world_of(PASSTHROUGH, &format!("whilePassthrough: {reading}")).await;
        raw.passthru(&passthru(A, false, Some(""))).await.ok();
        raw.graphics("shared", &device(A, "sharedDirect", Some("mixedSize"))).await.ok();
        assert_eq!(gpu(&raw, A).await, is(configured, "direct", "none"), "{reading}");
        raw.boot().await;
        assert_eq!(gpu(&raw, A).await.1, active, "{reading}");
        assert_eq!(gpu(&raw, A).await.2, if reading == "stored" { "mixedSize" } else { "none" });
    }
    let raw = world_of(PASSTHROUGH, "whilePassthrough: refused").await;
    let refused = raw.graphics("sharedDirect", &device(A, "sharedDirect", None)).await;
    assert_eq!(refused.fault(), "PlatformConfigFault");
    assert!(refused.body.contains("<HostConfigFaultFault xmlns=\"urn:vim25\" xsi:type=\"PlatformConfigFault\">"));
    let stored = raw.value("config.graphicsConfig").await;
    assert!(stored.contains("<hostDefaultGraphicsType>shared</hostDefaultGraphicsType>"), "nothing of it: {stored}");
}

#[tokio::test(start_paused = true)]
async fn rebinding_without_a_reboot_is_a_reading_and_needs_the_capability() {
    let cases = [
        ("rebind: never", "", (false, true)),
        ("rebind: idle", "", (false, false)),
        ("rebind: idle", "rebindSupported: false, ", (false, true)),
    ];
    for (reading, capability, expected) in cases {
        let hosts = PASSTHROUGH.replace("names: esx-01, ", &format!("names: esx-01, {capability}"));
        let raw = world_of(&hosts, reading).await;
        raw.passthru(&passthru(A, false, None)).await.ok();
        assert_eq!(passed(&raw, A).await, expected, "{reading} {capability}");
    }
    let raw = world_of(PASSTHROUGH, "rebind: idle").await;
    raw.passthru(&format!(
        "<config><id>{A}</id><passthruEnabled>false</passthruEnabled><applyNow>false</applyNow></config>"
    ))
    .await
    .ok();
    assert_eq!(passed(&raw, A).await, (false, true), "the caller wants it later");
    let raw = world_of(VGPU, "rebind: idle").await;
    raw.passthru(&passthru(A, true, None)).await.ok();
    assert_eq!(passed(&raw, A).await, (true, true));
    assert_eq!(gpu(&raw, A).await.1, "direct");
}

#[tokio::test(start_paused = true)]
async fn whether_the_host_default_is_needed_is_a_reading() {
    for (reading, active) in [("no", "sharedDirect"), ("yes", "shared")] {
        let raw = world_of(VGPU, &format!("hostDefaultNeeded: {reading}")).await;
        raw.graphics("shared", "").await.ok();
        raw.boot().await;
        assert_eq!(gpu(&raw, A).await, is("sharedDirect", active, if reading == "no" { "sameSize" } else { "none" }));
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_driver_a_gpu_out_of_passthrough_is_basic() {
    let hosts = PASSTHROUGH.replace("driver: {component: NVD-AIE-800, version: 580.95.02}, ", "");
    let raw = world_of(&hosts, "").await;
    raw.passthru(&(passthru(A, false, None) + &passthru(B, false, None))).await.ok();
    raw.boot().await;
    assert_eq!(gpu(&raw, A).await, is("-", "basic", "none"));
}

#[tokio::test(start_paused = true)]
async fn f7_functions_of_one_device_move_together_or_not_at_all() {
    let hosts = VGPU.replace(
        "gpus:",
        "devices: [{address: \"0000:17:00.1\", vendor: 10de, device: 22b6, class: \"0403\", name: HDA}], gpus:",
    );
    let raw = world_of(&hosts, "").await;
    raw.passthru(&passthru(A, true, None)).await.ok();
    raw.boot().await;
    assert_eq!(passed(&raw, A).await, (true, false), "its audio function stayed with the host");
    raw.passthru(&passthru("0000:17:00.1", true, None)).await.ok();
    raw.boot().await;
    assert_eq!(passed(&raw, A).await, (true, true));
}

#[tokio::test(start_paused = true)]
async fn a_gpu_that_a_vm_uses_is_not_changed() {
    let vms = "          vms: [{name: one, host: esx-01, power: on, devices: [{vgpu: nvidia_h100l-94c}]}]";
    let raw = Raw::login(&world_with(VGPU, vms)).await;
    assert!(raw.esx(&["config.graphicsInfo"]).await.body.contains("<vm type=\"VirtualMachine\">vm-"));
    assert_eq!(raw.passthru(&passthru(A, true, None)).await.fault(), "PlatformConfigFault");
    assert_eq!(
        raw.graphics("sharedDirect", &device(A, "sharedDirect", Some("mixedSize"))).await.fault(),
        "PlatformConfigFault"
    );
    raw.graphics("sharedDirect", &device(B, "sharedDirect", Some("mixedSize"))).await.ok();
}

#[tokio::test(start_paused = true)]
async fn what_makes_no_sense_is_refused() {
    let raw = world_of(VGPU, "").await;
    for (default, devices) in [
        ("direct", String::new()),
        ("sharedDirect", device(A, "direct", None)),
        ("sharedDirect", device(A, "sharedDirect", Some("multiInstanceGpu"))),
        ("sharedDirect", device("0000:00:00.0", "sharedDirect", None)),
        ("sharedDirect", device("0000:ff:00.0", "sharedDirect", None)),
    ] {
        assert_eq!(raw.graphics(default, &devices).await.fault(), "InvalidArgument", "{default} {devices}");
    }
    assert_eq!(raw.passthru(&passthru("0000:ff:00.0", true, None)).await.fault(), "InvalidArgument");
    assert_eq!(raw.passthru(&passthru("0000:00:00.0", true, None)).await.fault(), "PlatformConfigFault");
    let hosts = "            - {names: esx-01, driver: {component: NVD-AIE-800, version: 580.95.02}, gpus: [{model: t4, mode: {vgpu: {size: same}}}]}";
    let turing = world_of(hosts, "").await;
    assert_eq!(
        turing.graphics("sharedDirect", &device(A, "sharedDirect", Some("mixedSize"))).await.fault(),
        "InvalidArgument"
    );
}

#[tokio::test(start_paused = true)]
async fn a07_a_world_can_begin_with_a_change_that_waits_for_a_reboot() {
    let hosts = VGPU.replace("mode:", "pending: {passthrough: {label: x}}, mode:");
    let raw = world_of(&hosts, "").await;
    assert_eq!(passed(&raw, A).await, (true, false));
    raw.boot().await;
    assert_eq!(passed(&raw, A).await, (true, true));
}
