//! Suggestions for misspelt names.

/// The candidate closest to a word, if it is close enough to be what was meant.
pub fn closest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = word.chars().count() / 3 + 1;
    candidates
        .map(|candidate| (strsim::levenshtein(&word.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(far, _)| *far <= limit)
        .min()
        .map(|(_, near)| near)
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
