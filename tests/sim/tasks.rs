//! Tasks as objects, and what becomes of old ones (honesty rule 8).

use super::raw::{PASSTHROUGH, Raw, filter, pass, world_with};

#[tokio::test(start_paused = true)]
async fn a_task_goes_from_queued_to_running_to_success_by_updates() {
    let raw = Raw::login(&world_with(PASSTHROUGH, "")).await;
    let task = raw.enter(0).await.ok().text("returnval");
    let create = format!(
        "<spec>{}</spec><partialUpdates>true</partialUpdates>",
        filter("Task", &task, &["info.state", "info.error"])
    );
    raw.method("CreateFilter", "PropertyCollector", "propertyCollector", &create).await.ok();
    let (mut version, mut states) = (String::new(), Vec::new());
    while states.last().is_none_or(|state| state != "success") {
        let update = raw
            .method(
                "WaitForUpdatesEx",
                "PropertyCollector",
                "propertyCollector",
                &format!("<version>{version}</version>"),
            )
            .await
            .ok();
        version = update.text("version");
        states.push(update.text("val"));
    }
    assert_eq!(states, ["queued", "running", "success"]);
}

#[tokio::test(start_paused = true)]
async fn task_info_has_who_when_and_on_what() {
    let raw = Raw::login(&world_with(PASSTHROUGH, "")).await;
    let host = raw.host("esx-01").await;
    let task = raw.enter(0).await.ok().text("returnval");
    pass(1).await;
    let info = raw.read("Task", &task, &["info"]).await.ok().text("val");
    for part in [
        format!("<key>{task}</key><task type=\"Task\">{task}</task>"),
        "<descriptionId>HostSystem.enterMaintenanceMode</descriptionId>".into(),
        format!("<entity type=\"HostSystem\">{host}</entity><entityName>esx-01</entityName>"),
        "<state>running</state><cancelled>false</cancelled><cancelable>true</cancelable>".into(),
        "<reason xsi:type=\"TaskReasonUser\"><userName>VSPHERE.LOCAL\\pw</userName></reason><queueTime>2026-11-30T20:00:00Z</queueTime>".into(),
    ] {
        assert!(info.contains(&part), "{part} not in {info}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_canceled_entering_leaves_the_host_open_and_only_cancelable_tasks_are_canceled() {
    let raw = Raw::login(&world_with(PASSTHROUGH, "")).await;
    let task = raw.enter(0).await.ok().text("returnval");
    pass(3).await;
    raw.method("CancelTask", "Task", &task, "").await.ok();
    let info = raw.read("Task", &task, &["info"]).await.ok().body;
    assert!(
        info.contains("<state>error</state><cancelled>true</cancelled>")
            && info.contains("xsi:type=\"RequestCanceled\""),
        "{info}"
    );
    pass(600).await;
    assert_eq!(raw.value("runtime.inMaintenanceMode").await, "false");
    raw.close().await;
    let exit = raw.exit().await.ok().text("returnval");
    assert_eq!(raw.method("CancelTask", "Task", &exit, "").await.fault(), "NotSupported");
    pass(20).await;
    assert_eq!(raw.method("CancelTask", "Task", &exit, "").await.fault(), "InvalidState");
}

async fn history(raw: &Raw, more: &str) -> String {
    let host = raw.host("esx-01").await;
    let filter = format!(
        "<filter><entity><entity type=\"HostSystem\">{host}</entity><recursion>self</recursion></entity>{more}</filter>"
    );
    let collector =
        raw.method("CreateCollectorForTasks", "TaskManager", "TaskManager", &filter).await.ok().text("returnval");
    let tasks =
        raw.method("ReadNextTasks", "TaskHistoryCollector", &collector, "<maxCount>100</maxCount>").await.ok().body;
    let end =
        raw.method("ReadNextTasks", "TaskHistoryCollector", &collector, "<maxCount>100</maxCount>").await.ok().body;
    assert!(!end.contains("returnval"), "nothing is read twice");
    raw.method("DestroyCollector", "TaskHistoryCollector", &collector, "").await.ok();
    tasks
}

#[tokio::test(start_paused = true)]
async fn old_tasks_are_lost_from_the_window_and_kept_in_the_history() {
    let raw = Raw::login(&world_with(PASSTHROUGH, "")).await;
    let task = raw.enter(0).await.ok().text("returnval");
    pass(60).await;
    assert!(raw.esx(&["recentTask"]).await.body.contains(&task));
    pass(11 * 60).await;
    assert!(!raw.esx(&["recentTask"]).await.body.contains(&task));
    assert_eq!(raw.read("Task", &task, &["info.state"]).await.fault(), "ManagedObjectNotFound");
    assert!(history(&raw, "").await.contains(&format!("<key>{task}</key>")));
    let since = |time: &str| format!("<time><timeType>queuedTime</timeType><beginTime>{time}</beginTime></time>");
    assert!(history(&raw, &since("2026-11-30T20:00:00Z")).await.contains(&task));
    assert!(!history(&raw, &since("2026-11-30T20:00:01Z")).await.contains(&task));
    let of = |user: &str| format!("<userName><systemUser>false</systemUser><userList>{user}</userList></userName>");
    assert!(history(&raw, &of("pw@vsphere.local")).await.contains(&task));
    assert!(!history(&raw, &of("other@vsphere.local")).await.contains(&task));
}

#[tokio::test(start_paused = true)]
async fn events_tell_what_happened() {
    let raw = Raw::login(&world_with(PASSTHROUGH, "")).await;
    let host = raw.host("esx-01").await;
    raw.method(
        "LogUserEvent",
        "EventManager",
        "EventManager",
        &format!("<entity type=\"HostSystem\">{host}</entity><msg>hands off</msg>"),
    )
    .await
    .ok();
    raw.close().await;
    let query = |more: &str| {
        format!(
            "<filter><entity><entity type=\"HostSystem\">{host}</entity><recursion>self</recursion></entity>{more}</filter>"
        )
    };
    let all = raw.method("QueryEvents", "EventManager", "EventManager", &query("")).await.ok().body;
    for part in ["hands off", "xsi:type=\"EnteringMaintenanceModeEvent\"", "xsi:type=\"EnteredMaintenanceModeEvent\""] {
        assert!(all.contains(part), "{part} not in {all}");
    }
    let some = raw
        .method(
            "QueryEvents",
            "EventManager",
            "EventManager",
            &query("<eventTypeId>vim.event.EnteredMaintenanceModeEvent</eventTypeId>"),
        )
        .await
        .ok()
        .body;
    assert_eq!(some.matches("<returnval").count(), 1);
}
