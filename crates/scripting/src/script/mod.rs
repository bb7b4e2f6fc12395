//! `<script language="js">`: JavaScript with the `mc` object, in a sandbox with time and memory limits.
//!
//! Scripts have no file, no socket and no Java. `mc` reads and writes the message, nothing else.

mod e4x;
mod host;
mod java;
mod sandbox;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use penstock_compile::{AlwaysFaults, Compiler, Element, MediatorKind, NameKind};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, Place, Resume, clock};

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
    /// Whether an XML value without elements in it reads as its text, as in E4X; the Java tree reads as markup.
    reads_as_text: bool,
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
    let mut missing = None;
    for include in el.elements("include") {
        let key = include.required(cx, "key")?;
        match resource(cx, key, include.attribute_place("key")) {
            Some(text) => library.push(text),
            None => missing = Some(key),
        }
    }
    let entry = match el.attribute("key") {
        Some(key) => {
            let function = el.attribute("function").unwrap_or("mediate");
            if !is_identifier(function) {
                cx.error(el.attribute_place("function"), format!("`{function}` is not the name of a function"));
                return None;
            }
            match resource(cx, key, el.attribute_place("key")) {
                Some(text) => library.push(text),
                None => missing = Some(key),
            }
            Entry::Function(function.into())
        }
        None => Entry::Inline(el.text().into()),
    };
    if let Some(key) = missing {
        return Some(Box::new(AlwaysFaults::missing("local entry or registry resource", key)));
    }
    let mut entry = entry;
    let texts = library.iter_mut().chain(match &mut entry {
        Entry::Inline(text) => Some(text),
        Entry::Function(_) => None,
    });
    let mut classes = Vec::new();
    for text in texts {
        classes.extend(java::missing_classes(text));
        match as_javascript(text) {
            Ok(None) => {}
            Ok(Some(translated)) => *text = translated,
            Err(why) => {
                cx.error(el.place(), format!("the script is not valid JavaScript: {why}"));
                return None;
            }
        }
    }
    if !classes.is_empty() {
        let names: Vec<String> = classes.iter().map(|class| format!("`{class}`")).collect();
        let classes = names.join(", ");
        cx.warn(el.place(), format!("the script uses Java, which cannot be run; it fails when it gets to {classes}"));
    }
    let reads_as_text = matches!(language, "js" | "rhinoJs");
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    Some(Box::new(Script { number, library, entry, reads_as_text, at: el.place() }))
}

/// The text of a script that is a local entry or registry resource.
fn resource(cx: &mut Compiler<'_>, key: &str, at: Place) -> Option<Arc<str>> {
    match cx.resource(key) {
        Some(found) => Some(found.text().into()),
        None => {
            cx.unknown(NameKind::RESOURCE, key, at);
            None
        }
    }
}

/// A text that is no JavaScript, in JavaScript: the dialect of old engines had XML in it. `None` when there is nothing
/// to do.
fn as_javascript(text: &str) -> Result<Option<Arc<str>>, String> {
    let Err(why) = sandbox::check(text) else { return Ok(None) };
    if !["..", "::", "<", ".@", "each"].iter().any(|sign| text.contains(sign)) {
        return Err(why);
    }
    let translated = e4x::translate(text).map_err(|missing| format!("{why}; read with XML in it (E4X): {missing}"))?;
    // Mistakes of scripts without XML are reported unchanged.
    if translated == text {
        return Err(why);
    }
    sandbox::check(&translated).map_err(|why| format!("{why}, read with XML in it (E4X)"))?;
    Ok(Some(translated.into()))
}

fn is_identifier(name: &str) -> bool {
    let fits = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$');
    name.starts_with(|first: char| !first.is_ascii_digit()) && !name.is_empty() && name.chars().all(fits)
}

/// JavaScript that another mediator brings along, in the same sandbox.
pub(crate) struct Embedded(Script);

impl Embedded {
    /// `library` is evaluated once for each core, `entry` is the body of a function of `mc` that runs for
    /// each message. `Err` says what is wrong with the text.
    pub(crate) fn new(library: Vec<Arc<str>>, entry: &str, at: Place) -> Result<Embedded, String> {
        for text in library.iter().map(|text| &**text).chain([entry]) {
            sandbox::check(text)?;
        }
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Ok(Embedded(Script { number, library, entry: Entry::Inline(entry.into()), reads_as_text: true, at }))
    }

    /// Runs it on the exchange's message.
    pub(crate) fn run(&self, exchange: &mut Exchange) -> Result<(), String> {
        sandbox::run(&self.0, exchange).map(|_| ())
    }
}

/// Scripts are kept by their number.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl Mediator for Script {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let pause = sandbox::run(self, exchange).map_err(|why| {
            let mut fault = Fault::new(format!("the script failed: {why}"));
            fault.at = Some(self.at.clone());
            fault
        })?;
        // A time beyond the range of the clock means no wait.
        match Instant::now().checked_add(pause) {
            Some(until) if !pause.is_zero() => Ok(Flow::Wait(Box::pin(async move {
                clock::sleep_until(until).await;
                Resume::new(|_: &mut Exchange, ()| Ok(Flow::Next))
            }))),
            _ => Ok(Flow::Next),
        }
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}
