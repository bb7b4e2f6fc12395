//! API projects: folders and zip archives of `apictl`, and API definitions that stand by themselves.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use penstock_compile::{ApiFiles, InputKind};

use super::archive::Archive;
use super::files::{FolderFiles, Question};
use super::{ARCHIVE_BYTES_MAX, Loader, sniff};

/// The names the descriptor of a project may have.
const DESCRIPTORS: [&str; 9] = [
    "api.yaml",
    "api.yml",
    "api.json",
    "mcp_server.yaml",
    "mcp_server.yml",
    "mcp_server.json",
    "api_product.yaml",
    "api_product.yml",
    "api_product.json",
];

/// The folder in which exports of API Manager 2 and 3 have their descriptor.
const OLD_FOLDER: &str = "Meta-information/";

/// Files beside it that are read with any extension.
const BESIDE: [&str; 4] = ["deployment_environments", "backends", "api_params", "params"];

/// The folder with the APIs of a product, a project each.
const APIS: &str = "APIs";

/// Folders of a project that a gateway reads; documents, pictures and the rest are for portals.
const FOLDERS: [&str; 7] = [
    "Definitions",
    "Meta-information",
    "Policies",
    "Sequences",
    "Client-certificates",
    "Endpoint-certificates",
    "Deployment",
];

/// Folders inside those folders: `APIs/NAME/Sequences/in-sequence/Custom` is the deepest there is.
const DEPTH_MAX: usize = 6;

const PLAIN_DEFINITION: &str = "an API definition beside integration artifacts is documentation; to serve it, \
                                name the file on the command line or give it extensions `x-wso2-…`";

/// Folders around a project in an archive.
const ROOT_DEPTH_MAX: usize = 3;

/// Whether a file of a project is read, by its path inside the project.
fn is_read(path: &str) -> bool {
    let of_product = path.strip_prefix(APIS).and_then(|path| path.strip_prefix('/'));
    match of_product {
        Some(path) => path.split_once('/').is_some_and(|(_, path)| is_read_of_api(path)),
        None => is_read_of_api(path),
    }
}

/// The same, by its path inside the project of an API.
fn is_read_of_api(path: &str) -> bool {
    match path.split_once('/') {
        Some((folder, rest)) => {
            FOLDERS.contains(&folder) && !sniff::is_editors(rest.rsplit('/').next().unwrap_or(rest))
        }
        None => {
            let stem = path.split('.').next().unwrap_or_default();
            DESCRIPTORS.contains(&path) || (stem != path && BESIDE.contains(&stem))
        }
    }
}

/// The folder of an archive that is the project: the outermost one with a descriptor. `apictl` puts everything below one
/// folder; a person may not, or more than one. What macOS and editors leave beside it is none.
fn root<'n>(names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let found = names.filter_map(|name| {
        let (folder, file) = name.split_at(name.rfind('/').map_or(0, |slash| slash + 1));
        let is_other = folder.split('/').any(|part| part.starts_with('.') || part == "__MACOSX");
        let outer = folder.strip_suffix(OLD_FOLDER).filter(|outer| outer.is_empty() || outer.ends_with('/'));
        (DESCRIPTORS.contains(&file) && !is_other).then_some(outer.unwrap_or(folder))
    });
    found
        .min_by_key(|folder| folder.matches('/').count())
        .filter(|folder| folder.matches('/').count() <= ROOT_DEPTH_MAX)
}

impl Loader {
    /// Whether a folder is a project: its descriptor describes an API.
    pub(super) fn is_project(&self, folder: &Path) -> bool {
        let is_descriptor = |name: &str| self.known.ask(&folder.join(name), Question::Descriptor);
        DESCRIPTORS.iter().any(|name| is_descriptor(name) || is_descriptor(&format!("{OLD_FOLDER}{name}")))
    }

    /// Loads a project folder.
    pub(super) fn project_folder(&mut self, folder: &Path) {
        let mut files = Vec::new();
        self.project_files(folder, "", &mut files, 0);
        let files = FolderFiles::of_project(folder, files);
        self.api_files(&folder.display().to_string(), files);
    }

    fn api_files(&mut self, name: &str, files: FolderFiles) {
        self.input(name, Bytes::new(), InputKind::ApiFiles(ApiFiles(Arc::new(files))));
    }

    fn project_files(&mut self, folder: &Path, inside: &str, files: &mut Vec<(String, PathBuf)>, depth: usize) {
        if depth > DEPTH_MAX {
            return self.error(&folder.display().to_string(), format!("folders are nested deeper than {DEPTH_MAX}"));
        }
        for path in self.sorted(folder) {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let inside = if inside.is_empty() { name.to_owned() } else { format!("{inside}/{name}") };
            if path.is_dir() {
                if depth > 0 || name == APIS || FOLDERS.contains(&name) {
                    self.project_files(&path, &inside, files, depth + 1);
                }
            } else if is_read(&inside) && self.first_time(&path) {
                files.push((inside, path));
            }
        }
    }

    /// Loads a zip archive. One that is no project is a connector.
    pub(super) fn zip_file(&mut self, path: &Path, otherwise: &'static str) {
        if !self.first_time(path) {
            return;
        }
        let Some(bytes) = self.read(path, ARCHIVE_BYTES_MAX) else { return };
        if !self.zipped_project(path.display().to_string(), bytes) {
            self.leave_out(path, otherwise);
        }
    }

    /// Loads an archive that must be a project.
    pub(super) fn kept(&mut self, name: &str, bytes: Bytes) {
        if !self.zipped_project(name.to_owned(), bytes) {
            self.error(name, "not an API project: the archive has no `api.yaml`");
        }
    }

    /// Loads a project from an archive; whether it is one, or is broken and that was said.
    pub(super) fn zipped_project(&mut self, archive_name: String, bytes: Bytes) -> bool {
        let mut archive = match Archive::open(archive_name.clone(), bytes) {
            Ok(archive) => archive,
            Err(reason) => {
                self.error(&archive_name, format!("not an API project: {reason}"));
                return true;
            }
        };
        // Old programs of Windows separate folders as Windows does.
        let names: Vec<(String, String)> =
            archive.names().into_iter().map(|entry| (entry.replace('\\', "/"), entry)).collect();
        let Some(root) = root(names.iter().map(|(name, _)| name.as_str())) else { return false };
        for (name, entry) in &names {
            let Some(inside) = name.strip_prefix(root).filter(|inside| is_read(inside)) else { continue };
            match archive.read(entry) {
                Ok((file, bytes)) => {
                    let kind = InputKind::Api { project: archive_name.as_str().into(), path: inside.to_owned() };
                    self.input(&file, bytes, kind);
                }
                Err((at, message)) => self.note(penstock_compile::Severity::Error, at, message),
            }
        }
        true
    }

    /// A definition or descriptor in a folder; `false` when the file is none. Whether a definition without extensions is an
    /// API to serve is decided when the whole folder is read.
    pub(super) fn found_definition(&mut self, path: &Path) -> bool {
        if !self.known.ask(path, Question::Api) {
            return false;
        }
        if self.known.ask(path, Question::ForGateway) {
            return self.definition_file(path);
        }
        self.plain_definitions.push(path.to_owned());
        true
    }

    /// Loads the plain definitions of a folder with nothing else to serve; beside integration artifacts they document
    /// backends, and serving them would open these to clients.
    pub(super) fn plain_definitions(&mut self, has_artifacts: bool) {
        for path in std::mem::take(&mut self.plain_definitions) {
            match has_artifacts {
                true => self.documentation.push(path),
                false => drop(self.definition_file(&path)),
            }
        }
    }

    /// Reports the definitions that are taken for documentation and were not named by themselves.
    pub(super) fn report_documentation(&mut self) {
        for path in std::mem::take(&mut self.documentation) {
            if !self.is_loaded(&path) {
                self.leave_out(&path, PLAIN_DEFINITION);
            }
        }
    }

    /// A definition or descriptor that stands by itself; `false` when the file is none.
    pub(super) fn definition_file(&mut self, path: &Path) -> bool {
        if !self.known.ask(path, Question::Api) {
            return false;
        }
        if self.first_time(path) {
            self.api_files(&path.display().to_string(), FolderFiles::of_definition(path));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::root;

    #[test]
    fn the_outermost_descriptor_says_where_a_project_is() {
        for (names, expected) in [
            (&["api.yaml", "Definitions/swagger.yaml", "Docs/FileContents/api.yaml"][..], Some("")),
            (&[".DS_Store", "__MACOSX/shop/._api.yaml", "__MACOSX/api.yaml", "shop/api.yaml"], Some("shop/")),
            (&["out/Shop-1.0.0/APIs/A-1/api.yaml", "out/Shop-1.0.0/api_product.yaml"], Some("out/Shop-1.0.0/")),
            (&["a/b/c/d/api.yaml"], None),
            (&["connector.xml", "mail/component.xml"], None),
        ] {
            assert_eq!(root(names.iter().copied()), expected, "{names:?}");
        }
    }
}
