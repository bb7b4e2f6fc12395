//! The function library.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use regex::Regex;
use serde_json::Value as Json;

use super::ast::Node;
use super::decimal::Decimal;
use super::item::{Item, Number};
use super::library::Function;
use percent_encoding::percent_encode;

use super::strings::{Charset, URL_ENCODED, Units, url_decode};
use super::{EvaluationError, Scope, Vault, datetime};

type Outcome = Result<Item, EvaluationError>;

/// Calls a function. Arguments are evaluated first; null is no argument for any of them.
pub(super) fn call(function: Function, arguments: &[Node], scope: &mut dyn Scope) -> Outcome {
    if function == Function::Exists {
        let found = arguments.first().map(|argument| argument.evaluate(scope));
        return Ok(Item::Boolean(matches!(found, Some(Ok(item)) if !item.is_null())));
    }
    let items: Result<Vec<Item>, _> = arguments.iter().map(|argument| argument.evaluate(scope)).collect();
    let items = items?;
    if items.iter().any(Item::is_null) {
        return Err(EvaluationError::new(format!("`{}` got null for an argument", function.name())));
    }
    Arguments { function, items: &items }.call(scope)
}

struct Arguments<'i> {
    function: Function,
    items: &'i [Item],
}

impl<'i> Arguments<'i> {
    fn call(&self, scope: &mut dyn Scope) -> Outcome {
        match self.function {
            Function::Length | Function::SubString | Function::IndexOf | Function::CharAt => self.of_units(),
            Function::ToUpper
            | Function::ToLower
            | Function::StartsWith
            | Function::EndsWith
            | Function::Contains
            | Function::Trim
            | Function::Replace
            | Function::Split => self.of_strings(),
            Function::Now => Ok(Item::Long(scope.now_ms())),
            Function::FormatDateTime => self.format_date_time(scope),
            Function::Abs | Function::Ceil | Function::Floor | Function::Round => self.of_kinds(),
            Function::Sqrt | Function::Log | Function::Pow => self.of_doubles(),
            Function::Base64Encode | Function::Base64Decode | Function::UrlEncode | Function::UrlDecode => {
                self.of_encodings()
            }
            Function::IsString => Ok(Item::Boolean(self.item(0).string().is_some())),
            Function::IsNumber => Ok(Item::Boolean(self.item(0).is_number())),
            Function::IsArray => Ok(Item::Boolean(as_json(self.item(0)).is_some_and(|value| value.is_array()))),
            Function::IsObject => Ok(Item::Boolean(as_json(self.item(0)).is_some_and(|value| value.is_object()))),
            Function::ToText | Function::Integer | Function::Float | Function::Boolean => self.conversion(),
            Function::Object => self.json(Json::is_object, "an object"),
            Function::Array => self.json(Json::is_array, "an array"),
            Function::Not => match self.item(0).boolean() {
                Some(truth) => Ok(Item::Boolean(!truth)),
                None => Err(self.wrong("a boolean")),
            },
            Function::XPath => {
                let expression = self.string(0)?;
                let variable = self.items.get(1).map(|item| item.text());
                if variable.as_deref() == Some("") {
                    return Err(self.wrong("the name of a variable"));
                }
                scope.xpath(&expression, variable.as_deref()).map(Item::of_value)
            }
            Function::Registry => {
                let path = self.string(0)?;
                let property = self.items.get(1).map(|item| item.text());
                scope.registry(&path, property.as_deref()).map(Item::text_of).ok_or_else(|| {
                    let what = property.map(|name| format!("property `{name}` of the ")).unwrap_or_default();
                    EvaluationError::new(format!("the {what}registry resource `{path}` is not there"))
                })
            }
            Function::Wso2Vault | Function::HashiCorpVault => {
                let path: Vec<String> = self.items.iter().map(|item| item.text().into_owned()).collect();
                let wso2 = self.function == Function::Wso2Vault;
                let vault = if wso2 { Vault::Wso2 } else { Vault::HashiCorp };
                scope.secret(vault, &path).map(Item::text_of)
            }
            Function::Exists => Ok(Item::Boolean(true)),
        }
    }

    fn item(&self, index: usize) -> &'i Item {
        self.items.get(index).unwrap_or(&Item::Null)
    }

    fn wrong(&self, wanted: &str) -> EvaluationError {
        let given: Vec<String> = self.items.iter().map(|item| format!("`{}`", item.text())).collect();
        EvaluationError::new(format!("`{}` needs {wanted}, not {}", self.function.name(), given.join(", ")))
    }

    fn string(&self, index: usize) -> Result<Cow<'i, str>, EvaluationError> {
        self.item(index).string().ok_or_else(|| self.wrong("a string"))
    }

    fn integer(&self, index: usize) -> Result<i32, EvaluationError> {
        match self.item(index).number() {
            Some(Number::Integer(number)) => Ok(number),
            _ => Err(self.wrong("an integer")),
        }
    }

    fn number(&self, index: usize) -> Result<Number, EvaluationError> {
        self.item(index).number().ok_or_else(|| self.wrong("a number"))
    }

    /// Functions that count characters, as Java does: in units of UTF-16.
    fn of_units(&self) -> Outcome {
        if self.function == Function::Length
            && let Some(Json::Array(elements)) = self.item(0).json().map(Arc::as_ref)
        {
            return Ok(Item::Integer(elements.len() as i32));
        }
        let text = self.string(0)?;
        let units = Units::new(&text);
        match self.function {
            Function::Length => Ok(Item::Integer(units.len() as i32)),
            Function::SubString => {
                let start = usize::try_from(self.integer(1)?).ok();
                let end = match self.items.len() {
                    3 => usize::try_from(self.integer(2)?).ok(),
                    _ => Some(units.len()),
                };
                let part = start.zip(end).and_then(|(start, end)| units.slice(start, end));
                part.map(Item::text_of).ok_or_else(|| self.wrong("positions inside the string"))
            }
            Function::CharAt => {
                let part = usize::try_from(self.integer(1)?).ok().and_then(|at| units.slice(at, at.saturating_add(1)));
                part.map(Item::text_of).ok_or_else(|| self.wrong("a position inside the string"))
            }
            _ => {
                let wanted = self.string(1)?;
                let from = if self.items.len() == 3 { self.integer(2)?.max(0) as usize } else { 0 };
                let found = units.find(&Units::new(&wanted), from);
                Ok(Item::Integer(found.map_or(-1, |at| at as i32)))
            }
        }
    }

    fn of_strings(&self) -> Outcome {
        let text = self.string(0)?;
        Ok(match self.function {
            Function::ToUpper => Item::text_of(text.to_uppercase()),
            Function::ToLower => Item::text_of(text.to_lowercase()),
            // As Java trims: everything up to the blank.
            Function::Trim => Item::text_of(text.trim_matches(|character| character <= ' ')),
            Function::StartsWith => Item::Boolean(text.starts_with(&*self.string(1)?)),
            Function::EndsWith => Item::Boolean(text.ends_with(&*self.string(1)?)),
            Function::Contains => Item::Boolean(text.contains(&*self.string(1)?)),
            Function::Replace => {
                let (from, to) = (self.string(1)?, self.string(2)?);
                let inserted = text.matches(&*from).count().saturating_mul(to.len());
                penstock_budget::reserve(text.len().saturating_add(inserted));
                Item::text_of(text.replace(&*from, &to))
            }
            _ => {
                let pattern = self.string(1)?;
                let pattern = Regex::new(&pattern).map_err(|_| self.wrong("a regular expression"))?;
                let parts = split(&text, &pattern).into_iter().map(|part| Json::String(part.to_owned())).collect();
                Item::Json(Arc::new(Json::Array(parts)))
            }
        })
    }

    fn format_date_time(&self, scope: &mut dyn Scope) -> Outcome {
        let formatted = if self.items.len() == 3 {
            let (text, from, to) = (self.string(0)?, self.string(1)?, self.string(2)?);
            datetime::parse(&text, &from).and_then(|moment| moment.format(&to))
        } else {
            let epoch_ms = match self.number(0)? {
                Number::Integer(number) => number.into(),
                Number::Long(number) => number,
                Number::Double(number) => number as i64,
            };
            let local_ms = epoch_ms.saturating_add(i64::from(scope.offset_seconds(epoch_ms)) * 1000);
            datetime::Moment::of_local_ms(local_ms).format(&self.string(1)?)
        };
        formatted.map(Item::text_of).ok_or_else(|| self.wrong("a date and its pattern"))
    }

    /// Functions whose result has the kind of the argument.
    fn of_kinds(&self) -> Outcome {
        let number = self.number(0)?;
        let Number::Double(double) = number else {
            return Ok(match (self.function, number) {
                (Function::Abs, Number::Integer(number)) => Item::Integer(number.wrapping_abs()),
                (Function::Abs, Number::Long(number)) => Item::Long(number.wrapping_abs()),
                (_, number) => number.into(),
            });
        };
        Ok(match self.function {
            Function::Abs => Item::Double(double.abs()),
            Function::Ceil => Item::Double(double.ceil()),
            Function::Floor => Item::Double(double.floor()),
            _ if self.items.len() == 1 => Item::Integer((double + 0.5).floor() as i32),
            _ => {
                let places = u32::try_from(self.integer(1)?).ok().filter(|places| *places > 0);
                let places = places.ok_or_else(|| self.wrong("at least one decimal"))?;
                let digits = penstock_message::double_to_text(double);
                let rounded = Decimal::parse(&digits).and_then(|decimal| decimal.round(places));
                Item::Double(rounded.map_or(double, Decimal::to_f64))
            }
        })
    }

    fn of_doubles(&self) -> Outcome {
        let first = self.number(0)?.as_f64();
        let second = if self.items.len() == 2 { Some(self.number(1)?.as_f64()) } else { None };
        Ok(Item::Double(match (self.function, second) {
            (Function::Sqrt, _) => first.sqrt(),
            (Function::Pow, Some(exponent)) => first.powf(exponent),
            (_, Some(base)) => first.ln() / base.ln(),
            _ => first.log10(),
        }))
    }

    fn of_encodings(&self) -> Outcome {
        let text = self.string(0)?;
        let charset = match self.items.len() {
            2 => Charset::parse(&self.string(1)?).ok_or_else(|| self.wrong("a charset that is known here"))?,
            _ => Charset::Utf8,
        };
        Ok(Item::text_of(match self.function {
            Function::Base64Encode => BASE64.encode(charset.encode(&text)),
            Function::Base64Decode => {
                let bytes = BASE64.decode(text.as_bytes()).map_err(|_| self.wrong("base64"))?;
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Function::UrlEncode => percent_encode(&charset.encode(&text), URL_ENCODED).to_string(),
            _ => url_decode(&text).ok_or_else(|| self.wrong("a string that is percent-encoded"))?,
        }))
    }

    fn conversion(&self) -> Outcome {
        let item = self.item(0);
        Ok(match self.function {
            Function::ToText => Item::text_of(item.text()),
            Function::Integer => Item::Integer(item.text().parse().map_err(|_| self.wrong("an integer"))?),
            Function::Float => Item::Double(item.text().trim().parse().map_err(|_| self.wrong("a number"))?),
            _ => Item::Boolean(item.boolean().unwrap_or_else(|| item.text().eq_ignore_ascii_case("true"))),
        })
    }

    fn json(&self, is_wanted: fn(&Json) -> bool, wanted: &str) -> Outcome {
        as_json(self.item(0)).filter(|value| is_wanted(value)).map(Item::Json).ok_or_else(|| self.wrong(wanted))
    }
}

/// JSON, or what a string spells as JSON.
fn as_json(item: &Item) -> Option<Arc<Json>> {
    match item {
        Item::Json(value) if !value.is_string() => Some(value.clone()),
        other => serde_json::from_str(&other.string()?).ok().map(Arc::new),
    }
}

/// As Java splits: empty parts at the end are left out, and one at the start when the match is empty.
fn split<'t>(text: &'t str, pattern: &Regex) -> Vec<&'t str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for found in pattern.find_iter(text) {
        if found.end() == 0 {
            continue;
        }
        parts.push(&text[start..found.start()]);
        start = found.end();
    }
    if parts.is_empty() {
        return vec![text];
    }
    parts.push(&text[start..]);
    while parts.last().is_some_and(|part| part.is_empty()) {
        parts.pop();
    }
    parts
}
