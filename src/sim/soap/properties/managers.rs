//! The service's own objects.

use super::super::lists::canonical;
use super::super::objects::Object;
use super::super::session::User;
use super::super::value::{Data, Value, text};
use super::super::versions::api_version;
use super::Source;
use super::entity::{fields, one, references};
use crate::sim::document::WorldSpec;

pub(super) fn property(from: Source<'_>, object: &Object, name: &str) -> Option<Value> {
    let Source { state, spec, session } = from;
    match (object, name) {
        (Object::ServiceInstance, "content") => Some(service_content(spec)),
        (Object::ServiceInstance, "serverClock") => Some(text(state.time)),
        (Object::SessionManager, "currentSession") => session?.user().map(user_session),
        (Object::SessionManager, "defaultLocale") => Some(text("en")),
        (Object::CustomFieldsManager, "field") => Some(Value::List(fields(state, ""))),
        (Object::OptionManager, "setting") => {
            Some(Value::List(state.options.iter().map(|(key, value)| option(key, value)).collect()))
        }
        (Object::TaskManager, "recentTask") => {
            let open = state.tasks.iter().filter(|(_, task)| task.state.is_open());
            Some(references(state, open.map(|(id, _)| Object::Task(*id))))
        }
        (Object::TaskManager | Object::EventManager, "maxCollector") => Some(text(10)),
        (Object::View(id), _) => view(from, id, name),
        (Object::List(id), "view") => {
            let listed = session?.lists.get(id)?.iter().filter_map(|one| Object::find(state, session, one));
            Some(references(state, listed))
        }
        (Object::PropertyCollector(id), "filter") => {
            let filters = session?.property.get(id)?.filters.keys();
            Some(Value::List(filters.map(|id| Value::Ref("PropertyFilter", id.clone())).collect()))
        }
        _ => None,
    }
}

fn view(from: Source<'_>, id: &str, name: &str) -> Option<Value> {
    let view = from.session?.views.get(id)?;
    match name {
        "view" => Some(references(from.state, super::super::select::members(from.state, view))),
        "container" => Object::find(from.state, None, &view.container).map(|object| one(from.state, &object)),
        "type" => Some(Value::List(view.kinds.iter().map(text).collect())),
        "recursive" => Some(text(view.recursive)),
        _ => None,
    }
}

/// An `OptionValue`: booleans and numbers with their own type (vsphere-gpu §1.10).
pub(in super::super) fn option(key: &str, value: &str) -> Value {
    let kind = match value {
        "true" | "false" => "boolean",
        number if number.parse::<i32>().is_ok() => "int",
        _ => "string",
    };
    Data::of("OptionValue").text("key", key).set("value", Value::Any(kind, value.to_owned())).done()
}

/// An `OptionValue` of type string, as those of DRS are.
pub(super) fn text_option(key: &str, value: &str) -> Value {
    Data::of("OptionValue").text("key", key).set("value", Value::Any("string", value.to_owned())).done()
}

/// `ServiceContent`, as recorded.
pub(in super::super) fn service_content(spec: &WorldSpec) -> Value {
    // The build of the recorded vCenter; no behaviour depends on it.
    const BUILD: &str = "69507950";
    let version = &spec.vcenter.version;
    let about = Data::of("AboutInfo")
        .text("name", "VMware vCenter Server")
        .text("fullName", format!("VMware vCenter Server {version} build-{BUILD}"))
        .text("vendor", "VMware, Inc.")
        .text("version", version)
        .text("patchLevel", "00000")
        .text("build", BUILD)
        .text("localeVersion", "INTL")
        .text("localeBuild", "000")
        .text("osType", "linux-x64")
        .text("productLineId", "vpx")
        .text("apiType", "VirtualCenter")
        .text("apiVersion", api_version(version))
        .text("instanceUuid", &spec.vcenter.instance_uuid)
        .text("licenseProductName", "VMware VirtualCenter Server")
        .text("licenseProductVersion", version.split('.').take(2).collect::<Vec<_>>().join("."))
        .done();
    Data::of("ServiceContent")
        .reference("rootFolder", "Folder", "group-d1")
        .reference("propertyCollector", "PropertyCollector", "propertyCollector")
        .reference("viewManager", "ViewManager", "ViewManager")
        .set("about", about)
        .reference("setting", "OptionManager", "VpxSettings")
        .reference("sessionManager", "SessionManager", "SessionManager")
        .reference("alarmManager", "AlarmManager", "AlarmManager")
        .reference("eventManager", "EventManager", "EventManager")
        .reference("taskManager", "TaskManager", "TaskManager")
        .reference("customFieldsManager", "CustomFieldsManager", "CustomFieldsManager")
        .reference("searchIndex", "SearchIndex", "SearchIndex")
        .done()
}

/// `UserSession`.
pub(in super::super) fn user_session(user: &User) -> Value {
    Data::of("UserSession")
        .text("key", &user.key)
        .text("userName", canonical(&user.name))
        .text("fullName", &user.name)
        .text("loginTime", user.login_time)
        .text("lastActiveTime", user.login_time)
        .text("locale", "en")
        .text("messageLocale", "en")
        .text("extensionSession", false)
        .text("ipAddress", "127.0.0.1")
        .text("userAgent", &user.agent)
        .text("callCount", 0)
        .done()
}
