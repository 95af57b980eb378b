//! The text of a file: checked, cut into lines and documents.

use std::ops::Range;
use std::sync::Arc;

use crate::model::Place;

use super::nearest;
use super::problem::{Problem, Snippet};

/// The largest file that is read, in bytes.
///
/// 8 MiB is a thousand times a large profile, and the text of a world of ten thousand VMs; more is
/// a wrong file. The limit keeps the tree of a file below a few hundred MB.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

/// A file's path and text, with its lines.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    file: Arc<str>,
    text: String,
    /// Byte offset at which each line starts.
    lines: Vec<usize>,
}

/// A document's part of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Bytes of the file's text.
    pub(super) bytes: Range<usize>,
    /// Lines of the file before it.
    pub(super) lines_before: u32,
}

impl Source {
    /// Takes the bytes of a file: refuses what is too large or not UTF-8.
    pub(super) fn new(path: &str, bytes: &[u8]) -> Result<Self, Box<Problem>> {
        let file: Arc<str> = Arc::from(path);
        let whole = |message: String, hint: &str| {
            let place = Place { file: file.clone(), line: 0, column: 0 };
            Box::new(Problem { place, message, snippet: None, hint: hint.to_owned() })
        };
        if bytes.len() > MAX_BYTES {
            return Err(whole(
                format!("the file has {} bytes; the limit is {MAX_BYTES} (8 MiB)", bytes.len()),
                "split it into several files; documents of this size are usually another kind of file",
            ));
        }
        if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            return Err(whole("the file is not UTF-8: it starts with a UTF-16 mark".to_owned(), "save it as UTF-8"));
        }
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self { file, lines: line_starts(text), text: text.to_owned() }),
            Err(error) => {
                let offset = error.valid_up_to();
                let good = String::from_utf8_lossy(&bytes[..offset]);
                let line = line_starts(&good).len();
                let column = good.rsplit(['\n', '\r']).next().unwrap_or_default().chars().count() + 1;
                let place = Place { file, line: number(line), column: number(column) };
                Err(Box::new(Problem {
                    place,
                    message: format!("not UTF-8: byte 0x{:02x} at offset {offset}", bytes[offset]),
                    snippet: None,
                    hint: "save the file as UTF-8".to_owned(),
                }))
            }
        }
    }

    /// The path as the user gave it.
    pub fn file(&self) -> &Arc<str> {
        &self.file
    }

    /// The text, without a byte order mark.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A line, from 1, without its end.
    fn line(&self, line: u32) -> Option<&str> {
        let index = (line as usize).checked_sub(1)?;
        let start = *self.lines.get(index)?;
        let end = self.lines.get(index + 1).copied().unwrap_or(self.text.len());
        Some(self.text[start..end].trim_end_matches(['\n', '\r']))
    }

    /// The source line of a place, with `length` characters from its column marked. A password that
    /// was written where a reference belongs is not shown.
    pub fn snippet(&self, place: &Place, length: u32) -> Option<Snippet> {
        let above = place.line.checked_sub(1).and_then(|line| self.line(line));
        self.line(place.line).map(|text| {
            let hidden = above.is_some_and(opens_secret) && !is_reference(text);
            let shown = if hidden { stars(text) } else { mask(text) };
            Snippet::new(place.line, &shown, place.column, length)
        })
    }

    /// The source line of a place, with the word that starts there marked: up to the end of its
    /// quotes, or to a blank, a comma or a closing bracket.
    pub fn snippet_of_word(&self, place: &Place) -> Option<Snippet> {
        let line = self.line(place.line)?;
        let rest: Vec<char> = line.chars().skip((place.column as usize).saturating_sub(1)).collect();
        let end = match rest.first() {
            Some(quote @ ('"' | '\'')) => rest.iter().skip(1).position(|c| c == quote).map(|at| at + 2),
            Some('{' | '[') => Some(1),
            _ => rest.iter().position(|c| c.is_whitespace() || matches!(c, ',' | ']' | '}')),
        };
        self.snippet(place, number(end.unwrap_or(rest.len())))
    }

    /// A place in this file.
    pub(super) fn place(&self, line: u32, column: u32) -> Place {
        Place { file: self.file.clone(), line, column }
    }

    /// The documents of the file: parts between `---` and `...` lines that hold more than comments.
    ///
    /// YAML forbids these marks at the start of a line inside any scalar, so no parser is needed to
    /// find them, and a document with a syntax error does not hide the ones after it.
    pub(super) fn chunks(&self) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        let mut start = 0;
        let mut lines_before = 0;
        let mut cut = |start: usize, end: usize, lines_before: usize| {
            if self.text[start..end].lines().any(has_content) {
                chunks.push(Chunk { bytes: start..end, lines_before: number(lines_before) });
            }
        };
        for (index, &offset) in self.lines.iter().enumerate() {
            let end = self.lines.get(index + 1).copied().unwrap_or(self.text.len());
            let line = &self.text[offset..end];
            if is_mark(line, "---") {
                cut(start, offset, lines_before);
                (start, lines_before) = (offset, index);
            } else if is_mark(line, "...") {
                cut(start, offset, lines_before);
                (start, lines_before) = (end, index + 1);
            }
        }
        cut(start, self.text.len(), lines_before);
        chunks
    }
}

/// Byte offsets at which lines start; a line ends with LF, CR LF or, as YAML has it, CR.
fn line_starts(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let mut starts = vec![0];
    for (index, byte) in bytes.iter().enumerate() {
        if *byte == b'\n' || (*byte == b'\r' && bytes.get(index + 1) != Some(&b'\n')) {
            starts.push(index + 1);
        }
    }
    starts
}

/// A line with a star for each character that follows a key for a secret, unless it is a reference.
fn mask(line: &str) -> String {
    let lower = line.to_ascii_lowercase();
    let value = ["passw", "pwd", "secret", "token"].iter().filter_map(|word| {
        let after = lower.find(word)? + word.len();
        let colon = after + lower[after..].find(':')?;
        let start = colon + 1 + lower[colon + 1..].find(|c: char| !c.is_whitespace())?;
        (!is_reference(&lower[start..])).then_some(start)
    });
    // A slip in the key (`pasword`), and a value where the mapping of credentials belongs.
    let by_key = lower.match_indices(':').filter_map(|(colon, _)| {
        let key = lower[..colon].rsplit(|c: char| !c.is_alphanumeric()).next()?;
        let start = colon + 1 + lower[colon + 1..].find(|c: char| !c.is_whitespace())?;
        let plain = !lower[start..].starts_with(['{', '[', '&', '*', '#']);
        (is_secret(key) && plain && !is_reference(&lower[start..])).then_some(start)
    });
    // `user:password@host` in an address.
    let in_address = lower.find('@').and_then(|at| {
        let word = lower[..at].rfind(|c: char| c.is_whitespace() || c == '/').map_or(0, |before| before + 1);
        Some(word + lower[word..at].find(':')? + 1)
    });
    let Some(start) = value.chain(by_key).chain(in_address).min() else { return line.to_owned() };
    format!("{}{}", &line[..start], stars(&line[start..]))
}

fn stars(text: &str) -> String {
    text.chars().map(|c| if c.is_whitespace() { ' ' } else { '*' }).collect()
}

/// Whether a value only says where the secret is.
fn is_reference(value: &str) -> bool {
    let value = value.trim_start().trim_start_matches(['"', '\'']);
    ["env:", "file:", "exec:", "keyring:"].iter().any(|scheme| value.starts_with(scheme))
}

/// Whether what a key holds may be a secret, or should have been a reference to one.
pub(super) fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    key == "pass" || nearest(&key, ["password", "passphrase", "credentials"]).is_some()
}

/// Whether a line is a key whose secret value starts on the next line.
fn opens_secret(line: &str) -> bool {
    let line = line.trim_end().trim_end_matches(['|', '>', '-', '+']).trim_end();
    let key = line.strip_suffix(':').map(|line| line.rsplit(|c: char| !c.is_alphanumeric()).next());
    key.flatten().is_some_and(|key| is_secret(key) && !key.eq_ignore_ascii_case("credentials"))
}

fn is_mark(line: &str, mark: &str) -> bool {
    line.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\n', '\r']))
}

/// Whether a line is more than blank, a comment, a directive or a bare `---`.
fn has_content(line: &str) -> bool {
    let line = if is_mark(line, "---") { &line[3..] } else { line };
    let line = line.trim();
    !(line.is_empty() || line.starts_with('#') || line.starts_with('%'))
}

/// Lines and columns of a file of at most [`MAX_BYTES`] fit.
pub(super) fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(text: &str) -> Vec<(String, u32)> {
        let source = Source::new("f", text.as_bytes()).unwrap();
        source.chunks().into_iter().map(|c| (source.text()[c.bytes].to_owned(), c.lines_before)).collect()
    }

    #[test]
    fn documents_are_cut_at_their_marks() {
        assert_eq!(chunks("a: 1\n---\nb: 2\n"), [("a: 1\n".into(), 0), ("---\nb: 2\n".into(), 1)]);
        assert_eq!(chunks("# c\n---\r\nb: 2\r\n...\r\n# end\r\n"), [("---\r\nb: 2\r\n".into(), 1)]);
        assert_eq!(chunks("%YAML 1.2\n--- {a: 1}"), [("--- {a: 1}".into(), 1)]);
        assert_eq!(chunks("a: |\n  ---\n  x\n ---\n"), [("a: |\n  ---\n  x\n ---\n".into(), 0)]);
        assert_eq!(chunks("a: ---b\n---b: c\n").len(), 1);
        assert_eq!(chunks("\u{feff}a: 1"), [("a: 1".into(), 0)]);
        for empty in ["", "\n", "# only a comment\n", "---\n---\n", "..."] {
            assert!(chunks(empty).is_empty(), "{empty:?}");
        }
    }

    #[test]
    fn not_utf8_is_named_by_offset_line_and_column() {
        let problem = Source::new("f", b"a: 1\nb\xc3\xbc: \xff\n").unwrap_err();
        assert_eq!((problem.place.line, problem.place.column), (2, 5));
        assert!(problem.message.contains("byte 0xff at offset 10"), "{}", problem.message);
        assert!(Source::new("f", b"\xff\xfea\0").unwrap_err().message.contains("UTF-16"));
    }

    #[test]
    fn a_password_in_a_document_is_not_shown() {
        let shown = |line: &str| mask(line);
        assert_eq!(shown("  password: hunter2, x: 1"), "  password: ******** ** *");
        assert_eq!(shown("{user: a, Passwrd: 'ü, x'}"), "{user: a, Passwrd: *** ***");
        assert_eq!(shown("  password: env:VC_PASSWORD"), "  password: env:VC_PASSWORD");
        assert_eq!(shown("  password: \"file:/run/x\""), "  password: \"file:/run/x\"");
        assert_eq!(shown("  mode: {passthrough: {}}"), "  mode: {passthrough: {}}");
        assert_eq!(shown("  password:"), "  password:");
        assert_eq!(shown("{user: a, pasword: hunter2}"), "{user: a, pasword: ********");
        assert_eq!(shown("  credentials: hunter2"), "  credentials: *******");
        assert_eq!(shown("credentials: {user: a, password: \"env:X\"}"), "credentials: {user: a, password: \"env:X\"}");
        assert_eq!(shown("  address: https://a:hunter2@vc"), "  address: https://a:**********");
        assert_eq!(shown("  user: pw@vsphere.local"), "  user: pw@vsphere.local");
    }

    #[test]
    fn a_password_on_a_line_of_its_own_is_not_shown() {
        for (text, shown) in [
            ("password:\n  hunter2\n", "  *******"),
            ("pasword: |-\n  hunter2\n", "  *******"),
            ("password:\n  env:VC\n", "  env:VC"),
            ("credentials:\n  usr: a\n", "  usr: a"),
        ] {
            let source = Source::new("f", text.as_bytes()).unwrap();
            assert_eq!(source.snippet(&source.place(2, 3), 1).unwrap().text, shown, "{text}");
        }
    }

    #[test]
    fn the_word_at_a_place_is_marked() {
        let source = Source::new("f", "a: [xyz, 'q r', {b: 1}]".as_bytes()).unwrap();
        let width = |column| source.snippet_of_word(&source.place(1, column)).unwrap().width;
        assert_eq!([width(5), width(10), width(17), width(21), width(22), width(90)], [3, 5, 1, 1, 1, 1]);
        assert_eq!(source.snippet_of_word(&source.place(2, 1)), None);
    }

    #[test]
    fn too_large_is_refused_with_the_limit() {
        let problem = Source::new("f", &vec![b'a'; MAX_BYTES + 1]).unwrap_err();
        assert!(problem.message.contains("the limit is 8388608"), "{}", problem.message);
        assert!(Source::new("f", &vec![b'a'; MAX_BYTES]).is_ok());
    }
}
