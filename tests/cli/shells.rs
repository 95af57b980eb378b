//! Shells of hosts at the command line: what is asked for, when, and what a person reads if it is missing.

use super::harness::{Ended, Folder, L40S, SITE, by_hand};

/// The lab with this `shell` in its Site.
fn lab(shell: &str) -> Folder {
    let folder = Folder::lab(&[("l40s", L40S)]);
    folder.write("inventories/lab.yaml", format!("{}  shell: {shell}\n", by_hand(SITE)));
    folder
}

fn plan(folder: &Folder) -> Ended {
    folder.run("plan --out plan.json --world world.yaml")
}

const PINS: &str = "hostKeys: {pins: {esx-l40s-01: \"SHA256:Nh0Me49Zh9fDw/VYUfq43IJmI1T+XrjiYONPND8GzaM\"}}";

/// The command that gives a password may ask a person: only what logs in runs it.
#[test]
fn reading_asks_for_no_credential() {
    let folder = lab(&format!("{{way: direct, users: [{{user: root, password: \"exec:touch asked\"}}], {PINS}}}"));
    let asked = || folder.path().join("asked").exists();
    let _ = plan(&folder).expect(0);
    let seen = folder.run("discover --world world.yaml --output json").expect(0);
    let seen: serde_json::Value = serde_json::from_str(&seen.stdout).unwrap();
    let login =
        |host: &str| seen["hosts"][format!("/Prod/DC1/host/gpu-l40s/{host}")]["view"]["ok"]["shellLogin"].clone();
    assert_eq!(login("esx-l40s-01"), serde_json::json!({"known": {"user": "root", "pinned": true}}));
    assert_eq!(login("esx-l40s-02"), serde_json::json!({"known": {"user": "root", "pinned": false}}));
    assert!(!asked());
    let fleet = folder.read("world.yaml.state");
    let ended = folder.run("apply plan.json --world world.yaml").expect(5);
    assert!(asked());
    insta::assert_snapshot!("a command that gives no credential", ended.shown());
    assert_eq!(folder.read("world.yaml.state"), fleet, "nothing was done");
}

#[test]
fn a_credential_that_is_missing_is_named_where_it_stands() {
    let folder = lab(&format!("{{way: direct, users: [{{user: root, password: \"env:ESX_PASSWORD\"}}], {PINS}}}"));
    let _ = plan(&folder).expect(0);
    insta::assert_snapshot!("no credential", folder.run("apply plan.json --world world.yaml").expect(5).shown());
}

#[test]
fn host_keys_of_a_simulated_fleet_are_printed_as_a_file_of_them() {
    let users = "users: [{user: root, password: \"exec:echo lab\"}]";
    let folder = lab(&format!("{{way: direct, {users}, hostKeys: {{file: inventories/known_hosts}}}}"));
    insta::assert_snapshot!("no file of host keys", plan(&folder).expect(3).shown());
    let keys = folder.run("sim known-hosts world.yaml").expect(0).stdout;
    assert_eq!(keys.lines().count(), 13, "{keys}");
    assert_eq!(folder.run("sim known-hosts world.yaml").expect(0).stdout, keys);
    folder.write("inventories/known_hosts", keys);
    let _ = plan(&folder).expect(0);
    folder.write("inventories/known_hosts", "esx-l40s-01 AAAA\n");
    insta::assert_snapshot!("no host key in a line", plan(&folder).expect(3).shown());
}
