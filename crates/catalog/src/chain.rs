//! Policies in a row, as an API of the API Platform has them: each with parameters of its own shape.

use std::fmt;
use std::sync::Arc;

use crate::At;

/// What an API says of itself besides, when it is one of the API Platform. Its operations run their own rows of
/// policies and nothing that API Manager or Choreo Connect would run unasked.
#[derive(Debug, Clone, Default)]
pub struct Platform {
    /// `metadata.name`, which the file's other resources call it by.
    pub handle: Arc<str>,
    /// The hosts of the production backends: names, `*.example.com`, or `sandbox-*`; empty means any.
    pub hosts: Vec<Arc<str>>,
    /// The host by which requests go to the sandbox.
    pub sandbox_host: Option<Arc<str>>,
}

/// A policy at work in a row: it runs where it stands on the way to the backend, and in reverse order on the way back.
#[derive(Debug, Clone, Default)]
pub struct ChainStep {
    /// Its name.
    pub name: Arc<str>,
    /// The major version: 1 of `v1`.
    pub version: u32,
    /// An expression that says whether it runs.
    pub condition: Option<(Arc<str>, At)>,
    /// What is sent to it.
    pub parameters: Setting,
    /// Whether all operations of the API have it.
    pub of_api: bool,
    /// Where its name was written.
    pub at: At,
}

/// A value that was written for a policy, with its place. Its debug form shows the place only: some are passwords.
#[derive(Clone, Default)]
pub struct Setting {
    /// What was written.
    pub value: SettingValue,
    /// Where.
    pub at: At,
}

/// See [`Setting`].
#[derive(Clone, Default)]
pub enum SettingValue {
    /// Nothing.
    #[default]
    Nothing,
    /// A flag, a number or a text that stands without quotes.
    Plain(Arc<str>),
    /// A text in quotes.
    Text(Arc<str>),
    /// Several.
    List(Vec<Setting>),
    /// By name, each with the place of its name.
    Map(Vec<(Arc<str>, At, Setting)>),
}

impl fmt::Debug for Setting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Setting({})", self.at)
    }
}
