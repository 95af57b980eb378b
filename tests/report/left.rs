//! The hand-over card of hosts that an engine has left, in the simulated fleet: it says what is so there.

use poolwright::plan::Plan;
use poolwright::report::{self, Again, Handover, Paper};
use poolwright::rollout::RunState;

use crate::rollout::nodes::{BAD_GPU, Nodes, OFF_AT_THE_END};
use crate::rollout::scene::{closed, host_of};
use crate::support::lab::Lab;

/// The card of the only host, as data and in the report of the run.
fn card(state: &RunState, plan: &Plan) -> (Handover, String) {
    let card = Handover::of(state, &plan.order[0], host_of(state, 1), Some(plan)).unwrap();
    let mut paper = Paper::new();
    report::run(&mut paper, state, Some(plan), &Again::default(), None);
    (card, paper.render(false))
}

async fn validation_fails(rollout: &'static str) -> (Lab, Handover, String) {
    let (lab, plan) = Nodes { clusters: BAD_GPU, rollout, ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    let (card, text) = card(&state, &plan);
    (lab, card, text)
}

fn starts(card: &Handover) -> Vec<&str> {
    let lines = card.steps.iter().flat_map(|step| std::iter::once(&step.does).chain(&step.commands));
    lines.map(String::as_str).filter(|line| line.starts_with("start ") || line.contains("vm.power -on")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_kept_open_has_its_nodes_to_be_seen_to_and_nothing_else() {
    let rollout = "maxUnavailable: 1, maxReboots: 2, onValidationFailure: keepOpen";
    let (lab, card, text) = validation_fails(rollout).await;
    assert!(!closed(&lab, 1) && lab.world.tally().vms.values().all(|vm| vm.on), "it is open, and its VMs run");
    let value = serde_json::to_value(&card).unwrap();
    let open: Vec<&str> = value["notPutBack"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert_eq!(open.len(), 2, "{open:#?}");
    assert!(open.iter().all(|line| line.starts_with("cordon of the node gpu-")), "{open:#?}");
    assert_eq!(starts(&card), Vec::<&str>::new(), "{text}");
    assert!(card.steps[0].does.starts_with("wait for the node"), "{text}");
    assert_eq!(text.matches("not put back: ").count(), 2, "{text}");
    assert!(!text.contains("not put back: power") && !text.contains("not put back: maintenance"), "{text}");
}

/// One that was to be closed again, and is not, since a node of it serves: the VM of that node runs, the other's is off.
#[tokio::test(start_paused = true)]
async fn a_host_that_stays_open_has_no_vm_to_be_started_that_runs() {
    let (lab, plan) = Nodes { world: OFF_AT_THE_END, ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    let (card, text) = card(&state, &plan);
    assert!(!closed(&lab, 1) && lab.world.tally().vms["vm-1"].on && !lab.world.tally().vms["vm-2"].on, "{text}");
    let starts = starts(&card);
    assert!(starts.len() == 2 && starts[0] == "start vm-2", "{starts:?} {text}");
    assert!(!text.contains("not put back: maintenance") && !text.contains("(vm-1)"), "{text}");
}

/// Its neighbour: closed again, all of it is to be put back.
#[tokio::test(start_paused = true)]
async fn a_host_that_is_closed_again_has_all_of_it_to_be_put_back() {
    let (lab, card, text) = validation_fails("maxUnavailable: 1, maxReboots: 2").await;
    assert!(closed(&lab, 1) && !lab.world.tally().vms["vm-1"].on, "it is closed again");
    assert_eq!(card.not_put_back.len(), 5, "{text}");
    assert_eq!(starts(&card).len(), 4, "both VMs, each with its line to paste: {text}");
}

/// The object that the plan knows is gone: whoever sees to the node is told of the one that is there.
#[tokio::test(start_paused = true)]
async fn a_node_that_registered_anew_is_named_by_the_object_that_is_there() {
    let world = "actors: [{who: anna, once: {method: PowerOnVM_Task, object: vm-1}, after: 5s, \
                 does: {deleteObject: {cluster: k8s-a, object: nodes/gpu-a}}}]";
    let (lab, plan) = Nodes { clusters: BAD_GPU, world, ..Nodes::default() }.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    let (card, text) = card(&state, &plan);
    let fates = plan.hosts[0].fates.iter().filter_map(|fate| fate.node.as_ref());
    let before = &fates.into_iter().find(|node| node.name == "gpu-a").unwrap().uid;
    let now = &host_of(&state, 1).renewed[0].node.uid;
    let whole = serde_json::to_string(&card).unwrap();
    assert!(whole.contains(now) && !whole.contains(before), "{before} {now}: {whole}");
    assert_eq!(whole.matches("cordon of the node gpu-a").count(), 1, "{whole}");
    let told = format!("the node gpu-a of k8s-a was deleted, and registered anew ({now}) before it passed its gate");
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains(&told), "{text}");
}
