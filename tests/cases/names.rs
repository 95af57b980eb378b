//! Names and paths, through the whole way: documents, wire, journal, state directory.

use poolwright::model::HostName;
use poolwright::profile;
use poolwright::rollout::Exit;

use crate::support::lab::{Lab, PASSWORD, USER};
use crate::support::look;

fn lab(cluster: &str, datacenters: &str, names: &str) -> Lab {
    let world = format!(
        r#"
apiVersion: poolwright/v1
kind: World
metadata: {{name: names}}
spec:
  vcenter: {{address: vc.lab, users: [{{name: {USER}, password: "{PASSWORD}"}}]}}
  datacenters:
{datacenters}
"#
    );
    let documents = format!(
        r#"
apiVersion: poolwright/v1
kind: Site
metadata: {{name: lab}}
spec:
  vcenter: {{address: vc.lab, credentials: {{user: {USER}, password: "env:LAB"}}}}
---
apiVersion: poolwright/v1
kind: GpuPool
metadata: {{name: pool}}
spec:
  hosts: {{site: lab, cluster: {cluster}, names: [{names}]}}
  gpuModel: l40s
  gpuCount: 1
  gpus: [{{mode: {{vgpu: {{size: mixed}}}}}}]
  rollout: {{maxUnavailable: 1, maxReboots: 1}}
"#
    );
    Lab::new(&world, &documents)
}

fn host(name: &str) -> String {
    format!(
        "{{names: '{}', driver: {{component: NVD-VGPU-800, version: 580.95.02}}, \
         gpus: [{{model: l40s, mode: {{vgpu: {{size: same}}}}}}]}}",
        name.replace('\'', "''")
    )
}

#[tokio::test(start_paused = true)]
async fn d02_two_clusters_of_one_name_are_named_by_path_and_a_path_decides() {
    let datacenters = format!(
        "    - {{path: /EU/DC1, clusters: [{{name: CORP-A, hosts: [{}]}}]}}\n    - {{path: /US/DC1, clusters: [{{name: \
         CORP-A, hosts: [{}]}}]}}",
        host("esx-01"),
        host("esx-01")
    );
    let both = lab("CORP-A", &datacenters, "esx-01");
    let fleet = both.connect().await;
    let roster = fleet.roster().await.unwrap();
    let findings = profile::resolve(&both.pools, &both.site, &roster).unwrap_err();
    let said = format!("{findings:?}");
    assert!(said.contains("/EU/DC1/host/CORP-A") && said.contains("/US/DC1/host/CORP-A"), "{said}");

    let one = lab("/US/DC1/host/CORP-A", &datacenters, "esx-01");
    let plan = one.plan().await;
    assert_eq!(plan.hosts[0].host.path, "/US/DC1/host/CORP-A/esx-01");
    assert_eq!(one.apply(&plan).await.unwrap().exit(), Exit::Done);
    // The other host of that name is as it was.
    let sizes: Vec<String> = one.world.snapshot()["hosts"]
        .as_object()
        .unwrap()
        .values()
        .map(|host| host["devices"].as_array().unwrap().iter().find(|d| d["graphics"].is_object()).unwrap().clone())
        .map(|gpu| gpu["graphics"]["mode"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(sizes.iter().filter(|size| *size == "mixedSize").count(), 1, "{sizes:?}");
}

#[tokio::test(start_paused = true)]
async fn d03_folders_of_datacenters_and_of_clusters_are_walked() {
    let datacenters =
        format!("    - {{path: /Prod/EU/DC1, clusters: [{{name: Ost/gpu-a, hosts: [{}]}}]}}", host("esx-01"));
    let lab = lab("gpu-a", &datacenters, "esx-01");
    let plan = lab.plan().await;
    assert_eq!(plan.hosts[0].host.path, "/Prod/EU/DC1/host/Ost/gpu-a/esx-01");
}

#[tokio::test(start_paused = true)]
async fn d13_odd_names_survive_plan_journal_and_state() {
    let names = ["esx \"one\"", "#2", "ü-東京", "a%b", "back\\slash", "../../out"];
    let hosts = names.map(host).join(", ");
    let datacenters = format!("    - {{path: /DC, clusters: [{{name: 'gpu \"ä\" #1', hosts: [{hosts}]}}]}}");
    let lab = lab("'gpu \"ä\" #1'", &datacenters, "'*'");
    let plan = lab.plan().await;
    assert_eq!(plan.hosts.len(), names.len(), "{:#?}", plan.not_acted);
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::Done, "{:#?}", state.hosts);
    for name in names {
        assert!(state.hosts.contains_key(&HostName::from(name)), "{name}");
        assert!(look::gpus(&lab.world.snapshot(), name).iter().all(|gpu| gpu.size == "mixedSize"), "{name}");
    }
    // What was read of each before is kept inside the run's folder, and nowhere else.
    let folder = lab.state_path().join("runs").join(state.run.as_str());
    let kept = std::fs::read_dir(&folder)
        .unwrap()
        .filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().starts_with("before-"));
    assert_eq!(kept.count(), names.len());
    let outside = std::fs::read_dir(lab.state_path().parent().unwrap()).unwrap().count();
    assert_eq!(outside, 1, "only the state directory");
}
