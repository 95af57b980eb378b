//! Each transition between the modes, on two generations of GPUs, of a host with VMs of every fate: at
//! 8.0.3 under settings of the readings in which every pair of values occurs, at 9.0 once.

use poolwright::model::HostName;
use poolwright::plan::{Plan, Reason};
use poolwright::rollout::{Exit, HostPhase};

use super::site::{Becomes, Guest, MIG, Site, TRANSITIONS, Way};
use crate::support::lab::USER;
use crate::support::readings;
use crate::support::{look, nodes, person};

/// A VM as every transition has it.
fn vm(name: &str, becomes: Becomes, spec: impl Into<String>) -> Guest {
    Guest { name: name.to_owned(), spec: spec.into(), pinned: false, node: None, becomes }
}

/// Types of vGPU of a model: half of it, a quarter, one of which fewer fit beside others of another size, and
/// a small one.
fn types(model: &str) -> [String; 4] {
    let (stem, sizes) = match model {
        "h100-nvl-94" => ("nvidia_h100l", [47, 23, 15, 11]),
        "a100-pcie-80" => ("grid_a100d", [40, 20, 16, 10]),
        other => panic!("{other}"),
    };
    sizes.map(|size| format!("{stem}-{size}c"))
}

/// Types of MIG-backed vGPU of a model: half of its memory, and the smallest.
fn mig_types(model: &str) -> [&'static str; 2] {
    match model {
        "h100-nvl-94" => ["nvidia_h100l-3-47c", "nvidia_h100l-1-12c"],
        "a100-pcie-80" => ["grid_a100d-3-40c", "grid_a100d-1-10c"],
        other => panic!("{other}"),
    }
}

/// Reboots that a transition takes where nothing is rebound without one: MIG of a board waits for one, and is
/// switched while the driver owns the GPU.
fn reboots(model: &str, transition: (usize, usize)) -> u32 {
    match (model, transition) {
        ("a100-pcie-80", (0, MIG) | (MIG, 0)) => 2,
        ("a100-pcie-80", (_, MIG) | (MIG, _)) => 1,
        (_, (0, _) | (_, 0)) => 1,
        _ => 0,
    }
}

/// A VM with a vGPU that does not move.
fn stays(name: &str, becomes: Becomes, vgpu: &str) -> Guest {
    vm(name, becomes, format!("migrate: false, devices: [{{vgpu: {vgpu}}}]"))
}

/// A VM with a GPU that is passed through.
fn passed(name: &str, becomes: Becomes) -> Guest {
    let extra = "extra: {pciPassthru.use64bitMMIO: \"TRUE\", pciPassthru.64bitMMIOSizeGB: \"512\"}";
    vm(name, becomes, format!("devices: [{{dynamicDirectPath: train}}], {extra}"))
}

/// The VM is a node of this guest cluster.
fn node(cluster: &'static str, vm: Guest) -> Guest {
    Guest { node: Some(cluster), ..vm }
}

/// VMs of every fate: with a GPU and without, nodes of two clusters, as far as the two modes have them.
fn guests(model: &str, (from, to): (usize, usize)) -> Vec<Guest> {
    use Becomes::{LeftOff, Moves, Nothing, Stops};
    let [half, quarter, odd, small] = types(model);
    let mut guests = vec![vm("web-1", Moves, "moveTakes: 90s"), vm("off-1", Nothing, "folder: lab")];
    let moves = |vgpu: &str| node("k8s-b", vm("serve-1", Moves, format!("devices: [{{vgpu: {vgpu}}}]")));
    let late = |vgpu: &str| node("k8s-a", stays("late-1", LeftOff, vgpu));
    let [third, seventh] = mig_types(model);
    match (from, to) {
        (MIG, _) => guests.extend([moves(third), late(seventh)]),
        (1 | 2, MIG) => guests.extend([moves(&quarter), late(&quarter)]),
        (0, _) => guests.push(node("k8s-a", passed("late-1", LeftOff))),
        (_, 0) => guests.extend([moves(&quarter), late(&quarter)]),
        // Of this size fewer fit where sizes may differ: five on the one GPU, four of them afterwards.
        (1, _) => {
            let keep = |n| stays(&format!("keep-vgpu-{n}"), Stops, &odd);
            guests.extend([node("k8s-a", keep(1)), node("k8s-b", keep(2)), node("k8s-a", keep(3)), keep(4)]);
            guests.push(late(&odd));
        }
        // Three sizes on two GPUs, of which each has one afterwards.
        _ => guests.extend([
            moves(&quarter),
            node("k8s-a", stays("keep-vgpu-1", Stops, &half)),
            node("k8s-b", stays("keep-vgpu-2", Stops, &quarter)),
            late(&small),
        ]),
    }
    guests.push(Guest { pinned: true, ..vm("keep-1", Stops, "shutdownTakes: 70s") });
    guests
}

/// GPUs of each host: one where it takes all VMs of a size to crowd it.
fn gpus(transition: (usize, usize)) -> u32 {
    if transition == (1, 2) { 1 } else { 2 }
}

/// One transition of one model. A second host, which is empty, and what the two of them leave of the
/// pool, are looked at once: the readings decide nothing between hosts. Nodes are among the VMs under the first
/// setting and at 9.0: the readings decide nothing of guest clusters.
async fn transition(model: &str, at: usize) {
    let rows = readings::pairs().into_iter().map(|readings| ("8.0.3", readings, 1));
    for (nth, (version, readings, hosts)) in rows.chain([("9.0.0", "{}".to_owned(), 2)]).enumerate() {
        let mut vms = guests(model, TRANSITIONS[at]);
        if nth > 0 && hosts == 1 {
            vms.iter_mut().for_each(|vm| vm.node = None);
        }
        let site =
            Site { hosts, gpus: gpus(TRANSITIONS[at]), vms, ..Site::of(version, model, TRANSITIONS[at], &readings) };
        let case = format!("{version} {model} {} -> {} under {readings}", site.from.yaml, site.to.yaml);
        let (plan, lab) = site.walk(&case).await;
        let (expected, boots) = (reboots(model, TRANSITIONS[at]), lab.world.tally().hosts["esx-01"].boots);
        assert_eq!(plan.hosts[0].reboots.expected, expected, "{case}: {:?}", plan.hosts[0].reboots);
        // Under other readings a GPU is rebound without one, or takes one more; the bound holds for all.
        assert!(readings != "{}" || boots == expected, "{case}: {boots}");
    }
}

/// A test for each transition of each model, so that they run side by side.
macro_rules! transitions {
    ($($name:ident = $model:literal $at:literal;)+) => {
        $(#[tokio::test(start_paused = true)]
        async fn $name() {
            transition($model, $at).await;
        })+
    };
}

transitions! {
    h100_passthrough_to_same_size = "h100-nvl-94" 0;
    h100_passthrough_to_mixed_size = "h100-nvl-94" 1;
    h100_passthrough_to_mig = "h100-nvl-94" 2;
    h100_same_size_to_passthrough = "h100-nvl-94" 3;
    h100_same_size_to_mixed_size = "h100-nvl-94" 4;
    h100_same_size_to_mig = "h100-nvl-94" 5;
    h100_mixed_size_to_passthrough = "h100-nvl-94" 6;
    h100_mixed_size_to_same_size = "h100-nvl-94" 7;
    h100_mixed_size_to_mig = "h100-nvl-94" 8;
    h100_mig_to_passthrough = "h100-nvl-94" 9;
    h100_mig_to_same_size = "h100-nvl-94" 10;
    h100_mig_to_mixed_size = "h100-nvl-94" 11;
    a100_passthrough_to_same_size = "a100-pcie-80" 0;
    a100_passthrough_to_mixed_size = "a100-pcie-80" 1;
    a100_passthrough_to_mig = "a100-pcie-80" 2;
    a100_same_size_to_passthrough = "a100-pcie-80" 3;
    a100_same_size_to_mixed_size = "a100-pcie-80" 4;
    a100_same_size_to_mig = "a100-pcie-80" 5;
    a100_mixed_size_to_passthrough = "a100-pcie-80" 6;
    a100_mixed_size_to_same_size = "a100-pcie-80" 7;
    a100_mixed_size_to_mig = "a100-pcie-80" 8;
    a100_mig_to_passthrough = "a100-pcie-80" 9;
    a100_mig_to_same_size = "a100-pcie-80" 10;
    a100_mig_to_mixed_size = "a100-pcie-80" 11;
}

/// The transitions that need a shell, of which a person does that part.
#[tokio::test(start_paused = true)]
async fn by_hand_on_each_generation() {
    for model in ["h100-nvl-94", "a100-pcie-80"] {
        for transition in TRANSITIONS.into_iter().filter(|(from, to)| [*from, *to].contains(&MIG)) {
            let person = person::actors(&["esx-01", "esx-02"], transition.1 == MIG, 1);
            let (hosts, vms) = (2, guests(model, transition));
            let site =
                Site { hosts, vms, way: Way::Hand, world: &person, ..Site::of("8.0.3", model, transition, "{}") };
            let case = format!("by hand, {model} {} -> {}", site.from.yaml, site.to.yaml);
            let (plan, lab) = site.walk(&case).await;
            assert_eq!(plan.hosts[0].reboots.expected, reboots(model, transition), "{case}");
            let log = lab.world.log();
            assert!(log.iter().all(|write| write.call != "SshLogin" && write.call != "StartService"), "{case}");
            let asked = log.iter().filter(|write| write.call == "LogUserEvent" && write.who == USER).count();
            assert_eq!(asked, 2, "{case}: once for each host");
        }
    }
}

/// A VM that may not be stopped and cannot move: its host is refused by the plan, and nothing is done to
/// it nor to any VM there; the other host of the pool is changed.
#[tokio::test(start_paused = true)]
async fn a_vm_that_may_not_be_stopped_refuses_its_host_and_no_other() {
    for model in ["h100-nvl-94", "a100-pcie-80"] {
        for transition in TRANSITIONS {
            let [_, quarter, ..] = types(model);
            let stays = match transition.0 {
                0 => passed("own-1", Becomes::Stops),
                MIG => stays("own-1", Becomes::Stops, mig_types(model)[0]),
                _ => stays("own-1", Becomes::Stops, &quarter),
            };
            let vms = vec![vm("web-1", Becomes::Moves, "moveTakes: 90s"), stays];
            let site = Site { hosts: 2, vms, ..Site::of("8.0.3", model, transition, "{}") };
            let case = format!("{model} {} -> {}", site.from.yaml, site.to.yaml);
            let lab = site.lab();
            let plan = lab.plan().await;
            let planned: Vec<&str> = plan.hosts.iter().map(|host| host.host.name.as_str()).collect();
            assert_eq!(planned, ["esx-02"], "{case}: {:#?}", plan.findings);
            let [not] = plan.not_acted.as_slice() else { panic!("{case}: {:#?}", plan.not_acted) };
            assert_eq!((not.host.as_str(), not.reason), ("esx-01", Reason::Refused), "{case}");
            assert!(not.detail.contains("own-1"), "{case}: {}", not.detail);
            let vms = lab.before["vms"].clone();
            site.apply(&case, &lab, plan).await;
            assert_eq!(lab.world.snapshot()["vms"], vms, "{case}");
        }
    }
}

/// One of the host's two GPUs is not in the pool: it stays as it is, configured and active.
#[tokio::test(start_paused = true)]
async fn beside_a_gpu_of_somebody_else() {
    for transition in TRANSITIONS {
        for readings in readings::pairs().iter().filter(|readings| readings.contains("hostDefaultNeeded: no")) {
            let site = Site { select: "{count: 1}", ..Site::of("8.0.3", "a100-pcie-80", transition, readings) };
            let case = format!("one of two, {} -> {} under {readings}", site.from.yaml, site.to.yaml);
            let (plan, _) = site.walk(&case).await;
            assert_eq!(plan.hosts[0].target.others.len(), 1, "{case}");
        }
    }
}

/// Readings that must change no journal: the whole list is sent as it was read, which means the same to a
/// server that merges and to one that replaces; and a password is given in the way in which it is asked for.
const THE_SAME: [&str; 2] = ["deviceType", "sshPassword"];

/// Any other reading that changes no journal is no reading of ours.
#[tokio::test(start_paused = true)]
async fn each_reading_changes_a_journal_or_must_not() {
    let mut defaults = Vec::new();
    for site in sites(&readings::only(0, 0)) {
        defaults.push(journal(&site).await);
    }
    for (switch, (name, values)) in readings::SWITCHES.iter().enumerate() {
        for value in 1..values.len() {
            let mut differs = false;
            for (site, default) in sites(&readings::only(switch, value)).iter().zip(&defaults) {
                // The first that differs is enough.
                differs = differs || journal(site).await != *default;
            }
            assert_eq!(differs, !THE_SAME.contains(name), "{name}: {}", values[value]);
        }
    }
}

/// Several sites, each of which shows some of the readings.
fn sites(readings: &str) -> Vec<Site<'_>> {
    let of = |transition| Site::of("8.0.3", "h100-nvl-94", transition, readings);
    let [half, ..] = types("h100-nvl-94");
    vec![
        of((0, 1)),
        of((1, 0)),
        // A GPU of somebody else, whose host default is not ours to change.
        Site { select: "{count: 1}", ..of((0, 1)) },
        // Somebody takes the place of a VM that is about to be started again.
        Site {
            gpus: 1,
            vms: vec![
                stays("keep-1", Becomes::Stops, &half),
                stays("keep-2", Becomes::Stops, &half),
                Guest { pinned: true, ..stays("thief-1", Becomes::Nothing, &half) },
            ],
            world: "actors: [{who: somebody, host: esx-01, once: {method: ExitMaintenanceMode_Task}, after: 15s, \
                    does: {powerOn: {vm: thief-1}}}]",
            ..of((1, 2))
        },
        // A vCenter that does not look again at the GPUs when it is asked to.
        Site {
            world: "faults: [{method: RefreshGraphicsManager, times: 9999, then: {fault: HostConfigFault}}]",
            ..of((1, MIG))
        },
    ]
}

/// What the journal says happened, and when; the id of the run is by chance.
async fn journal(site: &Site<'_>) -> Vec<String> {
    let lab = site.lab();
    let plan = lab.plan().await;
    let run = lab.apply(&plan).await.unwrap().run;
    let entries = lab.state.entries(&run).unwrap();
    entries.iter().map(|entry| format!("{} {:?}", entry.at, entry.e).replace(run.as_str(), "RUN")).collect()
}

/// The host default is needed, and is not ours to change: a GPU of the host is not in the pool. The
/// GPU never becomes a vGPU, the host is left closed, and the report says why.
#[tokio::test(start_paused = true)]
async fn a_host_default_that_is_not_ours_leaves_the_host_closed() {
    let site = Site { select: "{count: 1}", ..Site::of("8.0.3", "h100-nvl-94", (0, 1), "{hostDefaultNeeded: yes}") };
    let lab = site.lab();
    let plan = lab.plan().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    let after = lab.world.snapshot();
    assert_eq!(look::host(&after, "esx-01")["maintenance"], true);
    look::assert_only_managed("not ours", &lab, &plan);
    look::assert_within_bounds("not ours", &lab, &plan);
    let HostPhase::Failed { error, .. } = &state.hosts[&HostName::from("esx-01")].phase else { panic!("{state:#?}") };
    assert!(error.contains("the reboot had no effect on") && error.contains("type sharedDirect"), "{error}");
}

/// Each bound is looked at: were one of them as low as this, it would be noticed.
#[tokio::test(start_paused = true)]
async fn a_bound_that_the_world_breaks_is_noticed() {
    let transition = (1, 0);
    let vms = guests("h100-nvl-94", transition);
    let site = Site { hosts: 2, vms, ..Site::of("8.0.3", "h100-nvl-94", transition, "{}") };
    let lab = site.lab();
    let plan = lab.plan().await;
    let plan = site.apply("as planned", &lab, plan).await;
    let lower: [fn(&mut Plan); 7] = [
        |plan| plan.hosts[0].bounds.nodes.clear(),
        |plan| plan.hosts[0].bounds.stops = 1,
        |plan| plan.hosts[0].bounds.moves = 1,
        |plan| plan.hosts[0].reboots.most = 0,
        |plan| plan.hosts[0].minutes.most = 1,
        |plan| plan.capacity.pools[0].worst = plan.capacity.pools[0].now,
        |plan| plan.capacity.gpu_hours_most_tenths = 1,
    ];
    for (nth, lower) in lower.into_iter().enumerate() {
        let mut tight = plan.clone();
        lower(&mut tight);
        let look = std::panic::AssertUnwindSafe(|| {
            look::assert_within_bounds("too tight", &lab, &tight);
            nodes::assert_as_planned("too tight", &lab, &tight);
        });
        assert!(std::panic::catch_unwind(look).is_err(), "{nth}");
    }
}
