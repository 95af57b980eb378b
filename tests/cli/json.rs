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
    let (mut seen, mut wrong) = (0, std::collections::BTreeSet::new());
    for (line, code) in [
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
    ] {
        let ended = folder.run(line).expect(code);
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
    assert!(seen > 5_000, "{seen} keys");
}
