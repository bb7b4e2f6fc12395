//! The table of rooms as a test: which crate may depend on which. A crate may use what its row
//! names and what those rows may use in turn; nothing points back.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Crate, and what it may depend on. `*` means every crate.
const ROOMS: &[(&str, &[&str])] = &[
    ("budget", &[]),
    ("xml", &["budget"]),
    ("xpath", &["xml"]),
    ("xslt", &["xml", "xpath"]),
    ("xsd", &["xml", "xpath"]),
    ("freemarker", &["xml"]),
    ("json", &["xml"]),
    ("message", &["xml", "json"]),
    ("engine", &["message"]),
    ("compile", &["engine", "xpath", "json"]),
    ("wssecurity", &["xml"]),
    ("mediators", &["compile", "engine", "xslt", "xsd", "freemarker", "wssecurity"]),
    ("messaging", &["compile", "engine"]),
    ("transports", &["compile", "engine"]),
    ("catalog", &[]),
    ("gateway", &["catalog", "compile", "engine"]),
    ("control", &["catalog"]),
    ("bench", &[]),
    ("server", &["*"]),
    ("testkit", &["*"]),
];

fn allowed(room: &str, seen: &mut BTreeSet<String>) {
    let Some((_, direct)) = ROOMS.iter().find(|(name, _)| *name == room) else { return };
    for other in *direct {
        if seen.insert((*other).to_owned()) {
            allowed(other, seen);
        }
    }
}

fn crates_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("testkit lies in crates/")
}

/// Dependencies on our own crates, by section. Tests may use what they like.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(crates_dir()).unwrap() {
        let path = entry.unwrap().path();
        let manifest = path.join("Cargo.toml");
        let Ok(text) = std::fs::read_to_string(&manifest) else { continue };
        let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{}: {error}", manifest.display()));
        let ours = table
            .get("dependencies")
            .and_then(toml::Value::as_table)
            .map(|dependencies| {
                dependencies.keys().filter_map(|name| name.strip_prefix("penstock-")).map(str::to_owned).collect()
            })
            .unwrap_or_default();
        let room = path.file_name().unwrap().to_str().unwrap().to_owned();
        found.insert(room, ours);
    }
    found
}

#[test]
fn no_crate_depends_on_a_room_it_may_not_know() {
    let mut wrong = Vec::new();
    for (room, uses) in dependencies() {
        let mut may = BTreeSet::new();
        allowed(&room, &mut may);
        for used in uses {
            if !may.contains("*") && !may.contains(&used) {
                wrong.push(format!("{room} must not depend on {used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_crate_has_its_row() {
    for room in dependencies().keys() {
        assert!(ROOMS.iter().any(|(name, _)| name == room), "{room} is not in the table");
    }
}

#[test]
fn every_crate_says_what_it_is_and_what_it_does_not_know() {
    for room in dependencies().keys() {
        let source = crates_dir().join(room).join("src");
        let root = if source.join("lib.rs").exists() { source.join("lib.rs") } else { source.join("main.rs") };
        let text = std::fs::read_to_string(&root).unwrap();
        let header: String =
            text.lines().take_while(|line| line.starts_with("//!")).collect::<Vec<_>>().join(" ").to_lowercase();
        assert!(header.contains("know"), "{room}: the crate's first comment must say what it knows nothing of");
        assert!(header.contains("reading"), "{room}: the crate's first comment must say where to start reading");
    }
}
