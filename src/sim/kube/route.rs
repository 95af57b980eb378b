//! From a path to what it asks for.

use std::collections::BTreeMap;

use http::Method;

use super::resources::{Resource, find};
use super::status::ApiError;
use crate::sim::world::guest::key;

/// What a request for objects asks for.
#[derive(Debug)]
pub(super) struct Ask {
    pub resource: &'static Resource,
    /// None: all namespaces, or the resource has none.
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub subresource: Option<&'static str>,
    pub query: BTreeMap<String, String>,
    pub verb: Verb,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
}

impl Verb {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }

    pub fn writes(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Patch | Self::Delete)
    }
}

impl Ask {
    /// The name under which the world's log and its rules know the call: `patch nodes`,
    /// `create pods/eviction`.
    pub fn call(&self) -> String {
        let below = self.subresource.map(|below| format!("/{below}")).unwrap_or_default();
        format!("{} {}{below}", self.verb.as_str(), self.resource.plural)
    }

    /// The key of its object; of the whole resource where it names none.
    pub fn key(&self) -> String {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        key(self.resource.plural, namespace, self.name.as_deref().unwrap_or_default())
    }

    pub fn flag(&self, name: &str) -> bool {
        self.query.get(name).is_some_and(|value| matches!(value.as_str(), "true" | "1" | "True"))
    }

    pub fn dry_run(&self) -> bool {
        self.query.get("dryRun").is_some_and(|value| value == "All")
    }
}

/// What a path below `/api` or `/apis` asks for.
pub(super) fn route(method: &Method, path: &str, query: &str) -> Result<Ask, ApiError> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return Err(ApiError::no_such_path()),
    };
    let (namespace, rest) = match rest {
        // A namespace itself has no resource behind its name.
        ["namespaces", namespace, resource, rest @ ..] if find(group, version, resource).is_some() => {
            (Some((*namespace).to_owned()), [&[*resource], rest].concat())
        }
        rest => (None, rest.to_vec()),
    };
    let [plural, below @ ..] = rest.as_slice() else { return Err(ApiError::no_such_path()) };
    let resource = find(group, version, plural).ok_or_else(ApiError::no_such_path)?;
    let (name, subresource) = match below {
        [] => (None, None),
        [name] => (Some((*name).to_owned()), None),
        [name, below] => {
            let known = resource.subresources.iter().find(|known| *known == below);
            (Some((*name).to_owned()), Some(*known.ok_or_else(ApiError::no_such_path)?))
        }
        _ => return Err(ApiError::no_such_path()),
    };
    if resource.namespaced != namespace.is_some() && name.is_some() {
        return Err(ApiError::no_such_path());
    }
    let query: BTreeMap<String, String> = form(query).collect();
    let watches = query.get("watch").is_some_and(|value| matches!(value.as_str(), "true" | "1" | "True"));
    let verb = match (method, &name) {
        (&Method::GET, _) if watches => Verb::Watch,
        (&Method::GET, Some(_)) => Verb::Get,
        (&Method::GET, None) => Verb::List,
        (&Method::POST, None) => Verb::Create,
        (&Method::POST, Some(_)) if subresource == Some("eviction") => Verb::Create,
        (&Method::PUT, Some(_)) => Verb::Update,
        (&Method::PATCH, Some(_)) => Verb::Patch,
        (&Method::DELETE, Some(_)) => Verb::Delete,
        _ => return Err(ApiError::method_not_allowed()),
    };
    let only = match subresource {
        Some("eviction") => verb == Verb::Create,
        Some("log") => verb == Verb::Get,
        _ => true,
    };
    if !only {
        return Err(ApiError::method_not_allowed());
    }
    Ok(Ask { resource, namespace, name, subresource, query, verb })
}

/// The pairs of a query, decoded.
fn form(query: &str) -> impl Iterator<Item = (String, String)> + '_ {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    })
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
                if let (Some(high), Some(low)) = (digit(), digit()) {
                    bytes.push(u8::try_from(high << 4 | low).unwrap_or(b'?'));
                }
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: Method, path: &str, query: &str) -> Result<(String, String), u16> {
        route(&method, path, query).map(|ask| (ask.call(), ask.key())).map_err(|error| error.code)
    }

    #[test]
    fn paths_have_their_calls() {
        let ok = |call: &str, key: &str| Ok((call.to_owned(), key.to_owned()));
        assert_eq!(call(Method::GET, "/api/v1/nodes", ""), ok("list nodes", "nodes//"));
        assert_eq!(call(Method::PATCH, "/api/v1/nodes/a", ""), ok("patch nodes", "nodes//a"));
        assert_eq!(call(Method::GET, "/api/v1/pods", "watch=true"), ok("watch pods", "pods//"));
        assert_eq!(
            call(Method::POST, "/api/v1/namespaces/x/pods/p/eviction", ""),
            ok("create pods/eviction", "pods/x/p")
        );
        assert_eq!(
            call(Method::GET, "/api/v1/namespaces/kube-system", ""),
            ok("get namespaces", "namespaces//kube-system")
        );
        assert_eq!(call(Method::POST, "/apis/batch/v1/namespaces/x/jobs", ""), ok("create jobs", "jobs/x/"));
        assert_eq!(call(Method::GET, "/apis/batch/v2/jobs", ""), Err(404));
        assert_eq!(call(Method::GET, "/api/v1/pods/p", ""), Err(404));
        assert_eq!(call(Method::DELETE, "/api/v1/nodes", ""), Err(405));
    }

    #[test]
    fn queries_are_decoded() {
        let ask = route(&Method::GET, "/api/v1/pods", "fieldSelector=spec.nodeName%3Da&limit=5&x=a+b").unwrap();
        assert_eq!(ask.query["fieldSelector"], "spec.nodeName=a");
        assert_eq!(ask.query["x"], "a b");
    }
}
