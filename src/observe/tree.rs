//! Parent chains of inventory objects -> paths -> the roster. Pure.

use std::collections::BTreeMap;

use crate::model::{ClusterRef, HostName, HostRef, MoRef, Roster, path_part, unescape};

/// Folders in folders, datacenter, host folder, cluster, host. vCenter allows fewer; a longer chain
/// is a lie or a loop.
const DEEPEST: usize = 64;

/// One inventory object as the container view lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entity {
    /// Who it is.
    pub moref: MoRef,
    /// `name` as received.
    pub name: String,
    /// `parent`; none where the server showed none.
    pub parent: Option<MoRef>,
}

/// Builds the roster. What can't be placed under `root` is left out and noted: a path that does
/// not begin at the root could name two objects.
pub(super) fn roster(root: &MoRef, entities: Vec<Entity>, mut notes: Vec<String>) -> Roster {
    let by_ref: BTreeMap<MoRef, Entity> = entities.into_iter().map(|entity| (entity.moref.clone(), entity)).collect();
    let mut clusters = Vec::new();
    let mut hosts = Vec::new();
    for entity in by_ref.values() {
        if !matches!(entity.moref.kind.as_str(), "ClusterComputeResource" | "HostSystem") {
            continue;
        }
        let name = unescape(&entity.name);
        let path = match path(root, &by_ref, &entity.moref) {
            Ok(path) => path,
            Err(why) => {
                notes.push(format!("{} `{name}` is left out: {why}", entity.moref));
                continue;
            }
        };
        if entity.moref.kind == "HostSystem" {
            // The parent of a host is its cluster or, standalone, a ComputeResource of its own.
            let cluster = path.rsplit_once('/').map_or_else(String::new, |(parent, _)| parent.to_owned());
            hosts.push(HostRef { moref: entity.moref.clone(), name: HostName(name), path, cluster });
        } else {
            clusters.push(ClusterRef { moref: entity.moref.clone(), name, path });
        }
    }
    clusters.sort_by(|a, b| a.path.cmp(&b.path).then_with(|| a.moref.cmp(&b.moref)));
    hosts.sort_by(|a, b| a.path.cmp(&b.path).then_with(|| a.moref.cmp(&b.moref)));
    Roster { clusters, hosts, notes }
}

/// The path of an object from below the root, or why it can't be told.
pub(super) fn path(root: &MoRef, by_ref: &BTreeMap<MoRef, Entity>, from: &MoRef) -> Result<String, String> {
    let mut parts = Vec::new();
    let mut at = from;
    while at != root {
        let entity = by_ref.get(at).ok_or_else(|| format!("{at} above it could not be read"))?;
        parts.push(path_part(&unescape(&entity.name)));
        if parts.len() > DEEPEST {
            return Err(format!("its parents go deeper than {DEEPEST} levels"));
        }
        at = entity.parent.as_ref().ok_or_else(|| format!("{at} does not show its parent"))?;
    }
    parts.reverse();
    Ok(parts.iter().fold(String::new(), |path, part| path + "/" + part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(kind: &str, id: &str, name: &str, parent: Option<(&str, &str)>) -> Entity {
        Entity {
            moref: MoRef::new(kind, id),
            name: name.to_owned(),
            parent: parent.map(|(kind, id)| MoRef::new(kind, id)),
        }
    }

    fn root() -> MoRef {
        MoRef::new("Folder", "group-d1")
    }

    fn nested() -> Vec<Entity> {
        vec![
            entity("Folder", "group-d2", "Prod", Some(("Folder", "group-d1"))),
            entity("Folder", "group-d3", "EU", Some(("Folder", "group-d2"))),
            entity("Datacenter", "datacenter-4", "DC1", Some(("Folder", "group-d3"))),
            entity("Folder", "group-h5", "host", Some(("Datacenter", "datacenter-4"))),
            entity("ClusterComputeResource", "domain-c6", "gpu%2fa", Some(("Folder", "group-h5"))),
            entity("HostSystem", "host-7", "esx-01", Some(("ClusterComputeResource", "domain-c6"))),
            entity("ComputeResource", "domain-s8", "esx-99", Some(("Folder", "group-h5"))),
            entity("HostSystem", "host-9", "esx-99", Some(("ComputeResource", "domain-s8"))),
        ]
    }

    #[test]
    fn d03_a_datacenter_inside_folders_is_found() {
        let roster = roster(&root(), nested(), Vec::new());
        let paths: Vec<&str> = roster.hosts.iter().map(|host| host.path.as_str()).collect();
        assert_eq!(paths, ["/Prod/EU/DC1/host/esx-99/esx-99", "/Prod/EU/DC1/host/gpu%2fa/esx-01"]);
        assert_eq!(roster.clusters[0].name, "gpu/a");
        assert_eq!(roster.hosts[1].cluster, roster.clusters[0].path);
    }

    #[test]
    fn a_standalone_host_has_the_path_of_its_compute_resource() {
        let roster = roster(&root(), nested(), Vec::new());
        assert_eq!(roster.hosts[0].cluster, "/Prod/EU/DC1/host/esx-99");
        assert_eq!(roster.clusters.len(), 1, "a ComputeResource is no cluster");
    }

    #[test]
    fn d06_a_host_whose_parent_went_away_is_noted_and_the_others_stay() {
        let mut entities = nested();
        entities.retain(|entity| entity.moref.id != "domain-c6");
        let roster = roster(&root(), entities, Vec::new());
        assert_eq!(roster.hosts.len(), 1);
        assert_eq!(roster.notes.len(), 1);
        assert!(roster.notes[0].contains("esx-01") && roster.notes[0].contains("domain-c6"), "{:?}", roster.notes);
    }

    #[test]
    fn a_loop_of_parents_ends() {
        let mut entities = nested();
        entities[0].parent = Some(MoRef::new("Folder", "group-d3"));
        let roster = roster(&root(), entities, Vec::new());
        assert!(roster.hosts.is_empty());
        assert_eq!(roster.notes.len(), 3);
    }
}
