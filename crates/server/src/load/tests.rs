//! Loading, on archives and folders made here.

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use super::*;

/// A folder that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("penstock-load-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    for (name, bytes) in entries {
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// What was loaded, one line each: the file's last part and the key of a resource; then the notes.
fn summary(loaded: &Loaded, root: &Path) -> Vec<String> {
    let root = format!("{}/", root.display());
    let inputs = loaded.inputs.iter().map(|input| match &input.kind {
        InputKind::Artifact => input.file.replace(&root, ""),
        InputKind::Resource { key, media_type, .. } => {
            format!("{} = {key} {}", input.file.replace(&root, ""), media_type.as_deref().unwrap_or("-"))
        }
        InputKind::Operation { connector } => format!("{} operation of {connector}", input.file.replace(&root, "")),
        InputKind::UnusableConnector { connector, reason } => format!("{connector}: {reason}"),
        InputKind::Api { project, path } => format!("{} {path}", project.replace(&root, "")),
        InputKind::ApiFiles(files) => format!("{} {}", input.file.replace(&root, ""), files.0.paths().join(" ")),
    });
    inputs.chain(loaded.notes.iter().map(|note| note.to_string().replace(&root, ""))).collect()
}

#[track_caller]
fn check(folder: &Folder, path: &str, expected: &[&str]) {
    let path = if path.is_empty() { folder.0.clone() } else { folder.0.join(path) };
    let loaded = load(&[path]).unwrap();
    assert_eq!(summary(&loaded, &folder.0), expected);
}

const ARTIFACTS: &[u8] = br#"<artifacts><artifact name="App" version="1.0.0" type="carbon/application">
  <dependency artifact="A" version="1.0.0" include="true"/>
  <dependency artifact="R" version="1.0.0" include="true"/>
</artifact></artifacts>"#;

#[test]
fn an_application_with_an_api_and_a_resource() {
    let folder = Folder::new("car");
    let car = zip(&[
        ("artifacts.xml", ARTIFACTS),
        ("A_1.0.0/artifact.xml", br#"<artifact name="A" version="1.0.0" type="synapse/api"><file>A-1.0.0.xml</file></artifact>"#),
        ("A_1.0.0/A-1.0.0.xml", b"<api name='A' context='/a'/>"),
        ("R_1.0.0/artifact.xml", br#"<artifact name="R" version="1.0.0" type="registry/resource"><file>registry-info.xml</file></artifact>"#),
        (
            "R_1.0.0/registry-info.xml",
            br#"<resources><item><file>r.xslt</file><path>/_system/governance/x</path><mediaType>application/xslt+xml</mediaType></item></resources>"#,
        ),
        ("R_1.0.0/resources/r.xslt", b"<xsl/>"),
        ("Z_1.0.0/artifact.xml", b"<artifact/>"),
    ]);
    folder.write("app.car", car);
    let expected = [
        "app.car!A_1.0.0/A-1.0.0.xml",
        "app.car!R_1.0.0/resources/r.xslt = gov:x/r.xslt application/xslt+xml",
        "app.car!Z_1.0.0/artifact.xml:1:1: warning: ignored: `artifacts.xml` does not list `Z_1.0.0`",
    ];
    check(&folder, "app.car", &expected);
    check(&folder, "", &expected);
}

#[test]
fn the_folders_of_an_application_may_be_called_anything() {
    let folder = Folder::new("car-folders");
    let car = zip(&[
        (
            "artifacts.xml",
            br#"<artifacts><artifact name="App" version="1" type="carbon/application">
  <dependency artifact="A" version="1.0.0" include="true"/>
  <dependency artifact="B" include="true"/>
</artifact></artifacts>"#,
        ),
        ("one/artifact.xml", br#"<artifact name="A" version="1.0.0" type="synapse/api"><file>a.xml</file></artifact>"#),
        ("one/a.xml", b"<api name='A' context='/a'/>"),
        ("two/artifact.xml", br#"<artifact name="B" type="synapse/sequence"><file>b.xml</file></artifact>"#),
        ("two/b.xml", b"<sequence name='B'/>"),
    ]);
    folder.write("app.car", car);
    check(&folder, "app.car", &["app.car!one/a.xml", "app.car!two/b.xml"]);
}

#[test]
fn an_application_is_taken_once() {
    let folder = Folder::new("car-twice");
    let car = zip(&[
        (
            "artifacts.xml",
            br#"<artifacts><artifact name="App" version="1" type="carbon/application">
  <dependency artifact="A" version="1.0.0" include="true"/></artifact></artifacts>"#,
        ),
        (
            "A_1.0.0/artifact.xml",
            br#"<artifact name="A" version="1.0.0" type="synapse/api"><file>a.xml</file></artifact>"#,
        ),
        ("A_1.0.0/a.xml", b"<api name='A' context='/a'/>"),
    ]);
    folder.write("a.car", car.clone());
    folder.write("b.car", car);
    let loaded = load(std::slice::from_ref(&folder.0)).unwrap();
    assert_eq!(loaded.inputs.len(), 1);
    let message = &loaded.notes[0].message;
    assert!(message.starts_with("ignored: the application `App` 1 is already loaded from "), "{message}");
}

#[test]
fn what_is_wrong_with_an_application_is_said_with_its_place() {
    let folder = Folder::new("bad-car");
    let car = zip(&[
        ("artifacts.xml", ARTIFACTS),
        ("A_1.0.0/artifact.xml", br#"<artifact name="A" type="lib/connector/dependency"/>"#),
    ]);
    folder.write("a.car", car);
    check(
        &folder,
        "a.car",
        &[
            "a.car!A_1.0.0/artifact.xml:1:20: warning: ignored: artifacts of the type `lib/connector/dependency` are not supported yet (`A`)",
            "a.car!artifacts.xml:3:3: error: `R_1.0.0/artifact.xml` is not in the archive",
        ],
    );
    folder.write("b.car", b"no zip at all");
    let loaded = load(&[folder.0.join("b.car")]).unwrap();
    assert!(
        loaded.notes[0].message.starts_with("not a Carbon application: the archive is damaged"),
        "{:?}",
        loaded.notes
    );
    folder.write("c.car", zip(&[("readme.txt", b"")]));
    check(&folder, "c.car", &["c.car:1:1: error: not a Carbon application: it has no `artifacts.xml`"]);
}

#[test]
fn an_archive_that_points_outside_is_refused() {
    let folder = Folder::new("slip");
    folder.write("a.car", zip(&[("artifacts.xml", ARTIFACTS), ("A_1.0.0/../../x", b"")]));
    check(
        &folder,
        "a.car",
        &[
            "a.car:1:1: error: not a Carbon application: the archive is refused: the entry `A_1.0.0/../../x` points outside it",
        ],
    );
}

#[test]
fn an_archive_that_unpacks_without_end_is_stopped() {
    let folder = Folder::new("bomb");
    let zeros = vec![b' '; (FILE_BYTES_MAX + 1) as usize];
    let car = zip(&[
        ("artifacts.xml", ARTIFACTS),
        ("A_1.0.0/artifact.xml", br#"<artifact name="A" type="synapse/api"><file>A.xml</file></artifact>"#),
        ("A_1.0.0/A.xml", &zeros),
        ("R_1.0.0/artifact.xml", br#"<artifact name="R" type="synapse/api"><file>R.xml</file></artifact>"#),
        ("R_1.0.0/R.xml", b"<api/>"),
    ]);
    assert!(car.len() < 100_000);
    folder.write("a.car", car);
    check(
        &folder,
        "a.car",
        &[
            "a.car!R_1.0.0/R.xml",
            "a.car!A_1.0.0/A.xml:1:1: error: the entry unpacks to more than 64 MiB, which is the limit",
        ],
    );
}

#[test]
fn a_project_of_the_editor() {
    let folder = Folder::new("project");
    folder.write("pom.xml", "<project/>");
    folder.write("src/main/wso2mi/artifacts/apis/a.xml", "<api/>");
    folder.write("src/main/wso2mi/artifacts/proxy-services/.gitkeep", "");
    folder.write("src/main/wso2mi/resources/json/a.json", "{}");
    folder.write("src/main/wso2mi/resources/registry/gov/x/a.xslt", "<x/>");
    folder.write("src/main/wso2mi/resources/registry/gov/x/.meta/a.xslt.meta", "mediaType=application/xml\n");
    folder.write("src/main/wso2mi/resources/registry/artifact.xml", "<artifacts/>");
    folder.write("src/main/wso2mi/resources/connectors/mail.zip", "");
    check(
        &folder,
        "",
        &[
            "src/main/wso2mi/artifacts/apis/a.xml",
            "src/main/wso2mi/resources/registry/gov/x/a.xslt = gov:x/a.xslt application/xml",
            "src/main/wso2mi/resources/json/a.json = gov:mi-resources/json/a.json -",
            "src/main/wso2mi/resources/json/a.json = resources:json/a.json -",
            "src/main/wso2mi/resources/connectors/mail.zip:1:1: warning: ignored: no connector: the archive has no `connector.xml`",
        ],
    );
}

#[test]
fn the_home_of_a_micro_integrator() {
    let folder = Folder::new("home");
    folder.write("conf/deployment.toml", "");
    folder.write("lib/a.jar", "");
    folder.write("repository/deployment/server/synapse-configs/default/api/a.xml", "<api/>");
    folder.write("repository/deployment/server/synapse-configs/default/synapse.xml", "<definitions/>");
    folder.write("registry/config/b.txt", "b");
    let not_used = format!(
        "{}:1:1: warning: these parts of the home have no meaning here: `lib/*.jar` (1; Java code and libraries cannot be run)",
        folder.0.display()
    );
    check(
        &folder,
        "",
        &[
            "repository/deployment/server/synapse-configs/default/api/a.xml",
            "repository/deployment/server/synapse-configs/default/synapse.xml",
            "registry/config/b.txt = conf:b.txt -",
            &not_used,
        ],
    );
}

#[test]
fn a_plain_folder_says_once_what_it_leaves_out() {
    let folder = Folder::new("plain");
    folder.write("a.xml", "<api/>");
    folder.write("README.md", "");
    folder.write("broken.xml", "<api");
    folder.write("one.json", "{}");
    folder.write("two.json", "{}");
    folder.write("w.xml", "<other/>");
    check(
        &folder,
        "",
        &[
            "a.xml",
            "broken.xml",
            "w.xml:1:1: warning: ignored: XML that is not an artifact; resources belong into a folder `registry` or `resources` of a project",
            "one.json:1:1: warning: ignored (and 1 other file): not an artifact; resources belong into a folder `registry` or `resources` of a project",
        ],
    );
}

#[test]
fn a_missing_path_is_an_error_of_its_own() {
    let error = load(&["nowhere/at/all".into()]).unwrap_err();
    assert_eq!(error.to_string(), "`nowhere/at/all` does not exist");
}

#[test]
fn a_local_entry_may_name_a_file() {
    let folder = Folder::new("source");
    folder.write("e.xml", "<localEntry key='k' src='file:transform/t.xslt'/>");
    folder.write("transform/t.xslt", "<x/>");
    check(&folder, "e.xml", &["e.xml", "transform/t.xslt = transform/t.xslt -"]);
}

#[test]
fn api_projects_are_folders_archives_and_single_files() {
    let folder = Folder::new("api-projects");
    let descriptor = "type: api\ndata: {name: A}\n";
    folder.write("all/a/api.yaml", descriptor);
    folder.write("all/a/Definitions/swagger.yaml", "openapi: 3.0.1\n");
    folder.write("all/a/Endpoint-certificates/interceptors/ca.crt", "x");
    folder.write("all/a/Docs/notes.md", "for people");
    folder.write("all/a/api_meta.yaml", "name: A\n");
    folder.write("all/shop/api_product.yaml", "type: api_product\ndata: {name: S}\n");
    folder.write("all/shop/Docs/notes.md", "for people");
    folder.write("all/shop/APIs/A-1/api.yaml", descriptor);
    folder.write("all/shop/APIs/A-1/Docs/notes.md", "for people");
    folder.write("all/shop/APIs/A-1/Sequences/in-sequence/Custom/s.xml", "<sequence/>");
    folder.write("all/tools/mcp_server.yaml", "type: mcp_server\ndata: {name: T}\n");
    folder.write("all/tools/backends.yaml", "type: backends\n");
    folder.write("all/tools/backends", "x");
    folder.write("all/bare.json", "{\"openapi\": \"3.0.1\"}");
    folder.write("all/events.yaml", "asyncapi: 2.0.0\n");
    folder.write("all/other.yaml", "a: 1\n");
    folder.write("all/old/Meta-information/api.yaml", "id:\n  apiName: O\n  version: 1\ncontext: /o\n");
    folder.write("all/old/Meta-information/swagger.yaml", "swagger: '2.0'\n");
    folder.write("all/old/Image/icon.png", "x");
    let old = br#"{"id": {"apiName": "P", "version": "1"}, "context": "/p"}"#;
    folder.write(
        "all/old.zip",
        zip(&[("P-1/Meta-information/api.json", old), ("P-1/Meta-information/swagger.json", b"{}")]),
    );
    let entries: [(&str, &[u8]); 4] = [
        ("B-1.0.0/api.json", b"{\"type\": \"api\"}"),
        ("B-1.0.0/Image/icon.png", b"x"),
        ("B-1.0.0/Policies/p_v1.j2", b"<log/>"),
        ("B-1.0.0/Sequences/in-sequence/Custom/s.xml", b"<sequence/>"),
    ];
    folder.write("all/b.zip", zip(&entries));
    check(
        &folder,
        "all",
        &[
            "all/a Definitions/swagger.yaml Endpoint-certificates/interceptors/ca.crt api.yaml",
            "all/b.zip Policies/p_v1.j2",
            "all/b.zip Sequences/in-sequence/Custom/s.xml",
            "all/b.zip api.json",
            "all/old Meta-information/api.yaml Meta-information/swagger.yaml",
            "all/old.zip Meta-information/api.json",
            "all/old.zip Meta-information/swagger.json",
            "all/shop APIs/A-1/Sequences/in-sequence/Custom/s.xml APIs/A-1/api.yaml api_product.yaml",
            "all/tools backends.yaml mcp_server.yaml",
            "all/bare.json ",
            "all/events.yaml ",
            "all/other.yaml:1:1: warning: ignored: not an artifact; resources belong into a folder `registry` or `resources` \
             of a project",
        ],
    );
    folder.write("bad.zip", zip(&[("api.yaml", descriptor.as_bytes()), ("../../x", b"y")]));
    check(
        &folder,
        "bad.zip",
        &["bad.zip:1:1: error: not an API project: the archive is refused: the entry `../../x` points outside it"],
    );
}

#[test]
fn plain_definitions_beside_artifacts_are_documentation() {
    let folder = Folder::new("definitions");
    folder.write("flows/a.xml", "<api/>");
    folder.write("docs/backend.yaml", "openapi: 3.0.1\ninfo: {}\n");
    folder.write("docs/old.json", "{\"swagger\": \"2.0\"}");
    folder.write("apis/own.yaml", "openapi: 3.0.1\nx-wso2-basePath: /own\n");
    check(
        &folder,
        "",
        &[
            "apis/own.yaml ",
            "flows/a.xml",
            "docs/backend.yaml:1:1: warning: ignored (and 1 other file): an API definition beside integration artifacts is documentation; to serve it, name the file on the command line or give it extensions `x-wso2-…`",
        ],
    );
    check(&folder, "docs", &["docs/backend.yaml ", "docs/old.json "]);
    let loaded = load(&[folder.0.clone(), folder.0.join("docs/backend.yaml")]).unwrap();
    let lines = summary(&loaded, &folder.0);
    assert!(lines.contains(&"docs/backend.yaml ".to_owned()), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("docs/old.json:1:1: warning: ignored: ")), "{lines:?}");
}

#[test]
fn resources_that_a_registry_project_lists_are_not_left_out() {
    let folder = Folder::new("registry-project");
    folder.write("Configs/s.xml", "<sequence/>");
    folder.write(
        "Registry/artifact.xml",
        "<artifacts><artifact name='M' version='1' type='registry/resource'>\
         <item><file>M.dmc</file><path>/_system/governance/datamapper</path></item></artifact></artifacts>",
    );
    folder.write("Registry/M.dmc", "map");
    check(&folder, "", &["Configs/s.xml", "Registry/M.dmc = gov:datamapper/M.dmc -"]);
    folder.write("Registry/artifact.xml", "<artifacts>");
    let notes = load(std::slice::from_ref(&folder.0)).unwrap().notes;
    let start = "the resources it lists are not loaded: ";
    assert!(notes.iter().any(|note| note.message.starts_with(start)), "{notes:?}");
}

#[test]
fn a_folder_named_test_is_read_and_its_suites_are_not() {
    let folder = Folder::new("test-folder");
    folder.write("test/src/main/synapse-config/api/a.xml", "<api/>");
    folder.write("test/suite.xml", "<unit-test/>");
    folder.write("test/src/test/b.xml", "<api/>");
    check(&folder, "", &["test/src/main/synapse-config/api/a.xml"]);
}
