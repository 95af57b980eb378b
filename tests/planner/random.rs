//! Random fleets: the planner is total, accounts for every host once, and what it plans converges.

use std::collections::BTreeSet;

use poolwright::model::{
    At, Connection, Desired, Fact, FoundInMaintenance, GpuSelect, HostView, Mode, PowerState, ShellWay, VgpuSize,
};
use poolwright::plan::{Memory, Plan, Reason, out_of_service};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::findings::make;
use super::twin::{Death, Readings, Twin, readings, run};
use crate::support::seen::{
    A100, Card, H100, Set, at, desired, fleet, group, host, known, passthrough, place, pool, vgpu, vm,
};

fn setting() -> impl Strategy<Value = Set> {
    select(vec![
        Set::Passthrough(None),
        Set::Passthrough(Some("train")),
        Set::Passthrough(Some("old")),
        Set::Same,
        Set::Mixed,
        Set::Mig,
        Set::Shared,
        Set::Basic,
    ])
}

fn mode() -> impl Strategy<Value = Mode> {
    select(vec![
        passthrough(None),
        passthrough(Some("train")),
        vgpu(VgpuSize::Same),
        vgpu(VgpuSize::Mixed),
        Mode::MigVgpu,
    ])
}

fn way() -> impl Strategy<Value = ShellWay> {
    select(vec![ShellWay::Direct, ShellWay::Handoff])
}

/// Something that happens to hosts.
fn mishap() -> impl Strategy<Value = fn(&mut HostView)> {
    let nothing: fn(&mut HostView) = |_| {};
    let mishaps: Vec<fn(&mut HostView)> = vec![
        nothing,
        nothing,
        nothing,
        |view| view.in_maintenance = Fact::Known(true),
        |view| view.connection = Fact::Known(Connection::NotResponding),
        |view| view.vms = Fact::Known(vec![vm("web-1", PowerState::On)]),
        |view| view.vms = Fact::unknown("no privilege"),
        |view| view.pci = Fact::Known(vec![]),
        |view| view.graphics_active = Fact::Absent,
        |view| view.passthru = Fact::Absent,
        |view| view.product = Fact::Absent,
        |view| view.marker = Fact::Known("not json".into()),
        |view| known(&mut view.passthru)[0].enabled ^= true,
        |view| known(&mut view.passthru)[0].active ^= true,
        |view| known(&mut view.graphics_active)[0].graphics_type = "someLaterType".into(),
    ];
    select(mishaps)
}

const NAMES: [&str; 5] = ["esx-01", "esx-02", "esx-03", "esx-04", "esx-05"];
const BUSES: [u8; 4] = [0x3b, 0x5e, 0x86, 0xd8];

fn a_plan() -> impl Strategy<Value = Plan> {
    let hosts = proptest::collection::vec((setting(), setting(), mishap()), 1..=5);
    (hosts, mode(), way(), 0u32..4, 0u32..3, any::<bool>()).prop_map(|(hosts, mode, way, most, reboots, change)| {
        let mut pool = pool(H100, 2, mode, &NAMES);
        pool.rollout.max_unavailable.value = most;
        pool.rollout.max_reboots.value = reboots;
        if change {
            pool.rollout.found_in_maintenance = FoundInMaintenance::Change;
        }
        let hosts = hosts.into_iter().zip(NAMES).map(|((one, two, mishap), name)| {
            let mut view = host(H100, &[(0x3b, one), (0xd8, two)]);
            mishap(&mut view);
            (name, view)
        });
        make(&Desired { shell: way, ..desired(vec![pool]) }, &fleet(hosts.collect()))
    })
}

proptest! {
    #[test]
    fn every_host_is_in_the_plan_or_left_with_a_reason(plan in a_plan()) {
        let acted: Vec<&str> = plan.order.iter().map(|host| host.as_str()).collect();
        let left: Vec<&str> = plan.not_acted.iter().map(|host| host.host.as_str()).collect();
        let all: BTreeSet<&str> = acted.iter().chain(&left).copied().collect();
        prop_assert_eq!(all.len(), acted.len() + left.len());
        prop_assert_eq!(all, NAMES.into_iter().collect());
        prop_assert_eq!(plan.content_id(), plan.id.clone());
        prop_assert_eq!(Plan::from_bytes(&plan.to_bytes()).unwrap(), plan.clone());
        for host in &plan.hosts {
            prop_assert!(host.reboots.expected <= host.reboots.most);
            prop_assert!(host.reboots.most <= plan.desired.pools[0].rollout.max_reboots.value.max(host.reboots.expected));
            prop_assert!(host.minutes.expected <= host.minutes.most);
        }
        for host in &plan.not_acted {
            let error = plan.findings.iter().any(|finding| {
                finding.severity == poolwright::model::Severity::Error
                    && finding.subject.host.as_ref().is_none_or(|name| *name == host.host)
            });
            prop_assert!(error || host.reason == Reason::Converged, "{:?}", host);
        }
        let capacity = &plan.capacity.pools[0];
        prop_assert!(capacity.worst <= capacity.now && capacity.now <= capacity.gpus);
    }

    #[test]
    fn random_hosts_converge_after_random_deaths(
        ampere: bool,
        starts in proptest::collection::vec(setting(), 1..=4),
        wanted in proptest::collection::vec(mode(), 4),
        chosen in 1usize..=4,
        reading in any::<Index>(),
        death in 1usize..12,
        stays: bool,
        pending: bool,
        way in way(),
        left in proptest::collection::vec(any::<bool>(), 4),
    ) {
        let card: Card = if ampere { A100 } else { H100 };
        let gpus: Vec<(u8, Set)> = BUSES.into_iter().zip(starts).collect();
        // Where a device entry needs the host default, the hosts of the builder could not be as they are.
        let consistent: Vec<Readings> = readings().into_iter().filter(|readings| !readings.default_needed).collect();
        let readings = *reading.get(&consistent);
        let chosen = chosen.min(gpus.len());
        let mut view = host(card, &gpus);
        view.uuid = Fact::Known("uuid-esx-01".into());
        if pending {
            known(&mut view.passthru)[0].enabled ^= true;
        }
        if stays {
            view.in_maintenance = Fact::Known(true);
            view.parity.ha = Fact::Absent;
        }
        let mut pool = pool(card, gpus.len() as u32, passthrough(None), &["esx-01"]);
        pool.rollout.found_in_maintenance = FoundInMaintenance::Change;
        pool.rollout.max_reboots.value = 4;
        let select = |bus| GpuSelect::Addresses(vec![At::new(at(bus), place(11))]);
        pool.gpus =
            gpus.iter().zip(wanted).take(chosen).map(|((bus, _), mode)| group(10, select(*bus), mode)).collect();
        let wish = Desired { shell: way, ..desired(vec![pool]) };
        let mut twin = Twin::new(view.clone(), readings);
        // A guest may have left MIG on of a board that is passed through, of which nothing shows.
        for ((bus, set), left) in gpus.iter().zip(left) {
            if ampere && left && matches!(set, Set::Passthrough(_)) {
                twin.mig.insert(at(*bus), (true, true));
            }
        }
        let plan = make(&wish, &fleet(vec![("esx-01", twin.view.clone())]));
        let Some(host) = plan.hosts.first() else {
            // The good reasons here: the reboot would change a GPU outside the pool.
            let spared = plan.findings.iter().any(|finding| ["PW-GPU-14", "PW-MIG-02"].contains(&finding.id.0.as_str()));
            prop_assert!(plan.not_acted[0].reason == Reason::Converged || spared, "{:?}", plan.findings);
            return Ok(());
        };
        let mut memory = Memory::default();
        for death in [Death::After(death), Death::Never] {
            let end = run(&mut twin, host, &mut memory, death);
            prop_assert!(end.is_ok(), "{:?} {:?} {:#?}", end, readings, twin.log);
        }
        prop_assert!(twin.reboots <= host.reboots.most, "{} {:#?}", twin.reboots, twin.log);
        prop_assert_eq!(&twin.view.in_maintenance, &view.in_maintenance);
        prop_assert!(twin.monitor, "{:#?}", twin.log);
        let again = make(&wish, &fleet(vec![("esx-01", twin.view.clone())]));
        prop_assert!(again.hosts.is_empty() && again.not_acted[0].reason == Reason::Converged, "{:?} {:#?}", again.hosts, twin.log);
        prop_assert_eq!(out_of_service(&crate::support::seen::record("esx-01", twin.view), &[], None).is_some(), stays);
    }
}
