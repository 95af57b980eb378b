//! The findings of one host while it is judged.

use super::device::Gap;
use crate::model::{DesiredPool, Finding, HostPin, Place, Rule};

/// How the message of a rule begins that could not be checked: the title of the rule follows, the
/// evidence says what could not be read.
pub const UNTOLD: &str = "cannot be told, and counts as if so: ";

/// What to do then: the hint of the rule is about what was found, and nothing was.
const UNREAD: &str = "see what the user may not read, or whether the host answers, and plan again";

/// The findings of one host. A check never stops another one: what cannot be read is a finding of
/// each rule that needs it, so that less knowledge never makes fewer findings.
pub(super) struct Sheet<'a> {
    /// Pool.
    pub pool: &'a DesiredPool,
    /// The host, and the selector that chose it.
    pub pin: &'a HostPin,
    /// What was found.
    pub findings: Vec<Finding>,
}

impl<'a> Sheet<'a> {
    /// An empty sheet.
    pub fn new(pool: &'a DesiredPool, pin: &'a HostPin) -> Self {
        Self { pool, pin, findings: Vec::new() }
    }

    /// Adds a finding on this host.
    pub fn add(&mut self, finding: Finding) {
        self.findings.push(finding.in_pool(&self.pool.name.value).on_host(&self.pin.host.name));
    }

    /// A finding of this rule at the line of the host's selector.
    pub fn here(&self, rule: &Rule, message: impl Into<String>) -> Finding {
        Finding::new(rule, message).at(&self.pin.selector.place)
    }

    /// A finding of this rule at a line, or else at that of the host's selector.
    pub fn at(&self, rule: &Rule, place: Option<&Place>, message: impl Into<String>) -> Finding {
        Finding::new(rule, message).at(place.unwrap_or(&self.pin.selector.place))
    }

    /// Says of each rule that it could not be checked and counts as violated.
    pub fn unread(&mut self, rules: &[&Rule], gap: &Gap) {
        for rule in rules {
            match self.findings.iter_mut().find(|finding| finding.id.0 == rule.id) {
                Some(said) => {
                    let line = gap.to_string();
                    if !said.evidence.contains(&line) {
                        said.evidence.push(line);
                    }
                }
                None => {
                    let message = format!("{UNTOLD}{}", rule.title);
                    // That it cannot be told is all that this rule is about.
                    let hint = if **rule == Rule::NODE_IDENTITY { rule.hint() } else { None };
                    self.add(self.here(rule, message).seen(gap.to_string()).hint(hint.unwrap_or(UNREAD)));
                }
            }
        }
    }

    /// The value, or what its absence leaves unchecked.
    pub fn take<T>(&mut self, rules: &[&Rule], read: Result<T, Gap>) -> Option<T> {
        read.map_err(|gap| self.unread(rules, &gap)).ok()
    }
}
