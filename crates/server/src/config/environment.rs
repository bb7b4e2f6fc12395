//! What flows and configuration may read of their surroundings: environment variables, `.env`, `file.properties`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use penstock_catalog::{AwsIdentity, Secret};

use super::properties;
use super::settings::Settings;

/// The values, and where they came from.
#[derive(Debug, Default, Clone)]
pub struct Surroundings {
    /// Environment variables. What the process was started with wins over `.env`.
    pub variables: HashMap<String, String>,
    /// `file.properties`.
    pub file: HashMap<String, String>,
    /// Files that were read.
    pub sources: Vec<PathBuf>,
}

impl Surroundings {
    /// Values for `$SYSTEM:NAME`, `$FILE:NAME` and `${configs.NAME}`. The file wins: it was written for this.
    pub fn configurables(&self) -> HashMap<String, String> {
        let mut values = self.variables.clone();
        values.extend(self.file.iter().map(|(name, value)| (name.clone(), value.clone())));
        values
    }
}

/// Who invokes functions of AWS, and where, as its own tools find it in the environment.
pub fn take_aws(settings: &mut Settings, variables: &HashMap<String, String>) {
    let text = |name: &str| variables.get(name).map(String::as_str).filter(|text| !text.is_empty());
    let aws = &mut Arc::make_mut(&mut settings.gateway).upstream.aws;
    if let Some(region) = text("AWS_REGION").or_else(|| text("AWS_DEFAULT_REGION")) {
        aws.region.get_or_insert_with(|| region.into());
    }
    if let (Some(key_id), Some(key)) = (text("AWS_ACCESS_KEY_ID"), text("AWS_SECRET_ACCESS_KEY")) {
        let session = text("AWS_SESSION_TOKEN").map(|session| Secret(session.into()));
        aws.identity = Some(AwsIdentity { key_id: key_id.into(), key: Secret(key.into()), session });
    }
}

/// Reads the files beside the given paths, in the working directory, and in `conf` below both.
pub fn surroundings(paths: &[PathBuf]) -> Surroundings {
    let mut folders = vec![PathBuf::from(".")];
    for path in paths {
        let folder = if path.is_dir() { Some(path.as_path()) } else { path.parent() };
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folders.iter().any(|known| known == folder) {
            folders.push(folder.to_owned());
        }
    }
    let mut found = Surroundings::default();
    let mut seen = std::collections::HashSet::new();
    for folder in &folders {
        for name in ["file.properties", "conf/file.properties", ".env", "conf/.env"] {
            let path = folder.join(name);
            let real = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            if !seen.insert(real) {
                continue;
            }
            if name.ends_with(".env") {
                found.variables.extend(properties::parse_env(&text));
            } else {
                found.file.extend(properties::parse(&text));
            }
            found.sources.push(path);
        }
    }
    found.variables.extend(
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
    );
    found
}
