//! What the compiler has to say to the person who wrote the configuration.

use std::fmt;

use penstock_engine::Place;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It runs, perhaps not as meant.
    Warning,
    /// The artifact cannot be served.
    Error,
}

/// One thing to say, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Where.
    pub at: Place,
    /// What: lower case, no full stop, values in backticks.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(out, "{}: {severity}: {}", self.at, self.message)
    }
}

/// The candidate a mistyped name was probably meant to be: at most a third of it differs.
pub fn suggestion<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    candidates
        .map(|candidate| (strsim::osa_distance(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= limit && *candidate != name)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_what_was_probably_meant() {
        let names = ["fault", "main", "StockQuote"];
        for (name, expected) in
            [("fualt", Some("fault")), ("stockquote", Some("StockQuote")), ("zzz", None), ("main", None)]
        {
            assert_eq!(suggestion(name, names.into_iter()), expected, "{name}");
        }
    }
}
