//! Clusters and hosts of the roster, by what a profile calls them.

use crate::document::nearest;
use crate::model::{At, ClusterRef, Finding, HostRef, Roster, Rule, unescape};

/// A path as the names on the way. `%2f` is a `/`, `%5c` a `\` and `%25` a `%` inside a name, in
/// either case, as vim25 escapes them; any other `%` is itself.
pub(super) fn path_names(path: &str) -> Vec<String> {
    path.split('/').filter(|part| !part.is_empty()).map(unescape).collect()
}

/// The cluster that a profile means: by its path if it starts with `/`, else by its name, which must
/// be the only one (cases D02, D04).
pub(super) fn cluster<'r>(wanted: &At<String>, roster: &'r Roster) -> Result<&'r ClusterRef, Box<Finding>> {
    if wanted.starts_with('/') {
        let names = path_names(wanted);
        return roster.clusters.iter().find(|cluster| path_names(&cluster.path) == names).ok_or_else(|| {
            let finding = Finding::new(&Rule::DOC_CLUSTER, format!("no cluster has the path {}", shown(wanted)));
            let near = nearest(wanted, roster.clusters.iter().map(|cluster| cluster.path.as_str()));
            Box::new(or_all(finding.at(&wanted.place), near, roster))
        });
    }
    let plain = unescape(wanted);
    let named: Vec<&ClusterRef> =
        roster.clusters.iter().filter(|cluster| cluster.name == wanted.value || cluster.name == plain).collect();
    match named.as_slice() {
        [one] => Ok(one),
        [] => {
            let finding = Finding::new(&Rule::DOC_CLUSTER, format!("there is no cluster {}", shown(wanted)));
            let near = nearest(wanted, roster.clusters.iter().map(|cluster| cluster.name.as_str()));
            Err(Box::new(or_all(finding.at(&wanted.place), near, roster)))
        }
        several => {
            let message = format!("{} clusters have the name {}", several.len(), shown(wanted));
            let mut finding = Finding::new(&Rule::DOC_CLUSTER, message)
                .at(&wanted.place)
                .hint(format!("write the path: `cluster: {}`", several[0].path));
            finding.evidence.extend(several.iter().map(|cluster| cluster.path.clone()));
            Err(Box::new(finding))
        }
    }
}

/// The nearest name as a hint, or all paths as evidence.
fn or_all(mut finding: Finding, near: Option<&str>, roster: &Roster) -> Finding {
    match near {
        Some(near) => finding.hint(format!("nearest: {near}")),
        None => {
            finding.evidence.extend(roster.clusters.iter().map(|cluster| format!("there is {}", cluster.path)));
            finding
        }
    }
}

/// Hosts of a cluster, in name order.
pub(super) fn hosts_of<'r>(cluster: &ClusterRef, roster: &'r Roster) -> Vec<&'r HostRef> {
    let names = path_names(&cluster.path);
    let mut hosts: Vec<&HostRef> = roster.hosts.iter().filter(|host| path_names(&host.cluster) == names).collect();
    hosts.sort_by(|a, b| (&a.name, &a.moref).cmp(&(&b.name, &b.moref)));
    hosts
}

/// A name in a message: as it is, but for characters that would tear the line.
pub(super) fn shown(name: &str) -> String {
    name.chars().flat_map(|c| if c.is_control() { c.escape_debug().collect() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn d13_names_in_paths_byte_for_byte() {
        assert_eq!(path_names("/EU/DC%2f1/host/gpu%2Fa"), ["EU", "DC/1", "host", "gpu/a"]);
        assert_eq!(path_names("/100%/a%25/b%252f/c%5Cd"), ["100%", "a%", "b%2f", "c\\d"]);
        assert_eq!(path_names("/東京/ü \"#'/%"), ["東京", "ü \"#'", "%"]);
        assert_eq!(path_names("//"), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn an_escaped_path_gives_its_names_back(names in proptest::collection::vec("[^\\p{C}]{1,8}", 1..5)) {
            let escape = |name: &String| name.replace('%', "%25").replace('/', "%2f");
            let path: String = names.iter().map(|name| format!("/{}", escape(name))).collect();
            prop_assert_eq!(path_names(&path), names);
        }

        #[test]
        fn any_text_is_a_path(text in any::<String>()) {
            path_names(&text);
        }
    }
}
