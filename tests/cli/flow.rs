//! Plan, apply, plan again; what a script learns of it; what a person does after a failure.

use poolwright::base::files::Lock;
use serde_json::Value;

use super::harness::{Folder, H100, L40S, WORLD};

/// Only the hosts of one cluster that have nothing wrong with them.
fn healthy_l40s() -> String {
    L40S.replace("\"esx-l40s-*\"", "\"esx-l40s-[01-03]\"")
}

#[test]
fn f16_two_only_when_it_is_asked_for_and_then_for_refused_hosts_too() {
    let folder = Folder::lab(&[("l40s", &healthy_l40s())]);
    let _ = folder.run("plan --world world.yaml").expect(0);
    let _ = folder.run("plan --detailed-exitcode --out plan.json --world world.yaml").expect(2);
    let _ = folder.run("apply plan.json --world world.yaml").expect(0);
    let after = folder.run("plan --detailed-exitcode --world world.yaml").expect(0);
    assert!(after.stdout.contains("No host is changed. 3 hosts as the profiles want it."), "{}", after.stdout);
    // A host that does not answer is nothing to do for us, and not as it should be either.
    folder.write("profiles/l40s.yaml", L40S);
    let refused = folder.run("plan --detailed-exitcode --world world.yaml").expect(2);
    assert!(refused.stdout.contains("No host is changed."), "{}", refused.stdout);
}

#[test]
fn f18_a_plan_that_was_applied_is_spent() {
    let folder = Folder::lab(&[("l40s", &healthy_l40s())]);
    let _ = folder.run("plan --out plan.json --world world.yaml").expect(0);
    let _ = folder.run("apply plan.json --world world.yaml").expect(0);
    insta::assert_snapshot!(folder.run("apply plan.json --world world.yaml").expect(6).shown());
}

#[test]
fn an_empty_plan_is_a_plan() {
    let folder = Folder::lab(&[("l40s", &healthy_l40s())]);
    let _ = folder.run("apply --yes --world world.yaml").expect(0);
    let _ = folder.run("plan --out plan.json --world world.yaml").expect(0);
    let ended = folder.run("apply plan.json --world world.yaml").expect(0);
    assert_eq!(ended.stderr, "No host is changed. 3 hosts as the profiles want it.\n");
}

/// FORMATS "Exit code": of what is left, not of what was asked for. A plan that changes nothing since
/// every host was refused is not done.
#[test]
fn f08_a_plan_that_leaves_work_does_not_end_as_done() {
    let refused = L40S.replace("\"esx-l40s-*\"", "esx-l40s-04");
    let folder = Folder::lab(&[("l40s", &refused)]);
    let _ = folder.run("plan --out plan.json --world world.yaml").expect(0);
    for line in ["apply plan.json --world world.yaml", "apply --yes --world world.yaml"] {
        let ended = folder.run(line).expect(9);
        let told = format!("{}{}", ended.stdout, ended.stderr);
        assert!(told.contains("No host is changed. 1 host not readable."), "{line}: {told}");
        let json = folder.run(&format!("{line} --output json --json-into run.json")).expect(9);
        let json: Value = serde_json::from_str(&json.stdout).unwrap();
        assert_eq!(json, serde_json::json!({"exitCode": 9, "run": null, "handover": []}), "{line}");
        assert_eq!(serde_json::from_str::<Value>(&folder.read("run.json")).unwrap(), json);
    }
    // The marker of another run comes before that, as it does in a run.
    let folder = Folder::lab(&[("h100", H100)]);
    let _ = folder.run("apply --yes --world world.yaml").expect(10);
    let ended = folder.run("apply --yes --state other --world world.yaml").expect(7);
    assert!(ended.stdout.contains("PW-HOST-09"), "{}", ended.stdout);
}

/// JSON and text come from one value, and stdout holds nothing else.
#[test]
fn json_for_machines_beside_text_for_people() {
    let folder = Folder::lab(&[("l40s", &healthy_l40s())]);
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let text = folder.run("plan --out plan.json --json-into same.json --world world.yaml").expect(0);
    let printed = folder.run("plan --output json --world world.yaml").expect(0);
    assert_eq!(folder.read("plan.json"), folder.read("same.json"));
    assert_eq!(json(&folder.read("plan.json"))["schema"], "poolwright.plan/v1");
    assert_eq!(json(&printed.stdout)["hosts"].as_array().unwrap().len(), 2);
    assert!(text.stdout.starts_with("Plan "), "{}", text.stdout);
    let fleet = folder.run("discover --output json --json-into fleet.json --world world.yaml").expect(0);
    assert_eq!(json(&fleet.stdout), json(&folder.read("fleet.json")));
    assert_eq!(json(&fleet.stdout)["hosts"].as_object().unwrap().len(), 13);
    let run = folder.run("apply plan.json --output json --json-into run.json --world world.yaml").expect(0);
    assert_eq!(json(&run.stdout)["exitCode"], 0);
    assert_eq!(json(&run.stdout), json(&folder.read("run.json")));
    let status = folder.run("status --output json").expect(0);
    assert_eq!(json(&status.stdout), json(&run.stdout));
}

/// A program that asked for JSON gets it where there is nothing to tell, too.
#[test]
fn json_of_nothing_is_json() {
    let folder = Folder::lab(&[("l40s", &healthy_l40s())]);
    let none = |line: &str| {
        let value: Value = serde_json::from_str(&folder.run(line).expect(0).stdout).unwrap();
        assert_eq!(value, serde_json::json!({"exitCode": 0, "run": null, "handover": []}), "{line}");
    };
    none("status --output json");
    let _ = folder.run("apply --yes --world world.yaml").expect(0);
    none("apply --yes --output json --world world.yaml");
    let _ = folder.run("plan --out plan.json --world world.yaml").expect(0);
    none("apply plan.json --output json --world world.yaml");
}

/// A path that cannot be written is told before the night's work, not after it.
#[test]
fn a_report_that_has_no_place_is_refused_before_anything_is_done() {
    let folder = Folder::lab(&[("l40s", &healthy_l40s())]);
    let ended = folder.run("apply --yes --json-into none/run.json --world world.yaml").expect(3);
    assert!(ended.stderr.starts_with("error: cannot write none\n"), "{}", ended.stderr);
    assert!(!folder.path().join(".poolwright").exists());
    folder.write("state", "a file");
    let ended = folder.run("apply --yes --state state --world world.yaml").expect(3);
    assert!(ended.stderr.contains("--state DIR"), "{}", ended.stderr);
}

/// A command that is proposed can be pasted, whatever the paths are called.
#[test]
fn d13_proposed_commands_quote_their_paths() {
    let folder = Folder::lab(&[("l40s", &healthy_l40s())]);
    std::fs::rename(folder.path().join("world.yaml"), folder.path().join("it's a world.yaml")).unwrap();
    let mut command = folder.command("plan --out p.json --world");
    let ended = folder.ended(&command.arg("it's a world.yaml").output().unwrap()).expect(0);
    assert!(ended.stderr.contains(r"`poolwright apply p.json --world 'it'\''s a world.yaml'`"), "{}", ended.stderr);
}

/// The process died after the plan was spent and before the first line: `abort` starts nothing.
#[test]
fn abort_of_a_run_without_a_line_does_nothing() {
    let folder = Folder::lab(&[("h100", H100)]);
    let _ = folder.run("apply --yes --world world.yaml").expect(10);
    let run = folder.run_id();
    folder.write(&format!(".poolwright/runs/{run}/journal.jsonl"), "");
    let _ = folder.run("sim reset world.yaml").expect(0);
    let ended = folder.run(&format!("abort {run} --world world.yaml"));
    assert!(ended.stdout.contains("3 hosts not begun."), "{}", ended.stdout);
    assert!(!ended.stderr.contains("enter maintenance"), "{}", ended.stderr);
}

#[test]
fn state_is_kept_where_it_is_said() {
    let folder = Folder::lab(&[("l40s", &healthy_l40s())]);
    let _ = folder.run("apply --yes --state here/state --world world.yaml").expect(0);
    let mut command = folder.command("status");
    let ended = folder.ended(&command.env("POOLWRIGHT_STATE", "here/state").output().unwrap()).expect(0);
    assert!(ended.stdout.starts_with("Run 01"), "{}", ended.stdout);
    assert!(!folder.path().join(".poolwright").exists());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(folder.path().join("here/state")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{mode:o}");
    }
}

#[test]
fn discover_shows_every_host_whatever_is_wrong_with_some() {
    let folder = Folder::lab(&[]);
    insta::assert_snapshot!(folder.run("discover --world world.yaml").expect(0).shown());
}

#[test]
fn a_plan_is_shown_as_a_reviewer_reads_it() {
    let folder = Folder::lab(&[("h100", H100), ("l40s", L40S)]);
    insta::assert_snapshot!(folder.run("plan --world world.yaml").expect(0).shown());
}

/// A GPU is lost in the reboot: the host is left closed, the report says how and what next, and each
/// proposed command works.
#[test]
fn a_host_that_fails_is_left_closed_and_the_next_commands_work() {
    let folder = Folder::lab(&[("h100", H100)]);
    let _ = folder.run("plan --out plan.json --world world.yaml").expect(0);
    let failed = folder.run("apply plan.json --world world.yaml").expect(10);
    insta::assert_snapshot!(failed.shown());
    let run = folder.run_id();
    let proposed: Vec<&str> =
        failed.stdout.lines().filter_map(|line| line.trim().strip_prefix("poolwright ")).collect();
    assert!(!proposed.is_empty(), "{}", failed.stdout);
    for line in proposed {
        assert!(line.ends_with("--world world.yaml"), "{line}");
        let code = folder.run(line).code;
        // The GPU is still missing: a retry ends as the run did, who gives the host up has it, a plan is made.
        assert_eq!(code, if line.starts_with("plan") { 0 } else { 10 }, "{line}");
    }
    let status = folder.run(&format!("status {run}")).expect(0);
    assert!(status.stdout.contains("esx-h100-03"), "{}", status.stdout);
}

#[test]
fn status_of_a_run_that_somebody_works_on_says_who_and_proposes_to_wait() {
    let folder = Folder::lab(&[("h100", H100)]);
    let _ = folder.run("apply --yes --world world.yaml").expect(10);
    let run = folder.run_id();
    let lock = folder.path().join(format!(".poolwright/runs/{run}/lock"));
    let held = Lock::acquire(&lock, "process 4711 of somebody").unwrap();
    let status = folder.run("status").expect(0).stdout;
    let next = &status[status.find("\nNext\n").unwrap()..];
    assert!(status.contains("at work: process 4711 of somebody"), "{status}");
    assert!(next.contains("wait: a process works on this run") && !next.contains("poolwright resume"), "{next}");
    let data: Value = serde_json::from_str(&folder.run("status --output json").expect(0).stdout).unwrap();
    assert_eq!(data["atWork"], "process 4711 of somebody");
    drop(held);
    assert!(!folder.run("status").expect(0).stdout.contains("at work"));
}

#[test]
fn a_journal_with_a_torn_last_line_is_cut_and_kept() {
    let folder = Folder::lab(&[("h100", H100)]);
    let _ = folder.run("apply --yes --world world.yaml").expect(10);
    let run = folder.run_id();
    let path = format!(".poolwright/runs/{run}/journal.jsonl");
    let journal = folder.read(&path);
    let torn = &journal[..journal.len() - 20];
    folder.write(&path, torn);
    // Reading does not change it.
    let _ = folder.run("status").expect(0);
    assert_eq!(folder.read(&path), torn);
    let ended = folder.run(&format!("resume {run} --world world.yaml")).expect(10);
    let last = torn.rsplit('\n').next().unwrap();
    assert_eq!(folder.read(&format!(".poolwright/runs/{run}/journal.torn")).trim_end(), last, "{}", ended.stderr);
    assert!(folder.read(&path).lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
}

#[test]
fn a_journal_with_a_bad_line_is_refused_with_its_number() {
    let folder = Folder::lab(&[("l40s", &healthy_l40s())]);
    let _ = folder.run("apply --yes --world world.yaml").expect(0);
    let run = folder.run_id();
    let path = format!(".poolwright/runs/{run}/journal.jsonl");
    let journal: Vec<String> = folder.read(&path).lines().map(str::to_owned).collect();
    let mut bad = journal.clone();
    bad[3] = "{\"n\":".to_owned();
    folder.write(&path, bad.join("\n") + "\n");
    insta::assert_snapshot!(folder.run("status").expect(1).shown());
}

#[test]
fn the_journal_lost_the_markers_are_enough() {
    // The GPU is back at the next boot: a world in which nothing is lost, from the same state.
    let folder = Folder::lab(&[("h100", H100)]);
    let _ = folder.run("plan --out plan.json --world world.yaml").expect(0);
    let _ = folder.run("apply plan.json --world world.yaml").expect(10);
    std::fs::remove_dir_all(folder.path().join(".poolwright")).unwrap();
    let ended = folder.run("resume --from-live plan.json --world world.yaml").expect(10);
    assert!(ended.stdout.contains("esx-h100-03"), "{}", ended.stdout);
    assert!(ended.stdout.contains("2 hosts as the plan wants it."), "{}", ended.stdout);
    let again = folder.run("resume --from-live plan.json --world world.yaml").expect(3);
    assert!(again.stderr.contains("hint: go on from it: `poolwright resume "), "{}", again.stderr);
}

#[test]
fn sim_reset_puts_the_fleet_back() {
    let folder = Folder::lab(&[("l40s", &healthy_l40s())]);
    let before = folder.run("discover --output json --world world.yaml").expect(0).stdout;
    let _ = folder.run("apply --yes --world world.yaml").expect(0);
    assert_ne!(folder.run("discover --output json --world world.yaml").expect(0).stdout, before);
    let _ = folder.run("sim reset world.yaml").expect(0);
    assert_eq!(folder.run("discover --output json --world world.yaml").expect(0).stdout, before);
    // The same fleet at the same time makes the same plan, and that one is spent: what runs did is
    // remembered elsewhere.
    let _ = folder.run("apply --yes --world world.yaml").expect(6);
    // A document that changed is another fleet.
    let _ = folder.run("apply --yes --world world.yaml --state again").expect(0);
    folder.write("world.yaml", WORLD.replace("8.0.3", "9.0.0"));
    insta::assert_snapshot!(folder.run("discover --world world.yaml").expect(3).shown());
}

/// A server that is away for a while is waited for, and that is said without being asked.
#[test]
fn a_wait_for_a_server_that_is_away_is_said() {
    let folder = Folder::lab(&[("l40s", L40S)]);
    let away = WORLD.replacen(
        "  datacenters:",
        "  faults: [{method: RetrievePropertiesEx, times: 5, then: {status: 503}}]\n  datacenters:",
        1,
    );
    folder.write("world.yaml", away);
    let ended = folder.run("discover --world world.yaml").expect(0);
    assert!(ended.stderr.contains("trying again in 4 s"), "{}", ended.stderr);
    assert!(!ended.stderr.contains(" ms"), "what is over in a moment is not told: {}", ended.stderr);
}
