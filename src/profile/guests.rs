//! The part `guests` of a pool: guest clusters whose nodes run on its hosts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::inventory::Wait;
use crate::model::{At, Expect, GuestRules, JobTemplate, OnValidationFailure};

/// A guest cluster whose nodes run on the hosts, and what is done with them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GuestWish {
    /// Its name among the `guests` of the Site.
    pub cluster: At<String>,
    /// What each node must offer to pods before it is uncordoned.
    pub expect: ExpectWish,
    /// How its nodes are drained.
    #[serde(default, skip_serializing_if = "DrainWish::is_default")]
    pub drain: DrainWish,
    /// Jobs that have to succeed on a node before it is uncordoned, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validate: Vec<ValidateWish>,
}

/// What a node must offer to pods.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExpectWish {
    /// An extended resource, `nvidia.com/gpu`.
    #[schemars(regex(pattern = r"^[a-z0-9.-]+/[A-Za-z0-9._-]+$"))]
    pub resource: At<String>,
    /// How many of it a node has in `status.allocatable`, neither more nor less.
    #[schemars(range(min = 1))]
    pub per_node: At<u32>,
}

/// How nodes are drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DrainWish {
    /// How long a node may take, by default 30m: then its host fails, unchanged, and each of its nodes is uncordoned,
    /// if it was not cordoned before.
    pub timeout: Wait,
}

impl DrainWish {
    /// Seconds. Half an hour: pods with a long grace end within it, and a budget that blocks one has been seen by
    /// somebody.
    const TIMEOUT: u32 = 30 * 60;

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for DrainWish {
    fn default() -> Self {
        Self { timeout: Wait(Self::TIMEOUT) }
    }
}

/// What has to succeed on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ValidateWish {
    /// A Job from a file.
    pub template: TemplateWish,
}

/// A file that becomes a Job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateWish {
    /// The file: one `batch/v1` Job as YAML, with variables as `{{ image }}`. `{{ resource }}` and
    /// `{{ perNode }}` are those of `expect`. The path is relative to the working directory. In a folder of
    /// documents the file is none of them.
    pub file: At<String>,
    /// Its other variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, At<String>>,
    /// The Job that the file became ([`Loaded::fill`](super::Loaded::fill)).
    #[serde(skip)]
    pub job: Option<Value>,
}

/// What to do with a host whose nodes do not pass their gate. They stay cordoned either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Unvalidated {
    /// Stop the VMs that the visit started, and take the host back into maintenance mode (the default).
    CloseHost,
    /// Leave the host open and the VMs running.
    KeepOpen,
}

impl From<Unvalidated> for OnValidationFailure {
    fn from(wish: Unvalidated) -> Self {
        match wish {
            Unvalidated::CloseHost => Self::CloseHost,
            Unvalidated::KeepOpen => Self::KeepOpen,
        }
    }
}

impl GuestWish {
    /// The rules; none while a template is not filled.
    pub(super) fn rules(&self) -> Option<GuestRules> {
        let filled =
            |one: &ValidateWish| Some(JobTemplate { file: one.template.file.clone(), job: one.template.job.clone()? });
        Some(GuestRules {
            cluster: self.cluster.clone(),
            expect: Expect { resource: self.expect.resource.clone(), per_node: self.expect.per_node.clone() },
            drain_timeout_s: self.drain.timeout.0,
            validate: self.validate.iter().map(filled).collect::<Option<_>>()?,
        })
    }
}
