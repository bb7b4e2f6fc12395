//! Every schema of the example integrations compiles, or is one of those that are known to be invalid.

use std::path::{Path, PathBuf};

use penstock_xsd::{Resolver, Schema, SchemaSource};

struct Folder(PathBuf);

impl Resolver for Folder {
    /// The examples were made unique by a suffix: of those that begin with the name, the one for the namespace is meant.
    fn resolve(&self, location: &str, _base: &str, namespace: Option<&str>) -> Option<SchemaSource> {
        let stem = Path::new(location).file_stem()?.to_string_lossy().into_owned();
        let wanted = format!("targetNamespace=\"{}\"", namespace.unwrap_or_default());
        let mut candidates: Vec<PathBuf> =
            std::fs::read_dir(&self.0).ok()?.filter_map(|one| Some(one.ok()?.path())).collect();
        candidates.retain(|path| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            *name == *stem || name.starts_with(&format!("{stem}__"))
        });
        candidates.sort();
        let fits = |path: &&PathBuf| std::fs::read_to_string(path).is_ok_and(|text| text.contains(&wanted));
        let path = candidates.iter().find(fits).or(candidates.first())?;
        Some(SchemaSource::new(path.file_name()?.to_string_lossy(), std::fs::read(path).ok()?))
    }
}

/// Documents that name what nothing declares, nest what must not be nested, or are wrong in syntax; Xerces refuses them too.
const WRONG: [&str; 10] = [
    "4_1_1_1_10_Proxy_PublishWSDLInline__ece5c97b.xsd",
    "SimpleStockQuoteSchema2.xsd",
    "db_mediators.xsd",
    "delay-wsdl.xsd",
    "entitlement.xsd",
    "rm_sequence.xsd",
    "testconfig__595cd37e.xsd",
    "throttle.xsd",
    "validate2__bbabfd2e.xsd",
    "validateSchema.xsd",
];

#[test]
#[ignore = "reads ../shared; .ci/run runs it where the folder is"]
fn corpus_schemas_compile() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/mi/xsd");
    let entries = std::fs::read_dir(&folder).unwrap();
    let resolver = Folder(folder.clone());
    let mut failed = Vec::new();
    let (mut count, mut wrong) = (0, 0);
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let content = std::fs::read(&path).unwrap();
        count += 1;
        if let Err(errors) = Schema::compile(&[SchemaSource::new(&*name, content)], &resolver) {
            if !WRONG.contains(&errors[0].uri.as_str()) {
                failed.push(errors[0].to_string());
            }
            wrong += 1;
        }
    }
    eprintln!("{} of {count} compile", count - wrong);
    assert_eq!(failed, Vec::<String>::new());
}
