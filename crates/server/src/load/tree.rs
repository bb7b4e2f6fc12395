//! Folders: the layouts of the editors and of Micro Integrator server, and plain collections of artifacts.

use std::path::{Path, PathBuf};

use super::{Loader, registry, sniff};

/// Folders inside folders inside folders: deeper is a loop of links.
const DEPTH_MAX: usize = 32;

/// The artifacts of one start. More files than this is the wrong folder.
const FILES_MAX: usize = 50_000;

/// Where the editor for VS Code keeps a project's sources.
const PROJECT: &str = "src/main/wso2mi";

/// Where the server of Micro Integrator keeps its artifacts, below its home.
const DEPLOYMENT: &str = "repository/deployment/server";

/// Parts of a home that have no meaning here, and what has in place of them.
const NOT_USED: [(&str, &str, &str); 6] = [
    ("conf", "log4j2.properties", "log lines are set by `--log-level` and `--log-format`"),
    ("conf", "synapse.properties", "its flags belong into `[mediation]` of `conf/deployment.toml`"),
    ("lib", "jar", JAVA),
    ("dropins", "jar", JAVA),
    ("repository/components/dropins", "jar", JAVA),
    ("repository/deployment/server/axis2services", "aar", JAVA),
];

/// Whether a folder is the home of a Micro Integrator.
pub fn is_home(folder: &Path) -> bool {
    folder.join(DEPLOYMENT).is_dir()
}

const FOREIGN_XML: &str =
    "XML that is not an artifact; resources belong into a folder `registry` or `resources` of a project";
const FOREIGN_RESOURCE: &str = "not an artifact; resources belong into a folder `registry` or `resources` of a project";
const JAVA: &str = "Java code and libraries cannot be run";
const CONNECTOR: &str = super::connector::NO_CONNECTOR;
const UNKNOWN: &str = "not a kind of file that can be served";

impl Loader {
    /// A file that was named by itself.
    pub(super) fn given_file(&mut self, path: &Path) {
        match extension(path).as_str() {
            "car" => self.archive_file(path),
            "xml" | "dbs" => self.artifact_file(path, true),
            "zip" => self.zip_file(path, CONNECTOR),
            "json" | "yaml" | "yml" if self.definition_file(path) => {}
            "properties" | "env" | "toml" => {
                // Read for values by the configuration, see `config`.
            }
            "xslt" | "xsl" | "xsd" | "wsdl" | "json" | "yaml" | "yml" | "js" | "txt" | "csv" | "dmc" => {
                self.loose_resource(path)
            }
            _ => match self.read(path, super::FILE_BYTES_MAX) {
                Some(bytes) if penstock_xml::root_name(&bytes).is_some() => self.artifact_file(path, true),
                _ => self.error(&path.display().to_string(), "neither an artifact nor a Carbon application (.car)"),
            },
        }
    }

    /// A resource that was named by itself goes by its file name, as the other artifacts would write it.
    fn loose_resource(&mut self, path: &Path) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        self.resource_file(path, format!("resources:{name}"), None);
    }

    fn artifact_file(&mut self, path: &Path, given: bool) {
        if !self.first_time(path) {
            return;
        }
        let Some(bytes) = self.read(path, super::FILE_BYTES_MAX) else { return };
        match penstock_xml::root_name(&bytes) {
            // A file that was named, or cannot be understood, is the compiler's to complain about.
            Some(root) if !given && sniff::is_of_tests(&root) => {}
            Some(root) if !given && !sniff::is_artifact(&root, &bytes) => self.leave_out(path, FOREIGN_XML),
            _ => self.artifact(&path.display().to_string(), bytes),
        }
    }

    /// A folder of any layout.
    pub(super) fn folder(&mut self, folder: &Path, depth: usize) {
        if depth > DEPTH_MAX {
            return self.error(&folder.display().to_string(), format!("folders are nested deeper than {DEPTH_MAX}"));
        }
        if registry::is_root(folder) {
            return self.registry_root(folder);
        }
        if self.is_project(folder) {
            return self.project_folder(folder);
        }
        let project = folder.join(PROJECT);
        if project.is_dir() {
            self.named_connectors(folder);
            return self.project(&project);
        }
        if is_home(folder) {
            return self.server_home(folder, &folder.join(DEPLOYMENT));
        }
        self.described_resources(folder);
        for path in self.sorted(folder) {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if path.is_dir() {
                if !sniff::is_clutter_folder(&path) {
                    self.folder(&path, depth + 1);
                }
            } else if !sniff::is_clutter(name) {
                self.found_file(&path);
            }
            if self.seen.len() > FILES_MAX {
                let message = format!("more than {FILES_MAX} files; this does not look like a folder of artifacts");
                return self.error(&folder.display().to_string(), message);
            }
        }
    }

    fn found_file(&mut self, path: &Path) {
        match extension(path).as_str() {
            "car" => self.archive_file(path),
            "xml" | "dbs" => self.artifact_file(path, false),
            "java" | "class" | "jar" => self.leave_out(path, JAVA),
            "zip" => self.zip_file(path, CONNECTOR),
            "properties" | "env" | "toml" => {}
            // A resource that the `artifact.xml` of a registry project names.
            _ if self.is_loaded(path) => {}
            "json" | "yaml" | "yml" if self.found_definition(path) => {}
            "xslt" | "xsl" | "xsd" | "wsdl" | "json" | "yaml" | "yml" | "js" | "dmc" | "xquery" | "xq" => {
                self.leave_out(path, FOREIGN_RESOURCE);
            }
            _ => self.leave_out(path, UNKNOWN),
        }
    }

    /// A project of the editor for VS Code: artifacts by kind, resources by key.
    fn project(&mut self, sources: &Path) {
        let artifacts = sources.join("artifacts");
        if artifacts.is_dir() {
            self.folder(&artifacts, 0);
        }
        let resources = sources.join("resources");
        if !resources.is_dir() {
            return;
        }
        let registry = resources.join("registry");
        if registry.is_dir() {
            self.described_resources(&registry);
            self.registry_root(&registry);
        }
        for path in self.sorted(&resources) {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            match name {
                // Handled above, and what only the editor reads.
                "registry" | "metadata" | "artifact.xml" => {}
                "connectors" => {
                    for connector in self.sorted(&path) {
                        if extension(&connector) == "zip" {
                            self.leave_out(&connector, CONNECTOR);
                        }
                    }
                }
                _ if path.is_dir() && !name.starts_with('.') => self.collection(&path, &format!("resources:{name}"), 0),
                _ if !path.is_dir() && !sniff::is_clutter(name) => {
                    self.resource_file(&path, format!("resources:{name}"), None)
                }
                _ => {}
            }
        }
    }

    /// The home of a Micro Integrator; its `conf/deployment.toml` and `conf/file.properties` are read by `config`.
    fn server_home(&mut self, home: &Path, server: &Path) {
        self.roots.push(home.to_owned());
        let data_sources = home.join("conf/datasources");
        if data_sources.is_dir() {
            for path in self.sorted(&data_sources) {
                if extension(&path) == "xml" {
                    self.artifact_file(&path, true);
                }
            }
        }
        self.not_used(home);
        for part in ["synapse-configs", "carbonapps", "dataservices", "synapse-libs"] {
            let inside = server.join(part);
            if inside.is_dir() {
                self.folder(&inside, 1);
            }
        }
        let registry = home.join("registry");
        if registry.is_dir() {
            self.registry_root(&registry);
        }
    }

    /// Reports the parts of a home that have no meaning here, all at once.
    fn not_used(&mut self, home: &Path) {
        let mut parts = Vec::new();
        for (folder, name, reason) in NOT_USED {
            let inside = home.join(folder);
            let count = match std::fs::read_dir(&inside) {
                Ok(entries) => entries.flatten().map(|entry| entry.path()).filter(|path| is_called(path, name)).count(),
                Err(_) => 0,
            };
            match count {
                0 => {}
                _ if name.contains('.') => parts.push(format!("`{folder}/{name}` ({reason})")),
                _ => parts.push(format!("`{folder}/*.{name}` ({count}; {reason})")),
            }
        }
        if !parts.is_empty() {
            let message = format!("these parts of the home have no meaning here: {}", parts.join(", "));
            self.warning(&home.display().to_string(), message);
        }
    }

    /// What a folder holds, sorted so that every start says the same.
    pub(super) fn sorted(&mut self, folder: &Path) -> Vec<PathBuf> {
        let listed = std::fs::read_dir(folder)
            .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect());
        match listed {
            Ok(mut paths) => {
                let paths: &mut Vec<PathBuf> = &mut paths;
                paths.sort();
                std::mem::take(paths)
            }
            Err(cause) => {
                self.error(&folder.display().to_string(), format!("cannot be read: {cause}"));
                Vec::new()
            }
        }
    }
}

/// Whether a file has that name, or that ending.
fn is_called(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|own| own == name) || extension(path) == name
}

fn extension(path: &Path) -> String {
    path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}
