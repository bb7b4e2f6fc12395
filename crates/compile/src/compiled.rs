//! Artifacts as they were compiled last. After a change an artifact is compiled again when its file changed, or when a name
//! it looked up leads to something else now. Every artifact has a unit with a number that it keeps, so a changed sequence
//! or endpoint is found by artifacts that are not compiled again: they hold the number of its unit.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use penstock_engine::Unit;

use crate::compiler::CompileOptions;
use crate::diagnostic::Diagnostic;
use crate::references::{Additions, Reference};

/// See the module. One that is part of the [`CompileOptions`] of several compilations makes them share what did not change.
#[derive(Default)]
pub struct CompiledArtifacts(Mutex<Known>);

/// The artifacts of the last compilation.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) hasher: RandomState,
    /// A hash of the options.
    options: u64,
    artifacts: HashMap<ArtifactKey, CompiledArtifact>,
}

/// Which artifact it is: the file, the kind, the name.
pub(crate) type ArtifactKey = (Arc<str>, &'static str, Arc<str>);

/// An artifact, and what was made of it.
pub(crate) struct CompiledArtifact {
    /// The number of its unit.
    pub(crate) number: u32,
    /// A hash of its file.
    pub(crate) input: u64,
    /// `None` for one that every program compiles again.
    pub(crate) result: Option<CompiledUnit>,
}

/// What a program takes from the one before.
pub(crate) struct CompiledUnit {
    pub(crate) unit: Arc<Unit>,
    pub(crate) references: Box<[Reference]>,
    pub(crate) additions: Additions,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl std::fmt::Debug for CompiledArtifacts {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("CompiledArtifacts")
    }
}

impl CompiledArtifacts {
    /// Forgets all of them, after a change of something that is neither an input nor an option.
    pub fn clear(&self) {
        self.replace(Known::default());
    }

    /// What is known, for a compilation with these options; nothing after the options changed.
    pub(crate) fn take(&self, options: &CompileOptions) -> Known {
        let mut known = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let now = options.content_hash(&known.hasher);
        if known.options != now {
            known.artifacts.clear();
        }
        known.options = now;
        known
    }

    pub(crate) fn replace(&self, known: Known) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }
}

impl Known {
    pub(crate) fn get(&self, key: &ArtifactKey) -> Option<&CompiledArtifact> {
        self.artifacts.get(key)
    }

    pub(crate) fn take(&mut self, key: &ArtifactKey) -> Option<CompiledArtifact> {
        self.artifacts.remove(key)
    }

    /// The same settings with other artifacts.
    pub(crate) fn with(self, artifacts: HashMap<ArtifactKey, CompiledArtifact>) -> Known {
        Known { artifacts, ..self }
    }

    /// Numbers for units that no artifact has.
    pub(crate) fn free_numbers(&self) -> impl Iterator<Item = u32> + use<> {
        let taken: HashSet<u32> = self.artifacts.values().map(|artifact| artifact.number).collect();
        Unit::numbers_for_artifacts().filter(move |number| !taken.contains(number))
    }
}

impl CompileOptions {
    fn content_hash(&self, hasher: &RandomState) -> u64 {
        let CompileOptions {
            strict,
            configurables,
            without_users,
            modules,
            serve_unprotected,
            message_keys,
            compiled: _,
        } = self;
        let mut configurables: Vec<_> = configurables.iter().collect();
        configurables.sort();
        let mut modules: Vec<_> = modules.iter().collect();
        modules.sort();
        hasher.hash_one((strict, configurables, without_users, modules, serve_unprotected, message_keys))
    }
}
