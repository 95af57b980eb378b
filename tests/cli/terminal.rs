//! The view of a person at a terminal, under a pseudo-terminal: prompt, progress, colour, width.

use std::io::{Read, Write};
use std::process::Child;

use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};

use super::harness::{A100_MIG, Folder, H100, L40S, by_hand};
use super::ports::Sim;

/// A command on a terminal of its own: what it wrote, and what stands on the screen.
struct Terminal {
    pty: Pty,
    child: Child,
    written: Vec<u8>,
    screen: vt100::Parser,
}

const ROWS: u16 = 500;

impl Terminal {
    fn start(folder: &Folder, columns: u16, env: &[(&str, &str)], line: &str) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(ROWS, columns)).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_poolwright"))
            .args(line.split(' '))
            .current_dir(folder.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TERM", "xterm-256color")
            .envs(env.iter().copied())
            .spawn(pts)
            .unwrap();
        Self { pty, child, written: Vec::new(), screen: vt100::Parser::new(ROWS, columns.max(1), 0) }
    }

    /// Reads until this was written.
    fn until(&mut self, text: &str) {
        while !self.text().contains(text) {
            assert!(self.read(), "ended before {text:?}: {}", self.text());
        }
    }

    /// Types.
    fn type_in(&mut self, keys: &str) {
        self.pty.write_all(keys.as_bytes()).unwrap();
    }

    /// Reads to the end; gives the exit code.
    fn end(&mut self) -> i32 {
        while self.read() {}
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    /// Reads some more; none at the end, which Linux tells as an error.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        match self.pty.read(&mut buffer) {
            Ok(length @ 1..) => {
                self.written.extend(&buffer[..length]);
                self.screen.process(&buffer[..length]);
                true
            }
            Ok(0) | Err(_) => false,
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.written).into_owned()
    }

    /// The rows of the screen: a line that fills one is not joined with the next.
    fn rows(&self) -> Vec<String> {
        let screen = self.screen.screen();
        screen.rows(0, screen.size().1).map(|row| row.trim_end().to_owned()).collect()
    }

    /// The lines of the screen, as a person sees them.
    fn shown(&self) -> String {
        self.screen.screen().contents()
    }
}

fn healthy() -> String {
    L40S.replace("\"esx-l40s-*\"", "\"esx-l40s-[01-03]\"")
}

const APPLY: &str = "apply --world world.yaml";
const QUESTION: &str = "Only `yes` goes on: ";

#[test]
fn a_plan_is_shown_and_asked_about_and_only_yes_goes_on() {
    for (answer, code) in [("no\r", 9), ("\r", 9), ("y\r", 9), ("\u{4}", 9), ("yes\r", 0)] {
        let folder = Folder::lab(&[("l40s", &healthy())]);
        let mut terminal = Terminal::start(&folder, 100, &[], APPLY);
        terminal.until(QUESTION);
        let shown = terminal.shown();
        assert!(
            shown.contains("2 hosts change, 1 at a time") && shown.contains("Apply this plan to 2 hosts?"),
            "{shown}"
        );
        assert!(!folder.path().join("world.yaml.state").exists() || code == 9, "nothing is done before the answer");
        terminal.type_in(answer);
        assert_eq!(terminal.end(), code, "{answer:?}: {}", terminal.shown());
        let shown = terminal.shown();
        assert_eq!(shown.contains("nothing was changed"), code == 9, "{answer:?}: {shown}");
        assert_eq!(shown.contains("2 hosts as the plan wants it."), code == 0, "{answer:?}: {shown}");
    }
}

/// The keys themselves, not the signal: the terminal makes one of the other.
#[test]
fn f13_ctrl_c_at_the_question_changes_nothing() {
    let folder = Folder::lab(&[("l40s", &healthy())]);
    let mut terminal = Terminal::start(&folder, 100, &[], APPLY);
    terminal.until(QUESTION);
    terminal.type_in("\u{3}");
    assert_eq!(terminal.end(), 130, "{}", terminal.shown());
    assert!(terminal.shown().contains("stopped by Ctrl-C; nothing was changed"), "{}", terminal.shown());
    let runs = std::fs::read_dir(folder.path().join(".poolwright/runs")).map_or(0, Iterator::count);
    assert_eq!(runs, 0, "no run was begun");
}

/// What is under way is the last line while it lasts, and is gone afterwards.
#[test]
fn progress_is_animated_and_leaves_nothing_behind() {
    let folder = Folder::lab(&[("h100", H100)]);
    let mut terminal = Terminal::start(&folder, 100, &[], "apply --yes --world world.yaml");
    assert_eq!(terminal.end(), 10, "{}", terminal.shown());
    let (written, shown) = (terminal.text(), terminal.shown());
    for under_way in ["logging in to vc.lab", "reading 3 hosts", "waiting: "] {
        assert!(written.contains(under_way), "{under_way} was never shown: {written}");
        assert!(!shown.contains(under_way), "{under_way} is still there: {shown}");
    }
    let spinner = |line: &str| line.starts_with(|c: char| ('\u{2801}'..='\u{28ff}').contains(&c));
    assert!(!shown.lines().any(spinner), "{shown}");
    // The lines of the run stand whole, each once.
    assert_eq!(shown.matches("esx-h100-01  given back, verified").count(), 1, "{shown}");
}

/// Each host has one line below those of the run: it is rewritten in place, never broken, and gone at the end.
#[test]
fn each_host_has_one_line_that_is_rewritten_in_place() {
    for columns in [100, 40] {
        let folder = Folder::lab(&[("h100", H100)]);
        let mut terminal = Terminal::start(&folder, columns, &[], "apply --yes --world world.yaml");
        let spinner = |row: &&String| row.starts_with(|c: char| ('\u{2801}'..='\u{28ff}').contains(&c));
        let (mut all, mut waits) = (false, false);
        while terminal.read() {
            let rows = terminal.rows();
            assert!(rows.iter().filter(spinner).count() <= 1, "{columns}: {rows:#?}");
            let Some(head) = rows.iter().position(|row| spinner(&row)) else { continue };
            let below: Vec<&String> = rows[head + 1..].iter().filter(|row| !row.is_empty()).collect();
            // A read may end in the middle of a line; what a terminal broke would begin at its edge.
            assert!(below.iter().all(|row| row.starts_with("  ")), "{columns}: {rows:#?}");
            all |= below.iter().filter(|row| row.starts_with("  esx-h100-0")).count() == 3;
            waits |= below.iter().any(|row| row.contains("  for ") && row.contains(", until "));
        }
        assert!(all && (waits || columns == 40), "{columns}: {}", terminal.text());
        terminal.end();
        let rows = terminal.rows();
        assert!(!rows.iter().any(|row| spinner(&row) || row.contains(", until ")), "{columns}: {rows:#?}");
        assert_eq!(terminal.shown().matches("esx-h100-01  given back, verified").count(), 1, "{rows:#?}");
    }
}

#[test]
fn colour_is_for_those_who_want_it() {
    let folder = Folder::lab(&[("l40s", &healthy())]);
    let sgr = |text: &str| text.contains("\u{1b}[1m") || text.contains("\u{1b}[3");
    let run = |env: &[(&str, &str)]| {
        let mut terminal = Terminal::start(&folder, 100, env, "plan --world world.yaml");
        assert_eq!(terminal.end(), 0);
        (terminal.text(), terminal.shown())
    };
    let (coloured, shown) = run(&[]);
    assert!(sgr(&coloured), "{coloured}");
    for plain in [[("NO_COLOR", "1")], [("TERM", "dumb")]] {
        let (written, same) = run(&plain);
        assert!(!written.contains('\u{1b}'), "{plain:?}: {written:?}");
        assert_eq!(same, shown, "{plain:?}: nothing is said by colour alone");
    }
    // An empty value is no value.
    assert!(sgr(&run(&[("NO_COLOR", "")]).0));
}

/// The words of a page; what a list on a narrow terminal adds is a colon behind the head.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = text.split_whitespace().map(|word| word.trim_end_matches(':').to_owned()).collect();
    words.sort();
    words.dedup();
    words
}

/// `discover` and `plan` follow the width, and no name and no number is broken in two.
#[test]
fn d13_reports_follow_the_width_of_the_terminal() {
    let folder = Folder::lab(&[("h100", H100), ("l40s", L40S)]);
    for line in ["discover --world world.yaml", "plan --world world.yaml", "catalog", "catalog h100-nvl-94"] {
        let whole = words(&folder.run(line).expect(0).stdout);
        for columns in [40, 60, 80, 132, 250] {
            let mut terminal = Terminal::start(&folder, columns, &[("NO_COLOR", "1")], line);
            assert_eq!(terminal.end(), 0, "{}", terminal.shown());
            let text = terminal.text();
            let mut widest = 0;
            for row in text.lines().map(str::trim_end) {
                let width = row.chars().count();
                widest = widest.max(width);
                // A word without room, and a command, which must be pasted whole.
                let fits = width <= usize::from(columns)
                    || row.split_whitespace().count() == 1
                    || row.trim_start().starts_with("`poolwright ");
                assert!(fits, "{line} at {columns}: {width} columns: {row:?}");
            }
            for word in words(&text) {
                assert!(whole.contains(&word), "{line} at {columns}: {word:?} is a piece: {text}");
            }
            assert!(
                columns < 132 || !line.starts_with("plan") || widest > 100,
                "{line} at {columns}: only {widest} columns are used"
            );
        }
    }
}

/// A terminal that nobody gave a size has 0 columns.
#[test]
fn a_terminal_without_a_size_is_as_none() {
    let folder = Folder::lab(&[]);
    let plain = folder.run("discover --world world.yaml").expect(0).stdout;
    let mut terminal = Terminal::start(&folder, 0, &[("NO_COLOR", "1")], "discover --world world.yaml");
    assert_eq!(terminal.end(), 0);
    assert_eq!(terminal.text().replace("\r\n", "\n"), plain);
}

/// The person who is asked says so by Enter; one that was typed before the question is no answer to it.
#[test]
fn enter_says_that_the_commands_are_typed() {
    let folder = Folder::lab(&[("a100", &A100_MIG.replace("\"esx-a100-*\"", "esx-a100-12"))]);
    let sim = Sim::start(&folder, " --speed 600");
    folder.write("inventories/lab.yaml", by_hand(&sim.pinned_site()));
    let mut terminal = Terminal::start(&folder, 100, &[], "apply --yes --handoff-wait 60s");
    terminal.until("enter maintenance mode ...");
    terminal.type_in("\r");
    terminal.until("press Enter here");
    terminal.until("waiting: a person to type");
    let shown = terminal.shown();
    let commands: Vec<&str> = shown.lines().filter(|line| line.starts_with("    nvidia-smi -i ")).collect();
    assert_eq!(commands, ["    nvidia-smi -i 0000:17:00.0 -mig 1", "    nvidia-smi -i 0000:1f:00.0 -mig 1"], "{shown}");
    terminal.type_in("\r");
    terminal.until("a person says that it is done");
    terminal.until("reboot ...");
    terminal.type_in("\u{3}");
    terminal.until("once more stops at once");
    terminal.type_in("\u{3}");
    assert_eq!(terminal.end(), 130, "{}", terminal.shown());
    let journal = folder.read(&format!(".poolwright/runs/{}/journal.jsonl", folder.run_id()));
    assert_eq!(journal.matches("HandoffConfirmed").count(), 1, "{journal}");
    sim.end();
}
