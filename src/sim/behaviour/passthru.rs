//! PCI passthrough: enabled is configured, active is in effect (vsphere-gpu §1.3, F6, F7).

use super::Moment;
use super::graphics::{Occasion, take_effect};
use crate::model::PciAddress;
use crate::sim::document::RebindReading;
use crate::sim::fault::VimFault;
use crate::sim::world::device::Function;

/// One `HostPciPassthruConfig` or `HostSriovConfig` that is sent.
#[derive(Debug, Clone)]
pub(in crate::sim) struct SentPassthru {
    pub id: String,
    pub enabled: bool,
    pub apply_now: Option<bool>,
    pub label: Option<String>,
    /// `sriovEnabled` and `numVirtualFunction`.
    pub sriov: Option<(bool, u32)>,
}

impl Moment<'_> {
    /// `UpdatePassthruConfig`: all entries or, if one is refused, none. Devices that are not named
    /// are untouched.
    pub fn update_passthru(&mut self, number: u32, sent: &[SentPassthru]) -> Result<(), VimFault> {
        self.connected(number)?;
        let busy = self.busy_gpus(number);
        for entry in sent {
            let host = self.host(number)?;
            let function = find(&host.functions, &entry.id)?;
            let toggles = function.enabled != entry.enabled;
            if toggles && !function.capable {
                return Err(VimFault::platform("Device is not passthrough capable")); // F4
            }
            if toggles && busy.contains(&function.address) {
                return Err(VimFault::platform("Device is in use"));
            }
            if entry.label.is_some() && !host.label_supported {
                return Err(VimFault::named("NotSupported"));
            }
            if entry.sriov.is_some() && function.virtual_functions.is_none() {
                return Err(VimFault::platform("Device is not SR-IOV capable"));
            }
        }
        self.remember(number);
        for entry in sent {
            self.apply_passthru(number, entry)?;
        }
        self.changed = true;
        Ok(())
    }

    fn apply_passthru(&mut self, number: u32, sent: &SentPassthru) -> Result<(), VimFault> {
        let readings = self.spec.readings.clone();
        let busy = self.busy_gpus(number);
        let host = self.host(number)?;
        let address = find(&host.functions, &sent.id)?.address;
        let alone = host.functions.iter().filter(|other| other.address.same_device(&address)).count() == 1;
        let rebinds = readings.rebind == RebindReading::Idle
            && host.rebind_supported
            && alone
            && sent.apply_now != Some(false)
            && !busy.contains(&address);
        if let Some(function) = host.functions.iter_mut().find(|function| function.address == address) {
            function.enabled = sent.enabled;
            if let Some(label) = &sent.label {
                function.label.clone_from(label); // §3.2: a label needs nothing else
            }
            if let Some((on, count)) = sent.sriov {
                function.virtual_functions = Some(if on { count } else { 0 });
            }
            if rebinds && function.active != function.enabled {
                take_effect(host, &readings, Occasion::Rebind(address));
            }
        }
        Ok(())
    }
}

fn find<'a>(functions: &'a [Function], id: &str) -> Result<&'a Function, VimFault> {
    functions
        .iter()
        .find(|function| function.address.to_string() == id && function.virtual_of.is_none())
        .ok_or_else(|| VimFault::argument("config.id"))
}

/// Functions of devices whose functions are not configured alike: their passthrough does not become
/// active (F7, KB 312208).
pub(super) fn split_devices(functions: &[Function]) -> Vec<PciAddress> {
    functions
        .iter()
        .filter(|one| {
            functions.iter().any(|other| {
                other.address.same_device(&one.address) && other.virtual_of.is_none() && other.enabled != one.enabled
            })
        })
        .map(|function| function.address)
        .collect()
}
