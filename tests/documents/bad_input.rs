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
);

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
