//! The services of a host, as vCenter lists and starts them (vsphere-gpu §1.10).

use super::{host, open, shell, world};
use crate::sim::raw::Raw;

const H100: &str = "{model: h100-nvl-94, mode: {vgpu: {size: same}}}";

/// The service system of the only host, and what it says of a service.
async fn services(raw: &Raw) -> (String, String) {
    let system = raw.host("esx-01").await.replace("host-", "serviceSystem-");
    (system, raw.esx(&["config.service", "config.lockdownMode"]).await.ok().body)
}

#[tokio::test(start_paused = true)]
async fn vcenter_starts_the_ssh_service_and_stops_it_again() {
    let world = world(&host("esx-01", H100, &shell("").replace("running: true", "running: false")));
    let raw = Raw::login(&world).await;
    let (system, list) = services(&raw).await;
    let ssh = "<key>TSM-SSH</key><label>SSH</label><required>false</required><uninstallable>false</uninstallable>";
    assert!(list.contains(&format!("{ssh}<running>false</running><policy>off</policy>")), "{list}");
    assert!(list.contains("lockdownDisabled") && list.contains("<key>TSM</key>") && list.contains("<key>xorg</key>"));
    assert!(open(&world, "esx-01").await.is_err());
    let call = async |method: &str, id: &str| {
        raw.method(method, "HostServiceSystem", &system, &format!("<id>{id}</id>")).await
    };
    call("StartService", "TSM-SSH").await.ok();
    assert_eq!(call("StartService", "TSM-SSH").await.fault(), "InvalidState");
    assert_eq!(call("StartService", "no-such").await.fault(), "NotFound");
    let session = open(&world, "esx-01").await.unwrap();
    call("StopService", "TSM-SSH").await.ok();
    assert_eq!(call("StopService", "TSM-SSH").await.fault(), "InvalidState");
    assert!(services(&raw).await.1.contains(&format!("{ssh}<running>false</running>")));
    // A session that is open goes on; a new one finds nobody.
    assert!(session.exec("nvidia-smi -L", std::time::Duration::from_secs(5)).await.is_ok());
    assert!(open(&world, "esx-01").await.is_err());
    let policy = "<id>TSM-SSH</id><policy>on</policy>";
    raw.method("UpdateServicePolicy", "HostServiceSystem", &system, policy).await.ok();
    assert!(services(&raw).await.1.contains("<policy>on</policy></service><service><key>xorg"));
}

#[tokio::test(start_paused = true)]
async fn lockdown_is_a_property_of_the_host() {
    for (mode, shown) in [("normal", "lockdownNormal"), ("strict", "lockdownStrict")] {
        let world = world(&host("esx-01", H100, &shell(&format!(", lockdown: {mode}"))));
        let list = services(&Raw::login(&world).await).await.1;
        assert!(list.contains(shown), "{list}");
    }
}
