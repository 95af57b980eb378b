//! Which kind of object has a property.

use super::{entity, host, host_config, managers, task, vm};
use crate::sim::document::WorldSpec;
use crate::sim::soap::objects::Object;
use crate::sim::soap::session::Session;
use crate::sim::soap::value::Value;
use crate::sim::world::state::State;

/// What properties are read from.
#[derive(Clone, Copy)]
pub(in crate::sim::soap) struct Source<'a> {
    pub state: &'a State,
    pub spec: &'a WorldSpec,
    pub session: Option<&'a Session>,
}

/// A whole property of an object: `config`, not `config.product`. With `stale`, as it was before the
/// last change.
pub(in crate::sim::soap) fn property(from: Source<'_>, object: &Object, name: &str, stale: bool) -> Option<Value> {
    let own = match object {
        Object::Host(id) => host::property(from, *id, name, stale),
        Object::Vm(id) => vm::property(from, *id, name, stale),
        Object::Task(id) => task::property(from.state, *id, name),
        Object::GraphicsManager(id) => host_config::graphics_manager(from.state, *id, name, stale),
        Object::PassthruSystem(id) => host_config::passthru_system(from.state, *id, name, stale),
        Object::ServiceSystem(id) => host_config::service_system(from.state, *id, name),
        Object::Folder(_)
        | Object::Datacenter(_)
        | Object::Cluster(_)
        | Object::ResourcePool(_)
        | Object::Datastore(_) => entity::inventory(from, object, name),
        _ => managers::property(from, object, name),
    };
    own.or_else(|| entity::common(from.state, object, name))
}
