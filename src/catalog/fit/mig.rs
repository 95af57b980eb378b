//! MIG-backed: vGPUs in GPU instances, GPU instances at memory slices.

use std::collections::BTreeSet;

use super::decide::{Case, MAX_LAYOUTS, beside_layouts, count};
use super::instances::{exceeds, list, pieces};
use super::pack::{Cells, Work, layouts, packs};
use super::query::Verdict;
use crate::catalog::{MigGeometry, TypeKind, VgpuType};

/// A case, prepared.
pub(super) struct Mig<'a> {
    geometry: &'a MigGeometry,
    /// For each type of the case: its profile, and how many share an instance.
    types: Vec<(usize, u32)>,
    /// Instances at a known place, by profile.
    placed: Vec<u32>,
    /// What else runs: in how many instances (by profile) and with how many free seats for the types
    /// of the case. vGPUs that could share an instance may also have one each.
    states: Vec<State>,
}

struct State {
    instances: Vec<u32>,
    seats: Vec<u32>,
    /// Where all that runs may sit.
    layouts: BTreeSet<Cells>,
}

impl<'a> Mig<'a> {
    pub fn new(case: &Case<'a>) -> Result<Self, Verdict> {
        let Some(geometry) = &case.model.mig else {
            return Err(Verdict::no("HOST-5", format!("{} has no MIG mode", case.model.name)));
        };
        let mut types = Vec::with_capacity(case.types.len());
        for vgpu in &case.types {
            types.push(profile_of(geometry, vgpu)?);
        }
        let impossible = |why: String| Verdict::unknown("MIG-1", format!("what is said to run is not possible: {why}"));
        let mut placed = vec![0; geometry.profiles.len()];
        let mut taken = Cells::default();
        for (what, start) in &case.placed {
            let Some(at) = geometry.profiles.iter().position(|profile| profile.name == *what) else {
                return Err(impossible(format!("{} has no GPU instance profile {what}", case.model.name)));
            };
            let profile = &geometry.profiles[at];
            if !profile.starts.contains(start) {
                let starts: Vec<String> = profile.starts.iter().map(ToString::to_string).collect();
                return Err(impossible(format!("{what} at {start}: it starts at {}", starts.join(", "))));
            }
            if !taken.free(*start, profile.memory) {
                return Err(impossible(format!("{what} at {start}, where another one runs")));
            }
            taken = taken.with(*start, profile.memory);
            placed[at] += 1;
        }
        let mut mig = Self { geometry, types, placed, states: Vec::new() };
        // Instances of each running type: from as few as can hold its vGPUs to one each.
        let mut running = Vec::with_capacity(case.running.len());
        for (vgpu, n) in &case.running {
            let (profile, per) = profile_of(geometry, vgpu)?;
            let most = (*n).min(geometry.profiles[profile].max);
            if n.div_ceil(per) > most {
                return Err(impossible(format!(
                    "{n} x {} of at most {} on one GPU",
                    vgpu.name,
                    geometry.profiles[profile].max * per
                )));
            }
            running.push((vgpu, profile, per, *n, n.div_ceil(per)..=most));
        }
        let mut splits: Vec<Vec<u32>> = vec![Vec::new()];
        for (.., range) in &running {
            splits = splits
                .iter()
                .flat_map(|split| range.clone().map(|k| split.iter().copied().chain([k]).collect()))
                .collect();
        }
        for split in splits {
            let mut instances = vec![0; geometry.profiles.len()];
            let mut seats = vec![0; case.types.len()];
            for ((vgpu, profile, per, n, _), k) in running.iter().zip(&split) {
                instances[*profile] += k;
                for (at, wanted) in case.types.iter().enumerate() {
                    if wanted.name == vgpu.name {
                        seats[at] += k * per - n;
                    }
                }
            }
            if mig.limits(&instances).is_some() {
                continue;
            }
            let Some(layouts) = layouts(&pieces(geometry), &instances, taken, MAX_LAYOUTS) else {
                unreachable!("the layouts of at most seven instances are far fewer than {MAX_LAYOUTS}");
            };
            if !layouts.is_empty() {
                mig.states.push(State { instances, seats, layouts });
            }
        }
        if mig.states.is_empty() {
            let all = running.iter().fold(mig.placed.clone(), |mut all, (_, profile, _, _, range)| {
                all[*profile] += range.start();
                all
            });
            let why = exceeds(geometry, &all).map_or_else(|| "it has no placement".to_owned(), |verdict| verdict.why);
            return Err(impossible(why));
        }
        Ok(mig)
    }

    /// Decides for `counts` of the types of the case.
    pub fn decide(&self, counts: &[u32], work: &Work) -> Verdict {
        let mut answers = self.states.iter().map(|state| self.beside(state, counts, work));
        let Some(mut answer) = answers.next() else {
            unreachable!("a case without any state of what runs is refused in `new`");
        };
        for other in answers {
            if other.fits != answer.fits {
                let why = "it depends on how the running vGPUs share GPU instances, which is not known";
                return Verdict::unknown("MIG-3", why.to_owned());
            }
            if other.fits != Some(true) {
                answer = other;
            }
        }
        // An instance at a known place may hold fewer vGPUs than it could.
        if answer.fits == Some(false) && self.placed.iter().any(|n| *n > 0) {
            let seats = self.types.iter().map(|(profile, per)| self.placed[*profile] * (per - 1));
            let fewer: Vec<u32> = counts.iter().zip(seats).map(|(n, seats)| n.saturating_sub(seats)).collect();
            if fewer != counts && self.states.iter().any(|state| self.beside(state, &fewer, work).fits != Some(false)) {
                let why = "it depends on how full the running GPU instances are, which is not known";
                return Verdict::unknown("MIG-3", why.to_owned());
            }
        }
        answer
    }

    fn beside(&self, state: &State, counts: &[u32], work: &Work) -> Verdict {
        let mut want = vec![0u32; self.geometry.profiles.len()];
        for (((profile, per), n), seats) in self.types.iter().zip(counts).zip(&state.seats) {
            let instances = n.saturating_sub(*seats).div_ceil(*per);
            want[*profile] = want[*profile].saturating_add(instances);
        }
        let all: Vec<u32> = want.iter().zip(&state.instances).map(|(n, running)| n.saturating_add(*running)).collect();
        if let Some(verdict) = self.limits(&all) {
            return verdict;
        }
        let pieces = pieces(self.geometry);
        let place = |cells: &Cells| packs(&pieces, &want, *cells, work);
        let placed = beside_layouts(Some(&state.layouts), place, "MIG-1", || {
            let list = list(self.geometry, &want);
            format!("no free memory slices at which {list} may start")
        });
        if placed.fits != Some(true) {
            return placed;
        }
        let (memory, compute) = self.slices(&all);
        let vgpus = counts.iter().fold(0u32, |sum, n| sum.saturating_add(*n));
        if vgpus == 0 {
            return Verdict::yes("nothing is asked for".to_owned());
        }
        let running: u32 = state.instances.iter().chain(&self.placed).sum();
        let beside = match running {
            0 => String::new(),
            1 => " with the one that runs".to_owned(),
            several => format!(" with the {several} that run"),
        };
        Verdict::yes(format!(
            "{} in {}{beside}: {memory} of {} memory slices, {compute} of {} compute slices",
            count(vgpus, "vGPU"),
            count(want.iter().sum(), "GPU instance"),
            self.geometry.memory_slices,
            self.geometry.compute_slices
        ))
    }

    /// Memory and compute slices of these instances and of those at known places.
    fn slices(&self, instances: &[u32]) -> (u32, u32) {
        let all = self.geometry.profiles.iter().zip(instances).zip(&self.placed);
        all.fold((0, 0), |(memory, compute), ((profile, n), placed)| {
            let n = n.saturating_add(*placed);
            (
                u32::saturating_add(memory, n.saturating_mul(profile.memory)),
                u32::saturating_add(compute, n.saturating_mul(profile.compute)),
            )
        })
    }

    fn limits(&self, instances: &[u32]) -> Option<Verdict> {
        let all: Vec<u32> = instances.iter().zip(&self.placed).map(|(n, placed)| n.saturating_add(*placed)).collect();
        exceeds(self.geometry, &all)
    }
}

/// The profile of a type, as a position, and how many vGPUs of the type share an instance.
fn profile_of(geometry: &MigGeometry, vgpu: &VgpuType) -> Result<(usize, u32), Verdict> {
    let TypeKind::Mig { profile, per_instance, .. } = &vgpu.kind else {
        unreachable!("a case holds types of its mode only");
    };
    match geometry.profiles.iter().position(|known| known.name == *profile) {
        Some(at) => Ok((at, (*per_instance).max(1))),
        None => Err(Verdict::unknown("MIG-1", format!("the geometry of {profile} is not known"))),
    }
}
