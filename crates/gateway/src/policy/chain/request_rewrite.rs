//! `request-rewrite`: another path, query or method, perhaps only for some requests.

use std::sync::Arc;

use penstock_catalog::path::has_dot_segment;
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::Method;
use regex::Regex;

use super::params::{Param, Params};
use crate::error::{GatewayError, codes};
use crate::policy::chain::kind::{ChainPhase, ChainPolicy, Made, Making};
use crate::{CallContext, client_request, text};

/// The policy.
pub(super) const POLICY: ChainPolicy = ChainPolicy { name: "request-rewrite", make };

struct Rewrite {
    headers: Vec<Matcher>,
    query: Vec<Matcher>,
    path: Option<Path>,
    rules: Vec<Rule>,
    method: Option<Method>,
}

struct Matcher {
    name: Arc<str>,
    is: Is,
}

enum Is {
    Present,
    Exactly(Arc<str>),
    Like(Regex),
}

enum Path {
    /// What the operation's path is, up to its `/*`, becomes this.
    Prefix {
        of: Arc<str>,
        with: Arc<str>,
    },
    Full(Arc<str>),
    Pattern(Regex, String),
}

struct Rule {
    name: Arc<str>,
    action: Action,
}

enum Action {
    Replace(Arc<str>),
    Remove,
    Add(Arc<str>),
    Append { separator: Arc<str>, value: Arc<str> },
    Pattern(Regex, String),
}

fn make(making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    let matches = params.map("match");
    let list = |name| matches.as_ref().map(|matches| matchers(matches, name)).unwrap_or_default();
    let methods = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"].map(|name| (name, name));
    let rewrite = Rewrite {
        headers: list("headers"),
        query: list("queryParams"),
        path: params.map("pathRewrite").and_then(|rewrite| path(&rewrite, &making.site.operation.path)),
        rules: params.map("queryRewrite").map(|rewrite| rules(&rewrite)).unwrap_or_default(),
        method: params.one_of("methodRewrite", &methods).map(Method::parse),
    };
    if rewrite.path.is_none() && rewrite.rules.is_empty() && rewrite.method.is_none() {
        params.error("one of `pathRewrite`, `queryRewrite` and `methodRewrite` is missing");
    }
    Some(Made::request(ChainPhase::Head, rewrite))
}

fn matchers(params: &Params<'_>, name: &'static str) -> Vec<Matcher> {
    #[derive(Clone, Copy)]
    enum Type {
        Present,
        Exact,
        Regex,
    }
    let read = |item: Param<'_>| {
        let item = item.map(name)?;
        let types = [("Present", Type::Present), ("Exact", Type::Exact), ("Regex", Type::Regex)];
        let (name, kind) = (item.required_text("name")?, item.one_of("type", &types));
        let is = match kind {
            None => {
                item.error("a condition needs `type`");
                return None;
            }
            Some(Type::Present) => {
                let _ = item.text("value");
                Is::Present
            }
            Some(Type::Exact) => Is::Exactly(item.required_text("value")?),
            Some(Type::Regex) => {
                item.required_text("value")?;
                Is::Like(item.regex("value")?)
            }
        };
        Some(Matcher { name, is })
    };
    params.list(name).into_iter().filter_map(read).collect()
}

fn path(params: &Params<'_>, operation: &str) -> Option<Path> {
    #[derive(Clone, Copy)]
    enum Type {
        Prefix,
        Full,
        Pattern,
    }
    let types =
        [("ReplacePrefixMatch", Type::Prefix), ("ReplaceFullPath", Type::Full), ("ReplaceRegexMatch", Type::Pattern)];
    let kind = params.one_of("type", &types);
    let (prefix, full) = (params.text("replacePrefixMatch"), params.text("replaceFullPath"));
    let pattern = params.map("replaceRegexMatch").and_then(|pattern| regex_pair(&pattern));
    let is_path = |text: &Arc<str>| text.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    if [&prefix, &full].into_iter().flatten().any(|text| !is_path(text)) {
        params.error("a path holds neither blanks nor control characters");
    }
    let path = match kind {
        None => None,
        Some(Type::Prefix) => {
            let of = operation.strip_suffix("/*").unwrap_or(operation).into();
            prefix.map(|with| Path::Prefix { of, with })
        }
        Some(Type::Full) => full.filter(|full| full.starts_with('/')).map(Path::Full),
        Some(Type::Pattern) => pattern.map(|(regex, with)| Path::Pattern(regex, with)),
    };
    if path.is_none() {
        params.error("`pathRewrite` needs `type` and the member of that name");
    }
    path
}

/// A pattern and the text that replaces its matches.
fn regex_pair(params: &Params<'_>) -> Option<(Regex, String)> {
    let substitution = params.text("substitution");
    let regex = params.regex("pattern");
    let (Some(regex), Some(substitution)) = (regex, substitution) else {
        params.error("`pattern` and `substitution` are expected");
        return None;
    };
    Some((regex, substitution_of(&substitution)))
}

/// `\1` as the engine writes it, `${1}`; a `$` is a `$`.
fn substitution_of(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let text = text.replace('$', "$$");
    let mut rest = &*text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let digits = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
        if digits == 0 {
            out.push('\\');
        } else {
            out.push_str(&format!("${{{}}}", &after[..digits]));
        }
        rest = &after[digits..];
    }
    out.push_str(rest);
    out
}

fn rules(params: &Params<'_>) -> Vec<Rule> {
    #[derive(Clone, Copy)]
    enum Type {
        Replace,
        Remove,
        Add,
        Append,
        Pattern,
    }
    let types = [
        ("Replace", Type::Replace),
        ("Remove", Type::Remove),
        ("Add", Type::Add),
        ("Append", Type::Append),
        ("ReplaceRegexMatch", Type::Pattern),
    ];
    let read = |item: Param<'_>| {
        let item = item.map("rules")?;
        let (name, kind) = (item.required_text("name")?, item.one_of("action", &types));
        let value = || item.text("value").unwrap_or_default();
        let action = match kind {
            None => {
                item.error("a rule needs `action`");
                return None;
            }
            Some(Type::Replace) => Action::Replace(value()),
            Some(Type::Remove) => Action::Remove,
            Some(Type::Add) => Action::Add(value()),
            Some(Type::Append) => {
                Action::Append { separator: item.text("separator").unwrap_or_default(), value: value() }
            }
            Some(Type::Pattern) => {
                let (regex, with) = regex_pair(&item)?;
                Action::Pattern(regex, with)
            }
        };
        Some(Rule { name: name.trim().into(), action })
    };
    let rules: Vec<Rule> = params.list("rules").into_iter().filter_map(read).collect();
    if rules.is_empty() {
        params.error("`rules` must be a list of at least one rule");
    }
    rules
}

impl Is {
    fn fits<'v>(&self, mut values: impl Iterator<Item = std::borrow::Cow<'v, str>>) -> bool {
        match self {
            Is::Present => values.next().is_some(),
            Is::Exactly(wanted) => values.any(|value| *value == **wanted),
            Is::Like(pattern) => values.any(|value| pattern.is_match(&value)),
        }
    }
}

impl Rewrite {
    /// Path and query of a request that is rewritten.
    fn target(&self, target: &str) -> String {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let new_path = match &self.path {
            None => path.to_owned(),
            Some(Path::Full(full)) => full.to_string(),
            Some(Path::Prefix { of, with }) => match path.strip_prefix(&**of) {
                Some(rest) => format!("{with}{rest}"),
                None => path.to_owned(),
            },
            Some(Path::Pattern(pattern, with)) => encoded(&pattern.replace_all(path, with)),
        };
        if self.rules.is_empty() {
            return if query.is_empty() { new_path } else { format!("{new_path}?{query}") };
        }
        let mut values = pairs(query);
        self.rules.iter().for_each(|rule| rule.apply(&mut values));
        // As the API Platform writes it: sorted by name.
        values.sort_by(|(left, _), (right, _)| left.cmp(right));
        let mut out = new_path;
        for (index, (name, value)) in values.iter().enumerate() {
            out.push(if index == 0 { '?' } else { '&' });
            text::percent_encode(&mut out, name);
            out.push('=');
            text::percent_encode(&mut out, value);
        }
        out
    }
}

/// What a pattern made of a path, fit to stand in a request.
fn encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for letter in path.chars() {
        if letter.is_ascii_graphic() && !matches!(letter, '?' | '#') {
            out.push(letter);
        } else {
            text::percent_encode(&mut out, letter.encode_utf8(&mut [0; 4]));
        }
    }
    if out.starts_with('/') { out } else { format!("/{out}") }
}

fn pairs(query: &str) -> Vec<(String, String)> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (text::percent_decoded(name, true).into_owned(), text::percent_decoded(value, true).into_owned())
    };
    query.split('&').filter(|text| !text.is_empty()).map(pair).collect()
}

impl Rule {
    fn apply(&self, values: &mut Vec<(String, String)>) {
        let is_it = |(name, _): &&mut (String, String)| **name == *self.name;
        match &self.action {
            Action::Remove => values.retain(|(name, _)| **name != *self.name),
            Action::Add(value) => values.push((self.name.to_string(), value.to_string())),
            Action::Replace(value) => {
                values.retain(|(name, _)| **name != *self.name);
                values.push((self.name.to_string(), value.to_string()));
            }
            Action::Append { separator, value: more } => {
                let mut found = false;
                for (_, value) in values.iter_mut().filter(is_it) {
                    value.push_str(separator);
                    value.push_str(more);
                    found = true;
                }
                if !found {
                    values.push((self.name.to_string(), more.to_string()));
                }
            }
            Action::Pattern(pattern, with) => {
                for (_, value) in values.iter_mut().filter(is_it) {
                    *value = pattern.replace_all(value, with).into_owned();
                }
            }
        }
    }
}

impl Mediator for Rewrite {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        let target = client_request::below_now(exchange, &context.site).to_owned();
        let headers = &exchange.message.headers;
        let by_header =
            |matcher: &Matcher| matcher.is.fits(headers.get_all(matcher.name.trim()).map(String::from_utf8_lossy));
        let values = pairs(target.split_once('?').map_or("", |(_, query)| query));
        let by_query = |matcher: &Matcher| {
            let of = values.iter().filter(|(name, _)| *name == matcher.name.trim());
            matcher.is.fits(of.map(|(_, value)| value.as_str().into()))
        };
        if !self.headers.iter().all(by_header) || !self.query.iter().all(by_query) {
            return Ok(Flow::Next);
        }
        if self.path.is_some() || !self.rules.is_empty() {
            let target = self.target(&target);
            // Parts of the client's path, put together anew, must not climb out of the backend's path.
            if has_dot_segment(target.split('?').next().unwrap_or_default()) {
                return Err(GatewayError::new(codes::NOT_FOUND).into());
            }
            exchange.message.url_postfix = Some(target.into());
        }
        if let Some(method) = &self.method {
            exchange.message.method = method.clone();
        }
        Ok(Flow::Next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrite(path: Option<Path>, rules: Vec<(&str, Action)>) -> Rewrite {
        let rules = rules.into_iter().map(|(name, action)| Rule { name: name.into(), action }).collect();
        Rewrite { headers: Vec::new(), query: Vec::new(), path, rules, method: None }
    }

    #[test]
    fn paths_are_rewritten() {
        let prefix = || Some(Path::Prefix { of: "/old".into(), with: "/new".into() });
        let pattern = |text, with| Some(Path::Pattern(Regex::new(text).unwrap(), substitution_of(with)));
        for (path, target, expected) in [
            (prefix(), "/old/a?x=1", "/new/a?x=1"),
            (prefix(), "/other?x=1", "/other?x=1"),
            (Some(Path::Full("/full".into())), "/old/a?x=1", "/full?x=1"),
            (pattern(r"^/users/([0-9]+)$", r"/u/\1/x"), "/users/42?a", "/u/42/x?a"),
            (pattern(r"/(.*)", r"\1 b?c"), "/a", "/a%20b%3Fc"),
            (pattern(r"/(.*)", r"/$1\1"), "/a", "/$1a"),
        ] {
            assert_eq!(rewrite(path, Vec::new()).target(target), expected, "{target}");
        }
    }

    #[test]
    fn queries_are_rewritten() {
        let check = |rules: Vec<(&str, Action)>, target: &str, expected: &str| {
            assert_eq!(rewrite(None, rules).target(target), expected, "{target}");
        };
        check(vec![("a", Action::Replace("x y".into()))], "/p?a=1&a=2&b=%2F", "/p?a=x%20y&b=%2F");
        check(vec![("a", Action::Remove)], "/p?a=1", "/p");
        check(vec![("a", Action::Add("2".into()))], "/p?a=1", "/p?a=1&a=2");
        let append = || Action::Append { separator: "-".into(), value: "z".into() };
        check(vec![("a", append())], "/p?a=1&a=2", "/p?a=1-z&a=2-z");
        check(vec![("a", append())], "/p", "/p?a=z");
        let digits = Action::Pattern(Regex::new("([0-9])").unwrap(), substitution_of(r"<\1>"));
        check(vec![("a", digits)], "/p?a=b1", "/p?a=b%3C1%3E");
    }
}
