//! The nodes of a host: what is found before one is cordoned, and the gate before it is uncordoned.

use super::Check;
use super::gate::{GateCheck, GateRead, Verdict, line};
use super::memory::NodeMemory;
use crate::model::{Fact, GuestRules, NodeMark, NodePhase, NodeView, RunId, counted};

/// Which boot a node has to be on, by what the visit did to its VM (FORMATS rule 13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boot {
    /// Its VM was stopped: another one than before.
    Another,
    /// Its VM was left alone: the one from before.
    Same,
    /// It is not known whether its VM was stopped.
    Either,
}

/// What is found before a node is cordoned, from a fresh look. A node that this run has cordoned and
/// somebody has uncordoned since is refused: a person wins.
pub fn may_cordon(run: &RunId, node: &NodeView) -> Check {
    let refused = |expected: &str, found: String| Check::Refused { expected: expected.to_owned(), found };
    if node.deleting {
        return refused("a node that stays", format!("{} is being deleted", node.node));
    }
    match node.marked() {
        Fact::Absent => Check::Ready,
        Fact::Unknown { why } => refused("a mark that can be understood, or none", why),
        Fact::Known(mark) if mark.run != *run => {
            refused("nobody's mark on the node", format!("run {} has marked {}: {}", mark.run, node.node, mark.phase))
        }
        Fact::Known(_) if !node.unschedulable => {
            refused("the node still cordoned", format!("somebody has uncordoned {}", node.node))
        }
        Fact::Known(mark) => {
            Check::AlreadyDone { evidence: vec![format!("cordoned by this run since {:.0}", mark.since)] }
        }
    }
}

/// Reads the gate of a node whose mark is in `memory`. It opens if every line does
/// ([`Verdict::opens`]); the Jobs of its guest cluster come after it.
pub fn node_gate(rules: &GuestRules, memory: &NodeMemory, node: &NodeView, boot: Boot) -> Vec<GateRead> {
    let about = About(node);
    vec![
        about.identity(&memory.node.uid),
        about.marked(&memory.mark),
        about.cordoned(),
        about.boot(&memory.mark.boot, boot),
        about.ready(),
        about.offers(rules, memory.mark.gpus),
    ]
}

/// Reads the gate of a node whose VM was moved while it ran: no worse than before. `before`: as it was
/// seen last before the move; none if that is not known any more.
pub fn moved_gate(before: Option<&NodeView>, node: &NodeView) -> Vec<GateRead> {
    let about = About(node);
    let Some(before) = before else {
        let lost = "what it was before the move is not known";
        return vec![about.ready(), about.line("boot", Verdict::Noted, lost), about.line("GPUs", Verdict::Noted, lost)];
    };
    let mut lines = vec![about.identity(&before.node.uid)];
    lines.push(match &before.boot_id {
        Fact::Known(boot) => about.boot(boot, Boot::Same),
        _ => about.line("boot", Verdict::Noted, "its boot before the move is not known"),
    });
    let mut ready = about.ready();
    if before.ready != Fact::Known(true) && !ready.verdict.opens() {
        ready = about.line("Ready", Verdict::Noted, format!("{}, as before the move", ready.evidence));
    }
    lines.push(ready);
    let resources = before.allocatable.known().into_iter().flatten();
    lines.extend(resources.map(|(resource, _)| about.no_fewer(resource, before)));
    lines
}

/// A node under judgement.
struct About<'a>(&'a NodeView);

impl About<'_> {
    fn line(&self, what: &str, verdict: Verdict, evidence: impl Into<String>) -> GateRead {
        line(GateCheck::Node, &format!("{}, {what}", self.0.node), verdict, evidence)
    }

    fn passed_if(&self, what: &str, good: bool, evidence: impl Into<String>) -> GateRead {
        self.line(what, if good { Verdict::Passed } else { Verdict::Failed }, evidence)
    }

    fn identity(&self, uid: &str) -> GateRead {
        let now = &self.0.node.uid;
        if self.0.deleting {
            return self.line("identity", Verdict::Failed, "it is being deleted");
        }
        self.passed_if("identity", now == uid, format!("UID before {uid}; now {now}"))
    }

    fn marked(&self, ours: &NodeMark) -> GateRead {
        let failed = |found: String| self.line("mark", Verdict::Failed, found);
        match self.0.marked() {
            Fact::Unknown { why } => self.line("mark", Verdict::Unverifiable, why),
            Fact::Absent => failed("somebody has taken our mark off".to_owned()),
            Fact::Known(mark) if mark.run != ours.run => failed(format!("run {} has marked it", mark.run)),
            Fact::Known(mark) if (&mark.host, &mark.vm) != (&ours.host, &ours.vm) => {
                failed(format!("its mark is of {} on host {}", mark.vm, mark.host))
            }
            // Never validated again by itself.
            Fact::Known(mark) if mark.phase == NodePhase::Failed => {
                failed("it did not pass its gate before".to_owned())
            }
            Fact::Known(mark) => self.line("mark", Verdict::Passed, format!("run {}, {}", mark.run, mark.phase)),
        }
    }

    fn cordoned(&self) -> GateRead {
        match self.0.unschedulable {
            true => self.line("cordon", Verdict::Passed, "cordoned"),
            false => self.line("cordon", Verdict::Failed, "somebody has uncordoned it"),
        }
    }

    fn boot(&self, before: &str, boot: Boot) -> GateRead {
        let now = match &self.0.boot_id {
            Fact::Known(now) => now,
            Fact::Absent => return self.line("boot", Verdict::Unverifiable, "its kubelet tells no boot id"),
            Fact::Unknown { why } => return self.line("boot", Verdict::Unverifiable, why),
        };
        if before.is_empty() && boot != Boot::Either {
            return self.line("boot", Verdict::Unverifiable, format!("boot id before not known; now {now}"));
        }
        let (good, expected) = match boot {
            Boot::Another => (now != before, "another one, its VM was stopped"),
            Boot::Same => (now == before, "the same, its VM was not stopped"),
            Boot::Either => (true, "any"),
        };
        self.passed_if("boot", good, format!("boot id before {before}; now {now}; expected {expected}"))
    }

    fn ready(&self) -> GateRead {
        match &self.0.ready {
            Fact::Known(ready) => self.passed_if("Ready", *ready, if *ready { "Ready" } else { "not Ready" }),
            Fact::Absent => self.line("Ready", Verdict::Unverifiable, "its kubelet says nothing of Ready"),
            Fact::Unknown { why } => self.line("Ready", Verdict::Unverifiable, why),
        }
    }

    /// Exactly what is expected, and no fewer than before (FORMATS rule 13).
    fn offers(&self, rules: &GuestRules, before: u64) -> GateRead {
        let (resource, expected) = (&rules.expect.resource.value, u64::from(rules.expect.per_node.value));
        match self.0.count(resource) {
            Fact::Known(now) => self.passed_if(
                "GPUs",
                now == expected && now >= before,
                format!("allocatable {resource}: expected {expected}, before {before}, now {now}"),
            ),
            Fact::Absent => self.line("GPUs", Verdict::Unverifiable, format!("no allocatable {resource} is told")),
            Fact::Unknown { why } => self.line("GPUs", Verdict::Unverifiable, why),
        }
    }

    fn no_fewer(&self, resource: &str, before: &NodeView) -> GateRead {
        match (before.count(resource), self.0.count(resource)) {
            (Fact::Known(before), Fact::Known(now)) => {
                self.passed_if(resource, now >= before, format!("allocatable before {before}, now {now}"))
            }
            (Fact::Known(before), _) => {
                let before = counted(before, "unit");
                self.line(resource, Verdict::Unverifiable, format!("{before} allocatable before, now not known"))
            }
            (_, now) => {
                let now = now.known().map_or_else(|| "not known".to_owned(), ToString::to_string);
                self.line(resource, Verdict::Noted, format!("allocatable before not known, now {now}"))
            }
        }
    }
}
