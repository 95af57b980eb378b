//! Time-sliced, same size: one framebuffer size on a GPU, and a maximum of it.

use super::decide::{Case, count};
use super::query::Verdict;
use crate::catalog::{TypeKind, VgpuType};

/// Decides for `counts` of the types of the case.
pub(super) fn decide(case: &Case, counts: &[u32]) -> Verdict {
    if let Some((what, _)) = case.placed.first() {
        return Verdict::no(
            "MIG-7",
            format!("{what} runs as a GPU instance, so the GPU is in MIG mode, where no time-sliced type starts"),
        );
    }
    let running: Vec<_> = case.running.iter().filter(|(_, n)| *n > 0).copied().collect();
    match room(case, &running) {
        Verdict { fits: Some(true), .. } => {}
        verdict => {
            return Verdict::unknown(verdict.rule, format!("what is said to run is not possible: {}", verdict.why));
        }
    }
    let mut all = running;
    all.extend(case.types.iter().copied().zip(counts.iter().copied()).filter(|(_, n)| *n > 0));
    room(case, &all)
}

fn room(case: &Case, all: &[(&VgpuType, u32)]) -> Verdict {
    let Some((first, _)) = all.first() else {
        return Verdict::yes("nothing is asked for".to_owned());
    };
    if let Some((other, _)) = all.iter().find(|(vgpu, _)| vgpu.memory_gb != first.memory_gb) {
        return Verdict::no(
            "TS-1",
            format!(
                "{} has {} GB and {} has {} GB, and in same-size mode all vGPUs of a GPU have one size",
                first.name, first.memory_gb, other.name, other.memory_gb
            ),
        );
    }
    let total = all.iter().fold(0u32, |sum, (_, n)| sum.saturating_add(*n));
    let mut least: Option<(u32, &VgpuType)> = None;
    let mut without = None;
    for (vgpu, _) in all {
        match vgpu.kind {
            TypeKind::TimeSliced { same: Some(max), .. } => {
                if least.is_none_or(|(least, _)| max < least) {
                    least = Some((max, vgpu));
                }
            }
            _ => without = Some(vgpu),
        }
    }
    if let Some((max, vgpu)) = least
        && total > max
    {
        return Verdict::no("TS-1", format!("{} of at most {max} of {} on one GPU", count(total, "vGPU"), vgpu.name));
    }
    if let Some(vgpu) = without {
        // No maximum was published. Framebuffer alone gives an upper bound, never a proof.
        return match (vgpu.memory_mib, case.model.memory.mib) {
            (Some(fb), Some(mib)) if u64::from(total) * u64::from(fb) > u64::from(mib) => Verdict::no(
                "TS-1",
                format!("{} of {fb} MiB are more than the {mib} MiB of the GPU", count(total, "vGPU")),
            ),
            _ => Verdict::unknown("TS-1", format!("how many {} fit one GPU is not known", vgpu.name)),
        };
    }
    let max = least.map_or(0, |(max, _)| max);
    Verdict::yes(format!("{} of {} GB, at most {max} on one GPU", count(total, "vGPU"), first.memory_gb))
}
