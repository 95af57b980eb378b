//! The card as text.

use super::by_hand::ByHand;
use super::card::{Handover, Way};
use crate::plan;
use crate::report::{Paper, Text, Tone, words};

/// What hangs under a step that is numbered.
const UNDER: usize = 5;

impl Handover {
    /// How the host stands, whose it is, and what is not put back.
    pub fn head(&self, paper: &mut Paper) {
        let maintenance = match self.maintenance {
            Some(true) => "in maintenance mode",
            Some(false) => "not in maintenance mode",
            None => "maintenance mode unknown",
        };
        let marked = if self.owner.marked { "marked by this run" } else { "not marked" };
        let seen = self.seen.map(|at| format!(" (seen {} UTC)", words::clock(at)));
        let seen = seen.unwrap_or_else(|| " (nobody has looked since)".to_owned());
        paper.item(2, "left as: ", format!("{maintenance}, {marked}{seen}"));
        let marker = match (&self.owner.marker, self.owner.written) {
            (Some(phase), Some(at)) => format!("; its mark says {phase}, written {} UTC", words::clock(at)),
            _ => String::new(),
        };
        let owner = &self.owner;
        let whose = format!("run {} of {}, since {}{marker}", owner.run, owner.user, words::time(owner.since));
        paper.item(2, "owner: ", whose);
        for line in plan::grouped(&self.pending) {
            paper.item(2, "waits for a reboot: ", line.as_str());
        }
        for line in &self.not_put_back {
            paper.item(2, Text::toned(Tone::Warn, "not put back: "), line.as_str());
        }
        for line in &self.blocked {
            paper.item(2, Text::toned(Tone::Warn, "not drained: "), line.as_str());
        }
        for note in &self.notes {
            paper.item(2, "note: ", note.as_str());
        }
    }

    /// What is left to be done by hand.
    pub fn hands(&self, paper: &mut Paper) {
        let to = match self.way {
            Way::Back => "no mode is changed on it: to give it back as it was",
            Way::Forward => "modes may be changed on it: only forward, to the end",
        };
        if !self.steps.is_empty() {
            paper.say(2, Text::toned(Tone::Strong, "by hand, without Poolwright: ").and(Tone::Plain, to));
            if !self.given_up {
                paper.say(UNDER, "Meanwhile nobody resumes this run: one host is for one pair of hands.");
            }
            if let Some(address) = self.vcenter.as_ref().filter(|_| self.has("govc ")) {
                paper.say(UNDER, format!("govc speaks to {address}: set GOVC_URL, GOVC_USERNAME and GOVC_PASSWORD."));
            }
            if self.has("kubectl ") {
                paper.say(
                    UNDER,
                    "kubectl's context is the guest cluster's name in the Site: your kubeconfig may have another.",
                );
            }
        }
        for (number, step) in self.steps.iter().enumerate() {
            step.write(paper, number + 1);
        }
        if !self.not_needed.is_empty() {
            paper.item(2, "not done, and not needed for it: ", self.not_needed.join("; "));
        }
    }

    fn has(&self, tool: &str) -> bool {
        let lines = |step: &ByHand| step.look.iter().chain(&step.commands).any(|line| line.starts_with(tool));
        self.steps.iter().any(lines)
    }
}

impl ByHand {
    fn write(&self, paper: &mut Paper, number: usize) {
        paper.item(2, format!("{number:>2} "), Text::toned(Tone::Strong, &self.does));
        for line in &self.first {
            paper.item(UNDER, Text::toned(Tone::Warn, "first: "), line.as_str());
        }
        block(paper, "look:", &self.look);
        for line in &self.clicks {
            paper.item(UNDER, "vSphere Client: ", line.as_str());
        }
        block(paper, "at its shell, as root:", &self.shell);
        block(paper, if self.clicks.is_empty() { "paste:" } else { "or paste:" }, &self.commands);
        for line in &self.then {
            paper.item(UNDER, "then: ", line.as_str());
        }
    }
}

/// Lines to paste, below what they are for.
fn block(paper: &mut Paper, label: &str, lines: &[String]) {
    if !lines.is_empty() {
        paper.say(UNDER, label);
    }
    for line in lines {
        paper.line(UNDER + 2, line.as_str());
    }
}
