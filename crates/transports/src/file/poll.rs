//! One poll: list, choose, and for each file lock, read, run the flow, move or delete, unlock.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::StreamExt;
use futures_util::stream;
use penstock_engine::background::{Control, Poll, PollSource, Polled, ServiceError};
use penstock_engine::inject::{Consumer, Injected};
use penstock_engine::ports::{Level, LocalFuture};
use penstock_message::Body;

use super::finish::{FAILED_SUFFIX, finish, finish_again, write_reply};
use super::location::SystemAddress;
use super::lock::{self, Lock};
use super::message::message_of;
use super::sender::{DEFAULT_REPLY_NAME, REPLY_FILE_NAME};
use super::settings::{Action, Settings, SortBy};
use super::system::{Entry, FileSystem, PARTIAL_PREFIX, connect};

/// A file that was written less than this ago may be incomplete: its size is looked at again after the same time. Writers
/// that pause longer need `CheckSizeInterval`, or write under another name and rename.
const YOUNG: Duration = Duration::from_millis(200);

/// The same on another machine, whose clock may differ; and how long to wait for writers there.
const YOUNG_REMOTE: Duration = Duration::from_secs(10);
const WAIT_REMOTE: Duration = Duration::from_secs(1);

/// Folders in folders: deeper is a loop of links.
const DEPTH_MAX: usize = 32;

/// Files that are polled.
pub(super) struct Files {
    pub(super) settings: Arc<Settings>,
    pub(super) consumer: Consumer,
}

impl PollSource for Files {
    fn open(&self) -> Box<dyn Poll> {
        Box::new(Poller {
            settings: self.settings.clone(),
            consumer: self.consumer.clone(),
            system: None,
            done: HashMap::new(),
        })
    }
}

/// What a file was when it was processed.
type Version = (u64, Option<SystemTime>);

struct Poller {
    settings: Arc<Settings>,
    consumer: Consumer,
    system: Option<Rc<dyn FileSystem>>,
    /// Files that were processed and are still there: kept ones, and those whose move failed.
    done: HashMap<String, Version>,
}

impl Poll for Poller {
    fn poll<'a>(&'a mut self, control: &'a Control) -> LocalFuture<'a, Result<Polled, ServiceError>> {
        Box::pin(async move {
            let polled = self.poll_once(control).await;
            polled.map_err(|error| {
                // The next poll connects anew.
                self.system = None;
                ServiceError::temporary(format!("{}: {error}", self.settings.location))
            })
        })
    }
}

/// What became of a file.
enum Processed {
    /// It is gone, or another has it.
    Gone,
    /// It is still there and was processed.
    Kept(String, Version),
}

impl Poller {
    async fn poll_once(&mut self, control: &Control) -> io::Result<Polled> {
        let settings = self.settings.clone();
        let system = match &self.system {
            Some(system) => system.clone(),
            None => self.system.insert(connect(&settings.location.system).await?).clone(),
        };
        let Some(found) = system.stat(&settings.location.path).await? else {
            let location = &settings.location;
            return Ok(Polled::Missing(format!("Provided file uri: {location} is invalid. File does not exist")));
        };
        if found.is_folder && settings.is_proxy && settings.pattern.is_none() {
            return Ok(Polled::Missing(
                "`transport.vfs.FileNamePattern` is missing: no file of a folder is read".to_owned(),
            ));
        }
        let entries = if found.is_folder { list(&system, &settings).await? } else { vec![found] };
        remove_orphans(&system, &settings, &entries).await?;
        let files = self.choose(entries, control);
        if let Some(wait) = self.wait_for_writers(&files)
            && control.until(tokio::time::sleep(wait)).await.is_none()
        {
            return Ok(Polled::Done);
        }
        let (consumer, done) = (&self.consumer, &self.done);
        let mut first_error = None;
        let has_failed = Cell::new(false);
        // After an error no other file is begun; the flows that run come to their end.
        let files = stream::iter(files).take_while(|_| std::future::ready(control.is_wanted() && !has_failed.get()));
        let mut results =
            files.map(|file| process(&system, &settings, consumer, done, file, control)).buffered(settings.concurrency);
        let mut kept = Vec::new();
        while let Some(result) = results.next().await {
            match result {
                Ok(Processed::Gone) => {}
                Ok(Processed::Kept(path, version)) => kept.push((path, version)),
                Err(error) => {
                    has_failed.set(true);
                    first_error.get_or_insert(error);
                }
            }
        }
        drop(results);
        self.done.extend(kept);
        first_error.map_or(Ok(Polled::Done), Err)
    }

    /// The files to process, in their order.
    fn choose(&mut self, entries: Vec<Entry>, control: &Control) -> Vec<Candidate> {
        let settings = &self.settings;
        let marked: HashSet<String> =
            entries.iter().filter_map(|entry| entry.path.strip_suffix(FAILED_SUFFIX)).map(str::to_owned).collect();
        let present: HashSet<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
        self.done.retain(|path, _| present.contains(path.as_str()));
        let now = SystemTime::now();
        let mut files: Vec<Candidate> = Vec::new();
        for entry in entries {
            let is_marked = marked.contains(&entry.path);
            if !is_marked && !self.is_wanted(&entry, now, control) {
                continue;
            }
            let young = if settings.location.system == SystemAddress::Local { YOUNG } else { YOUNG_REMOTE };
            let is_young = entry.modified.is_none_or(|time| {
                // A time in the future comes from a clock that differs.
                now.duration_since(time).unwrap_or_else(|error| error.duration()) < young
            });
            files.push(Candidate { entry, is_marked, is_young });
        }
        match settings.sort_by {
            SortBy::Name => files.sort_by(|left, right| left.entry.path.cmp(&right.entry.path)),
            SortBy::Size => files.sort_by_key(|file| file.entry.size),
            SortBy::Modified => files.sort_by_key(|file| file.entry.modified),
        }
        if !settings.ascending {
            files.reverse();
        }
        files.truncate(settings.files_max);
        files
    }

    fn is_wanted(&self, entry: &Entry, now: SystemTime, control: &Control) -> bool {
        let settings = &self.settings;
        if entry.name.ends_with(lock::SUFFIX)
            || entry.name.ends_with(FAILED_SUFFIX)
            || entry.name.starts_with(PARTIAL_PREFIX)
            || self.done.get(&entry.path) == Some(&(entry.size, entry.modified))
        {
            return false;
        }
        let fits = settings.pattern.as_ref().is_none_or(|pattern| {
            pattern.is_match(&entry.name).unwrap_or_else(|error| {
                control
                    .log(Level::Warn, &format!("`FileNamePattern` cannot be matched with `{}`: {error}", entry.name));
                false
            })
        });
        let age = entry.modified.and_then(|time| now.duration_since(time).ok()).unwrap_or_default();
        fits && settings.bytes_max.is_none_or(|max| entry.size <= max)
            && age >= settings.age_min
            && settings.age_max.is_none_or(|max| age <= max)
            && !(settings.ignores_empty && entry.size == 0)
    }

    /// How long to wait so that files which are being written show it.
    fn wait_for_writers(&self, files: &[Candidate]) -> Option<Duration> {
        match self.settings.check_size {
            Some(interval) => (!files.is_empty()).then_some(interval),
            None => files.iter().any(|file| file.is_young).then_some(match self.settings.location.system {
                SystemAddress::Local => YOUNG,
                SystemAddress::Remote(_) => WAIT_REMOTE,
            }),
        }
    }
}

/// A file that fits.
struct Candidate {
    entry: Entry,
    /// Its flow has ended, and its move failed.
    is_marked: bool,
    /// It may still be written.
    is_young: bool,
}

/// Removes locks that a process left which was killed between removing a file and its lock.
async fn remove_orphans(system: &Rc<dyn FileSystem>, settings: &Settings, entries: &[Entry]) -> io::Result<()> {
    let locks: Vec<&str> = entries.iter().filter_map(|entry| entry.path.strip_suffix(lock::SUFFIX)).collect();
    if locks.is_empty() {
        return Ok(());
    }
    let present: HashSet<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
    let scope = settings.location.system.to_string();
    for file in locks.into_iter().filter(|file| !present.contains(file)) {
        Lock::remove_orphan(system, &scope, &format!("{file}{}", lock::SUFFIX)).await?;
    }
    Ok(())
}

async fn list(system: &Rc<dyn FileSystem>, settings: &Settings) -> io::Result<Vec<Entry>> {
    let mut files = Vec::new();
    let mut folders = vec![(settings.location.path.clone(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in system.list(&folder).await?.unwrap_or_default() {
            match entry.is_folder {
                false => files.push(entry),
                true if settings.location.is_recursive && depth < DEPTH_MAX => folders.push((entry.path, depth + 1)),
                true => {}
            }
        }
    }
    Ok(files)
}

async fn process(
    system: &Rc<dyn FileSystem>,
    settings: &Settings,
    consumer: &Consumer,
    done: &HashMap<String, Version>,
    file: Candidate,
    control: &Control,
) -> io::Result<Processed> {
    let Candidate { entry, is_marked, is_young } = file;
    if !control.is_wanted() {
        return Ok(Processed::Gone);
    }
    if !settings.file_interval.is_zero() && control.until(tokio::time::sleep(settings.file_interval)).await.is_none() {
        return Ok(Processed::Gone);
    }
    let scope = settings.location.system.to_string();
    let lock = match settings.locking {
        None => None,
        Some(locking) => match Lock::take(system, &scope, &entry.path, locking).await? {
            Some(lock) => Some(lock),
            None => return Ok(Processed::Gone),
        },
    };
    let processed = if is_marked {
        let version = (entry.size, entry.modified);
        if let Err(error) = finish_again(system, settings, &entry).await {
            control.log(Level::Error, &format!("`{}` was processed and cannot be moved: {error}", entry.path));
        }
        Ok(Processed::Kept(entry.path, version))
    } else {
        process_locked(system, settings, consumer, done, entry, is_young, control).await
    };
    if let Some(lock) = lock {
        lock.release(system).await?;
    }
    processed
}

async fn process_locked(
    system: &Rc<dyn FileSystem>,
    settings: &Settings,
    consumer: &Consumer,
    done: &HashMap<String, Version>,
    listed: Entry,
    is_young: bool,
    control: &Control,
) -> io::Result<Processed> {
    let version = (listed.size, listed.modified);
    if !settings.wait_before_read.is_zero() {
        tokio::time::sleep(settings.wait_before_read).await;
    }
    // Another server may have processed it since it was listed, and a writer may go on.
    let entry = if is_young || settings.check_size.is_some() {
        // Some servers list times without seconds.
        let is_local = settings.location.system == SystemAddress::Local;
        match system.stat(&listed.path).await? {
            Some(now) if now.size == listed.size && (!is_local || now.modified == listed.modified) => now,
            _ => return Ok(Processed::Gone),
        }
    } else {
        listed
    };
    if done.get(&entry.path) == Some(&version) {
        return Ok(Processed::Gone);
    }
    let Some(body) = system.read(&entry.path).await? else { return Ok(Processed::Gone) };
    let is_success = run_flow(settings, consumer, &entry, body, control).await;
    let action = if is_success { &settings.after_process } else { &settings.after_failure };
    if let Err(error) = finish(system, settings, &entry, action).await {
        control.log(Level::Error, &format!("`{}` was processed and cannot be moved or deleted: {error}", entry.path));
        return Ok(Processed::Kept(entry.path, version));
    }
    // A failed file that is kept is tried again at the next poll.
    Ok(match action {
        Action::Keep if is_success => Processed::Kept(entry.path, version),
        _ => Processed::Gone,
    })
}

/// Runs the flow of a file; whether it succeeded.
async fn run_flow(settings: &Settings, consumer: &Consumer, entry: &Entry, body: Body, control: &Control) -> bool {
    let message = match message_of(entry, body, settings) {
        Ok(message) => message,
        Err(why) => {
            control.log(Level::Error, &format!("Error processing File URI : {}: {why}", entry.path));
            control.count(false);
            return false;
        }
    };
    let Injected { outcome, reply, message } = consumer.consume(control, message).await;
    if let (Some(uri), Some(mut reply)) = (&settings.reply, reply) {
        let name = reply.headers.get(REPLY_FILE_NAME).or(settings.reply_name.as_deref()).unwrap_or(DEFAULT_REPLY_NAME);
        let name = name.to_owned();
        if let Err(error) = write_reply(uri, &name, std::mem::take(&mut reply.body)).await {
            control.log(Level::Error, &format!("the response to `{}` was not written: {error}", entry.path));
            return false;
        }
    }
    // A flow that wants its file to count as failed sets this header.
    outcome.is_done() && !message.headers.contains("ERROR_CODE")
}
