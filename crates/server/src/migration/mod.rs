//! The migration report: for each artifact and each key of the configuration whether Penstock does the same, does it
//! differently, or does not do it. It is made of the diagnostics of the same build that `run` serves.
//!
//! Start reading at [`Report::new`], then `layout.rs` (text, JSON and HTML).

mod layout;

use std::collections::BTreeMap;
use std::sync::Arc;

use penstock_compile::{Diagnostic, Element, Severity, SourceDocument};
use penstock_engine::Place;
use penstock_xml::{Document, ParseOptions};

use crate::build::Built;
use crate::config::Configuration;

/// How an artifact or a key fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// As in Micro Integrator.
    Exact,
    /// It is served, with differences.
    Differs,
    /// It is not served, or has no effect.
    NotSupported,
}

/// An artifact, or a file that is none.
#[derive(Debug)]
pub struct Entry {
    /// `api`, `proxy`, …; `file` for a file that is no artifact.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub at: Place,
    /// How it fares.
    pub verdict: Verdict,
    /// What differs, or why it is not served and what can be used instead.
    pub reasons: Vec<String>,
}

/// A key of the configuration.
#[derive(Debug)]
pub struct KeyEntry {
    /// Its path, with dots.
    pub name: String,
    /// How it fares.
    pub verdict: Verdict,
}

/// The report.
#[derive(Debug)]
pub struct Report {
    /// Artifacts and files, the worst first.
    pub entries: Vec<Entry>,
    /// Keys of the configuration, the worst first.
    pub keys: Vec<KeyEntry>,
    /// What there is to say about the configuration.
    pub configuration: Vec<String>,
    /// Whether the configuration has an error, with which the server does not start.
    pub refuses_to_start: bool,
}

/// Elements of `<definitions>` that are no artifacts: they name registries and managers of Java.
const NO_ARTIFACTS: [&str; 3] = ["registry", "taskManager", "import"];

impl Report {
    /// The report on a build and the configuration it was built with.
    pub fn new(built: &Built, configuration: &Configuration) -> Report {
        let mut files: BTreeMap<Arc<str>, Vec<Entry>> = BTreeMap::new();
        for status in &built.artifacts {
            let verdict = if status.good { Verdict::Exact } else { Verdict::NotSupported };
            let (kind, name, at) = (status.kind.to_owned(), status.name.clone(), status.at.clone());
            files.entry(at.file.clone()).or_default().push(Entry { kind, name, at, verdict, reasons: Vec::new() });
        }
        for input in &built.origin.inputs {
            add_unserved(files.entry(input.file.clone()).or_default(), &input.file, input.bytes.clone());
        }
        files.values_mut().for_each(|entries| entries.sort_by_key(|entry| (entry.at.line, entry.at.column)));
        for diagnostic in &built.diagnostics {
            attribute(files.entry(diagnostic.at.file.clone()).or_default(), diagnostic);
        }
        let mut entries: Vec<Entry> = files.into_values().flatten().collect();
        // A candidate without a diagnostic was read and is served as part of something else.
        entries.retain(|entry| !(entry.kind.is_empty() || is_candidate_only(entry)));
        entries.sort_by(|one, other| {
            let key = |entry: &Entry| (std::cmp::Reverse(entry.verdict), entry.kind.clone(), entry.name.clone());
            key(one).cmp(&key(other))
        });
        Report {
            entries,
            keys: keys(configuration),
            configuration: configuration.diagnostics.iter().map(ToString::to_string).collect(),
            refuses_to_start: configuration.has_errors(),
        }
    }

    /// How many artifacts fare so.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.entries.iter().filter(|entry| entry.verdict == verdict).count()
    }

    /// Whether everything is served; with `strict` also without differences.
    pub fn is_good(&self, strict: bool) -> bool {
        let worst = if strict { Verdict::Exact } else { Verdict::Differs };
        !self.refuses_to_start && !self.entries.is_empty() && self.entries.iter().all(|entry| entry.verdict <= worst)
    }
}

/// Adds the elements of a file that could be artifacts and have no status: those that are recognised and not served.
fn add_unserved(entries: &mut Vec<Entry>, file: &Arc<str>, bytes: bytes::Bytes) {
    let Ok(document) = Document::parse(bytes, &ParseOptions::default()) else { return };
    let source = SourceDocument::new(file.clone(), Arc::new(document));
    let Some(root) = source.root() else { return };
    let elements: Vec<Element<'_>> = if root.name() == "definitions" { root.children().collect() } else { vec![root] };
    for element in elements.into_iter().filter(|element| !NO_ARTIFACTS.contains(&element.name())) {
        let at = element.place();
        if entries.iter().any(|known| (known.at.line, known.at.column) == (at.line, at.column)) {
            continue;
        }
        let name = element.attribute("name").or_else(|| element.attribute("key")).unwrap_or_default().to_owned();
        let kind = element.name().to_owned();
        entries.push(Entry { kind, name, at, verdict: Verdict::Differs, reasons: Vec::new() });
    }
}

/// Whether an entry was made by [`add_unserved`] and nothing was said about it.
fn is_candidate_only(entry: &Entry) -> bool {
    entry.verdict == Verdict::Differs && entry.reasons.is_empty()
}

/// Notes a diagnostic at the artifact that it is about: the last one that begins before it.
fn attribute(entries: &mut Vec<Entry>, diagnostic: &Diagnostic) {
    let place = (diagnostic.at.line, diagnostic.at.column);
    let about = entries.iter().rposition(|entry| (entry.at.line, entry.at.column) <= place);
    let Some(index) = about else {
        let name = diagnostic.at.file.rsplit(['/', '!']).next().unwrap_or_default().to_owned();
        entries.insert(
            0,
            Entry {
                kind: "file".to_owned(),
                name,
                at: diagnostic.at.clone(),
                verdict: Verdict::NotSupported,
                reasons: vec![diagnostic.message.clone()],
            },
        );
        return;
    };
    let entry = &mut entries[index];
    // A candidate is not served, whatever the level of its diagnostic.
    let is_candidate = is_candidate_only(entry) || entry.verdict == Verdict::NotSupported;
    entry.verdict = match diagnostic.severity {
        _ if is_candidate => Verdict::NotSupported,
        Severity::Error => Verdict::NotSupported,
        Severity::Warning => Verdict::Differs,
    };
    entry.reasons.push(format!("{}:{}: {}", diagnostic.at.line, diagnostic.at.column, diagnostic.message));
}

fn keys(configuration: &Configuration) -> Vec<KeyEntry> {
    let ignored = configuration.ignored_keys.iter().map(|name| (name, Verdict::NotSupported));
    let used = configuration.used_keys.iter().map(|name| (name, Verdict::Exact));
    let mut keys: Vec<KeyEntry> =
        ignored.chain(used).map(|(name, verdict)| KeyEntry { name: name.clone(), verdict }).collect();
    keys.sort_by(|one, other| (other.verdict, &one.name).cmp(&(one.verdict, &other.name)));
    keys.dedup_by(|one, other| one.name == other.name);
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(line: u32, verdict: Verdict) -> Entry {
        let at = Place { file: "a.xml".into(), line, column: 1 };
        Entry { kind: "sequence".into(), name: line.to_string(), at, verdict, reasons: Vec::new() }
    }

    fn diagnostic(severity: Severity, line: u32) -> Diagnostic {
        Diagnostic { severity, at: Place { file: "a.xml".into(), line, column: 2 }, message: "x".into() }
    }

    #[test]
    fn a_diagnostic_is_about_the_artifact_that_it_stands_in() {
        let mut entries = vec![entry(2, Verdict::Exact), entry(9, Verdict::Exact), entry(20, Verdict::Differs)];
        attribute(&mut entries, &diagnostic(Severity::Warning, 5));
        attribute(&mut entries, &diagnostic(Severity::Error, 9));
        attribute(&mut entries, &diagnostic(Severity::Warning, 21));
        let verdicts: Vec<Verdict> = entries.iter().map(|entry| entry.verdict).collect();
        assert_eq!(verdicts, [Verdict::Differs, Verdict::NotSupported, Verdict::NotSupported]);
        attribute(&mut entries, &diagnostic(Severity::Warning, 1));
        assert_eq!((entries[0].kind.as_str(), entries[0].verdict), ("file", Verdict::NotSupported));
    }
}
