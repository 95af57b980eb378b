//! Lines of text with tones: what every text report is set in.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How a piece of text is meant. On a terminal a tone is a colour; nothing is said by colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    Plain,
    /// A heading, a name.
    Strong,
    /// As wished.
    Good,
    /// Look at it.
    Warn,
    /// Wrong.
    Bad,
    /// Beside the point.
    Dim,
}

impl Tone {
    /// The SGR parameters of the tone; the sixteen colours that every terminal has.
    fn sgr(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Strong => Some("1"),
            Self::Good => Some("32"),
            Self::Warn => Some("33"),
            Self::Bad => Some("31"),
            Self::Dim => Some("2"),
        }
    }
}

/// A run of text in one or more tones, without line ends.
///
/// Names come from live systems: control characters and marks that turn the direction of writing
/// are shown escaped, so that a name cannot rewrite the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text(Vec<(Tone, String)>);

impl Text {
    /// Text in a tone.
    pub fn toned(tone: Tone, text: impl AsRef<str>) -> Self {
        Self(vec![(tone, visible(text.as_ref()))])
    }

    /// Adds text in a tone.
    #[must_use]
    pub fn and(mut self, tone: Tone, text: impl AsRef<str>) -> Self {
        self.0.push((tone, visible(text.as_ref())));
        self
    }

    /// Adds another text.
    #[must_use]
    pub fn join(mut self, other: Text) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Columns that it takes.
    pub fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.width()).sum()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|(_, text)| text.is_empty())
    }

    fn push(&mut self, tone: Tone, character: char) {
        match self.0.last_mut() {
            Some((last, text)) if *last == tone => text.push(character),
            _ => self.0.push((tone, character.to_string())),
        }
    }

    /// Breaks at blanks into lines of at most `width` columns; a longer word is cut.
    fn wrap(&self, width: usize) -> Vec<Text> {
        let width = width.max(1);
        let mut lines = vec![Text::default()];
        let mut used = 0;
        for word in self.words() {
            let needed = word.width();
            let blank = usize::from(used > 0);
            if used > 0 && used + blank + needed > width {
                lines.push(Text::default());
                used = 0;
            } else if used > 0 {
                let tone = word.0.first().map_or(Tone::Plain, |(tone, _)| *tone);
                let Some(line) = lines.last_mut() else { unreachable!("starts with one line and only grows") };
                line.push(tone, ' ');
                used += 1;
            }
            for (tone, text) in &word.0 {
                for character in text.chars() {
                    let columns = character.width().unwrap_or(0);
                    if used + columns > width && used > 0 {
                        lines.push(Text::default());
                        used = 0;
                    }
                    let Some(line) = lines.last_mut() else { unreachable!("starts with one line and only grows") };
                    line.push(*tone, character);
                    used += columns;
                }
            }
        }
        lines
    }

    /// The words, each with its tones: a word may change its tone in the middle.
    fn words(&self) -> Vec<Text> {
        let mut words = vec![Text::default()];
        for (tone, text) in &self.0 {
            for character in text.chars() {
                let Some(word) = words.last_mut() else { unreachable!("starts with one word and only grows") };
                if character != ' ' {
                    word.push(*tone, character);
                } else if !word.is_empty() {
                    words.push(Text::default());
                }
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    fn render(&self, colour: bool, out: &mut String) {
        for (tone, text) in &self.0 {
            match tone.sgr().filter(|_| colour && !text.is_empty()) {
                Some(sgr) => out.push_str(&format!("\u{1b}[{sgr}m{text}\u{1b}[0m")),
                None => out.push_str(text),
            }
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::toned(Tone::Plain, text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::toned(Tone::Plain, text)
    }
}

/// The text with everything that would move the cursor or turn the writing shown escaped.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => shown.push(' '),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                shown.extend(character.escape_unicode());
            }
            _ if character.is_control() => shown.extend(character.escape_unicode()),
            _ => shown.push(character),
        }
    }
    shown
}

/// A table: columns as wide as they need to be; where the page is too narrow the widest ones wrap.
#[derive(Debug, Clone)]
pub struct Table {
    head: Vec<String>,
    right: Vec<bool>,
    rows: Vec<Vec<Text>>,
}

impl Table {
    /// A table with these column heads; a head that starts with `>` sets its column to the right.
    pub fn new(heads: &[&str]) -> Self {
        Self {
            head: heads.iter().map(|head| head.trim_start_matches('>').to_owned()).collect(),
            right: heads.iter().map(|head| head.starts_with('>')).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; a missing cell is empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Text>) {
        let mut row: Vec<Text> = cells.into_iter().take(self.head.len()).collect();
        row.resize(self.head.len(), Text::default());
        self.rows.push(row);
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn widths(&self, room: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = (0..self.head.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column)).map(Text::width);
                cells.chain([self.head[column].width()]).max().unwrap_or(0)
            })
            .collect();
        let gaps = GAP * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > room {
            // Of equally wide columns the last shrinks first: it is the one with sentences.
            let Some(widest) = widths.iter_mut().max_by_key(|width| **width) else { break };
            if *widest <= NARROWEST {
                break;
            }
            *widest -= 1;
        }
        widths
    }
}

/// Blanks between columns.
const GAP: usize = 2;
/// A column is not wrapped below this width: the page then gets wider instead of unreadable.
const NARROWEST: usize = 10;
/// The width that every report is readable at, in columns: two of them fit side by side on the
/// screens people have, and CI logs do not wrap it.
pub const WIDTH: usize = 100;

/// Lines of text of a given width.
#[derive(Debug, Clone)]
pub struct Paper {
    width: usize,
    lines: Vec<Text>,
}

impl Default for Paper {
    fn default() -> Self {
        Self { width: WIDTH, lines: Vec::new() }
    }
}

impl Paper {
    /// An empty page of [`WIDTH`] columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty line, unless the page starts or the last line is one.
    pub fn blank(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(Text::default());
        }
    }

    /// A heading after an empty line.
    pub fn heading(&mut self, text: impl AsRef<str>) {
        self.blank();
        self.say(0, Text::toned(Tone::Strong, text));
    }

    /// A paragraph, `indent` columns in.
    pub fn say(&mut self, indent: usize, text: impl Into<Text>) {
        self.item(indent, "", text);
    }

    /// A paragraph behind a label; its further lines start under its first.
    pub fn item(&mut self, indent: usize, label: impl Into<Text>, text: impl Into<Text>) {
        let (label, text) = (label.into(), text.into());
        let hang = indent + label.width();
        for (number, line) in text.wrap(self.width.saturating_sub(hang)).into_iter().enumerate() {
            let mut whole = Text::default();
            if number == 0 && !label.is_empty() {
                whole = whole.and(Tone::Plain, " ".repeat(indent));
                whole.0.extend(label.0.iter().cloned());
            } else if !line.is_empty() {
                whole = whole.and(Tone::Plain, " ".repeat(hang));
            }
            whole.0.extend(line.0);
            self.lines.push(whole);
        }
    }

    /// Adds all lines of another page.
    pub fn append(&mut self, page: Paper) {
        self.lines.extend(page.lines);
    }

    /// A line that is never wrapped: a command that people copy.
    pub fn line(&mut self, indent: usize, text: impl Into<Text>) {
        self.lines.push(Text::toned(Tone::Plain, " ".repeat(indent)).join(text.into()));
    }

    /// A table, `indent` columns in.
    pub fn table(&mut self, indent: usize, table: &Table) {
        let widths = table.widths(self.width.saturating_sub(indent));
        let head: Vec<Text> = table.head.iter().map(|head| Text::toned(Tone::Dim, head)).collect();
        for row in [&head].into_iter().chain(&table.rows) {
            let cells: Vec<Vec<Text>> = row.iter().zip(&widths).map(|(cell, width)| cell.wrap(*width)).collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for number in 0..height {
                let mut line = Text::default();
                let mut pending = indent;
                for ((cell, width), right) in cells.iter().zip(&widths).zip(&table.right) {
                    let piece = cell.get(number).cloned().unwrap_or_default();
                    let slack = width.saturating_sub(piece.width());
                    if *right {
                        pending += slack;
                    }
                    if !piece.is_empty() {
                        // Blanks are written only before text: no line ends in them.
                        line = line.and(Tone::Plain, " ".repeat(pending));
                        pending = 0;
                        line.0.extend(piece.0);
                    }
                    pending += GAP + if *right { 0 } else { slack };
                }
                self.lines.push(line);
            }
        }
    }

    /// The page as text, each line with its line end.
    pub fn render(&self, colour: bool) -> String {
        let mut out = String::new();
        for line in &self.lines {
            line.render(colour, &mut out);
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d13_columns_stay_straight_with_wide_characters_and_quotes() {
        let mut table = Table::new(&["host", ">GPUs", "note"]);
        for (host, gpus) in [("esx-1", "4"), ("東京-2", "16"), ("büro \"#1\"", "8")] {
            table.row([host.into(), gpus.into(), "x".into()]);
        }
        let mut paper = Paper::new();
        paper.table(0, &table);
        insta::assert_snapshot!(paper.render(false), @r##"
        host       GPUs  note
        esx-1         4  x
        東京-2       16  x
        büro "#1"     8  x
        "##);
    }

    #[test]
    fn a_name_cannot_move_the_cursor_or_turn_the_writing() {
        let text = Text::from("a\u{1b}[2Jb\u{202e}c\nd");
        let mut paper = Paper::new();
        paper.say(0, text);
        assert_eq!(paper.render(false), "a\\u{1b}[2Jb\\u{202e}c d\n");
    }

    #[test]
    fn nothing_is_wider_than_the_page() {
        let mut table = Table::new(&["host", "reason"]);
        let long = "x".repeat(150);
        table.row([long.as_str().into(), "the host does not answer vCenter ".repeat(8).as_str().into()]);
        let mut paper = Paper::new();
        paper.table(2, &table);
        paper.item(2, "hint: ", "poolwright resume 01JD ".repeat(12).as_str());
        let text = paper.render(false);
        assert!(text.lines().all(|line| line.width() <= WIDTH), "{text}");
        assert_eq!(text.matches('x').count(), 150, "nothing is cut off: {text}");
        assert!(text.lines().all(|line| !line.ends_with(' ')), "{text}");
    }

    #[test]
    fn colour_is_added_and_nothing_else_changes() {
        let mut paper = Paper::new();
        paper.heading("Findings");
        paper.say(2, Text::toned(Tone::Bad, "error").and(Tone::Plain, " x"));
        let (plain, coloured) = (paper.render(false), paper.render(true));
        assert!(!plain.contains('\u{1b}'));
        assert_eq!(coloured, "\u{1b}[1mFindings\u{1b}[0m\n  \u{1b}[31merror\u{1b}[0m x\n");
    }
}
