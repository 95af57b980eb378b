//! Which hosts are out of service.

use super::blocks::not_connected;
use crate::model::{Fact, GuestRules, HostRecord, HostView, PowerState};

/// Why a host is out of service, whatever the cause; none if it is in service. What cannot be read
/// counts as out of service. `guests`: the guest clusters of its pool, whose nodes count with it.
pub fn out_of_service(record: &HostRecord, guests: &[GuestRules]) -> Option<String> {
    let view = match &record.view {
        Ok(view) => view,
        Err(fault) => return Some(format!("it could not be read: {}", fault.message)),
    };
    if let Some(why) = not_connected(view) {
        return Some(why);
    }
    match &view.in_maintenance {
        Fact::Known(false) => nodes_down(view, guests),
        Fact::Known(true) => Some("it is in maintenance mode".to_owned()),
        Fact::Absent => Some("vCenter does not say whether it is in maintenance mode".to_owned()),
        Fact::Unknown { why } => Some(format!("whether it is in maintenance mode could not be read: {why}")),
    }
}

/// Nodes that give no service, though their VMs run. One that was left off on purpose is off with its VM.
fn nodes_down(view: &HostView, guests: &[GuestRules]) -> Option<String> {
    let counts = |cluster: &str| guests.iter().any(|rules| rules.cluster.value == cluster);
    let running = view.vms.known().into_iter().flatten().filter(|vm| vm.power == Fact::Known(PowerState::On));
    let down: Vec<String> = running
        .filter_map(|vm| vm.node.known())
        .filter(|node| node.ready != Fact::Known(true) && counts(&node.node.cluster))
        .map(|node| node.node.to_string())
        .collect();
    (!down.is_empty()).then(|| format!("not Ready: {}", down.join(", ")))
}
