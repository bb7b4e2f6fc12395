//! `penstock list PATH…`: what would be served, without serving it.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::{Arg, ArgAction, ArgMatches, Command};
use penstock_compile::{ArtifactStatus, Element, Input, InputKind, SourceDocument};
use penstock_engine::Place;
use penstock_xml::{Document, ParseOptions};
use serde_json::{Value, json};

use super::Failure;
use crate::build::{self, BuildOptions, Built};
use crate::{config, load};

pub(super) fn command() -> Command {
    Command::new("list")
        .about("Prints what is deployed: artifacts, contexts, resources, endpoints, files")
        .after_help(
            "Exit status 1 if an artifact cannot be served or there is none; `penstock check` prints the reasons.",
        )
        .arg(super::paths_argument().required(true))
        .arg(super::run::config_argument())
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Prints one JSON array"))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let started = Instant::now();
    let paths = super::paths(matches);
    let surroundings = config::surroundings(&paths);
    let settings = super::run::file_settings(matches.get_one::<PathBuf>("config").cloned(), &paths, &surroundings)?;
    let options = BuildOptions { configurables: surroundings.configurables(), ..BuildOptions::default() };
    let loaded = load::load(&paths)?;
    let inputs = loaded.inputs.clone();
    let built = build::compile(loaded, &options, &settings, started);
    let rows = rows(&built, &inputs);
    super::print(&if matches.get_flag("json") { as_json(&rows) } else { as_text(&rows) });
    let bad = rows.is_empty() || rows.iter().any(|row| !row.good);
    Ok(if bad { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// One artifact.
struct Row {
    kind: &'static str,
    name: String,
    good: bool,
    /// The path that requests have, or the address that requests go to.
    address: Option<String>,
    /// Methods and path of each resource.
    resources: Vec<(String, String)>,
    /// Names, or addresses of those without a name.
    endpoints: BTreeSet<String>,
    at: Place,
}

fn rows(built: &Built, inputs: &[Input]) -> Vec<Row> {
    let sources: Vec<SourceDocument> =
        inputs.iter().filter(|input| input.kind == InputKind::Artifact).filter_map(parse).collect();
    let artifacts = Artifacts::new(&sources);
    let listings = built.program.routes.router.as_ref().map(|router| router.listing()).unwrap_or_default();
    let mut rows = Vec::new();
    for status in &built.artifacts {
        let ArtifactStatus { kind, name, at, good } = status;
        let mut row = Row {
            kind,
            name: name.clone(),
            good: *good,
            address: None,
            resources: Vec::new(),
            endpoints: BTreeSet::new(),
            at: at.clone(),
        };
        if *kind == "managed-api" {
            let mut served = listings.iter().filter(|listing| {
                let summary = &listing.summary;
                *name == summary.name || *name == format!("{}:{}", summary.name, summary.version)
            });
            if let Some(listing) = served.next() {
                row.address = Some(listing.summary.path.clone());
                row.resources
                    .extend(listing.operations.iter().map(|(method, path)| (method.to_string(), path.to_string())));
                row.endpoints.extend(listing.endpoints.iter().map(ToString::to_string));
            }
        } else if let Some(element) = artifacts.by_place.get(&key(at)) {
            artifacts.describe(element, built, &mut row);
        }
        rows.push(row);
    }
    rows.sort_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
    rows
}

fn parse(input: &Input) -> Option<SourceDocument> {
    let document = Document::parse(input.bytes.clone(), &ParseOptions::default()).ok()?;
    Some(SourceDocument::new(input.file.clone(), Arc::new(document)))
}

fn key(at: &Place) -> (String, u32, u32) {
    (at.file.to_string(), at.line, at.column)
}

/// The elements of artifacts, for what the compiled program does not keep.
struct Artifacts<'s> {
    by_place: HashMap<(String, u32, u32), Element<'s>>,
    /// Sequences and templates by name.
    sequences: HashMap<String, Element<'s>>,
}

impl<'s> Artifacts<'s> {
    fn new(sources: &'s [SourceDocument]) -> Artifacts<'s> {
        let mut artifacts = Artifacts { by_place: HashMap::new(), sequences: HashMap::new() };
        for root in sources.iter().filter_map(SourceDocument::root) {
            let inside: Vec<_> = if root.name() == "definitions" { root.children().collect() } else { Vec::new() };
            for element in std::iter::once(root).chain(inside) {
                if matches!(element.name(), "sequence" | "template")
                    && let Some(name) = element.attribute("name")
                {
                    artifacts.sequences.insert(name.to_owned(), element);
                }
                artifacts.by_place.insert(key(&element.place()), element);
            }
        }
        artifacts
    }

    fn describe(&self, element: &Element<'_>, built: &Built, row: &mut Row) {
        match row.kind {
            "api" => {
                let served = built.program.routes.apis().iter().find(|api| api.at == row.at);
                let context = served.map(|api| api.context.to_string());
                row.address = context.or_else(|| element.attribute("context").map(str::to_owned));
                for resource in element.elements("resource") {
                    let methods = resource.attribute("methods").unwrap_or("*").split_whitespace().collect::<Vec<_>>();
                    let path = resource.attribute("uri-template").or_else(|| resource.attribute("url-mapping"));
                    row.resources.push((methods.join(" "), path.unwrap_or("/*").to_owned()));
                }
            }
            "proxy" => row.address = Some(format!("/services/{}", row.name)),
            "endpoint" => row.address = element.children().find_map(|child| own_address(&child)),
            _ => {}
        }
        self.endpoints(element, &mut BTreeSet::new(), &mut row.endpoints);
    }

    /// The endpoints that an element uses, also by way of sequences and templates it names.
    fn endpoints(&self, element: &Element<'_>, seen: &mut BTreeSet<String>, found: &mut BTreeSet<String>) {
        for child in element.children() {
            if child.name() == "endpoint" {
                let anonymous = || child.children().find_map(|inside| own_address(&inside));
                let name = child.attribute("key").or_else(|| child.attribute("name")).map(str::to_owned);
                found.extend(name.or_else(anonymous));
            }
            // `<http.get configKey="…">`: the connection.
            if child.name().contains('.') {
                found.extend(child.attribute("configKey").map(str::to_owned));
            }
            self.endpoints(&child, seen, found);
        }
        let names = ["key", "inSequence", "outSequence", "faultSequence", "onError", "target", "sequence"];
        for name in names.into_iter().filter_map(|attribute| element.attribute(attribute)) {
            if let Some(sequence) = self.sequences.get(name)
                && seen.insert(name.to_owned())
            {
                self.endpoints(sequence, seen, found);
            }
        }
        if element.name() == "target" {
            found.extend(element.attribute("endpoint").map(str::to_owned));
        }
    }
}

/// The address of `<address>`, `<http>` or `<wsdl>`.
fn own_address(element: &Element<'_>) -> Option<String> {
    let attribute = match element.name() {
        "address" | "wsdl" => "uri",
        "http" => "uri-template",
        _ => return None,
    };
    element.attribute(attribute).map(str::to_owned)
}

fn as_text(rows: &[Row]) -> String {
    let wide = |text: fn(&Row) -> usize| rows.iter().map(text).max().unwrap_or_default();
    let (kinds, names) = (wide(|row| row.kind.len()), wide(|row| row.name.chars().count()));
    let addresses = wide(|row| row.address.as_ref().map_or(0, |address| address.chars().count()));
    let mut out = String::new();
    for row in rows {
        let Row { kind, name, at, .. } = row;
        let address = row.address.as_deref().unwrap_or_default();
        let failed = if row.good { "" } else { "FAILED  " };
        // Writing to a `String` cannot fail.
        let _ = writeln!(out, "{kind:kinds$}  {name:names$}  {address:addresses$}  {failed}{at}");
        for (methods, path) in &row.resources {
            let _ = writeln!(out, "{:kinds$}    {methods} {path}", "");
        }
        if !row.endpoints.is_empty() && row.kind != "endpoint" {
            let endpoints: Vec<&str> = row.endpoints.iter().map(String::as_str).collect();
            let _ = writeln!(out, "{:kinds$}    endpoints: {}", "", endpoints.join(", "));
        }
    }
    if rows.is_empty() {
        out.push_str("no artifact was found under these paths\n");
    }
    out
}

fn as_json(rows: &[Row]) -> String {
    let one = |row: &Row| {
        let mut fields = json!({
            "kind": row.kind, "name": row.name, "served": row.good,
            "file": *row.at.file, "line": row.at.line, "column": row.at.column,
            "endpoints": row.endpoints,
        });
        let key = if row.kind == "endpoint" { "url" } else { "context" };
        if let Some(address) = &row.address {
            fields[key] = json!(address);
        }
        if matches!(row.kind, "api" | "managed-api") {
            let resource = |(methods, path): &(String, String)| {
                let methods: Vec<&str> = methods.split_whitespace().collect();
                json!({ "methods": methods, "path": path })
            };
            fields["resources"] = row.resources.iter().map(resource).collect();
        }
        fields
    };
    let rows: Value = rows.iter().map(one).collect();
    format!("{rows:#}\n")
}
