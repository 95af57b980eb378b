//! kubectl judges the simulated API of guest clusters: discovery, tables, watches, the drain that everybody
//! knows. `tests/run` builds it with Kubernetes itself.

use std::net::{IpAddr, Ipv4Addr};

use poolwright::sim::{ServedGuest, World, kubeconfig, serve_guests};

use crate::support::{kubectl, peer};

/// A cluster whose pods start and end at once, so that real time does not pass here.
const WORLD: &str = "apiVersion: poolwright/v1
kind: World
metadata: {name: lab}
spec:
  vcenter: {address: vc.lab}
  guests:
    - name: serve
      address: https://serve.lab:6443
      nodes: [{name: a, gpus: 2}, {name: b, gpus: 2}]
      workloads:
        - {name: web, replicas: 2, gpu: 1, start: 0s, stop: 0s, pdb: {minAvailable: 1}}
        - {name: exporter, kind: daemonSet, start: 0s}
    - {name: other, address: \"https://other.lab:6443\"}
";

struct Lab {
    dir: tempfile::TempDir,
    config: String,
    world: World,
    _served: Vec<ServedGuest>,
}

impl Lab {
    async fn start() -> Option<Self> {
        peer("kubernetes/kubernetes")?;
        let world = World::parse("lab.world.yaml", WORLD.as_bytes()).unwrap();
        let served = serve_guests(&world, IpAddr::V4(Ipv4Addr::LOCALHOST)).await.unwrap();
        let config = kubeconfig(&world, &served);
        Some(Self { dir: tempfile::tempdir().unwrap(), config, world, _served: served })
    }

    /// What kubectl prints; it must end well.
    async fn kubectl(&self, arguments: &str) -> String {
        let mut command = kubectl(self.dir.path(), &self.config).unwrap();
        let ended = command.args(arguments.split_whitespace()).output().await.unwrap();
        let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        assert!(ended.status.success(), "kubectl {arguments}: {out}{err}");
        out.into_owned()
    }
}

/// The words of the line that begins with a name.
fn line(text: &str, name: &str) -> Vec<String> {
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {text}"));
    line.split_whitespace().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_reads_the_simulator_and_drains_a_node_of_it() {
    let Some(lab) = Lab::start().await else { return };
    assert!(lab.kubectl("version").await.contains("Server Version: v1.37.2"));
    let nodes = lab.kubectl("get nodes").await;
    assert_eq!(line(&nodes, "a")[..4], ["a", "Ready", "<none>", "v1.37.2"]);
    let all = lab.kubectl("get nodes,pods,deploy,ds,pdb -A").await;
    for name in ["node/a", "deployment.apps/web", "daemonset.apps/exporter", "poddisruptionbudget.policy/web"] {
        assert!(all.contains(name), "no {name} in {all}");
    }
    let pods = lab.kubectl("get pods -l app=web --field-selector spec.nodeName=a -o name").await;
    assert_eq!(pods.lines().count(), 1, "{pods}");
    let wide = lab.kubectl("get pods -l app=web -o wide").await;
    assert!(wide.lines().next().unwrap().ends_with("NODE") && wide.contains(" b"), "{wide}");
    let names = lab.kubectl("api-resources --api-group=batch -o name").await;
    assert_eq!(names, "jobs.batch\n");
    // The drain of kubectl: it lists, cordons, evicts and looks until the pods are gone.
    let drained = lab.kubectl("drain a --ignore-daemonsets --timeout=60s").await;
    assert!(drained.contains("node/a drained"), "{drained}");
    assert_eq!(line(&lab.kubectl("get nodes").await, "a")[1], "Ready,SchedulingDisabled");
    assert!(lab.kubectl("get pods -l app=web --field-selector spec.nodeName=a -o name").await.is_empty());
    lab.kubectl("uncordon a").await;
    lab.kubectl("annotate node a example.com/a=b").await;
    lab.kubectl("wait --for=condition=Ready node/a --timeout=30s").await;
    let described = lab.kubectl("describe node a").await;
    assert!(described.contains("example.com/a: b") && described.contains("Events:"), "{described}");
    let web = lab.kubectl("get pods -l app=web -o name").await.lines().next().unwrap().to_owned();
    let described = lab.kubectl(&format!("describe {web}")).await;
    assert!(described.contains("Node:") && described.contains("Events:"), "{described}");
    // What kubectl sends as strategic merge patches of lists.
    lab.kubectl("taint node a example.com/a=b:NoSchedule example.com/c:PreferNoSchedule").await;
    lab.kubectl("taint node a example.com/a-").await;
    let taints = lab.kubectl("get node a -o jsonpath={.spec.taints[*].key}").await;
    assert_eq!(taints, "example.com/c");
    lab.kubectl("taint node a example.com/c-").await;
    assert_eq!(lab.kubectl("auth can-i create pods/eviction").await, "yes\n");
    assert_eq!(lab.kubectl("auth can-i patch nodes").await, "yes\n");
    assert!(lab.kubectl("--context other get pods").await.is_empty());
    let calls: Vec<String> = lab.world.log().into_iter().map(|write| write.call).collect();
    let nodes = ["patch nodes"; 5];
    assert_eq!(calls, [&["patch nodes", "create pods/eviction"], nodes.as_slice()].concat(), "a review is no write");
}
