//! Lines to paste, and values in the words of the tools that take them.

use serde_json::{Value, json};

use crate::model::{
    AssignmentPolicy, GraphicsType, GuestRules, JobTemplate, MoRef, Mode, NodeMark, NodeRef, VgpuMode, VgpuSize,
};
use crate::report::quoted;

/// Letters of a node's name in the name of a Job, which has 63 at most.
const NAMED: usize = 40;

/// A line of kubectl for the cluster of a node. The context is the cluster's name in the Site.
pub(super) fn kubectl(node: &NodeRef, rest: &str) -> String {
    format!("kubectl --context {} {rest}", quoted(&node.cluster))
}

/// A VM as every govc finds it, by its reference: a name may be there twice.
pub(super) fn vm_path(vm: &MoRef) -> String {
    format!("\"$(govc ls -L {})\"", quoted(&format!("{}:{}", vm.kind, vm.id)))
}

/// Starts a VM unless it is on: of one that runs govc says that it is in the wrong state.
pub(super) fn power_on(vm: &MoRef) -> String {
    let path = vm_path(vm);
    format!("govc vm.info {path} | grep -q poweredOn || govc vm.power -on {path}")
}

/// Waits for the end of a Job, and prints which it was: `kubectl wait` takes one condition, and would sit out its
/// whole time where the other one comes.
pub(super) fn ended(node: &NodeRef, namespace: &str, name: &str) -> String {
    let conditions = format!("-n {namespace} get job {name} -o jsonpath='{{.status.conditions[*].type}}'");
    format!("until {} | grep -owE 'Complete|Failed'; do sleep 2; done", kubectl(node, &conditions))
}

/// Prints the volumes that are attached to a node.
pub(super) fn volumes(node: &NodeRef) -> String {
    kubectl(node, &format!("get node {} -o jsonpath='{{.status.volumesAttached}}'", quoted(&node.name)))
}

/// Where our mark stands on a node, as a jsonpath.
pub(super) fn mark_path() -> String {
    format!("{{.metadata.annotations.{}}}", NodeMark::ANNOTATION.replace('.', "\\."))
}

/// What is to be seen of a node, as a jsonpath.
pub(super) fn fields(rules: Option<&GuestRules>) -> String {
    let gpus = match rules {
        Some(rules) => format!("{{.status.allocatable.{}}}", rules.expect.resource.value.replace('.', "\\.")),
        None => "{.status.allocatable}".to_owned(),
    };
    let ready = r#"{.status.conditions[?(@.type=="Ready")].status}"#;
    format!(r#"uid {{.metadata.uid}}, boot {{.status.nodeInfo.bootID}}, Ready {ready}, allocatable {gpus}{{"\n"}}"#)
}

/// A Job of the plan, pinned to a node as a visit pins it: its text, namespace and name.
pub(super) fn pinned(template: &Value, node: &NodeRef, number: usize) -> (String, String, String) {
    let label: String =
        node.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(NAMED).collect();
    let name = format!("by-hand-{}-{}", number + 1, label.to_lowercase().trim_end_matches('-'));
    let mut job = template.clone();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let namespace = text(&template["metadata"]["namespace"]).unwrap_or_else(|| "default".to_owned());
    job["metadata"]["name"] = json!(name);
    job["metadata"]["namespace"] = json!(namespace);
    if let Some(metadata) = job["metadata"].as_object_mut() {
        metadata.remove("generateName");
    }
    let spec = &mut job["spec"];
    spec["activeDeadlineSeconds"] = json!(JobTemplate::longest_s(template));
    if spec["backoffLimit"].is_null() {
        spec["backoffLimit"] = json!(0);
    }
    let pod = &mut spec["template"]["spec"];
    pod["nodeName"] = json!(node.name);
    if pod["restartPolicy"].is_null() {
        pod["restartPolicy"] = json!("Never");
    }
    match pod["tolerations"].as_array_mut() {
        Some(tolerations) => tolerations.push(json!({ "operator": "Exists" })),
        None => pod["tolerations"] = json!([{ "operator": "Exists" }]),
    }
    (job.to_string(), quoted(&namespace), name)
}

/// What a GPU of this mode shows in the vSphere Client (vsphere-gpu §3.1).
pub(super) fn mode_words(mode: &Mode) -> String {
    match mode {
        Mode::Passthrough { label } => {
            let label = label.as_ref().map(|label| format!(", hardware label {label}")).unwrap_or_default();
            format!("passthrough Enabled, without `needs reboot`{label}")
        }
        Mode::Vgpu { size: VgpuSize::Same } => {
            "passthrough Disabled; active type Shared Direct, vGPU mode same size".to_owned()
        }
        Mode::Vgpu { size: VgpuSize::Mixed } => {
            "passthrough Disabled; active type Shared Direct, vGPU mode mixed size".to_owned()
        }
        Mode::MigVgpu => "passthrough Disabled; active type Shared Direct; nvidia-smi: MIG Enabled, Enabled".to_owned(),
    }
}

/// A graphics type in the words of the vSphere Client.
pub(super) fn type_words(kind: &GraphicsType) -> &str {
    match kind {
        GraphicsType::Shared => "Shared",
        GraphicsType::SharedDirect => "Shared Direct",
        other => other.as_str(),
    }
}

/// A size mode in plain words.
pub(super) fn size_words(mode: &VgpuMode) -> &str {
    match mode {
        VgpuMode::SameSize => "same size",
        VgpuMode::MixedSize => "mixed size",
        other => other.as_str(),
    }
}

/// An assignment policy in the words of the vSphere Client.
pub(super) fn policy_words(policy: &AssignmentPolicy) -> &str {
    match policy {
        AssignmentPolicy::Performance => "Spread VMs across GPUs (best performance)",
        AssignmentPolicy::Consolidation => "Group VMs on GPU until full (GPU consolidation)",
        other => other.as_str(),
    }
}

/// A graphics type as esxcli takes it (vsphere-gpu §1.11).
pub(super) fn esxcli_type(kind: &GraphicsType) -> &str {
    match kind {
        GraphicsType::Shared => "Shared",
        GraphicsType::SharedDirect => "SharedPassthru",
        other => other.as_str(),
    }
}

/// A size mode as esxcli takes it.
pub(super) fn esxcli_size(mode: &VgpuMode) -> &str {
    match mode {
        VgpuMode::SameSize => "SameSize",
        VgpuMode::MixedSize => "MixedSize",
        other => other.as_str(),
    }
}

/// An assignment policy as esxcli takes it.
pub(super) fn esxcli_policy(policy: &AssignmentPolicy) -> &str {
    match policy {
        AssignmentPolicy::Performance => "Performance",
        AssignmentPolicy::Consolidation => "Consolidation",
        other => other.as_str(),
    }
}
