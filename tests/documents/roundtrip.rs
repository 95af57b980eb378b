//! Profiles written as YAML and read again are equal.

use jiff::civil::Date;
use poolwright::document::{Kind, to_yaml};
use poolwright::inventory::Wait;
use poolwright::model::{At, HostName, PciAddress, Place};
use poolwright::profile::{
    AcceptRule, DrainWish, Driver, ExpectWish, GpuPool, Group, GuestWish, HostSelector, HostWish, Mismatch, ModeWish,
    Moves, Offer, OnMaintenance, Placement, Rollout, Select, Size, TemplateWish, Unvalidated, ValidateWish, VmWish,
    Vms,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn at<T>(value: T) -> At<T> {
    At::new(value, Place { file: "-".into(), line: 0, column: 0 })
}

/// Text that a scalar may hold, with what YAML could take for something else.
fn text() -> impl Strategy<Value = At<String>> {
    prop_oneof![
        3 => "[^\\p{C}]{1,16}",
        1 => prop::sample::select(vec![
            "no", "on", "null", "~", "1e30", "010", "0x1F", ".inf", "2026-01-01", "- a", "a: b", "a #b", "'", "\"", "*a", "&a",
            "!x", "%x", "@x", "`x", "|", ">", "{}", "[]", "?", ":", "---", "...", "=", "<<", "東京", " a", "a ", "true",
        ]).prop_map(str::to_owned),
    ]
    .prop_filter("what can do nothing is refused", |text| !text.trim().is_empty())
    .prop_map(at)
}

fn pattern() -> impl Strategy<Value = At<poolwright::model::HostPattern>> {
    "[a-z東ü'#]{1,6}(-\\*|\\?|\\[0[1-4]-1[0-2]\\])?".prop_map(|text| at(text.parse().unwrap()))
}

fn address() -> impl Strategy<Value = At<PciAddress>> {
    (any::<u16>(), any::<u8>(), 0..32u8, 0..8u8)
        .prop_map(|(segment, bus, device, function)| at(PciAddress { segment, bus, device, function }))
}

fn select() -> impl Strategy<Value = At<Select>> {
    prop_oneof![
        Just(Select::All),
        vec(address(), 1..3).prop_map(Select::Addresses),
        any::<u32>().prop_map(|node| Select::NumaNode(at(node))),
        any::<u32>().prop_map(|count| Select::Count(at(count))),
    ]
    .prop_map(at)
}

fn mode() -> impl Strategy<Value = At<ModeWish>> {
    prop_oneof![
        option::of(text()).prop_map(|label| ModeWish::Passthrough { label }),
        Just(ModeWish::Vgpu { size: Size::Same }),
        Just(ModeWish::Vgpu { size: Size::Mixed }),
        Just(ModeWish::MigVgpu {}),
    ]
    .prop_map(at)
}

fn offer() -> impl Strategy<Value = At<Offer>> {
    prop::collection::btree_map("[a-z0-9_-]{1,20}", any::<u32>(), 1..3)
        .prop_map(|types| at(Offer(types.into_iter().map(|(name, count)| (at(name), at(count))).collect())))
}

fn group() -> impl Strategy<Value = Group> {
    (option::of(select()), mode(), vec(offer(), 0..3)).prop_map(|(select, mode, offers)| Group { select, mode, offers })
}

fn accept() -> impl Strategy<Value = AcceptRule> {
    (text(), vec(text(), 0..3), text(), 1..=28i8).prop_map(|(finding, hosts, reason, day)| AcceptRule {
        finding,
        hosts: hosts.into_iter().map(|host| host.map(HostName)).collect(),
        reason,
        until: at(Date::constant(2026, 2, day)),
    })
}

fn selector() -> impl Strategy<Value = At<Vms>> {
    prop_oneof![
        "/[a-z*?東 ]{1,6}(/[a-z]{1,3})?".prop_map(|text| Vms::Folder(at(text.parse().unwrap()))),
        text().prop_map(|text| Vms::Name(text.map(|text| text.parse().unwrap()))),
        text().prop_map(Vms::Guest),
    ]
    .prop_map(at)
}

fn vms() -> impl Strategy<Value = VmWish> {
    let moves =
        prop_oneof![Just(Moves::All), Just(Moves::None), vec(selector(), 1..3).prop_map(|vms| Moves::Only(at(vms))),];
    let mismatch = option::of(prop::sample::select(vec![Mismatch::Refuse, Mismatch::LeaveOff]).prop_map(at));
    (moves, vec(selector(), 0..3), mismatch).prop_map(|(may_move, may_stop, on_mismatch)| VmWish {
        may_move,
        may_stop,
        on_mismatch,
    })
}

fn guests() -> impl Strategy<Value = Vec<GuestWish>> {
    let template = (text(), prop::collection::btree_map("[a-z]{1,5}", text(), 0..3))
        .prop_map(|(file, set)| ValidateWish { template: TemplateWish { file, set, job: None } });
    let guest = (text(), text(), any::<u32>(), 1..=86_400u32, vec(template, 0..3));
    let guest = guest.prop_map(|(cluster, resource, per_node, timeout, validate)| GuestWish {
        cluster,
        expect: ExpectWish { resource, per_node: at(per_node) },
        drain: DrainWish { timeout: Wait(timeout) },
        validate,
    });
    vec(guest, 0..3)
}

fn any_pool() -> impl Strategy<Value = GpuPool> {
    let hosts = (text(), text(), vec(pattern(), 1..3), vec(pattern(), 0..2))
        .prop_map(|(site, cluster, names, except)| HostSelector { site, cluster, names: at(names), except });
    let placement =
        option::of(prop::sample::select(vec![Placement::Performance, Placement::Consolidation]).prop_map(at));
    let driver = option::of((text(), text()).prop_map(|(component, version)| Driver { component, version }));
    let wish = (placement, driver).prop_map(|(placement, driver)| HostWish { placement, driver });
    let unvalidated =
        option::of(prop::sample::select(vec![Unvalidated::CloseHost, Unvalidated::KeepOpen]).prop_map(at));
    let rollout = (any::<u32>(), any::<u32>(), any::<bool>(), unvalidated);
    let rollout = rollout.prop_map(|(unavailable, reboots, change, on_validation_failure)| Rollout {
        on_validation_failure,
        max_unavailable: at(unavailable),
        max_reboots: at(reboots),
        found_in_maintenance: if change { OnMaintenance::Change } else { OnMaintenance::Hold },
    });
    (hosts, text(), any::<u32>(), wish, vec(group(), 1..3), vms(), guests(), rollout, vec(accept(), 0..2)).prop_map(
        |(hosts, gpu_model, count, host, gpus, vms, guests, rollout, accept)| GpuPool {
            hosts,
            gpu_model,
            gpu_count: at(count),
            host,
            gpus: at(gpus),
            vms,
            guests,
            rollout,
            accept,
        },
    )
}

/// The values without their places.
fn plain(pool: &GpuPool) -> String {
    let mut text = format!("{pool:?}");
    while let Some(start) = text.find(", place: Place {") {
        let end = start + text[start..].find('}').unwrap();
        text.replace_range(start..=end, "");
    }
    text
}

proptest! {
    #[test]
    fn a_pool_written_and_read_again_is_equal(pool in any_pool()) {
        let text = to_yaml(Kind::GpuPool, "a", &pool).unwrap();
        let (documents, problems) = poolwright::document::read("p.yaml", text.as_bytes());
        prop_assert!(problems.is_empty(), "{problems:?}\n{text}");
        let again = documents[0].parse::<GpuPool>();
        let again = again.map_err(|problems| TestCaseError::fail(format!("{problems:?}\n{text}")))?;
        prop_assert_eq!(plain(&again.spec), plain(&pool), "{}", text);
    }
}
