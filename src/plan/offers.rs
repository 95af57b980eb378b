//! What a pool asks for, against the catalogue: modes that the model has, combinations that fit.

use crate::catalog::{Combination, FitMode, Model, catalog, nearest_types, same_type};
use crate::model::{At, DesiredPool, Finding, GpuGroup, HostName, HostView, Mode, Rule, VgpuSize};

/// Findings on the pool itself, at its lines. `hosts`: those of the pool that could be read.
pub(super) fn judge(pool: &DesiredPool, hosts: &[(&HostName, &HostView)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |finding: Finding| findings.push(finding.in_pool(&pool.name.value));
    let Some(model) = catalog().model(&pool.gpu_model.value) else {
        let message = format!("`{}` is no GPU model of the catalogue", pool.gpu_model);
        add(Finding::new(&Rule::CAT_MODEL, message).at(&pool.gpu_model.place).hint("poolwright catalog lists them"));
        return findings;
    };
    for group in &pool.gpus {
        if let Some(finding) = mode(model, group) {
            add(finding);
        }
        let Some(fit_mode) = FitMode::of(&group.mode.value) else { continue };
        for offer in &group.offers {
            for finding in combination(model, fit_mode, offer, hosts) {
                add(finding);
            }
        }
    }
    findings
}

/// Whether the model has the mode.
fn mode(model: &Model, group: &GpuGroup) -> Option<Finding> {
    let can = match &group.mode.value {
        Mode::Passthrough { .. } => model.can.passthrough,
        Mode::Vgpu { size: VgpuSize::Same } => model.can.vgpu,
        Mode::Vgpu { size: VgpuSize::Mixed } => match (model.can.vgpu, model.can.mixed_size) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), mixed) => mixed,
            (None, _) => None,
        },
        Mode::MigVgpu => {
            let message = "pools of mode migVgpu are not rolled out yet";
            return Some(Finding::new(&Rule::POOL_MIG, message).at(&group.mode.place));
        }
    };
    let (rule, word) = match can {
        Some(true) => return None,
        Some(false) => (&Rule::CAT_GATE, "does not have"),
        None => (&Rule::CAT_GATE_UNKNOWN, "is not known to have"),
    };
    let message = format!("{} {word} the mode {}", model.name, group.mode);
    Some(Finding::new(rule, message).at(&group.mode.place))
}

/// Whether one GPU can start the combination.
fn combination(
    model: &Model,
    mode: FitMode,
    offer: &At<Combination>,
    hosts: &[(&HostName, &HostView)],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut unknown = false;
    for name in offer.value.keys() {
        match catalog().vgpu_type(name) {
            Some((_, vgpu)) if !mode.takes(vgpu) => {
                let near = nearest_types(catalog(), model, mode, name, NEAREST);
                let message = format!("{name} is no type of {} mode", mode.words());
                findings.push(
                    Finding::new(&Rule::CAT_WRONG_MODE, message)
                        .at(&offer.place)
                        .hint(format!("nearest types of the mode: {}", near.join(", "))),
                );
            }
            Some(_) => {}
            None => {
                unknown = true;
                findings.push(unknown_type(model, mode, offer, name, hosts));
            }
        }
    }
    // A type of another mode, or one whose size nobody knows, leaves nothing to prove.
    if unknown || !findings.is_empty() {
        return findings;
    }
    let fit = catalog().fit(model, mode, &offer.value, &[]);
    let (rule, hint) = match fit.fits {
        Some(true) => return findings,
        Some(false) => (&Rule::CAT_NO_FIT, nearest(&fit.nearest)),
        None => (&Rule::CAT_UNKNOWN_FIT, None),
    };
    let mut finding = Finding::new(rule, fit.why).at(&offer.place);
    finding.evidence = fit.unverified;
    finding.hint = hint;
    findings.push(finding);
    findings
}

/// A type that the catalogue does not know: the hosts' own lists win over our table.
fn unknown_type(
    model: &Model,
    mode: FitMode,
    offer: &At<Combination>,
    name: &str,
    hosts: &[(&HostName, &HostView)],
) -> Finding {
    let lists = |view: &HostView| {
        view.vgpu_types.known().is_some_and(|types| types.iter().any(|listed| same_type(listed, name)))
    };
    match hosts.iter().find(|(_, view)| lists(view)) {
        Some((host, _)) => {
            let message = format!("{name} is not in our catalogue, but {host} lists it: the host's own list wins");
            Finding::new(&Rule::CAT_HOST_LISTS, message).at(&offer.place)
        }
        None => {
            let unread: Vec<String> = hosts
                .iter()
                .filter(|(_, view)| view.vgpu_types.is_unknown())
                .map(|(host, _)| format!("the list of {host} could not be read"))
                .collect();
            let near = nearest_types(catalog(), model, mode, name, NEAREST);
            let message = format!("{name} is a type that neither the catalogue nor a host of the pool knows");
            let mut finding = Finding::new(&Rule::CAT_UNKNOWN_TYPE, message).at(&offer.place);
            finding.evidence = unread;
            finding.hint(format!("nearest: {}", near.join(", ")))
        }
    }
}

/// How many names or combinations are offered instead: enough to see the one that was meant.
const NEAREST: usize = 3;

fn nearest(combinations: &[Combination]) -> Option<String> {
    let text = |combination: &Combination| {
        combination.iter().map(|(name, count)| format!("{name}: {count}")).collect::<Vec<_>>().join(", ")
    };
    let list: Vec<String> = combinations.iter().take(NEAREST).map(|near| format!("{{{}}}", text(near))).collect();
    (!list.is_empty()).then(|| format!("nearest that fit: {}", list.join(" or ")))
}
