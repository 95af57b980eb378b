use super::*;
use crate::model::{
    AssignmentPolicy, At, Desired, Expect, Fact, Finding, GraphicsType, GuestRules, HostRef, JobTemplate, MoRef, Mode,
    NodeRef, OnValidationFailure, Pace, Place, PlanId, Product, Rule, ShellWay, SiteIdentity, VgpuMode, VgpuSize,
    VmGpuDevice, VmRules,
};
use crate::plan::{
    Bounds, Capacity, Fate, GpuSetting, GpuTarget, HostTarget, Limits, Minutes, NodeOut, Outline, PoolCapacity,
    Reboots, SlowFacts, SlowGpu, VmFate,
};

const H100_NVL: PciId = PciId { vendor: 0x10de, device: 0x2321, sub_vendor: 0x10de, sub_device: 0x1839 };

fn address(bus: u8) -> PciAddress {
    PciAddress { segment: 0, bus, device: 0, function: 0 }
}

fn passed_through() -> GpuSetting {
    GpuSetting {
        passthru_enabled: true,
        passthru_active: true,
        label: Fact::Known("train".to_owned()),
        configured_type: Fact::Known(GraphicsType::Shared),
        configured_mode: Fact::<VgpuMode>::Absent,
        active_type: Fact::Absent,
        active_mode: Fact::Absent,
    }
}

fn step(does: &str, expects: &str, perhaps: bool) -> Outline {
    Outline { does: does.to_owned(), expects: expects.to_owned(), perhaps }
}

fn fates() -> Vec<VmFate> {
    let fate = |name: &str, fate| VmFate {
        vm: MoRef::new("VirtualMachine", format!("vm-{name}")),
        name: name.to_owned(),
        gpus: vec![VmGpuDevice::DirectPath { id: "0000:3b:00.0".into(), device_id: Fact::Absent }],
        node: None,
        fate,
    };
    let left_off = "no GPU with label train will be passed through";
    vec![
        fate("serve-1", Fate::Moves { to: "esx-gpu-08".into(), minutes: 3, why: "128 GiB of memory".into() }),
        fate("train-1", Fate::Stops { why: "a DirectPath I/O device never moves".into() }),
        fate("train-2", Fate::LeftOff { why: left_off.into() }),
    ]
}

fn host(name: &str) -> HostPlan {
    let buses = [0x3b, 0x5e, 0x86, 0xaf];
    let gpu = |bus| SlowGpu { address: address(bus), id: H100_NVL, setting: passed_through() };
    HostPlan {
        host: HostRef {
            moref: MoRef::new("HostSystem", format!("host-{name}")),
            name: name.into(),
            path: format!("/DC1/host/gpu-a/{name}"),
            cluster: "/DC1/host/gpu-a".into(),
        },
        uuid: format!("uuid-{name}"),
        pool: "infer-h100nvl".into(),
        slow: SlowFacts {
            product: Product { version: "8.0.3".into(), build: "24022510".into() },
            packages: Fact::Known(Vec::new()),
            default_type: GraphicsType::Shared,
            policy: AssignmentPolicy::Performance,
            gpus: buses.map(gpu).to_vec(),
            devices: String::new(),
        },
        digest: String::new(),
        target: HostTarget {
            gpus: buses[..3]
                .iter()
                .map(|bus| GpuTarget {
                    address: address(*bus),
                    id: H100_NVL,
                    mode: Mode::Vgpu { size: VgpuSize::Mixed },
                    mig: None,
                    companions: if *bus == 0x3b {
                        vec![PciAddress { function: 1, ..address(*bus) }]
                    } else {
                        Vec::new()
                    },
                })
                .collect(),
            others: vec![address(0xaf)],
            placement: Some(AssignmentPolicy::Consolidation),
            default_type: None,
        },
        impact: Impact::Reboot,
        fates: fates(),
        bounds: Bounds { stops: 4, moves: 4, ..Bounds::default() },
        vms: VmRules::default(),
        accepted_nodes: BTreeMap::new(),
        guests: Vec::new(),
        guest_uids: BTreeMap::new(),
        on_validation_failure: OnValidationFailure::CloseHost,
        steps: vec![
            step("enter maintenance mode", "no VM powered on", false),
            step("switch passthrough off on 3 GPUs", "passthrough on, label train", false),
            step("reboot", "3 changes that are configured and not active", false),
            step("set mixed size again", "the size mode that the host ignored", true),
        ],
        reboots: Reboots { expected: 1, most: 2, why: vec!["the graphics entry may be ignored".into()] },
        minutes: Minutes { expected: 21, most: 110, basis: "10 min a reboot".into(), person: false },
        shell: ShellWay::Handoff,
        stays_in_maintenance: false,
        not_checked: Vec::new(),
    }
}

fn not_acted_on(host: &str, reason: Reason, detail: &str) -> NotActed {
    NotActed { host: host.into(), pool: "infer-h100nvl".into(), reason, detail: detail.into() }
}

fn a_plan() -> Plan {
    let mut third = host("esx-gpu-03");
    third.minutes.expected = 25;
    Plan {
        schema: "poolwright.plan/v1".into(),
        id: PlanId("3f9a2c1b77d0e4551111".into()),
        tool: "0.1.0".into(),
        catalog: String::new(),
        now: "2026-11-30T20:00:00Z".parse().unwrap(),
        expires: "2026-12-01T20:00:00Z".parse().unwrap(),
        inputs: Vec::new(),
        site: SiteIdentity {
            name: "fra1".into(),
            address: "vc.lab".into(),
            instance_uuid: "6f0e".into(),
            version: "8.0.3".into(),
            api_version: "8.0.3.0".into(),
        },
        desired: Desired {
            site: At::new("fra1".into(), Place { file: "p.yaml".into(), line: 1, column: 1 }),
            pace: Pace::default(),
            shell: ShellWay::Handoff,
            pools: Vec::new(),
        },
        limits: Limits { hosts_at_once: 1, halt_after_failed_hosts: 1 },
        order: ["esx-gpu-01", "東京-gpu-02", "esx-gpu-03"].map(HostName::from).to_vec(),
        hosts: vec![host("esx-gpu-01"), host("東京-gpu-02"), third],
        capacity: Capacity {
            gpu_hours_tenths: 45,
            gpu_hours_most_tenths: 220,
            pools: vec![PoolCapacity {
                pool: "infer-h100nvl".into(),
                gpus: 24,
                now: 20,
                worst: 16,
                unavailable: vec![not_acted_on("esx-gpu-06", Reason::Unknown, "not responding")],
                nodes: Vec::new(),
            }],
        },
        not_acted: vec![
            not_acted_on("esx-gpu-04", Reason::Converged, "as the profile wants it"),
            not_acted_on("esx-gpu-05", Reason::Converged, "as the profile wants it"),
            not_acted_on("esx-gpu-06", Reason::Refused, "PW-HOST-02: the host does not answer vCenter"),
        ],
        findings: vec![
            Finding::new(&Rule::HOST_NOT_CONNECTED, "the host does not answer vCenter (notResponding)")
                .on_host(&"esx-gpu-06".into())
                .hint("look at the host's console"),
        ],
    }
}

fn text(plan: &Plan) -> String {
    let mut paper = Paper::new();
    super::plan(&mut paper, plan, &super::Again::default());
    paper.render(false)
}

#[test]
fn a_plan_reads_as_a_reviewer_wants_it() {
    insta::assert_snapshot!(text(&a_plan()));
}

#[test]
fn d13_it_fits_a_hundred_columns_and_long_and_wide_names_stay_whole() {
    let mut plan = a_plan();
    let name = "ホスト-".repeat(9) + "esx-gpu-with-a-long-name.rack-17.row-c.fra1.example.internal";
    plan.order[0] = HostName(name.clone());
    plan.hosts[0].host.name = HostName(name.clone());
    plan.not_acted[0].host = HostName(name.clone());
    let text = text(&plan);
    assert!(text.matches(&name).count() >= 3, "{text}");
    let tables = ["Order", "Not acted on"].map(|heading| text.lines().skip_while(move |line| *line != heading));
    let in_tables: Vec<&str> = tables.into_iter().flat_map(|rows| rows.take_while(|line| !line.is_empty())).collect();
    for line in text.lines().filter(|line| !line.contains(&name) && !in_tables.contains(line)) {
        assert!(unicode_width::UnicodeWidthStr::width(line) <= 100, "{line}");
    }
}

#[test]
fn a_plan_that_changes_nothing_says_so() {
    let mut plan = a_plan();
    plan.order.clear();
    plan.hosts.clear();
    plan.findings.clear();
    plan.not_acted.truncate(2);
    let text = text(&plan);
    assert!(text.contains("No host is changed. 2 hosts as the profiles want it."), "{text}");
    assert!(!text.contains("Order") && !text.contains("GPU-hours"), "{text}");
}

#[test]
fn a_mode_that_stays_is_not_shown_as_a_change() {
    let mut host = host("esx-1");
    for gpu in &mut host.target.gpus {
        gpu.mode = Mode::Passthrough { label: Some("train".into()) };
    }
    let mut paper = Paper::new();
    gpus(&mut paper, &host);
    let text = paper.render(false);
    assert!(text.contains("passthrough (label train) (kept)\n") && !text.contains("->"), "{text}");
}

/// What becomes of nodes, by guest cluster: which go down, how they come back, what moves on.
#[test]
fn nodes_are_told_by_their_guest_cluster() {
    let text = |value: &str| At::new(value.to_owned(), Place { file: "p.yaml".into(), line: 30, column: 5 });
    let mut host = host("esx-1");
    for (fate, node) in host.fates.iter_mut().zip(["web-1", "serve-1", "old-1"]) {
        let cluster = "k8s-serve".to_owned();
        fate.node = Some(NodeRef { cluster, name: node.to_owned(), uid: format!("uid-{node}") });
    }
    host.bounds.nodes = BTreeMap::from([("k8s-serve".to_owned(), 2)]);
    let job = serde_json::json!({
        "metadata": {"namespace": "gpu-check"},
        "spec": {"template": {"spec": {
            "initContainers": [{"image": "lab/wait:1"}],
            "containers": [{"image": "lab/add:13"}],
        }}},
    });
    host.guests = vec![GuestRules {
        cluster: text("k8s-serve"),
        expect: Expect { resource: text("nvidia.com/gpu"), per_node: At { value: 2, place: text("").place } },
        drain_timeout_s: 45 * 60,
        validate: vec![JobTemplate { file: text("templates/add.yaml"), job }],
    }];
    let mut paper = Paper::new();
    nodes::of_host(&mut paper, &host);
    assert_eq!(
        paper.render(false).split_whitespace().collect::<Vec<_>>().join(" "),
        "nodes of k8s-serve: serve-1: cordoned, drained in at most 45 min, stopped; uncordoned once Ready with 2 \
         nvidia.com/gpu, validated by templates/add.yaml (images lab/wait:1, lab/add:13, namespace gpu-check) \
         nodes of k8s-serve left off: old-1: cordoned and drained; cordoned still at the end, the VM off \
         nodes that move as they run: web-1 of k8s-serve: neither cordoned nor drained; looked at after the move nodes down at most: 2 of k8s-serve; if one does not pass its \
         gate, the host is closed again"
    );
    let mut plan = a_plan();
    plan.hosts = vec![host];
    let head: Vec<String> = self::text(&plan).split_whitespace().map(str::to_owned).collect();
    assert!(head.join(" ").contains("Cordoned and drained: 2 nodes of k8s-serve."), "{head:?}");
    // What is out before anything is done is said though nothing is.
    plan.capacity.pools[0].nodes = plan.hosts[0]
        .fates
        .iter()
        .take(1)
        .filter_map(|fate| fate.node.clone())
        .map(|node| NodeOut { node, host: "esx-9".into(), vm: "vm-web".into(), gpus: 2, why: "cordoned".into() })
        .collect();
    let idle = Plan { hosts: Vec::new(), ..plan.clone() };
    let said: Vec<String> = self::text(&idle).split_whitespace().map(str::to_owned).collect();
    for words in ["1 node is out of service now.", "node web-1 of k8s-serve on esx-9 (VM vm-web, 2 GPUs): cordoned"] {
        assert!(said.join(" ").contains(words), "{said:?}");
    }
    // Jobs are not everybody's.
    plan.hosts[0].guests[0].validate.clear();
    let mut paper = Paper::new();
    nodes::of_host(&mut paper, &plan.hosts[0]);
    assert!(paper.render(false).contains("no Job validates"), "{}", paper.render(false));
}
