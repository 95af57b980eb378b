//! One `VirtualMachine` as read -> a view, and the folder that is still to be followed. Pure.

use std::collections::BTreeMap;

use super::folders::Folders;
use super::paths::{Properties, VM};
use crate::model::{Fact, ManagedBy, MoRef, VmGpuDevice, VmView, unescape};
use crate::vim25::wire::names::path;
use crate::vim25::wire::{ObjectContent, decode, vm};

/// Extension key of the ESX Agent Manager, which owns vCLS agents (recorded from a vCenter 8.0.3).
const EAM: &str = "com.vmware.vim.eam";

/// A view whose folder is still a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Partial {
    /// Everything that stands on the VM itself.
    pub view: VmView,
    /// `parent`: its folder. Absent in a vApp.
    pub parent: Fact<MoRef>,
}

impl Partial {
    /// The view, with the path of its folder.
    pub fn placed(self, folders: &Folders) -> VmView {
        VmView { folder: folders.path(&self.parent), ..self.view }
    }
}

/// Reads the properties of a VM.
pub(super) fn partial(content: &ObjectContent) -> Partial {
    let read = Properties::new(content, VM);
    let text = |path| read.fact(path, decode::string);
    let name = text(path::NAME).map(|name| unescape(&name));
    let gpus = read.list(path::VM_DEVICES, vm::vm_gpu_devices);
    let managed_by = read.fact(path::VM_MANAGED_BY, vm::managed_by);
    let view = VmView {
        moref: content.object.clone(),
        vcls: is_vcls(&name, &managed_by, &gpus),
        name,
        power: text(path::POWER_STATE).map(|state| state.as_str().into()),
        host: read.fact(path::VM_HOST, decode::reference),
        template: read.fact(path::VM_TEMPLATE, decode::boolean),
        gpus,
        memory_mib: read.fact(path::VM_MEMORY, decode::parsed),
        reserved_mib: read.fact(path::VM_RESERVATION, decode::parsed),
        firmware: text(path::VM_FIRMWARE).map(|firmware| firmware.as_str().into()),
        managed_by,
        extra: read.fact(path::VM_EXTRA, vm::vm_extra).or_absent(BTreeMap::new()),
        folder: Fact::unknown("not read yet"),
        bios_uuid: text(path::VM_BIOS_UUID),
        instance_uuid: text(path::VM_INSTANCE_UUID),
        tools: text(path::VM_TOOLS).map(|status| status.as_str().into()),
        node: Fact::Absent,
    };
    Partial { view, parent: parent(&read) }
}

/// The folder of a VM. One that is neither in a folder nor in a vApp hides where it is.
fn parent(read: &Properties<'_>) -> Fact<MoRef> {
    let parent = read.fact(path::PARENT, decode::reference);
    if !parent.is_absent() {
        return parent;
    }
    match read.fact(path::VM_PARENT_VAPP, decode::reference) {
        Fact::Known(_) => Fact::Absent,
        Fact::Absent => Fact::unknown("the server does not show its folder"),
        Fact::Unknown { why } => Fact::Unknown { why },
    }
}

/// A vCLS agent, which every check ignores: what EAM calls an agent of the cluster, or a VM with
/// the full name of one, as an embedded agent may have no owner (docs/assumptions.md). Either way it has no GPU; a VM
/// that has one, or of which that can't be read, is an ordinary VM.
fn is_vcls(name: &Fact<String>, managed: &Fact<ManagedBy>, gpus: &Fact<Vec<VmGpuDevice>>) -> bool {
    let owned = managed.known().is_some_and(|by| by.extension == EAM && by.kind == "cluster-agent");
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
        let by = |extension: &str| Fact::Known(ManagedBy { extension: extension.into(), kind: "cluster-agent".into() });
        let eam = by(EAM);
        let none = Fact::Known(Vec::new());
        assert!(is_vcls(&full, &Fact::Absent, &none));
        assert!(is_vcls(&known("vCLS (3)"), &eam, &none));
        let other = by("com.example");
        assert!(!is_vcls(&known("vCLS (3)"), &other, &none));
        assert!(!is_vcls(&known("vCLS-of-ours"), &Fact::unknown("no permission"), &none));
        assert!(!is_vcls(&full, &eam, &Fact::Known(vec![VmGpuDevice::Other("X".into())])));
        assert!(!is_vcls(&full, &eam, &Fact::unknown("no permission")));
    }
}
