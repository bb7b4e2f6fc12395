//! Suggestions for misspelt names.

/// The candidate closest to a word, if it is close enough to be what was meant.
pub fn closest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = word.chars().count() / 3 + 1;
    candidates
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(far, _)| *far <= limit)
        .min()
        .map(|(_, near)| near)
}

/// Letters to insert, delete or replace to get from one word to the other (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_suggested_and_far_ones_not() {
        let words = ["users", "duration", "warm_up"];
        for (word, expected) in [("user", Some("users")), ("warmup", Some("warm_up")), ("xyz", None)] {
            assert_eq!(closest(word, words.into_iter()), expected, "{word}");
        }
    }
}
