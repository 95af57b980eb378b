//! Guest clusters of a pool: listed once, with what their nodes offer, and selected only if listed.

use std::collections::BTreeMap;

use crate::document::nearest;
use crate::model::{Finding, Place, Rule};
use crate::profile::GpuPool;
use crate::profile::guests::{GuestWish, ValidateWish};
use crate::profile::jobs::most_at_once;

pub(super) fn check(spec: &GpuPool, findings: &mut Vec<Finding>) {
    twice(spec, findings);
    selectors(spec, findings);
    for guest in &spec.guests {
        let resource = &guest.expect.resource;
        if let Some(why) = no_extended_resource(resource) {
            let message = format!("`{}` is no extended resource: {why}", resource.escape_debug());
            findings.push(
                Finding::new(&Rule::DOC_RESOURCE, message)
                    .at(&resource.place)
                    .hint("write it as device plugins do: `nvidia.com/gpu`, or `nvidia.com/mig-1g.12gb`"),
            );
        }
        let per_node = &guest.expect.per_node;
        if per_node.value == 0 {
            findings.push(
                Finding::new(
                    &Rule::DOC_NUMBER,
                    "`perNode` is 0: a node without it could not be told from a broken one",
                )
                .at(&per_node.place)
                .hint("at least 1; leave out a guest cluster whose nodes have no GPU"),
            );
        }
    }
    for guest in &spec.guests {
        proves_part(guest, findings);
    }
    if let Some(wish) = spec.rollout.on_validation_failure.as_ref().filter(|_| spec.guests.is_empty()) {
        let message = "`rollout.onValidationFailure` does nothing: the pool has no `guests` whose nodes are validated";
        findings.push(Finding::new(&Rule::DOC_NO_EFFECT, message).at(&wish.place).hint("remove it"));
    }
}

/// Jobs that ask for fewer GPUs than a node has: the others may be broken. Several Jobs do not make up for it, since
/// each may be given the same ones.
fn proves_part(guest: &GuestWish, findings: &mut Vec<Finding>) {
    let per_node = guest.expect.per_node.value;
    let asks = |one: &ValidateWish| one.template.job.as_ref().and_then(|job| most_at_once(job, &guest.expect.resource));
    let asked: Option<Vec<u64>> = guest.validate.iter().map(asks).collect();
    let Some(most) = asked.and_then(|asked| asked.into_iter().max()).filter(|most| *most < per_node.into()) else {
        return;
    };
    for one in &guest.validate {
        let file = &one.template.file;
        let of = format!("{most} of {per_node} {}", guest.expect.resource.escape_debug());
        let message = format!("{of} is proven: the Job of `{}` is given no more", file.escape_debug());
        findings.push(
            Finding::new(&Rule::DOC_PROVES_PART, message)
                .at(&file.place)
                .hint("write the limit as `{{ perNode }}`: a GPU that no Job was given may be broken"),
        );
    }
}

fn twice(spec: &GpuPool, findings: &mut Vec<Finding>) {
    let mut first: BTreeMap<&str, &Place> = BTreeMap::new();
    for guest in &spec.guests {
        let here = &guest.cluster.place;
        if let Some(there) = first.insert(&guest.cluster.value, here) {
            for (here, there) in [(there, here), (here, there)] {
                let message = format!("the guest cluster `{}` is listed twice", guest.cluster.escape_debug());
                findings.push(Finding::new(&Rule::DOC_GUEST, message).at(here).seen(format!("the other: {there}")));
            }
        }
    }
}

/// A selector of nodes of a cluster that is not listed: nothing would say how they are drained.
fn selectors(spec: &GpuPool, findings: &mut Vec<Finding>) {
    let listed = || spec.guests.iter().map(|guest| guest.cluster.value.as_str());
    for cluster in spec.vms.guests() {
        if listed().any(|name| name == cluster.value) {
            continue;
        }
        let message =
            format!("`guest: {}` selects nodes of a cluster that `guests` does not list", cluster.escape_debug());
        let hint = match nearest(cluster, listed()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "list it under `guests`: without it nothing says how its nodes are drained".to_owned(),
        };
        findings.push(Finding::new(&Rule::DOC_GUEST, message).at(&cluster.place).hint(hint));
    }
}

/// Why a text is not the name of an extended resource (Kubernetes: a qualified name outside `kubernetes.io`).
fn no_extended_resource(name: &str) -> Option<&'static str> {
    let Some((domain, rest)) = name.split_once('/') else {
        return Some("it has no domain");
    };
    let sign = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let ends = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.ends_with(|c: char| c.is_ascii_alphanumeric())
    };
    let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    if domain == "kubernetes.io" || domain.ends_with(".kubernetes.io") {
        return Some("names of `kubernetes.io` are Kubernetes' own");
    }
    let is_domain = domain.len() <= 253 && ends(domain) && domain.chars().all(lower);
    let is_name = rest.len() <= 63 && ends(rest) && rest.chars().all(sign);
    (!is_domain || !is_name).then_some("it is not written as `domain/name`")
}
