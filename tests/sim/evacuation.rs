//! Honesty rules 1 and 2: a closing host takes no VM, and is emptied by DRS or by nobody.

use super::raw::{Raw, document, pass, world_of, world_with};
use poolwright::sim::World;

/// Hosts of one H100 each in time-sliced mode.
fn hosts(names: &str) -> String {
    format!(
        "            - {{names: \"{names}\", driver: {{component: NVD-AIE-800, version: 580.95.02}}, gpus: [{{model: h100-nvl-94, mode: {{vgpu: {{size: same}}}}}}]}}"
    )
}

/// A fully automated DRS that may move VMs with a vGPU.
const DRS: &str = "drs: {level: fullyAutomated, options: {VgpuMMAutomationTimeoutSecs: \"-1\"}}";

fn vm(name: &str, host: &str, rest: &str) -> String {
    format!("{{name: {name}, host: {host}, power: on, devices: [{{vgpu: nvidia_h100l-47c}}]{rest}}}")
}

fn world(names: &str, drs: &str, vms: &[String], rest: &str) -> World {
    world_with(&hosts(names), &format!("          {drs}\n          vms: [{}]\n{rest}", vms.join(", ")))
}

async fn faults(raw: &Raw) -> String {
    raw.view("ClusterComputeResource", &["drsFault"]).await.ok().body
}

async fn events(raw: &Raw, kind: &str) -> usize {
    let filter = format!("<filter><eventTypeId>{kind}</eventTypeId></filter>");
    raw.method("QueryEvents", "EventManager", "EventManager", &filter).await.ok().body.matches("<returnval").count()
}

#[tokio::test(start_paused = true)]
async fn drs_moves_one_vm_after_the_other_and_the_host_closes() {
    let vms = [vm("one", "esx-01", ""), vm("two", "esx-01", ", moveTakes: 2m"), "{name: off, host: esx-01}".to_owned()];
    let world = world("esx-[01-03]", DRS, &vms, "");
    let raw = Raw::login(&world).await;
    let task = raw.enter(0).await.ok().text("returnval");
    pass(30).await;
    assert_eq!(raw.place("one").await.0, "esx-01", "under way");
    assert_eq!(raw.value("runtime.inMaintenanceMode").await, "false");
    pass(40).await;
    assert_ne!(raw.place("one").await.0, "esx-01");
    assert_eq!(raw.place("two").await.0, "esx-01", "one at a time");
    assert_eq!(raw.ended(&task).await, "running");
    pass(130).await;
    assert_eq!(raw.ended(&task).await, "success");
    // DRS spreads by memory: each went to another host.
    assert_ne!(raw.place("one").await.0, raw.place("two").await.0);
    assert_eq!(raw.place("off").await, ("esx-01".to_owned(), "poweredOff".to_owned()));
    let by: Vec<_> = world.log().into_iter().map(|write| (write.who, write.call, write.object)).collect();
    assert_eq!(
        by[1..],
        [("DRS", "evacuation", "one"), ("DRS", "evacuation", "two")].map(|(who, call, object)| (
            who.into(),
            call.into(),
            object.into()
        ))
    );
    let history = raw.read("VirtualMachine", &raw.named("VirtualMachine", "one").await, &["recentTask"]).await.ok();
    let moved = raw.read("Task", history.text("ManagedObjectReference").as_str(), &["info"]).await.ok().body;
    assert!(moved.contains("TaskReasonSystem"), "{moved}");
}

#[tokio::test(start_paused = true)]
async fn a_closing_host_takes_no_power_on_and_no_vmotion_and_only_an_open_one_does() {
    let vms = [
        vm("stays", "esx-01", ", migrate: false"),
        vm("guest", "esx-02", ""),
        "{name: off, host: esx-01, devices: [{vgpu: nvidia_h100l-47c}]}".to_owned(),
    ];
    let world = world("esx-[01-02]", "drs: {level: manual}", &vms, "");
    let raw = Raw::login(&world).await;
    let task = raw.enter(0).await.ok().text("returnval");
    pass(60).await;
    let here = format!("<host type=\"HostSystem\">{}</host>", raw.host("esx-01").await);
    assert_eq!(raw.vm_task("PowerOnVM_Task", "off", &here).await, "InvalidState");
    assert_eq!(raw.vm_task("RelocateVM_Task", "guest", &format!("<spec>{here}</spec>")).await, "InvalidState");
    assert_eq!(raw.ended(&task).await, "running");
    raw.method("CancelTask", "Task", &task, "").await.ok();
    assert_eq!(raw.vm_task("PowerOnVM_Task", "off", &here).await, "success", "open again");
}

#[tokio::test(start_paused = true)]
async fn with_drs_a_power_on_goes_elsewhere_while_the_host_closes() {
    let vms = [
        vm("stays", "esx-01", ", migrate: false"),
        "{name: off, host: esx-01, devices: [{vgpu: nvidia_h100l-47c}]}".to_owned(),
    ];
    let actor = "  actors: [{who: capi, host: esx-01, once: {method: EnterMaintenanceMode_Task}, after: 1m, does: {powerOn: {vm: off}}}]";
    for (names, expected) in [("esx-[01-02]", ("esx-02", "poweredOn")), ("esx-01", ("esx-01", "poweredOff"))] {
        let world = world(names, DRS, &vms, actor);
        let raw = Raw::login(&world).await;
        raw.enter(0).await.ok();
        pass(90).await;
        let found = raw.place("off").await;
        assert_eq!((found.0.as_str(), found.1.as_str()), expected);
        let tried = world.log().into_iter().find(|write| write.who == "capi").unwrap();
        assert_eq!((tried.call.as_str(), tried.effect), ("PowerOnVM_Task", expected.1 == "poweredOn"));
    }
}

/// Why a VM stays, by the type of its fault; none: DRS says nothing.
async fn stuck(drs: &str, rest: &str, more: &str, names: &str) -> Option<String> {
    let world = world(names, drs, &[vm("one", "esx-01", rest)], more);
    let raw = Raw::login(&world).await;
    let task = raw.enter(0).await.ok().text("returnval");
    for _ in 0..3 {
        pass(1500).await;
        let info = raw.read("Task", &task, &["info.state", "info.progress"]).await.ok().body;
        assert!(info.contains(">running<") && info.contains(">2<"), "{drs}: {info}");
    }
    assert_eq!(raw.place("one").await, ("esx-01".to_owned(), "poweredOn".to_owned()));
    let said = faults(&raw).await;
    assert_eq!(events(&raw, "NoMaintenanceModeDrsRecommendationForVM").await, usize::from(!drs.contains("{}")), "once");
    said.split("<fault xsi:type=\"").nth(1).map(|rest| rest.split('"').next().unwrap().to_owned())
}

#[tokio::test(start_paused = true)]
async fn what_drs_cannot_move_leaves_a_reason_and_the_task_at_two_per_cent() {
    let two = "esx-[01-02]";
    let found = [
        stuck("drs: {}", "", "", two).await,
        stuck("drs: {level: fullyAutomated}", "", "", two).await,
        stuck(&DRS.replace("-1", "600"), "", "", two).await,
        stuck(&DRS.replace("}}", "}, overrides: [{vm: one, enabled: false}]}"), "", "", two).await,
        stuck(DRS, ", migrate: false", "", two).await,
        stuck(DRS, ", extra: {pciPassthru0.cfg.enable_debugging: \"1\"}", "", two).await,
        stuck(DRS, "", "", "esx-01").await,
    ];
    let expected = [
        None,
        Some("GenericDrsFault"),
        Some("GenericDrsFault"),
        Some("DrsDisabledOnVm"),
        Some("MigrationFeatureNotSupported"),
        Some("MigrationFeatureNotSupported"),
        Some("NoCompatibleHost"),
    ];
    assert_eq!(
        found.map(|fault| fault.unwrap_or_default()),
        expected.map(|fault| fault.unwrap_or_default().to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn without_the_hot_migrate_option_or_a_free_slot_nothing_moves() {
    let vms = [vm("one", "esx-01", ""), vm("full-1", "esx-02", ""), vm("full-2", "esx-02", "")];
    let raw = Raw::login(&world("esx-[01-02]", DRS, &vms, "")).await;
    raw.enter(0).await.ok();
    pass(120).await;
    let said = faults(&raw).await;
    assert!(said.contains("NoCompatibleHost") && said.contains("InsufficientGraphicsResourcesFault"), "{said}");
    assert!(said.contains(&raw.host("esx-02").await));
    let off =
        "<changedValue><key>vgpu.hotmigrate.enabled</key><value xsi:type=\"xsd:boolean\">false</value></changedValue>";
    raw.method("UpdateOptions", "OptionManager", "VpxSettings", off).await.ok();
    assert!(faults(&raw).await.contains("MigrationFeatureNotSupported"), "effective at once");
}

#[tokio::test(start_paused = true)]
async fn direct_path_vms_never_move_and_the_host_closes_when_they_are_shut_down() {
    let hosts = hosts("esx-[01-02]").replace("{vgpu: {size: same}}", "{passthrough: {label: train}}");
    let rest = format!(
        "          {DRS}\n          vms: [{{name: one, host: esx-01, power: on, devices: [{{dynamicDirectPath: train}}]}}]"
    );
    let raw = Raw::login(&world_with(&hosts, &rest)).await;
    let task = raw.enter(0).await.ok().text("returnval");
    pass(600).await;
    assert!(faults(&raw).await.contains("DeviceNotSupported"));
    raw.vm("ShutdownGuest", "one", "").await.ok();
    pass(29).await;
    assert_eq!(raw.ended(&task).await, "running");
    pass(5).await;
    assert_eq!(raw.ended(&task).await, "success");
    assert!(!faults(&raw).await.contains("DeviceNotSupported"));
}

#[tokio::test(start_paused = true)]
async fn partial_automation_only_recommends() {
    let drs = DRS.replace("fullyAutomated", "partiallyAutomated");
    let raw = Raw::login(&world("esx-[01-02]", &drs, &[vm("one", "esx-01", "")], "")).await;
    let task = raw.enter(0).await.ok().text("returnval");
    pass(1500).await;
    assert_eq!(raw.ended(&task).await, "running");
    let said = raw.view("ClusterComputeResource", &["recommendation", "configurationEx"]).await.ok().body;
    let target = format!("<destination type=\"HostSystem\">{}</destination>", raw.host("esx-02").await);
    assert!(said.contains(&target) && said.contains(">partiallyAutomated<"), "{said}");
    assert_eq!(raw.place("one").await.0, "esx-01");
}

#[tokio::test(start_paused = true)]
async fn cancel_leaves_the_host_partly_evacuated_and_lets_a_move_under_way_end() {
    let vms = [vm("one", "esx-01", ""), vm("two", "esx-01", "")];
    let raw = Raw::login(&world("esx-[01-02]", DRS, &vms, "")).await;
    let task = raw.enter(0).await.ok().text("returnval");
    pass(30).await;
    raw.method("CancelTask", "Task", &task, "").await.ok();
    pass(300).await;
    assert_eq!(raw.ended(&task).await, "RequestCanceled");
    assert_eq!((raw.place("one").await.0, raw.place("two").await.0), ("esx-02".to_owned(), "esx-01".to_owned()));
    assert_eq!(raw.value("runtime.inMaintenanceMode").await, "false");
}

#[tokio::test(start_paused = true)]
async fn b14_a_move_of_drs_that_ends_in_error_is_tried_again_a_pass_later() {
    let rest = "  faults: [{method: evacuation, object: one, times: 2, then: {taskFault: GenericVmConfigFault}}]";
    let vms = [vm("one", "esx-01", ""), vm("two", "esx-01", "")];
    let world = world("esx-[01-02]", DRS, &vms, rest);
    let raw = Raw::login(&world).await;
    let task = raw.enter(0).await.ok().text("returnval");
    pass(600).await;
    assert_eq!(raw.ended(&task).await, "success");
    assert_eq!(events(&raw, "VmFailedMigrateEvent").await, 2);
    let effects: Vec<(String, bool)> =
        world.log().into_iter().filter(|write| write.who == "DRS").map(|write| (write.object, write.effect)).collect();
    let expected = [("one", false), ("two", true), ("one", false), ("one", true)];
    assert_eq!(effects, expected.map(|(name, effect)| (name.to_owned(), effect)));
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_says_so_is_powered_off_by_drs() {
    let vms = [vm("one", "esx-01", ", extra: {maintenance.vm.evacuation.poweroff: \"TRUE\"}"), vm("two", "esx-01", "")];
    let world = world("esx-[01-02]", DRS, &vms, "");
    let raw = Raw::login(&world).await;
    let task = raw.enter(0).await.ok().text("returnval");
    pass(200).await;
    assert_eq!(raw.ended(&task).await, "success");
    assert_eq!(raw.place("one").await, ("esx-01".to_owned(), "poweredOff".to_owned()));
    assert_eq!(raw.place("two").await, ("esx-02".to_owned(), "poweredOn".to_owned()));
    assert!(world.log().iter().any(|write| write.who == "DRS" && write.call == "PowerOffVM_Task"));
}

#[tokio::test(start_paused = true)]
async fn strict_admission_control_keeps_the_host_open() {
    // F35, KB 311316: with one host kept for failures, two of the others must stay.
    let rest = format!("          {DRS}\n          vms: [{}]", vm("one", "esx-01", ""));
    for (names, ends) in [("esx-[01-02]", "running"), ("esx-[01-03]", "success")] {
        let strict = document(&hosts(names), &rest).replace("ha: {enabled: true}", "ha: {enabled: true, admission: 1}");
        let raw = Raw::login(&world_of(&strict)).await;
        let config = raw.view("ClusterComputeResource", &["configurationEx"]).await.ok().body;
        assert!(config.contains("<admissionControlEnabled>true<"), "{config}");
        let task = raw.enter(0).await.ok().text("returnval");
        pass(600).await;
        assert_eq!(raw.ended(&task).await, ends, "{names}");
        assert_eq!(faults(&raw).await.contains("InsufficientFailoverResourcesFault"), ends == "running");
    }
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_moves_in_while_we_look_is_on_the_host_and_must_leave_again() {
    let vms = [vm("one", "esx-02", "")];
    let actor = "  actors: [{who: drs, host: esx-01, after: 10s, does: {moveIn: {vm: one}}}]";
    let raw = Raw::login(&world("esx-[01-02]", DRS, &vms, actor)).await;
    pass(75).await;
    assert_eq!(raw.place("one").await.0, "esx-01");
    let task = raw.enter(0).await.ok().text("returnval");
    pass(200).await;
    assert_eq!((raw.ended(&task).await.as_str(), raw.place("one").await.0.as_str()), ("success", "esx-02"));
}

#[tokio::test(start_paused = true)]
async fn a_power_on_under_way_when_the_host_begins_to_close_ends_there_and_is_moved_off() {
    let vms = ["{name: late, host: esx-01, powerOnTakes: 40s, devices: [{vgpu: nvidia_h100l-47c}]}".to_owned()];
    let raw = Raw::login(&world("esx-[01-02]", &DRS.replace("fullyAutomated", "manual"), &vms, "")).await;
    raw.vm("PowerOnVM_Task", "late", "").await.ok();
    pass(5).await;
    let task = raw.enter(0).await.ok().text("returnval");
    pass(60).await;
    assert_eq!(raw.place("late").await, ("esx-01".to_owned(), "poweredOn".to_owned()));
    assert_eq!(raw.ended(&task).await, "running");
    assert_eq!(raw.value("runtime.inMaintenanceMode").await, "false");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_goes_down_takes_its_vms_with_it() {
    let rest = "  actors: [{who: somebody, host: esx-01, does: reboot}]";
    let world = world("esx-[01-02]", DRS, &[vm("one", "esx-01", "")], rest);
    let raw = Raw::login(&world).await;
    pass(600).await;
    assert_eq!(raw.place("one").await, ("esx-01".to_owned(), "poweredOff".to_owned()));
    assert_eq!(raw.vm_task("PowerOnVM_Task", "one", "").await, "success");
}

#[tokio::test(start_paused = true)]
async fn a_world_that_is_saved_in_the_middle_of_a_move_goes_on_from_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lab.yaml");
    let vms = [vm("one", "esx-01", ""), vm("two", "esx-01", "")];
    let rest = format!("          {DRS}\n          vms: [{}]", vms.join(", "));
    std::fs::write(&path, document(&hosts("esx-[01-03]"), &rest)).unwrap();
    let first = World::open(&path).unwrap();
    let raw = Raw::login(&first).await;
    let task = raw.enter(0).await.ok().text("returnval");
    pass(30).await;
    let middle = first.snapshot();
    assert!(middle["vms"].as_object().unwrap().values().any(|vm| vm["goesTo"].is_string()), "{middle}");
    first.save().unwrap();
    drop((first, raw));
    let second = World::open(&path).unwrap();
    assert_eq!(second.snapshot(), middle);
    let raw = Raw::login(&second).await;
    pass(120).await;
    assert_eq!(raw.ended(&task).await, "success");
    let tally = second.tally();
    assert_eq!((tally.vms["one"].moves, tally.vms["two"].moves), (1, 1));
    assert!(tally.vms.values().all(|vm| vm.on && vm.host != "esx-01" && vm.stops + vm.starts == 0));
}

#[tokio::test(start_paused = true)]
async fn a_compute_policy_that_nobody_sees_powers_a_vm_off_and_tries_to_power_it_on_again() {
    for (names, ends) in [("esx-[01-02]", ("esx-02", "poweredOn")), ("esx-01", ("esx-01", "poweredOff"))] {
        let world = world(names, DRS, &[vm("one", "esx-01", ", powerOffPolicy: true")], "");
        let raw = Raw::login(&world).await;
        let task = raw.enter(0).await.ok().text("returnval");
        pass(60).await;
        assert_eq!(raw.ended(&task).await, "success");
        assert_eq!(raw.place("one").await.1, "poweredOff");
        pass(600).await;
        let found = raw.place("one").await;
        assert_eq!((found.0.as_str(), found.1.as_str()), ends);
        let tries = world.log().iter().filter(|write| write.who == "DRS" && write.call == "PowerOnVM_Task").count();
        assert_eq!(tries, if ends.1 == "poweredOn" { 1 } else { 3 }, "every three minutes");
        if ends.1 == "poweredOff" {
            raw.exit().await.ok();
            pass(240).await;
            assert_eq!(raw.place("one").await.1, "poweredOn", "as soon as a host is open");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_of_a_vm_may_be_of_before_its_last_change() {
    let rest = "  faults: [{method: RetrievePropertiesEx, object: one, onCall: 2, times: 9, then: {lie: stale}}]";
    let raw = Raw::login(&world("esx-01", DRS, &[vm("one", "esx-01", "")], rest)).await;
    let id = raw.named("VirtualMachine", "one").await;
    raw.method("PowerOffVM_Task", "VirtualMachine", &id, "").await.ok();
    pass(10).await;
    let power = raw.read("VirtualMachine", &id, &["runtime.powerState"]).await.ok().text("val");
    assert_eq!(power, "poweredOn");
}
