//! Counted faults: each kind, on the call it names and on no other.

use std::time::Duration;

use poolwright::base::net::NetError;

use super::raw::{PASSTHROUGH, Raw, pass, world_with};

async fn faulty(rule: &str) -> (poolwright::sim::World, Raw) {
    let world = world_with(PASSTHROUGH, &format!("  faults: [{rule}]"));
    let raw = Raw::login(&world).await;
    (world, raw)
}

async fn try_enter(raw: &Raw) -> Result<(), NetError> {
    let host = raw.host("esx-01").await;
    let body = format!(
        "<EnterMaintenanceMode_Task xmlns=\"urn:vim25\"><_this type=\"HostSystem\">{host}</_this><timeout>0</timeout></EnterMaintenanceMode_Task>"
    );
    raw.try_call(&body).await.map(|answer| drop(answer.ok()))
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_has_an_effect_or_not_and_the_client_cannot_tell() {
    for (then, closed) in [("dropBefore", "false"), ("dropAfter", "true")] {
        let (world, raw) =
            faulty(&format!("{{method: EnterMaintenanceMode_Task, object: esx-01, then: {then}}}")).await;
        assert!(matches!(try_enter(&raw).await, Err(NetError::Broken { .. })));
        pass(60).await;
        assert_eq!(raw.value("runtime.inMaintenanceMode").await, closed, "{then}");
        assert_eq!(world.log()[0].effect, closed == "true");
    }
}

#[tokio::test(start_paused = true)]
async fn rules_are_counted() {
    let (_, raw) = faulty("{method: CurrentTime, onCall: 2, times: 2, then: {fault: SystemError}}").await;
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(raw.method("CurrentTime", "ServiceInstance", "ServiceInstance", "").await.status);
    }
    assert_eq!(statuses, [200, 500, 500, 200, 200]);
}

#[tokio::test(start_paused = true)]
async fn a_rule_for_another_host_does_not_strike() {
    let (world, raw) = faulty("{method: EnterMaintenanceMode_Task, object: esx-02, then: {fault: Timedout}}").await;
    raw.close().await;
    assert!(world.log()[0].effect);
}

#[tokio::test(start_paused = true)]
async fn a_fault_a_status_and_a_delay() {
    let (world, raw) = faulty("{method: write, then: {fault: Timedout}}").await;
    assert_eq!(raw.enter(0).await.fault(), "Timedout");
    assert!(!world.log()[0].effect);
    raw.close().await;
    let (_, raw) = faulty("{method: EnterMaintenanceMode_Task, then: {status: 503}}").await;
    let answer = raw.enter(0).await;
    assert_eq!(answer.status, 503);
    assert!(answer.body.starts_with("<html>"));
    let (_, raw) = faulty("{method: CurrentTime, then: {delay: 90s}}").await;
    let start = tokio::time::Instant::now();
    raw.method("CurrentTime", "ServiceInstance", "ServiceInstance", "").await.ok();
    assert_eq!(start.elapsed(), Duration::from_secs(90));
}

#[tokio::test(start_paused = true)]
async fn a_task_fails_or_hangs() {
    let (_, raw) = faulty("{method: EnterMaintenanceMode_Task, then: {taskFault: HostCommunication}}").await;
    let task = raw.enter(0).await.ok().text("returnval");
    pass(60).await;
    assert!(raw.read("Task", &task, &["info.error"]).await.ok().body.contains("HostCommunication"));
    assert_eq!(raw.value("runtime.inMaintenanceMode").await, "false");
    let (_, raw) = faulty("{method: EnterMaintenanceMode_Task, then: taskHangs}").await;
    let task = raw.enter(60).await.ok().text("returnval");
    pass(1700).await;
    assert_eq!(raw.state(&task).await, "running");
}

#[tokio::test(start_paused = true)]
async fn lies_are_success_without_effect_and_reads_of_before() {
    let (world, raw) = faulty("{method: write, times: 9, then: {lie: noEffect}}").await;
    let task = raw.enter(0).await.ok().text("returnval");
    pass(60).await;
    assert_eq!(raw.state(&task).await, "success");
    assert_eq!(raw.value("runtime.inMaintenanceMode").await, "false");
    raw.passthru("<config><id>0000:17:00.0</id><passthruEnabled>false</passthruEnabled></config>").await.ok();
    assert!(
        !raw.value("config.pciPassthruInfo")
            .await
            .contains("<passthruEnabled>false</passthruEnabled><passthruCapable>true")
    );
    assert!(world.log().iter().all(|write| !write.effect));

    let (_, raw) = faulty("{method: RetrievePropertiesEx, object: esx-01, onCall: 5, then: {lie: stale}}").await;
    raw.close().await; // reads: the host's name, then the task (not the host)
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(raw.value("runtime.inMaintenanceMode").await);
    }
    assert_eq!(seen.iter().filter(|value| *value == "false").count(), 1, "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn properties_may_be_missing_once() {
    let (_, raw) = faulty("{method: RetrievePropertiesEx, object: esx-01, onCall: 2, then: {missing: [config]}}").await;
    let answer = raw.esx(&["config.graphicsConfig", "name"]).await;
    assert!(answer.text("missingSet").contains("NoPermission"));
    assert!(!raw.esx(&["config.graphicsConfig"]).await.body.contains("missingSet"));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_gives_up_does_not_undo_the_effect() {
    let (_, raw) = faulty("{method: EnterMaintenanceMode_Task, then: {delay: 60s}}").await;
    let given_up = tokio::time::timeout(Duration::from_secs(5), try_enter(&raw)).await;
    assert!(given_up.is_err());
    pass(120).await;
    assert_eq!(raw.value("runtime.inMaintenanceMode").await, "true");
}
