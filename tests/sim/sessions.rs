//! Sessions: cookies, logins, ends (cases C01, C04, C06, C14).

use poolwright::sim::{SimNetwork, World};

use super::raw::{PASSTHROUGH, Raw, pass, world_with};

#[tokio::test(start_paused = true)]
async fn c06_a_login_on_the_cookie_of_a_failed_login_is_refused() {
    let world = world_with(PASSTHROUGH, "");
    let mut raw = Raw::new(&SimNetwork::new(world));
    let failed = raw.log_in("pw@vsphere.local", "wrong").await;
    assert_eq!(failed.fault(), "InvalidLogin");
    assert!(failed.cookie.is_some(), "even a failed login sets a cookie");
    assert_eq!(raw.log_in("pw@vsphere.local", "lab").await.fault(), "InvalidLogin");
    raw.cookie = None;
    raw.log_in("pw@vsphere.local", "lab").await.ok();
    assert_eq!(raw.value("name").await, "esx-01");
}

async fn current_session(raw: &Raw) -> String {
    raw.method("Fetch", "SessionManager", "SessionManager", "<prop>currentSession</prop>").await.ok().body
}

#[tokio::test(start_paused = true)]
async fn nobody_may_read_and_the_current_session_says_who_one_is() {
    let world = world_with(PASSTHROUGH, "");
    let mut raw = Raw::new(&SimNetwork::new(world));
    for method in ["CurrentTime", "RetrieveServiceContent"] {
        let answer = raw.method(method, "ServiceInstance", "ServiceInstance", "").await;
        assert_eq!(answer.status, if method == "CurrentTime" { 500 } else { 200 });
    }
    assert_eq!(raw.root().await.fault(), "NotAuthenticated");
    assert!(!current_session(&raw).await.contains("userName"));
    raw.log_in("pw@vsphere.local", "lab").await.ok();
    assert!(current_session(&raw).await.contains("<userName>VSPHERE.LOCAL\\pw</userName>"));
    raw.method("Logout", "SessionManager", "SessionManager", "").await.ok();
    assert_eq!(raw.root().await.fault(), "NotAuthenticated");
    assert!(!current_session(&raw).await.contains("userName"));
}

#[tokio::test(start_paused = true)]
async fn f48_an_idle_session_ends_and_its_views_with_it() {
    let world = world_with(PASSTHROUGH, "");
    let mut raw = Raw::login(&world).await;
    let view = raw
        .method(
            "CreateContainerView",
            "ViewManager",
            "ViewManager",
            "<container type=\"Folder\">group-d1</container><recursive>true</recursive>",
        )
        .await
        .ok()
        .text("returnval");
    pass(29 * 60).await;
    assert_eq!(raw.value("name").await, "esx-01");
    pass(30 * 60).await;
    assert_eq!(raw.root().await.fault(), "NotAuthenticated");
    // The dead cookie does not stand in the way of a new login.
    raw.log_in("pw@vsphere.local", "lab").await.ok();
    assert_eq!(raw.value("name").await, "esx-01");
    assert_eq!(raw.method("DestroyView", "ContainerView", &view, "").await.fault(), "ManagedObjectNotFound");
}

#[tokio::test(start_paused = true)]
async fn c01_a_session_ends_after_a_day_whatever_is_done() {
    let world = world_with(PASSTHROUGH, "");
    let raw = Raw::login(&world).await;
    for _ in 0..(24 * 3 - 1) {
        pass(20 * 60).await;
        raw.method("CurrentTime", "ServiceInstance", "ServiceInstance", "").await.ok();
    }
    pass(20 * 60).await;
    assert_eq!(raw.method("CurrentTime", "ServiceInstance", "ServiceInstance", "").await.fault(), "NotAuthenticated");
}

#[tokio::test(start_paused = true)]
async fn c14_f49_an_ended_session_may_answer_with_missing_properties() {
    let world = world_with(PASSTHROUGH, "  faults: [{method: RetrievePropertiesEx, onCall: 2, then: endSession}]");
    let mut spec = world.spec().clone();
    spec.vcenter.expired_as_missing = true;
    let world = World::from_document("lab", spec).unwrap();
    let raw = Raw::login(&world).await;
    let host = raw.host("esx-01").await;
    let answer = raw.read("HostSystem", &host, &["name"]).await.ok();
    let missing = answer.text("missingSet");
    assert!(missing.contains("<path>name</path>") && missing.contains("xsi:type=\"NotAuthenticated\""), "{missing}");
    assert!(!answer.body.contains("<propSet>"));
}

#[tokio::test(start_paused = true)]
async fn two_clients_have_two_sessions_of_one_world() {
    let world = world_with(PASSTHROUGH, "");
    let network = SimNetwork::new(world);
    let (mut one, mut two) = (Raw::new(&network), Raw::new(&network));
    one.log_in("pw@vsphere.local", "lab").await.ok();
    two.log_in("pw@vsphere.local", "lab").await.ok();
    assert_ne!(one.cookie, two.cookie);
    one.close().await;
    one.method("Logout", "SessionManager", "SessionManager", "").await.ok();
    assert_eq!(two.value("runtime.inMaintenanceMode").await, "true");
}
