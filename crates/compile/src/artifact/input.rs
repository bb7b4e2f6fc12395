//! What a compilation gets: artifacts, registry resources, connectors, files of API projects.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;

/// A text that takes part in a compilation.
#[derive(Debug, Clone)]
pub struct Input {
    /// The file, `archive!entry` inside an archive.
    pub file: Arc<str>,
    /// Its bytes.
    pub bytes: Bytes,
    /// What it is.
    pub kind: InputKind,
}

/// What an input is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputKind {
    /// Synapse XML: the root element says what.
    Artifact,
    /// A registry resource.
    Resource {
        /// `gov:path`, `conf:path`, `resources:path`.
        key: String,
        /// Its media type.
        media_type: Option<String>,
        /// Its properties.
        properties: Vec<(String, String)>,
    },
    /// A sequence template that is an operation of a connector: `<connector.template …>` calls it.
    Operation {
        /// The connector's name.
        connector: String,
    },
    /// A connector whose operations cannot run.
    UnusableConnector {
        /// Its name.
        connector: String,
        /// Why.
        reason: String,
    },
    /// A file of an API project, or an API definition by itself. A [`crate::Front`] compiles them.
    Api {
        /// The folder or archive of the project; the file itself when it stands alone.
        project: Arc<str>,
        /// The path inside the project with forward slashes; empty when it stands alone.
        path: String,
    },
    /// The files of an API project, or an API definition by itself, which are read when the project is compiled. The
    /// input has no bytes.
    ApiFiles(ApiFiles),
}

/// Files of an API project that are read one project at a time: a gateway may have gigabytes of them.
#[derive(Clone)]
pub struct ApiFiles(pub Arc<dyn FileSource>);

/// Reads the files of one project.
pub trait FileSource: Send + Sync {
    /// The paths inside the project of all files that belong to it; an empty one for a definition that stands alone.
    fn paths(&self) -> Vec<String>;

    /// The name of a file in messages and its bytes; `None` when there is no such file, or it is not inside the project.
    fn read(&self, path: &str) -> Option<Result<(Arc<str>, Bytes), String>>;

    /// What changes when a file changes: its time, size and number on the disk. `None` when there is no such file.
    fn stamp(&self, path: &str) -> Option<u64>;

    /// What has the files, when they never change while it lives. It is compared by identity.
    fn owner(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }
}

impl std::fmt::Debug for ApiFiles {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("ApiFiles").field(&self.0.paths()).finish()
    }
}

impl PartialEq for ApiFiles {
    fn eq(&self, other: &ApiFiles) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ApiFiles {}
