//! Writes: create, replace, patch, delete, evict.

use serde_json::{Value, json};

use super::checks::{creatable, label_job, options, other_kind, updatable};
use super::patch;
use super::route::{Ask, Verb};
use super::status::{ApiError, several_budgets, success};
use crate::sim::cluster::{Cluster, Evicted, Removal};
use crate::sim::world::guest::{deleting, key, number, text};

/// A write as it was sent.
pub(super) struct Sent<'a> {
    pub ask: &'a Ask,
    /// Media type of the body.
    pub kind: &'a str,
    pub body: &'a [u8],
    /// Nothing is kept: a dry run, or a lie.
    pub dry: bool,
}

/// Whether nothing of a write is to be kept: by its query, or by the options of a deletion or an eviction.
pub(super) fn is_dry(ask: &Ask, body: &[u8]) -> bool {
    let options = match (ask.verb, ask.subresource) {
        (Verb::Delete, _) => "/dryRun",
        (Verb::Create, Some("eviction")) => "/deleteOptions/dryRun",
        _ => return ask.dry_run(),
    };
    let sent: Value = serde_json::from_slice(body).unwrap_or_default();
    ask.dry_run() || sent.pointer(options) == Some(&json!(["All"]))
}

/// Status code and body.
pub(super) type Written = Result<(u16, Value), ApiError>;

impl Sent<'_> {
    /// Does it.
    pub fn run(&self, cluster: &mut Cluster<'_>) -> Written {
        options(self.ask)?;
        match (self.ask.verb, self.ask.subresource) {
            (Verb::Create, Some("eviction")) => self.evict(cluster),
            (Verb::Create, _) => self.create(cluster),
            (Verb::Update | Verb::Patch, _) => self.change(cluster),
            _ => self.delete(cluster),
        }
    }

    /// The body, which must be JSON.
    fn json(&self) -> Result<Value, ApiError> {
        if !matches!(self.kind, "" | "application/json") {
            let message = "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf";
            return Err(ApiError::new(415, "UnsupportedMediaType", message));
        }
        serde_json::from_slice(self.body).map_err(|error| ApiError::bad_request(error.to_string()))
    }

    fn name(&self) -> &str {
        self.ask.name.as_deref().unwrap_or_default()
    }

    fn known(&self, cluster: &Cluster<'_>) -> Result<Value, ApiError> {
        let known = cluster.guest.get(&self.ask.key()).cloned();
        known.ok_or_else(|| ApiError::not_found(self.ask.resource, self.name()))
    }

    fn create(&self, cluster: &mut Cluster<'_>) -> Written {
        let resource = self.ask.resource;
        let mut object = self.json()?;
        creatable(self.ask, &mut object)?;
        let namespace = self.ask.namespace.clone().unwrap_or_default();
        if resource.namespaced {
            let Some(known) = cluster.guest.get(&key("namespaces", "", &namespace)) else {
                let namespaces = super::resources::find("", "v1", "namespaces").unwrap_or(resource);
                return Err(ApiError::not_found(namespaces, &namespace));
            };
            if deleting(known) {
                return Err(ApiError::named("NamespaceTerminating"));
            }
        }
        let name = match text(&object, "/metadata/name") {
            "" => format!("{}{}", text(&object, "/metadata/generateName"), cluster.guest.suffix()),
            name => name.to_owned(),
        };
        let at = key(resource.plural, &namespace, &name);
        if cluster.guest.get(&at).is_some() {
            return Err(ApiError::exists(resource, &name));
        }
        let object = cluster.fresh(&namespace, &name, object);
        let object = if resource.plural == "jobs" { with_labels(object) } else { object };
        if self.dry {
            return Ok((201, object));
        }
        cluster.guest.put(&at, object, cluster.now);
        Ok((201, cluster.guest.get(&at).cloned().unwrap_or_default()))
    }

    fn change(&self, cluster: &mut Cluster<'_>) -> Written {
        let known = self.known(cluster)?;
        let sent = match self.ask.verb {
            Verb::Patch => patch::apply(self.kind, &known, self.body)?,
            _ => self.json()?,
        };
        let new = updatable(self.ask, &known, sent)?;
        if self.dry {
            return Ok((200, new));
        }
        let at = self.ask.key();
        cluster.guest.put(&at, new.clone(), cluster.now);
        // What goes with its last finalizer is shown as it was then.
        Ok((200, cluster.guest.get(&at).cloned().unwrap_or(new)))
    }

    /// `DeleteOptions`, from the body and the query.
    fn removal(&self, options: &Value) -> Removal {
        let query = |name: &str| self.ask.query.get(name);
        let asked = query("gracePeriodSeconds").and_then(|text| text.parse().ok());
        let policy = query("propagationPolicy").map_or(text(options, "/propagationPolicy"), String::as_str);
        Removal {
            grace: number(options, "/gracePeriodSeconds").or(asked),
            orphans: policy == "Orphan",
            dry_run: self.dry,
        }
    }

    /// Whether what the caller knows of the object is still true (apiserver, pkg/registry/rest/delete.go).
    fn preconditions(&self, options: &Value, known: &Value) -> Result<(), ApiError> {
        for (field, word) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
            let (wanted, is) =
                (text(options, &format!("/preconditions/{field}")), text(known, &format!("/metadata/{field}")));
            if !wanted.is_empty() && wanted != is {
                return Err(ApiError::precondition(self.ask.resource, self.name(), word, wanted, is));
            }
        }
        Ok(())
    }

    fn delete(&self, cluster: &mut Cluster<'_>) -> Written {
        let options = if self.body.is_empty() { json!({}) } else { self.json()? };
        let known = self.known(cluster)?;
        self.preconditions(&options, &known)?;
        let at = self.ask.key();
        cluster.delete(&at, &self.removal(&options));
        match cluster.guest.get(&at) {
            Some(left) if deleting(left) || self.dry => Ok((200, left.clone())),
            _ => {
                let mut said = success(200);
                let details = json!({
                    "name": self.name(), "group": self.ask.resource.group, "kind": self.ask.resource.plural,
                    "uid": known["metadata"]["uid"],
                });
                crate::sim::world::guest::set(&mut said, &["details"], details);
                crate::sim::world::guest::unset(&mut said, &["code"]);
                Ok((200, said))
            }
        }
    }

    /// `policy/v1` Eviction (kubernetes §1.5).
    fn evict(&self, cluster: &mut Cluster<'_>) -> Written {
        let eviction = self.json()?;
        let (kind, version) = (text(&eviction, "/kind"), text(&eviction, "/apiVersion"));
        if !matches!((kind, version), ("Eviction" | "", "policy/v1" | "policy/v1beta1" | "")) {
            return Err(other_kind(kind, version, "policy", "Eviction"));
        }
        let named = text(&eviction, "/metadata/name");
        if !named.is_empty() && named != self.name() {
            return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
        }
        let known = self.known(cluster)?;
        let options = eviction.get("deleteOptions").cloned().unwrap_or_else(|| json!({}));
        let meant = self.preconditions(&options, &known);
        Ok(match cluster.evict(&self.ask.key(), meant.is_ok(), &self.removal(&options)) {
            Evicted::Done => (201, success(201)),
            Evicted::Another => return meant.map(|()| (201, success(201))),
            Evicted::Several => (500, several_budgets()),
            Evicted::Blocked { pdb, needs, has } => {
                let cause = format!("The disruption budget {pdb} needs {needs} healthy pods and has {has} currently");
                return Err(ApiError::disruption(cause, None));
            }
            Evicted::Processed { pdb } => {
                let cause = format!("The disruption budget {pdb} is still being processed by the server.");
                return Err(ApiError::disruption(cause, Some(10)));
            }
        })
    }
}

fn with_labels(mut job: Value) -> Value {
    label_job(&mut job);
    job
}
