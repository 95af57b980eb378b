//! What GPU instances need of a GPU, wherever they sit.
//!
//! Instances are counted by profile: a slice has a count for each profile of the geometry.

use super::decide::count;
use super::pack::Piece;
use super::query::Verdict;
use crate::catalog::{Engines, MigGeometry, MigProfile};

/// The profiles as pieces to lay on the memory slices.
pub(super) fn pieces(geometry: &MigGeometry) -> Vec<Piece<'_>> {
    geometry.profiles.iter().map(|profile| Piece { size: profile.memory, starts: &profile.starts }).collect()
}

/// `2 x 1g.5gb, 1 x 3g.20gb`.
pub(super) fn list(geometry: &MigGeometry, instances: &[u32]) -> String {
    let named = geometry.profiles.iter().zip(instances).filter(|(_, n)| **n > 0);
    named.map(|(profile, n)| format!("{n} x {}", profile.name)).collect::<Vec<_>>().join(", ")
}

/// What these instances exceed wherever they sit, those at known places included.
pub(super) fn exceeds(geometry: &MigGeometry, all: &[u32]) -> Option<Verdict> {
    let named = || geometry.profiles.iter().zip(all.iter().copied()).filter(|(_, n)| *n > 0);
    for (profile, n) in named() {
        if n > profile.max {
            let why = format!("{} of {}, at most {} on one GPU", count(n, "GPU instance"), profile.name, profile.max);
            return Some(Verdict::no("MIG-1", why));
        }
    }
    let media: Vec<&str> =
        named().filter(|(profile, _)| carries_media(profile)).map(|(profile, _)| profile.name.as_str()).collect();
    if named().filter(|(profile, _)| carries_media(profile)).map(|(_, n)| n).sum::<u32>() > 1 {
        let why = format!("{}: one GPU instance with media engines (+me) at most", media.join(", "));
        return Some(Verdict::no("MIG-2", why));
    }
    let sum = |slices: fn(&MigProfile) -> u32| {
        named().map(|(profile, n)| u64::from(slices(profile)) * u64::from(n)).sum::<u64>()
    };
    for (need, have, what) in [
        (sum(|profile| profile.memory), geometry.memory_slices, "memory slices"),
        (sum(|profile| profile.compute), geometry.compute_slices, "compute slices"),
        (sum(|_| 1), geometry.max_instances, "GPU instances"),
    ] {
        if need > u64::from(have) {
            let why = format!("{} need {need} of {have} {what}", list(geometry, all));
            return Some(Verdict::no("MIG-1", why));
        }
    }
    if let Some((engine, need, have)) = engines_short(geometry, all) {
        let why = format!("{} need {need} of {have} {engine}", list(geometry, all));
        return Some(Verdict::no("MIG-4", why));
    }
    None
}

/// `+me` and `+me.all`: they take engines of which a GPU has one (rule MIG-2).
fn carries_media(profile: &MigProfile) -> bool {
    profile.name.contains("+me")
}

/// The first engine of which these instances need more than the GPU has. The whole GPU as one
/// instance has all of them. A geometry without figures is cut in seven, and there the engines decide
/// nothing beyond rule MIG-2 (a test shows it on the geometries that have figures).
fn engines_short(geometry: &MigGeometry, instances: &[u32]) -> Option<(&'static str, u32, u32)> {
    let whole = geometry.profiles.iter().max_by_key(|profile| profile.memory)?.engines?;
    let short = |name, of: fn(&Engines) -> u32| {
        let each = geometry.profiles.iter().zip(instances);
        let need = each
            .filter_map(|(profile, n)| Some(of(profile.engines.as_ref()?).saturating_mul(*n)))
            .fold(0u32, u32::saturating_add);
        (need > of(&whole)).then_some((name, need, of(&whole)))
    };
    short("NVDEC", |e| e.nvdec).or_else(|| short("JPEG", |e| e.jpeg)).or_else(|| short("OFA", |e| e.ofa))
}
