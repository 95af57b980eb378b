//! MIG that goes by itself, and GPUs that somebody uses.

use std::time::Duration;

use poolwright::plan::{Impact, Reason};
use poolwright::rollout::{self, Exit, HostPhase, RunState};

use super::site::{MIG, Site};
use crate::support::lab::{Lab, USER};
use crate::support::look;

const HOPPER: &str = "h100-nvl-94";
const AMPERE: &str = "a100-pcie-80";
const SWITCH: &str = "nvidia-smi -mig";

fn ours(lab: &Lab, call: &str) -> usize {
    lab.world.log().iter().filter(|write| write.call == call && [USER, "root"].contains(&write.who.as_str())).count()
}

/// Whether MIG is in effect on all GPUs of the host, and will be.
fn is_on(lab: &Lab) -> bool {
    let gpus = look::gpus(&lab.world.snapshot(), "esx-01");
    gpus.iter().all(|gpu| gpu.whole["graphics"]["mig"] == true && gpu.whole["graphics"]["migPending"] == true)
}

/// Somebody reboots the host: MIG of Hopper is lost, and is set again without another reboot; that of a
/// board of Ampere is still there.
#[tokio::test(start_paused = true)]
async fn a23_mig_that_a_foreign_reboot_took_is_set_again_without_a_reboot() {
    let world = "actors: [{who: somebody, host: esx-01, after: 1h, does: reboot}]";
    for (model, lost) in [(HOPPER, true), (AMPERE, false)] {
        let site = Site { world, ..Site::of("8.0.3", model, (MIG, MIG), "{}") };
        let lab = site.lab();
        let reasons: Vec<Reason> = lab.plan().await.not_acted.iter().map(|not| not.reason).collect();
        assert_eq!(reasons, [Reason::Converged], "{model}: before");
        tokio::time::sleep(Duration::from_secs(2 * 3600)).await;
        assert_eq!((lab.world.tally().hosts["esx-01"].boots, is_on(&lab)), (1, !lost), "{model}");

        let plan = lab.plan().await;
        if !lost {
            let reasons: Vec<Reason> = plan.not_acted.iter().map(|not| not.reason).collect();
            assert_eq!(reasons, [Reason::Converged], "{model}: {:#?}", plan.hosts);
            continue;
        }
        let host = &plan.hosts[0];
        assert_eq!((host.impact, host.reboots.most), (Impact::Maintenance, 0), "{:#?}", host.reboots);
        let text = String::from_utf8(plan.to_bytes()).unwrap();
        assert!(text.contains("lost at every reboot") || text.contains("not survive"), "{text}");
        site.apply(model, &lab, plan).await;
        assert!(is_on(&lab));
        assert_eq!((ours(&lab, "RebootHost_Task"), lab.world.tally().hosts["esx-01"].boots), (0, 1));
    }
}

/// The world of A24: what happens at the shell when MIG is switched.
async fn a24(world: &str) -> (Lab, RunState) {
    let lab = Site { world, ..Site::of("8.0.3", HOPPER, (1, MIG), "{}") }.lab();
    let plan = lab.plan().await;
    let state = lab.apply(&plan).await.unwrap();
    look::assert_within_bounds("a24", &lab, &plan);
    (lab, state)
}

/// So many switches have no effect, and `nvidia-smi` says that the GPU is in use.
fn in_use(times: u32) -> String {
    let said = "Warning: MIG mode is in pending enable state for GPU 00000000:17:00.0:In use by another client";
    let rule = |then: &str| format!("{{face: ssh, method: {SWITCH}, times: {times}, then: {then}}}");
    format!("faults: [{}, {}]", rule("{lie: noEffect}"), rule(&format!("{{prints: \"{said}\"}}")))
}

/// NVIDIA's daemon is started again by somebody while it has to be off: it is stopped again.
#[tokio::test(start_paused = true)]
async fn a24_a_daemon_that_somebody_starts_again_is_stopped_again() {
    // After its stop is verified, and before the next step, which a slow server keeps waiting.
    let world = "actors: [{who: somebody, host: esx-01, once: {method: nvdGpuMgmtDaemon}, after: 2s, \
                 does: {shell: {command: nvdGpuMgmtDaemon start}}}]\n  faults: [{method: CurrentTime, times: 99, then: {delay: 3s}}]";
    let (lab, state) = a24(world).await;
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    assert!(is_on(&lab));
    look::assert_shells_as_before("a24", &lab);
    assert!(ours(&lab, "nvdGpuMgmtDaemon") >= 3, "stopped twice, started once: {:#?}", lab.world.log());
}

/// A program that nobody can name is waited for, and MIG is switched once it is gone.
#[tokio::test(start_paused = true)]
async fn a24_a_gpu_in_use_for_a_while_is_tried_again_when_it_is_free() {
    let (lab, state) = a24(&in_use(2)).await;
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    assert!(is_on(&lab));
    assert_eq!(ours(&lab, SWITCH), 4, "once for each GPU, and once more");
    look::assert_shells_as_before("a24", &lab);
}

/// One that stays: the host is held in maintenance and says so. What was stopped for it is put back.
#[tokio::test(start_paused = true)]
async fn a24_a_gpu_that_stays_in_use_holds_the_host_in_maintenance() {
    let (lab, state) = a24(&in_use(9999)).await;
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    let HostPhase::Failed { error, left_as: Some(left), .. } = &state.hosts[&"esx-01".into()].phase else {
        panic!("{state:#?}")
    };
    assert!(error.contains("in use by") && error.contains("In use by another client"), "{error}");
    assert_eq!((left.maintenance, left.marker), (Some(true), true), "{left:?}");
    assert_eq!((is_on(&lab), ours(&lab, "ExitMaintenanceMode_Task")), (false, 0));
    look::assert_shells_as_before("a24", &lab);

    // Gone after as many tries, it does not come back: a retry goes on from there.
    let tries = u32::try_from(ours(&lab, SWITCH)).unwrap();
    let (lab, state) = a24(&in_use(tries)).await;
    assert_eq!((state.exit(), is_on(&lab)), (Exit::HostsLeft, false));
    let (run, host) = (state.run, "esx-01".into());
    let state = lab.run(async |engine| rollout::retry(engine, &run, &host).await).await.unwrap();
    assert_eq!((state.exit(), is_on(&lab)), (Exit::Done, true), "{state:#?}");
    assert_eq!(ours(&lab, "EnterMaintenanceMode_Task"), 1);
}
