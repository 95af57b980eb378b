//! Counts and limits.

use crate::model::{Finding, Rule, counted};
use crate::profile::{GpuPool, Mismatch, Select};

pub(super) fn check(spec: &GpuPool, findings: &mut Vec<Finding>) {
    if spec.gpu_count.value == 0 {
        findings.push(
            Finding::new(&Rule::DOC_NUMBER, "`gpuCount` is 0: a host of a GPU pool has at least one GPU")
                .at(&spec.gpu_count.place),
        );
    }
    if spec.rollout.max_unavailable.value == 0 {
        findings.push(
            Finding::new(&Rule::DOC_NUMBER, "`rollout.maxUnavailable` is 0: no host could ever be changed")
                .at(&spec.rollout.max_unavailable.place)
                .hint("at least 1; to keep hosts as they are, do not apply"),
        );
    }
    vms(spec, findings);
    more_than_there_are(spec, findings);
}

/// A wish that can never be used.
fn vms(spec: &GpuPool, findings: &mut Vec<Finding>) {
    if let Some(wish) = spec.vms.on_mismatch.as_ref().filter(|wish| wish.value == Mismatch::LeaveOff)
        && spec.vms.may_stop.is_empty()
    {
        let message = "`vms.onMismatch: leaveOff` does nothing: only VMs that `mayStop` selects are left off";
        findings.push(Finding::new(&Rule::DOC_NO_EFFECT, message).at(&wish.place));
    }
}

/// Groups that want more GPUs than a host has.
fn more_than_there_are(spec: &GpuPool, findings: &mut Vec<Finding>) {
    let count = spec.gpu_count.value;
    if count == 0 {
        return;
    }
    let mut wanted: u32 = 0;
    for select in spec.gpus.iter().filter_map(|group| group.select.as_ref()) {
        wanted = wanted.saturating_add(match &select.value {
            Select::Addresses(addresses) => u32::try_from(addresses.len()).unwrap_or(u32::MAX),
            Select::Count(count) => count.value,
            Select::All | Select::NumaNode(_) => 0,
        });
        if wanted > count {
            findings.push(
                Finding::new(
                    &Rule::DOC_NUMBER,
                    format!("the groups up to here select {}, and `gpuCount` is {count}", counted(wanted, "GPU")),
                )
                .at(&select.place),
            );
            return;
        }
    }
}
