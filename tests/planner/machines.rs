//! Which machine a node names, missing and doubled, in the simulated fleet: what the plan says where the pool
//! selects its VMs by their guest cluster.

use poolwright::plan::Plan;

use crate::rollout::nodes::Nodes;

/// The plan where vm-1, whose device never moves, is the node gpu-a of k8s-a and `ids` is what that says of its
/// machine; vm-2 is a node like any other.
async fn planned(ids: &str, may: &'static str) -> Plan {
    let vms = format!(
        "[{{name: vm-1, host: esx-01, power: on, migrate: false, devices: [{{vgpu: nvidia_h100l-23c}}], \
           node: {{cluster: k8s-a, name: gpu-a{ids}}}}}, \
          {{name: vm-2, host: esx-01, power: on, migrate: false, devices: [{{vgpu: nvidia_h100l-23c}}], \
           node: {{cluster: k8s-b, name: gpu-b}}}}]"
    );
    Nodes { vms: Box::leak(vms.into_boxed_str()), may, ..Nodes::default() }.lab().plan().await
}

const BY_GUEST: &str = "{mayStop: [{guest: k8s-a}, {guest: k8s-b}]}";

fn said(plan: &Plan, id: &str) -> Option<String> {
    let finding = plan.findings.iter().find(|finding| finding.id.0 == id)?;
    Some(format!("{} [{}]", finding.message, finding.evidence.join("; ")))
}

#[tokio::test(start_paused = true)]
async fn one_id_that_is_missing_is_made_up_for_by_the_other() {
    for ids in [", providerId: missing", ", systemUUID: missing", ", providerId: missing, systemUUID: swapped"] {
        let plan = planned(ids, BY_GUEST).await;
        assert_eq!(plan.hosts.len(), 1, "{ids}: {:#?}", plan.findings);
        assert!(plan.hosts[0].steps.iter().any(|step| step.does == "drain the node gpu-a of k8s-a"), "{ids}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_names_no_machine_is_named_where_its_vm_cannot_be_selected() {
    let plan = planned(", providerId: missing, systemUUID: missing", BY_GUEST).await;
    assert_eq!(plan.hosts.len(), 0, "{:#?}", plan.hosts);
    let node = said(&plan, "PW-NODE-02").unwrap();
    let words =
        "vm-1 may be a node of k8s-a: where gpu-a runs is not known; as long as that is so, no `guest` selects it";
    assert!(node.starts_with(words) && node.contains("gpu-a: it does not say which machine it runs on"), "{node}");
    assert!(said(&plan, "PW-VM-03").unwrap().starts_with("vm-1: "), "and it may be none: {:#?}", plan.findings);
    // Of a cluster that no selector names nothing is to be known.
    let plan = planned(", providerId: missing, systemUUID: missing", "{mayStop: [{guest: k8s-b}]}").await;
    assert_eq!((plan.hosts.len(), said(&plan, "PW-NODE-02")), (0, None), "{:#?}", plan.findings);
}

/// Both nodes name vm-2, or one node names both VMs: what is said is of nodes, not of folders and names.
#[tokio::test(start_paused = true)]
async fn a_machine_that_is_doubled_is_told_as_that() {
    for (ids, words) in [
        (
            ", providerId: missing, systemUUID: {of: vm-2}",
            "2 nodes say that they are this VM: gpu-a of k8s-a, gpu-b of k8s-b",
        ),
        (", systemUUID: {of: vm-2}", "names two machines"),
    ] {
        let plan = planned(ids, BY_GUEST).await;
        assert_eq!(plan.hosts.len(), 0, "{ids}: {:#?}", plan.hosts);
        assert!(said(&plan, "PW-NODE-01").is_some_and(|said| said.contains(words)), "{ids}: {:#?}", plan.findings);
        let all = format!("{:?}", plan.findings);
        assert!(!all.contains("by the folder or name"), "{ids}: {all}");
    }
}
