//! The facts as values. `None` is *no source was found*.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::EsxiVersion;

/// Source ids of a row; each is a key of [`super::Catalog::sources`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Sources(pub Vec<String>);

impl<'de> Deserialize<'de> for Sources {
    /// Written as one text, ids apart by spaces.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Self(text.split_whitespace().map(str::to_owned).collect()))
    }
}

/// A document or repository that facts come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// 1 the maker, 2 pasted output, 3 third party or derived, 4 memory.
    pub tier: u8,
    /// What it is.
    #[serde(rename = "ref")]
    pub reference: String,
    /// What to know of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A GPU model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Id in profiles: `h100-nvl-94`.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Name as `nvidia-smi` prints it. Not unique: identify by PCI id.
    pub smi_name: Option<String>,
    /// The board.
    pub board: Board,
    /// PCI devices (vendor 10de) that are this model.
    pub pci: Vec<PciEntry>,
    /// Framebuffer.
    pub memory: Memory,
    /// What it can do.
    pub can: Can,
    /// Fields that are inferred.
    pub unverified: Vec<String>,
    /// NVLink.
    pub nvlink: Nvlink,
    /// 64-bit MMIO of a VM with one such GPU.
    pub mmio_gb: Option<MmioGb>,
    /// Oldest ESXi.
    pub esxi: Option<EsxiFloor>,
    /// vGPU branches that know it.
    pub branch: Branches,
    /// What else to know.
    pub notes: Vec<String>,
    /// Where this comes from.
    pub sources: Sources,
    /// MIG geometry; none: it cannot do MIG.
    pub mig: Option<MigGeometry>,
    /// Mixed-size placement; none: no table was found.
    pub region: Option<Region>,
    /// vGPU types, time-sliced then MIG-backed, as the data lists them.
    pub types: Vec<VgpuType>,
}

impl Model {
    /// The GPU instance profile of this name.
    pub fn mig_profile(&self, name: &str) -> Option<&MigProfile> {
        self.mig.as_ref()?.profiles.iter().find(|profile| profile.name == name)
    }
}

/// The board of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// `volta`, `turing`, `ampere`, `ada`, `hopper`, `blackwell`.
    pub architecture: String,
    /// `pcie`, `sxm5`, …
    pub form: String,
    /// GPUs on one board, each a PCI function of its own.
    pub gpus: u8,
}

/// A PCI device that is the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PciEntry {
    /// Device id; the vendor is 10de.
    pub device: u16,
    /// Subsystem device ids seen. Empty: any; so does an entry 0.
    pub subsystems: Vec<u16>,
    /// Another board, which offers the vGPU types of this model.
    pub alias: bool,
    /// Where this comes from.
    pub sources: Sources,
}

/// Framebuffer of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Framebuffer of the full-size vGPU type, MiB.
    pub mib: Option<u32>,
    /// As marketed, GB.
    pub gb: u32,
}

/// What a model can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Can {
    /// Run under vSphere.
    pub vsphere: Option<bool>,
    /// vGPU at all.
    pub vgpu: Option<bool>,
    /// DirectPath I/O passthrough.
    pub passthrough: Option<bool>,
    /// vGPU through SR-IOV virtual functions.
    pub sriov: Option<bool>,
    /// Time-sliced mixed-size mode.
    pub mixed_size: Option<bool>,
}

/// How GPUs of the model are linked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Nvlink {
    /// `none`, `bridge`, `nvswitch`, `nvlink-mesh`, `nvlink-c2c`, …
    pub kind: String,
    /// GPUs that a bridge joins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bridged: Vec<u8>,
    /// GPUs of the NVSwitch baseboard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseboard: Option<u8>,
    /// Sizes of the vendor device groups that vSphere offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_groups: Option<Vec<u8>>,
    /// Fields that are inferred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unverified: Vec<String>,
    /// Where this comes from.
    pub sources: Sources,
}

/// `pciPassthru.64bitMMIOSizeGB`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MmioGb {
    /// GB for a VM with one GPU.
    pub gb: u32,
    /// Where this comes from.
    pub sources: Sources,
}

/// Oldest ESXi of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EsxiFloor {
    /// Version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<EsxiVersion>,
    /// Patch level of that version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// What is known beside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// vGPU branches that know a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Branches {
    /// First.
    pub min: Option<u16>,
    /// Last.
    pub max: Option<u16>,
    /// How that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Last public driver tag that knows its types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_driver: Option<String>,
}

/// Class of a vGPU type, by the last letter of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Series {
    /// Virtual applications.
    A,
    /// Virtual desktops.
    B,
    /// Compute.
    C,
    /// Virtual workstations.
    Q,
}

impl Series {
    /// The licence that the series needs (rule DRV-4).
    pub fn licence(self) -> &'static str {
        match self {
            Self::A => "vApps",
            Self::B => "vPC or vWS",
            Self::C => "NVIDIA AI Enterprise",
            Self::Q => "vWS",
        }
    }

    /// The host driver that it comes with (rule HOST-2).
    pub fn driver(self) -> DriverFamily {
        match self {
            Self::C => DriverFamily::Compute,
            Self::A | Self::B | Self::Q => DriverFamily::Graphics,
        }
    }

    /// Whether both come with one host driver.
    pub fn same_driver(self, other: Self) -> bool {
        self.driver() == other.driver()
    }
}

/// The two host drivers that NVIDIA makes (rule HOST-2): a host has one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DriverFamily {
    /// NVIDIA AI Enterprise.
    Compute,
    /// vGPU for desktops and workstations.
    Graphics,
}

impl DriverFamily {
    /// How the names of its components begin, as far as a source says so.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Compute => "NVD-AIE",
            Self::Graphics => "NVD-VGPU",
        }
    }

    /// The family of a component; none if its name does not tell.
    pub fn of_component(name: &str) -> Option<Self> {
        let name = name.to_ascii_uppercase();
        [Self::Compute, Self::Graphics].into_iter().find(|family| name.starts_with(family.prefix()))
    }
}

/// A vGPU type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VgpuType {
    /// Name as vSphere spells it.
    pub name: String,
    /// NVIDIA's name, as a guest prints it.
    pub nvidia_name: String,
    /// Class.
    pub series: Series,
    /// Framebuffer, MiB.
    pub memory_mib: Option<u32>,
    /// Framebuffer as the name says it, GB.
    pub memory_gb: u32,
    /// Time-sliced or MIG-backed, with its maxima.
    pub kind: TypeKind,
    /// NVML type id.
    pub nvml_id: Option<u32>,
    /// PCI subsystem that a guest sees (vendor 10de).
    pub guest_subsystem: u16,
    /// Framebuffer that a guest sees under R550, MiB.
    pub guest_memory_mib: Option<u32>,
    /// First vGPU branch that knows it.
    pub branch: Option<u16>,
    /// First public driver tag that knows it; `<=`: it may be older.
    pub first_driver: String,
    /// Oldest ESXi that has it, beyond what its mode needs.
    pub esxi: Option<EsxiVersion>,
    /// Whether this spelling was seen in real output; else it follows the rule.
    pub seen: bool,
    /// Whether its mixed-size maximum is inferred.
    pub unverified: bool,
    /// What else to know.
    pub note: Option<String>,
    /// Where this comes from.
    pub sources: Sources,
}

/// Time-sliced or MIG-backed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum TypeKind {
    /// vGPUs share the whole GPU in time.
    #[serde(rename_all = "camelCase")]
    TimeSliced {
        /// Most on one GPU in same-size mode.
        same: Option<u32>,
        /// Most on one GPU in mixed-size mode.
        mixed: Option<u32>,
    },
    /// vGPUs of one type share GPU instances of one profile.
    #[serde(rename_all = "camelCase")]
    Mig {
        /// GPU instance profile.
        profile: String,
        /// Most on one GPU.
        max: u32,
        /// vGPUs of the type that share one GPU instance.
        per_instance: u32,
    },
}

/// How a GPU is cut into GPU instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MigGeometry {
    /// Memory slices.
    pub memory_slices: u32,
    /// Compute slices.
    pub compute_slices: u32,
    /// Most GPU instances.
    pub max_instances: u32,
    /// Oldest driver.
    pub min_driver: Option<String>,
    /// What else to know.
    pub notes: Vec<String>,
    /// Profiles.
    pub profiles: Vec<MigProfile>,
}

/// A GPU instance profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MigProfile {
    /// `1g.10gb+me`.
    pub name: String,
    /// GPU instance profile id of `nvidia-smi`.
    pub id: u32,
    /// Compute slices.
    pub compute: u32,
    /// Memory slices: an instance takes `[start, start + memory)`.
    pub memory: u32,
    /// Most on one GPU.
    pub max: u32,
    /// Memory slices at which it may start.
    pub starts: Vec<u32>,
    /// Media engines.
    pub engines: Option<Engines>,
    /// Memory by NVML, MiB.
    pub memory_mib: Option<u32>,
    /// Memory sizes that `nvidia-smi` printed, GiB; they differ by driver.
    pub seen_gib: Vec<String>,
    /// Fields that are inferred from the family.
    pub unverified: Vec<String>,
    /// Where this comes from.
    pub sources: Sources,
}

/// Engines of a GPU instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Engines {
    /// Video decoders.
    pub nvdec: u32,
    /// JPEG decoders.
    pub jpeg: u32,
    /// Optical flow accelerators.
    pub ofa: u32,
    /// Copy engines.
    pub copy: u32,
    /// Video encoders.
    pub nvenc: Option<u32>,
}

/// Where vGPUs may start in mixed-size mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Name: GB of the GPU, with the family where they differ.
    #[serde(rename = "region")]
    pub name: String,
    /// Whether it follows a rule and was never published.
    #[serde(default)]
    pub unverified: bool,
    /// Sizes.
    pub sizes: Vec<RegionSize>,
    /// Where this comes from.
    pub sources: Sources,
}

impl Region {
    /// GB of the GPU, as the name has it: `48-ada` is a region of 48.
    pub fn gb(&self) -> &str {
        self.name.split('-').next().unwrap_or(&self.name)
    }
}

/// One framebuffer size in a region.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionSize {
    /// Framebuffer, MiB.
    pub fb: u32,
    /// GB that it takes: `[id, id + gb)`.
    pub gb: u32,
    /// Most in same-size mode.
    pub same: u32,
    /// Most in mixed-size mode.
    pub mixed: u32,
    /// Where it may start.
    pub ids: Vec<u32>,
}

/// A rule of NVIDIA vGPU on vSphere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// `MIG-2`.
    pub id: String,
    /// `error`, `warn`, `info`: what a violation is.
    pub level: String,
    /// What it is about.
    pub area: String,
    /// The rule.
    pub text: String,
    /// Which part is inferred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unverified: Option<String>,
    /// Where this comes from.
    pub sources: Sources,
}

/// vGPU software branches and what goes together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VgpuBranches {
    /// Branches, oldest first.
    pub table: Vec<VgpuBranch>,
    /// Which guests run on which hosts, in sentences.
    pub compatibility: Vec<String>,
    /// Where the sentences come from.
    pub sources: Sources,
}

/// A vGPU software branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VgpuBranch {
    /// Branch number.
    pub vgpu: Option<u16>,
    /// Driver branch, `R580`.
    pub driver: String,
    /// What else to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether it is from memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unverified: bool,
    /// Where this comes from.
    pub sources: Sources,
}

/// By source id.
pub type SourceMap = BTreeMap<String, Source>;
