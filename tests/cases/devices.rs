//! GPUs and their functions, from the profile to the request on the wire.

use poolwright::model::{Fact, HostName, VmGpuDevice};
use poolwright::plan::Reason;
use poolwright::rollout::Exit;

use crate::rollout::scene::{Scene, calls, host_writes};
use crate::support::lab::{Lab, PASSWORD, USER};
use crate::support::look;

/// Four GPUs of one name, and a pool that wants one group of them.
fn four(gpus: &str, wish: &str, more: &str) -> Lab {
    let world = format!(
        r#"
apiVersion: poolwright/v1
kind: World
metadata: {{name: devices}}
spec:
  vcenter: {{address: vc.lab, users: [{{name: {USER}, password: "{PASSWORD}"}}]}}
  datacenters:
    - path: /Prod/DC1
      clusters:
        - name: gpu-a
          hosts:
            - names: esx-01
              driver: {{component: NVD-AIE-800, version: 580.95.02}}
              gpus: [{{model: h100-nvl-94, count: 4, addresses: ["0000:D8:00.0", "0000:3B:00.0", "0000:88:00.0", "0000:af:00.0"], {gpus}}}]
          {more}
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
  hosts: {{site: lab, cluster: gpu-a, names: ["esx-*"]}}
  gpuModel: h100-nvl-94
  gpuCount: 4
  gpus: {wish}
  rollout: {{maxUnavailable: 1, maxReboots: 2}}
"#
    );
    Lab::new(&world, &documents)
}

const VGPU: &str = "mode: {vgpu: {size: same}}";
const PASSTHROUGH: &str = "{passthrough: {label: train}}";

/// The ids in the requests of a method, in the order sent.
fn ids(lab: &Lab, method: &str) -> Vec<Vec<String>> {
    let between = |c: char| !(c.is_ascii_hexdigit() || c == ':' || c == '.');
    let is_address = |word: &&str| word.len() == 12 && word.starts_with("0000:");
    let sent = calls(lab, method);
    sent.iter().map(|write| write.arguments.split(between).filter(is_address).map(str::to_owned).collect()).collect()
}

#[tokio::test(start_paused = true)]
async fn a01_gpus_of_a_model_are_written_in_address_order_and_lower_case() {
    let lab = four(VGPU, &format!("[{{mode: {PASSTHROUGH}}}]"), "");
    let plan = lab.plan().await;
    assert_eq!(lab.apply(&plan).await.unwrap().exit(), Exit::Done);
    let sent = ids(&lab, "UpdatePassthruConfig");
    assert_eq!(sent, [["0000:3b:00.0", "0000:88:00.0", "0000:af:00.0", "0000:d8:00.0"]]);
}

#[tokio::test(start_paused = true)]
async fn a06_one_of_four_functions_of_one_name_is_the_one_entry_on_the_wire() {
    let wish = format!("[{{select: {{addresses: [\"0000:88:00.0\"]}}, mode: {PASSTHROUGH}}}]");
    let lab = four(VGPU, &wish, "");
    let plan = lab.plan().await;
    assert_eq!(lab.apply(&plan).await.unwrap().exit(), Exit::Done);
    assert_eq!(ids(&lab, "UpdatePassthruConfig"), [["0000:88:00.0"]]);
    look::assert_only_managed("a06", &lab, &plan);
    let active: Vec<_> = look::gpus(&lab.world.snapshot(), "esx-01").into_iter().filter(|gpu| gpu.active).collect();
    assert_eq!(active.len(), 1);
    assert_eq!(active[0].address, "0000:88:00.0");
}

#[tokio::test(start_paused = true)]
async fn a07_what_is_configured_and_not_active_needs_a_reboot_and_no_write() {
    let pending = format!("{VGPU}, pending: {PASSTHROUGH}");
    let lab = four(&pending, &format!("[{{mode: {PASSTHROUGH}}}]"), "");
    let plan = lab.plan().await;
    assert_eq!(plan.hosts[0].reboots.expected, 1, "{:#?}", plan.hosts[0]);
    assert_eq!(lab.apply(&plan).await.unwrap().exit(), Exit::Done);
    assert_eq!(calls(&lab, "UpdatePassthruConfig"), []);
    assert_eq!(calls(&lab, "UpdateGraphicsConfig"), []);
    assert_eq!(lab.world.tally().hosts["esx-01"].boots, 1);
    assert!(look::gpus(&lab.world.snapshot(), "esx-01").iter().all(|gpu| gpu.active && gpu.enabled));
}

#[tokio::test(start_paused = true)]
async fn a15_profiles_in_use_are_read_without_touching_anything() {
    let vms = "vms: [{name: serve-1, host: esx-01, power: on, devices: [{vgpu: nvidia_h100l-47c}]}]";
    let lab = four(VGPU, "[{mode: {vgpu: {size: same}}}]", vms);
    let fleet = lab.connect().await;
    let observed = lab.facts(&fleet).await;
    let view = observed.host(&HostName::from("esx-01")).unwrap().view.as_ref().unwrap();
    let vm = &view.vms.known().unwrap()[0];
    assert_eq!(
        vm.gpus,
        Fact::Known(vec![VmGpuDevice::Vgpu { name: "nvidia_h100l-47c".to_owned(), migrate: Fact::Known(true) }])
    );
    fleet.close().await.unwrap();
    assert_eq!(host_writes(&lab), []);
    assert_eq!(lab.world.snapshot(), lab.before);
}

/// B01 and its kind: a host that DRS cannot empty is refused before anything is asked of it, and the
/// others go on.
#[tokio::test(start_paused = true)]
async fn b01_a_host_with_a_vm_powered_on_is_refused_by_name_and_nothing_hangs() {
    for device in ["{vgpu: nvidia_h100l-47c}", "{other: VirtualPCIPassthroughX}"] {
        let vms = format!("vms: [{{name: serve-1, host: esx-01, power: on, devices: [{device}]}}]");
        let lab = four(VGPU, &format!("[{{mode: {PASSTHROUGH}}}]"), &vms);
        let plan = lab.plan().await;
        assert_eq!(plan.hosts, [], "{device}");
        let left = &plan.not_acted[0];
        assert_eq!(left.reason, Reason::Refused, "{device}: {left:?}");
        let said = plan.findings.iter().any(|finding| {
            finding.id.0.starts_with("PW-VM-")
                && (finding.message.contains("serve-1") || finding.evidence.iter().any(|line| line.contains("serve-1")))
        });
        assert!(said, "{device}: {:#?}", plan.findings);
        assert_eq!(lab.apply(&plan).await.unwrap().exit(), Exit::Done, "nothing to do is done");
        assert_eq!(host_writes(&lab), []);
    }
}

/// D15 and its kind: what was asked for is not what is there. It is read back, and the report shows
/// what is.
#[tokio::test(start_paused = true)]
async fn d15_what_the_host_made_of_a_request_is_read_back_and_shown() {
    let scene = Scene {
        world: "faults: [{method: UpdatePassthruConfig, onCall: 1, times: 9, then: {lie: noEffect}}]",
        ..Scene::default()
    };
    let (lab, plan) = scene.planned().await;
    let state = lab.apply(&plan).await.unwrap();
    assert_eq!(state.exit(), Exit::HostsLeft);
    let said = crate::rollout::scene::failure(&state.hosts[&HostName::from("esx-01")]);
    let found = "passthrough on, label train to read back; found off, label -: 0000:17:00.0, 0000:1f:00.0";
    assert!(said.contains(found), "{said}");
    assert_eq!(calls(&lab, "RebootHost_Task"), [], "what is not stored is no reason to reboot");
}
