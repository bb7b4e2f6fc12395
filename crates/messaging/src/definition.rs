//! What the artifacts of this crate have in common: `<parameter>` elements, and a hash of their text.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use penstock_compile::{Compiler, Element};
use penstock_engine::Place;

/// The `<parameter name="…">` elements of an artifact. The last of two with one name counts, as in Micro Integrator.
pub(crate) struct Parameters {
    entries: Vec<Parameter>,
}

struct Parameter {
    name: String,
    value: String,
    at: Place,
}

impl Parameters {
    /// Reads them. With `resolves`, `$SYSTEM:` and `$FILE:` are replaced and `key` names a text of the registry.
    pub(crate) fn read(el: &Element<'_>, cx: &mut Compiler<'_>, resolves: bool) -> Parameters {
        let mut entries = Vec::new();
        for parameter in el.elements("parameter") {
            let Some(name) = parameter.required(cx, "name") else { continue };
            let at = parameter.place();
            let value = match parameter.attribute("key").filter(|_| resolves) {
                Some(key) => match cx.program.resources.get(key) {
                    Some(resource) => resource.text().into_owned(),
                    None => {
                        cx.error(parameter.attribute_place("key"), format!("there is no registry resource `{key}`"));
                        continue;
                    }
                },
                None => {
                    let text = parameter.attribute("expression").map_or_else(|| parameter.text(), str::to_owned);
                    if resolves { cx.configured(text.trim(), &at) } else { text.trim().to_owned() }
                }
            };
            parameter.accept_all();
            entries.push(Parameter { name: name.to_owned(), value, at });
        }
        Parameters { entries }
    }

    fn find(&self, name: &str) -> Option<&Parameter> {
        self.entries.iter().rev().find(|parameter| parameter.name == name)
    }

    /// The value of a parameter, unless it is empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.find(name).map(|parameter| parameter.value.as_str()).filter(|value| !value.is_empty())
    }

    /// The same as a shared text.
    pub(crate) fn text(&self, name: &str) -> Option<Arc<str>> {
        self.get(name).map(Arc::from)
    }

    /// Where a parameter stands.
    pub(crate) fn place(&self, name: &str, el: &Element<'_>) -> Place {
        self.find(name).map_or_else(|| el.place(), |parameter| parameter.at.clone())
    }

    /// Whether a parameter is `true`.
    pub(crate) fn flag(&self, name: &str, default: bool) -> bool {
        self.get(name).map_or(default, |value| value.eq_ignore_ascii_case("true"))
    }

    /// A number; a text that is none is an error.
    pub(crate) fn number<T: FromStr>(&self, name: &str, el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<T> {
        let text = self.get(name)?;
        let number = text.parse().ok();
        if number.is_none() {
            cx.error(self.place(name, el), format!("the parameter `{name}` is not a number: `{text}`"));
        }
        number
    }

    /// A time in milliseconds.
    pub(crate) fn millis(&self, name: &str, default_ms: u64, el: &Element<'_>, cx: &mut Compiler<'_>) -> Duration {
        Duration::from_millis(self.number(name, el, cx).unwrap_or(default_ms))
    }

    /// All names and values.
    pub(crate) fn all(&self) -> Vec<(Arc<str>, Arc<str>)> {
        self.entries.iter().map(|entry| (entry.name.as_str().into(), entry.value.as_str().into())).collect()
    }
}

/// A hash of an artifact's text: equal as long as nothing in it changed.
pub(crate) fn content_hash(el: &Element<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    el.to_xml().hash(&mut hasher);
    hasher.finish()
}
