//! Custom fields: no compare-and-swap, and read with a lag (vsphere-gpu §1.10; honesty rule 8).

use super::Moment;
use super::moment::later;
use crate::sim::fault::VimFault;
use crate::sim::world::state::{FieldDef, FieldValue};
use crate::vim25::wire::Node;

/// The first key; vCenter itself has defined some before (recorded: 5 of Auto Deploy).
const FIRST_KEY: i32 = 101;

impl Moment<'_> {
    /// `AddCustomFieldDef`.
    pub fn add_field(&mut self, name: &str, kind: Option<&str>) -> Result<i32, VimFault> {
        let clash = |field: &FieldDef| {
            field.name == name && (field.kind.is_none() || kind.is_none() || field.kind.as_deref() == kind)
        };
        if self.state.fields.values().any(clash) {
            return Err(VimFault::named("DuplicateName")
                .saying(format!("The name '{name}' already exists."))
                .with(Node::leaf("name", name))
                .with(Node::reference("object", "CustomFieldsManager", "CustomFieldsManager")));
        }
        let key = self.state.fields.keys().last().map_or(FIRST_KEY, |last| last + 1);
        self.state.fields.insert(key, FieldDef { name: name.to_owned(), kind: kind.map(str::to_owned) });
        self.changed = true;
        Ok(key)
    }

    /// `RemoveCustomFieldDef`: its values go with it.
    pub fn remove_field(&mut self, key: i32) -> Result<(), VimFault> {
        if self.state.fields.remove(&key).is_none() {
            return Err(VimFault::argument("key"));
        }
        for host in self.state.hosts.values_mut() {
            host.values.remove(&key);
        }
        self.changed = true;
        Ok(())
    }

    /// `SetField` on a host.
    pub fn set_field(&mut self, host: u32, key: i32, value: &str) -> Result<(), VimFault> {
        let lag = self.spec.readings.field_lag.0;
        let time = self.state.time;
        let ours = |field: &FieldDef| field.kind.as_deref().is_none_or(|kind| kind == "HostSystem");
        if self.state.fields.get(&key).is_none_or(|field| !ours(field)) {
            return Err(VimFault::argument("key"));
        }
        let host = self.host(host)?;
        let old = host.values.get(&key).map(|field| field.shown(time).map(str::to_owned)).unwrap_or_default();
        let set = FieldValue { value: value.to_owned(), old, readable_at: later(time, lag) };
        host.values.insert(key, set);
        self.changed = true;
        Ok(())
    }
}

impl FieldValue {
    /// What a read gives at this time.
    pub(in crate::sim) fn shown(&self, now: jiff::Timestamp) -> Option<&str> {
        if now >= self.readable_at { Some(&self.value) } else { self.old.as_deref() }
    }
}
