//! The client against the simulated cluster, over its wire and in its time.

use std::net::Ipv4Addr;
use std::time::Duration;

use poolwright::base::clock::Clock;
use poolwright::base::net::{NetError, RealNetwork};
use poolwright::k8s::{Access, Client, Drain, Error, JobLook, JobRun, Patched, Release, Round};
use poolwright::model::{Fact, NodeMark, NodeView, RunId};
use poolwright::sim::{SimNetwork, World, kubeconfig, serve_guests};
use serde_json::json;

use super::nodes::mark;

struct Lab {
    world: World,
    client: Client,
    clock: Clock,
}

impl Lab {
    /// Two nodes that are VMs, and one that is not; `guest` is added to the cluster.
    async fn new(guest: &str, rest: &str) -> Self {
        let text = format!(
            "apiVersion: poolwright/v1
kind: World
metadata: {{name: lab}}
spec:
  now: 2026-11-30T20:00:00Z
  vcenter: {{address: vc.lab, users: [{{name: pw@vsphere.local, password: lab}}]}}
  datacenters:
    - path: /DC
      clusters:
        - name: gpu-a
          hosts:
            - {{names: \"esx-[01-02]\", driver: {{component: NVD-AIE-800, version: 580.95.02}}, gpus: [{{model: h100-nvl-94, count: 2, addresses: [\"0000:17:00.0\", \"0000:65:00.0\"], mode: {{passthrough: {{}}}}}}]}}
          vms:
            - {{name: vm-1, host: esx-01, power: on, devices: [{{directPath: \"0000:17:00.0\"}}, {{directPath: \"0000:65:00.0\"}}], extra: {{pciPassthru.use64bitMMIO: \"TRUE\", pciPassthru.64bitMMIOSizeGB: \"512\"}}, node: {{cluster: k8s, name: serve-1}}}}
            - {{name: vm-2, host: esx-02, power: on, devices: [{{directPath: \"0000:17:00.0\"}}], extra: {{pciPassthru.use64bitMMIO: \"TRUE\", pciPassthru.64bitMMIOSizeGB: \"512\"}}, node: {{cluster: k8s, name: serve-2}}}}
  guests:
    - name: k8s
      address: https://k8s.lab:6443
      nodes: [{{name: other-1, gpus: 2}}]
{guest}
{rest}
"
        );
        let world = World::parse("lab.world.yaml", text.as_bytes()).unwrap();
        let clock = Clock::starting_at("2026-11-30T20:00:00Z".parse().unwrap());
        let access = Access::parse(&kubeconfig(&world, &[]), Some("k8s"), None).unwrap();
        let client = Client::connect("k8s", &access, &SimNetwork::new(world.clone())).await.unwrap();
        Self { world, client, clock }
    }

    async fn node(&self, name: &str) -> NodeView {
        self.client.node(name).await.unwrap().unwrap()
    }

    /// A drain of a node, cordoned.
    async fn draining(&self, name: &str) -> Drain {
        let view = self.node(name).await;
        let patched = self.client.cordon(&view.node, &view.version, &mark()).await.unwrap();
        assert!(matches!(&patched, Patched::Done(node) if node.unschedulable), "{patched:?}");
        Drain::new(self.client.clone(), view.node, mark())
    }

    /// Rounds until it is empty or lost, with all that it waited for; at most `most` seconds.
    async fn drained(&self, drain: &mut Drain, most: u64) -> (Result<Vec<String>, String>, Vec<String>) {
        let start = tokio::time::Instant::now();
        let mut waited = Vec::new();
        while start.elapsed() < Duration::from_secs(most) {
            match drain.round(self.clock.now()).await.unwrap() {
                Round::Empty { evidence } => return (Ok(evidence), waited),
                Round::Lost { found } => return (Err(found), waited),
                Round::Busy { waiting_for } => {
                    waited.extend(waiting_for.into_iter().filter(|line| !line.contains("ends by")));
                    waited.dedup();
                }
            }
            drain.wait(Duration::from_secs(10)).await;
        }
        panic!("not empty within {most} s: {waited:#?}");
    }

    async fn job(&self, node: &str, gpus: u32, image: &str) -> JobLook {
        let NodeView { node, boot_id, .. } = self.node(node).await;
        let container =
            json!({ "name": "check", "image": image, "resources": { "limits": { "nvidia.com/gpu": gpus } } });
        let template = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "spec": { "template": { "spec": { "containers": [container] } } },
        });
        let run = RunId::from("01JDZ0000000000000ABCDEFGH");
        let job = JobRun::new(self.client.clone(), node, boot_id.known().unwrap(), &run, 1, &template).unwrap();
        job.start().await.unwrap();
        job.start().await.unwrap();
        let mut looks = Vec::new();
        for _ in 0..60 {
            match job.look().await.unwrap() {
                JobLook::Waiting { why } => looks.push(why),
                ended => {
                    job.tidy().await.unwrap();
                    let (namespace, name) =
                        job.title().split_once('/').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
                    assert_eq!(self.client.job(&namespace, &name).await.unwrap(), None);
                    return ended;
                }
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        JobLook::Waiting { why: looks.pop().unwrap() }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_and_its_nodes_are_read() {
    let lab = Lab::new("", "").await;
    let view = lab.client.describe().await.unwrap();
    assert_eq!(view.version, "v1.37.2");
    assert!(!view.uid.is_empty());
    let nodes = lab.client.nodes().await.unwrap();
    assert_eq!(nodes.iter().map(|node| node.node.name.as_str()).collect::<Vec<_>>(), ["other-1", "serve-1", "serve-2"]);
    let node = &nodes[1];
    assert_eq!(
        (&node.ready, node.count("nvidia.com/gpu"), node.unschedulable),
        (&Fact::Known(true), Fact::Known(2), false)
    );
    assert!(node.boot_id.known().is_some() && node.machine_ids().len() == 2, "{node:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_is_drained_within_its_budget_with_its_volumes_and_opened_again() {
    let guest = "      workloads:
        - {name: web, replicas: 3, gpu: 1, pdb: {minAvailable: 2}}
        - {name: db, kind: statefulSet, replicas: 2, volume: true, grace: 45s, nodes: [serve-1, serve-2]}
        - {name: exporter, kind: daemonSet}
        - {name: lone, kind: bare, nodes: [serve-1]}";
    let lab = Lab::new(guest, "").await;
    let mut drain = lab.draining("serve-1").await;
    let (evidence, waited) = lab.drained(&mut drain, 600).await;
    let evidence = evidence.unwrap();
    assert!(evidence.contains(&"no volume is attached".to_owned()), "{evidence:?}");
    assert!(evidence.iter().any(|line| line.contains("lone (nothing starts it again)")), "{evidence:?}");
    assert!(waited.iter().any(|line| line.starts_with("volume ")), "{waited:#?}");
    // The node is still ours, and only DaemonSets are on it.
    let pods = lab.client.pods_on("serve-1").await.unwrap();
    assert!(pods.due.is_empty() && pods.ending.is_empty() && !pods.staying.is_empty(), "{pods:?}");
    assert_eq!(lab.client.attachments("serve-1").await.unwrap(), Vec::<String>::new());
    let view = lab.node("serve-1").await;
    let patched = lab.client.release(&view.node, &view.version, &mark().run, Release::Uncordon).await.unwrap();
    assert!(matches!(&patched, Patched::Done(node) if !node.unschedulable && node.mark.is_absent()), "{patched:?}");
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_never_lets_go_is_named_round_after_round() {
    let lab =
        Lab::new("      workloads: [{name: web, replicas: 2, nodes: [serve-1], pdb: {minAvailable: 2}}]", "").await;
    let mut drain = lab.draining("serve-1").await;
    for _ in 0..60 {
        let round = drain.round(lab.clock.now()).await.unwrap();
        let Round::Busy { waiting_for } = round else { panic!("{round:?}") };
        assert!(waiting_for[0].contains("needs 2 healthy pods and has 2, "), "{waiting_for:?}");
        drain.wait(Duration::from_secs(10)).await;
    }
}

/// A world where the pod on our node never gets ready, and two others are healthy.
async fn unready(needs: u32) -> (Lab, Drain) {
    let guest = format!(
        "      workloads: [{{name: web, replicas: 3, gpu: 1, unreadyOn: [serve-1], pdb: {{minAvailable: {needs}}}}}]"
    );
    let lab = Lab::new(&guest, "").await;
    let pods = lab.client.pods_on("serve-1").await.unwrap();
    assert_eq!(pods.due.len(), 1, "{pods:?}");
    let drain = lab.draining("serve-1").await;
    (lab, drain)
}

#[tokio::test(start_paused = true)]
async fn e01_a_pod_that_is_not_ready_and_may_not_go_is_told_within_seconds() {
    let (lab, mut drain) = unready(3).await;
    let start = tokio::time::Instant::now();
    let round = drain.round(lab.clock.now()).await.unwrap();
    let Round::Busy { waiting_for } = round else { panic!("{round:?}") };
    let words = "PodDisruptionBudget default/web needs 3 healthy pods and has 2, so it lets none go (one more that is \
                 healthy elsewhere unblocks it, or whoever looks after default/web): pod default/web-";
    assert!(waiting_for[0].starts_with(words), "{waiting_for:?}");
    assert!(start.elapsed() < Duration::from_secs(5));
    // However long it takes: what its caller does at the deadline is `rollout::drains`.
    for _ in 0..30 {
        drain.wait(Duration::from_secs(60)).await;
        assert!(matches!(drain.round(lab.clock.now()).await.unwrap(), Round::Busy { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn e01_a_pod_that_is_not_ready_goes_while_the_others_suffice() {
    let (lab, mut drain) = unready(2).await;
    assert!(lab.drained(&mut drain, 300).await.0.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_two_budgets_is_told_with_both() {
    let guest = "      workloads: [{name: web, nodes: [serve-1], pdb: {maxUnavailable: 1}}]
      pdbs: [{name: more, app: web, budget: {maxUnavailable: 1}}]";
    let lab = Lab::new(guest, "").await;
    let mut drain = lab.draining("serve-1").await;
    let round = drain.round(lab.clock.now()).await.unwrap();
    let Round::Busy { waiting_for } = round else { panic!("{round:?}") };
    assert_eq!(waiting_for.len(), 1, "{waiting_for:?}");
    assert!(
        waiting_for[0].contains("more than one PodDisruptionBudget") && waiting_for[0].contains("more and web"),
        "{waiting_for:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn who_uncordons_meanwhile_wins() {
    let guest = "      workloads: [{name: slow, kind: bare, nodes: [serve-1], grace: 10min}]";
    let rest = "  actors: [{who: kim, once: {method: patch nodes, object: k8s/nodes/serve-1}, after: 40s, does: {uncordon: {cluster: k8s, node: serve-1}}}]";
    let lab = Lab::new(guest, rest).await;
    let mut drain = lab.draining("serve-1").await;
    let (lost, _) = lab.drained(&mut drain, 600).await;
    assert!(lost.unwrap_err().starts_with("the node was uncordoned"));
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_is_read_and_not_sent_again() {
    let rest = "  faults: [{face: k8s, method: patch nodes, object: serve-1, onCall: 1, then: dropAfter}]";
    let lab = Lab::new("", rest).await;
    let view = lab.node("serve-1").await;
    let error = lab.client.cordon(&view.node, &view.version, &mark()).await.unwrap_err();
    assert!(error.may_have_acted(), "{error:?}");
    let after = lab.node("serve-1").await;
    assert!(after.unschedulable && after.marked() == Fact::Known(mark()), "{after:?}");
    // Made again on what was read before it, it is a conflict.
    assert_eq!(lab.client.cordon(&view.node, &view.version, &mark()).await.unwrap(), Patched::Conflict);
    let writes = lab.world.log().iter().filter(|write| write.object.contains("serve-1")).count();
    assert_eq!(writes, 1);
}

#[tokio::test(start_paused = true)]
async fn a_lie_is_seen() {
    let rest = "  faults: [{face: k8s, method: patch nodes, object: serve-1, onCall: 1, then: {lie: noEffect}}]";
    let lab = Lab::new("", rest).await;
    let view = lab.node("serve-1").await;
    let answered = lab.client.cordon(&view.node, &view.version, &mark()).await;
    // It may show what was written; the next look tells.
    assert!(matches!(answered, Ok(Patched::Done(_)) | Err(Error::NotTaken { .. })), "{answered:?}");
    let after: NodeView = lab.node("serve-1").await;
    assert!(!after.unschedulable && after.mark.is_absent(), "{}", NodeMark::ANNOTATION);
}

#[tokio::test(start_paused = true)]
async fn a_validation_job_passes_fails_and_waits() {
    let guest = "      containers:
        - {image: well, takes: 30s, log: \"busbw 380 GB/s\"}
        - {image: ill, takes: 10s, ends: {fails: 3}, log: \"XID 79\"}
        - {image: none, ends: notPulled}";
    let lab = Lab::new(guest, "").await;
    let says = |evidence: &[String], words: &str| evidence.iter().any(|line| line.contains(words));
    let passed = lab.job("serve-1", 2, "well").await;
    assert!(matches!(&passed, JobLook::Passed { evidence, .. } if says(evidence, "busbw 380 GB/s")), "{passed:?}");
    let failed = lab.job("serve-1", 2, "ill").await;
    let told = |evidence: &Vec<String>| says(evidence, "exit code 3") && says(evidence, "XID 79");
    assert!(matches!(&failed, JobLook::Failed { evidence } if told(evidence)), "{failed:?}");
    // The kubelet refuses a pod that asks for more GPUs than it has.
    let refused = lab.job("serve-2", 2, "well").await;
    assert!(matches!(&refused, JobLook::Failed { .. }), "{refused:?}");
    let waits = lab.job("serve-1", 1, "none").await;
    let pull = |why: &String| why.contains("ImagePullBackOff") || why.contains("ErrImagePull");
    assert!(matches!(&waits, JobLook::Waiting { why } if pull(why)), "{waits:?}");
}

/// Over TLS and a port, as other vendors' clients reach it.
#[tokio::test]
async fn a_cluster_on_a_port_is_reached_by_its_kubeconfig() {
    let lab = Lab::new("      workloads: [{name: web, nodes: [serve-1], grace: 0s}]", "").await;
    let served = serve_guests(&lab.world, Ipv4Addr::LOCALHOST.into()).await.unwrap();
    let access = Access::parse(&kubeconfig(&lab.world, &served), None, None).unwrap();
    assert_eq!(access.authority(), served[0].served.addr.to_string());
    let client = Client::connect("k8s", &access, &RealNetwork).await.unwrap();
    assert_eq!(client.describe().await.unwrap().version, "v1.37.2");
    let lab = Lab { client, ..lab };
    let mut drain = lab.draining("serve-1").await;
    let round = drain.round(lab.clock.now()).await.unwrap();
    assert!(matches!(&round, Round::Busy { waiting_for } if waiting_for.len() == 1), "{round:?}");
    // The watch tells of the eviction long before its time is over.
    tokio::time::timeout(Duration::from_secs(30), drain.wait(Duration::from_secs(300))).await.unwrap();
    let strange =
        kubeconfig(&lab.world, &[]).replace("https://k8s.lab:6443", &format!("https://{}", served[0].served.addr));
    let access = Access::parse(&strange, None, None).unwrap();
    let error = Client::connect("k8s", &access, &RealNetwork).await.unwrap().describe().await.unwrap_err();
    assert!(matches!(&error, Error::Net { source: NetError::Untrusted { .. }, .. }), "{error:?}");
}
