//! Which GPUs each group takes, and fields that its mode cannot use.

use std::collections::BTreeMap;

use crate::model::{Finding, Place, Rule};
use crate::profile::{GpuPool, Group, ModeWish, Select};

pub(super) fn check(spec: &GpuPool, findings: &mut Vec<Finding>) {
    for group in spec.gpus.iter() {
        selectors(group, findings);
        without_effect(group, findings);
    }
    overlaps(spec, findings);
    let vgpu = spec.gpus.iter().any(|group| !matches!(group.mode.value, ModeWish::Passthrough { .. }));
    if let Some(placement) = spec.host.placement.as_ref().filter(|_| !vgpu && !spec.gpus.is_empty()) {
        findings.push(
            Finding::new(
                &Rule::DOC_NO_EFFECT,
                "`host.placement` does nothing: it spreads vGPUs, and every group is passthrough",
            )
            .at(&placement.place)
            .hint("remove it"),
        );
    }
}

/// A selector that selects nothing.
fn selectors(group: &Group, findings: &mut Vec<Finding>) {
    if let Some(Select::Count(count)) = group.select.as_ref().map(|select| &select.value)
        && count.value == 0
    {
        findings.push(
            Finding::new(&Rule::DOC_NUMBER, "`count` is 0: the group selects no GPU")
                .at(&count.place)
                .hint("at least 1, or remove the group"),
        );
    }
}

/// Fields that do nothing in passthrough.
fn without_effect(group: &Group, findings: &mut Vec<Finding>) {
    let ModeWish::Passthrough { .. } = group.mode.value else { return };
    if let Some(offer) = group.offers.first() {
        findings.push(
            Finding::new(
                &Rule::DOC_NO_EFFECT,
                "`offers` does nothing here: a GPU in passthrough is handed out whole, without vGPU types",
            )
            .at(&offer.place)
            .hint("remove `offers`, or choose `{vgpu: {size: same}}`, `{vgpu: {size: mixed}}` or `{migVgpu: {}}`"),
        );
    }
}

/// Groups that take one GPU twice, as far as that shows without the host.
fn overlaps(spec: &GpuPool, findings: &mut Vec<Finding>) {
    let several = spec.gpus.len() > 1;
    let mut addresses: BTreeMap<_, &Place> = BTreeMap::new();
    let mut nodes: BTreeMap<u32, &Place> = BTreeMap::new();
    for (index, group) in spec.gpus.iter().enumerate() {
        let other = spec.gpus.iter().enumerate().find(|(at, _)| *at != index).map(|(_, other)| &other.mode.place);
        match group.select.as_ref().map(|select| (&select.value, &select.place)) {
            None if several => findings.push(
                Finding::new(&Rule::DOC_GROUPS, "a group without `select` takes all GPUs, and there are other groups")
                    .at(&group.mode.place)
                    .hint("give each group a `select`: addresses, numaNode or count"),
            ),
            Some((Select::All, place)) if several => {
                let mut finding =
                    Finding::new(&Rule::DOC_GROUPS, "`select: all` takes the GPUs of the other groups too")
                        .at(place)
                        .hint("give it the GPUs that are meant: addresses, numaNode or count");
                finding.evidence.extend(other.map(|place| format!("another group: {place}")));
                findings.push(finding);
            }
            Some((Select::NumaNode(node), _)) => {
                if let Some(first) = nodes.insert(node.value, &node.place) {
                    findings.extend(both(&format!("NUMA node {node}"), first, &node.place));
                }
            }
            Some((Select::Addresses(list), _)) => {
                for address in list {
                    if let Some(first) = addresses.insert(address.value, &address.place) {
                        findings.extend(both(&format!("the GPU at {address}"), first, &address.place));
                    }
                }
            }
            None | Some((Select::All | Select::Count(_), _)) => {}
        }
    }
}

/// A finding at each of two lines.
fn both(what: &str, first: &Place, second: &Place) -> [Finding; 2] {
    let finding = |here, there| {
        Finding::new(&Rule::DOC_GROUPS, format!("{what} is selected twice"))
            .at(here)
            .seen(format!("also at {there}"))
            .hint("a GPU has one mode: leave it in one of the groups")
    };
    [finding(first, second), finding(second, first)]
}
