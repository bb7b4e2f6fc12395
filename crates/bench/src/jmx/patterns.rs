//! Regular expressions of a plan, which may contain variables.
use fancy_regex::{Regex, RegexBuilder};
use std::collections::HashMap;

/// Steps of one match; a pattern that needs more makes the request fail instead of holding up all users.
const BACKTRACK_MAX: usize = 1_000_000;
/// Compiled patterns kept: those without variables, and the latest of the others.
const KEPT_MAX: usize = 256;

/// Compiled patterns of one user.
#[derive(Debug, Default)]
pub struct Patterns(HashMap<String, Regex>);

/// Compiles a pattern.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern)
        .backtrack_limit(BACKTRACK_MAX)
        .build()
        .map_err(|error| format!("the regular expression `{pattern}` is not supported: {error}"))
}

impl Patterns {
    /// The compiled pattern.
    pub fn get(&mut self, pattern: &str) -> Result<&Regex, String> {
        if self.0.len() >= KEPT_MAX && !self.0.contains_key(pattern) {
            self.0.clear();
        }
        match self.0.entry(pattern.to_owned()) {
            std::collections::hash_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            std::collections::hash_map::Entry::Vacant(entry) => Ok(entry.insert(compile(pattern)?)),
        }
    }
}
