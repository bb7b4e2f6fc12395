//! Every definition and descriptor of the corpus is imported, or rejected for a known reason. `--nocapture` prints the table.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use penstock_compile::Severity;
use penstock_projects::{Import, ImportConfig, Project, ProjectFile};

const CORPUS: &str = "../../../shared/corpus/gateway";

/// Rejected files, with a part of the reason. All others must be imported.
const REFUSED: &[(&str, &str)] = &[
    // Its functions stand in the definition it is used with.
    ("aws_lambda_api.yaml", "names no function of AWS"),
    // Its operations stand in the definition it is used with.
    ("default_version_v2.yaml", "the API has no operation"),
    // It is mocked by the descriptor it is used with.
    ("mock_endpoint_openAPI.yaml", "the API has no backend"),
    // A template with the name and the context left blank.
    ("init-template/default_api.yaml", "an API needs `name`"),
    // The server behind it stands in `backends.yaml`, which is not there.
    ("sample-mcp-server.yaml", "the MCP server behind this one is not described"),
];

/// Files that are parts of projects, or are for other tools.
const PARTS: &[&str] = &[
    "document.yaml",
    "EnvParamsFiles/",
    "customAddLogMessage_v1.yaml",
    "customAddLogMessage_v2.yaml",
    "api_meta.yaml",
    "deployment_environments.yaml",
    "deploy_env.yaml",
    "graphql-complexity.yaml",
];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            files(&path, found);
        } else if matches!(path.extension().and_then(|name| name.to_str()), Some("yaml" | "yml" | "json")) {
            found.push(path);
        }
    }
}

#[test]
#[ignore = "reads ../shared; .ci/run runs it where the folder is"]
fn corpus_definitions_are_imported() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join(CORPUS);
    let mut all = Vec::new();
    for folder in ["openapi", "asyncapi", "projects", "api-yaml", "rest-specs"] {
        files(&corpus.join(folder), &mut all);
    }
    all.sort();
    let (config, variables) = (ImportConfig::default(), HashMap::new());
    let (mut loaded, mut wrong) = (0, Vec::new());
    for path in &all {
        let name = path.strip_prefix(&corpus).unwrap().display().to_string();
        let file =
            ProjectFile { file: name.as_str().into(), path: String::new(), bytes: std::fs::read(path).unwrap().into() };
        let mut import = Import::new(&config, &variables);
        let imported = import.project(&Project { name: name.as_str().into(), files: vec![file], more: None });
        let errors: Vec<String> =
            import.notes.iter().filter(|note| note.severity == Severity::Error).map(|note| note.to_string()).collect();
        let outcome = match imported.as_ref().map(|imported| &imported.api) {
            None => "part".to_owned(),
            Some(None) => format!("refused: {}", errors.first().map_or("", String::as_str)),
            Some(Some(api)) => {
                loaded += 1;
                format!("{} {} operations at {}", api.name, api.operations.len(), api.base_path)
            }
        };
        println!("{name}: {outcome}");
        for note in import.notes.iter().filter(|note| note.severity == Severity::Warning) {
            println!("    {note}");
        }
        let refused = REFUSED.iter().find(|(file, _)| name.ends_with(file));
        let as_expected = match refused {
            Some((_, reason)) => errors.iter().any(|error| error.contains(reason)),
            None if PARTS.iter().any(|part| name.contains(part)) => imported.is_none(),
            None => imported.is_some_and(|imported| imported.api.is_some()),
        };
        if !as_expected {
            wrong.push(format!("{name}: {outcome}"));
        }
    }
    println!("{} files: {loaded} load", all.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Descriptors of the corpus with the definitions they are used with.
#[test]
#[ignore = "reads ../shared; .ci/run runs it where the folder is"]
fn corpus_pairs_are_imported() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join(CORPUS);
    let (config, variables) = (ImportConfig::default(), HashMap::new());
    for (descriptor, definition, base_path, default_path, operations) in [
        (
            "default_version_v2.yaml",
            "default_version_v2_OpenAPI.yaml",
            "/defaultVersion/2.0.0",
            Some("/defaultVersion"),
            2,
        ),
        ("mock_impl_test.yaml", "mock_endpoint_openAPI.yaml", "/mockApiTest/1.0.0", None, 3),
        ("mutual_ssl_mandatory_api.yaml", "mutual_ssl_openAPI.yaml", "/mtls/1.0.0", None, 1),
        ("api_policy_intercept_request.yaml", "openAPI.yaml", "/v2/standard", None, 27),
    ] {
        let file = |folder: &str, name: &str, path: &str| ProjectFile {
            file: path.into(),
            path: path.to_owned(),
            bytes: std::fs::read(corpus.join(folder).join("choreo-connect").join(name)).unwrap().into(),
        };
        let files =
            vec![file("api-yaml", descriptor, "api.yaml"), file("openapi", definition, "Definitions/swagger.yaml")];
        let mut import = Import::new(&config, &variables);
        let imported = import.project(&Project { name: descriptor.into(), files, more: None });
        let Some(api) = imported.and_then(|imported| imported.api) else { panic!("{descriptor}: {:?}", import.notes) };
        assert_eq!(&*api.base_path, base_path, "{descriptor}");
        assert_eq!(api.default_path.as_deref(), default_path, "{descriptor}");
        assert_eq!(api.operations.len(), operations, "{descriptor}");
    }
}
