//! Which hosts are out of service.

use super::blocks::not_connected;
use crate::model::{Fact, HostRecord};

/// Why a host is out of service, whatever the cause; none if it is in service. What cannot be read
/// counts as out of service.
pub fn out_of_service(record: &HostRecord) -> Option<String> {
    let view = match &record.view {
        Ok(view) => view,
        Err(fault) => return Some(format!("it could not be read: {}", fault.message)),
    };
    if let Some(why) = not_connected(view) {
        return Some(why);
    }
    match &view.in_maintenance {
        Fact::Known(false) => None,
        Fact::Known(true) => Some("it is in maintenance mode".to_owned()),
        Fact::Absent => Some("vCenter does not say whether it is in maintenance mode".to_owned()),
        Fact::Unknown { why } => Some(format!("whether it is in maintenance mode could not be read: {why}")),
    }
}
