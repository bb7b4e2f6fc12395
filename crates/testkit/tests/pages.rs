//! Every page of `docs/mediators`, `docs/endpoints` and `docs/connectors`, and the one on security, runs and shows what
//! happens; every mediator and every native connector has one.
//! `UPDATE=1` writes what happens into the pages and the compatibility table; `PAGE=name` runs one page only.

use std::fs;
use std::path::{Path, PathBuf};

use penstock_compile::{Effect, MediatorKind};
use penstock_mediators::{CONNECTORS, KNOWN, UNSUPPORTED};
use penstock_testkit::{REGISTRY, pages};

/// Elements that are described on the page of another.
const SHARED: [(&str, &str); 3] = [("propertyGroup", "property"), ("out", "in"), ("fastXSLT", "xslt")];

fn mediators() -> impl Iterator<Item = &'static MediatorKind> {
    REGISTRY.mediators.iter().copied().flatten()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page_of(element: &str) -> &str {
    SHARED.iter().find(|(own, _)| *own == element).map_or(element, |(_, page)| page)
}

fn update() -> bool {
    std::env::var_os("UPDATE").is_some()
}

#[test]
fn pages_show_what_happens() {
    let mut wrong = Vec::new();
    let inside = |folder: &str| fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = ["mediators", "endpoints", "connectors", "messaging"]
        .iter()
        .flat_map(|folder| inside(&format!("docs/{folder}")))
        .collect();
    files.extend(["apis", "proxies", "security"].map(|name| root().join(format!("docs/{name}.md"))));
    files.sort();
    if let Ok(only) = std::env::var("PAGE") {
        files.retain(|file| file.file_stem().is_some_and(|stem| *stem == *only));
    }
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let page = fs::read_to_string(&file).unwrap();
        match pages::run(&page) {
            Err(error) => wrong.push(format!("{name}: {error}")),
            Ok(now) if now == page => {}
            Ok(now) if update() => fs::write(&file, now).unwrap(),
            Ok(now) => {
                let differing = page.lines().zip(now.lines()).find(|(before, now)| before != now);
                wrong.push(format!("{name}: the page says and now it is: {differing:#?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n\nUPDATE=1 rewrites the pages", wrong.join("\n"));
}

#[test]
fn every_mediator_has_a_page_that_runs() {
    let of_mediators = mediators().map(|kind| format!("mediators/{}", page_of(kind.name)));
    let pages = of_mediators.chain(CONNECTORS.iter().map(|kind| format!("connectors/{}", kind.name)));
    let missing: Vec<String> = pages
        .filter(|page| {
            let file = root().join(format!("docs/{page}.md"));
            fs::read_to_string(file).map_or(0, |page| pages::requests(&page)) == 0
        })
        .collect();
    assert!(missing.is_empty(), "no page with a request: {missing:?}");
}

#[test]
fn the_compatibility_table_is_current() {
    let file = root().join("docs/compatibility.md");
    let table = compatibility();
    if update() {
        fs::write(&file, &table).unwrap();
    }
    assert_eq!(fs::read_to_string(&file).unwrap_or_default(), table, "UPDATE=1 rewrites docs/compatibility.md");
}

/// What every element of the original is here. A line of a page that begins with `Differs:` says how.
fn compatibility() -> String {
    let mut rows: Vec<(String, String)> = mediators()
        .map(|kind| {
            let page = page_of(kind.name);
            let text = fs::read_to_string(root().join(format!("docs/mediators/{page}.md"))).unwrap_or_default();
            let differs: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("Differs: ")).collect();
            let status =
                if differs.is_empty() { "supported".to_owned() } else { format!("differs: {}", differs.join(" ")) };
            (kind.name.to_owned(), format!("| `{}` | {status} | [{page}](mediators/{page}.md) |", kind.name))
        })
        .chain(UNSUPPORTED.iter().map(|element| {
            let effect = match element.effect {
                Effect::Refused => "not supported: an error with its place when a configuration is checked",
                Effect::LeftOut => "left out, with a warning",
            };
            let name = element.name.to_owned();
            let row = format!(
                "| `{name}` | {effect}. It {}: {}. | [unsupported](mediators/unsupported.md) |",
                element.what,
                element.instead.replace('<', "`<").replace('>', ">`")
            );
            (name, row)
        }))
        .chain(KNOWN.iter().map(|name| {
            (
                (*name).to_owned(),
                format!("| `{name}` | not supported yet: an error with its place when a configuration is checked | |"),
            )
        }))
        .collect();
    rows.sort_by_key(|(name, _)| name.to_lowercase());
    let rows: Vec<String> = rows.into_iter().map(|(_, row)| row).collect();
    format!(
        "# Compatibility\n\nEvery mediator element of the original and what it is here. Each page is run as a test; this table is \
         written by one.\n\n| element | here | page and test |\n|---|---|---|\n{}\n",
        rows.join("\n")
    )
}
