//! `matches`, `replace`, `tokenize`.

use std::borrow::Cow;
use std::ops::Deref;
use std::rc::Rc;

use super::strings::charge_text;
use crate::code::Prepared;
use crate::error::{Result, XPathError};
use crate::eval::Args;
use crate::regex::Regex;
use crate::value::Sequence;

/// The expression compiled with the call, or one that depends on the context.
enum Compiled<'a> {
    Constant(&'a Regex),
    Computed(Rc<Regex>),
}

impl Deref for Compiled<'_> {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        match self {
            Compiled::Constant(regex) => regex,
            Compiled::Computed(regex) => regex,
        }
    }
}

fn regex<'a>(args: &Args<'_, 'a>, flags_at: usize) -> Result<Compiled<'a>> {
    if let Some(Prepared::Regex(regex)) = args.prepared {
        return Ok(Compiled::Constant(regex));
    }
    let pattern = args.string(1)?;
    let flags = if args.len() > flags_at { args.string(flags_at)? } else { Cow::Borrowed("") };
    args.ev.session.regex(&pattern, &flags).map(Compiled::Computed)
}

pub(super) fn matches(args: &Args<'_, '_>) -> Result<bool> {
    let text = args.string(0)?;
    charge_text(args, text.len())?;
    regex(args, 2)?.is_match(&text)
}

pub(super) fn replace<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    let text = args.string(0)?;
    let regex = regex(args, 3)?;
    let replacement = args.string(2)?;
    if regex.is_match("")? {
        return Err(matches_empty());
    }
    charge_text(args, text.len() + replacement.len())?;
    let replaced = regex.replace_all(&text, &replacement)?;
    charge_text(args, replaced.len())?;
    Ok(Cow::Owned(replaced))
}

pub(super) fn tokenize(args: &Args<'_, '_>) -> Result<Sequence> {
    let text = args.string(0)?;
    args.ev.charge(text.len())?;
    if args.len() == 1 {
        let words = text.split([' ', '\t', '\r', '\n']).filter(|word| !word.is_empty());
        return Ok(super::nodes::strings(words.map(str::to_string)));
    }
    let regex = regex(args, 2)?;
    if text.is_empty() {
        return Ok(Sequence::Empty);
    }
    if regex.is_match("")? {
        return Err(matches_empty());
    }
    Ok(super::nodes::strings(regex.split(&text)?.into_iter().map(str::to_string)))
}

fn matches_empty() -> XPathError {
    XPathError::new("FORX0003", "the regular expression matches the empty string")
}
