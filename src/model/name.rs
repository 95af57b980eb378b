//! Names of inventory objects: vim25's escapes undone, our own in paths.

/// Undoes the three escapes that vim25 uses in `name` (`%25` for `%`, `%2f` for `/`, `%5c` for
/// `\`, either case). Anything else stays as it is, byte for byte: a lone `%` is a plain sign that
/// an older server let through.
pub fn unescape(wire: &str) -> String {
    let mut shown = String::with_capacity(wire.len());
    let mut rest = wire;
    while let Some(at) = rest.find('%') {
        shown.push_str(&rest[..at]);
        let sign = match rest.get(at + 1..at + 3) {
            Some("25") => Some('%'),
            Some("2f" | "2F") => Some('/'),
            Some("5c" | "5C") => Some('\\'),
            _ => None,
        };
        shown.push(sign.unwrap_or('%'));
        rest = &rest[at + if sign.is_some() { 3 } else { 1 }..];
    }
    shown.push_str(rest);
    shown
}

/// A name as a part of a path: `/` is `%2f`, and `%` is `%25` so that the way back is unique.
pub fn path_part(shown: &str) -> String {
    shown.replace('%', "%25").replace('/', "%2f")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_escapes_are_undone_and_nothing_else() {
        assert_eq!(unescape("a%2fb%5Cc%25d"), "a/b\\c%d");
        assert_eq!(unescape("%252f"), "%2f", "an escaped percent sign is not read twice");
        assert_eq!(unescape("100%"), "100%");
        assert_eq!(unescape("%zz%2"), "%zz%2");
        assert_eq!(unescape("東%2f京 \"#ü"), "東/京 \"#ü");
    }

    proptest::proptest! {
        #[test]
        fn a_path_part_has_no_slash_and_reads_back(name in ".*") {
            let part = path_part(&name);
            proptest::prop_assert!(!part.contains('/'));
            proptest::prop_assert_eq!(unescape(&part.replace('\\', "%5c")), name);
        }
    }
}
