//! Conditions of `<rewrite>` and `<conditionalRouter>`: `equal`, `match`, `exist`, `and`, `or`, `not`
//! over the address, headers, query parameters and properties.

use penstock_compile::{Compiler, Element};
use penstock_engine::Exchange;
use penstock_message::Scope;
use regex::Regex;

use crate::uri::{Fragment, Uri};

/// A compiled condition.
pub enum Condition {
    /// The text is this.
    Equal(Subject, String),
    /// The whole text matches.
    Match(Subject, Regex),
    /// There is such a text.
    Exists(Subject),
    /// All hold.
    All(Vec<Condition>),
    /// One holds.
    Any(Vec<Condition>),
    /// It does not hold.
    Not(Box<Condition>),
}

/// What a condition looks at.
pub enum Subject {
    /// The address, or a part of it.
    Url(Option<Fragment>),
    /// A transport header.
    Header(String),
    /// A query parameter.
    Parameter(String),
    /// A property, `scope:name` or a name of the default scope.
    Property(Scope, String),
}

impl Condition {
    /// Compiles the one condition inside an element. `None` after an error was reported.
    pub fn inside(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Condition> {
        match el.children().next() {
            Some(child) => Condition::compile(cx, &child),
            None => {
                cx.error(el.place(), format!("<{}> holds no condition", el.name()));
                None
            }
        }
    }

    fn compile(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Condition> {
        let condition = match el.name() {
            "equal" => Condition::Equal(Subject::compile(cx, el)?, el.required(cx, "value")?.to_owned()),
            "match" => {
                let pattern = el.required(cx, "regex")?;
                match Regex::new(&format!("^(?:{pattern})$")) {
                    Ok(regex) => Condition::Match(Subject::compile(cx, el)?, regex),
                    Err(error) => {
                        let message = format!("the regular expression `{pattern}` is not valid: {error}");
                        cx.error(el.attribute_place("regex"), message);
                        return None;
                    }
                }
            }
            "exist" => Condition::Exists(Subject::compile(cx, el)?),
            "and" => Condition::All(el.children().map(|child| Condition::compile(cx, &child)).collect::<Option<_>>()?),
            "or" => Condition::Any(el.children().map(|child| Condition::compile(cx, &child)).collect::<Option<_>>()?),
            "not" => Condition::Not(Box::new(Condition::inside(cx, el)?)),
            other => {
                cx.error(
                    el.place(),
                    format!("<{other}> is not one of the conditions equal, match, exist, and, or, not"),
                );
                return None;
            }
        };
        el.finish(cx);
        Some(condition)
    }

    /// Whether it holds for this address and message.
    pub fn holds(&self, uri: &Uri, exchange: &mut Exchange) -> bool {
        match self {
            Condition::Equal(subject, value) => subject.text(uri, exchange).is_some_and(|text| text == *value),
            Condition::Match(subject, regex) => subject.text(uri, exchange).is_some_and(|text| regex.is_match(&text)),
            Condition::Exists(subject) => subject.text(uri, exchange).is_some(),
            Condition::All(conditions) => conditions.iter().all(|condition| condition.holds(uri, exchange)),
            Condition::Any(conditions) => conditions.iter().any(|condition| condition.holds(uri, exchange)),
            Condition::Not(condition) => !condition.holds(uri, exchange),
        }
    }
}

impl Subject {
    fn compile(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Subject> {
        let source = el.attribute("source");
        let named = |cx: &mut Compiler<'_>| el.required(cx, "source").map(str::to_owned);
        match el.attribute("type").unwrap_or("header") {
            "url" => match source {
                None | Some("full") => Some(Subject::Url(None)),
                Some(name) => match Fragment::parse(name) {
                    Some(fragment) => Some(Subject::Url(Some(fragment))),
                    None => {
                        cx.error(el.attribute_place("source"), format!("`{name}` is not a part of an address"));
                        None
                    }
                },
            },
            "header" => named(cx).map(Subject::Header),
            "param" => named(cx).map(Subject::Parameter),
            "property" => {
                let name = named(cx)?;
                let scope = el.attribute("scope").and_then(Scope::parse).unwrap_or(Scope::Default);
                Some(Subject::Property(scope, name))
            }
            other => {
                let message =
                    format!("a condition on `{other}` is not supported, only url, header, param and property");
                cx.error(el.attribute_place("type"), message);
                None
            }
        }
    }

    fn text(&self, uri: &Uri, exchange: &mut Exchange) -> Option<String> {
        match self {
            Subject::Url(None) => Some(uri.to_string()),
            Subject::Url(Some(fragment)) => uri.get(*fragment).map(str::to_owned),
            Subject::Header(name) => exchange.message.headers.get(name).map(str::to_owned),
            Subject::Parameter(name) => exchange.query(name),
            Subject::Property(scope, name) => exchange.property(*scope, name).map(|value| value.to_text().into_owned()),
        }
    }
}
