//! From paths to [`Input`]s: archives, folders of every known layout, single files.
//!
//! The loader reads files and says what each is; what an artifact means is the compiler's business. Nothing is left
//! out silently: what a user would expect to be served and is not, is a note with its place.
//!
//! Start reading at [`load`], then `tree.rs` (folders), `archive.rs` (`.car`), `api_project.rs`
//! (API projects), `registry.rs` (keys of resources).

mod api_project;
mod archive;
mod connector;
mod descriptor;
mod files;
mod registry;
mod sniff;
pub mod standard_input;
mod tree;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use penstock_compile::{Diagnostic, Input, InputKind, Severity};
use penstock_engine::Place;

use crate::adapter::store::Kept;
pub use files::KnownFiles;
pub use sniff::{is_clutter_folder, is_editors};
pub use tree::is_home;

/// A single artifact or resource larger than this is a mistake: configuration is text that people write.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// All inputs of one start together; more would not be configuration either.
const TOTAL_BYTES_MAX: u64 = 1 << 30;

/// An archive is read whole: its directory stands at its end.
const ARCHIVE_BYTES_MAX: u64 = 512 << 20;

/// What was found under the given paths.
#[derive(Debug, Default)]
pub struct Loaded {
    /// What takes part in the compilation, in the order found.
    pub inputs: Vec<Input>,
    /// What there is to say about the files themselves.
    pub notes: Vec<Diagnostic>,
    /// The Carbon applications.
    pub applications: Vec<Application>,
    /// The connectors, those that cannot run included.
    pub connectors: Vec<Connector>,
}

/// A Carbon application that was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    /// What its `artifacts.xml` calls it.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The archive, `outer.car!inner.car` inside another one.
    pub file: String,
    /// The names and types (`synapse/api`) of its artifacts.
    pub artifacts: Vec<(String, String)>,
}

/// A connector that was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connector {
    /// Its name.
    pub name: String,
    /// The package that its `connector.xml` writes.
    pub package: String,
    /// Its description.
    pub description: String,
}

/// A path that was given and cannot be read.
#[derive(Debug)]
pub struct LoadError {
    /// The path as given.
    pub path: PathBuf,
    /// What the system said.
    pub cause: io::Error,
}

impl fmt::Display for LoadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause.kind() {
            _ if standard_input::is_named(&self.path) => write!(out, "standard input cannot be read: {}", self.cause),
            io::ErrorKind::NotFound => write!(out, "`{}` does not exist", self.path.display()),
            io::ErrorKind::PermissionDenied => write!(out, "`{}` may not be read by this user", self.path.display()),
            _ => write!(out, "`{}` cannot be read: {}", self.path.display(), self.cause),
        }
    }
}

impl std::error::Error for LoadError {}

/// Reads everything under the paths. Fails only when a given path itself cannot be read; any problem below is a
/// note.
pub fn load(paths: &[PathBuf]) -> Result<Loaded, LoadError> {
    load_with(paths, &[], &KnownFiles::default())
}

/// Reads an archive of an API project.
pub fn archive(name: &str, bytes: Bytes) -> Loaded {
    let mut loader = Loader::default();
    loader.kept(name, bytes);
    loader.finish()
}

/// The files of a zip archive, within the limits of all archives: path and content of each.
pub fn unzip(name: &str, bytes: Bytes) -> Result<Vec<(String, Bytes)>, String> {
    let mut archive = archive::Archive::open(name.to_owned(), bytes)?;
    let names = archive.names();
    let read = |entry: String| {
        let (_, content) = archive.read(&entry).map_err(|(_, message)| message)?;
        Ok((entry.replace('\\', "/"), content))
    };
    names.into_iter().map(read).collect()
}

/// Reads everything under the paths, and deployed APIs. Files of API projects are read when they are compiled.
pub fn load_with(paths: &[PathBuf], kept: &[Kept], known: &KnownFiles) -> Result<Loaded, LoadError> {
    let mut loader = Loader { known: known.clone(), ..Loader::default() };
    for path in paths {
        let failed = |cause| LoadError { path: path.clone(), cause };
        if standard_input::is_named(path) {
            loader.standard_input().map_err(failed)?;
            continue;
        }
        let metadata = std::fs::metadata(path).map_err(failed)?;
        if metadata.is_dir() {
            std::fs::read_dir(path).map_err(failed)?;
            loader.roots.push(path.clone());
            let before = loader.loaded.inputs.len();
            loader.folder(path, 0);
            let found = &loader.loaded.inputs[before..];
            let has_artifacts = found.iter().any(|input| input.kind == InputKind::Artifact);
            loader.plain_definitions(has_artifacts);
        } else {
            std::fs::File::open(path).map_err(failed)?;
            loader.given_file(path);
        }
    }
    for archive in kept {
        loader.kept(&archive.file.display().to_string(), archive.bytes.clone());
    }
    Ok(loader.finish())
}

/// A registry resource by itself, under every key that artifacts may write. `collection` is `/_system/…`.
pub fn resource(file: &str, bytes: Bytes, collection: &str, name: &str, media_type: Option<String>) -> Vec<Input> {
    let mut loader = Loader::default();
    let collection = registry::key_of(collection).unwrap_or_else(|| collection.trim_matches('/').to_owned());
    let about = registry::About { media_type, properties: Vec::new() };
    loader.resource(file, bytes, registry::join(&collection, name), about);
    loader.loaded.inputs
}

/// The resources of a folder that is a registry, and what there is to say about its files.
pub fn registry_folder(folder: &Path) -> Loaded {
    let mut loader = Loader::default();
    loader.registry_root(folder);
    loader.finish()
}

/// The state of one load.
#[derive(Default)]
struct Loader {
    loaded: Loaded,
    total_bytes: u64,
    full: bool,
    /// Homes and given folders: what `file:` of a local entry is relative to.
    roots: Vec<PathBuf>,
    /// Files already read, so that a folder given twice, or a descriptor that names a file of its own folder, counts once.
    seen: HashSet<PathBuf>,
    /// What files are, from the loads before.
    known: KnownFiles,
    /// API definitions of the folder being read that have no extensions of WSO2.
    plain_definitions: Vec<PathBuf>,
    /// Those that stand beside integration artifacts.
    documentation: Vec<PathBuf>,
    /// What was left out, by the reason.
    left_out: BTreeMap<&'static str, Vec<PathBuf>>,
    /// Carbon applications, and the archive each came from. One name and version is taken once.
    applications: HashMap<descriptor::Identity, String>,
}

impl Loader {
    fn finish(mut self) -> Loaded {
        self.connectors();
        self.named_sources();
        self.report_documentation();
        for (reason, files) in std::mem::take(&mut self.left_out) {
            let Some(first) = files.first() else { continue };
            let others = match files.len() {
                1 => String::new(),
                2 => " (and 1 other file)".to_owned(),
                count => format!(" (and {} other files)", count - 1),
            };
            self.warning(&first.display().to_string(), format!("ignored{others}: {reason}"));
        }
        self.loaded
    }

    /// Files that local entries name by `src="file:…"`: in the home or the given folder, beside the artifact, or in the
    /// working directory.
    fn named_sources(&mut self) {
        let mut named = Vec::new();
        for input in self.loaded.inputs.iter().filter(|input| input.kind == InputKind::Artifact) {
            let folder = Path::new(&*input.file).parent().unwrap_or(Path::new("")).to_owned();
            for name in sniff::file_sources(&input.bytes) {
                let relative = name.trim_start_matches("./");
                let candidates = self.roots.iter().map(|root| root.join(relative));
                let candidates = candidates.chain([folder.join(relative), PathBuf::from(&name)]);
                let found: Option<PathBuf> = candidates.into_iter().find(|path| path.is_file());
                if let Some(path) = found {
                    named.push((name, path));
                }
            }
        }
        named.sort();
        named.dedup();
        for (name, path) in named {
            if let Some(bytes) = self.read(&path, FILE_BYTES_MAX) {
                let kind = InputKind::Resource { key: name, media_type: None, properties: Vec::new() };
                self.input(&path.display().to_string(), bytes, kind);
            }
        }
    }

    fn note(&mut self, severity: Severity, at: Place, message: String) {
        self.loaded.notes.push(Diagnostic { severity, at, message });
    }

    fn error(&mut self, file: &str, message: impl Into<String>) {
        self.note(Severity::Error, start_of(file), message.into());
    }

    fn warning(&mut self, file: &str, message: impl Into<String>) {
        self.note(Severity::Warning, start_of(file), message.into());
    }

    fn leave_out(&mut self, path: &Path, reason: &'static str) {
        self.left_out.entry(reason).or_default().push(path.to_owned());
    }

    /// The bytes of a file, within the limits; a note when they cannot be had.
    fn read(&mut self, path: &Path, bytes_max: u64) -> Option<Bytes> {
        let file = path.display().to_string();
        let read = std::fs::File::open(path).and_then(|opened| {
            let mut bytes = Vec::new();
            opened.take(bytes_max + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        });
        match read {
            Ok(bytes) if bytes.len() as u64 > bytes_max => {
                self.error(&file, format!("larger than {} MiB, the limit for one file", bytes_max >> 20));
                None
            }
            Ok(bytes) => Some(Bytes::from(bytes)),
            Err(cause) => {
                self.error(&file, format!("cannot be read: {cause}"));
                None
            }
        }
    }

    /// Whether a file has been read already.
    fn is_loaded(&self, path: &Path) -> bool {
        std::fs::canonicalize(path).is_ok_and(|real| self.seen.contains(&real))
    }

    /// Whether a file is met for the first time.
    fn first_time(&mut self, path: &Path) -> bool {
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        self.seen.insert(real)
    }

    fn artifact(&mut self, file: &str, bytes: Bytes) {
        self.input(file, bytes, InputKind::Artifact);
    }

    fn resource(&mut self, file: &str, bytes: Bytes, key: String, about: registry::About) {
        let registry::About { media_type, properties } = about;
        // Micro Integrator keeps `resources:x` at `gov:mi-resources/x`; artifacts use either.
        if let Some(path) = key.strip_prefix("gov:mi-resources/") {
            let key = format!("resources:{path}");
            let kind = InputKind::Resource { key, media_type: media_type.clone(), properties: properties.clone() };
            self.input(file, bytes.clone(), kind);
        } else if let Some(path) = key.strip_prefix("resources:") {
            let key = format!("gov:mi-resources/{path}");
            let kind = InputKind::Resource { key, media_type: media_type.clone(), properties: properties.clone() };
            self.input(file, bytes.clone(), kind);
        }
        self.input(file, bytes, InputKind::Resource { key, media_type, properties });
    }

    fn input(&mut self, file: &str, bytes: Bytes, kind: InputKind) {
        self.total_bytes += bytes.len() as u64;
        if self.total_bytes > TOTAL_BYTES_MAX {
            if !std::mem::replace(&mut self.full, true) {
                let limit = TOTAL_BYTES_MAX >> 20;
                self.error(
                    file,
                    format!("all files together are larger than {limit} MiB; this one and those after it are ignored"),
                );
            }
            return;
        }
        self.loaded.inputs.push(Input { file: Arc::from(file), bytes, kind });
    }
}

fn start_of(file: &str) -> Place {
    Place { file: Arc::from(file), line: 1, column: 1 }
}

#[cfg(test)]
mod tests;
