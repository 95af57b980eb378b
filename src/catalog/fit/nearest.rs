//! What would fit instead.

use std::collections::BTreeSet;

/// Combinations shown.
const SHOWN: usize = 5;

/// Combinations tried on the way down before we stop: the nearest are a help, and far ones are none.
const TRIED: usize = 1_000;

/// Combinations that fit, nearest to `want` first: largest parts of it, each then filled up with
/// the types asked for, so that none can be extended. `most` is the maximum of each type alone.
///
/// Near ones are found by taking away one vGPU at a time. Where that does not get far enough, those
/// are shown that begin with as many of one type as may be. Each search has a test of its own, whose
/// patience may end: then it says no.
pub(super) fn nearest(
    want: &[u32],
    most: &[u32],
    near: impl Fn(&[u32]) -> bool,
    far: impl Fn(&[u32]) -> bool,
) -> Vec<Vec<u32>> {
    // Nothing above the maximum of a type can fit, so the walk down begins there.
    let start: Vec<u32> = want.iter().zip(most).map(|(n, most)| *n.min(most)).collect();
    let mut parts = parts(&start, near);
    if parts.is_empty() {
        parts = (0..start.len()).map(|first| beginning_with(first, &start, &far)).collect();
    }
    let full = parts.into_iter().map(|part| filled(part, most, &far)).filter(|full| full.iter().any(|n| *n > 0));
    let mut full: Vec<Vec<u32>> = full.collect();
    full.sort_by_cached_key(|counts| {
        let edits: u64 = counts.iter().zip(want).map(|(n, want)| u64::from(n.abs_diff(*want))).sum();
        (edits, counts.iter().map(|n| std::cmp::Reverse(*n)).collect::<Vec<_>>())
    });
    full.dedup();
    full.truncate(SHOWN);
    full
}

/// Parts of `start` that fit and are no part of each other, largest first.
fn parts(start: &[u32], fits: impl Fn(&[u32]) -> bool) -> Vec<Vec<u32>> {
    let mut parts: Vec<Vec<u32>> = Vec::new();
    let mut level = BTreeSet::from([start.to_vec()]);
    let mut tried = 0;
    while !level.is_empty() && parts.len() < SHOWN {
        let mut next = BTreeSet::new();
        // Highest first, so that what is cut off depends on nothing but the numbers.
        for counts in level.iter().rev() {
            if parts.iter().any(|part| part.iter().zip(counts).all(|(part, n)| part >= n)) {
                continue;
            }
            tried += 1;
            if tried > TRIED {
                return parts;
            }
            if fits(counts) {
                parts.push(counts.clone());
                continue;
            }
            for at in (0..counts.len()).filter(|at| counts[*at] > 0) {
                let mut fewer = counts.clone();
                fewer[at] -= 1;
                next.insert(fewer);
            }
        }
        level = next;
    }
    parts
}

/// As many of type `first` as may be, then of the others in their order, none more than in `start`.
fn beginning_with(first: usize, start: &[u32], fits: &impl Fn(&[u32]) -> bool) -> Vec<u32> {
    let mut counts = vec![0; start.len()];
    for at in std::iter::once(first).chain((0..start.len()).filter(|at| *at != first)) {
        grow(&mut counts, at, start[at], fits);
    }
    counts
}

fn filled(mut counts: Vec<u32>, most: &[u32], fits: &impl Fn(&[u32]) -> bool) -> Vec<u32> {
    for (at, most) in most.iter().enumerate() {
        grow(&mut counts, at, *most, fits);
    }
    counts
}

fn grow(counts: &mut [u32], at: usize, most: u32, fits: &impl Fn(&[u32]) -> bool) {
    while counts[at] < most {
        counts[at] += 1;
        if !fits(counts) {
            counts[at] -= 1;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A box of 8: pieces of 4 and of 2.
    fn fits(counts: &[u32]) -> bool {
        4 * counts[0] + 2 * counts[1] <= 8
    }

    #[test]
    fn parts_are_largest_and_filled_up() {
        assert_eq!(nearest(&[1, 3], &[2, 4], fits, fits), [vec![1, 2], vec![0, 4]]);
        assert_eq!(nearest(&[900, 900], &[2, 4], fits, fits), [vec![0, 4], vec![1, 2], vec![2, 0]]);
        assert!(nearest(&[1, 1], &[2, 4], |_| false, |_| false).is_empty());
    }

    #[test]
    fn where_the_way_down_is_too_long_each_type_begins_once() {
        assert_eq!(nearest(&[900, 900], &[2, 4], |_| false, fits), [vec![0, 4], vec![2, 0]]);
    }
}
