//! A plan that switches MIG, as its reviewer reads it.

use poolwright::model::{Desired, Mode, ShellWay, VgpuSize};
use poolwright::plan::plan;
use poolwright::report::{self, Again, Paper};

use crate::support::seen::{A100, Card, H100, Set, desired, fleet, host, passthrough, pool, vgpu};

fn told(card: Card, from: Set, to: Mode, way: ShellWay) -> String {
    let mut pool = pool(card, 2, to, &["esx-01"]);
    pool.rollout.max_reboots.value = 3;
    let wish = Desired { shell: way, ..desired(vec![pool]) };
    let seen = fleet(vec![("esx-01", host(card, &[(0x3b, from.clone()), (0xd8, from)]))]);
    let plan = plan(&wish, &seen, &[], "0.1.0", "2026-11-30T20:00:00Z".parse().unwrap());
    assert_eq!(plan.hosts.len(), 1, "{:#?}", plan.findings);
    let mut paper = Paper::new();
    report::plan(&mut paper, &plan, &Again::default());
    let text = paper.render(false);
    // The host and what is said of it: the rest is of every plan.
    let (_, rest) = text.split_once("esx-01\n").unwrap();
    let (host, rest) = rest.split_once("Out of service").unwrap();
    let findings = rest.split_once("Findings").map_or("no findings", |(_, findings)| findings.trim());
    format!("{}\n\n{findings}", host.trim_end())
}

#[test]
fn boards_that_are_switched_on_through_the_shell() {
    insta::assert_snapshot!(told(A100, Set::Passthrough(None), Mode::MigVgpu, ShellWay::Direct));
}

#[test]
fn boards_that_a_person_switches_off() {
    insta::assert_snapshot!(told(A100, Set::Mig, passthrough(Some("train")), ShellWay::Handoff));
}

#[test]
fn boards_whose_mig_may_hide() {
    insta::assert_snapshot!(told(A100, Set::Passthrough(None), vgpu(VgpuSize::Mixed), ShellWay::Direct));
}

#[test]
fn mig_of_the_driver_that_a_person_switches_on() {
    insta::assert_snapshot!(told(H100, Set::Mixed, Mode::MigVgpu, ShellWay::Handoff));
}
