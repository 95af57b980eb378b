//! Honesty rule 3: power-on, and where the devices of a VM come to sit.

use super::raw::{Raw, document, pass, world_with};
use poolwright::sim::World;
use serde_json::Value;

/// Hosts with GPUs of a model in a mode.
fn hosts(names: &str, model: &str, count: u32, mode: &str) -> String {
    format!(
        "            - {{names: \"{names}\", driver: {{component: NVD-AIE-800, version: 580.95.02}}, gpus: [{{model: {model}, count: {count}, mode: {mode}}}]}}"
    )
}

/// VMs that are off on esx-01, each with one vGPU, and more keys of the cluster before them.
fn vms(kinds: &[&str], rest: &str) -> String {
    let vm = |(index, kind): (usize, &&str)| format!("{{name: vm-{index}, host: esx-01, devices: [{{vgpu: {kind}}}]}}");
    let vms: Vec<String> = kinds.iter().enumerate().map(vm).collect();
    format!("          {rest}\n          vms: [{}]", vms.join(", "))
}

/// The seat of the first device of a VM: GPU and start.
fn seat(world: &World, name: &str) -> (String, Value) {
    let snapshot = world.snapshot();
    let vm = snapshot["vms"].as_object().unwrap().values().find(|vm| vm["name"] == name).unwrap();
    let seat = &vm["seats"][0];
    (seat["gpu"].as_str().unwrap_or_default().to_owned(), seat["start"].clone())
}

const A: &str = "0000:17:00.0";
const B: &str = "0000:1f:00.0";

#[tokio::test(start_paused = true)]
async fn a_vm_powers_on_by_a_task_and_uses_a_gpu_that_the_host_shows() {
    let rest = vms(&["nvidia_h100l-47c"], "drs: {}");
    let world = world_with(&hosts("esx-01", "h100-nvl-94", 2, "{vgpu: {size: same}}"), &rest);
    let raw = Raw::login(&world).await;
    let task = raw.vm("PowerOnVM_Task", "vm-0", "").await.ok().text("returnval");
    pass(5).await;
    assert_eq!(raw.state(&task).await, "running");
    assert_eq!(raw.vm_value("vm-0", "runtime.powerState").await, "poweredOff");
    let id = raw.named("VirtualMachine", "vm-0").await;
    assert!(raw.read("VirtualMachine", &id, &["recentTask"]).await.ok().body.contains(&task));
    assert!(!raw.esx(&["recentTask"]).await.body.contains(&task), "a task of the VM, not of its host");
    assert_eq!(raw.vm("PowerOnVM_Task", "vm-0", "").await.fault(), "TaskInProgress");
    pass(10).await;
    assert_eq!(raw.place("vm-0").await, ("esx-01".to_owned(), "poweredOn".to_owned()));
    assert!(raw.esx(&["config.graphicsInfo"]).await.body.contains(&format!(">{id}</vm>")));
    assert_eq!(raw.vm_task("PowerOnVM_Task", "vm-0", "").await, "InvalidPowerState");
    assert_eq!(raw.vm_task("PowerOffVM_Task", "vm-0", "").await, "success");
    assert!(!raw.esx(&["config.graphicsInfo"]).await.body.contains("</vm>"));
    assert_eq!(raw.vm_task("PowerOffVM_Task", "vm-0", "").await, "InvalidPowerState");
    let done: Vec<bool> = world.log().iter().map(|write| write.effect).collect();
    assert_eq!(done, [true, false, false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn the_policy_chooses_the_gpu_and_the_first_vm_fixes_its_size() {
    let kinds = ["nvidia_h100l-47c", "nvidia_h100l-47c", "nvidia_h100l-23c"];
    for (policy, second, third) in
        [("performance", B, "InsufficientGraphicsResourcesFault"), ("consolidation", A, "success")]
    {
        let one = hosts("esx-01", "h100-nvl-94", 2, "{vgpu: {size: same}}");
        let one = format!("{}, policy: {policy}}}", one.strip_suffix('}').unwrap());
        let world = world_with(&one, &vms(&kinds, "drs: {}"));
        let raw = Raw::login(&world).await;
        for name in ["vm-0", "vm-1"] {
            assert_eq!(raw.vm_task("PowerOnVM_Task", name, "").await, "success");
        }
        assert_eq!((seat(&world, "vm-0").0.as_str(), seat(&world, "vm-1").0.as_str()), (A, second), "{policy}");
        assert_eq!(raw.vm_task("PowerOnVM_Task", "vm-2", "").await, third, "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn mixed_sizes_sit_at_placement_ids_and_mig_instances_are_never_rearranged() {
    let mixed = ["nvidia_h100l-4c", "nvidia_h100l-47c", "nvidia_h100l-47c"];
    let world = world_with(&hosts("esx-01", "h100-nvl-94", 1, "{vgpu: {size: mixed}}"), &vms(&mixed, "drs: {}"));
    let raw = Raw::login(&world).await;
    assert_eq!(raw.vm_task("PowerOnVM_Task", "vm-0", "").await, "success");
    assert_eq!(raw.vm_task("PowerOnVM_Task", "vm-1", "").await, "success");
    assert_eq!((seat(&world, "vm-0").1, seat(&world, "vm-1").1), (0.into(), 47.into()));
    assert_eq!(raw.vm_task("PowerOnVM_Task", "vm-2", "").await, "InsufficientGraphicsResourcesFault");

    // Two small ones, of which the first goes: there is memory for the large one, and no place.
    let mig = ["nvidia_h100l-1-12c", "nvidia_h100l-1-12c", "nvidia_h100l-4-47c", "nvidia_h100l-47c"];
    let world = world_with(&hosts("esx-01", "h100-nvl-94", 1, "{migVgpu: {}}"), &vms(&mig, "drs: {}"));
    let raw = Raw::login(&world).await;
    assert_eq!(raw.vm_task("PowerOnVM_Task", "vm-0", "").await, "success");
    assert_eq!(raw.vm_task("PowerOnVM_Task", "vm-1", "").await, "success");
    assert_eq!((seat(&world, "vm-0").1, seat(&world, "vm-1").1), (0.into(), 1.into()));
    assert_eq!(raw.vm_task("PowerOffVM_Task", "vm-0", "").await, "success");
    assert_eq!(raw.vm_task("PowerOnVM_Task", "vm-2", "").await, "InsufficientGraphicsResourcesFault");
    assert_eq!(raw.vm_task("PowerOffVM_Task", "vm-1", "").await, "success");
    assert_eq!(raw.vm_task("PowerOnVM_Task", "vm-2", "").await, "success");
    assert_eq!(raw.vm_task("PowerOnVM_Task", "vm-3", "").await, "InsufficientGraphicsResourcesFault", "time-sliced");
}

#[tokio::test(start_paused = true)]
async fn drs_chooses_the_host_unless_it_is_named_or_drs_does_not() {
    // DRS takes the host with most memory left: esx-02, since a VM runs on esx-01.
    let both = hosts("esx-[01-02]", "h100-nvl-94", 1, "{vgpu: {size: same}}");
    let with = |drs: &str| {
        let rest = vms(&["nvidia_h100l-47c"], drs);
        rest.replace("vms: [", "vms: [{name: big, host: esx-01, power: on, reservedGiB: 64}, ")
    };
    for (drs, expected) in [
        ("drs: {}", "esx-01"),
        ("drs: {level: manual}", "esx-01"),
        ("drs: {level: partiallyAutomated}", "esx-02"),
        ("drs: {level: fullyAutomated}", "esx-02"),
        ("drs: {level: fullyAutomated, overrides: [{vm: vm-0, enabled: false}]}", "esx-01"),
    ] {
        let raw = Raw::login(&world_with(&both, &with(drs))).await;
        assert_eq!(raw.vm_task("PowerOnVM_Task", "vm-0", "").await, "success");
        assert_eq!(raw.place("vm-0").await.0, expected, "{drs}");
    }
    for named in ["esx-01", "esx-02"] {
        let raw = Raw::login(&world_with(&both, &with("drs: {level: fullyAutomated}"))).await;
        let host = format!("<host type=\"HostSystem\">{}</host>", raw.host(named).await);
        assert_eq!(raw.vm_task("PowerOnVM_Task", "vm-0", &host).await, "success");
        assert_eq!(raw.place("vm-0").await.0, named);
    }
}

#[tokio::test(start_paused = true)]
async fn a_named_host_that_does_not_fit_is_dropped_for_the_one_that_the_vm_is_on() {
    let both = hosts("esx-[01-02]", "h100-nvl-94", 1, "{vgpu: {size: same}}");
    let rest = vms(&["nvidia_h100l-94c"], "drs: {}")
        .replace("vms: [", "vms: [{name: full, host: esx-02, power: on, devices: [{vgpu: nvidia_h100l-94c}]}, ");
    let raw = Raw::login(&world_with(&both, &rest)).await;
    let host = format!("<host type=\"HostSystem\">{}</host>", raw.host("esx-02").await);
    assert_eq!(raw.vm_task("PowerOnVM_Task", "vm-0", &host).await, "success");
    assert_eq!(raw.place("vm-0").await.0, "esx-01");
}

#[tokio::test(start_paused = true)]
async fn direct_path_needs_its_function_passed_through_and_free_and_room_for_large_bars() {
    let device =
        |name: &str, device: &str, rest: &str| format!("{{name: {name}, host: esx-01, devices: [{device}]{rest}}}");
    let room = ", extra: {pciPassthru.use64bitMMIO: \"TRUE\", pciPassthru.64bitMMIOSizeGB: \"256\"}";
    let fixed = format!("{{directPath: \"{A}\"}}");
    let label = "{dynamicDirectPath: train}";
    let list = [
        device("fixed", &fixed, room),
        device("same", &fixed, room),
        device("narrow", label, ""),
        device("small", label, ", extra: {pciPassthru.use64bitMMIO: \"TRUE\", pciPassthru.64bitMMIOSizeGB: \"64\"}"),
        device("bios", label, &format!("{room}, firmware: bios")),
        device("thin", label, &format!("{room}, reservedGiB: 1")),
        device("dynamic", label, room),
        device("late", label, room),
    ];
    let rest = format!("          vms: [{}]", list.join(", "));
    let world = world_with(&hosts("esx-01", "h100-nvl-94", 2, "{passthrough: {label: train}}"), &rest);
    let raw = Raw::login(&world).await;
    let broken = "GenericVmConfigFault";
    for (name, expected) in [
        ("fixed", "success"),
        ("same", broken),
        ("narrow", broken),
        ("small", broken),
        ("bios", broken),
        ("thin", broken),
        ("dynamic", "success"),
        ("late", broken),
    ] {
        assert_eq!(raw.vm_task("PowerOnVM_Task", name, "").await, expected, "{name}");
    }
    assert_eq!((seat(&world, "fixed").0.as_str(), seat(&world, "dynamic").0.as_str()), (A, B));
    let backing = raw.vm_value("dynamic", "config.hardware.device").await;
    assert!(backing.contains(&format!("<assignedId>{B}</assignedId>")), "{backing}");
    assert!(!raw.vm_value("late", "config.hardware.device").await.contains("assignedId"));

    // A09: on a host in vGPU mode the same VM stays dead, with the address in short.
    let list = format!("          vms: [{}]", device("fixed", &fixed, room));
    let raw = Raw::login(&world_with(&hosts("esx-01", "h100-nvl-94", 2, "{vgpu: {size: same}}"), &list)).await;
    let task = raw.vm("PowerOnVM_Task", "fixed", "").await.ok().text("returnval");
    pass(30).await;
    let info = raw.read("Task", &task, &["info"]).await.ok().body;
    assert!(info.contains("DevicePowerOn") && info.contains("Device 17:0.0 is not a passthrough device"), "{info}");
}

#[tokio::test(start_paused = true)]
async fn memory_that_is_reserved_is_a_limit() {
    let one = hosts("esx-01", "h100-nvl-94", 2, "{vgpu: {size: same}}").replace("names:", "memoryGiB: 100, names:");
    let raw = Raw::login(&world_with(&one, &vms(&["nvidia_h100l-47c"; 2], "drs: {}"))).await;
    assert_eq!(raw.vm_task("PowerOnVM_Task", "vm-0", "").await, "success");
    assert_eq!(raw.vm_task("PowerOnVM_Task", "vm-1", "").await, "InsufficientMemoryResourcesFault");
}

#[tokio::test(start_paused = true)]
async fn a_guest_takes_its_time_to_shut_down_refuses_or_has_no_tools() {
    let on = |name: &str, rest: &str| format!("{{name: {name}, host: esx-01, power: on{rest}}}");
    let list = [
        on("good", ", shutdownTakes: 2m"),
        on("deaf", ", refusesShutdown: true"),
        on("bare", ", tools: missing"),
        on("hung", ", tools: notRunning"),
        "{name: off, host: esx-01}".to_owned(),
    ];
    let rest = format!("          vms: [{}]", list.join(", "));
    let world = world_with(&hosts("esx-01", "h100-nvl-94", 1, "{vgpu: {size: same}}"), &rest);
    let raw = Raw::login(&world).await;
    for name in ["good", "deaf"] {
        let answer = raw.vm("ShutdownGuest", name, "").await.ok();
        assert!(!answer.body.contains("returnval"), "void, no task");
    }
    assert_eq!(raw.vm("ShutdownGuest", "bare", "").await.fault(), "ToolsUnavailable");
    assert_eq!(raw.vm("ShutdownGuest", "hung", "").await.fault(), "ToolsUnavailable");
    assert_eq!(raw.vm("ShutdownGuest", "off", "").await.fault(), "InvalidPowerState");
    assert_eq!(raw.vm_value("good", "guest.toolsRunningStatus").await, "guestToolsRunning");
    assert_eq!(raw.vm_value("bare", "guest.toolsRunningStatus").await, "guestToolsNotRunning");
    pass(119).await;
    assert_eq!(raw.vm_value("good", "runtime.powerState").await, "poweredOn");
    pass(2).await;
    assert_eq!(raw.vm_value("good", "runtime.powerState").await, "poweredOff");
    pass(1500).await;
    raw.root().await.ok();
    assert_eq!(raw.vm_value("deaf", "runtime.powerState").await, "poweredOn");
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_was_powered_off_and_on_does_not_shut_down_at_the_old_time() {
    let rest = "          vms: [{name: good, host: esx-01, power: on, shutdownTakes: 2m}]";
    let raw = Raw::login(&world_with(&hosts("esx-01", "h100-nvl-94", 1, "{vgpu: {size: same}}"), rest)).await;
    let power = async || raw.vm_value("good", "runtime.powerState").await;
    raw.vm("ShutdownGuest", "good", "").await.ok();
    raw.vm("PowerOffVM_Task", "good", "").await.ok();
    pass(10).await;
    raw.vm("PowerOnVM_Task", "good", "").await.ok();
    pass(50).await;
    raw.vm("ShutdownGuest", "good", "").await.ok();
    pass(100).await;
    assert_eq!(power().await, "poweredOn", "it was asked 100 s ago");
    pass(25).await;
    assert_eq!(power().await, "poweredOff");
}

#[tokio::test(start_paused = true)]
async fn relocation_moves_a_vm_and_b14_may_end_in_error_after_the_call_went_well() {
    let both = hosts("esx-[01-02]", "h100-nvl-94", 1, "{vgpu: {size: same}}");
    let running = |rest: &str| {
        format!("          vms: [{{name: one, host: esx-01, power: on, devices: [{{vgpu: nvidia_h100l-94c}}]{rest}}}]")
    };
    let fault = "\n  faults: [{method: RelocateVM_Task, object: one, then: {taskFault: GenericVmConfigFault}}]";
    for (rest, expected) in [
        (running(""), "success"),
        (running("") + fault, "GenericVmConfigFault"),
        (running(", migrate: false"), "MigrationFeatureNotSupported"),
        (running(", extra: {pciPassthru0.cfg.enable_uvm: \"1\"}"), "MigrationFeatureNotSupported"),
    ] {
        let world = world_with(&both, &rest);
        let raw = Raw::login(&world).await;
        let spec = format!("<spec><host type=\"HostSystem\">{}</host></spec>", raw.host("esx-02").await);
        assert_eq!(raw.vm_task("RelocateVM_Task", "one", &spec).await, expected);
        let moved = expected == "success";
        assert_eq!(raw.place("one").await.0, if moved { "esx-02" } else { "esx-01" });
        assert_eq!(world.log()[0].effect, moved);
        let used = raw.read("HostSystem", &raw.host("esx-02").await, &["config.graphicsInfo"]).await.ok().body;
        assert_eq!(used.contains("</vm>"), moved, "no seat is left behind");
    }
}

#[tokio::test(start_paused = true)]
async fn a_running_vm_without_a_place_is_no_world() {
    let hosts = hosts("esx-01", "h100-nvl-94", 1, "{vgpu: {size: same}}");
    let text = |vms: &str| document(&hosts, &format!("          vms: [{vms}]"));
    let on = |name: &str, kind: &str| format!("{{name: {name}, host: esx-01, power: on, devices: [{{vgpu: {kind}}}]}}");
    let both = format!("{}, {}", on("a", "nvidia_h100l-47c"), on("b", "nvidia_h100l-94c"));
    let error = World::parse("x.yaml", text(&both).as_bytes()).unwrap_err().to_string();
    assert!(error.contains("the VM `b`") && error.contains("vGPU"), "{error}");
    assert!(World::parse("x.yaml", text(&on("a", "nvidia_h100l-47c")).as_bytes()).is_ok());
}

#[tokio::test(start_paused = true)]
async fn options_are_updated_with_their_own_type_and_types_of_vgpu_are_listed() {
    let world = world_with(&hosts("esx-01", "h100-nvl-94", 1, "{migVgpu: {}}"), "");
    let raw = Raw::login(&world).await;
    let update = async |kind: &str, value: &str| {
        let changed = format!(
            "<changedValue><key>vgpu.hotmigrate.enabled</key><value xsi:type=\"xsd:{kind}\">{value}</value></changedValue>"
        );
        raw.method("UpdateOptions", "OptionManager", "VpxSettings", &changed).await
    };
    assert_eq!(update("string", "false").await.fault(), "InvalidArgument");
    update("boolean", "false").await.ok();
    let read = raw.method("QueryOptions", "OptionManager", "VpxSettings", "<name>vgpu.hotmigrate.enabled</name>").await;
    assert!(read.ok().body.contains(">false<"));
    let manager = raw.value("configManager.graphicsManager").await;
    let profiles = raw.method("RetrieveVgpuProfileInfo", "HostGraphicsManager", &manager, "").await.ok().body;
    assert!(profiles.contains("<profileName>nvidia_h100l-3-47c</profileName>") && profiles.contains(">mig<"));
    assert!(!profiles.contains("timeSliced"));
    let devices = raw.method("RetrieveVgpuDeviceInfo", "HostGraphicsManager", &manager, "").await.ok();
    let id: u32 = devices.text("deviceVendorId").parse().unwrap();
    assert_eq!((id & 0xffff, devices.text("migCapable").as_str()), (0x10de, "true"));
}

#[tokio::test(start_paused = true)]
async fn whether_the_call_or_its_task_says_what_is_wrong_is_a_reading() {
    let one = hosts("esx-01", "h100-nvl-94", 1, "{vgpu: {size: same}}");
    let rest = vms(&["nvidia_h100l-1-12c"], "drs: {}") + "\n  readings: {vmFaults: inCall}";
    let world = world_with(&one, &rest);
    let raw = Raw::login(&world).await;
    assert_eq!(raw.vm("PowerOnVM_Task", "vm-0", "").await.fault(), "InsufficientGraphicsResourcesFault");
    let id = raw.named("VirtualMachine", "vm-0").await;
    assert!(!raw.read("VirtualMachine", &id, &["recentTask"]).await.ok().body.contains(">task-"));
    assert!(!world.log()[0].effect);
}
