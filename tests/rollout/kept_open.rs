//! A host that stays open though a node of it did not pass its gate: nobody takes it up but a person, and a person
//! who does takes nothing down again.

use poolwright::model::NodePhase;
use poolwright::plan::Plan;
use poolwright::rollout::{self, Engine, Exit, StateDir};

use super::nodes::{Nodes, are_free, ours, stands};
use super::scene::{closed, marker, resume};
use crate::support::lab::{Lab, in_memory};
use crate::support::person;

/// The first Job on gpu-a fails; then somebody mends it.
const MENDED: &str = "{name: k8s-a, address: \"https://k8s-a.lab:6443\", nodes: [{name: spare-a, gpus: 4}], \
      containers: [{image: \"cuda-vector-add*\", node: gpu-a, ends: {fails: 7}, times: 1}]}, \
    {name: k8s-b, address: \"https://k8s-b.lab:6443\", nodes: [{name: spare-b, gpus: 4}]}";

async fn kept_open() -> (Lab, Plan) {
    let rollout = "maxUnavailable: 1, maxReboots: 2, onValidationFailure: keepOpen";
    let (lab, plan) = Nodes { clusters: MENDED, rollout, ..Nodes::default() }.planned().await;
    assert_eq!(lab.apply(&plan).await.unwrap().exit(), Exit::HostsLeft);
    stays(&lab);
    (lab, plan)
}

/// It is open, marked, its VMs run, and its nodes are cordoned.
fn stays(lab: &Lab) {
    assert!(!closed(lab, 1) && marker(lab, 1).contains("\"failed\""), "{}", marker(lab, 1));
    assert!(lab.world.tally().vms.values().all(|vm| vm.on && vm.stops == 1), "{:#?}", lab.world.tally());
    assert_eq!(stands(lab, "k8s-a", "gpu-a"), (true, Some(NodePhase::Failed)));
    assert!(stands(lab, "k8s-b", "gpu-b").0);
}

fn jobs(lab: &Lab) -> usize {
    ours(lab).into_iter().filter(|(call, id)| call == "create jobs" && id.starts_with("k8s-a/")).count()
}

#[tokio::test(start_paused = true)]
async fn nobody_takes_it_up_by_itself_with_its_journal_or_without() {
    let (lab, plan) = kept_open().await;
    let writes = lab.world.log().len();
    assert_eq!(resume(&lab).await.exit(), Exit::HostsLeft);
    let elsewhere = in_memory();
    let state = StateDir::open(elsewhere.path()).unwrap();
    let again = async |engine: Engine<'_>| rollout::resume_from_live(engine, &plan).await;
    assert_eq!(person::with(&lab, Some(&state), again).await.unwrap().exit(), Exit::HostsLeft);
    stays(&lab);
    assert_eq!((lab.world.log().len(), jobs(&lab)), (writes, 1), "nothing is written");
}

#[tokio::test(start_paused = true)]
async fn a_person_who_asks_for_it_again_has_it_validated_and_nothing_stopped() {
    let (lab, plan) = kept_open().await;
    let (run, name) = (lab.state.runs().unwrap().remove(0), plan.order[0].clone());
    let state = lab.run(async |engine| rollout::retry(engine, &run, &name).await).await.unwrap();
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    are_free(&lab);
    assert_eq!((closed(&lab, 1), marker(&lab, 1), jobs(&lab)), (false, String::new(), 2));
    assert!(lab.world.tally().vms.values().all(|vm| vm.on && vm.stops == 1), "{:#?}", lab.world.tally());
}
