//! `guests` of a Site: guest clusters whose nodes run on its hosts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{At, Place};

use super::endpoint::CredentialRef;

/// A guest cluster, and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Guest {
    /// By which pools name it.
    #[schemars(regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"))]
    pub name: At<String>,
    /// Its kubeconfig, by reference: `env:NAME`, `file:PATH` or `exec:COMMAND`.
    pub kubeconfig: At<CredentialRef>,
    /// The context to use; the kubeconfig's own if nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<At<String>>,
}

/// What guest clusters say together, or by a name, that they may not say: place, sentence and hint.
pub(super) fn contradictions(guests: &[Guest]) -> Vec<(&Place, String, &'static str)> {
    let mut found = Vec::new();
    let mut names: BTreeMap<&str, &Place> = BTreeMap::new();
    let mut ways: BTreeMap<(&CredentialRef, Option<&str>), &At<String>> = BTreeMap::new();
    for Guest { name, kubeconfig, context } in guests {
        if !is_name(name) {
            let message = format!("`{}` is no name of a guest cluster", name.escape_debug());
            let hint = "1 to 63 letters, digits, `-`, `_` and `.`, a letter or digit first: plans and marks hold it";
            found.push((&name.place, message, hint));
        }
        if let Some(first) = names.insert(&name.value, &name.place) {
            let message = format!("two guest clusters have the name `{name}`, the other: {first}");
            found.push((&name.place, message, "give each its own name: pools tell them apart by it"));
            continue;
        }
        let context = context.as_ref().map(|context| context.value.as_str());
        if let Some(first) = ways.insert((&kubeconfig.value, context), name) {
            let message = format!("`{first}` and `{name}` are one cluster: they have the same kubeconfig and context");
            found.push((&name.place, message, "leave one of them, or give each its own `context`"));
        }
    }
    found
}

/// As names of documents: they stand in plans, marks and commands.
fn is_name(name: &str) -> bool {
    let sign = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.len() <= 63 && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(sign)
}
