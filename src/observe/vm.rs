//! One `VirtualMachine` as read -> a view. Pure.

use super::paths::{Properties, VM};
use crate::model::{Fact, VmGpuDevice, VmView, unescape};
use crate::vim25::wire::names::path;
use crate::vim25::wire::{DecodeError, Node, ObjectContent, decode};

/// Extension key of the ESX Agent Manager, which owns vCLS agents (recorded from a vCenter 8.0.3).
const EAM: &str = "com.vmware.vim.eam";

/// Reads the properties of a VM.
pub(super) fn view(content: &ObjectContent) -> VmView {
    let read = Properties::new(content, VM);
    let name = read.fact(path::NAME, decode::string).map(|name| unescape(&name));
    let gpus = read.list(path::VM_DEVICES, decode::vm_gpu_devices);
    VmView {
        moref: content.object.clone(),
        vcls: is_vcls(&name, &read.fact(path::VM_MANAGED_BY, managed_by), &gpus),
        name,
        power: read.fact(path::POWER_STATE, decode::string).map(|state| state.as_str().into()),
        template: read.fact(path::VM_TEMPLATE, decode::boolean),
        gpus,
    }
}

/// `ManagedByInfo`: the extension, and the kind of VM it calls it.
fn managed_by(node: &Node) -> Result<(String, String), DecodeError> {
    Ok((decode::text(node, "extensionKey")?, decode::text(node, "type")?))
}

/// A vCLS agent, which every check ignores: what EAM calls an agent of the cluster, or a VM with
/// the full name of one, as an embedded agent may have no owner (docs/assumptions.md). Either way it has no GPU; a VM
/// that has one, or of which that can't be read, is an ordinary VM.
fn is_vcls(name: &Fact<String>, managed: &Fact<(String, String)>, gpus: &Fact<Vec<VmGpuDevice>>) -> bool {
    let owned = managed.known().is_some_and(|(extension, kind)| extension == EAM && kind == "cluster-agent");
    let named = name.known().and_then(|name| name.strip_prefix("vCLS-")).is_some_and(is_uuid);
    (owned || named) && gpus.known().is_some_and(Vec::is_empty)
}

/// `4c4c4544-0043-4a10-8056-b4c04f4d5a32`.
fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
        && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(name: &str) -> Fact<String> {
        Fact::Known(name.to_owned())
    }

    #[test]
    fn only_an_agent_without_a_gpu_is_ignored() {
        let full = known("vCLS-4c4c4544-0043-4a10-8056-b4c04f4d5a32");
        let eam = Fact::Known((EAM.to_owned(), "cluster-agent".to_owned()));
        let none = Fact::Known(Vec::new());
        assert!(is_vcls(&full, &Fact::Absent, &none));
        assert!(is_vcls(&known("vCLS (3)"), &eam, &none));
        let other = Fact::Known(("com.example".to_owned(), "cluster-agent".to_owned()));
        assert!(!is_vcls(&known("vCLS (3)"), &other, &none));
        assert!(!is_vcls(&known("vCLS-of-ours"), &Fact::unknown("no permission"), &none));
        assert!(!is_vcls(&full, &eam, &Fact::Known(vec![VmGpuDevice::Vgpu("grid_a100-40c".into())])));
        assert!(!is_vcls(&full, &eam, &Fact::unknown("no permission")));
    }
}
