//! The reader of policy parameters. An unread parameter is a mistake, as in the API Platform: where one
//! guards an API, a misspelt name must not pass for its absence.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use penstock_catalog::{At, Setting, SettingValue};
use penstock_projects::{go_duration, hint};
use regex::Regex;

use crate::cel::Expression;

/// Mistakes, collected.
#[derive(Default)]
pub(super) struct Notes(RefCell<Vec<(At, String)>>);

impl Notes {
    pub(super) fn error(&self, at: &At, message: impl Into<String>) {
        self.0.borrow_mut().push((at.clone(), message.into()));
    }

    pub(super) fn take(self) -> Vec<(At, String)> {
        self.0.into_inner()
    }
}

/// A mapping of parameters, which records what was read.
pub(crate) struct Params<'s> {
    entries: &'s [(Arc<str>, At, Setting)],
    at: &'s At,
    asked: RefCell<Vec<&'static str>>,
    notes: &'s Notes,
}

/// One parameter.
#[derive(Clone, Copy)]
pub(crate) struct Param<'s> {
    setting: &'s Setting,
    notes: &'s Notes,
}

impl<'s> Params<'s> {
    pub(super) fn new(setting: &'s Setting, notes: &'s Notes) -> Params<'s> {
        let entries: &[_] = match &setting.value {
            SettingValue::Map(entries) => entries,
            _ => &[],
        };
        Params { entries, at: &setting.at, asked: RefCell::default(), notes }
    }

    /// Says that something is wrong with all of it.
    pub(super) fn error(&self, message: impl Into<String>) {
        self.notes.error(self.at, message);
    }

    /// A parameter, unless it is null.
    pub(super) fn get(&self, name: &'static str) -> Option<Param<'s>> {
        self.asked.borrow_mut().push(name);
        let (_, _, setting) = self.entries.iter().find(|(known, _, _)| **known == *name)?;
        (!matches!(setting.value, SettingValue::Nothing)).then_some(Param { setting, notes: self.notes })
    }

    pub(super) fn text(&self, name: &'static str) -> Option<Arc<str>> {
        self.get(name)?.text(name)
    }

    /// A text that must be given and must not be empty.
    pub(super) fn required_text(&self, name: &'static str) -> Option<Arc<str>> {
        let found = self.get(name);
        let text = found.and_then(|found| found.text(name));
        match (&found, &text) {
            (None, _) => self.error(format!("`{name}` is missing")),
            (Some(found), Some(text)) if text.trim().is_empty() => found.error(format!("`{name}` must not be empty")),
            _ => return text,
        }
        None
    }

    pub(super) fn flag(&self, name: &'static str, otherwise: bool) -> bool {
        self.get(name).map_or(otherwise, |found| found.flag(name).unwrap_or(otherwise))
    }

    /// A whole number within bounds.
    pub(super) fn whole(&self, name: &'static str, least: u64, most: u64) -> Option<u64> {
        self.get(name)?.whole(name, least, most)
    }

    pub(super) fn number(&self, name: &'static str) -> Option<f64> {
        let found = self.get(name)?;
        let number = found.plain().and_then(|text| text.parse().ok()).filter(|number: &f64| number.is_finite());
        if number.is_none() {
            found.error(format!("`{name}` must be a number"));
        }
        number
    }

    pub(super) fn duration(&self, name: &'static str) -> Option<Duration> {
        let found = self.get(name)?;
        let duration = go_duration(&found.text(name)?).filter(|duration| !duration.is_zero());
        if duration.is_none() {
            found.error(format!("`{name}` must be a time, as `1m` or `1h30m`"));
        }
        duration
    }

    pub(super) fn list(&self, name: &'static str) -> Vec<Param<'s>> {
        self.get(name).map(|found| found.list(name)).unwrap_or_default()
    }

    pub(super) fn texts(&self, name: &'static str) -> Vec<Arc<str>> {
        self.list(name).into_iter().filter_map(|item| item.text(name)).collect()
    }

    pub(super) fn map(&self, name: &'static str) -> Option<Params<'s>> {
        self.get(name)?.map(name)
    }

    /// Texts by names of the user's choice.
    pub(super) fn pairs(&self, name: &'static str) -> Vec<(Arc<str>, Arc<str>)> {
        let Some(found) = self.get(name) else { return Vec::new() };
        let SettingValue::Map(entries) = &found.setting.value else {
            found.error(format!("`{name}` must be a mapping"));
            return Vec::new();
        };
        let pair = |(key, _, setting): &'s (Arc<str>, At, Setting)| {
            Some((key.clone(), Param { setting, notes: self.notes }.text(key)?))
        };
        entries.iter().filter_map(pair).collect()
    }

    /// One of several words.
    pub(super) fn one_of<T: Copy>(&self, name: &'static str, words: &[(&'static str, T)]) -> Option<T> {
        let found = self.get(name)?;
        let text = found.text(name)?;
        let fits = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim()));
        if fits.is_none() {
            let names = words.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(", ");
            found.error(format!("`{name}` must be one of {names}, not `{text}`"));
        }
        fits.map(|(_, value)| *value)
    }

    pub(super) fn regex(&self, name: &'static str) -> Option<Regex> {
        self.get(name)?.regex(name)
    }

    /// An expression with these variables, which must be given.
    pub(super) fn expression(&self, name: &'static str, variables: &[&'static str]) -> Option<Arc<Expression>> {
        let text = self.required_text(name)?;
        let expression = Expression::parse(&text, variables);
        let said = |why: &String| self.get(name).into_iter().for_each(|found| found.error(format!("`{name}`: {why}")));
        expression.inspect_err(said).ok().map(Arc::new)
    }
}

impl Drop for Params<'_> {
    fn drop(&mut self) {
        let asked = self.asked.borrow();
        for (name, at, _) in self.entries {
            if !asked.contains(&&**name) {
                self.notes.error(at, format!("unknown parameter `{name}`{}", hint(name, asked.iter().copied())));
            }
        }
    }
}

impl<'s> Param<'s> {
    pub(super) fn error(&self, message: impl Into<String>) {
        self.notes.error(&self.setting.at, message);
    }

    /// What stands without quotes.
    fn plain(&self) -> Option<&'s str> {
        match &self.setting.value {
            SettingValue::Plain(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<Arc<str>> {
        match &self.setting.value {
            SettingValue::Plain(text) | SettingValue::Text(text) => Some(text.clone()),
            _ => {
                self.error(format!("`{name}` must be a text"));
                None
            }
        }
    }

    fn flag(&self, name: &str) -> Option<bool> {
        match self.plain() {
            Some("true" | "True" | "TRUE") => Some(true),
            Some("false" | "False" | "FALSE") => Some(false),
            _ => {
                self.error(format!("`{name}` must be true or false"));
                None
            }
        }
    }

    fn whole(&self, name: &str, least: u64, most: u64) -> Option<u64> {
        let number = self.plain().and_then(|text| text.parse().ok());
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.error(format!("`{name}` must be a whole number from {least} to {most}"));
        }
        number
    }

    fn list(&self, name: &str) -> Vec<Param<'s>> {
        match &self.setting.value {
            SettingValue::List(items) => items.iter().map(|setting| Param { setting, notes: self.notes }).collect(),
            _ => {
                self.error(format!("`{name}` must be a list"));
                Vec::new()
            }
        }
    }

    pub(super) fn map(&self, name: &str) -> Option<Params<'s>> {
        if !matches!(self.setting.value, SettingValue::Map(_)) {
            self.error(format!("`{name}` must be a mapping"));
            return None;
        }
        Some(Params::new(self.setting, self.notes))
    }

    pub(super) fn regex(&self, name: &str) -> Option<Regex> {
        let pattern = self.text(name)?;
        match Regex::new(&pattern) {
            Ok(regex) => Some(regex),
            Err(_) => {
                self.error(format!("`{name}` is not a regular expression that can be used"));
                None
            }
        }
    }
}
