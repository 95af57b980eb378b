//! All checks of one pool.

use jiff::civil::Date;

use super::{accept, groups, guests, numbers, offers};
use crate::catalog::catalog;
use crate::document::{Document, nearest};
use crate::model::{Finding, Rule};
use crate::profile::GpuPool;

/// What is wrong with one pool, in the order of its lines. `today` (UTC) is for the expiry of
/// acceptances; without it none has expired.
pub fn check_pool(pool: &Document<GpuPool>, today: Option<Date>) -> Vec<Finding> {
    let spec = &pool.spec;
    let mut findings = Vec::new();
    numbers::check(spec, &mut findings);
    groups::check(spec, &mut findings);
    guests::check(spec, &mut findings);
    match catalog().model(&spec.gpu_model) {
        Some(model) => offers::check(spec, model, &mut findings),
        None if spec.gpu_model.trim().is_empty() => {}
        None => findings.push(unknown_model(spec)),
    }
    accept::check(spec, today, &mut findings);
    for finding in &mut findings {
        finding.subject.pool = Some(pool.name.value.clone());
    }
    findings.sort_by(|a, b| a.place.cmp(&b.place));
    findings
}

fn unknown_model(spec: &GpuPool) -> Finding {
    let ids = || catalog().models().iter().map(|model| model.id.as_str());
    let named = catalog().models().iter().find(|model| model.name.eq_ignore_ascii_case(&spec.gpu_model));
    let hint = match named.map(|model| model.id.as_str()).or_else(|| nearest(&spec.gpu_model, ids())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`poolwright catalog` lists the models".to_owned(),
    };
    let message = format!("there is no GPU model `{}` in the catalogue", spec.gpu_model.escape_debug());
    Finding::new(&Rule::CAT_MODEL, message).at(&spec.gpu_model.place).hint(hint)
}
