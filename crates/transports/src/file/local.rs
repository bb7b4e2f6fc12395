//! The file system of this machine. Calls run on threads that may block.

use std::any::Any;
use std::fs::{File, OpenOptions};
use std::future::Future;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::SystemTime;

use bytes::Bytes;
use penstock_engine::ports::LocalFuture;
use penstock_message::{Body, BodyError, BodyStream, Form, SizeHint};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use tokio::task::JoinHandle;

use super::system::{CHUNK_BYTES, ENTRIES_MAX, Entry, FileSystem, NextChunk, WriteMode, folder_of, partial_path};

/// The file system of this machine.
pub(super) struct Local;

impl FileSystem for Local {
    fn list<'a>(&'a self, folder: &'a str) -> LocalFuture<'a, io::Result<Option<Vec<Entry>>>> {
        let folder = folder.to_owned();
        blocking(move || {
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            };
            let mut found = Vec::new();
            for entry in entries.take(ENTRIES_MAX) {
                let entry = entry?;
                // Names that are not UTF-8 cannot be matched or reported.
                let Ok(name) = entry.file_name().into_string() else { continue };
                found.extend(entry_of(&super::system::join(&folder, &name))?);
            }
            Ok(Some(found))
        })
    }

    fn stat<'a>(&'a self, path: &'a str) -> LocalFuture<'a, io::Result<Option<Entry>>> {
        let path = path.to_owned();
        blocking(move || entry_of(&path))
    }

    fn read<'a>(&'a self, path: &'a str) -> LocalFuture<'a, io::Result<Option<Body>>> {
        let path = path.to_owned();
        let first = blocking(move || {
            let mut file = match File::open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            };
            let size = file.metadata()?.len();
            let head = read_chunk(&mut file, size)?;
            Ok(Some((file, size, head)))
        });
        Box::pin(async move {
            let Some((file, size, head)) = first.await? else { return Ok(None) };
            let left = size - head.len() as u64;
            if left == 0 {
                return Ok(Some(Body::bytes(head)));
            }
            let rest = Box::new(FileStream { state: State::Idle(file), left });
            Ok(Some(Body::from_form(Form::Stream { head, rest })))
        })
    }

    fn write<'a>(&'a self, path: &'a str, body: Body, mode: WriteMode) -> LocalFuture<'a, io::Result<()>> {
        Box::pin(write(path, body, mode))
    }

    fn create<'a>(&'a self, path: &'a str, bytes: Bytes) -> LocalFuture<'a, io::Result<bool>> {
        let path = path.to_owned();
        blocking(move || {
            match create_whole(&path, &bytes).or_else(|error| match error.kind() {
                ErrorKind::AlreadyExists => Err(error),
                // The file system has no unnamed files.
                _ => OpenOptions::new().write(true).create_new(true).open(&path)?.write_all(&bytes),
            }) {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(error),
            }
        })
    }

    fn rename<'a>(&'a self, from: &'a str, to: &'a str) -> LocalFuture<'a, io::Result<()>> {
        let (from, to) = (from.to_owned(), to.to_owned());
        blocking(move || match std::fs::rename(&from, &to) {
            Err(error) if error.kind() == ErrorKind::CrossesDevices => {
                let partial = partial_path(&to);
                let copied = std::fs::copy(&from, &partial).and_then(|_| std::fs::rename(&partial, &to));
                if copied.is_err() {
                    let _ = std::fs::remove_file(&partial);
                }
                copied.and_then(|()| std::fs::remove_file(&from))
            }
            other => other,
        })
    }

    fn remove<'a>(&'a self, path: &'a str) -> LocalFuture<'a, io::Result<()>> {
        let path = path.to_owned();
        blocking(move || match std::fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            other => other,
        })
    }

    fn remove_folder<'a>(&'a self, path: &'a str) -> LocalFuture<'a, io::Result<()>> {
        let path = path.to_owned();
        blocking(move || std::fs::remove_dir(&path))
    }

    fn create_folder<'a>(&'a self, path: &'a str) -> LocalFuture<'a, io::Result<()>> {
        let path = path.to_owned();
        blocking(move || std::fs::create_dir_all(&path))
    }

    fn set_modified<'a>(&'a self, path: &'a str, time: SystemTime) -> LocalFuture<'a, io::Result<()>> {
        let path = path.to_owned();
        blocking(move || OpenOptions::new().write(true).open(&path)?.set_modified(time))
    }
}

/// Creates a file that has its content from the moment it exists. A process that is killed between creating and writing a
/// lock would leave an empty one, whose process is unknown: no later process could break it.
fn create_whole(path: &str, bytes: &[u8]) -> io::Result<()> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(folder_of(path), flags, Mode::from_raw_mode(0o666))?);
    file.write_all(bytes)?;
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::linkat(CWD, unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Runs a call that may block. It is not interrupted: a caller that goes away leaves no half-done step.
fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> LocalFuture<'static, io::Result<T>> {
    let task = tokio::task::spawn_blocking(call);
    Box::pin(async move { task.await.map_err(io::Error::other)? })
}

fn entry_of(path: &str) -> io::Result<Option<Entry>> {
    let metadata = match Path::new(path).metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(Entry {
        name: super::system::name_of(path).to_owned(),
        path: path.to_owned(),
        size: metadata.len(),
        modified: metadata.modified().ok(),
        is_folder: metadata.is_dir(),
    }))
}

/// Reads up to a chunk of a file that has so many bytes left.
fn read_chunk(file: &mut File, left: u64) -> io::Result<Bytes> {
    let wanted = left.min(CHUNK_BYTES as u64);
    let mut bytes = Vec::with_capacity(wanted as usize);
    file.take(wanted).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < wanted {
        return Err(io::Error::new(ErrorKind::UnexpectedEof, "the file became shorter while it was read"));
    }
    Ok(bytes.into())
}

/// A file that is read while its message travels.
struct FileStream {
    state: State,
    /// Bytes that were not given yet.
    left: u64,
}

enum State {
    Idle(File),
    Reading(JoinHandle<io::Result<(File, Bytes)>>),
    Done,
}

impl BodyStream for FileStream {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        loop {
            match std::mem::replace(&mut self.state, State::Done) {
                State::Done => return Poll::Ready(None),
                State::Idle(_) if self.left == 0 => return Poll::Ready(None),
                State::Idle(mut file) => {
                    let left = self.left;
                    let read = move || read_chunk(&mut file, left).map(|bytes| (file, bytes));
                    self.state = State::Reading(tokio::task::spawn_blocking(read));
                }
                State::Reading(mut task) => {
                    let Poll::Ready(read) = Pin::new(&mut task).poll(cx) else {
                        self.state = State::Reading(task);
                        return Poll::Pending;
                    };
                    return Poll::Ready(match read.map_err(io::Error::other).and_then(|read| read) {
                        Ok((file, bytes)) => {
                            self.left -= bytes.len() as u64;
                            self.state = State::Idle(file);
                            Some(Ok(bytes))
                        }
                        Err(error) => Some(Err(BodyError::Incomplete(format!("the file cannot be read: {error}")))),
                    });
                }
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::Exact(self.left)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

async fn write(path: &str, mut body: Body, mode: WriteMode) -> io::Result<()> {
    let target = match mode {
        WriteMode::Replace => partial_path(path),
        WriteMode::Append => path.to_owned(),
    };
    let (form, opened) = (body.take_to_send(), target.clone());
    let (mut file, before) = blocking(move || {
        std::fs::create_dir_all(folder_of(&opened))?;
        let mut options = OpenOptions::new();
        let file = match mode {
            WriteMode::Replace => options.write(true).create_new(true).open(&opened)?,
            WriteMode::Append => options.append(true).create(true).open(&opened)?,
        };
        let before = file.metadata()?.len();
        Ok((file, before))
    })
    .await?;
    let written = async {
        let mut next = NextChunk { form };
        while let Some(bytes) = next.next().await? {
            file = blocking(move || file.write_all(&bytes).map(|()| file)).await?;
        }
        Ok(())
    }
    .await;
    let path = path.to_owned();
    blocking(move || match (mode, &written) {
        (WriteMode::Replace, Ok(())) => std::fs::rename(&target, &path),
        (WriteMode::Replace, Err(_)) => std::fs::remove_file(&target).and(written),
        (WriteMode::Append, Ok(())) => Ok(()),
        (WriteMode::Append, Err(_)) => OpenOptions::new().write(true).open(&path)?.set_len(before).and(written),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_created_once_with_its_content() {
        let path = std::env::temp_dir().join(format!("penstock-created-{}.lock", std::process::id()));
        let path = path.to_str().unwrap();
        let _ = std::fs::remove_file(path);
        create_whole(path, b"first").unwrap();
        assert!(!Local.create(path, Bytes::from_static(b"second")).await.unwrap());
        assert_eq!(std::fs::read(path).unwrap(), b"first");
        std::fs::remove_file(path).unwrap();
        assert!(Local.create(path, Bytes::from_static(b"third")).await.unwrap());
        assert_eq!(std::fs::read(path).unwrap(), b"third");
        std::fs::remove_file(path).unwrap();
        assert!(Local.create("/nowhere/a.lock", Bytes::new()).await.is_err());
    }
}
