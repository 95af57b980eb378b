//! A problem of a document, and how it is shown.

use std::fmt;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::model::Place;

/// A mistake in a document: where, what, the line itself, and what to do.
///
/// `Display` gives the whole as plain text of several lines, without a final newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it is. Line 0 means the file as a whole.
    pub place: Place,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The source line, if there is one.
    pub snippet: Option<Snippet>,
    /// What to do. Nobody is told of a mistake alone.
    pub hint: String,
}

/// A source line with the part that is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    /// Number of the line, from 1.
    pub line: u32,
    /// The line, tabs and other control characters shown as one space, cropped around the part
    /// that is meant if it is long.
    pub text: String,
    /// Terminal cells before the part that is meant.
    pub before: usize,
    /// Terminal cells of it, at least 1.
    pub width: usize,
}

/// Characters of a source line that are shown: it fits a terminal of 100 columns with its number.
const SHOWN: usize = 90;

impl Snippet {
    /// Shows `length` characters from `column` (from 1, in characters) of a line.
    pub(super) fn new(line: u32, source: &str, column: u32, length: u32) -> Self {
        let column = (column as usize).saturating_sub(1);
        let clean: Vec<char> = source.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let column = column.min(clean.len());
        // A long line is cropped so that the part that is meant stands in its first half.
        let start = if clean.len() > SHOWN { column.saturating_sub(SHOWN / 2) } else { 0 };
        let end = clean.len().min(start + SHOWN);
        let mut text = String::new();
        if start > 0 {
            text.push('…');
        }
        let lead: String = clean[start..column].iter().collect();
        let before = text.width() + lead.width();
        text.extend(&clean[start..end]);
        if end < clean.len() {
            text.push('…');
        }
        let text = text.trim_end().to_owned();
        let meant = clean[column..end].iter().take(length.max(1) as usize);
        let width = meant.map(|c| c.width().unwrap_or(0)).sum::<usize>().max(1);
        Self { line, text, before, width }
    }
}

impl fmt::Display for Snippet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>5} | {}", self.line, self.text)?;
        write!(f, "      | {}{}", " ".repeat(self.before), "^".repeat(self.width))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.line == 0 {
            write!(f, "{}: {}", self.place.file, self.message)?;
        } else {
            write!(f, "{}: {}", self.place, self.message)?;
        }
        if let Some(snippet) = &self.snippet {
            write!(f, "\n{snippet}")?;
        }
        write!(f, "\nhint: {}", self.hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_part_beside_wide_characters_and_tabs() {
        let snippet = Snippet::new(3, "\t東京: [bad]", 6, 3);
        assert_eq!(snippet.to_string(), "    3 |  東京: [bad]\n      |        ^^^");
    }

    #[test]
    fn a_long_line_is_cropped_around_the_part() {
        let line = format!("{}HERE{}", "a".repeat(500), "b".repeat(500));
        let snippet = Snippet::new(1, &line, 501, 4);
        assert!(snippet.text.width() <= SHOWN + 2, "{}", snippet.text);
        let shown: Vec<char> = snippet.text.chars().collect();
        let meant: String = shown[snippet.before..snippet.before + snippet.width].iter().collect();
        assert_eq!(meant, "HERE");
    }

    #[test]
    fn a_column_behind_the_end_is_shown_at_the_end() {
        let snippet = Snippet::new(1, "ab", 40, 7);
        assert_eq!((snippet.before, snippet.width), (2, 1));
    }
}
