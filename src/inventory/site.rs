//! Kind `Site`.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::document::{Document, Kind, Problem, RawDocument, Span, envelope};
use crate::model::{self, At, Place, ShellWay};

use super::endpoint::{Address, CredentialRef, CredentialRefError, InstanceUuid, Thumbprint};
use super::guest::{self, Guest};
use super::shell::Shell;

/// A vCenter and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Site {
    /// The vCenter.
    pub vcenter: Vcenter,
    /// How the shells of the hosts are reached; without it by a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<Shell>,
    /// Guest clusters whose nodes run on the hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<Guest>,
    /// How long to look before a state counts.
    #[serde(default)]
    pub pace: Pace,
}

impl Site {
    /// How the shells of the hosts are reached.
    pub fn shell_way(&self) -> ShellWay {
        self.shell.as_ref().map_or(ShellWay::Handoff, |shell| shell.way.value)
    }
}

/// Where the vCenter is, whom to trust and who we are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Vcenter {
    /// Host, or host and port. HTTPS always.
    pub address: At<Address>,
    /// The instance UUID of the vCenter (`about.instanceUuid`). If it is given, another vCenter
    /// behind the address is refused; `discover` shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_uuid: Option<At<InstanceUuid>>,
    /// How its certificate is checked; by the system's authorities if nothing is given.
    #[serde(default)]
    pub trust: Trust,
    /// Who logs in.
    pub credentials: Credentials,
}

/// How the certificate of a server is checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Trust {
    /// By the certificate authorities of the operating system, and the name.
    #[default]
    System,
    /// By the authorities in this PEM file, and the name. The path is relative to the working
    /// directory.
    CaFile(At<String>),
    /// By the SHA-256 thumbprint alone; the name does not matter.
    Thumbprint(At<Thumbprint>),
}

/// Who logs in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Credentials {
    /// The user, `poolwright@vsphere.local`, or a reference as for `password`.
    #[serde(deserialize_with = "user")]
    pub user: At<String>,
    /// The password, by reference: `env:NAME`, `file:PATH` or `exec:COMMAND`.
    pub password: At<CredentialRef>,
}

/// A user; what looks like a reference must be one.
fn user<'de, D: Deserializer<'de>>(deserializer: D) -> Result<At<String>, D::Error> {
    let user = At::<String>::deserialize(deserializer)?;
    match user.parse::<CredentialRef>() {
        Ok(_) | Err(CredentialRefError::NoReference) => Ok(user),
        Err(error) => Err(serde::de::Error::custom(error)),
    }
}

impl Credentials {
    /// The reference that gives the user, if it is not written out.
    pub fn user_ref(&self) -> Option<CredentialRef> {
        self.user.parse().ok()
    }
}

/// How long to look before a state counts; each at least 1 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Pace {
    /// How long a host must answer without a flip after a reboot.
    pub host_stable: Wait,
    /// How long a value that we wrote may take to read back.
    pub read_back: Wait,
    /// Between the two looks that find a node drained.
    pub drain_recheck: Wait,
}

impl Default for Pace {
    fn default() -> Self {
        let model::Pace { host_stable_s, read_back_s, drain_recheck_s } = model::Pace::default();
        Self { host_stable: Wait(host_stable_s), read_back: Wait(read_back_s), drain_recheck: Wait(drain_recheck_s) }
    }
}

impl From<Pace> for model::Pace {
    fn from(pace: Pace) -> Self {
        Self { host_stable_s: pace.host_stable.0, read_back_s: pace.read_back.0, drain_recheck_s: pace.drain_recheck.0 }
    }
}

/// A time to wait, in whole seconds, from 1 s to 1 day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Span", into = "Span")]
#[schemars(with = "Span", inline)]
pub struct Wait(pub u32);

impl TryFrom<Span> for Wait {
    type Error = String;

    fn try_from(span: Span) -> Result<Self, String> {
        // A day: a longer pause is a slip, and the night is over.
        match u32::try_from(span.0.as_secs()) {
            Ok(seconds @ 1..=86_400) if span.0.subsec_nanos() == 0 => Ok(Self(seconds)),
            _ => Err(format!("`{span}` is not a time from 1s to 24h, in whole seconds")),
        }
    }
}

impl From<Wait> for Span {
    fn from(wait: Wait) -> Self {
        Self::seconds(u64::from(wait.0))
    }
}

/// Reads the `spec` of a Site.
///
/// # Errors
/// What is wrong with it, each with its place.
pub fn read(document: &RawDocument) -> Result<Document<Site>, Vec<Problem>> {
    let site = document.parse::<Site>().map_err(|mut problems| {
        for problem in &mut problems {
            if problem.message.starts_with("`credentials` is missing") {
                problem.hint =
                    "write `credentials: {user: poolwright@vsphere.local, password: env:VC_PASSWORD}`".to_owned();
            }
        }
        problems
    })?;
    let of_shell = site.spec.shell.as_ref().map(Shell::contradictions).unwrap_or_default();
    let of_shell = of_shell.into_iter().map(|(place, message, hint)| (place, message.to_owned(), hint));
    let problem = |(place, message, hint): (&Place, String, &str)| Problem {
        place: place.clone(),
        message,
        snippet: document.source().snippet_of_word(place),
        hint: hint.to_owned(),
    };
    let problems: Vec<Problem> = of_shell.chain(guest::contradictions(&site.spec.guests)).map(problem).collect();
    if problems.is_empty() { Ok(site) } else { Err(problems) }
}

/// The JSON Schema of a Site document.
pub fn schema() -> Value {
    envelope::<Site>(Kind::Site, "A vCenter and how to reach it.")
}
