//! MIG at the command line: switched by SSH and by a person, and what is read where a shell cannot be used.

use serde_json::Value;

use super::harness::{A100_MIG, Ended, Folder, H100_MIG, SITE, WORLD, by_hand};

/// The pools of MIG, with this Site and World.
fn lab(site: &str, world: &str) -> Folder {
    let folder = Folder::lab(&[("a100", A100_MIG), ("h100", H100_MIG)]);
    folder.write("inventories/lab.yaml", site);
    folder.write("world.yaml", world);
    folder
}

/// One pool alone.
fn one(profile: &str, site: &str, world: &str) -> Folder {
    let folder = Folder::lab(&[("pool", profile)]);
    folder.write("inventories/lab.yaml", site);
    folder.write("world.yaml", world);
    folder
}

/// The shipped World with more lines of its `spec`.
fn world_with(lines: &str) -> String {
    format!("{WORLD}{lines}")
}

/// Writes to a host or to what is on it, from the world's own log: what was called, and with what effect.
fn writes(folder: &Folder, object: &str) -> Vec<(String, bool)> {
    let state: Value = serde_json::from_str(&folder.read("world.yaml.state")).unwrap();
    let log = find(&state, "log").unwrap().as_array().unwrap();
    let of_object = log.iter().filter(|write| write["object"] == object);
    of_object.map(|write| (write["call"].as_str().unwrap().to_owned(), write["effect"] == true)).collect()
}

fn find<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match value {
        Value::Object(map) => map.get(key).or_else(|| map.values().find_map(|below| find(below, key))),
        Value::Array(items) => items.iter().find_map(|below| find(below, key)),
        _ => None,
    }
}

fn did(folder: &Folder, object: &str, call: &str) -> usize {
    writes(folder, object).iter().filter(|(name, _)| name == call).count()
}

const APPLY: &str = "apply --yes --world world.yaml";

#[test]
fn mig_is_switched_by_ssh_and_what_was_changed_for_it_is_put_back() {
    let folder = lab(SITE, WORLD);
    insta::assert_snapshot!("plan of MIG", folder.run("plan --world world.yaml").expect(0).shown());
    insta::assert_snapshot!("MIG by SSH", folder.run(APPLY).expect(0).shown());
    let after = folder.run("plan --detailed-exitcode --world world.yaml").expect(0);
    assert!(after.stdout.contains("No host is changed. 3 hosts as the profiles want it."), "{}", after.stdout);
    for (host, reboots) in [("esx-a100-11", 1), ("esx-a100-12", 1), ("esx-h100-11", 0)] {
        assert_eq!(did(&folder, host, "RebootHost_Task"), reboots, "{host}");
        // A reboot stops the SSH service, too.
        let services: Vec<String> = writes(&folder, host).into_iter().map(|(call, _)| call).collect();
        let last = |calls: [&str; 2]| services.iter().rfind(|call| calls.contains(&call.as_str())).cloned();
        assert_eq!(last(["StartService", "StopService"]).as_deref(), Some("StopService"), "{host}: {services:?}");
        assert_eq!(did(&folder, host, "nvdGpuMgmtDaemon"), 2, "{host}: stopped and started");
    }
}

/// What a person reads of a host whose shell cannot be used; nothing of the host is disturbed.
fn refused(name: &str, site: &str, world: &str) -> Folder {
    let folder = one(H100_MIG, site, world);
    let ended = folder.run(APPLY).expect(10);
    insta::assert_snapshot!(name, ended.shown());
    for call in ["EnterMaintenanceMode_Task", "UpdateGraphicsConfig", "nvidia-smi -mig"] {
        assert_eq!(did(&folder, "esx-h100-11", call), 0, "{call}");
    }
    folder
}

/// The key of another host, in the place of this one's.
#[test]
fn another_host_key_than_the_pinned_one() {
    let key = |host: &str| SITE.lines().find_map(|line| line.trim().strip_prefix(&format!("{host}: "))).unwrap();
    let folder = refused("another host key", &SITE.replace(key("esx-h100-11"), key("esx-a100-11")), WORLD);
    assert_eq!(did(&folder, "esx-h100-11", "SshLogin"), 0, "no login was tried");
}

/// ESXi locks an account after a few wrong logins: one try, none when the run goes on, and one more each
/// time that a person says so.
#[test]
fn a_wrong_password_is_tried_once() {
    let site = SITE
        .replace("[{user: root, password: \"exec:echo lab\"}]", "[{user: root, password: \"exec:echo marked-wr0ng\"}]");
    assert_ne!(site, SITE);
    let folder = refused("a wrong password", &site, WORLD);
    assert_eq!(did(&folder, "esx-h100-11", "SshLogin"), 1);
    let _ = folder.run(&format!("resume {} --world world.yaml", folder.run_id())).expect(10);
    assert_eq!(did(&folder, "esx-h100-11", "SshLogin"), 1);
    let retry = format!("resume {} --retry esx-h100-11 --world world.yaml", folder.run_id());
    insta::assert_snapshot!("a wrong password, again", folder.run(&retry).expect(10).shown());
    assert_eq!(did(&folder, "esx-h100-11", "SshLogin"), 2);
    for (path, content) in folder.files().iter().filter(|(path, _)| !path.ends_with("inventories/lab.yaml")) {
        assert!(!String::from_utf8_lossy(content).contains("marked-wr0ng"), "{}", path.display());
    }
}

/// It was right before the reboot, and is not answered after it: the host is not stuck for that.
#[test]
fn a_login_that_fails_on_the_way() {
    let fault = "  faults: [{face: ssh, method: login, object: esx-a100-12, onCall: 2, then: dropBefore}]\n";
    let profile = A100_MIG.replace("\"esx-a100-*\"", "esx-a100-12");
    let folder = one(&profile, SITE, &world_with(fault));
    let left = folder.run(APPLY).expect(10);
    let next = left.stdout.lines().map(str::trim).find(|line| line.contains("--retry")).unwrap();
    assert!(left.stdout.contains("next: set the login right"), "{}", left.stdout);
    insta::assert_snapshot!(
        "a login that fails on the way",
        folder.run(next.strip_prefix("poolwright ").unwrap()).expect(0).shown()
    );
    assert_eq!(did(&folder, "esx-a100-12", "RebootHost_Task"), 1);
}

/// Who does not want to go on leaves the host to a person.
#[test]
fn a_host_that_is_given_up() {
    let fault = "  faults: [{face: ssh, method: login, object: esx-a100-12, onCall: 2, then: dropBefore}]\n";
    let profile = A100_MIG.replace("\"esx-a100-*\"", "esx-a100-12");
    let folder = one(&profile, SITE, &world_with(fault));
    let left = folder.run(APPLY).expect(10);
    let next = left.stdout.lines().map(str::trim).find(|line| line.contains("--give-up")).unwrap();
    let given_up = folder.run(next.strip_prefix("poolwright ").unwrap());
    insta::assert_snapshot!("a host that is given up", given_up.shown());
    // Who works on it now takes it out of maintenance mode, or says `foundInMaintenance: change`.
    folder.write("profiles/pool.yaml", profile.replace("maxReboots: 1", "maxReboots: 1, foundInMaintenance: change"));
    let after = folder.run("plan --world world.yaml").expect(0);
    assert!(after.stdout.contains("No host is changed. 1 host as the profiles want it."), "{}", after.stdout);
}

#[test]
fn no_way_to_the_shell() {
    let _ = refused(
        "no way to the shell",
        SITE,
        &world_with("  faults: [{face: ssh, method: connect, times: 999, then: dropBefore}]\n"),
    );
}

#[test]
fn no_nvidia_smi() {
    let world = world_with(
        "  faults: [{face: ssh, method: nvidia-smi, times: 999, then: {prints: \"sh: nvidia-smi: not found\"}}, {face: ssh, method: nvidia-smi, times: 999, then: {omits: \"00000000:\"}}]\n",
    );
    let _ = refused("no nvidia-smi", SITE, &world);
}

#[test]
fn a_gpu_that_the_shell_does_not_show() {
    let fault = "  faults: [{face: ssh, method: nvidia-smi, times: 999, then: {omits: \"00000000:1F:00.0\"}}]\n";
    let _ = refused("a GPU that the shell does not show", SITE, &world_with(fault));
}

/// A line that nobody knows is kept; what the other lines say is not in doubt for that.
#[test]
fn an_unknown_line_of_nvidia_smi() {
    let line = "Unable to determine the device handle for GPU0000:1F:00.0: Unknown Error";
    let fault = format!("  faults: [{{face: ssh, method: nvidia-smi, times: 999, then: {{prints: \"{line}\"}}}}]\n");
    let folder = one(H100_MIG, SITE, &world_with(&fault));
    let _ = folder.run(APPLY).expect(0);
    let journal = folder.read(&format!(".poolwright/runs/{}/journal.jsonl", folder.run_id()));
    let told = format!("nvidia-smi also says `{line}`");
    let login = journal.lines().find(|entry| entry.contains("StepDone") && entry.contains("startShell")).unwrap();
    assert!(login.contains(&told), "{login}");
}

/// Read at plan time, and never changed.
#[test]
fn a_host_in_lockdown() {
    let locked = WORLD.replace(
        "shell: {users: [{name: root, password: lab}]}",
        "shell: {users: [{name: root, password: lab}], lockdown: normal}",
    );
    assert_ne!(locked, WORLD);
    let folder = one(H100_MIG, SITE, &locked);
    let _ = folder.run("plan --detailed-exitcode --world world.yaml").expect(2);
    insta::assert_snapshot!("lockdown", folder.run(APPLY).expect(9).shown());
    assert_eq!(writes(&folder, "esx-h100-11"), []);
}

/// Without a terminal nobody is waited for: the commands are in the report, and what comes next.
#[test]
fn a_person_types_and_the_run_goes_on() {
    // Somebody reads the event in vCenter and types what stands in it.
    let typed = |gpu: &str| {
        format!(
            "{{who: operator, host: esx-a100-11, once: {{method: LogUserEvent}}, after: 30s, \
             does: {{shell: {{command: \"nvidia-smi -i {gpu} -mig 1\"}}}}}}"
        )
    };
    let actors = format!("  actors: [{}, {}]\n", typed("0000:17:00.0"), typed("0000:1f:00.0"));
    let profile = A100_MIG.replace("\"esx-a100-*\"", "esx-a100-11");
    let folder = one(&profile, &by_hand(SITE), &world_with(&actors));
    insta::assert_snapshot!("by hand", folder.run(APPLY).expect(10).shown());
    let status = folder.run("status").expect(0).stdout;
    let json: Value = serde_json::from_str(&folder.run("status --output json").expect(0).stdout).unwrap();
    let commands = json["run"]["hosts"]["esx-a100-11"]["handoff"]["commands"].as_array().unwrap();
    assert!(commands.iter().any(|command| command == "nvidia-smi -i 0000:17:00.0 -mig 1"), "{commands:?}");
    for command in commands {
        assert!(status.lines().any(|line| line.trim() == command.as_str().unwrap()), "{command} is no line: {status}");
    }
    assert_eq!(json["exitCode"], 10);
    let next = status.lines().map(str::trim).find(|line| line.contains("--done")).unwrap().to_owned();
    insta::assert_snapshot!("done by hand", folder.run(next.strip_prefix("poolwright ").unwrap()).expect(0).shown());
    let after = folder.run("plan --world world.yaml").expect(0);
    assert!(after.stdout.contains("No host is changed. 1 host as the profiles want it."), "{}", after.stdout);
    insta::assert_snapshot!(
        "nobody is waited for",
        folder.run(next.strip_prefix("poolwright ").unwrap()).expect(3).shown()
    );
}

/// On Hopper vCenter shows it: nobody has to say so.
#[test]
fn a_person_is_waited_for() {
    let typed = |gpu: &str| {
        format!(
            "{{who: operator, host: esx-h100-11, once: {{method: LogUserEvent}}, after: 5m, \
             does: {{shell: {{command: \"nvidia-smi -i {gpu} -mig 1\"}}}}}}"
        )
    };
    let stop = "{who: operator, host: esx-h100-11, once: {method: LogUserEvent}, after: 4m, does: {shell: {command: \"/etc/init.d/nvdGpuMgmtDaemon stop\"}}}";
    let actors = format!("  actors: [{stop}, {}, {}]\n", typed("0000:17:00.0"), typed("0000:1f:00.0"));
    let folder = one(H100_MIG, &by_hand(SITE), &world_with(&actors));
    insta::assert_snapshot!("waited for", folder.run(&format!("{APPLY} --handoff-wait 20m")).expect(0).shown());
    let folder = one(H100_MIG, &by_hand(SITE), &world_with(&actors));
    let early = folder.run(&format!("{APPLY} --handoff-wait 3m")).expect(10);
    assert!(early.stdout.contains("esx-h100-11: waiting for a person"), "{}", early.stdout);
    let wrong = folder.run(&format!("{APPLY} --handoff-wait soon")).expect(3);
    assert!(wrong.stderr.contains("expected `90s`, `4m`, `1h 30m`"), "{}", wrong.stderr);
}

/// What was said and not done is found out by the reboot.
#[test]
fn a_person_says_so_and_nothing_was_typed() {
    let profile = A100_MIG.replace("\"esx-a100-*\"", "esx-a100-12");
    let folder = one(&profile, &by_hand(SITE), WORLD);
    let _ = folder.run(APPLY).expect(10);
    let done = format!("resume {} --done esx-a100-12 --world world.yaml", folder.run_id());
    insta::assert_snapshot!("said and not done", folder.run(&done).expect(10).shown());
    assert_eq!(did(&folder, "esx-a100-12", "RebootHost_Task"), 1);
    let other: Ended = folder.run(&done.replace("esx-a100-12", "esx-a100-11")).expect(3);
    assert!(other.stderr.contains("esx-a100-11"), "{}", other.stderr);
}

/// A host that is visited again, and then waits for a person, is not taken up a second time at once.
#[test]
fn a_person_is_asked_once_by_a_retry() {
    let fault = "  faults: [{method: EnterMaintenanceMode_Task, object: esx-h100-11, then: {taskFault: Timedout}}]\n";
    let folder = one(H100_MIG, &by_hand(SITE), &world_with(fault));
    let failed = folder.run(APPLY).expect(10);
    let next = failed.stdout.lines().map(str::trim).find(|line| line.contains("--retry")).unwrap();
    let again = folder.run(next.strip_prefix("poolwright ").unwrap()).expect(10);
    assert_eq!(again.stderr.matches("a person is asked").count(), 1, "{}", again.stderr);
    assert!(again.stdout.contains("esx-h100-11: waiting for a person"), "{}", again.stdout);
}
