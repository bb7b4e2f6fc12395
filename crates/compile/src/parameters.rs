//! What artifacts that act without a request have in common: `<parameter>` elements, and a hash of their text.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use penstock_engine::Place;

use crate::{Compiler, Element, suggestion};

/// The `<parameter name="…">` elements of an artifact. The last of two with one name counts, as in Micro Integrator.
pub struct Parameters {
    entries: Vec<Parameter>,
}

struct Parameter {
    name: String,
    value: String,
    at: Place,
    is_read: Cell<bool>,
}

impl Parameters {
    /// Reads them. With `resolves`, `$SYSTEM:` and `$FILE:` are replaced and `key` names a text of the registry.
    pub fn read(el: &Element<'_>, cx: &mut Compiler<'_>, resolves: bool) -> Parameters {
        let mut entries = Vec::new();
        for parameter in el.elements("parameter") {
            let Some(name) = parameter.required(cx, "name") else { continue };
            let at = parameter.place();
            let value = match parameter.attribute("key").filter(|_| resolves) {
                Some(key) => match cx.resource(key) {
                    Some(resource) => resource.text().into_owned(),
                    None => {
                        cx.error(parameter.attribute_place("key"), format!("there is no registry resource `{key}`"));
                        continue;
                    }
                },
                None => {
                    let inner = parameter.children().next().map(|inner| inner.to_xml());
                    let text = match (parameter.attribute("expression"), inner) {
                        (Some(expression), _) => expression.to_owned(),
                        (None, Some(inner)) => String::from_utf8_lossy(&inner).into_owned(),
                        (None, None) => parameter.text(),
                    };
                    if resolves { cx.configured(text.trim(), &at) } else { text.trim().to_owned() }
                }
            };
            parameter.accept_all();
            entries.push(Parameter { name: name.to_owned(), value, at, is_read: Cell::new(false) });
        }
        Parameters { entries }
    }

    fn find(&self, name: &str) -> Option<&Parameter> {
        let mut found = None;
        for parameter in self.entries.iter().filter(|parameter| parameter.name == name) {
            parameter.is_read.set(true);
            found = Some(parameter);
        }
        found
    }

    /// The value of a parameter, unless it is empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.find(name).map(|parameter| parameter.value.as_str()).filter(|value| !value.is_empty())
    }

    /// The same as a shared text.
    pub fn text(&self, name: &str) -> Option<Arc<str>> {
        self.get(name).map(Arc::from)
    }

    /// Where a parameter stands.
    pub fn place(&self, name: &str, el: &Element<'_>) -> Place {
        self.find(name).map_or_else(|| el.place(), |parameter| parameter.at.clone())
    }

    /// Whether a parameter is `true`.
    pub fn flag(&self, name: &str, default: bool) -> bool {
        self.get(name).map_or(default, |value| value.eq_ignore_ascii_case("true"))
    }

    /// A number; a text that is none is an error.
    pub fn number<T: FromStr>(&self, name: &str, el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<T> {
        let text = self.get(name)?;
        let number = text.parse().ok();
        if number.is_none() {
            cx.error(self.place(name, el), format!("the parameter `{name}` is not a number: `{text}`"));
        }
        number
    }

    /// A value that must be there; its absence is an error.
    pub fn required(&self, name: &str, el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<&str> {
        let value = self.get(name);
        if value.is_none() {
            cx.error(el.place(), format!("<{}> needs the parameter `{name}`", el.name()));
        }
        value
    }

    /// Warns about parameters that nothing read. `known`: those that have a meaning in Micro Integrator and none here.
    pub fn report_unread(&self, reader: &str, known: &[&str], cx: &mut Compiler<'_>) {
        let read: Vec<&str> =
            self.entries.iter().filter(|entry| entry.is_read.get()).map(|entry| entry.name.as_str()).collect();
        for entry in self.entries.iter().filter(|entry| !entry.is_read.get() && !known.contains(&entry.name.as_str())) {
            let meant = suggestion(&entry.name, known.iter().copied().chain(read.iter().copied()));
            let hint = meant.map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
            cx.warn(entry.at.clone(), format!("{reader} does not know the parameter `{}`{hint}", entry.name));
        }
    }

    /// A time in milliseconds.
    pub fn millis(&self, name: &str, default_ms: u64, el: &Element<'_>, cx: &mut Compiler<'_>) -> Duration {
        Duration::from_millis(self.number(name, el, cx).unwrap_or(default_ms))
    }

    /// The names and values whose name passes a test. They count as read.
    pub fn matching(&self, test: impl Fn(&str) -> bool) -> Vec<(Arc<str>, Arc<str>)> {
        let found = self.entries.iter().filter(|entry| test(&entry.name));
        found
            .map(|entry| {
                entry.is_read.set(true);
                (entry.name.as_str().into(), entry.value.as_str().into())
            })
            .collect()
    }

    /// All names and values. All count as read.
    pub fn all(&self) -> Vec<(Arc<str>, Arc<str>)> {
        self.entries.iter().for_each(|entry| entry.is_read.set(true));
        self.entries.iter().map(|entry| (entry.name.as_str().into(), entry.value.as_str().into())).collect()
    }
}

/// A hash of an artifact's text: equal as long as nothing in it changed.
pub fn content_hash(el: &Element<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    el.to_xml().hash(&mut hasher);
    hasher.finish()
}
