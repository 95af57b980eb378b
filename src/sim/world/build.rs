//! A document becomes a state: ids in the order of the document, so that they are the same each time.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::build_host::{NewHost, make_host};
use super::build_vm::{check_overrides, make_vm};
use super::error::WorldError;
use super::state::{Cluster, Datacenter, Datastore, Folder, FolderKind, Parent, State};
use crate::model::HostPattern;
use crate::sim::behaviour::{Due, Transition};
use crate::sim::document::{
    Actor, Cluster as ClusterSpec, Datacenter as DatacenterSpec, Deed, Drs, DryRuns, Face, FaultRule, HostGroup,
    Trigger, Vm as VmSpec, WorldSpec,
};

/// The error for a place in the document.
pub(super) fn impossible(at: &str, what: impl Into<String>) -> WorldError {
    WorldError::Impossible { at: at.to_owned(), what: what.into() }
}

/// The root folder is 1, as on every vCenter (`group-d1`).
pub(in crate::sim) const ROOT: u32 = 1;

/// Makes the state that the document describes.
pub(super) fn state(spec: &WorldSpec) -> Result<State, WorldError> {
    let mut build = Build::new(spec);
    for (index, datacenter) in spec.datacenters.iter().enumerate() {
        build.datacenter(datacenter, &format!("datacenters[{index}]"))?;
    }
    super::build_vm::seat_all(&mut build.state)?;
    super::build_guest::make_guests(&mut build.state, spec)?;
    build.actors()?;
    build.faults()?;
    Ok(build.state)
}

struct Build<'a> {
    spec: &'a WorldSpec,
    state: State,
    next_id: u32,
    /// Folders by the folder above and name.
    folders: BTreeMap<(u32, String), u32>,
}

impl<'a> Build<'a> {
    fn new(spec: &'a WorldSpec) -> Self {
        let state = State {
            time: spec.now,
            next: 0,
            folders: BTreeMap::from([(
                ROOT,
                Folder { name: "Datacenters".to_owned(), kind: FolderKind::Root, parent: Parent::None },
            )]),
            datacenters: BTreeMap::new(),
            clusters: BTreeMap::new(),
            hosts: BTreeMap::new(),
            vms: BTreeMap::new(),
            datastores: BTreeMap::new(),
            fields: BTreeMap::new(),
            options: spec.vcenter.options.clone(),
            tasks: BTreeMap::new(),
            events: Vec::new(),
            queue: BTreeMap::new(),
            guests: BTreeMap::new(),
            log: Vec::new(),
            struck: BTreeMap::new(),
            calls: BTreeMap::new(),
        };
        Self { spec, state, next_id: ROOT, folders: BTreeMap::new() }
    }

    fn id(&mut self) -> u32 {
        self.next_id += 1;
        self.next_id
    }

    /// The folders of a path below a folder, made if need be; the last part is not a folder.
    fn folders<'p>(
        &mut self,
        from: u32,
        kind: FolderKind,
        path: &'p str,
        at: &str,
    ) -> Result<(u32, &'p str), WorldError> {
        let mut parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(impossible(at, format!("`{path}` has an empty part")));
        }
        let Some(last) = parts.pop() else { return Err(impossible(at, "an empty path")) };
        let mut folder = from;
        for part in parts {
            let key = (folder, part.to_owned());
            folder = match self.folders.get(&key) {
                Some(known) => *known,
                None => {
                    let id = self.id();
                    let new = Folder { name: unescape(part), kind, parent: Parent::Folder(folder) };
                    self.state.folders.insert(id, new);
                    self.folders.insert(key, id);
                    id
                }
            };
        }
        Ok((folder, last))
    }

    fn own_folder(&mut self, datacenter: u32, name: &str, kind: FolderKind) -> u32 {
        let id = self.id();
        let folder = Folder { name: name.to_owned(), kind, parent: Parent::Datacenter(datacenter) };
        self.state.folders.insert(id, folder);
        id
    }

    fn datacenter(&mut self, spec: &DatacenterSpec, at: &str) -> Result<(), WorldError> {
        let (parent, name) = self.folders(ROOT, FolderKind::Root, &spec.path, &format!("{at}.path"))?;
        let name = unescape(name);
        if self.state.datacenters.values().any(|known| known.parent == parent && known.name == name) {
            return Err(impossible(at, format!("the datacenter `{}` is there twice", spec.path)));
        }
        let id = self.id();
        let vm_folder = self.own_folder(id, "vm", FolderKind::Vm);
        let host_folder = self.own_folder(id, "host", FolderKind::Host);
        let datastore_folder = self.own_folder(id, "datastore", FolderKind::Datastore);
        let network_folder = self.own_folder(id, "network", FolderKind::Network);
        let datacenter = Datacenter { name, parent, host_folder, vm_folder, datastore_folder, network_folder };
        self.state.datacenters.insert(id, datacenter);
        for (index, cluster) in spec.clusters.iter().enumerate() {
            self.cluster(id, cluster, &format!("{at}.clusters[{index}]"))?;
        }
        for (index, group) in spec.hosts.iter().enumerate() {
            self.standalone(id, group, &format!("{at}.hosts[{index}]"))?;
        }
        Ok(())
    }

    fn host_folder(&self, datacenter: u32) -> u32 {
        self.state.datacenters.get(&datacenter).map_or(ROOT, |known| known.host_folder)
    }

    fn cluster(&mut self, datacenter: u32, spec: &ClusterSpec, at: &str) -> Result<(), WorldError> {
        let from = self.host_folder(datacenter);
        let (parent, name) = self.folders(from, FolderKind::Host, &spec.name, &format!("{at}.name"))?;
        let name = unescape(name);
        if self.state.clusters.values().any(|known| known.parent == parent && known.name == name) {
            return Err(impossible(at, format!("the cluster `{name}` is there twice")));
        }
        let id = self.id();
        check_overrides(spec, at)?;
        let cluster = Cluster {
            name: name.clone(),
            parent,
            datacenter,
            is_cluster: true,
            ha: spec.ha.enabled,
            admission: spec.ha.admission.filter(|_| spec.ha.enabled),
            drs: spec.drs.clone(),
        };
        self.state.clusters.insert(id, cluster);
        let most = spec.hosts.iter().map(|group| group.datastores).max().unwrap_or(0);
        let datastores = self.datastores(datacenter, &name, most);
        for (index, group) in spec.hosts.iter().enumerate() {
            let at = format!("{at}.hosts[{index}]");
            for name in expand(&group.names, &at)? {
                self.host(id, &name, group, &datastores, &at)?;
            }
        }
        for (index, vm) in spec.vms.iter().enumerate() {
            self.vm(id, datacenter, vm, &format!("{at}.vms[{index}]"))?;
        }
        Ok(())
    }

    fn standalone(&mut self, datacenter: u32, group: &HostGroup, at: &str) -> Result<(), WorldError> {
        let parent = self.host_folder(datacenter);
        for name in expand(&group.names, at)? {
            let id = self.id();
            let compute = Cluster {
                name: name.clone(),
                parent,
                datacenter,
                is_cluster: false,
                ha: false,
                admission: None,
                drs: Drs::default(),
            };
            self.state.clusters.insert(id, compute);
            let datastores = self.datastores(datacenter, &name, group.datastores);
            self.host(id, &name, group, &datastores, at)?;
        }
        Ok(())
    }

    fn datastores(&mut self, datacenter: u32, of: &str, count: u32) -> Vec<u32> {
        let folder = self.state.datacenters.get(&datacenter).map_or(ROOT, |known| known.datastore_folder);
        (1..=count)
            .map(|number| {
                let id = self.id();
                self.state.datastores.insert(id, Datastore { name: format!("{of}-ds{number}"), datacenter, folder });
                id
            })
            .collect()
    }

    fn host(
        &mut self,
        cluster: u32,
        name: &str,
        group: &HostGroup,
        datastores: &[u32],
        at: &str,
    ) -> Result<(), WorldError> {
        if self.state.hosts.values().any(|known| known.cluster == cluster && known.name == name) {
            return Err(impossible(at, format!("the host `{name}` is there twice")));
        }
        let ha = self.state.clusters.get(&cluster).is_some_and(|cluster| cluster.ha);
        let new = NewHost { name, cluster, group, ha, spec: self.spec, at };
        let mut host = make_host(&new)?;
        host.datastores = datastores.iter().take(group.datastores as usize).copied().collect();
        for (field, value) in &group.fields {
            let key = self.field(field);
            let value = super::state::FieldValue { value: value.clone(), old: None, readable_at: self.spec.now };
            host.values.insert(key, value);
        }
        let id = self.id();
        self.state.hosts.insert(id, host);
        Ok(())
    }

    fn field(&mut self, name: &str) -> i32 {
        let known = self.state.fields.iter().find(|(_, field)| field.name == name).map(|(key, _)| *key);
        known.unwrap_or_else(|| {
            let key = self.state.fields.keys().last().map_or(101, |last| last + 1);
            let def = super::state::FieldDef { name: name.to_owned(), kind: Some("HostSystem".to_owned()) };
            self.state.fields.insert(key, def);
            key
        })
    }

    fn vm(&mut self, cluster: u32, datacenter: u32, spec: &VmSpec, at: &str) -> Result<(), WorldError> {
        let on_this = |host: &super::state::Host| host.cluster == cluster && host.name == spec.host;
        let Some((host, _)) = self.state.hosts.iter().find(|(_, host)| on_this(host)) else {
            return Err(impossible(&format!("{at}.host"), format!("the cluster has no host `{}`", spec.host)));
        };
        let host = *host;
        let top = self.state.datacenters.get(&datacenter).map_or(ROOT, |known| known.vm_folder);
        let folder = match &spec.folder {
            // The last part is no folder, so one is added.
            Some(path) => self.folders(top, FolderKind::Vm, &format!("{path}/-"), &format!("{at}.folder"))?.0,
            None => top,
        };
        let vm = make_vm(spec, datacenter, folder, host, self.state.time, at)?;
        let id = self.id();
        self.state.vms.insert(id, vm);
        Ok(())
    }

    /// A call that can never come would wait for ever, and nobody would know.
    fn trigger(&self, actor: &Actor, once: &Trigger) -> Result<(), String> {
        if once.method.contains(' ') {
            let of = once.object.as_deref().and_then(|object| object.split('/').next()).unwrap_or_default();
            let known = self.state.guests.contains_key(of);
            return known.then_some(()).ok_or_else(|| {
                format!(
                    "`{}` is called on objects of a guest cluster: `object` has to name one, `CLUSTER/nodes/NAME`",
                    once.method
                )
            });
        }
        let Some(name) = once.object.as_ref().or(actor.host.as_ref()) else {
            return Err("`object` has to name what is called".to_owned());
        };
        let is_vm = self.state.vms.values().any(|vm| vm.name == *name);
        let is_host = self.state.hosts.values().any(|host| host.name == *name);
        let of_vms = OF_VMS.contains(&once.method.as_str());
        match (is_vm, is_host) {
            (false, false) => Err(format!("there is neither a host nor a VM `{name}`")),
            _ if once.method == OF_EITHER => Ok(()),
            (false, true) if of_vms => Err(format!("`{}` is called on VMs: `object` has to name one", once.method)),
            (true, false) if !of_vms => Err(format!("`{}` is called on hosts, and `{name}` is a VM", once.method)),
            _ => Ok(()),
        }
    }

    fn faults(&self) -> Result<(), WorldError> {
        let idle = |rule: &FaultRule| rule.dry_run != DryRuns::No && rule.face != Face::K8s;
        match self.spec.faults.iter().position(idle) {
            Some(index) => Err(impossible(&format!("faults[{index}].dryRun"), "only Kubernetes has dry runs")),
            None => Ok(()),
        }
    }

    /// Actors that wait for no call act after the start.
    fn actors(&mut self) -> Result<(), WorldError> {
        for (index, actor) in self.spec.actors.iter().enumerate() {
            let wrong = |field: &str, what: String| impossible(&format!("actors[{index}]{field}"), what);
            match (&actor.host, actor.does.of_guest()) {
                (None, Some((cluster, _))) if !self.state.guests.contains_key(cluster) => {
                    return Err(wrong(".does", format!("there is no guest cluster `{cluster}`")));
                }
                (None, Some(_)) => {}
                (Some(_), Some(_)) => return Err(wrong(".host", "what it does is done to no host".to_owned())),
                (None, None) => return Err(wrong(".host", "it has to be named".to_owned())),
                (Some(host), None) if !self.state.hosts.values().any(|known| known.name == *host) => {
                    return Err(wrong(".host", format!("there is no host `{host}`")));
                }
                (Some(_), None) => {}
            }
            if let Deed::PowerOn { vm } | Deed::PowerOff { vm } | Deed::MoveIn { vm } = &actor.does
                && !self.state.vms.values().any(|known| known.name == *vm)
            {
                return Err(impossible(&format!("actors[{index}].does"), format!("there is no VM `{vm}`")));
            }
            if let Some(once) = &actor.once {
                self.trigger(actor, once).map_err(|why| impossible(&format!("actors[{index}].once"), why))?;
            } else {
                let after = jiff::SignedDuration::try_from(actor.after.0).unwrap_or(jiff::SignedDuration::MAX);
                let at = self.spec.now.checked_add(after).unwrap_or(jiff::Timestamp::MAX);
                let number = self.state.number();
                self.state.queue.insert(number, Due { at, what: Transition::Acts { actor: index } });
            }
        }
        Ok(())
    }
}

/// Methods that are called on VMs.
const OF_VMS: [&str; 5] = ["PowerOnVM_Task", "PowerOffVM_Task", "ShutdownGuest", "RelocateVM_Task", "ReconfigVM_Task"];
/// A task is one of a host or of a VM.
const OF_EITHER: &str = "CancelTask";

/// A name of a path: `%2f` stands for the `/` that parts the path.
fn unescape(part: &str) -> String {
    part.replace("%2f", "/").replace("%2F", "/").replace("%25", "%")
}

/// A UUID made from a name, the same each time.
pub(in crate::sim) fn uuid(of: &str) -> String {
    let hash = Sha256::digest(of.as_bytes());
    let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// `esx-[01-03]` is `esx-01`, `esx-02`, `esx-03`.
fn expand(pattern: &str, at: &str) -> Result<Vec<String>, WorldError> {
    let names = pattern.parse::<HostPattern>().ok().and_then(|pattern| pattern.names().map(<[String]>::to_vec));
    names.ok_or_else(|| {
        impossible(&format!("{at}.names"), format!("`{pattern}` is not a name nor a range as `esx-[01-03]`"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_expand_with_their_zeros() {
        assert_eq!(expand("esx-[08-10].lab", "x").unwrap(), ["esx-08.lab", "esx-09.lab", "esx-10.lab"]);
        assert_eq!(expand("esx-07", "x").unwrap(), ["esx-07"]);
        for wrong in ["", "esx-[1", "esx-[a-b]", "esx-[3-1]", "esx-*"] {
            assert!(expand(wrong, "x").is_err(), "{wrong}");
        }
    }

    #[test]
    fn uuids_are_stable_and_differ() {
        assert_eq!(uuid("a"), uuid("a"));
        assert_ne!(uuid("a"), uuid("b"));
        assert_eq!(uuid("a").len(), 36);
    }
}
