//! What the program says of itself.

use super::harness::Folder;

const VERBS: [&str; 13] = [
    "validate",
    "schema",
    "catalog",
    "discover",
    "plan",
    "apply",
    "resume",
    "abort",
    "status",
    "sim",
    "demo",
    "completions",
    "man",
];

#[test]
fn help_starts_with_examples() {
    let ended = Folder::empty().run("--help").expect(0);
    let head: Vec<&str> = ended.stdout.lines().take(3).collect();
    assert_eq!(head[2], "Examples:", "{}", ended.stdout);
    insta::assert_snapshot!(ended.shown());
}

#[test]
fn every_verb_explains_itself() {
    let folder = Folder::empty();
    let listed = folder.run("--help").expect(0).stdout;
    for verb in VERBS {
        assert!(listed.lines().any(|line| line.trim_start().starts_with(verb)), "{verb} is not listed");
        insta::assert_snapshot!(format!("help of {verb}"), folder.run(&format!("{verb} --help")).expect(0).shown());
    }
    insta::assert_snapshot!("help of catalog fit", folder.run("catalog fit --help").expect(0).shown());
}

/// Every option that the help of a verb shows is one that the code reads: none does nothing. The
/// list is kept here by hand, so that a new option asks for a test of what it does.
#[test]
fn every_option_is_known_to_a_test() {
    let folder = Folder::empty();
    let known = [
        "--beside",
        "--detailed-exitcode",
        "--dir",
        "--documents",
        "--done",
        "--from-live",
        "--give-up",
        "--handoff-wait",
        "--help",
        "--json-into",
        "--out",
        "--output",
        "--port",
        "--retry",
        "--site",
        "--known-hosts",
        "--kubeconfig",
        "--speed",
        "--state",
        "--verbose",
        "--world",
        "--yes",
    ];
    for verb in VERBS {
        let help = folder.run(&format!("{verb} -h")).expect(0).stdout;
        for option in help.split_whitespace().filter(|word| word.starts_with("--")) {
            let option = option.trim_end_matches(|c: char| !c.is_ascii_lowercase());
            assert!(known.contains(&option), "{verb} has {option}");
        }
    }
}

#[test]
fn the_version_is_that_of_the_crate() {
    let ended = Folder::empty().run("--version").expect(0);
    assert_eq!(ended.stdout, format!("poolwright {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_wrong_argument_is_bad_input() {
    let folder = Folder::empty();
    for line in ["", "bogus", "plan --bogus", "apply plan.json --yes", "catalog fit l40s", "sim"] {
        let ended = folder.run(line).expect(3);
        assert!(ended.stdout.is_empty(), "{line}: {}", ended.stdout);
        assert!(!ended.stderr.is_empty(), "{line}");
    }
}

#[test]
fn the_catalogue_answers_in_words_and_in_json() {
    let folder = Folder::empty();
    let fits = folder.run("catalog fit h100-nvl-94 mixed nvidia_h100l-47c=1 nvidia_h100l-23c=2").expect(0);
    assert!(fits.stdout.starts_with("fits: "), "{}", fits.stdout);
    let json = folder.run("catalog fit h100-nvl-94 mixed nvidia_h100l-47c=3 --output json").expect(0);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["fits"], false);
    assert_eq!(json["firstMisfit"], "nvidia_h100l-47c");
    assert!(json["nearest"].as_array().is_some_and(|near| !near.is_empty()), "{json}");
    let beside = "catalog fit h100-nvl-94 migVgpu nvidia_h100l-3-47c=1 --beside 3g.47gb@0 3g.47gb@4 --output json";
    let json: serde_json::Value = serde_json::from_str(&folder.run(beside).expect(0).stdout).unwrap();
    assert_eq!(json["fits"], false, "{json}");
    let unknown = folder.run("catalog h100-nvl").expect(3);
    insta::assert_snapshot!(unknown.shown(), @r"
    exit 3
    --- stdout
    --- stderr
    error: there is no model `h100-nvl`
    hint: nearest: h100-nvl-94; `poolwright catalog` lists all
    ");
}

#[test]
fn schemas_are_json_and_wrong_kinds_are_named() {
    let folder = Folder::empty();
    for kind in ["GpuPool", "Site", "World"] {
        let schema: serde_json::Value =
            serde_json::from_str(&folder.run(&format!("schema {kind}")).expect(0).stdout).unwrap();
        assert_eq!(schema["title"], kind);
    }
    let wrong = folder.run("schema GpuPol").expect(3);
    assert!(wrong.stderr.contains("nearest: GpuPool"), "{}", wrong.stderr);
}

/// What a shell completes is what there is.
#[test]
fn completions_know_every_verb_and_option() {
    let folder = Folder::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.run(&format!("completions {shell}")).expect(0).stdout;
        for word in VERBS.iter().copied().chain(["from-live", "detailed-exitcode"]) {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
    let wrong = folder.run("completions tcsh").expect(3);
    assert!(wrong.stderr.contains("bash"), "{}", wrong.stderr);
}

/// bash itself reads the script and completes by it.
#[cfg(unix)]
#[test]
fn bash_completes_a_verb() {
    let folder = Folder::empty();
    folder.write("script", folder.run("completions bash").expect(0).stdout);
    let ask = "source ./script; COMP_WORDS=(poolwright dis); COMP_CWORD=1; _poolwright poolwright dis poolwright; \
               echo \"${COMPREPLY[@]}\"";
    let answer = std::process::Command::new("bash").args(["-c", ask]).current_dir(folder.path()).output().unwrap();
    assert_eq!(String::from_utf8(answer.stdout).unwrap(), "discover\n");
}

#[test]
fn there_is_a_manual_page_for_the_program_and_for_each_command() {
    let folder = Folder::empty();
    let page = folder.run("man").expect(0).stdout;
    assert!(page.contains(".TH poolwright 1") && page.contains("Exit codes:"), "{page}");
    for verb in VERBS {
        assert!(page.contains(&format!("poolwright\\-{verb}(1)")), "{verb} is not named: {page}");
        let own = folder.run(&format!("man {verb}")).expect(0).stdout;
        assert!(own.contains(&format!(".TH poolwright-{verb} 1")), "{own}");
    }
    assert!(folder.run("man catalog fit").expect(0).stdout.contains("\\-\\-beside"));
    let wrong = folder.run("man plna").expect(3);
    assert!(wrong.stderr.contains("did you mean `plan`?"), "{}", wrong.stderr);
}
