//! F11: no credential leaves the process, at the highest log level.

use super::harness::{Folder, H100, H100_MIG, SITE, WORLD};

/// With signs that XML, JSON and YAML escape in different ways.
const MARKED: &str = "MARK3D<&>'\"secret";

#[test]
fn f11_marked_credentials_stand_in_nothing_that_is_written_or_printed() {
    let folder = Folder::lab(&[("h100", H100), ("mig", H100_MIG)]);
    let in_yaml = MARKED.replace('\'', "''");
    folder.write("world.yaml", WORLD.replace("password: lab", &format!("password: '{in_yaml}'")));
    let mut printed = Vec::new();
    for (number, reference) in ["env:VC_PASSWORD", "file:password"].into_iter().enumerate() {
        folder.write("inventories/lab.yaml", SITE.replace("exec:echo lab", reference));
        folder.write("password", format!("{MARKED}\n"));
        let _ = folder.run("sim reset world.yaml").expect(0);
        for line in [
            "validate",
            "discover --world world.yaml",
            "discover --output json --world world.yaml",
            "plan --out plan.json --world world.yaml",
            "apply plan.json --world world.yaml",
            "status --output json",
            "resume --world world.yaml",
            "abort --world world.yaml",
        ] {
            let line = format!("{line} -vvv").replace("status --output json", "status --output json");
            let state = format!("state-{number}");
            let output = folder
                .command(&line)
                .env("VC_PASSWORD", MARKED)
                .env("POOLWRIGHT_LOG", "trace")
                .env("POOLWRIGHT_STATE", &state)
                .output()
                .unwrap();
            printed.push((line, folder.ended(&output)));
        }
        // A wrong one is as secret as the right one.
        folder.write("password", format!("{MARKED}-wrong\n"));
        let output = folder
            .command("discover --world world.yaml -vvv")
            .env("VC_PASSWORD", format!("{MARKED}-wrong"))
            .env("POOLWRIGHT_LOG", "trace")
            .output()
            .unwrap();
        printed.push(("wrong".to_owned(), folder.ended(&output).expect(5)));
    }
    assert!(printed.iter().any(|(_, ended)| ended.stderr.contains("TRACE") || ended.stderr.contains("DEBUG")));
    for (line, ended) in &printed {
        for stream in [&ended.stdout, &ended.stderr] {
            assert!(!stream.contains("MARK3D"), "{line}: {stream}");
        }
    }
    let ours = |path: &std::path::Path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // Written by this test as its input, and the fleet itself, whose hosts know their passwords.
        name != "password" && !name.starts_with("world.yaml")
    };
    let files = folder.files();
    let journal = |word: &str| {
        files.iter().any(|(path, text)| path.ends_with("journal.jsonl") && String::from_utf8_lossy(text).contains(word))
    };
    assert!(journal("RunStarted") && journal("logged in"), "a journal was written, and a shell was logged in to");
    for (path, bytes) in files.iter().filter(|(path, _)| ours(path)) {
        assert!(!String::from_utf8_lossy(bytes).contains("MARK3D"), "{}", path.display());
    }
}
