//! What a pool asks for and only its hosts can tell: types that the catalogue does not know.
//!
//! What the catalogue alone can tell (a type of another mode or model, a combination that does not
//! fit) was said of the documents, before there was a plan.

use crate::catalog::{FitMode, Standing, catalog, nearest_types};
use crate::model::{DesiredPool, Finding, HostName, HostView, Rule};

/// How many names are offered instead of a wrong one: enough to see the one that was meant.
const NEAREST: usize = 3;

/// Findings on the pool itself, at its lines. `hosts`: those of the pool that could be read.
pub(super) fn judge(pool: &DesiredPool, hosts: &[(&HostName, &HostView)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for group in &pool.gpus {
        let Some(mode) = FitMode::of(&group.mode.value) else { continue };
        // Rule VM-6: they run on such a board, each for itself.
        if mode == FitMode::MigVgpu
            && let Some(model) = catalog().model(&pool.gpu_model.value).filter(|model| model.nvlink.kind == "nvswitch")
        {
            let message = format!("MIG-backed vGPUs of {} have no NVLink among each other", model.name);
            findings.push(Finding::new(&Rule::MIG_NVLINK, message).at(&group.mode.place));
        }
        for offer in &group.offers {
            let unknown = |name: &&String| catalog().standing(name, None) == Standing::Unread;
            findings.extend(
                offer.value.keys().filter(unknown).map(|name| listed(pool, mode, name, hosts).at(&offer.place)),
            );
        }
    }
    findings.into_iter().map(|finding| finding.in_pool(&pool.name.value)).collect()
}

/// Whether a host of the pool lists a type that the catalogue does not know: its own list wins.
fn listed(pool: &DesiredPool, mode: FitMode, name: &str, hosts: &[(&HostName, &HostView)]) -> Finding {
    let standing = |view: &HostView| catalog().standing(name, view.vgpu_types.known().map(Vec::as_slice));
    if let Some((host, _)) = hosts.iter().find(|(_, view)| standing(view) == Standing::HostOnly) {
        let message = format!("{name} is not in our catalogue, but {host} lists it: the host's own list wins");
        return Finding::new(&Rule::CAT_HOST_LISTS, message);
    }
    let message = format!("{name} is a type that neither the catalogue nor a host of the pool knows");
    let mut finding = Finding::new(&Rule::CAT_UNKNOWN_TYPE, message);
    for (host, _) in hosts.iter().filter(|(_, view)| view.vgpu_types.is_unknown()) {
        finding = finding.seen(format!("the list of {host} could not be read"));
    }
    let near = catalog()
        .model(&pool.gpu_model.value)
        .map(|model| nearest_types(catalog(), model, mode, name, NEAREST).join(", "));
    match near.filter(|near| !near.is_empty()) {
        Some(near) => finding.hint(format!("nearest: {near}; a host lists types only while its GPUs are in vGPU mode")),
        None => finding,
    }
}
