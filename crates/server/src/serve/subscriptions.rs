//! The file of the subscriptions to topics.

use std::io::ErrorKind;
use std::sync::Arc;

use penstock_engine::ports::Level;

use super::registry::replace;
use crate::command::Failure;
use crate::config::Settings;
use crate::log::Log;

/// Its name in the state folder.
const FILE: &str = "websub.json";

/// There are secrets in it.
const FILE_MODE: u32 = 0o600;

/// Gives the gateway the subscriptions it had, and keeps what becomes of them. What cannot be read is not written over.
pub(super) fn prepare(settings: &Settings, log: &Arc<Log>) -> Result<(), Failure> {
    let folder = settings.adapter.state.clone();
    let file = folder.join(FILE);
    let shown = file.display().to_string();
    let cannot =
        |why: String| Failure::environment(format!("the subscriptions to topics in `{shown}` cannot be read: {why}"));
    let kept = match std::fs::read(&file) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(cannot(error.to_string())),
    };
    let log = log.clone();
    // The folder is made when it is needed first: a server of integrations leaves none behind.
    let keeper = move |bytes: &[u8]| {
        let written = std::fs::create_dir_all(&folder).and_then(|()| replace(&file, bytes, FILE_MODE));
        written.map_err(|error| {
            let text = format!("subscriptions to topics cannot be kept: `{}`: {error}", file.display());
            log.say(Level::Error, "Gateway", &text);
            text
        })
    };
    settings.gateway_state.keep_subscriptions(keeper, kept.as_deref()).map_err(cannot)
}
