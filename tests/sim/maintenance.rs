//! Honesty rules 1 and 7 as far as they meet hosts without evacuation: maintenance mode.

use super::raw::{PASSTHROUGH, Raw, VGPU, pass, world_with};

const ONE_VM: &str = "          vms: [{name: one, host: esx-01, power: on, devices: [{vgpu: nvidia_h100l-94c}]}, {name: off, host: esx-01}, {name: vCLS-1, host: esx-01, power: on, vcls: true}]";

#[tokio::test(start_paused = true)]
async fn entering_is_a_running_task_and_not_maintenance_yet() {
    let world = world_with(PASSTHROUGH, "");
    let raw = Raw::login(&world).await;
    let task = raw.enter(0).await.ok().text("returnval");
    pass(5).await;
    assert_eq!(raw.state(&task).await, "running");
    assert_eq!(raw.value("runtime.inMaintenanceMode").await, "false");
    assert!(raw.esx(&["recentTask"]).await.body.contains(&task));
    pass(20).await;
    assert_eq!(raw.state(&task).await, "success");
    assert_eq!(raw.value("runtime.inMaintenanceMode").await, "true");
}

#[tokio::test(start_paused = true)]
async fn with_a_vm_powered_on_entering_never_ends_by_itself_and_has_no_error() {
    let world = world_with(VGPU, ONE_VM);
    let raw = Raw::login(&world).await;
    let task = raw.enter(0).await.ok().text("returnval");
    for _ in 0..40 {
        pass(1750).await;
        let info = raw.read("Task", &task, &["info.state", "info.progress", "info.error"]).await.ok().body;
        assert!(info.contains(">running<") && info.contains(">2<") && !info.contains("info.error"), "{info}");
    }
    assert_eq!(raw.value("runtime.inMaintenanceMode").await, "false");
    raw.method("CancelTask", "Task", &task, "").await.ok();
    assert_eq!(raw.state(&task).await, "error");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_of_the_call_ends_in_the_task_as_timedout() {
    let raw = Raw::login(&world_with(VGPU, ONE_VM)).await;
    let task = raw.enter(600).await.ok().text("returnval");
    pass(599).await;
    assert_eq!(raw.state(&task).await, "running");
    pass(2).await;
    let info = raw.read("Task", &task, &["info"]).await.ok().body;
    assert!(info.contains("<state>error</state>") && info.contains("xsi:type=\"Timedout\""), "{info}");
    assert_eq!(raw.value("runtime.inMaintenanceMode").await, "false");
}

#[tokio::test(start_paused = true)]
async fn the_host_closes_when_the_last_vm_goes_and_takes_no_new_one() {
    let rest = format!(
        "{ONE_VM}\n  actors: [{{who: dev, host: esx-01, after: 5m, does: {{powerOn: {{vm: off}}}}}}, {{who: owner, host: esx-01, after: 10m, does: {{powerOff: {{vm: one}}}}}}]"
    );
    let world = world_with(VGPU, &rest);
    let raw = Raw::login(&world).await;
    let task = raw.enter(0).await.ok().text("returnval");
    pass(605).await;
    assert_eq!(raw.state(&task).await, "success");
    let log = world.log();
    let tried = log.iter().find(|write| write.who == "dev").unwrap();
    assert_eq!((tried.call.as_str(), tried.effect), ("PowerOnVM_Task", false));
}

#[tokio::test(start_paused = true)]
async fn f41_entering_twice_is_invalid_state_and_a_doubled_start_is_task_in_progress() {
    let raw = Raw::login(&world_with(PASSTHROUGH, "")).await;
    let task = raw.enter(0).await.ok().text("returnval");
    let doubled = raw.enter(0).await;
    assert_eq!((doubled.fault(), doubled.text("task")), ("TaskInProgress".to_owned(), task));
    pass(30).await;
    assert_eq!(raw.enter(0).await.fault(), "InvalidState");
    assert_eq!(raw.exit().await.ok().status, 200);
    pass(30).await;
    assert_eq!(raw.value("runtime.inMaintenanceMode").await, "false");
    assert_eq!(raw.exit().await.fault(), "InvalidState");
}

#[tokio::test(start_paused = true)]
async fn a_person_takes_the_host_out_after_our_second_call() {
    let rest = "  actors: [{who: nightshift, host: esx-01, once: {method: UpdatePassthruConfig}, after: 1m, does: leaveMaintenance}]";
    let world = world_with(PASSTHROUGH, rest);
    let raw = Raw::login(&world).await;
    raw.close().await;
    pass(1500).await;
    assert_eq!(raw.value("runtime.inMaintenanceMode").await, "true");
    raw.passthru("<config><id>0000:17:00.0</id><passthruEnabled>false</passthruEnabled></config>").await.ok();
    pass(80).await;
    assert_eq!(raw.value("runtime.inMaintenanceMode").await, "false");
    let by = world.log().into_iter().find(|write| write.who == "nightshift").unwrap();
    assert_eq!((by.call.as_str(), by.object.as_str(), by.effect), ("ExitMaintenanceMode_Task", "esx-01", true));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_answer_can_do_nothing() {
    for (connection, fault) in [("notResponding", "HostNotReachable"), ("disconnected", "HostNotConnected")] {
        let hosts = format!("{}, connection: {connection}}}", PASSTHROUGH.trim_end_matches('}'));
        let hosts = hosts.replace("train}}]", "train}}}]");
        let raw = Raw::login(&world_with(&hosts, "")).await;
        assert_eq!(raw.value("runtime.connectionState").await, connection);
        assert_eq!(raw.enter(0).await.fault(), fault);
        assert_eq!(raw.reboot().await.fault(), fault);
        assert_eq!(raw.graphics("sharedDirect", "").await.fault(), fault);
        let entry = "<config><id>0000:17:00.0</id><passthruEnabled>false</passthruEnabled></config>";
        assert_eq!(raw.passthru(entry).await.fault(), fault);
    }
}

#[tokio::test(start_paused = true)]
async fn the_ha_agent_in_maintenance_is_a_reading() {
    for (reading, state) in [("runs", 1), ("unset", 0)] {
        let hosts = PASSTHROUGH.replace("names: esx-01, ", "names: esx-01, boot: {agent: 1m}, ");
        let world = world_with(&hosts, &format!("  readings: {{haInMaintenance: {reading}}}"));
        let raw = Raw::login(&world).await;
        assert_eq!(raw.value("runtime.dasHostState.state").await, "connectedToMaster");
        raw.close().await;
        let shown = raw.esx(&["runtime.dasHostState"]).await.body;
        assert_eq!(shown.matches("connectedToMaster").count(), state, "{reading}");
        raw.exit().await.ok();
        pass(15).await;
        let after = if reading == "runs" { "connectedToMaster" } else { "uninitialized" };
        assert_eq!(raw.value("runtime.dasHostState.state").await, after);
        pass(60).await;
        assert_eq!(raw.value("runtime.dasHostState.state").await, "connectedToMaster");
    }
}
