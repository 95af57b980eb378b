//! Bad input: each message as people see it.

use std::time::Duration;

use poolwright::document::MAX_BYTES;
use poolwright::profile;

use super::{SITE, pool, problems, validate};

/// `tests/documents/bad/NAME.yaml`, with the site that its pool belongs to.
fn bad(name: &str) {
    let path = format!("{}/tests/documents/bad/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let shown = validate(&[("site.yaml", SITE), (&format!("{name}.yaml"), &text)]);
    assert!(!shown.is_empty());
    insta::assert_snapshot!(name, shown);
}

macro_rules! bad {
    ($($name:ident),+ $(,)?) => { $(#[test] fn $name() { bad(stringify!($name)); })+ };
}

bad!(
    unknown_key,
    duplicate_key,
    wrong_type,
    two_modes,
    empty_selector,
    does_not_fit,
    pool_without_site,
    site_without_credentials,
    password_in_document,
    sha1_thumbprint,
    http_address,
    several_mistakes,
    several_documents,
    bad_patterns,
    mode_without_braces,
    tabs,
    unclosed,
    later_issue_fields,
    shell_without_host_keys,
    shell_host_key,
);

/// A value that can do nothing, or that would move the cursor of whoever reads it: of each field that
/// takes a text, a list or a mapping, in each kind that says what people wish. Told once, at its place
/// and with a hint.
#[test]
fn useless_values_are_refused() {
    let in_pool = |line: &str| pool("a", &[line]);
    let in_site = |from: &str, to: &str| SITE.replace(from, to);
    let credentials = "credentials: {user: pw@vsphere.local, password: env:VC_PASSWORD}";
    let accept = |hosts: &str, reason: &str| {
        in_pool(&format!("accept: [{{finding: PW-DRV-02, hosts: {hosts}, reason: {reason}, until: 2026-12-31}}]"))
    };
    let hosts = |rest: &str| in_pool(&format!("hosts: {{site: lab, cluster: gpu-a, {rest}}}"));
    let gpus = |rest: &str| in_pool(&format!("gpus: [{rest}]"));
    let driver = |rest: &str| in_pool(&format!("host: {{driver: {rest}}}"));
    let trust = |rest: &str| in_site(credentials, &format!("trust: {{caFile: {rest}}}, {credentials}"));
    let password = |rest: &str| in_site("env:VC_PASSWORD", rest);
    let user = |rest: &str| in_site("pw@vsphere.local", rest);
    let empty = "is empty: it would do nothing";
    let control = "holds a line break or a control character";
    // The mark stands before the value that is meant.
    for (text, words) in [
        (in_pool("host: §{}"), empty),
        (driver("§{}"), empty),
        (driver("{component: §'', version: 580.95.02}"), empty),
        (driver("{component: NVD-AIE-800, version: §' '}"), empty),
        (in_pool("accept: §[]"), empty),
        (accept("§[]", "case"), empty),
        (accept("[§'']", "case"), empty),
        (accept("[esx-1]", "§' '"), empty),
        (accept("[§\"esx\\u0007\"]", "case"), control),
        (hosts("names: §[]"), empty),
        (hosts("names: [a, §\"\"]"), empty),
        (hosts("names: [a], except: §[]"), empty),
        (in_pool("hosts: {site: §'', cluster: gpu-a, names: [a]}"), empty),
        (in_pool("hosts: {site: lab, cluster: §\"gpu\\na\", names: [a]}"), control),
        (in_pool("gpuModel: §''"), empty),
        (in_pool("gpus: §[]"), empty),
        (gpus("{select: {addresses: §[]}, mode: {passthrough: {}}}"), empty),
        (gpus("{mode: {vgpu: {size: same}}, offers: §[]}"), empty),
        (gpus("{mode: {vgpu: {size: same}}, offers: [§{}]}"), empty),
        (gpus("{mode: {passthrough: {label: §''}}}"), empty),
        (gpus("{mode: {passthrough: {label: §\"a\\e[2J\"}}}"), control),
        (gpus("{mode: {vgpu: {size: same}}, offers: [{§\"nvidia\\a\": 1}]}"), control),
        (format!("{SITE}  pace: §{{}}\n"), empty),
        (trust("§''"), empty),
        (trust("§\"ca\\t.pem\""), control),
        (user("§''"), empty),
        (user("§'env: '"), "nothing follows"),
        (user("§env:A=B"), "the name of a variable"),
        (password("§\"exec:printf ''\""), "runs no shell"),
        (password("§'env:VC PASSWORD'"), "the name of a variable"),
        (password("§'exec: '"), "nothing follows"),
    ] {
        let (before, after) = text.split_once('§').unwrap();
        let (line, column) = (before.lines().count(), before.lines().last().unwrap().chars().count() + 1);
        let text = format!("{before}{after}");
        let loaded = super::load(&[("a.yaml", &text)]);
        let [problem] = loaded.problems.as_slice() else { panic!("{}\n{text}", problems(&loaded.problems)) };
        assert_eq!(problem.place.to_string(), format!("a.yaml:{line}:{column}"), "{problem}\n{text}");
        assert!(problem.message.contains(words) && !problem.hint.is_empty(), "{problem}");
        assert!(problem.snippet.is_some(), "{problem}");
    }
}

/// A World says what live systems hold, and those hold anything.
#[test]
fn a_world_may_hold_what_nobody_would_wish() {
    let text = "apiVersion: poolwright/v1\nkind: World\nmetadata: {name: w}\nspec:\n  vcenter: {address: vc.lab, users: \
                []}\n  datacenters: [{path: /DC, clusters: [{name: \"a\\u0007\", ha: {}, hosts: []}]}]\n";
    let world = &super::good(&[("w.yaml", text)]).worlds[0];
    assert!(world.parse::<poolwright::sim::document::WorldSpec>().is_ok());
}

#[test]
fn not_utf8() {
    let mut bytes = pool("a", &[]).into_bytes();
    let at = bytes.windows(5).position(|window| window == b"gpu-a").unwrap();
    bytes[at + 4] = 0xe4; // `ä` as Latin-1 has it
    let loaded = profile::load(&[("latin1.yaml".to_owned(), bytes)]);
    insta::assert_snapshot!("not_utf8", problems(&loaded.problems));
}

#[test]
fn fifty_megabytes() {
    let bytes = vec![b'a'; 50_000_000];
    let started = std::time::Instant::now();
    let loaded = profile::load(&[("large.yaml".to_owned(), bytes)]);
    // Refused by its size, before anything is parsed: parsing takes many seconds.
    assert!(started.elapsed() < Duration::from_secs(2));
    insta::assert_snapshot!("fifty_megabytes", problems(&loaded.problems));
}

#[test]
fn the_largest_file_is_read_in_linear_time() {
    // One mapping with as many keys as the size allows, all unknown: nothing quadratic.
    let mut text = pool("a", &[]);
    let mut n = 0;
    while text.len() < MAX_BYTES / 16 {
        text.push_str(&format!("  k{n}: v\n"));
        n += 1;
    }
    let loaded = profile::load(&[("many.yaml".to_owned(), text.into_bytes())]);
    assert_eq!(loaded.problems.len(), n);
}

#[test]
fn alias_bomb() {
    let mut text = String::from("apiVersion: poolwright/v1\nkind: GpuPool\nmetadata: {name: a}\nspec:\n");
    text.push_str("  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..10 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("  a{level}: &a{level} [{items}]\n"));
    }
    insta::assert_snapshot!("alias_bomb", validate(&[("bomb.yaml", &text)]));
}

#[test]
fn nothing_and_noise_never_panic() {
    for text in [
        "",
        "\0",
        "---",
        ": :",
        "? ? ?",
        "&a *a",
        "%TAG ! x\n--- !y z",
        "- - - -",
        "{",
        "\"",
        "|",
        "#",
        "\u{feff}",
        "\r",
        "\u{2028}",
    ] {
        assert!(!validate(&[("noise.yaml", text)]).is_empty(), "{text:?}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        let loaded = profile::load(&[("any.yaml".to_owned(), bytes)]);
        proptest::prop_assert!(!loaded.problems.is_empty());
    }

    /// A good document with a piece cut out or doubled: never a panic, and places inside the file.
    #[test]
    fn torn_documents(from in 0..400usize, length in 0..40usize, twice: bool) {
        let text = pool("a", &["gpus: [{select: {count: 1}, mode: {vgpu: {size: same}}, offers: [{nvidia_h100l-47c: 2}]}]"]);
        let from = from.min(text.len());
        let to = (from + length).min(text.len());
        let torn = if twice { format!("{}{}", &text[..to], &text[from..]) } else { format!("{}{}", &text[..from], &text[to..]) };
        let loaded = profile::load(&[("torn.yaml".to_owned(), torn.clone().into_bytes())]);
        let lines = torn.lines().count() + 1;
        for problem in &loaded.problems {
            proptest::prop_assert!(problem.place.line as usize <= lines);
        }
        profile::check(&loaded, None);
    }
}
