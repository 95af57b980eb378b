//! Counted rules: which call is struck by which fault (FORMATS "World").

use std::time::Duration;

use super::behaviour::{Moment, TaskFate};
use super::document::{DryRuns, Face, Fault, FaultRule, Lie};
use super::world::task::Failure;

/// What strikes one call.
#[derive(Debug, Clone, Default)]
pub(in crate::sim) struct Struck {
    pub drop_before: bool,
    pub drop_after: bool,
    pub delay: Duration,
    /// Answered with this fault.
    pub fault: Option<String>,
    /// Answered by a proxy with this status.
    pub status: Option<u16>,
    pub end_session: bool,
    /// What becomes of the task that the call starts.
    pub fate: TaskFate,
    /// Success without effect.
    pub hollow: bool,
    /// Reads of these objects give the state before the last change.
    pub stale: Vec<Target>,
    /// These objects are gone.
    pub gone: Vec<Target>,
    /// These properties of these objects cannot be read.
    pub missing: Vec<(Target, Vec<String>)>,
    /// A command does not end by itself.
    pub hangs: bool,
    /// Lines that a command prints first.
    pub prints: Vec<String>,
    /// Lines with one of these are not printed.
    pub omits: Vec<String>,
}

/// The object of a rule: a name or an id; none stands for all.
#[derive(Debug, Clone)]
pub(in crate::sim) struct Target(Option<String>);

impl Target {
    /// Whether this object, by its name or id, is meant.
    pub fn is(&self, name: Option<&str>, id: &str) -> bool {
        self.0.as_deref().is_none_or(|wanted| Some(wanted) == name || wanted == id)
    }
}

/// A call, as rules see it.
#[derive(Debug)]
pub(in crate::sim) struct Seen<'a> {
    pub face: Face,
    pub method: &'a str,
    /// Whether it changes something.
    pub write: bool,
    /// Whether nothing of it is to be kept.
    pub dry: bool,
    /// Objects that it is about: name, if they have one, and id.
    pub objects: &'a [(Option<String>, String)],
}

/// The name under which rules know a move by which DRS empties a host.
const EVACUATION: &str = "evacuation";

impl<'a> Seen<'a> {
    /// A move by which DRS empties a host: no call, so that only rules which name it match.
    pub fn evacuation(objects: &'a [(Option<String>, String)]) -> Self {
        Self { face: Face::Soap, method: EVACUATION, write: false, dry: false, objects }
    }

    /// What a host's SSH server is asked for.
    pub fn ssh(method: &'a str, write: bool, objects: &'a [(Option<String>, String)]) -> Self {
        Self { face: Face::Ssh, method, write, dry: false, objects }
    }
}

impl FaultRule {
    fn matches(&self, seen: &Seen<'_>) -> bool {
        let method = match self.method.as_str() {
            "*" => seen.method != EVACUATION,
            "write" => seen.write,
            method => method == seen.method,
        };
        let target = Target(self.object.clone());
        let object = self.object.is_none() || seen.objects.iter().any(|(name, id)| target.is(name.as_deref(), id));
        let dry = match self.dry_run {
            DryRuns::No => !seen.dry,
            DryRuns::Only => seen.dry,
            DryRuns::Also => true,
        };
        self.face == seen.face && method && object && dry
    }
}

impl Moment<'_> {
    /// Counts the call for every rule that it matches, and says what strikes it.
    pub fn strike(&mut self, seen: &Seen<'_>) -> Struck {
        let mut struck = Struck::default();
        let spec = self.spec;
        for (index, rule) in spec.faults.iter().enumerate().filter(|(_, rule)| rule.matches(seen)) {
            let count = self.state.struck.entry(index).or_default();
            *count += 1;
            if *count < rule.on_call || *count - rule.on_call >= rule.times {
                continue;
            }
            let target = Target(rule.object.clone());
            match &rule.then {
                Fault::DropBefore => struck.drop_before = true,
                Fault::DropAfter => struck.drop_after = true,
                Fault::Delay(span) => struck.delay += span.0,
                Fault::Fault(kind) => struck.fault = Some(kind.clone()),
                Fault::TaskFault(kind) => struck.fate.doomed = Some(Failure::of(kind)),
                Fault::TaskHangs => struck.fate.hangs = true,
                Fault::Status(status) => struck.status = Some(*status),
                Fault::EndSession => struck.end_session = true,
                Fault::Lie(Lie::NoEffect) => {
                    struck.hollow = true;
                    struck.fate.hollow = true;
                }
                Fault::Lie(Lie::Stale) => struck.stale.push(target),
                Fault::Gone => struck.gone.push(target),
                Fault::Hangs => struck.hangs = true,
                Fault::Prints(line) => struck.prints.push(line.clone()),
                Fault::Omits(text) => struck.omits.push(text.clone()),
                Fault::Missing(paths) => struck.missing.push((target, paths.clone())),
            }
        }
        struck
    }
}
