//! A person who types at the shell of a host: how long they are waited for, and the Enter by which they
//! say that it is done.

use std::time::Duration;

use super::Ui;
use super::args::{HandoffArgs, World};
use crate::rollout::{Handoff, handoff};

/// On a terminal somebody is there: half an hour is enough to find the host's console and its password,
/// and short enough that a host which is forgotten is told before the end of a day.
const ON_A_TERMINAL: Duration = Duration::from_secs(30 * 60);

/// How a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asking {
    /// How long they are waited for.
    pub wait: Duration,
    /// Whether Enter says that it is done.
    pub enter: bool,
}

impl Asking {
    /// Nobody is asked for anything.
    pub const NOBODY: Self = Self { wait: Duration::ZERO, enter: false };
}

/// As the arguments say, or as the place suggests. Nobody is at the shells of a fleet that lives in this
/// process, and its hours pass in milliseconds.
pub fn asking(args: &HandoffArgs, world: &World, ui: &Ui) -> Asking {
    let person = ui.interactive && world.file().is_none();
    let default = if person { ON_A_TERMINAL } else { Duration::ZERO };
    let wait = args.handoff_wait.map_or(default, |wait| wait.0);
    Asking { wait, enter: person && !wait.is_zero() }
}

/// The engine's end. From now on each Enter is a person's word; the engine knows whether it asked.
pub fn open(asking: Asking) -> Handoff {
    let (confirm, handoff) = handoff(asking.wait);
    if asking.enter {
        // Reads until the process ends, from the beginning: what is typed before the question is read
        // before it, too.
        std::thread::spawn(move || {
            loop {
                match Typed::of(&Ui::answer()) {
                    Typed::Done => confirm.confirm(),
                    Typed::Words => {}
                    Typed::End => return,
                }
            }
        });
    }
    handoff
}

/// What a line of a person means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Typed {
    /// Enter alone: it is done.
    Done,
    /// It may be the commands, pasted into the wrong window.
    Words,
    /// No line will come any more.
    End,
}

impl Typed {
    fn of(line: &str) -> Self {
        match line.trim() {
            "" if line.is_empty() => Self::End,
            "" => Self::Done,
            _ => Self::Words,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_enter_alone_says_that_it_is_done() {
        for (line, means) in [
            ("\n", Typed::Done),
            (" \r\n", Typed::Done),
            ("nvidia-smi -i 0000:3b:00.0 -mig 1\n", Typed::Words),
            ("done\n", Typed::Words),
            ("", Typed::End),
        ] {
            assert_eq!(Typed::of(line), means, "{line:?}");
        }
    }
}
