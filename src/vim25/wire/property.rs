//! What the property collector answers: objects with the properties that were read, and why others were not.

use super::decode::{DecodeError, reference, required};
use super::fault::Fault;
use super::names::fault::{MANAGED_OBJECT_NOT_FOUND, NOT_AUTHENTICATED};
use super::tree::Node;
use crate::model::{Fact, MoRef};

/// An object and what was read of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectContent {
    /// Which object.
    pub object: MoRef,
    /// Properties by path, values as received (a type that we do not know stays as it is).
    pub properties: Vec<(String, Node)>,
    /// Properties that were asked for and could not be read.
    pub missing: Vec<Missing>,
}

/// A property that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Its path.
    pub path: String,
    /// Why.
    pub why: MissingWhy,
}

/// Why a property could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingWhy {
    /// The server says so.
    Fault(Fault),
    /// It was not asked for: the negotiated version does not know it.
    Version(String),
}

impl ObjectContent {
    /// An object of which nothing was read yet.
    pub fn empty(object: MoRef) -> Self {
        Self { object, properties: Vec::new(), missing: Vec::new() }
    }

    /// An `ObjectContent` of an answer.
    ///
    /// # Errors
    /// If it does not say which object it is.
    pub fn decode(node: &Node) -> Result<Self, DecodeError> {
        let mut content = Self::empty(reference(required(node, "obj")?)?);
        for set in node.all("propSet") {
            if let (Some(name), Some(value)) = (set.text_of("name"), set.get("val")) {
                content.properties.push((name.to_owned(), value.clone()));
            }
        }
        content.missing = missing(node);
        Ok(content)
    }

    /// The value of a property as received.
    pub fn get(&self, path: &str) -> Option<&Node> {
        self.properties.iter().find(|(name, _)| name == path).map(|(_, value)| value)
    }

    /// A property as a fact: known if it was read and decodes, absent if the server has none,
    /// unknown with the reason otherwise. One that cannot be decoded leaves the others alone.
    ///
    /// Ask only for paths that were requested: a path that was not is reported absent.
    pub fn fact<T>(&self, path: &str, decode: impl FnOnce(&Node) -> Result<T, DecodeError>) -> Fact<T> {
        if let Some(value) = self.get(path) {
            return match decode(value) {
                Ok(value) => Fact::Known(value),
                Err(error) => Fact::unknown(format!("{path} was not understood: {error}")),
            };
        }
        let covers = |missing: &&Missing| {
            let asked = missing.path.as_str();
            asked.is_empty() || path == asked || path.strip_prefix(asked).is_some_and(|rest| rest.starts_with('.'))
        };
        match self.missing.iter().find(covers) {
            Some(Missing { why: MissingWhy::Fault(fault), .. }) => Fact::unknown(fault.to_string()),
            Some(Missing { why: MissingWhy::Version(why), .. }) => Fact::unknown(why.clone()),
            None => Fact::Absent,
        }
    }

    /// Whether the server says that the object does not exist any more.
    pub fn is_gone(&self) -> bool {
        self.faults().any(|fault| {
            fault.kind == MANAGED_OBJECT_NOT_FOUND && fault.object.as_ref().is_none_or(|object| *object == self.object)
        })
    }

    /// Whether the server says that there is no session: it answers 200 with this in place of the
    /// properties (vsphere-gpu F49), which is no fact about the object.
    pub fn lost_session(&self) -> bool {
        self.faults().any(|fault| fault.kind == NOT_AUTHENTICATED)
    }

    /// What the server says of properties that could not be read.
    pub fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.missing.iter().filter_map(|missing| match &missing.why {
            MissingWhy::Fault(fault) => Some(fault),
            MissingWhy::Version(_) => None,
        })
    }
}

fn missing(node: &Node) -> Vec<Missing> {
    node.all("missingSet")
        .map(|set| Missing {
            path: set.text_of("path").unwrap_or_default().to_owned(),
            why: MissingWhy::Fault(set.get("fault").map_or_else(|| Fault::of_localized(set), Fault::of_localized)),
        })
        .collect()
}

/// A `RetrieveResult`: one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// How to get the next page; none if this is the last.
    pub token: Option<String>,
    /// The objects of the page.
    pub objects: Vec<ObjectContent>,
}

impl Page {
    /// A page from the body of an answer; no `returnval` is an empty last page.
    ///
    /// # Errors
    /// If an object does not say which it is.
    pub fn decode(response: &Node) -> Result<Self, DecodeError> {
        let Some(result) = response.get("returnval") else { return Ok(Self { token: None, objects: Vec::new() }) };
        Ok(Self {
            token: result.text_of("token").filter(|token| !token.is_empty()).map(str::to_owned),
            objects: result.all("objects").map(ObjectContent::decode).collect::<Result<_, _>>()?,
        })
    }
}

/// An `UpdateSet`: what changed since a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Updates {
    /// What to ask with next.
    pub version: String,
    /// There is more: ask again at once.
    pub truncated: bool,
    /// Changes of objects, in order.
    pub objects: Vec<ObjectUpdate>,
}

/// A change of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectUpdate {
    /// Which object.
    pub object: MoRef,
    /// It left the filter: it does not exist any more.
    pub left: bool,
    /// Changed properties; no value means that it is unset now.
    pub changes: Vec<(String, Option<Node>)>,
    /// Properties that cannot be read.
    pub missing: Vec<Missing>,
}

impl Updates {
    /// Updates from the body of an answer. None: the time passed without a change.
    ///
    /// # Errors
    /// If there is no version, or an object does not say which it is.
    pub fn decode(response: &Node) -> Result<Option<Self>, DecodeError> {
        let Some(set) = response.get("returnval") else { return Ok(None) };
        let mut objects = Vec::new();
        for filter in set.all("filterSet") {
            for update in filter.all("objectSet") {
                objects.push(ObjectUpdate {
                    object: reference(required(update, "obj")?)?,
                    left: update.text_of("kind") == Some("leave"),
                    changes: update.all("changeSet").filter_map(change).collect(),
                    missing: missing(update),
                });
            }
            // Objects that were missing when the filter was made (reportMissingObjectsInResults).
            for gone in filter.all("missingSet") {
                objects.push(ObjectUpdate {
                    object: reference(required(gone, "obj")?)?,
                    left: true,
                    changes: Vec::new(),
                    missing: Vec::new(),
                });
            }
        }
        Ok(Some(Self {
            version: required(set, "version")?.text.clone(),
            truncated: set.text_of("truncated").is_some_and(|text| matches!(text.trim(), "true" | "1")),
            objects,
        }))
    }
}

fn change(node: &Node) -> Option<(String, Option<Node>)> {
    let name = node.text_of("name")?.to_owned();
    let removed = matches!(node.text_of("op"), Some("remove" | "indirectRemove"));
    Some((name, node.get("val").filter(|_| !removed).cloned()))
}

impl ObjectUpdate {
    /// Applies the change to what is known of the object.
    pub fn apply(self, content: &mut ObjectContent) {
        for (path, value) in self.changes {
            content.properties.retain(|(known, _)| *known != path);
            content.missing.retain(|missing| missing.path != path);
            if let Some(value) = value {
                content.properties.push((path, value));
            }
        }
        for missing in self.missing {
            content.properties.retain(|(known, _)| *known != missing.path);
            content.missing.retain(|known| known.path != missing.path);
            content.missing.push(missing);
        }
    }
}
