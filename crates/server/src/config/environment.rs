//! What flows and configuration may read of their surroundings: environment variables, `.env`, `file.properties`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::properties;

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
