//! Which version of vim25 to speak, and what each version knows.

use std::fmt;

use super::decode::DecodeError;
use super::names::path;
use super::tree::{Limits, Node};

/// A version of vim25, `8.0.3.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiVersion([u8; 4]);

impl ApiVersion {
    /// vSphere 8.0 U3: the first with `vgpuMode`.
    pub const V8_0_3: Self = Self([8, 0, 3, 0]);

    /// The versions that we know, newest first (vsphere-gpu §5.1). Older ones are not spoken.
    pub const KNOWN: [Self; 9] = [
        Self([9, 1, 0, 0]),
        Self([9, 0, 0, 0]),
        Self::V8_0_3,
        Self([8, 0, 2, 0]),
        Self([8, 0, 1, 0]),
        Self([8, 0, 0, 1]),
        Self([7, 0, 3, 0]),
        Self([7, 0, 2, 0]),
        Self([7, 0, 0, 0]),
    ];

    /// Value of the `SOAPAction` header; the quotes are part of it.
    pub fn soap_action(&self) -> String {
        format!("\"urn:vim25/{self}\"")
    }

    /// Whether this version knows `vgpuMode`.
    pub fn has_vgpu_mode(&self) -> bool {
        *self >= Self::V8_0_3
    }

    /// Whether this version knows a property path of a managed type. A path that it does not know
    /// would make the whole call fail with `InvalidProperty`, so it is never sent.
    pub fn knows(&self, path: &str) -> bool {
        NEWER_PATHS.iter().all(|(newer, since)| *newer != path || self >= since)
    }

    /// The newest version that both sides know, from `vimServiceVersions.xml`. The first `<version>`
    /// may be an internal token such as `uA046D008`, so any place counts.
    ///
    /// # Errors
    /// If the document is none, or holds no version that we know.
    pub fn negotiate(document: &[u8]) -> Result<Self, DecodeError> {
        let fail = |what: String| DecodeError { element: "namespaces".to_owned(), what };
        let tree =
            Node::parse(document, Limits { depth: 8, nodes: 10_000 }).map_err(|error| fail(error.to_string()))?;
        let offered: Vec<&str> = tree
            .all("namespace")
            .filter(|namespace| namespace.text_of("name").map(str::trim) == Some("urn:vim25"))
            .flat_map(|namespace| {
                let prior = namespace.all("priorVersions").flat_map(|prior| prior.all("version"));
                namespace.all("version").chain(prior)
            })
            .map(|version| version.text.trim())
            .collect();
        let known = Self::KNOWN.into_iter().find(|known| offered.contains(&known.to_string().as_str()));
        known.ok_or_else(|| fail(format!("no version of vim25 that we know among: {}", offered.join(" "))))
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.0;
        write!(f, "{a}.{b}.{c}.{d}")
    }
}

/// Paths that we read and that are newer than the oldest version of [`ApiVersion::KNOWN`].
const NEWER_PATHS: &[(&str, ApiVersion)] = &[(path::ASSIGN_HW_PCI_CONFIG, ApiVersion([7, 0, 2, 0]))];

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(first: &str, prior: &[&str]) -> Vec<u8> {
        let prior: String = prior.iter().map(|v| format!("<version>{v}</version>")).collect();
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\" ?>\n<namespaces version=\"1.0\">\n<namespace><name>urn:other</name>\
             <version>9.1.0.0</version></namespace><namespace><name>urn:vim25</name><version>{first}</version>\
             <priorVersions>{prior}</priorVersions></namespace></namespaces>"
        )
        .into_bytes()
    }

    #[test]
    fn the_newest_mutual_version_is_spoken() {
        let negotiate = |first, prior: &[&str]| ApiVersion::negotiate(&offer(first, prior)).map(|v| v.to_string());
        assert_eq!(negotiate("8.0.3.0", &["8.0.2.0"]).as_deref(), Ok("8.0.3.0"));
        assert_eq!(negotiate("uA046D008", &["8.0.2.0", "8.0.1.0", "4.0"]).as_deref(), Ok("8.0.2.0"));
        assert_eq!(negotiate("12.0.0.0", &["9.0.0.0", "8.0.3.0"]).as_deref(), Ok("9.0.0.0"));
        let error = negotiate("6.7.3", &["6.5"]).unwrap_err();
        assert!(error.to_string().contains("6.7.3 6.5"), "{error}");
        assert!(ApiVersion::negotiate(b"<html>").is_err());
    }

    #[test]
    fn what_a_version_knows() {
        let [old, .., oldest] = [ApiVersion::KNOWN[7], ApiVersion::KNOWN[8]];
        assert!(old.knows(path::ASSIGN_HW_PCI_CONFIG) && !oldest.knows(path::ASSIGN_HW_PCI_CONFIG));
        assert!(oldest.knows(path::NAME));
        assert!(ApiVersion::V8_0_3.has_vgpu_mode() && !ApiVersion::KNOWN[3].has_vgpu_mode());
        assert_eq!(ApiVersion::V8_0_3.soap_action(), "\"urn:vim25/8.0.3.0\"");
    }
}
