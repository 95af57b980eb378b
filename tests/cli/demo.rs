//! The demo: what it prints is what is done, and can be done again.

use super::harness::Folder;

/// Commands that the demo showed, each with the exit code that it showed.
fn shown(stdout: &str) -> Vec<(String, i32)> {
    let mut commands = Vec::new();
    let mut current: Option<String> = None;
    for line in stdout.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            current = Some(command.to_owned());
            if command.starts_with("cat ") {
                commands.push((command.to_owned(), 0));
                current = None;
            }
        } else if let Some(code) = line.strip_prefix("(exit code ").and_then(|rest| rest.strip_suffix(')')) {
            commands.push((current.take().unwrap(), code.parse().unwrap()));
        }
    }
    assert!(current.is_none(), "{current:?} has no exit code");
    commands
}

/// Against toys 5: every command that the demo prints is run again from a fresh process, in its folder.
#[test]
fn every_command_of_the_demo_works_again_in_its_folder() {
    let folder = Folder::empty();
    let demo = folder.run("demo --dir there").expect(0);
    let alias = format!("alias poolwright={}", env!("CARGO_BIN_EXE_poolwright"));
    assert!(demo.stdout.contains(&alias), "a stranger has it nowhere on the PATH: {}", demo.stdout);
    assert!(!demo.stdout.contains('\u{1b}') && !demo.stderr.contains('\u{1b}'), "no colour without a terminal");
    let commands = shown(&demo.stdout);
    assert!(commands.len() >= 9, "{commands:?}");
    assert_eq!(commands.iter().filter(|(_, code)| *code == 10).count(), 1, "one thing goes wrong: {commands:?}");

    let run = |line: &str| {
        let mut parts = line.splitn(2, ' ');
        match (parts.next(), parts.next()) {
            (Some("cat"), Some(file)) => {
                let text = folder.read(&format!("there/{file}"));
                assert!(demo.stdout.contains(&text), "{file} is shown as it is");
                0
            }
            (Some("poolwright"), Some(rest)) => {
                let output = folder.command(rest).current_dir(folder.path().join("there")).output().unwrap();
                folder.ended(&output).code
            }
            other => panic!("no command of ours: {other:?}"),
        }
    };
    // As the demo left it: its plans change nothing any more, and a host carries the marker of its run.
    for (line, code) in &commands {
        let now = if line.contains(" apply ") { 7 } else { *code };
        assert_eq!(run(line), now, "{line}");
    }
    // The command that goes on: the GPU is as broken as before, and the host is closed once more.
    let retry = |line: &&str| line.contains("resume") && line.contains("--retry esx-serve-02 --world");
    let retry = demo.stdout.lines().map(str::trim).find(retry).unwrap();
    let again = folder.command(retry.strip_prefix("poolwright ").unwrap());
    let again = { again }.current_dir(folder.path().join("there")).output().unwrap();
    let card = folder.ended(&again).expect(10).stdout;
    assert!(card.contains("uncorrectable ECC") && card.contains("kubectl --context k8s-serve"), "{card}");
    // From the beginning: as the demo showed it.
    assert_eq!(run("poolwright sim reset inventories/lab-world.yaml"), 0);
    std::fs::remove_dir_all(folder.path().join("there/.poolwright")).unwrap();
    for (line, code) in &commands {
        assert_eq!(run(line), *code, "{line}");
    }
    // And the demo itself, in its own folder.
    let again = folder.run("demo --dir there").expect(0);
    assert_eq!(shown(&again.stdout), commands);
}

#[test]
fn the_demo_shows_nodes_and_a_budget_that_blocks_and_gives_way() {
    let folder = Folder::empty();
    let demo = folder.run("demo --dir .").expect(0);
    let told = |what: &str| demo.stderr.lines().position(|line| line.contains("esx-serve-02") && line.contains(what));
    let blocked = told("PodDisruptionBudget serving/chat needs 3 healthy pods and has 3").unwrap();
    let free = told("nothing keeps it from being drained now").unwrap();
    let failed = told("uncorrectable ECC").unwrap();
    assert!(blocked < free && free < failed, "{}", demo.stderr);
    let waits = demo.stderr.lines().filter(|line| line.contains("waiting: PodDisruptionBudget")).count();
    assert_eq!(waits, 0, "it is told once: {}", demo.stderr);
    let printed = folder.run("sim kubeconfig inventories/lab-world.yaml").expect(0).stdout;
    assert_eq!(folder.read("kubeconfig"), printed);
    let row = |text: &str| text.lines().find(|line| line.starts_with("  serve-2 ")).unwrap().to_owned();
    assert!(row(&demo.stdout).contains(" k8s-serve/worker-b "), "{}", demo.stdout);

    // While a guest cluster cannot be read, no VM is said to be none of its nodes.
    std::fs::remove_file(folder.path().join("kubeconfig")).unwrap();
    let unread = folder.run("discover --world inventories/lab-world.yaml").expect(0);
    assert!(row(&unread.stdout).contains(" ? "), "{}", unread.stdout);
    let said = unread.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("k8s-serve: the cluster: cannot use its kubeconfig (inventories/lab.yaml:"), "{said}");
    assert!(said.contains("`poolwright sim kubeconfig inventories/lab-world.yaml` prints"), "{said}");
}

#[test]
fn it_does_not_write_over_what_is_not_its_own() {
    let folder = Folder::empty();
    folder.write("mine/profiles/l40s.yaml", "mine");
    insta::assert_snapshot!(folder.run("demo --dir mine").expect(3).shown());
    assert_eq!(folder.read("mine/profiles/l40s.yaml"), "mine");
}
