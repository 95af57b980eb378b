//! What the order of the hosts does to their VMs: each host was judged on the fleet as it is, and the
//! hosts before it leave it another one.

use std::collections::BTreeMap;

use super::after::{After, guest};
use super::around::Surroundings;
use super::room::{Guest, NoRoom, Room};
use super::{Bounds, Fate, HostPlan, Impact};
use crate::model::{Fact, Finding, HostName, HostView, MoRef, Rule, VmView};

/// Raises the bounds by the VMs that may have come from the hosts before, and says which hosts would
/// then find no room. `hosts`: in the order of their visits.
pub(super) fn forecast(hosts: &mut [HostPlan], around: &Surroundings) -> Vec<Finding> {
    let mut came: BTreeMap<String, u32> = BTreeMap::new();
    for host in hosts.iter_mut().filter(|host| closes(host)) {
        // DRS chooses, so all of them may have come to this one.
        let before = came.entry(host.host.cluster.clone()).or_default();
        let (_, moves) = Bounds::counts(&host.fates);
        host.bounds.moves = host.bounds.moves.saturating_add(*before);
        *before = before.saturating_add(moves);
    }
    let mut clusters: BTreeMap<&str, Vec<&HostPlan>> = BTreeMap::new();
    for host in hosts.iter().filter(|host| closes(host)) {
        clusters.entry(&host.host.cluster).or_default().push(host);
    }
    // Where no VM goes anywhere, none can come.
    clusters.retain(|_, hosts| hosts.iter().any(|host| Bounds::counts(&host.fates).1 > 0));
    clusters.into_iter().flat_map(|(cluster, hosts)| in_cluster(cluster, &hosts, around)).collect()
}

fn closes(host: &HostPlan) -> bool {
    host.impact >= Impact::Maintenance && !host.stays_in_maintenance
}

/// The hosts of one cluster, one after the other.
fn in_cluster(cluster: &str, hosts: &[&HostPlan], around: &Surroundings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut visitors: BTreeMap<HostName, Vec<Guest>> = BTreeMap::new();
    let mut room: Option<Room> = None;
    for host in hosts {
        let view = around.record(&host.host).and_then(|record| record.view.as_ref().ok());
        let Some(view) = view else { continue };
        let room = room.get_or_insert_with(|| Room::of(view, &around.whole(cluster)));
        let own = room.take(&host.host.name);
        let mut guests = visitors.remove(&host.host.name).unwrap_or_default();
        guests.extend(of_fate(host, view, |fate| matches!(fate, Fate::Moves { .. })));
        match room.place(&guests) {
            Ok(targets) => {
                for (guest, to) in guests.into_iter().zip(targets) {
                    visitors.entry(to).or_default().push(guest);
                }
                room.put(changed(host, view));
            }
            Err(NoRoom { guest, .. }) => {
                findings.push(no_room(host, &guests[guest]));
                own.into_iter().for_each(|own| room.put(own));
            }
        }
    }
    findings
}

/// The VMs of these fates, looking for a place.
fn of_fate(host: &HostPlan, view: &HostView, is: impl Fn(&Fate) -> bool) -> Vec<Guest> {
    let found = |vm: &MoRef| -> Option<&VmView> { view.vms.known()?.iter().find(|found| found.moref == *vm) };
    host.fates.iter().filter(|fate| is(&fate.fate)).filter_map(|fate| found(&fate.vm)).map(guest).collect()
}

/// The host after its change, with the VMs that start again.
fn changed(host: &HostPlan, view: &HostView) -> super::room::Berth {
    let memory = match view.memory_mib {
        Fact::Known(memory) => memory,
        Fact::Absent | Fact::Unknown { .. } => 0,
    };
    let mut berth = After::of(&host.target, view).berth();
    (berth.host, berth.free_mib) = (host.host.name.clone(), memory);
    let mut alone = Room::alone(berth.clone());
    let stays = of_fate(host, view, |fate| matches!(fate, Fate::Stops { .. }));
    // They had room when their fates were made; if that cannot be shown again, nothing else has.
    let placed = alone.place(&stays).is_ok();
    match alone.take(&host.host.name).filter(|_| placed) {
        Some(filled) => filled,
        None => super::room::Berth { free_mib: 0, ..berth },
    }
}

fn no_room(host: &HostPlan, guest: &Guest) -> Finding {
    let message = format!(
        "{}: no room may be left for it once the hosts before are changed; at its turn the host is then left as it is",
        guest.name
    );
    Finding::new(&Rule::VM_LATER, message)
        .in_pool(&host.pool)
        .on_host(&host.host.name)
        .hint("change fewer hosts in one plan, or free room; each host is judged again before its turn")
}
