//! The XML of a suite, as Micro Integrator's editor writes it.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use penstock_compile::{Element, SourceDocument};
use penstock_engine::Place;
use penstock_xml::{Document, ParseOptions};

/// A suite: what is tested, with what around it, and the cases.
#[derive(Debug)]
pub struct Suite {
    /// The artifact under test.
    pub artifact: Reference,
    /// Artifacts it refers to.
    pub supportive: Vec<Reference>,
    /// Registry resources.
    pub resources: Vec<ResourceReference>,
    /// Connector archives.
    pub connectors: Vec<Reference>,
    /// Mock services.
    pub mocks: Vec<Reference>,
    /// The cases in order.
    pub cases: Vec<Case>,
}

/// A file by its path in the project.
#[derive(Debug, Clone)]
pub struct Reference {
    /// As the suite writes it.
    pub path: String,
    /// Where.
    pub at: Place,
}

/// A registry resource.
#[derive(Debug)]
pub struct ResourceReference {
    /// Its file.
    pub file: Reference,
    /// The file's name in the registry.
    pub name: String,
    /// The collection it belongs to.
    pub collection: String,
    /// Its media type.
    pub media_type: Option<String>,
}

/// One test case.
#[derive(Debug)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub at: Place,
    /// `request-path`: what follows the context.
    pub path: String,
    /// `request-method`.
    pub method: Option<String>,
    /// `request-protocol`: whether it comes over HTTPS.
    pub secure: bool,
    /// The payload.
    pub payload: Option<String>,
    /// Properties the message has before.
    pub properties: Vec<Property>,
    /// What must hold afterwards.
    pub assertions: Vec<Assertion>,
}

/// A property of the input.
#[derive(Debug)]
pub struct Property {
    /// Its name.
    pub name: String,
    /// Its scope; default when empty.
    pub scope: String,
    /// Its value.
    pub value: String,
}

/// One assertion.
#[derive(Debug)]
pub struct Assertion {
    /// The text it must equal; without one it must be there.
    pub expected: Option<String>,
    /// `$body`, `$ctx:name`, `$statusCode`, an expression.
    pub actual: String,
    /// What to say when it does not hold.
    pub message: String,
    /// Where it stands.
    pub at: Place,
}

/// A text that cannot be read, with the place and the reason.
pub type Broken = (Place, String);

/// Parses a file into elements.
pub fn source(path: &Path, bytes: Bytes) -> Result<SourceDocument, Broken> {
    let file: Arc<str> = path.display().to_string().into();
    match Document::parse(bytes, &ParseOptions::default()) {
        Ok(document) => Ok(SourceDocument::new(file, Arc::new(document))),
        Err(error) => {
            let at = Place { file, line: error.position.line, column: error.position.column };
            Err((at, format!("not well-formed XML: {}", error.message)))
        }
    }
}

/// Reads a suite.
pub fn suite(source: &SourceDocument) -> Result<Suite, Broken> {
    let nowhere = || Place { file: source.file.clone(), line: 1, column: 1 };
    let root = source.root().ok_or_else(|| (nowhere(), "the file is empty".to_owned()))?;
    if root.name() != "unit-test" {
        return Err((root.place(), format!("<{}> is not a unit-test suite; expected <unit-test>", root.name())));
    }
    let artifacts = root.child("artifacts").ok_or_else(|| missing(&root, "artifacts"))?;
    let tested = artifacts.child("test-artifact").ok_or_else(|| missing(&artifacts, "test-artifact"))?;
    let artifact = references(&tested, "artifact").into_iter().next();
    let inside = |name, entry| artifacts.child(name).map_or_else(Vec::new, |list| references(&list, entry));
    let resources = artifacts
        .elements("registry-resources")
        .flat_map(|list| list.elements("registry-resource").collect::<Vec<_>>());
    let cases = root.elements("test-cases").flat_map(|list| list.elements("test-case").collect::<Vec<_>>());
    Ok(Suite {
        artifact: artifact.ok_or_else(|| missing(&tested, "artifact"))?,
        supportive: inside("supportive-artifacts", "artifact"),
        resources: resources.filter_map(|el| resource(&el)).collect(),
        connectors: inside("connector-resources", "connector-resource"),
        mocks: root.child("mock-services").map_or_else(Vec::new, |list| references(&list, "mock-service")),
        cases: cases.map(|el| case(&el)).collect::<Result<_, _>>()?,
    })
}

fn missing(el: &Element<'_>, child: &str) -> Broken {
    (el.place(), format!("<{}> needs <{child}>", el.name()))
}

fn references(list: &Element<'_>, name: &str) -> Vec<Reference> {
    let found = list.children().filter(|child| child.name() == name);
    found
        .map(|el| Reference { path: el.text(), at: el.place() })
        .filter(|reference| !reference.path.is_empty())
        .collect()
}

fn resource(el: &Element<'_>) -> Option<ResourceReference> {
    let path = el.child_text("artifact").filter(|path| !path.is_empty())?;
    let file_name = || path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    Some(ResourceReference {
        name: el.child_text("file-name").filter(|name| !name.is_empty()).unwrap_or_else(file_name),
        collection: el.child_text("registry-path").unwrap_or_default(),
        media_type: el.child_text("media-type").filter(|text| !text.is_empty()),
        file: Reference { path, at: el.place() },
    })
}

fn case(el: &Element<'_>) -> Result<Case, Broken> {
    let input = el.child("input");
    let text = |name| input.and_then(|input| input.child_text(name)).filter(|text: &String| !text.is_empty());
    let properties = input.and_then(|input| input.child("properties"));
    let properties = properties.map_or_else(Vec::new, |list| list.elements("property").collect());
    let mut assertions = Vec::new();
    for child in el.child("assertions").into_iter().flat_map(|list| list.children().collect::<Vec<_>>()) {
        assertions.push(assertion(&child)?);
    }
    Ok(Case {
        name: el.attribute("name").unwrap_or("unnamed").to_owned(),
        at: el.place(),
        path: text("request-path").unwrap_or_default(),
        method: text("request-method").map(|method| method.to_uppercase()),
        secure: text("request-protocol").is_some_and(|protocol| protocol.eq_ignore_ascii_case("https")),
        payload: input.and_then(|input| input.child("payload")).map(|el| content(&el)).filter(|text| !text.is_empty()),
        properties: properties.iter().map(property).collect(),
        assertions,
    })
}

fn property(el: &Element<'_>) -> Property {
    let attribute = |name| el.attribute(name).unwrap_or_default().to_owned();
    Property { name: attribute("name"), scope: attribute("scope"), value: attribute("value") }
}

fn assertion(el: &Element<'_>) -> Result<Assertion, Broken> {
    let expected = match el.name() {
        "assertEquals" => Some(el.child("expected").map(|child| content(&child)).unwrap_or_default()),
        "assertNotNull" => None,
        other => {
            return Err((
                el.place(),
                format!("<{other}> is not an assertion; there are <assertEquals> and <assertNotNull>"),
            ));
        }
    };
    let actual = el.child_text("actual").filter(|text| !text.is_empty()).ok_or_else(|| missing(el, "actual"))?;
    Ok(Assertion { expected, actual, message: el.child_text("message").unwrap_or_default(), at: el.place() })
}

/// What stands inside an element: its text, or the XML that was written without escaping it.
pub fn content(el: &Element<'_>) -> String {
    match el.children().next() {
        Some(child) => String::from_utf8_lossy(&child.to_xml()).into_owned(),
        None => el.text(),
    }
}
