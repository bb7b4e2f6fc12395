//! The pages of mediators, endpoints, connectors, data services, messaging, APIs, proxy services and security run as tests; every mediator and
//! native connector has one. `UPDATE=1` writes the results into the pages and the compatibility table; `PAGE=name` runs one page.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use penstock_compile::{Effect, MediatorKind};
use penstock_mediators::{KNOWN, UNSUPPORTED};
use penstock_testkit::{REGISTRY, pages};

/// Elements that another element's page describes.
const SHARED: [(&str, &str); 3] = [("propertyGroup", "property"), ("out", "in"), ("fastXSLT", "xslt")];

fn mediators() -> impl Iterator<Item = &'static MediatorKind> {
    REGISTRY.mediators.iter().copied().flatten()
}

fn connectors() -> impl Iterator<Item = &'static str> {
    REGISTRY.connectors().map(|kind| kind.name)
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
    let mut files: Vec<PathBuf> = ["mediators", "endpoints", "connectors", "messaging", "dataservices"]
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
    let pages = of_mediators.chain(connectors().map(|name| format!("connectors/{}", name.to_lowercase())));
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

/// The first cells of the table below a heading of `docs/capabilities.md`, with those of the second column.
fn capabilities<'p>(page: &'p str, heading: &str) -> Vec<(&'p str, &'p str)> {
    let section = page.split("\n## ").find(|section| section.lines().next() == Some(heading)).unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| {
        let (name, rest) = row.split_once("` | ")?;
        Some((name, rest.split(" |").next()?))
    })
    .collect()
}

#[test]
fn the_capabilities_are_those_of_the_program() {
    let page = fs::read_to_string(root().join("docs/capabilities.md")).unwrap();
    let check = |heading: &str, known: Vec<&'static str>| {
        let rows = capabilities(&page, heading);
        let supported = rows.iter().filter(|(_, support)| *support != "not supported").map(|(name, _)| *name);
        let (supported, known): (BTreeSet<&str>, BTreeSet<&str>) = (supported.collect(), known.into_iter().collect());
        assert_eq!(supported, known, "{heading} in docs/capabilities.md");
    };
    check("Artifact kinds", REGISTRY.artifact_kinds().map(|kind| kind.element).collect());
    check("Inbound protocols", REGISTRY.inbound().flat_map(|kind| kind.protocols).copied().collect());
    let listeners = REGISTRY.listeners().map(|kind| kind.transport);
    check("Transports of proxy services", ["http", "https", "local"].into_iter().chain(listeners).collect());
    check("Native connectors", connectors().collect());
}

/// The status of each mediator element of the WSO2 products. `Differs:` begins the lines of a page that describe differences.
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
                Effect::Refused => "not supported: an error",
                Effect::LeftOut => "ignored with a warning",
            };
            let name = element.name.to_owned();
            let row = format!(
                "| `{name}` | {effect}. It {}: {}. | [unsupported](mediators/unsupported.md) |",
                element.what,
                element.instead.replace('<', "`<").replace('>', ">`")
            );
            (name, row)
        }))
        .chain(KNOWN.iter().map(|name| ((*name).to_owned(), format!("| `{name}` | not supported: an error | |"))))
        .collect();
    rows.sort_by_key(|(name, _)| name.to_lowercase());
    let rows: Vec<String> = rows.into_iter().map(|(_, row)| row).collect();
    format!(
        "# Compatibility\n\nAll mediator elements of Micro Integrator and Enterprise Integrator. Each page runs as a test, which writes this \
         table.\n\n| element | support | page and test |\n|---|---|---|\n{}\n",
        rows.join("\n")
    )
}
