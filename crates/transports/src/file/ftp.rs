//! Files over FTP and FTPS.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use penstock_engine::ports::LocalFuture;
use penstock_message::{Body, Form};
use rustls::{ClientConfig, RootCertStore};
use suppaftp::list::ListParser;
use suppaftp::tokio::{AsyncRustlsConnector, AsyncRustlsFtpStream};
use suppaftp::types::FileType;
use suppaftp::{FtpError, Mode, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::download::Download;
use super::location::{Protocol, Remote};
use super::system::{
    CHUNK_BYTES, ENTRIES_MAX, Entry, FileSystem, NextChunk, WriteMode, folder_of, join, name_of, partial_path,
};
use crate::http::tls::read_certificates;

/// Connecting and logging in, and each command.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Idle connections that are kept: one command, or one transfer, runs on a connection at a time.
const IDLE_MAX: usize = 4;

/// A connection that was idle for longer is tested before it is used.
const TESTED_FOR: Duration = Duration::from_secs(10);

type Connection = AsyncRustlsFtpStream;

/// A server. Clones share its connections.
#[derive(Clone)]
pub(super) struct Ftp {
    inner: Rc<Inner>,
}

struct Inner {
    remote: Remote,
    idle: RefCell<Vec<(Connection, Instant)>>,
}

impl Ftp {
    /// Connects and logs in, so that a wrong account shows at once.
    pub(super) async fn connect(remote: &Remote) -> io::Result<Ftp> {
        let ftp = Ftp { inner: Rc::new(Inner { remote: remote.clone(), idle: RefCell::default() }) };
        let connection = ftp.log_in().await?;
        ftp.give_back(connection);
        Ok(ftp)
    }

    async fn take(&self) -> io::Result<Connection> {
        // The borrow must end before the connection is tested.
        let idle = self.inner.idle.borrow_mut().pop();
        let Some((mut connection, since)) = idle else { return self.log_in().await };
        if since.elapsed() < TESTED_FOR || within(connection.noop()).await.is_ok() {
            return Ok(connection);
        }
        self.log_in().await
    }

    fn give_back(&self, connection: Connection) {
        let mut idle = self.inner.idle.borrow_mut();
        if idle.len() < IDLE_MAX {
            idle.push((connection, Instant::now()));
        }
    }

    async fn log_in(&self) -> io::Result<Connection> {
        within(log_in(&self.inner.remote)).await
    }

    /// Paths begin in the folder of the account.
    fn path(&self, path: &str) -> String {
        match path.trim_start_matches('/') {
            "" => ".".to_owned(),
            relative => relative.to_owned(),
        }
    }

    /// Runs commands on a connection, which is kept unless it broke.
    async fn with<T>(&self, commands: impl AsyncFnOnce(&mut Connection) -> Result<T, FtpError>) -> io::Result<T> {
        let mut connection = self.take().await?;
        let result = tokio::time::timeout(TIMEOUT, commands(&mut connection)).await;
        match result {
            Err(_) => Err(io::Error::new(ErrorKind::TimedOut, "the server did not respond in time")),
            Ok(Ok(value)) => {
                self.give_back(connection);
                Ok(value)
            }
            Ok(Err(error)) => {
                // The server answered: the connection works.
                if matches!(error, FtpError::UnexpectedResponse(_)) {
                    self.give_back(connection);
                }
                Err(failed(error))
            }
        }
    }

    async fn entries(&self, folder: &str) -> io::Result<Option<Vec<Entry>>> {
        let path = self.path(folder);
        let listed = self
            .with(async |connection| {
                // The folder must exist: a server lists nothing for one that does not.
                let home = connection.pwd().await?;
                if let Err(error) = connection.cwd(&path).await {
                    return if is_missing(&error) { Ok(None) } else { Err(error) };
                }
                let (is_mlsd, lines) = match connection.mlsd(None).await {
                    Err(FtpError::UnexpectedResponse(_)) => (false, connection.list(None).await),
                    other => (true, other),
                };
                connection.cwd(&home).await?;
                Ok(Some((is_mlsd, lines?)))
            })
            .await?;
        let Some((is_mlsd, lines)) = listed else { return Ok(None) };
        let parsed = lines.iter().take(ENTRIES_MAX).filter_map(|line| {
            let parsed = match is_mlsd {
                true => ListParser::parse_mlsd(line),
                false => ListParser::parse_posix(line).or_else(|_| ListParser::parse_dos(line)),
            };
            let file = parsed.ok()?;
            let name = file.name().to_owned();
            (!matches!(name.as_str(), "." | "..")).then(|| Entry {
                path: join(folder, &name),
                name,
                size: file.size() as u64,
                modified: Some(file.modified()),
                is_folder: file.is_directory(),
            })
        });
        Ok(Some(parsed.collect()))
    }

    async fn entry(&self, path: &str) -> io::Result<Option<Entry>> {
        let target = self.path(path);
        let found = self
            .with(async |connection| {
                let home = connection.pwd().await?;
                if connection.cwd(&target).await.is_ok() {
                    connection.cwd(&home).await?;
                    return Ok(Some((0, None, true)));
                }
                let size = match connection.size(&target).await {
                    Ok(size) => size as u64,
                    Err(error) if is_missing(&error) => return Ok(None),
                    Err(error) => return Err(error),
                };
                let modified = connection.mdtm(&target).await.ok().map(|time| SystemTime::from(time.and_utc()));
                Ok(Some((size, modified, false)))
            })
            .await?;
        Ok(found.map(|(size, modified, is_folder)| Entry {
            path: path.to_owned(),
            name: name_of(path).to_owned(),
            size,
            modified,
            is_folder,
        }))
    }

    async fn folders(&self, path: &str) -> io::Result<()> {
        let mut folder = String::new();
        for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
            folder = format!("{folder}/{part}");
            let target = self.path(&folder);
            let made = self.with(async |connection| connection.mkdir(&target).await).await;
            if let Err(error) = made
                && !self.entry(&folder).await?.is_some_and(|entry| entry.is_folder)
            {
                return Err(error);
            }
        }
        Ok(())
    }

    async fn download(&self, path: &str) -> io::Result<Option<Body>> {
        let target = self.path(path);
        let mut connection = self.take().await?;
        let size = match within(connection.size(&target)).await {
            Ok(size) => size as u64,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.give_back(connection);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let mut transfer = within(connection.retr_as_stream(&target)).await?;
        let mut head = vec![0; size.min(CHUNK_BYTES as u64) as usize];
        transfer.read_exact(&mut head).await?;
        let left = size - head.len() as u64;
        if left == 0 {
            within(transfer.finish()).await?;
            self.give_back(connection);
            return Ok(Some(Body::bytes(head)));
        }
        // The connection is closed with the transfer: whether its end was read is not known before.
        let rest = Box::new(Download { reader: transfer, left, _connection: connection });
        Ok(Some(Body::from_form(Form::Stream { head: head.into(), rest })))
    }

    async fn upload(&self, path: &str, mut body: Body, mode: WriteMode) -> io::Result<()> {
        let target = match mode {
            WriteMode::Replace => partial_path(path),
            WriteMode::Append => path.to_owned(),
        };
        let remote = self.path(&target);
        let mut connection = self.take().await?;
        let opened = match mode {
            WriteMode::Replace => within(connection.put_with_stream(&remote)).await,
            WriteMode::Append => within(connection.append_with_stream(&remote)).await,
        };
        let mut transfer = match opened {
            Ok(transfer) => transfer,
            // Only the first file finds the folder missing.
            Err(error) => {
                let folder = folder_of(path);
                if self.entry(folder).await?.is_some() {
                    return Err(error);
                }
                self.folders(folder).await?;
                connection = self.take().await?;
                match mode {
                    WriteMode::Replace => within(connection.put_with_stream(&remote)).await?,
                    WriteMode::Append => within(connection.append_with_stream(&remote)).await?,
                }
            }
        };
        let mut chunks = NextChunk { form: body.take_to_send() };
        let written = async {
            while let Some(bytes) = chunks.next().await? {
                transfer.write_all(&bytes).await?;
            }
            transfer.flush().await
        }
        .await;
        let finished = within(transfer.finish()).await;
        if let Err(error) = written.and(finished) {
            drop(connection);
            if mode == WriteMode::Replace {
                // The error of the write counts, also when what was written cannot be removed.
                let _ = self.remove(&target).await;
            }
            return Err(error);
        }
        self.give_back(connection);
        match mode {
            WriteMode::Replace => self.replace(&target, path).await,
            WriteMode::Append => Ok(()),
        }
    }

    /// Some servers do not rename onto a file; it is removed first there.
    async fn replace(&self, from: &str, to: &str) -> io::Result<()> {
        let (source, target) = (self.path(from), self.path(to));
        let rename = async |connection: &mut Connection| connection.rename(&source, &target).await;
        let Err(error) = self.with(rename).await else { return Ok(()) };
        if self.entry(to).await?.is_none() || self.entry(from).await?.is_none() {
            return Err(error);
        }
        self.remove(to).await?;
        self.with(rename).await
    }
}

impl FileSystem for Ftp {
    fn list<'a>(&'a self, folder: &'a str) -> LocalFuture<'a, io::Result<Option<Vec<Entry>>>> {
        Box::pin(self.entries(folder))
    }

    fn stat<'a>(&'a self, path: &'a str) -> LocalFuture<'a, io::Result<Option<Entry>>> {
        Box::pin(self.entry(path))
    }

    fn read<'a>(&'a self, path: &'a str) -> LocalFuture<'a, io::Result<Option<Body>>> {
        Box::pin(self.download(path))
    }

    fn write<'a>(&'a self, path: &'a str, body: Body, mode: WriteMode) -> LocalFuture<'a, io::Result<()>> {
        Box::pin(self.upload(path, body, mode))
    }

    /// FTP cannot make a file only if there is none: it is looked for first, and read back afterwards.
    fn create<'a>(&'a self, path: &'a str, bytes: Bytes) -> LocalFuture<'a, io::Result<bool>> {
        Box::pin(async move {
            if self.entry(path).await?.is_some() {
                return Ok(false);
            }
            self.upload(path, Body::bytes(bytes.clone()), WriteMode::Replace).await?;
            let read = self.download(path).await?;
            Ok(read.is_some_and(|body| *body.available() == *bytes))
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
        Box::pin(async move {
            let target = self.path(path);
            match self.with(async |connection| connection.rm(&target).await).await {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                other => other,
            }
        })
    }

    fn remove_folder<'a>(&'a self, path: &'a str) -> LocalFuture<'a, io::Result<()>> {
        Box::pin(async move {
            let target = self.path(path);
            self.with(async |connection| connection.rmdir(&target).await).await
        })
    }

    fn create_folder<'a>(&'a self, path: &'a str) -> LocalFuture<'a, io::Result<()>> {
        Box::pin(self.folders(path))
    }

    /// FTP has no common command for it.
    fn set_modified<'a>(&'a self, _path: &'a str, _time: SystemTime) -> LocalFuture<'a, io::Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

async fn log_in(remote: &Remote) -> Result<Connection, FtpError> {
    let is_secure = remote.protocol == Protocol::Ftps;
    let is_implicit = is_secure && remote.option("vfs.implicit") == Some("true");
    let port = remote.port.unwrap_or(if is_implicit { 990 } else { 21 });
    let address = (remote.host.as_str(), port);
    let mut connection = match is_implicit {
        true => Connection::connect_secure_implicit(address, connector(remote)?, &remote.host).await?,
        false => Connection::connect(address).await?,
    };
    if is_secure && !is_implicit {
        connection = connection.into_secure(connector(remote)?, &remote.host).await?;
    }
    // Active mode needs a port that the server can reach; commons-vfs has it by default, few networks let it pass.
    connection.set_mode(if remote.option("vfs.passive") == Some("false") {
        Mode::Active
    } else {
        Mode::ExtendedPassive
    });
    let user = if remote.user.is_empty() { "anonymous" } else { remote.user.as_str() };
    connection.login(user, remote.password.as_str()).await?;
    connection.transfer_type(FileType::Binary).await?;
    Ok(connection)
}

/// TLS that trusts the certificates of the system, or those of `vfs.ssl.truststore`.
fn connector(remote: &Remote) -> Result<AsyncRustlsConnector, FtpError> {
    let wrong = |why: String| FtpError::SecureError(why);
    let mut roots = RootCertStore::empty();
    match remote.option("vfs.ssl.truststore") {
        Some(path) => {
            let bytes = std::fs::read(path).map_err(|error| wrong(format!("`{path}` cannot be read: {error}")))?;
            let password = remote.option("vfs.ssl.tspassword").unwrap_or_default();
            let trusted = read_certificates(&bytes, password).map_err(|error| wrong(format!("`{path}`: {error}")))?;
            roots.add_parsable_certificates(trusted);
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(tokio_rustls::TlsConnector::from(Arc::new(config)).into())
}

/// A command within its time.
async fn within<T>(command: impl Future<Output = Result<T, FtpError>>) -> io::Result<T> {
    match tokio::time::timeout(TIMEOUT, command).await {
        Ok(result) => result.map_err(failed),
        Err(_) => Err(io::Error::new(ErrorKind::TimedOut, "the server did not respond in time")),
    }
}

fn is_missing(error: &FtpError) -> bool {
    matches!(error, FtpError::UnexpectedResponse(response) if response.status == Status::FileUnavailable)
}

fn failed(error: FtpError) -> io::Error {
    if is_missing(&error) {
        return io::Error::new(ErrorKind::NotFound, "no such file");
    }
    io::Error::other(error.to_string())
}
