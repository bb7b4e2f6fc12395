//! Levels of loggers, which operators change while the server runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{PoisonError, RwLock};

use penstock_engine::ports::Level;

/// The logger that stands for all that have no level of their own.
pub const ROOT_LOGGER: &str = "rootLogger";

/// Loggers of this server, besides those that an operator names.
const LOGGERS: [&str; 13] = [
    "AUDIT_LOG",
    "AccessLog",
    "Adapter",
    "DBLookupMediator",
    "DBReportMediator",
    "Gateway",
    "Listener",
    "LogMediator",
    "ManagementAPI",
    "Mediator",
    "Reload",
    "Request",
    "Service",
];

/// Loggers that operators name; more are a script that goes wrong.
const NAMED_MAX: usize = 200;

/// The lowest level that is written, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LevelFilter(u8);

impl LevelFilter {
    /// Lines of `debug` and above.
    pub const DEBUG: LevelFilter = LevelFilter(Level::Debug as u8);

    const OFF: LevelFilter = LevelFilter(u8::MAX);

    const WORDS: [(&str, LevelFilter); 7] = [
        ("TRACE", LevelFilter(Level::Trace as u8)),
        ("DEBUG", LevelFilter::DEBUG),
        ("INFO", LevelFilter(Level::Info as u8)),
        ("WARN", LevelFilter(Level::Warn as u8)),
        ("ERROR", LevelFilter(Level::Error as u8)),
        ("FATAL", LevelFilter(Level::Fatal as u8)),
        ("OFF", LevelFilter::OFF),
    ];

    /// Reads a level as Log4j writes it.
    pub fn parse(text: &str) -> Option<LevelFilter> {
        Self::WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|(_, level)| *level)
    }

    /// The word of Log4j.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, level)| *level == self).map_or("INFO", |(word, _)| word)
    }
}

impl From<Level> for LevelFilter {
    fn from(level: Level) -> LevelFilter {
        LevelFilter(level as u8)
    }
}

/// The levels of all loggers.
#[derive(Debug)]
pub(super) struct Levels {
    root: AtomicU8,
    /// The lowest of all: what is below it is not even made.
    lowest: AtomicU8,
    /// Whether a logger has a level of its own: most servers ask no lock.
    any_named: AtomicBool,
    named: RwLock<BTreeMap<String, Named>>,
}

#[derive(Debug, Clone)]
struct Named {
    component: String,
    level: LevelFilter,
}

impl Levels {
    pub(super) fn new() -> Levels {
        Levels {
            root: AtomicU8::new(0),
            lowest: AtomicU8::new(0),
            any_named: AtomicBool::new(false),
            named: RwLock::default(),
        }
    }

    pub(super) fn set_root(&self, level: LevelFilter) {
        self.root.store(level.0, Ordering::Relaxed);
        self.refresh();
    }

    /// Whether a line of this level may be written by some logger.
    pub(super) fn may_write(&self, level: Level) -> bool {
        level as u8 >= self.lowest.load(Ordering::Relaxed)
    }

    /// Whether a line of this logger is written.
    pub(super) fn writes(&self, logger: &str, level: Level) -> bool {
        if !self.any_named.load(Ordering::Relaxed) {
            return true;
        }
        let named = self.named.read().unwrap_or_else(PoisonError::into_inner);
        let own = named.values().find(|named| named.component == logger).map(|named| named.level.0);
        level as u8 >= own.unwrap_or_else(|| self.root.load(Ordering::Relaxed))
    }

    /// Name, component and level of each logger, the root first.
    pub(super) fn all(&self) -> Vec<(String, String, LevelFilter)> {
        let root = LevelFilter(self.root.load(Ordering::Relaxed));
        let named = self.named.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = vec![(ROOT_LOGGER.to_owned(), String::new(), root)];
        let own = LOGGERS.iter().filter(|name| !named.contains_key(**name));
        all.extend(own.map(|name| ((*name).to_owned(), (*name).to_owned(), root)));
        all.extend(named.iter().map(|(name, named)| (name.clone(), named.component.clone(), named.level)));
        all
    }

    /// Sets the level of a logger; `class` is the Java class, whose last name is what lines are written under.
    pub(super) fn set(&self, name: &str, class: Option<&str>, level: LevelFilter) -> bool {
        if name == ROOT_LOGGER {
            self.set_root(level);
            return true;
        }
        let mut named = self.named.write().unwrap_or_else(PoisonError::into_inner);
        if !named.contains_key(name) && named.len() >= NAMED_MAX {
            return false;
        }
        let component = class.map(|class| class.rsplit('.').next().unwrap_or(class).to_owned());
        let known = named.get(name).map(|named| named.component.clone());
        let component = component.or(known).unwrap_or_else(|| name.to_owned());
        named.insert(name.to_owned(), Named { component, level });
        drop(named);
        self.refresh();
        true
    }

    /// Gives a logger the level of the root again; `false` when it had none of its own.
    pub(super) fn remove(&self, name: &str) -> bool {
        let removed = self.named.write().unwrap_or_else(PoisonError::into_inner).remove(name).is_some();
        self.refresh();
        removed
    }

    fn refresh(&self) {
        let named = self.named.read().unwrap_or_else(PoisonError::into_inner);
        let root = self.root.load(Ordering::Relaxed);
        let lowest = named.values().map(|named| named.level.0).fold(root, u8::min);
        self.lowest.store(lowest, Ordering::Relaxed);
        self.any_named.store(!named.is_empty(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logger_has_its_own_level_or_that_of_the_root() {
        let levels = Levels::new();
        let level = |text: &str| LevelFilter::parse(text).unwrap();
        levels.set_root(level("info"));
        assert!(!levels.may_write(Level::Debug) && levels.may_write(Level::Info));
        assert!(levels.set("synapse-log", Some("org.apache.synapse.mediators.builtin.LogMediator"), level("DEBUG")));
        assert!(levels.may_write(Level::Debug) && !levels.may_write(Level::Trace));
        assert!(levels.writes("LogMediator", Level::Debug) && !levels.writes("Server", Level::Debug));
        assert!(levels.set("Reload", None, level("OFF")));
        assert!(!levels.writes("Reload", Level::Fatal));
        assert_eq!(levels.all()[0], (ROOT_LOGGER.to_owned(), String::new(), level("INFO")));
        assert!(levels.remove("synapse-log") && !levels.remove("synapse-log"));
        assert!(!levels.may_write(Level::Debug));
        assert_eq!(LevelFilter::parse("loud"), None);
    }
}
