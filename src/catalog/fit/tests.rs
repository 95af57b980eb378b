//! Geometry against what is known from elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::instances::{exceeds, pieces};
use super::pack::{Cells, Work, packs};
use crate::catalog::{MigGeometry, catalog};
use crate::document::embedded;

fn geometry(model: &str) -> &'static MigGeometry {
    catalog().model(model).unwrap().mig.as_ref().unwrap()
}

fn counts(geometry: &MigGeometry, instances: &BTreeMap<String, u32>) -> Option<Vec<u32>> {
    let known = |name: &String| geometry.profiles.iter().any(|profile| profile.name == *name);
    instances
        .keys()
        .all(known)
        .then(|| geometry.profiles.iter().map(|profile| instances.get(&profile.name).copied().unwrap_or(0)).collect())
}

fn lies(geometry: &MigGeometry, counts: &[u32]) -> bool {
    packs(&pieces(geometry), counts, Cells::default(), &Work::of(10_000)).unwrap()
}

fn fits(geometry: &MigGeometry, counts: &[u32]) -> bool {
    exceeds(geometry, counts).is_none() && lies(geometry, counts)
}

/// All counts of the profiles that `with` lets pass, up to their maxima.
fn all_counts(geometry: &MigGeometry, with: impl Fn(&str) -> bool) -> Vec<Vec<u32>> {
    geometry.profiles.iter().fold(vec![Vec::new()], |all, profile| {
        let max = if with(&profile.name) { profile.max } else { 0 };
        all.into_iter().flat_map(|counts| (0..=max).map(move |n| counts.iter().copied().chain([n]).collect())).collect()
    })
}

/// Geometries to which no instance can be added, as text.
fn maximal(geometry: &MigGeometry, with: impl Fn(&str) -> bool + Copy) -> BTreeSet<String> {
    let can_grow = |counts: &[u32]| {
        (0..counts.len()).filter(|at| with(&geometry.profiles[*at].name)).any(|at| {
            let mut more = counts.to_vec();
            more[at] += 1;
            fits(geometry, &more)
        })
    };
    let found = all_counts(geometry, with).into_iter().filter(|counts| fits(geometry, counts) && !can_grow(counts));
    found
        .map(|counts| {
            let parts = geometry.profiles.iter().zip(counts).rev().filter(|(_, n)| *n > 0);
            parts.map(|(profile, n)| format!("{n}x{}", profile.name)).collect::<Vec<_>>().join(" ")
        })
        .collect()
}

#[test]
fn an_a100_40_has_twelve_maximal_geometries() {
    let base = |name: &str| !name.contains('+') && name != "1g.10gb";
    let expected = [
        "1x7g.40gb",
        "1x4g.20gb 1x3g.20gb",
        "2x3g.20gb",
        "1x4g.20gb 1x2g.10gb 1x1g.5gb",
        "1x4g.20gb 3x1g.5gb",
        "1x3g.20gb 2x2g.10gb",
        "1x3g.20gb 1x2g.10gb 2x1g.5gb",
        "1x3g.20gb 4x1g.5gb",
        "3x2g.10gb 1x1g.5gb",
        "2x2g.10gb 3x1g.5gb",
        "1x2g.10gb 5x1g.5gb",
        "7x1g.5gb",
    ];
    let expected: BTreeSet<String> = expected.into_iter().map(str::to_owned).collect();
    assert_eq!(maximal(geometry("a100-pcie-40"), base), expected);
}

#[test]
fn an_80_gb_card_has_twenty_eight_with_the_wide_1g() {
    for model in ["a100-sxm4-80", "h100-pcie-80"] {
        assert_eq!(maximal(geometry(model), |name| !name.contains('+')).len(), 28, "{model}");
    }
}

#[test]
fn compute_slices_alone_are_not_enough() {
    let geometry = geometry("h100-sxm5-80");
    let wanted = BTreeMap::from([("1g.20gb".to_owned(), 3), ("3g.40gb".to_owned(), 1)]);
    let refused = exceeds(geometry, &counts(geometry, &wanted).unwrap()).unwrap();
    assert_eq!((refused.fits, refused.rule), (Some(false), "MIG-1"));
    assert!(refused.why.contains("10 of 8 memory slices"), "{}", refused.why);
}

#[test]
fn media_engines_go_once() {
    for (model, one, other, rule) in [
        ("a30", "1g.6gb+me", "2g.12gb+me", "MIG-2"),
        ("rtxpro6000-bse", "1g.24gb+me", "1g.24gb+me.all", "MIG-2"),
        ("rtxpro6000-bse", "1g.24gb+me.all", "1g.24gb", "MIG-4"),
        ("rtxpro6000-bse", "2g.48gb+me.all", "1g.24gb+gfx", "MIG-4"),
    ] {
        let geometry = geometry(model);
        let pair = BTreeMap::from([(one.to_owned(), 1), (other.to_owned(), 1)]);
        let counts = counts(geometry, &pair).unwrap();
        assert_eq!(exceeds(geometry, &counts).map(|verdict| verdict.rule), Some(rule), "{model}: {one} and {other}");
        assert!(lies(geometry, &counts), "it is not for want of slices");
    }
    let rtx = geometry("rtxpro6000-bse");
    let without = BTreeMap::from([("1g.24gb+me.all".to_owned(), 1), ("1g.24gb-me".to_owned(), 3)]);
    assert!(fits(rtx, &counts(rtx, &without).unwrap()));
}

/// The claim of `engines_short`: where the GPU is cut in seven, figures of engines refuse nothing
/// that maxima, slices and rule MIG-2 let pass.
#[test]
fn engines_add_nothing_where_the_gpu_is_cut_in_seven() {
    let mut figures = 0;
    for model in catalog().models() {
        let Some(geometry) = model.mig.as_ref().filter(|mig| mig.compute_slices == 7) else { continue };
        figures += usize::from(geometry.profiles.iter().all(|profile| profile.engines.is_some()));
        for counts in all_counts(geometry, |_| true) {
            assert_ne!(
                exceeds(geometry, &counts).map(|verdict| verdict.rule),
                Some("MIG-4"),
                "{} {counts:?}",
                model.id
            );
        }
    }
    assert!(figures >= 6, "models with figures: {figures}");
}

/// On an empty GPU sums and maxima decide, so a solver of placements is judged by occupied ones.
#[test]
fn on_an_empty_gpu_sums_decide() {
    for model in catalog().models() {
        let Some(geometry) = &model.mig else { continue };
        for counts in all_counts(geometry, |_| true) {
            assert_eq!(exceeds(geometry, &counts).is_none(), fits(geometry, &counts), "{} {counts:?}", model.id);
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    devices: Option<Vec<String>>,
    instances: BTreeMap<String, u32>,
}

#[test]
fn every_preset_of_mig_parted_fits() {
    let presets: BTreeMap<String, Vec<Entry>> = embedded(include_str!("../../../tests/catalog/presets.yaml")).unwrap();
    assert_eq!(presets.len(), 81);
    let mut judged = BTreeSet::new();
    for (name, entries) in &presets {
        for entry in entries {
            for model in catalog().models() {
                let Some(geometry) = &model.mig else { continue };
                let listed = |devices: &Vec<String>| {
                    model.pci.iter().any(|pci| devices.contains(&format!("{:04x}", pci.device)))
                };
                if entry.devices.as_ref().is_some_and(|devices| !listed(devices)) {
                    continue;
                }
                match counts(geometry, &entry.instances) {
                    Some(counts) if entry.devices.is_some() || !entry.instances.is_empty() => {
                        assert!(fits(geometry, &counts), "{name} on {}", model.id);
                        judged.insert(name);
                    }
                    Some(_) => {}
                    None => assert!(entry.devices.is_none(), "{name} is for {}, which has no such profile", model.id),
                }
            }
        }
    }
    // The rest are the two without instances, and names that drivers of GB200 use beside ours.
    let rest: Vec<&String> = presets.keys().filter(|name| !judged.contains(name)).collect();
    assert_eq!(rest, ["all-3g.95gb", "all-4g.95gb", "all-7g.189gb", "all-disabled", "all-enabled"]);
}
