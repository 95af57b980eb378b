//! An exact search: can these pieces be laid on the axis without overlap?

use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};

/// Cells of the axis that are taken, as bits. Four words are enough for the longest axis (141 GB of
/// an H200) with room for 256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct Cells([u64; 4]);

/// Longest axis.
const AXIS: u32 = 256;

impl Cells {
    /// Whether all of `[start, start + size)` are free.
    pub fn free(&self, start: u32, size: u32) -> bool {
        start.saturating_add(size) <= AXIS
            && (start..start + size).all(|cell| self.0[cell as usize / 64] >> (cell % 64) & 1 == 0)
    }

    /// With `[start, start + size)` taken too; cells beyond the axis are left out.
    pub fn with(mut self, start: u32, size: u32) -> Self {
        for cell in start..start.saturating_add(size).min(AXIS) {
            self.0[cell as usize / 64] |= 1 << (cell % 64);
        }
        self
    }
}

/// A kind of piece: its size and where it may start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece<'a> {
    pub size: u32,
    pub starts: &'a [u32],
}

/// How much searching is done before the answer is *unknown*. One unit is one state of the search.
#[derive(Debug)]
pub(super) struct Work(Cell<u64>);

impl Work {
    /// This many states.
    pub fn of(states: u64) -> Self {
        Self(Cell::new(states))
    }

    /// Takes one unit; false if none is left.
    fn spend(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left > 0
    }

    /// Whether nothing is left.
    pub fn spent(&self) -> bool {
        self.0.get() == 0
    }
}

/// Whether `counts` of the pieces can be laid beside what is taken. `None`: the work was not enough
/// to tell.
pub(super) fn packs(pieces: &[Piece], counts: &[u32], taken: Cells, work: &Work) -> Option<bool> {
    let end = pieces.iter().filter_map(|piece| Some(piece.starts.last()? + piece.size)).max().unwrap_or(0);
    // Free cells from each cell on: what is left to lay must not be more.
    let mut room = vec![0; end as usize + 1];
    for cell in (0..end).rev() {
        room[cell as usize] = room[cell as usize + 1] + u64::from(taken.free(cell, 1));
    }
    let mut search = Search { pieces, taken, room, dead: HashSet::new(), work };
    let found = search.from(0, &mut counts.to_vec());
    if !found && work.spent() { None } else { Some(found) }
}

struct Search<'a> {
    pieces: &'a [Piece<'a>],
    taken: Cells,
    room: Vec<u64>,
    /// States that were tried in vain: where the free part begins, and what is left to lay.
    dead: HashSet<(u32, Vec<u32>)>,
    work: &'a Work,
}

impl Search<'_> {
    /// Lays what is left at `from` or behind it. Pieces are laid from left to right, so a state is
    /// the first free cell and the pieces left: each is tried once.
    fn from(&mut self, from: u32, left: &mut Vec<u32>) -> bool {
        if left.iter().all(|count| *count == 0) {
            return true;
        }
        if !self.work.spend() || !self.has_room(from, left) || self.dead.contains(&(from, left.clone())) {
            return false;
        }
        let mut at = from;
        while let Some(start) = self.next_start(at, left) {
            if !self.has_room(start, left) {
                break;
            }
            for kind in 0..self.pieces.len() {
                let piece = self.pieces[kind];
                if left[kind] > 0 && piece.starts.contains(&start) && self.taken.free(start, piece.size) {
                    left[kind] -= 1;
                    let done = self.from(start + piece.size, left);
                    left[kind] += 1;
                    if done {
                        return true;
                    }
                }
            }
            at = start + 1;
        }
        self.dead.insert((from, left.clone()));
        false
    }

    /// Whether what is left could lie at `from` or behind it at all: by its size, and each kind by
    /// its own starts.
    fn has_room(&self, from: u32, left: &[u32]) -> bool {
        let sizes = self.pieces.iter().zip(left).map(|(piece, n)| u64::from(piece.size) * u64::from(*n));
        if sizes.sum::<u64>() > self.room.get(from as usize).copied().unwrap_or(0) {
            return false;
        }
        self.pieces.iter().zip(left).filter(|(_, n)| **n > 0).all(|(piece, n)| {
            let starts = piece.starts.iter().filter(|start| **start >= from && self.taken.free(**start, piece.size));
            starts.count() >= *n as usize
        })
    }

    fn next_start(&self, at: u32, left: &[u32]) -> Option<u32> {
        let starts = self.pieces.iter().zip(left).filter(|(_, count)| **count > 0).map(|(piece, _)| piece.starts);
        starts.flatten().copied().filter(|start| *start >= at).min()
    }
}

/// All ways in which `counts` of the pieces can lie beside what is taken, as the cells that are then
/// taken; `None` if there are more than `limit`.
pub(super) fn layouts(pieces: &[Piece], counts: &[u32], taken: Cells, limit: usize) -> Option<BTreeSet<Cells>> {
    let mut found = BTreeSet::from([taken]);
    for (piece, count) in pieces.iter().zip(counts) {
        // The pieces of one kind are alike: only the set of their starts matters.
        let mut partial: BTreeSet<(Cells, u32)> = found.into_iter().map(|cells| (cells, 0)).collect();
        for _ in 0..*count {
            let mut next = BTreeSet::new();
            for (cells, from) in partial {
                for start in piece.starts.iter().copied().filter(|start| *start >= from) {
                    if cells.free(start, piece.size) {
                        next.insert((cells.with(start, piece.size), start + 1));
                        if next.len() > limit {
                            return None;
                        }
                    }
                }
            }
            partial = next;
        }
        found = partial.into_iter().map(|(cells, _)| cells).collect();
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_that_greedy_search_would_block_is_found() {
        // The small piece must leave 0 to the large one although 0 is its first start.
        let pieces = [Piece { size: 1, starts: &[0, 4] }, Piece { size: 4, starts: &[0] }];
        let packs = |counts: &[u32], taken| packs(&pieces, counts, taken, &Work::of(100));
        assert_eq!(packs(&[1, 1], Cells::default()), Some(true));
        assert_eq!(packs(&[2, 1], Cells::default()), Some(false));
        assert_eq!(packs(&[1, 1], Cells::default().with(4, 1)), Some(false));
    }

    #[test]
    fn without_work_there_is_no_answer() {
        let pieces = [Piece { size: 1, starts: &[0, 1, 2, 3] }];
        assert_eq!(packs(&pieces, &[3], Cells::default(), &Work::of(2)), None);
        assert_eq!(packs(&pieces, &[5], Cells::default(), &Work::of(2)), Some(false), "nothing is searched");
        assert_eq!(packs(&pieces, &[3], Cells::default(), &Work::of(3)), Some(true));
    }

    #[test]
    fn layouts_are_all_and_distinct() {
        let pieces = [Piece { size: 2, starts: &[0, 2, 4] }];
        assert_eq!(layouts(&pieces, &[2], Cells::default(), 10).unwrap().len(), 3);
        assert_eq!(layouts(&pieces, &[4], Cells::default(), 10).unwrap().len(), 0);
        assert_eq!(layouts(&pieces, &[0], Cells::default(), 10).unwrap().len(), 1);
        assert!(layouts(&pieces, &[2], Cells::default(), 2).is_none());
    }

    #[test]
    fn the_axis_ends() {
        assert!(Cells::default().free(250, 6) && !Cells::default().free(250, 7) && !Cells::default().free(u32::MAX, 2));
        assert!(!Cells::default().with(255, 9).free(255, 1));
    }
}
