//! Kind `GpuPool`, as people write it.

use std::fmt;

use jiff::civil::Date;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::guests::{GuestWish, Unvalidated};
use super::vms::VmWish;
use crate::document::{Kind, envelope};
use crate::model::{At, HostName, HostPattern, Mode, PciAddress, VgpuSize};

/// A pool of GPU hosts: which they are, what their GPUs should be, and how far a rollout may go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GpuPool {
    /// Which hosts. A host belongs to one pool.
    pub hosts: HostSelector,
    /// Catalogue id of the GPU model, `h100-nvl-94` (`poolwright catalog` lists them). A host with
    /// another model is a finding.
    pub gpu_model: At<String>,
    /// GPUs that each host must have.
    #[schemars(range(min = 1))]
    pub gpu_count: At<u32>,
    /// Settings of the whole host.
    #[serde(default, skip_serializing_if = "HostWish::is_empty")]
    pub host: HostWish,
    /// Groups of the host's GPUs and what they should be.
    #[schemars(length(min = 1))]
    pub gpus: At<Vec<Group>>,
    /// What may be done to the VMs on the hosts.
    #[serde(default, skip_serializing_if = "VmWish::is_empty")]
    pub vms: VmWish,
    /// Guest clusters whose nodes run on the hosts, and what is done with these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<GuestWish>,
    /// How far a rollout may go.
    pub rollout: Rollout,
    /// Findings that somebody accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept: Vec<AcceptRule>,
}

/// Which hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostSelector {
    /// Name of the Site document.
    pub site: At<String>,
    /// Name of the cluster, or its inventory path `/Prod/EU/DC1/host/gpu-a` if several have the name.
    pub cluster: At<String>,
    /// Host names: `esx-gpu-01`, `esx-gpu-0*`, `esx-gpu-[01-16]`.
    #[schemars(length(min = 1))]
    pub names: At<Vec<At<HostPattern>>>,
    /// Hosts to leave out, in the same form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<At<HostPattern>>,
}

/// Settings of the whole host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostWish {
    /// How vGPU VMs are spread over the host's GPUs. Left as it is if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<At<Placement>>,
    /// The NVIDIA host driver that must be there: checked, never installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<Driver>,
}

impl HostWish {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How vGPU VMs are spread over the host's GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Placement {
    /// Breadth first: the GPU with the fewest VMs.
    Performance,
    /// Depth first: one GPU is filled before the next.
    Consolidation,
}

/// A host driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Driver {
    /// Name of the component, `NVD-AIE-800`.
    pub component: At<String>,
    /// Version, `580.95.02`; a host prints it with a suffix.
    pub version: At<String>,
}

/// Some of the host's GPUs and what they should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Group {
    /// Which GPUs; needed if there is more than one group, else all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<At<Select>>,
    /// The mode.
    pub mode: At<ModeWish>,
    /// Combinations of vGPU types by count. Each must be able to start on one GPU of the group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<At<Offer>>,
}

/// Which GPUs of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Select {
    /// All of them.
    All,
    /// Those at these addresses, `0000:3b:00.0`.
    Addresses(#[schemars(length(min = 1))] Vec<At<PciAddress>>),
    /// Those of this NUMA node.
    NumaNode(At<u32>),
    /// So many, in address order, of those that no other group takes; of two `count` groups the first
    /// takes first.
    Count(#[schemars(range(min = 1))] At<u32>),
}

/// The mode of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum ModeWish {
    /// DirectPath I/O passthrough.
    Passthrough {
        /// Hardware label that Dynamic DirectPath I/O matches; none leaves the label empty.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1))]
        label: Option<At<String>>,
    },
    /// Time-sliced vGPU.
    Vgpu {
        /// Whether all vGPUs of a GPU have one framebuffer size.
        size: Size,
    },
    /// MIG-backed vGPU.
    MigVgpu {},
}

/// Whether all vGPUs of a GPU have one framebuffer size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Size {
    /// One size a GPU; the first VM powered on fixes it.
    Same,
    /// Different sizes beside each other (vSphere 8.0U3 and later, Ampere and later).
    Mixed,
}

impl From<&ModeWish> for Mode {
    fn from(wish: &ModeWish) -> Self {
        match wish {
            ModeWish::Passthrough { label } => {
                Self::Passthrough { label: label.as_ref().map(|label| label.value.clone()) }
            }
            ModeWish::Vgpu { size: Size::Same } => Self::Vgpu { size: VgpuSize::Same },
            ModeWish::Vgpu { size: Size::Mixed } => Self::Vgpu { size: VgpuSize::Mixed },
            ModeWish::MigVgpu {} => Self::MigVgpu,
        }
    }
}

/// vGPU types and how many of each one GPU must be able to start, as written: `{nvidia_l40s-12c: 4}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer(pub Vec<(At<String>, At<u32>)>);

impl Serialize for Offer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, count)| (&name.value, count)))
    }
}

impl<'de> Deserialize<'de> for Offer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfferVisitor;

        impl<'de> Visitor<'de> for OfferVisitor {
            type Value = Offer;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("vGPU types with counts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Offer, A::Error> {
                let mut types = Vec::new();
                while let Some(entry) = entries.next_entry()? {
                    types.push(entry);
                }
                Ok(Offer(types))
            }
        }

        deserializer.deserialize_map(OfferVisitor)
    }
}

impl JsonSchema for Offer {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Offer".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "vGPU types and how many of each one GPU must be able to start.",
            "minProperties": 1,
            "additionalProperties": { "type": "integer", "minimum": 1 },
            "examples": [{ "nvidia_h100l-3-47c": 2 }],
        })
    }
}

/// How far a rollout may go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rollout {
    /// Hosts of the pool that may be out of service at a time, whatever the cause.
    #[schemars(range(min = 1))]
    pub max_unavailable: At<u32>,
    /// Reboots of one host that are approved.
    pub max_reboots: At<u32>,
    /// What to do with a host that is found in maintenance and was not put there by us.
    #[serde(default)]
    pub found_in_maintenance: OnMaintenance,
    /// What to do with a host whose nodes do not pass their gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_validation_failure: Option<At<Unvalidated>>,
}

/// What to do with a host found in maintenance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnMaintenance {
    /// Leave it alone and name it.
    #[default]
    Hold,
    /// Work on it and leave it in maintenance (new hosts sit in maintenance).
    Change,
}

/// A finding that somebody accepted: it becomes a warning and stays visible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AcceptRule {
    /// Id of the finding, `PW-DRV-02`.
    pub finding: At<String>,
    /// Hosts it is accepted for; all of the pool if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<At<HostName>>,
    /// Why, with a ticket.
    #[schemars(length(min = 1))]
    pub reason: At<String>,
    /// Last day (UTC) on which it holds.
    #[schemars(with = "String", regex(pattern = r"^\d{4}-\d{2}-\d{2}$"))]
    #[serde(deserialize_with = "day")]
    pub until: At<Date>,
}

/// A day, with words for what is none.
fn day<'de, D: Deserializer<'de>>(deserializer: D) -> Result<At<Date>, D::Error> {
    let At { value, place } = At::<String>::deserialize(deserializer)?;
    match value.parse() {
        Ok(day) => Ok(At::new(day, place)),
        Err(_) => Err(serde::de::Error::custom(format!("`{value}` is no day (expected one like `2026-12-31`)"))),
    }
}

/// The JSON Schema of a GpuPool document.
pub fn schema() -> Value {
    envelope::<GpuPool>(Kind::GpuPool, "A pool of GPU hosts and what their GPUs should be.")
}
