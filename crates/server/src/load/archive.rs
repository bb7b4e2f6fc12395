//! Carbon applications: a zip with `artifacts.xml`, and a folder with `artifact.xml` for each artifact.

use std::collections::HashSet;
use std::io::{Cursor, Read};
use std::path::Path;

use bytes::Bytes;
use penstock_compile::Severity;
use zip::ZipArchive;

use super::descriptor::{self, Broken};
use super::registry::{self, About};
use super::{ARCHIVE_BYTES_MAX, Application, FILE_BYTES_MAX, Loader};

/// Entries of one archive. Applications have hundreds.
const ENTRIES_MAX: usize = 20_000;

/// What all entries of one archive unpack to.
const UNPACKED_BYTES_MAX: u64 = 512 << 20;

/// Archives inside archives: an application may carry others it depends on, those do not.
const NESTED_MAX: usize = 2;

/// Types whose file is Synapse XML.
const ARTIFACTS: [&str; 13] = [
    "synapse/api",
    "synapse/endpoint",
    "synapse/sequence",
    "synapse/proxy-service",
    "synapse/local-entry",
    "synapse/template",
    "synapse/endpointTemplate",
    "synapse/sequenceTemplate",
    "synapse/message-store",
    "synapse/message-processors",
    "synapse/task",
    "synapse/inbound-endpoint",
    "synapse/event-source",
];

/// Types that describe an application to its editor or its dashboard.
const DESCRIPTIONS: [&str; 3] = ["synapse/metadata", "carbon/application", "synapse/configuration"];

/// One archive, opened.
pub(super) struct Archive {
    /// What messages call it.
    name: String,
    zip: ZipArchive<Cursor<Bytes>>,
    unpacked_bytes: u64,
}

impl Loader {
    /// Loads a `.car`.
    pub(super) fn archive_file(&mut self, path: &Path) {
        if self.first_time(path)
            && let Some(bytes) = self.read(path, ARCHIVE_BYTES_MAX)
        {
            self.archive(path.display().to_string(), bytes, 0);
        }
    }

    pub(super) fn archive(&mut self, name: String, bytes: Bytes, nested: usize) {
        let mut archive = match Archive::open(name.clone(), bytes) {
            Ok(archive) => archive,
            Err(reason) => return self.error(&name, format!("not a Carbon application: {reason}")),
        };
        if !archive.has("artifacts.xml") {
            return self.error(&archive.name, "not a Carbon application: it has no `artifacts.xml`");
        }
        if let Err((at, message)) = self.application(&mut archive, nested) {
            self.note(Severity::Error, at, message);
        }
    }

    fn application(&mut self, archive: &mut Archive, nested: usize) -> Result<(), Broken> {
        let (file, bytes) = archive.read("artifacts.xml")?;
        if let Some(identity) = descriptor::identity(&file, bytes.clone()) {
            if let Some(first) = self.applications.get(&identity) {
                let version = identity.version.as_deref().unwrap_or("without a version");
                let message =
                    format!("ignored: the application `{}` {version} is already loaded from {first}", identity.name);
                self.warning(&archive.name, message);
                return Ok(());
            }
            self.loaded.applications.push(Application {
                name: identity.name.clone(),
                version: identity.version.clone().unwrap_or_default(),
                file: archive.name.clone(),
                artifacts: Vec::new(),
            });
            self.applications.insert(identity, archive.name.clone());
        }
        let folders = archive.artifact_folders()?;
        let mut taken = HashSet::new();
        for dependency in descriptor::dependencies(&file, bytes)? {
            // What a folder is called does not matter: its descriptor says what is in it.
            let named = dependency.folder();
            let described = folders.iter().find(|(_, name, version)| {
                *name == dependency.name && version.as_deref() == dependency.version.as_deref()
            });
            let folder = match described {
                Some((folder, ..)) => folder.clone(),
                None if archive.has(&format!("{named}/artifact.xml")) => named,
                None => {
                    let message = format!("`{named}/artifact.xml` is not in the archive");
                    self.note(Severity::Error, dependency.at, message);
                    continue;
                }
            };
            if taken.insert(folder.clone())
                && let Err((at, message)) = self.archived_artifact(archive, &folder)
            {
                self.note(Severity::Error, at, message);
            }
        }
        let mut others = Vec::new();
        for entry in archive.names() {
            if entry.to_ascii_lowercase().ends_with(".car") {
                self.nested_archive(archive, &entry, nested)?;
            } else if let Some(folder) = entry.strip_suffix("/artifact.xml")
                && !folder.contains('/')
                && !taken.contains(folder)
            {
                others.push(folder.to_owned());
            }
        }
        for folder in others {
            let file = archive.entry_name(&format!("{folder}/artifact.xml"));
            self.warning(&file, format!("ignored: `artifacts.xml` does not list `{folder}`"));
        }
        Ok(())
    }

    fn nested_archive(&mut self, archive: &mut Archive, entry: &str, nested: usize) -> Result<(), Broken> {
        let file = archive.entry_name(entry);
        if nested >= NESTED_MAX {
            self.error(&file, format!("archives are nested deeper than {NESTED_MAX}"));
            return Ok(());
        }
        let (file, bytes) = archive.read(entry)?;
        self.archive(file, bytes, nested + 1);
        Ok(())
    }

    fn archived_artifact(&mut self, archive: &mut Archive, folder: &str) -> Result<(), Broken> {
        let (file, bytes) = archive.read(&format!("{folder}/artifact.xml"))?;
        let artifact = descriptor::artifact(&file, bytes)?;
        if let Some(known) = self.loaded.applications.iter_mut().rfind(|known| known.file == archive.name) {
            known.artifacts.push((artifact.name.clone(), artifact.kind.clone()));
        }
        let kind = artifact.kind.as_str();
        if DESCRIPTIONS.contains(&kind) {
            return Ok(());
        }
        if kind == "synapse/lib"
            && let Some(named) = artifact.file.as_ref().map(|named| format!("{folder}/{named}"))
            && archive.has(&named)
        {
            let (file, bytes) = archive.read(&named)?;
            if !self.connector(file, bytes) {
                self.note(
                    Severity::Error,
                    artifact.at,
                    format!("`{named}` is not a connector: it has no `connector.xml`"),
                );
            }
            return Ok(());
        }
        let is_registry = kind == "registry/resource";
        if !is_registry && !ARTIFACTS.contains(&kind) && kind != "service/dataservice" {
            let message =
                format!("ignored: artifacts of the type `{kind}` are not supported yet (`{}`)", artifact.name);
            self.note(Severity::Warning, artifact.at, message);
            return Ok(());
        }
        let Some(named) = artifact.file else {
            return Err((artifact.at, "<artifact> names no <file>".to_owned()));
        };
        let entry = format!("{folder}/{named}");
        if !archive.has(&entry) {
            return Err((artifact.at, format!("`{entry}` is not in the archive")));
        }
        let (file, bytes) = archive.read(&entry)?;
        if is_registry {
            return self.archived_resources(archive, folder, &file, bytes);
        }
        self.artifact(&file, bytes);
        Ok(())
    }

    /// The files a `registry-info.xml` describes; they stand in the folder `resources` beside it.
    fn archived_resources(
        &mut self,
        archive: &mut Archive,
        folder: &str,
        info: &str,
        bytes: Bytes,
    ) -> Result<(), Broken> {
        for item in descriptor::registry_info(info, bytes)? {
            let Some(collection) = registry::key_of(&item.path) else {
                let message = format!("ignored: `{}` is not a registry path, which begins with /_system/", item.path);
                self.note(Severity::Warning, item.at, message);
                continue;
            };
            let start = format!("{folder}/resources/{}", item.file);
            if item.file.ends_with('/') {
                let names: Vec<String> = archive.names().into_iter().filter(|name| name.starts_with(&start)).collect();
                for name in names {
                    let key = registry::join(&collection, &name[start.len()..]);
                    let (file, bytes) = archive.read(&name)?;
                    self.resource(&file, bytes, key, About::default());
                }
            } else if archive.has(&start) {
                let (file, bytes) = archive.read(&start)?;
                self.resource(&file, bytes, registry::join(&collection, &item.file), item.about);
            } else {
                self.note(Severity::Error, item.at, format!("`{start}` is not in the archive"));
            }
        }
        Ok(())
    }
}

impl Archive {
    /// Opens an archive whose entries may all be read.
    pub(super) fn open(name: String, bytes: Bytes) -> Result<Archive, String> {
        let zip = ZipArchive::new(Cursor::new(bytes)).map_err(|cause| zip_problem(&cause))?;
        let archive = Archive { name, zip, unpacked_bytes: 0 };
        archive.check_names()?;
        Ok(archive)
    }

    fn entry_name(&self, entry: &str) -> String {
        format!("{}!{entry}", self.name)
    }

    fn has(&self, entry: &str) -> bool {
        self.zip.index_for_name(entry).is_some()
    }

    /// Names of all files, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.zip.file_names().flatten().filter(|name| !name.ends_with('/'));
        let mut names: Vec<String> = names.map(|name| name.into_owned()).collect();
        names.sort();
        names
    }

    /// The folders with an artifact that can be read, its name and its version.
    fn artifact_folders(&mut self) -> Result<Vec<(String, String, Option<String>)>, Broken> {
        let mut folders = Vec::new();
        for entry in self.names() {
            if let Some(folder) = entry.strip_suffix("/artifact.xml")
                && !folder.contains('/')
            {
                let (file, bytes) = self.read(&entry)?;
                if let Ok(artifact) = descriptor::artifact(&file, bytes) {
                    folders.push((folder.to_owned(), artifact.name, artifact.version));
                }
            }
        }
        Ok(folders)
    }

    /// An archive that wants to write outside itself is rejected, although nothing is unpacked to disk: its author
    /// made it meant harm.
    fn check_names(&self) -> Result<(), String> {
        if self.zip.len() > ENTRIES_MAX {
            return Err(format!("the archive has {} entries, the limit is {ENTRIES_MAX}", self.zip.len()));
        }
        for name in self.zip.file_names() {
            let name = name.map_err(|cause| format!("the archive has an entry without a readable name: {cause}"))?;
            let leaves = name.starts_with(['/', '\\'])
                || name.contains('\0')
                || name.split(['/', '\\']).any(|part| part == "..");
            if leaves {
                return Err(format!("the archive is refused: the entry `{}` points outside it", name.escape_debug()));
            }
        }
        Ok(())
    }

    pub(super) fn read(&mut self, entry: &str) -> Result<(String, Bytes), Broken> {
        let file = self.entry_name(entry);
        let broken = |message: String| (super::start_of(&file), message);
        let left = UNPACKED_BYTES_MAX.saturating_sub(self.unpacked_bytes);
        let found = self.zip.by_name(entry).map_err(|cause| broken(zip_problem(&cause)))?;
        let mut bytes = Vec::new();
        // What the archive says of sizes is not believed; what comes out is counted.
        let limit = left.min(FILE_BYTES_MAX);
        if let Err(cause) = found.take(limit + 1).read_to_end(&mut bytes) {
            return Err(broken(format!("cannot be unpacked: {cause}")));
        }
        if bytes.len() as u64 > limit {
            let what = if limit < FILE_BYTES_MAX { "the entries of the archive unpack" } else { "the entry unpacks" };
            let limit = if limit < FILE_BYTES_MAX { UNPACKED_BYTES_MAX } else { FILE_BYTES_MAX };
            return Err(broken(format!("{what} to more than {} MiB, which is the limit", limit >> 20)));
        }
        self.unpacked_bytes += bytes.len() as u64;
        Ok((file, Bytes::from(bytes)))
    }
}

fn zip_problem(cause: &zip::result::ZipError) -> String {
    use zip::result::ZipError;
    match cause {
        ZipError::UnsupportedArchive(what) if what.contains("Password") || what.contains("password") => {
            "the archive is encrypted".to_owned()
        }
        ZipError::UnsupportedArchive(what) => format!("the archive has an unsupported feature: {what}"),
        ZipError::InvalidArchive(what) => format!("the archive is damaged or not a zip file: {what}"),
        other => other.to_string(),
    }
}
