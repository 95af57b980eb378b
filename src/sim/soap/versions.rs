//! Versions that a server has, and how it tells them.

use super::shape::Version;
use crate::vim25::wire::names;

/// Versions of vim25, newest first, as the recordings and pyVmomi's tables list them.
const ALL: [&str; 30] = [
    "9.1.0.0", "9.0.0.0", "8.0.3.0", "8.0.2.0", "8.0.1.0", "8.0.0.2", "8.0.0.1", "8.0.0.0", "7.0.3.2", "7.0.3.1",
    "7.0.3.0", "7.0.2.1", "7.0.2.0", "7.0.1.1", "7.0.1.0", "7.0.0.2", "7.0.0.0", "6.9.1", "6.8.7", "6.7.3", "6.7.2",
    "6.7.1", "6.7", "6.5", "6.0", "5.5", "5.1", "5.0", "4.1", "4.0",
];

/// `8.0.3` is vim25 `8.0.3.0`.
pub(super) fn api_version(product: &str) -> String {
    let mut parts: Vec<&str> = product.split('.').collect();
    parts.resize(4, "0");
    parts.join(".")
}

/// The version document: the first version may be an internal token that no client knows
/// (vsphere-gpu §5.1).
pub(super) fn document(product: &str, internal: Option<&str>) -> String {
    let public = api_version(product);
    let limit = Version::parse(&public);
    let mut known = ALL.iter().filter(|version| Version::parse(version) <= limit);
    let first = internal.map(str::to_owned).or_else(|| known.next().map(|version| (*version).to_owned()));
    let prior: String = known.map(|version| format!("<version>{version}</version>")).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" ?><namespaces version=\"1.0\"><namespace><name>urn:vim25</name>\
         <version>{}</version><priorVersions>{prior}</priorVersions></namespace></namespaces>",
        first.unwrap_or_default()
    )
}

/// The version of a request, from its `SOAPAction`: `"urn:vim25/8.0.3.0"`, quotes included.
pub(super) fn of_action(action: Option<&str>) -> Version {
    action
        .map(|action| action.trim().trim_matches('"'))
        .and_then(|action| action.strip_prefix("urn:vim25/"))
        .and_then(Version::parse)
        .unwrap_or(Version::OLDEST)
}

/// The path of the version document.
pub(super) const PATH: &str = names::VERSIONS_PATH;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_internal_token_comes_before_the_public_versions() {
        let text = document("8.0.3", Some("uA046D008"));
        assert!(text.contains("<version>uA046D008</version><priorVersions><version>8.0.3.0</version>"), "{text}");
        let plain = document("8.0.2", None);
        assert!(plain.contains("<version>8.0.2.0</version><priorVersions><version>8.0.1.0</version>"), "{plain}");
        assert!(!plain.contains("8.0.3.0"));
    }

    #[test]
    fn the_version_of_a_request_is_in_its_action() {
        assert_eq!(Some(of_action(Some("\"urn:vim25/8.0.3.0\""))), Version::parse("8.0.3.0"));
        assert_eq!(of_action(Some("\"urn:vim25\"")), Version::OLDEST);
        assert_eq!(of_action(None), Version::OLDEST);
    }
}
