//! The nearest of some names, for "did you mean".

/// The name of `candidates` that `given` was most likely meant to be; none if nothing is near.
///
/// Near is an edit distance (insert, delete, replace, swap neighbours) of at most a third of the
/// longer text, at least 1; case alone does not count. Ties go to the first in order.
pub fn nearest<'a, I>(given: &str, candidates: I) -> Option<&'a str>
where
    I: IntoIterator<Item = &'a str>,
{
    nearest_few(given, candidates, 1).into_iter().next()
}

/// Up to `limit` near names, nearest first.
pub fn nearest_few<'a, I>(given: &str, candidates: I, limit: usize) -> Vec<&'a str>
where
    I: IntoIterator<Item = &'a str>,
{
    let wanted = given.to_lowercase();
    let mut found: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter_map(|name| {
            let distance = strsim::damerau_levenshtein(&wanted, &name.to_lowercase());
            let longer = given.chars().count().max(name.chars().count());
            (distance <= (longer / 3).max(1)).then_some((distance, name))
        })
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().take(limit).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_found_and_a_stranger_is_not() {
        let keys = ["gpuCount", "gpuModel", "hosts", "rollout"];
        assert_eq!(nearest("gpuCout", keys), Some("gpuCount"));
        assert_eq!(nearest("gpucount", keys), Some("gpuCount"));
        assert_eq!(nearest("ohsts", keys), Some("hosts"));
        assert_eq!(nearest("windows", keys), None);
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn few_are_ordered_by_distance_then_name() {
        assert_eq!(nearest_few("esx-77", ["esx-07", "esx-01", "esx-07", "db-1"], 2), ["esx-07", "esx-01"]);
    }
}
