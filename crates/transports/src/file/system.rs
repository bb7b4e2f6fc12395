//! What a file system does, wherever it is.

use std::io;
use std::rc::Rc;
use std::time::SystemTime;

use bytes::Bytes;
use penstock_engine::ports::LocalFuture;
use penstock_message::{Body, Form};

use super::local::Local;
#[cfg(any(feature = "ftp", feature = "sftp"))]
use super::location::Protocol;
use super::location::SystemAddress;

/// A file of at most this size is read at once; of a larger one so much is in memory at a time.
pub(super) const CHUNK_BYTES: usize = 256 * 1024;

/// Entries of one folder that a poll looks at; the rest has its turn when these are gone.
pub(super) const ENTRIES_MAX: usize = 200_000;

/// A file or a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The whole path.
    pub(super) path: String,
    /// The name.
    pub(super) name: String,
    /// The size in bytes.
    pub(super) size: u64,
    /// When it was written.
    pub(super) modified: Option<SystemTime>,
    /// Whether it is a folder.
    pub(super) is_folder: bool,
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteMode {
    /// Under another name first; it replaces what was there when all of it is written.
    Replace,
    /// At the end. What is written of a body that breaks off is taken back where the file system can.
    Append,
}

/// A connection to a file system.
pub(super) trait FileSystem {
    /// The files and folders in a folder. `None` when there is no such folder.
    fn list<'a>(&'a self, folder: &'a str) -> LocalFuture<'a, io::Result<Option<Vec<Entry>>>>;

    /// A file or folder; `None` when it does not exist.
    fn stat<'a>(&'a self, path: &'a str) -> LocalFuture<'a, io::Result<Option<Entry>>>;

    /// The content of a file: its bytes when it is small, a stream otherwise. `None` when it does not exist.
    fn read<'a>(&'a self, path: &'a str) -> LocalFuture<'a, io::Result<Option<Body>>>;

    /// Writes a file, and the folders that it needs.
    fn write<'a>(&'a self, path: &'a str, body: Body, mode: WriteMode) -> LocalFuture<'a, io::Result<()>>;

    /// Makes a small file; `false` when it exists.
    fn create<'a>(&'a self, path: &'a str, bytes: Bytes) -> LocalFuture<'a, io::Result<bool>>;

    /// Moves a file on this file system, over one that exists.
    fn rename<'a>(&'a self, from: &'a str, to: &'a str) -> LocalFuture<'a, io::Result<()>>;

    /// Removes a file; one that does not exist is removed.
    fn remove<'a>(&'a self, path: &'a str) -> LocalFuture<'a, io::Result<()>>;

    /// Removes an empty folder.
    fn remove_folder<'a>(&'a self, path: &'a str) -> LocalFuture<'a, io::Result<()>>;

    /// Makes a folder and those above it.
    fn create_folder<'a>(&'a self, path: &'a str) -> LocalFuture<'a, io::Result<()>>;

    /// Sets when a file was written, where that is possible.
    fn set_modified<'a>(&'a self, path: &'a str, time: SystemTime) -> LocalFuture<'a, io::Result<()>>;
}

/// Connects to a file system.
pub(super) async fn connect(address: &SystemAddress) -> io::Result<Rc<dyn FileSystem>> {
    match address {
        SystemAddress::Local => Ok(Rc::new(Local)),
        SystemAddress::Remote(remote) => match remote.protocol {
            #[cfg(feature = "sftp")]
            Protocol::Sftp => Ok(Rc::new(super::sftp::Sftp::connect(remote).await?)),
            #[cfg(feature = "ftp")]
            Protocol::Ftp | Protocol::Ftps => Ok(Rc::new(super::ftp::Ftp::connect(remote).await?)),
            #[cfg(not(all(feature = "ftp", feature = "sftp")))]
            other => Err(io::Error::new(io::ErrorKind::Unsupported, format!("this build has no `{}`", other.scheme()))),
        },
    }
}

/// The name at the end of a path.
pub(super) fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The folder of a path.
pub(super) fn folder_of(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) => "/",
        Some(slash) => &path[..slash],
        None => ".",
    }
}

/// A path in a folder.
pub(super) fn join(folder: &str, name: &str) -> String {
    format!("{}/{name}", folder.trim_end_matches('/'))
}

/// The name under which a file is written before it is complete. Pollers skip it.
pub(super) fn partial_path(path: &str) -> String {
    join(folder_of(path), &format!("{PARTIAL_PREFIX}{:016x}", penstock_engine::clock::random()))
}

/// How names of incomplete files begin.
pub(super) const PARTIAL_PREFIX: &str = ".penstock-";

/// The chunks of a body that is sent.
pub(super) struct NextChunk {
    pub(super) form: Form,
}

impl NextChunk {
    pub(super) async fn next(&mut self) -> io::Result<Option<Bytes>> {
        match std::mem::replace(&mut self.form, Form::Empty) {
            Form::Empty => Ok(None),
            Form::Bytes(bytes) => Ok(Some(bytes)),
            Form::Text(text) => Ok(Some(Bytes::copy_from_slice(text.as_bytes()))),
            Form::Stream { head, rest } if !head.is_empty() => {
                self.form = Form::Stream { head: Bytes::new(), rest };
                Ok(Some(head))
            }
            Form::Stream { mut rest, .. } => {
                let chunk = std::future::poll_fn(|cx| rest.poll_chunk(cx)).await;
                match chunk {
                    None => Ok(None),
                    Some(Ok(bytes)) => {
                        self.form = Form::Stream { head: Bytes::new(), rest };
                        Ok(Some(bytes))
                    }
                    Some(Err(error)) => Err(io::Error::other(error)),
                }
            }
            // The engine serializes a message before a transport gets it.
            Form::Xml(_) | Form::Json(_) => Err(io::Error::other("the body is not serialized")),
        }
    }
}
