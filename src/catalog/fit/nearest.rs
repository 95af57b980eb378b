//! What would fit instead.

use std::collections::BTreeSet;

/// Combinations shown.
const SHOWN: usize = 5;

/// Combinations tried before we stop looking: the nearest are a help, and far ones are none. At
/// some microseconds each the answer still comes at once.
const TRIED: usize = 3_000;

/// Combinations that fit, nearest to `want` first: largest parts of it, each then filled up with
/// the types asked for, so that none can be extended.
pub(super) fn nearest(want: &[u32], most: &[u32], fits: impl Fn(&[u32]) -> bool) -> Vec<Vec<u32>> {
    // Nothing above the maximum of a type can fit, so the walk down begins there.
    let start: Vec<u32> = want.iter().zip(most).map(|(n, most)| *n.min(most)).collect();
    let mut parts: Vec<Vec<u32>> = Vec::new();
    let mut level = BTreeSet::from([start]);
    let mut tried = 0;
    while !level.is_empty() && parts.len() < SHOWN && tried < TRIED {
        let mut next = BTreeSet::new();
        // Highest first, so that what is cut off does not depend on anything but the numbers.
        for counts in level.iter().rev() {
            if parts.iter().any(|part| part.iter().zip(counts).all(|(part, n)| part >= n)) {
                continue;
            }
            tried += 1;
            if tried > TRIED {
                break;
            }
            if fits(counts) {
                if counts.iter().any(|n| *n > 0) {
                    parts.push(counts.clone());
                }
                continue;
            }
            for at in 0..counts.len() {
                if counts[at] > 0 {
                    let mut fewer = counts.clone();
                    fewer[at] -= 1;
                    next.insert(fewer);
                }
            }
        }
        level = next;
    }
    let mut full: Vec<Vec<u32>> = parts.into_iter().map(|part| fill(part, most, &fits)).collect();
    full.sort_by_key(|counts| {
        let edits: u64 = counts.iter().zip(want).map(|(n, want)| u64::from(n.abs_diff(*want))).sum();
        (edits, counts.iter().map(|n| std::cmp::Reverse(*n)).collect::<Vec<_>>())
    });
    full.dedup();
    full.truncate(SHOWN);
    full
}

fn fill(mut counts: Vec<u32>, most: &[u32], fits: impl Fn(&[u32]) -> bool) -> Vec<u32> {
    for at in 0..counts.len() {
        while counts[at] < most[at] {
            counts[at] += 1;
            if !fits(&counts) {
                counts[at] -= 1;
                break;
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_largest_and_filled_up() {
        // A box of 8: pieces of 4 and of 2.
        let fits = |counts: &[u32]| 4 * counts[0] + 2 * counts[1] <= 8;
        assert_eq!(nearest(&[1, 3], &[2, 4], fits), [vec![1, 2], vec![0, 4]]);
        assert_eq!(nearest(&[900, 900], &[2, 4], fits), [vec![0, 4], vec![1, 2], vec![2, 0]]);
        assert!(nearest(&[1, 1], &[2, 4], |_| false).is_empty());
    }
}
