//! The operations on a file system. No path leads out of the folder of the connection.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use fancy_regex::Regex;
use penstock_message::{Body, Form};
use serde_json::Value as Json;
use tokio::sync::OnceCell;

use super::outcome::{Code, Done, Failure};
use super::task::{Task, WriteMode as Mode};
use crate::file::location::SystemAddress;
use crate::file::lock::{Lock, Locking};
use crate::file::system::{Entry, FileSystem, WriteMode, connect, folder_of, join};

/// How long an operation waits for a lock, as in Micro Integrator.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// The interval of its attempts.
const LOCK_INTERVAL: Duration = Duration::from_millis(50);

/// The files of a connection.
pub(super) struct Files {
    address: SystemAddress,
    base: String,
    system: OnceCell<Rc<dyn FileSystem>>,
}

/// Whether a name matches; without a pattern each does.
pub(super) fn matches(pattern: Option<&Regex>, name: &str) -> bool {
    pattern.is_none_or(|pattern| pattern.is_match(name).unwrap_or(false))
}

impl Files {
    pub(super) fn new(address: SystemAddress, folder: &str) -> Files {
        let folder = folder.trim();
        // A path of Windows or a file URL is not a folder of this machine.
        let base = folder.strip_prefix("file://").unwrap_or(folder);
        Files { address, base: format!("/{}", base.trim_matches('/')), system: OnceCell::new() }
    }

    pub(super) fn address(&self) -> &SystemAddress {
        &self.address
    }

    pub(super) async fn system(&self) -> Result<&Rc<dyn FileSystem>, Failure> {
        let failed = |error: std::io::Error| Failure::new(Code::Connection, error.to_string());
        self.system.get_or_try_init(|| connect(&self.address)).await.map_err(failed)
    }

    /// A path in the folder of the connection.
    pub(super) fn path(&self, path: &str) -> Result<String, Failure> {
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." if parts.pop().is_none() => {
                    let text = format!("`{path}` leads out of the folder of the connection");
                    return Err(Failure::new(Code::IllegalPath, text));
                }
                ".." => {}
                part if part.contains('\0') => {
                    return Err(Failure::new(Code::IllegalPath, "the path has a null character"));
                }
                part => parts.push(part),
            }
        }
        let base = self.base.trim_end_matches('/');
        Ok(if parts.is_empty() { self.base.clone() } else { format!("{base}/{}", parts.join("/")) })
    }

    /// The name of a file or folder, which is no path.
    fn name<'n>(&self, name: &'n str) -> Result<&'n str, Failure> {
        if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
            return Err(Failure::new(Code::IllegalPath, format!("`{name}` is not the name of a file")));
        }
        Ok(name)
    }

    pub(super) async fn stat(&self, path: &str) -> Result<Option<Entry>, Failure> {
        Ok(self.system().await?.stat(path).await?)
    }

    pub(super) async fn existing(&self, path: &str) -> Result<Entry, Failure> {
        let found = self.stat(path).await?;
        found.ok_or_else(|| Failure::new(Code::IllegalPath, format!("File or folder not found: {path}")))
    }

    pub(super) async fn entries(&self, folder: &str) -> Result<Vec<Entry>, Failure> {
        let found = self.system().await?.list(folder).await?;
        found.ok_or_else(|| Failure::new(Code::IllegalPath, format!("Folder does not exist: {folder}")))
    }

    pub(super) async fn lock(&self, path: &str) -> Result<Lock, Failure> {
        let locking = Locking { release_after: None, same_host_only: false };
        let scope = self.address.to_string();
        let end = tokio::time::Instant::now() + LOCK_TIMEOUT;
        loop {
            if let Some(lock) = Lock::take(self.system().await?, &scope, path, locking).await? {
                return Ok(lock);
            }
            if tokio::time::Instant::now() > end {
                let text = format!("Failed to acquire lock for file {path}. Another process maybe processing it.");
                return Err(Failure::new(Code::Locking, text));
            }
            tokio::time::sleep(LOCK_INTERVAL).await;
        }
    }

    /// Does a task.
    pub(super) async fn perform(&self, task: Task, keeps_stream: bool, limit_bytes: usize) -> Result<Done, Failure> {
        match task {
            Task::Read(read) => self.read(read, keeps_stream, limit_bytes).await,
            Task::Write { path, content, mode, locks } => self.write(&path, content, mode, locks, limit_bytes).await,
            Task::Copy(transfer) => self.copy(transfer).await,
            Task::Move(transfer) => self.transfer(transfer).await,
            Task::Rename { path, name, overwrites } => self.rename(&path, &name, overwrites).await,
            Task::Delete { path, pattern } => self.delete(&path, pattern.as_ref()).await,
            Task::List(listing) => self.list(listing).await,
            Task::Exists { path } => {
                let exists = self.stat(&self.path(&path)?).await?.is_some();
                Ok(Done::report([("fileExists", Json::Bool(exists))]))
            }
            Task::CreateFolder { path } => {
                self.system().await?.create_folder(&self.path(&path)?).await?;
                Ok(Done::report([]))
            }
            Task::Merge { source, target, pattern, appends } => {
                self.merge(&source, &target, pattern.as_ref(), appends).await
            }
        }
    }

    async fn write(
        &self,
        path: &str,
        content: Bytes,
        mode: Mode,
        locks: bool,
        limit_bytes: usize,
    ) -> Result<Done, Failure> {
        let path = self.path(path)?;
        let found = self.stat(&path).await?;
        if found.as_ref().is_some_and(|entry| entry.is_folder) {
            return Err(Failure::new(Code::IllegalPath, format!("Path does not point to a file {path}")));
        }
        match (mode, found.is_some()) {
            (Mode::CreateNew, true) => {
                return Err(Failure::new(Code::Operation, format!("Target file already exists. Path = {path}")));
            }
            (Mode::Append(_), false) => {
                return Err(Failure::new(Code::IllegalPath, format!("File to append is not found: {path}")));
            }
            _ => {}
        }
        let lock = if locks { Some(self.lock(&path).await?) } else { None };
        let length = content.len();
        let system = self.system().await?;
        let written = match mode {
            Mode::Append(Some(line)) => self.insert(&path, &content, line, limit_bytes).await,
            Mode::Append(None) => {
                system.write(&path, Body::bytes(content), WriteMode::Append).await.map_err(Failure::from)
            }
            _ => system.write(&path, Body::bytes(content), WriteMode::Replace).await.map_err(Failure::from),
        };
        if let Some(lock) = lock {
            lock.release(system).await?;
        }
        written.map(|()| Done::report([("writtenBytes", Json::from(length))]))
    }

    /// Writes content before a line.
    async fn insert(&self, path: &str, content: &[u8], line: usize, limit_bytes: usize) -> Result<(), Failure> {
        let system = self.system().await?;
        let mut body = system.read(path).await?.unwrap_or_default();
        super::read::whole(&mut body, limit_bytes).await?;
        let before = match body.form() {
            Form::Bytes(bytes) => bytes.clone(),
            _ => Bytes::new(),
        };
        let mut lines: Vec<&[u8]> = before.split_inclusive(|byte| *byte == b'\n').collect();
        let mut content = content.to_vec();
        if !content.ends_with(b"\n") {
            content.push(b'\n');
        }
        lines.insert((line - 1).min(lines.len()), &content);
        Ok(system.write(path, Body::bytes(lines.concat()), WriteMode::Replace).await?)
    }

    async fn rename(&self, path: &str, name: &str, overwrites: bool) -> Result<Done, Failure> {
        let path = self.path(path)?;
        self.existing(&path).await?;
        let target = join(folder_of(&path), self.name(name)?);
        self.free(&target, overwrites).await?;
        self.system().await?.rename(&path, &target).await?;
        Ok(Done::report([]))
    }

    /// Fails when something is there and may not be replaced.
    async fn free(&self, path: &str, overwrites: bool) -> Result<(), Failure> {
        if !overwrites && self.stat(path).await?.is_some() {
            let text = "Destination file already exists and overwrite not allowed";
            return Err(Failure::new(Code::AlreadyExists, text));
        }
        Ok(())
    }

    /// The path that one file is copied or moved to.
    pub(super) async fn destination(
        &self,
        folder: &str,
        name: &str,
        new_name: Option<&str>,
        overwrites: bool,
    ) -> Result<String, Failure> {
        let target = join(folder, self.name(new_name.unwrap_or(name))?);
        self.free(&target, overwrites).await?;
        Ok(target)
    }

    async fn merge(&self, source: &str, target: &str, pattern: Option<&Regex>, appends: bool) -> Result<Done, Failure> {
        let (source, target) = (self.path(source)?, self.path(target)?);
        if !self.existing(&source).await?.is_folder {
            let text = format!("Source Path does not point to a directory: {source}");
            return Err(Failure::new(Code::IllegalPath, text));
        }
        let system = self.system().await?;
        let mut entries = self.entries(&source).await?;
        entries.retain(|entry| !entry.is_folder && entry.path != target && matches(pattern, &entry.name));
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        if !appends {
            system.write(&target, Body::empty(), WriteMode::Replace).await?;
        }
        let (mut files, mut bytes) = (0, 0);
        for entry in entries.iter().filter(|entry| entry.size > 0) {
            let Some(body) = system.read(&entry.path).await? else { continue };
            system.write(&target, body, WriteMode::Append).await?;
            files += 1;
            bytes += entry.size;
        }
        let detail = serde_json::json!({"numberOfMergedFiles": files, "totalWrittenBytes": bytes});
        Ok(Done::report([("detail", detail)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_the_folder() {
        let files = Files::new(SystemAddress::Local, "/work/in/");
        for (path, expected) in [
            ("/a.txt", Some("/work/in/a.txt")),
            ("a/../b.txt", Some("/work/in/b.txt")),
            ("", Some("/work/in")),
            ("/a//./b/", Some("/work/in/a/b")),
            ("../a", None),
            ("/a/../../b", None),
            ("a\0", None),
        ] {
            assert_eq!(files.path(path).ok().as_deref(), expected, "{path}");
        }
        assert_eq!(Files::new(SystemAddress::Local, "").path("/a/b").ok().as_deref(), Some("/a/b"));
    }
}
