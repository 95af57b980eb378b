//! Order, budget, capacity and time of a whole fleet.

use poolwright::model::{At, Fact, FoundInMaintenance, HostView, VgpuSize};
use poolwright::plan::{Impact, Reason, out_of_service};

use super::findings::make;
use crate::support::seen::{H100, Set, desired, fleet, host, passthrough, place, pool, record, vgpu};

fn one(set: Set) -> HostView {
    host(H100, &[(0x3b, set)])
}

#[test]
fn the_smallest_harm_comes_first_and_names_decide_among_equals() {
    let mut pool = pool(H100, 1, vgpu(VgpuSize::Mixed), &["esx-01", "esx-02", "esx-03", "esx-04", "esx-05"]);
    pool.host.placement = Some(At::new(poolwright::model::AssignmentPolicy::Consolidation, place(16)));
    pool.rollout.found_in_maintenance = FoundInMaintenance::Change;
    pool.rollout.max_unavailable.value = 2;
    let closed = HostView { in_maintenance: Fact::Known(true), ..one(Set::Passthrough(None)) };
    let seen = fleet(vec![
        ("esx-01", one(Set::Passthrough(None))),
        ("esx-02", one(Set::Same)),
        ("esx-03", one(Set::Mixed)),
        ("esx-04", closed),
        ("esx-05", one(Set::Passthrough(None))),
    ]);
    let plan = make(&desired(vec![pool]), &seen);
    let order: Vec<&str> = plan.order.iter().map(|name| name.as_str()).collect();
    assert_eq!(order, ["esx-04", "esx-03", "esx-02", "esx-01", "esx-05"]);
    let impacts: Vec<Impact> = plan.hosts.iter().map(|host| host.impact).collect();
    assert_eq!(impacts, [Impact::Reboot, Impact::None, Impact::Maintenance, Impact::Reboot, Impact::Reboot]);
    assert_eq!(plan.order, plan.hosts.iter().map(|host| host.host.name.clone()).collect::<Vec<_>>());
}

#[test]
fn capacity_and_gpu_hours_follow_from_the_hosts() {
    let view = || host(H100, &[(0x3b, Set::Passthrough(None)), (0xd8, Set::Passthrough(None))]);
    let pool = pool(H100, 2, vgpu(VgpuSize::Same), &["esx-01", "esx-02", "esx-03"]);
    let done = host(H100, &[(0x3b, Set::Same), (0xd8, Set::Same)]);
    let plan = make(&desired(vec![pool]), &fleet(vec![("esx-01", view()), ("esx-02", view()), ("esx-03", done)]));
    let capacity = &plan.capacity.pools[0];
    assert_eq!((capacity.gpus, capacity.now, capacity.worst), (6, 6, 4));
    let minutes = &plan.hosts[0].minutes;
    // close 1, writes 1 + 1, reboot 12 and 1 stable, write 1, verify 1, open 1
    assert_eq!(minutes.expected, 19);
    assert!(minutes.most > minutes.expected && minutes.basis.contains("reboot 13 min (at most 46)"), "{minutes:?}");
    assert_eq!(plan.capacity.gpu_hours_tenths, 2 * (2 * 19 * 10_u64).div_ceil(60));
    assert!(plan.capacity.gpu_hours_most_tenths > plan.capacity.gpu_hours_tenths);
}

#[test]
fn max_unavailable_counts_whatever_the_cause() {
    let pool = |most| {
        let mut pool = pool(H100, 1, vgpu(VgpuSize::Same), &["esx-01", "esx-02"]);
        pool.rollout.max_unavailable.value = most;
        pool
    };
    let causes: Vec<fn(&mut HostView)> = vec![
        |view| view.in_maintenance = Fact::Known(true),
        |view| view.connection = Fact::unknown("no answer"),
        |view| view.connection = Fact::Known("notResponding".into()),
        |view| view.power = Fact::Known("standBy".into()),
        |view| view.in_maintenance = Fact::Absent,
        |view| view.in_maintenance = Fact::unknown("no answer"),
    ];
    for cause in causes {
        let mut down = one(Set::Same);
        cause(&mut down);
        assert!(out_of_service(&record("esx-02", down.clone()), &[], None).is_some());
        let seen = fleet(vec![("esx-01", one(Set::Passthrough(None))), ("esx-02", down)]);
        let plan = make(&desired(vec![pool(1)]), &seen);
        let first = plan.not_acted.iter().find(|host| host.host.as_str() == "esx-01").unwrap();
        assert_eq!((plan.order.len(), first.reason), (0, Reason::Budget));
        assert_eq!(make(&desired(vec![pool(2)]), &seen).order.len(), 1);
    }
    assert_eq!(out_of_service(&record("esx-01", one(Set::Same)), &[], None), None);
}

#[test]
fn b18_a_host_that_is_gone_is_named_and_the_others_go_on() {
    let mut pool = pool(H100, 1, passthrough(None), &["esx-01", "esx-02"]);
    pool.rollout.max_unavailable.value = 2;
    let plan = make(&desired(vec![pool]), &fleet(vec![("esx-02", one(Set::Same)), ("esx-99", one(Set::Same))]));
    assert_eq!(plan.order, ["esx-02".into()], "the unknown one is not touched");
    assert_eq!((plan.not_acted[0].host.as_str(), plan.not_acted[0].reason), ("esx-01", Reason::Unknown));
}

#[test]
fn the_same_inputs_give_the_same_bytes_in_any_order_of_reading() {
    let pool = pool(H100, 1, vgpu(VgpuSize::Mixed), &["esx-01", "esx-02", "esx-03"]);
    let hosts = || {
        let mut shuffled = host(H100, &[(0x3b, Set::Same)]);
        if let Fact::Known(devices) = &mut shuffled.pci {
            devices.reverse();
        }
        vec![("esx-01", shuffled), ("esx-02", one(Set::Same)), ("esx-03", one(Set::Passthrough(None)))]
    };
    let mut reversed = hosts();
    reversed.reverse();
    let (one, two) =
        (make(&desired(vec![pool.clone()]), &fleet(hosts())), make(&desired(vec![pool]), &fleet(reversed)));
    assert_eq!(one.to_bytes(), two.to_bytes());
    assert_eq!(one.id, two.id);
}

#[test]
fn a_finding_for_each_host_of_a_large_fleet_stays_short() {
    let names: Vec<String> = (0..60).map(|number| format!("esx-{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let closed = HostView { in_maintenance: Fact::Known(true), ..one(Set::Same) };
    let view = |index: usize| if index < 30 { closed.clone() } else { one(Set::Passthrough(None)) };
    let seen = fleet(names.iter().enumerate().map(|(index, name)| (*name, view(index))).collect());
    let plan = make(&desired(vec![pool(H100, 1, vgpu(VgpuSize::Same), &names)]), &seen);
    let blocked: Vec<_> = plan.findings.iter().filter(|finding| finding.id.0 == "PW-POOL-02").collect();
    assert_eq!(blocked.len(), 30);
    assert!(blocked.iter().all(|finding| finding.evidence.len() == 11 && finding.evidence[10] == "and 20 more"));
}
