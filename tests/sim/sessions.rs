//! Sessions: cookies, logins, ends (cases C01, C04, C06, C14).

use poolwright::sim::SimNetwork;

use super::raw::{PASSTHROUGH, Raw, world_with};

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
