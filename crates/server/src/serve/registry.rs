//! The folder of resources that flows write: read at the start, written by a thread of its own.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use penstock_compile::InputKind;
use penstock_engine::ports::LocalFuture;
use penstock_engine::{Place, Registry, RegistryKeeper, RegistryPath, Resource};
use tokio::sync::oneshot;

use crate::command::Failure;
use crate::config::properties;
use crate::load;

/// Writes that wait for the disk. Messages wait for theirs, so there are rarely more than messages.
const JOBS_MAX: usize = 4096;

/// Permissions of written files: those of the process's mask.
const FILE_MODE: u32 = 0o666;

/// Opens the registry; without a folder what is written lasts as long as the process.
pub(super) fn open(folder: Option<&Path>, watched: &[PathBuf]) -> Result<Registry, Failure> {
    let Some(folder) = folder else { return Ok(Registry::default()) };
    let cannot = |cause: io::Error| {
        Failure::environment(format!("the folder `{}` of the registry cannot be used: {cause}", folder.display()))
    };
    fs::create_dir_all(folder).map_err(cannot)?;
    let folder = folder.canonicalize().map_err(cannot)?;
    let inside = |path: &&PathBuf| path.canonicalize().is_ok_and(|path| folder.starts_with(path));
    if let Some(path) = watched.iter().find(inside) {
        return Err(Failure::input(format!(
            "the folder `{}` of the registry lies in `{}`, which is watched: resources that flows write would trigger reloads",
            folder.display(),
            path.display()
        )));
    }
    let mut earlier = Vec::new();
    for input in load::registry_folder(&folder).inputs {
        let InputKind::Resource { key, media_type, properties } = input.kind else { continue };
        // A file whose name no flow could have written is not of this kind.
        let Ok(path) = RegistryPath::parse(&key) else { continue };
        let text = |text: String| Arc::<str>::from(text);
        let resource = Resource {
            is_xml: input.bytes.trim_ascii_start().starts_with(b"<"),
            bytes: input.bytes,
            media_type: media_type.map(text),
            at: Place { file: input.file, line: 1, column: 1 },
            properties: properties.into_iter().map(|(name, value)| (text(name), text(value))).collect(),
        };
        earlier.push((path, resource));
    }
    let (sender, jobs) = sync_channel(JOBS_MAX);
    std::thread::Builder::new().name("registry".to_owned()).spawn(move || write_all(&folder, &jobs)).map_err(cannot)?;
    Ok(Registry::new(earlier, Box::new(Files { jobs: sender })))
}

/// Hands what is to be kept to the thread. It ends with this.
struct Files {
    jobs: SyncSender<Job>,
}

struct Job {
    path: RegistryPath,
    /// What is kept; `None` removes it.
    resource: Option<Arc<Resource>>,
    done: oneshot::Sender<Result<(), String>>,
}

impl RegistryKeeper for Files {
    fn keep(&self, path: RegistryPath, resource: Arc<Resource>) -> LocalFuture<'static, Result<(), String>> {
        self.send(path, Some(resource))
    }

    fn remove(&self, path: RegistryPath) -> LocalFuture<'static, Result<(), String>> {
        self.send(path, None)
    }
}

impl Files {
    fn send(&self, path: RegistryPath, resource: Option<Arc<Resource>>) -> LocalFuture<'static, Result<(), String>> {
        let (done, outcome) = oneshot::channel();
        let sent = self.jobs.try_send(Job { path, resource, done });
        Box::pin(async move {
            sent.map_err(|_| "too much waits to be written".to_owned())?;
            outcome.await.unwrap_or_else(|_| Err("its thread ended".to_owned()))
        })
    }
}

fn write_all(folder: &Path, jobs: &Receiver<Job>) {
    while let Ok(Job { path, resource, done }) = jobs.recv() {
        let outcome = match &resource {
            Some(resource) => write(folder, &path, resource),
            None => remove(folder, &path),
        };
        let outcome = outcome.map_err(|cause| format!("`{}`: {cause}", path.key));
        // The request may have timed out.
        let _ = done.send(outcome);
    }
}

fn write(folder: &Path, path: &RegistryPath, resource: &Resource) -> io::Result<()> {
    let file = folder.join(&path.file);
    let parent = file.parent().unwrap_or(folder);
    fs::create_dir_all(parent)?;
    // A symbolic link must not lead elsewhere.
    if !parent.canonicalize()?.starts_with(folder) {
        return Err(io::Error::other("it leads out of the folder of the registry"));
    }
    if !resource.properties.is_empty() {
        let pairs = resource.properties.iter().map(|(name, value)| (&**name, &**value));
        replace(&with_ending(&file, ".properties"), properties::write(pairs).as_bytes(), FILE_MODE)?;
    }
    replace(&file, &resource.bytes, FILE_MODE)
}

/// Removes a resource and its properties; one that is not there is removed already.
fn remove(folder: &Path, path: &RegistryPath) -> io::Result<()> {
    let file = folder.join(&path.file);
    for file in [with_ending(&file, ".properties"), file] {
        match fs::remove_file(&file) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
            _ => {}
        }
    }
    Ok(())
}

fn with_ending(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Writes a file atomically.
pub(crate) fn replace(file: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    // No key has a name that begins with a dot.
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let beside = file.with_file_name(format!(".{name}.tmp"));
    let mut new = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&beside)?;
    new.write_all(bytes)?;
    new.sync_data()?;
    fs::rename(&beside, file)?;
    // The name as well as the bytes, should the power fail.
    file.parent().map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
}
