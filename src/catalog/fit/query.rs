//! What is asked, and the answer.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::catalog::{TypeKind, VgpuType};
use crate::model::{Mode, VgpuSize};

/// vGPUs of one GPU: how many of each type.
pub type Combination = BTreeMap<String, u32>;

/// The mode of the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FitMode {
    /// Time-sliced, one framebuffer size.
    Same,
    /// Time-sliced, sizes mixed.
    Mixed,
    /// MIG-backed.
    MigVgpu,
}

impl FitMode {
    /// Whether types of this kind run in the mode (rule MIG-7).
    pub fn takes(self, vgpu: &VgpuType) -> bool {
        matches!(vgpu.kind, TypeKind::Mig { .. }) == (self == Self::MigVgpu)
    }

    /// The mode for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Same => "same-size mode",
            Self::Mixed => "mixed-size mode",
            Self::MigVgpu => "MIG mode",
        }
    }

    /// The mode that a profile asks for; none for passthrough, which has no vGPUs.
    pub fn of(mode: &Mode) -> Option<Self> {
        match mode {
            Mode::Passthrough { .. } => None,
            Mode::Vgpu { size: VgpuSize::Same } => Some(Self::Same),
            Mode::Vgpu { size: VgpuSize::Mixed } => Some(Self::Mixed),
            Mode::MigVgpu => Some(Self::MigVgpu),
        }
    }
}

/// A word that is no mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no mode (same, mixed or migVgpu)")]
pub struct FitModeError(pub String);

impl FromStr for FitMode {
    type Err = FitModeError;

    fn from_str(text: &str) -> Result<Self, FitModeError> {
        match text {
            "same" => Ok(Self::Same),
            "mixed" => Ok(Self::Mixed),
            "migVgpu" => Ok(Self::MigVgpu),
            other => Err(FitModeError(other.to_owned())),
        }
    }
}

/// Something that runs on the GPU already.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Beside {
    /// vGPUs of a type, wherever they sit: `nvidia_h100l-3-47c=1`.
    Running {
        /// Type.
        vgpu: String,
        /// How many.
        count: u32,
    },
    /// A GPU instance at a memory slice, `3g.47gb@4`, or in mixed-size mode a vGPU at a placement
    /// id, `nvidia_l40s-12q@24`.
    Placed {
        /// Profile of the GPU instance, or vGPU type.
        what: String,
        /// Where it starts.
        start: u32,
    },
}

/// Why a text is no [`Beside`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither TYPE=COUNT nor GI-PROFILE@START")]
pub struct BesideError(pub String);

impl FromStr for Beside {
    type Err = BesideError;

    fn from_str(text: &str) -> Result<Self, BesideError> {
        let split = |at| text.rsplit_once(at).filter(|(name, _)| !name.is_empty());
        if let Some((what, start)) = split('@') {
            if let Ok(start) = start.parse() {
                return Ok(Self::Placed { what: what.to_owned(), start });
            }
        } else if let Some((vgpu, count)) = split('=')
            && let Ok(count) = count.parse()
        {
            return Ok(Self::Running { vgpu: vgpu.to_owned(), count });
        }
        Err(BesideError(text.to_owned()))
    }
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running { vgpu, count } => write!(f, "{vgpu}={count}"),
            Self::Placed { what, start } => write!(f, "{what}@{start}"),
        }
    }
}

/// Whether a combination fits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fit {
    /// Yes, no, or unknown.
    pub fits: Option<bool>,
    /// One sentence with the numbers.
    pub why: String,
    /// The rule that decides, an id of [`super::super::Catalog::rules`]; none if it fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'static str>,
    /// The first type, largest first, with which it does not fit any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_misfit: Option<String>,
    /// Combinations that fit: as near as there are, nearest first, none of which can be extended by
    /// the types asked for. Empty if it fits.
    pub nearest: Vec<Combination>,
    /// Types of the model and mode that may be meant, where a name is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// What the answer rests on and that was never verified.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unverified: Vec<String>,
}

/// An answer in the making.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub fits: Option<bool>,
    pub rule: &'static str,
    pub why: String,
}

impl Verdict {
    pub fn yes(why: String) -> Self {
        Self { fits: Some(true), rule: "", why }
    }

    pub fn no(rule: &'static str, why: String) -> Self {
        Self { fits: Some(false), rule, why }
    }

    pub fn unknown(rule: &'static str, why: String) -> Self {
        Self { fits: None, rule, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_is_read_and_printed_alike() {
        for text in ["grid_a100-3-20c=1", "3g.20gb@4", "1g.24gb+me.all@0", "nvidia_l40s-12q@24"] {
            assert_eq!(text.parse::<Beside>().unwrap().to_string(), text);
        }
        for text in ["", "3g.20gb", "=1", "@4", "a=", "a@", "a=-1", "a@x", "a=1@x"] {
            assert!(text.parse::<Beside>().is_err(), "{text}");
        }
    }
}
