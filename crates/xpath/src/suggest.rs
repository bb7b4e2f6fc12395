//! "Did you mean": the known name closest to one that is not.

/// The candidate with the fewest edits, when those are few enough to be a slip.
pub(crate) fn nearest<'n>(wanted: &str, candidates: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    // Two letters swapped are two edits.
    let length = wanted.chars().count();
    let allowed = if length < 4 { 1 } else { (length / 3).clamp(2, 3) };
    candidates
        .map(|candidate| (edits(wanted, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions and replacements between two words.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions() {
        for (wanted, expected) in [("cnocat", Some("concat")), ("substrng", Some("substring")), ("hello", None)] {
            assert_eq!(nearest(wanted, ["concat", "substring", "not"].into_iter()), expected);
        }
    }
}
