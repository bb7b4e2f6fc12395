//! The files of the subscriptions to topics, and of the events that wait for subscribers.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use penstock_engine::ports::Level;
use penstock_gateway::EventFile;

use super::registry::replace;
use crate::command::Failure;
use crate::config::Settings;
use crate::log::Log;

/// Their names in the state folder.
const SUBSCRIPTIONS: &str = "websub.json";
const EVENTS: &str = "websub-events";

/// There are secrets in them.
const FILE_MODE: u32 = 0o600;

/// Several times what events may take while they wait.
const EVENTS_BYTES_MAX: u64 = 1 << 30;

/// Gives the gateway the subscriptions and events it had, and keeps what becomes of them. What cannot be read is not
/// written over.
pub(super) fn prepare(settings: &Settings, log: &Arc<Log>) -> Result<(), Failure> {
    let folder = settings.adapter.state.clone();
    let file = folder.join(SUBSCRIPTIONS);
    let cannot = |what: &str, file: &Path, why: String| {
        Failure::environment(format!("{what} in `{}` cannot be read: {why}", file.display()))
    };
    let unread = |why| cannot("the subscriptions to topics", &file, why);
    let kept = read(&file).map_err(|error| unread(error.to_string()))?;
    let keeper = {
        let (folder, file, log) = (folder.clone(), file.clone(), log.clone());
        // The folder is made when it is needed first: a server of integrations leaves none behind.
        move |bytes: &[u8]| {
            let written = fs::create_dir_all(&folder).and_then(|()| replace(&file, bytes, FILE_MODE));
            written.map_err(|error| tell(&log, "subscriptions to topics", &file, &error))
        }
    };
    settings.gateway_state.keep_subscriptions(keeper, kept.as_deref()).map_err(unread)?;

    let file = folder.join(EVENTS);
    let unread = |why| cannot("the events for subscribers", &file, why);
    let size = fs::metadata(&file).map_or(0, |found| found.len());
    if size > EVENTS_BYTES_MAX {
        return Err(unread(format!("it has more than {EVENTS_BYTES_MAX} bytes")));
    }
    let kept = read(&file).map_err(|error| unread(error.to_string()))?.unwrap_or_default();
    let events = Events { folder, file: file.clone(), open: None, log: log.clone() };
    let torn = settings.gateway_state.keep_events(Box::new(events), &kept).map_err(unread)?;
    if torn > 0 {
        let text = format!("{torn} bytes at the end of `{}` were incomplete and are discarded", file.display());
        log.say(Level::Warn, "Gateway", &text);
    }
    Ok(())
}

fn read(file: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(file) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn tell(log: &Log, what: &str, file: &Path, error: &io::Error) -> String {
    let text = format!("{what} cannot be kept: `{}`: {error}", file.display());
    log.say(Level::Error, "Gateway", &text);
    text
}

/// The file of events.
struct Events {
    folder: PathBuf,
    file: PathBuf,
    /// The file, open at its end.
    open: Option<File>,
    log: Arc<Log>,
}

impl Events {
    fn try_append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut file = match self.open.take() {
            Some(file) => file,
            None => OpenOptions::new().append(true).open(&self.file)?,
        };
        file.write_all(bytes)?;
        file.sync_data()?;
        self.open = Some(file);
        Ok(())
    }

    fn try_replace(&mut self, pieces: &mut dyn Iterator<Item = Vec<u8>>) -> io::Result<()> {
        self.open = None;
        fs::create_dir_all(&self.folder)?;
        let beside = self.file.with_extension("tmp");
        let mut options = OpenOptions::new();
        let mut new = options.write(true).create(true).truncate(true).mode(FILE_MODE).open(&beside)?;
        for piece in pieces {
            new.write_all(&piece)?;
        }
        new.sync_data()?;
        fs::rename(&beside, &self.file)?;
        // The name as well as the bytes, should the power fail.
        File::open(&self.folder)?.sync_all()
    }
}

impl EventFile for Events {
    fn append(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.try_append(bytes).map_err(|error| tell(&self.log, "events for subscribers", &self.file, &error))
    }

    fn replace(&mut self, pieces: &mut dyn Iterator<Item = Vec<u8>>) -> Result<(), String> {
        self.try_replace(pieces).map_err(|error| tell(&self.log, "events for subscribers", &self.file, &error))
    }
}
