//! What README.md shows is what the program does.

use super::harness::{Folder, WORLD};

const README: &str = include_str!("../../README.md");

/// The shipped fleet.
const WORLD_FILE: &str = "inventories/lab-world.yaml";

/// The fenced blocks of a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let mut blocks = Vec::new();
    let mut rest = README;
    while let Some(at) = rest.find(&format!("```{language}\n")) {
        let body = &rest[at + 4 + language.len()..];
        let end = body.find("```").unwrap();
        blocks.push(&body[..end]);
        rest = &body[end..];
    }
    blocks
}

#[test]
fn the_picture_of_a_plan_is_one() {
    let folder = Folder::empty();
    let shipped = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for part in ["profiles", "templates", "inventories/lab.yaml", WORLD_FILE] {
        let path = shipped.join(part);
        let files = std::fs::read_dir(&path).map(|all| all.map(|file| file.unwrap().path()).collect());
        for file in files.unwrap_or_else(|_| vec![path]) {
            folder.write(file.strip_prefix(shipped).unwrap().to_str().unwrap(), std::fs::read(&file).unwrap());
        }
    }
    let kubeconfig = folder.run(&format!("sim kubeconfig {WORLD_FILE}")).expect(0).stdout;
    folder.write("kubeconfig", kubeconfig);
    let plan = folder.run(&format!("plan --world {WORLD_FILE}")).expect(0).stdout;
    let [picture] = blocks("text")[..] else { panic!("one picture") };
    assert!(picture.lines().count() > 50);
    for line in picture.lines().filter(|line| *line != "…") {
        // The id is the digest of everything, the version of this program too.
        let shown = line.starts_with("Plan ") || plan.lines().any(|real| real == line);
        assert!(shown, "README.md shows a line that the plan has not:\n{line}\n--- the plan\n{plan}");
    }
}

#[test]
fn its_documents_are_read() {
    let folder = Folder::empty();
    folder.write("world.yaml", WORLD);
    let [profile, site, guests, nodes] = blocks("yaml")[..] else {
        panic!("a profile and a site, with guests of each")
    };
    folder.write("profile.yaml", format!("{profile}{nodes}"));
    let site = site.replace("fra1}", "lab}").replace("{thumbprint: \"AB:CD:…\"}", "system");
    folder.write("site.yaml", format!("{site}{guests}"));
    folder.write("templates/cuda-vector-add.yaml", include_str!("../../templates/cuda-vector-add.yaml"));
    let ended = folder.run("validate profile.yaml site.yaml").expect(0);
    assert_eq!(ended.stdout, "1 pool, 1 site, 0 worlds: no mistakes\n", "{}", ended.stderr);
}
