//! The calls that we make, each with its arguments in the order of the WSDL.

use jiff::Timestamp;

use super::call::Call;
use super::names::{managed, method};
use super::tree::Node;
use super::version::ApiVersion;
use crate::model::{GraphicsConfig, MoRef, PciAddress};

fn flag(name: &str, value: bool) -> Node {
    Node::leaf(name, if value { "true" } else { "false" })
}

fn number(name: &str, value: impl ToString) -> Node {
    Node::leaf(name, value.to_string())
}

fn object(name: &str, reference: &MoRef) -> Node {
    Node::reference(name, &reference.kind, &reference.id)
}

/// The one object whose id is fixed.
pub fn service_instance() -> MoRef {
    MoRef::new(managed::SERVICE_INSTANCE, managed::SERVICE_INSTANCE)
}

/// `RetrieveServiceContent`.
pub fn retrieve_service_content() -> Call {
    Call::read(method::RETRIEVE_SERVICE_CONTENT, &service_instance(), Vec::new())
}

/// `CurrentTime`.
pub fn current_time() -> Call {
    Call::read(method::CURRENT_TIME, &service_instance(), Vec::new())
}

/// `Login`. A write: a failed one counts towards a lockout.
pub fn login(manager: &MoRef, user: &str, password: &str) -> Call {
    Call::write(method::LOGIN, manager, vec![Node::leaf("userName", user), Node::leaf("password", password)])
}

/// `Logout`.
pub fn logout(manager: &MoRef) -> Call {
    Call::write(method::LOGOUT, manager, Vec::new())
}

/// Properties of one managed type to read or watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PropertySet {
    /// The managed type.
    pub kind: String,
    /// Paths.
    pub paths: Vec<&'static str>,
}

impl PropertySet {
    /// These paths of this managed type.
    pub fn new(kind: impl Into<String>, paths: &[&'static str]) -> Self {
        Self { kind: kind.into(), paths: paths.to_vec() }
    }
}

/// Which objects are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectSet {
    /// What a view holds.
    View(MoRef),
    /// These.
    Objects(Vec<MoRef>),
}

/// `CreateContainerView`: everything of these types below the container.
pub fn create_container_view(manager: &MoRef, container: &MoRef, kinds: &[&str]) -> Call {
    let mut arguments = vec![object("container", container)];
    arguments.extend(kinds.iter().map(|kind| Node::leaf("type", *kind)));
    arguments.push(flag("recursive", true));
    Call::read(method::CREATE_CONTAINER_VIEW, manager, arguments)
}

/// `DestroyView`.
pub fn destroy_view(view: &MoRef) -> Call {
    Call::read(method::DESTROY_VIEW, view, Vec::new())
}

/// `RetrievePropertiesEx`, at most `max_objects` a page.
pub fn retrieve_properties(collector: &MoRef, sets: &[PropertySet], objects: &ObjectSet, max_objects: u32) -> Call {
    let mut spec = Node::new("specSet").with_all(sets.iter().map(|set| property_set(set, true)));
    match objects {
        ObjectSet::View(view) => {
            let traversal = Node::new("selectSet")
                .typed("TraversalSpec")
                .with(Node::leaf("name", "view"))
                .with(Node::leaf("type", managed::CONTAINER_VIEW))
                .with(Node::leaf("path", "view"))
                .with(flag("skip", false));
            let set = Node::new("objectSet").with(object("obj", view)).with(flag("skip", true)).with(traversal);
            spec = spec.with(set);
        }
        ObjectSet::Objects(all) => {
            spec = spec.with_all(all.iter().map(|one| Node::new("objectSet").with(object("obj", one))));
        }
    }
    spec = spec.with(flag("reportMissingObjectsInResults", true));
    let options = Node::new("options").with(number("maxObjects", max_objects));
    Call::read(method::RETRIEVE_PROPERTIES_EX, collector, vec![spec, options])
}

fn property_set(set: &PropertySet, say_all: bool) -> Node {
    Node::new("propSet")
        .with(Node::leaf("type", &set.kind))
        .with_some(say_all.then(|| flag("all", false)))
        .with_all(set.paths.iter().map(|path| Node::leaf("pathSet", *path)))
}

/// `ContinueRetrievePropertiesEx`.
pub fn continue_retrieve(collector: &MoRef, token: &str) -> Call {
    Call::read(method::CONTINUE_RETRIEVE_PROPERTIES_EX, collector, vec![Node::leaf("token", token)])
}

/// `CancelRetrievePropertiesEx`.
pub fn cancel_retrieve(collector: &MoRef, token: &str) -> Call {
    Call::read(method::CANCEL_RETRIEVE_PROPERTIES_EX, collector, vec![Node::leaf("token", token)])
}

/// `CreateFilter` on one object.
pub fn create_filter(collector: &MoRef, set: &PropertySet, watched: &MoRef) -> Call {
    let spec =
        Node::new("spec").with(property_set(set, false)).with(Node::new("objectSet").with(object("obj", watched)));
    Call::read(method::CREATE_FILTER, collector, vec![spec, flag("partialUpdates", true)])
}

/// `DestroyPropertyFilter`.
pub fn destroy_filter(filter: &MoRef) -> Call {
    Call::read(method::DESTROY_PROPERTY_FILTER, filter, Vec::new())
}

/// `WaitForUpdatesEx`: what changed since `version` (empty: everything), within this many seconds.
pub fn wait_for_updates(collector: &MoRef, version: &str, max_wait_s: u64) -> Call {
    // One filter on one object: the number of updates is no concern, the field is what clients send.
    let options = Node::new("options").with(number("maxWaitSeconds", max_wait_s)).with(number("maxObjectUpdates", 100));
    Call::read(method::WAIT_FOR_UPDATES_EX, collector, vec![Node::leaf("version", version), options])
}

/// `EnterMaintenanceMode_Task`. Powered-off VMs stay (DESIGN §6); vSAN objects stay accessible, said
/// explicitly because the default of a cluster may be another (vsphere-gpu F43).
pub fn enter_maintenance(host: &MoRef, timeout_s: u32) -> Call {
    let vsan = Node::new("vsanMode").with(Node::leaf("objectAction", "ensureObjectAccessibility"));
    let arguments = vec![
        number("timeout", timeout_s),
        flag("evacuatePoweredOffVms", false),
        Node::new("maintenanceSpec").with(vsan),
    ];
    Call::write(method::ENTER_MAINTENANCE, host, arguments)
}

/// `ExitMaintenanceMode_Task`.
pub fn exit_maintenance(host: &MoRef, timeout_s: u32) -> Call {
    Call::write(method::EXIT_MAINTENANCE, host, vec![number("timeout", timeout_s)])
}

/// `RebootHost_Task`, never forced: a host that is not in maintenance refuses.
pub fn reboot_host(host: &MoRef) -> Call {
    Call::write(method::REBOOT_HOST, host, vec![flag("force", false)])
}

/// `UpdateGraphicsConfig`: the whole configuration, as read, with changes.
pub fn update_graphics(manager: &MoRef, config: &GraphicsConfig, version: ApiVersion) -> Call {
    let device = |device: &crate::model::GraphicsDeviceConfig| {
        let mode = device.vgpu_mode.known().filter(|_| version.has_vgpu_mode());
        Node::new("deviceType")
            .with(Node::leaf("deviceId", device.address.to_string()))
            .with(Node::leaf("graphicsType", device.graphics_type.as_str()))
            .with_some(mode.map(|mode| Node::leaf("vgpuMode", mode.as_str())))
    };
    let config = Node::new("config")
        .with(Node::leaf("hostDefaultGraphicsType", config.default_type.as_str()))
        .with(Node::leaf("sharedPassthruAssignmentPolicy", config.policy.as_str()))
        .with_all(config.devices.iter().map(device));
    Call::write(method::UPDATE_GRAPHICS_CONFIG, manager, vec![config])
}

/// `RefreshGraphicsManager`: the host reads its own state again. Repeating it does no harm.
pub fn refresh_graphics(manager: &MoRef) -> Call {
    Call::read(method::REFRESH_GRAPHICS_MANAGER, manager, Vec::new())
}

/// An entry of `UpdatePassthruConfig`: devices that are not listed are left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassthruEntry {
    /// Which function.
    pub address: PciAddress,
    /// `passthruEnabled`.
    pub enabled: bool,
    /// `applyNow`; unset, the host decides by what it can (vsphere-gpu §1.3).
    pub apply_now: Option<bool>,
    /// `hardwareLabel`; empty clears it, none leaves it.
    pub label: Option<String>,
}

/// `UpdatePassthruConfig`.
pub fn update_passthru(system: &MoRef, entries: &[PassthruEntry]) -> Call {
    let entry = |entry: &PassthruEntry| {
        Node::new("config")
            .with(Node::leaf("id", entry.address.to_string()))
            .with(flag("passthruEnabled", entry.enabled))
            .with_some(entry.apply_now.map(|now| flag("applyNow", now)))
            .with_some(entry.label.as_ref().map(|label| Node::leaf("hardwareLabel", label)))
    };
    Call::write(method::UPDATE_PASSTHRU_CONFIG, system, entries.iter().map(entry).collect())
}

/// `Refresh` of the passthrough system. Repeating it does no harm.
pub fn refresh_passthru(system: &MoRef) -> Call {
    Call::read(method::REFRESH, system, Vec::new())
}

/// `fetchSoftwarePackages`.
pub fn fetch_packages(manager: &MoRef) -> Call {
    Call::read(method::FETCH_SOFTWARE_PACKAGES, manager, Vec::new())
}

/// `AddCustomFieldDef` for one managed type.
pub fn add_custom_field(manager: &MoRef, name: &str, kind: &str) -> Call {
    let arguments = vec![Node::leaf("name", name), Node::leaf("moType", kind)];
    Call::write(method::ADD_CUSTOM_FIELD_DEF, manager, arguments)
}

/// `SetField`.
pub fn set_field(manager: &MoRef, entity: &MoRef, key: i32, value: &str) -> Call {
    let arguments = vec![object("entity", entity), number("key", key), Node::leaf("value", value)];
    Call::write(method::SET_FIELD, manager, arguments)
}

/// `CancelTask`.
pub fn cancel_task(task: &MoRef) -> Call {
    Call::write(method::CANCEL_TASK, task, Vec::new())
}

/// `CreateCollectorForTasks`: tasks of one entity queued since a time, of one user.
pub fn create_task_collector(manager: &MoRef, entity: &MoRef, since: Timestamp, user: Option<&str>) -> Call {
    let filter = Node::new("filter")
        .with(Node::new("entity").with(object("entity", entity)).with(Node::leaf("recursion", "self")))
        .with(
            Node::new("time")
                .with(Node::leaf("timeType", "queuedTime"))
                .with(Node::leaf("beginTime", since.to_string())),
        )
        .with_some(
            user.map(|user| Node::new("userName").with(flag("systemUser", false)).with(Node::leaf("userList", user))),
        );
    Call::read(method::CREATE_COLLECTOR_FOR_TASKS, manager, vec![filter])
}

/// `ReadNextTasks`. It moves the collector, so a repeated one may skip a page: not repeated.
pub fn read_next_tasks(collector: &MoRef, max_count: u32) -> Call {
    Call::write(method::READ_NEXT_TASKS, collector, vec![number("maxCount", max_count)])
}

/// `DestroyCollector`.
pub fn destroy_collector(collector: &MoRef) -> Call {
    Call::read(method::DESTROY_COLLECTOR, collector, Vec::new())
}

/// `LogUserEvent`.
pub fn log_user_event(manager: &MoRef, entity: &MoRef, message: &str) -> Call {
    let arguments = vec![object("entity", entity), Node::leaf("msg", message)];
    Call::write(method::LOG_USER_EVENT, manager, arguments)
}

/// `PowerOnVM_Task` on this host; without one DRS chooses.
pub fn power_on(vm: &MoRef, host: Option<&MoRef>) -> Call {
    Call::write(method::POWER_ON, vm, host.map(|host| object("host", host)).into_iter().collect())
}

/// `PowerOffVM_Task`: the power is cut.
pub fn power_off(vm: &MoRef) -> Call {
    Call::write(method::POWER_OFF, vm, Vec::new())
}

/// `ShutdownGuest`: the guest is asked, by its tools.
pub fn shutdown_guest(vm: &MoRef) -> Call {
    Call::write(method::SHUTDOWN_GUEST, vm, Vec::new())
}

/// `QueryOptions` of this name, or of what lies below it.
pub fn query_options(manager: &MoRef, name: &str) -> Call {
    Call::read(method::QUERY_OPTIONS, manager, vec![Node::leaf("name", name)])
}

/// `StartService`.
pub fn start_service(system: &MoRef, id: &str) -> Call {
    Call::write(method::START_SERVICE, system, vec![Node::leaf("id", id)])
}

/// `StopService`.
pub fn stop_service(system: &MoRef, id: &str) -> Call {
    Call::write(method::STOP_SERVICE, system, vec![Node::leaf("id", id)])
}
