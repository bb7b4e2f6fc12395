//! What senders keep between messages: parsed URLs and connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Parsed URLs that are kept. An address may be computed for each message.
const PARSED_MAX: usize = 1000;

/// What URLs mean, each parsed once.
pub(crate) struct Parsed<T>(Mutex<HashMap<Arc<str>, Arc<T>>>);

impl<T> Default for Parsed<T> {
    fn default() -> Parsed<T> {
        Parsed(Mutex::default())
    }
}

impl<T> Parsed<T> {
    /// The meaning of a URL.
    pub(crate) fn get_or_parse(
        &self,
        url: &Arc<str>,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Arc<T>, String> {
        let mut parsed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = parsed.get(url) {
            return Ok(found.clone());
        }
        if parsed.len() >= PARSED_MAX {
            parsed.clear();
        }
        let made = Arc::new(parse(url)?);
        parsed.insert(url.clone(), made.clone());
        Ok(made)
    }
}

/// Connections by address, each kept while an endpoint uses it.
pub(crate) struct Connections<T>(Mutex<Vec<Arc<T>>>);

impl<T> Default for Connections<T> {
    fn default() -> Connections<T> {
        Connections(Mutex::default())
    }
}

impl<T> Connections<T> {
    /// The connection that fits, or a new one.
    pub(crate) fn get_or_make(&self, fits: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> Arc<T> {
        let mut connections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = connections.iter().find(|connection| fits(connection)) {
            return found.clone();
        }
        connections.retain(|connection| Arc::strong_count(connection) > 1);
        let made = Arc::new(make());
        connections.push(made.clone());
        made
    }
}
