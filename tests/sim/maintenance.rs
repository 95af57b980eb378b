//! Honesty rule 1 as far as it meets hosts without evacuation, and 7: maintenance mode.

use super::raw::{PASSTHROUGH, Raw, pass, world_with};

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
