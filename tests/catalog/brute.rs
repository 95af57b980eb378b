//! The solver against a slow search that shares no code with it: every way in which what runs may
//! sit is written out, and for each every way to place what is asked for.

use std::collections::BTreeMap;

use poolwright::catalog::{Beside, Combination, FitMode, MigGeometry, Model, TypeKind, catalog};
use proptest::prelude::*;

/// Something with a size that may start at some places.
#[derive(Clone, Debug)]
struct Thing {
    size: u32,
    starts: Vec<u32>,
}

fn lay(axis: &[bool], start: u32, size: u32) -> Option<Vec<bool>> {
    let mut axis = axis.to_vec();
    for cell in start..start + size {
        let cell = axis.get_mut(cell as usize)?;
        if std::mem::replace(cell, true) {
            return None;
        }
    }
    Some(axis)
}

/// Every axis that results from placing all things.
fn every_way(axis: Vec<bool>, things: &[Thing]) -> Vec<Vec<bool>> {
    let Some((first, rest)) = things.split_first() else { return vec![axis] };
    first
        .starts
        .iter()
        .filter_map(|start| lay(&axis, *start, first.size))
        .flat_map(|axis| every_way(axis, rest))
        .collect()
}

fn any_way(axis: &[bool], things: &[Thing]) -> bool {
    let Some((first, rest)) = things.split_first() else { return true };
    first.starts.iter().any(|start| lay(axis, *start, first.size).is_some_and(|axis| any_way(&axis, rest)))
}

/// Yes in every state, no in every state, or unknown; no state at all is unknown, too.
fn verdict(answers: &[bool]) -> Option<bool> {
    match (answers.contains(&true), answers.contains(&false)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

/// The rules of MIG in words: maxima, one instance with media engines, and beside `+me.all` only
/// instances without any engine.
fn allowed(geometry: &MigGeometry, instances: &[&str]) -> bool {
    let max = |name: &str| geometry.profiles.iter().find(|profile| profile.name == name).unwrap().max as usize;
    let each = instances.iter().all(|name| instances.iter().filter(|other| *other == name).count() <= max(name));
    let media = instances.iter().filter(|name| name.contains("+me")).count();
    let all_media = instances.iter().any(|name| name.ends_with("+me.all"));
    let others = instances.iter().filter(|name| !name.ends_with("+me.all")).all(|name| name.ends_with("-me"));
    each && media <= 1 && (!all_media || others) && instances.len() <= geometry.max_instances as usize
}

/// Numbers of instances that may carry `n` vGPUs, `per` at most in each.
fn splits(n: u32, per: u32) -> Vec<u32> {
    (0..=n).filter(|k| k * per >= n && *k <= n).collect()
}

fn mig_oracle(model: &Model, want: &Combination, running: &Combination, placed: &[(String, u32)]) -> Option<bool> {
    let geometry = model.mig.as_ref().unwrap();
    let thing = |profile: &str| {
        let found = geometry.profiles.iter().find(|known| known.name == profile).unwrap();
        Thing { size: found.memory, starts: found.starts.clone() }
    };
    let of = |name: &String| match &model.types.iter().find(|vgpu| vgpu.name == *name).unwrap().kind {
        TypeKind::Mig { profile, per_instance, .. } => (profile.as_str(), *per_instance),
        TypeKind::TimeSliced { .. } => unreachable!(),
    };
    let mut axis = vec![false; geometry.memory_slices as usize];
    for (profile, start) in placed {
        axis = lay(&axis, *start, thing(profile).size)?;
    }
    // Every split of the running vGPUs over instances.
    let mut states: Vec<BTreeMap<&String, u32>> = vec![BTreeMap::new()];
    for (name, n) in running {
        states = states
            .into_iter()
            .flat_map(|state| {
                splits(*n, of(name).1).into_iter().map(move |k| {
                    let mut state = state.clone();
                    state.insert(name, k);
                    state
                })
            })
            .collect();
    }
    let mut answers = Vec::new();
    for state in states {
        let mut instances: Vec<&str> = placed.iter().map(|(profile, _)| profile.as_str()).collect();
        let mut run = Vec::new();
        for (name, k) in &state {
            for _ in 0..*k {
                instances.push(of(name).0);
                run.push(thing(of(name).0));
            }
        }
        if !allowed(geometry, &instances) {
            continue;
        }
        // A placed instance of a shared profile has any number of free seats.
        let mut seats = vec![BTreeMap::new()];
        for (name, _) in want.iter().filter(|(name, _)| of(name).1 > 1) {
            let here = placed.iter().filter(|(profile, _)| profile == of(name).0).count() as u32;
            let most = here * (of(name).1 - 1);
            seats = seats
                .into_iter()
                .flat_map(|seat| {
                    [0, most].into_iter().map(move |free| {
                        let mut seat = seat.clone();
                        seat.insert(name, free);
                        seat
                    })
                })
                .collect();
        }
        for axis in every_way(axis.clone(), &run) {
            for seat in &seats {
                let mut all = instances.clone();
                let mut things = Vec::new();
                for (name, n) in want {
                    let (profile, per) = of(name);
                    let spare = state.get(name).map_or(0, |k| k * per - running[name]) + seat.get(name).unwrap_or(&0);
                    for _ in 0..n.saturating_sub(spare).div_ceil(per) {
                        all.push(profile);
                        things.push(thing(profile));
                    }
                }
                answers.push(allowed(geometry, &all) && any_way(&axis, &things));
            }
        }
    }
    verdict(&answers)
}

fn mixed_oracle(model: &Model, want: &Combination, running: &Combination, placed: &[(String, u32)]) -> Option<bool> {
    let region = model.region.as_ref().unwrap();
    let thing = |name: &String| {
        let fb = model.types.iter().find(|vgpu| vgpu.name == *name).unwrap().memory_mib.unwrap();
        let size = region.sizes.iter().find(|size| size.fb == fb).unwrap();
        Thing { size: size.gb, starts: size.ids.clone() }
    };
    let things = |all: &Combination| -> Vec<Thing> {
        all.iter().flat_map(|(name, n)| std::iter::repeat_n(thing(name), *n as usize)).collect()
    };
    let mut axis = vec![false; 256];
    for (name, start) in placed {
        axis = lay(&axis, *start, thing(name).size)?;
    }
    let want = things(want);
    let answers: Vec<bool> = every_way(axis, &things(running)).iter().map(|axis| any_way(axis, &want)).collect();
    verdict(&answers)
}

fn solver(
    mode: FitMode,
    model: &Model,
    want: &Combination,
    running: &Combination,
    placed: &[(String, u32)],
) -> Option<bool> {
    let mut beside: Vec<Beside> =
        running.iter().map(|(vgpu, count)| Beside::Running { vgpu: vgpu.clone(), count: *count }).collect();
    beside.extend(placed.iter().map(|(what, start)| Beside::Placed { what: what.clone(), start: *start }));
    let fit = catalog().fit(model, mode, want, &beside);
    for nearest in &fit.nearest {
        let again = catalog().fit(model, mode, nearest, &beside);
        assert_eq!(again.fits, Some(true), "{nearest:?} is offered as fitting: {}", again.why);
    }
    assert_eq!(fit.first_misfit.is_some(), fit.fits != Some(true) && !fit.why.contains("is not possible"), "{fit:?}");
    fit.fits
}

/// Positions in lists that the test resolves: proptest shrinks them well.
type Picks = Vec<(prop::sample::Index, u32)>;

fn combination(names: &[&str], picks: &Picks) -> Combination {
    picks.iter().map(|(at, n)| ((*at.get(names)).to_owned(), *n)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mig_agrees_with_the_slow_search(
        model in prop::sample::select(vec!["a30", "a100-pcie-40", "h100-nvl-94", "rtxpro6000-bse"]),
        desktop in any::<bool>(),
        want in prop::collection::vec((any::<prop::sample::Index>(), 1u32..4), 1..4),
        running in prop::collection::vec((any::<prop::sample::Index>(), 1u32..3), 0..3),
        placed in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..3),
    ) {
        let model = catalog().model(model).unwrap();
        let geometry = model.mig.as_ref().unwrap();
        // C types have a host driver of their own, so a case has only them or none of them.
        let desktop = desktop && model.id == "rtxpro6000-bse";
        let names: Vec<&str> = model.types.iter()
            .filter(|vgpu| FitMode::MigVgpu.takes(vgpu))
            .filter(|vgpu| desktop != (vgpu.series == poolwright::catalog::Series::C))
            .map(|vgpu| vgpu.name.as_str()).collect();
        let placed: Vec<(String, u32)> = placed.iter().map(|(profile, start)| {
            let profile = profile.get(&geometry.profiles);
            (profile.name.clone(), *start.get(&profile.starts))
        }).collect();
        let (want, running) = (combination(&names, &want), combination(&names, &running));
        prop_assert_eq!(
            solver(FitMode::MigVgpu, model, &want, &running, &placed),
            mig_oracle(model, &want, &running, &placed),
            "{} {:?} beside {:?} {:?}", model.id, want, running, placed
        );
    }

    #[test]
    fn mixed_sizes_agree_with_the_slow_search(
        model in prop::sample::select(vec!["a16", "l4", "a100-pcie-40", "h100-nvl-94"]),
        want in prop::collection::vec((any::<prop::sample::Index>(), 1u32..3), 1..4),
        running in prop::collection::vec((any::<prop::sample::Index>(), 1u32..2), 0..3),
        placed in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..3),
    ) {
        let model = catalog().model(model).unwrap();
        let names: Vec<&str> = model.types.iter()
            .filter(|vgpu| matches!(vgpu.kind, TypeKind::TimeSliced { mixed: Some(_), .. }))
            .filter(|vgpu| vgpu.series == poolwright::catalog::Series::C)
            .map(|vgpu| vgpu.name.as_str()).collect();
        let placed: Vec<(String, u32)> = placed.iter().map(|(name, start)| {
            let vgpu = model.types.iter().find(|vgpu| vgpu.name == **name.get(&names)).unwrap();
            let region = model.region.as_ref().unwrap();
            let size = region.sizes.iter().find(|size| Some(size.fb) == vgpu.memory_mib).unwrap();
            (vgpu.name.clone(), *start.get(&size.ids))
        }).collect();
        let (want, running) = (combination(&names, &want), combination(&names, &running));
        prop_assert_eq!(
            solver(FitMode::Mixed, model, &want, &running, &placed),
            mixed_oracle(model, &want, &running, &placed),
            "{} {:?} beside {:?} {:?}", model.id, want, running, placed
        );
    }
}
