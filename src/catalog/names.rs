//! Spellings of vGPU types.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Catalog, FitMode, Model, VgpuType};

/// Where a type is: model and type, both as positions.
#[derive(Debug)]
pub(super) struct TypeIndex(BTreeMap<String, (usize, usize)>);

impl TypeIndex {
    pub(super) fn new(models: &[Model]) -> Self {
        let types = models.iter().enumerate();
        Self(
            types
                .flat_map(|(m, model)| {
                    model.types.iter().enumerate().map(move |(t, vgpu)| (stem(&vgpu.name).into_owned(), (m, t)))
                })
                .collect(),
        )
    }
}

/// What is left of a name when its spelling is taken off: upper case and spaces (NVIDIA's own
/// names), the prefix `grid_` or `nvidia_` (newer drivers say NVIDIA where older ones say GRID),
/// and the suffix `gfx` that hosts from R595 on append to MIG types with graphics (rule NAME-2).
fn stem(name: &str) -> Cow<'_, str> {
    let plain = name.bytes().all(|byte| !byte.is_ascii_uppercase() && byte != b' ');
    let cut = |text: &str| {
        let start = ["nvidia_", "grid_"].iter().find(|prefix| text.starts_with(**prefix)).map_or(0, |p| p.len());
        let end = text.len() - if text.ends_with("gfx") { 3 } else { 0 };
        start..end.max(start)
    };
    if plain {
        Cow::Borrowed(&name[cut(name)])
    } else {
        let lower = name.to_ascii_lowercase().replace(' ', "_");
        Cow::Owned(lower[cut(&lower)].to_owned())
    }
}

/// Whether two names are spellings of one vGPU type. Works for types that the catalogue does not
/// know, too.
pub fn same_type(one: &str, other: &str) -> bool {
    stem(one) == stem(other)
}

/// How a vGPU type stands between the catalogue and what a host lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The catalogue knows it.
    Known,
    /// The host lists it and the catalogue does not know it: the host is right, and nothing can be
    /// proven of it.
    HostOnly,
    /// Neither. A host lists what can start now, so a GPU in another mode may still bring it.
    Nowhere,
    /// The catalogue does not know it, and the list of the host could not be read.
    Unread,
}

impl Catalog {
    /// How a type stands; `listed` is what the host lists, none if that could not be read.
    pub fn standing(&self, name: &str, listed: Option<&[String]>) -> Standing {
        if self.vgpu_type(name).is_some() {
            return Standing::Known;
        }
        match listed {
            None => Standing::Unread,
            Some(listed) if listed.iter().any(|other| same_type(name, other)) => Standing::HostOnly,
            Some(_) => Standing::Nowhere,
        }
    }

    /// A vGPU type by any of its spellings, with the model that has it.
    pub fn vgpu_type(&self, name: &str) -> Option<(&Model, &VgpuType)> {
        let &(model, vgpu) = self.index.0.get(stem(name).as_ref())?;
        let model = &self.models[model];
        Some((model, &model.types[vgpu]))
    }
}

/// Types of a model for a mode that are most like `name`, nearest first, at most `limit`: of the same series
/// and the nearest framebuffer if `name` is a type at all, else the most alike in spelling.
pub fn nearest_types<'a>(catalog: &Catalog, model: &'a Model, mode: FitMode, name: &str, limit: usize) -> Vec<&'a str> {
    let meant = catalog.vgpu_type(name).map(|(_, vgpu)| vgpu);
    let wanted = stem(name);
    let mut found: Vec<_> = model
        .types
        .iter()
        .filter(|vgpu| mode.takes(vgpu))
        .map(|vgpu| {
            let near = match meant {
                Some(meant) => (usize::from(meant.series != vgpu.series), meant.memory_gb.abs_diff(vgpu.memory_gb)),
                None => (2, 0),
            };
            (near, distance(&wanted, &stem(&vgpu.name)), vgpu.name.as_str())
        })
        .collect();
    found.sort();
    found.into_iter().take(limit).map(|(_, _, name)| name).collect()
}

fn distance(one: &str, other: &str) -> usize {
    strsim::damerau_levenshtein(one, other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::catalog;

    fn found(name: &str) -> Option<&'static str> {
        catalog().vgpu_type(name).map(|(_, vgpu)| vgpu.name.as_str())
    }

    #[test]
    fn spellings_of_one_type() {
        for name in ["grid_a100-40c", "a100-40c", "nvidia_a100-40c", "GRID A100-40C", "A100-40C"] {
            assert_eq!(found(name), Some("grid_a100-40c"), "{name}");
        }
        let full = "nvidia_rtx_pro_6000_blackwell_dc-1-24q";
        for name in [full, "nvidia_rtx_pro_6000_blackwell_dc-1-24qgfx", "NVIDIA RTX Pro 6000 Blackwell DC-1-24QGFX"] {
            assert_eq!(found(name), Some(full), "{name}");
        }
        assert_eq!(found("dc-1-24q"), None, "several boards have that short name");
        assert_eq!(found(""), None);
        assert_eq!(found("gfx"), None);
        assert!(same_type("nvidia_new-1-8qgfx", "nvidia_new-1-8q") && !same_type("nvidia_a2-4q", "nvidia_a16-4q"));
    }

    #[test]
    fn a16_what_the_host_lists_counts() {
        let listed = ["nvidia_h200x-93c".to_owned(), "nvidia_h200x-141c".to_owned()];
        assert_eq!(catalog().standing("NVIDIA H200X-93C", Some(&listed)), Standing::HostOnly);
        assert_eq!(catalog().standing("nvidia_h200x-94c", Some(&listed)), Standing::Nowhere);
        assert_eq!(catalog().standing("nvidia_h200x-94c", None), Standing::Unread);
        assert_eq!(catalog().standing("nvidia_h200x-141c", Some(&[])), Standing::Known);
    }

    #[test]
    fn every_type_is_found_by_its_own_names_and_is_of_its_model() {
        for model in catalog().models() {
            for vgpu in &model.types {
                for name in [&vgpu.name, &vgpu.nvidia_name] {
                    let (owner, found) = catalog().vgpu_type(name).unwrap();
                    assert_eq!((&owner.id, &found.name), (&model.id, &vgpu.name));
                }
                assert_eq!(vgpu.nvidia_name.to_lowercase().replace(' ', "_"), vgpu.name);
            }
        }
    }

    #[test]
    fn nearest_types_of_the_other_mode() {
        let near = |model: &str, mode, name| nearest_types(catalog(), catalog().model(model).unwrap(), mode, name, 2);
        assert_eq!(near("a100-pcie-40", FitMode::MigVgpu, "grid_a100-4c"), ["grid_a100-1-5c", "grid_a100-1-5cme"]);
        assert_eq!(
            near("h100-sxm5-80", FitMode::Same, "nvidia_h100xm-1-10c"),
            ["nvidia_h100xm-10c", "nvidia_h100xm-8c"]
        );
        assert_eq!(near("h100-nvl-94", FitMode::Mixed, "nvidia_h100l-74c")[0], "nvidia_h100l-47c");
    }
}
