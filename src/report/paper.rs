//! Lines of text with tones: what every text report is set in.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::again::PROGRAM;

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

    /// The text in at most so many columns: what is cut off is told by `…`.
    #[must_use]
    pub fn cut(self, columns: usize) -> Self {
        if self.width() <= columns {
            return self;
        }
        let mut cut = Self::default();
        let mut left = columns.saturating_sub(1);
        for (tone, text) in &self.0 {
            for character in text.chars() {
                let width = character.width().unwrap_or(0);
                if width > left {
                    return if columns == 0 { Self::default() } else { cut.and(Tone::Plain, "…") };
                }
                left -= width;
                cut.push(*tone, character);
            }
        }
        cut
    }

    /// The text as it is written in the middle of a line.
    pub fn inline(&self, colour: bool) -> String {
        let mut out = String::new();
        self.render(colour, &mut out);
        out
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

    fn add(&mut self, tone: Tone, text: &str) {
        match self.0.last_mut() {
            Some((last, known)) if *last == tone => known.push_str(text),
            _ => self.0.push((tone, text.to_owned())),
        }
    }

    /// Columns of its widest word.
    fn widest_word(&self) -> usize {
        self.words().iter().map(Text::width).max().unwrap_or(0)
    }

    /// Breaks at blanks into lines of at most `width` columns; a longer word stands alone and sticks
    /// out: a name or a number that is cut in two is read as another one.
    fn wrap(&self, width: usize) -> Vec<Text> {
        let mut lines = vec![Text::default()];
        let mut used = 0;
        for word in self.words() {
            let needed = word.width();
            if used > 0 && used + 1 + needed > width {
                lines.push(Text::default());
                used = 0;
            }
            let Some(line) = lines.last_mut() else { unreachable!("starts with one line and only grows") };
            if used > 0 {
                let tone = word.0.first().map_or(Tone::Plain, |(tone, _)| *tone);
                line.push(tone, ' ');
                used += 1;
            }
            for (tone, text) in word.0 {
                line.add(tone, &text);
            }
            used += needed;
        }
        lines
    }

    /// The words, each with its tones: a word may change its tone in the middle. A command between
    /// backticks is one word: broken, it could not be pasted.
    fn words(&self) -> Vec<Text> {
        let mut words = vec![Text::default()];
        for (tone, text) in &self.0 {
            let mut command = false;
            for (at, character) in text.char_indices() {
                let Some(word) = words.last_mut() else { unreachable!("starts with one word and only grows") };
                if character == '`' {
                    command = !command && text[at + 1..].starts_with(PROGRAM);
                }
                if character != ' ' || command {
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

/// A table: columns as wide as they need to be; where the page is too narrow the widest ones wrap, and
/// none gets narrower than its widest word.
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

    /// The widths of the columns, in at most `room` columns if the words allow it.
    fn widths(&self, room: usize) -> Vec<usize> {
        let of = |measure: fn(&Text) -> usize| -> Vec<usize> {
            (0..self.head.len())
                .map(|column| {
                    let cells = self.rows.iter().filter_map(|row| row.get(column)).map(measure);
                    cells.chain([measure(&Text::from(self.head[column].as_str()))]).max().unwrap_or(0)
                })
                .collect()
        };
        let mut widths = of(Text::width);
        let mut excess = total(&widths).saturating_sub(room);
        if excess == 0 {
            return widths;
        }
        let least = of(Text::widest_word);
        while excess > 0 {
            // Of equally wide columns the last shrinks first: it is the one with sentences.
            let shrinks = widths.iter_mut().zip(&least).filter(|(width, least)| **width > **least);
            let Some((widest, _)) = shrinks.max_by_key(|(width, _)| **width) else { break };
            *widest -= 1;
            excess -= 1;
        }
        widths
    }
}

/// Columns that a table of these columns takes.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Blanks between columns.
const GAP: usize = 2;
/// The width of a page that is read on no terminal, in columns: two of them fit side by side on the
/// screens people have, CI logs do not wrap it, and it is the same on every machine.
const WIDTH: usize = 100;
/// Text narrower than this, in columns, is nothing that anybody reads.
const NARROWEST: usize = 20;

/// Lines of text of a given width.
#[derive(Debug, Clone)]
pub struct Paper {
    width: usize,
    /// What sticks out to the right is broken by the terminal, anywhere.
    is_terminal: bool,
    lines: Vec<Text>,
}

impl Default for Paper {
    fn default() -> Self {
        Self { width: WIDTH, is_terminal: false, lines: Vec::new() }
    }
}

impl Paper {
    /// An empty page that is read on no terminal: of a fixed width, and as wide as its tables need.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty page for a terminal of so many columns.
    pub fn of_width(columns: usize) -> Self {
        Self { width: columns.max(NARROWEST), is_terminal: true, lines: Vec::new() }
    }

    /// An empty page as wide as this one.
    pub fn sheet(&self) -> Self {
        Self { lines: Vec::new(), ..*self }
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
        if hang + NARROWEST > self.width && !label.is_empty() {
            return self.say(indent, label.join(text));
        }
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

    /// A table, `indent` columns in; on a terminal that is too narrow for it each row is a list.
    pub fn table(&mut self, indent: usize, table: &Table) {
        let room = self.width.saturating_sub(indent);
        let widths = table.widths(room);
        if self.is_terminal && total(&widths) > room {
            return self.lists(indent, table);
        }
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

    /// The rows of a table below each other: what each is of, then its other cells with their heads.
    fn lists(&mut self, indent: usize, table: &Table) {
        for row in &table.rows {
            // A column without a head numbers the rows.
            let named = table.head.iter().take_while(|head| head.is_empty()).count() + 1;
            let title = row.iter().take(named).filter(|cell| !cell.is_empty()).cloned();
            let title = title.reduce(|title, cell| title.and(Tone::Plain, " ").join(cell));
            self.say(indent, title.unwrap_or_default());
            for (head, cell) in table.head.iter().zip(row).skip(named).filter(|(_, cell)| !cell.is_empty()) {
                self.item(indent + GAP, Text::toned(Tone::Dim, format!("{head}: ")), cell.clone());
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

    /// A page of everything that is set, with one word that no page has room for.
    fn set(mut paper: Paper, long: &str) -> String {
        let mut table = Table::new(&[">", "host", ">reboots", "reason"]);
        let reason = "the host does not answer vCenter at 10.20.30.40 ".repeat(4);
        table.row(["1".into(), "esx-gpu-01.fra1.example.net".into(), "1-2".into(), reason.as_str().into()]);
        table.row(["2".into(), long.into(), "10".into(), "-".into()]);
        paper.table(2, &table);
        paper.item(2, "hint: ", "poolwright resume 01JDABCDEFGHJKMNPQRSTVWXYZ ".repeat(12).as_str());
        paper.render(false)
    }

    /// Whatever the width: no word is broken, and only a word that has no room at all sticks out.
    #[test]
    fn no_name_and_no_number_is_broken_in_two() {
        let long = "x".repeat(150);
        let words = |text: &str| {
            let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            words.sort();
            words.dedup();
            words
        };
        let whole = words(&set(Paper::of_width(4_000), &long));
        for columns in 20..200 {
            let text = set(Paper::of_width(columns), &long);
            let known = |word: &String| whole.contains(word) || ["reboots:", "reason:"].contains(&word.as_str());
            assert!(words(&text).iter().all(known), "{columns}: {text}");
            for line in text.lines() {
                let fits = line.width() <= columns || line.split_whitespace().count() <= 2;
                assert!(fits && !line.ends_with(' '), "{columns}: {line:?}");
            }
        }
    }

    #[test]
    fn d13_a_text_is_cut_to_its_columns_and_says_so() {
        let text = || Text::toned(Tone::Strong, "東京-2").and(Tone::Plain, " waits");
        assert_eq!(text().width(), 12);
        let cut = |columns| text().cut(columns).inline(false);
        assert_eq!([cut(12), cut(11), cut(4), cut(1), cut(0)], ["東京-2 waits", "東京-2 wai…", "東…", "…", ""]);
        assert!((0..13).all(|columns| text().cut(columns).width() <= columns));
    }

    #[test]
    fn a_command_is_not_broken() {
        let mut paper = Paper::of_width(30);
        paper.item(2, "hint: ", "look, then `poolwright resume 01JD --world lab.yaml`, or `count` more");
        assert_eq!(
            paper.render(false),
            "  hint: look, then\n        `poolwright resume 01JD --world lab.yaml`,\n        or `count` more\n"
        );
    }

    #[test]
    fn on_a_narrow_terminal_each_row_is_a_list() {
        let text = set(Paper::of_width(40), "esx-2");
        let rows = &text[..text.find("hint: ").unwrap()];
        insta::assert_snapshot!(rows, @"
          1 esx-gpu-01.fra1.example.net
            reboots: 1-2
            reason: the host does not answer
                    vCenter at 10.20.30.40 the
                    host does not answer vCenter
                    at 10.20.30.40 the host does
                    not answer vCenter at
                    10.20.30.40 the host does
                    not answer vCenter at
                    10.20.30.40
          2 esx-2
            reboots: 10
            reason: -
        ");
    }

    #[test]
    fn on_no_terminal_a_table_is_as_wide_as_its_words() {
        let text = set(Paper::new(), &"x".repeat(150));
        let rows: Vec<&str> = text.lines().filter(|line| line.contains("esx-gpu-01") || line.contains("xxx")).collect();
        assert_eq!(rows.len(), 2, "{text}");
        assert!(rows[1].trim_end().ends_with('-'), "{text}");
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
