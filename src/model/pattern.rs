//! Patterns of names: of hosts, and of VMs and their folders.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The most names that the ranges of one pattern may make: more is a slip of the keyboard, and a
/// cluster has at most 96 hosts.
const MAX_NAMES: usize = 10_000;

/// A pattern of host names: `esx-gpu-01`, `esx-gpu-0*` (`*` any text, `?` one character),
/// `esx-gpu-[01-03]` (numbers in as many digits as the first has).
///
/// A range lists names, so each of them is expected to exist; `*` and `?` take what is there.
/// Names compare byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPattern {
    text: String,
    /// The pattern with its ranges written out, in order.
    globs: Vec<String>,
}

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a host pattern: {reason}")]
pub struct HostPatternError {
    /// The text as given.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}

impl HostPattern {
    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The pattern with its ranges written out: names, or globs of `*` and `?`.
    pub fn parts(&self) -> impl Iterator<Item = HostGlob<'_>> {
        self.globs.iter().map(|glob| HostGlob(glob))
    }

    /// The names that it lists, if it has no `*` and no `?`.
    pub fn names(&self) -> Option<&[String]> {
        self.parts().all(|glob| glob.is_name()).then_some(self.globs.as_slice())
    }

    /// Whether it takes the name.
    pub fn matches(&self, name: &str) -> bool {
        self.parts().any(|glob| glob.matches(name))
    }
}

/// One name, or a glob of `*` and `?`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostGlob<'p>(&'p str);

impl<'p> HostGlob<'p> {
    /// The text.
    pub fn as_str(self) -> &'p str {
        self.0
    }

    /// Whether it is a plain name.
    pub fn is_name(self) -> bool {
        !self.0.contains(['*', '?'])
    }

    /// Whether it takes the name.
    pub fn matches(self, name: &str) -> bool {
        takes(self.0, name)
    }
}

/// Whether a glob of `*` and `?` takes a text.
fn takes(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    // The last `*` and how much of the name it has taken: going back to it is enough.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&sign) if sign == '?' || sign == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                (p, n) = (at + 1, taken + 1);
            }
        }
    }
    pattern[p..].iter().all(|&sign| sign == '*')
}

/// A pattern of one name that may hold any sign: `*` any text, `?` one character. Names compare byte
/// for byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamePattern(String);

/// A pattern of the path of a folder and all below it: `/Prod/EU/DC1/vm/serve`, `/*/vm/serve-?`. `*`
/// and `?` do not cross a `/`; names are written as paths of hosts are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FolderPattern(String);

/// Why a text is no pattern of names or folders.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a pattern of {of}: {reason}")]
pub struct PatternError {
    /// The text as given.
    pub text: String,
    /// Of what.
    pub of: &'static str,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl NamePattern {
    /// Whether it takes the name.
    pub fn matches(&self, name: &str) -> bool {
        takes(&self.0, name)
    }
}

impl FolderPattern {
    /// Whether the folder of this path is one that it takes, or below one.
    pub fn matches(&self, path: &str) -> bool {
        let mut parts = path.trim_start_matches('/').split('/');
        self.0.trim_matches('/').split('/').all(|own| parts.next().is_some_and(|part| takes(own, part)))
    }
}

impl FromStr for NamePattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let fail = |reason| Err(PatternError { text: text.to_owned(), of: "VM names", reason });
        match text {
            "" => fail("it is empty"),
            text if text.chars().any(char::is_control) => fail("it holds a control character"),
            text => Ok(Self(text.to_owned())),
        }
    }
}

impl FromStr for FolderPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let fail = |reason| Err(PatternError { text: text.to_owned(), of: "folders", reason });
        let inner = text.trim_matches('/');
        match text {
            text if !text.starts_with('/') => fail("it begins with `/`, as `/DC1/vm/serve` does"),
            text if text.chars().any(char::is_control) => fail("it holds a control character"),
            _ if inner.is_empty() || inner.split('/').any(str::is_empty) => fail("a part of it is empty"),
            text => Ok(Self(text.to_owned())),
        }
    }
}

/// Written, read and shown as text.
macro_rules! as_text {
    ($($name:ident),+) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}
as_text!(NamePattern, FolderPattern);

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(text: &str) -> Result<Self, HostPatternError> {
        let fail = |reason: &str| HostPatternError { text: text.to_owned(), reason: reason.to_owned() };
        if text.is_empty() {
            return Err(fail("it is empty"));
        }
        if text.trim() != text || text.chars().any(char::is_control) {
            return Err(fail("it starts or ends with a blank, or holds a control character"));
        }
        let mut globs = vec![String::new()];
        let mut rest = text;
        while let Some(at) = rest.find(['[', ']']) {
            let (before, from) = rest.split_at(at);
            let Some(inside) = from.strip_prefix('[') else { return Err(fail("`]` without `[`")) };
            let Some((range, after)) = inside.split_once(']') else { return Err(fail("`[` without `]`")) };
            let numbers = numbers(range).map_err(|reason| fail(&reason))?;
            if globs.len().saturating_mul(numbers.len()) > MAX_NAMES {
                return Err(fail(&format!("its ranges make more than {MAX_NAMES} names")));
            }
            globs = globs
                .iter()
                .flat_map(|glob| numbers.iter().map(move |number| format!("{glob}{before}{number}")))
                .collect();
            rest = after;
        }
        globs.iter_mut().for_each(|glob| glob.push_str(rest));
        Ok(Self { text: text.to_owned(), globs })
    }
}

/// `01-03` as `01`, `02`, `03`.
fn numbers(range: &str) -> Result<Vec<String>, String> {
    let shape = || format!("`[{range}]` is not a range like `[01-16]`");
    let (from, to) = range.split_once('-').ok_or_else(shape)?;
    let number = |text: &str| -> Result<usize, String> {
        // Nine digits stay inside every integer type and are past every numbering of hosts.
        let digits = !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
        if digits { text.parse().map_err(|_| shape()) } else { Err(shape()) }
    };
    let (first, last) = (number(from)?, number(to)?);
    if first > last {
        return Err(format!("`[{range}]` runs backwards"));
    }
    if last - first >= MAX_NAMES {
        return Err(format!("`[{range}]` makes more than {MAX_NAMES} names"));
    }
    let width = from.len();
    Ok((first..=last).map(|number| format!("{number:0width$}")).collect())
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Serialize for HostPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for HostPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> HostPattern {
        text.parse().unwrap()
    }

    #[test]
    fn globs_and_ranges() {
        assert!(pattern("esx-gpu-0*").matches("esx-gpu-09") && !pattern("esx-gpu-0*").matches("esx-gpu-10"));
        assert!(pattern("*-??").matches("a-b-01") && !pattern("*-??").matches("a-b-1"));
        assert!(pattern("*").matches("") && pattern("a*b*c").matches("axbxbc") && !pattern("a*b").matches("abx"));
        assert!(pattern("東?-*").matches("東京-01"));
        assert!(!pattern("ESX-01").matches("esx-01"));
        let range = pattern("esx-[08-11].lab");
        assert_eq!(range.names().unwrap(), ["esx-08.lab", "esx-09.lab", "esx-10.lab", "esx-11.lab"]);
        assert!(range.matches("esx-10.lab") && !range.matches("esx-8.lab"));
        assert_eq!(pattern("r[1-2]n[9-10]").names().unwrap(), ["r1n9", "r1n10", "r2n9", "r2n10"]);
        assert_eq!(pattern("a[1-2]*").names(), None);
        assert!(pattern("quote'\"#ü").matches("quote'\"#ü"));
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        for (text, why) in [
            ("", "empty"),
            (" a", "blank"),
            ("a\n", "blank"),
            ("a[1-", "without `]`"),
            ("a]", "without `[`"),
            ("a[1]", "not a range"),
            ("a[1-2-3]", "not a range"),
            ("a[x-y]", "not a range"),
            ("a[-1]", "not a range"),
            ("a[[1-2]]", "not a range"),
            ("a[3-1]", "backwards"),
            ("a[0-99999]", "more than 10000"),
            ("a[0-999][0-999]", "more than 10000"),
            ("a[0-99999999999999999999]", "not a range"),
        ] {
            let error = text.parse::<HostPattern>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn folders_take_what_is_below_them() {
        let takes = |pattern: &str, path: &str| pattern.parse::<FolderPattern>().unwrap().matches(path);
        assert!(takes("/DC1/vm/serve", "/DC1/vm/serve") && takes("/DC1/vm/serve/", "/DC1/vm/serve/a/b"));
        assert!(!takes("/DC1/vm/serve", "/DC1/vm/serve-2") && !takes("/DC1/vm/serve", "/DC1/vm"));
        assert!(takes("/*/vm/s?", "/DC1/vm/s1") && !takes("/*/serve", "/DC1/vm/serve"), "a star stays in its part");
        for (text, why) in [("", "begins with"), ("DC1/vm", "begins with"), ("/", "empty"), ("/a//b", "empty")] {
            let error = text.parse::<FolderPattern>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn names_of_vms_hold_any_sign() {
        let takes = |pattern: &str, name: &str| pattern.parse::<NamePattern>().unwrap().matches(name);
        assert!(takes("serve-*", "serve-1") && takes("a [1-2]", "a [1-2]") && !takes("a", "A"));
        assert!("".parse::<NamePattern>().is_err() && "a\n".parse::<NamePattern>().is_err());
    }

    proptest! {
        #[test]
        fn never_panics_and_takes_what_it_lists(text in "[a-c*?\\[\\]0-9ü-]{0,12}", name in "[a-c0-9ü-]{0,8}") {
            if let Ok(pattern) = text.parse::<HostPattern>() {
                pattern.matches(&name);
                prop_assert_eq!(pattern.to_string(), text);
                for listed in pattern.names().unwrap_or_default() {
                    prop_assert!(pattern.matches(listed));
                }
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>(), name in any::<String>()) {
            if let Ok(pattern) = text.parse::<HostPattern>() {
                pattern.matches(&name);
            }
        }

        #[test]
        fn a_star_takes_any_middle(head in "[a-z]{0,4}", middle in ".{0,6}", tail in "[a-z]{0,4}") {
            let pattern = HostGlob(&format!("{head}*{tail}")).matches(&format!("{head}{middle}{tail}"));
            prop_assert!(pattern);
        }
    }
}
