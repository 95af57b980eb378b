//! Reading hosts, and what hangs on them: page by page, each host for itself.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt;

use super::fleet::Fleet;
use super::host::{self, Partial};
use super::paths;
use super::vm;
use crate::base::cause::chain;
use crate::model::{
    Fact, HostFault, HostFaultKind, HostRecord, HostRef, HostService, Marker, MoRef, Observed, Package, RunningTask,
    VmRecord,
};
use crate::vim25::wire::names::{fault, managed};
use crate::vim25::wire::vm::option_flag;
use crate::vim25::{CustomField, Error, ObjectContent, PropertySet, Scope};

/// Hosts that are asked for their packages at once. Each question goes through vCenter to the host
/// and takes about a second there; vCenter serves all its clients from one pool of workers.
const PACKAGES_AT_ONCE: usize = 4;

/// The setting of the vCenter that lets VMs with a vGPU move while they run (vsphere-gpu §1.16).
const HOT_MIGRATE: &str = "vgpu.hotmigrate.enabled";

/// What was made of each object; one that is gone is not among them.
pub(super) type Made<T> = BTreeMap<MoRef, Result<T, HostFault>>;

/// Hosts as read.
struct Read {
    records: Vec<HostRecord>,
    /// What their clusters are, by path.
    parents: BTreeMap<String, Fact<MoRef>>,
    notes: Vec<String>,
}

/// What hangs on hosts. All of it is read in one call.
enum Followed {
    Vm(Box<vm::Partial>),
    /// None: it has ended.
    Task(Option<RunningTask>),
    /// Whether it is accessible.
    Datastore(bool),
    /// Of a service system.
    Services(Fact<Vec<HostService>>),
}

impl Fleet {
    /// The state of these hosts. Never all-or-nothing: what can't be read of a host is unknown with
    /// the reason, and a host of which nothing can be read is a fault beside the others.
    pub async fn facts(&self, hosts: &[HostRef]) -> Observed {
        let taken_at = self.now();
        let marker = self.marker_field().await;
        let Read { records, parents, notes } = self.records(hosts, &marker).await;
        let (clusters, hot_migrate) = futures::join!(self.clusters(&parents), self.hot_migrate());
        Observed {
            site: self.identity().clone(),
            taken_at,
            marker_field: marker.map(|_| true).or_absent(false),
            hot_migrate,
            clusters,
            guests: BTreeMap::new(),
            hosts: records.into_iter().map(|record| (record.host.path.clone(), record)).collect(),
            notes,
        }
    }

    /// The state of one host, read now.
    pub async fn host(&self, host: &HostRef) -> HostRecord {
        let marker = self.marker_field().await;
        let read = self.records(std::slice::from_ref(host), &marker).await;
        let unread = || HostRecord { host: host.clone(), read_at: self.now(), view: Err(gone()) };
        read.records.into_iter().next().unwrap_or_else(unread)
    }

    /// The state of one VM, read now.
    pub async fn vm(&self, vm: &MoRef) -> VmRecord {
        let sets = [PropertySet::new(managed::VIRTUAL_MACHINE, &paths::names(paths::VM))];
        let partial = |content: &ObjectContent| something(content).map(|()| vm::partial(content));
        let mut read = self.objects(vec![vm.clone()], &sets, partial).await;
        let view = match read.remove(vm).unwrap_or_else(|| Err(gone())) {
            Ok(partial) => {
                let folders = self.folders(partial.parent.known().cloned()).await;
                Ok(Box::new(partial.placed(&folders)))
            }
            Err(fault) => Err(fault),
        };
        VmRecord { moref: vm.clone(), read_at: self.now(), view }
    }

    /// Whether VMs with a vGPU can move while they run.
    async fn hot_migrate(&self) -> Fact<bool> {
        match self.vcenter().query_option(HOT_MIGRATE).await {
            Ok(Some(value)) => match option_flag(&value) {
                Some(on) => Fact::Known(on),
                None => Fact::unknown(format!("{HOT_MIGRATE} is `{value}`")),
            },
            Ok(None) => Fact::Absent,
            Err(error) => Fact::unknown(chain(&error)),
        }
    }

    async fn records(&self, hosts: &[HostRef], marker: &Fact<i32>) -> Read {
        let wanted = hosts.iter().map(|host| host.moref.clone()).collect();
        let sets = [PropertySet::new(managed::HOST_SYSTEM, &paths::names(paths::HOST))];
        let partial = |content: &ObjectContent| something(content).map(|()| host::partial(content, marker));
        let mut views = self.objects(wanted, &sets, partial).await;

        let partials: Vec<&Partial> = views.values().filter_map(|view| view.as_ref().ok()).collect();
        let (followed, mut packages) = futures::join!(self.followed(&partials), self.packages(&partials));
        let folders = followed.values().filter_map(|one| match one {
            Ok(Followed::Vm(vm)) => vm.parent.known().cloned(),
            _ => None,
        });
        let folders = self.folders(folders).await;

        let mut notes = Vec::new();
        for (moref, partial) in &mut views {
            let Ok(partial) = partial else { continue };
            let (vms, missing) = join(&partial.vms, &followed, |one| match one {
                Followed::Vm(vm) => Some(vm.clone().placed(&folders)),
                _ => None,
            });
            notes.extend(missing.into_iter().map(|vm| format!("{vm} of {moref} went away while it was read")));
            // A task that is gone has ended.
            let (tasks, _) = join(&partial.tasks, &followed, |one| match one {
                Followed::Task(task) => Some(task.clone()),
                _ => None,
            });
            let (datastores, _) = join(&partial.datastores, &followed, |one| match one {
                Followed::Datastore(accessible) => Some(*accessible),
                _ => None,
            });
            partial.view.vms = vms;
            partial.view.services = services(&partial.view.service_system, &followed);
            partial.view.tasks = tasks.map(|all| all.into_iter().flatten().collect());
            partial.view.parity.datastores = datastores.map(|all| host::tally(&all));
            partial.view.packages =
                packages.remove(moref).unwrap_or_else(|| Fact::unknown("the packages were not asked for"));
        }
        let parents = parents(hosts, &views);
        let read_at = self.now();
        let record = |host: &HostRef| {
            let mut view = views.get(&host.moref).cloned().unwrap_or_else(|| Err(gone())).map(|partial| partial.view);
            if let Ok(view) = &mut view {
                view.shell_login = self.shell_login(&host.name);
                if let Fact::Known(vms) = &mut view.vms {
                    vms.iter_mut().for_each(|vm| vm.node = self.node_unasked());
                }
            }
            HostRecord { host: host.clone(), read_at, view }
        };
        Read { records: hosts.iter().map(record).collect(), parents, notes }
    }

    /// Reads objects and makes something of each as its page comes, so that only one page is held.
    /// An object that is gone is left out.
    pub(super) async fn objects<T>(
        &self,
        wanted: Vec<MoRef>,
        sets: &[PropertySet],
        make: impl Fn(&ObjectContent) -> Result<T, HostFault>,
    ) -> Made<T> {
        let mut made = BTreeMap::new();
        let mut scope = Scope::Objects(wanted.clone());
        let Err(error) = self.vcenter().retrieve(&scope, sets, |page| keep(&mut made, &page, &make)).await else {
            return made;
        };
        // A fault may come from one object alone: each by itself then, so that the others are read.
        let alone = error.fault().is_some() && wanted.len() > 1;
        for one in wanted {
            if made.contains_key(&one) {
                continue;
            }
            let mut fault = of_error(&error);
            if alone {
                scope = Scope::Objects(vec![one.clone()]);
                match self.vcenter().retrieve(&scope, sets, |page| keep(&mut made, &page, &make)).await {
                    Ok(_) => continue,
                    Err(error) => fault = of_error(&error),
                }
            }
            made.insert(one, Err(fault));
        }
        made
    }

    /// VMs, tasks, datastores and service systems of these hosts.
    async fn followed(&self, partials: &[&Partial]) -> Made<Followed> {
        let references = partials.iter().flat_map(|partial| [&partial.vms, &partial.tasks, &partial.datastores]);
        let mut wanted: BTreeSet<MoRef> = references.filter_map(Fact::known).flatten().cloned().collect();
        wanted.extend(partials.iter().filter_map(|partial| partial.view.service_system.known()).cloned());
        let sets = [
            PropertySet::new(managed::VIRTUAL_MACHINE, &paths::names(paths::VM)),
            PropertySet::new(managed::TASK, &paths::names(paths::TASK)),
            PropertySet::new(managed::DATASTORE, &paths::names(paths::DATASTORE)),
            PropertySet::new(managed::SERVICE_SYSTEM, &paths::names(paths::SERVICES)),
        ];
        let make = |content: &ObjectContent| match content.object.kind.as_str() {
            managed::TASK => host::running_task(content).map(Followed::Task),
            managed::DATASTORE => host::accessible(content).map(Followed::Datastore),
            managed::SERVICE_SYSTEM => Ok(Followed::Services(host::services(content))),
            _ => Ok(Followed::Vm(Box::new(vm::partial(content)))),
        };
        self.objects(wanted.into_iter().collect(), &sets, make).await
    }

    /// The key of the field that holds markers.
    async fn marker_field(&self) -> Fact<i32> {
        if let Some(key) = self.marker_key.get() {
            return Fact::Known(*key);
        }
        let of_hosts = |kind: &Fact<String>| kind.known().is_none_or(|kind| kind == managed::HOST_SYSTEM);
        let is_ours = |field: &&CustomField| field.name == Marker::FIELD && of_hosts(&field.kind);
        match self.vcenter().custom_fields().await {
            Ok(fields) => match fields.iter().find(is_ours) {
                Some(field) => Fact::Known(*self.marker_key.get_or_init(|| field.key)),
                None => Fact::Absent,
            },
            Err(error) => Fact::unknown(chain(&error)),
        }
    }

    async fn packages(&self, partials: &[&Partial]) -> BTreeMap<MoRef, Fact<Vec<Package>>> {
        let one = |partial: &Partial| {
            let (host, image) = (partial.host.clone(), partial.image.clone());
            async move {
                let packages = match image {
                    Fact::Known(image) => match self.vcenter().fetch_packages(&image).await {
                        Ok(all) => Fact::Known(all.into_iter().filter(is_gpu_driver).collect()),
                        Err(error) => Fact::unknown(chain(&error)),
                    },
                    Fact::Absent => Fact::unknown("the host has no image manager"),
                    Fact::Unknown { why } => Fact::Unknown { why },
                };
                (host, packages)
            }
        };
        let asked: Vec<_> = partials.iter().map(|partial| one(partial)).collect();
        futures::stream::iter(asked).buffer_unordered(PACKAGES_AT_ONCE).collect().await
    }
}

fn keep<T>(made: &mut Made<T>, page: &[ObjectContent], make: &impl Fn(&ObjectContent) -> Result<T, HostFault>) {
    made.extend(page.iter().map(|content| (content.object.clone(), make(content))));
}

/// What was read behind a host's references, in their order, and those that are gone. Any other
/// fault makes the whole unknown: what is behind it could be what decides.
fn join<F, T>(
    references: &Fact<Vec<MoRef>>,
    read: &Made<F>,
    take: impl Fn(&F) -> Option<T>,
) -> (Fact<Vec<T>>, Vec<MoRef>) {
    let references = match references {
        Fact::Known(references) => references,
        Fact::Absent => return (Fact::Absent, Vec::new()),
        Fact::Unknown { why } => return (Fact::unknown(why.clone()), Vec::new()),
    };
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for reference in references {
        match read.get(reference) {
            Some(Ok(one)) => found.extend(take(one)),
            None | Some(Err(HostFault { kind: HostFaultKind::Gone, .. })) => missing.push(reference.clone()),
            Some(Err(HostFault { message, .. })) => {
                return (Fact::unknown(format!("{reference}: {message}")), missing);
            }
        }
    }
    (Fact::Known(found), missing)
}

/// The services of a host.
fn services(system: &Fact<MoRef>, read: &Made<Followed>) -> Fact<Vec<HostService>> {
    match system {
        Fact::Known(system) => match read.get(system) {
            Some(Ok(Followed::Services(services))) => services.clone(),
            Some(Err(fault)) => of_fault(fault),
            Some(Ok(_)) | None => Fact::unknown(format!("{system} could not be read")),
        },
        Fact::Absent => Fact::Absent,
        Fact::Unknown { why } => Fact::unknown(why.clone()),
    }
}

/// The cluster of each host by path: one host that shows it is enough.
fn parents(hosts: &[HostRef], views: &Made<Partial>) -> BTreeMap<String, Fact<MoRef>> {
    let mut parents: BTreeMap<String, Fact<MoRef>> = BTreeMap::new();
    for host in hosts {
        let parent = match views.get(&host.moref) {
            Some(Ok(partial)) => partial.parent.clone(),
            Some(Err(fault)) => of_fault(fault),
            None => Fact::unknown("none of its hosts exists any more"),
        };
        let known = parents.entry(host.cluster.clone()).or_insert_with(|| parent.clone());
        if known.known().is_none() {
            *known = parent;
        }
    }
    parents
}

/// A fault of an object as what is not known of it.
pub(super) fn of_fault<T>(fault: &HostFault) -> Fact<T> {
    Fact::unknown(fault.message.clone())
}

fn gone() -> HostFault {
    HostFault { kind: HostFaultKind::Gone, message: "it does not exist any more".to_owned() }
}

/// That anything at all was read of a host.
fn something(content: &ObjectContent) -> Result<(), HostFault> {
    if !content.properties.is_empty() {
        return Ok(());
    }
    let faults = || content.faults();
    let refused = faults().next().is_some() && faults().all(|found| found.kind == fault::NO_PERMISSION);
    let kind = if refused { HostFaultKind::NoPermission } else { HostFaultKind::Fault };
    let message = faults().next().map_or_else(|| "the server shows nothing of it".to_owned(), ToString::to_string);
    Err(HostFault { kind, message })
}

fn of_error(error: &Error) -> HostFault {
    let kind = if error.is_fault(fault::MANAGED_OBJECT_NOT_FOUND) {
        HostFaultKind::Gone
    } else if error.is_fault(fault::NO_PERMISSION) {
        HostFaultKind::NoPermission
    } else {
        HostFaultKind::Fault
    };
    HostFault { kind, message: chain(error) }
}

/// NVIDIA's packages, by the names and vendors seen in the field (vsphere-gpu §1.10, §1.11).
fn is_gpu_driver(package: &Package) -> bool {
    let name = package.name.to_ascii_lowercase();
    let vendor = package.vendor.to_ascii_lowercase();
    ["nvidia", "nvd"].iter().any(|known| vendor == *known || name.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, vendor: &str) -> Package {
        Package { name: name.to_owned(), version: "1".to_owned(), vendor: vendor.to_owned() }
    }

    #[test]
    fn drivers_are_known_by_name_or_vendor() {
        for (name, vendor) in [
            ("NVD-AIE-800", "NVIDIA"),
            ("NVIDIA-AIE_ESXi_8.0.0_Driver", "NVD"),
            ("nvdgpumgmtdaemon", "BCM"),
            ("nvd-gpu-mgmt-daemon", ""),
            ("renamed", "nvidia"),
        ] {
            assert!(is_gpu_driver(&package(name, vendor)), "{name}");
        }
        assert!(!is_gpu_driver(&package("nvme-pcie", "VMW")));
        assert!(!is_gpu_driver(&package("nmlx5-core", "VMW")));
    }

    #[test]
    fn what_is_gone_is_skipped_and_what_is_unreadable_makes_the_whole_unknown() {
        let [a, b, c] = ["vm-1", "vm-2", "vm-3"].map(|id| MoRef::new("VirtualMachine", id));
        let refused = HostFault { kind: HostFaultKind::NoPermission, message: "no".to_owned() };
        let mut read = BTreeMap::from([(a.clone(), Ok(1)), (b.clone(), Err(gone()))]);
        let references = Fact::Known(vec![a.clone(), b.clone(), c.clone()]);
        let join = |references, read: &Made<i32>| join(references, read, |one| Some(*one));
        assert_eq!(join(&references, &read), (Fact::Known(vec![1]), vec![b, c.clone()]));
        read.insert(c.clone(), Err(refused));
        assert!(join(&references, &read).0.is_unknown());
        assert!(join(&Fact::unknown("why"), &read).0.is_unknown());
    }
}
