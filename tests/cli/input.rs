//! Bad input: what, where, why, what next. Each message is a snapshot.

use super::harness::{Folder, H100, L40S, SITE, WORLD};

#[test]
fn documents_are_checked_offline() {
    let folder = Folder::lab(&[("h100", H100), ("l40s", L40S)]);
    let ended = folder.run("validate").expect(0);
    assert_eq!(ended.stdout, "2 pools, 1 site, 0 worlds: no mistakes\n");
    let whole = folder.run("validate profiles inventories world.yaml").expect(0);
    assert_eq!(whole.stdout, "2 pools, 1 site, 1 world: no mistakes\n");
}

#[test]
fn mistakes_are_all_shown_with_their_lines() {
    let folder = Folder::lab(&[("l40s", &L40S.replace("gpuModel", "gpuModle").replace("24q: 2", "24q: 3"))]);
    folder.write("profiles/h100.yaml", H100.replace("cluster: gpu-h100", "cluster: gpu-h100, nmaes: [x]"));
    insta::assert_snapshot!(folder.run("validate").expect(3).shown());
    let json: serde_json::Value = serde_json::from_str(&folder.run("validate --output json").expect(3).stdout).unwrap();
    assert!(json["problems"].as_array().is_some_and(|all| all.len() >= 2), "{json}");
    // What is wrong offline is wrong for a plan, and nothing is connected to.
    let plan = folder.run("plan --world world.yaml").expect(3);
    assert!(plan.stdout.is_empty() && !folder.path().join("world.yaml.state").exists());
}

#[test]
fn files_that_are_no_documents() {
    let folder = Folder::lab(&[]);
    folder.write("latin1.yaml", b"kind: caf\xe9\n");
    insta::assert_snapshot!("not utf8", folder.run("validate latin1.yaml").expect(3).shown());
    folder.write("huge.yaml", vec![b'#'; 50 << 20]);
    insta::assert_snapshot!("50 MB", folder.run("validate huge.yaml").expect(3).shown());
    insta::assert_snapshot!("missing", folder.run("validate missing.yaml").expect(3).shown());
    folder.write("bomb.yaml", "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n");
    let bomb = folder.run("validate bomb.yaml").expect(3);
    assert!(bomb.stderr.contains("bomb.yaml:"), "{}", bomb.stderr);
    insta::assert_snapshot!("no documents", Folder::empty().run("validate").expect(3).shown());
}

/// A pipe that nobody writes into would be read for ever.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_refused() {
    let folder = Folder::lab(&[("l40s", L40S)]);
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe.yaml")).status().unwrap();
    assert!(made.success());
    for (line, what) in [
        ("validate pipe.yaml", "pipe.yaml is a pipe and not a file"),
        ("validate /dev/zero", "/dev/zero is a device and not a file"),
        ("plan --documents pipe.yaml --world world.yaml", "pipe.yaml is a pipe and not a file"),
        ("plan --world pipe.yaml", "pipe.yaml is a pipe and not a file"),
        ("apply pipe.yaml --world world.yaml", "pipe.yaml is a pipe and not a file"),
        ("sim --world pipe.yaml", "pipe.yaml is a pipe and not a file"),
    ] {
        let ended = folder.run(line).expect(3);
        assert!(ended.stderr.contains(what) && ended.stderr.contains("hint: "), "{line}: {}", ended.stderr);
    }
    // In a folder it is none of ours.
    let ended = folder.run("validate .").expect(0);
    assert!(ended.stdout.contains("1 world: no mistakes"), "{}", ended.stdout);
}

#[test]
fn a_site_must_be_there_and_be_meant() {
    let folder = Folder::lab(&[("l40s", L40S)]);
    folder.write("inventories/other.yaml", SITE.replace("name: lab}", "name: other}"));
    insta::assert_snapshot!("several sites", folder.run("plan --world world.yaml").expect(3).shown());
    insta::assert_snapshot!("no such site", folder.run("plan --site labb --world world.yaml").expect(3).shown());
    let _ = folder.run("plan --site lab --world world.yaml").expect(0);
}

#[test]
fn a_wrong_password_is_told_once_and_not_tried_again() {
    let folder = Folder::lab(&[("l40s", L40S)]);
    folder.write("inventories/lab.yaml", SITE.replace("exec:echo lab", "exec:echo wrong"));
    insta::assert_snapshot!(folder.run("discover --world world.yaml").expect(5).shown());
}

#[test]
fn a_credential_that_is_not_there_is_named() {
    let folder = Folder::lab(&[]);
    for (name, reference) in
        [("variable", "env:POOLWRIGHT_TEST_PASSWORD"), ("file", "file:no-such-file"), ("command", "exec:false")]
    {
        folder.write("inventories/lab.yaml", SITE.replace("exec:echo lab", reference));
        let ended = folder.run("discover --world world.yaml").expect(5);
        insta::assert_snapshot!(format!("credential from a {name}"), ended.shown());
    }
}

#[test]
fn another_vcenter_than_the_pinned_one_is_refused() {
    let folder = Folder::lab(&[("l40s", L40S)]);
    folder.write("inventories/lab.yaml", SITE.replace("6f0e1c52", "00000000"));
    insta::assert_snapshot!(folder.run("plan --world world.yaml").expect(5).shown());
}

#[test]
fn nobody_at_the_address() {
    let folder = Folder::lab(&[("l40s", L40S)]);
    folder.write("inventories/lab.yaml", SITE.replace("address: vc.lab", "address: vc.elsewhere"));
    insta::assert_snapshot!(folder.run("discover --world world.yaml").expect(5).shown());
}

#[test]
fn d12_a_host_that_does_not_exist_is_named_with_its_place() {
    let folder = Folder::lab(&[("l40s", &L40S.replace("\"esx-l40s-*\"", "esx-l40s-10"))]);
    insta::assert_snapshot!(folder.run("plan --world world.yaml").expect(3).shown());
}

#[test]
fn a_world_that_cannot_be() {
    let folder = Folder::lab(&[]);
    folder.write("world.yaml", WORLD.replace("l40s, count: 4", "l40x, count: 4"));
    insta::assert_snapshot!(folder.run("discover --world world.yaml").expect(3).shown());
}

#[test]
fn a_plan_file_that_is_not_what_was_made() {
    let folder = Folder::lab(&[("l40s", L40S)]);
    let _ = folder.run("plan --out plan.json --world world.yaml").expect(0);
    let plan = folder.read("plan.json");
    folder.write("cut.json", &plan[..plan.find("\"desired\"").unwrap()]);
    insta::assert_snapshot!("plan cut short", folder.run("apply cut.json --world world.yaml").expect(3).shown());
    folder.write("edited.json", plan.replacen("\"hostsAtOnce\": 1", "\"hostsAtOnce\": 9", 1));
    insta::assert_snapshot!("plan edited", folder.run("apply edited.json --world world.yaml").expect(3).shown());
    folder.write("later.json", plan.replacen("poolwright.plan/v1", "poolwright.plan/v9", 1));
    insta::assert_snapshot!(
        "plan of another version",
        folder.run("apply later.json --world world.yaml").expect(6).shown()
    );
    assert!(!folder.path().join(".poolwright").exists(), "nothing was begun");
}

#[test]
fn a_plan_is_applied_to_the_documents_it_was_made_from() {
    let folder = Folder::lab(&[("l40s", L40S)]);
    let _ = folder.run("plan --out plan.json --world world.yaml").expect(0);
    folder.write("profiles/l40s.yaml", L40S.replace("gpuCount: 4", "gpuCount: 2"));
    insta::assert_snapshot!("documents changed", folder.run("apply plan.json --world world.yaml").expect(6).shown());
    std::fs::remove_file(folder.path().join("profiles/l40s.yaml")).unwrap();
    let ended = folder.run("apply plan.json --world world.yaml").expect(0);
    assert!(ended.stderr.contains("profiles/l40s.yaml is not here"), "{}", ended.stderr);
}

#[test]
fn without_a_terminal_a_plan_is_not_approved_by_silence() {
    let folder = Folder::lab(&[("l40s", L40S)]);
    let ended = folder.run("apply --world world.yaml").expect(3);
    assert!(ended.stderr.contains("--yes"), "{}", ended.stderr);
    insta::assert_snapshot!(ended.shown());
    let _ = folder.run("apply --yes --world world.yaml").expect(0);
}

#[test]
fn runs_that_are_not_there() {
    let folder = Folder::lab(&[("l40s", L40S)]);
    insta::assert_snapshot!("no state", folder.run("resume --world world.yaml").expect(3).shown());
    let none = folder.run("status").expect(0);
    assert!(none.stdout.is_empty() && none.stderr.contains("no run was made here"), "{}", none.stderr);
    let _ = folder.run("apply --yes --world world.yaml").expect(0);
    insta::assert_snapshot!("nothing unfinished", folder.run("resume --world world.yaml").expect(3).shown());
    insta::assert_snapshot!("no such run", folder.run("status 01NOSUCHRUN").expect(3).shown());
    insta::assert_snapshot!(
        "abort of no such run",
        folder.run("abort 01NOSUCHRUN --world world.yaml").expect(3).shown()
    );
}
