//! Settings of several switches in which every pair of values of two switches occurs.

/// Rows of value indices, one column a switch with `sizes[column]` values. Without chance: the same sizes
/// give the same rows. Of several greedy ways to find them, that with the fewest rows.
pub fn rows(sizes: &[usize]) -> Vec<Vec<usize>> {
    let ways = (0..sizes.len()).flat_map(|first| (0..STRIDES).map(move |stride| (first, stride)));
    ways.map(|(first, stride)| greedy(sizes, first, stride)).min_by_key(Vec::len).unwrap_or_default()
}

/// More of them find no shorter list for the switches that there are.
const STRIDES: usize = 6;

/// Each row takes a pair that is missing and fills the other columns, from `first` on, with what covers most.
fn greedy(sizes: &[usize], first: usize, stride: usize) -> Vec<Vec<usize>> {
    let mut missing: Vec<[(usize, usize); 2]> = Vec::new();
    for a in 0..sizes.len() {
        for b in a + 1..sizes.len() {
            for x in 0..sizes[a] {
                missing.extend((0..sizes[b]).map(|y| [(a, x), (b, y)]));
            }
        }
    }
    let mut rows = Vec::new();
    while !missing.is_empty() {
        let mut row: Vec<Option<usize>> = vec![None; sizes.len()];
        for (column, value) in missing[stride * 7 % missing.len()] {
            row[column] = Some(value);
        }
        for column in (first..sizes.len()).chain(0..first) {
            if row[column].is_some() {
                continue;
            }
            let gain = |value: usize| {
                let with = |at: (usize, usize)| at == (column, value) || row[at.0] == Some(at.1);
                missing.iter().filter(|pair| pair.iter().all(|at| with(*at))).count()
            };
            let best = (0..sizes[column]).max_by_key(|value| (gain(*value), std::cmp::Reverse(*value)));
            row[column] = best;
        }
        let row: Vec<usize> = row.into_iter().map(|value| value.expect("every column was filled")).collect();
        missing.retain(|pair| !pair.iter().all(|at| row[at.0] == at.1));
        rows.push(row);
    }
    rows
}

#[test]
fn every_pair_of_values_occurs_and_rows_are_few() {
    let sizes = [2, 3, 2, 2, 2];
    let rows = rows(&sizes);
    for a in 0..sizes.len() {
        for b in a + 1..sizes.len() {
            for x in 0..sizes[a] {
                for y in 0..sizes[b] {
                    assert!(rows.iter().any(|row| row[a] == x && row[b] == y), "{a}={x} with {b}={y} is missing");
                }
            }
        }
    }
    assert!(rows.len() <= 7, "{} rows instead of the 48 of all combinations", rows.len());
}
