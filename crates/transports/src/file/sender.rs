//! Endpoints with an address `vfs:file:///…`: a message is written to a file.

use std::any::Any;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use penstock_engine::clock::system_date;
use penstock_engine::ports::{LocalFuture, Outbound, Outgoing};
use penstock_engine::{Fault, Side, codes};
use penstock_message::{Body, BodyError, BodyStream, Form, Headers, Message, SizeHint};

use super::location::Location;
use super::lock::{Lock, Locking};
use super::system::{FileSystem, WriteMode, connect, join};

/// The header, and the parameter of a proxy service, with the name of the file.
pub(super) const REPLY_FILE_NAME: &str = "transport.vfs.ReplyFileName";

/// The name of a file when nothing names it.
pub(super) const DEFAULT_REPLY_NAME: &str = "response.xml";

/// How long a writer waits for another that appends to the same file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// The interval of its attempts.
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// Writes messages to files.
#[derive(Debug, Default)]
pub struct FileSender;

impl Outbound for FileSender {
    fn send<'a>(&'a self, outgoing: Outgoing) -> LocalFuture<'a, Result<Message, Fault>> {
        Box::pin(async move {
            let Outgoing { url, mut message, options, .. } = outgoing;
            let location = Location::parse(&url)
                .map_err(|why| Fault::coded(codes::SENDER_IO_SENDING, Side::Us, format!("`{REDACTED}`: {why}")))?;
            let name = message.headers.get(REPLY_FILE_NAME).map(str::to_owned);
            let name = name.or_else(|| Some(message.axis2.get(REPLY_FILE_NAME)?.to_text().into_owned()));
            let name = name.unwrap_or_else(|| DEFAULT_REPLY_NAME.to_owned());
            let modified = message.headers.get("LAST_MODIFIED").and_then(|millis| millis.parse().ok());
            let modified = modified.map(|millis| UNIX_EPOCH + Duration::from_millis(millis));
            let body = until(std::mem::take(&mut message.body), options.time_left);
            let write = write_to(&location, &name, body, modified);
            let failed = |why: String| {
                Fault::coded(codes::SENDER_IO_SENDING, Side::Backend, format!("{location} was not written: {why}"))
            };
            match tokio::time::timeout(options.time_left + UNDO_TIME, write).await {
                Ok(Ok(())) => Ok(Message { status: 202, ..Message::default() }),
                Ok(Err(error)) => Err(match error.get_ref().and_then(|cause| cause.downcast_ref::<BodyError>()) {
                    // The body did not arrive whole, which says nothing of the place it was written to.
                    Some(body) => body.clone().into(),
                    None => failed(error.to_string()),
                }),
                Err(_) => Err(failed("the time of the request is over".to_owned())),
            }
        })
    }
}

/// What a write that ended with its body has left, to take back what was written.
const UNDO_TIME: Duration = Duration::from_secs(1);

/// A body that ends with an error when the time is over, so that what was written of it is taken back.
fn until(mut body: Body, time_left: Duration) -> Body {
    if body.is_stream()
        && let Form::Stream { head, rest } = body.take()
    {
        let deadline = Box::pin(tokio::time::sleep(time_left));
        body.put(Form::Stream { head, rest: Box::new(Until { rest, deadline }) });
    }
    body
}

struct Until {
    rest: Box<dyn BodyStream>,
    deadline: Pin<Box<tokio::time::Sleep>>,
}

impl BodyStream for Until {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        match self.deadline.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Some(Err(BodyError::Timeout))),
            Poll::Pending => self.rest.poll_chunk(cx),
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.rest.size_hint()
    }

    fn trailers(&mut self) -> Option<Headers> {
        self.rest.trailers()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// An address that cannot be read may have a password anywhere.
const REDACTED: &str = "vfs:…";

/// Writes a body to a location: a file, or a file of that name in a folder.
pub(super) async fn write_to(
    location: &Location,
    name: &str,
    body: Body,
    modified: Option<SystemTime>,
) -> io::Result<()> {
    let system = connect(&location.system).await?;
    let is_folder = location.is_folder
        || location.flag("transport.vfs.CreateFolder") && !super::system::name_of(&location.path).contains('.')
        || system.stat(&location.path).await?.is_some_and(|found| found.is_folder);
    let mut path = location.path.clone();
    if is_folder {
        // A name must not lead out of the folder.
        if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{name}` is not the name of a file")));
        }
        if let Some(pattern) = location.option("transport.vfs.SubFolderTimestampFormat") {
            path = join(&path, &system_date(Some(pattern)).replace(['/', '\0'], "-"));
        }
        path = join(&path, name);
    }
    if location.flag("transport.vfs.Append") {
        return append(&system, location, &path, body).await;
    }
    system.write(&path, body, WriteMode::Replace).await?;
    match modified.filter(|_| location.option("transport.vfs.UpdateLastModified") != Some("false")) {
        Some(time) => system.set_modified(&path, time).await,
        None => Ok(()),
    }
}

/// Appends under the lock of the file, so that records of two writers do not mix.
async fn append(system: &Rc<dyn FileSystem>, location: &Location, path: &str, body: Body) -> io::Result<()> {
    if location.option("transport.vfs.Locking").is_some_and(|word| word.eq_ignore_ascii_case("disable")) {
        return system.write(path, body, WriteMode::Append).await;
    }
    let locking = Locking { release_after: None, same_host_only: false };
    let scope = location.system.to_string();
    system.create_folder(super::system::folder_of(path)).await?;
    let end = tokio::time::Instant::now() + LOCK_TIMEOUT;
    let lock = loop {
        if let Some(lock) = Lock::take(system, &scope, path, locking).await? {
            break lock;
        }
        if tokio::time::Instant::now() > end {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "another writer has the lock of the file"));
        }
        tokio::time::sleep(LOCK_INTERVAL).await;
    };
    let written = system.write(path, body, WriteMode::Append).await;
    lock.release(system).await?;
    written
}
