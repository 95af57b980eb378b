//! Findings that somebody accepted: lowered to warnings, and visible.

use jiff::civil::Date;

use crate::model::{Accept, Acceptance, DesiredPool, Finding, RULES, Rule, Severity};

/// Lowers what the pool accepts, and says what became of each acceptance. `findings` are those of the
/// pool and its hosts.
pub(super) fn apply(pool: &DesiredPool, findings: &mut Vec<Finding>, today: Date) {
    let mut said = Vec::new();
    for accept in &pool.accept {
        let id = accept.finding.value.as_str();
        // An id that can never be accepted, or that does not exist, was refused with the document.
        if !RULES.iter().any(|rule| rule.id == id && rule.acceptable) {
            continue;
        }
        if accept.until.value < today {
            let message = format!("the acceptance of {id} ended on {}; it is not in force any more", accept.until);
            said.push(about(&Rule::ACCEPT_EXPIRED, accept, message));
            continue;
        }
        let mut used = false;
        for finding in findings.iter_mut().filter(|finding| finding.id.0 == id && covers(accept, finding)) {
            used = true;
            finding.severity = finding.severity.min(Severity::Warning);
            finding.accepted = Some(Acceptance {
                reason: accept.reason.clone(),
                until: accept.until.to_string(),
                place: accept.finding.place.clone(),
            });
        }
        if !used {
            let message = format!("nothing is found that the acceptance of {id} covers");
            said.push(about(&Rule::ACCEPT_UNUSED, accept, message).hint("take it out, or correct its hosts"));
        }
    }
    findings.extend(said.into_iter().map(|finding| finding.in_pool(&pool.name.value)));
}

/// Whether the acceptance is for this host.
fn covers(accept: &Accept, finding: &Finding) -> bool {
    match &finding.subject.host {
        _ if accept.hosts.is_empty() => true,
        Some(host) => accept.hosts.iter().any(|accepted| accepted.value == *host),
        None => false,
    }
}

fn about(rule: &Rule, accept: &Accept, message: String) -> Finding {
    Finding::new(rule, message).at(&accept.finding.place)
}
