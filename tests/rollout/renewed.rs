//! A node whose object is deleted, as software of clouds and autoscalers does while its machine is off, and which
//! registers anew at its boot: the same machine under another UID, open to pods on GPUs that nobody has proven.

use poolwright::model::NodePhase;
use poolwright::rollout::{self, Compensation, Event, Exit, HostPhase, Outcome, RunState};

use super::nodes::{BAD_GPU, CLUSTERS, Nodes, are_free, stands};
use super::scene::{asked, closed, failure, host_of, interrupted, marker, resume, watched};
use crate::support::lab::Lab;

/// In a world in which anna deletes that node so long after its VM was started.
fn deletes(node: &str, vm: &str, after: &str) -> &'static str {
    let (cluster, name) = node.split_once('/').unwrap();
    let does = format!("deleteObject: {{cluster: {cluster}, object: nodes/{name}}}");
    let once = format!("{{method: PowerOnVM_Task, object: {vm}}}");
    Box::leak(format!("actors: [{{who: anna, once: {once}, after: {after}, does: {{{does}}}}}]").into_boxed_str())
}

async fn uid(lab: &Lab, cluster: &str, name: &str) -> String {
    let fleet = lab.connect().await;
    let node = fleet.guest(cluster).unwrap().node(name).await.unwrap().expect("it is there");
    fleet.close().await.unwrap();
    node.node.uid
}

/// What the final report and the live view say of it.
fn told(state: &RunState) -> Vec<String> {
    host_of(state, 1).renewed.iter().map(|of| format!("{} {}", of.node, of.node.uid)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_node_that_registers_anew_is_cordoned_at_once_and_proven_before_it_is_opened() {
    for (node, vm) in [("k8s-a/gpu-a", "vm-1"), ("k8s-b/gpu-b", "vm-2")] {
        let (cluster, name) = node.split_once('/').unwrap();
        // The other one takes its time: its turn comes late, or it waits for this one.
        let vms = "[{name: vm-1, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}], \
              node: {cluster: k8s-a, name: gpu-a, boot: {ready: 1m, gpus: 9m}}}, \
            {name: vm-2, host: esx-01, power: on, migrate: false, devices: [{vgpu: nvidia_h100l-23c}], node: {cluster: k8s-b, name: gpu-b, boot: {ready: 1m}}}]";
        let (lab, plan) = Nodes { vms, world: deletes(node, vm, "5s"), ..Nodes::default() }.planned().await;
        let before = uid(&lab, cluster, name).await;
        let (state, watch) = watched(&lab, &plan).await;
        let state = state.unwrap();
        assert_eq!(state.exit(), Exit::Done, "{state:#?}");
        are_free(&lab);
        let now = uid(&lab, cluster, name).await;
        assert!(now != before && !now.is_empty(), "{before} {now}");
        assert_eq!(told(&state), [format!("{name} of {cluster} {now}")]);
        assert_eq!((marker(&lab, 1), host_of(&state, 1).armed.as_slice()), (String::new(), &[][..]));
        // It registers a minute after its VM is on, and somebody looks every few seconds.
        let log = lab.world.log();
        let on = log.iter().find(|write| write.call == "PowerOnVM_Task" && write.object == vm).unwrap().at;
        let id = format!("{cluster}/nodes/{name}");
        let again = log.iter().find(|write| write.id == id && write.at > on && write.call == "patch nodes").unwrap();
        let took = again.at.duration_since(on).as_secs();
        assert!((60..85).contains(&took) && again.effect, "{took} s, {}", again.arguments);
        // The Job ran on the new object, and nothing was opened before.
        let renewed = watch.events().iter().position(|event| matches!(event, Event::NodeRenewed { .. })).unwrap();
        let passed = |event: &Event| matches!(event, Event::GateRead { subject, evidence, .. } if subject.contains(name) && evidence.contains("has completed"));
        assert!(watch.events().iter().position(passed).unwrap() > renewed);
        assert_eq!(asked(&lab, "ShutdownGuest"), 2);
    }
}

/// Somebody is faster than we are: the new object is cordoned before we have seen it, and stays so at the end.
#[tokio::test(start_paused = true)]
async fn e03_a_node_that_registers_anew_and_is_cordoned_by_somebody_stays_so() {
    let once = "once: {method: PowerOnVM_Task, object: vm-1}";
    let world = format!(
        "actors: [{{who: anna, {once}, after: 5s, does: {{deleteObject: {{cluster: k8s-a, object: nodes/gpu-a}}}}}}, \
         {{who: anna, {once}, after: 70300ms, does: {{cordon: {{cluster: k8s-a, node: gpu-a}}}}}}]"
    );
    let (lab, plan) = Nodes { world: world.leak(), ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    let log = lab.world.log();
    let hers = log.iter().rposition(|write| write.who == "anna" && write.call == "patch nodes" && write.effect);
    let ours = log.iter().rposition(|write| write.id == "k8s-a/nodes/gpu-a" && write.who == "kubernetes-admin");
    assert!(hers.is_some() && hers < ours && told(&state).len() == 1, "{log:#?}");
    assert_eq!(stands(&lab, "k8s-a", "gpu-a"), (true, None));
    assert_eq!(stands(&lab, "k8s-b", "gpu-b"), (false, None));
}

/// As any node that does not pass: its host is closed again, and a person is told of the object that is there.
#[tokio::test(start_paused = true)]
async fn a_node_that_registers_anew_and_does_not_pass_closes_its_host() {
    let world = deletes("k8s-a/gpu-a", "vm-1", "5s");
    let (lab, plan) = Nodes { clusters: BAD_GPU, world, ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    assert!(failure(host_of(&state, 1)).contains("CUDA error 719"), "{state:#?}");
    let now = uid(&lab, "k8s-a", "gpu-a").await;
    let is_closed = |lab: &Lab| {
        assert!(closed(lab, 1) && !lab.world.tally().vms["vm-1"].on);
        assert_eq!(stands(lab, "k8s-a", "gpu-a"), (true, Some(NodePhase::Failed)));
        assert!(marker(lab, 1).contains(&now), "{} does not list {now}", marker(lab, 1));
    };
    is_closed(&lab);
    let HostPhase::Failed { left_as: Some(left), .. } = &host_of(&state, 1).phase else { panic!("{state:#?}") };
    let uids: Vec<&str> = left
        .uncompensated
        .iter()
        .filter_map(|comp| match comp {
            Compensation::Node(node) if node.name == "gpu-a" => Some(node.uid.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(uids, [now.as_str()]);
    // A retry goes on with the object that is there, and so does who gives it up.
    let (run, name) = (state.run.clone(), plan.order[0].clone());
    let state = lab.run(async |engine| rollout::retry(engine, &run, &name).await).await.unwrap();
    assert!(failure(host_of(&state, 1)).contains("CUDA error 719"), "{state:#?}");
    is_closed(&lab);
    let state = lab.run(async |engine| rollout::give_up(engine, &run, &name).await).await.unwrap();
    assert_eq!(host_of(&state, 1).phase, HostPhase::Done { outcome: Outcome::GivenUp }, "{state:#?}");
    assert_eq!((stands(&lab, "k8s-a", "gpu-a"), marker(&lab, 1)), ((true, None), String::new()));
}

/// Whoever goes on after a death, between the write and its line too, finds one node, not two.
#[tokio::test(start_paused = true)]
async fn a_death_in_the_renewal_leaves_one_node() {
    type Dies = fn(&Event) -> u32;
    let at: [Dies; 2] = [
        |event| if matches!(event, Event::NodeRenewed { .. }) { 2 } else { 0 },
        |event| match event {
            Event::Armed { comp: Compensation::Node(node) } if node.name == "gpu-a" => 2,
            _ => 0,
        },
    ];
    for (number, dies) in at.into_iter().enumerate() {
        let world = deletes("k8s-a/gpu-a", "vm-1", "5s");
        let (lab, plan) = Nodes { world, ..Nodes::default() }.planned().await;
        let before = uid(&lab, "k8s-a", "gpu-a").await;
        let is_new = move |event: &Event| match event {
            Event::Armed { comp: Compensation::Node(node) } if node.uid == before => 0,
            event => dies(event),
        };
        let state = interrupted(&lab, &plan, is_new).await;
        assert_ne!(state.exit(), Exit::Done, "{number}");
        let state = resume(&lab).await;
        assert_eq!(state.exit(), Exit::Done, "{number}: {state:#?}");
        are_free(&lab);
        assert_eq!((marker(&lab, 1), host_of(&state, 1).armed.as_slice()), (String::new(), &[][..]), "{number}");
    }
}

/// What was on it went with it, and its kubelet, which runs, registers no other.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_deleted_before_its_host_closes_gives_the_host_back() {
    let world = "actors: [{who: anna, once: {method: \"patch nodes\", object: k8s-a/nodes/gpu-a}, after: 5s, \
                 does: {deleteObject: {cluster: k8s-a, object: nodes/gpu-a}}}]";
    let (lab, plan) = Nodes { clusters: CLUSTERS, world, ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft, "{state:#?}");
    assert!(failure(host_of(&state, 1)).starts_with("draining"));
    assert_eq!((marker(&lab, 1), closed(&lab, 1)), (String::new(), false), "{state:#?}");
    assert_eq!(stands(&lab, "k8s-b", "gpu-b"), (false, None));
    assert_eq!(host_of(&state, 1).armed, []);
    assert_eq!((asked(&lab, "EnterMaintenanceMode_Task"), asked(&lab, "ShutdownGuest")), (0, 0));
    let told = &host_of(&state, 1).left_alone;
    assert!(told.iter().any(|(_, found)| found.contains("is not there any more")), "{told:?}");
}
