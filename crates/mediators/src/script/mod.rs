//! `<script language="js">`: JavaScript with the `mc` object, in a sandbox with time and memory limits.
//!
//! Scripts have no file, no socket and no Java. `mc` reads and writes the message, nothing else.

mod host;
mod sandbox;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, Place};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "script", compile };

/// A script, checked and ready to be loaded by any core.
pub(super) struct Script {
    /// Cores keep a loaded script under its number.
    number: u64,
    /// What is evaluated once, when a core loads the script: includes, and the functions of a file.
    library: Vec<Arc<str>>,
    /// What runs for each message.
    entry: Entry,
    at: Place,
}

enum Entry {
    /// The text of the element.
    Inline(Arc<str>),
    /// A function of the library.
    Function(Arc<str>),
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let language = el.required(cx, "language")?;
    if !matches!(language, "js" | "nashornJs" | "rhinoJs" | "graalJs") {
        let message = format!("scripts in `{language}` are not supported, only JavaScript is");
        cx.error(el.attribute_place("language"), message);
        return None;
    }
    let mut library = Vec::new();
    for include in el.elements("include") {
        let key = include.required(cx, "key")?;
        library.push(resource(cx, key, include.attribute_place("key"))?);
    }
    let entry = match el.attribute("key") {
        Some(key) => {
            let function = el.attribute("function").unwrap_or("mediate");
            if !is_identifier(function) {
                cx.error(el.attribute_place("function"), format!("`{function}` is not the name of a function"));
                return None;
            }
            library.push(resource(cx, key, el.attribute_place("key"))?);
            Entry::Function(function.into())
        }
        None => Entry::Inline(el.text().into()),
    };
    let texts = library.iter().chain(match &entry {
        Entry::Inline(text) => Some(text),
        Entry::Function(_) => None,
    });
    for text in texts {
        if let Err(why) = sandbox::check(text) {
            cx.error(el.place(), format!("the script is not valid JavaScript: {why}"));
            return None;
        }
    }
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    Some(Box::new(Script { number, library, entry, at: el.place() }))
}

/// The text of a script that is a local entry or registry resource.
fn resource(cx: &mut Compiler<'_>, key: &str, at: Place) -> Option<Arc<str>> {
    match cx.program.resources.get(key) {
        Some(found) => Some(found.text().into()),
        None => {
            // Without its text there is nothing to check or run, strict or not.
            cx.error(at, format!("unknown local entry or registry resource `{key}`"));
            None
        }
    }
}

fn is_identifier(name: &str) -> bool {
    let fits = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$');
    name.starts_with(|first: char| !first.is_ascii_digit()) && !name.is_empty() && name.chars().all(fits)
}

impl Mediator for Script {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        sandbox::run(self, exchange).map_err(|why| {
            let mut fault = Fault::new(format!("the script failed: {why}"));
            fault.at = Some(self.at.clone());
            fault
        })?;
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}
