//! Settings of several switches in which every pair of values of two switches occurs.

/// Rows of value indices, one column a switch with `sizes[column]` values. Greedy and without
/// chance: the same sizes give the same rows. Each row takes the first pair that is missing and
/// fills the other columns with what covers most.
pub fn rows(sizes: &[usize]) -> Vec<Vec<usize>> {
    let mut missing: Vec<[(usize, usize); 2]> = Vec::new();
    for a in 0..sizes.len() {
        for b in a + 1..sizes.len() {
            for x in 0..sizes[a] {
                missing.extend((0..sizes[b]).map(|y| [(a, x), (b, y)]));
            }
        }
    }
    let mut rows = Vec::new();
    while let Some(&pair) = missing.first() {
        let mut row: Vec<Option<usize>> = vec![None; sizes.len()];
        for (column, value) in pair {
            row[column] = Some(value);
        }
        for column in 0..sizes.len() {
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
    assert!(rows.len() <= 9, "{} rows instead of the 72 of all combinations", rows.len());
}
