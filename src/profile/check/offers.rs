//! Modes, vGPU types and their combinations, by the catalogue.

use std::collections::BTreeMap;

use crate::catalog::{Combination, Fit, FitMode, Model, Series, catalog, nearest_types};
use crate::model::{At, Finding, Mode, Rule};
use crate::profile::{GpuPool, Group, Offer};

/// Names that a hint lists.
const NAMES: usize = 3;

pub(super) fn check(spec: &GpuPool, model: &Model, findings: &mut Vec<Finding>) {
    for group in spec.gpus.iter() {
        let mode = Mode::from(&group.mode.value);
        let Some(fit_mode) = FitMode::of(&mode) else {
            passthrough(group, model, findings);
            continue;
        };
        // Nothing at all on the GPU: whether the model has the mode.
        let empty = catalog().fit(model, fit_mode, &Combination::new(), &[]);
        if empty.fits != Some(true) {
            let what = format!("{} on {}", mode, model.name);
            findings.push(verdict(&empty, &what).at(&group.mode.place));
            continue;
        }
        for offer in &group.offers {
            check_offer(spec, model, fit_mode, offer, findings);
        }
    }
}

fn passthrough(group: &Group, model: &Model, findings: &mut Vec<Finding>) {
    match model.can.passthrough {
        Some(true) => {}
        Some(false) => findings.push(
            Finding::new(&Rule::CAT_NO_FIT, format!("{} cannot be passed through", model.name)).at(&group.mode.place),
        ),
        None => findings.push(
            Finding::new(
                &Rule::CAT_UNKNOWN_FIT,
                format!("whether {} can be passed through is not known to the catalogue", model.name),
            )
            .at(&group.mode.place),
        ),
    }
}

fn check_offer(spec: &GpuPool, model: &Model, mode: FitMode, offer: &At<Offer>, findings: &mut Vec<Finding>) {
    let before = findings.len();
    for (name, count) in &offer.0 {
        if count.value == 0 {
            findings.push(Finding::new(&Rule::DOC_NUMBER, format!("0 of {} is no offer", name.value)).at(&count.place));
        }
        check_name(spec, model, mode, name, findings);
    }
    // A wrong name is the thing to mend first: whether the rest fits says nothing then.
    let names_are_good = findings[before..].iter().all(|finding| finding.id.0 == Rule::CAT_DESKTOP.id);
    if names_are_good {
        let fit = catalog().fit(model, mode, &combination(offer), &[]);
        if fit.fits != Some(true) || !fit.unverified.is_empty() {
            let what = format!("{} on one {} in {}", words(&combination(offer)), model.name, mode.words());
            findings.push(verdict(&fit, &what).at(&offer.place));
        }
    }
}

fn check_name(spec: &GpuPool, model: &Model, mode: FitMode, name: &At<String>, findings: &mut Vec<Finding>) {
    let near = nearest_types(catalog(), model, mode, name, NAMES);
    let hint = match near.as_slice() {
        [] => format!("the catalogue has no type of {} in {}", model.name, mode.words()),
        near => format!("types of {} in {}: {}", model.id, mode.words(), near.join(", ")),
    };
    let shown = name.escape_debug();
    let Some((owner, vgpu)) = catalog().vgpu_type(name) else {
        findings.push(
            Finding::new(
                &Rule::CAT_UNKNOWN_FIT,
                format!("`{shown}` is not in the catalogue: it counts only if the host itself lists it"),
            )
            .at(&name.place)
            .hint(hint),
        );
        return;
    };
    if owner.id != model.id {
        let message = format!("`{shown}` is a type of {} ({}), and the pool is of {}", owner.name, owner.id, model.id);
        findings.push(Finding::new(&Rule::CAT_OTHER_MODEL, message).at(&name.place).hint(hint));
        return;
    }
    if !mode.takes(vgpu) {
        let belongs = if FitMode::MigVgpu.takes(vgpu) { "MIG mode" } else { "time-sliced vGPU" };
        let message = format!("`{shown}` belongs to {belongs}, and the group is in {}", mode.words());
        findings.push(Finding::new(&Rule::CAT_WRONG_MODE, message).at(&name.place).hint(hint));
        return;
    }
    if matches!(vgpu.series, Series::A | Series::B) {
        let what = if vgpu.series == Series::A { "applications" } else { "desktops" };
        let mut finding = Finding::new(
            &Rule::CAT_DESKTOP,
            format!(
                "`{shown}` is of class {:?}, for virtual {what}: it needs a {} licence, not one for compute",
                vgpu.series,
                vgpu.series.licence(),
            ),
        )
        .at(&name.place);
        if let Some(driver) = &spec.host.driver {
            finding = finding.seen(format!("the pool's driver is {} {}", driver.component.value, driver.version.value));
        }
        let compute: Vec<&str> = model
            .types
            .iter()
            .filter(|other| mode.takes(other) && other.series == Series::C)
            .map(|other| other.name.as_str())
            .collect();
        if !compute.is_empty() {
            finding = finding.hint(format!("compute types of {}: {}", model.id, compute.join(", ")));
        }
        findings.push(finding);
    }
}

/// What the solver says: it does not fit, it cannot be said, or it rests on something unverified.
fn verdict(fit: &Fit, what: &str) -> Finding {
    let (rule, lead) = match fit.fits {
        Some(true) => (&Rule::CAT_UNVERIFIED, "fits, by facts that nobody verified"),
        Some(false) => (&Rule::CAT_NO_FIT, "does not fit"),
        None => (&Rule::CAT_UNKNOWN_FIT, "cannot be decided"),
    };
    let mut finding = Finding::new(rule, format!("{what}: {lead}: {}", fit.why));
    if let Some(first) = &fit.first_misfit {
        finding = finding.seen(format!("the first type that does not fit: {first}"));
    }
    if let Some(rule) = fit.rule {
        finding = finding.seen(format!("rule {rule} of the catalogue"));
    }
    for fact in &fit.unverified {
        finding = finding.seen(fact.clone());
    }
    if !fit.nearest.is_empty() {
        let nearest: Vec<String> = fit.nearest.iter().map(words).collect();
        finding = finding.hint(format!("these fit: {}", nearest.join("; ")));
    }
    finding
}

fn combination(offer: &Offer) -> Combination {
    let mut combination = BTreeMap::new();
    for (name, count) in &offer.0 {
        combination.insert(name.value.clone(), count.value);
    }
    combination
}

fn words(combination: &Combination) -> String {
    combination.iter().map(|(name, count)| format!("{count} x {name}")).collect::<Vec<_>>().join(" + ")
}
