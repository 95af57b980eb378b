//! Time-sliced, mixed sizes: each size may start at its placement ids only.

use std::collections::BTreeSet;

use super::decide::{Case, MAX_LAYOUTS, beside_layouts, count};
use super::pack::{Cells, Piece, Work, layouts, packs};
use super::query::Verdict;
use crate::catalog::{Region, RegionSize, TypeKind, VgpuType};

/// A case, prepared.
pub(super) struct Mixed<'a> {
    region: &'a Region,
    /// Sizes that occur, each with the smallest maximum of its types (none: one is not known).
    sizes: Vec<(&'a RegionSize, Option<u32>)>,
    /// For each type of the case, its place in `sizes`.
    size_of: Vec<usize>,
    /// What runs already, by size.
    running: Vec<u32>,
    /// What runs at a known place.
    placed: usize,
    /// Where everything that runs may sit; none: in too many ways.
    layouts: Option<BTreeSet<Cells>>,
}

impl<'a> Mixed<'a> {
    pub fn new(case: &Case<'a>) -> Result<Self, Verdict> {
        let model = case.model;
        match model.can.mixed_size {
            Some(true) => {}
            Some(false) => return Err(Verdict::no("TS-3", format!("{} has no mixed-size mode", model.name))),
            None => {
                return Err(Verdict::unknown(
                    "TS-3",
                    format!("whether {} has a mixed-size mode is not known", model.name),
                ));
            }
        }
        let Some(region) = &model.region else {
            return Err(Verdict::unknown("TS-2", format!("no placement ids of {} are known", model.name)));
        };
        let mut mixed = Self {
            region,
            sizes: Vec::new(),
            size_of: Vec::new(),
            running: Vec::new(),
            placed: case.placed.len(),
            layouts: None,
        };
        for vgpu in &case.types {
            let size = mixed.add(vgpu)?;
            mixed.size_of.push(size);
        }
        for (vgpu, n) in &case.running {
            let size = mixed.add(vgpu)?;
            mixed.running[size] = mixed.running[size].saturating_add(*n);
        }
        let mut taken = Cells::default();
        for (what, start) in &case.placed {
            let Some(vgpu) = case.model.types.iter().find(|vgpu| case.mode.takes(vgpu) && vgpu.name == *what) else {
                return Err(Verdict::no(
                    "MIG-7",
                    format!(
                        "{what} runs as a GPU instance, so the GPU is in MIG mode, where no time-sliced type starts"
                    ),
                ));
            };
            let size = mixed.add(vgpu)?;
            let size = mixed.sizes[size].0;
            if !size.ids.contains(start) || !taken.free(*start, size.gb) {
                return Err(Verdict::unknown(
                    "TS-2",
                    format!("what is said to run is not possible: {what} at {start}, where it cannot be"),
                ));
            }
            taken = taken.with(*start, size.gb);
        }
        for (at, (size, _)) in mixed.sizes.iter().enumerate() {
            if mixed.running[at] > size.mixed {
                return Err(Verdict::unknown(
                    "TS-2",
                    format!(
                        "what is said to run is not possible: {} of {} MiB of at most {} in mixed-size mode",
                        count(mixed.running[at], "vGPU"),
                        size.fb,
                        size.mixed
                    ),
                ));
            }
        }
        mixed.layouts = layouts(&mixed.pieces(), &mixed.running, taken, MAX_LAYOUTS);
        if mixed.layouts.as_ref().is_some_and(BTreeSet::is_empty) {
            return Err(Verdict::unknown(
                "TS-2",
                "what is said to run is not possible: it has no placement in mixed-size mode".to_owned(),
            ));
        }
        Ok(mixed)
    }

    /// The size of a type, added if it is new.
    fn add(&mut self, vgpu: &VgpuType) -> Result<usize, Verdict> {
        let size = vgpu.memory_mib.and_then(|fb| self.region.sizes.iter().find(|size| size.fb == fb));
        let Some(size) = size else {
            return Err(Verdict::unknown("TS-2", format!("no placement ids of {} are known", vgpu.name)));
        };
        let TypeKind::TimeSliced { mixed: max, .. } = vgpu.kind else {
            unreachable!("a case holds types of its mode only");
        };
        match self.sizes.iter().position(|(known, _)| known.fb == size.fb) {
            Some(at) => {
                let known = &mut self.sizes[at].1;
                *known = known.zip(max).map(|(one, other)| one.min(other));
                Ok(at)
            }
            None => {
                self.sizes.push((size, max));
                self.running.push(0);
                Ok(self.sizes.len() - 1)
            }
        }
    }

    fn pieces(&self) -> Vec<Piece<'a>> {
        self.sizes.iter().map(|(size, _)| Piece { size: size.gb, starts: &size.ids }).collect()
    }

    /// Decides for `counts` of the types of the case.
    pub fn decide(&self, counts: &[u32], work: &Work) -> Verdict {
        let mut want = vec![0u32; self.sizes.len()];
        for (size, n) in self.size_of.iter().zip(counts) {
            want[*size] = want[*size].saturating_add(*n);
        }
        for ((size, _), n) in self.sizes.iter().zip(&want) {
            if *n > size.mixed {
                return Verdict::no(
                    "TS-2",
                    format!(
                        "{} of {} GB of at most {} in mixed-size mode (placement ids {:?})",
                        count(*n, "vGPU"),
                        size.gb,
                        size.mixed,
                        size.ids
                    ),
                );
            }
        }
        let total: u64 = self.sizes.iter().zip(&want).map(|((size, _), n)| u64::from(size.gb) * u64::from(*n)).sum();
        let pieces = self.pieces();
        let place = |cells: &Cells| packs(&pieces, &want, *cells, work);
        let placed = beside_layouts(self.layouts.as_ref(), place, "TS-2", || {
            format!(
                "{total} GB asked for, and placement ids that do not overlap run out in the {} GB region",
                self.region.gb()
            )
        });
        if placed.fits != Some(true) {
            return placed;
        }
        for (at, (size, max)) in self.sizes.iter().enumerate() {
            let n = want[at] + self.running[at];
            match max {
                Some(max) if n <= *max => {}
                _ if want[at] == 0 => {}
                Some(max) => {
                    return Verdict::unknown(
                        "TS-2",
                        format!(
                            "{} of {} GB: NVIDIA prints at most {max}, the driver's rule allows {}",
                            count(n, "vGPU"),
                            size.gb,
                            size.mixed
                        ),
                    );
                }
                None => {
                    return Verdict::unknown(
                        "TS-2",
                        format!("how many vGPUs of {} GB fit in mixed-size mode is not known", size.gb),
                    );
                }
            }
        }
        let vgpus = want.iter().fold(0u32, |sum, n| sum.saturating_add(*n));
        if vgpus == 0 {
            return Verdict::yes("nothing is asked for".to_owned());
        }
        let beside = self.running.iter().sum::<u32>() as usize + self.placed;
        let beside = match beside {
            0 => String::new(),
            1 => " beside the one that runs".to_owned(),
            several => format!(" beside {several} that run"),
        };
        Verdict::yes(format!("{}{beside}: {total} GB at placement ids that do not overlap", count(vgpus, "vGPU")))
    }
}
