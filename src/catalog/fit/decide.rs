//! From names to an answer.

use std::collections::{BTreeMap, BTreeSet};

use super::mig::Mig;
use super::mixed::Mixed;
use super::nearest::nearest;
use super::pack::{Cells, Work};
use super::query::{Beside, Combination, Fit, FitMode, Verdict};
use super::same;
use crate::catalog::{Catalog, Model, TypeKind, VgpuType, nearest_types};

/// States searched for one answer: about a second of search in a release build.
const WORK: u64 = 1_000_000;

/// States searched for the combinations that fit instead: they are a help, so the answer should not
/// wait for them.
const WORK_NEAREST: u64 = 50_000;

/// Ways in which running vGPUs may sit that are looked at. Beyond it the answer is *unknown*; the
/// figure keeps an answer under a second.
pub(super) const MAX_LAYOUTS: usize = 4_000;

/// A question with its names looked up.
pub(super) struct Case<'a> {
    pub model: &'a Model,
    pub mode: FitMode,
    /// Types asked for, largest first.
    pub types: Vec<&'a VgpuType>,
    /// What runs, wherever it sits.
    pub running: Vec<(&'a VgpuType, u32)>,
    /// What runs, and where it starts.
    pub placed: Vec<(&'a str, u32)>,
}

enum Solver<'a> {
    Same(&'a Case<'a>),
    Mixed(Mixed<'a>),
    Mig(Mig<'a>),
}

impl<'a> Solver<'a> {
    fn new(case: &'a Case<'a>) -> Result<Self, Verdict> {
        if let Some(verdict) = model_limits(case) {
            return Err(verdict);
        }
        match case.mode {
            FitMode::Same => Ok(Self::Same(case)),
            FitMode::Mixed => Mixed::new(case).map(Self::Mixed),
            FitMode::MigVgpu => Mig::new(case).map(Self::Mig),
        }
    }

    fn decide(&self, counts: &[u32], work: &Work) -> Verdict {
        match self {
            Self::Same(case) => same::decide(case, counts),
            Self::Mixed(mixed) => mixed.decide(counts, work),
            Self::Mig(mig) => mig.decide(counts, work),
        }
    }
}

impl Catalog {
    /// Whether `want` fits one GPU of the model in the mode, beside what runs on it.
    ///
    /// Names are accepted in every spelling; answers use the catalogue's. A type that the catalogue
    /// does not know makes the answer *unknown*.
    pub fn fit(&self, model: &Model, mode: FitMode, want: &Combination, beside: &[Beside]) -> Fit {
        let mut counts: BTreeMap<&str, (&VgpuType, u32)> = BTreeMap::new();
        for (name, n) in want {
            match self.type_of(model, mode, name) {
                Ok(vgpu) => {
                    let entry = counts.entry(&vgpu.name).or_insert((vgpu, 0));
                    entry.1 = entry.1.saturating_add(*n);
                }
                Err(verdict) => {
                    let names = nearest_types(self, model, mode, name, 3);
                    return Fit {
                        first_misfit: Some(name.clone()),
                        names: names.into_iter().map(str::to_owned).collect(),
                        ..answer(verdict)
                    };
                }
            }
        }
        let mut wanted: Vec<(&VgpuType, u32)> = counts.into_values().filter(|(_, n)| *n > 0).collect();
        wanted.sort_by(|(one, _), (other, _)| (other.memory_gb, &one.name).cmp(&(one.memory_gb, &other.name)));
        let mut case = Case {
            model,
            mode,
            types: wanted.iter().map(|(vgpu, _)| *vgpu).collect(),
            running: Vec::new(),
            placed: Vec::new(),
        };
        for one in beside {
            match one {
                Beside::Running { vgpu, count } => match self.type_of(model, mode, vgpu) {
                    Ok(vgpu) => match case.running.iter_mut().find(|(known, _)| known.name == vgpu.name) {
                        Some((_, n)) => *n = n.saturating_add(*count),
                        None => case.running.push((vgpu, *count)),
                    },
                    Err(verdict) => return answer(running_misfit(verdict)),
                },
                Beside::Placed { what, start } => {
                    // A vGPU type in another spelling; a GPU instance profile has one.
                    let name = match self.vgpu_type(what) {
                        Some((owner, vgpu)) if owner.id == model.id => vgpu.name.as_str(),
                        _ => what.as_str(),
                    };
                    case.placed.push((name, *start));
                }
            }
        }
        case.running.retain(|(_, n)| *n > 0);
        let counts: Vec<u32> = wanted.iter().map(|(_, n)| *n).collect();
        let solver = match Solver::new(&case) {
            Ok(solver) => solver,
            Err(verdict) => return answer(verdict),
        };
        let verdict = solver.decide(&counts, &Work::of(WORK));
        let mut fit = answer(verdict);
        fit.unverified = unverified(&case);
        if fit.fits != Some(true) {
            let work = [Work::of(WORK_NEAREST), Work::of(WORK_NEAREST)];
            let fits_by = |work: &Work, counts: &[u32]| solver.decide(counts, work).fits == Some(true);
            let fits = |counts: &[u32]| fits_by(&Work::of(WORK), counts);
            let prefix = |n: usize| -> Vec<u32> {
                counts.iter().enumerate().map(|(at, c)| if at < n { *c } else { 0 }).collect()
            };
            let first = (1..=counts.len()).find(|n| !fits(&prefix(*n)));
            fit.first_misfit = first.map(|n| case.types[n - 1].name.clone());
            let most: Vec<u32> = case.types.iter().map(|vgpu| most(vgpu, mode)).collect();
            fit.nearest = nearest(&counts, &most, |n| fits_by(&work[0], n), |n| fits_by(&work[1], n))
                .into_iter()
                .map(|counts| combination(&case, &counts))
                .collect();
        }
        fit
    }

    /// The type of a name, if it is one of this model and mode.
    fn type_of<'a>(&'a self, model: &'a Model, mode: FitMode, name: &str) -> Result<&'a VgpuType, Verdict> {
        let Some((owner, vgpu)) = self.vgpu_type(name) else {
            return Err(Verdict::unknown(
                "NAME-1",
                format!("{name} is not in the catalogue; if the host itself lists it, the host is right"),
            ));
        };
        if owner.id != model.id {
            return Err(Verdict::no(
                "NAME-1",
                format!("{name} is a type of {} ({}), not of {}", owner.name, owner.id, model.name),
            ));
        }
        if !mode.takes(vgpu) {
            let kind = match vgpu.kind {
                TypeKind::TimeSliced { .. } => "time-sliced, for mode vgpu",
                TypeKind::Mig { .. } => "MIG-backed, for mode migVgpu",
            };
            return Err(Verdict::no("MIG-7", format!("{name} is {kind}; it does not start in {}", mode.words())));
        }
        // Not `vgpu`: the catalogue that knows the names and the model given may be two values.
        match model.types.iter().find(|own| own.name == vgpu.name) {
            Some(own) => Ok(own),
            None => Err(Verdict::unknown("NAME-1", format!("{name} is not listed for {}", model.name))),
        }
    }
}

fn answer(verdict: Verdict) -> Fit {
    Fit {
        rule: (verdict.fits != Some(true)).then_some(verdict.rule),
        fits: verdict.fits,
        why: verdict.why,
        first_misfit: None,
        nearest: Vec::new(),
        names: Vec::new(),
        unverified: Vec::new(),
    }
}

/// What runs was seen, so where the catalogue says that it cannot, one of both is wrong.
fn running_misfit(verdict: Verdict) -> Verdict {
    match verdict.rule {
        // A type of the other kind that runs says which mode the GPU is in.
        "MIG-7" => Verdict::no("HOST-4", format!("on this GPU {}", verdict.why)),
        rule => Verdict::unknown(rule, format!("what is said to run: {}", verdict.why)),
    }
}

/// What the model and the host driver forbid, whatever the numbers.
fn model_limits(case: &Case) -> Option<Verdict> {
    let model = case.model;
    for (can, what) in [(model.can.vsphere, "under vSphere"), (model.can.vgpu, "with vGPU")] {
        match can {
            Some(true) => {}
            Some(false) => return Some(Verdict::no("NAME-1", format!("{} does not run {what}", model.name))),
            None => {
                return Some(Verdict::unknown("NAME-1", format!("whether {} runs {what} is not known", model.name)));
            }
        }
    }
    let all: Vec<&VgpuType> = case.types.iter().copied().chain(case.running.iter().map(|(vgpu, _)| *vgpu)).collect();
    let first = all.first()?;
    let other = all.iter().find(|vgpu| !vgpu.series.same_driver(first.series))?;
    Some(Verdict::no(
        "HOST-2",
        format!("{} and {} come with different host drivers; a host has one of them", first.name, other.name),
    ))
}

/// What the answer rests on and that was never verified.
fn unverified(case: &Case) -> Vec<String> {
    let mut found = BTreeSet::new();
    match case.mode {
        FitMode::Same => {}
        FitMode::Mixed => {
            if let Some(region) = case.model.region.as_ref().filter(|region| region.unverified) {
                found.insert(format!("placement ids of the {} GB region follow the driver's rule", region.name));
            }
            for vgpu in case.types.iter().filter(|vgpu| vgpu.unverified) {
                found.insert(format!("the mixed-size maximum of {} is inferred", vgpu.name));
            }
        }
        FitMode::MigVgpu => {
            for vgpu in &case.types {
                if let TypeKind::Mig { profile, .. } = &vgpu.kind
                    && let Some(profile) = case.model.mig_profile(profile)
                    && profile.unverified.iter().any(|field| field == "starts" || field == "engines")
                {
                    found.insert(format!("the placements of {} are inferred from its family", profile.name));
                }
            }
        }
    }
    found.into_iter().collect()
}

fn most(vgpu: &VgpuType, mode: FitMode) -> u32 {
    match (&vgpu.kind, mode) {
        (TypeKind::Mig { max, .. }, _) => *max,
        (TypeKind::TimeSliced { mixed, .. }, FitMode::Mixed) => mixed.unwrap_or(0),
        (TypeKind::TimeSliced { same, .. }, _) => same.unwrap_or(0),
    }
}

fn combination(case: &Case, counts: &[u32]) -> Combination {
    let named = case.types.iter().zip(counts).filter(|(_, n)| **n > 0);
    named.map(|(vgpu, n)| (vgpu.name.clone(), *n)).collect()
}

/// `place` over all ways in which what runs may sit: yes if it holds for all, no if for none.
pub(super) fn beside_layouts(
    layouts: Option<&BTreeSet<Cells>>,
    place: impl Fn(&Cells) -> Option<bool>,
    rule: &'static str,
    no: impl Fn() -> String,
) -> Verdict {
    let Some(layouts) = layouts else {
        let why = format!("what runs may sit in more than {MAX_LAYOUTS} ways, and not all were looked at");
        return Verdict::unknown(rule, why);
    };
    let (mut good, mut bad) = (0, 0);
    for cells in layouts {
        match place(cells) {
            None => return Verdict::unknown(rule, "too many ways to place it, and not all were tried".to_owned()),
            Some(true) => good += 1,
            Some(false) => bad += 1,
        }
        if good > 0 && bad > 0 {
            let why = "it depends on where the running ones sit: it fits beside some of their places, not all";
            return Verdict::unknown(rule, why.to_owned());
        }
    }
    if bad == 0 { Verdict::yes(String::new()) } else { Verdict::no(rule, no()) }
}

/// `1 vGPU`, `2 vGPUs`.
pub(super) fn count(n: u32, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
