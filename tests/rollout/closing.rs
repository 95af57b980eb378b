//! While a host closes, others want VMs on it. None gets in, or the one that does is named; nothing
//! hangs. What triggers them are our own calls, not a clock.

use poolwright::plan::Plan;
use poolwright::rollout::{Exit, HostPhase, Outcome, RunState};

use super::scene::{Scene, Watch, asked, closed, failure, host_of, marker, watched};
use super::vms::{THREE, scene, trains};
use crate::support::lab::Lab;
use crate::support::look;

/// A VM that is shut down, so that the host is closing for a while, and one that somebody wants to use.
const WITH_IDLE: &str = "[{name: train-1, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}]}, \
    {name: idle-1, host: esx-01}]";
/// The other host has less memory left, so that DRS powers VMs on here.
const WITH_ROOM: &str = "[{name: train-1, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}]}, \
    {name: big-2, host: esx-02, power: on, memoryGiB: 256, reservedGiB: 256}, {name: idle-1, host: esx-02, powerOnTakes: 20s}]";
const WITH_STUCK: &str = "[{name: train-1, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}]}, \
    {name: idle-1, host: esx-01, powerOnTakes: 20s, migrate: false, devices: [{vgpu: nvidia_h100l-23c}]}]";
const WITH_NEIGHBOUR: &str = "[{name: train-1, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}]}, \
    {name: web-2, host: esx-02, power: on}]";

/// DRS leaves these VMs where they are: power-ons, too.
const LEAVES_IDLE: &str = "{level: fullyAutomated, overrides: [{vm: idle-1, enabled: false}]}";
const LEAVES_TRAIN: &str = "{level: fullyAutomated, overrides: [{vm: train-1, enabled: false}]}";

async fn applied(scene: &Scene) -> (Lab, Plan, RunState, Watch) {
    let (lab, plan) = scene.planned().await;
    let (state, watch) = watched(&lab, &plan).await;
    look::assert_within_bounds("closing", &lab, &plan);
    (lab, plan, state.unwrap(), watch)
}

/// What somebody else asked for, and whether the world took it.
fn theirs(lab: &Lab, who: &str) -> Vec<(String, bool)> {
    let log = lab.world.log().into_iter().filter(|write| write.who == who);
    log.map(|write| (write.call, write.effect)).collect()
}

/// The visit went on as if nobody had come.
fn assert_changed(lab: &Lab, state: &RunState) {
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    assert_eq!(host_of(state, 1).phase, HostPhase::Done { outcome: Outcome::Converged });
    let train = &lab.world.tally().vms["train-1"];
    assert_eq!((train.host.as_str(), train.on, train.stops, train.starts), ("esx-01", true, 1, 1));
    assert_eq!((closed(lab, 1), marker(lab, 1)), (false, String::new()));
}

#[tokio::test(start_paused = true)]
async fn a_power_on_where_the_vm_is_is_refused() {
    for faults in ["inTask", "inCall"] {
        let world = format!(
            "readings: {{vmFaults: {faults}}}\n  actors: [{{who: somebody, host: esx-01, \
             once: {{method: EnterMaintenanceMode_Task}}, after: 5s, does: {{powerOn: {{vm: idle-1}}}}}}]"
        );
        let scene = Scene { world: world.leak(), drs: LEAVES_IDLE, ..scene(WITH_IDLE) };
        let (lab, _, state, _) = applied(&scene).await;
        assert_eq!(theirs(&lab, "somebody"), [("PowerOnVM_Task".to_owned(), false)]);
        assert_changed(&lab, &state);
        assert!(!lab.world.tally().vms["idle-1"].on);
    }
}

#[tokio::test(start_paused = true)]
async fn a_power_on_that_drs_places_lands_elsewhere() {
    let world = "actors: [{who: somebody, host: esx-01, once: {method: EnterMaintenanceMode_Task}, after: 5s, \
                 does: {powerOn: {vm: idle-1}}}]";
    let (lab, _, state, _) = applied(&Scene { world, ..scene(WITH_IDLE) }).await;
    assert_eq!(theirs(&lab, "somebody"), [("PowerOnVM_Task".to_owned(), true)]);
    assert_changed(&lab, &state);
    let idle = &lab.world.tally().vms["idle-1"];
    assert_eq!((idle.host.as_str(), idle.on), ("esx-02", true));
}

/// It was queued before the host began to close, so that it gets in: DRS moves it off again, or it is
/// the one that keeps the host from closing, which then is given back.
#[tokio::test(start_paused = true)]
async fn a_power_on_under_way_gets_in_and_is_moved_off_or_named() {
    let world = "actors: [{who: somebody, host: esx-01, once: {method: SetField}, does: {powerOn: {vm: idle-1}}}]";
    let (lab, _, state, _) = applied(&Scene { world, ..scene(WITH_ROOM) }).await;
    assert_eq!(theirs(&lab, "somebody"), [("PowerOnVM_Task".to_owned(), true)]);
    assert_changed(&lab, &state);
    let idle = &lab.world.tally().vms["idle-1"];
    assert_eq!((idle.host.as_str(), idle.on, idle.moves, idle.stops), ("esx-02", true, 1, 0));

    let stuck = Scene { world, drs: LEAVES_IDLE, ..scene(WITH_STUCK) };
    let (lab, _, state, watch) = applied(&stuck).await;
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    assert!(failure(host_of(&state, 1)).contains("idle-1"), "{}", failure(host_of(&state, 1)));
    assert!(watch.waits.lock().unwrap().iter().any(|line| line.contains("still powered on there: idle-1")));
    let vms = lab.world.tally().vms;
    assert_eq!((vms["idle-1"].host.as_str(), vms["idle-1"].on, vms["idle-1"].stops), ("esx-01", true, 0));
    let train = &vms["train-1"];
    assert_eq!((train.host.as_str(), train.on, train.stops, train.starts), ("esx-01", true, 1, 1));
    assert_eq!((asked(&lab, "UpdateGraphicsConfig"), closed(&lab, 1), marker(&lab, 1)), (0, false, String::new()));
}

/// DRS wants to balance the cluster: before the host began to close, and while it closes.
#[tokio::test(start_paused = true)]
async fn a_vm_that_drs_moves_in_does_not_arrive() {
    for (method, taken) in [("SetField", true), ("EnterMaintenanceMode_Task", false)] {
        let world = format!(
            "actors: [{{who: DRS, host: esx-01, once: {{method: {method}}}, does: {{moveIn: {{vm: web-2}}}}}}]"
        );
        let (lab, _, state, _) = applied(&Scene { world: world.leak(), ..scene(WITH_NEIGHBOUR) }).await;
        assert_eq!(theirs(&lab, "DRS"), [("RelocateVM_Task".to_owned(), taken)], "{method}");
        assert_changed(&lab, &state);
        let web = &lab.world.tally().vms["web-2"];
        assert_eq!((web.host.as_str(), web.on, web.moves), ("esx-02", true, 0), "{method}");
    }
}

/// The owner powers our VM on as soon as it is off. Where DRS leaves it alone its host refuses; else it
/// runs elsewhere, which does not count as started again, and is said.
#[tokio::test(start_paused = true)]
async fn a_vm_that_we_stopped_is_not_powered_on_by_its_owner() {
    let world = "actors: [{who: owner, host: esx-01, once: {method: ShutdownGuest, object: train-1}, after: 31s, \
                 does: {powerOn: {vm: train-1}}}]";
    let (lab, _, state, _) = applied(&Scene { world, drs: LEAVES_TRAIN, ..scene(THREE) }).await;
    assert_eq!(theirs(&lab, "owner"), [("PowerOnVM_Task".to_owned(), false)]);
    assert_changed(&lab, &state);

    let (lab, _, state, _) = applied(&Scene { world, ..scene(THREE) }).await;
    assert_eq!(theirs(&lab, "owner"), [("PowerOnVM_Task".to_owned(), true)]);
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    assert!(failure(host_of(&state, 1)).contains("train-1"), "{}", failure(host_of(&state, 1)));
    assert_eq!((closed(&lab, 1), host_of(&state, 1).armed.len()), (false, 1), "{:#?}", host_of(&state, 1).armed);
    for (name, host, on, ..) in trains(&lab) {
        let expected = if name == "train-1" { "esx-02" } else { "esx-01" };
        assert_eq!((host.as_str(), on), (expected, true), "{name}");
    }
}
