//! Commands that are proposed are those that can be typed: with the options by which the user's own
//! command reached its documents, its fleet and its runs.

use std::collections::BTreeSet;
use std::path::Path;

use super::harness::{Ended, Folder, H100, SITE, WORLD};

/// The commands of ours in what was printed: lines of their own, and what stands between backticks.
fn proposed(ended: &Ended) -> BTreeSet<String> {
    let text = format!("{}\n{}", ended.stdout, ended.stderr);
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with("poolwright ") || line.starts_with("cd "));
    // A report breaks a long hint into lines.
    let whole = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let inline = whole.split('`').skip(1).step_by(2).filter(|command| command.starts_with("poolwright "));
    lines.chain(inline).map(str::to_owned).collect()
}

/// Types a command into a shell.
fn typed(folder: &Folder, dir: &Path, command: &str) -> i32 {
    let script = format!("poolwright() {{ '{}' \"$@\"; }}; {command}", env!("CARGO_BIN_EXE_poolwright"));
    let output = std::process::Command::new("sh").args(["-c", &script]).current_dir(dir).output().unwrap();
    folder.ended(&output).code
}

/// Where nothing is where a command finds it by itself.
fn elsewhere() -> Folder {
    let folder = Folder::empty();
    folder.write("the docs/lab.yaml", SITE);
    folder.write("the docs/other.yaml", SITE.replace("name: lab}", "name: other}").replace("vc.lab", "vc.other"));
    folder.write("the docs/h100.yaml", H100);
    folder.write("it's a world.yaml", WORLD);
    folder
}

fn run_in(folder: &Folder, dir: &Path, words: &[&str]) -> Ended {
    let mut command = folder.program();
    folder.ended(&command.current_dir(dir).args(words).output().unwrap())
}

#[test]
fn every_proposed_command_can_be_typed_as_it_is_printed() {
    let folder = elsewhere();
    let here = folder.path();
    let fleet = ["--documents", "the docs", "--world", "it's a world.yaml"];
    let run = |words: &[&str], more: &[&str]| run_in(&folder, here, &[words, &fleet, more].concat());
    let state = ["--state", "kept here/state"];
    let mut all = BTreeSet::new();
    let mut take = |ended: Ended, code: i32, least: usize| {
        let ended = ended.expect(code);
        let commands = proposed(&ended);
        assert!(commands.len() >= least, "{commands:?}\n{}\n{}", ended.stdout, ended.stderr);
        all.extend(commands);
    };
    take(run(&["plan", "--site", "lab", "--out", "plan.json"], &[]), 0, 1);
    // The plan knows its site; a new one must be told it.
    take(run(&["apply", "plan.json"], &state), 10, 2);
    take(run_in(&folder, here, &["status", state[0], state[1]]), 0, 2);
    take(run(&["apply", "plan.json"], &state), 6, 1);
    take(run(&["resume"], &state), 10, 2);
    // Last what leaves nothing to go on with.
    let (end, all): (Vec<&String>, Vec<&String>) = all.iter().partition(|command| command.contains("--give-up"));
    for command in all.into_iter().chain(end) {
        assert!(!command.contains("FILE") && !command.contains(" RUN"), "{command}");
        let lacks = |option: &str| !command.contains(option);
        let verb = command.split(' ').nth(1).unwrap();
        match verb {
            "plan" => {
                assert!(!lacks("--documents 'the docs'") && !lacks("--site lab") && !lacks("--world"), "{command}")
            }
            "resume" | "abort" => assert!(!lacks("--documents") && !lacks("--world") && !lacks("--state"), "{command}"),
            "status" => assert!(!lacks("--state 'kept here/state'"), "{command}"),
            _ => {}
        }
        let code = typed(&folder, here, command);
        // The GPU is still missing, and the plan is spent: but each is understood, and finds what it needs.
        // `plan` takes no state directory, so its `apply` finds the marker of the run in the other one.
        assert!([0, 6, 7, 10].contains(&code), "{command}: exit {code}");
    }
}

/// `status` connects to nothing and takes no world: it knows from the run how its fleet is reached,
/// and where the paths of the command were meant.
#[test]
fn status_from_another_folder_proposes_to_go_where_the_run_was_begun() {
    let folder = Folder::lab(&[("h100", H100)]);
    let _ = folder.run("apply --yes --world world.yaml").expect(10);
    let away = folder.path().join("away");
    std::fs::create_dir(&away).unwrap();
    let ended = run_in(&folder, &away, &["status", "--state", "../.poolwright"]).expect(0);
    let commands = proposed(&ended);
    assert!(commands.iter().any(|command| command.contains(" resume ")), "{}", ended.stdout);
    let (end, commands): (Vec<&String>, Vec<&String>) =
        commands.iter().partition(|command| command.contains("--give-up"));
    for command in commands.into_iter().chain(end) {
        assert!(command.starts_with("cd ") && command.contains(" && poolwright "), "{command}");
        assert!([0, 10].contains(&typed(&folder, &away, command)), "{command}");
    }
}

/// A run of a simulated fleet that is taken up without it reaches nothing: it is said what is missing, and the
/// run is remembered as it was reached.
#[test]
fn a_run_of_a_simulated_fleet_that_is_taken_up_without_it_says_so() {
    let folder = Folder::lab(&[("h100", H100)]);
    let _ = folder.run("apply --yes --world world.yaml").expect(10);
    let before = proposed(&folder.run("status").expect(0));
    // Nobody listens there.
    folder.write("inventories/lab.yaml", folder.read("inventories/lab.yaml").replace("vc.lab", "127.0.0.1:9"));
    for verb in ["resume", "abort"] {
        let ended = folder.run(verb).expect(5);
        assert!(ended.stderr.contains("give `--world world.yaml`"), "{}", ended.stderr);
    }
    assert_eq!(proposed(&folder.run("status").expect(0)), before);
}

/// A process that died before the first line of its journal: `status` says what it is, and `resume`
/// as it is proposed begins it.
#[test]
fn a_run_without_a_line_is_told_and_can_be_begun() {
    let folder = Folder::lab(&[("h100", H100)]);
    let _ = folder.run("apply --yes --world world.yaml").expect(10);
    let run = folder.run_id();
    let journal = format!(".poolwright/runs/{run}/journal.jsonl");
    let header = folder.read(&journal).lines().next().unwrap().to_owned();
    let _ = folder.run("sim reset world.yaml").expect(0);
    for left in [Some(String::new()), Some(header[..9].to_owned()), Some(header + "\n"), None] {
        match &left {
            Some(text) => folder.write(&journal, text),
            None => std::fs::remove_file(folder.path().join(&journal)).unwrap(),
        }
        for line in ["status".to_owned(), format!("status {run}")] {
            let status = folder.run(&line).expect(0);
            assert!(status.stdout.contains("not begun") && status.stdout.contains("no host was touched"), "{left:?}");
            let command = format!("poolwright resume {run} --world world.yaml");
            assert_eq!(proposed(&status), BTreeSet::from([command]), "{left:?}: {}", status.stdout);
        }
        let json: serde_json::Value =
            serde_json::from_str(&folder.run("status --output json").expect(0).stdout).unwrap();
        assert_eq!(json, serde_json::json!({"exitCode": 9, "run": null, "notBegun": run, "handover": []}), "{left:?}");
    }
    insta::assert_snapshot!(folder.run("status").expect(0).shown());
    let begun = folder.run(&format!("resume {run} --world world.yaml")).expect(10);
    assert!(begun.stdout.contains("2 hosts as the plan wants it."), "{}", begun.stdout);
}
