//! How many hosts of a pool are out of service, or about to be, whatever the cause, just before a
//! host starts.

use super::{Held, marker};
use crate::model::{DesiredPool, HostRecord, HostRef, MarkerPhase, Observed, RunId};
use crate::plan::out_of_service;

/// Why a host that is in service still is about to leave it: whoever marked it works on it, or left it
/// half-way.
fn about_to_be(record: &HostRecord) -> Option<String> {
    let marker = marker::read(record.view.as_ref().ok()?)?;
    (marker.phase != MarkerPhase::Released).then(|| format!("run {} has marked it, {}", marker.run, marker.phase))
}

/// Holds the host if starting it would leave more hosts of its pool out of service than the pool
/// allows. A host that is out of service already does not add to them; nodes of its own that `run` has marked do not
/// make it so.
pub(super) fn allows(pool: &DesiredPool, host: &HostRef, run: &RunId, now: &Observed) -> Result<(), Held> {
    let mut down = Vec::new();
    let mut counted = 1;
    for pin in &pool.hosts {
        let why = match now.hosts.get(&pin.host.path) {
            Some(record) if pin.host.moref == host.moref => out_of_service(record, &pool.guests, Some(run)),
            Some(record) => out_of_service(record, &pool.guests, None).or_else(|| about_to_be(record)),
            // Nobody says that it is in service.
            None => Some("was not found".to_owned()),
        };
        match why {
            Some(_) if pin.host.moref == host.moref => counted = 0,
            Some(why) => down.push(format!("{}: {why}", pin.host.name)),
            None => {}
        }
    }
    let most = *pool.rollout.max_unavailable;
    if counted == 1 && down.len() + 1 > most as usize {
        return Err(Held::Budget { pool: pool.name.value.clone(), most, down });
    }
    Ok(())
}
