//! `penstock example`: a small integration with a backend, and what to send it.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use clap::{ArgMatches, Command};
use penstock_bench::echo::{EchoServer, EchoSpec};
use penstock_compile::{Input, InputKind};

use super::Failure;
use crate::build;
use crate::config::{self, Surroundings, properties};
use crate::load::Loaded;
use crate::serve::{self, Plan, Served, Signals};

/// The files of the folder `examples`, as they stand in the repository.
const FILES: &[(&str, &str)] = &[
    ("examples/apis/Orders.xml", include_str!("../../../../examples/apis/Orders.xml")),
    ("examples/endpoints/Warehouse.xml", include_str!("../../../../examples/endpoints/Warehouse.xml")),
    (
        "examples/local-entries/OrderToDelivery.xml",
        include_str!("../../../../examples/local-entries/OrderToDelivery.xml"),
    ),
    ("examples/proxy-services/Deliveries.xml", include_str!("../../../../examples/proxy-services/Deliveries.xml")),
    ("examples/sequences/Refuse.xml", include_str!("../../../../examples/sequences/Refuse.xml")),
];

const PROPERTIES: &str = include_str!("../../../../examples/file.properties");

pub(super) fn command() -> Command {
    let command =
        Command::new("example").about("Starts a small integration with its backend, and prints requests to try");
    super::run::serving_arguments(command)
        .after_help("The artifacts are in the folder examples; `penstock echo` and `penstock run examples` do the same step by step.")
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let started = Instant::now();
    let signals = Signals::receive()?;
    let mut surroundings =
        Surroundings { file: properties::parse(PROPERTIES).into_iter().collect(), ..config::surroundings(&[]) };
    let settings = super::run::settings(matches, &[], &surroundings)?;
    // A free port, so that the example always starts.
    let spec = EchoSpec { address: Some([127, 0, 0, 1].into()), port: 0, threads: 1, ..EchoSpec::default() };
    let backend = EchoServer::start(&spec)
        .map_err(|error| Failure::environment(format!("the backend of the example: {error}")))?;
    surroundings.file.insert("warehouse.url".to_owned(), format!("http://localhost:{}/warehouse", backend.port()));
    let options = super::run::build_options(matches, &surroundings);
    let built = build::compile(embedded(), &options, &settings, started);
    let backend_port = backend.port();
    let epilogue = move |served: &Served| requests(served, backend_port);
    serve::serve(Plan {
        epilogue: Some(Box::new(epilogue)),
        ..Plan::new(settings, surroundings, options, started, built, signals)
    })?;
    drop(backend);
    Ok(ExitCode::SUCCESS)
}

fn embedded() -> Loaded {
    let input = |(file, text): &(&str, &'static str)| Input {
        file: Arc::from(*file),
        bytes: Bytes::from_static(text.as_bytes()),
        kind: InputKind::Artifact,
    };
    Loaded { inputs: FILES.iter().map(input).collect(), ..Loaded::default() }
}

fn requests(served: &Served, backend_port: u16) -> String {
    let port = served.http;
    format!(
        "
The backend is an echo on port {backend_port}. Try, in another terminal:

  curl -s http://localhost:{port}/orders/42
  curl -s http://localhost:{port}/orders -H 'Content-Type: application/json' -d '{{\"item\": \"bolt\", \"quantity\": 3}}'
  curl -s http://localhost:{port}/orders -H 'Content-Type: application/json' -d '{{\"item\": \"bolt\", \"quantity\": 5000}}'
  curl -s http://localhost:{port}/services/Deliveries -H 'Content-Type: application/xml' -d '<order><item>bolt</item><quantity>3</quantity></order>'
  curl -s http://localhost:{port}/services/Deliveries?wsdl

The artifacts are in the folder examples. Ctrl-C ends it.
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_in() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut found = Vec::new();
        let mut folders = vec![root.join("examples")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && path.file_name().is_some_and(|name| name == "test") {
                    // The suite of the example is for `penstock test`.
                } else if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|ending| ending == "xml") {
                    found.push(path.strip_prefix(&root).unwrap().display().to_string());
                }
            }
        }
        found.sort();
        assert_eq!(found, FILES.iter().map(|(file, _)| (*file).to_owned()).collect::<Vec<_>>());
    }
}
