//! The importer: API projects, OpenAPI, AsyncAPI and GraphQL definitions, and files of the API Platform become APIs of the
//! catalog.
//!
//! A project is some files; one of them is its main one: `api.yaml` of an `apictl` project, or a definition that stands
//! by itself. All mistakes are collected, with file, line and column.
//!
//! The crate is independent of enforcement: which policies run, how callers are authenticated, where APIs are served. It
//! gets bytes and reads no files.
//!
//! Start reading at [`Import::project`], then `descriptor/` (`api.yaml`), `openapi/` (definitions) and `document/` (YAML
//! and JSON with positions).

mod asyncapi;
mod certificates;
mod config;
mod deployment;
mod descriptor;
mod document;
mod duration;
mod endpoint_security;
mod graphql;
mod include;
mod legacy;
mod mcp;
mod openapi;
mod operation_policies;
mod params;
mod product;
mod project;
mod restapi;
mod shared;
mod sniff;
mod substitute;
mod unreachable;
mod websub;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use penstock_catalog::{Api, At};
use penstock_compile::{Diagnostic, FileSource, Severity, is_served_unprotected, suggestion, unprotected};
use penstock_engine::Place;
use regex::Regex;

pub use config::{HostDefaults, ImportConfig};
pub use document::{Document, Item, parse as parse_document};
pub use duration::go_duration;
pub use restapi::fill_template;
pub use shared::{interceptor_part, is_field_name};
pub(crate) use sniff::Definition;

/// A project that was found.
pub struct Imported {
    /// What to call it.
    pub name: String,
    /// Its main file.
    pub at: Place,
    /// What it says, unless there is an error in it.
    pub api: Option<Arc<Api>>,
}

/// The files of a project.
#[derive(Clone, Default)]
pub struct Project {
    /// The folder or archive; the file itself when it stands alone.
    pub name: Arc<str>,
    /// The files.
    pub files: Vec<ProjectFile>,
    /// Where files are that others refer to.
    pub more: Option<Arc<dyn FileSource>>,
}

/// A file of a project.
#[derive(Debug, Clone)]
pub struct ProjectFile {
    /// What messages call it.
    pub file: Arc<str>,
    /// The path inside the project with forward slashes; empty when it stands alone.
    pub path: String,
    /// What is in it.
    pub bytes: Bytes,
}

/// What importing needs besides the files, and what it has to say.
pub struct Import<'c> {
    /// The configuration.
    pub config: &'c ImportConfig,
    /// Values for `$NAME` and `${NAME}`.
    pub variables: &'c HashMap<String, String>,
    /// Everything there is to say.
    pub notes: Vec<Diagnostic>,
    /// Protection that cannot be enforced. What becomes of it depends on the name of the API, which is read later.
    unenforced: Vec<(At, String)>,
    /// Whether the API that is read speaks WebSocket, so that its backends may.
    sockets: bool,
    /// Files that definitions refer to and that were read, by their paths inside the project.
    pub included: Vec<String>,
}

impl<'c> Import<'c> {
    /// Before anything was read.
    pub fn new(config: &'c ImportConfig, variables: &'c HashMap<String, String>) -> Import<'c> {
        Import { config, variables, notes: Vec::new(), unenforced: Vec::new(), sockets: false, included: Vec::new() }
    }

    /// Says that something cannot work.
    pub(crate) fn error(&mut self, at: &At, message: impl Into<String>) {
        self.notes.push(Diagnostic { severity: Severity::Error, at: place(at), message: message.into() });
    }

    /// Reports a file that cannot be read.
    pub fn unreadable(&mut self, file: &Arc<str>, message: String) {
        self.error(&At { file: file.clone(), line: 1, column: 1 }, message);
    }

    /// Says that something may not work as meant.
    pub(crate) fn warn(&mut self, at: &At, message: impl Into<String>) {
        self.notes.push(Diagnostic { severity: Severity::Warning, at: place(at), message: message.into() });
    }

    /// Reports that something which protects the API cannot be enforced: an error, unless the configuration lists the API
    /// in `security.serve_unprotected`.
    pub(crate) fn unprotected(&mut self, at: &At, message: impl Into<String>) {
        self.unenforced.push((at.clone(), message.into()));
    }

    /// Decides what becomes of protection that cannot be enforced, now that the name of the API is known.
    fn settle_protection(&mut self, imported: &mut Option<Imported>) {
        let unenforced = std::mem::take(&mut self.unenforced);
        if unenforced.is_empty() {
            return;
        }
        let name = imported.as_ref().map_or("", |imported| imported.name.as_str());
        let is_listed = is_served_unprotected(&self.config.serve_unprotected, name);
        self.notes.extend(unenforced.iter().map(|(at, message)| unprotected(is_listed, name, place(at), message)));
        if !is_listed && let Some(imported) = imported {
            imported.api = None;
        }
    }

    /// Whether anything is an error.
    pub fn failed(&self) -> bool {
        self.notes.iter().any(|note| note.severity == Severity::Error)
    }
}

/// A definition that the import has read, as JSON.
pub fn read_as_json(bytes: &[u8]) -> Option<serde_json::Value> {
    document::parse(&Arc::default(), bytes).ok().map(|document| document.item().json())
}

/// `, did you mean `x`?`, or nothing.
pub fn hint<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    suggestion(name, candidates).map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"))
}

/// A catalog's place as the engine's.
pub fn place(at: &At) -> Place {
    Place { file: at.file.clone(), line: at.line, column: at.column }
}

/// The expression for a whole value; `None` when it is none.
pub fn whole_value(pattern: &str) -> Option<Regex> {
    Regex::new(&format!("^(?:{pattern})$")).ok()
}
