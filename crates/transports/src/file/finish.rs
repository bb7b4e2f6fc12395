//! What happens to a file after its flow: it is moved, deleted or kept. A file whose move failed is marked, so that it is not
//! processed a second time.

use std::io;
use std::rc::Rc;

use penstock_engine::clock::system_date;
use penstock_message::Body;

use super::location::Location;
use super::settings::{Action, MoveTarget, Settings};
use super::system::{Entry, FileSystem, WriteMode, connect, join};

/// How names of markers end: `<file>.fail`, as in Micro Integrator.
pub(super) const FAILED_SUFFIX: &str = ".fail";

/// Does what the parameters say. After an error the file has a marker beside it.
pub(super) async fn finish(
    system: &Rc<dyn FileSystem>,
    settings: &Settings,
    entry: &Entry,
    action: &Action,
) -> io::Result<()> {
    let error = match act(system, settings, entry, action).await {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    // Without the marker the poller still remembers the file until the process ends.
    system.create(&marker_path(entry), action_word(action).into()).await?;
    Err(error)
}

/// Does again what failed for a file with a marker; a second failure moves it to `MoveAfterFailedMove`.
pub(super) async fn finish_again(system: &Rc<dyn FileSystem>, settings: &Settings, entry: &Entry) -> io::Result<()> {
    let word = match system.read(&marker_path(entry)).await? {
        Some(body) => String::from_utf8_lossy(&body.available()).into_owned(),
        None => return Ok(()),
    };
    let failed = word == action_word(&settings.after_failure) && settings.after_failure != settings.after_process;
    let action = if failed { &settings.after_failure } else { &settings.after_process };
    if let Err(error) = act(system, settings, entry, action).await {
        let Some(folder) = settings.after_failed_move.clone() else { return Err(error) };
        let target = MoveTarget { folder, timestamp: None, sub_folder: None };
        act(system, settings, entry, &Action::Move(Box::new(target))).await?;
    }
    system.remove(&marker_path(entry)).await
}

fn marker_path(entry: &Entry) -> String {
    format!("{}{FAILED_SUFFIX}", entry.path)
}

fn action_word(action: &Action) -> String {
    match action {
        Action::Delete => "DELETE".to_owned(),
        Action::Keep => "NONE".to_owned(),
        Action::Move(target) => format!("MOVE {}", target.folder),
    }
}

async fn act(system: &Rc<dyn FileSystem>, settings: &Settings, entry: &Entry, action: &Action) -> io::Result<()> {
    match action {
        Action::Keep => Ok(()),
        Action::Delete => system.remove(&entry.path).await,
        Action::Move(target) => move_to(system, settings, entry, target).await,
    }
}

async fn move_to(
    system: &Rc<dyn FileSystem>,
    settings: &Settings,
    entry: &Entry,
    target: &MoveTarget,
) -> io::Result<()> {
    let mut folder = target.folder.path.clone();
    if let Some(pattern) = &target.sub_folder {
        folder = join(&folder, &safe_name(&system_date(Some(pattern))));
    }
    let before = target.timestamp.as_ref().map(|pattern| safe_name(&system_date(Some(pattern)))).unwrap_or_default();
    let path = join(&folder, &format!("{before}{}", entry.name));
    if target.folder.system.is_same(&settings.location.system) {
        return match system.rename(&entry.path, &path).await {
            // Only the first file finds the folder missing.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if system.stat(&entry.path).await?.is_none() {
                    return Ok(());
                }
                system.create_folder(&folder).await?;
                system.rename(&entry.path, &path).await
            }
            other => other,
        };
    }
    let other = connect(&target.folder.system).await?;
    let Some(body) = system.read(&entry.path).await? else { return Ok(()) };
    other.write(&path, body, WriteMode::Replace).await?;
    system.remove(&entry.path).await
}

/// A date must not lead to another folder.
fn safe_name(text: &str) -> String {
    text.replace(['/', '\0'], "-")
}

/// Writes a response of a proxy service to `ReplyFileURI`.
pub(super) async fn write_reply(uri: &str, name: &str, body: Body) -> io::Result<()> {
    let location = Location::parse(uri).map_err(io::Error::other)?;
    super::sender::write_to(&location, name, body, None).await
}
