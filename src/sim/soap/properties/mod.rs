//! Properties of managed objects as values. One function per kind of object; what a function does not
//! name, the object does not have (an absent optional property is not in an answer at all).

mod entity;
mod host;
mod host_config;
mod managers;
mod task;
mod vm;

pub(super) use host::software;
pub(super) use managers::{option, service_content, user_session};
pub(super) use task::task_info;

use super::objects::Object;
use super::session::Session;
use super::value::Value;
use crate::sim::document::WorldSpec;
use crate::sim::world::state::State;

/// What properties are read from.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub state: &'a State,
    pub spec: &'a WorldSpec,
    pub session: Option<&'a Session>,
}

/// A whole property of an object: `config`, not `config.product`. With `stale`, as it was before the
/// last change.
pub(super) fn property(from: Source<'_>, object: &Object, name: &str, stale: bool) -> Option<Value> {
    let own = match object {
        Object::Host(id) => host::property(from, *id, name, stale),
        Object::Vm(id) => vm::property(from, *id, name),
        Object::Task(id) => task::property(from.state, *id, name),
        Object::GraphicsManager(id) => host_config::graphics_manager(from.state, *id, name, stale),
        Object::PassthruSystem(id) => host_config::passthru_system(from.state, *id, name, stale),
        Object::Folder(_)
        | Object::Datacenter(_)
        | Object::Cluster(_)
        | Object::ResourcePool(_)
        | Object::Datastore(_) => entity::inventory(from, object, name),
        _ => managers::property(from, object, name),
    };
    own.or_else(|| entity::common(from.state, object, name))
}
