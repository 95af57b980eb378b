//! The world itself: documents, saved state, log, snapshot, fields, ports.

use poolwright::base::net::{Endpoint, Network, RealNetwork, Trust, collect};
use poolwright::sim::{SimNetwork, World, WorldError, serve};

use super::raw::{PASSTHROUGH, Raw, VGPU, pass, world_with};

#[test]
fn wrong_documents_are_told_with_their_place() {
    let parse = |spec: &str| {
        let text = format!("apiVersion: poolwright/v1\nkind: World\nmetadata: {{name: x}}\nspec:\n{spec}\n");
        World::parse("x.yaml", text.as_bytes()).unwrap_err()
    };
    let unknown = parse("  vcenter: {address: a, speeed: 3}").to_string();
    assert!(unknown.contains("x.yaml:5:") && unknown.contains("speeed"), "{unknown}");
    let model = "  vcenter: {address: a}\n  datacenters: [{path: /DC, clusters: [{name: c, hosts: [{names: e, gpus: [{model: h1000, mode: {shared: {}}}]}]}]}]";
    let error = parse(model);
    assert!(matches!(error, WorldError::Impossible { .. }));
    assert!(error.to_string().contains("datacenters[0].clusters[0].hosts[0].gpus[0].model"), "{error}");
    let twice =
        "  vcenter: {address: a}\n  datacenters: [{path: /DC, clusters: [{name: c, hosts: [{names: e}, {names: e}]}]}]";
    assert!(parse(twice).to_string().contains("twice"));
    // An actor that waits for a call which cannot come.
    for (once, said) in [
        ("{method: ShutdownGuest}", "`object` has to name one"),
        ("{method: RebootHost_Task, object: v}", "`v` is a VM"),
        ("{method: RebootHost_Task, object: f}", "neither a host nor a VM `f`"),
    ] {
        let error = parse(&format!(
            "  vcenter: {{address: a}}\n  datacenters: [{{path: /DC, clusters: [{{name: c, hosts: [{{names: e}}], \
             vms: [{{name: v, host: e}}]}}]}}]\n  actors: [{{who: x, host: e, once: {once}, does: reboot}}]"
        ));
        assert!(error.to_string().contains("actors[0].once") && error.to_string().contains(said), "{error}");
    }
}

#[test]
fn every_shipped_world_is_one() {
    let mut count = 0;
    for entry in std::fs::read_dir("inventories").unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        if path.extension().is_some_and(|end| end == "yaml") && String::from_utf8_lossy(&bytes).contains("kind: World")
        {
            World::parse(path.to_str().unwrap(), &bytes).unwrap();
            count += 1;
        }
    }
    assert!(count > 0);
}

#[tokio::test(start_paused = true)]
async fn the_log_lists_every_write_and_no_read() {
    let world = world_with(VGPU, "");
    let raw = Raw::login(&world).await;
    raw.esx(&["name", "config"]).await.ok();
    let host = raw.host("esx-01").await;
    raw.close().await;
    raw.method(
        "AddCustomFieldDef",
        "CustomFieldsManager",
        "CustomFieldsManager",
        "<name>poolwright.run</name><moType>HostSystem</moType>",
    )
    .await
    .ok();
    raw.method(
        "SetField",
        "CustomFieldsManager",
        "CustomFieldsManager",
        &format!("<entity type=\"HostSystem\">{host}</entity><key>101</key><value>x</value>"),
    )
    .await
    .ok();
    raw.enter(0).await.fault();
    let log = world.log();
    let calls: Vec<(u64, &str, &str, bool)> =
        log.iter().map(|write| (write.n, write.object.as_str(), write.call.as_str(), write.effect)).collect();
    assert_eq!(
        calls,
        [
            (1, "esx-01", "EnterMaintenanceMode_Task", true),
            (2, "CustomFieldsManager", "AddCustomFieldDef", true),
            (3, "esx-01", "SetField", true),
            (4, "esx-01", "EnterMaintenanceMode_Task", false),
        ]
    );
    assert!(log.iter().all(|write| write.who == "pw@vsphere.local"));
    assert_eq!(log[0].arguments, "timeout=0");
    assert_eq!(
        (log[2].id.as_str(), log[2].arguments.as_str()),
        (host.as_str(), format!("entity={host} key=101 value=x").as_str())
    );
    assert_eq!(world.tally().hosts["esx-01"].writes["EnterMaintenanceMode_Task"], 1);
}

#[tokio::test(start_paused = true)]
async fn custom_fields_are_defined_once_set_and_read_with_a_lag() {
    let world = world_with(VGPU, "  readings: {fieldLag: 10s}");
    let raw = Raw::login(&world).await;
    let host = raw.host("esx-01").await;
    let manager = async |method: &str, parameters: &str| {
        raw.method(method, "CustomFieldsManager", "CustomFieldsManager", parameters).await
    };
    let define = "<name>poolwright.run</name><moType>HostSystem</moType>";
    let key = manager("AddCustomFieldDef", define).await.ok().text("key");
    assert_eq!(manager("AddCustomFieldDef", define).await.fault(), "DuplicateName");
    assert!(raw.esx(&["availableField"]).await.body.contains("<name>poolwright.run</name>"));
    let set = async |value: &str| {
        manager(
            "SetField",
            &format!("<entity type=\"HostSystem\">{host}</entity><key>{key}</key><value>{value}</value>"),
        )
        .await
    };
    set("{&quot;v&quot;:1}").await.ok();
    assert!(!raw.esx(&["customValue"]).await.body.contains("CustomFieldStringValue"));
    pass(10).await;
    let value = raw.esx(&["customValue"]).await.body;
    assert!(
        value.contains("xsi:type=\"CustomFieldStringValue\"") && value.contains("<value>{\"v\":1}</value>"),
        "{value}"
    );
    set("two").await.ok();
    assert!(raw.esx(&["customValue"]).await.body.contains("{\"v\":1}"));
    set("").await.ok();
    pass(10).await;
    assert!(!raw.esx(&["customValue"]).await.body.contains("CustomFieldStringValue"));
    let wrong = format!("<entity type=\"HostSystem\">{host}</entity><key>999</key><value>x</value>");
    assert_eq!(manager("SetField", &wrong).await.fault(), "InvalidArgument");
    manager("RemoveCustomFieldDef", &format!("<key>{key}</key>")).await.ok();
    assert!(!raw.esx(&["availableField"]).await.body.contains("poolwright.run"));
}

#[tokio::test(start_paused = true)]
async fn two_ways_to_one_end_have_one_snapshot() {
    let (one, two) = (world_with(VGPU, ""), world_with(VGPU, ""));
    assert_eq!(one.snapshot(), two.snapshot());
    let raw = Raw::login(&one).await;
    raw.close().await;
    assert_ne!(one.snapshot(), two.snapshot());
    raw.exit().await.ok();
    pass(100).await;
    assert_eq!(one.snapshot().to_string(), two.snapshot().to_string());
    assert_eq!(one.tally().hosts["esx-01"].boots, 0);
}

#[tokio::test(start_paused = true)]
async fn a_file_keeps_its_world_from_process_to_process() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lab.yaml");
    let text = |driver: &str| {
        format!(
            "apiVersion: poolwright/v1\nkind: World\nmetadata: {{name: lab}}\nspec:\n  vcenter: {{address: vc.lab, users: [{{name: pw@vsphere.local, password: lab}}]}}\n  datacenters: [{{path: /DC, clusters: [{{name: c, hosts: [{{names: esx-01, driver: {{component: D, version: {driver}}}}}]}}]}}]\n"
        )
    };
    std::fs::write(&path, text("1")).unwrap();
    let first = World::open(&path).unwrap();
    let raw = Raw::login(&first).await;
    let task = raw.enter(0).await.ok().text("returnval");
    pass(5).await;
    first.save().unwrap();
    // A new process: the entering goes on where it was, by the world's own time.
    let second = World::open(&path).unwrap();
    assert_eq!(second.now(), first.now());
    let raw = Raw::login(&second).await;
    assert_eq!(raw.state(&task).await, "running");
    pass(20).await;
    assert_eq!(raw.state(&task).await, "success");
    assert_eq!(second.log().len(), 1);
    std::fs::write(&path, text("2")).unwrap();
    assert!(matches!(World::open(&path), Err(WorldError::OtherDocument)));
    assert!(World::reset(&path).unwrap());
    assert!(!World::reset(&path).unwrap());
    World::open(&path).unwrap();
}

#[tokio::test(start_paused = true)]
async fn time_passes_faster_at_speed() {
    let world = world_with(VGPU, "");
    world.set_speed(60);
    let start = world.now();
    pass(60).await;
    assert_eq!(world.now().duration_since(start).as_secs(), 3600);
    let raw = Raw::login(&world).await;
    let task = raw.enter(0).await.ok().text("returnval");
    pass(1).await;
    assert_eq!(raw.state(&task).await, "success");
}

#[tokio::test]
async fn a_port_speaks_tls_to_several_clients_and_keeps_connections() {
    let served = serve(world_with(PASSTHROUGH, ""), "127.0.0.1:0".parse().unwrap()).await.unwrap();
    let endpoint = |thumbprint| Endpoint::new(served.addr.to_string(), Trust::Thumbprint(thumbprint));
    let get = || http::Request::get("/sdk/vimServiceVersions.xml").body(bytes::Bytes::new()).unwrap();
    let mut clients = Vec::new();
    for _ in 0..3 {
        let exchange = RealNetwork.open(&endpoint(served.thumbprint)).unwrap();
        clients.push(tokio::spawn(async move {
            for _ in 0..3 {
                let response = exchange.exchange(get()).await.unwrap();
                let response = collect("x", response, 1 << 20).await.unwrap();
                assert!(String::from_utf8_lossy(response.body()).contains("<version>8.0.3.0</version>"));
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
    let wrong = RealNetwork.open(&endpoint([7; 32])).unwrap();
    assert!(wrong.exchange(get()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn nobody_else_is_on_the_network() {
    let network = SimNetwork::new(world_with(PASSTHROUGH, ""));
    let other = network.open(&Endpoint::new("vc.elsewhere", Trust::System)).unwrap();
    let error = other.exchange(http::Request::get("/sdk").body(bytes::Bytes::new()).unwrap()).await.unwrap_err();
    assert!(error.not_sent(), "{error}");
}
