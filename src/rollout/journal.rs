//! The journal file: JSON lines after a header, each on the disk before the next thing happens.
//!
//! ```text
//!   {"format":"poolwright.journal","v":1}
//!   {"n":1,"at":"…","e":{"RunStarted":{…}}}
//!   {"n":2,"at":"…","host":"esx-01","e":{"VisitPlanned":{…}}}
//!   {"n":3,"at":"…","ho            ◄── torn: the process died while writing; nothing followed from it
//! ```

use std::path::{Path, PathBuf};

use super::{Entry, Header};
use crate::base::files::{self, Appender, FileError};

/// The longest journal that is read, in bytes: 10,000 hosts of 100 lines of 1 KB, four times over.
const LIMIT: u64 = 4 << 30;

/// Where lines go. A line is on the disk when the call comes back.
pub trait Lines {
    /// Appends one line.
    ///
    /// # Errors
    /// [`FileError`]; the end of the file may then be torn, and nothing more is written.
    fn append(&mut self, line: &str) -> Result<(), FileError>;
}

impl Lines for Appender {
    fn append(&mut self, line: &str) -> Result<(), FileError> {
        self.append_synced(line)
    }
}

/// Why a journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file.
    #[error("cannot use the journal")]
    File(#[from] FileError),
    /// The first line is not the header of a journal of this version.
    #[error("{}:1: not a journal of version {}", path.display(), Header::VERSION)]
    Header {
        /// Which file.
        path: PathBuf,
    },
    /// A line that is not the last one is damaged.
    #[error("{}:{line}: damaged", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Line of the file, from 1 (the header).
        line: usize,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A line is missing or doubled.
    #[error("{}:{line}: number {found}, expected {expected}", path.display())]
    Gap {
        /// Which file.
        path: PathBuf,
        /// Line of the file, from 1 (the header).
        line: usize,
        /// The number that it has.
        found: u64,
        /// The number that it should have.
        expected: u64,
    },
}

/// What a journal file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// Its whole lines.
    pub entries: Vec<Entry>,
    /// The torn end: where it begins, in bytes, and what it is.
    pub torn: Option<(u64, Vec<u8>)>,
}

/// Reads a journal.
///
/// # Errors
/// [`JournalError`]; a torn last line is none.
pub fn read(path: &Path) -> Result<Contents, JournalError> {
    parse(path, &files::read_bytes(path, LIMIT)?)
}

/// What the bytes of the journal at `path` say.
///
/// # Errors
/// As [`read`].
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Contents, JournalError> {
    // A line counts once its line feed is there: the call that appends it has then not come back
    // yet, or it has. Without it, it has not, and nothing was done on the strength of the line.
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let (lines, rest) = bytes.split_at(whole);
    let torn = (!rest.is_empty()).then(|| (whole as u64, rest.to_vec()));
    let mut lines = lines.split_inclusive(|byte| *byte == b'\n');
    let Some(first) = lines.next() else { return Ok(Contents { entries: Vec::new(), torn }) };
    match serde_json::from_slice::<Header>(first) {
        Ok(header) if header == Header::current() => {}
        Ok(_) | Err(_) => return Err(JournalError::Header { path: path.to_owned() }),
    }
    let mut entries = Vec::new();
    for (index, line) in lines.enumerate() {
        let number = index + 2;
        let entry: Entry = serde_json::from_slice(line).map_err(|source| JournalError::Line {
            path: path.to_owned(),
            line: number,
            source,
        })?;
        let expected = index as u64 + 1;
        if entry.n != expected {
            return Err(JournalError::Gap { path: path.to_owned(), line: number, found: entry.n, expected });
        }
        entries.push(entry);
    }
    Ok(Contents { entries, torn })
}

/// Opens a journal to go on with it: a torn end is copied to `torn_copy` and cut.
///
/// # Errors
/// [`JournalError`].
pub fn reopen(path: &Path, torn_copy: &Path) -> Result<(Vec<Entry>, Journal), JournalError> {
    let contents = match read(path) {
        Err(JournalError::File(error)) if error.is_missing() => Contents { entries: Vec::new(), torn: None },
        other => other?,
    };
    if let Some((at, text)) = &contents.torn {
        files::replace(torn_copy, text)?;
        files::truncate(path, *at)?;
    }
    // The file is empty, or was torn inside the header: it begins again.
    let began = contents.torn.as_ref().map_or_else(|| !contents.entries.is_empty(), |(at, _)| *at > 0);
    let mut journal = Journal { out: Box::new(Appender::open(path)?), next: contents.entries.len() as u64 + 1 };
    if !began && contents.entries.is_empty() {
        journal.header()?;
    }
    Ok((contents.entries, journal))
}

/// A journal that is open for writing.
pub struct Journal {
    out: Box<dyn Lines>,
    next: u64,
}

impl Journal {
    /// A new journal over this file or whatever else takes lines; writes the header.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn begin(out: Box<dyn Lines>) -> Result<Self, FileError> {
        let mut journal = Self { out, next: 1 };
        journal.header()?;
        Ok(journal)
    }

    /// The number of the next line.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Writes the next line; it is on the disk when the call comes back.
    ///
    /// # Errors
    /// [`FileError`]: nothing more may be done to hosts.
    pub fn append(&mut self, entry: &Entry) -> Result<(), FileError> {
        self.out.append(&text(entry))?;
        self.next = entry.n + 1;
        Ok(())
    }

    fn header(&mut self) -> Result<(), FileError> {
        self.out.append(&text(&Header::current()))
    }
}

impl Header {
    fn current() -> Self {
        Self { format: Self::FORMAT.to_owned(), v: Self::VERSION }
    }
}

fn text<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_string(value) {
        Ok(text) => text,
        // serde_json fails on maps whose keys are no strings, and there are none in an entry.
        Err(error) => unreachable!("an entry is JSON by construction: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::{Event, Signal};

    fn entry(n: u64) -> Entry {
        let at = "2026-11-30T22:00:00Z".parse().unwrap();
        Entry { n, at, host: None, e: Event::Signal { signal: Signal::Interrupt } }
    }

    fn file_of(lines: u64) -> Vec<u8> {
        let mut text = text(&Header::current()) + "\n";
        for n in 1..=lines {
            text += &(super::text(&entry(n)) + "\n");
        }
        text.into_bytes()
    }

    #[test]
    fn a_line_looks_as_the_format_says() {
        assert_eq!(
            text(&Entry { host: Some("esx-01".into()), ..entry(17) }),
            r#"{"n":17,"at":"2026-11-30T22:00:00Z","host":"esx-01","e":{"Signal":{"signal":"interrupt"}}}"#
        );
    }

    #[test]
    fn wherever_a_journal_is_cut_its_whole_lines_are_read() {
        let whole = file_of(3);
        let ends: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] == b'\n').collect();
        for cut in 0..=whole.len() {
            let contents = parse(Path::new("j"), &whole[..cut]).unwrap();
            let lines = ends.iter().filter(|end| **end < cut).count();
            assert_eq!(contents.entries.len(), lines.saturating_sub(1), "cut at {cut}");
            let torn = contents.torn.map_or(0, |(_, text)| text.len());
            assert_eq!(torn, cut - if lines == 0 { 0 } else { ends[lines - 1] + 1 });
        }
    }

    #[test]
    fn a_torn_end_is_kept_beside_the_journal_and_cut() {
        let dir = tempfile::tempdir().unwrap();
        let (path, torn) = (dir.path().join("journal.jsonl"), dir.path().join("journal.torn"));
        for cut in [file_of(2).len() - 7, 5] {
            files::replace(&path, &file_of(2)[..cut]).unwrap();
            let (entries, mut journal) = reopen(&path, &torn).unwrap();
            let n = entries.len() as u64 + 1;
            journal.append(&entry(n)).unwrap();
            assert!(!files::read_bytes(&torn, 1000).unwrap().is_empty());
            assert_eq!(read(&path).unwrap(), Contents { entries: (1..=n).map(entry).collect(), torn: None });
        }
    }

    #[test]
    fn a_bad_line_elsewhere_is_refused_with_its_number() {
        let text = String::from_utf8(file_of(3)).unwrap();
        let damaged = text.replacen("\"n\":2", "\"n\":x", 1);
        let error = parse(Path::new("j"), damaged.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "j:3: damaged");
        let last = text.replacen("\"n\":3", "\"n\":x", 1);
        assert_eq!(parse(Path::new("j"), last.as_bytes()).unwrap_err().to_string(), "j:4: damaged");
        let gap = text.replacen("\"n\":2", "\"n\":5", 1);
        assert_eq!(parse(Path::new("j"), gap.as_bytes()).unwrap_err().to_string(), "j:3: number 5, expected 2");
        let version = text.replacen("\"v\":1", "\"v\":2", 1);
        assert_eq!(
            parse(Path::new("j"), version.as_bytes()).unwrap_err().to_string(),
            "j:1: not a journal of version 1"
        );
    }
}
