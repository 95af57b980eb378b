//! Commands that are proposed, as they must be typed to reach the same documents, fleet and runs.

use std::ops::Range;

/// The options by which the user's own command reached its documents, its fleet and its runs. Every
/// command that is proposed gets those of them that its verb takes, in this one place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Again {
    /// The folder in which the commands must be typed, where it is not the one that we are in.
    pub dir: Option<String>,
    /// Files and folders, where they are not the default ones.
    pub documents: Vec<String>,
    /// The site, where it must be named.
    pub site: Option<String>,
    /// The World document, if the fleet is simulated.
    pub world: Option<String>,
    /// The state directory, where it is not the default one.
    pub state: Option<String>,
}

/// What a command that is proposed begins with.
pub(super) const PROGRAM: &str = "poolwright ";

impl Again {
    /// The options that a verb takes; `takes` is the truth of the command line, told by `cli`'s tests.
    pub fn takes(verb: &str) -> &'static [&'static str] {
        match verb {
            "discover" | "plan" => &["--documents", "--site", "--world"],
            "apply" | "resume" | "abort" => &["--documents", "--world", "--state"],
            "status" => &["--state"],
            _ => &[],
        }
    }

    /// A command line with the options that it needs: `poolwright resume 01JD --world lab.yaml`.
    ///
    /// `command` is the verb and its own arguments; an option that it has already is not added.
    pub fn line(&self, command: &str) -> String {
        let verb = command.split(' ').next().unwrap_or_default();
        let has = |option: &str| command.split(' ').any(|word| word == option);
        let enter = self.dir.as_ref().map(|dir| format!("cd {} && ", quoted(dir))).unwrap_or_default();
        let mut line = format!("{enter}{PROGRAM}{command}");
        for option in Self::takes(verb).iter().filter(|option| !has(option)) {
            let values: Vec<&String> = match *option {
                "--documents" => self.documents.iter().collect(),
                "--site" => self.site.iter().collect(),
                "--world" => self.world.iter().collect(),
                _ => self.state.iter().collect(),
            };
            for value in values {
                line.push_str(&format!(" {option} {}", quoted(value)));
            }
        }
        line
    }

    /// A text with the commands in it, which stand between backticks, as [`Again::line`] writes them.
    pub fn complete(&self, text: &str) -> String {
        let mut whole = String::with_capacity(text.len());
        let mut done = 0;
        for Range { start, end } in commands(text) {
            whole.push_str(&text[done..start]);
            whole.push_str(&self.line(&text[start + PROGRAM.len()..end]));
            done = end;
        }
        whole + &text[done..]
    }
}

/// Where commands of ours stand between backticks.
fn commands(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find('`').map(|at| from + at + 1) {
        let Some(end) = text[start..].find('`').map(|at| start + at) else { break };
        if text[start..end].starts_with(PROGRAM) {
            found.push(start..end);
        }
        from = end + 1;
    }
    found
}

/// A name or a path as a shell reads it back.
pub fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '@' | '+' | ',');
    if !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again() -> Again {
        Again {
            dir: None,
            documents: vec!["profiles".into(), "the lab's".into()],
            site: Some("lab".into()),
            world: Some("world.yaml".into()),
            state: Some("here/state".into()),
        }
    }

    #[test]
    fn a_command_gets_the_options_that_its_verb_takes() {
        let again = again();
        let documents = r"--documents profiles --documents 'the lab'\''s'";
        assert_eq!(
            again.line("plan --out plan.json"),
            format!("poolwright plan --out plan.json {documents} --site lab --world world.yaml")
        );
        assert_eq!(
            again.line("resume 01JD --retry esx-1"),
            format!("poolwright resume 01JD --retry esx-1 {documents} --world world.yaml --state here/state")
        );
        assert_eq!(again.line("status 01JD"), "poolwright status 01JD --state here/state");
        assert_eq!(again.line("catalog"), "poolwright catalog");
        assert_eq!(Again::default().line("resume 01JD"), "poolwright resume 01JD");
        let elsewhere = Again { dir: Some("/srv/the lab".into()), ..Again::default() };
        assert_eq!(elsewhere.line("resume 01JD"), "cd '/srv/the lab' && poolwright resume 01JD");
    }

    #[test]
    fn commands_in_a_text_are_completed_and_nothing_else() {
        let again = Again { world: Some("w.yaml".into()), ..Again::default() };
        assert_eq!(
            again.complete("set `count`; `poolwright plan --world o.yaml`, or `poolwright discover`: `poolwright"),
            "set `count`; `poolwright plan --world o.yaml`, or `poolwright discover --world w.yaml`: `poolwright"
        );
    }
}
