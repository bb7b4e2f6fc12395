//! Wakes the thread that reloads when something in a watched folder changes, where the system supports it. Whether something
//! changed is found out by looking: a notice may be missing (network drives, containers) or mean nothing.

use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;

/// Folders that are watched. For those beyond, changes are found by looking.
#[cfg(target_os = "linux")]
const FOLDERS_MAX: usize = 8_000;

/// Folders inside folders: deeper is a loop of links.
#[cfg(target_os = "linux")]
const DEPTH_MAX: usize = 32;

/// Sends a message when something changes under the paths; nothing where the system does not support it.
#[cfg(target_os = "linux")]
pub(super) fn start(paths: &[PathBuf], changed: SyncSender<()>) {
    use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, init};
    let Ok(watches) = init(CreateFlags::CLOEXEC) else { return };
    let paths = paths.to_vec();
    let read = move || {
        let watch_all = || {
            let mut count = 0;
            paths.iter().for_each(|path| watch(&watches, path, 0, &mut count));
        };
        watch_all();
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&watches, &mut buffer);
        while let Ok(event) = reader.next() {
            // Folders that are new are watched, too; those that are known stay as they are.
            if event.events().contains(ReadFlags::ISDIR) {
                watch_all();
            }
            // A pending message covers this change as well.
            if let Err(std::sync::mpsc::TrySendError::Disconnected(())) = changed.try_send(()) {
                return;
            }
        }
    };
    // Without the thread changes are found by looking. It ends with the process: nothing wakes it before.
    let _ = std::thread::Builder::new().name("notify".to_owned()).spawn(read);
}

#[cfg(not(target_os = "linux"))]
pub(super) fn start(_paths: &[PathBuf], _changed: SyncSender<()>) {}

/// Watches a folder with those inside, or the folder of a file.
#[cfg(target_os = "linux")]
fn watch(watches: &rustix::fd::OwnedFd, path: &Path, depth: usize, count: &mut usize) {
    use rustix::fs::inotify::{WatchFlags, add_watch};
    let folder = match path.parent() {
        _ if path.is_dir() => path,
        Some(parent) if depth == 0 && !parent.as_os_str().is_empty() => parent,
        _ if depth == 0 => Path::new("."),
        _ => return,
    };
    *count += 1;
    if depth > DEPTH_MAX || *count > FOLDERS_MAX {
        return;
    }
    let changes = WatchFlags::CLOSE_WRITE
        | WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::MOVED_FROM
        | WatchFlags::MOVED_TO;
    let _ = add_watch(watches, folder, changes);
    if folder != path {
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink());
        let inside = entry.path();
        if is_folder && !crate::load::is_clutter_folder(&inside) && inside.is_dir() {
            watch(watches, &inside, depth + 1, count);
        }
    }
}
