//! Signals at the binary (F13, FORMATS rule 16), against the simulator on a port: real TLS, real time.
//! Each step waits for what the program prints, never for a time.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Stdio};

use serde_json::Value;

use super::harness::{Ended, Folder, H100, L40S, WORLD};
use super::ports::{Sim, signal};

/// A command that is watched while it works.
pub struct Watched {
    child: Child,
    stderr: BufReader<ChildStderr>,
    told: String,
}

impl Watched {
    pub fn start(folder: &Folder, line: &str) -> Self {
        let mut child = folder.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr, told: String::new() }
    }

    /// Reads what it tells, until this was told.
    pub fn until(&mut self, text: &str) {
        while !self.told.contains(text) {
            assert_ne!(self.stderr.read_line(&mut self.told).unwrap(), 0, "ended before {text:?}: {}", self.told);
        }
    }

    /// Kills it, as nothing can be caught. The answer is what it told.
    pub fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.stderr.read_to_string(&mut self.told).unwrap();
        self.told
    }

    fn end(mut self, folder: &Folder) -> Ended {
        self.stderr.read_to_string(&mut self.told).unwrap();
        let output = self.child.wait_with_output().unwrap();
        let mut ended = folder.ended(&output);
        ended.stderr = self.told;
        ended
    }
}

/// One host of the lab that is changed, and the lab on a port.
fn lab(profile: &str, options: &str) -> (Folder, Sim) {
    let folder = Folder::lab(&[("pool", profile)]);
    // Down for so long that no machine is slow enough to see the reboot end.
    folder.write("world.yaml", WORLD.replace("boot: {down: 4m, flaps: 1, stale: 90s}", "boot: {down: 24h}"));
    let sim = Sim::start(&folder, options);
    folder.write("inventories/lab.yaml", sim.pinned_site());
    (folder, sim)
}

/// The writes to a host that had an effect, from the log of the world itself.
fn writes(folder: &Folder, host: &str) -> Vec<String> {
    let state: Value = serde_json::from_str(&folder.read("world.yaml.state")).unwrap();
    let text = |write: &Value, key: &str| write[key].as_str().unwrap_or_default().to_owned();
    find(&state, "log")
        .and_then(Value::as_array)
        .unwrap()
        .iter()
        .filter(|write| text(write, "object") == host && write["effect"] == true)
        .map(|write| text(write, "call"))
        .collect()
}

/// The value of a key, wherever it is.
fn find<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match value {
        Value::Object(map) => map.get(key).or_else(|| map.values().find_map(|below| find(below, key))),
        Value::Array(items) => items.iter().find_map(|below| find(below, key)),
        _ => None,
    }
}

/// Every line of the journal is one, and the program reads it.
fn journal_is_valid(folder: &Folder) -> Vec<Value> {
    let run = folder.run_id();
    let journal = folder.read(&format!(".poolwright/runs/{run}/journal.jsonl"));
    assert!(journal.ends_with('\n'), "torn: {journal}");
    let lines = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let status = folder.run("status").expect(0);
    assert!(status.stdout.contains(&format!("poolwright resume {run}")), "{}", status.stdout);
    lines
}

const SIGNALS: [(&str, &str, i32); 2] = [("INT", "Ctrl-C", 130), ("TERM", "SIGTERM", 143)];

/// The first one cancels the entering, says how the host was left, and ends in order.
#[test]
fn f13_the_first_signal_stops_in_order() {
    let profile = L40S.replace("\"esx-l40s-*\"", "esx-l40s-01").replace("size: same", "size: mixed");
    let profile = profile.replace("offers: [{nvidia_l40s-24q: 2}, {nvidia_l40s-12q: 4}]", "");
    for (name, word, code) in SIGNALS {
        let (folder, sim) = lab(&profile, "");
        let mut apply = Watched::start(&folder, "apply --yes -vv");
        apply.until("enter maintenance mode ...");
        signal(&apply.child, name);
        let ended = apply.end(&folder).expect(code);
        assert!(
            ended.stderr.contains(&format!("{word}: the running step ends, then the run stops")),
            "{}",
            ended.stderr
        );
        assert!(ended.stderr.contains(&format!("stopped by {word}")), "{}", ended.stderr);
        assert!(ended.stdout.contains(&format!("poolwright resume {}", folder.run_id())), "{}", ended.stdout);
        assert!(logged_out(&ended), "{}", ended.stderr);
        let journal = journal_is_valid(&folder);
        for event in ["Signal", "HostLeft", "RunFinished"] {
            assert!(journal.iter().any(|line| find(line, event).is_some()), "{event}: {journal:#?}");
        }
        sim.end();
        let writes = writes(&folder, "esx-l40s-01");
        assert!(!writes.iter().any(|call| call.contains("Reboot") || call.contains("Graphics")), "{writes:?}");
    }
}

/// The second one ends it in the middle of a step that lasts: nothing more is sent but the logout.
#[test]
fn f13_the_second_signal_stops_at_once() {
    let profile = H100.replace("\"esx-h100-*\"", "esx-h100-01");
    for (name, word, code) in SIGNALS {
        let (folder, sim) = lab(&profile, " --speed 60");
        let mut apply = Watched::start(&folder, "apply --yes -vv");
        apply.until("reboot ...");
        signal(&apply.child, name);
        apply.until(&format!("{word}: the running step ends, then the run stops; once more stops at once"));
        signal(&apply.child, name);
        let ended = apply.end(&folder).expect(code);
        assert!(logged_out(&ended), "{}", ended.stderr);
        let journal = journal_is_valid(&folder);
        assert!(find(journal.last().unwrap(), "RunFinished").is_some(), "{journal:#?}");
        assert!(!journal.iter().any(|line| find(line, "HostReleased").is_some()), "{journal:#?}");
        sim.end();
        let writes = writes(&folder, "esx-h100-01");
        // The signal may come before the call of the step or after it; nothing follows it.
        let after = writes.iter().position(|call| call.contains("Reboot")).unwrap_or(writes.len() - 1);
        assert_eq!(after, writes.len() - 1, "{writes:?}");
        assert!(!writes.iter().any(|call| call.contains("ExitMaintenance")), "{writes:?}");
    }
}

/// Signals while nothing but reading is done: nothing was changed, and it says so.
#[test]
fn f13_a_signal_before_anything_is_done() {
    let folder = Folder::lab(&[("l40s", L40S)]);
    // A server that takes the connection and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let site = super::harness::SITE.replace("address: vc.lab", &format!("address: {}", silent.local_addr().unwrap()));
    folder.write("inventories/lab.yaml", site);
    for (name, word, code) in SIGNALS {
        let plan = Watched::start(&folder, "plan");
        let (_waiting, _) = silent.accept().unwrap();
        signal(&plan.child, name);
        let ended = plan.end(&folder).expect(code);
        assert!(ended.stderr.contains(&format!("stopped by {word}; nothing was changed")), "{}", ended.stderr);
    }
}

/// The log tells each call.
fn logged_out(ended: &Ended) -> bool {
    ended.stderr.lines().any(|line| line.contains("\"Logout\"") || line.contains("Logout"))
}
