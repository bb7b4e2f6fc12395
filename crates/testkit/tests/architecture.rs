//! The crate table of `docs/ARCHITECTURE.md`, and the paths and links in all pages, compared with the source.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A row of the table: which crates it may depend on (`None`: all), and what it must not know.
struct Row {
    may_use: Option<Vec<String>>,
    must_not_know: String,
}

/// What the last column of the table forbids: a word there, and the text that must not be in the crate's source.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("async", &["async fn", "async move", "tokio::"]),
    ("files", &["std::fs", "tokio::fs"]),
    ("sockets", &["TcpStream", "TcpListener", "UdpSocket", "UnixStream"]),
    ("clock", &["SystemTime::now", "Instant::now"]),
    ("messages", &["penstock_message"]),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The words in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The rows of the tables of a page whose first cell is a word in backticks, as cells.
fn rows(page: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
    page.lines().filter(|line| line.starts_with("| `")).map(cells).collect()
}

fn table() -> BTreeMap<String, Row> {
    let page = read(&root().join("docs/ARCHITECTURE.md"));
    let section = page.split("\n## ").find(|section| section.starts_with("Crates\n")).expect("a section `Crates`");
    let row = |cells: Vec<String>| {
        let [name, _, may_use, must_not_know] = <[String; 4]>::try_from(cells).expect("four cells");
        let may_use = (may_use != "all").then(|| quoted(&may_use).map(str::to_owned).collect());
        (name.trim_matches('`').to_owned(), Row { may_use, must_not_know })
    };
    rows(section).into_iter().map(row).collect()
}

/// The crates that a crate may depend on, those of its dependencies included.
fn allowed(name: &str, table: &BTreeMap<String, Row>, seen: &mut BTreeSet<String>) {
    for other in table[name].may_use.iter().flatten() {
        if seen.insert(other.clone()) {
            allowed(other, table, seen);
        }
    }
}

/// Dependencies on crates of the workspace, without those of tests.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let manifest = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        let table: toml::Table = read(&path.join("Cargo.toml")).parse().unwrap();
        let used = table.get("dependencies").and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys);
        let used = used.filter_map(|name| name.strip_prefix("penstock-")).map(str::to_owned).collect();
        (path.file_name().unwrap().to_str().unwrap().to_owned(), used)
    };
    std::fs::read_dir(root().join("crates")).unwrap().map(manifest).collect()
}

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

/// A file's code without comments and unit tests.
fn code(path: &Path) -> String {
    let in_tests = path.file_stem().is_some_and(|stem| stem == "tests") || path.iter().any(|part| part == "tests");
    let text = if in_tests { String::new() } else { read(path) };
    let code = text.split("\n#[cfg(test)]").next().unwrap().lines().filter(|line| !line.trim_start().starts_with("//"));
    code.collect::<Vec<_>>().join("\n")
}

#[test]
fn crates_depend_only_on_those_that_their_row_names() {
    let (table, mut wrong) = (table(), Vec::new());
    for (name, used) in dependencies() {
        let Some(row) = table.get(&name) else { continue };
        let mut may = BTreeSet::new();
        allowed(&name, &table, &mut may);
        let forbidden = used.iter().filter(|used| row.may_use.is_some() && !may.contains(*used));
        wrong.extend(forbidden.map(|used| format!("{name} must not depend on {used}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_has_a_row_for_each_crate() {
    let (crates, rows): (Vec<_>, Vec<_>) = (dependencies().into_keys().collect(), table().into_keys().collect());
    assert_eq!(crates, rows);
}

#[test]
fn crates_do_not_use_what_they_must_not_know() {
    let mut wrong = Vec::new();
    for (name, row) in table() {
        let mut sources = Vec::new();
        files(&root().join("crates").join(&name).join("src"), "rs", &mut sources);
        for (_, forbidden) in FORBIDDEN.iter().filter(|(word, _)| row.must_not_know.contains(word)) {
            for path in &sources {
                let code = code(path);
                let used = forbidden.iter().filter(|text| code.contains(**text));
                wrong.extend(used.map(|text| format!("{}: {name} must not use {text}", path.display())));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The first comment of a crate says where to start reading; the first names there are files or items of the crate.
#[test]
fn each_crate_says_where_to_start_reading() {
    for name in dependencies().keys() {
        let source = root().join("crates").join(name).join("src");
        let first = [source.join("lib.rs"), source.join("main.rs")].into_iter().find(|file| file.exists()).unwrap();
        let text = read(&first);
        let header: String = text.lines().map_while(|line| line.strip_prefix("//!")).collect();
        let start = header.find("tart reading").unwrap_or_else(|| panic!("{name}: where to start reading"));
        let mut all = Vec::new();
        files(&source, "rs", &mut all);
        let code: String = all.iter().map(|file| read(file)).collect();
        let wanted = quoted(&header[start..]).next().unwrap_or_else(|| panic!("{name}: no name to start reading at"));
        let item = wanted.rsplit("::").next().unwrap();
        let items = ["struct", "enum", "trait", "fn", "const", "static", "mod"];
        let is_item = items.iter().any(|kind| code.contains(&format!("{kind} {item}")));
        assert!(is_item || source.join(wanted).exists(), "{name}: no item or file `{wanted}`");
    }
}

/// Paths in the table "Where to look", relative to the repository or to `crates/`.
#[test]
fn paths_in_the_architecture_page_exist() {
    let page = read(&root().join("docs/ARCHITECTURE.md"));
    let section = page.split("\n## ").find(|section| section.starts_with("Where to look")).unwrap();
    let is_path =
        |text: &&str| text.contains('/') && !text.contains(' ') && !text.contains("::") && !text.contains('<');
    let paths: Vec<&str> = quoted(section).filter(is_path).collect();
    assert!(paths.len() > 30, "the section has {} paths", paths.len());
    let crates = root().join("crates");
    let exists = |path: &str| {
        let (start, rest) = path.split_once('/').unwrap();
        root().join(path).exists() || crates.join(start).join("src").join(rest).exists() || crates.join(path).exists()
    };
    let missing: Vec<&str> = paths.into_iter().filter(|path| !exists(path)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(page: &str) -> BTreeSet<String> {
    let slug = |heading: &str| {
        let kept = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        heading.trim().to_lowercase().chars().filter(|c| kept(*c)).collect::<String>().replace(' ', "-")
    };
    page.lines().filter(|line| line.starts_with('#')).map(|line| slug(line.trim_start_matches('#'))).collect()
}

#[test]
fn links_of_pages_lead_to_files_and_headings() {
    let mut pages =
        ["README.md", "SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(|file| root().join(file)).to_vec();
    files(&root().join("docs"), "md", &mut pages);
    let mut missing = Vec::new();
    for page in &pages {
        let text = read(page);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.is_empty() || link.contains("://") || link.contains(' ') || link.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let file = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            if !file.exists() || !heading.is_empty() && !anchors(&read(&file)).contains(heading) {
                missing.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Each recipe names files that exist, and names that occur in them.
#[test]
fn recipes_of_the_contributing_page_are_current() {
    let page = read(&root().join("CONTRIBUTING.md"));
    let recipes = page.split("\n## ").find(|section| section.starts_with("Recipes")).unwrap();
    let mut wrong = Vec::new();
    for recipe in recipes.split("\n### ").skip(1) {
        let title = recipe.lines().next().unwrap();
        let is_path = |text: &&str| text.contains('/') && !text.contains(' ');
        let is_name = |text: &&str| text.len() > 2 && text.chars().all(|c| c.is_alphabetic() || c == '_');
        let mut source = String::new();
        for path in quoted(recipe).filter(is_path).map(|path| root().join(path)) {
            let mut inside = vec![path.clone()];
            if path.is_dir() {
                inside.clear();
                files(&path, "rs", &mut inside);
            }
            if inside.iter().any(|file| !file.exists()) {
                wrong.push(format!("{title}: no file {}", path.display()));
            } else {
                source.extend(inside.iter().map(|file| read(file)));
            }
        }
        let unknown = quoted(recipe).filter(is_name).filter(|name| !source.contains(name));
        wrong.extend(unknown.map(|name| format!("{title}: no `{name}` in its files")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The numbers of the constants in all modules `codes` of a crate.
fn codes(source: &str) -> BTreeSet<u32> {
    let mut all = Vec::new();
    files(&root().join(source), "rs", &mut all);
    let texts: Vec<String> = all.iter().map(|file| read(file)).collect();
    let modules = texts.iter().filter_map(|text| text.split_once("pub mod codes {")).map(|(_, rest)| rest);
    let constants = modules.flat_map(|module| module.lines().take_while(|line| *line != "}"));
    constants.filter_map(|line| line.split_once(": u32 = ")?.1.trim_end_matches(';').parse().ok()).collect()
}

#[test]
fn each_error_code_is_documented() {
    let page = read(&root().join("docs/errors.md"));
    for (section, source) in [("Integrations", "crates/engine/src"), ("Managed APIs", "crates/gateway/src")] {
        let text = page.split("\n## ").find(|text| text.starts_with(section)).unwrap();
        let cells = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next());
        let described: BTreeSet<u32> = cells.filter_map(|cell| cell.parse().ok()).collect();
        let known = codes(source);
        assert!(known.len() > 20, "{source}: {known:?}");
        assert_eq!(described, known, "{section}");
    }
}

#[test]
fn each_fuzz_target_is_registered_described_and_has_seeds() {
    let page = rows(&read(&root().join("docs/FUZZING.md")));
    let described: BTreeSet<String> = page.iter().map(|cells| cells[0].trim_matches('`').to_owned()).collect();
    let registered = read(&root().join("fuzz/src/lib.rs"));
    let registered: BTreeSet<String> =
        registered.split("Target { name: \"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect();
    assert_eq!(described, registered);
    for cells in &page {
        assert!(root().join(cells[2].trim_matches('`')).is_dir(), "{}: no folder {}", cells[0], cells[2]);
    }
}
