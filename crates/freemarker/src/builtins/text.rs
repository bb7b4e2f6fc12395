//! Built-ins of texts.

use std::ops::Range;
use std::rc::Rc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use regex::Regex;
use serde_json::Value as Json;

use super::super::OUTPUT_BYTES_MAX;
use super::super::render::{Outcome, fail};
use super::super::value::Data;
use super::Call;

/// What `?url` escapes.
const URL: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'_')
    .remove(b'-')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*');

/// What `?url_path` escapes.
const URL_PATH: &AsciiSet = &URL.remove(b'/');

/// JSON inside of JSON; the values of a longer text would take hundreds of megabytes.
const JSON_BYTES_MAX: usize = 4 << 20;

/// A pattern that compiles to more is a mistake or an attack.
const PATTERN_BYTES_MAX: usize = 1 << 20;

impl<'d> Call<'_, 'd> {
    pub(super) fn of_text(&mut self, value: &Data<'d>) -> Outcome<'d, Option<Data<'d>>> {
        let text = match value {
            Data::Text(_) | Data::Number(_) | Data::Boolean(_) => self.run.output(value, self.of)?,
            Data::Nodes(_, nodes) if nodes.len() == 1 => self.run.output(value, self.of)?,
            _ => return Ok(None),
        };
        if let Some(found) = simple(self.name, &text) {
            return Ok(Some(Data::text(found)));
        }
        if let Some(found) = self.parts(&text)? {
            return Ok(Some(Data::text(found)));
        }
        Ok(Some(match self.name {
            "length" => Data::Number(text.chars().count() as f64),
            "size" => return Ok(None),
            "contains" => Data::Boolean(text.contains(&*self.text_argument(0)?)),
            "starts_with" => Data::Boolean(text.starts_with(&*self.text_argument(0)?)),
            "ends_with" => Data::Boolean(text.ends_with(&*self.text_argument(0)?)),
            "index_of" | "last_index_of" => {
                let wanted = self.text_argument(0)?;
                let found = if self.name == "index_of" { text.find(&*wanted) } else { text.rfind(&*wanted) };
                Data::Number(found.map_or(-1.0, |at| text[..at].chars().count() as f64))
            }
            "split" => {
                let by = self.text_argument(0)?;
                let parts: Vec<Data<'d>> = if self.has_flag(1, 'r')? {
                    self.pattern(&by)?.split(&text).map(Data::text).collect()
                } else {
                    text.split(&*by).map(Data::text).collect()
                };
                Data::List(Rc::new(parts))
            }
            "word_list" => Data::List(Rc::new(text.split_whitespace().map(Data::text).collect())),
            "matches" => {
                let by = self.text_argument(0)?;
                let whole = Regex::new(&format!("^(?:{})$", self.pattern(&by)?.as_str()));
                Data::Boolean(whole.is_ok_and(|whole| whole.is_match(&text)))
            }
            "eval_json" | "eval" if text.len() > JSON_BYTES_MAX => {
                return fail(self.expr.at, format!("the JSON is longer than {JSON_BYTES_MAX} bytes"));
            }
            "eval_json" | "eval" => match serde_json::from_str::<Json>(&text) {
                Ok(json) => owned(&json),
                Err(error) => return fail(self.expr.at, format!("not JSON: {error}")),
            },
            _ => return Ok(None),
        }))
    }

    fn has_flag(&mut self, index: usize, flag: char) -> Outcome<'d, bool> {
        Ok(self.arguments.len() > index && self.text_argument(index)?.contains(flag))
    }

    fn pattern(&mut self, text: &str) -> Outcome<'d, Regex> {
        match regex::RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build() {
            Ok(regex) => Ok(regex),
            Err(_) => fail(self.expr.at, format!("`{text}` is not a regular expression that can be used here")),
        }
    }

    /// Built-ins that take texts or numbers and give a text.
    fn parts(&mut self, text: &str) -> Outcome<'d, Option<String>> {
        let after = |found: Option<usize>, by: &str| found.map_or("", |at| &text[at + by.len()..]).to_owned();
        Ok(Some(match self.name {
            "replace" => {
                let (from, to) = (self.text_argument(0)?, self.text_argument(1)?);
                let times = if self.has_flag(2, 'f')? { 1 } else { usize::MAX };
                let replaced = if self.has_flag(2, 'r')? {
                    let regex = self.pattern(&from)?;
                    replaced(
                        text,
                        times,
                        regex.captures_iter(text).filter_map(|found| {
                            let whole = found.get(0)?;
                            let mut with = String::new();
                            found.expand(&to, &mut with);
                            Some((whole.range(), with))
                        }),
                    )
                } else {
                    let found = text.match_indices(&*from);
                    replaced(text, times, found.map(|(at, found)| (at..at + found.len(), &*to)))
                };
                match replaced {
                    Some(replaced) => replaced,
                    None => return fail(self.expr.at, "the text is too long"),
                }
            }
            "substring" => {
                let from = self.count_argument(0)?;
                let length = text.chars().count();
                let to = if self.arguments.len() > 1 { self.count_argument(1)? } else { length };
                if from > length || to > length || from > to {
                    return fail(self.expr.at, format!("the text has {length} characters only"));
                }
                text.chars().take(to).skip(from).collect()
            }
            "left_pad" | "right_pad" => {
                let width = self.count_argument(0)?.min(OUTPUT_BYTES_MAX / 8);
                let filler: Rc<str> = if self.arguments.len() > 1 { self.text_argument(1)? } else { " ".into() };
                let missing = width.saturating_sub(text.chars().count());
                let padding: String =
                    filler.chars().cycle().take(if filler.is_empty() { 0 } else { missing }).collect();
                if self.name == "left_pad" { format!("{padding}{text}") } else { format!("{text}{padding}") }
            }
            "keep_before" => {
                let by = self.text_argument(0)?;
                text.split_once(&*by).map_or(text, |(before, _)| before).to_owned()
            }
            "keep_before_last" => {
                let by = self.text_argument(0)?;
                text.rsplit_once(&*by).map_or(text, |(before, _)| before).to_owned()
            }
            "keep_after" => {
                let by = self.text_argument(0)?;
                after(text.find(&*by), &by)
            }
            "keep_after_last" => {
                let by = self.text_argument(0)?;
                after(text.rfind(&*by), &by)
            }
            "remove_beginning" => {
                let by = self.text_argument(0)?;
                text.strip_prefix(&*by).unwrap_or(text).to_owned()
            }
            "remove_ending" => {
                let by = self.text_argument(0)?;
                text.strip_suffix(&*by).unwrap_or(text).to_owned()
            }
            "ensure_starts_with" => {
                let by = self.text_argument(0)?;
                if text.starts_with(&*by) { text.to_owned() } else { format!("{by}{text}") }
            }
            "ensure_ends_with" => {
                let by = self.text_argument(0)?;
                if text.ends_with(&*by) { text.to_owned() } else { format!("{text}{by}") }
            }
            _ => return Ok(None),
        }))
    }
}

/// Built-ins that take nothing and give a text.
fn simple(name: &str, text: &str) -> Option<String> {
    let first = |upper: bool| {
        let start = text.len() - text.trim_start().len();
        let mut letters = text[start..].chars();
        let changed: String = match letters.next() {
            Some(letter) if upper => letter.to_uppercase().collect(),
            Some(letter) => letter.to_lowercase().collect(),
            None => String::new(),
        };
        format!("{}{changed}{}", &text[..start], letters.as_str())
    };
    Some(match name {
        "upper_case" => text.to_uppercase(),
        "lower_case" => text.to_lowercase(),
        "cap_first" => first(true),
        "uncap_first" => first(false),
        "capitalize" => {
            let mut out = String::with_capacity(text.len());
            let mut inside = false;
            for letter in text.chars() {
                if inside {
                    out.extend(letter.to_lowercase())
                } else {
                    out.extend(letter.to_uppercase())
                }
                inside = !letter.is_whitespace();
            }
            out
        }
        "trim" => text.trim().to_owned(),
        "chop_linebreak" => text.strip_suffix("\r\n").or(text.strip_suffix('\n')).unwrap_or(text).to_owned(),
        "html" => escaped(text, "&#39;"),
        "xhtml" => escaped(text, "&#39;"),
        "xml" => escaped(text, "&apos;"),
        "esc" | "no_esc" | "markup_string" => text.to_owned(),
        "url" | "url_path" => utf8_percent_encode(text, if name == "url" { URL } else { URL_PATH }).to_string(),
        "json_string" | "js_string" | "j_string" => {
            let mut out = String::with_capacity(text.len() + 8);
            for letter in text.chars() {
                match letter {
                    '"' => out.push_str("\\\""),
                    '\'' if name == "js_string" => out.push_str("\\'"),
                    '\\' => out.push_str("\\\\"),
                    '\n' => out.push_str("\\n"),
                    '\r' => out.push_str("\\r"),
                    '\t' => out.push_str("\\t"),
                    '\u{8}' => out.push_str("\\b"),
                    '\u{c}' => out.push_str("\\f"),
                    // `</` and `]]>` could end a script or a section around the template.
                    '/' if name != "j_string" && out.ends_with('<') => out.push_str("\\/"),
                    '>' if name != "j_string" && (out.ends_with("]]") || out.ends_with("--")) => {
                        out.push_str("\\u003E")
                    }
                    '<' if name == "j_string" => out.push('<'),
                    letter if u32::from(letter) < 0x20 => out.push_str(&format!("\\u{:04X}", u32::from(letter))),
                    letter => out.push(letter),
                }
            }
            out
        }
        _ => return None,
    })
}

fn escaped(text: &str, apostrophe: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str(apostrophe),
            letter => out.push(letter),
        }
    }
    out
}

/// A value of JSON that belongs to the template.
fn owned<'d>(json: &Json) -> Data<'d> {
    match json {
        Json::Null => Data::Missing,
        Json::Bool(flag) => Data::Boolean(*flag),
        Json::Number(number) => Data::Number(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Data::text(text.as_str()),
        Json::Array(items) => Data::List(Rc::new(items.iter().map(owned).collect())),
        Json::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.as_str().into(), owned(value)));
            Data::Hash(Rc::new(members.collect()))
        }
    }
}

/// The text with other text in the place of the first `times` pieces found; `None` when that is too long.
fn replaced<T: AsRef<str>>(text: &str, times: usize, found: impl Iterator<Item = (Range<usize>, T)>) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = 0;
    for (place, with) in found.take(times) {
        penstock_budget::step();
        if out.len() + with.as_ref().len() > OUTPUT_BYTES_MAX {
            return None;
        }
        out.push_str(&text[rest..place.start]);
        out.push_str(with.as_ref());
        rest = place.end;
    }
    out.push_str(&text[rest..]);
    (out.len() <= OUTPUT_BYTES_MAX).then_some(out)
}
