//! The approved plan, from the wish, what was seen and the time.

use jiff::Timestamp;

use super::{Capacity, Input, Limits, Plan};
use crate::model::{Desired, Observed, PlanId};

/// Makes the plan. Total: what cannot be done is a finding and a host that is not acted on.
pub fn plan(desired: &Desired, observed: &Observed, inputs: &[Input], tool: &str, now: Timestamp) -> Plan {
    Plan {
        schema: Plan::SCHEMA.to_owned(),
        id: PlanId(String::new()),
        tool: tool.to_owned(),
        catalog: String::new(),
        now,
        expires: now,
        inputs: inputs.to_vec(),
        site: observed.site.clone(),
        desired: desired.clone(),
        limits: Limits { hosts_at_once: 1, halt_after_failed_hosts: 1 },
        order: Vec::new(),
        hosts: Vec::new(),
        capacity: Capacity { gpu_hours_tenths: 0, gpu_hours_most_tenths: 0, pools: Vec::new() },
        not_acted: Vec::new(),
        findings: Vec::new(),
    }
    .sealed()
}
