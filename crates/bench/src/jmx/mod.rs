//! JMeter plans, unmodified.
//!
//! [`read`] turns the elements of a plan into a [`script::Script`] and refuses, with its place, everything that it could
//! not run as JMeter does. [`run`] lets the users of a script send its requests; [`dry_run`] shows what they would send.
//! `text`, `functions` and `condition` are the expressions in plans; `request`, `response`, `extract`, `assertion` and
//! `cookies` what happens around one exchange.
mod assertion;
mod condition;
mod context;
mod cookies;
mod data;
pub(crate) mod dry_run;
mod extract;
mod functions;
mod patterns;
mod read;
mod request;
mod response;
pub(crate) mod run;
pub(crate) mod script;
#[cfg(test)]
mod tests;
mod text;
mod time;
mod tree;
mod urlencoded;

pub use context::Properties;
pub use dry_run::describe;
pub use read::{Plan, ReadFile, read};
pub use run::{LabelCount, RunOptions, ScriptOutcome, run as run_plan};
pub use script::Script;

use crate::error::Error;
use std::path::Path;
use std::sync::Arc;

/// Reads a plan from a file, with the values of `-Jname=value`.
pub fn read_file(path: &Path, properties: Arc<Properties>) -> Result<Plan, Error> {
    let bytes = std::fs::read(path).map_err(|error| Error::file(path, &error))?;
    let directory = path.parent().unwrap_or(Path::new("."));
    read(&path.display().to_string(), &bytes, directory, properties, &|path| std::fs::read(path))
}
