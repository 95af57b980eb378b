//! `shell` of a Site: how the shells of the hosts are reached.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::{At, HostKeyPin, HostKeyPinError, HostPattern, Place, ShellWay};

use super::endpoint::CredentialRef;

/// How the shells of the hosts are reached: for MIG, which vSphere has no call for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Shell {
    /// By SSH, or by a person who types what the visit prints.
    pub way: At<ShellWay>,
    /// With `direct`: who logs in. The first whose `hosts` fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<ShellUser>,
    /// With `direct`: the keys by which hosts are known. A host without one is not logged in to.
    #[serde(default, skip_serializing_if = "HostKeys::is_empty")]
    pub host_keys: HostKeys,
}

impl Shell {
    /// What its parts say together that none of them may say: place, sentence and hint.
    pub(super) fn contradictions(&self) -> Vec<(&Place, &'static str, &'static str)> {
        let way = &self.way.place;
        let direct = self.way.value == ShellWay::Direct;
        let mut found = Vec::new();
        if direct && self.users.is_empty() {
            let hint = "write `users: [{user: root, password: env:ESX_PASSWORD}]`";
            found.push((way, "`direct` needs `users`: who logs in", hint));
        }
        if direct && self.host_keys.is_empty() {
            let hint = "write `hostKeys: {file: known_hosts}`, the file as `ssh-keyscan` writes it, and compare its keys \
                        with those that the hosts' consoles show";
            found.push((way, "`direct` needs `hostKeys`: no host is logged in to whose key is not pinned", hint));
        }
        if !direct && (!self.users.is_empty() || !self.host_keys.is_empty()) {
            let hint = "leave them out, or write `way: direct`";
            found.push((way, "`handoff` logs in nowhere: `users` and `hostKeys` go with `direct`", hint));
        }
        let undecided = self.users.iter().filter(|user| user.password.is_some() == user.key.is_some());
        found.extend(undecided.map(|user| {
            (
                &user.user.place,
                "a user has either a `password` or a `key`",
                "give one of them: `password: env:NAME`, or `key: file:PATH`",
            )
        }));
        found
    }
}

/// Who logs in to a host's shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShellUser {
    /// On which hosts; all if nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<At<HostPattern>>,
    /// The user, `root`.
    pub user: At<String>,
    /// The password, by reference: `env:NAME`, `file:PATH` or `exec:COMMAND`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<At<CredentialRef>>,
    /// Instead of a password a private key in OpenSSH's format without a passphrase, by reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<At<CredentialRef>>,
}

/// The keys by which hosts are known. What is pinned here goes before what the file says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostKeys {
    /// A file as `ssh-keyscan` writes it. The path is relative to the working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<At<String>>,
    /// Keys by the name of the host: `ssh-ed25519 AAAA…`, or `SHA256:…` as `ssh-keygen -l` shows it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pins: BTreeMap<String, At<HostKey>>,
}

impl HostKeys {
    fn is_empty(&self) -> bool {
        self.file.is_none() && self.pins.is_empty()
    }
}

/// The key of a host, or its fingerprint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostKey(pub HostKeyPin);

impl FromStr for HostKey {
    type Err = HostKeyPinError;

    fn from_str(text: &str) -> Result<Self, HostKeyPinError> {
        text.parse().map(Self)
    }
}

impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

text_value!(
    HostKey,
    json_schema!({
        "type": "string",
        "examples": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA…", "SHA256:Nh0Me49Zh9fDw/VYUfq43IJmI1T+XrjiYONPND8GzaM"],
    })
);
