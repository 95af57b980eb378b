//! Managed objects: which there are, of which type, and their place in the inventory.

use super::session::{PROPERTY, Session};
use crate::model::MoRef;
use crate::sim::document::Connection;
use crate::sim::world::state::{FolderKind, Host, Parent, State};

/// A managed object, found by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Object {
    ServiceInstance,
    SessionManager,
    ViewManager,
    PropertyCollector(String),
    TaskManager,
    EventManager,
    AlarmManager,
    CustomFieldsManager,
    OptionManager,
    SearchIndex,
    Folder(u32),
    Datacenter(u32),
    Cluster(u32),
    ResourcePool(u32),
    Host(u32),
    Vm(u32),
    Datastore(u32),
    Task(u64),
    GraphicsManager(u32),
    PassthruSystem(u32),
    ImageManager(u32),
    ServiceSystem(u32),
    MethodExecuter(u32),
    View(String),
    List(String),
    Filter(String),
    History(String),
}

/// `root folder` and friends: the letter of a folder's id.
fn letter(state: &State, id: u32) -> char {
    match state.folders.get(&id).map(|folder| folder.kind) {
        Some(FolderKind::Host) => 'h',
        Some(FolderKind::Vm) => 'v',
        Some(FolderKind::Datastore) => 's',
        Some(FolderKind::Network) => 'n',
        Some(FolderKind::Root) | None => 'd',
    }
}

impl Object {
    /// The object of a reference, if there is one. The id alone decides, as on vCenter.
    pub fn find(state: &State, session: Option<&Session>, reference: &MoRef) -> Option<Self> {
        let id = reference.id.as_str();
        let single = match id {
            "ServiceInstance" => Some(Self::ServiceInstance),
            "SessionManager" => Some(Self::SessionManager),
            "ViewManager" => Some(Self::ViewManager),
            PROPERTY => Some(Self::PropertyCollector(id.to_owned())),
            "TaskManager" => Some(Self::TaskManager),
            "EventManager" => Some(Self::EventManager),
            "AlarmManager" => Some(Self::AlarmManager),
            "CustomFieldsManager" => Some(Self::CustomFieldsManager),
            "VpxSettings" => Some(Self::OptionManager),
            "SearchIndex" => Some(Self::SearchIndex),
            _ => None,
        };
        if single.is_some() {
            return single;
        }
        if id.starts_with("session[") {
            let session = session?;
            let known = |kind: Self, there: bool| there.then_some(kind);
            return known(Self::View(id.to_owned()), session.views.contains_key(id))
                .or_else(|| known(Self::List(id.to_owned()), session.lists.contains_key(id)))
                .or_else(|| known(Self::PropertyCollector(id.to_owned()), session.property.contains_key(id)))
                .or_else(|| known(Self::Filter(id.to_owned()), session.filters().any(|filter| filter == id)))
                .or_else(|| known(Self::History(id.to_owned()), session.collectors.contains_key(id)));
        }
        let (kind, number) = id.rsplit_once('-')?;
        if kind == "task" {
            let number = number.parse().ok()?;
            let task = state.tasks.get(&number)?;
            let there = task.forgotten_at.is_none_or(|forgotten| state.time < forgotten);
            return there.then_some(Self::Task(number));
        }
        let number: u32 = number.trim_start_matches(['d', 'h', 'v', 's', 'n', 'c']).parse().ok()?;
        let host = || state.hosts.contains_key(&number);
        let found = match kind {
            "group" => state.folders.contains_key(&number).then_some(Self::Folder(number)),
            "datacenter" => state.datacenters.contains_key(&number).then_some(Self::Datacenter(number)),
            "domain" => state.clusters.contains_key(&number).then_some(Self::Cluster(number)),
            "resgroup" => state.clusters.contains_key(&number).then_some(Self::ResourcePool(number)),
            "vm" => state.vms.contains_key(&number).then_some(Self::Vm(number)),
            "datastore" => state.datastores.contains_key(&number).then_some(Self::Datastore(number)),
            "host" => host().then_some(Self::Host(number)),
            "graphicsManager" => host().then_some(Self::GraphicsManager(number)),
            "pciPassthruSystem" => host().then_some(Self::PassthruSystem(number)),
            "imageConfigManager" => host().then_some(Self::ImageManager(number)),
            "serviceSystem" => host().then_some(Self::ServiceSystem(number)),
            "methodExecuter" => host().then_some(Self::MethodExecuter(number)),
            _ => None,
        };
        found.filter(|object| object.reference(state).id == id)
    }

    /// Its managed type.
    pub fn kind(&self, state: &State) -> &'static str {
        match self {
            Self::ServiceInstance => "ServiceInstance",
            Self::SessionManager => "SessionManager",
            Self::ViewManager => "ViewManager",
            Self::PropertyCollector(_) => "PropertyCollector",
            Self::TaskManager => "TaskManager",
            Self::EventManager => "EventManager",
            Self::AlarmManager => "AlarmManager",
            Self::CustomFieldsManager => "CustomFieldsManager",
            Self::OptionManager => "OptionManager",
            Self::SearchIndex => "SearchIndex",
            Self::Folder(_) => "Folder",
            Self::Datacenter(_) => "Datacenter",
            Self::Cluster(id) if state.clusters.get(id).is_some_and(|cluster| !cluster.is_cluster) => "ComputeResource",
            Self::Cluster(_) => "ClusterComputeResource",
            Self::ResourcePool(_) => "ResourcePool",
            Self::Host(_) => "HostSystem",
            Self::Vm(_) => "VirtualMachine",
            Self::Datastore(_) => "Datastore",
            Self::Task(_) => "Task",
            Self::GraphicsManager(_) => "HostGraphicsManager",
            Self::PassthruSystem(_) => "HostPciPassthruSystem",
            Self::ImageManager(_) => "HostImageConfigManager",
            Self::ServiceSystem(_) => "HostServiceSystem",
            Self::MethodExecuter(_) => "ManagedMethodExecuter",
            Self::View(_) => "ContainerView",
            Self::List(_) => "ListView",
            Self::Filter(_) => "PropertyFilter",
            Self::History(_) => "TaskHistoryCollector",
        }
    }

    /// Its reference.
    pub fn reference(&self, state: &State) -> MoRef {
        let id = match self {
            Self::OptionManager => "VpxSettings".to_owned(),
            Self::Folder(id) => format!("group-{}{id}", letter(state, *id)),
            Self::Datacenter(id) => format!("datacenter-{id}"),
            Self::Cluster(id) => {
                let cluster = state.clusters.get(id).is_none_or(|cluster| cluster.is_cluster);
                format!("domain-{}{id}", if cluster { 'c' } else { 's' })
            }
            Self::ResourcePool(id) => format!("resgroup-{id}"),
            Self::Host(id) => format!("host-{id}"),
            Self::Vm(id) => format!("vm-{id}"),
            Self::Datastore(id) => format!("datastore-{id}"),
            Self::Task(id) => format!("task-{id}"),
            Self::GraphicsManager(id) => format!("graphicsManager-{id}"),
            Self::PassthruSystem(id) => format!("pciPassthruSystem-{id}"),
            Self::ImageManager(id) => format!("imageConfigManager-{id}"),
            Self::ServiceSystem(id) => format!("serviceSystem-{id}"),
            Self::MethodExecuter(id) => format!("methodExecuter-{id}"),
            Self::PropertyCollector(id) | Self::View(id) | Self::List(id) | Self::Filter(id) | Self::History(id) => {
                id.clone()
            }
            other => other.kind(state).to_owned(),
        };
        MoRef::new(self.kind(state), id)
    }

    /// The host that it is or belongs to.
    pub fn host(&self) -> Option<u32> {
        match self {
            Self::Host(id)
            | Self::GraphicsManager(id)
            | Self::PassthruSystem(id)
            | Self::ImageManager(id)
            | Self::ServiceSystem(id)
            | Self::MethodExecuter(id) => Some(*id),
            _ => None,
        }
    }

    /// Its name in the inventory, as somebody wrote it.
    pub fn name<'a>(&self, state: &'a State) -> Option<&'a str> {
        match self {
            Self::Folder(id) => state.folders.get(id).map(|folder| folder.name.as_str()),
            Self::Datacenter(id) => state.datacenters.get(id).map(|datacenter| datacenter.name.as_str()),
            Self::Cluster(id) => state.clusters.get(id).map(|cluster| cluster.name.as_str()),
            Self::ResourcePool(_) => Some("Resources"),
            Self::Vm(id) => state.vms.get(id).map(|vm| vm.name.as_str()),
            Self::Datastore(id) => state.datastores.get(id).map(|datastore| datastore.name.as_str()),
            other => other.host().and_then(|id| state.hosts.get(&id)).map(|host| host.name.as_str()),
        }
    }

    /// What it lies in.
    pub fn parent(&self, state: &State) -> Option<Self> {
        Some(match self {
            Self::Folder(id) => match state.folders.get(id)?.parent {
                Parent::None => return None,
                Parent::Folder(folder) => Self::Folder(folder),
                Parent::Datacenter(datacenter) => Self::Datacenter(datacenter),
            },
            Self::Datacenter(id) => Self::Folder(state.datacenters.get(id)?.parent),
            Self::Cluster(id) => Self::Folder(state.clusters.get(id)?.parent),
            Self::ResourcePool(id) => Self::Cluster(*id),
            Self::Host(id) => Self::Cluster(state.hosts.get(id)?.cluster),
            Self::Vm(id) => Self::Folder(state.vms.get(id)?.folder),
            Self::Datastore(id) => Self::Folder(state.datastores.get(id)?.folder),
            _ => return None,
        })
    }

    /// What lies directly in it: the objects that a container view walks through.
    pub fn children(&self, state: &State) -> Vec<Self> {
        match self {
            Self::Folder(id) => {
                let parent = Parent::Folder(*id);
                let folders =
                    state.folders.iter().filter(|(_, folder)| folder.parent == parent).map(|(id, _)| Self::Folder(*id));
                let centers = state
                    .datacenters
                    .iter()
                    .filter(|(_, known)| known.parent == *id)
                    .map(|(id, _)| Self::Datacenter(*id));
                let clusters =
                    state.clusters.iter().filter(|(_, known)| known.parent == *id).map(|(id, _)| Self::Cluster(*id));
                let vms = state.vms.iter().filter(|(_, known)| known.folder == *id).map(|(id, _)| Self::Vm(*id));
                let stores = state
                    .datastores
                    .iter()
                    .filter(|(_, known)| known.folder == *id)
                    .map(|(id, _)| Self::Datastore(*id));
                folders.chain(centers).chain(clusters).chain(vms).chain(stores).collect()
            }
            Self::Datacenter(id) => state.datacenters.get(id).map_or_else(Vec::new, |known| {
                [known.vm_folder, known.host_folder, known.datastore_folder, known.network_folder]
                    .map(Self::Folder)
                    .to_vec()
            }),
            Self::Cluster(id) => {
                let hosts = state.hosts.iter().filter(|(_, host)| host.cluster == *id).map(|(id, _)| Self::Host(*id));
                hosts.chain([Self::ResourcePool(*id)]).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The object at an inventory path, `/Prod/DC1/host/gpu-a`: a slash at either end means nothing, one within a
/// name is escaped (SearchIndex.FindByInventoryPath).
pub(super) fn at_path(state: &State, path: &str) -> Option<Object> {
    let names = path.split('/').filter(|name| !name.is_empty());
    let root =
        state.folders.iter().find(|(_, folder)| folder.kind == FolderKind::Root && folder.parent == Parent::None);
    names.fold(root.map(|(id, _)| Object::Folder(*id)), |found, name| {
        let is_it = |child: &Object| child.name(state).is_some_and(|own| escape(own) == name);
        found?.children(state).into_iter().find(is_it)
    })
}

/// `runtime.connectionState`.
pub(super) fn connection(host: &Host) -> &'static str {
    match host.connection {
        Connection::Connected => "connected",
        Connection::NotResponding => "notResponding",
        Connection::Disconnected => "disconnected",
    }
}

/// A name as vim25 sends it: `%`, `/` and `\` are escaped.
pub(super) fn escape(name: &str) -> String {
    name.replace('%', "%25").replace('/', "%2f").replace('\\', "%5c")
}
