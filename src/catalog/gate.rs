//! What a mode or a type needs of ESXi and of the vGPU driver.

use serde::{Deserialize, Serialize};

use super::types::Sources;
use super::{Catalog, EsxiVersion, FitMode, Model, TypeKind, VgpuType};

/// A feature and the ESXi that has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// Id.
    pub id: String,
    /// What is gated.
    pub feature: String,
    /// First version that has it; none: no version was found.
    pub esxi: Option<EsxiVersion>,
    /// Patch level of that version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// What is needed beside, or instead of, a version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    /// What else to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Fields that rest on a single weak source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unverified: Vec<String>,
    /// Where this comes from.
    pub sources: Sources,
}

impl Gate {
    /// Whether a host of this version has the feature. `None`: the version alone does not tell,
    /// since a patch level or a component is needed.
    pub fn open(&self, version: EsxiVersion) -> Option<bool> {
        match self.esxi {
            None => None,
            Some(min) if version < min => Some(false),
            Some(min) if version == min && self.patch.is_some() => None,
            Some(_) if self.needs.is_some() => None,
            Some(_) => Some(true),
        }
    }

    /// The requirement as people write it: `8.0U3 P06`, or the words of `needs`.
    pub fn requirement(&self) -> String {
        let version = self.esxi.map(|version| match (version.update, &self.patch) {
            (0, _) => format!("ESXi {}.{}", version.major, version.minor),
            // Up to 8.x an update is written U3; from 9.0 on it is the third number.
            (update, None) if version.major < 9 => format!("ESXi {}.{}U{update}", version.major, version.minor),
            (update, Some(patch)) => format!("ESXi {}.{}U{update} {patch}", version.major, version.minor),
            _ => format!("ESXi {version}"),
        });
        match (version, &self.needs) {
            (Some(version), None) => version,
            (None, Some(needs)) => needs.clone(),
            (Some(version), Some(needs)) => format!("{version} and {needs}"),
            (None, None) => "a version that is not known".to_owned(),
        }
    }
}

/// Something that a mode or a type needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need<'a> {
    /// A version of ESXi.
    Esxi(&'a Gate),
    /// A vGPU branch of the host driver.
    Branch {
        /// Who needs it: the name of the model or of the type.
        what: &'a str,
        /// First branch.
        min: Option<u16>,
        /// Last branch.
        max: Option<u16>,
    },
}

impl Need<'_> {
    /// What needs it: a feature, a model or a type.
    pub fn what(&self) -> &str {
        match self {
            Self::Esxi(gate) => &gate.feature,
            Self::Branch { what, .. } => what,
        }
    }

    /// What it needs, for people: `ESXi 8.0U3`, `vGPU 16 or later`.
    pub fn requirement(&self) -> String {
        match *self {
            Self::Esxi(gate) => gate.requirement(),
            Self::Branch { min: Some(min), max: None, .. } => format!("vGPU {min} or later"),
            Self::Branch { min: None, max: Some(max), .. } => format!("vGPU {max} or earlier"),
            Self::Branch { min: Some(min), max: Some(max), .. } => format!("vGPU {min} to {max}"),
            Self::Branch { min: None, max: None, .. } => "any vGPU branch".to_owned(),
        }
    }

    /// Whether a host has it: its version of ESXi and the vGPU branch of its driver, as far as they
    /// are known. `None`: that cannot be told.
    pub fn met(&self, esxi: Option<EsxiVersion>, branch: Option<u16>) -> Option<bool> {
        match self {
            Self::Esxi(gate) => gate.open(esxi?),
            Self::Branch { min, max, .. } => {
                let branch = branch?;
                Some(min.is_none_or(|min| branch >= min) && max.is_none_or(|max| branch <= max))
            }
        }
    }
}

impl Catalog {
    /// What the types need of a host to run on the model in the mode. Types that the catalogue does
    /// not know need nothing that we know of.
    pub fn needs<'a>(&'a self, model: &'a Model, mode: FitMode, types: &[&'a VgpuType]) -> Vec<Need<'a>> {
        let mut ids = Vec::new();
        match mode {
            FitMode::Same => {
                let first = types.first().map(|vgpu| vgpu.series);
                if types.iter().any(|vgpu| Some(vgpu.series) != first) {
                    ids.push("sameSizeSeries");
                }
            }
            FitMode::Mixed => ids.push("mixedSize"),
            FitMode::MigVgpu => {
                ids.push("migVgpu");
                if model.board.architecture == "blackwell" && model.board.form == "pcie" {
                    ids.push("rtxProMig");
                }
                if types.iter().any(|vgpu| matches!(vgpu.kind, TypeKind::Mig { per_instance: 2.., .. })) {
                    ids.push("timeSlicedMig");
                }
                if types.iter().any(|vgpu| vgpu.esxi.is_some()) {
                    ids.push("hopperSmallMig");
                }
            }
        }
        if model.nvlink.kind == "nvswitch" {
            match model.board.architecture.as_str() {
                "ampere" => ids.push("nvswitchAmpere"),
                "hopper" => ids.push("nvswitchHopper"),
                "blackwell" => ids.push("nvswitchBlackwell"),
                _ => {}
            }
        }
        if types.iter().filter_map(|vgpu| vgpu.branch).chain(model.branch.min).any(|branch| branch >= 20) {
            ids.push("vgpu20");
        }
        let mut needs: Vec<Need> =
            ids.iter().filter_map(|id| self.gates().iter().find(|gate| gate.id == *id)).map(Need::Esxi).collect();
        if model.branch.min.is_some() || model.branch.max.is_some() {
            needs.push(Need::Branch { what: &model.name, min: model.branch.min, max: model.branch.max });
        }
        for vgpu in types.iter().filter(|vgpu| vgpu.branch > model.branch.min) {
            needs.push(Need::Branch { what: &vgpu.name, min: vgpu.branch, max: model.branch.max });
        }
        needs
    }
}
