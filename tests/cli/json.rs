//! The keys of all JSON that is printed: one convention.

use serde_json::Value;

use super::harness::{Folder, H100, L40S};

/// Calls this for every key, with the way to it.
fn keys(value: &Value, path: &str, tell: &mut impl FnMut(&str, &str)) {
    match value {
        Value::Object(map) => {
            for (key, below) in map {
                tell(path, key);
                keys(below, &format!("{path}.{key}"), tell);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, &format!("{path}[]"), tell)),
        _ => {}
    }
}

/// Every key is camelCase. Names of hosts, types and files are keys, too: they hold a sign that no
/// field has.
#[test]
fn keys_are_camel_case() {
    let folder = Folder::lab(&[("h100", H100), ("l40s", L40S)]);
    folder.write("bad.yaml", L40S.replace("gpuModel", "gpuModle"));
    let seen = are_camel_case(
        &folder,
        &[
            ("validate --output json", 0),
            ("validate bad.yaml --output json", 3),
            ("catalog --output json", 0),
            ("catalog h100-nvl-94 --output json", 0),
            ("catalog rtxpro6000-bse --output json", 0),
            ("catalog fit h100-nvl-94 mixed nvidia_h100l-47c=3 --output json", 0),
            ("discover --output json --world world.yaml", 0),
            ("status --output json", 0),
            ("plan --out plan.json --output json --world world.yaml", 0),
            ("apply plan.json --output json --world world.yaml", 10),
            ("status --output json", 0),
            ("plan --output json --world world.yaml", 0),
        ],
    );
    assert!(seen > 5_000, "{seen} keys");
}

/// Guest clusters, VMs that are stopped, and a host that is left: the fleet of the demo.
#[test]
fn keys_are_camel_case_where_nodes_and_vms_are_left() {
    let folder = Folder::empty();
    let _ = folder.run("demo --dir .").expect(0);
    std::fs::remove_dir_all(folder.path().join(".poolwright")).unwrap();
    // As it was before the demo.
    folder.write("world.yaml", folder.read("inventories/lab-world.yaml"));
    let world = "--world world.yaml";
    let _ = folder.run(&format!("plan --out plan.json {world}")).expect(0);
    let _ = folder.run(&format!("apply plan.json {world}")).expect(10);
    let status: Value = serde_json::from_str(&folder.run("status --output json").expect(0).stdout).unwrap();
    let left = &status["handover"][0]["notPutBack"];
    assert!(left.as_array().is_some_and(|left| left.len() > 2), "{status:#}");
    let shown = status.to_string();
    assert!(shown.contains(r#""uncompensated":[{"node":"#) && shown.contains(r#"{"vm":{"#), "{status:#}");
    let seen = are_camel_case(
        &folder,
        &[
            ("status --output json", 0),
            (&format!("discover --output json {world}"), 0),
            (&format!("plan --output json {world}"), 0),
        ],
    );
    assert!(seen > 500, "{seen} keys");
}

/// Runs these, each with its exit code, and says how many keys they print.
fn are_camel_case(folder: &Folder, lines: &[(&str, i32)]) -> usize {
    let (mut seen, mut wrong) = (0, std::collections::BTreeSet::new());
    for (line, code) in lines {
        let ended = folder.run(line).expect(*code);
        let value: Value = serde_json::from_str(&ended.stdout).unwrap();
        keys(&value, "", &mut |path, key| {
            seen += 1;
            let field = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            let camel = key.starts_with(|c: char| c.is_ascii_lowercase()) && !key.contains('_');
            if field && !camel {
                wrong.insert(format!("{}: {key}, as in {path}", line.split(' ').next().unwrap()));
            }
        });
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    seen
}
