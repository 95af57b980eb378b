//! Acceptances: of what exists and may be accepted, with a reason, not expired.

use jiff::civil::Date;

use crate::document::nearest;
use crate::model::{Finding, RULES, Rule};
use crate::profile::GpuPool;

pub(super) fn check(spec: &GpuPool, today: Option<Date>, findings: &mut Vec<Finding>) {
    for accept in &spec.accept {
        let id = &accept.finding;
        match RULES.iter().find(|rule| rule.id == id.value) {
            None => {
                let near = nearest(id, RULES.iter().map(|rule| rule.id));
                let mut finding =
                    Finding::new(&Rule::ACCEPT_REFUSED, format!("there is no finding `{}`", id.escape_debug()))
                        .at(&id.place);
                if let Some(near) = near {
                    finding = finding.hint(format!("did you mean `{near}`?"));
                }
                findings.push(finding);
            }
            Some(rule) if !rule.acceptable => findings.push(
                Finding::new(&Rule::ACCEPT_REFUSED, format!("{id} ({}) can never be accepted", rule.title))
                    .at(&id.place),
            ),
            Some(_) => {}
        }
        if let Some(today) = today.filter(|today| *today > accept.until.value) {
            findings.push(
                Finding::new(
                    &Rule::ACCEPT_EXPIRED,
                    format!("the acceptance of {id} ended on {}, and it is {today}", accept.until),
                )
                .at(&accept.until.place)
                .hint("look at the finding again; then remove the acceptance or give it a new date"),
            );
        }
    }
}
