//! FreeMarker templates: parsed once, rendered for each message, with limits on everything.
//!
//! Independent of messages, files and the clock: data comes in a [`Model`]. Includes and imports are
//! mistakes, a template stands alone.
//!
//! ```
//! use penstock_freemarker::{Data, Model, Template};
//!
//! let template = Template::parse("<#list names as name>${name?upper_case}<#sep>, </#list>").unwrap();
//! let names = serde_json::json!(["ann", "bob"]);
//! let model = Model { roots: vec![("names", Data::of_json(&names))], ..Model::default() };
//! assert_eq!(template.render(&model).unwrap(), "ANN, BOB");
//! ```
//!
//! # Where to start reading
//!
//! `scan` cuts a template into text, interpolations and tags, `parse` makes a tree of them,
//! `expression` reads what stands inside (its `tokens`); `render` runs the tree with `loops` and `macros`,
//! `evaluate` and `operators` find values, `builtins` holds what follows a `?`.

mod ast;
mod builtins;
mod evaluate;
mod expression;
mod loops;
mod macros;
mod number;
mod operators;
mod parse;
mod render;
mod scan;
mod tokens;
mod value;

use std::fmt;

pub use value::{Data, Model};

/// What a template may write.
const OUTPUT_BYTES_MAX: usize = 32 << 20;
/// Directives and loop rounds of one rendering: a template is no place for endless loops.
const STEPS_MAX: u64 = 5_000_000;
/// Blocks inside blocks, operators inside operators, macros inside macros.
const DEPTH_MAX: usize = 100;

/// Stands among the names a template mentions for a way to all of them, as `.data_model` is.
const EVERYTHING: &str = ".";

/// A template, checked and ready.
pub struct Template {
    body: Vec<ast::Node>,
    names: Vec<String>,
}

/// What is wrong with a template, or with what it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// The line of the template, from one.
    pub line: usize,
    /// The character within the line, from one.
    pub column: usize,
    /// What, lower case, without a full stop.
    pub message: String,
}

impl TemplateError {
    fn new(at: Place, message: impl Into<String>) -> TemplateError {
        TemplateError { line: at.line, column: at.column, message: message.into() }
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for TemplateError {}

/// A place in a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Place {
    line: usize,
    column: usize,
}

impl Template {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        let pieces = scan::scan(text)?;
        let mut names = Vec::new();
        let body = parse::parse(pieces, &mut names)?;
        Ok(Template { body, names })
    }

    /// Whether the template names a value of the model.
    pub fn mentions(&self, name: &str) -> bool {
        self.names.iter().any(|mentioned| mentioned == name || mentioned == EVERYTHING)
    }

    /// Writes the template with this data.
    pub fn render<'d>(&'d self, model: &'d Model<'d>) -> Result<String, TemplateError> {
        render::render(&self.body, model)
    }
}

#[cfg(test)]
mod tests;
