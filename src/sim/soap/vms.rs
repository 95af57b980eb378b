//! Methods of VMs, and of the options of the vCenter.

use super::dispatch::{Doing, task};
use super::objects::Object;
use super::request::reference;
use crate::sim::behaviour::{Change, Wish};
use crate::sim::document::VmDevice;
use crate::sim::fault::VimFault;
use crate::vim25::wire::Node;

impl Doing<'_, '_> {
    fn vm(&self) -> Result<u32, VimFault> {
        match self.object {
            Object::Vm(vm) => Ok(vm),
            _ => Err(VimFault::named("NotSupported")),
        }
    }

    /// The host that a node names.
    fn host_named(&self, node: &Node) -> Result<u32, VimFault> {
        let named = reference(node).ok_or_else(|| VimFault::argument("host"))?;
        match Object::find(self.moment.state, None, &named) {
            Some(Object::Host(host)) => Ok(host),
            _ => Err(VimFault::gone(&named.kind, &named.id)),
        }
    }

    /// `PowerOnVM_Task`.
    pub(super) fn power_on(&mut self) -> Result<Vec<Node>, VimFault> {
        let vm = self.vm()?;
        let pinned = self.call.get("host").map(|node| self.host_named(node)).transpose()?;
        task(self.moment.power_on(vm, pinned, self.user, self.struck.fate.clone())?)
    }

    /// `PowerOffVM_Task`.
    pub(super) fn power_off(&mut self) -> Result<Vec<Node>, VimFault> {
        let vm = self.vm()?;
        task(self.moment.power_off(vm, self.user, self.struck.fate.clone())?)
    }

    /// `RelocateVM_Task`: to another host. Other parts of the specification move what no world has.
    pub(super) fn relocate(&mut self) -> Result<Vec<Node>, VimFault> {
        let vm = self.vm()?;
        let spec = self.call.get("spec").ok_or_else(|| VimFault::argument("spec"))?;
        let to = spec.get("host").ok_or_else(|| VimFault::argument("spec.host"))?;
        let to = self.host_named(to)?;
        task(self.moment.relocate(vm, to, self.user, self.struck.fate.clone())?)
    }

    /// `ReconfigVM_Task`: PCI passthrough devices and `extraConfig`. A specification that asks for anything
    /// else is not supported: no world has it.
    pub(super) fn reconfigure(&mut self) -> Result<Vec<Node>, VimFault> {
        let vm = self.vm()?;
        let spec = self.call.get("spec").ok_or_else(|| VimFault::argument("spec"))?;
        let known = ["changeVersion", "deviceChange", "extraConfig"];
        if spec.children.iter().any(|part| !known.contains(&part.name.as_str())) {
            return Err(VimFault::named("NotSupported"));
        }
        let wish = Wish {
            version: spec.text_of("changeVersion").map(str::to_owned),
            changes: spec.all("deviceChange").map(change).collect::<Result<_, _>>()?,
            extra: spec.all("extraConfig").filter_map(option).collect(),
        };
        task(self.moment.reconfigure(vm, &wish, self.user, self.struck.fate.clone())?)
    }

    /// `ShutdownGuest`: no task, and no promise.
    pub(super) fn shutdown_guest(&mut self) -> Result<Vec<Node>, VimFault> {
        let vm = self.vm()?;
        self.moment.shutdown_guest(vm).map(|()| Vec::new())
    }

    /// `UpdateOptions` of the vCenter: all or none; a value has its own type (vsphere-gpu §1.10: a
    /// boolean that is sent as a string is `InvalidArgument`).
    pub(super) fn update_options(&mut self) -> Result<Vec<Node>, VimFault> {
        let boolean = |value: &str| matches!(value, "true" | "false");
        let mut changes = Vec::new();
        for changed in self.call.body.all("changedValue") {
            let key = changed.text_of("key").unwrap_or_default().to_owned();
            let value = changed.get("value").ok_or_else(|| VimFault::argument("changedValue.value"))?;
            let is_boolean = self.moment.state.options.get(&key).is_some_and(|known| boolean(known));
            let sent_boolean = value.type_name() == Some("boolean");
            if is_boolean != sent_boolean && self.moment.state.options.contains_key(&key) {
                return Err(VimFault::argument(&key));
            }
            changes.push((key, value.text.clone()));
        }
        self.moment.state.options.extend(changes);
        self.moment.changed = true;
        Ok(Vec::new())
    }
}

/// One `deviceChange`.
fn change(sent: &Node) -> Result<Change, VimFault> {
    let device = sent.get("device").ok_or_else(|| VimFault::argument("deviceChange.device"))?;
    let key: i64 = device.text_of("key").and_then(|key| key.trim().parse().ok()).unwrap_or_default();
    match sent.text_of("operation") {
        Some("remove") => Ok(Change::Remove { key }),
        Some("add") => {
            let unit = device.text_of("unitNumber").and_then(|unit| unit.trim().parse().ok());
            Ok(Change::Add { key, unit, device: backing(device)? })
        }
        _ => Err(VimFault::argument("deviceChange.operation")),
    }
}

/// The device that a client describes.
fn backing(device: &Node) -> Result<VmDevice, VimFault> {
    let unsupported = || VimFault::named("DeviceNotSupported");
    let backing = device.get("backing").ok_or_else(unsupported)?;
    let text = |name: &str| backing.text_of(name).unwrap_or_default().to_owned();
    match backing.type_name() {
        Some("VirtualPCIPassthroughVmiopBackingInfo") => Ok(VmDevice::Vgpu(text("vgpu"))),
        Some("VirtualPCIPassthroughDynamicBackingInfo") => Ok(VmDevice::DynamicDirectPath(text("customLabel"))),
        Some("VirtualPCIPassthroughDeviceBackingInfo") => Ok(VmDevice::DirectPath(text("id"))),
        _ => Err(unsupported()),
    }
}

fn option(sent: &Node) -> Option<(String, String)> {
    Some((sent.text_of("key")?.to_owned(), sent.text_of("value").unwrap_or_default().to_owned()))
}
