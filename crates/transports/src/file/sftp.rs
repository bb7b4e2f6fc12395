//! Files over SFTP.

use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use penstock_engine::ports::LocalFuture;
use penstock_message::{Body, Form};
use russh::client::{self, Handle};
use russh::keys::{PrivateKeyWithHashAlg, load_secret_key};
use russh_sftp::client::SftpSession;
use russh_sftp::client::error::Error as SftpError;
use russh_sftp::client::fs::File;
use russh_sftp::protocol::{FileAttributes, OpenFlags, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::download::Download;
use super::location::Remote;
use super::system::{CHUNK_BYTES, ENTRIES_MAX, Entry, FileSystem, NextChunk, WriteMode, folder_of, join, partial_path};

/// Connecting and logging in.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// A server that does not respond for this long is away.
const RESPONSE_TIMEOUT_SECS: u64 = 60;

/// How often an idle connection is tested.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// A connection. Clones share it.
#[derive(Clone)]
pub(super) struct Sftp {
    inner: Rc<Inner>,
}

struct Inner {
    session: SftpSession,
    /// The connection lasts as long as its handle.
    _connection: Handle<HostKeys>,
    /// `SFTPUserDirIsRoot`: paths begin in the home of the account.
    home_is_root: bool,
}

/// Checks the key of the server.
struct HostKeys {
    host: String,
    port: u16,
    /// A file that must have the key; without one, a key that differs from that in `~/.ssh/known_hosts` is refused.
    known_hosts: Option<PathBuf>,
}

impl client::Handler for HostKeys {
    type Error = russh::Error;

    async fn check_server_key(&mut self, shown: &russh::keys::PublicKeyOrCertificate) -> Result<bool, russh::Error> {
        let russh::keys::PublicKeyOrCertificate::PublicKey { key, .. } = shown else { return Ok(false) };
        Ok(match &self.known_hosts {
            Some(file) => {
                matches!(russh::keys::known_hosts::check_known_hosts_path(&self.host, self.port, key, file), Ok(true))
            }
            // An unknown host is accepted, as in Micro Integrator; one that changed its key is not.
            None => !matches!(
                russh::keys::known_hosts::check_known_hosts(&self.host, self.port, key),
                Err(russh::keys::Error::KeyChanged { .. })
            ),
        })
    }
}

impl Sftp {
    /// Connects and logs in.
    pub(super) async fn connect(remote: &Remote) -> io::Result<Sftp> {
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, log_in(remote)).await;
        connected.unwrap_or_else(|_| {
            let text = format!("no connection within {} s", CONNECT_TIMEOUT.as_secs());
            Err(io::Error::new(ErrorKind::TimedOut, text))
        })
    }

    fn path(&self, path: &str) -> String {
        if !self.inner.home_is_root {
            return path.to_owned();
        }
        match path.trim_start_matches('/') {
            "" => ".".to_owned(),
            relative => relative.to_owned(),
        }
    }

    async fn entry(&self, path: &str) -> io::Result<Option<Entry>> {
        let found = self.inner.session.metadata(self.path(path)).await;
        Ok(optional(found)?.map(|attributes| entry_of(path.to_owned(), &attributes)))
    }

    async fn open(&self, path: &str, flags: OpenFlags) -> io::Result<File> {
        self.inner.session.open_with_flags(self.path(path), flags).await.map_err(failed)
    }

    async fn folders(&self, path: &str) -> io::Result<()> {
        let mut missing = vec![path.to_owned()];
        while let Some(folder) = missing.last().cloned() {
            if folder == "/" || folder == "." || self.entry(&folder).await?.is_some() {
                break;
            }
            missing.push(folder_of(&folder).to_owned());
        }
        // The last one exists.
        missing.pop();
        while let Some(folder) = missing.pop() {
            if let Err(error) = self.inner.session.create_dir(self.path(&folder)).await
                && self.entry(&folder).await?.is_none()
            {
                return Err(failed(error));
            }
        }
        Ok(())
    }

    /// SFTP has no rename that replaces; the file that is in the way is removed first.
    async fn replace(&self, from: &str, to: &str) -> io::Result<()> {
        let first = self.inner.session.rename(self.path(from), self.path(to)).await;
        let Err(error) = first else { return Ok(()) };
        if self.entry(to).await?.is_none() || self.entry(from).await?.is_none() {
            return Err(failed(error));
        }
        optional(self.inner.session.remove_file(self.path(to)).await)?;
        self.inner.session.rename(self.path(from), self.path(to)).await.map_err(failed)
    }

    async fn write_body(&self, path: &str, mut body: Body, mode: WriteMode) -> io::Result<()> {
        self.folders(folder_of(path)).await?;
        let (target, flags) = match mode {
            WriteMode::Replace => (partial_path(path), OpenFlags::CREATE | OpenFlags::EXCLUDE | OpenFlags::WRITE),
            WriteMode::Append => (path.to_owned(), OpenFlags::CREATE | OpenFlags::APPEND | OpenFlags::WRITE),
        };
        let before = match mode {
            WriteMode::Replace => 0,
            WriteMode::Append => self.entry(path).await?.map_or(0, |entry| entry.size),
        };
        let mut file = self.open(&target, flags).await?;
        if mode == WriteMode::Append {
            tokio::io::AsyncSeekExt::seek(&mut file, io::SeekFrom::Start(before)).await?;
        }
        let mut chunks = NextChunk { form: body.take_to_send() };
        let written = async {
            while let Some(bytes) = chunks.next().await? {
                file.write_all(&bytes).await?;
            }
            file.flush().await?;
            file.close().await
        }
        .await;
        match (mode, written) {
            (WriteMode::Replace, Ok(())) => self.replace(&target, path).await,
            (WriteMode::Append, Ok(())) => Ok(()),
            // The error of the write counts, also when what was written cannot be taken back.
            (WriteMode::Replace, Err(error)) => {
                let _ = self.inner.session.remove_file(self.path(&target)).await;
                Err(error)
            }
            (WriteMode::Append, Err(error)) => {
                let attributes = FileAttributes { size: Some(before), ..FileAttributes::empty() };
                let _ = self.inner.session.set_metadata(self.path(path), attributes).await;
                Err(error)
            }
        }
    }
}

async fn log_in(remote: &Remote) -> io::Result<Sftp> {
    let port = remote.port.unwrap_or(22);
    let config = client::Config {
        keepalive_interval: Some(KEEPALIVE),
        inactivity_timeout: None,
        nodelay: true,
        ..client::Config::default()
    };
    let keys = HostKeys {
        host: remote.host.clone(),
        port,
        known_hosts: remote.option("transport.vfs.SFTPKnownHosts").map(PathBuf::from),
    };
    let mut connection =
        client::connect(Arc::new(config), (remote.host.as_str(), port), keys).await.map_err(|error| match error {
            russh::Error::UnknownKey => {
                io::Error::new(ErrorKind::PermissionDenied, "the key of the server is not the known one")
            }
            other => io::Error::other(other),
        })?;
    let mut is_in = false;
    for identity in remote.option("transport.vfs.SFTPIdentities").unwrap_or_default().split(',') {
        if identity.is_empty() || is_in {
            continue;
        }
        let password = remote.option("transport.vfs.SFTPIdentityPassPhrase").filter(|text| !text.is_empty());
        let key = load_secret_key(identity.trim(), password)
            .map_err(|error| io::Error::other(format!("the key `{identity}` cannot be read: {error}")))?;
        let hash = connection.best_supported_rsa_hash().await.map_err(io::Error::other)?.flatten();
        let key = PrivateKeyWithHashAlg::new(Arc::new(key), hash);
        is_in = connection.authenticate_publickey(&remote.user, key).await.map_err(io::Error::other)?.success();
    }
    if !is_in {
        let answer = connection.authenticate_password(&remote.user, &remote.password).await;
        is_in = answer.map_err(io::Error::other)?.success();
    }
    if !is_in {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "the server refused the account"));
    }
    let channel = connection.channel_open_session().await.map_err(io::Error::other)?;
    channel.request_subsystem(true, "sftp").await.map_err(io::Error::other)?;
    let session = SftpSession::new(channel.into_stream()).await.map_err(failed)?;
    session.set_timeout(RESPONSE_TIMEOUT_SECS);
    let home_is_root = remote.option("transport.vfs.SFTPUserDirIsRoot") != Some("false");
    Ok(Sftp { inner: Rc::new(Inner { session, _connection: connection, home_is_root }) })
}

impl FileSystem for Sftp {
    fn list<'a>(&'a self, folder: &'a str) -> LocalFuture<'a, io::Result<Option<Vec<Entry>>>> {
        Box::pin(async move {
            let Some(found) = optional(self.inner.session.read_dir(self.path(folder)).await)? else { return Ok(None) };
            let mut entries = Vec::new();
            for entry in found.take(ENTRIES_MAX) {
                let attributes = entry.metadata();
                let path = join(folder, &entry.file_name());
                // A link is what it leads to.
                match attributes.is_symlink() {
                    true => entries.extend(self.entry(&path).await?),
                    false => entries.push(entry_of(path, &attributes)),
                }
            }
            Ok(Some(entries))
        })
    }

    fn stat<'a>(&'a self, path: &'a str) -> LocalFuture<'a, io::Result<Option<Entry>>> {
        Box::pin(self.entry(path))
    }

    fn read<'a>(&'a self, path: &'a str) -> LocalFuture<'a, io::Result<Option<Body>>> {
        Box::pin(async move {
            let opened = self.inner.session.open(self.path(path)).await;
            let Some(mut file) = optional(opened)? else { return Ok(None) };
            let size = file.metadata().await.map_err(failed)?.len();
            let mut head = vec![0; size.min(CHUNK_BYTES as u64) as usize];
            file.read_exact(&mut head).await?;
            let left = size - head.len() as u64;
            if left == 0 {
                return Ok(Some(Body::bytes(head)));
            }
            let rest = Box::new(Download { reader: file, left, _connection: self.clone() });
            Ok(Some(Body::from_form(Form::Stream { head: head.into(), rest })))
        })
    }

    fn write<'a>(&'a self, path: &'a str, body: Body, mode: WriteMode) -> LocalFuture<'a, io::Result<()>> {
        Box::pin(self.write_body(path, body, mode))
    }

    fn create<'a>(&'a self, path: &'a str, bytes: Bytes) -> LocalFuture<'a, io::Result<bool>> {
        Box::pin(async move {
            let mut file = match self.open(path, OpenFlags::CREATE | OpenFlags::EXCLUDE | OpenFlags::WRITE).await {
                Ok(file) => file,
                // The protocol has one code for every failure.
                Err(error) => return if self.entry(path).await?.is_some() { Ok(false) } else { Err(error) },
            };
            file.write_all(&bytes).await?;
            file.flush().await?;
            file.close().await.map(|()| true)
        })
    }

    fn rename<'a>(&'a self, from: &'a str, to: &'a str) -> LocalFuture<'a, io::Result<()>> {
        Box::pin(async move {
            match self.replace(from, to).await {
                Err(_) if self.entry(folder_of(to)).await?.is_none() => {
                    Err(io::Error::new(ErrorKind::NotFound, "the folder does not exist"))
                }
                other => other,
            }
        })
    }

    fn remove<'a>(&'a self, path: &'a str) -> LocalFuture<'a, io::Result<()>> {
        Box::pin(async move { optional(self.inner.session.remove_file(self.path(path)).await).map(|_| ()) })
    }

    fn remove_folder<'a>(&'a self, path: &'a str) -> LocalFuture<'a, io::Result<()>> {
        Box::pin(async move { self.inner.session.remove_dir(self.path(path)).await.map_err(failed) })
    }

    fn create_folder<'a>(&'a self, path: &'a str) -> LocalFuture<'a, io::Result<()>> {
        Box::pin(self.folders(path))
    }

    fn set_modified<'a>(&'a self, path: &'a str, time: SystemTime) -> LocalFuture<'a, io::Result<()>> {
        Box::pin(async move {
            let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            let seconds = u32::try_from(seconds).ok();
            let attributes = FileAttributes { atime: seconds, mtime: seconds, ..FileAttributes::empty() };
            self.inner.session.set_metadata(self.path(path), attributes).await.map_err(failed)
        })
    }
}

fn entry_of(path: String, attributes: &FileAttributes) -> Entry {
    Entry {
        name: super::system::name_of(&path).to_owned(),
        path,
        size: attributes.len(),
        modified: attributes.modified().ok(),
        is_folder: attributes.is_dir(),
    }
}

fn failed(error: SftpError) -> io::Error {
    match error {
        SftpError::Status(status) if status.status_code == StatusCode::NoSuchFile => {
            io::Error::new(ErrorKind::NotFound, "no such file")
        }
        SftpError::Timeout => io::Error::new(ErrorKind::TimedOut, "the server did not respond in time"),
        other => io::Error::other(other.to_string()),
    }
}

/// `None` for what does not exist.
fn optional<T>(found: Result<T, SftpError>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(SftpError::Status(status)) if status.status_code == StatusCode::NoSuchFile => Ok(None),
        Err(error) => Err(failed(error)),
    }
}
