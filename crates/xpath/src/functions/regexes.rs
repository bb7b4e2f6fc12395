//! `matches`, `replace`, `tokenize`.

use std::borrow::Cow;

use super::strings::charge_text;
use crate::code::Prepared;
use crate::error::{Result, XPathError};
use crate::eval::Args;
use crate::regex::Regex;
use crate::value::Sequence;

/// The expression compiled with the call, or made now.
fn regex<'a>(args: &Args<'_, 'a>, flags_at: usize) -> Result<Cow<'a, Regex>> {
    if let Some(Prepared::Regex(regex)) = args.prepared {
        return Ok(Cow::Borrowed(regex));
    }
    let pattern = args.string(1)?;
    let flags = if args.len() > flags_at { args.string(flags_at)? } else { Cow::Borrowed("") };
    // Compiling costs far more than matching.
    args.ev.charge(100 + pattern.len() * 10)?;
    Regex::new(&pattern, &flags).map(Cow::Owned)
}

pub(super) fn matches(args: &Args<'_, '_>) -> Result<bool> {
    let text = args.string(0)?;
    charge_text(args, text.len())?;
    Ok(regex(args, 2)?.is_match(&text))
}

pub(super) fn replace<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    let text = args.string(0)?;
    let regex = regex(args, 3)?;
    let replacement = args.string(2)?;
    if regex.is_match("") {
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
    if regex.is_match("") {
        return Err(matches_empty());
    }
    if text.is_empty() {
        return Ok(Sequence::Empty);
    }
    Ok(super::nodes::strings(regex.split(&text).map(str::to_string)))
}

fn matches_empty() -> XPathError {
    XPathError::new("FORX0003", "the regular expression matches the empty string")
}
