//! What the gateway's security needs of the file system: its key, and the list of revoked tokens.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use penstock_engine::ports::Level;
use penstock_gateway::security::{AccessList, RevokedSource, SecurityState, Signer};

use super::registry::replace;
use crate::command::Failure;
use crate::config::{Settings, read_signing_key};
use crate::log::Log;

/// How often the list of revoked tokens is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The file of the tokens that were revoked over HTTPS, in the state folder.
const REVOKED_FILE: &str = "revoked.json";

/// Ids of tokens without one are parts of them.
const REVOKED_FILE_MODE: u32 = 0o600;

/// The file of the key in the state folder.
const KEY_FILE: &str = "gateway-key.pem";

/// Watches as long as it is held.
pub(super) struct Watcher {
    _alive: SyncSender<()>,
}

/// Gives the gateway its key, its applications and the list of revoked tokens.
pub(super) fn prepare(settings: &Settings, log: &Arc<Log>) -> Result<Option<Watcher>, Failure> {
    let state = &settings.gateway_state.security;
    let files = &settings.security;
    match &files.signing_key {
        Some(key) => state.set_signer(read_signing_key(key).map_err(Failure::environment)?),
        // Read or made when it is needed first: a server of integrations leaves no folder behind.
        None => {
            let (folder, log) = (settings.adapter.state.clone(), log.clone());
            state.set_signer_source(move || match kept_key(&folder) {
                Ok((signer, _)) => Some(signer),
                Err(why) => {
                    let text = format!("the gateway's key cannot be kept, tokens end with this process: {why}");
                    log.say(Level::Warn, "Gateway", &text);
                    None
                }
            });
        }
    }
    state.set_access(AccessList::new(&files.applications, &files.subscriptions));
    keep_revoked(settings, log)?;
    if let Some(source) = files.revoked_source.as_ref().filter(|source| !source.url.is_empty()) {
        ask_for_revoked(source.clone(), state, log);
    }
    files.revoked.clone().map(|file| watch(file, state.clone(), log.clone())).transpose()
}

/// Gives the gateway the tokens that were revoked over HTTPS, and keeps what becomes of them.
fn keep_revoked(settings: &Settings, log: &Arc<Log>) -> Result<(), Failure> {
    let folder = settings.adapter.state.clone();
    let file = folder.join(REVOKED_FILE);
    let shown = file.display().to_string();
    let cannot = |why: String| Failure::environment(format!("the revoked tokens in `{shown}` cannot be read: {why}"));
    let kept = match std::fs::read(&file) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(cannot(error.to_string())),
    };
    let log = log.clone();
    // The folder is made when it is needed first: a server of integrations leaves none behind.
    let keeper = move |bytes: &[u8]| {
        let written = std::fs::create_dir_all(&folder).and_then(|()| replace(&file, bytes, REVOKED_FILE_MODE));
        written.map_err(|error| {
            let text = format!("revoked tokens cannot be kept: `{}`: {error}", file.display());
            log.say(Level::Error, "Gateway", &text);
            text
        })
    };
    settings.gateway_state.security.revocations.kept_by(keeper, kept.as_deref()).map_err(cannot)
}

/// Fetches a list, and logs changes of the outcome.
fn ask_for_revoked(source: RevokedSource, state: &SecurityState, log: &Arc<Log>) {
    let (url, log) = (source.url.clone(), log.clone());
    let told = Mutex::new(None);
    state.revocations.ask(source, move |outcome| {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.as_ref() == Some(&outcome) {
            return;
        }
        match &outcome {
            Ok(count) => log.say(Level::Info, "Gateway", &format!("`{url}`: {count} revoked tokens")),
            Err(why) => log.say(Level::Error, "Gateway", &format!("`{url}`: {why}; what was revoked stays so")),
        }
        *told = Some(outcome);
    });
}

/// The key in the state folder, generated if missing; then its file is logged too.
pub fn kept_key(folder: &Path) -> Result<(Signer, Option<PathBuf>), String> {
    let file = folder.join(KEY_FILE);
    let shown = file.display();
    let read = || match std::fs::read(&file) {
        Ok(pem) => Signer::from_pem(&pem).map(Some).map_err(|error| format!("`{shown}`: {error}")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("`{shown}`: {error}")),
    };
    if let Some(signer) = read()? {
        return Ok((signer, None));
    }
    let (signer, pem) = Signer::generate().map_err(|error| error.to_string())?;
    std::fs::create_dir_all(folder).map_err(|error| format!("`{}`: {error}", folder.display()))?;
    // Written whole before it has its name, and never over another: two processes may start at once.
    let draft = folder.join(format!("{KEY_FILE}.{}", std::process::id()));
    let written = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft);
    written
        .and_then(|mut out| out.write_all(pem.as_bytes()))
        .map_err(|error| format!("`{}`: {error}", draft.display()))?;
    let named = std::fs::hard_link(&draft, &file);
    let _ = std::fs::remove_file(&draft);
    match named {
        Ok(()) => Ok((signer, Some(file))),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            read()?.map(|signer| (signer, None)).ok_or_else(|| format!("`{shown}` is gone"))
        }
        Err(error) => Err(format!("`{shown}`: {error}")),
    }
}

/// Reads the list now and whenever it changes.
fn watch(file: PathBuf, state: Arc<SecurityState>, log: Arc<Log>) -> Result<Watcher, Failure> {
    let mut known = Stamp::default();
    let mut look = move || {
        let now = stamp(&file);
        if now == known {
            return;
        }
        known = now;
        match std::fs::read_to_string(&file) {
            Ok(text) => {
                let ids: Vec<String> = ids(&text);
                log.say(Level::Info, "Gateway", &format!("`{}`: {} revoked tokens", file.display(), ids.len()));
                state.revocations.set_watched(ids);
            }
            // What was revoked stays so while the file is away.
            Err(error) => log.say(Level::Error, "Gateway", &format!("`{}`: {error}", file.display())),
        }
    };
    look();
    let (alive, gone) = sync_channel(0);
    let run = move || {
        while gone.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
            look();
        }
    };
    let cannot = |cause: std::io::Error| Failure::environment(format!("a thread cannot be started: {cause}"));
    std::thread::Builder::new().name("revoked".to_owned()).spawn(run).map_err(cannot)?;
    Ok(Watcher { _alive: alive })
}

/// The fingerprint of a change.
type Stamp = Option<(Option<SystemTime>, u64)>;

fn stamp(file: &Path) -> Stamp {
    std::fs::metadata(file).ok().map(|found| (found.modified().ok(), found.len()))
}

/// One id a line; empty lines and comments (`#`) are not.
fn ids(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_only_its_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("penstock-key-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let (made, file) = kept_key(&folder).unwrap();
        assert_eq!(file, Some(folder.join(KEY_FILE)));
        let (again, file) = kept_key(&folder).unwrap();
        assert_eq!(file, None);
        assert_eq!(made.kid(), again.kid());
        let mode = std::fs::metadata(folder.join(KEY_FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(folder.join(KEY_FILE), "nonsense").unwrap();
        assert!(kept_key(&folder).is_err(), "a broken key is not replaced");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_list_has_an_id_a_line() {
        assert_eq!(ids("# lost\n a \n\nb\n"), ["a", "b"]);
    }
}
