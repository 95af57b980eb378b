//! Clusters: their hosts, the configuration of HA and DRS, and what DRS could not do (vsphere-gpu §1.8).

use super::super::objects::Object;
use super::super::value::{Data, Value, text};
use super::entity::{one, references};
use super::managers::text_option;
use super::task::localized;
use crate::sim::document::DrsLevel;
use crate::sim::drs::{Outlook, evacuations};
use crate::sim::world::state::{Cluster, State};
use crate::sim::world::task::Failure;
use crate::vim25::wire::Node;

pub(super) fn property(state: &State, id: u32, name: &str) -> Option<Value> {
    let known = state.clusters.get(&id)?;
    let hosts = || state.hosts.iter().filter(move |(_, host)| host.cluster == id);
    match name {
        "host" => Some(references(state, hosts().map(|(id, _)| Object::Host(*id)))),
        "resourcePool" => Some(one(state, &Object::ResourcePool(id))),
        "datastore" => {
            let mut stores: Vec<u32> = hosts().flat_map(|(_, host)| host.datastores.iter().copied()).collect();
            stores.sort_unstable();
            stores.dedup();
            Some(references(state, stores.into_iter().map(Object::Datastore)))
        }
        "network" => Some(Value::List(Vec::new())),
        "summary" => {
            let effective = hosts().filter(|(_, host)| !host.maintenance).count();
            let kind = if known.is_cluster { "ClusterComputeResourceSummary" } else { "ComputeResourceSummary" };
            Some(
                Data::of(kind)
                    .text("numHosts", hosts().count())
                    .text("numEffectiveHosts", effective)
                    .text("overallStatus", "green")
                    .done(),
            )
        }
        "configurationEx" if known.is_cluster => Some(configuration(state, known)),
        "drsFault" if known.is_cluster => Some(Value::List(faults(state, id).into_iter().collect())),
        "recommendation" if known.is_cluster => Some(Value::List(recommendations(state, id))),
        _ => None,
    }
}

fn behavior(level: DrsLevel) -> &'static str {
    match level {
        DrsLevel::Manual => "manual",
        DrsLevel::PartiallyAutomated => "partiallyAutomated",
        DrsLevel::FullyAutomated => "fullyAutomated",
    }
}

fn configuration(state: &State, known: &Cluster) -> Value {
    let policy = known
        .admission
        .map(|hosts| Data::of("ClusterFailoverLevelAdmissionControlPolicy").text("failoverLevel", hosts).done());
    let das = Data::of("ClusterDasConfigInfo")
        .text("enabled", known.ha)
        .some("failoverLevel", known.admission.map(text))
        .some("admissionControlPolicy", policy)
        .text("admissionControlEnabled", known.admission.is_some());
    let options = known.drs.options.iter().map(|(key, value)| text_option(key, value));
    let drs = Data::of("ClusterDrsConfigInfo")
        .text("enabled", known.drs.level.is_some())
        .text("enableVmBehaviorOverrides", true)
        .text("defaultVmBehavior", behavior(known.drs.level.unwrap_or(DrsLevel::FullyAutomated)))
        .text("vmotionRate", 3)
        .set("option", Value::List(options.collect()));
    let overrides = known.drs.overrides.iter().filter_map(|one| {
        let named = |(_, vm): &(&u32, &crate::sim::world::vm::Vm)| {
            vm.name == one.vm
                && state
                    .hosts
                    .get(&vm.host)
                    .and_then(|host| state.clusters.get(&host.cluster))
                    .is_some_and(|cluster| cluster.name == known.name && cluster.parent == known.parent)
        };
        let (number, _) = state.vms.iter().find(named)?;
        Some(
            Data::of("ClusterDrsVmConfigInfo")
                .reference("key", "VirtualMachine", format!("vm-{number}"))
                .text("enabled", one.enabled)
                .some("behavior", one.level.map(|level| text(behavior(level))))
                .done(),
        )
    });
    Data::of("ClusterConfigInfoEx")
        .set("dasConfig", das.done())
        .set("drsConfig", drs.done())
        .set("drsVmConfig", Value::List(overrides.collect()))
        .done()
}

/// A `LocalizedMethodFault` as an element of this name.
fn fault(name: &str, failure: &Failure, more: Vec<Node>) -> Node {
    let mut fault = failure.fault();
    fault.fields.extend(more);
    Node { name: name.to_owned(), ..localized(&fault) }
}

/// Why VMs stay on hosts that are closing.
fn faults(state: &State, cluster: u32) -> Option<Value> {
    let by_vm: Vec<Value> = evacuations(state, cluster)
        .into_iter()
        .filter_map(|(vm, outlook)| match outlook {
            Outlook::Stays { why, hosts } => Some((vm, why, hosts)),
            _ => None,
        })
        .map(|(vm, why, hosts)| {
            // `NoCompatibleHost`: hosts beside as many faults.
            let named = hosts.iter().map(|(host, _)| Node::reference("host", "HostSystem", &format!("host-{host}")));
            let more = named.chain(hosts.iter().map(|(_, failure)| fault("error", failure, Vec::new()))).collect();
            Data::of("ClusterDrsFaultsFaultsByVm")
                .reference("vm", "VirtualMachine", format!("vm-{vm}"))
                .set("fault", Value::List(vec![Value::Raw(fault("fault", &why, more))]))
                .done()
        })
        .collect();
    let reason = "hostMaint";
    (!by_vm.is_empty())
        .then(|| Data::of("ClusterDrsFaults").text("reason", reason).set("faultsByVm", Value::List(by_vm)).done())
}

/// What DRS would do and does not, since it is not fully automated.
fn recommendations(state: &State, cluster: u32) -> Vec<Value> {
    let mut found = Vec::new();
    for (vm, outlook) in evacuations(state, cluster) {
        let Outlook::Recommends { to } = outlook else { continue };
        let from = state.vms.get(&vm).map(|vm| vm.host).unwrap_or_default();
        let key = (found.len() + 1).to_string();
        let migration = Data::of("ClusterDrsMigration")
            .text("key", &key)
            .text("time", state.time)
            .reference("vm", "VirtualMachine", format!("vm-{vm}"))
            .reference("source", "HostSystem", format!("host-{from}"))
            .reference("destination", "HostSystem", format!("host-{to}"))
            .done();
        let action = Data::of("ClusterMigrationAction")
            .text("type", "MigrationV1")
            .reference("target", "VirtualMachine", format!("vm-{vm}"))
            .set("drsMigration", migration)
            .done();
        found.push(
            Data::of("ClusterRecommendation")
                .text("key", &key)
                .text("type", "V1")
                .text("time", state.time)
                .text("rating", 5)
                .text("reason", "hostMaint")
                .text("reasonText", "Host is entering maintenance mode")
                .set("action", Value::List(vec![action]))
                .done(),
        );
    }
    found
}
