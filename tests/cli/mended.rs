//! A node that does not pass its gate once, and does when a person has mended it.

use super::harness::Folder;

#[test]
fn what_failed_its_gate_is_mended_and_a_retry_ends_the_run() {
    let folder = Folder::empty();
    let _ = folder.run("demo --dir .").expect(0);
    // The fleet of the demo, whose GPU fails a single time, from its beginning.
    let world = folder.read("inventories/lab-world.yaml");
    let mended = world.replace("ends: {fails: 1}", "ends: {fails: 1}\n          times: 1");
    assert_ne!(mended, world);
    folder.write("inventories/lab-world.yaml", mended);
    let _ = folder.run("sim reset inventories/lab-world.yaml").expect(0);
    std::fs::remove_dir_all(folder.path().join(".poolwright")).unwrap();
    let fleet = "--world inventories/lab-world.yaml";
    let stands = || {
        let state: serde_json::Value = serde_json::from_str(&folder.read("inventories/lab-world.yaml.state")).unwrap();
        let host = state["state"]["hosts"].as_object().unwrap().values().find(|host| host["name"] == "esx-serve-02");
        let objects = state["state"]["guests"]["k8s-serve"]["objects"].clone();
        (host.unwrap().clone(), objects)
    };
    let ours = |objects: &serde_json::Value| objects.to_string().matches("poolwright.io/").count();

    let _ = folder.run(&format!("plan --out plan.json {fleet}")).expect(0);
    let left = folder.run(&format!("apply plan.json {fleet}")).expect(10);
    assert!(left.stdout.contains("uncorrectable ECC"), "{}", left.stdout);
    let (host, objects) = stands();
    assert_eq!(
        (&host["maintenance"], &objects["nodes//worker-b"]["spec"]["unschedulable"]),
        (&true.into(), &true.into())
    );
    assert!(ours(&objects) > 0, "{objects}");
    // By itself nobody takes it up again, mended or not.
    let _ = folder.run(&format!("resume {} {fleet}", folder.run_id())).expect(10);
    assert_eq!(stands().0["maintenance"], true);

    let retry = left.stdout.lines().map(str::trim).find(|line| line.contains("--retry esx-serve-02")).unwrap();
    let done = folder.run(retry.strip_prefix("poolwright ").unwrap()).expect(0);
    assert!(done.stdout.contains("12 hosts as the plan wants it"), "{}", done.stdout);
    let (host, objects) = stands();
    assert_eq!(host["maintenance"], false);
    assert_eq!(host["values"]["101"]["value"], "", "{host}");
    assert!(objects["nodes//worker-b"]["spec"]["unschedulable"].is_null(), "{objects}");
    assert_eq!(ours(&objects), 0, "{objects}");
    let status = folder.run("status").expect(0);
    assert!(!status.stdout.contains("worker-b"), "{}", status.stdout);
}
