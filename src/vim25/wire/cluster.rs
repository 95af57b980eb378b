//! Values of clusters, decoded (vsphere-gpu §1.8).

use super::decode::{DecodeError, array, boolean, optional, reference, required, text, text_fact};
use super::fault::Fault;
use super::names::managed;
use super::tree::Node;
use super::vm::option_value;
use crate::model::{Drs, DrsFault, DrsOverride, DrsReason, Fact, HaAdmission, MoRef};

/// DRS, from a `ClusterConfigInfoEx`.
pub fn drs(config: &Node) -> Result<Drs, DecodeError> {
    let drs = required(config, "drsConfig")?;
    Ok(Drs {
        enabled: optional(drs, "enabled", boolean),
        level: text_fact(drs, "defaultVmBehavior").map(|level| level.as_str().into()),
        overrides_count: optional(drs, "enableVmBehaviorOverrides", boolean),
        options: drs.all("option").map(option_value).collect::<Result<_, _>>()?,
        overrides: config.all("drsVmConfig").map(drs_override).collect::<Result<_, _>>()?,
    })
}

fn drs_override(item: &Node) -> Result<DrsOverride, DecodeError> {
    Ok(DrsOverride {
        vm: reference(required(item, "key")?)?,
        enabled: optional(item, "enabled", boolean),
        level: text_fact(item, "behavior").map(|level| level.as_str().into()),
    })
}

/// Admission control of HA, from a `ClusterConfigInfoEx`; absent where HA is off.
pub fn ha_admission(config: &Node) -> Result<Fact<HaAdmission>, DecodeError> {
    let ha = required(config, "dasConfig")?;
    match optional(ha, "enabled", boolean) {
        Fact::Known(true) => {}
        Fact::Known(false) => return Ok(Fact::Absent),
        Fact::Absent => return Ok(Fact::unknown("the server does not say whether HA is on")),
        Fact::Unknown { why } => return Ok(Fact::Unknown { why }),
    }
    let policy = ha.get("admissionControlPolicy");
    let failover = policy.into_iter().flat_map(|policy| policy.all("failoverHosts"));
    Ok(Fact::Known(HaAdmission {
        enabled: optional(ha, "admissionControlEnabled", boolean),
        policy: policy.and_then(Node::type_name).map_or(Fact::Absent, |kind| Fact::Known(kind.to_owned())),
        failover_hosts: failover.map(reference).collect::<Result<_, _>>()?,
    }))
}

/// `drsFault`: an `ArrayOfClusterDrsFaults`.
pub fn drs_faults(node: &Node) -> Result<Vec<DrsFault>, DecodeError> {
    let runs = array(node, |run| {
        let about = text(run, "reason")?;
        run.all("faultsByVm").map(|of_vm| drs_fault(&about, of_vm)).collect::<Result<Vec<_>, _>>()
    })?;
    Ok(runs.into_iter().flatten().collect())
}

fn drs_fault(about: &str, of_vm: &Node) -> Result<DrsFault, DecodeError> {
    let vm = match of_vm.get("vm") {
        Some(vm) => Fact::Known(reference(vm)?),
        None => Fact::Absent,
    };
    let reasons = of_vm.all("fault").flat_map(|fault| reasons(&Fault::of_localized(fault))).collect();
    Ok(DrsFault { about: about.to_owned(), vm, reasons })
}

/// One reason for each deepest cause. A fault that lists hosts beside as many faults
/// (`NoCompatibleHost`) says which is about which; one that names one host is about that.
fn reasons(fault: &Fault) -> Vec<DrsReason> {
    let mut found = Vec::new();
    walk(&[], fault, &Fact::Absent, &mut found);
    found
}

fn walk(above: &[&Fault], fault: &Fault, host: &Fact<MoRef>, found: &mut Vec<DrsReason>) {
    let chain = [above, &[fault]].concat();
    let hosts: Vec<MoRef> = fault
        .fields
        .iter()
        .filter(|(name, id)| name == "host" && !id.is_empty())
        .map(|(_, id)| MoRef::new(managed::HOST_SYSTEM, id.clone()))
        .collect();
    let host = if let [one] = hosts.as_slice() { &Fact::Known(one.clone()) } else { host };
    if fault.causes.is_empty() {
        found.push(DrsReason { host: host.clone(), said: Fault::sentence(&chain) });
    }
    for (index, cause) in fault.causes.iter().enumerate() {
        let paired = hosts.get(index).filter(|_| hosts.len() == fault.causes.len());
        let host = paired.map_or_else(|| host.clone(), |host| Fact::Known(host.clone()));
        walk(&chain, cause, &host, found);
    }
}
