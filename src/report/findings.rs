//! Findings as text: the same finding on many hosts is one entry.

use std::collections::BTreeMap;

use super::{Again, Paper, Text, Tone, words};
use crate::model::{Finding, HostName, Severity};
use crate::plan::UNTOLD;

/// Writes the findings, worst first; says nothing if there are none.
pub fn findings(paper: &mut Paper, findings: &[Finding], again: &Again) {
    if findings.is_empty() {
        return;
    }
    paper.heading("Findings");
    let findings = &merged(findings);
    // What one entry says of all its hosts; the order of the keys is the order of the page.
    let mut entries: BTreeMap<_, Vec<&Finding>> = BTreeMap::new();
    for (number, finding) in findings.iter().enumerate() {
        let same = findings.iter().position(|other| alike(finding, other)).unwrap_or(number);
        let key = (std::cmp::Reverse(finding.severity), &finding.id, same);
        entries.entry(key).or_default().push(finding);
    }
    for group in entries.values() {
        entry(paper, group, again);
    }
}

/// Findings with what could not be told of one thing, for one cause, as one: a property that cannot
/// be read leaves many rules unchecked. The id of each further rule stands behind its words, with its severity where
/// that is less.
fn merged(findings: &[Finding]) -> Vec<Finding> {
    let mut merged: Vec<Finding> = Vec::with_capacity(findings.len());
    for finding in findings {
        let rest = finding.message.strip_prefix(UNTOLD);
        let first = merged.iter_mut().find(|first| {
            first.message.starts_with(UNTOLD)
                && first.subject == finding.subject
                && first.evidence == finding.evidence
                && first.place == finding.place
                && first.accepted == finding.accepted
        });
        match (rest, first) {
            (Some(title), Some(first)) if first.severity == finding.severity => {
                first.message.push_str(&format!("; {title} ({})", finding.id));
            }
            (Some(title), Some(first)) => {
                first.message.push_str(&format!("; {title} ({}, {})", finding.id, finding.severity));
            }
            _ => merged.push(finding.clone()),
        }
    }
    merged
}

/// Whether two findings say the same of two hosts.
fn alike(one: &Finding, other: &Finding) -> bool {
    let subject =
        |finding: &Finding| (finding.subject.pool.clone(), finding.subject.gpu, finding.subject.host.is_some());
    one.id == other.id
        && one.severity == other.severity
        && one.message == other.message
        && one.evidence == other.evidence
        && one.hint == other.hint
        && one.accepted == other.accepted
        && one.place == other.place
        && subject(one) == subject(other)
}

fn entry(paper: &mut Paper, group: &[&Finding], again: &Again) {
    let Some(finding) = group.first() else { return };
    let hosts: Vec<&HostName> = group.iter().filter_map(|finding| finding.subject.host.as_ref()).collect();
    let who = match (hosts.as_slice(), &finding.subject.pool) {
        ([], None) => String::new(),
        ([], Some(pool)) => format!("pool {pool}: "),
        ([host], _) => format!("{host}: "),
        (hosts, _) => format!("{} ({}): ", words::count(hosts.len(), "host"), words::names(hosts.iter().copied())),
    };
    let gpu = finding.subject.gpu.map(|gpu| format!("{gpu}: ")).unwrap_or_default();
    let label = Text::toned(tone(finding.severity), format!("{:<8}", finding.severity))
        .and(Tone::Strong, format!("{:<10} ", finding.id));
    paper.item(2, label, format!("{who}{gpu}{}", finding.message));
    let more = 2 + 8 + 11;
    for line in &finding.evidence {
        paper.item(more, "seen: ", line.as_str());
    }
    if let Some(accepted) = &finding.accepted {
        let text = format!("{} (until {}, {})", accepted.reason, accepted.until, accepted.place);
        paper.item(more, "accepted: ", text);
    }
    if let Some(place) = &finding.place {
        paper.item(more, "at: ", place.to_string());
    }
    if let Some(hint) = &finding.hint {
        paper.item(more, "hint: ", again.complete(hint));
    }
}

/// The tone of a severity.
pub fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Error => Tone::Bad,
        Severity::Warning => Tone::Warn,
        Severity::Info => Tone::Dim,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Acceptance, Place, Rule};

    #[test]
    fn worst_first_and_one_entry_for_the_same_thing_on_many_hosts() {
        let place = Place { file: "profiles/a.yaml".into(), line: 7, column: 5 };
        let mut all = vec![Finding::new(&Rule::HOST_OFF_VM, "vm-1 would not start").on_host(&"esx-1".into())];
        for host in ["esx-1", "esx-2", "esx-3"] {
            let finding = Finding::new(&Rule::VM_DIRECT_PATH, "VMs never move");
            all.push(finding.on_host(&host.into()).at(&place).hint("move them away").in_pool("infer"));
        }
        let mut accepted = Finding::new(&Rule::DRV_DIFFERS, "driver 580 instead of 570").on_host(&"esx-4".into());
        accepted.severity = Severity::Warning;
        accepted.accepted =
            Some(Acceptance { reason: "case 17".into(), until: "2026-12-31".into(), place: place.clone() });
        all.push(accepted);
        let mut paper = Paper::new();
        findings(&mut paper, &all, &Again::default());
        insta::assert_snapshot!(paper.render(false));
    }

    #[test]
    fn what_one_cause_leaves_untold_of_a_host_is_one_entry() {
        let untold = |rule: &Rule, host: &str, why: &str| {
            Finding::new(rule, format!("{UNTOLD}{}", rule.title)).on_host(&host.into()).seen(why).hint("see why")
        };
        let all = [
            untold(&Rule::GPU_COUNT, "esx-1", "no privilege"),
            untold(&Rule::GPU_MODEL, "esx-1", "no privilege"),
            untold(&Rule::GPU_COUNT, "esx-2", "no privilege"),
            untold(&Rule::HOST_BUSY, "esx-1", "no answer"),
            untold(&Rule::GPU_UNCOVERED, "esx-1", "no privilege"),
        ];
        let mut paper = Paper::new();
        findings(&mut paper, &all, &Again::default());
        insta::assert_snapshot!(paper.render(false), @"
        Findings
          error   PW-GPU-02  esx-1: cannot be told, and counts as if so: another number of GPUs than the
                             pool's; a GPU of another model than the pool's (PW-GPU-01); GPUs of the host
                             that no group of the pool selects (PW-GPU-08, info)
                             seen: no privilege
                             hint: see why
          error   PW-GPU-02  esx-2: cannot be told, and counts as if so: another number of GPUs than the
                             pool's
                             seen: no privilege
                             hint: see why
          error   PW-HOST-08 esx-1: cannot be told, and counts as if so: another task works on the host
                             seen: no answer
                             hint: see why
        ");
    }

    #[test]
    fn nothing_is_written_for_no_findings() {
        let mut paper = Paper::new();
        findings(&mut paper, &[], &Again::default());
        assert_eq!(paper.render(false), "");
    }
}
