//! `nvidia-smi -mig` as the simulator has it (DESIGN §3, honesty rule 6): what it says is no proof.

use poolwright::model::{PciAddress, Switch};
use poolwright::shell::{Command, End, Output, Shell, read_gpus};
use poolwright::sim::World;
use serde_json::Value;

use super::{host, open, shell, world, world_with};
use crate::sim::raw::Raw;

const GPU: &str = "0000:17:00.0";

fn gpu() -> PciAddress {
    GPU.parse().unwrap()
}

fn gpus(model: &str, mode: &str) -> String {
    format!("{{model: {model}, addresses: [\"{GPU}\"], mode: {mode}}}")
}

const SAME: &str = "{vgpu: {size: same}}";

async fn mig(shell: &Shell, on: bool) -> Output {
    shell.run(Command::SetMig { gpu: gpu(), on }).await.unwrap()
}

async fn state(shell: &Shell) -> Switch {
    read_gpus(shell).await.unwrap().gpus.remove(&gpu()).unwrap().mig
}

fn is(switch: &Switch, current: bool, pending: bool) {
    assert_eq!((switch.current.known(), switch.pending.known()), (Some(&current), Some(&pending)));
}

/// What the world has of the GPU.
fn graphics(world: &World) -> Value {
    let snapshot = world.snapshot();
    let hosts = snapshot["hosts"].as_object().unwrap();
    let devices = hosts.values().next().unwrap()["devices"].as_array().unwrap().clone();
    devices.into_iter().find(|device| device["address"] == GPU).unwrap()["graphics"].clone()
}

#[tokio::test(start_paused = true)]
async fn of_hopper_it_takes_effect_at_once_when_nobody_uses_the_gpu() {
    let world = world(&host("esx-01", &gpus("h100-nvl-94", SAME), &shell(", monitor: stopped")));
    let shell = open(&world, "esx-01").await.unwrap();
    let output = mig(&shell, true).await;
    assert_eq!(output.stdout, "Enabled MIG Mode for GPU 00000000:17:00.0\nAll done.\n");
    is(&state(&shell).await, true, true);
    // hostd looks when it is told to.
    assert_eq!(graphics(&world)["mode"], "sameSize");
    let raw = Raw::login(&world).await;
    let host = raw.host("esx-01").await;
    let manager = host.replace("host-", "graphicsManager-");
    raw.method("RefreshGraphicsManager", "HostGraphicsManager", &manager, "").await.ok();
    assert_eq!(graphics(&world)["mode"], "multiInstanceGpu");
    mig(&shell, false).await;
    is(&state(&shell).await, false, false);
}

#[tokio::test(start_paused = true)]
async fn a_reading_of_the_world_shows_it_in_vcenter_at_once() {
    let host = host("esx-01", &gpus("h100-nvl-94", SAME), &shell(", monitor: stopped"));
    let world = world_with("  readings: {migVisible: atOnce}\n", &host);
    let shell = open(&world, "esx-01").await.unwrap();
    mig(&shell, true).await;
    assert_eq!(graphics(&world)["mode"], "multiInstanceGpu");
    mig(&shell, false).await;
    assert_eq!(graphics(&world)["mode"], "sameSize");
}

/// A24: it says "All done." and exits with 0, and nothing is done.
#[tokio::test(start_paused = true)]
async fn a24_in_use_by_the_monitoring_daemon_it_only_waits() {
    let world = world(&host("esx-01", &gpus("h100-nvl-94", SAME), &shell("")));
    let shell = open(&world, "esx-01").await.unwrap();
    let output = mig(&shell, true).await;
    assert!(output.stdout.contains("In use by another client") && output.stdout.ends_with("All done.\n"), "{output:?}");
    assert_eq!(output.end, End::Exit(0));
    is(&state(&shell).await, false, true);
    // With the daemon stopped, and asked again, it is done; and the daemon starts again.
    shell.run(Command::StopMonitor).await.unwrap();
    is(&state(&shell).await, false, true);
    mig(&shell, true).await;
    is(&state(&shell).await, true, true);
    let started = shell.run(Command::StartMonitor).await.unwrap();
    assert_eq!(started.end, End::Exit(0));
    let status = shell.run(Command::MonitorStatus).await.unwrap();
    assert_eq!((status.stdout.as_str(), status.end), ("nvdGpuMgmtDaemon is running\n", End::Exit(0)));
    let writes: Vec<String> = world.log().iter().map(|write| format!("{} {}", write.call, write.arguments)).collect();
    assert_eq!(
        writes,
        [
            "nvidia-smi -mig -i 0000:17:00.0 -mig 1",
            "nvdGpuMgmtDaemon stop",
            "nvidia-smi -mig -i 0000:17:00.0 -mig 1",
            "nvdGpuMgmtDaemon start",
        ]
    );
}

/// A24, its neighbour: a VM that runs on the GPU keeps it in use, whoever else has gone.
#[tokio::test(start_paused = true)]
async fn a24_in_use_by_a_vm_it_only_waits() {
    let host = host("esx-01", &gpus("h100-nvl-94", SAME), &shell(", monitor: absent"));
    let vms = "          vms: [{name: one, host: esx-01, power: on, devices: [{vgpu: nvidia_h100l-94c}]}]\n";
    let world = world(&(host + vms));
    let shell = open(&world, "esx-01").await.unwrap();
    assert_eq!(shell.run(Command::StopMonitor).await.unwrap().end, End::Exit(127));
    assert!(mig(&shell, true).await.stdout.contains("In use by another client"));
    is(&state(&shell).await, false, true);
}

/// Reboots the only host, as somebody who may.
async fn reboot(world: &World) {
    Raw::login(world).await.host_method("RebootHost_Task", "<force>true</force>").await.ok();
    tokio::time::sleep(std::time::Duration::from_secs(20 * 60)).await;
}

/// A23: of Hopper and later MIG lives in the driver.
#[tokio::test(start_paused = true)]
async fn a23_a_reboot_takes_mig_from_hopper_and_leaves_it_to_ampere() {
    for (model, kept) in [("h100-nvl-94", false), ("a100-pcie-40", true)] {
        let policy = shell("").replace("policy: off", "policy: on");
        let world = world(&host("esx-01", &gpus(model, "{migVgpu: {}}"), &policy));
        let shell = open(&world, "esx-01").await.unwrap();
        is(&state(&shell).await, true, true);
        reboot(&world).await;
        let shell = open(&world, "esx-01").await.unwrap();
        is(&state(&shell).await, kept, kept);
        assert_eq!(graphics(&world)["mode"], if kept { "multiInstanceGpu" } else { "sameSize" });
    }
}

#[tokio::test(start_paused = true)]
async fn of_ampere_it_waits_for_the_reboot_both_ways() {
    let more = shell(", monitor: absent").replace("policy: off", "policy: on");
    let world = world(&host("esx-01", &gpus("a100-pcie-40", SAME), &more));
    for on in [true, false] {
        let shell = open(&world, "esx-01").await.unwrap();
        let output = mig(&shell, on).await;
        assert!(output.stdout.contains("Reboot the system") && output.end == End::Exit(0), "{output:?}");
        is(&state(&shell).await, !on, on);
        reboot(&world).await;
        let shell = open(&world, "esx-01").await.unwrap();
        is(&state(&shell).await, on, on);
        assert_eq!(graphics(&world)["mode"], if on { "multiInstanceGpu" } else { "sameSize" });
    }
}

/// F30: what a guest left on a board comes to light when the driver owns the GPU.
#[tokio::test(start_paused = true)]
async fn a_guest_leaves_the_bit_of_the_board() {
    let gpus = format!(
        "{{model: a100-pcie-40, addresses: [\"{GPU}\"], migLeft: true, mode: {{passthrough: {{}}}}, pending: {SAME}}}"
    );
    let world = world(&host("esx-01", &gpus, &shell("").replace("policy: off", "policy: on")));
    reboot(&world).await;
    is(&state(&open(&world, "esx-01").await.unwrap()).await, true, true);
    assert_eq!(graphics(&world)["mode"], "multiInstanceGpu");
}

#[tokio::test(start_paused = true)]
async fn a_gpu_that_does_not_know_mig_refuses() {
    let world = world(&host("esx-01", &gpus("l40s", SAME), &shell(", monitor: stopped")));
    let shell = open(&world, "esx-01").await.unwrap();
    let output = mig(&shell, true).await;
    assert!(output.stdout.contains("Not Supported") && output.end == End::Exit(3), "{output:?}");
    let view = read_gpus(&shell).await.unwrap();
    assert!(view.gpus[&gpu()].mig.current.is_absent());
}

/// F31: a lie. It says that it is done and has done nothing.
#[tokio::test(start_paused = true)]
async fn a_lie_is_seen_only_by_reading_again() {
    let faults = "  faults: [{face: ssh, method: nvidia-smi -mig, then: {lie: noEffect}}]\n";
    let world = world_with(faults, &host("esx-01", &gpus("h100-nvl-94", SAME), &shell(", monitor: stopped")));
    let shell = open(&world, "esx-01").await.unwrap();
    assert!(mig(&shell, true).await.stdout.starts_with("Enabled MIG Mode"));
    is(&state(&shell).await, false, false);
    assert!(world.log().iter().all(|write| !write.effect));
}

/// A host that goes down takes its connections along.
#[tokio::test(start_paused = true)]
async fn a_reboot_breaks_the_session_and_stops_a_service_that_was_started_by_hand() {
    let world = world(&host("esx-01", &gpus("h100-nvl-94", SAME), &shell("")));
    let shell = open(&world, "esx-01").await.unwrap();
    reboot(&world).await;
    assert!(shell.run(Command::MonitorStatus).await.is_err());
    let error = open(&world, "esx-01").await.unwrap_err();
    assert!(super::told(&error).contains("refuses connections"), "{error:?}");
}
