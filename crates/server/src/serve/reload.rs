//! Hot reload: files are watched, a change is compiled whole, and only what compiles is swapped in.
//!
//! Modification times show changes on every file system, container mounts and network drives included, so files are checked
//! at from time to time, and at once when the system gives notice of a change (`notify.rs`). A look at a few hundred files
//! costs less than a millisecond.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use penstock_compile::Severity;
use penstock_engine::ports::Level;

use super::certificates::{self, Certificates, Tls};
use super::notify;
use super::state::State;
use super::swap;
use crate::build::{self, BuildOptions};
use crate::config;
use crate::load::{is_clutter_folder, is_editors};

/// How often files are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A change is served once nothing changed for this long: copying an archive takes several writes.
const SETTLED_AFTER: Duration = Duration::from_millis(100);

/// Looking must not cost more than a fiftieth of a core, however many files there are.
const REST_PER_LOOK: u32 = 50;

/// Folders inside folders: deeper is a loop of links.
const DEPTH_MAX: usize = 32;

/// Watches as long as it is held.
pub(super) struct Watcher {
    _alive: Arc<()>,
}

/// Starts the thread that watches.
pub(super) fn start(
    paths: Vec<PathBuf>,
    options: BuildOptions,
    state: Arc<State>,
    tls: Tls,
    turn: Arc<Mutex<()>>,
) -> Option<Watcher> {
    let certificate_files = certificates::files(&state.settings());
    if paths.is_empty() && certificate_files.is_empty() {
        return None;
    }
    let alive = Arc::new(());
    let held = Arc::downgrade(&alive);
    let (notice, noticed) = sync_channel(1);
    // Held here, too, so that waiting works where no notice is given.
    notify::start(&paths, notice.clone());
    let known = if paths.is_empty() { Snapshot::default() } else { Snapshot::read(&paths) };
    let known_certificates = Snapshot::of_files(&certificate_files);
    let mut reload = Reload { paths, options, state, tls, turn, known, known_certificates };
    let watch = move || {
        let mut wait = LOOK_EVERY;
        loop {
            let _ = noticed.recv_timeout(wait);
            if held.strong_count() == 0 {
                drop(notice);
                return;
            }
            let took = reload.look_at_certificates() + reload.look();
            wait = LOOK_EVERY.max(took * REST_PER_LOOK);
        }
    };
    // Without the thread the server serves what it started with.
    std::thread::Builder::new().name("reload".to_owned()).spawn(watch).ok()?;
    Some(Watcher { _alive: alive })
}

struct Reload {
    paths: Vec<PathBuf>,
    options: BuildOptions,
    state: Arc<State>,
    tls: Tls,
    /// Held while what is served changes.
    turn: Arc<Mutex<()>>,
    known: Snapshot,
    known_certificates: Snapshot,
}

impl Reload {
    /// Looks once at the files of certificates and keys; how long looking took.
    fn look_at_certificates(&mut self) -> Duration {
        let started = Instant::now();
        let settings = self.state.settings();
        let files = certificates::files(&settings);
        let mut now = Snapshot::of_files(&files);
        let took = started.elapsed();
        if now == self.known_certificates {
            return took;
        }
        loop {
            // A certificate and its key are two files, written one after the other.
            std::thread::sleep(SETTLED_AFTER);
            let later = Snapshot::of_files(&files);
            if later == now {
                break;
            }
            now = later;
        }
        let what = now.difference(&self.known_certificates);
        self.known_certificates = now;
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let log = &self.state.log;
        match Certificates::read(&settings).and_then(|read| read.apply(&self.tls)) {
            Ok(()) => log.say(Level::Info, "Reload", &format!("{what}: new connections get these certificates")),
            Err(failure) => {
                self.state.reloads_refused.fetch_add(1, Ordering::Relaxed);
                let text = format!("{what}: {failure}; keeping the previous certificates");
                log.say(Level::Error, "Reload", &text);
            }
        }
        took
    }

    /// Looks once at the artifacts; how long looking took.
    fn look(&mut self) -> Duration {
        if self.paths.is_empty() {
            return Duration::ZERO;
        }
        let started = Instant::now();
        let mut now = Snapshot::read(&self.paths);
        let took = started.elapsed();
        if now == self.known {
            return took;
        }
        // A writer is active; wait for its last write.
        loop {
            std::thread::sleep(SETTLED_AFTER);
            let later = Snapshot::read(&self.paths);
            if later == now {
                break;
            }
            now = later;
        }
        let what = now.difference(&self.known);
        self.known = now;
        self.take_over(&what);
        took
    }

    fn take_over(&mut self, what: &str) {
        let turn = self.turn.clone();
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.options.configurables = config::surroundings(&self.paths).configurables();
        let (log, settings) = (self.state.log.clone(), self.state.settings());
        let refuse = |reason: &str| {
            self.state.reloads_refused.fetch_add(1, Ordering::Relaxed);
            log.say(Level::Error, "Reload", &format!("{what}: {reason}; keeping the previous configuration"));
        };
        let built = match build::build(&self.paths, &self.options, &settings) {
            Ok(built) => built,
            Err(error) => return refuse(&error.to_string()),
        };
        for diagnostic in &built.diagnostics {
            let level = if diagnostic.severity == Severity::Error { Level::Error } else { Level::Warn };
            log.say(level, "Reload", &diagnostic.to_string());
        }
        let running = self.state.artifacts();
        let new_errors =
            built.diagnostics.iter().filter(|diagnostic| swap::is_new(diagnostic, &running.errors)).count();
        if new_errors > 0 {
            let noun = if new_errors == 1 { "error" } else { "errors" };
            return refuse(&format!("the change has {new_errors} new {noun}"));
        }
        swap::swap(&self.state, &settings, built, "Reload", what);
    }
}

/// What is remembered of a file to see that it changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
    /// A file that is replaced by another of the same size in the same instant has another one.
    inode: u64,
}

/// All files under the watched paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Snapshot(BTreeMap<PathBuf, Stamp>);

impl Snapshot {
    fn of_files(files: &[PathBuf]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        files.iter().for_each(|file| snapshot.add_file(file));
        snapshot
    }

    fn read(paths: &[PathBuf]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let mut folders = vec![Path::new("")];
        for path in paths {
            snapshot.add(path, 0);
            folders.push(if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) });
        }
        for folder in folders {
            for name in ["file.properties", ".env", "conf/file.properties", "conf/.env"] {
                snapshot.add_file(&folder.join(name));
            }
        }
        snapshot
    }

    fn add(&mut self, path: &Path, depth: usize) {
        if !path.is_dir() {
            return self.add_file(path);
        }
        if depth > DEPTH_MAX {
            return;
        }
        let Ok(entries) = std::fs::read_dir(path) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let inside = entry.path();
            let is_folder = inside.is_dir();
            let skip = if is_folder { is_clutter_folder(&inside) && name != ".meta" } else { is_editors(&name) };
            if !skip {
                self.add(&inside, depth + 1);
            }
        }
    }

    fn add_file(&mut self, path: &Path) {
        use std::os::unix::fs::MetadataExt;
        if let Ok(metadata) = std::fs::metadata(path)
            && metadata.is_file()
        {
            let stamp = Stamp { modified: metadata.modified().ok(), bytes: metadata.len(), inode: metadata.ino() };
            self.0.insert(path.to_owned(), stamp);
        }
    }

    /// The change as a text: the first file, and how many more.
    fn difference(&self, before: &Snapshot) -> String {
        let changed = self.0.iter().filter_map(|(path, stamp)| match before.0.get(path) {
            None => Some((path, "new")),
            Some(old) if old != stamp => Some((path, "changed")),
            Some(_) => None,
        });
        let gone = before.0.keys().filter(|path| !self.0.contains_key(*path)).map(|path| (path, "gone"));
        let all: Vec<_> = changed.chain(gone).collect();
        match all.as_slice() {
            [] => "files changed".to_owned(),
            [(path, how)] => format!("{} is {how}", path.display()),
            [(path, how), rest @ ..] => format!("{} is {how} and {} more", path.display(), rest.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_seen_and_editors_ignored() {
        let folder = std::env::temp_dir().join(format!("penstock-reload-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("api")).unwrap();
        let paths = [folder.clone()];
        let file = folder.join("api/a.xml");
        std::fs::write(&file, "<api/>").unwrap();
        let first = Snapshot::read(&paths);
        std::fs::write(folder.join("api/.a.xml.swp"), "x").unwrap();
        std::fs::write(folder.join("api/a.xml~"), "x").unwrap();
        assert_eq!(Snapshot::read(&paths), first);
        std::fs::write(&file, "<api />").unwrap();
        let second = Snapshot::read(&paths);
        assert_eq!(second.difference(&first), format!("{} is changed", file.display()));
        std::fs::remove_file(&file).unwrap();
        std::fs::write(folder.join(".env"), "A=1").unwrap();
        let third = Snapshot::read(&paths);
        assert_eq!(third.difference(&second), format!("{} is new and 1 more", folder.join(".env").display()));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
